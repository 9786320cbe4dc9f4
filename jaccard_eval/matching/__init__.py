"""Pairing detections with ground truth, once, into one match table.

Here are the orders and blocks of rows: detections by class and score, ground truth by image and class, all with
explicit tie rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.native import calls as native

IntArray = npt.NDArray[np.int64]
WholeArray = npt.NDArray[np.integer]  # of 32 or 64 bits

DENSE_TABLE_CELLS = 1 << 20  # a table over all (class, image) keys is used up to this size, or 4 cells a box


def stable_order(keys: npt.NDArray[np.integer]) -> IntArray:
    """Return the stable ascending order of non-negative integer keys."""
    # Exports are mostly grouped by image already, and one look at all keys is cheap compared with any sort.
    if (keys[1:] >= keys[:-1]).all():
        return np.arange(len(keys))
    # A radix sort, 16 bits at a time, the lowest first: NumPy sorts integers of 16 bits by counting them, and a pass
    # takes a tenth of an argsort of wider ones. Later passes keep what earlier ones did, as all are stable.
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(16, int(keys.max()).bit_length(), 16):
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def descending_order(scores: FloatArray) -> IntArray:
    """Return the stable descending order of scores, which is that of pycocotools: ``argsort(-scores, "mergesort")``."""
    return np.argsort(-scores, kind="stable")


def class_and_score_order(label: npt.NDArray[np.integer], score: FloatArray) -> IntArray:
    """Return the stable order by class, ascending, then by score, descending; NaN comes last in its class."""
    # One sort of whole numbers that hold class, score and row takes a third of two stable sorts. Bits of floats are
    # ordered as the floats are, once those of negative ones are turned; adding 0 makes one zero of the two.
    bits = (0.0 - score).view(np.int64)
    key = (bits ^ ((bits >> 63) | np.int64(np.iinfo(np.int64).min))).view(np.uint64)
    key[np.isnan(score)] = np.iinfo(np.uint64).max
    key -= key.min(initial=np.iinfo(np.uint64).max)
    n_row_bits, n_label_bits = max(len(score) - 1, 1).bit_length(), int(label.max(initial=1)).bit_length()
    # What of the score does not fit next to class and row is left away from its lower end.
    left_away = max(0, int(key.max(initial=0)).bit_length() + n_label_bits + n_row_bits - 64)
    key >>= np.uint64(left_away)
    key |= label.astype(np.uint64) << np.uint64(64 - n_label_bits - n_row_bits)
    key <<= np.uint64(n_row_bits)
    key |= np.arange(len(score), dtype=np.uint64)
    key.sort()
    order = (key & np.uint64((1 << n_row_bits) - 1)).view(np.int64)
    if left_away:
        _sort_alike(order, key >> np.uint64(n_row_bits), score)
    return order


def _sort_alike(order: IntArray, key: npt.NDArray[np.uint64], score: FloatArray) -> None:
    """Sort what has equal keys by its scores, in place; nearly always it is sorted already."""
    ordered = score[order]
    # Not "greater": whatever is compared with NaN is out of order, and then put in order with all others.
    if not ((key[1:] == key[:-1]) & ~(ordered[1:] <= ordered[:-1])).any():
        return
    _, sizes = lengths_of_runs(starts_of_runs(key))
    alike = np.flatnonzero(np.repeat(sizes > 1, sizes))
    rows = order[alike]
    order[alike] = rows[np.lexsort((rows, -score[rows], key[alike]))]


def starts_of_runs(ordered: npt.NDArray[Any]) -> BoolArray:
    """Mark where a new value begins, shape (n,); the first one does."""
    starts = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values that there are, ascending: as `numpy.unique`, which loads masked arrays before it begins."""
    ordered = np.sort(values)
    return ordered[starts_of_runs(ordered)]


def lengths_of_runs(starts: BoolArray) -> tuple[IntArray, IntArray]:
    """Return where the runs that are marked begin, and how long each is; (r,) each."""
    first = np.flatnonzero(starts)
    return first, np.diff(np.append(first, len(starts)))


def labels_of(table: BoxTable, protocol: Protocol) -> IntArray:
    """Return the class of each box as far as matching distinguishes classes; int64, as its keys outgrow int32."""
    return np.zeros(len(table), dtype=np.int64) if protocol.class_agnostic else table.label.astype(np.int64)


