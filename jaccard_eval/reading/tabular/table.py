"""The one table of boxes: columns of texts, numbers or values, whatever file they come from, and what their cells mean.

A row has a box, or names an image without one. What a table means (units, encodings, notes) is decided in `boxes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Key, key_order
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.reading.tabular.columns import (
    CLASS_IDS,
    CLASS_NAMES,
    IMAGE_IDS,
    IMAGE_NAMES,
    Columns,
    RowIndices,
    parse_flags,
    parse_integers,
    parse_numbers,
    position_of,
    replace_commas,
    split_packed,
)
from jaccard_eval.text import quoted_value

_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", dict: "an object", list: "a list"}
_WHOLE = pattern(r"[0-9]+\.0+")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Column:
    """A column of cells: Python values, None where there is none; columns of one type read theirs at once.

    A reading also returns which of the rows asked for hold something else (positions). Where a cell is missing, numbers
    are NaN, flags are false, and keys hold something else.
    """

    values: Any  # n of them, by position
    number_fix: ClassVar[str] = "Write numbers; convert text before writing."
    box_fix: ClassVar[str] = "Give each box a list of four numbers."

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""
        return np.array([value is not None for value in self.values], dtype=np.bool_)

    def numbers(self, rows: RowIndices) -> tuple[FloatArray, RowIndices]:
        """Return some cells as numbers (m,)."""
        return _as_floats([self.values[row] for row in rows])

    def packed(self) -> tuple[Sequence[Column], BoolArray]:
        """Return all cells as four columns of n numbers, and which of them are not four."""
        lists = [
            cell if isinstance(cell, list | tuple) and len(cell) == 4 else (None if cell is None else "",) * 4
            for cell in self.values
        ]
        numbers, bad = _as_floats([number for four in lists for number in four])
        return [NumberColumn(column) for column in numbers.reshape(-1, 4).T], np.isin(np.arange(len(lists)), bad // 4)

    def flags(self, rows: RowIndices) -> tuple[BoolArray, RowIndices]:
        """Return some cells as flags (m,)."""
        values = (self.values[row] for row in rows)
        return flags_of(*_as_floats([int(value) if isinstance(value, bool) else value for value in values]))

    def keys(self, rows: RowIndices) -> tuple[CodedKeys, RowIndices]:
        """Return some cells as whole numbers or texts that are not empty (m,), the distinct ones as they appear."""
        found = [read_key(self.values[row]) for row in rows]
        at: dict[Key, int] = {}
        codes = [at.setdefault("" if key is None else key, len(at)) for key in found]
        bad = [row for row, key in enumerate(found) if key is None]
        return CodedKeys(list(at), np.array(codes, dtype=np.int64)), np.array(bad, dtype=np.int64)

    def shown(self, row: int) -> str:
        """Return a cell for a message."""
        value = self.values[row]
        return "null" if value is None else f"{quoted_value(value)} ({_KINDS.get(type(value), type(value).__name__)})"

    def why_no_number(self, row: int) -> str:
        """Report a cell that is not a number."""
        return f"{self.shown(row)} is not a number"


@dataclass(frozen=True)
class TextColumn(Column):
    """A column of texts, as delimited files have them. Each distinct text is parsed once, however often it occurs."""

    values: CodedKeys  # all distinct texts in order of appearance
    commas: bool = False  # whether numbers are written 10,5
    number_fix: ClassVar[str] = "Write numbers like 12.5: ASCII digits and a point, no units, separators, nan or inf."
    box_fix: ClassVar[str] = 'Write a packed box like "[10, 20, 100, 200]".'

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""
        filled: BoolArray = (self._texts != "")[self.values.codes]
        return filled

    def numbers(self, rows: RowIndices) -> tuple[FloatArray, RowIndices]:
        """Return some cells as numbers (m,); an empty one is none."""
        numbers, bad = self._numbers
        codes = self.values.codes[rows]
        return numbers[codes], np.flatnonzero(np.isin(codes, bad))

    def packed(self) -> tuple[Sequence[TextColumn], BoolArray]:
        """Return all cells as four columns of n texts, and which of them are not four."""
        parts, bad = split_packed(self._texts)
        columns = [replace(self, values=CodedKeys(part.tolist(), self.values.codes)) for part in parts]
        return columns, np.isin(self.values.codes, bad)

    def flags(self, rows: RowIndices) -> tuple[BoolArray, RowIndices]:
        """Return some cells as flags (m,)."""
        flags, bad = parse_flags(self._texts)
        codes = self.values.codes[rows]
        return flags[codes], np.flatnonzero(np.isin(codes, bad))

    def keys(self, rows: RowIndices) -> tuple[CodedKeys, RowIndices]:
        """Return some cells as texts (m,), the distinct ones as they appear; empty ones are texts as well."""
        # Of all rows the codes are in order already, which is most tables' case and saves a sort.
        taken = self.values if len(rows) == len(self.values) else self.values.take(rows)
        # pandas writes the ids 1 and 2 as 1.0 and 2.0 when a cell of their column was ever missing.
        if all(map(is_whole_decimal, taken.distinct)):
            whole = [str(text).rstrip("0").removesuffix(".") for text in taken.distinct]
            taken = CodedKeys(whole, taken.codes) if len(whole) == len(set(whole)) else taken
        return taken, np.empty(0, dtype=np.int64)

    def shown(self, row: int) -> str:
        """Return a cell for a message."""
        return quoted_value(self.values[row])

    def why_no_number(self, row: int) -> str:
        """Report a cell that is not a number."""
        text = str(self.values[row])
        comma = " (a decimal comma? these are read if half of all numbers have one)" if "," in text else ""
        return f"{self.shown(row)} is not a plain finite number{comma}" if text.strip() else "the cell is empty"

    @cached_property
    def _texts(self) -> npt.NDArray[np.object_]:
        return np.array(self.values.distinct, dtype=np.object_)

    @cached_property
    def _numbers(self) -> tuple[FloatArray, RowIndices]:
        return parse_numbers(replace_commas(self._texts) if self.commas else self._texts)


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of float64, NaN where there is none: what it holds is that of values, read at once."""

    values: FloatArray

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""
        return ~np.isnan(self.values)

    def numbers(self, rows: RowIndices) -> tuple[FloatArray, RowIndices]:
        """Return some cells as numbers (m,)."""
        # All of them are most tables' case, and need no copy.
        return self.values if len(rows) == len(self.values) else self.values[rows], np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PackedColumn(Column):
    """A column of boxes, four float64 each, shape (n, 4)."""

    values: FloatArray

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,): all."""
        return np.ones(len(self.values), dtype=np.bool_)

    def packed(self) -> tuple[Sequence[Column], BoolArray]:
        """Return all cells as four columns of n numbers, and which of them are not four: none."""
        return [NumberColumn(numbers) for numbers in self.values.T], np.zeros(len(self.values), dtype=np.bool_)


def flags_of(numbers: FloatArray, bad: RowIndices) -> tuple[BoolArray, RowIndices]:
    """Return which numbers are 1, and the positions of those that are neither 1 nor 0, the bad ones among them."""
    odd = ~((numbers == 0) | (numbers == 1) | np.isnan(numbers))
    return numbers == 1, np.union1d(bad, np.flatnonzero(odd)).astype(np.int64)


def is_whole_decimal(text: Key) -> bool:
    """Whether a text is a whole number with decimals, such as 1.0."""
    return _WHOLE.fullmatch(str(text)) is not None


def read_key(value: Any) -> Key | None:
    """Return a key; None of what is none. A float is one where it is whole: tables with gaps have no other numbers."""
    if isinstance(value, str):
        return value if value.strip() else None
    # True is an int to Python, and no id to anybody.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and (not math.isfinite(value) or value != math.floor(value)):
        return None
    return int(value) if int(value) in _INT64 else None


def _as_floats(values: list[Any]) -> tuple[FloatArray, RowIndices]:
    """Return numbers (m,), NaN for None, and the positions of what is neither."""
    numbers = np.full(len(values), np.nan)
    bad = []
    for at, value in enumerate(values):
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                numbers[at] = value
            except OverflowError:  # an integer that no float holds
                numbers[at] = math.inf
        elif value is not None:
            bad.append(at)
    return numbers, np.array(bad, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Images or classes of rows, and what else the table holds about them."""

    keys: CodedKeys
    # Names of keys, in the order of reports; those without a box may be among them. Empty where keys are the names.
    names: Mapping[Key, str] = field(default_factory=dict)
    named: bool = True  # whether these names are more than the keys as text
    # Column of the keys, if there are names as well; no other list of names is asked then.
    beside: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that have a box each, or name an image without one."""

    header: tuple[str, ...]  # by what the columns mean, if the user names it
    titles: tuple[str, ...]  # the same as the file has it
    columns: Mapping[int, Column]  # by position, each of n rows; of columns that nobody asks for there may be none
    n_rows: int
    place: Callable[[int, str | None], Where]  # from a row and the name of a column, or None
    # Whether cells have types: then ids are keys of names, and a text is not a number. Delimited text has none.
    typed: bool = True
    headerless: bool = False  # whether the names are not in the file
    decimal_commas: bool = False  # whether numbers are written 10,5
    listed: bool = False  # whether the rows name all images there are
    units: str | None = None  # of the boxes, if the file has them
    # Names of classes by key, in their order, for the columns that have the keys.
    class_names: Mapping[str, Mapping[Key, str]] = field(default_factory=dict)
    named: bool = True  # whether these names are more than the keys as text
    # Whether columns of ids are the keys, whatever stands in those of names.
    keyed: bool = False
    of_box: Collection[str] | None = None  # titles of the columns about boxes; None where all may be
    # Which rows are images without boxes; if unknown, those without a box are.
    bare: BoolArray | None = None

    def __len__(self) -> int:
        return self.n_rows

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row, or of one of its cells."""
        return self.place(row, None if column is None else self.titles[column])

    def images(self, columns: Columns, rows: RowIndices) -> Named:
        """Return the images of some rows: by id where typed ids and names stand side by side, one for each.

        Texts are keys as they are written: 001 and 1 are two images.
        """
        ids, names = position_of(self.header, IMAGE_IDS), position_of(self.header, IMAGE_NAMES)
        if self.typed and ids is not None and names is not None:
            paired = self._by_id(ids, names, rows)
            if paired is not None:
                return replace(paired, beside=ids if columns.image == names else names)
        return Named(keys=self.columns[columns.image].keys(rows)[0])

    def classes(self, columns: Columns, rows: RowIndices) -> Named:
        """Return the classes of some rows: by id if there are ids and names, else with the names of the file.

        Texts are integers if every one is written as an integer; then no other column is asked.
        """
        ids = position_of(self.header, CLASS_IDS)
        keys, _ = self._ids(columns.label, rows)
        numbered = all(isinstance(key, int) for key in keys.distinct)
        if ids is not None and ids != columns.label and (self.typed or not numbered):
            paired = self._by_id(ids, columns.label, rows)
            if paired is not None:
                return paired
        given = self.class_names.get(self.titles[columns.label], {})
        # Indices that the file does not name are numbers all the same; a text that it does not name is a name.
        fitting = numbered or given.keys() >= set(keys.distinct)
        beside = position_of(self.header, CLASS_NAMES) if self.keyed and ids == columns.label else None
        return Named(keys=keys, names=given if fitting else {}, named=self.named, beside=beside)

    def _ids(self, column: int, rows: RowIndices) -> tuple[CodedKeys, bool]:
        """Return keys, texts as integers where all are written as one is printed; and whether they can be ids."""
        keys, bad = self.columns[column].keys(rows)
        if self.typed:
            return keys, not len(bad)
        # 01 and 1.0 are names, or writing them back would change them.
        integers = parse_integers([str(text) for text in keys.distinct])
        return (keys, False) if integers is None else (CodedKeys(integers, keys.codes), True)

    def _by_id(self, ids: int, names: int, rows: RowIndices) -> Named | None:
        """Return ids and their names, None if the two columns do not go together."""
        keys, are_ids = self._ids(ids, rows)
        given = rows[self.columns[names].filled[rows]]
        pair = _first_names if self.keyed else _pair_names
        paired = pair(self._ids(ids, given)[0], self.columns[names].keys(given)[0]) if are_ids else {}
        return Named(keys=keys, names=paired, beside=ids) if paired else None


