"""Boxes on the disk: written as they are read, put together by image, and read again a table at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from jaccard_eval.data.boxtable import FLAGS, BoxTable, freeze
from jaccard_eval.matching.order import IntArray, stable_order
from jaccard_eval.progress import Stage

# As they lie in a file, block after block: a count of rows, then the columns. The flags are the bits of one byte.
COLUMNS: tuple[tuple[str, Any, int], ...] = (
    ("image", np.int32, 1),
    ("label", np.int32, 1),
    ("xywh", np.float64, 4),
    ("score", np.float64, 1),
    ("area", np.float64, 1),
    ("source", np.int64, 1),
    ("flags", np.uint8, 1),
)
MOST_PARTS = 400  # files that are written, and later read, at once


class Store(Protocol):
    """Where files go, and how large they are."""

    @property
    def part_rows(self) -> int:
        """How many boxes are worked on at once, about."""

    def folder(self) -> Path:
        """Make a new folder."""


class StoredBoxes:
    """Predictions on the disk, which answer what alignment and checks ask of a `BoxTable`.

    Changes are made to each table as it is read. Those that look at more than a row need an image to be in one table,
    as `by_image` puts it.
    """

    def __init__(
        self,
        files: tuple[Path, ...],
        store: Store,
        *,
        changes: tuple[Callable[[BoxTable], BoxTable], ...] = (),
        bounds: IntArray | None = None,
    ) -> None:
        self.files = files
        self.bounds = bounds  # where each file has whole images: the first one of each, and the end
        self._store = store
        self._changes = changes
        self._length: int | None = None
        self._counts: dict[str, IntArray] = {}

    @property
    def arranged_bounds(self) -> IntArray:
        """The first image of each file, and the end, of boxes that lie by image."""
        if self.bounds is None:
            raise ValueError("the boxes do not lie by image")
        return self.bounds

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(len(table) for table in self.tables())
        return self._length

    def counts(self, column: str, n: int) -> IntArray:
        """Count the boxes of each image or each class ("image", "label"), shape (n,)."""
        if column not in self._counts:
            # Both at once, as one costs as much as both.
            found = {name: np.zeros(0, dtype=np.int64) for name in ("image", "label")}
            for table in self.tables():
                for name, before in found.items():
                    counted = table.counts(name, len(before))
                    counted[: len(before)] += before
                    found[name] = counted
            self._counts = found
        known = self._counts[column]
        return np.concatenate((known, np.zeros(max(n - len(known), 0), dtype=np.int64)))

    def mapped(self, change: Callable[[BoxTable], BoxTable]) -> BoxTable:
        """Return the boxes after a change."""
        changes = (*self._changes, change)
        return as_table(StoredBoxes(self.files, self._store, changes=changes, bounds=self.bounds))

    def arranged(self, n_images: int) -> BoxTable:
        """Return the boxes written anew, so that each image is in one table."""
        return as_table(by_image(self, n_images, self._store))

    def tables(self) -> Iterator[BoxTable]:
        """Yield the boxes table by table; there may be empty ones."""
        for place in range(len(self.files)):
            yield self.table(place)

    def table(self, place: int) -> BoxTable:
        """Return the boxes of one file."""
        table = read_boxes(self.files[place])
        for change in self._changes:
            table = change(table)
        return table

    def whole(self) -> BoxTable:
        """Return one table of all boxes, in the order of the input: for few of them."""
        table = BoxTable.concat(list(self.tables()))
        return table.take(np.argsort(table.source, kind="stable"))


def as_table(boxes: StoredBoxes) -> BoxTable:
    """Pass stored boxes where a table is asked for no more than its length, counts, changes and tables."""
    return cast("BoxTable", boxes)


def stored(boxes: BoxTable) -> StoredBoxes | None:
    """Return the boxes if they are stored ones."""
    given: object = boxes
    return given if isinstance(given, StoredBoxes) else None


def write_boxes(file: BinaryIO, boxes: BoxTable) -> None:
    """Append a block of predictions."""
    columns: dict[str, Any] = boxes.columns()
    columns["flags"] = np.packbits([columns[name] for name in FLAGS], axis=0, bitorder="little")[0]
    file.write(np.int64(len(boxes)).tobytes())
    for name, dtype, _ in COLUMNS:
        file.write(np.ascontiguousarray(columns[name], dtype=dtype).data if len(boxes) else b"")


def store_boxes(tables: Iterable[BoxTable], store: Store) -> tuple[Path, ...]:
    """Write predictions in their order, in files that fit into memory."""
    folder = store.folder()
    files: list[Path] = []
    for table in tables:
        for first in range(0, len(table), store.part_rows):
            files.append(folder / f"boxes-{len(files):05}")
            with files[-1].open("wb") as file:
                write_boxes(file, _rows(table, slice(first, first + store.part_rows)))
    return tuple(files)


def read_boxes(path: Path) -> BoxTable:
    """Return all blocks of a file as one table."""
    blocks: dict[str, list[Any]] = {name: [] for name, *_ in COLUMNS}
    with path.open("rb") as file:
        while head := file.read(8):
            n = int(np.frombuffer(head, dtype=np.int64)[0])
            for name, dtype, width in COLUMNS:
                column = np.fromfile(file, dtype=dtype, count=n * width)
                blocks[name].append(column.reshape(n, width) if width > 1 else column)
    columns: dict[str, Any] = {
        name: np.concatenate(blocks[name]) if blocks[name] else np.zeros((0, width)[: 1 + (width > 1)], dtype=dtype)
        for name, dtype, width in COLUMNS
    }
    flags = columns.pop("flags")
    columns |= {name: (flags >> bit & 1).astype(np.bool_) for bit, name in enumerate(FLAGS)}
    return freeze(BoxTable(**columns))


def by_image(boxes: StoredBoxes, n_images: int, store: Store) -> StoredBoxes:
    """Write boxes again, in parts of whole images; rows keep their order, and images ascend from part to part."""
    counts = boxes.counts("image", n_images)[:n_images]
    total = np.cumsum(counts)
    n_boxes = int(total[-1]) if n_images else 0
    rows_per_part = max(store.part_rows, -(-n_boxes // MOST_PARTS))
    # An image begins a part where the boxes in front of it fill one more.
    filled = (total - counts) // rows_per_part
    bounds = np.append(np.flatnonzero(np.diff(filled, prepend=-1)), n_images) if n_images else np.zeros(2, np.int64)
    folder = store.folder()
    part_of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    files = tuple(folder / f"boxes-{part:05}" for part in range(len(bounds) - 1))
    with ExitStack() as opened, Stage("partitioning", n_boxes) as stage:
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
    return StoredBoxes(files, store, bounds=bounds)


def _rows(boxes: BoxTable, rows: slice) -> BoxTable:
    """Return consecutive rows without a copy."""
    columns: dict[str, Any] = {name: column[rows] for name, column in boxes.columns().items() if column is not None}
    return replace(boxes, **columns)
