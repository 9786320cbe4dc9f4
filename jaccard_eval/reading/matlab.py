"""What MATLAB 5 files hold: cells, texts and numbers. All else in them is nothing that a list of boxes needs."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading import files

HEADER = 128  # bytes, with the order of bytes at its end
LARGEST = 1 << 28  # bytes of one variable, unpacked: the lists of WIDER FACE have a few MB
DEEPEST = 8  # cells in cells
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
}
_CELL, _CHAR = 1, 4


def read_variables(path: Path) -> dict[str, Any]:
    """Return the variables by name: lists of what cells hold, column by column, texts, arrays and maps of numbers."""
    with files.open_regular(path) as file:
        data = file.read(LARGEST)
    try:
        order = {b"IM": "<", b"MI": ">"}[data[HEADER - 2 : HEADER]]
        found: dict[str, Any] = {}
        for kind, content in _elements(data[HEADER:], order):
            packed = kind == _COMPRESSED
            inner = _elements(zlib.decompressobj().decompress(content, LARGEST), order) if packed else [(kind, content)]
            found |= dict(_matrix(part, order, 0) for kind_of_part, part in inner if kind_of_part == _MATRIX)
    except (KeyError, ValueError, IndexError, struct.error, zlib.error, RecursionError):
        fix = "Save it again in MATLAB with save(..., '-v7')."
        raise DataError.single("wrong-content", Where(str(path)), "is not a MATLAB 5 file of cells", fix=fix) from None
    return found


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # up to four bytes stand in the place of the size
            yield kind & 0xFFFF, data[at + 4 : at + 4 + (kind >> 16)]
            at += 8
            continue
        if at + 8 + size > len(data):
            raise ValueError(size)
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + size + (-size % 8 if kind != _COMPRESSED else 0)


def _matrix(data: bytes, order: str, depth: int) -> tuple[str, Any]:
    if not data:
        return "", np.zeros(0)
    if depth > DEEPEST:
        raise ValueError(depth)
    (_, flags), (_, shape), (_, name), *parts = _elements(data, order)
    kind = struct.unpack_from(f"{order}I", flags)[0] & 0xFF
    text = name.decode("ascii", "replace")
    if kind == _CELL:
        return text, [_matrix(content, order, depth + 1)[1] for _, content in parts]
    values = np.frombuffer(parts[0][1], dtype=f"{order}{_NUMBERS[parts[0][0]]}") if parts else np.zeros(0)
    if kind == _CHAR:
        return text, "".join(map(chr, values.tolist()))
    sides = np.frombuffer(shape, dtype=f"{order}i4").tolist()
    # Columns and rows are lists here. What structures hold is not looked at.
    is_map = min(sides) > 1 and math.prod(sides) == len(values)
    return text, values.astype(np.float64).reshape(sides if is_map else -1, order="F")
