"""Seeded scenes for the benchmarks: random boxes with the statistics of a large data set. Nothing is timed here."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.int64]

# COCO numbers its 80 classes from 1 to 90 and leaves these out.
UNUSED_CLASS_IDS = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})
LARGEST_IMAGE_ID = 581_929  # of COCO 2017
PICTURE_SIZES = ((640, 480), (480, 640), (640, 427), (500, 375))
MAX_PER_IMAGE = 100  # detections that detectors keep by custom
CROWD_SHARE = 0.012  # of all annotations of COCO val2017
POLYGON_POINTS = 22


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much to draw; the averages are per image."""

    images: int = 5_000
    classes: int = 80
    objects: float = 8.2
    duplicates: float = 12.5
    clutter: float = 31.0
    seed: int = 20


@dataclass(frozen=True)
class Boxes:
    """Boxes of one side, one row each; `xywh` has shape (n, 4), the others (n,)."""

    image: RowArray
    label: RowArray
    xywh: FloatArray
    score: FloatArray

    def take(self, rows: Any) -> Boxes:
        return Boxes(*(getattr(self, one.name)[rows] for one in fields(self)))

    def __len__(self) -> int:
        return len(self.image)


@dataclass(frozen=True)
class Pictures:
    """Keys and sizes of the images, and the few classes that each of them shows, shape (n, 4)."""

    ids: RowArray
    sizes: FloatArray
    themes: RowArray


@dataclass(frozen=True, kw_only=True)
class Dense:
    """How many boxes of one class to draw in one image."""

    objects: int = 5_000
    detections: int = 20_000
    seed: int = 20


