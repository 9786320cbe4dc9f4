"""Orders and blocks: detections by class and score, ground truth by image and class, all with explicit tie rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol

IntArray = npt.NDArray[np.int64]

DENSE_TABLE_CELLS = 1 << 20  # a table over all (class, image) keys is used up to this size, or 4 cells a box


def stable_order(keys: npt.NDArray[np.integer]) -> IntArray:
    """Return the stable ascending order of non-negative integer keys.

    One sort of ``key · n + row`` replaces an argsort: the values are unique, so any sort is stable, and NumPy sorts
    plain integers several times faster than it argsorts.
    """
    n = len(keys)
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    if (keys[1:] >= keys[:-1]).all():
        return np.arange(n)
    if int(keys.max()) >= np.iinfo(np.int64).max // n - 1:
        return np.argsort(keys, kind="stable")
    packed = keys.astype(np.int64) * n
    packed += np.arange(n)
    packed.sort()
    packed %= n
    return packed


def descending_order(scores: FloatArray) -> IntArray:
    """Return the stable descending order of scores: an unstable argsort, then the rows of equal scores put in order."""
    order = np.argsort(-scores)
    ranked = scores[order]
    new = np.ones(len(order), dtype=np.int64)  # integers: a sum over flags takes twice as long
    np.not_equal(ranked[1:], ranked[:-1], out=new[1:], casting="unsafe")
    run = np.cumsum(new)
    if len(run) and run[-1] == len(run):
        return order
    n = max(len(order), 1)
    packed = np.sort(run * n + order)
    return packed % n


def starts_of_runs(ordered: npt.NDArray[Any]) -> BoolArray:
    """Mark where a new value begins, shape (n,); the first one does."""
    starts = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts


def lengths_of_runs(starts: BoolArray) -> tuple[IntArray, IntArray]:
    """Return where the runs that are marked begin, and how long each is; (r,) each."""
    first = np.flatnonzero(starts)
    return first, np.diff(np.append(first, len(starts)))


def class_order(pred: BoxTable, label: IntArray, protocol: Protocol) -> IntArray:
    """Return rows by class, then score descending; ties by image (or not, as the protocol says), then file order."""
    score = np.zeros(len(pred)) if pred.score is None else pred.score
    by_image = stable_order(_image_major(pred, protocol)) if protocol.score_ties == "image" else np.arange(len(pred))
    by_score = by_image[descending_order(score[by_image])]
    return by_score[stable_order(label[by_score])]


def _image_major(table: BoxTable, protocol: Protocol) -> npt.NDArray[np.integer]:
    """Sort keys by image; where classes are pooled, pycocotools concatenates them class by class within an image."""
    if not protocol.class_agnostic:
        return table.image
    return table.image.astype(np.int64) * (int(table.label.max(initial=0)) + 1) + table.label


def ground_truth_order(gt: BoxTable, key: IntArray, protocol: Protocol) -> IntArray:
    """Return rows by (class, image) key, then file order (class by class where classes are pooled)."""
    if protocol.class_agnostic:
        by_class = stable_order(_image_major(gt, protocol))
        return by_class[stable_order(key[by_class])]
    return stable_order(key)


def group_ranks(key: IntArray) -> IntArray:
    """Return the rank of each row among the rows of its key, in row order."""
    order = stable_order(key)
    ordered = key[order]
    first, sizes = lengths_of_runs(starts_of_runs(ordered))
    ranks = np.empty(len(key), dtype=np.int64)
    ranks[order] = np.arange(len(key)) - np.repeat(first, sizes)
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """For each query its block [start, stop) in a sorted array of keys."""

    start: IntArray
    stop: IntArray

    @classmethod
    def of(cls, sorted_keys: IntArray, queries: IntArray) -> Blocks:
        """Find the blocks; by a table over all keys where it is small enough, else by binary search."""
        n_keys = int(max(sorted_keys.max(initial=-1), queries.max(initial=-1))) + 1
        if n_keys > max(DENSE_TABLE_CELLS, 4 * (len(sorted_keys) + len(queries))):
            return cls(np.searchsorted(sorted_keys, queries, "left"), np.searchsorted(sorted_keys, queries, "right"))
        bounds = np.zeros(n_keys + 1, dtype=np.int64)
        np.cumsum(np.bincount(sorted_keys, minlength=n_keys), out=bounds[1:])
        return cls(bounds[queries], bounds[queries + 1])
