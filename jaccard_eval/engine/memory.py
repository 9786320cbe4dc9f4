"""How much memory a run may use, and giving it back between portions of work: the peak is that of one portion."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

FREE_SHARE = 0.6  # of the memory of the container or the machine that one run may use unless a limit is given
ENOUGH = 150_000  # rows worked on, from which there is something to return
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_rows = [0]  # worked on since the last time


def usable_memory() -> int:
    """Return how many bytes a run may use of what the container or the machine has."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [2**33]
    for name in _LIMITS:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        sizes += [int(text)] if text.isdecimal() else []
    return int(FREE_SHARE * min(sizes))


def release_memory(rows: int) -> None:
    """Give memory back once enough rows were worked on: what is in cycles, and free pages that the heap keeps."""
    _rows[0] += rows
    if _rows[0] < ENOUGH:
        return
    _rows[0] = 0
    # The command line has turned the collector off. What is older than the last time is left: looking through all
    # modules of Dask after each part took a fourth of the time, and no table was ever in a cycle.
    gc.collect(1)
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
