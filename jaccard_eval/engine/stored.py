"""Boxes on the disk: written as they are read, put together by image, and read again a table at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np

from jaccard_eval.data.boxtable import FLAGS, Boxes, BoxTable, RowArray, Shapes, freeze, joined_shapes
from jaccard_eval.engine.scratch import ScratchPlace, StorePlace, explained, read_bytes
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, stable_order
from jaccard_eval.progress import Stage

# As they lie in a file, block after block: a count of rows, the columns, and the shapes if there are any. The flags are
# the bits of one byte, and ground truth has no scores.
COLUMNS: tuple[tuple[str, Any, int], ...] = (
    ("image", np.int32, 1),
    ("label", np.int32, 1),
    ("xywh", np.float64, 4),
    ("score", np.float64, 1),
    ("area", np.float64, 1),
    ("source", np.int64, 1),
    ("flags", np.uint8, 1),
)
Item = TypeVar("Item")
Found = TypeVar("Found")
MOST_PARTS = 400  # files that are written, and later read, at once


class Store(Protocol):
    """Where files go, and how large they are."""

    @property
    def part_rows(self) -> int:
        """How many boxes are worked on at once, about."""

    @property
    def room(self) -> int:
        """How many bytes of memory an input that cannot be read in parts may take."""

    def folder(self) -> Path:
        """Make a new folder of this machine."""

    def shows(self, path: Path) -> bool:
        """Whether whoever does the work can read a file where it lies."""


class Engine(Store, Protocol):
    """Who does the work as well."""

    @property
    def bucket_rows(self) -> int:
        """How many detections are reduced at once, about."""

    def shared_folder(self) -> ScratchPlace:
        """Make a new folder for what tasks write."""

    def map(self, task: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
        """Yield what a task makes of each item, in their order."""


class Piece(Protocol):
    """Boxes that lie elsewhere: consecutive images, few enough boxes for memory."""

    def read(self) -> BoxTable:
        """Return the boxes."""

    def absolute(self) -> Piece:
        """Return the same as another process finds it, wherever that runs."""


Change = Callable[[BoxTable], BoxTable]


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Files of boxes, and the changes made to each table as it is read: what a worker needs of stored boxes."""

    files: tuple[ScratchPlace | Piece, ...]
    changes: tuple[Change, ...] = ()
    scored: bool = True  # whether these are predictions

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, place: int) -> BoxTable:
        file = self.files[place]
        table = read_boxes(file, scored=self.scored) if isinstance(file, Path | StorePlace) else file.read()
        # What was put together by image twice, in other parts each time, comes from several files: equal scores of
        # VOC go by the order of the input.
        if (table.source[1:] < table.source[:-1]).any():
            table = table.take(np.argsort(table.source, kind="stable"))
        for change in self.changes:
            table = change(table)
        return table


