"""A table of typed columns: its cells as a sheet has them, and ids that stand beside names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import FindingLog, Where
from jaccard_eval.reading.keys import CodedKeys
from jaccard_eval.reading.tabular.columns import CLASS, CLASS_IDS, IMAGE, Columns, position_of
from jaccard_eval.reading.tabular.objects.columns import Column
from jaccard_eval.reading.tabular.table import Codes, Named, first_names, pair_names

IMAGE_IDS = tuple(name for name in IMAGE if name.endswith("_id"))
CLASS_NAMES = tuple(name for name in CLASS if name not in CLASS_IDS)
IMAGE_NAMES = tuple(name for name in IMAGE if name not in IMAGE_IDS)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that have a box each, or name an image without one.

    Parameters
    ----------
    cells : mapping of str to Column
        All columns by name, each of n rows.
    n_rows : int
    place : callable
        From a row and the name of a column, or None, to their place in the input.
    findings : FindingLog
    listed : bool
        Whether the rows name all images there are.
    units : {"px", "norm"}, optional
        Of the boxes, where the file says so.
    class_names : mapping of str to mapping of int or str to str
        Names of classes by key, in their order, for the columns that have the keys.
    named : bool
        Whether these names are more than the keys as text.
    keyed : bool
        Whether columns of ids are the keys, whatever stands in those of names.
    bare : ndarray of bool, shape (n,), optional
        Which rows stand for an image without boxes; where it is not known, those without a box do.
    """

    cells: Mapping[str, Column]
    n_rows: int
    place: Callable[[int, str | None], Where]
    findings: FindingLog
    listed: bool = False
    units: str | None = None
    class_names: Mapping[str, Mapping[Key, str]] = field(default_factory=dict)
    named: bool = True
    keyed: bool = False
    bare: BoolArray | None = None

    def __len__(self) -> int:
        return self.n_rows

    @cached_property
    def header(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(self.cells)

    @property
    def headerless(self) -> bool:
        """Whether the names are not in the file: they always are."""
        return False

    def column(self, position: int) -> Column:
        """Return a column."""
        return self.cells[self.header[position]]

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row, or of one of its cells."""
        return self.place(row, None if column is None else self.header[column])

    def has_value(self, column: int, rows: Codes) -> BoolArray:
        """Return which cells of a column hold anything."""
        return self.column(column).filled[rows]

    def images(self, columns: Columns, rows: Codes) -> Named:
        """Return the images of some rows: by id where ids and names stand side by side, one for each."""
        ids, names = position_of(self.header, IMAGE_IDS), position_of(self.header, IMAGE_NAMES)
        paired = None if ids is None or names is None else self._by_id(ids, names, rows)
        if paired is None:
            return Named(keys=self._keys(columns.image, rows), names={})
        return replace(paired, beside=ids if columns.image == names else names)

    def classes(self, columns: Columns, rows: Codes) -> Named:
        """Return the classes of some rows: by id where ids stand beside names, else with the names of the file."""
        ids = position_of(self.header, CLASS_IDS)
        paired = None if ids is None or ids == columns.label else self._by_id(ids, columns.label, rows)
        if paired is not None:
            return paired
        keys = self._keys(columns.label, rows)
        given = self.class_names.get(self.header[columns.label], {})
        fitting = given.keys() >= set(keys.distinct) or all(isinstance(key, int) for key in keys.distinct)
        beside = position_of(self.header, CLASS_NAMES) if self.keyed and ids == columns.label else None
        return Named(keys=keys, names=given if fitting else {}, named=self.named, beside=beside)

    def _keys(self, column: int, rows: Codes) -> CodedKeys:
        return self.column(column).keys(rows)[0]

    def _by_id(self, ids: int, names: int, rows: Codes) -> Named | None:
        """Return ids and the names beside them, None where the two columns do not go together."""
        if not self.has_value(ids, rows).all():
            return None
        keys, bad = self.column(ids).keys(rows)
        given = rows[self.has_value(names, rows)]
        pair = first_names if self.keyed else pair_names
        paired = {} if len(bad) else pair(self._keys(ids, given), self._keys(names, given))
        return Named(keys=keys, names=paired, beside=ids) if paired else None
