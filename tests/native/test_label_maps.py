"""The compiled core counts label maps as NumPy does, or leaves them to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.metrics.pixel_counts import ConfusionCounts
from jaccard_eval.native.calls import LAST_CAPACITY, count_pairs

pytestmark = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")

SEEDS = st.integers(0, 2**32 - 1)
TYPES = (np.uint8, np.uint16, np.uint32, np.int64, np.bool_)


@given(SEEDS)
def test_counts_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 60, 2).tolist())
    sides = []
    for _ in range(2):
        kind = TYPES[int(rng.integers(len(TYPES)))]
        top = min(int(rng.choice([2, 5, 255, 70_000, 2**32 - 1])), np.iinfo(kind).max if kind is not np.bool_ else 1)
        values = rng.integers(0, top, shape, np.int64, endpoint=True).astype(kind)
        repeats = np.sort(rng.integers(0, max(values.size, 1), values.size)) if rng.random() < 0.7 else slice(None)
        sides.append(values.reshape(-1)[repeats].reshape(shape))
    sides[1] = np.asfortranarray(sides[1])
    counted = ConfusionCounts.from_maps(*sides)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        plain = ConfusionCounts.from_maps(*sides)
    for name in ConfusionCounts.__slots__:
        np.testing.assert_array_equal(getattr(counted, name), getattr(plain, name))
        assert getattr(counted, name).dtype == np.int64


def test_maps_of_very_many_pairs_are_left_to_numpy() -> None:
    few, many = np.arange(LAST_CAPACITY // 2, dtype=np.uint32), np.arange(LAST_CAPACITY, dtype=np.uint32)
    counted = count_pairs(few, few)
    assert counted is not None
    assert len(counted[0]) == len(few)
    assert counted[2].tolist() == [1] * len(few)
    assert count_pairs(many, many) is None
    assert len(ConfusionCounts.from_maps(many, many).pixels) == len(many)
