"""From Arrow columns, flat or nested, to boxes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import require
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.reading.tabular.columns import RowIndices, count_known
from jaccard_eval.reading.tabular.objects import (
    IMAGE_FIELD,
    OBJECTS,
    OBJECTS_FIX,
    OF_THE_IMAGE,
    PATHS,
    SINGULAR,
    USUAL,
)
from jaccard_eval.reading.tabular.table import Column, NumberColumn, flags_of, read_key
from jaccard_eval.text import quoted_value

EXTRA = "parquet"

# At the top, as this module is loaded only where such a table is read or written.
arrow: Any = require("pyarrow", extra=EXTRA)
compute: Any = require("pyarrow.compute", extra=EXTRA)
types: Any = arrow.types

MAX_SHOWN_ENTRIES = 20  # of a list that a message repeats


@dataclass(frozen=True)
class ArrowColumn(Column):
    """A column of an Arrow table; its cells become values for messages only."""

    values: Any  # pyarrow.ChunkedArray

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells hold anything, (n,)."""
        if not self.values.null_count:
            return np.ones(len(self.values), dtype=np.bool_)
        valid: BoolArray = _numpy(self.values.is_valid())
        return valid

    def numbers(self, rows: RowIndices) -> tuple[FloatArray, RowIndices]:
        """Return some cells as numbers (m,)."""
        if not _is_number(self._plain.type):
            return np.full(len(rows), np.nan), np.flatnonzero(self.filled[rows])
        # Not kept, as most columns are read once: another copy of all numbers.
        numbers = _floats(self._plain)
        return numbers[rows] if len(rows) < len(numbers) else numbers, np.zeros(0, dtype=np.int64)

    def packed(self) -> tuple[Sequence[Column], BoolArray]:
        """Return all cells as four columns of n numbers, and which of them are not four."""
        values = self._plain.combine_chunks()
        coords = np.full((4, len(values)), np.nan)
        if not (hasattr(values.type, "value_type") and _is_number(values.type.value_type)):
            return [NumberColumn(column) for column in coords], self.filled
        whole = compute.fill_null(compute.equal(compute.list_value_length(values), 4), False)
        is_whole: BoolArray = _numpy(whole)
        # Lists of other lengths are removed first: only then are the numbers four to a row.
        coords[:, is_whole] = _floats(compute.list_flatten(values.filter(whole))).reshape(-1, 4).T
        return [NumberColumn(column) for column in coords], self.filled & ~is_whole

    def flags(self, rows: RowIndices) -> tuple[BoolArray, RowIndices]:
        """Return some cells as flags (m,)."""
        column = ArrowColumn(self.values.cast(arrow.int8())) if types.is_boolean(self.values.type) else self
        return flags_of(*column.numbers(rows))

    def keys(self, rows: RowIndices) -> tuple[CodedKeys, RowIndices]:
        """Return some cells as whole numbers or texts that are not empty (m,)."""
        keys = self._keys if len(rows) == len(self.values) else self._keys.take(rows)
        return keys, np.flatnonzero(np.array([key == "" for key in keys.distinct], dtype=np.bool_)[keys.codes])

    def shown(self, row: int) -> str:
        """Return a cell for a message, with the type of the column."""
        cell = self.values[row]
        is_list = isinstance(cell, arrow.ListScalar) and cell.is_valid
        if is_list and len(cell.values) > MAX_SHOWN_ENTRIES:  # one of nulls claims billions in a few bytes
            return f"a list of {len(cell.values):,} entries ({self._plain.type})"
        value = cell.as_py()
        return "null" if value is None else f"{quoted_value(value)} ({self._plain.type})"

    @cached_property
    def _plain(self) -> Any:
        """The cells themselves, where the file has indices of a dictionary."""
        if not types.is_dictionary(self.values.type):
            return self.values
        return self.values.cast(self.values.type.value_type)

    @cached_property
    def _keys(self) -> CodedKeys:
        """The keys of all cells, an empty text of what is none."""
        if not _is_key(self.values.type):
            return CodedKeys([""], np.zeros(len(self.values), dtype=np.int64)).take(slice(None))
        coded = self.values if types.is_dictionary(self.values.type) else self.values.dictionary_encode()
        coded = coded.unify_dictionaries().combine_chunks()
        coded = coded.combine_chunks() if isinstance(coded, arrow.ChunkedArray) else coded
        at: dict[Key, int] = {"": 0}
        # 1 and 1.0, or a text that is there twice, are one key.
        found = map(read_key, coded.dictionary.to_pylist())
        places = [at.setdefault("" if key is None else key, len(at)) for key in found]
        codes = _numpy(coded.indices.cast(arrow.int64()).fill_null(len(places)))
        return CodedKeys(list(at), np.array([*places, 0], dtype=np.int64)[codes]).take(slice(None))


