"""Which engine does the work: the memory's, as long as both sides fit into it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine import places
from jaccard_eval.engine.memory import usable_memory
from jaccard_eval.engine.places import list_names
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import is_address
from jaccard_eval.fixes import ON, Fix, Value
from jaccard_eval.options import EngineOptions
from jaccard_eval.storage import open_file

if TYPE_CHECKING:
    from jaccard_eval.engine.disk import DiskEngine

ROW_BYTES = 450  # of memory that the memory engine needs for a box, with a margin
TABLE_ROW_BYTES = 320  # the same of Parquet, whose columns are read without a copy of text
TEXT_ROW_BYTES = 24  # that a prediction takes at least where it is text: a class, five numbers
LOOKED_AT = 20  # files of a folder of texts
SAMPLE_BYTES = 65_536  # of each, from its start and from its middle
PACKED_ROW_BYTES = 12  # the same in a compressed table
SHAPE_SHARE = 2  # bytes of memory that shapes take for each byte of text
MASK_SHARE = 6  # the same of masks, whose runs are packed in text
PARQUET = (".parquet", ".pq")
PACKED = (".arrow", ".feather", ".npz", ".gz")


def exceed_memory(paths: Set[Path], options: EngineOptions, iou_type: str) -> bool:
    """Whether two inputs seem too large for memory."""
    needed, room = _demand(paths, options, iou_type)
    return needed > room


def in_spite_of_memory(paths: Set[Path], options: EngineOptions, lacking: Sequence[str], iou_type: str) -> str:
    """Describe why inputs that seem too large for memory are read into it, and what that takes."""
    needed, room = (f"{size / 2**30:.2g} GiB" for size in _demand(paths, options, iou_type))
    return (
        f"{', '.join(lacking)}: not available with the disk engine, so all boxes are read into memory. They take about"
        f" {needed}, and {room} are free to use; if that fails, use a machine with more memory."
    )


def not_on_disk(lacking: Sequence[str], scratch: object) -> UsageError:
    """Return the error of what was asked of the disk that needs the match of every detection, with a way to it."""
    words, named = "Pass {engine}, or omit it.", dict[str, Value | None](engine="memory")
    if scratch is not None:
        words, named["scratch"] = "Pass {engine} without {scratch}.", None
    if "errors" in lacking:
        words, named["confusion"] = f"{words} The confusion matrix alone is there with {{confusion}}.", ON
    fix = Fix.missing(words, **named)
    return UsageError(f"{', '.join(lacking)}: not available with the disk engine.", fix=fix)


def _demand(paths: Set[Path], options: EngineOptions, iou_type: str) -> tuple[int, int]:
    """Return how many bytes of memory the inputs take, about, or 0 where they fit in any case; and how many there are.

    A folder of parts is both sides, and one input.
    """
    for path in paths:
        list_names(path, recursive=True)
    sizes = {path: input_size(path) for path in paths}
    if sum(sizes.values()) <= places.SMALL:
        return 0, 0
    share = 0 if iou_type == BOXES else MASK_SHARE if iou_type in MASKS else SHAPE_SHARE
    return sum(memory_of(path, size) + share * size for path, size in sizes.items()), options.bytes or usable_memory()


def open_engine(paths: Set[Path], options: EngineOptions, iou_type: str, lacking: Sequence[str]) -> DiskEngine | None:
    """Return the engine of boxes on the disk: that of a cluster only where it is asked for.

    None where nobody named it, and what is asked for is `lacking` on the disk.
    """
    if lacking and options.is_automatic:
        import logging  # slow to load

        # Not a finding: no result depends on where it was made.
        note = in_spite_of_memory(paths, options, lacking, iou_type)
        logging.getLogger("jaccard_eval").log(logging.WARNING, note)
        return None
    if lacking:
        raise not_on_disk(lacking, options.scratch)
    if options.engine == "dask" or options.client is not None:
        from jaccard_eval.engine.dask_ import DaskEngine

        return DaskEngine.open(options, iou_type)
    from jaccard_eval.engine.disk import DiskEngine

    return DiskEngine.open(options, iou_type)


def input_size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder but images; 0 where there is none."""
    try:
        return sum(file.stat().st_size for file in _files_of(path))
    except OSError:  # the reader has the message
        return 0


def fits_memory(path: Path, room: int) -> bool:
    """Whether the memory engine would read an input in so many bytes."""
    return memory_of(path, input_size(path)) <= room


def memory_of(path: Path, size: int) -> int:
    """Return how many bytes of memory an input of a size takes, about."""
    is_table = any(file.suffix.lower() in PARQUET for file in _files_of(path))
    return rows_of(path, size) * (TABLE_ROW_BYTES if is_table else ROW_BYTES)


def _opened(file: Path) -> Any:
    """Return what is read of a file: the names of those in object stores are here, and not their contents."""
    return open_file(str(file)) if is_address(file) else file


def rows_of(path: Path, size: int) -> int:
    """Return how many boxes an input of a size holds, about: some of them show how many bytes one takes."""
    files = _files_of(path)
    if any(file.suffix.lower() in PARQUET for file in files):
        with contextlib.suppress(Exception):  # the reader has the message
            parquet: Any = importlib.import_module("pyarrow.parquet")
            return sum(
                parquet.read_metadata(_opened(file)).num_rows for file in files if file.suffix.lower() in PARQUET
            )
    if any(file.suffix.lower() in PACKED for file in files):
        return size // PACKED_ROW_BYTES
    return int(size / _row_bytes(files[:LOOKED_AT]))


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        # A look into a pipe would wait for whoever writes to it; the reader refuses it.
        return [] if path.exists() and not path.is_file() else [path]
    return [entry for entry in path.rglob("*") if entry.is_file() and not is_image_name(entry.name)]


def _row_bytes(files: list[Path]) -> float:
    """Return how many bytes of text a box takes, by samples of each file: one that is a line, or has a box."""
    n_bytes = n_rows = 0
    for file in files:
        with contextlib.suppress(OSError), file.open("rb") as opened:
            text = opened.read(SAMPLE_BYTES)
            # Ground truth may begin with its images: boxes are then in the middle.
            if (middle := file.stat().st_size // 2) > SAMPLE_BYTES:
                opened.seek(middle)
                text += opened.read(SAMPLE_BYTES)
            # A file of JSON may be one line, or have a line for each number.
            boxes = text.count(b'"bbox"')
            n_bytes += len(text)
            n_rows += boxes or text.count(b"\n")
    return max(n_bytes / n_rows if n_rows else 0, TEXT_ROW_BYTES)
