"""Parts as Parquet files: rows by image and then as in the input, in row groups of whole images; shapes are lists."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FLAGS, MAX_AREA, MAX_COORDINATE, MAX_SCORE, BoxTable, Shapes, Words, freeze
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS, label_words, row_words
from jaccard_eval.engine import Place, absolute
from jaccard_eval.errors import UsageError, require
from jaccard_eval.findings import DataError, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.reading.partitions.manifest import FIX, PartRecord
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import IntArray, offsets_of
from jaccard_eval.similarity.spheres import Spheres

# Of each kind, by the name that `iou_type` has for it.
COLUMNS: dict[str, dict[str, str]] = {
    "segm": {
        "runs": "int64 lists",  # where runs begin and end, down the columns of an image of this height and width
        "height": "int64",
        "width": "int64",
        "polygons": "int64 lists",  # how many corners each has
        "corners": "double lists",  # x and y of each
        "has_polygons": "bool",
        "counts_pixels": "bool",  # whether the area of the object is that of its pixels
    },
    "keypoints": {"points": "double lists"},  # x, y and visibility of each
    "obb": {"corners": "double lists"},  # x and y of four
    "spheres": {"spheres": "double lists"},  # x, y, z and diameter
}

Lists = tuple[npt.NDArray[Any], IntArray]  # the numbers of all rows, and where those of each row begin, and the end
Column = npt.NDArray[Any] | Lists


def columns_of_shapes(shapes: Shapes) -> dict[str, Column]:
    """Return the columns of shapes by name."""
    if isinstance(shapes, Outlines):
        runs = shapes.masks.runs
        return {
            "runs": (runs.edges, runs.offsets),
            "height": shapes.masks.sizes[:, 0],
            "width": shapes.masks.sizes[:, 1],
            "polygons": (np.diff(shapes.rings), shapes.parts),
            "corners": (shapes.corners.ravel(), shapes.rings[shapes.parts] * 2),
            "has_polygons": shapes.has_polygons,
            "counts_pixels": shapes.counts_pixels,
        }
    ((name, numbers),) = shapes.to_arrays().items()
    return {name: (numbers.ravel(), np.arange(len(numbers) + 1) * int(np.prod(numbers.shape[1:])))}


def shapes_of_columns(kind: str, columns: Mapping[str, Any]) -> Shapes:
    """Return the shapes of some rows; a ValueError reports columns that are not those of any."""
    try:
        if kind == "segm":
            return _outlines(columns)
        if kind == "obb":
            return Quads.from_arrays({"corners": _alike(columns["corners"], 8).reshape(-1, 4, 2)})
        if kind == "spheres":
            return Spheres.from_arrays({"spheres": _alike(columns["spheres"], 4).reshape(-1, 4)})
        n, length = len(columns["points"][1]) - 1, int(columns["points"][1][1])
        return Keypoints.from_arrays({"points": _alike(columns["points"], length).reshape(n, -1, 3)})
    except UsageError as error:
        raise ValueError(str(error)) from None


def meaning_of(shapes: Shapes) -> Words:
    """Return what of shapes no hash of theirs covers, as words (n, k)."""
    if not isinstance(shapes, Outlines):
        return np.zeros((len(shapes), 0), dtype=np.uint64)
    return np.stack((shapes.has_polygons, shapes.counts_pixels), axis=1).astype(np.uint64)


def _outlines(columns: Mapping[str, Any]) -> Outlines:
    (runs, offsets), (cuts, parts), (corners, ends) = (columns[name] for name in ("runs", "polygons", "corners"))
    rings = offsets_of(cuts)
    # Lists of another length would be corners of the next mask.
    if (cuts < 0).any() or not np.array_equal(rings[parts] * 2, ends):
        raise ValueError("masks: corners and polygons do not fit together")
    sizes = np.stack((columns["height"], columns["width"]), axis=1)
    flags = {name: columns[name] for name in ("has_polygons", "counts_pixels")}
    polygons = {"corners": corners.reshape(-1, 2), "rings": rings, "parts": parts}
    return Outlines.from_arrays({"edges": runs, "offsets": offsets, "sizes": sizes, **polygons, **flags})


def _alike(lists: Any, length: int) -> npt.NDArray[Any]:
    """Return the numbers of all rows, each of which must have as many."""
    numbers, offsets = lists
    if (np.diff(offsets) != length).any():
        raise ValueError(f"shapes must have {length} numbers in every row")
    return np.asarray(numbers)


EXTRA = "parquet"
ROW_BYTES = 40  # of a row unpacked, at least: what a file claims must not be far more than its size
NUMBER_BYTES = 3  # of a number of a row or of its lists, on average
_SIDES = ("x", "y", "w", "h")

Identity = tuple[int, int]  # size and time of a file


def columns_of(role: str, kind: str | None) -> dict[str, str]:
    """Return the columns of a side, each with its type; shapes of a kind are behind the others."""
    score = {"score": "double"} if role == "pred" else {}
    return {
        "image": "int32",
        "label": "int32",
        **dict.fromkeys(_SIDES, "double"),
        **score,
        "area": "double",
        **dict.fromkeys(FLAGS, "bool"),
        "source": "int64",
        **(COLUMNS[kind] if kind else {}),
    }


class RowDigest:
    """SHA-256 of rows in their order, however many of them are added at once; those of a part belong to a `whole`."""

    def __init__(self, whole: RowDigest | None = None) -> None:
        self._content, self._whole = hashlib.sha256(), whole

    def add(self, boxes: BoxTable) -> None:
        """Add rows; images and classes are known by their numbers."""
        ranks = np.arange(int(boxes.label.max(initial=-1)) + 1, dtype=np.uint64)
        place = np.stack((boxes.image, boxes.source), axis=1).astype(np.uint64)
        if boxes.shapes is not None:
            place = np.hstack((place, boxes.shapes.hashes(), meaning_of(boxes.shapes)))
        words = row_words(boxes, label_words(boxes, ranks), place, np.arange(len(boxes)))
        self._content.update(words.data)
        if self._whole is not None:
            self._whole._content.update(words.data)

    def digest(self, role: str, units: str) -> str:
        """Return the fingerprint of all rows."""
        content = self._content.copy()
        content.update(f"rows of {role} {units}".encode())
        return f"{FINGERPRINT}{content.hexdigest()[:FINGERPRINT_DIGITS]}"


class PartWriter:
    """Writes one part, row group by row group."""

    def __init__(self, path: Path, role: str, kind: str | None) -> None:
        arrow, parquet = require("pyarrow", extra=EXTRA), require("pyarrow.parquet", extra=EXTRA)
        types = {"int32": arrow.int32(), "int64": arrow.int64(), "double": arrow.float64(), "bool": arrow.bool_()}
        types |= {f"{name} lists": arrow.large_list(types[name]) for name in ("int64", "double")}
        self._schema = arrow.schema(
            [arrow.field(name, types[given], nullable=False) for name, given in columns_of(role, kind).items()]
        )
        self._arrow = arrow
        # Few numbers repeat; images, classes and flags do.
        repeated = ["image", "label", *FLAGS]
        self._writer = parquet.ParquetWriter(path, self._schema, use_dictionary=repeated, write_page_checksum=True)

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, boxes: BoxTable) -> None:
        """Write a row group."""
        given: dict[str, Any] = {**boxes.columns(), **dict(zip(_SIDES, boxes.xywh.T, strict=True))}
        given |= {} if boxes.shapes is None else columns_of_shapes(boxes.shapes)
        columns = [self._column(given[name]) for name in self._schema.names]
        self._writer.write_table(self._arrow.table(columns, schema=self._schema), row_group_size=max(len(boxes), 1))

    def _column(self, given: Any) -> Any:
        if isinstance(given, tuple):
            numbers, offsets = map(np.ascontiguousarray, given)
            return self._arrow.LargeListArray.from_arrays(self._arrow.array(offsets), self._arrow.array(numbers))
        return np.ascontiguousarray(given)


@contextlib.contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raise a DataError that names a part which cannot be read."""
    arrow = require("pyarrow", extra=EXTRA)
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, LookupError, ArithmeticError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise invalid(path, f"cannot be read: {reason}") from None


