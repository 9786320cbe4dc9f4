"""Generated scenes, and detectors that err in known ways: the data of the examples. Same seed, same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

SIZE = (640, 480)


@dataclass(frozen=True)
class Box:
    """An object or, with a score below 1, a detection; left, top, width and height in pixels."""

    label: str
    x: float
    y: float
    w: float
    h: float
    score: float = 1.0


@dataclass(frozen=True)
class Scene:
    """An image without its pixels."""

    name: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True, kw_only=True)
class Detector:
    """How a detector errs: shares of objects, and the spread of its boxes as a share of their size."""

    seed: int
    missed: float = 0.1
    confused: float = 0.03
    spread: float = 0.06
    clutter: float = 0.6  # false alarms an image


def draw_scenes(seed: int, count: int, labels: Sequence[str], *, prefix: str = "img", objects: int = 5) -> list[Scene]:
    """Draw scenes with some objects each, of which the first labels are the most frequent."""
    random = Random(seed)
    scenes = []
    for number in range(count):
        boxes = []
        for _ in range(1 + int(random.random() * objects)):
            w, h = (12 + random.random() ** 2 * 180 for _ in range(2))
            label = labels[int(random.random() ** 2 * len(labels))]
            x, y = random.random() * (SIZE[0] - w), random.random() * (SIZE[1] - h)
            boxes.append(Box(label, *(round(value, 1) for value in (x, y, w, h))))
        scenes.append(Scene(f"{prefix}_{number:04d}", tuple(boxes)))
    return scenes


def detect(scenes: Iterable[Scene], labels: Sequence[str], detector: Detector) -> list[Scene]:
    """Return the scenes with what a detector finds in them."""
    random = Random(detector.seed)
    found = []
    for scene in scenes:
        boxes = []
        for box in scene.boxes:
            if random.random() >= detector.missed:
                label = labels[int(random.random() * len(labels))] if random.random() < detector.confused else box.label
                boxes.append(replace(_moved(random, box, detector.spread), label=label))
        while random.random() < detector.clutter / (1 + detector.clutter):
            w, h = 20 + random.random() * 100, 20 + random.random() * 100
            x, y = random.random() * (SIZE[0] - w), random.random() * (SIZE[1] - h)
            boxes.append(Box(labels[int(random.random() * len(labels))], x, y, w, h, 0.02 + 0.6 * random.random() ** 2))
        found.append(replace(scene, boxes=tuple(map(_rounded, boxes))))
    return found


def _moved(random: Random, box: Box, spread: float) -> Box:
    """Move and stretch a box; the farther, the lower its score."""
    dx, dy, dw, dh = (2 * spread * (random.random() + random.random() - 1) for _ in range(4))
    score = 0.97 - 1.5 * (abs(dx) + abs(dy) + abs(dw) + abs(dh)) / 2 - 0.3 * random.random()
    moved = replace(box, x=box.x + dx * box.w, y=box.y + dy * box.h, w=box.w * (1 + dw), h=box.h * (1 + dh))
    return replace(moved, score=max(score, 0.02 + 0.1 * random.random()))


def _rounded(box: Box) -> Box:
    x, y = min(max(box.x, 0), SIZE[0] - 8), min(max(box.y, 0), SIZE[1] - 8)
    w, h = min(box.w, SIZE[0] - x), min(box.h, SIZE[1] - y)
    return Box(box.label, *(round(value, 1) for value in (x, y, w, h)), score=round(box.score, 4))


def coco_document(scenes: Sequence[Scene], ids: dict[str, int], *, suffix: str = ".jpg") -> dict[str, object]:
    """Return scenes as ground truth in COCO JSON; images are numbered from 1."""
    rows = [(image, box) for image, scene in enumerate(scenes, start=1) for box in scene.boxes]
    return {
        "images": [
            {"id": image, "file_name": scene.name + suffix, "width": SIZE[0], "height": SIZE[1]}
            for image, scene in enumerate(scenes, start=1)
        ],
        "annotations": [
            {
                "id": number,
                "image_id": image,
                "category_id": ids[box.label],
                "bbox": [box.x, box.y, box.w, box.h],
                "area": box.w * box.h,
                "iscrowd": 0,
            }
            for number, (image, box) in enumerate(rows, start=1)
        ],
        "categories": [{"id": key, "name": label} for label, key in ids.items()],
    }


def coco_results(scenes: Sequence[Scene], ids: dict[str, int]) -> list[dict[str, object]]:
    """Return scenes as a results list of COCO."""
    return [
        {"image_id": image, "category_id": ids[box.label], "bbox": [box.x, box.y, box.w, box.h], "score": box.score}
        for image, scene in enumerate(scenes, start=1)
        for box in scene.boxes
    ]


def write_json(path: Path, document: object) -> None:
    """Write a document, with the folder that it goes to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
