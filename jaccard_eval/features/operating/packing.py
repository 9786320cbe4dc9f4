"""Rows of counts as text that a script unpacks: most counts are 0, and most others small."""

from __future__ import annotations

import numpy as np

from jaccard_eval.matching.order import IntArray

FIRST = ord("?")  # of 64 letters up to "~", none of which HTML knows
BITS = 5  # of a number in a letter
MORE = 1 << BITS  # set where more letters follow


def pack(counts: IntArray) -> str:
    """Return the counts other than 0 of an array, read row by row: how many zeros come before each, then the count.

    Every number has its lowest bits first.
    """
    flat = counts.ravel()
    places = np.flatnonzero(flat)
    numbers = np.column_stack([np.diff(places, prepend=-1) - 1, flat[places]]).ravel()
    n_letters = np.maximum(1, (np.frexp(numbers.astype(np.float64))[1] + BITS - 1) // BITS)
    ends = np.cumsum(n_letters)
    # Place of each letter within its number.
    place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - n_letters, n_letters)
    digits = (np.repeat(numbers, n_letters) >> (BITS * place)) & (MORE - 1)
    digits[place < np.repeat(n_letters, n_letters) - 1] |= MORE
    return str((digits + FIRST).astype(np.uint8).tobytes(), "ascii")


def per_step(counts: IntArray) -> IntArray:
    """Return how much counts (..., S) that never rise fall behind each step: numbers that pack well."""
    return np.asarray(counts - np.concatenate([counts[..., 1:], np.zeros_like(counts[..., :1])], axis=-1))
