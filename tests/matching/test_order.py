"""Orders and blocks against NumPy's own stable sort and plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jaccard_eval import matching

wide_keys = arrays.arrays(np.int64, st.integers(0, 40), elements=st.sampled_from([0, 1, 65535, 65536, 65537, 1 << 40]))
small_keys = arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(0, 5))
huge_keys = arrays.arrays(np.int64, st.integers(0, 6), elements=st.integers(0, np.iinfo(np.int64).max))
tied_scores = arrays.arrays(np.float64, st.integers(0, 40), elements=st.sampled_from([-1.0, -0.0, 0.0, 0.5, 0.9]))


@given(small_keys | wide_keys | huge_keys)
def test_stable_order_is_that_of_a_stable_argsort(keys: matching.IntArray) -> None:
    assert matching.stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@given(tied_scores)
def test_descending_order_keeps_rows_of_equal_scores_in_order(scores: np.ndarray) -> None:
    by_score = sorted(range(len(scores)), key=lambda row: -scores[row])  # Python's sort is stable
    assert matching.descending_order(scores).tolist() == by_score


near = [0.5, np.nextafter(0.5, 1), np.nextafter(0.5, 0), 0.5 + 2**-40]  # alike in all bits that fit
odd = [-1.0, -0.0, 0.0, 5e-324, -5e-324, 1e308, np.inf, -np.inf, np.nan, -np.nan]


@given(
    st.lists(st.tuples(st.integers(0, 3) | st.just(2**31 - 1), st.sampled_from(near + odd)), max_size=40),
    st.sampled_from([1, 3000]),
)
def test_class_and_score_order_is_that_of_two_stable_sorts(rows: list[tuple[int, float]], times: int) -> None:
    label = np.array([label for label, _ in rows] * times, dtype=np.int64)
    score = np.array([score for _, score in rows] * times, dtype=np.float64)
    by_score = np.argsort(-score, kind="stable")
    expected = by_score[np.argsort(label[by_score], kind="stable")]
    assert np.array_equal(matching.class_and_score_order(label, score), expected)


@given(small_keys)
def test_group_ranks_count_earlier_rows_of_the_same_key(keys: matching.IntArray) -> None:
    listed = keys.tolist()
    assert matching.group_ranks(keys).tolist() == [listed[:row].count(key) for row, key in enumerate(listed)]


@given(small_keys, small_keys)
def test_blocks_are_the_same_by_table_and_by_search(keys: matching.IntArray, queries: matching.IntArray) -> None:
    ascending = np.sort(keys)
    far = np.int64(1 << 40)  # keys so sparse that a table of all would not fit
    for blocks in (matching.Blocks.of(ascending, queries), matching.Blocks.of(ascending * far, queries * far)):
        found = [ascending[start:stop].tolist() for start, stop in zip(blocks.start, blocks.stop, strict=True)]
        assert found == [[key] * int((ascending == key).sum()) for key in queries]
