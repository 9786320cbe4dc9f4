"""What the sinks of supervision write, as JSON and as CSV, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load

SIDES = ("x_min", "y_min", "x_max", "y_max")
DOG = {"class_id": 0, "confidence": 0.5, "tracker_id": "", "class_name": "dog", "file_name": "a.jpg"}


def row(*corners: Any, **more: Any) -> dict[str, Any]:
    return {**dict(zip(SIDES, corners, strict=False)), **more}


def sink(folder: Path, *rows: Any) -> Path:
    path = folder / "detections.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_the_json_and_the_csv_of_the_sinks_give_the_same(tmp_path: Path) -> None:
    table = tmp_path / "detections.csv"
    table.write_text(
        "x_min,y_min,x_max,y_max,class_id,confidence,tracker_id,class_name,file_name\n10,20,40,60,0,0.5,,dog,a.jpg\n"
    )
    for path, name in ((sink(tmp_path, row(10, 20, 40, 60, **DOG)), "supervision"), (table, "csv")):
        dataset = load(path, role="pred")
        assert (dataset.format, dataset.images.keys, dataset.labels.names) == (name, ("a.jpg",), ("dog",))
        assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]
        assert dataset.boxes.score is not None
        assert dataset.boxes.score.tolist() == [0.5]


def test_classes_without_names_are_numbers_and_images_may_be(tmp_path: Path) -> None:
    dataset = load(sink(tmp_path, row(1, 2, 3, 4, class_id=3, confidence="", frame=7)))
    assert (dataset.images.keys, dataset.labels.keys) == ((7,), (3,))


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    nameless = {name: DOG[name] for name in ("class_name", "confidence")}
    path = sink(
        tmp_path, row(1, "2", 3, **DOG), row(1, 2, 3, 4, **nameless), row(1, 2, 3, 4, file_name="a", class_id="")
    )
    with pytest.raises(DataError) as caught:
        load(path)
    for told in (
        "[0].y_min: is '2' (a string), not a number",
        "[0].y_max: is missing",
        "[1].file_name: no field names the image",
        "[2].class_id: is '' (a string)",
    ):
        assert told in str(caught.value)


def test_rows_with_an_image_id_are_not_taken_for_results_of_coco(tmp_path: Path) -> None:
    detection = {name: one for name, one in DOG.items() if name != "file_name"}
    cases = (({"image_id": 7}, 7), ({"image_id": 7, "file_name": "a.jpg"}, "a.jpg"), ({"frame_number": 9}, 9))
    for about, key in cases:
        dataset = load(sink(tmp_path, row(1, 2, 3, 4, **about, **detection)), role="pred")
        assert (dataset.format, dataset.images.keys) == ("supervision", (key,))
