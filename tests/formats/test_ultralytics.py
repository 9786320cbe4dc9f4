"""Results of Ultralytics models: whose they are, oriented boxes, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, load


def found(name: str, *corners: Any, confidence: float = 0.5, number: int = 0) -> dict[str, Any]:
    sides = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
    return {"name": name, "class": number, "confidence": confidence, "box": dict(zip(sides, corners, strict=False))}


def test_a_folder_has_a_list_per_image_and_an_empty_one_where_nothing_was_found(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", [found("dog", 10, 20, 40, 60), found("cat", 1, 2, 3, 4, confidence=0.25)])
    write_json(tmp_path / "b.json", [])
    dataset = load(tmp_path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("ultralytics", ("a", "b"), ("cat", "dog"))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40], [1, 2, 2, 2]]
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.5, 0.25]


def test_an_object_leads_from_images_to_lists(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", {"b.jpg": [], "a.jpg": [found("dog", 0.25, 0.25, 0.5, 0.75)]})
    dataset = load(path, role="pred", options=ReadOptions(units="norm"))
    assert (dataset.format, dataset.images.keys, dataset.units) == ("ultralytics", ("a.jpg", "b.jpg"), "norm")


def test_oriented_boxes_are_read_as_the_boxes_around_them(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", [found("ship", 20, 10, 40, 30, 30, 40, 10, 20)])
    dataset = load(path, role="pred")
    assert dataset.boxes.xywh.tolist() == [[10, 10, 30, 30]]
    assert [one.code for one in dataset.findings] == ["outline"]


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", {"a.jpg": [found("", 1, "2", 3), 7], "b.jpg": 3})
    with pytest.raises(DataError) as caught:
        load(path, role="pred", format_name="ultralytics")
    for told in (
        "a.jpg[0].name: is '' (a string)",
        "a.jpg[0].box.y1: is '2' (a string), not a number",
        "a.jpg[0].box.y2: is missing",
        "a.jpg[1]: is 7 (a number); expected an object",
        "b.jpg: is 3 (a number); expected an array",
    ):
        assert told in str(caught.value)


def platform(folder: Path, *images: dict[str, Any], names: dict[str, str] | None = None) -> Path:
    """A data set of the platform."""
    first = {"type": "dataset", "task": "detect", "name": "pets", "class_names": names or {"0": "cat", "10": "dog"}}
    path = folder / "pets.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (first, *images)))
    return path


def image(file: str, *boxes: list[Any], **more: Any) -> dict[str, Any]:
    about = {"type": "image", "file": file, "url": "https://example.org/x", "width": 100, "height": 50, **more}
    return {**about, **({"annotations": {"boxes": list(boxes)}} if boxes else {})}


def test_a_data_set_has_classes_sizes_and_images_without_objects(tmp_path: Path) -> None:
    dataset = load(platform(tmp_path, image("a.jpg", [10, 0.5, 0.5, 0.25, 0.5]), image("b.jpg")))
    assert (dataset.format, dataset.images.keys, dataset.images.listed) == ("ultralytics", ("a.jpg", "b.jpg"), True)
    assert (dataset.labels.keys, dataset.labels.names) == ((0, 10), ("cat", "dog"))
    # The centre is 50, 25 of 100 x 50; the size 25 x 25.
    assert dataset.boxes.xywh.tolist() == [[37.5, 12.5, 25, 25]]


def test_the_images_of_a_split_are_read(tmp_path: Path) -> None:
    path = platform(tmp_path, image("a.jpg", split="train"), image("b.jpg", split="valid"), image("c.jpg", split="val"))
    assert load(path).images.keys == ("b.jpg", "c.jpg")
    assert load(path, options=ReadOptions(split="train")).images.keys == ("a.jpg",)
    with pytest.raises(DataError, match="there is no split 'test'; there are: train, val"):
        load(path, options=ReadOptions(split="test"))


def test_annotations_of_other_tasks_are_set_aside_and_counted(tmp_path: Path) -> None:
    segments = {**image("a.jpg"), "annotations": {"segments": [[0, 0.1, 0.1, 0.2, 0.1, 0.2, 0.2]]}}
    dataset = load(platform(tmp_path, segments, image("b.jpg", [0, 0.5, 0.5, 0.25, 0.5])))
    assert (len(dataset.boxes), dataset.ignored) == (1, {"shape": 1})
    assert {one.code for one in dataset.findings} == {"shape-unused"}
    # Where nothing else is left, the boxes were lost on the way here: that is no empty data set.
    with pytest.raises(DataError) as caught:
        load(platform(tmp_path, segments))
    assert {one.code for one in caught.value.findings} == {"content-lost", "shape-unused"}
    assert "it only has shapes of another kind (1)" in str(caught.value)


def test_every_problem_of_a_data_set_is_told_with_its_line(tmp_path: Path) -> None:
    boxes = ([0, 0.5, 0.5, 0.1], [0.5, 0.5, 0.5, 0.1, 0.1], ["0", 0.5, 0.5, 0.1, 0.1])
    path = platform(
        tmp_path, image("a.jpg", *boxes), image("", [0, 0.5, 0.5, 0.1, 0.1]), names={"0": "cat", "x": "dog"}
    )
    with pytest.raises(DataError) as caught:
        load(path)
    for told in (
        "pets.ndjson:1: class_names.x: is not a class index",
        "pets.ndjson:2: annotations.boxes[0]: has 4 values; expected 5 numbers",
        "pets.ndjson:2: annotations.boxes[1]: has class 0.5; expected a whole number",
        "pets.ndjson:2: annotations.boxes[2][0]: is '0' (a string), not a number",
        "pets.ndjson:3: file: is '' (a string)",
    ):
        assert told in str(caught.value)


def test_a_box_of_a_class_that_a_data_set_does_not_name_is_set_aside_and_counted(tmp_path: Path) -> None:
    dataset = load(platform(tmp_path, image("a.jpg", [7, 0.5, 0.5, 0.1, 0.1], [0, 0.5, 0.5, 0.1, 0.1])))
    assert (len(dataset.boxes), dataset.ignored) == (1, {"class-unlisted": 1})
