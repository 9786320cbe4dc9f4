"""What a package of someone else adds for things on a line: a format, and the similarity of what it reads.

A line of a file is ``image class [score] start-end[,start-end ...]``; ``size image width`` gives the width of an image.
A shape is made of one interval or more, so that different shapes have the same bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval import UsageError
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.similarity import Similarity

FORMAT = Format(name="line", summary="Intervals on a line", source="none", example="", carries=(), suffixes=(".line",))


@dataclass(frozen=True, eq=False)
class Intervals:
    """`ends` (k, 2) of all intervals; those of shape i are the rows from ``offsets[i]`` to ``offsets[i + 1]``."""

    ends: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, shapes: Sequence[Sequence[tuple[float, float]]]) -> Intervals:
        ends = [pair for shape in shapes for pair in shape]
        return cls(np.array(ends, dtype=float).reshape(-1, 2), np.cumsum([0, *map(len, shapes)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def shape(self, row: int) -> np.ndarray:
        return self.ends[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: np.ndarray) -> Intervals:
        return Intervals.of([[(a, b) for a, b in self.shape(row)] for row in rows])

    def joined(self, others: Sequence[Intervals]) -> Intervals:
        return Intervals.of([part.shape(row).tolist() for part in (self, *others) for row in range(len(part))])

    def bounds(self) -> np.ndarray:
        low, high = self.ends[self.offsets[:-1], 0], self.ends[self.offsets[1:] - 1, 1]
        return np.stack((low, np.zeros(len(self)), high - low, np.ones(len(self))), axis=1)

    def hashes(self) -> np.ndarray:
        return np.array([hash(self.shape(row).tobytes()) % 2**64 for row in range(len(self))], dtype=np.uint64)

    def scaled(self, xy: np.ndarray) -> Intervals:
        return Intervals(self.ends * np.repeat(xy[:, :1], np.diff(self.offsets), axis=0), self.offsets)

    def shifted(self, xy: np.ndarray) -> Intervals:
        return Intervals(self.ends + np.repeat(xy[:, :1], np.diff(self.offsets), axis=0), self.offsets)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"ends": self.ends, "offsets": self.offsets}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Intervals:
        if arrays.keys() != {"ends", "offsets"}:
            raise UsageError("these are no intervals")
        return cls(arrays["ends"], arrays["offsets"])

    def length(self, row: int) -> float:
        return float(np.diff(self.shape(row)).sum())


def pairs(first: Intervals, second: Intervals, i: Any, j: Any, *, crowd: Any = None, threshold: float = 0.0) -> Any:
    """Length that two shapes share over the length of both together; of a crowd, over the length of the first."""
    shared = np.array([
        sum(max(0.0, min(b, d) - max(a, c)) for a, b in first.shape(x) for c, d in second.shape(y))
        for x, y in zip(i, j, strict=True)
    ])  # fmt: skip
    own, other = (np.array([side.length(row) for row in rows]) for side, rows in ((first, i), (second, j)))
    whole = own + other - shared
    if crowd is not None:
        whole = np.where(crowd[j], own, whole)
    overlap = np.divide(shared, whole, out=np.zeros(len(shared)), where=whole > 0)
    kept = overlap >= threshold
    return i[kept], j[kept], overlap[kept]


SIMILARITY = Similarity(
    "interval", lambda boxes, _: Intervals.of([]) if boxes.shapes is None else boxes.shapes, pairs, shapes=Intervals
)


def looks_like(peek: Peek) -> Likeness | None:
    return Likeness.SUFFIX if peek.suffix == ".line" else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add a part for each line: a draft takes boxes any number of times."""
    sizes = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        first, *rest = line.split()
        if first == "size":
            sizes[rest[0]] = float(rest[1])
            continue
        shapes = Intervals.of([[(float(a), float(b)) for a, b in (one.split("-") for one in rest[-1].split(","))]])
        draft.add_boxes(
            RawBoxes(
                image=[first],
                label=[rest[0]],
                coords=shapes.bounds(),
                encoding="xywh",
                units="px",
                place=lambda _, number=number: Where(str(path), line=number),  # type: ignore[misc]
                score=np.array([float(rest[1])]) if options.role == "pred" else None,
                shapes=shapes,
            )
        )
    if sizes:
        draft.set_images(list(sizes), sizes=np.array([(width, 1.0) for width in sizes.values()]))