def write_scene(folder: Path, scale: Scale | Dense) -> None:
    """Write ``gt.json`` and ``dt.json`` unless this very scene is there already."""
    stamp = folder / "scale.txt"
    made_by = f"{scale} {sha256(Path(__file__).read_bytes()).hexdigest()}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_by:
        return
    folder.mkdir(parents=True, exist_ok=True)
    document, detections = make_coco_scene(scale) if isinstance(scale, Scale) else make_dense_scene(scale)
    (folder / "gt.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "dt.json").write_text(json.dumps(detections), encoding="utf-8")
    stamp.write_text(made_by, encoding="utf-8")


def make_coco_scene(scale: Scale) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw a scene: the ground-truth document and the list of detections, as COCO JSON has them."""
    rng = np.random.default_rng(scale.seed)
    class_ids = np.array([number for number in range(1, 400) if number not in UNUSED_CLASS_IDS][: scale.classes])
    pictures = _draw_pictures(rng, scale)
    objects = _draw_objects(rng, scale, pictures)
    crowd = rng.random(len(objects)) < CROWD_SHARE
    found = _draw_detections(rng, scale, pictures, objects)
    document = {
        "images": _image_records(pictures),
        "categories": [{"id": int(key), "name": f"class {key}", "supercategory": "thing"} for key in class_ids],
        "annotations": _annotation_records(rng, pictures, objects, crowd, class_ids),
    }
    return document, _detection_records(pictures, found, class_ids)


def make_dense_scene(scale: Dense) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw one image full of boxes of one class, as in pictures of shelves, cells or crops."""
    rng = np.random.default_rng(scale.seed)
    side = 40.0 * np.sqrt(scale.objects)  # px; the boxes cover half of the picture, whatever their number
    pictures = Pictures(np.array([1]), np.array([[side, side]]), np.zeros((1, 4), dtype=np.int64))
    low, high = 15.0, 45.0  # px, sides of the boxes
    shape = rng.uniform(low, high, (scale.objects, 2))
    corner = rng.random((scale.objects, 2)) * (side - shape)
    nobody = np.zeros(scale.objects, dtype=np.int64)
    objects = Boxes(nobody, nobody, np.hstack([corner, shape]).round(2), np.ones(scale.objects))
    found = _jittered(rng, objects.take(rng.integers(0, scale.objects, scale.detections)), 0.12, 0.0)
    document = {
        "images": _image_records(pictures),
        "categories": [{"id": 1, "name": "item"}],
        "annotations": [
            _annotation(row, 1, 1, box, box[2] * box[3], [], 0) for row, box in enumerate(objects.xywh.tolist())
        ],
    }
    return document, _detection_records(pictures, _best_first(found, cap=scale.detections), np.array([1]))


def _draw_pictures(rng: np.random.Generator, scale: Scale) -> Pictures:
    ids = np.sort(rng.choice(LARGEST_IMAGE_ID, scale.images, replace=False)) + 1
    sizes = np.array(PICTURE_SIZES, dtype=np.float64)[rng.integers(0, len(PICTURE_SIZES), scale.images)]
    frequency = 1.0 / np.arange(1, scale.classes + 1) ** 1.1
    rank = np.concatenate([[0], 1 + rng.permutation(scale.classes - 1)])  # class 1, "person", leads
    themes = rank[rng.choice(scale.classes, (scale.images, 4), p=frequency / frequency.sum())]
    return Pictures(ids, sizes, themes)


def _draw_objects(rng: np.random.Generator, scale: Scale, pictures: Pictures) -> Boxes:
    spread = 2.0  # of the negative binomial: many images with few objects, a few with dozens
    counts = rng.negative_binomial(spread, spread / (spread + scale.objects), scale.images)
    image = np.repeat(np.arange(scale.images), counts)
    label = pictures.themes[image, rng.choice(4, len(image), p=[0.55, 0.25, 0.12, 0.08])]
    return Boxes(image, label, _draw_boxes(rng, pictures.sizes[image]), np.ones(len(image)))


def _draw_boxes(rng: np.random.Generator, picture: FloatArray) -> FloatArray:
    """Draw boxes inside their pictures, four in ten of them small."""
    n = len(picture)
    side = np.exp(rng.normal(np.log(45.0), 1.0, n))
    stretch = np.exp(rng.normal(0.0, 0.35, n))
    shape = np.clip(np.column_stack([side * stretch, side / stretch]), 4.0, 0.95 * picture)
    corner = rng.random((n, 2)) * (picture - shape)
    return np.hstack([corner, shape]).round(2)


def _draw_detections(rng: np.random.Generator, scale: Scale, pictures: Pictures, objects: Boxes) -> Boxes:
    """Draw good boxes, near misses, confused classes and clutter; at most 100 an image, the best first."""
    seen = objects.take(np.flatnonzero(rng.random(len(objects)) < 0.86))
    weight = min(1.0, scale.duplicates / scale.objects / 3)
    again = [objects.take(np.flatnonzero(rng.random(len(objects)) < weight)) for _ in range(3)]
    confused = again[2]
    other = pictures.themes[confused.image, rng.integers(0, 4, len(confused))]
    image = np.repeat(np.arange(scale.images), rng.poisson(scale.clutter, scale.images))
    clutter = Boxes(
        image,
        np.where(rng.random(len(image)) < 0.5, pictures.themes[image, 1], rng.integers(0, scale.classes, len(image))),
        _draw_boxes(rng, pictures.sizes[image]),
        rng.beta(1.1, 7.0, len(image)),
    )
    parts = [
        _jittered(rng, seen, 0.06, 0.0),
        _jittered(rng, again[0], 0.15, 0.25),
        _jittered(rng, again[1], 0.30, 0.35),
        _jittered(rng, Boxes(confused.image, other, confused.xywh, confused.score), 0.10, 0.30),
        clutter,
    ]
    return _best_first(Boxes(*(np.concatenate([getattr(p, one.name) for p in parts]) for one in fields(Boxes))))


def _jittered(rng: np.random.Generator, boxes: Boxes, spread: float, penalty: float) -> Boxes:
    """Move and stretch boxes by a share of their size; the farther, the lower the score."""
    error = rng.normal(0.0, spread, (len(boxes), 4))
    shape = boxes.xywh[:, 2:] * np.exp(error[:, 2:])
    corner = boxes.xywh[:, :2] + boxes.xywh[:, 2:] * error[:, :2]
    quality = np.exp(-3.0 * np.abs(error).sum(axis=1)) - penalty + rng.normal(0.0, 0.15, len(boxes))
    return Boxes(boxes.image, boxes.label, np.hstack([corner, shape]), np.clip(quality, 0.001, 0.999))


def _best_first(boxes: Boxes, *, cap: int = MAX_PER_IMAGE) -> Boxes:
    """Order by image, then by falling score, and keep the first `cap` of each image."""
    ordered = boxes.take(np.lexsort((-boxes.score, boxes.image)))
    start = np.searchsorted(ordered.image, ordered.image)
    return ordered.take(np.arange(len(ordered)) - start < cap)


def _image_records(pictures: Pictures) -> list[dict[str, Any]]:
    return [
        {"id": key, "file_name": f"{key:012d}.jpg", "width": int(width), "height": int(height)}
        for key, (width, height) in zip(pictures.ids.tolist(), pictures.sizes.tolist(), strict=True)
    ]


def _annotation_records(
    rng: np.random.Generator,
    pictures: Pictures,
    objects: Boxes,
    crowd: npt.NDArray[np.bool_],
    class_ids: RowArray,
) -> list[dict[str, Any]]:
    outlines, areas = _outlines(rng, objects.xywh)
    columns = zip(
        pictures.ids[objects.image].tolist(),
        class_ids[objects.label].tolist(),
        objects.xywh.tolist(),
        areas.tolist(),
        outlines.tolist(),
        crowd.tolist(),
        pictures.sizes[objects.image].astype(int).tolist(),
        strict=True,
    )
    return [
        _annotation(row, image, label, box, area, _run_lengths(box, size) if is_crowd else [outline], int(is_crowd))
        for row, (image, label, box, area, outline, is_crowd, size) in enumerate(columns)
    ]


def _annotation(
    row: int, image: int, label: int, box: list[float], area: float, segmentation: Any, iscrowd: int
) -> dict[str, Any]:
    return {
        "segmentation": segmentation,
        "area": area,
        "iscrowd": iscrowd,
        "image_id": image,
        "bbox": box,
        "category_id": label,
        "id": row + 1,  # pycocotools takes a match with annotation 0 for none
    }


def _outlines(rng: np.random.Generator, xywh: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Draw a closed outline in each box, shape (n, 2 * points), and its area by the shoelace formula."""
    angle = np.linspace(0.0, 2 * np.pi, POLYGON_POINTS, endpoint=False)
    radius = rng.uniform(0.35, 0.5, (len(xywh), POLYGON_POINTS))
    x = (xywh[:, [0]] + xywh[:, [2]] * (0.5 + radius * np.cos(angle))).round(2)
    y = (xywh[:, [1]] + xywh[:, [3]] * (0.5 + radius * np.sin(angle))).round(2)
    doubled = (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)
    return np.stack([x, y], axis=2).reshape(len(xywh), -1), np.abs(doubled / 2).round(4)


def _run_lengths(box: list[float], size: list[int]) -> dict[str, Any]:
    """Uncompressed run lengths of the box's pixels, column by column, as COCO writes crowd regions."""
    width, height = size
    left, top, wide, high = (int(value) for value in box)
    wide, high = max(wide, 1), max(min(high, height - top), 1)
    counts = [left * height + top, high]
    for _ in range(wide - 1):
        counts += [height - high, high]
    counts.append(width * height - sum(counts))
    return {"counts": counts, "size": [height, width]}


def _detection_records(pictures: Pictures, found: Boxes, class_ids: RowArray) -> list[dict[str, Any]]:
    columns = zip(
        pictures.ids[found.image].tolist(),
        class_ids[found.label].tolist(),
        found.xywh.round(6).tolist(),
        found.score.round(7).tolist(),
        strict=True,
    )
    return [
        {"image_id": image, "category_id": label, "bbox": box, "score": score} for image, label, box, score in columns
    ]


def main() -> None:
    """Write one scene; the benchmarks call this in a process of its own, so that they stay small themselves."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=Scale.images)
    for name in ("objects", "duplicates", "clutter"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Scale, name), help="average of an image")
    parser.add_argument("--dense", type=int, nargs=2, metavar=("OBJECTS", "DETECTIONS"))
    chosen = parser.parse_args()
    dense = chosen.dense and Dense(objects=chosen.dense[0], detections=chosen.dense[1])
    averages = {"objects": chosen.objects, "duplicates": chosen.duplicates, "clutter": chosen.clutter}
    write_scene(chosen.folder, dense or Scale(images=chosen.images, **averages))


if __name__ == "__main__":
    main()
