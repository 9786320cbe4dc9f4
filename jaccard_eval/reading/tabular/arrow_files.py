"""Arrow and Parquet files: recognised, opened alone or as folders of parts, their columns read into a draft."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import require
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import tracked
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import SPLIT_NAMES, choose_split, list_tree, split_of
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.reading.tabular import ARROW_MAGIC, is_arrow, is_besides, is_parquet
from jaccard_eval.reading.tabular.columns import IMAGE, RowIndices, count_known, find_column, outdone_names, read_naming
from jaccard_eval.reading.tabular.table import (
    IMAGE_FIELD,
    OBJECTS,
    OBJECTS_FIX,
    OF_THE_IMAGE,
    PATHS,
    SINGULAR,
    USUAL,
    Column,
    NumberColumn,
    Table,
    add_table,
    flags_of,
    read_key,
)
from jaccard_eval.text import pluralise, quoted_value

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


OWN_KEY = b"jaccard_eval"
HUGGING_FACE_KEY = b"huggingface"
_NUMBERS = pattern("[0-9a-f]{8,}|[0-9]+")  # of parts, in the names of their files
_SHOWN = 5  # files that a message lists


def dump_remarks(column: str, classes: Mapping[Key, str], *, units: str, listed: bool, named: bool) -> bytes:
    """Return the description that a table written here carries."""
    about = {"column": column, "classes": list(classes.items()), "units": units, "listed": listed, "named": named}
    return json.dumps(about).encode()


def read_remarks(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return what the metadata of a schema holds about a `Table`; unexpected values are ignored."""
    own = _loaded(metadata.get(OWN_KEY, b""))
    if isinstance(own, dict) and own.get("units") in ("px", "norm"):
        names: dict[Key, str] = {}
        listed_classes = own.get("classes")
        for pair in listed_classes if isinstance(listed_classes, list) else ():
            match pair:
                case [int() | str() as key, str() as name] if not isinstance(key, bool):
                    names[key] = name
        said = {name: own.get(name) is True for name in ("listed", "named")}
        # What was written here has its ids in the columns of ids, and nothing else is a key.
        return {"class_names": {str(own.get("column")): names}, "keyed": True, "units": own["units"], **said}
    described = _loaded(metadata.get(HUGGING_FACE_KEY, b""))
    return {"class_names": dict(_class_labels(_at(described, "info", "features")))}


def _class_labels(features: Any) -> Iterator[tuple[str, dict[Key, str]]]:
    """Yield the columns that hold indices of named classes, those of objects included."""
    for name, feature in features.items() if isinstance(features, dict) else ():
        if name == OBJECTS:
            yield from _class_labels(_inside(feature))
            continue
        names = _at(_inside(feature), "names")
        if isinstance(names, list) and all(isinstance(class_name, str) for class_name in names):
            yield str(SINGULAR.get(name, name)), dict(enumerate(names))


def _inside(feature: Any) -> Any:
    """Return what a list, however it is written, is a list of."""
    # Releases of `datasets` write a list as [feature], or as an object of the type Sequence, List or LargeList.
    while isinstance(feature, list) and len(feature) == 1:
        feature = feature[0]
    while isinstance(feature, dict) and isinstance(feature.get("_type"), str) and "feature" in feature:
        feature = feature["feature"]
    return feature


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


ROW_BYTES = 32  # of memory that a row takes at least: four coordinates, or an image and what it is repeated for

_LIST_PARTS = frozenset({"list", "element", "item", "array", "bag", "array_element"})  # of Parquet's names in a list


@dataclass(slots=True)
class Content:
    """What a file holds."""

    batches: list[Batch] = field(default_factory=list)  # at least one, which may be empty
    unread: list[str] = field(default_factory=list)  # columns, and fields of objects, that were ignored
    metadata: dict[bytes, bytes] = field(default_factory=dict)  # of the schema
    named: frozenset[str] = frozenset()  # columns that the user wants to be read


def read_content(path: Path, findings: FindingLog, named: frozenset[str] = frozenset()) -> Content:
    """Read a file, whatever its suffix: Parquet, Arrow or an Arrow stream by its first bytes."""
    require("pyarrow", extra=EXTRA)  # modules of it that are loaded already would do their part without the rest
    with _damage_named(path), files.open_in_place(path) as file:
        return _read(path, file, findings, Content(named=named))


