"""Oriented boxes that were asked for by name and are not in `bbox`."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, ReadOptions, evaluate

TURNED = [20.0, 0.0, 40.0, 20.0, 20.0, 40.0, 0.0, 20.0]  # a square on its corner, area 800, in a box of 40 by 40
ELSEWHERE: dict[str, dict[str, Any]] = {
    "rbbox": {"rbbox": [20, 20, 28, 28, 0.785]},
    "segmentation": {"segmentation": [TURNED]},
    "attributes.rotation": {"attributes": {"rotation": 45.0}},
}


def write(folder: Path, name: str, *records: dict[str, Any]) -> Path:
    path = folder / name
    images = [{"id": 1, "width": 100, "height": 100}]
    truth = [{"id": row, "iscrowd": 0, "image_id": 1, "category_id": 1, **r} for row, r in enumerate(records, 1)]
    found = [{"image_id": 1, "category_id": 1, "score": 0.9, **record} for record in records]
    document = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "ship"}]}
    path.write_text(json.dumps(document if name.startswith("gt") else found))
    return path


@pytest.mark.parametrize("field", ELSEWHERE)
def test_oriented_boxes_beside_upright_ones_are_those_that_are_compared(field: str, tmp_path: Path) -> None:
    gt = write(tmp_path, "gt.json", {"bbox": TURNED})
    # CVAT has the box before it is turned: half as large, by the root of 2 in each direction.
    box = [5.858, 5.858, 28.284, 28.284] if field == "attributes.rotation" else [0, 0, 40, 40]
    pred = write(tmp_path, "pred.json", {"bbox": box, **ELSEWHERE[field]})
    how = ReadOptions(angle="rad-cw" if field == "rbbox" else None)  # the others have no angle to be read
    assert evaluate(gt, pred, iou_type="obb", pred_options=how)["AP"] == pytest.approx(1.0)
    with_boxes = evaluate(
        gt, write(tmp_path, "p.json", {"bbox": [0, 0, 40, 40]}), iou_type="obb", allow=["quad-upright"]
    )
    assert with_boxes["AP50"] == pytest.approx(1.0)  # IoU of the square and the box around it: 800 / 1600


def test_angles_beside_upright_boxes_are_asked_for(tmp_path: Path) -> None:
    pred = write(tmp_path, "pred.json", {"bbox": [0, 0, 40, 40], **ELSEWHERE["rbbox"]})
    with pytest.raises(DataError, match=r"angle-ambiguous.*radians, clockwise"):
        evaluate(write(tmp_path, "gt.json", {"bbox": TURNED}), pred, iou_type="obb")


def test_both_sides_with_richer_shapes_are_told_what_was_compared(tmp_path: Path) -> None:
    gt, pred = (write(tmp_path, name, {"bbox": [0, 0, 40, 40], "poly": TURNED}) for name in ("gt.json", "pred.json"))
    noted = [finding.message for finding in evaluate(gt, pred).findings if finding.code == "iou-type"]
    assert noted and "boxes are compared; both sides also have oriented boxes" in noted[0]


def test_upright_boxes_of_both_sides_are_compared_as_boxes(tmp_path: Path) -> None:
    gt, pred = (write(tmp_path, name, {"bbox": [0, 0, 40, 40]}) for name in ("gt.json", "pred.json"))
    with pytest.raises(DataError, match="compare upright ones"):
        evaluate(gt, pred, iou_type="obb")
    assert evaluate(gt, pred)["AP"] == pytest.approx(1.0)


def test_predictions_with_corners_in_poly_are_read_as_ultralytics_writes_them(tmp_path: Path) -> None:
    gt = write(tmp_path, "gt.json", {"bbox": TURNED})
    pred = write(tmp_path, "pred.json", {"rbox": [20.0, 20.0, 28.28, 28.28, 0.785], "poly": TURNED})
    for rules in ({"iou_type": "obb"}, {}):
        assert evaluate(gt, pred, **rules)["AP"] == pytest.approx(1.0)
    short = write(tmp_path, "pred.json", {"poly": TURNED}, {"poly": TURNED[:6]})
    with pytest.raises(DataError, match=r"\[1\]\.poly: has 6 values"):
        evaluate(gt, short, iou_type="obb")
