import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaccard_eval.errors import UsageError
from jaccard_eval.features.scale.compute import equal_count_edges, size_bins


def test_bins_of_equal_counts_are_cut_between_objects() -> None:
    assert equal_count_edges(np.array([8.0, 1.0, 2.0, 4.0]), 2) == (3.0,)
    assert equal_count_edges(np.array([1.0, 2.0, 3.0, 4.0]), 4) == (1.5, 2.5, 3.5)


def test_an_edge_has_as_few_decimals_as_the_objects_beside_it_allow() -> None:
    assert equal_count_edges(np.array([10.2, 14.9]), 2) == (13.0,)  # the middle, 12.55, in whole pixels
    assert equal_count_edges(np.array([10.2, 10.4]), 2) == (10.3,)


def test_objects_of_one_size_stay_together() -> None:
    assert equal_count_edges(np.array([5.0] * 9 + [7.0]), 2) == (6.0,)
    assert equal_count_edges(np.array([5.0] * 9), 4) == ()
    assert equal_count_edges(np.zeros(0), 4) == ()


@given(st.lists(st.floats(1, 500), max_size=60), st.integers(1, 6))
@example(sides=[1.0, math.nextafter(1.0, 2.0)], n_bins=2)  # no float lies between the two
def test_every_object_is_in_exactly_one_bin(sides: list[float], n_bins: int) -> None:
    bins = size_bins(equal_count_edges(np.array(sides), n_bins))
    areas = np.array(sides) ** 2
    counts = [int(((areas >= area.low) & (areas <= area.high)).sum()) for area in bins]
    assert sum(counts) == len(sides)
    assert len(bins) <= n_bins
    assert 0 not in counts or not sides


@given(st.integers(1, 6), st.integers(1, 20))
def test_distinct_sizes_that_divide_evenly_do_so(n_bins: int, each: int) -> None:
    edges = equal_count_edges(np.arange(1.0, n_bins * each + 1), n_bins)
    counts = np.histogram(np.arange(1.0, n_bins * each + 1), [0, *edges, math.inf])[0]
    assert counts.tolist() == [each] * n_bins


def test_given_edges_belong_to_the_bin_above() -> None:
    bins = size_bins([32, 96])
    assert [one.name for one in bins] == ["<32", "32-96", ">=96"]
    inside = [[one.low <= area <= one.high for one in bins] for area in (32**2 - 1e-9, 32**2, 96**2)]
    assert inside == [[True, False, False], [False, True, False], [False, False, True]]


def test_edges_that_do_not_ascend_are_refused() -> None:
    for edges in ([96, 32], [0, 32], [32, 32], [math.nan], [math.inf]):
        with pytest.raises(UsageError, match="ascend"):
            size_bins(edges)
    with pytest.raises(UsageError, match="must be at least 1"):
        equal_count_edges(np.ones(3), 0)
