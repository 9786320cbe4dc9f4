"""What a program holds goes into `nms` and `pixels` as well: tables, COCO results, dicts per image, and arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaccard_eval
from jaccard_eval import BoxTable, DataError, ReadOptions, UsageError, nms, pixels

# Two images with two classes: rows 0 and 1 overlap (9/11) in class and image, row 2 is of another class, row 3 of
# another image.
ROWS: list[dict[str, Any]] = [
    {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.5},
    {"image_id": 1, "category_id": 1, "bbox": [1, 0, 10, 10], "score": 0.9},
    {"image_id": 1, "category_id": 2, "bbox": [0, 0, 10, 10], "score": 0.7},
    {"image_id": 2, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.8},
]
CORNERS = [[x, y, x + width, y + height] for x, y, width, height in (row["bbox"] for row in ROWS)]


class Tensor:
    """What has `__dlpack__` alone."""

    def __init__(self, values: Any) -> None:
        self.array = np.asarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def forms(folder: Path) -> dict[str, Any]:
    frame = pd.DataFrame(
        {
            "image": [row["image_id"] for row in ROWS],
            "class": [row["category_id"] for row in ROWS],
            **{name: [corners[at] for corners in CORNERS] for at, name in enumerate(("xmin", "ymin", "xmax", "ymax"))},
            "score": [row["score"] for row in ROWS],
        }
    )
    frame.to_csv(folder / "pred.csv", index=False)
    by_image = [
        {
            "boxes": Tensor([CORNERS[at] for at in rows]),
            "labels": Tensor([ROWS[at]["category_id"] for at in rows]),
            "scores": Tensor([ROWS[at]["score"] for at in rows]),
        }
        for rows in ((0, 1, 2), (3,))
    ]
    table = BoxTable.from_arrays(
        [row["image_id"] for row in ROWS],
        [row["category_id"] for row in ROWS],
        CORNERS,
        score=[row["score"] for row in ROWS],
    )
    return {"frame": frame, "file": folder / "pred.csv", "results": ROWS, "images": by_image, "table": table}


@pytest.mark.parametrize("form", ["frame", "file", "results", "images", "table"])
def test_predictions_are_suppressed_by_image_and_class(form: str, tmp_path: Path) -> None:
    pred = forms(tmp_path)[form]
    # By score: .9, .8, .7; row 0 goes, for it overlaps row 1 by 90 / 110.
    assert nms(pred).tolist() == [1, 3, 2]
    assert nms(pred, iou=0.9).tolist() == [1, 3, 2, 0]
    assert nms(pred, class_agnostic=True).tolist() == [1, 3]


def test_the_rows_that_stay_index_what_was_given(tmp_path: Path) -> None:
    frame = forms(tmp_path)["frame"]
    assert frame.iloc[nms(frame)]["score"].tolist() == [0.9, 0.8, 0.7]
    assert [ROWS[row]["score"] for row in nms(ROWS)] == [0.9, 0.8, 0.7]


def test_predictions_and_arrays_give_the_same_rows(tmp_path: Path) -> None:
    columns = ([row[name] for row in ROWS] for name in ("score", "category_id", "image_id"))
    scores, labels, images = columns
    assert nms(CORNERS, scores, labels=labels, images=images).tolist() == nms(ROWS).tolist()


def test_what_cannot_be_suppressed_is_an_error_that_names_keywords(tmp_path: Path) -> None:
    frame = forms(tmp_path)["frame"].drop(columns="score")
    with pytest.raises(DataError, match=r"options=ReadOptions\(assume_score=1\.0\)"):
        nms(frame)
    assert len(nms(frame, options=ReadOptions(assume_score=1.0))) == 3
    with pytest.raises(UsageError, match="pass scores as well"):
        nms(frame, labels=[1, 2, 3, 4])  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="are for predictions"):
        nms(CORNERS, [0.1, 0.2, 0.3, 0.4], class_agnostic=True)  # type: ignore[call-overload]
    assert nms([]).tolist() == []


MAPS = {"a": np.array([[0, 1], [1, 2]], dtype=np.uint8), "b": np.array([[2, 2, 0]], dtype=np.int64)}
FOUND = {"a": np.array([[0, 1], [2, 2]], dtype=np.uint8), "b": np.array([[2, 0, 0]], dtype=np.int64)}
CLASSES = ["road", "car", "sky"]


def saved(maps: dict[str, Any], folder: Path) -> Path:
    folder.mkdir()
    for name, values in maps.items():
        np.save(folder / f"{name}.npy", values)
    return folder


def test_arrays_and_the_files_that_hold_them_give_the_same_numbers(tmp_path: Path) -> None:
    of_files = pixels(saved(MAPS, tmp_path / "gt"), saved(FOUND, tmp_path / "pred"), classes=CLASSES)
    of_arrays = pixels(MAPS, FOUND, classes=CLASSES)
    # Of class sky, 2 pixels are right, 1 is missed and 1 is false: IoU 2 / 4.
    assert of_arrays["IoU[class=sky]"] == 0.5
    expected, found = of_files.to_dict(), of_arrays.to_dict()
    for name in ("metrics", "per_class", "confusion", "support"):
        assert found[name] == expected[name]
    for form in (
        [*MAPS.values()],
        tuple(map(Tensor, MAPS.values())),
        [values.tolist() for values in MAPS.values()],
    ):
        assert pixels(form, [*FOUND.values()], classes=CLASSES).to_dict()["metrics"] == expected["metrics"]


def test_one_array_is_one_label_map() -> None:
    result = pixels(MAPS["a"], FOUND["a"], classes=CLASSES)
    # Car: one pixel right, one missed; sky: one right, one false; road: right.
    assert [result[f"IoU[class={name}]"] for name in CLASSES] == [1.0, 0.5, 0.5]


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_pixels_of_arrays_are_counted_as_by_hand(gt: list[int], pred: list[int]) -> None:
    result = pixels([np.array(gt).reshape(2, 3)], [np.array(pred).reshape(2, 3)], classes=["a", "b", "c", "d"])
    pairs = list(zip(gt, pred, strict=True))
    for at, name in enumerate("abcd"):
        both = pairs.count((at, at))
        either = gt.count(at) + pred.count(at) - both
        if gt.count(at):
            assert result[f"IoU[class={name}]"] == pytest.approx(both / either)


@pytest.mark.parametrize(
    ("gt", "pred", "message"),
    [
        ([np.zeros((2, 2))], [np.zeros((2, 2), int)], r"<arrays>\['0'\]: holds float64 values.*Pass two-dimensional"),
        ([np.zeros((2, 2, 3), int)], [np.zeros((2, 2), int)], r"has the shape \(2, 2, 3\).*Pass two-dimensional"),
        ([np.zeros((2, 2), int)], [np.zeros((2, 3), int)], r"map-size.*is 3 x 2 pixels, but its ground truth"),
        ([np.zeros((2, 2), int)] * 2, [np.zeros((2, 2), int)], r"map-unpaired.*<arrays>\['1'\]"),
        ({"a": np.zeros((2, 2), int)}, {"b": np.zeros((2, 2), int)}, r"map-unpaired"),
        ([np.full((2, 2), 7)], [np.zeros((2, 2), int)], r"value 7 is not a class.*skip them with ignore"),
        ([], [], "map-none"),
        ([["x", "y"]], [np.zeros((2, 2), int)], "map-type"),
        ([[[0, 1], [1]]], [np.zeros((2, 2), int)], "map-type"),
    ],
    ids=["floats", "colours", "size", "one more", "names", "value", "none", "texts", "ragged"],
)
def test_arrays_that_are_no_label_maps_are_errors(gt: Any, pred: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pixels(gt, pred, classes=CLASSES)


def test_what_is_neither_a_path_nor_arrays_is_named() -> None:
    with pytest.raises(UsageError, match=r"pixels\(\) cannot read an int\. Pass a path, or a list or dict"):
        pixels(3, 4)
    with pytest.raises(UsageError, match="list_file names files"):
        pixels(MAPS, FOUND, list_file="names.txt")


def test_the_result_of_arrays_is_saved_and_shown(tmp_path: Path) -> None:
    result = pixels(MAPS, FOUND, classes=CLASSES)
    result.save(tmp_path / "pixels.json")
    assert "<arrays>" in repr(result.to_dict()["inputs"])
    assert jaccard_eval.gate(result, ["mIoU>=0.1"]).passed
