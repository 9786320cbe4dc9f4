"""The compiled core digests rows as hashlib does, or leaves it to hashlib where the processor has no instructions."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.data.signature import digest_each
from jaccard_eval.native.calls import digest_rows

SEEDS = st.integers(0, 2**32 - 1)
NUMBERS = (0.0, -0.0, 1.5, -2.0, 5e-324, np.nan)


def is_able() -> bool:
    cpu = Path("/proc/cpuinfo")
    return native.load_core() is not None and cpu.exists() and " sha_ni" in cpu.read_text()


def digests(n: int) -> bytes | None:
    """Return the digest of n words, which come after a head of one."""
    words = np.arange(n, dtype=np.int64) + 7
    return digest_rows(np.array([[n]]), [(words, np.array([0, n]))], 32)


@pytest.mark.skipif(not is_able(), reason="no compiled core, it is turned off, or there are no such instructions")
def test_rows_of_every_length_have_the_digest_of_hashlib() -> None:
    for n in range(40):  # five blocks, and all places where a row may end in one
        expected = sha256(b"".join(word.to_bytes(8, "little") for word in (n, *range(7, n + 7)))).digest()
        assert digests(n) == expected, n


@pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")
@given(SEEDS)
def test_columns_are_digested_alike_without_the_core(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 9))
    bounds = np.append(0, np.cumsum(rng.integers(0, 12, n)))
    columns = (
        rng.choice(NUMBERS, (n, 3, 2)),
        (rng.integers(-5, 5, int(bounds[-1])), bounds),
        (rng.choice(NUMBERS, (int(bounds[-1]), 2)).ravel(), bounds * 2),
        rng.choice(NUMBERS, (2, n)).T,  # not behind each other in memory
    )
    found = digest_each(*columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        assert np.array_equal(found, digest_each(*columns))
    assert found.shape == (n, 2)


def test_zeros_of_both_signs_are_one_number_and_whole_numbers_are_not() -> None:
    zeros = np.array([[0.0], [-0.0]])
    assert len(np.unique(digest_each(zeros), axis=0)) == 1
    assert len(np.unique(digest_each(zeros.view(np.int64)), axis=0)) == 2


def test_narrow_numbers_are_left_to_python() -> None:
    assert digest_rows(np.zeros((1, 1), np.int64), [(np.zeros(4, np.float32), np.array([0, 4]))], 16) is None
