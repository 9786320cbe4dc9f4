"""The one table of boxes: columns of texts, numbers or values, whatever file they come from, and what they mean.

A row has a box, or names an image without one; of rows of images whose objects are lists, a table of boxes is made.
What a table means as a whole (units, encoding, sizes of images, names of classes) is decided on its way into the draft.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, from_xywh, to_xywh
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Key, key_order, unknown_sizes
from jaccard_eval.data.known_protocols import ORIENTED
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft, SkippingLog
from jaccard_eval.reading.json import described_json
from jaccard_eval.reading.rawboxes import CodedKeys, Keys, RawBoxes
from jaccard_eval.reading.tabular.columns import (
    CLASS_IDS,
    CLASS_NAMES,
    IMAGE_IDS,
    IMAGE_NAMES,
    Columns,
    RowIndices,
    listed_names,
    may_lack_class,
    meant_header,
    parse_flags,
    parse_integers,
    parse_numbers,
    position_of,
    propose_naming,
    read_naming,
    replace_commas,
    resolve_columns,
    split_packed,
)
from jaccard_eval.text import is_numeral, pluralise, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.similarity.obb import Quads


_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", dict: "an object", list: "a list"}
_WHOLE = pattern(r"[0-9]+\.0+")
_INT64 = range(-(2**63), 2**63)

NORM_LIMIT = 1.01  # coordinates up to here, some fractional, are fractions of an image; exporters overshoot a little
NO_CLASS = 0  # the class of boxes that have none: an index, as label files of one class have it
BLOCK_ROWS = 1 << 16  # of boxes that are looked at at once
EDGE_SLACK = 0.01  # of an image's side: how far a box may reach outside before its encoding is doubted

_NUMERIC_NAME = pattern(r"(\d{1,18})(?:\.0+)?", re.ASCII)

OBJECTS = "objects"
IMAGE_FIELD = "image"
PATHS = ("path", "file_name", "filename", "src")  # of an image that is an object
SINGULAR = {
    "bboxes": "bbox", "boxes": "bbox", "box": "bbox", "categories": "category", "labels": "label", "classes": "class",
    "category_ids": "category_id", "class_ids": "class_id", "category_names": "category_name", "areas": "area",
    "boundingBox": "bbox", "bounding_box": "bbox", "class_names": "class_name", "scores": "score",
    "confidences": "confidence", "tags": "tag",
}  # fmt: skip
USUAL = ("bbox", "category")  # what objects have where there are none
_CENTRED = {"x": "cx", "y": "cy", "width": "w", "height": "h"}
OF_THE_IMAGE = {"width": "image_width", "height": "image_height"}  # with lists of objects they can be nothing else

Place = Callable[[int], Where]

OBJECTS_FIX = "Write 'objects' as lists of equal length by field, or as a list of objects."


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


def add_boxes(table: Table, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Add images, classes and boxes to the draft, with a note on everything that was decided on the way."""
    if cells.n_unused_scores:
        draft.mention_scores(cells.n_unused_scores)
    if table.typed:
        draft.findings.raise_errors()  # a key that is none cannot be indexed; a text always can
    if isinstance(draft.findings, SkippingLog) and draft.findings.places:
        faulty = draft.findings.faulty([table.place(int(row), None) for row in cells.rows])
        cells = cells.take(~np.isin(np.arange(len(cells.rows)), faulty))
    images = table.images(columns, cells.used)
    keys = list(images.keys.distinct)
    row_codes = images.keys.codes  # (rows of the table,)
    if len(cells.used) < len(table):
        row_codes = np.zeros(len(table), dtype=np.int64)
        row_codes[cells.used] = images.keys.codes
    sizes = _image_sizes(table, cells, images.keys.codes, len(keys), draft)
    if not table.listed:
        _note_without_box(table, cells, draft)
    if draft.options.role == "gt" and not table.listed:
        cells = _drop_zero_rows(table, cells, row_codes[cells.rows], draft)
    image_codes = row_codes if len(cells.rows) == len(table) else row_codes[cells.rows]
    units = _decide_units(table, cells.coords, draft)
    names = [images.names.get(key, str(key)) for key in keys]
    # Images are opened only for fractions, which need their sizes to become pixels.
    if units == "norm":
        draft.fill_sizes(sizes, names)
    draft.set_images(keys, file_names=[images.names.get(key) for key in keys], sizes=sizes, listed=table.listed)
    classes = table.classes(columns, cells.rows)
    if table.headerless and draft.options.columns is None:
        _doubt_positions(classes.keys, cells, draft)
    # Keys in addition to names are of use after all.
    beside = (images.beside, classes.beside)
    columns = replace(columns, unused=tuple(column for column in columns.unused if column not in beside))
    # Neither the table nor its cells: what messages need must not keep them alive.
    rows, place = cells.rows, table.place

    def where(row: int) -> Where:
        return place(int(rows[row]), None)

    box_sizes = BoxSizes(np.ones_like(sizes) if units == "norm" else sizes, image_codes)
    label = _set_classes(classes, draft)
    encoding = _decide_encoding(table, columns, cells.coords, box_sizes, draft)
    shapes = _oriented(cells, units, where, draft)
    if len({*columns.box}) == 2 and draft.options.role == "gt":
        draft.usual_protocol = "points"
    draft.add_boxes(
        RawBoxes(
            image=CodedKeys(keys, image_codes),
            label=label,
            coords=cells.coords if shapes is None else from_xywh(shapes.bounds(), encoding),
            encoding=encoding,
            units=units,
            units_guessed=draft.options.units is None and table.units is None,
            place=where,
            score=cells.score,
            area=cells.area,
            crowd=cells.flags.get("crowd"),
            difficult=cells.flags.get("difficult"),
            group_of=cells.flags.get("group_of"),
            ignore=cells.flags.get("ignore"),
            shapes=shapes,
            no_score=_explain_no_score(table, columns, cells, draft.options),
        )
    )
    _compare_names(images, names, draft)
    _note_reading(table, columns, cells, draft)


