"""Hugging Face: outputs of the pipeline and rows with objects: whose they are, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, load
from jaccard_eval.formats import detect_format


def found(label: str, *corners: Any, score: float = 0.5) -> dict[str, Any]:
    return {"score": score, "label": label, "box": dict(zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=False))}


def test_a_folder_has_a_list_per_image_and_an_empty_one_where_nothing_was_found(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", [found("dog", 10, 20, 40, 60), found("cat", 1, 2, 3, 4, score=0.25)])
    write_json(tmp_path / "b.json", [])
    dataset = load(tmp_path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("hf", ("a", "b"), ("cat", "dog"))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40], [1, 2, 2, 2]]
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.5, 0.25]


def test_an_object_leads_from_images_to_lists(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", {"b.jpg": [], "a.jpg": [found("dog", 10, 20, 40, 60)]})
    dataset = load(path, role="pred")
    assert (dataset.format, dataset.images.keys) == ("hf", ("a.jpg", "b.jpg"))


def test_a_list_of_lists_is_of_images_by_their_positions_and_of_no_other_format(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", [[found("dog", 10, 20, 40, 60)], [], [found("cat", 1, 2, 3, 4)]])
    dataset = load(path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.boxes.image.tolist()) == ("hf", ("0", "1", "2"), [0, 2])
    assert [one.code for one in dataset.findings] == ["image-position"]


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", {"a.jpg": [found("", 1, "2", 3), 7], "b.jpg": 3})
    with pytest.raises(DataError) as caught:
        load(path, role="pred", format_name="hf")
    for told in (
        "a.jpg[0].label: is '' (a string)",
        "a.jpg[0].box.ymin: is '2' (a string), not a number",
        "a.jpg[0].box.ymax: is missing",
        "a.jpg[1]: is 7 (a number); expected an object",
        "b.jpg: is 3 (a number); expected an array",
    ):
        assert told in str(caught.value)


def row(name: str, *boxes: list[float], **fields: Any) -> dict[str, Any]:
    """A row of a data set: an image with dogs."""
    return {"file_name": name, "objects": {"bbox": list(boxes), "categories": [0] * len(boxes), **fields}}


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return path


def test_rows_hold_the_objects_of_an_image_in_lists_of_left_top_width_height(tmp_path: Path) -> None:
    rows = (row("a.png", [302.0, 109.0, 73.0, 52.0], [810.0, 100.0, 57.0, 28.0]), row("b.png"))
    folder = lines(tmp_path / "folder/metadata.jsonl", *rows).parent
    for path in (folder, folder / "metadata.jsonl", write_json(tmp_path / "rows.json", list(rows))):
        dataset = load(path, options=ReadOptions(names=("dog",)))
        assert (dataset.format, dataset.images.keys, dataset.images.listed) == ("hf", ("a.png", "b.png"), True)
        assert dataset.boxes.xywh.tolist() == [[302, 109, 73, 52], [810, 100, 57, 28]]
        assert dataset.labels.names == ("dog",)
        assert "box from bbox (xywh)" in dataset.details


def test_what_the_four_numbers_are_can_be_said(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", row("a.png", [10, 20, 40, 60]))
    assert load(path, options=ReadOptions(box="xyxy")).boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_rows_of_the_tutorial_have_ids_sizes_areas_and_flags(tmp_path: Path) -> None:
    objects = {"id": [114], "area": [3796], "bbox": [[302, 109, 73, 52]], "category": ["Coverall"], "iscrowd": [1]}
    path = write_json(tmp_path / "cppe.json", [{"image_id": 15, "width": 943, "height": 663, "objects": objects}])
    dataset = load(path)
    assert (dataset.images.keys, dataset.images.sizes.tolist()) == ((15,), [[943, 663]])
    assert (dataset.labels.names, dataset.boxes.area.tolist()) == (("Coverall",), [3796])
    assert dataset.boxes.crowd.tolist() == [True]
    path.write_text(json.dumps({"image_id": 15, "objects": [{"bbox": [302, 109, 73, 52], "category": "Coverall"}]}))
    assert load(path).boxes.xywh.tolist() == [[302, 109, 73, 52]]


def test_an_image_folder_has_rows_for_each_split(tmp_path: Path) -> None:
    lines(tmp_path / "train/metadata.jsonl", row("a.png", [1, 2, 3, 4]))
    lines(tmp_path / "validation/metadata.jsonl", row("b.png", [1, 2, 3, 4]))
    assert detect_format(tmp_path) == "hf"
    assert load(tmp_path).images.keys == ("b.png",)
    assert load(tmp_path, options=ReadOptions(split="train")).images.keys == ("a.png",)
    with pytest.raises(DataError, match="there is no split 'test'; there are: train, val"):
        load(tmp_path, options=ReadOptions(split="test"))


def test_every_problem_of_rows_is_told_with_its_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", row("a.png", [1, 2, 3, 4]), row("b.png", [1, 2, 3, 4], area=[1, 2]))
    path.write_text(path.read_text() + "[1]\n{\n")
    with pytest.raises(DataError) as caught:
        load(path)
    for told in ("a.jsonl:3: is [1] (an array); expected an object", "a.jsonl:4: not valid JSON"):
        assert told in str(caught.value)
    path.write_text("\n".join(path.read_text().splitlines()[:2]))
    with pytest.raises(DataError, match=r"a\.jsonl:2: objects: the lists differ in length: 1 of bbox"):
        load(path)


def test_supervisely_and_coco_are_not_taken_for_rows(tmp_path: Path) -> None:
    rectangle = {"classTitle": "dog", "geometryType": "rectangle", "points": {"exterior": [[1, 2], [3, 4]]}}
    path = write_json(tmp_path / "a.json", {"size": {"height": 9, "width": 9}, "objects": [rectangle]})
    assert detect_format(path) == "supervisely"
    result = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}
    assert detect_format(write_json(tmp_path / "b.json", [result])) == "coco"
