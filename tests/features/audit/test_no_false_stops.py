"""No scene that was read rightly stops or is read otherwise, however good or poor its detector."""

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Scene, Side, _write_images, by_evaluator, draw_scene, write_coco, write_csv, write_side
from other_scenes import KINDS, write

from jaccard_eval import ReadOptions, convert, evaluate, pixels
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.fixes import READING

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


DRAWN = int(os.environ.get("JACCARD_EVAL_SCENES", "40"))
SEED = int(os.environ.get("JACCARD_EVAL_SEED", "901"))
CONVERTED = ("voc", "dota", "openimages", "parquet", "arrow")
FORMATS = ("coco", "csv", "yolo", "frame", *CONVERTED)


def _some(side: Side, kept: np.ndarray) -> Side:
    score = None if side.score is None else side.score[kept]
    return Side(side.image[kept], side.label[kept], side.xywh[kept], score)


def _detected(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return a scene of any size with a detector of any strength: many or few found, well or badly, and much beside."""
    n = int(rng.choice([1, 2, 3, len(scene.sizes)]))
    gt = _some(scene.gt, scene.gt.image < n)
    pred = _some(scene.pred, (scene.pred.image < n) & (rng.random(len(scene.pred.label)) < rng.choice([0.1, 0.6, 1.0])))
    noise = float(rng.choice([0.0, 0.05, 0.2, 0.4])) * np.tile(pred.xywh[:, 2:], 2)
    xywh = pred.xywh + rng.normal(0, 1, pred.xywh.shape) * noise
    xywh[:, 2:] = np.maximum(xywh[:, 2:], 3)
    beside = rng.uniform(0, 0.5, (int(rng.choice([0, 5, 200])), 4))
    image = rng.integers(0, n, len(beside))
    pred = Side(
        np.concatenate((pred.image, image)),
        np.concatenate((pred.label, rng.integers(0, len(scene.names), len(beside)))),
        np.concatenate((xywh, beside * np.tile(scene.sizes[image], 2) + [0, 0, 3, 3])),
        np.round(np.concatenate((pred.score, rng.uniform(0, 0.3, len(beside)))), 5),  # type: ignore[list-item]
    )
    # Detectors cut their boxes at the border of the image.
    size = scene.sizes[pred.image]
    low = np.clip(pred.xywh[:, :2], 0, size - 3)
    pred.xywh = np.round(np.concatenate((low, np.clip(pred.xywh[:, :2] + pred.xywh[:, 2:], low + 2, size) - low), 1), 2)
    names = tuple(name.replace(" ", "_") for name in scene.names)  # as DOTA needs them
    return replace(scene, sizes=scene.sizes[:n], names=names, gt=gt, pred=pred, sized=True)


def _boxes(rng: np.random.Generator, folder: Path) -> tuple[tuple[Finding, ...], str]:
    """Evaluate a scene in two formats."""
    scene = replace(_detected(draw_scene(rng), rng), folder=folder)
    formats = {role: str(rng.choice(FORMATS)) for role in ("gt", "pred")}
    # Results without categories are of ground truth that has their ids; labels come with their names.
    if formats["pred"] == "coco" and formats["gt"] != "coco":
        formats["pred"] = "csv"
    truth = write_coco(scene, scene.gt, "gt")
    scene.gt_format, scene.pred_format = (name if name not in CONVERTED else "csv" for name in formats.values())
    sides = {role: write_side(scene, role) for role in formats}
    for role, name in formats.items():
        if name in CONVERTED:
            source = truth if role == "gt" else write_csv(scene, scene.pred, "pred")
            # Tables of names do not say which is which: the ground truth does.
            target = (
                folder
                / f"{role}-{name}{ {'parquet': '.parquet', 'arrow': '.arrow', 'openimages': '.csv'}.get(name, '') }"
            )
            against = {} if role == "gt" else {"gt": truth}
            convert(source, target, to=name, role=role, lossy=True, **against)
            sides[role] = target
    if formats["pred"] == "yolo":
        (folder / "pred" / "classes.txt").write_text("\n".join(scene.names))
    told = f"{formats}, {len(scene.sizes)} images, {len(scene.gt.label)} objects, {len(scene.pred.label)} detections"
    sized = {}
    for role in (role for role, name in formats.items() if name == "openimages"):  # fractions, and no sizes
        images = _write_images(scene, folder / "images", scene.image_name)
        sized[f"{role}_options"] = ReadOptions(images=images)
    return evaluate(sides["gt"], sides["pred"], **sized).findings, told


def _other(rng: np.random.Generator, folder: Path) -> tuple[tuple[Finding, ...], str]:
    name = str(rng.choice(list(KINDS)))
    kind, sides = KINDS[name], KINDS[name].draw(rng)
    places = write(sides, folder)
    if kind.verb == "Evaluator":
        return by_evaluator(*places, {}).findings, name
    if kind.verb == "pixels":
        return pixels(*places).findings, name
    sigmas = [0.07] * 7 if name == "poses" else None
    return evaluate(*places, iou_type=kind.options["iou_type"], sigmas=sigmas).findings, name


@pytest.mark.parametrize("part", range(4))
def test_no_good_scene_of_any_kind_stops_or_is_advised_to_be_read_otherwise(part: int, tmp_path: Path) -> None:
    """JACCARD_EVAL_SCENES=1000 draws more of them, JACCARD_EVAL_SEED others."""
    for number in range(part, DRAWN, 4):
        rng = np.random.default_rng([SEED, number])
        folder = tmp_path / str(number)
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                findings, told = (_other if number % 5 == 4 else _boxes)(rng, folder)
            except Exception as error:
                raise AssertionError(f"scene {number} of seed {SEED} stops") from error
        advised = [
            str(one)
            for one in findings
            if one.fix is not None and one.fix.kind == READING and one.severity is not Severity.NOTE
        ]
        assert advised == [], f"scene {number} of seed {SEED}: {told}"
