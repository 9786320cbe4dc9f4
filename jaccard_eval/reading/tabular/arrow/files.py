"""One Parquet or Arrow file, read batch by batch: the columns that matter, and never far beyond the file's size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from jaccard_eval.errors import DataError, FindingLog, Where
from jaccard_eval.extras import require
from jaccard_eval.reading import files
from jaccard_eval.reading.tabular.arrow.columns import EXTRA
from jaccard_eval.reading.tabular.arrow.flatten import Batch, flatten, is_wanted
from jaccard_eval.reading.tabular.arrow.magic import ARROW_MAGIC, is_arrow, is_parquet
from jaccard_eval.reading.tabular.columns import count_known

ROW_BYTES = 32  # of memory that a row takes at least: four coordinates, or an image and what it is repeated for

_LIST_PARTS = frozenset({"list", "element", "item", "array", "bag", "array_element"})  # of Parquet's names in a list


@dataclass(slots=True)
class Content:
    """What a file holds.

    Parameters
    ----------
    batches : list of Batch
        At least one, which may be empty.
    unread : list of str
        Columns, and fields of objects, that were passed over.
    metadata : dict of bytes to bytes
        Of the schema.
    """

    batches: list[Batch] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    metadata: dict[bytes, bytes] = field(default_factory=dict)


def read_content(path: Path, findings: FindingLog) -> Content:
    """Read a file, whatever its suffix: Parquet, Arrow or an Arrow stream by its first bytes.

    Raises
    ------
    DataError
        When it is something else or damaged, or claims far more rows than its size gives.
    MachineError
        When pyarrow is not installed.
    """
    arrow = require("pyarrow", extra=EXTRA)
    try:
        with files.open_regular(path) as file, files.unchanging(path, file):
            return _read(path, file, findings)
    except MemoryError:
        if path.stat().st_size > files.UNPACKED_FLOOR:
            raise
        reason = "it asks for more memory than there is"
    except (arrow.ArrowException, OSError, ValueError, LookupError, ArithmeticError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    fix = "Copy or export the file again."
    raise DataError.single("arrow-damaged", Where(str(path)), f"cannot be read: {reason}", fix=fix)


def _read(path: Path, file: BinaryIO, findings: FindingLog) -> Content:
    start = file.read(files.SNIFF_BYTES)
    if not (is_parquet(start) or is_arrow(start)):
        files.read_bytes(path)  # which knows what else is passed by mistake
        detail = "holds neither Parquet nor Arrow by its first bytes"
        raise DataError.single("wrong-content", Where(str(path)), detail, fix="Check the path, or name the format.")
    file.seek(0)
    budget = _Budget(max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * os.fstat(file.fileno()).st_size))
    content = Content()
    first_row = 0
    for table in _parquet(file, content, budget) if is_parquet(start) else _arrow(file, start, content, budget):
        budget.require(ROW_BYTES * table.num_rows)
        table.validate(full=True)  # before anything else is asked of it: pyarrow trusts what it reads
        content.batches.append(flatten(table, first_row, str(path), findings, most=budget.left // ROW_BYTES))
        budget.spend(table.nbytes)
        first_row += table.num_rows
    return content


@dataclass(slots=True)
class _Budget:
    """What a file may unpack to: a few kilobytes can claim gigabytes."""

    left: int

    def spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        self.require(0)

    def require(self, n_bytes: int) -> None:
        """Raise a ValueError when more is claimed than is left."""
        if n_bytes > self.left:
            raise ValueError("it unpacks to far more than its size gives; write it again without compression")


def _parquet(file: BinaryIO, content: Content, budget: _Budget) -> Iterator[Any]:
    """Yield the row groups, with indices of a dictionary for texts: one text for a million rows is then one text."""
    parquet = require("pyarrow.parquet", extra=EXTRA)
    opened = parquet.ParquetFile(file)
    schema, about = opened.schema_arrow, opened.metadata
    content.metadata = schema.metadata or {}
    leaves = [opened.schema.column(at) for at in range(len(opened.schema))]
    read = [leaf for leaf in leaves if is_wanted(_parts(leaf.path)) and _is_readable(leaf)]
    paths = {leaf.path for leaf in read}
    content.unread = list(dict.fromkeys(_unread_name(_title(leaf.path)) for leaf in leaves if leaf.path not in paths))
    # Not that of the columns in it: to ask for these ends the process where the file is damaged (pyarrow 26).
    groups = [about.row_group(group).total_byte_size for group in range(about.num_row_groups)]
    budget.require(max(sum(groups), ROW_BYTES * about.num_rows))
    texts = [leaf.path for leaf in read if leaf.physical_type == "BYTE_ARRAY"]
    opened = parquet.ParquetFile(file, metadata=about, read_dictionary=texts)
    if not groups:
        yield opened.read(columns=sorted(paths))
    for group in range(len(groups)):
        yield opened.read_row_group(group, columns=sorted(paths))


def _arrow(file: BinaryIO, start: bytes, content: Content, budget: _Budget) -> Iterator[Any]:
    """Yield the record batches of a file or a stream."""
    arrow, ipc = require("pyarrow", extra=EXTRA), require("pyarrow.ipc", extra=EXTRA)
    is_file = start.startswith(ARROW_MAGIC)
    open_one = ipc.open_file if is_file else ipc.open_stream
    schema = open_one(file).schema
    file.seek(0)
    content.metadata = schema.metadata or {}
    chosen = [at for at, one in enumerate(schema) if is_wanted((one.name,)) and not _is_binary(one.type)]
    content.unread = [_unread_name(one.name) for at, one in enumerate(schema) if at not in chosen]
    reader = open_one(file, options=ipc.IpcReadOptions(included_fields=chosen, use_threads=True))
    yield arrow.schema([schema.field(at) for at in chosen]).empty_table()
    yield from map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader


def _parts(path: str) -> tuple[str, ...]:
    """Return the names of a column and of the fields in it."""
    name, *inner = path.split(".")
    return (name, *(one for one in inner if one not in _LIST_PARTS))


def _title(path: str) -> str:
    """Return the name of a column, or with it that of a field."""
    return ".".join(_parts(path)[:2])


def _unread_name(title: str) -> str:
    """Return what a column that is not read is called: bytes do not take the name of what is read."""
    return f"{title} (bytes)" if count_known([title]) else title


def _is_readable(leaf: Any) -> bool:
    """Whether a column of Parquet is no bare bytes, such as an encoded picture."""
    return leaf.physical_type != "BYTE_ARRAY" or leaf.logical_type.type in ("STRING", "DECIMAL", "JSON", "ENUM")


def _is_binary(kind: Any) -> bool:
    types = require("pyarrow", extra=EXTRA).types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))
