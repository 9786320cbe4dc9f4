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
    """Pairs that may match, sorted by detection, then ground truth; columns of shape (p,)."""

    # Rows in the tables that were paired, which need not be those of the inputs.
    det: IntArray
    gt: IntArray
    # IoU, or IoA where the ground truth is crowd; of another similarity, its value.
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
    """Return all pairs within blocks whose overlap is at least `threshold`; of `crowd` (len(gt),) it is IoA.

    Detections may stand in any order, but ground truth by the key that the blocks are of. Overlap is what the protocol
    compares, unless a similarity is given.
    """
    similarity = similarity or KINDS[protocol.iou_type]
    # Corners and the like are made once a side: they would be made again in every chunk, of boxes in many chunks.
    first, second = similarity.prepare(det, protocol), similarity.prepare(gt, protocol)
    chunks = [similarity.pairs(first, second, i, j, crowd=crowd, threshold=threshold) for i, j in expand(blocks)]
    return Pairs(*(np.concatenate(column) for column in zip(*chunks, strict=True)))


def expand(blocks: Blocks) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the pairs of all blocks, a bounded number at a time, sorted by detection."""
    sizes = blocks.stop - blocks.start
    # Detections on images without an object of their class are many, and make no pair.
    paired = np.flatnonzero(sizes)
    sizes, start = sizes[paired], blocks.start[paired]
    total = np.cumsum(sizes)
    first = 0
    # One chunk is yielded even without pairs: its empty arrays carry the dtypes that joining them needs.
    while True:
        before = total[first - 1] if first else 0
        # A detection is never cut in two, so that one whose block alone exceeds a chunk still makes a chunk.
        last = max(int(np.searchsorted(total, before + CHUNK_PAIRS, "right")), first + 1)
        chosen = sizes[first:last]
        i = np.repeat(paired[first:last], chosen)
        ends = np.cumsum(chosen)
        # Counting on from the start of each block: 0, 1, 2, ... over all pairs, shifted by where the blocks begin.
        j = np.arange(len(i)) + np.repeat(start[first:last] - (ends - chosen), chosen)
        yield i, j
        first = last
        if first >= len(paired):
            return
