import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.errors import UsageError
from jaccard_eval.features.scale.compute import exchange_rate, jaccard_from_error

Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def test_the_index_falls_by_missing_and_extra_points_over_the_union() -> None:
    # |B| = 10, p = 2, q = 6: intersection 8, union 16.
    assert float(jaccard_from_error(10, 2, 6)) == 0.5
    assert float(jaccard_from_error(10, 2, 6)) == 1 - (2 + 6) / (10 + 6)


def test_no_error_is_one_nothing_covered_is_zero_and_two_empty_sets_are_undefined() -> None:
    assert jaccard_from_error([10, 10, 0], [0, 10, 0], [0, 5, 3]).tolist() == [1.0, 0.0, 0.0]
    assert math.isnan(jaccard_from_error(0, 0, 0))


@pytest.mark.parametrize("areas", [(10, 11, 0), (10, -1, 0), (10, 0, -1), (math.inf, 0, 0), (10, math.nan, 0)])
def test_areas_that_no_two_sets_have_are_refused(areas: tuple[float, float, float]) -> None:
    for function in (jaccard_from_error, exchange_rate):
        with pytest.raises(UsageError, match="0 <= missing <= gt_area"):
            function(*areas)


def test_the_same_error_costs_a_small_object_more() -> None:
    # Ten points missing and ten too many: 90/110 of 100 points, 990/1010 of 1000.
    small, large = jaccard_from_error([100, 1000], 10, 10)
    assert (small, large) == (pytest.approx(90 / 110, abs=1e-15), pytest.approx(990 / 1010, abs=1e-15))


def test_a_prediction_of_everything_but_one_point_trades_that_point_for_at_least_24() -> None:
    # Image 101², object 21²: q = 10201 - 441 = 9760, rate (441 + 9760) / 441 = 23.13.
    rate = exchange_rate(21**2, 1, 101**2 - 21**2)
    assert float(rate) == pytest.approx(10201 / 441, abs=1e-12)
    assert math.ceil(rate) == 24


def test_a_prediction_of_23_by_23_around_the_object_trades_a_point_for_2() -> None:
    # q = 529 - 441 = 88, rate 529 / 441 = 1.1995: about 1.2, and whole points only come in twos.
    rate = exchange_rate(21**2, 1, 23**2 - 21**2)
    assert float(rate) == pytest.approx(1.2, abs=1e-3)
    assert math.ceil(rate) == 2


def test_the_rate_counted_on_label_maps_is_the_least_shrinking_that_makes_up_for_the_point() -> None:
    # Brute force over masks: take points away from q one by one until the index is at least that of the point won.
    truth, prediction = _square(101, 21), np.ones((101, 101), dtype=np.bool_)
    prediction[50, 50] = False
    won = _jaccard(truth, np.ones_like(prediction))
    outside = np.argwhere(prediction & ~truth)
    shrunk = 0
    while _jaccard(truth, prediction) < won:
        prediction[tuple(outside[shrunk])] = False
        shrunk += 1
    assert shrunk == math.ceil(exchange_rate(21**2, 1, 101**2 - 21**2)) == 24


def test_there_is_no_rate_where_no_point_is_missing() -> None:
    assert np.isnan(exchange_rate([10, 10], [0, 0.5], 3)).all()


@given(area=st.integers(1, 500), share=st.floats(0, 1), extra=st.integers(0, 500))
def test_shrinking_by_the_rate_equals_winning_a_point(area: int, share: float, extra: int) -> None:
    missing = max(1, round(area * share))
    rate = float(exchange_rate(area, missing, extra))
    won = float(jaccard_from_error(area, missing - 1, extra))
    if rate <= extra:
        assert float(jaccard_from_error(area, missing, extra - rate)) == pytest.approx(won, abs=1e-12)
    else:
        assert float(jaccard_from_error(area, missing, 0)) < won


@given(st.integers(0, 2**32 - 1))
def test_the_index_from_errors_is_that_of_the_masks(seed: int) -> None:
    first, second = np.random.default_rng(seed).random((2, 5, 5)) < 0.5
    missing, extra = int((first & ~second).sum()), int((second & ~first).sum())
    expected = _jaccard(first, second) if (first | second).any() else math.nan
    found = float(jaccard_from_error(int(first.sum()), missing, extra))
    assert found == pytest.approx(expected, abs=1e-15, nan_ok=True)


def _square(image: int, side: int) -> Mask:
    mask = np.zeros((image, image), dtype=np.bool_)
    start = (image - side) // 2
    mask[start : start + side, start : start + side] = True
    return mask


def _jaccard(first: Mask, second: Mask) -> float:
    return float((first & second).sum() / (first | second).sum())