def _is_number(kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def _is_key(kind: Any) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_text or types.is_integer(kind) or types.is_floating(kind))


def _floats(values: Any) -> FloatArray:
    """Return numbers as float64, NaN for null."""
    numbers: FloatArray = _numpy(values.cast("float64", safe=False))
    return numbers


def _numpy(values: Any) -> Any:
    return values.to_numpy() if isinstance(values, arrow.ChunkedArray) else values.to_numpy(zero_copy_only=False)


BOX = "bbox"
# Lists of boxes next to lists of labels are corners, as in JSON and in the dicts of trainers that they come from.
CORNERS, SIDES = "corners", ("xmin", "ymin", "xmax", "ymax")

Columns = dict[str, Any]  # of pyarrow.Array


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a file, flattened."""

    columns: Columns  # each of n rows
    rows: RowIndices | range  # of the file (n,)
    # Of the object in the lists of its row (n,), and whether the row is an image without objects according to these;
    # None where the row of the file is the box.
    positions: RowIndices | None = None
    bare: BoolArray | None = None
    inner: frozenset[str] = frozenset()  # columns that come from the lists of objects


def is_wanted(path: tuple[str, ...], named: Collection[str] = ()) -> bool:
    """Whether a column, or a field in a structure or list of structures, may be read: images and outlines are not.

    The columns that the user named are read, whatever they are called.
    """
    name, inner = path[0], path[1:]
    if name == OBJECTS:
        return not inner or inner[0] in named or count_known([SINGULAR.get(inner[0], inner[0])]) > 0
    if name == IMAGE_FIELD and inner:
        return inner[0] in (*PATHS, *OF_THE_IMAGE)
    return name in named or count_known([SINGULAR.get(name, name)]) > 0


def flatten(table: Any, first_row: int, path: str, findings: FindingLog, *, most: int) -> Batch:
    """Give every box of a batch a row of its own, and every image without boxes one.

    The batch starts with `first_row` of the file. Its lists may hold `most` objects; where they claim more it is a
    ValueError, for lists of nothing claim any number in a few bytes.
    """
    columns = dict(_outer_columns(table))
    objects = columns.pop(OBJECTS, None)
    if objects is None:
        objects = _lists_beside_boxes(columns)
    if objects is None:
        return Batch(columns, range(first_row, first_row + table.num_rows))
    rows = np.arange(first_row, first_row + table.num_rows)
    # With lists of objects width and height are those of the image; in flat rows they may be a box.
    columns = {OF_THE_IMAGE.get(name, name): values for name, values in columns.items()}
    lengths, inner = _objects(objects, rows, path, findings)
    if int(lengths.sum()) > most:
        raise ValueError(f"the lists of objects claim {int(lengths.sum()):,} entries")
    parents = np.repeat(np.arange(len(rows)), np.maximum(lengths, 1))
    starts = np.cumsum(np.maximum(lengths, 1)) - np.maximum(lengths, 1)
    positions = np.arange(len(parents)) - starts[parents]
    spread = {name: _taken(values, parents) for name, values in columns.items() if name not in inner}
    empty = lengths[parents] == 0
    if empty.any():
        # Images without objects have nothing to take: each such row before moves the objects by one.
        sources = np.arange(len(parents)) - np.cumsum(empty)
        inner = {name: _taken(values, sources, empty) for name, values in inner.items()}
    return Batch({**spread, **inner}, rows[parents], positions, empty, frozenset(inner))


def _lists_beside_boxes(columns: Columns) -> Any:
    """Take the columns that hold as many values in each row as it has boxes; None where a row is one box."""
    boxes = columns.get("boxes")
    if boxes is None or not (_is_list(boxes.type) and _is_list(boxes.type.value_type)):
        return None
    own = [name for name, values in columns.items() if _is_list(values.type)]
    own = [name for name in own if np.array_equal(_lengths(columns[name]), _lengths(boxes))]
    names = [CORNERS if name == "boxes" else name for name in own]
    return arrow.StructArray.from_arrays([columns.pop(name) for name in own], names=names)


def _outer_columns(table: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns; structures that are an image or a box give their fields."""
    for name in table.schema.names:
        values = _plain(table.column(name))
        if name == IMAGE_FIELD and _is_struct(values):
            yield from _picture_columns(values)
        elif SINGULAR.get(name, name) == BOX and _is_struct(values):
            yield from _fields(values).items()
        else:
            yield name, values


