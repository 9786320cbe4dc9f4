"""What a kind of file makes of a label map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Rows = Callable[[int, int], npt.NDArray[Any]]  # (top, bottom) -> integers, shape (bottom - top, width)


class Decoded(NamedTuple):
    """Rows of values, whether these are colours, and the colours that a palette gives them, shape (n, 3)."""

    rows: Rows
    is_colored: bool = False
    palette: npt.NDArray[np.uint8] | None = None
