"""A table of typed columns on its way to a draft: which column is what, and ids that stand beside names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import FindingLog, Where
from jaccard_eval.formats._csv.boxes import add_boxes
from jaccard_eval.formats._csv.columns import CLASS_IDS, IMAGE, Columns, position_of, resolve_columns
from jaccard_eval.formats._csv.table import Codes, Named, pair_names
from jaccard_eval.formats._draft import Draft
from jaccard_eval.formats._keys import CodedKeys
from jaccard_eval.formats._objects.columns import Column

IMAGE_IDS = tuple(name for name in IMAGE if name.endswith("_id"))
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
    class_names : mapping of int or str to str
        Names of classes by key, in their order.
    named : bool
        Whether these names are more than the keys as text.
    """

    cells: Mapping[str, Column]
    n_rows: int
    place: Callable[[int, str | None], Where]
    findings: FindingLog
    listed: bool = False
    units: str | None = None
    class_names: Mapping[Key, str] = field(default_factory=dict)
    named: bool = True

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
        paired = None if names is None else self._by_id(ids, names, rows)
        if paired is None:
            return Named(keys=self._keys(columns.image, rows), names={})
        return replace(paired, beside=ids if columns.image == names else names)

    def classes(self, columns: Columns, rows: Codes) -> Named:
        """Return the classes of some rows: by id where ids stand beside names, else with the names of the file."""
        paired = self._by_id(position_of(self.header, CLASS_IDS), columns.label, rows)
        if paired is not None:
            return paired
        keys = self._keys(columns.label, rows)
        numbered = all(isinstance(key, int) for key in keys.distinct)
        fitting = numbered or self.class_names.keys() >= set(keys.distinct)
        return Named(keys=keys, names=self.class_names if fitting else {}, named=self.named)

    def _keys(self, column: int, rows: Codes) -> CodedKeys:
        return self.column(column).keys(rows)[0]

    def _by_id(self, ids: int | None, names: int, rows: Codes) -> Named | None:
        """Return ids and the names beside them, None where there is no column of ids that goes with the names."""
        if ids is None or ids == names or not self.has_value(ids, rows).all():
            return None
        keys, bad = self.column(ids).keys(rows)
        given = rows[self.has_value(names, rows)]
        paired = {} if len(bad) else pair_names(self._keys(ids, given), self._keys(names, given))
        return Named(keys=keys, names=paired, beside=ids) if paired else None


def add_table(table: Table, draft: Draft) -> None:
    """Add images, classes and boxes to the draft; what cannot be used is among its findings."""
    from jaccard_eval.formats._objects.cells import read_cells

    columns = resolve_columns(table.header, draft.options, draft.findings, Where(draft.path))
    if columns is None:
        return
    columns = _with_image_keys(table, columns)
    cells = read_cells(table, columns, draft)
    draft.findings.raise_errors()  # what follows takes the cells for good
    add_boxes(table, columns, cells, draft)


def _with_image_keys(table: Table, columns: Columns) -> Columns:
    """Take the column of ids for that of images where some names are missing and no id is."""
    ids = position_of(table.header, IMAGE_IDS)
    complete = ids is not None and bool(table.column(ids).filled.all())
    if ids is None or not complete or table.column(columns.image).filled.all():
        return columns
    unused = (columns.image, *(one for one in columns.unused if one != ids))
    return replace(columns, image=ids, unused=tuple(sorted(unused)))
