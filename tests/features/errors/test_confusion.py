import numpy as np
import pytest
from pictures import Picture, det, evaluate, gt

from jaccard_eval.data.document import to_document
from jaccard_eval.features.errors import ConfusionMatrix
from jaccard_eval.metrics import detection

TRUTH = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 0 50 10 10")]
FOUND = [
    det("cat 0 0 10 10", 0.9),  # right
    det("cat 50 0 10 10", 0.8),  # a dog
    det("dog 80 80 10 10", 0.7),  # nothing
    det("dog 0 50 10 10", 0.2),  # right, with a low score
]


def matrix(truth: list[Picture], found: list[Picture], **options: object) -> ConfusionMatrix:
    errors = evaluate(truth, found, errors=True, **options).errors
    assert errors is not None
    return errors.confusion


def test_rows_are_ground_truth_columns_predictions_and_background_is_last() -> None:
    one = matrix(TRUTH, FOUND, score=0.5)
    assert one.names == ("cat", "dog")
    assert one.counts.tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0]]


def test_the_score_decides_who_takes_part() -> None:
    assert matrix(TRUTH, FOUND, score=0.2).counts.tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert matrix(TRUTH, FOUND, score=0.85).counts.tolist() == [[1, 0, 0], [0, 0, 2], [0, 0, 0]]


def test_without_a_score_it_is_the_best_f1_of_all_classes() -> None:
    # F1 of 1, 1, 1 and 2 true among 1, 2, 3 and 4 detections and 3 boxes: 2/4, 2/5, 2/6, 4/7.
    assert matrix(TRUTH, FOUND).score == 0.2


def test_rows_add_up_to_ground_truth_and_columns_to_detections() -> None:
    counts = matrix(TRUTH, FOUND, score=0).counts
    assert counts[:2].sum(axis=1).tolist() == [1, 2]
    assert counts[:, :2].sum(axis=0).tolist() == [2, 2]


def test_ignored_ground_truth_and_what_matches_it_is_left_out() -> None:
    truth = [gt("dog 0 0 10 10", crowd=True)]
    assert not matrix(truth, [det("dog 0 0 10 10", 0.9)], names=["cat"], score=0).counts.any()


def test_pooled_classes_are_one() -> None:
    one = matrix(TRUTH, FOUND, score=0, class_agnostic=True)
    assert (one.names, one.counts.tolist()) == (("all classes",), [[3, 0], [1, 0]])


@pytest.mark.parametrize("score", [None, 0.5])
def test_nothing_gives_an_empty_matrix(score: float | None) -> None:
    assert np.array_equal(matrix([], [], names=["dog"], score=score).counts, np.zeros((2, 2)))


@pytest.mark.parametrize("rows", [1, 2, 10**6])
def test_it_is_the_same_alone_and_with_errors_however_images_are_portioned(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = matrix(TRUTH, FOUND, score=0.5)
    monkeypatch.setattr(detection, "PART_ROWS", rows)
    result = evaluate(TRUTH, FOUND, confusion=True, score=0.5)
    assert result.part("errors") is None  # nobody asked
    assert to_document(result.confusion) == to_document(whole)
    assert to_document(matrix(TRUTH, FOUND, score=0.5)) == to_document(whole)
