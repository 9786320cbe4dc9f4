"""Large files a block at a time, and findings about a block in the lines and records of its file."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jaccard_eval.findings import DataError, Example, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import BYTES, Stage
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft

_BLOCK_BYTES = 1 << 18  # that are read at a time where the end of a file is not needed
_LONGEST_MATCH = 1 << 10
_RECORD = pattern(r"\[(\d+)\]")


class PlacedLog(FindingLog):
    """Findings about a block of a file: their lines and records are counted from the start of the file."""

    def __init__(self, *, lines: int = 0, records: int = 0) -> None:
        super().__init__()
        self._lines = lines  # in front of the block
        self._records = records

    def _add(self, severity: Severity, code: str, examples: list[Example], *texts: Any, **others: Any) -> Any:
        placed = [replace(example, where=self._placed(example.where)) for example in examples]
        return super()._add(severity, code, placed, *texts, **others)

    def _placed(self, where: Where) -> Where:
        line = None if where.line is None else where.line + self._lines
        record = where.record and _RECORD.sub(lambda found: f"[{int(found[1]) + self._records}]", where.record, count=1)
        return replace(where, line=line, record=record)


@contextlib.contextmanager
def part_of(draft: Draft, *, lines: int = 0, records: int = 0) -> Iterator[Draft]:
    """Return a draft for a block of the input of another; so many lines and records are in front of it.

    Errors that are raised meanwhile are about the block as well.
    """
    part = Draft(draft.path, draft.format_name, draft.options)
    part.details = list(draft.details)
    part.findings = PlacedLog(lines=lines, records=records)
    try:
        yield part
    except DataError as error:
        if error.findings != part.findings.findings():  # else they are in their places already
            part.findings.extend(error.findings)
        raise DataError(part.findings.findings()) from None


def needs_whole(path: str | Path, detail: str, fix: Fix | str = "") -> DataError:
    """Return the error about an input that cannot be read in parts; where there is room, it is read whole instead."""
    whole = Fix.missing("Read it whole with {engine}, on a machine with more memory.", engine="memory")
    return DataError.single("parts-differ", Where(str(path)), detail, fix=fix or whole)


@contextlib.contextmanager
def open_blocks(path: Path, size: int, stage_name: str = "storing") -> Iterator[Iterator[bytes]]:
    """Return what a regular file holds, unpacked if gzip, so many bytes at a time; see `read_bytes` for the errors."""
    with files.open_regular(path) as file, files.unchanging(path, file):
        total = os.fstat(file.fileno()).st_size
        with Stage(stage_name, total, unit=BYTES) as stage:
            yield _blocks(path, file, size, stage)


def _blocks(path: Path, file: BinaryIO, size: int, stage: Stage) -> Iterator[bytes]:
    packed_bytes = os.fstat(file.fileno()).st_size if file.read(len(files.GZIP_MAGIC)) == files.GZIP_MAGIC else 0
    most = max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * packed_bytes)
    file.seek(0)
    n_read = position = 0
    for block in _unpacked(path, file, size) if packed_bytes else iter(lambda: file.read(size), b""):
        content = block if n_read else block.removeprefix(files.BYTE_ORDER_MARK)
        if not n_read:
            files.check_content(path, content)
        n_read += len(block)
        if packed_bytes and n_read > most:
            raise files.too_large_unpacked(path, most, packed_bytes)
        yield content
        stage.advance(file.tell() - position)
        position = file.tell()
    if not n_read:
        files.check_content(path, b"")


def _unpacked(path: Path, file: BinaryIO, size: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as unpacked:
        try:
            while block := unpacked.read(size):
                yield block
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise files.damaged_gzip(path, error) from None


def part_from(path: Path, pattern: re.Pattern[bytes], size: int) -> bytes:
    """Return so many bytes of a file from the first match on, and read no further; nothing where there is none.

    A match is at most `_LONGEST_MATCH` bytes long.
    """
    rest, is_found = b"", False
    with open_blocks(path, _BLOCK_BYTES, f"reading {path}") as blocks:
        for block in blocks:
            rest += block
            if not is_found:
                match = pattern.search(rest)
                is_found = match is not None
                rest = rest[-_LONGEST_MATCH:] if match is None else rest[match.start() :]
            if is_found and len(rest) >= size:
                break
    return rest[:size] if is_found else b""


def cut_lines(path: Path, blocks: Iterable[bytes], most: int, *, quoted: bool = False) -> Iterator[bytes]:
    """Yield blocks that end where lines end, where `quoted` outside of quotes; a line may have so many bytes."""
    rest = b""
    for block in blocks:
        rest += block
        cut = _end_of_rows(rest) if quoted else rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        elif len(rest) > most:
            raise needs_whole(path, f"a line or a quoted cell is longer than {most:,} bytes")
    if rest:
        yield rest


def _end_of_rows(data: bytes) -> int:
    """Return the end of the last line that ends outside of quotes; 0 where none does."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    text = np.frombuffer(data, dtype=np.uint8)
    quotes, ends = np.flatnonzero(text == ord('"')), np.flatnonzero(text == ord("\n"))
    outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def joined_tail(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks; one that is less than half of their size comes with the block in front of it."""
    held = b""
    for block in blocks:
        if held and len(block) * 2 >= size:
            yield held
            held = b""
        held += block
    if held:
        yield held