@contextlib.contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Raise a DataError that names a file which cannot be read."""
    reason = ""
    try:
        yield
    except MemoryError:
        # A damaged file of a few bytes may ask for terabytes; a large one is just too large for the machine.
        if path.stat().st_size > files.UNPACKED_FLOOR:
            raise
        reason = "it needs more memory than there is"
    except (arrow.ArrowException, OSError, ValueError, LookupError, ArithmeticError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    if reason:
        fix = "Copy or export the file again."
        raise DataError.single("arrow-damaged", Where(str(path)), f"cannot be read: {reason}", fix=fix)


def _read(path: Path, file: BinaryIO, findings: FindingLog, content: Content) -> Content:
    start = _start_of(file, path)
    budget = _Budget(max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * files.size_of(file)))
    first_row = 0
    for table in _parquet(file, content, budget) if is_parquet(start) else _arrow(file, start, content, budget):
        budget.require(ROW_BYTES * table.num_rows)
        table.validate(full=True)  # before anything else is asked of it: pyarrow trusts what it reads
        content.batches.append(flatten(table, first_row, str(path), findings, most=budget.left // ROW_BYTES))
        budget.spend(table.nbytes)
        first_row += table.num_rows
    return content


def _start_of(file: BinaryIO, path: Path) -> bytes:
    """Return the first bytes, which are those of Parquet or Arrow."""
    start = file.read(files.SNIFF_BYTES)
    if not (is_parquet(start) or is_arrow(start)):
        files.read_bytes(path)  # which knows what else is passed by mistake
        detail = "is neither Parquet nor Arrow by its first bytes"
        raise DataError.single("wrong-content", Where(str(path)), detail, fix="Check the path, or name the format.")
    file.seek(0)
    return start


@dataclass(slots=True)
class _Budget:
    """What a file may unpack to: a few kilobytes can claim gigabytes."""

    left: int

    def spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        self.require(0)

    def require(self, n_bytes: int) -> None:
        """Raise a ValueError when more is claimed than is left."""
        if n_bytes > self.left:
            raise ValueError("it unpacks to far more than its size allows; write it without compression")


def _parquet(file: BinaryIO, content: Content, budget: _Budget, rows: int | None = None) -> Iterator[Any]:
    """Yield the row groups, or so many rows, with indices of a dictionary for texts.

    One text for a million rows is then one text.
    """
    parquet = require("pyarrow.parquet", extra=EXTRA)
    # Opened for its description first, which decides which columns are read, and how.
    opened = parquet.ParquetFile(file)
    schema, about = opened.schema_arrow, opened.metadata
    content.metadata = schema.metadata or {}
    leaves = [opened.schema.column(at) for at in range(len(opened.schema))]
    # Bare bytes, such as an encoded image, are not read.
    texts = ("STRING", "DECIMAL", "JSON", "ENUM")
    readable = [leaf for leaf in leaves if leaf.physical_type != "BYTE_ARRAY" or leaf.logical_type.type in texts]
    read = [leaf for leaf in readable if is_wanted(_parts(leaf.path), content.named)]
    paths = {leaf.path for leaf in read}
    content.unread = list(
        dict.fromkeys(_unread_name(".".join(_parts(leaf.path)[:2])) for leaf in leaves if leaf.path not in paths)
    )
    # Not that of the columns in it: to ask for these ends the process where the file is damaged (pyarrow 26).
    groups = [about.row_group(group).total_byte_size for group in range(about.num_row_groups)]
    budget.require(max(sum(groups), ROW_BYTES * about.num_rows))
    coded = [leaf.path for leaf in read if leaf.physical_type == "BYTE_ARRAY"]
    # Few writers add checksums, and without one a flipped bit is just another number.
    # What is read of a row group is asked for at once, which counts where a file lies behind a network.
    how = {"page_checksum_verification": True, "pre_buffer": True}
    opened = parquet.ParquetFile(file, metadata=about, read_dictionary=coded, **how)
    # A file without rows has columns all the same, which messages name.
    if not groups:
        yield opened.read(columns=sorted(paths))
    if rows is not None and groups:
        for together in _runs([about.row_group(group).num_rows for group in range(len(groups))], rows):
            # A reader of its own, as one keeps the bytes of all row groups that it has read.
            opened = parquet.ParquetFile(file, metadata=about, read_dictionary=coded, **how)
            pieces = opened.iter_batches(rows, row_groups=together, columns=sorted(paths))
            yield from (arrow.Table.from_batches([piece]) for piece in pieces)
        return
    for group in range(len(groups)):
        yield opened.read_row_group(group, columns=sorted(paths))


def _runs(sizes: list[int], least: int) -> Iterator[list[int]]:
    """Yield consecutive row groups that have so many rows together, the last ones perhaps fewer."""
    run: list[int] = []
    for group in range(len(sizes)):
        run.append(group)
        if sum(sizes[row] for row in run) >= least:
            yield run
            run = []
    if run:
        yield run


def _arrow(file: BinaryIO, start: bytes, content: Content, budget: _Budget) -> Iterator[Any]:
    """Yield the record batches of a file or a stream."""
    ipc = require("pyarrow.ipc", extra=EXTRA)
    is_file = start.startswith(ARROW_MAGIC)
    opener = ipc.open_file if is_file else ipc.open_stream
    schema = opener(file).schema
    file.seek(0)
    content.metadata = schema.metadata or {}
    are_bytes = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    wanted = [at for at, column in enumerate(schema) if is_wanted((column.name,), content.named)]
    chosen = [at for at in wanted if not any(is_kind(schema.field(at).type) for is_kind in are_bytes)]
    content.unread = [_unread_name(column.name) for at, column in enumerate(schema) if at not in chosen]
    reader = opener(file, options=ipc.IpcReadOptions(included_fields=chosen, use_threads=True))
    # First no rows at all, so that a file without batches has its columns too.
    yield arrow.schema([schema.field(at) for at in chosen]).empty_table()
    yield from map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader


def _parts(path: str) -> tuple[str, ...]:
    """Return the names of a column and of the fields in it."""
    name, *inner = path.split(".")
    return (name, *(part for part in inner if part not in _LIST_PARTS))


def _unread_name(title: str) -> str:
    """Return what a column that is not read is called: bytes do not take the name of what is read."""
    return f"{title} (bytes)" if count_known([title]) else title


SPLIT = "split"

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_SHARD = pattern(r"([a-z]+)(?:-\d{5}-of-\d{5})?", re.IGNORECASE)  # of the Hub: validation-00000-of-00002.parquet


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a folder, and the columns that the names of its folders give it."""

    path: Path
    columns: Mapping[str, str | None]
    split: str | None  # by a folder ``split=val``, a folder or a file that is called like one


