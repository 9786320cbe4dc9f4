"""Results of Ultralytics models: whose they are, oriented boxes, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, ReadOptions, load


def found(name: str, *corners: Any, confidence: float = 0.5, number: int = 0) -> dict[str, Any]:
    sides = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
    return {"name": name, "class": number, "confidence": confidence, "box": dict(zip(sides, corners, strict=False))}


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_folder_has_a_list_per_image_and_an_empty_one_where_nothing_was_found(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [found("dog", 10, 20, 40, 60), found("cat", 1, 2, 3, 4, confidence=0.25)])
    write(tmp_path / "b.json", [])
    dataset = load(tmp_path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("ultralytics", ("a", "b"), ("cat", "dog"))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40], [1, 2, 2, 2]]
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.5, 0.25]


def test_an_object_leads_from_images_to_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "all.json", {"b.jpg": [], "a.jpg": [found("dog", 0.25, 0.25, 0.5, 0.75)]})
    dataset = load(path, role="pred", options=ReadOptions(units="norm"))
    assert (dataset.format, dataset.images.keys, dataset.units) == ("ultralytics", ("a.jpg", "b.jpg"), "norm")


def test_oriented_boxes_are_read_as_the_boxes_around_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [found("ship", 20, 10, 40, 30, 30, 40, 10, 20)])
    dataset = load(path, role="pred")
    assert dataset.boxes.xywh.tolist() == [[10, 10, 30, 30]]
    assert [one.code for one in dataset.findings] == ["outline"]


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "all.json", {"a.jpg": [found("", 1, "2", 3), 7], "b.jpg": 3})
    with pytest.raises(DataError) as caught:
        load(path, role="pred", format_name="ultralytics")
    for told in (
        "a.jpg[0].name: is '' (a text)",
        "a.jpg[0].box.y1: is '2' (a text), not a number",
        "a.jpg[0].box.y2: is missing",
        "a.jpg[1]: is 7 (a number); expected an object",
        "b.jpg: is 3 (a number); expected an array",
    ):
        assert told in str(caught.value)
