"""Columns of typed cells: what the reading of boxes asks of one, and columns of Python values as JSON gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import shown
from jaccard_eval.reading.keys import CodedKeys
from jaccard_eval.reading.tabular.table import Codes

_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", dict: "an object", list: "a list"}
_INT64 = range(-(2**63), 2**63)


class Column(Protocol):
    """A column of cells; each reading of it also returns which of the rows asked for hold something else (positions).

    Where a cell is missing, numbers are NaN, flags are false, and keys hold something else.
    """

    @property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""

    def numbers(self, rows: Codes) -> tuple[FloatArray, Codes]:
        """Return some cells as numbers (m,)."""

    def packed(self, rows: Codes) -> tuple[FloatArray, Codes]:
        """Return some cells as four numbers each (m, 4)."""

    def flags(self, rows: Codes) -> tuple[BoolArray, Codes]:
        """Return some cells as flags (m,)."""

    def keys(self, rows: Codes) -> tuple[CodedKeys, Codes]:
        """Return some cells as whole numbers or texts that are not empty (m,)."""

    def shown(self, row: int) -> str:
        """Return a cell for a message."""


@dataclass(frozen=True)
class ValueColumn:
    """A column of Python values, None where there is none.

    Parameters
    ----------
    values : sequence
    """

    values: Sequence[Any]

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""
        return np.array([value is not None for value in self.values], dtype=np.bool_)

    def numbers(self, rows: Codes) -> tuple[FloatArray, Codes]:
        """Return some cells as numbers (m,)."""
        return _numbers([self.values[row] for row in rows])

    def packed(self, rows: Codes) -> tuple[FloatArray, Codes]:
        """Return some cells as four numbers each (m, 4)."""
        lists = [self.values[row] for row in rows]
        whole = [
            one if isinstance(one, list | tuple) and len(one) == 4 else (None if one is None else "",) * 4
            for one in lists
        ]
        numbers, bad = _numbers([number for four in whole for number in four])
        return numbers.reshape(-1, 4), np.unique(bad // 4)

    def flags(self, rows: Codes) -> tuple[BoolArray, Codes]:
        """Return some cells as flags (m,)."""
        values = (self.values[row] for row in rows)
        return flags_of(*_numbers([int(one) if isinstance(one, bool) else one for one in values]))

    def keys(self, rows: Codes) -> tuple[CodedKeys, Codes]:
        """Return some cells as whole numbers or texts that are not empty (m,)."""
        found = [read_key(self.values[row]) for row in rows]
        at: dict[Key, int] = {}
        codes = [at.setdefault("" if key is None else key, len(at)) for key in found]
        bad = [row for row, key in enumerate(found) if key is None]
        return CodedKeys(list(at), np.array(codes, dtype=np.int64)), np.array(bad, dtype=np.int64)

    def shown(self, row: int) -> str:
        """Return a cell for a message."""
        value = self.values[row]
        return "null" if value is None else f"{shown(value)} ({_KINDS.get(type(value), type(value).__name__)})"


def flags_of(numbers: FloatArray, bad: Codes) -> tuple[BoolArray, Codes]:
    """Return which numbers are 1, and the positions of those that are neither 1 nor 0, the bad ones among them."""
    odd = ~((numbers == 0) | (numbers == 1) | np.isnan(numbers))
    return numbers == 1, np.union1d(bad, np.flatnonzero(odd)).astype(np.int64)


def key_of_number(number: float) -> int | None:
    """Return the whole number that a float is, None where it is none that 64 bits hold."""
    if not math.isfinite(number) or number != math.floor(number):
        return None
    return int(number) if int(number) in _INT64 else None


def read_key(value: Any) -> Key | None:
    """Return a key; None of what is none. A float is one where it is whole: tables with gaps have no other numbers."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return key_of_number(value) if isinstance(value, float) else (value if value in _INT64 else None)


def _numbers(values: list[Any]) -> tuple[FloatArray, Codes]:
    """Return numbers (m,), NaN for None, and the positions of what is neither."""
    numbers = np.full(len(values), np.nan)
    bad = []
    for at, value in enumerate(values):
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers[at] = _float(value)
        elif value is not None:
            bad.append(at)
    return numbers, np.array(bad, dtype=np.int64)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
