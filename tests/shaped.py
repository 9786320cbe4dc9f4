"""Shapes in the places of boxes, as COCO has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import write_json
from PIL import Image

from jaccard_eval import EvaluationResult, ReadOptions

KINDS = ["segm", "boundary", "keypoints", "obb", "probiou"]


def shape_options(kind: str) -> dict[str, Any]:
    """Return the options of `evaluate` by which scenes with shapes of a kind are compared."""
    options: dict[str, Any] = {"iou_type": kind}
    if kind in ("obb", "probiou"):
        options |= {f"{role}_options": ReadOptions(angle="rad-cw") for role in ("gt", "pred")}
    return options


def with_shapes(record: dict[str, Any], kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Give a record a mask, now and then as runs, a pose or an oriented box, in the place of its box."""
    left, top, width, height = record["bbox"]
    turn = rng.random(6) * 0.2 + np.array([0.0, 0.1, 0.4, 0.7, 0.2, 0.8])
    if kind == "keypoints":
        way = np.linspace(0, 1, 17) + rng.normal(0, 0.03, 17)
        points = np.column_stack((left + width * way, top + height * way**2, rng.choice([0, 1, 2], 17)))
        return {**record, "keypoints": points.round(1).ravel().tolist(), "num_keypoints": 17}
    if kind in ("obb", "probiou"):
        return {**record, "bbox": [left + width / 2, top + height / 2, width, height, float(np.round(turn[0], 2))]}
    if rng.random() < 0.3 or record.get("iscrowd"):
        # Columns of the image, from the top of the box to its bottom; some masks are empty.
        first, last = int(left) * 240 + int(top), int(left + width * (rng.random() > 0.1)) * 240 + int(top)
        return {**record, "segmentation": {"size": [240, 320], "counts": [first, last - first, 320 * 240 - last]}}
    x, y = left + width * np.concatenate((turn, turn[::-1])), top + height * np.linspace(0, 1, 12)
    return {**record, "segmentation": [np.column_stack((x, y)).round(2).ravel().tolist()]}


def give_shapes(sides: tuple[Path, Path], kind: str, seed: int) -> tuple[Path, Path]:
    """Rewrite ground truth and results of images of 320 x 240 px with shapes."""
    gt, pred = sides
    rng = np.random.default_rng(seed)
    truth = json.loads(gt.read_text())
    truth["annotations"] = [with_shapes(record, kind, rng) for record in truth["annotations"]]
    gt.write_text(json.dumps(truth))
    pred.write_text(json.dumps([with_shapes(record, kind, rng) for record in json.loads(pred.read_text())]))
    return gt, pred


def write_masks(
    folder: Path,
    sides: tuple[Mapping[str, Sequence[Any]], Mapping[str, Sequence[Any]]],
    size: tuple[int, int],
    suffix: str,
    encoded: Callable[[Any], Any],
) -> tuple[Path, Path]:
    """Write objects (class, shape) and predictions (class, shape, score) by image as COCO JSON of dogs and cats.

    There are no boxes and areas: those of the masks count.
    """
    width, height = size
    ids = {name: row for row, name in enumerate(sides[0], start=1)}
    gt, pred = (
        [
            {"image_id": ids[name], "category_id": label, "segmentation": encoded(shape)}
            | dict(zip(("score",), score, strict=False))
            for name, shapes in side.items()
            for label, shape, *score in shapes
        ]
        for side in sides
    )
    images = [
        {"id": row, "file_name": f"{name}{suffix}", "width": width, "height": height} for name, row in ids.items()
    ]
    categories = [{"id": row, "name": name} for row, name in enumerate(("dog", "cat"))]
    annotations = [{"id": row, **record} for row, record in enumerate(gt, start=1)]
    folder.mkdir(exist_ok=True)
    truth = {"images": images, "categories": categories, "annotations": annotations}
    return write_json(folder / "gt.json", truth), write_json(folder / "pred.json", pred)


def write_images(folder: Path, names: Iterable[str], size: tuple[int, int]) -> Path:
    """Write empty images of the names of files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        Image.new("L", size).save(folder / name)
    return folder


def measured(result: EvaluationResult) -> dict[str, Any]:
    """Return the count and the value of each metric, None where it is undefined."""
    return {name: (value.n, None if value.reason else value.value) for name, value in result.metrics.items()}