class StoredBoxes:
    """Boxes of one side on the disk, which answer what alignment and checks ask of a `BoxTable`.

    Changes are made to each table as it is read. Those that look at more than a row need an image to be in one table,
    as `arranged` puts it.
    """

    def __init__(
        self,
        files: tuple[ScratchPlace | Piece, ...],
        store: Store,
        *,
        scored: bool = True,
        changes: tuple[Change, ...] = (),
        bounds: IntArray | None = None,
        counts: Mapping[str, RowArray] | None = None,
    ) -> None:
        self.parts = Tables(files, changes, scored)
        self.bounds = bounds  # where each file has whole images: the first one of each, and the end
        self._store = store
        self._counts = counts  # of boxes by image and by class, once they are known
        self._spans: IntArray | None = None

    @property
    def arranged_bounds(self) -> IntArray:
        """The first image of each file, and the end, of boxes that lie by image."""
        if self.bounds is None:
            raise ValueError("the boxes do not lie by image")
        return self.bounds

    def __len__(self) -> int:
        return int(self.counts("image", 0).sum())

    def counts(self, column: str, n: int) -> IntArray:
        """Count the boxes of each image or each class ("image", "label"), shape (n,)."""
        if self._counts is None:
            # Both at once, as one costs as much as both.
            found = {name: np.zeros(0, dtype=np.int32) for name in ("image", "label")}
            for table in self.tables():
                found = {name: added_counts(before, table.counts(name, 0)) for name, before in found.items()}
            self._counts = found
        known = self._counts[column]
        counts = np.zeros(max(n, len(known)), dtype=np.int64)
        counts[: len(known)] = known
        return counts

    def mapped(self, change: Change) -> StoredBoxes:
        """Return the boxes after a change."""
        parts, changes = self.parts, (*self.parts.changes, change)
        return StoredBoxes(parts.files, self._store, scored=parts.scored, changes=changes, bounds=self.bounds)

    def arranged(self, n_images: int, other: Boxes | None = None) -> StoredBoxes:
        """Return the boxes so that each image is in one table, in the same one of the `other` side.

        Pieces that lie so are used where they are; else the boxes are written anew.
        """
        bounds = self._bounds_of_pieces(n_images, other)
        if bounds is None:
            return by_image(self, self._bounds(n_images, other), self._store)
        parts = self.parts
        found = StoredBoxes(parts.files, self._store, scored=parts.scored, changes=parts.changes, bounds=bounds)
        found._counts = self._counts
        return found

    def _bounds_of_pieces(self, n_images: int, other: Boxes | None) -> IntArray | None:
        """Return where pieces of both sides begin, and the end, if images ascend from piece to piece; else None."""
        spans = [side.spans() for side in (self, other) if isinstance(side, StoredBoxes)]
        if (other is not None and len(spans) < 2) or len({len(span) for span in spans}) > 1 or not len(spans[0]):
            return None
        first = np.min([span[:, 0] for span in spans], axis=0)
        end = np.maximum.accumulate(np.max([span[:, 1] for span in spans], axis=0))
        if (first[1:] < end[:-1]).any():
            return None
        return np.concatenate(([0], end[:-1], [n_images]))

    def spans(self) -> IntArray:
        """Return the first image of each piece, and the first behind it (n, 2); nothing of files written here."""
        if self._spans is None:
            spans = np.zeros((0, 2), dtype=np.int64)
            if not any(isinstance(file, Path) for file in self.parts.files):
                # An empty one lies between any two.
                limits = np.iinfo(np.int64).max, 0
                found = (
                    (table.image.min(), table.image.max() + 1) if len(table) else limits for table in self.tables()
                )
                spans = np.array(list(found), dtype=np.int64).reshape(-1, 2)
            self._spans = spans
        return self._spans

    def _bounds(self, n_images: int, other: Boxes | None) -> IntArray:
        """Return where tables begin, and where the last one ends; both sides get the same."""
        counts = self.counts("image", n_images)[:n_images]
        if other is not None:
            counts += other.counts("image", n_images)[:n_images]
        if not n_images:
            return np.zeros(2, dtype=np.int64)
        total = np.cumsum(counts)
        rows_per_part = max(self._store.part_rows, -(-int(total[-1]) // MOST_PARTS))
        # An image begins a part where the boxes in front of it fill one more.
        filled = (total - counts) // rows_per_part
        return np.append(np.flatnonzero(np.diff(filled, prepend=-1)), n_images)

    def tables(self) -> Iterator[BoxTable]:
        """Yield the boxes table by table; there may be empty ones."""
        yield from map(self.parts.__getitem__, range(len(self.parts)))

    def settled(self) -> StoredBoxes:
        """Return the boxes written once more, so that changes which cost much are not made at each reading."""
        folder = self._store.folder()
        files = tuple(folder / f"boxes-{place:05}" for place in range(len(self.parts)))
        for path, table in zip(files, self.tables(), strict=True):
            with explained(folder.parent), path.open("wb") as file:
                write_boxes(file, table)
        scored, counts = self.parts.scored, self._counts
        return StoredBoxes(files, self._store, scored=scored, bounds=self.bounds, counts=counts)

    def whole(self) -> BoxTable:
        """Return one table of all boxes, in the order of the input: for few of them."""
        table = BoxTable.concat(list(self.tables()))
        return table.take(np.argsort(table.source, kind="stable"))


def added_counts(counts: RowArray, more: IntArray) -> RowArray:
    """Add counts; half as wide as usual, as there may be millions of images."""
    if len(more) > len(counts):
        counts = np.append(counts, np.zeros(len(more) - len(counts), dtype=np.int32))
    counts[: len(more)] += more.astype(np.int32)
    return counts


def on_disk(boxes: Boxes) -> StoredBoxes:
    """Return boxes as those on the disk, which they are where an engine measures them."""
    if not isinstance(boxes, StoredBoxes):
        raise TypeError("the boxes do not lie on the disk")
    return boxes


def write_boxes(file: BinaryIO, boxes: BoxTable) -> None:
    """Append a block of boxes."""
    if not len(boxes):
        return
    columns: dict[str, Any] = boxes.columns()
    columns["flags"] = np.packbits([columns[name] for name in FLAGS], axis=0, bitorder="little")[0]
    file.write(np.int64(len(boxes)).tobytes())
    for name, dtype, _ in COLUMNS:
        if columns[name] is not None:
            file.write(np.ascontiguousarray(columns[name], dtype=dtype).data)
    _write_shapes(file, boxes.shapes)


def _write_shapes(file: BinaryIO, shapes: Shapes | None) -> None:
    """Append the shapes of a block: whether there are any; then their class, the names of their arrays, and these."""
    file.write(np.bool_(shapes is not None).tobytes())
    if shapes is not None:
        arrays = shapes.to_arrays()
        np.save(file, np.array([type(shapes).__module__, type(shapes).__qualname__, *arrays]))
        for array in arrays.values():
            np.save(file, array)


def _read_shapes(file: BinaryIO) -> Shapes | None:
    """Return the shapes of a block; None where it has none."""
    if not np.frombuffer(file.read(1), dtype=np.bool_)[0]:
        return None
    module, kind, *names = np.load(file).tolist()
    shapes: Shapes = getattr(import_module(module), kind).from_arrays({name: np.load(file) for name in names})
    return shapes


def store_boxes(tables: Iterable[BoxTable], store: Store) -> tuple[Path, ...]:
    """Write boxes in their order, in files that fit into memory; there is at least one file."""
    folder = store.folder()
    files: list[Path] = []
    try:
        for table in tables:
            # The first table has a file even where it is empty.
            for first in range(0, len(table) or not files, store.part_rows):
                files.append(folder / f"boxes-{len(files):05}")
                # Here, as around it errors are those of the input that is read.
                with explained(folder.parent), files[-1].open("wb") as file:
                    write_boxes(file, _rows(table, slice(first, first + store.part_rows)))
    except BaseException:
        # The same input may be stored again, read in another way, and needs the room.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return tuple(files)


def read_boxes(path: ScratchPlace, *, scored: bool = True) -> BoxTable:
    """Return all blocks of a file as one table; those of ground truth are not `scored`."""
    layout = [column for column in COLUMNS if scored or column[0] != "score"]
    blocks: dict[str, list[Any]] = {name: [] for name, *_ in layout}
    shapes: list[Shapes | None] = []
    with BytesIO(read_bytes(path)) if isinstance(path, StorePlace) else path.open("rb") as file:
        while head := file.read(8):
            n = int(np.frombuffer(head, dtype=np.int64)[0])
            for name, dtype, width in layout:
                column = np.frombuffer(file.read(n * width * np.dtype(dtype).itemsize), dtype)
                blocks[name].append(column.reshape(n, width) if width > 1 else column)
            shapes.append(_read_shapes(file))
    columns: dict[str, Any] = {"score": None}
    for name, dtype, width in layout:
        none = np.zeros((0, width)[: 1 + (width > 1)], dtype=dtype)
        # One after the other, so that no more than one column is there twice.
        columns[name] = np.concatenate(blocks.pop(name) or [none])
    flags = columns.pop("flags")
    columns |= {name: (flags >> bit & 1).astype(np.bool_) for bit, name in enumerate(FLAGS)}
    return freeze(BoxTable(**columns, shapes=joined_shapes(shapes)))


def by_image(boxes: StoredBoxes, bounds: IntArray, store: Store) -> StoredBoxes:
    """Write boxes again, the images from each of the `bounds` to the next in one file; rows keep their order."""
    folder = store.folder()
    part_of = np.repeat(np.arange(len(bounds) - 1, dtype=np.int16), np.diff(bounds))
    files = tuple(folder / f"boxes-{part:05}" for part in range(len(bounds) - 1))
    with ExitStack() as opened, Stage("partitioning", len(boxes)) as stage:
        handles = [opened.enter_context(path.open("wb")) for path in files]
        for table in boxes.tables():
            parts = part_of[table.image]
            order = stable_order(parts)
            ordered = table.take(order)
            cuts = np.searchsorted(parts[order], np.arange(len(files) + 1))
            for part in np.unique(parts).tolist():
                rows = slice(cuts[part], cuts[part + 1])
                write_boxes(handles[part], _rows(ordered, rows))
            stage.advance(len(table))
    return StoredBoxes(files, store, scored=boxes.parts.scored, bounds=bounds, counts=boxes._counts)


def _rows(boxes: BoxTable, rows: slice) -> BoxTable:
    """Return consecutive rows, boxes without a copy."""
    columns: dict[str, Any] = {name: column[rows] for name, column in boxes.columns().items() if column is not None}
    shapes = None if boxes.shapes is None else boxes.shapes.take(np.arange(len(boxes))[rows])
    return replace(boxes, **columns, shapes=shapes)
