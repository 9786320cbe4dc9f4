"""Text that a script unpacks, unpacked here in plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.features.operating import pack, per_step

LETTERS = "".join(map(chr, range(63, 127)))


def unpack(text: str, n: int) -> list[int]:
    numbers, number, shift = [], 0, 0
    for letter in text:
        value = LETTERS.index(letter)
        number, shift = number | (value & 31) << shift, shift + 5
        if value < 32:
            numbers, number, shift = [*numbers, number], 0, 0
    assert shift == 0
    counts, place = [0] * n, -1
    for gap, count in zip(numbers[::2], numbers[1::2], strict=True):
        place += gap + 1
        counts[place] = count
    return counts


def test_zeros_are_left_out() -> None:
    # No zero and 1, one zero and 2; then three zeros and 33, which is 1 and a bit more (32 + 1), then 1.
    assert pack(np.array([[1, 0, 2], [0, 0, 0], [33, 0, 0]])) == "?@@AB`@"
    assert pack(np.zeros((2, 2), dtype=np.int64)) == ""


@given(st.lists(st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 2**40))))
def test_counts_come_back(counts: list[int]) -> None:
    assert unpack(pack(np.array(counts, dtype=np.int64)), len(counts)) == counts


@given(st.lists(st.integers(0, 99), min_size=1).map(lambda counts: sorted(counts, reverse=True)))
def test_what_is_lost_adds_up_from_the_end(counts: list[int]) -> None:
    lost = per_step(np.array([counts]))
    assert lost.min() >= 0
    assert lost[0, ::-1].cumsum()[::-1].tolist() == counts
