"""Label maps by the compiled core: pixels counted by pair of values; None without a core."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.native import load_core

IntArray = npt.NDArray[np.int64]

FIRST_CAPACITY, LAST_CAPACITY = 2**10, 2**18  # places of a table that takes half as many pairs


def count_pairs(gt: npt.NDArray[Any], pred: npt.NDArray[Any]) -> tuple[IntArray, IntArray, IntArray] | None:
    """Return the pairs of values that the pixels of two maps have, in no order, and how many pixels have each.

    None where values are none of 8, 16 or 32 bits without sign, or there are very many pairs.
    """
    core, kind = load_core(), np.result_type(gt, pred)
    if core is None or gt.shape != pred.shape or kind.kind != "u" or kind.itemsize > 4:
        return None
    gt, pred = (np.ascontiguousarray(values, kind) for values in (gt, pred))
    capacity, n = FIRST_CAPACITY, -1
    while n < 0:
        if capacity > LAST_CAPACITY:
            return None
        key, pixels = np.empty(capacity, np.uint64), np.zeros(capacity, np.int64)
        places = (gt.ctypes.data, pred.ctypes.data, capacity, key.ctypes.data, pixels.ctypes.data)
        n = core.jaccard_count_pairs(gt.size, kind.itemsize, *places)
        capacity *= 16
    taken = np.flatnonzero(pixels)
    key = key[taken]
    return (key >> np.uint64(32)).astype(np.int64), (key & np.uint64(2**32 - 1)).astype(np.int64), pixels[taken]
