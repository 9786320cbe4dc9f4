"""Candidate pairs: detections and ground truth of one image and class that overlap enough to match at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.matching.order import Blocks, IntArray
from jaccard_eval.similarity.boxes import Corners, Rows, overlapping_pairs

CHUNK_PAIRS = 1 << 15  # pairs whose overlap is computed at once: they stay in the cache, and memory is bounded


class Measure(Protocol):
    """How much two boxes agree, in (0, 1]; `box.overlapping_pairs` (IoU) and `edges.close_pairs` are such."""

    def __call__(
        self, first: Corners, second: Corners, i: Rows, j: Rows, *, crowd: BoolArray | None, threshold: float
    ) -> tuple[Rows, Rows, FloatArray]:
        """Return the pairs (i, j) that agree by at least `threshold`, in their order, and by how much."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs that may match, sorted by detection, then ground truth.

    Parameters
    ----------
    det, gt : ndarray of int64, shape (p,)
        Rows in the detections and ground truth that were paired.
    overlap : ndarray of float64, shape (p,)
        IoU, or IoA where the ground truth is crowd; of another measure, its value.
    """

    det: IntArray
    gt: IntArray
    overlap: FloatArray

    def __len__(self) -> int:
        return len(self.det)


def candidate_pairs(
    det: Corners,
    gt: Corners,
    blocks: Blocks,
    crowd: BoolArray | None,
    threshold: float,
    *,
    measure: Measure = overlapping_pairs,
) -> Pairs:
    """Return all pairs within blocks whose overlap is at least `threshold`.

    Parameters
    ----------
    det, gt : Corners
        Detections in any order, ground truth sorted by key.
    blocks : Blocks
        Each detection's block of ground truth.
    crowd : ndarray of bool, shape (len(gt),), optional
        Ground truth whose overlap is IoA.
    threshold : float
    measure : Measure
        What decides whether boxes agree: IoU.
    """
    chunks = [measure(det, gt, i, j, crowd=crowd, threshold=threshold) for i, j in expand(blocks)]
    columns = [np.concatenate(column) for column in zip(*chunks, strict=True)]
    return Pairs(*columns)


def expand(blocks: Blocks) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the pairs of all blocks, a bounded number at a time, sorted by detection."""
    sizes = blocks.stop - blocks.start
    paired = np.flatnonzero(sizes)
    sizes, start = sizes[paired], blocks.start[paired]
    total = np.cumsum(sizes)
    first = 0
    while True:
        before = total[first - 1] if first else 0
        last = max(int(np.searchsorted(total, before + CHUNK_PAIRS, "right")), first + 1)
        chosen = sizes[first:last]
        i = np.repeat(paired[first:last], chosen)
        ends = np.cumsum(chosen)
        j = np.arange(len(i)) + np.repeat(start[first:last] - (ends - chosen), chosen)
        yield i, j
        first = last
        if first >= len(paired):
            return