def find_parts(path: Path, suffixes: Collection[str], draft: Draft) -> list[Part]:
    """Return the files of an input, sorted: a file itself, or those of a folder that are of the split asked for."""
    if not files.is_folder(path):
        return [Part(path, {}, None)]
    names = [name for name in list_tree(path, draft.findings) if not any(map(is_besides, name.split("/")))]
    parts = [_part(path, name) for name in names if Path(name).suffix.lower() in suffixes]
    if not parts:
        detail = f"no {next(iter(suffixes))} files"
        raise DataError.single("labels-missing", Where(str(path)), detail, fix="Pass the folder of the tables.")
    others = len(names) - len(parts)
    if others:
        draft.ignored["other-files"] += others
        draft.findings.warning(
            "other-files", Where(str(path)), f"ignored {pluralise(others, 'file')} other than tables"
        )
    return _of_split(path, parts, draft)


def _part(folder: Path, name: str) -> Part:
    """Return a file with the columns from its path."""
    *folders, file = name.split("/")
    pairs = [inner.partition("=") for inner in folders if "=" in inner.strip("=")]
    columns = {unquote(key): None if value == _NO_VALUE else unquote(value) for key, _, value in pairs}
    # The split is that of a folder split=val, else of a folder or a file that is called like one.
    shard = _SHARD.fullmatch(Path(file).stem)
    names = [*folders, *([shard[1]] if shard else [])]
    called = next((part for part in reversed(names) if part.lower() in SPLIT_NAMES), None)
    named = columns.pop(SPLIT) if SPLIT in columns else called
    split = split_of(named.lower()) if named and named.lower() in SPLIT_NAMES else named
    return Part(folder / name, columns, split)


def _of_split(path: Path, parts: list[Part], draft: Draft) -> list[Part]:
    """Return the files of the split asked for; all of them where not every file is of a split."""
    there = list(dict.fromkeys(part.split for part in parts if part.split is not None))
    # Where one file is of no split, the names of the others are chance, and all are read.
    if not there or any(part.split is None for part in parts):
        return parts
    draft.has_splits = True
    split = choose_split(draft.options.split, there, Where(str(path)), draft.findings)
    draft.details.append(f"split {split}")
    return [part for part in parts if part.split == split]


def read_tables(path: Path, suffixes: Collection[str], draft: Draft) -> None:
    """Add the boxes of a file, or of all files of a folder, to the draft."""
    table = _read_merged(path, suffixes, draft)
    draft.findings.raise_errors()
    if table is not None:
        add_table(table, draft)


