"""Arrays to the last bit: how the oracle stores them and how they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def decode(stored: dict[str, Any]) -> FloatArray:
    """Unpack an array from runs [count, value] along permuted axes."""
    counts, values = np.array(stored["runs"], dtype=np.float64).reshape(-1, 2).T
    shape, axes = stored["shape"], stored["axes"]
    flat = np.repeat(values, counts.astype(np.int64))
    permuted = flat.reshape([shape[axis] for axis in axes])
    return np.ascontiguousarray(permuted.transpose(np.argsort(axes)))


def same_bits(first: npt.ArrayLike, second: npt.ArrayLike) -> bool:
    """Whether two arrays have the same shape and the same float64 in every cell."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def minus_one(values: FloatArray) -> FloatArray:
    """Write undefined values as pycocotools does."""
    return np.where(np.isnan(values), -1.0, values)
