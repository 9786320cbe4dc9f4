"""Arguments of a wrong type are refused by name, whatever the verb would have made of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaccard_eval
from jaccard_eval import BoxTable, DataError
from jaccard_eval.errors import UsageError

GT = BoxTable.from_arrays([0, 0], [0, 1], [[0, 0, 10, 10], [5, 5, 20, 20]])
PRED = BoxTable.from_arrays([0, 0], [0, 1], [[0, 0, 10, 10], [5, 5, 20, 21]], score=[0.9, 0.8])
MAPS = [np.array([[0, 1]])], [np.array([[1, 1]])]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"background": "0"}, "background must be a whole number or None, got '0'"),
        ({"background": 1.5}, "background must be a whole number or None, got 1.5"),
        ({"ignore": ["255"]}, r"ignore must be a list of whole numbers, got \['255'\]"),
    ],
)
def test_options_of_label_maps(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        jaccard_eval.pixels(*MAPS, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"iou": ["x"]},
        {"iou": 10**400},
        {"max_dets": ["x"]},
        {"sigmas": "x"},
        {"dilation_ratio": "x"},
        {"iou_type": 1.5},
        {"protocol": 1.5},
        {"areas": b"a"},
        {"classes": [[1]]},
        {"bootstrap": "10"},
        {"score_min": 10**400},
    ],
    ids=str,
)
def test_options_of_boxes(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=name):
        jaccard_eval.evaluate(GT, PRED, **options)


def test_numbers_of_numpy_are_numbers() -> None:
    options = {"score_min": np.float32(0.5), "nms": np.float64(0.5), "score": np.float32(0.5)}
    expected = jaccard_eval.evaluate(GT, PRED, score_min=0.5, nms=0.5, score=0.5)
    assert jaccard_eval.evaluate(GT, PRED, **options).to_dict() == expected.to_dict()


@pytest.mark.parametrize("value", [b"1", Path("a"), {1}, datetime(2026, 1, 1, tzinfo=UTC)], ids=str)
@pytest.mark.parametrize("where", ["field", "score", "info"])
def test_what_json_has_not_is_read_from_no_number_and_passed_elsewhere(where: str, value: object) -> None:
    image = {"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}
    gt: dict[str, Any] = {"images": [image], "categories": [{"id": 1, "name": "c"}], "annotations": []}
    gt["annotations"] = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 10, 10], "area": 100, "iscrowd": 0}]
    pred: dict[str, Any] = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 10, 10], "score": 0.5}
    (gt if where == "info" else pred)[where] = value
    if where in ("field", "info"):
        assert jaccard_eval.evaluate(gt, [pred])["AP"] == pytest.approx(1.0)
    else:
        with pytest.raises(DataError):
            jaccard_eval.evaluate(gt, [pred])
