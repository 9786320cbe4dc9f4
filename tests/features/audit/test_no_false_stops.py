"""No scene that was read rightly stops or is read otherwise, however good or poor its detector."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import evaluate

SIZE = np.array([640.0, 480.0])
SCENES = ("anywhere", "centred", "at the origin", "full frames", "on the diagonal", "tiny", "a video", "thirds")
DETECTORS = ("exact", "noisy", "few", "many more", "elsewhere", "full frames", "in the centre", "one class")


def _objects(scene: str, image: int, rng: np.random.Generator) -> np.ndarray:
    """Return boxes x y w h, shape (n, 4)."""
    n = int(rng.integers(1, 9))
    if scene == "a video":  # everything moves a little from image to image
        start = np.random.default_rng(7).uniform(0, 0.5, (n, 2)) * SIZE
        return np.concatenate((start + 3.0 * image, np.full((n, 2), 90.0)), axis=1)
    if scene == "thirds":  # encodings agree on some boxes: x = w / 2 and the like
        place = rng.integers(0, 3, (n, 2)) * SIZE / 3
        return np.concatenate((place, np.tile(SIZE / 3, (n, 1))), axis=1)
    size = rng.uniform(4, 12, (n, 2)) if scene == "tiny" else rng.uniform(20, 300, (n, 2))
    size = np.tile(SIZE, (n, 1)) if scene == "full frames" else size
    place = rng.uniform(0, 1, (n, 2)) * (SIZE - size)
    if scene == "centred":
        place = (SIZE - size) / 2
    if scene == "at the origin":
        place = np.zeros((n, 2))
    if scene == "on the diagonal":
        place, size = np.repeat(place.min(axis=1, keepdims=True), 2, 1), np.repeat(size[:, :1], 2, 1)
    return np.concatenate((place, size), axis=1)


def _detections(detector: str, boxes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(boxes)
    if detector == "noisy":
        return boxes + rng.normal(0, 0.15, boxes.shape) * np.tile(boxes[:, 2:], 2)
    if detector == "few":
        return boxes[rng.random(n) < 0.2]
    if detector == "many more":
        size = rng.uniform(20, 200, (40, 2))
        return np.concatenate((boxes, np.concatenate((rng.uniform(0, 400, (40, 2)), size), axis=1)))
    if detector == "elsewhere":
        return np.concatenate((rng.uniform(0, 400, (n, 2)), rng.uniform(10, 200, (n, 2))), axis=1)
    if detector == "full frames":
        return np.tile([0.0, 0.0, *SIZE], (n, 1))
    if detector == "in the centre":
        return np.tile([*SIZE / 4, *SIZE / 2], (n, 1))
    return boxes


def _write(folder: Path, scene: str, detector: str, rng: np.random.Generator) -> tuple[Path, Path]:
    n_images, n_classes = int(rng.integers(8, 40)), int(rng.integers(1, 6))
    first_image, first_class = int(rng.integers(0, 2)), int(rng.integers(0, 2))
    named = rng.random() < 0.5
    images, annotations, pred = [], [], []
    for image in range(first_image, first_image + n_images):
        images.append({"id": image, "width": 640, "height": 480, "file_name": f"{image:06d}.jpg"})
        boxes = np.maximum(_objects(scene, image, rng), 0)
        classes = first_class + rng.integers(0, n_classes, len(boxes))
        annotations += [
            {"image_id": image, "category_id": int(label), "bbox": box.tolist(), "area": box[2] * box[3], "iscrowd": 0}
            for label, box in zip(classes, boxes, strict=True)
        ]
        found = _detections(detector, boxes, rng)
        labels = np.resize(classes, len(found)) if detector != "one class" else np.full(len(found), first_class)
        pred += [
            _detection(image, int(label), box, rng, named) for label, box in zip(labels, np.abs(found), strict=True)
        ]
    categories = [{"id": key, "name": f"class {key}"} for key in range(first_class, first_class + n_classes)]
    gt = {
        "images": images,
        "categories": categories,
        "annotations": [record | {"id": row} for row, record in enumerate(annotations, 1)],
    }
    paths = folder / "gt.json", folder / "pred.json"
    for path, content in zip(paths, (gt, pred), strict=True):
        path.write_text(json.dumps(content))
    return paths


def _detection(image: int, label: int, box: np.ndarray, rng: np.random.Generator, named: bool) -> dict[str, Any]:
    record = {"image_id": image, "category_id": label, "bbox": box.tolist(), "score": float(rng.random())}
    return record | ({"file_name": f"{image:06d}.jpg"} if named else {})


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("scene", SCENES)
def test_no_scene_that_is_read_rightly_stops(scene: str, detector: str, tmp_path: Path) -> None:
    for seed in range(4):
        rng = np.random.default_rng([SCENES.index(scene), DETECTORS.index(detector), seed])
        gt, pred = _write(tmp_path, scene, detector, rng)
        result = evaluate(gt, pred)  # raises where it stops
        assert (result.correspondence.class_strategy, result.correspondence.image_strategy) == ("id", "id")
