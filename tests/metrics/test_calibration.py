import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.metrics.detection import calibration


def test_errors_are_weighted_distances_of_bins() -> None:
    # Bin [.9, 1]: mean score .95, half of 2 right: .45 off. Bin [.2, .3): score .25, the one right: .75 off.
    found = calibration(np.array([0.9, 1.0, 0.25]), np.array([True, False, True]))
    assert found.ece == pytest.approx((2 * 0.45 + 0.75) / 3, abs=1e-12)
    assert found.mce == pytest.approx(0.75, abs=1e-12)
    assert found.count.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 2]


def test_scores_that_are_shares_are_calibrated() -> None:
    found = calibration(np.full(4, 0.75), np.array([True, True, True, False]))
    assert (found.ece, found.mce) == (0, 0)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [([], "no detections"), ([0.5, 1.5], "scores outside [0, 1]"), ([-1.0], "scores outside [0, 1]")],
)
def test_what_is_no_probability_has_no_calibration(scores: list[float], reason: str) -> None:
    found = calibration(np.array(scores), np.ones(len(scores), dtype=bool))
    assert np.isnan(found.ece) and np.isnan(found.mce)
    assert found.reason == reason


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_mean_error_lies_below_the_largest(rows: list[tuple[float, bool]]) -> None:
    score, hit = map(np.array, zip(*rows, strict=True))
    found = calibration(score, hit)
    assert 0 <= found.ece <= found.mce + 1e-12 <= 1 + 1e-9
    assert found.count.sum() == len(rows)
