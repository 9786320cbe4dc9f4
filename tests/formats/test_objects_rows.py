"""Rows of one image each whose objects are lists: what each spelling gives, and what is told of what cannot be used."""

from typing import Any

import pytest

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import DataError, Where
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.table import add_object_rows

DOG, CAT = [10.0, 20.0, 30.0, 40.0], [1.0, 2.0, 3.0, 4.5]


def read(*rows: dict[str, Any], role: str = "gt", **options: Any) -> Dataset:
    draft = Draft("rows.jsonl", "rows", ReadOptions(role=role, **options))
    add_object_rows(rows, lambda row: Where("rows.jsonl", line=row + 1), draft)
    return draft.build()


def refuse(*rows: dict[str, Any], **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(*rows, **options)
    return str(caught.value)


def boxes(data: Dataset) -> list[tuple[object, object, list[float]]]:
    """Image key, class key and box of each row."""
    table = data.boxes
    images, labels = data.images.keys, data.labels.keys
    rows = zip(table.image.tolist(), table.label.tolist(), table.xywh.tolist(), strict=True)
    return [(images[image], labels[label], box) for image, label, box in rows]


LISTS = {"bbox": [DOG, CAT], "category": ["dog", "cat"]}
OBJECTS = [{"bbox": DOG, "category": "dog"}, {"bbox": CAT, "category": "cat"}]
PLURALS = {"bboxes": [DOG, CAT], "categories": ["dog", "cat"]}
CORNERS = [  # 10 + 30, 20 + 40; 1 + 3, 2 + 4.5
    {"bbox": {"xmin": 10, "ymin": 20, "xmax": 40, "ymax": 60}, "label": "dog"},
    {"bbox": {"xmin": 1, "ymin": 2, "xmax": 4, "ymax": 6.5}, "label": "cat"},
]


@pytest.mark.parametrize("objects", [LISTS, OBJECTS, PLURALS, CORNERS])
def test_lists_by_field_and_lists_of_objects_are_alike(objects: object) -> None:
    assert boxes(read({"file_name": "a.jpg", "objects": objects})) == [("a.jpg", "dog", DOG), ("a.jpg", "cat", CAT)]


@pytest.mark.parametrize("empty", [{"bbox": [], "category": []}, [], {}, None])
def test_a_row_without_objects_is_an_image_without_boxes(empty: object) -> None:
    data = read({"file_name": "a.jpg", "objects": LISTS}, {"file_name": "b.jpg", "objects": empty})
    assert (data.images.keys, data.images.listed, len(data.boxes)) == (("a.jpg", "b.jpg"), True, 2)
    assert data.findings == ()


def test_ids_are_keys_and_names_stand_beside_them() -> None:
    row = {"image_id": 7, "image": {"bytes": None, "path": "a.jpg"}, "width": 100, "height": 80, "objects": LISTS}
    data = read(row, {**row, "image_id": 9, "image": {"bytes": None, "path": "b.jpg"}})
    assert (data.images.keys, data.images.file_names) == ((7, 9), ("a.jpg", "b.jpg"))
    assert data.images.sizes.tolist() == [[100, 80], [100, 80]]
    assert data.findings == ()


def test_ids_do_where_pictures_have_no_names() -> None:
    data = read({"image_id": 7, "image": {"bytes": None, "path": None}, "objects": LISTS})
    assert (data.images.keys, data.images.file_names) == ((7,), (None,))


def test_numbered_classes_take_the_names_that_are_given() -> None:
    row = {"file_name": "a.jpg", "objects": {"bbox": [DOG], "category": [1]}}
    assert read(row).labels.named is False
    assert read(row, names=("cat", "dog")).labels.names == ("cat", "dog")


def test_an_asked_encoding_is_what_the_numbers_are() -> None:
    row = {"file_name": "a.jpg", "objects": {"bbox": [[10, 20, 40, 60]], "category": ["dog"]}}
    assert boxes(read(row, box="xyxy")) == [("a.jpg", "dog", DOG)]


def test_scores_areas_and_flags_stand_beside_the_boxes() -> None:
    objects = {**LISTS, "score": [0.5, 1], "area": [7, None], "iscrowd": [True, 0]}
    table = read({"file_name": "a.jpg", "objects": objects}, role="pred").boxes
    assert table.score is not None
    assert (table.score.tolist(), table.area.tolist()) == ([0.5, 1.0], [7.0, 13.5])  # 3 * 4.5
    assert table.crowd.tolist() == [True, False]


def test_all_that_cannot_be_used_is_told_with_its_place() -> None:
    told = refuse(
        {"file_name": "a.jpg", "objects": {"bbox": [DOG, [1, 2, 3]], "category": ["dog", 1.5]}},
        {"file_name": None, "objects": {"bbox": [DOG, CAT], "category": [None, True], "iscrowd": [2, "x"]}},
    )
    assert "rows.jsonl:1: objects[1].bbox: [1, 2, 3] (a list) is not four numbers" in told
    assert "rows.jsonl:1: objects[1].category: 1.5 (a number) is neither text nor a whole number" in told
    assert "rows.jsonl:2: file_name: the row has no image" in told


def test_flags_that_are_neither_0_nor_1_are_told() -> None:
    told = refuse({"file_name": "a.jpg", "objects": {**LISTS, "iscrowd": [2, "x"]}})
    assert "rows.jsonl:1: objects[0].iscrowd: 2 (a number) is neither 0 nor 1" in told
    assert "rows.jsonl:1: objects[1].iscrowd: 'x' (text) is neither 0 nor 1" in told


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400])
def test_numbers_that_are_not_finite_are_told(number: float) -> None:
    objects = {"bbox": [[number, 2, 3, 4]], "category": ["dog"]}
    assert "number-not-finite" in refuse({"file_name": "a.jpg", "objects": objects})


@pytest.mark.parametrize("objects", [7, "text", [1], {"bbox": 3}])
def test_objects_that_are_no_lists_are_told(objects: object) -> None:
    assert "rows.jsonl:1: objects: is" in refuse({"file_name": "a.jpg", "objects": objects})


def test_objects_without_a_box_are_told_and_images_without_objects_are_not() -> None:
    told = refuse({"file_name": "a.jpg", "objects": {"bbox": [DOG, None], "category": ["dog", None]}})
    assert "rows.jsonl:1: objects[1].bbox: the object has no box" in told
    data = read({"file_name": "a.jpg", "objects": []}, {"file_name": "b.jpg", "objects": {"bbox": [], "category": []}})
    assert (data.images.keys, len(data.boxes)) == (("a.jpg", "b.jpg"), 0)


def test_lists_of_other_lengths_are_told_with_the_lengths() -> None:
    told = refuse({"file_name": "a.jpg", "objects": {"bbox": [DOG, CAT], "category": ["dog"]}})
    assert "objects[" not in told
    assert "the lists differ in length: 2 of bbox, 1 of category" in told


def test_rows_without_any_image_are_told_which_names_would_do() -> None:
    assert "no column for the image" in refuse({"objects": LISTS})
