"""Label maps in NumPy's .npy format: two-dimensional arrays of integers. Nothing is unpickled."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading.labelmaps.codec import Decoded
from jaccard_eval.reading.npz import read_header
from jaccard_eval.text import shown

MAGIC = b"\x93NUMPY"
_FIX = "Save it with numpy.save as a two-dimensional array of integers, (height, width)."


def read_shape(data: bytes, where: Where) -> tuple[int, int]:
    """Return height and width.

    Raises
    ------
    DataError
        When the header is damaged, or describes no two-dimensional array of integers.
    """
    try:
        shape, dtype = read_header(io.BytesIO(data))
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, RecursionError) as error:
        detail = f"its header cannot be read: {' '.join(str(error).split())}"
        raise DataError.single("image-unreadable", where, detail, fix=_FIX) from None
    if dtype.kind not in "biu":
        detail = f"holds {shown(dtype)} values; a label map holds integers"
        advice = "Take the argmax over classes of scores; round labels. " if dtype.kind == "f" else ""
        raise DataError.single("map-type", where, detail, fix=f"{advice}{_FIX}")
    if len(shape) != 2:
        detail = f"has the shape {shown(shape)}; a label map has (height, width)"
        raise DataError.single("map-shape", where, detail, fix=_FIX)
    return shape[0], shape[1]


def decode(data: bytes, where: Where, *, by_color: bool) -> Decoded:
    """Return the array; its values are never colours.

    Raises
    ------
    DataError
        When the file is shorter than its header says.
    """
    try:
        values: npt.NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        detail = f"cannot be read: {' '.join(str(error).split())}"
        raise DataError.single("image-unreadable", where, detail, fix="Export or copy it again.") from None
    return Decoded(lambda top, bottom: values[top:bottom])
