"""Candidate pairs: detections and ground truth of one image and class that overlap enough to match at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.matching.order import Blocks, IntArray
from jaccard_eval.similarity import KINDS, Similarity

CHUNK_PAIRS = 1 << 15  # pairs whose overlap is computed at once: they stay in the cache, and memory is bounded


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs that may match, sorted by detection, then ground truth.

    Parameters
    ----------
    det, gt : ndarray of int64, shape (p,)
        Rows in the detections and ground truth that were paired.
    overlap : ndarray of float64, shape (p,)
        IoU, or IoA where the ground truth is crowd; of another similarity, its value.
    """

    det: IntArray
    gt: IntArray
    overlap: FloatArray

    def __len__(self) -> int:
        return len(self.det)


def candidate_pairs(
    det: BoxTable,
    gt: BoxTable,
    blocks: Blocks,
    protocol: Protocol,
    *,
    threshold: float,
    crowd: BoolArray | None = None,
    similarity: Similarity | None = None,
) -> Pairs:
    """Return all pairs within blocks whose overlap is at least `threshold`.

    Parameters
    ----------
    det, gt : BoxTable
        Detections in any order, ground truth sorted by key.
    blocks : Blocks
        Each detection's block of ground truth.
    protocol : Protocol
    threshold : float
    crowd : ndarray of bool, shape (len(gt),), optional
        Ground truth whose overlap is IoA.
    similarity : Similarity, optional
        What overlap is: that of the protocol, unless given otherwise.
    """
    similarity = similarity or KINDS[protocol.iou_type]
    first, second = similarity.prepare(det, protocol), similarity.prepare(gt, protocol)
    chunks = [similarity.pairs(first, second, i, j, crowd=crowd, threshold=threshold) for i, j in expand(blocks)]
    return Pairs(*(np.concatenate(column) for column in zip(*chunks, strict=True)))


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