def _picture_columns(picture: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and size of an image; a name that no row has is skipped."""
    fields = _fields(picture)
    path = next((fields[name] for name in PATHS if name in fields and fields[name].null_count < len(picture)), None)
    if path is not None:
        yield IMAGE_FIELD, path
    yield from ((name, fields[side]) for side, name in OF_THE_IMAGE.items() if side in fields)


def _objects(objects: Any, rows: RowIndices, path: str, findings: FindingLog) -> tuple[RowIndices, Columns]:
    """Return the number of objects of each row, and their columns; of those that cannot be used there are none."""
    is_null, kind = types.is_null, objects.type
    # No row has an object, in a column that does not even have a type for them.
    if is_null(kind) or (_is_list(kind) and is_null(kind.value_type) and not _lengths(objects).any()):
        return np.zeros(len(rows), dtype=np.int64), dict.fromkeys(USUAL, objects.slice(0, 0))
    if _is_list(objects.type) and _is_struct_type(objects.type.value_type):
        return _lengths(objects), _renamed(_fields(compute.list_flatten(objects)))
    lists = _fields(objects) if _is_struct(objects) else {}
    if not lists or not all(_is_list(values.type) for values in lists.values()):
        where = Where(path, field=OBJECTS)
        findings.error("objects-type", where, f"holds {objects.type}; expected lists of objects", fix=OBJECTS_FIX)
        return np.zeros(len(rows), dtype=np.int64), {}
    lengths = {name: _lengths(values) for name, values in lists.items()}
    shortest = np.minimum.reduce(list(lengths.values()))
    uneven = np.flatnonzero(shortest != np.maximum.reduce(list(lengths.values())))

    def describe(row: int) -> tuple[Where, str]:
        told = ", ".join(f"{length[row]} of {name}" for name, length in lengths.items())
        return Where(path, record=f"row {rows[row]}", field=OBJECTS), f"the lists differ in length: {told}"

    findings.add_rows(Severity.ERROR, "objects-type", uneven, describe, fix=OBJECTS_FIX)
    # In lists of unequal length it is unknown which values go together: the file is refused for it.
    if len(uneven):
        return np.zeros(len(rows), dtype=np.int64), {}
    return shortest, _renamed({name: compute.list_flatten(values) for name, values in lists.items()})


def _renamed(fields: Columns) -> Columns:
    """Return fields of objects by the names that columns have; a box that is a structure gives its fields."""
    columns: Columns = {}
    for name, values in fields.items():
        title = SINGULAR.get(name, name)
        columns |= _fields(values) if title == BOX and _is_struct(values) else {title: values}
    corners = columns.pop(CORNERS, None)
    if corners is not None:
        columns[BOX] = corners
        with contextlib.suppress(arrow.ArrowException):  # of too few numbers, which are left to who reads boxes
            columns |= {side: compute.list_element(corners, at) for at, side in enumerate(SIDES)}
            del columns[BOX]
    return columns


def _fields(structure: Any) -> Columns:
    """Return the fields of a structure, null where it is null."""
    names = [structure.type.field(at).name for at in range(structure.type.num_fields)]
    return {name: _plain(compute.struct_field(structure, [at])) for at, name in enumerate(names)}


def _plain(values: Any) -> Any:
    """Return an array in one piece, without the name that a library gave its type."""
    if isinstance(values, arrow.ChunkedArray):
        values = values.combine_chunks()
        values = values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values
    return values.storage if isinstance(values, arrow.ExtensionArray) else values


def _lengths(lists: Any) -> RowIndices:
    lengths = compute.fill_null(compute.list_value_length(lists), 0)
    found: RowIndices = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _taken(values: Any, rows: RowIndices, missing: Any = None) -> Any:
    return values.take(arrow.array(rows, mask=missing))


def _is_struct(values: Any) -> bool:
    return _is_struct_type(values.type)


def _is_struct_type(kind: Any) -> bool:
    return bool(types.is_struct(kind))


def _is_list(kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
