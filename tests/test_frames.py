"""Tables for people: what becomes of a result, of boxes, and of columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from jaccard_eval import BoxTable, Dataset, Slice, UsageError, evaluate, to_frame
from jaccard_eval.data.dataset import ImageTable, LabelMap, unknown_sizes

GT = BoxTable.from_arrays(image=[0, 1], label=[0, 1], boxes=[[0, 0, 10, 10], [10, 20, 40, 60]], crowd=[False, True])
PRED = BoxTable.from_arrays(image=[0, 0], label=[0, 0], boxes=[[0, 0, 10, 10], [50, 50, 60, 60]], score=[0.9, 0.4])
BOX_COLUMNS = ["image", "class", "x", "y", "width", "height", "area", "crowd", "difficult", "group_of", "ignore"]


def named(boxes: BoxTable) -> Dataset:
    images = ImageTable(("7", "8"), ("a.png", None), unknown_sizes(2), listed=True)
    return Dataset("gt.csv", "csv", "gt", images, LabelMap((3, 5), ("dog", "cat"), named=True), boxes)


def test_boxes_become_one_row_each_with_rows_for_image_and_class() -> None:
    frame = to_frame(GT)
    assert list(frame.columns) == BOX_COLUMNS
    # Corners 10, 20, 40, 60: width 40 - 10 = 30, height 60 - 20 = 40, area 30 * 40 = 1200.
    assert frame.to_numpy().tolist()[1] == [1, 1, 10.0, 20.0, 30.0, 40.0, 1200.0, True, False, False, False]


def test_predictions_have_a_score_column_before_the_area() -> None:
    frame = to_frame(PRED)
    assert list(frame.columns) == [*BOX_COLUMNS[:6], "score", *BOX_COLUMNS[6:]]
    assert frame["score"].tolist() == [0.9, 0.4]


def test_a_dataset_names_images_and_classes() -> None:
    frame = to_frame(named(GT))
    assert frame[["image", "class"]].to_numpy().tolist() == [["a.png", "dog"], ["8", "cat"]]
    assert list(frame.columns) == BOX_COLUMNS


def test_a_result_becomes_one_row_per_class() -> None:
    frame = to_frame(evaluate(GT, PRED))
    assert list(frame.columns[:4]) == ["class", "gt", "ignored", "pred"]
    # Class 0: one box, found by the first of two detections. Class 1: its only box is a crowd, so AP is undefined.
    assert frame[["gt", "ignored", "pred"]].to_numpy().tolist() == [[1, 0, 2], [0, 1, 0]]
    assert frame["AP"].iloc[0] == pytest.approx(1.0, abs=1e-12)
    assert np.isnan(frame["AP"].iloc[1])
    assert list(frame.index) == [0, 1]


def test_columns_of_two_dimensions_are_split_and_numbered() -> None:
    frame = to_frame({"score": [0.5, 0.25], "iou": np.array([[0.1, 0.2], [0.3, 0.4]])})
    expected = pd.DataFrame({"score": [0.5, 0.25], "iou_0": [0.1, 0.3], "iou_1": [0.2, 0.4]})
    pd.testing.assert_frame_equal(frame, expected)


def test_matches_and_missed_boxes_of_a_result_are_tables() -> None:
    result = evaluate(GT, PRED)
    matches = to_frame(result.matches)
    assert list(matches.columns) == ["image", "class", "score", "source", "gt", "iou", "tp", "fp", "ignored"]
    assert matches["tp"].tolist() == [True, False]
    assert len(to_frame(result.missed)) == 0


def test_matches_and_missed_objects_are_those_of_one_threshold_or_of_all() -> None:
    # The detection covers 80 of the 100 pixels of the object: found up to 0.8, missed from 0.85 on.
    gt = BoxTable.from_arrays(["a"], ["dog"], [[0, 0, 10, 10]])
    result = evaluate(gt, BoxTable.from_arrays(["a"], ["dog"], [[0, 0, 10, 8]], score=[0.9]))
    assert to_frame(result.matches, iou=0.8)["tp"].tolist() == [True]
    assert to_frame(result.matches, iou=0.85)["tp"].tolist() == [False]
    assert (len(to_frame(result.missed)), len(to_frame(result.missed, iou=0.85))) == (0, 1)
    every = to_frame(result.matches, iou="all")
    # Four columns of detections, five of each of the ten thresholds.
    assert len(every.columns) == 54
    assert every[["tp_0.5", "tp_0.8", "tp_0.85"]].iloc[0].tolist() == [True, True, False]
    with pytest.raises(UsageError, match=r"iou must be one of 0.5, 0.55, .*, got '0.52'"):
        to_frame(result.matches, iou=0.52)
    with pytest.raises(UsageError, match="only matches and missed objects have IoU thresholds"):
        to_frame(result, iou=0.5)


def test_a_table_of_classes_has_the_columns_and_the_rows_of_the_file_but_for_all(tmp_path: Path) -> None:
    result = evaluate(GT, PRED, errors=True, slices=[Slice(name="first", patterns=("0",))])
    result.without_part("slices").save(tmp_path / "a.csv")
    of_file = pd.read_csv(tmp_path / "a.csv")
    frame = to_frame(result)
    assert list(frame.columns) == list(of_file.columns)
    assert frame["class"].tolist() == of_file["class"].astype(str).tolist()[1:]
    np.testing.assert_allclose(
        frame["AP"].to_numpy(float), of_file["AP"].to_numpy(float)[1:], rtol=0, atol=0, equal_nan=True
    )


def test_metrics_and_records_are_tables() -> None:
    result = evaluate(GT, PRED, score=0.5)
    metrics = to_frame(result.metrics)
    assert list(metrics.columns) == ["metric", "value", "n", "reason"]
    assert metrics.loc[0, ["metric", "value", "n"]].tolist() == ["AP", pytest.approx(1.0), 1]
    # One true positive and no false one at 0.5: the detection with a score of 0.4 does not count.
    points = to_frame(result.operating_points)
    assert points.loc[0, ["tp", "fp", "fn"]].tolist() == [1, 0, 0]
    assert to_frame(result.slices).empty


def test_errors_are_found_when_they_are_looked_at() -> None:
    plain, asked = evaluate(GT, PRED), evaluate(GT, PRED, errors=True)
    assert to_frame(plain.errors).equals(to_frame(asked.errors))
    assert plain.confusion.counts.tolist() == asked.confusion.counts.tolist()
    assert "errors" not in plain.to_dict()


def test_no_boxes_give_an_empty_table_with_all_columns() -> None:
    empty = BoxTable.from_arrays(image=[], label=[], boxes=[])
    assert to_frame(empty).shape == (0, len(BOX_COLUMNS))
    assert to_frame(named(empty)).shape == (0, len(BOX_COLUMNS))


def test_changing_the_table_does_not_change_the_boxes() -> None:
    frame = to_frame(GT)
    frame.loc[0, "x"] = 99.0
    assert GT.xywh[0, 0] == 0.0


def test_three_dimensions_and_other_objects_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'precision' has shape \(1, 2, 3\)"):
        to_frame({"precision": np.zeros((1, 2, 3))})
    with pytest.raises(UsageError, match="cannot make a table from list"):
        to_frame([1, 2])  # type: ignore[arg-type]


def test_a_file_is_evaluated_with_a_table_in_memory(sample_data: Path) -> None:
    gt = sample_data / "csv" / "gt.csv"
    scored = pd.read_csv(gt).assign(score=0.5)
    assert evaluate(gt, scored)["AP50"] == 1.0
    assert evaluate(pd.read_csv(gt), scored)["AP50"] == 1.0