def _read_merged(path: Path, suffixes: Collection[str], draft: Draft) -> Table | None:
    parts = find_parts(path, suffixes, draft)
    contents = [_read_part(part, draft) for part in tracked(parts, "files")]
    draft.findings.raise_errors()
    table = _merged(parts, contents, draft)
    draft.findings.raise_errors()
    _check_rivals(parts, contents, draft)
    return table


def _check_rivals(parts: list[Part], contents: list[Content], draft: Draft) -> None:
    """Refuse files of a folder that are several inputs: of the same images, and not numbered as parts of one are."""
    if len({_NUMBERS.sub("", part.path.stem) for part in parts}) < 2:
        return
    images = [
        {
            name
            for batch in content.batches
            for column, values in batch.columns.items()
            if column.lower() in IMAGE
            for name in values.unique().to_pylist()
        }
        for content in contents
    ]
    if len(set.intersection(*images)) > max(map(len, images)) / 2:
        detail = f"holds {len(parts)} files with boxes of the same images, and any of them may be meant"
        choices = ", ".join(str(part.path) for part in parts[:_SHOWN])
        draft.findings.error("input-ambiguous", Where(draft.path), detail, fix=f"Pass one: {choices}.")


def read_tables_in_parts(path: Path, suffixes: Collection[str], draft: Draft, rows: int) -> Iterator[Draft]:
    """Yield a draft with the boxes of about so many rows each; `draft` has what is found before that."""
    files_of_input = find_parts(path, suffixes, draft)
    named = frozenset(read_naming(draft.options.columns).values())
    require("pyarrow", extra=EXTRA)
    schemas = [_schema(part.path) for part in files_of_input]
    # The columns of each file, without rows.
    heads = [Content(batches=[Batch(dict.fromkeys(schema.names), range(0))]) for schema in schemas]
    said = [read_remarks(schema.metadata or {}) for schema in schemas]
    remarks = said[0] if all(other == said[0] for other in said) else {}
    _check_alike(files_of_input, heads, draft)
    draft.findings.raise_errors()
    for part in tracked(files_of_input, "files"):
        for content in _contents(part, draft, named, rows):
            own = Draft(draft.path, draft.format_name, draft.options)
            own.details = list(draft.details)
            table = _merged([part], [_with_path_columns(part, content)], own, remarks)
            own.findings.raise_errors()
            if table is not None:
                add_table(table, own)
            yield own


def _contents(part: Part, draft: Draft, named: frozenset[str], rows: int) -> Iterator[Content]:
    """Yield the rows of a file, so many at a time; a DataError names the file where it is damaged, or changes."""
    first_row = 0
    with _damage_named(part.path), files.open_in_place(part.path) as file:
        start = _start_of(file, part.path)
        budget = _Budget(max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * files.size_of(file)))
        content = Content(named=named)
        for table in (
            _parquet(file, content, budget, rows) if is_parquet(start) else _arrow(file, start, content, budget)
        ):
            for offset in range(0, max(table.num_rows, 1), rows):
                piece = table.slice(offset, rows)
                piece.validate(full=True)
                most = budget.left // ROW_BYTES
                batch = flatten(piece, first_row, str(part.path), draft.findings, most=most)
                yield Content([batch], content.unread, content.metadata, named)
                first_row += piece.num_rows


def _schema(path: Path) -> Any:
    with _damage_named(path), files.open_in_place(path) as file:
        start = _start_of(file, path)
        if is_parquet(start):
            return require("pyarrow.parquet", extra=EXTRA).read_schema(file)
        ipc = require("pyarrow.ipc", extra=EXTRA)
        return (ipc.open_file if start.startswith(ARROW_MAGIC) else ipc.open_stream)(file).schema


def _read_part(part: Part, draft: Draft) -> Content:
    """Read a file, and give it the columns from its path."""
    try:
        content = read_content(part.path, draft.findings, frozenset(read_naming(draft.options.columns).values()))
    except DataError as error:
        draft.findings.extend(error.findings)
        return Content()
    return _with_path_columns(part, content)


def _with_path_columns(part: Part, content: Content) -> Content:
    for at, batch in enumerate(content.batches):
        columns = dict(batch.columns)
        for name, value in part.columns.items():
            if name not in columns:
                # A column of one value: a whole number where the text is one.
                typed = None if value is None else int(value) if value.isdecimal() and len(value) <= 18 else value
                indices = arrow.array(np.zeros(len(batch.rows), dtype=np.int32))
                columns[name] = arrow.DictionaryArray.from_arrays(indices, arrow.array([typed]))
        content.batches[at] = replace(batch, columns=columns)
    return content


