"""The list of detections that darknet writes: fractions, pictures without objects, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load


def found(name: str, *box: Any) -> dict[str, Any]:
    sides = dict(zip(("center_x", "center_y", "width", "height"), box, strict=False))
    return {"class_id": 0, "name": name, "relative_coordinates": sides, "confidence": 0.5}


def result(folder: Path, *frames: dict[str, Any]) -> Path:
    path = folder / "result.json"
    path.write_text(json.dumps(frames), encoding="utf-8")
    return path


def frame(number: int, name: str, *objects: Any) -> dict[str, Any]:
    return {"frame_id": number, "filename": name, "objects": list(objects)}


def test_boxes_are_centre_and_size_in_fractions_and_empty_pictures_are_listed(tmp_path: Path) -> None:
    path = result(tmp_path, frame(1, "data/b.jpg"), frame(2, "data/a.jpg", found("dog", 0.5, 0.5, 0.25, 0.5)))
    dataset = load(path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.images.listed) == (
        "darknet",
        ("data/a.jpg", "data/b.jpg"),
        True,
    )
    assert (dataset.units, dataset.boxes.xywh.tolist()) == ("norm", [[0.375, 0.25, 0.25, 0.5]])


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = result(tmp_path, frame(1, "", found("dog", "x", 0.5, 0.1)), {"frame_id": 2, "filename": "a", "objects": 3})
    with pytest.raises(DataError) as caught:
        load(path, role="pred", format_name="darknet")
    for told in (
        "[0].filename: is '' (a string)",
        "[0].objects[0].relative_coordinates.center_x: is 'x' (a string), not a number",
        "[0].objects[0].relative_coordinates.height: is missing",
        "[1].objects: is 3 (a number); expected an array",
    ):
        assert told in str(caught.value)
