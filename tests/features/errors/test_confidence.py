import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.features.errors.compute import best_f1_score, confidence_curve, mean_lrp, optimal_lrp

SCORE = np.array([0.9, 0.7, 0.7, 0.3])
HIT = np.array([True, False, True, True])


def test_curves_count_the_detections_with_at_least_a_score() -> None:
    curve = confidence_curve(SCORE, HIT, 4, np.array([0.0, 0.3, 0.5, 0.7, 0.8, 1.0]))
    np.testing.assert_allclose(curve.precision, [3 / 4, 3 / 4, 2 / 3, 2 / 3, 1, np.nan])
    np.testing.assert_allclose(curve.recall, [3 / 4, 3 / 4, 2 / 4, 2 / 4, 1 / 4, 0])
    np.testing.assert_allclose(curve.f1, [6 / 8, 6 / 8, 4 / 7, 4 / 7, 2 / 5, 0])


def test_the_best_score_is_one_that_occurs() -> None:
    assert best_f1_score(SCORE, HIT, 4) == (0.3, 6 / 8)


def test_of_equal_f1_the_highest_score_is_best() -> None:
    # F1 of 1 in 1 and 2 in 4 detections, of 2 boxes: 2/3 both.
    assert best_f1_score(np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, False, True]), 2) == (0.9, 2 / 3)


def test_without_a_true_positive_no_score_is_best() -> None:
    # The best of F1 values that are all 0 is 0, as at any operating point; no score is better than another.
    for score, hit in ((SCORE, ~HIT & HIT), (np.array([]), np.array([], dtype=bool))):
        found, f1 = best_f1_score(score, hit, 4)
        assert math.isnan(found)
        assert f1 == 0.0
    assert np.isnan(best_f1_score(SCORE, ~HIT & HIT, 0)).all()


def test_olrp_is_the_smallest_error_with_its_parts() -> None:
    # Two boxes, IoU .75 at score .9, a false positive at .7, IoU .5 at .6; tau = .5, so that losses count twice.
    # s = .9: (.5 + 0 + 1) / 2 = .75; s = .7: (.5 + 1 + 1) / 3 = .83; s = .6: (.5 + 1 + 1 + 0) / 3 = .83
    found = optimal_lrp(np.array([0.9, 0.7, 0.6]), np.array([True, False, True]), np.array([0.75, np.nan, 0.5]), 2, 0.5)
    assert (found.olrp, found.score) == (0.75, 0.9)
    assert (found.localisation, found.false_positive, found.false_negative) == (0.25, 0, 0.5)


def test_a_perfect_class_has_no_error() -> None:
    found = optimal_lrp(np.array([0.5]), np.array([True]), np.array([1.0]), 1, 0.5)
    assert (found.olrp, found.localisation, found.false_positive, found.false_negative) == (0, 0, 0, 0)


def test_without_detections_everything_is_missed() -> None:
    found = optimal_lrp(np.array([]), np.array([], dtype=bool), np.array([]), 3, 0.5)
    assert (found.olrp, found.false_negative) == (1, 1)
    assert np.isnan([found.localisation, found.false_positive, found.score]).all()


def test_without_ground_truth_it_is_undefined_and_left_out_of_the_mean() -> None:
    nothing = optimal_lrp(np.array([0.5]), np.array([False]), np.array([np.nan]), 0, 0.5)
    perfect = optimal_lrp(np.array([0.5]), np.array([True]), np.array([1.0]), 1, 0.5)
    assert np.isnan(nothing.olrp)
    assert mean_lrp([nothing, perfect]).olrp == 0
    assert np.isnan(mean_lrp([nothing]).olrp)


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.4, 0.6]), st.floats(0.5, 1), st.booleans()), max_size=12))
def test_olrp_is_that_of_a_plain_loop(rows: list[tuple[float, float, bool]]) -> None:
    rows.sort(key=lambda row: -row[0])
    positives = sum(row[2] for row in rows) + 1
    errors = [1.0]
    for at in {row[0] for row in rows}:
        kept = [row for row in rows if row[0] >= at]
        losses = [(1 - iou) / 0.5 for _, iou, hit in kept if hit]
        missed, wrong = positives - len(losses), len(kept) - len(losses)
        errors.append((sum(losses) + missed + wrong) / (len(kept) + missed))
    columns = [np.array([row[i] for row in rows], dtype=dtype) for i, dtype in enumerate((float, float, bool))]
    assert optimal_lrp(columns[0], columns[2], columns[1], positives, 0.5).olrp == pytest.approx(min(errors), abs=1e-12)
