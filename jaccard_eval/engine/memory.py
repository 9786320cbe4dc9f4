"""Give memory back to the system between portions of work, so that the peak is that of one portion."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from typing import Any

ENOUGH = 150_000  # rows worked on, from which there is something to return
_rows = [0]  # worked on since the last time


def release_memory(rows: int) -> None:
    """Give memory back once enough rows were worked on: what is in cycles, and free pages that the heap keeps."""
    _rows[0] += rows
    if _rows[0] < ENOUGH:
        return
    _rows[0] = 0
    # The command line has turned the collector off.
    gc.collect()
    release_pages()


def release_tables(rows: int) -> None:
    """Return to the system what Arrow's pool keeps of the tables that were read."""
    if rows >= ENOUGH and "pyarrow" in sys.modules:
        release_pages()


def release_pages() -> None:
    """Return free pages of Arrow's pool and of the heap to the system."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _trimmer()
    if trim is not None:
        trim(0)


@cache
def _trimmer() -> Any:
    """Return the function of the C library that returns free pages; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # musl has none
        return None
