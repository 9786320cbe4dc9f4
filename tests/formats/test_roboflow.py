"""Responses of Roboflow's inference: centres in pixels, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load


def response(path: Path, *predictions: dict[str, Any], **image: Any) -> Path:
    path.write_text(json.dumps({"predictions": predictions, "image": image}), encoding="utf-8")
    return path


def box(label: str, x: Any, y: Any, width: Any, height: Any, confidence: float) -> dict[str, Any]:
    return {"x": x, "y": y, "width": width, "height": height, "confidence": confidence, "class": label, "class_id": 0}


def test_the_centre_of_a_box_is_in_pixels(tmp_path: Path) -> None:
    response(tmp_path / "a.json", box("dog", 25, 40, 30, 40, 0.5), width=100, height=80)
    response(tmp_path / "b.json", width=None, height=None)
    dataset = load(tmp_path, role="pred")
    assert (dataset.format, dataset.images.keys) == ("roboflow", ("a", "b"))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]  # 25 - 30/2, 40 - 40/2
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.5]


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = response(tmp_path / "a.json", box("", "1", 2, 3, 4, 0.5), {"x": 1}, width=9, height=9)
    with pytest.raises(DataError) as caught:
        load(path, role="pred")
    for told in (
        "predictions[0].class: is '' (a string)",
        "predictions[0].x: is '1' (a string), not a number",
        "predictions[1].confidence: is missing",
    ):
        assert told in str(caught.value)


def test_responses_by_the_names_of_images_and_in_order_are_read(tmp_path: Path) -> None:
    answer = {"predictions": [box("dog", 25, 40, 30, 40, 0.5)], "image": {"width": 100, "height": 80}}
    for name, value, keys in (
        ("named.json", {"a.jpg": answer, "b.jpg": {**answer, "predictions": []}}, ("a.jpg", "b.jpg")),
        ("listed.json", [answer, answer], ("0", "1")),
    ):
        path = tmp_path / name
        path.write_text(json.dumps(value), encoding="utf-8")
        dataset = load(path, role="pred")
        assert (dataset.format, dataset.images.keys) == ("roboflow", keys)
        assert dataset.boxes.xywh.tolist()[0] == [10, 20, 30, 40]