def _pair_names(ids: CodedKeys, names: CodedKeys) -> dict[Key, str]:
    """Return the name of each id, sorted by id; none unless each has one, and no other has it."""
    first = _first_codes(ids, names)
    is_one_to_one = len(ids.distinct) == len(names.distinct) == len(np.unique(first))
    return _first_names(ids, names) if is_one_to_one and bool((first[ids.codes] == names.codes).all()) else {}


def _first_names(ids: CodedKeys, names: CodedKeys) -> dict[Key, str]:
    """Return the name of each id where it is first seen, sorted by id."""
    rows = _first_codes(ids, names).tolist()
    named = zip(ids.distinct, (str(names.distinct[row]) for row in rows), strict=True)
    return dict(sorted(named, key=lambda pair: key_order(pair[0])))


def _first_codes(ids: CodedKeys, names: CodedKeys) -> RowIndices:
    first = np.zeros(len(ids.distinct), dtype=np.int64)  # (ids,) of the rows of names
    first[ids.codes[::-1]] = names.codes[::-1]  # backwards: the first row is written last and stays
    return first


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCells:
    """The contents of the cells of a table, before images and classes are separated."""

    used: RowIndices  # rows that each name an image (m,)
    sizes: FloatArray | None  # of the image in each used row (m, 2), NaN where not given
    without_box: RowIndices  # used rows whose box cells are all empty
    rows: RowIndices  # those with a box (n,)
    coords: FloatArray  # (n, 4)
    score: FloatArray | None
    area: FloatArray | None
    flags: dict[str, BoolArray]
    n_unused_scores: int  # that ground truth has
    corners: FloatArray | None = None  # of oriented boxes (n, 4, 2); `coords` are then those around them
    angle: FloatArray | None = None  # (n,)

    def take(self, kept: BoolArray) -> BoxCells:
        """Return the cells with the boxes of a mask only; the used rows stay."""
        return replace(
            self,
            rows=self.rows[kept],
            coords=self.coords[kept],
            score=None if self.score is None else self.score[kept],
            area=None if self.area is None else self.area[kept],
            flags={name: values[kept] for name, values in self.flags.items()},
            corners=None if self.corners is None else self.corners[kept],
            angle=None if self.angle is None else self.angle[kept],
        )


