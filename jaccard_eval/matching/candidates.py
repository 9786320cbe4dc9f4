"""Candidate pairs: detections and ground truth of one image and class that overlap enough to match at all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import BOXES, Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import Blocks, IntArray
from jaccard_eval.native import matching as native
from jaccard_eval.similarity import KINDS, Similarity

CHUNK_PAIRS = 1 << 15  # pairs whose overlap is computed at once: they stay in the cache, and memory is bounded
BLOCK_ROWS = 1 << 17  # detections that are paired at once: a copy of all of them would be half of what a run needs


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
    in_core = partial(_compiled_pairs, similarity=similarity, offset=protocol.pixel_offset)
    compiled = in_core(det, np.arange(len(det)), gt, blocks, crowd=crowd, threshold=threshold)
    if compiled is not None:
        return Pairs(*compiled)
    # Corners and the like are made once a side: they would be made again in every chunk, of boxes in many chunks.
    first, second = similarity.prepare(det, protocol), similarity.prepare(gt, protocol)
    chunks = [similarity.pairs(first, second, i, j, crowd=crowd, threshold=threshold) for i, j in expand(blocks)]
    return Pairs(*native.joined_columns(chunks))


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Boxes in some order, and a key of each: only those of equal keys may match."""

    boxes: BoxTable
    rows: IntArray  # in `boxes`, (n,)
    key: IntArray  # (n,)


def keyed_pairs(
    det: Keyed,
    gt: Keyed,
    protocol: Protocol,
    *,
    threshold: float,
    crowd: BoolArray | None = None,
    similarity: Similarity | None = None,
) -> Pairs:
    """Return what `candidate_pairs` does, of detections in any order and ground truth by ascending key."""
    similarity = similarity or KINDS[protocol.iou_type]
    in_core = partial(_compiled_pairs, similarity=similarity, offset=protocol.pixel_offset)
    truth = gt.boxes.take(gt.rows)
    second = similarity.prepare(truth, protocol)
    # Shapes are larger than boxes by far: they are looked up where they are, and not brought into another order.
    whole = None if det.boxes.shapes is None else similarity.prepare(det.boxes, protocol)
    place = np.zeros(0 if whole is None else len(det.boxes), dtype=np.int64)
    if whole is not None:
        place[det.rows] = np.arange(len(det.rows))
    chunks = []
    for start in range(0, max(len(det.rows), 1), BLOCK_ROWS):
        key = det.key[start : start + BLOCK_ROWS]
        # Ground truth of the classes of these detections alone: keys from 0 on are found in a table.
        lowest = int(key.min(initial=np.iinfo(np.int64).max))
        low, high = np.searchsorted(gt.key, [lowest, int(key.max(initial=-1)) + 1]).tolist()
        high = max(low, high)
        blocks = Blocks.of(gt.key[low:high] - lowest, key - lowest)
        rows = det.rows[start : start + BLOCK_ROWS]
        shifted = Blocks(blocks.start + low, blocks.stop + low)
        compiled = in_core(det.boxes, rows, truth, shifted, crowd=crowd, threshold=threshold)
        if compiled is not None:
            chunks.append((compiled[0] + start, *compiled[1:]))
            continue
        first = similarity.prepare(det.boxes.take(rows), protocol) if whole is None else whole
        for i, j in expand(blocks):
            asked = i if whole is None else rows[i]
            found = similarity.pairs(first, second, asked, j + low, crowd=crowd, threshold=threshold)
            chunks.append((found[0] + start if whole is None else place[found[0]], *found[1:]))
    return Pairs(*native.joined_columns(chunks))


def _compiled_pairs(
    det: BoxTable,
    rows: IntArray,
    gt: BoxTable,
    blocks: Blocks,
    *,
    similarity: Similarity,
    offset: float,
    crowd: BoolArray | None,
    threshold: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Pair some rows of boxes with their blocks by the compiled core; None without it, or of another similarity."""
    if similarity.name != BOXES:
        return None
    within = blocks.start, blocks.stop
    return native.pair_boxes(det.xywh, rows, gt.xywh, within, crowd, threshold=threshold, offset=offset)


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
