"""Oriented boxes that were asked for by name and are not in `bbox`."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, evaluate

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
def test_a_side_with_upright_boxes_stops_and_names_the_field_with_oriented_ones(field: str, tmp_path: Path) -> None:
    gt = write(tmp_path, "gt.json", {"bbox": TURNED})
    pred = write(tmp_path, "pred.json", {"bbox": [0, 0, 40, 40], **ELSEWHERE[field]})
    with pytest.raises(DataError, match=rf"quad-upright.*although {field} has oriented boxes"):
        evaluate(gt, pred, iou_type="obb")
    # IoU of the square and the box around it: 800 / 1600 = .5.
    assert evaluate(gt, pred, iou_type="obb", allow=["quad-upright"])["AP50"] == pytest.approx(1.0)


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
