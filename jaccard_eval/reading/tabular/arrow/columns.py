"""Columns of an Arrow table, whatever their types: integers, floats, decimals, texts, dictionaries, lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import shown
from jaccard_eval.extras import require
from jaccard_eval.reading.keys import CodedKeys
from jaccard_eval.reading.tabular.objects.columns import flags_of, read_key
from jaccard_eval.reading.tabular.table import Codes

EXTRA = "parquet"
MAX_SHOWN_ENTRIES = 20  # of a list that a message repeats


@dataclass(frozen=True)
class ArrowColumn:
    """A column of an Arrow table; see `jaccard_eval.reading.tabular.objects.columns.Column`.

    Parameters
    ----------
    chunks : pyarrow.ChunkedArray
    """

    chunks: Any

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""
        if not self.chunks.null_count:
            return np.ones(len(self.chunks), dtype=np.bool_)
        valid: BoolArray = _numpy(self.chunks.is_valid())
        return valid

    def numbers(self, rows: Codes) -> tuple[FloatArray, Codes]:
        """Return some cells as numbers (m,)."""
        if not _is_number(self._plain.type):
            return np.full(len(rows), np.nan), self._all_filled(rows)
        return self._numbers[rows] if len(rows) < len(self._numbers) else self._numbers, _no_rows()

    def packed(self, rows: Codes) -> tuple[FloatArray, Codes]:
        """Return some cells as four numbers each (m, 4)."""
        values = self._plain.combine_chunks()
        is_list = hasattr(values.type, "value_type") and _is_number(values.type.value_type)
        if not is_list:
            return np.full((len(rows), 4), np.nan), self._all_filled(rows)
        compute = require("pyarrow.compute", extra=EXTRA)
        whole = compute.fill_null(compute.equal(compute.list_value_length(values), 4), False)
        four = compute.list_flatten(values.filter(whole))
        is_whole: BoolArray = _numpy(whole)
        coords = np.full((len(values), 4), np.nan)
        coords[is_whole] = _floats(four).reshape(-1, 4)
        return coords[rows], np.flatnonzero((self.filled & ~is_whole)[rows])

    def flags(self, rows: Codes) -> tuple[BoolArray, Codes]:
        """Return some cells as flags (m,)."""
        arrow = require("pyarrow", extra=EXTRA)
        column = ArrowColumn(self.chunks.cast(arrow.int8())) if arrow.types.is_boolean(self.chunks.type) else self
        return flags_of(*column.numbers(rows))

    def keys(self, rows: Codes) -> tuple[CodedKeys, Codes]:
        """Return some cells as whole numbers or texts that are not empty (m,)."""
        if len(rows) == len(self.chunks):
            return self._all_keys
        distinct, codes = self._coded
        return _used_keys(distinct, codes[rows])

    def shown(self, row: int) -> str:
        """Return a cell for a message, with the type of the column."""
        cell = self.chunks[row]
        is_list = isinstance(cell, require("pyarrow", extra=EXTRA).ListScalar) and cell.is_valid
        if is_list and len(cell.values) > MAX_SHOWN_ENTRIES:  # one of nulls claims billions in a few bytes
            return f"a list of {len(cell.values):,} entries ({self._plain.type})"
        value = cell.as_py()
        return "null" if value is None else f"{shown(value)} ({self._plain.type})"

    @cached_property
    def _all_keys(self) -> tuple[CodedKeys, Codes]:
        return _used_keys(*self._coded)

    @cached_property
    def _plain(self) -> Any:
        """The cells themselves, where the file has indices of a dictionary."""
        arrow = require("pyarrow", extra=EXTRA)
        if not arrow.types.is_dictionary(self.chunks.type):
            return self.chunks
        return self.chunks.cast(self.chunks.type.value_type)

    @cached_property
    def _numbers(self) -> FloatArray:
        return _floats(self._plain)

    @cached_property
    def _coded(self) -> tuple[list[Key | None], Codes]:
        """Distinct keys, None for what is none, and the row of each cell among them."""
        arrow = require("pyarrow", extra=EXTRA)
        if not _is_key(self.chunks.type):
            return [None], np.zeros(len(self.chunks), dtype=np.int64)
        coded = self.chunks if arrow.types.is_dictionary(self.chunks.type) else self.chunks.dictionary_encode()
        coded = coded.unify_dictionaries().combine_chunks()
        coded = coded.combine_chunks() if isinstance(coded, arrow.ChunkedArray) else coded
        at: dict[Key | None, int] = {None: 0}
        places = [at.setdefault(read_key(value), len(at)) for value in coded.dictionary.to_pylist()]
        codes = _numpy(coded.indices.cast(arrow.int64()).fill_null(len(places)))
        return list(at), np.array([*places, 0], dtype=np.int64)[codes]

    def _all_filled(self, rows: Codes) -> Codes:
        return np.flatnonzero(self.filled[rows])


def _used_keys(distinct: list[Key | None], codes: Codes) -> tuple[CodedKeys, Codes]:
    """Return keys without those that no cell has, and the cells that have none."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(distinct)))
    places = np.zeros(len(distinct), dtype=np.int64)
    places[used] = np.arange(len(used))
    found = [distinct[code] for code in used.tolist()]
    keys: list[Key] = ["" if key is None else key for key in found]
    bad = np.flatnonzero(codes == distinct.index(None))
    return CodedKeys(keys, places[codes]), bad


def _is_number(kind: Any) -> bool:
    types = require("pyarrow", extra=EXTRA).types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def _is_key(kind: Any) -> bool:
    types = require("pyarrow", extra=EXTRA).types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_text or types.is_integer(kind) or types.is_floating(kind))


def _floats(values: Any) -> FloatArray:
    """Return numbers as float64, NaN for null."""
    numbers: FloatArray = _numpy(values.cast("float64", safe=False))
    return numbers


def _numpy(values: Any) -> Any:
    arrow = require("pyarrow", extra=EXTRA)
    return values.to_numpy() if isinstance(values, arrow.ChunkedArray) else values.to_numpy(zero_copy_only=False)


def _no_rows() -> Codes:
    return np.zeros(0, dtype=np.int64)
