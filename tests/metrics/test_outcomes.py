"""Rows about detections and missed boxes, drawn by hand."""

import numpy as np
from pictures import det, evaluate, gt

TRUTH = [
    gt("dog 0 0 10 10", "b"),
    gt("cat 0 0 10 10", "a"),
    gt("dog 100 0 90 90", "b", crowd=True),
    gt("dog 50 0 10 10", "b"),
]
DETECTIONS = [
    det("dog 300 0 10 10", 0.3, "a"),  # stray
    det("dog 0 0 10 6", 0.5, "b"),  # IoU 60 / 100
    det("cat 0 0 10 10", 0.4, "a"),  # IoU 1
    det("dog 120 0 10 10", 0.9, "b"),  # in the crowd: IoA 1
]


def columns(kind: str) -> dict[str, list]:
    result = evaluate(TRUTH, DETECTIONS, iou=(0.5, 0.75))
    return {name: np.asarray(column).tolist() for name, column in getattr(result, kind).items()}


def test_matches_list_detections_in_the_order_of_the_predictions() -> None:
    rows = columns("matches")
    assert rows["source"] == [0, 1, 2, 3]
    assert list(zip(rows["image"], rows["class"], rows["score"], strict=True)) == [
        ("a", "dog", 0.3),
        ("b", "dog", 0.5),
        ("a", "cat", 0.4),
        ("b", "dog", 0.9),
    ]


def test_matches_say_at_each_threshold_which_box_was_matched_and_how_well() -> None:
    rows = columns("matches")
    assert rows["gt"] == [[-1, -1], [0, -1], [1, 1], [2, 2]]
    np.testing.assert_array_equal(rows["iou"], [[np.nan, np.nan], [0.6, np.nan], [1.0, 1.0], [1.0, 1.0]])


def test_matches_say_at_each_threshold_what_a_detection_counts_as() -> None:
    rows = columns("matches")
    assert rows["tp"] == [[False, False], [True, False], [True, True], [False, False]]
    assert rows["fp"] == [[True, True], [False, True], [False, False], [False, False]]
    assert rows["ignored"] == [[False, False], [False, False], [False, False], [True, True]]


def test_missed_lists_boxes_that_count_and_that_some_threshold_leaves_unmatched() -> None:
    rows = columns("missed")
    assert rows["source"] == [0, 3]
    assert (rows["image"], rows["class"]) == (["b", "b"], ["dog", "dog"])
    assert rows["missed"] == [[False, True], [True, True]]


def test_rows_count_in_the_predictions_and_ground_truth_as_given_when_classes_are_left_out() -> None:
    result = evaluate(TRUTH, DETECTIONS, iou=(0.5,), classes=["cat"])
    assert result.matches["source"].tolist() == [2]
    assert result.matches["gt"].tolist() == [[1]]
    missed = evaluate(TRUTH, DETECTIONS, iou=(0.5,), classes=["dog"]).missed
    assert missed["source"].tolist() == [3]


def test_rows_count_in_the_predictions_as_given_when_low_scores_are_left_out() -> None:
    assert evaluate(TRUTH, DETECTIONS, score_min=0.45).matches["source"].tolist() == [1, 3]


def test_every_detection_kept_has_one_outcome() -> None:
    result = evaluate(TRUTH, DETECTIONS)
    outcomes = np.stack([result.matches[kind] for kind in ("tp", "fp", "ignored")])
    assert (outcomes.sum(axis=0) == 1).all()


def test_without_boxes_the_columns_are_empty() -> None:
    result = evaluate([], [], images=["a"], names=["dog"])
    assert {len(column) for column in (*result.matches.values(), *result.missed.values())} == {0}
    assert result.matches["tp"].shape == (0, 10)
