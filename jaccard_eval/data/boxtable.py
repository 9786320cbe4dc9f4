"""One table of boxes: what every loader fills and every number is computed from. No file keys live here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import MAX_EXAMPLES
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ENCODINGS
from jaccard_eval.text import pluralise

FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

# Where an encoding of two corners has x1, y1, x2 and y2. Each order is its own inverse: one table does both ways.
CORNER_ORDER = {
    "xyxy": (0, 1, 2, 3),
    "xxyy": (0, 2, 1, 3),
    "yxyx": (1, 0, 3, 2),
}
# Products of two coordinates, and sums of such products, stay finite in float64; means and differences of areas, too.
MAX_COORDINATE = 1e150
MAX_SCORE, MAX_AREA = MAX_COORDINATE, MAX_COORDINATE**2
FLAGS = ("crowd", "difficult", "group_of", "ignore")


class Shapes(Protocol):
    """A column of n shapes, one per box: masks, keypoints, quadrilaterals. Arrays inside, never objects."""

    def __len__(self) -> int: ...

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the shapes of some rows, in their order."""

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these shapes, then those of the others."""

    def bounds(self) -> FloatArray:
        """Return left, top, width and height of each shape, (n, 4)."""

    def hashes(self) -> Words:
        """Return words for each shape, (n, k) or (n,): shapes that differ within equal bounds differ here.

        Inputs are distinguished by these: `signature.digest_each` makes words that nobody can forge.
        """

    def scaled(self, xy: FloatArray) -> Self:
        """Multiply the coordinates of each shape by factors (n, 2), when fractions of an image become pixels."""

    def shifted(self, xy: FloatArray) -> Self:
        """Add distances (n, 2) to the coordinates of each shape, when the first pixel gets another number."""

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all there is to know as named arrays of numbers."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Make the column of what `to_arrays` gave; raise a UsageError for arrays that it cannot have given."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxTable:
    """Boxes of one side, one row each; columns are read-only.

    Parameters
    ----------
    image, label : ndarray of int32, shape (n,)
        Row of the image and of the class.
    xywh : ndarray of float64, shape (n, 4)
        Left, top, width and height. The encoding is xywh because the arithmetic of pycocotools starts from it: corners
        stored instead would cost the last bit of an IoU.
    score : ndarray of float64, shape (n,), or None
        Confidence; None for ground truth.
    area : ndarray of float64, shape (n,)
        The file's area when it gives one (COCO: of the mask), else width times height.
    crowd, difficult, group_of, ignore : ndarray of bool, shape (n,)
        Flags; the protocol decides which of them count.
    source : ndarray of int64, shape (n,)
        Row in the file, for messages.
    shapes : Shapes, optional
        What the boxes are the bounds of, where more than boxes is measured.
    outside : ndarray of uint16, shape (n,), or None
        Bits of the subsets of a protocol that a box does not belong to; None where none were judged.
    image_names, class_names : tuple of str, optional
        What the rows of images and classes are called, where arrays came with names; a `Dataset` has its own.

    Examples
    --------
    >>> from jaccard_eval import BoxTable
    >>> boxes = BoxTable.from_arrays(["a.jpg"], ["dog"], [[0, 0, 10, 20]], score=[0.9])
    >>> boxes.xywh.tolist(), boxes.area.tolist(), boxes.class_names
    ([[0.0, 0.0, 10.0, 20.0]], [200.0], ('dog',))
    """

    image: RowArray
    label: RowArray
    xywh: FloatArray
    score: FloatArray | None
    area: FloatArray
    crowd: BoolArray
    difficult: BoolArray
    group_of: BoolArray
    ignore: BoolArray
    source: npt.NDArray[np.int64]
    shapes: Shapes | None = None
    outside: npt.NDArray[np.uint16] | None = None
    image_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.image)

    @classmethod
    def from_arrays(
        cls,
        image: npt.ArrayLike,
        label: npt.ArrayLike,
        boxes: npt.ArrayLike,
        *,
        score: npt.ArrayLike | None = None,
        encoding: str = "xyxy",
        names: Sequence[str] | None = None,
        shapes: Shapes | None = None,
        **columns: Any,
    ) -> BoxTable:
        """Make a table from arrays.

        Parameters
        ----------
        image, label : array_like of int or str, shape (n,)
            Image and class of each box: names, or counted from 0 with the same meaning on both sides.
        boxes : array_like of float, shape (n, 4)
            Coordinates in `encoding`.
        score : array_like of float, shape (n,), optional
            Confidence of each prediction; omit it for ground truth.
        encoding : {"xyxy", "xywh", "cxcywh", "xxyy", "yxyx"}
            What the four numbers of a box are.
        names : sequence of str, optional
            Names of the classes, in the order of their indices or, where `label` has names, of reports.
        shapes : Shapes, optional
            Masks, keypoints or the like, n of them, in pixels; see `jaccard_eval.similarity`.
        **columns
            Any of `area`, `crowd`, `difficult`, `group_of`, `ignore`, `source`, shape (n,).

        Returns
        -------
        BoxTable

        Raises
        ------
        UsageError
            When shapes differ, an encoding or column is unknown, a value is not of its column's kind, a number is
            not finite, or corners are in the wrong order, as numbers in another encoding seem to be.

        Examples
        --------
        >>> BoxTable.from_arrays([0], [0], [[10, 20, 30, 60]]).xywh.tolist()
        [[10.0, 20.0, 20.0, 40.0]]
        """
        xywh = to_xywh(_four_numbers(boxes), encoding)
        n = len(xywh)
        image, image_names = _numbered(image)
        label, class_names = _named_labels(label, names)
        unknown = set(columns) - _OPTIONAL_COLUMNS
        if unknown:
            raise UsageError(f"unknown columns {sorted(unknown)}; choose from {sorted(_OPTIONAL_COLUMNS)}")
        if shapes is not None and len(shapes) != n:
            raise UsageError(f"there are {len(shapes)} shapes; expected {n}, one per box")
        flags: dict[str, Any] = {name: _column(columns.get(name), n, np.bool_, name) for name in FLAGS}
        area, source, outside = columns.get("area"), columns.get("source"), columns.get("outside")
        if area is None:
            # What overflows here is refused below, with its row, where a warning of NumPy would name none.
            with np.errstate(over="ignore", invalid="ignore"):
                area = xywh[:, 2] * xywh[:, 3]
        table = cls(
            image=_column(image, n, np.int32, "image"),
            label=_column(label, n, np.int32, "label"),
            xywh=xywh,
            score=None if score is None else _column(score, n, np.float64, "score"),
            area=_column(area, n, np.float64, "area"),
            outside=None if outside is None else _column(outside, n, np.uint16, "outside"),
            source=np.arange(n) if source is None else _column(source, n, np.int64, "source"),
            shapes=shapes,
            image_names=image_names,
            class_names=class_names,
            **flags,
        )
        # Finite first: a NaN is neither in nor out of order.
        _require_finite(table)
        # Corners in the wrong order are most often boxes in another encoding.
        reversed_rows = np.flatnonzero((xywh[:, 2:] < 0.0).any(axis=1))
        if encoding in CORNER_ORDER and reversed_rows.size:
            row = int(reversed_rows[0])
            width, height = xywh[row, 2:]
            raise UsageError(
                f"row {row}: read as {encoding}, the box is {width:g} wide and {height:g} high; sizes are negative "
                f"in {reversed_rows.size:,} of {n:,} rows. Pass the encoding of the boxes, such as "
                "encoding='xywh', or put their corners in order."
            )
        return freeze(table)

    def take(self, rows: npt.NDArray[Any]) -> BoxTable:
        """Return the table of `rows` (indices or a mask), in their order."""
        # Rows, as shapes know no masks. `take` gathers boxes (n, 4) ten times as fast as indexing does.
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        columns = self.columns().items()
        taken = {name: None if column is None else column.take(rows, axis=0) for name, column in columns}
        shapes = None if self.shapes is None else self.shapes.take(rows)
        return freeze(replace(self, **taken, shapes=shapes))  # type: ignore[arg-type]

    @classmethod
    def concat(cls, tables: Sequence[BoxTable]) -> BoxTable:
        """Return the rows of all tables, one after the other; they have scores, shapes and names alike."""
        columns = [table.columns() for table in tables]
        joined: dict[str, Any] = {
            name: None if column is None else np.concatenate([part[name] for part in columns])
            for name, column in columns[0].items()
        }
        shapes = joined_shapes([table.shapes for table in tables])
        return freeze(replace(tables[0], **joined, shapes=shapes))

    # As `Boxes`.

    def counts(self, column: str, n: int) -> npt.NDArray[np.int64]:
        """Count the boxes of each image or each class ("image", "label"), shape (n,)."""
        return np.bincount(getattr(self, column), minlength=n)

    def mapped(self, change: Callable[[BoxTable], BoxTable]) -> BoxTable:
        """Return the table after a change of each row, or of each image where boxes are `arranged`."""
        return change(self)

    def tables(self) -> Iterator[BoxTable]:
        """Yield the boxes in tables that fit into memory."""
        yield self

    def arranged(self, n_images: int, other: Boxes | None = None) -> BoxTable:
        """Return the boxes so that each image is in one table, for what looks at all of its boxes.

        With the `other` side, whose images are arranged alike, an image is in the same table of either.
        """
        return self

    def settled(self) -> BoxTable:
        """Return the boxes after all changes, which are not made again at each reading."""
        return self

    def whole(self) -> BoxTable:
        """Return one table of all boxes."""
        return self

    def columns(self) -> dict[str, npt.NDArray[Any] | None]:
        """Return all columns of numbers and flags by name; None for scores that there are none of."""
        beside = ("shapes", "image_names", "class_names")
        return {column.name: getattr(self, column.name) for column in fields(self) if column.name not in beside}


class Boxes(Protocol):
    """What alignment and checks ask of the boxes of one side: those of a `BoxTable`, or on a disk (`engine.stored`)."""

    def __len__(self) -> int: ...

    def counts(self, column: str, n: int) -> npt.NDArray[np.int64]:
        """Count the boxes of each image or each class ("image", "label"), shape (n,)."""

    def mapped(self, change: Callable[[BoxTable], BoxTable]) -> Boxes:
        """Return the boxes after a change of each row, or of each image where boxes are `arranged`."""

    def tables(self) -> Iterator[BoxTable]:
        """Yield the boxes in tables that fit into memory."""

    def arranged(self, n_images: int, other: Boxes | None = None) -> Boxes:
        """Return the boxes so that each image is in one table, for what looks at all of its boxes.

        With the `other` side, whose images are arranged alike, an image is in the same table of either.
        """

    def settled(self) -> Boxes:
        """Return the boxes after all changes, which are not made again at each reading."""

    def whole(self) -> BoxTable:
        """Return one table of all boxes."""


class Chosen:
    """Boxes that a finding is about, chosen table by table: how many there are, and the first ones of the input."""

    def __init__(self) -> None:
        self._count = 0
        self._boxes: BoxTable | None = None

    def add(self, table: BoxTable, rows: npt.NDArray[np.int64]) -> None:
        """Choose some rows of a table."""
        self._count += len(rows)
        if len(rows):
            first = table.take(rows[np.argsort(table.source[rows], kind="stable")[:MAX_EXAMPLES]])
            known = first if self._boxes is None else BoxTable.concat([self._boxes, first])
            self._boxes = known.take(np.argsort(known.source, kind="stable")[:MAX_EXAMPLES])

    @property
    def boxes(self) -> BoxTable:
        """The first ones."""
        if self._boxes is None:
            raise ValueError("no boxes were chosen")
        return self._boxes

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        """Yield the rows of `boxes`."""
        return iter(range(min(self._count, MAX_EXAMPLES)))


def joined_shapes(parts: Sequence[Shapes | None]) -> Shapes | None:
    """Return the shapes of all parts, one after the other; a part without rows need not have any."""
    given = [part for part in parts if part is not None]
    return given[0].joined(given[1:]) if given else None


_OPTIONAL_COLUMNS = frozenset({*FLAGS, "area", "outside", "source"})


def to_xywh(boxes: FloatArray, encoding: str) -> FloatArray:
    """Return boxes (n, 4) of any known encoding as left, top, width, height; what overflows is infinite."""
    # Untouched: a size that went by way of corners would come back with another last bit.
    if encoding == "xywh":
        return boxes
    with np.errstate(over="ignore"):
        if encoding == "cxcywh":
            return np.concatenate((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]), axis=1)
        if encoding not in CORNER_ORDER:
            raise UsageError(f"unknown box encoding {encoding!r}; choose from {', '.join(ENCODINGS)}")
        left, top, right, bottom = boxes[:, CORNER_ORDER[encoding]].T
        return np.stack((left, top, right - left, bottom - top), axis=1)


def find_too_large(xywh: FloatArray) -> RowArray:
    """Return the rows of boxes (n, 4) whose numbers exceed `MAX_COORDINATE`, so that matching could overflow."""
    # Two passes without a temporary array, as nearly every file is sound; `abs` of all boxes would be another copy.
    if not len(xywh) or (xywh.max() <= MAX_COORDINATE and xywh.min() >= -MAX_COORDINATE):
        return np.zeros(0, dtype=np.int32)
    return np.flatnonzero((np.abs(xywh) > MAX_COORDINATE).any(axis=1)).astype(np.int32)


def from_xywh(xywh: FloatArray, encoding: str) -> FloatArray:
    """Return boxes (n, 4) in an encoding; the inverse of `to_xywh` up to rounding."""
    if encoding == "xywh":
        return xywh
    if encoding == "cxcywh":
        return np.concatenate((xywh[:, :2] + xywh[:, 2:] / 2, xywh[:, 2:]), axis=1)
    return np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)[:, CORNER_ORDER[encoding]]


def freeze(table: BoxTable) -> BoxTable:
    """Make every column of `table` read-only and return it."""
    # Tables share columns with each other and with match tables, so that a write into one would change them all.
    for values in table.columns().values():
        if values is not None:
            values.flags.writeable = False
    return table


def _numbered(texts: npt.ArrayLike) -> tuple[Any, tuple[str, ...] | None]:
    """Return rows of the distinct texts, and these sorted; numbers as they are."""
    # As they are: NumPy makes texts of the numbers that stand among texts.
    given = np.asarray(texts, dtype=None if isinstance(texts, np.ndarray) else np.object_)
    if given.ndim != 1 or not given.size or not all(isinstance(text, str) for text in given):
        return texts, None
    # Not `unique`: as texts of NumPy all would take as much memory as the longest, and lose NULs at their ends.
    distinct = tuple(sorted({str(text) for text in given}))
    at = {text: row for row, text in enumerate(distinct)}
    return np.array([at[text] for text in given], dtype=np.int64), distinct


def _named_labels(label: npt.ArrayLike, names: Sequence[str] | None) -> tuple[Any, tuple[str, ...] | None]:
    """Return indices of classes and their names, None where there are none."""
    rows, found = _numbered(label)
    if names is None:
        return rows, found
    if isinstance(names, str) or len({*names}) != len(names) or not all(isinstance(name, str) for name in names):
        raise UsageError("names must be a list of different texts, one per class")
    given = array_of(rows, "column 'label'")
    if found is None:
        # A label that is not a whole number is refused with the other columns.
        is_outside = given >= len(names) if given.dtype.kind in "biuf" else np.zeros(given.shape, dtype=np.bool_)
        if is_outside.any():
            row = int(np.flatnonzero(is_outside)[0])
            last = len(names) - 1
            raise UsageError(f"row {row}: label is {given[row]}, but there are {len(names)} class names (0 to {last})")
        return rows, tuple(names)
    at = {name: row for row, name in enumerate(names)}
    unknown = [name for name in found if name not in at]
    if unknown:
        row = int(np.flatnonzero(given == found.index(unknown[0]))[0])
        raise UsageError(f"row {row}: label is {unknown[0]!r}, which is not among names")
    return np.array([at[name] for name in found])[given], tuple(names)


def array_of(values: Any, name: str) -> npt.NDArray[Any]:
    """Return an array of lists, or of anything like an array; refuse lists of several lengths as `name`, by row."""
    try:
        return np.asarray(values)
    except ValueError:
        if not isinstance(values, Sequence):
            raise
    said = [pluralise(len(row), "value") if isinstance(row, Sequence) else "a value alone" for row in values]
    row = next((row for row, text in enumerate(said) if text != said[0]), None)
    what = "holds lists of several lengths" if row is None else f"has {said[0]} in row 0 and {said[row]} in row {row}"
    raise UsageError(f"{name} {what}; pass as many in each")


def _four_numbers(boxes: npt.ArrayLike) -> FloatArray:
    """Return a copy of boxes (n, 4)."""
    coords: FloatArray = _cast(boxes, np.float64, "boxes")
    if coords.size == 0:
        return coords.reshape(0, 4)
    if coords.ndim != 2 or coords.shape[1] != 4:
        raise UsageError(f"boxes have shape {coords.shape}; expected (n, 4), four numbers per box")
    return coords


def _column(values: Any, n: int, dtype: type[np.generic], name: str) -> npt.NDArray[Any]:
    if values is None:
        return np.zeros(n, dtype=dtype)
    column = _cast(values, dtype, name)
    if column.shape != (n,):
        raise UsageError(f"column {name!r} has shape {column.shape}; expected ({n},), one value per box")
    return column


_KINDS: dict[type[np.generic], str] = {np.float64: "numbers", np.bool_: "true or false"}


def _cast(values: Any, dtype: type[np.generic], name: str) -> npt.NDArray[Any]:
    """Return a copy as `dtype`; refuse what would be cut, wrapped or parsed on the way."""
    # Lists of mixed kinds become objects or texts: numbers among objects pass, texts never do, "1.5" included.
    given = array_of(values, f"column {name!r}")
    fault = UsageError(f"column {name!r} must hold {_KINDS.get(dtype, 'whole numbers')}")
    try:
        given = given.astype(np.float64) if given.dtype.kind == "O" else given
    except (TypeError, ValueError):
        raise fault from None
    if given.dtype.kind not in "biuf":
        raise fault
    with np.errstate(invalid="ignore"):
        column = given.astype(dtype)
    # 1.5 as a class, or 2**40 as an image, would be cut or wrapped without a word.
    if dtype is not np.float64 and (column != given).any():
        raise fault
    return column


def _require_finite(table: BoxTable) -> None:
    for name, most in (("xywh", MAX_COORDINATE), ("score", MAX_SCORE), ("area", MAX_AREA)):
        values = getattr(table, name)
        # Asked this way round, NaN fails as well.
        if values is not None and not (np.abs(values) <= most).all():
            row = int(np.argwhere(~(np.abs(values) <= most))[0][0])
            why = f"numbers above {most:g} overflow" if np.isfinite(values[row]).all() else "numbers must be finite"
            raise UsageError(f"row {row}: {name} is {values[row]}; {why}")
    if len(table) and min(int(table.image.min()), int(table.label.min())) < 0:
        raise UsageError("image and label must not be negative")