def read_cells(table: Table, columns: Columns, findings: FindingLog) -> BoxCells:
    """Read every cell that matters; those that cannot be used are findings, by row, column and what they hold."""
    cells = _CellReader(table, findings)
    named = table.columns[columns.image].filled
    cells.report_empty(columns.image, np.flatnonzero(~named), "the row has no image")
    # A row of text without an image keeps its other faults; a typed one has no key that could be read.
    used = np.flatnonzero(named) if table.typed else np.arange(len(table))
    filled = np.stack([table.columns[column].filled[used] for column in columns.box]).T  # (m, 1 or 4)
    rows, without_box = used[filled.all(axis=1)], used[~filled.any(axis=1)]
    if table.bare is not None:  # an object without a box is not an image without objects
        cells.report_empty(columns.box[0], without_box[~table.bare[without_box]], "the object has no box")
    cells.report_partial(columns, used, filled)
    labelled = table.columns[columns.label].filled[rows]
    cells.report_empty(columns.label, rows[~labelled], "the box has no class")
    for column, keyed, what in (
        (columns.image, used, "Name each image by its file or a whole number."),
        (
            columns.label,
            rows[labelled],
            "Give each object one class, a text or a whole number; without one, remove it.",
        ),
    ):
        _, bad = table.columns[column].keys(keyed)
        cells.refuse(column, keyed[bad], "id-type", "is neither text nor a whole number", fix=what)
    # Findings come in the order of reading: typed tables report images before boxes, as their rows are images.
    sizes = cells.sizes(columns, used) if table.typed else None
    coords, corners = cells.coords(columns, rows), None
    if coords.shape[1] == 8:
        corners = coords.reshape(-1, 4, 2)
        coords = np.concatenate((corners.min(axis=1), corners.max(axis=1)), axis=1)
    if not table.typed:
        sizes = cells.sizes(columns, used)
    # A column in which no box has anything is none: exporters write the heading all the same.
    score, area = (
        None if column is None or not table.columns[column].filled[rows].any() else column
        for column in (columns.score, columns.area)
    )
    unused = columns.unused_score
    return BoxCells(
        used=used,
        sizes=sizes,
        without_box=without_box,
        rows=rows,
        coords=coords,
        score=None if score is None else cells.needed(score, rows, "the box has no score"),
        area=None if area is None else cells.numbers(area, rows, optional=True),
        flags={flag: cells.flags(column, rows) for flag, column in columns.flags.items()},
        corners=corners,
        angle=None if columns.angle is None else cells.needed(columns.angle, rows, "the box has no angle"),
        n_unused_scores=0 if unused is None else int(table.columns[unused].filled[rows].sum()),
    )