def _merged(
    parts: list[Part], contents: list[Content], draft: Draft, remarks: Mapping[str, Any] | None = None
) -> Table | None:
    """Return one table of all batches; `remarks` are those on which all files agree, these ones unless given."""
    batches = [batch for content in contents for batch in content.batches]
    _check_alike(parts, contents, draft)
    try:
        tables = [
            arrow.table({name: _mergeable(values) for name, values in batch.columns.items()}) for batch in batches
        ]
        merged = arrow.concat_tables(tables, promote_options="permissive")
    except (arrow.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        fix = "Write all files with the same types."
        draft.findings.error("arrow-damaged", Where(draft.path), f"its parts do not fit together: {reason}", fix=fix)
        return None
    inner = frozenset(name for batch in batches for name in batch.inner)
    # Where rows come from, but not their cells: messages are made long after these are read.
    origins = [
        (part.path, batch.rows, batch.positions)
        for part, content in zip(parts, contents, strict=True)
        for batch in content.batches
    ]
    starts = np.cumsum([0, *(len(batch.rows) for batch in batches)])

    def place(row: int, column: str | None) -> Where:
        at = int(np.searchsorted(starts, row, "right")) - 1
        path, rows, positions = origins[at]
        of_batch = row - int(starts[at])
        where = Where(str(path), record=f"row {rows[of_batch]}", field=column)
        position = -1 if positions is None else positions[of_batch]
        return replace(where, field=f"{OBJECTS}[{position}].{column}") if column in inner else where

    cells: dict[str, Column] = {name: ArrowColumn(merged.column(name)) for name in merged.column_names}
    unread = [name for content in contents for name in content.unread if name not in cells]
    if remarks is None:
        said = [read_remarks(content.metadata) for content in contents]
        remarks = said[0] if all(other == said[0] for other in said) else {}
    # What was not read has a name that messages may repeat, and no cells.
    cells |= {name: Column(()) for name in unread}
    if _names_unread(tuple(cells), unread, draft):
        return None
    return Table(
        header=tuple(cells),
        titles=tuple(cells),
        columns=dict(enumerate(cells.values())),
        n_rows=int(starts[-1]),
        place=place,
        bare=np.concatenate([_bare(batch) for batch in batches]) if inner else None,
        **{**remarks, "listed": remarks.get("listed", False) or bool(inner)},
    )


def _names_unread(header: tuple[str, ...], unread: Collection[str], draft: Draft) -> bool:
    """Report columns that the options name and that are not read."""
    named = [find_column(header, column) for column in read_naming(draft.options.columns).values()]
    refused = [header[at] for at in named if at is not None and header[at] in unread]
    for name in refused:
        reason = f"it holds bytes, or is in a structure other than '{OBJECTS}'"
        detail = f"column {quoted_value(name)} cannot be read: {reason}"
        fix = f"Write it as a column of its own, or call the structure '{OBJECTS}'."
        draft.findings.error("csv-column-missing", Where(draft.path), detail, fix=fix)
    return bool(refused)


def _bare(batch: Batch) -> BoolArray:
    return np.ones(len(batch.rows), dtype=np.bool_) if batch.bare is None else batch.bare


def _check_alike(parts: list[Part], contents: list[Content], draft: Draft) -> None:
    """Report files that lack a column that another one has: its rows would be read without a word."""
    names = [{name for batch in content.batches for name in batch.columns} for content in contents]
    every = set().union(*names)
    every -= outdone_names(sorted(every))
    for part, own in zip(parts, names, strict=True):
        missing = ", ".join(map(quoted_value, sorted(every - own)))
        if missing:
            detail = f"no column {missing}, but other files of the folder have it"
            draft.findings.error(
                "csv-column-missing", Where(str(part.path)), detail, fix=("Write all files with the same columns.")
            )


def _mergeable(values: Any) -> Any:
    """Return texts of every type as indices of a dictionary, so that files that differ in it go together."""
    kind, coded = values.type, arrow.dictionary(arrow.int32(), arrow.string())
    texts = kind.value_type if types.is_dictionary(kind) else kind
    is_text = types.is_string(texts) or types.is_large_string(texts) or types.is_string_view(texts)
    if not is_text:
        return values.dictionary_decode() if types.is_dictionary(kind) else values
    if kind == coded:
        values.dictionary.validate(full=True)  # which the validation of the whole skips
        return values
    plain = values.cast(texts) if types.is_dictionary(kind) else values
    return plain.cast(arrow.string()).dictionary_encode()
