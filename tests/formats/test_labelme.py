"""LabelMe files: rectangles in any direction, shapes that are no boxes, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load
from jaccard_eval.formats import detect_format


def labelme(path: Path, *shapes: dict[str, Any], **more: Any) -> Path:
    document = {"version": "5.4.1", "shapes": shapes, "imagePath": "..\\pictures\\a.jpg", "imageData": None, **more}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def rectangle(label: str, *points: list[Any]) -> dict[str, Any]:
    return {"label": label, "points": points, "shape_type": "rectangle"}


def error(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load(path, format_name="labelme")
    return str(caught.value)


def test_rectangles_are_read_whatever_the_direction_they_were_drawn_in(tmp_path: Path) -> None:
    labelme(tmp_path / "a.json", rectangle("dog", [40, 20], [10, 60]), imageWidth=100, imageHeight=80)
    dataset = load(tmp_path)
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("labelme", ("a",), ("dog",))
    assert dataset.images.file_names == ("a.jpg",)
    assert dataset.images.sizes.tolist() == [[100, 80]]
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_a_file_and_a_folder_of_folders_are_inputs(tmp_path: Path) -> None:
    file = labelme(tmp_path / "day/a.json", rectangle("dog", [1, 2], [3, 4]))
    assert detect_format(file) == "labelme"
    assert load(tmp_path).images.keys == ("day/a",)


def test_polygons_are_the_boxes_around_them_and_circles_are_counted(tmp_path: Path) -> None:
    polygon = {"label": "dog", "points": [[1, 2], [3, 4], [5, 0]]}  # of a version that had no other shapes
    circle = {"label": "dog", "points": [[1, 2], [3, 4]], "shape_type": "circle"}
    dataset = load(labelme(tmp_path / "a.json", polygon, circle, rectangle("dog", [1, 2], [3, 4])))
    assert sorted(dataset.boxes.xywh.tolist()) == [[1, 0, 4, 4], [1, 2, 2, 2]]
    assert dataset.ignored == {"shape": 1}
    assert sorted(finding.code for finding in dataset.findings) == ["outline", "shape-unused"]


def test_every_problem_of_a_folder_is_told_with_its_place(tmp_path: Path) -> None:
    labelme(tmp_path / "a.json", rectangle("dog", [1, 2]), rectangle("", [1, 2], [3, "4"]))
    labelme(tmp_path / "b.json", rectangle("dog", [1, 2], [3, float("nan")]), imageWidth="wide", imageHeight=1)
    (tmp_path / "c.json").write_text('{"version": "5",\n "shapes": [')
    (tmp_path / "d.json").write_text('{"version": "5", "shapes": [3], "shapes": [3]}')
    message = error(tmp_path)
    for told in (
        "a.json: shapes[0].points: has 1 points",
        "a.json: shapes[1].label: is '' (a string)",
        "a.json: shapes[1].points[1][1]: is '4' (a string), not a number",
        "b.json: shapes[0].points[1][1]: is NaN",
        "b.json: imageWidth: is 'wide' (a string), not a number",
        "c.json:2: not valid JSON, column 13",
        "d.json: shapes: duplicate key 'shapes'",
        "d.json: shapes[0]: is 3 (a number); expected an object",
    ):
        assert told in message


def test_a_folder_without_json_is_an_error(tmp_path: Path) -> None:
    assert "no .json files" in error(tmp_path)


def test_a_rectangle_may_have_all_four_corners(tmp_path: Path) -> None:
    dataset = load(labelme(tmp_path / "a.json", rectangle("dog", [10, 20], [40, 20], [40, 60], [10, 60])))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_a_copy_of_a_document_is_an_error_and_one_made_from_another_is_not(tmp_path: Path) -> None:
    for name in ("a", "a copy", "b"):
        labelme(tmp_path / f"{name}.json", rectangle("dog", [1, 2], [3, 4]), imagePath="a.jpg")
    (tmp_path / "b.png").write_bytes(b"")  # b has an image, and what it says of another is left from a template
    message = error(tmp_path)
    assert message.endswith(
        "a copy.json: imagePath: the image of 'a.json': a copy? Delete the copy, or name its own image."
    )
    assert message.count("error[") == 1
    (tmp_path / "a copy.json").unlink()
    assert load(tmp_path).images.keys == ("a", "b")


def test_documents_of_several_folders_may_name_images_alike(tmp_path: Path) -> None:
    for day in ("day1", "day2"):
        labelme(tmp_path / f"{day}/a.json", rectangle("dog", [1, 2], [3, 4]), imagePath="a.jpg")
    assert load(tmp_path).images.keys == ("day1/a", "day2/a")