@dataclass(frozen=True, slots=True)
class _CellReader:
    """Reads cells of a table and reports those that do not hold what their column means."""

    table: Table
    findings: FindingLog

    def coords(self, columns: Columns, rows: RowIndices) -> FloatArray:
        """Return the numbers of each box: four from as many columns or from one, (n, 4), or eight, (n, 8)."""
        positions = columns.box
        box = [self.table.columns[position] for position in positions]
        if len(box) == 1:
            parts, is_bad = box[0].packed()
            self.refuse(positions[0], rows[is_bad[rows]], "csv-bbox", "is not four numbers", fix=box[0].box_fix)
            box, positions = list(parts), positions * len(parts)
        coords = np.empty((len(rows), len(box)))
        # One column after the other, so that there is never a second copy of them all.
        for side, (at, part) in enumerate(zip(positions, box, strict=True)):
            coords[:, side] = self.numbers(at, rows, part)
        return coords

    def numbers(
        self, position: int, rows: RowIndices, part: Column | None = None, *, optional: bool = False
    ) -> FloatArray:
        """Return the numbers of a column, or of a part of its cells; NaN where a cell that is optional is empty."""
        column = part or self.table.columns[position]
        numbers, bad = column.numbers(rows)
        wrong = rows[bad]
        if optional:
            wrong = wrong[column.filled[wrong]]

        def describe(row: int) -> tuple[Where, str]:
            return self.table.where(row, position), column.why_no_number(row)

        self.findings.add_rows(Severity.ERROR, "csv-number", wrong, describe, fix=column.number_fix)
        return numbers

    def needed(self, position: int, rows: RowIndices, lack: str) -> FloatArray:
        """Return the numbers of a column that every box must have where one has."""
        column = self.table.columns[position]
        numbers = self.numbers(position, rows)
        if not isinstance(column, TextColumn):  # an empty text was reported as an invalid number
            self.report_empty(position, rows[~column.filled[rows]], lack)
        return numbers

    def flags(self, position: int, rows: RowIndices) -> BoolArray:
        """Return the flags of a column."""
        flags, bad = self.table.columns[position].flags(rows)
        self.refuse(position, rows[bad], "csv-flag", "is neither 0 nor 1", fix="Write 0, 1, true or false.")
        return flags

    def sizes(self, columns: Columns, used: RowIndices) -> FloatArray | None:
        """Return width and height (m, 2) of the images of some rows, NaN where not given; report those of no image."""
        if columns.size is None:
            return None
        sizes = np.stack([self.numbers(side, used, optional=True) for side in columns.size], axis=1)
        is_bad = (sizes <= 0) | (sizes > MAX_IMAGE_SIDE)  # (m, 2)
        self.findings.add_rows(
            Severity.ERROR,
            "image-size",
            np.flatnonzero(is_bad[:, 0] | is_bad[:, 1]),
            lambda index: (
                self.table.where(int(used[index])),
                f"the image's size is {sizes[index, 0]:g} x {sizes[index, 1]:g};"
                f" sides must be positive and at most {MAX_IMAGE_SIDE:g}",
            ),
        )
        return sizes

    def refuse(self, position: int, rows: RowIndices, code: str, what: str, *, fix: Fix | str) -> None:
        """Record what cells of a column are instead of what they should be."""
        column = self.table.columns[position]
        self.findings.add_rows(
            Severity.ERROR,
            code,
            rows,
            lambda row: (self.table.where(row, position), f"{column.shown(row)} {what}"),
            fix=fix,
        )

    def report_empty(self, position: int, rows: RowIndices, detail: str) -> None:
        """Record cells of a column that must not be empty."""
        self.findings.add_rows(
            Severity.ERROR,
            "csv-cell-empty",
            rows,
            lambda row: (self.table.where(row, position), f"{detail}; the cell is empty"),
        )

    def report_partial(self, columns: Columns, used: RowIndices, filled: BoolArray) -> None:
        """Record boxes with some of their numbers: a box is whole or absent."""

        def describe(index: int) -> tuple[Where, str]:
            empty = [column for column, given in zip(columns.box, filled[index], strict=True) if not given]
            names = ", ".join(self.table.titles[column] for column in empty)
            return self.table.where(int(used[index]), empty[0]), f"the box is incomplete: {names} empty"

        partial = np.flatnonzero(filled.any(axis=1) & ~filled.all(axis=1))
        fix = "Give all numbers of a box, or none for an image without boxes."
        self.findings.add_rows(Severity.ERROR, "csv-box-partial", partial, describe, fix=fix)
