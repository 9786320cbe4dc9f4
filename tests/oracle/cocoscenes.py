"""Random COCO scenes, each kind made to hit one rule often: ties, thresholds met exactly, size limits, crowds, caps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Record = dict[str, Any]
Box = list[float]

# Pairs of boxes whose IoU is exactly 1/2, 3/4, 3/5 and 9/10 (x, y, w, h).
EXACT_PAIRS = (
    ([0, 0, 10, 10], [0, 0, 10, 5]),
    ([0, 0, 10, 10], [0, 0, 5, 10]),
    ([0, 0, 20, 10], [0, 0, 15, 10]),
    ([0, 0, 10, 10], [0, 0, 10, 6]),
    ([0, 0, 10, 10], [0, 0, 10, 9]),
    ([0, 0, 30, 10], [10, 0, 30, 10]),
)
SIZE_LIMITS = ((32, 32), (96, 96), (16, 64), (64, 144), (32, 31.999), (96.001, 96), (1024, 1), (1, 9216))
FLAT = ((0, 10), (10, 0), (0, 0), (-3, 10), (-3, -4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a kind of scene is made of.

    `cell` is the grid that boxes lie on (0: anywhere), `levels` the number of distinct scores (0: all distinct).
    """

    name: str
    images: int = 3
    classes: int = 2
    objects: int = 3
    detections: int = 6
    cell: float = 4.0
    levels: int = 0
    crowd: float = 0.1
    sizes: tuple[tuple[float, float], ...] = ((8, 8), (8, 16), (16, 16), (12, 20))
    areas: bool = False
    ids: str = "plain"
    near: float = 0.7
    exact: bool = False


KINDS = (
    Kind(name="plain"),
    Kind(name="anywhere", cell=0.0),
    Kind(name="thirds", cell=1 / 3),
    Kind(name="tenths", cell=0.1, sizes=((0.8, 0.7), (0.3, 1.1), (1.7, 0.9))),
    Kind(name="tied scores", levels=3, detections=10),
    Kind(name="all scores equal", levels=1, images=4),
    Kind(name="equal overlaps", cell=8.0, sizes=((16, 16),), objects=6, levels=2),
    Kind(name="exact thresholds", exact=True, levels=4),
    Kind(name="size limits", sizes=SIZE_LIMITS, cell=32.0),
    Kind(name="areas of masks", areas=True, sizes=(*SIZE_LIMITS, (8, 8))),
    Kind(name="crowds", crowd=0.5, objects=4, detections=12),
    Kind(name="nearly all crowd", crowd=0.9),
    Kind(name="crowds and ties", crowd=0.4, levels=2, cell=8.0, areas=True),
    Kind(name="flat boxes", sizes=((8, 8), (16, 16), (16, 8), (8, 16), *FLAT), cell=4.0),
    Kind(name="sparse ids", ids="sparse", levels=2, images=5, classes=4),
    Kind(name="text ids", ids="text", levels=2, images=5),
    Kind(name="mostly empty", images=6, classes=5, objects=1, detections=1),
    Kind(name="no object is found", near=0.0),
    Kind(name="more than 100 in an image", images=1, classes=1, objects=12, detections=130, levels=20),
    Kind(name="more than 100, two images", images=2, classes=1, objects=40, detections=115, cell=2.0),
    Kind(name="around the cap of 10", objects=12, detections=14, levels=5),
    Kind(name="one crowded image", images=1, classes=1, objects=30, detections=60, cell=2.0, levels=8),
    Kind(name="many classes", images=2, classes=12, objects=1, detections=3),
    Kind(
        name="more boxes than recall values", images=4, classes=1, objects=90, detections=90, near=0.9, sizes=((8, 8),)
    ),
    Kind(name="large boxes", cell=25.0, sizes=((100, 100), (150, 90), (96, 96), (90, 100)), levels=6),
)