def _doubt_positions(classes: CodedKeys, cells: BoxCells, draft: Draft) -> None:
    """Report a table without header whose numbers are not what keras-retinanet's mean in these places."""
    n, least, numbered = len(classes), 5, all(isinstance(key, int) for key in classes.distinct)
    odd = []
    if cells.score is not None and np.count_nonzero((cells.score < 0) | (cells.score > 1)) * 2 > n:
        odd.append("column 7 has no scores in 0..1")
    if n >= least and len(classes.distinct) * 2 > n and (numbered or all(map(is_numeral, map(str, classes.distinct)))):
        odd.append(f"column 6 has {len(classes.distinct):,} numbers in {n:,} rows, which are rather coordinates")
    if odd:
        detail = f"read as path, x1, y1, x2, y2, class and score, as there is no header, but {' and '.join(odd)}"
        fix = "Write a header line that names the columns, such as image,class,score,xmin,ymin,xmax,ymax."
        draft.findings.error("columns-ambiguous", Where(draft.path), detail, fix=fix)


def _note_without_box(table: Table, cells: BoxCells, draft: Draft) -> None:
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-no-box",
        cells.without_box,
        lambda row: (table.where(row), "all box cells are empty"),
        summary=lambda n: pluralise(
            n,
            "row names an image but has no box; counted as an image without objects",
            "rows name an image but have no box; counted as images without objects",
        ),
    )


def _oriented(cells: BoxCells, units: str, place: Callable[[int], Where], draft: Draft) -> Quads | None:
    """Return the oriented boxes of a table where these are asked for; else the boxes around them are read."""
    if draft.options.iou_type not in ORIENTED or (cells.corners is None and cells.angle is None):
        if cells.corners is not None:
            draft.details.append("the boxes around four corners")
        return None
    from jaccard_eval.reading.oriented import check_outlines, rectangles  # most tables have upright boxes
    from jaccard_eval.similarity.obb import Quads

    if cells.corners is not None:
        quads = Quads(cells.corners)
    else:
        angle = np.zeros(0) if cells.angle is None else cells.angle
        quads = rectangles(np.concatenate((cells.coords, angle[:, None]), axis=1), draft, place)
        if units == "norm":
            detail = "fractions of width and height, which differ, cannot be turned by an angle"
            fix = Fix.of_side(draft.options.role, "Export four corners, or pixels ({units} if these are).", units="px")
            draft.findings.error("angle-ambiguous", Where(draft.path, field="angle"), detail, fix=fix)
    check_outlines(quads, place, draft)
    return quads


def note_no_class(draft: Draft) -> None:
    """Report that a table has no column for the class, and what its boxes are then."""
    names = draft.options.names
    draft.has_no_class = not names
    fix = None if names else Fix.of_side(draft.options.role, "Pass {names} to name it.", names=None)
    detail = f"no column for the class: all boxes are of class {quoted_value(names[0]) if names else NO_CLASS}"
    draft.findings.note("csv-one-class", Where(draft.path), detail, fix=fix)