def invalid(path: Path, detail: str, record: str | None = None) -> DataError:
    """Return the error of a part that holds what it must not."""
    return DataError.single("partitions-invalid", Where(str(path), record=record), detail, fix=FIX)


def changed_part(path: Path, detail: str) -> DataError:
    """Return the error of a part that is not the one that was written."""
    return DataError.single("input-changed", Where(str(path)), detail, fix=FIX)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive groups of one part: images that nothing else has, few enough rows for memory."""

    path: Path
    role: str
    kind: str | None  # of its shapes
    groups: tuple[int, ...]  # numbers of row groups
    identity: Identity  # of the file when it was checked

    def read(self) -> BoxTable:
        """Return the boxes; a DataError reports that the part is not what it was."""
        with open_part(self.path) as (opened, identity):
            if identity != self.identity:
                raise changed_part(self.path, "changed while it was read")
            return _table(opened.read_row_groups(list(self.groups)), self.role, self.kind)

    def absolute(self) -> Stretch:
        """Return the same as another process finds it."""
        return replace(self, path=absolute(self.path))


@contextlib.contextmanager
def open_part(path: Path) -> Iterator[tuple[Any, Identity]]:
    """Open a Parquet file where it lies, so that flipped bits are found, with what changes when it is written to.

    A DataError names a file that cannot be read, or is written to meanwhile.
    """
    parquet = require("pyarrow.parquet", extra=EXTRA)
    with contextlib.ExitStack() as stack:
        stack.enter_context(damage_named(path))
        if isinstance(path, Place):
            # Asked for anew, not of what this process knows: it may be a worker that serves many runs.
            there = stack.enter_context(path.opened_anew())
            file, identity = there.native, (there.entry.size or 0, there.entry.changed)
        else:
            file = stack.enter_context(files.open_regular(path))
            stack.enter_context(files.unchanging(path, file))
            status = os.fstat(file.fileno())
            identity = status.st_size, status.st_mtime_ns
        yield parquet.ParquetFile(file, page_checksum_verification=True), identity


def _table(rows: Any, role: str, kind: str | None) -> BoxTable:
    """Return the boxes of an Arrow table; a ValueError reports a cell without a value."""
    rows.validate(full=True)
    columns: dict[str, Any] = {}
    for name, given in columns_of(role, kind).items():
        column = rows.column(name)
        if column.null_count:
            raise ValueError(f"{name} has no value in {column.null_count:,} rows")
        columns[name] = _lists(column, name) if given.endswith("lists") else column.to_numpy()
    xywh = np.stack([columns.pop(name) for name in _SIDES], axis=1)
    of_shapes = {name: columns.pop(name) for name in (COLUMNS[kind] if kind else ())}
    # A side without boxes need not have any.
    shapes = shapes_of_columns(kind, of_shapes) if kind and len(xywh) else None
    return freeze(BoxTable(xywh=xywh, shapes=shapes, **{"score": None, **columns}))


def _lists(column: Any, name: str) -> tuple[Any, Any]:
    """Return the numbers of all rows, and where those of each row begin, and the end."""
    lists = column.combine_chunks()
    numbers = lists.flatten()
    if numbers.null_count:
        raise ValueError(f"{name} has a list without a value")
    return numbers.to_numpy(), offsets_of(lists.value_lengths().to_numpy())


@dataclass(frozen=True, slots=True, eq=False)
class PartCheck:
    """What a part must hold, and of which images and classes."""

    path: Path
    role: str
    kind: str | None  # of shapes
    record: PartRecord
    bounds: tuple[int, ...]  # the first image of each group, and the end
    n_images: int
    n_labels: int
    units: str

    def stretches(self, cuts: Sequence[int], total: RowDigest) -> Iterator[tuple[Stretch, BoxTable]]:
        """Yield the groups between any two `cuts` together, each as it is read, and add all to a digest.

        A DataError reports rows that the part must not have, at its end also those that it lacks.
        """
        own, place = RowDigest(total), (-1, -1)
        with open_part(self.path) as (opened, identity):
            self._check_layout(opened, identity[0])
            # Groups without rows have no row group.
            number = np.cumsum([0, *(rows > 0 for rows in self.record.rows)]).tolist()
            for first, last in pairwise(cuts):
                groups = tuple(range(number[first], number[last]))
                boxes = _table(opened.read_row_groups(list(groups)), self.role, self.kind)
                if len(boxes):
                    self._check_rows(boxes, place, (self.bounds[first], self.bounds[last]))
                    place = (int(boxes.image[-1]), int(boxes.source[-1]))
                    own.add(boxes)
                yield Stretch(self.path, self.role, self.kind, groups, identity), boxes
        if own.digest(self.role, self.units) != self.record.fingerprint:
            raise changed_part(self.path, "holds other rows than its manifest: their fingerprint differs")

    def _check_layout(self, opened: Any, size: int) -> None:
        """Raise a DataError for columns or a number of rows that are not those of the manifest."""
        schema, expected = opened.schema_arrow, columns_of(self.role, self.kind)
        found = dict(zip(schema.names, map(_type_name, schema.types), strict=True))
        if found != expected:
            wrong = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
            details = [f"{name} is {found.get(name, 'missing')}, not {expected.get(name, 'there')}" for name in wrong]
            raise invalid(self.path, f"has other columns than a part: {'; '.join(details)}")
        about, given = opened.metadata, [n for n in self.record.rows if n]
        rows = about.num_rows
        if rows != sum(given):
            raise changed_part(self.path, f"has {rows:,} rows; its manifest has {sum(given):,}")
        if [about.row_group(at).num_rows for at in range(about.num_row_groups)] not in (given, given or [0]):
            raise changed_part(self.path, "has other row groups than its manifest")
        groups = (about.row_group(at) for at in range(about.num_row_groups))
        numbers = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
        if max(rows * ROW_BYTES, numbers * NUMBER_BYTES) > max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * size):
            raise invalid(self.path, "unpacks to far more than its size allows")

    def _check_rows(self, boxes: BoxTable, place: tuple[int, int], images: tuple[int, int]) -> None:
        """Raise a DataError for rows of other images, out of order, or not of a box; `place` is before all."""
        first, last = images
        image, source = boxes.image.astype(np.int64), boxes.source
        before = np.concatenate(([place[0]], image[:-1])), np.concatenate(([place[1]], source[:-1]))
        faults = {
            f"image is not one of {self.n_images:,}": (image < 0) | (image >= self.n_images),
            f"image is not one of {first:,} to {last - 1:,}, which belong here": (image < first) | (image >= last),
            f"label is not one of {self.n_labels:,} classes": (boxes.label < 0) | (boxes.label >= self.n_labels),
            "rows are not in the order of images and sources": (image < before[0])
            | ((image == before[0]) & (source <= before[1])),
            "a number is not finite, or too large": _unusable(boxes),
        }
        for fault, wrong in faults.items():
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                shown = f"image {image[row]}, label {boxes.label[row]}, source {source[row]}"
                raise invalid(self.path, fault, record=shown)


def _type_name(given: Any) -> str:
    """Return what the type of a column is called here."""
    # Whatever a list calls its elements, and however wide its offsets are.
    types = require("pyarrow.types", extra=EXTRA)
    is_list = types.is_list(given) or types.is_large_list(given)
    return f"{given.value_type} lists" if is_list else str(given)


def _unusable(boxes: BoxTable) -> Any:
    limits = [(boxes.xywh, MAX_COORDINATE), (boxes.area[:, None], MAX_AREA)]
    if boxes.score is not None:
        limits.append((boxes.score[:, None], MAX_SCORE))
    return ~np.logical_and.reduce([(np.abs(values) <= most).all(axis=1) for values, most in limits])