def tie_order(pred: BoxTable, protocol: Protocol) -> IntArray:
    """Return the rows of predictions in the order in which equal scores of a class stand."""
    # Stable sorts, the least important first: equal scores stay by image, or as the file has them (VOC), then in the
    # order of the file. pycocotools gets the same by concatenating images in ascending order before it sorts.
    return stable_order(_image_major(pred, protocol)) if protocol.score_ties == "image" else np.arange(len(pred))


def rank_detections(pred: BoxTable, protocol: Protocol, n_images: int) -> tuple[IntArray, IntArray, RowArray]:
    """Put predictions in class order and drop those beyond the protocol's largest cap.

    Returns for each one kept its row in `pred`, its key ``class · n_images + image``, and its rank within that key.
    """
    label = labels_of(pred, protocol)
    score = np.zeros(len(pred)) if pred.score is None else pred.score
    by_image = tie_order(pred, protocol)
    cap = protocol.max_dets[-1] if protocol.max_dets else len(pred)
    ranked = native.rank(score, label, pred.image, by_image, n_images=n_images, cap=cap)
    if protocol.max_dets_per == "image" and len(protocol.max_dets) > 1:
        order, key, _ = ranked or _ranked(by_image, label, score, label * n_images + pred.image, len(pred))
        # Of an image over all classes, so that smaller caps are views of the ranking as well.
        within = np.empty(len(pred), dtype=np.int32)
        by_score = class_and_score_order(pred.image, score)
        within[by_score] = group_ranks(pred.image[by_score])
        return order, key, within[order]
    return ranked or _ranked(by_image, label, score, label * n_images + pred.image, cap)


def _ranked(
    by_image: IntArray, label: IntArray, score: FloatArray, keys: IntArray, cap: int
) -> tuple[IntArray, IntArray, RowArray]:
    """Return what `rank_detections` does, without the compiled core."""
    order = by_image[class_and_score_order(label[by_image], score[by_image])]
    key = keys[order]
    rank = group_ranks(key)
    # The cap is one of an image and class, as in pycocotools; smaller caps are views of the ranking.
    if rank.max(initial=-1) < cap:
        return order, key, rank
    kept = rank < cap
    return order[kept], key[kept], rank[kept]


def _image_major(table: BoxTable, protocol: Protocol) -> npt.NDArray[np.integer]:
    """Sort keys by image; where classes are pooled, pycocotools concatenates them class by class within an image."""
    if not protocol.class_agnostic:
        return table.image
    return table.image.astype(np.int64) * (int(table.label.max(initial=0)) + 1) + table.label


def ground_truth_order(gt: BoxTable, key: IntArray, protocol: Protocol) -> IntArray:
    """Return rows by (class, image) key, then file order (class by class where classes are pooled)."""
    # With pooled classes the key is the image alone, so that sorting by image and class keeps it ascending.
    return stable_order(_image_major(gt, protocol)) if protocol.class_agnostic else stable_order(key)


def group_ranks(key: WholeArray) -> RowArray:
    """Return the rank of each row among the rows of its key, in row order."""
    order = stable_order(key)
    ordered = key[order]
    first, sizes = lengths_of_runs(starts_of_runs(ordered))
    ranks = np.empty(len(key), dtype=np.int32)
    ranks[order] = np.arange(len(key)) - np.repeat(first, sizes)
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """For each query its block [start, stop) in a sorted array of keys."""

    start: IntArray
    stop: IntArray

    @classmethod
    def of(cls, sorted_keys: WholeArray, queries: WholeArray) -> Blocks:
        """Find the blocks; by a table over all keys where it is small enough, else by binary search."""
        n_keys = int(max(sorted_keys.max(initial=-1), queries.max(initial=-1))) + 1
        # A table answers 250,000 queries several times faster than a search, but thousands of classes on as many
        # images would make it larger than the data.
        if n_keys > max(DENSE_TABLE_CELLS, 4 * (len(sorted_keys) + len(queries))):
            return cls(np.searchsorted(sorted_keys, queries, "left"), np.searchsorted(sorted_keys, queries, "right"))
        # bounds[key] is where the block of a key begins, bounds[key + 1] where it ends: keys without boxes are empty.
        bounds = np.zeros(n_keys + 1, dtype=np.int64)
        np.cumsum(np.bincount(sorted_keys, minlength=n_keys), out=bounds[1:])
        return cls(bounds[queries], bounds[queries + 1])
