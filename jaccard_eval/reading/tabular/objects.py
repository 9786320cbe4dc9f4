"""Rows of images whose objects are lists: from nested values to a table of boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.reading.draft import CodedKeys, Draft
from jaccard_eval.reading.json import described_json
from jaccard_eval.reading.tabular.boxes import (
    BoxCells,
    add_boxes,
    check_image_sizes,
    mention_unused_scores,
    report_empty,
    rows_with_box,
)
from jaccard_eval.reading.tabular.columns import CLASS, CLASS_IDS, IMAGE, SCORE, Columns, position_of, resolve_columns
from jaccard_eval.reading.tabular.rows import Codes, Named, first_names, pair_names
from jaccard_eval.text import quoted_value

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
            cell if isinstance(cell, list | tuple) and len(cell) == 4 else (None if cell is None else "",) * 4
            for cell in lists
        ]
        numbers, bad = _numbers([number for four in whole for number in four])
        return numbers.reshape(-1, 4), np.unique(bad // 4)

    def flags(self, rows: Codes) -> tuple[BoolArray, Codes]:
        """Return some cells as flags (m,)."""
        values = (self.values[row] for row in rows)
        return flags_of(*_numbers([int(value) if isinstance(value, bool) else value for value in values]))

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
        return "null" if value is None else f"{quoted_value(value)} ({_KINDS.get(type(value), type(value).__name__)})"


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
            try:
                numbers[at] = value
            except OverflowError:  # an integer that no float holds
                numbers[at] = math.inf
        elif value is not None:
            bad.append(at)
    return numbers, np.array(bad, dtype=np.int64)


IMAGE_IDS = tuple(name for name in IMAGE if name.endswith("_id"))
CLASS_NAMES = tuple(name for name in CLASS if name not in CLASS_IDS)
IMAGE_NAMES = tuple(name for name in IMAGE if name not in IMAGE_IDS)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that have a box each, or name an image without one."""

    cells: Mapping[str, Column]  # all columns by name, each of n rows
    n_rows: int
    place: Callable[[int, str | None], Where]  # from a row and the name of a column, or None
    findings: FindingLog
    listed: bool = False  # whether the rows name all images there are
    units: str | None = None  # of the boxes, where the file says so
    # Names of classes by key, in their order, for the columns that have the keys.
    class_names: Mapping[str, Mapping[Key, str]] = field(default_factory=dict)
    named: bool = True  # whether these names are more than the keys as text
    # Whether columns of ids are the keys, whatever stands in those of names.
    keyed: bool = False
    # Which rows stand for an image without boxes; where it is not known, those without a box do.
    bare: BoolArray | None = None
    headerless: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.n_rows

    @cached_property
    def header(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(self.cells)

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


def read_cells(table: Table, columns: Columns, draft: Draft) -> BoxCells:
    """Read every cell that matters; what cannot be used is among the draft's findings."""
    every = np.arange(len(table))
    has_image = table.has_value(columns.image, every)
    report_empty(table, columns.image, np.flatnonzero(~has_image), "the row names no image", draft.findings)
    used = every[has_image]
    filled = np.stack([table.has_value(column, used) for column in columns.box]).T  # (m, 1 or 4)
    without_box = used[~filled.any(axis=1)]
    if table.bare is not None:  # an object without a box is no image without objects
        objects = without_box[~table.bare[without_box]]
        report_empty(table, columns.box[0], objects, "the object has no box", table.findings)
    rows = rows_with_box(table, columns, used, filled, draft.findings)
    labelled = rows[table.has_value(columns.label, rows)]
    for column, keyed in ((columns.image, used), (columns.label, labelled)):
        _, bad = table.column(column).keys(keyed)
        fix = "Call images and classes by texts or by whole numbers."
        _report_cells(table, column, keyed[bad], "id-type", "is neither text nor a whole number", fix=fix)
    unused = position_of(table.header, SCORE) if draft.options.role == "gt" else None
    if unused is not None and table.has_value(unused, rows).any():
        mention_unused_scores(int(table.has_value(unused, rows).sum()), draft)
    sizes = None if columns.size is None else np.stack([_parse(table, side, used) for side in columns.size], axis=1)
    if sizes is not None:
        check_image_sizes(table, sizes, used, table.findings)
    coords = _coords(table, columns, rows)
    score = _parse_given(table, columns.score, rows)
    if score is not None and columns.score is not None:
        missing = rows[~table.has_value(columns.score, rows)]
        report_empty(table, columns.score, missing, "the box has no score", table.findings)
    area = _parse_given(table, columns.area, rows)
    flags: dict[str, BoolArray] = {}
    for flag, column in columns.flags.items():
        flags[flag], bad = table.column(column).flags(rows)
        _report_cells(table, column, rows[bad], "csv-flag", "is neither 0 nor 1", fix="Write 0, 1, true or false.")
    return BoxCells(
        used=used,
        sizes=sizes,
        without_box=without_box,
        rows=rows,
        coords=coords,
        score=score,
        area=area,
        flags=flags,
        decimal_commas=False,
    )


def _coords(table: Table, columns: Columns, rows: Codes) -> FloatArray:
    if len(columns.box) > 1:
        return np.stack([_parse(table, column, rows) for column in columns.box], axis=1)
    coords, bad = table.column(columns.box[0]).packed(rows)
    fix = "Give each box a list of four numbers."
    _report_cells(table, columns.box[0], rows[bad], "csv-bbox", "is not four numbers", fix=fix)
    return coords


def _parse_given(table: Table, column: int | None, rows: Codes) -> FloatArray | None:
    """Return the numbers of a column, NaN where there is none; None where there is none at all."""
    if column is None or not table.has_value(column, rows).any():
        return None
    return _parse(table, column, rows)


def _parse(table: Table, column: int, rows: Codes) -> FloatArray:
    numbers, bad = table.column(column).numbers(rows)
    fix = "Write numbers; convert text before it is written."
    _report_cells(table, column, rows[bad], "csv-number", "is not a number", fix=fix)
    return numbers


def _report_cells(table: Table, column: int, rows: Codes, code: str, what: str, *, fix: str) -> None:
    """Record that cells of a column cannot be used."""

    def describe(row: int) -> tuple[Where, str]:
        return table.where(row, column), f"{table.column(column).shown(row)} {what}"

    table.findings.add_rows(Severity.ERROR, code, rows, describe, fix=fix)


def add_table(table: Table, draft: Draft) -> None:
    """Add images, classes and boxes to the draft; what cannot be used is among its findings."""
    columns = resolve_columns(table.header, draft.options, draft.findings, Where(draft.path))
    if columns is None:
        return
    columns = _with_ids(table, columns)
    cells = read_cells(table, columns, draft)
    draft.findings.raise_errors()  # what follows takes the cells for good
    add_boxes(table, columns, cells, draft)


def _with_ids(table: Table, columns: Columns) -> Columns:
    """Take ids for the keys where the table says so; those of images also where some have no name."""
    image, label = position_of(table.header, IMAGE_IDS), position_of(table.header, CLASS_IDS)
    named = table.column(columns.image).filled.all()
    if image is None or not (table.keyed or (table.column(image).filled.all() and not named)):
        image = columns.image
    if label is None or not table.keyed:
        label = columns.label
    needed = {image, label}
    unused = {*columns.unused, columns.image, columns.label} - needed
    return replace(columns, image=image, label=label, unused=tuple(sorted(unused)))


OBJECTS = "objects"
IMAGE_FIELD = "image"
PATHS = ("path", "file_name", "filename", "src")  # of a picture that is an object
SINGULAR = {
    "bboxes": "bbox", "boxes": "bbox", "box": "bbox", "categories": "category", "labels": "label", "classes": "class",
    "category_ids": "category_id", "class_ids": "class_id", "category_names": "category_name", "areas": "area",
}  # fmt: skip
USUAL = ("bbox", "category")  # what objects have where there are none
OF_THE_IMAGE = {"width": "image_width", "height": "image_height"}  # beside lists of objects they can be nothing else

Place = Callable[[int], Where]

OBJECTS_FIX = "Write 'objects' as lists of equal length by field, or as a list of objects."


def add_object_rows(rows: Sequence[Mapping[str, Any]], place: Place, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft; the rows are all images there are.

    Each row is the fields of one image, and "objects" those of its boxes, which are xywh unless the names of the
    fields, or the options of the draft, say otherwise.
    """
    flat = _Flat(place, draft)
    for row, values in enumerate(rows):
        flat.add_row(row, values)
    draft.findings.raise_errors()
    add_table(flat.table(), draft)


@dataclass(slots=True)
class _Flat:
    """Collects rows with one box each, or none for an image without boxes."""

    place: Place
    draft: Draft
    parents: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)  # of the box among its image's
    outer: list[dict[str, Any]] = field(default_factory=list)
    inner: list[dict[str, Any]] = field(default_factory=list)
    bare: list[bool] = field(default_factory=list)  # whether the row stands for an image without boxes

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
        cells = {name: ValueColumn([image.get(name) for image in self.outer]) for name in outer_names}
        cells |= {name: ValueColumn([box.get(name) for box in self.inner]) for name in inner_names}

        def place(row: int, column: str | None) -> Where:
            box = f"{OBJECTS}[{self.positions[row]}]"
            where = self.place(self.parents[row])
            if column is None or column in outer_names:
                return replace(where, field=column)
            return replace(where, field=f"{box}.{column}")

        return Table(
            cells=cells,
            n_rows=len(self.parents),
            place=place,
            findings=self.draft.findings,
            listed=True,
            bare=np.array(self.bare, dtype=np.bool_),
        )

    def _boxes(self, row: int, objects: Any) -> list[Mapping[str, Any]]:
        """Return the fields of each box; what is neither lists nor objects is told."""
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
        return self._fault(row, f"is {described_json(objects)} that holds something else than lists or objects")

    def _fault(self, row: int, detail: str) -> list[Mapping[str, Any]]:
        self.draft.findings.error("objects-type", replace(self.place(row), field=OBJECTS), detail, fix=OBJECTS_FIX)
        return []


def outer_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an image by the names that columns have; a picture gives its path and size."""
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
    packed = fields.get("bbox")
    if isinstance(packed, Mapping):
        del fields["bbox"]
        fields |= packed
    return fields
