"""Which engine does the work: the memory's, as long as predictions fit into it."""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from typing import Any

from jaccard_eval.options import EngineOptions

ROW_BYTES = 450  # of memory that the memory engine needs for a prediction, with its share of the ground truth
FREE_SHARE = 0.6  # of the memory of the container or the machine that one run may use unless a limit is given
SMALL = 32 * 2**20  # bytes of input that fit in any case, so that nothing is looked at
TEXT_ROW_BYTES = 48  # that a prediction takes at least where it is text: an image, a class, five numbers
PACKED_ROW_BYTES = 12  # the same in a compressed table
PARQUET = (".parquet", ".pq")
PACKED = (".arrow", ".feather", ".npz", ".gz")

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def takes_disk(pred: object, options: EngineOptions) -> bool:
    """Whether the disk engine evaluates some predictions; of tables that are in memory it is not needed."""
    if options.engine != "auto":
        return options.engine == "disk"
    if not isinstance(pred, str | os.PathLike):
        return False
    size = input_size(Path(pred))
    if size <= SMALL:
        return False
    return rows_of(Path(pred), size) * ROW_BYTES > (options.bytes or usable_memory())


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


def input_size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 where there is none."""
    try:
        if not path.is_dir():
            return path.stat().st_size
        return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())
    except OSError:  # the reader has the message
        return 0


def rows_of(path: Path, size: int) -> int:
    """Return at most how many predictions an input of a size holds, about."""
    files = [path] if not path.is_dir() else [entry for entry in path.rglob("*") if entry.is_file()]
    if any(file.suffix.lower() in PARQUET for file in files):
        with contextlib.suppress(Exception):  # the reader has the message
            parquet: Any = importlib.import_module("pyarrow.parquet")
            return sum(parquet.read_metadata(file).num_rows for file in files if file.suffix.lower() in PARQUET)
    is_packed = any(file.suffix.lower() in PACKED for file in files)
    return size // (PACKED_ROW_BYTES if is_packed else TEXT_ROW_BYTES)