def draw(kind: Kind, seed: int) -> tuple[Record, list[Record]]:
    """Return ground truth and detections."""
    rng = np.random.default_rng([seed, sum(map(ord, kind.name))])
    images, classes = _ids(kind.images, kind.ids, rng), _ids(kind.classes, kind.ids, rng)
    annotations: list[Record] = []
    detections: list[Record] = []
    for image in images:
        for category in classes:
            place = {"image_id": image, "category_id": category}
            boxes = [_box(kind, rng) for _ in range(rng.integers(0, kind.objects, endpoint=True))]
            annotations += [place | _annotation(kind, box, rng) for box in boxes]
            n_found = int(rng.integers(kind.detections // 2, kind.detections, endpoint=True))
            detections += [place | {"bbox": _found(kind, boxes, rng)} for _ in range(n_found)]
    detections = detections or [{"image_id": images[0], "category_id": classes[0], "bbox": _box(kind, rng)}]
    for one, score in zip(detections, _scores(kind, len(detections), rng), strict=True):
        one["score"] = score
    document = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": 640, "height": 480} for i in images],
        "categories": [{"id": i, "name": f"class {i}"} for i in classes],
        "annotations": _shuffled(annotations, rng),
    }
    for i, annotation in enumerate(document["annotations"], start=1):
        annotation["id"] = i
    return document, _shuffled(detections, rng)


def staircase(n: int) -> tuple[Record, list[Record]]:
    """Hits and strays in turn, so that precision differs at every hit: shows which hit reaches which recall value.

    With 50 objects, i/100 * 50 rounds above an integer that is enough, and below one that is not.
    """
    boxes = [[20.0 * i, 0.0, 10.0, 10.0] for i in range(n)]
    strays = [[20.0 * i, 500.0, 10.0, 10.0] for i in range(n - 1)]
    detections = [
        {"bbox": box, "score": 1 - (2 * i + shift) / 1000}
        for shift, row in enumerate((boxes, strays))
        for i, box in enumerate(row)
    ]
    return _document([(1, box) for box in boxes]), [{"image_id": 1, "category_id": 1, **one} for one in detections]


def tie_between_classes() -> tuple[Record, list[Record]]:
    """Two boxes of equal IoU, of class 2, then of class 1: pooled, the last class wins, not the last in the file.

    The second detection fits the box of class 2 only: IoU 80 / 140 with it, 60 / 160 with the other.
    """
    document = _document([(2, [0.0, 0.0, 10.0, 12.0]), (1, [0.0, -2.0, 10.0, 12.0])])
    detections = [([0.0, 0.0, 10.0, 10.0], 0.9), ([0.0, 4.0, 10.0, 10.0], 0.8)]
    return document, [{"image_id": 1, "category_id": 1, "bbox": box, "score": score} for box, score in detections]


def _document(boxes: list[tuple[int, Box]]) -> Record:
    """Ground truth of one image: (category id, box)."""
    annotations = [
        {"id": i, "image_id": 1, "category_id": category, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for i, (category, box) in enumerate(boxes, start=1)
    ]
    categories = [{"id": i, "name": f"class {i}"} for i in sorted({category for category, _ in boxes})]
    return {"images": [{"id": 1, "width": 1200, "height": 600}], "categories": categories, "annotations": annotations}


SPECIAL = {"staircase of 50": staircase(50), "tie between classes": tie_between_classes()}


def _ids(n: int, style: str, rng: np.random.Generator) -> list[Any]:
    if style == "plain":
        return list(range(1, n + 1))
    sparse = rng.choice(10_000, n, replace=False).tolist()
    return sparse if style == "sparse" else [f"id{number}" for number in sparse]


def _box(kind: Kind, rng: np.random.Generator) -> Box:
    if kind.exact:
        return _exact(rng, 0)
    left, top = rng.uniform(0, 40, 2)
    width, height = kind.sizes[rng.integers(len(kind.sizes))]
    if kind.cell == 0.0:
        return [left, top, width * rng.uniform(0.5, 1.5), height * rng.uniform(0.5, 1.5)]
    return [float(np.round(left / kind.cell) * kind.cell), float(np.round(top / kind.cell) * kind.cell), width, height]


def _exact(rng: np.random.Generator, side: int) -> Box:
    """One half of a pair whose IoU is a threshold exactly; pairs share one of three places."""
    x, y, w, h = EXACT_PAIRS[rng.integers(len(EXACT_PAIRS))][side]
    return [float(x + 50 * rng.integers(3)), float(y), float(w), float(h)]


def _found(kind: Kind, boxes: list[Box], rng: np.random.Generator) -> Box:
    """A detection: near an object, or anywhere."""
    if not boxes or rng.random() > kind.near:
        return _box(kind, rng)
    if kind.exact:
        return _exact(rng, 1)
    x, y, w, h = boxes[rng.integers(len(boxes))]
    step = kind.cell or 1.0
    dx, dy, dw, dh = step * rng.integers(-1, 2, 4) if rng.random() < 0.7 else np.zeros(4)
    return [float(x + dx), float(y + dy), float(w + dw), float(h + dh)]


def _annotation(kind: Kind, box: Box, rng: np.random.Generator) -> Record:
    area = box[2] * box[3]
    if kind.areas:
        area = float(rng.choice([area, area / 2, 1024.0, 9216.0, 1e10, 0.0]))
    return {"bbox": box, "area": area, "iscrowd": int(rng.random() < kind.crowd)}


def _scores(kind: Kind, n: int, rng: np.random.Generator) -> list[float]:
    if kind.levels:
        return (rng.integers(1, kind.levels + 1, n) / (kind.levels + 1)).tolist()
    return rng.permutation(np.arange(1, n + 1) / (n + 1)).tolist()


def _shuffled(records: list[Record], rng: np.random.Generator) -> list[Record]:
    return [records[i] for i in rng.permutation(len(records))]