def lacks_scores(cells: BoxCells, options: ReadOptions) -> bool:
    """Whether boxes need a score that the table does not have under a known name."""
    return options.role == "pred" and options.assume_score is None and cells.score is None and len(cells.rows) > 0


def _explain_no_score(table: Table, columns: Columns, cells: BoxCells, options: ReadOptions) -> tuple[str, Fix] | None:
    """Name the columns that were not used, any of which may hold the score; no score is assumed where one seems to."""
    unused = columns.unused if columns.score is None else (columns.score, *columns.unused)
    if not unused or not lacks_scores(cells, options):
        return None
    why = f"; columns not used: {listed_names([table.titles[column] for column in unused])}"
    like = [table.titles[column] for column in unused if _looks_like_score(table.columns[column], cells.rows)]
    naming = propose_naming(options, {"score": like})
    if like:
        return why, Fix.missing("Pass {pred_columns}: every box has a number within 0..1 there.", pred_columns=naming)
    words = "Name the column of the scores: {pred_columns}. Without scores, pass {assume_score} to rank all equally."
    return why, Fix.missing(words, pred_columns=naming, assume_score="1.0")


def _looks_like_score(column: Column, rows: RowIndices) -> bool:
    """Whether every box has a number from 0 to 1 there, not all of them whole, as those of flags are."""
    if len(column.values) < len(rows):  # a column of a typed table that nobody asked for
        return False
    numbers, bad = column.numbers(rows)
    return not len(bad) and bool(((numbers >= 0) & (numbers <= 1)).all() and (numbers % 1).any())


def _drop_zero_rows(table: Table, cells: BoxCells, codes: RowIndices, draft: Draft) -> BoxCells:
    """Take rows with a box of four zeros as images without boxes, where the image has no other box (DeepForest)."""
    zero = np.logical_and.reduce([column == 0 for column in cells.coords.T])
    if not zero.any():
        return cells
    # Among other boxes of the image zeros are a degenerate box, and stay one.
    has_box = np.bincount(codes[~zero], minlength=int(codes.max()) + 1) > 0
    alone = zero & ~has_box[codes]
    rows = cells.rows[alone]
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-zero",
        rows,
        lambda row: (table.where(row), "0, 0, 0, 0"),
        summary=f"{len(rows):,} rows with a box of four zeros are read as images without objects",
    )
    if len(rows):
        draft.ignored["csv-row-zero"] += len(rows)
    return cells.take(~alone)


def _image_sizes(table: Table, cells: BoxCells, codes: RowIndices, n_images: int, draft: Draft) -> FloatArray:
    """Return the size of each image (n_images, 2): the first that a row gives."""
    sizes = unknown_sizes(n_images)
    if cells.sizes is None:
        return sizes
    given = np.flatnonzero(np.isfinite(cells.sizes[:, 0]) & np.isfinite(cells.sizes[:, 1]))
    first = np.full(n_images, -1)
    first[codes[given[::-1]]] = given[::-1]  # backwards: the first row is written last and stays
    sizes[first >= 0] = cells.sizes[first[first >= 0]]
    width, height = cells.sizes.T
    other = np.flatnonzero((width != sizes[codes, 0]) | (height != sizes[codes, 1]))
    other = other[np.isfinite(cells.sizes[other]).all(axis=1)]  # those that give a size
    draft.findings.add_rows(
        Severity.WARNING,
        "image-size-conflict",
        cells.used[other],
        lambda row: (table.where(row), "width and height differ from an earlier row of the same image"),
        summary=lambda n: (
            f"{pluralise(n, 'row gives', 'rows give')} another size of the same image; the first size is used"
        ),
    )
    return sizes


def _decide_units(table: Table, coords: FloatArray, draft: Draft) -> str:
    """Return the asked units, else the table's, else "norm" when no coordinate exceeds 1 and some are fractions."""
    if draft.options.units or table.units:
        return draft.options.units or table.units or ""
    if not looks_normalised(coords):
        return "px"
    draft.details.append("normalised")
    draft.findings.note(
        "csv-normalised",
        Where(draft.path),
        "coordinates are read as normalised (fractions of image width and height), as none exceeds 1",
        fix=Fix.of_side(draft.options.role, "Pass {units} if they are pixels.", units="px"),
    )
    return "norm"


