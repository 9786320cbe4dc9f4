"""Oriented boxes in text labels, COCO JSON and tables: one box in every layout, and angles that are not evident."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, Slice, compare, evaluate, explain, gate, load
from jaccard_eval.similarity.obb import Quads

# 20 x 10 around (50, 40), turned by 30 degrees clockwise.
BOX = (50.0, 40.0, 20.0, 10.0)
QUAD = Quads.rotated(np.array([BOX]), np.deg2rad([30.0])).corners[0]


def text(path: Path, line: str) -> Path:
    path.mkdir(parents=True)
    (path / "a.txt").write_text(f"{line}\n")
    return path


def quads(path: Path, role: str, **options: str) -> np.ndarray:
    shapes: object = load(path, role=role, options=ReadOptions(iou_type="obb", **options)).boxes.shapes  # type: ignore[arg-type]
    assert isinstance(shapes, Quads)
    return shapes.corners[0]


def corners(quad: np.ndarray = QUAD) -> str:
    return " ".join(map(repr, quad.ravel().tolist()))


@pytest.mark.parametrize(
    ("line", "role", "options"),
    [
        (f"0 {corners()}", "gt", {}),
        (f"0 {corners()} 0.9", "pred", {}),
        (f"0 50 40 20 10 {math.pi / 6}", "gt", {}),  # as Ultralytics has them: radians, clockwise
        (f"0 50 40 20 10 {math.pi / 6} 0.9", "pred", {}),
        ("0 50 40 20 10 30", "gt", {}),  # more than a whole turn: degrees
        ("0 50 40 20 10 -30 0.9", "pred", {"angle": "deg-ccw", "columns": "xywhr-conf"}),
    ],
)
def test_text_labels_have_corners_or_an_angle(tmp_path: Path, line: str, role: str, options: dict[str, str]) -> None:
    assert quads(text(tmp_path / "labels", line), role, **options) == pytest.approx(QUAD)


def test_labels_and_predictions_of_corners_are_compared_unasked(tmp_path: Path) -> None:
    gt = text(tmp_path / "labels", f"0 {' '.join(map(repr, (QUAD / 100).ravel().tolist()))}")
    pred = text(tmp_path / "pred", f"0 {' '.join(map(repr, (QUAD / 100).ravel().tolist()))} 0.9")
    result = evaluate(gt, pred)
    assert (result.protocol.iou_type, result["AP"]) == ("obb", pytest.approx(1))
    assert evaluate(gt, pred, iou_type="bbox").protocol.iou_type == "bbox"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0 0.5 0.4 0.2 0.1 0.5", "fractions of width and height, which differ, cannot be turned by an angle"),
        (f"0 {corners()}\n0 50 40 20 10 30\n0 {corners()}", "a.txt:2: expected class x1 y1 .* got 6 columns"),
    ],
)
def test_what_cannot_be_read_as_oriented_boxes_is_an_error(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        load(text(tmp_path / "labels", line), options=ReadOptions(iou_type="obb"))


def coco(path: Path, *boxes: list[float]) -> Path:
    path.write_text(json.dumps([{"image_id": 1, "category_id": 1, "score": 0.5, "bbox": box} for box in boxes]))
    return path


@pytest.mark.parametrize(
    ("box", "options"),
    [
        (QUAD.ravel().tolist(), {}),
        ([*BOX, -30.0], {}),  # as Detectron2 writes them
        ([*BOX, 30.0], {"angle": "deg-cw"}),
        ([*BOX, math.pi / 6], {"angle": "rad-cw"}),
    ],
)
def test_coco_has_eight_numbers_or_five(tmp_path: Path, box: list[float], options: dict[str, str]) -> None:
    assert quads(coco(tmp_path / "pred.json", box), "pred", **options) == pytest.approx(QUAD)


def test_an_angle_that_may_be_either_is_asked_for_and_the_advice_works(tmp_path: Path) -> None:
    path = coco(tmp_path / "pred.json", [*BOX, -math.pi / 6])
    either = r"may be degrees.* or radians.*ReadOptions\(angle=\"deg-ccw\" or angle=\"rad-cw\" or angle=\"rad-ccw\"\)"
    with pytest.raises(DataError, match=either):
        quads(path, "pred")
    assert quads(path, "pred", angle="rad-ccw") == pytest.approx(QUAD)


def test_every_part_of_an_evaluation_takes_oriented_boxes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
    for image in range(24):  # an interval needs 20
        boxes = rng.uniform((0, 0, 20, 10), (400, 400, 90, 40), (4, 4))
        angle = rng.uniform(0, 3, 4)
        truth, found = (Quads.rotated(boxes + noise, angle) for noise in (0, rng.normal(0, 2, (4, 4))))
        for side, shapes, tail in (("gt", truth, ""), ("pred", found, " 0.{}")):
            lines = (f"0 {corners(quad)}{tail.format(row + 1)}\n" for row, quad in enumerate(shapes.corners))
            (tmp_path / side / f"{image}.txt").write_text("".join(lines))
    gt, pred = tmp_path / "gt", tmp_path / "pred"
    slices = [Slice(name="first", patterns=("0", "1"))]
    result = evaluate(
        gt, pred, iou_type="obb", score=0.2, errors=True, confusion=True, worst_images=2, bootstrap=20, slices=slices
    )
    low, high = result.metrics["AP"].interval or (1, 0)
    assert 0 < low <= result["AP"] <= high < 1
    assert result.slices[0].images == 2
    assert compare(gt, pred, pred, iou_type="obb").to_dict()
    assert explain(gt, pred, "AP50", iou_type="obb").to_dict()
    saved = tmp_path / "run.npz"
    result.save(saved)
    assert gate(saved, ["AP50 >= 0.1"]).passed
