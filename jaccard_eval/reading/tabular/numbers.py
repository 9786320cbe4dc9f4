"""Cells of text to numbers and flags: plain ASCII decimals and nothing else, a whole column at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray

TextArray = npt.NDArray[np.object_]  # of str
RowIndices = npt.NDArray[np.int64]

_DECIMAL = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+\s*", re.ASCII)
_PACKED = re.compile(r"\s*[\[(]?\s*" + r"(?:\s*,\s*|\s+)".join([r"([^\s,\[\]()]+)"] * 4) + r"\s*[\])]?\s*")
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)  # at most 18 digits: fits int64
_FLAG_VALUES = {"": False, "0": False, "false": False, "1": True, "true": True}


def parse_numbers(cells: TextArray) -> tuple[FloatArray, RowIndices]:
    """Return the numbers (n,) and the rows whose cell is no finite plain decimal; the number there is NaN."""
    try:
        numbers = cells.astype(np.float64)
    except ValueError:
        return _parse_each(cells)
    # float() also takes 1_000, digits of other scripts, nan and inf.
    text = "".join(cells)
    if text.isascii() and "_" not in text and bool(np.isfinite(numbers).all()):
        return numbers, np.empty(0, dtype=np.int64)
    return _parse_each(cells)


def parse_flags(cells: TextArray) -> tuple[BoolArray, RowIndices]:
    """Return the flags (n,) and the rows whose cell is none of 0, 1, true, false or empty (false)."""
    values = {cell: _FLAG_VALUES.get(cell.strip().lower()) for cell in set(cells)}
    read = [values[cell] for cell in cells]
    bad = [row for row, value in enumerate(read) if value is None]
    return np.array([bool(value) for value in read], dtype=np.bool_), np.array(bad, dtype=np.int64)


def parse_integers(texts: Sequence[str]) -> list[int] | None:
    """Return the integers that `texts` are when all are written as one is printed, else None."""
    return [int(text) for text in texts] if all(map(_INTEGER.fullmatch, texts)) else None


def split_packed(cells: TextArray) -> tuple[list[TextArray], RowIndices]:
    """Split cells such as "[1, 2, 3, 4]" or "1 2 3 4" into four columns; return the rows of those that have no four."""
    matches = [_PACKED.fullmatch(cell) for cell in cells]
    bad = [row for row, match in enumerate(matches) if match is None]
    parts = [("0", "0", "0", "0") if match is None else match.groups() for match in matches]
    table = np.array(parts, dtype=np.object_).reshape(-1, 4)
    return [table[:, column] for column in range(4)], np.array(bad, dtype=np.int64)


def has_decimal_commas(columns: Sequence[TextArray], delimiter: str) -> bool:
    """Whether numbers are written 10,5 throughout: some with a comma, none with a point, not all like 1,000.

    Where commas separate the cells, half of the numbers must have one: there a single one is rather a mistake.
    """
    with_comma = [cell for column in columns if "," in "".join(column) for cell in column if "," in cell]
    enough = 1 if delimiter != "," else max(1, sum(map(len, columns)) / 2)
    if len(with_comma) < enough or any("." in "".join(column) for column in columns):
        return False
    return not all(map(_THOUSANDS.fullmatch, with_comma))


def replace_commas(cells: TextArray) -> TextArray:
    """Return the cells with decimal points instead of decimal commas."""
    return np.array([cell.replace(",", ".") for cell in cells], dtype=np.object_)


def _parse_each(cells: TextArray) -> tuple[FloatArray, RowIndices]:
    plain = (float(cell) if _DECIMAL.fullmatch(cell) else np.nan for cell in cells)
    numbers = np.fromiter(plain, dtype=np.float64, count=len(cells))
    bad = ~np.isfinite(numbers)
    return np.where(bad, np.nan, numbers), np.flatnonzero(bad)