def looks_normalised(coords: FloatArray) -> bool:
    """Whether boxes look like fractions: no number exceeds 1, and some are not whole numbers."""
    within = len(coords) > 0 and all((np.abs(block) <= NORM_LIMIT).all() for block in _blocks(coords))
    return within and any((block % 1).any() for block in _blocks(coords))


def _blocks(rows: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield all rows, some at a time: what is computed of them takes little memory."""
    yield from (rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS))


@dataclass(frozen=True, slots=True, eq=False)
class BoxSizes:
    """The size of the image of each box."""

    of_image: FloatArray  # (n_images, 2), NaN where unknown
    image: RowIndices  # (n,)

    @property
    def are_known(self) -> bool:
        """Whether every box has one."""
        known = np.isfinite(self.of_image[:, 0]) & np.isfinite(self.of_image[:, 1])
        return all(bool(known[block].all()) for block in _blocks(self.image))

    def count_outside(self, coords: FloatArray, encoding: str) -> int:
        """Count the boxes that leave their images."""
        blocks = zip(_blocks(coords), _blocks(self.image), strict=True)
        return sum(int(_leaves_image(block, encoding, self.of_image[image]).sum()) for block, image in blocks)


def _decide_encoding(table: Table, columns: Columns, coords: FloatArray, box_sizes: BoxSizes, draft: Draft) -> str:
    """Return the header's encoding; columns x and y are centres when only so the boxes lie inside their images."""
    # Exporters mean corners or centres by x and y; only a box that leaves its image is evidence.
    x_name = table.header[columns.box[0]].lower()
    if draft.options.box or columns.encoding != "xywh" or x_name != "x":
        return columns.encoding
    n_outside = box_sizes.count_outside(coords, "xywh")
    # Centres are believed only where they put every box inside, and every size is known.
    if not n_outside or not box_sizes.are_known or box_sizes.count_outside(coords, "cxcywh"):
        return columns.encoding
    draft.details.append("x and y are centres")
    option = f"{draft.options.role}_box"
    draft.findings.warning(
        "csv-centres",
        Where(draft.path),
        f"x and y are read as box centres: read as corners, {n_outside:,} boxes leave their images",
        fix=Fix.reading(
            {option: "cxcywh"},
            metric="boxes inside their images",
            before=1 - n_outside / len(coords),
            after=1.0,
            words=f"Pass {{{option}:xywh}} if they are corners.",  # the fix is the reading that was taken
        ),
    )
    return "cxcywh"


def _leaves_image(coords: FloatArray, encoding: str, box_sizes: FloatArray) -> BoolArray:
    xywh = to_xywh(coords, encoding)
    with np.errstate(over="ignore"):
        near, far = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
    slack = EDGE_SLACK * box_sizes
    outside = (near < -slack) | (far > box_sizes + slack)  # (n, 2)
    return outside[:, 0] | outside[:, 1]


def _set_classes(classes: Named, draft: Draft) -> Keys:
    """Name the classes, numbered ones by the user's list before that of the table; return the class of each box."""
    distinct, names = classes.keys.distinct, draft.options.names
    numbered = all(isinstance(key, int) for key in distinct)
    listed, keys = draft.listed_names, [key for key in distinct if isinstance(key, int)]
    if numbered and keys and listed and names is None and not classes.names and classes.beside is None:
        first = 1 if min(keys) > 0 and max(keys) == len(listed) else 0
        if first <= min(keys) and max(keys) < first + len(listed):
            detail = f"its classes are numbers; named by the {len(listed)} names that it lists, from {first} on"
            fix = Fix.of_side(draft.options.role, "For other names, pass {names}.", names=None)
            draft.findings.note("names-found", Where(draft.path), detail, fix=fix)
            draft.set_classes(range(first, first + len(listed)), listed)
            return classes.keys
    if numbered and names is not None and classes.beside is None:
        draft.set_classes(range(len(names)), names)
    elif classes.names or not numbered:
        if names is not None:
            detail = f"classes are {'texts' if classes.beside is None else 'named'}: the list of names is ignored"
            draft.findings.note("csv-names-unused", Where(draft.path), detail)
        # Names of the file go before a list of the user, and a note reports it.
        given = classes.names or {key: str(key) for key in distinct}
        draft.set_classes(list(given), list(given.values()), named=classes.named)
    return classes.keys


def _compare_names(images: Named, names: list[str], draft: Draft) -> None:
    """Look for names that are one number, and keep them for comparison with those of other parts."""
    if images.names or any(isinstance(key, str) for key in images.keys.distinct):  # numbers have one spelling
        draft.image_names = names
        warn_alike_images(names, Where(draft.path), draft.findings)


def warn_alike_images(images: Iterable[str], where: Where, findings: FindingLog) -> None:
    """Warn of image names that are one number written in several ways, as spreadsheets make of 001."""
    spellings: defaultdict[int, list[str]] = defaultdict(list)
    for name in images:
        if match := _NUMERIC_NAME.fullmatch(name):
            spellings[int(match[1])].append(name)
    alike = [names for names in spellings.values() if len(names) > 1]
    findings.add_rows(
        Severity.WARNING,
        "image-names-alike",
        range(len(alike)),
        lambda group: (
            where,
            f"image names {', '.join(map(quoted_value, alike[group]))} are different images",
        ),
        fix="If they are the same image, write its name the same way (spreadsheets turn 001 into 1).",
    )


def _note_reading(table: Table, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Report which columns were read, and how, and which were not."""
    where = Where(draft.path)
    box = ", ".join(table.titles[column] for column in dict.fromkeys(columns.box))
    packed = f" ({columns.encoding})" if len(columns.box) == 1 else ""
    draft.details.append(f"box from {box}{packed}" + (" (no header: keras-retinanet)" if table.headerless else ""))
    named = [
        (name, title)
        for name, title in zip(table.header, table.titles, strict=True)
        if name in read_naming(draft.options.columns)
    ]
    draft.details += [f"{name} from {title}" for name, title in named]
    if table.decimal_commas:
        draft.details.append("decimal commas")
        draft.findings.note("csv-decimal-commas", where, "numbers are read with decimal commas: 10,5 is 10.5")
    if columns.unused:
        names = listed_names([table.titles[column] for column in columns.unused])
        draft.findings.note("csv-columns-unused", where, f"columns ignored: {names}")


def add_object_rows(rows: Sequence[Mapping[str, Any]], place: Place, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft; the rows are all images there are.

    Each row is the fields of one image, and "objects" those of its boxes, which are xywh unless the names of the
    fields, or the options of the draft, decide otherwise.
    """
    flat = _Flat(place, draft)
    for row, values in enumerate(rows):
        flat.add_row(row, values)
    draft.findings.raise_errors()
    add_table(flat.table(), draft)


def add_flat_rows(rows: Sequence[Mapping[str, Any]], place: Place, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft; a row is the fields of one box and of its image."""
    boxes = [inner_fields(row) for row in rows]
    names = dict.fromkeys(name for box in boxes for name in box)
    cells = {name: Column([box.get(name) for box in boxes]) for name in names}
    table = Table(
        header=tuple(cells),
        titles=tuple(cells),
        columns=dict(enumerate(cells.values())),
        n_rows=len(boxes),
        place=lambda row, column: replace(place(row), field=column),
    )
    add_table(table, draft)


@dataclass(slots=True)
class _Flat:
    """Collects rows with one box each, or none for an image without boxes."""

    place: Place
    draft: Draft
    parents: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)  # of the box among its image's
    outer: list[dict[str, Any]] = field(default_factory=list)
    inner: list[dict[str, Any]] = field(default_factory=list)
    bare: list[bool] = field(default_factory=list)  # whether the row is an image without boxes

    def add_row(self, row: int, values: Mapping[str, Any]) -> None:
        """Add the boxes of an image."""
        about = outer_fields(values)
        boxes = self._boxes(row, values.get(OBJECTS))
        places = max(len(boxes), 1)
        self.parents += [row] * places
        self.positions += range(places)
        self.outer += [about] * places
        self.bare += [not boxes] * places
        self.inner += map(inner_fields, boxes or [{}])

    def table(self) -> Table:
        """Return everything as columns; a field of the box hides one of its image."""
        inner_names = dict.fromkeys(name for box in self.inner for name in box)
        inner_names = inner_names or dict.fromkeys(USUAL if all(self.bare) else ())
        outer_names = dict.fromkeys(name for image in self.outer for name in image if name not in inner_names)
        cells = {name: Column([image.get(name) for image in self.outer]) for name in outer_names}
        cells |= {name: Column([box.get(name) for box in self.inner]) for name in inner_names}

        def place(row: int, column: str | None) -> Where:
            box = f"{OBJECTS}[{self.positions[row]}]"
            where = self.place(self.parents[row])
            if column is None and not self.bare[row]:
                return replace(where, field=box)
            if column is None or column in outer_names:
                return replace(where, field=column)
            return replace(where, field=f"{box}.{column}")

        return Table(
            header=tuple(cells),
            titles=tuple(cells),
            columns=dict(enumerate(cells.values())),
            n_rows=len(self.parents),
            place=place,
            listed=True,
            of_box=frozenset(inner_names),
            bare=np.array(self.bare, dtype=np.bool_),
        )

    def _boxes(self, row: int, objects: Any) -> list[Mapping[str, Any]]:
        """Return the fields of each box; report what is neither lists nor objects."""
        if objects is None:
            return []
        if isinstance(objects, Mapping) and all(isinstance(values, list | tuple) for values in objects.values()):
            lengths = {name: len(values) for name, values in objects.items()}
            if len(set(lengths.values())) <= 1:
                return [dict(zip(objects, box, strict=True)) for box in zip(*objects.values(), strict=True)]
            told = ", ".join(f"{length} of {name}" for name, length in lengths.items())
            return self._fault(row, f"the lists differ in length: {told}")
        if isinstance(objects, list | tuple) and all(isinstance(box, Mapping) for box in objects):
            return list(objects)
        return self._fault(row, f"is {described_json(objects)} that holds other things than lists or objects")

    def _fault(self, row: int, detail: str) -> list[Mapping[str, Any]]:
        self.draft.findings.error("objects-type", replace(self.place(row), field=OBJECTS), detail, fix=OBJECTS_FIX)
        return []


def outer_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an image by the names that columns have; an image object gives its path and size."""
    fields = {
        OF_THE_IMAGE.get(name, name): value for name, value in values.items() if name not in (OBJECTS, IMAGE_FIELD)
    }
    picture = values.get(IMAGE_FIELD)
    if not isinstance(picture, Mapping):
        return fields if picture is None else {IMAGE_FIELD: picture, **fields}
    path = next((picture[name] for name in PATHS if picture.get(name) is not None), None)
    sizes = {name: picture[side] for side, name in OF_THE_IMAGE.items() if picture.get(side) is not None}
    return {**({} if path is None else {IMAGE_FIELD: path}), **sizes, **fields}


def inner_fields(box: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a box by the names that columns have; a box that is an object gives its own fields."""
    fields = {SINGULAR.get(name, name): value for name, value in box.items()}
    if isinstance(tags := fields.get("tag"), list) and len(tags) == 1:
        fields["tag"] = tags[0]
    packed = fields.get("bbox")
    if isinstance(packed, Mapping):
        del fields["bbox"]
        fields |= packed
    centred = fields.get("coordinates")  # of Turi Create
    if isinstance(centred, Mapping) and {*_CENTRED} <= centred.keys():
        del fields["coordinates"]
        fields |= {name: centred[side] for side, name in _CENTRED.items()}
    return fields


def add_table(table: Table, draft: Draft) -> None:
    """Add images, classes and boxes to the draft; what cannot be used is among its findings."""
    table = replace(table, header=meant_header(table.titles, read_naming(draft.options.columns)))
    # Other fields are of the image, and name the class of none of its boxes.
    of_box = [
        name for name, title in zip(table.header, table.titles, strict=True) if title in (table.of_box or (title,))
    ]
    if may_lack_class(table.header, draft.options, of_box):
        note_no_class(draft)
        added = NumberColumn(np.full(len(table), float(NO_CLASS)))
        cells = {**table.columns, len(table.header): added}
        header, titles = ((*names, "class") for names in (table.header, table.titles))
        table = replace(table, header=header, titles=titles, columns=cells)
    columns = resolve_columns(table.header, draft.options, draft.findings, Where(draft.path))
    if columns is None:
        return
    columns = _with_ids(table, columns)
    add_boxes(table, columns, read_cells(table, columns, draft.findings), draft)


def _with_ids(table: Table, columns: Columns) -> Columns:
    """Use ids as the keys if the table has them; those of images also if some have no name."""
    image, label = position_of(table.header, IMAGE_IDS), position_of(table.header, CLASS_IDS)
    named = table.columns[columns.image].filled.all()
    if image is None or not (table.keyed or (table.columns[image].filled.all() and not named)):
        image = columns.image
    if label is None or not table.keyed:
        label = columns.label
    needed = {image, label}
    unused = {*columns.unused, columns.image, columns.label} - needed
    return replace(columns, image=image, label=label, unused=tuple(sorted(unused)))
