"""Results of COCO in parts: a list is cut between its elements, JSON Lines between lines.

Each part is read as the whole would be. What is neither, such as an object with annotations, is read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.formats._coco.dataset import read_content, read_file
from jaccard_eval.formats._coco.strict import ResultRecord
from jaccard_eval.reading.blocks import cut_lines, needs_whole, open_blocks, part_of
from jaccard_eval.reading.draft import Draft

RECORD_BYTES = 100  # of a result, about, for so many of them at a time
LONGEST = 8  # parts that one element may take: one that never ends must not fill the memory

_BLANKS = b" \t\r\n"
_QUOTE, _ESCAPE = ord('"'), ord("\\")
_STEPS = np.zeros(256, dtype=np.int8)  # by how much a byte changes the depth
_STEPS[[*b"[{"]] = 1
_STEPS[[*b"]}"]] = -1
_IS_MARK = _STEPS != 0
_IS_MARK[_QUOTE] = True
_LINE = msgspec.json.Decoder(ResultRecord)


def read_in_parts(path: Path, draft: Draft, rows: int) -> Iterator[Draft]:
    """Yield drafts with the boxes of about so many results each; ground truth is one part."""
    if draft.options.role == "gt":
        with part_of(draft) as part:
            read_file(path, part, draft.options)
            yield part
        return
    size = rows * RECORD_BYTES
    with open_blocks(path, size) as blocks:
        first = next(blocks)
        start = first.lstrip(_BLANKS)
        if start.startswith(b"["):
            yield from _parts(path, draft, _cut_list(path, first, blocks, LONGEST * size))
        elif _starts_with_line(start):
            yield from _parts(path, draft, cut_lines(path, chain([first], blocks), LONGEST * size))
        else:
            raise needs_whole(path, "only results lists and JSON Lines are read in parts")


def _parts(path: Path, draft: Draft, pieces: Iterable[bytes]) -> Iterator[Draft]:
    n_lines = n_records = 0
    for piece in pieces:
        if piece.strip(_BLANKS):
            with part_of(draft, lines=n_lines, records=n_records) as part:
                read_content(path, piece, part, draft.options)
                yield part
            n_records += part.n_boxes
        n_lines += piece.count(b"\n")


def _starts_with_line(start: bytes) -> bool:
    """Whether the first of several lines is a result."""
    line, _, rest = start.partition(b"\n")
    try:
        _LINE.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return bool(rest.strip())


def _cut_list(path: Path, first: bytes, blocks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield arrays of the elements of one array, of as many as a block has whole; together they have its bytes."""
    rest = b""
    n_pieces, is_open = 0, True
    opened = first.index(b"[") + 1
    for block in chain([first[opened:]], blocks):
        rest += block
        if not is_open:
            continue
        cut, is_open = _end_of_elements(rest)
        if cut or not is_open:
            piece = _as_array(path, rest[:cut], first[:opened] if n_pieces == 0 else b"")
            yield piece
            n_pieces += 1
            rest = rest[cut:] if is_open else rest[cut + 1 :]
        elif len(rest) > most:
            raise needs_whole(path, f"one element is longer than {most:,} bytes")
    if is_open or rest.strip(_BLANKS):
        raise needs_whole(path, "the array is not closed, or something follows it")


def _as_array(path: Path, elements: bytes, opening: bytes) -> bytes:
    """Return elements as an array of their own: the comma in front of them opens it, unless something else does."""
    before, comma, others = (opening[:-1], b"[", elements) if opening else elements.partition(b",")
    if before.strip(_BLANKS) or (comma and not others.strip(_BLANKS)):
        raise needs_whole(path, "an element of the array is missing, or not separated from the next one")
    return b"".join((before, b"[", others, b"]")) if comma else before


def _end_of_elements(data: bytes) -> tuple[int, bool]:
    """Return the end of the last whole element, and true; where the array around them ends here, that end and false."""
    text = np.frombuffer(data, dtype=np.uint8)
    marks = np.flatnonzero(_IS_MARK[text])
    kinds = text[marks]
    is_quote = kinds == _QUOTE
    if b"\\" in data:
        is_quote[is_quote] = ~_are_escaped(text, marks[is_quote])
    steps = np.where(np.cumsum(is_quote) % 2, 0, _STEPS[kinds])
    depth = np.cumsum(steps, dtype=np.int32)
    below = np.flatnonzero(depth < 0)
    if len(below):
        return int(marks[below[0]]), False
    ends = np.flatnonzero((depth == 0) & (steps < 0))
    return (int(marks[ends[-1]]) + 1 if len(ends) else 0), True


def _are_escaped(text: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which quotes stand behind an odd number of backslashes."""
    slashes = np.flatnonzero(text == _ESCAPE)
    begins = np.diff(slashes, prepend=-2) > 1
    order = np.arange(len(slashes))
    length = order - np.maximum.accumulate(np.where(begins, order, 0)) + 1  # of the run that ends at each
    at = np.searchsorted(slashes, quotes) - 1
    return np.asarray((at >= 0) & (slashes[at] == quotes - 1) & (length[at] % 2 == 1))
