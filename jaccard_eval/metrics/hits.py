"""True positives of one area range and cap, and what counts before each of them: what curves are drawn through."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, RowArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray, WholeArray
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.native.matching import find_hits


class Hits:
    """True positives of one area range and cap, by threshold, class and rank, and what counts before them."""

    def __init__(self, ranking: Ranking, area: int, cap: int | None, candidates_before: IntArray) -> None:
        self._ranking = ranking
        self._candidates_before = candidates_before
        self._area = area
        # The largest cap was applied before matching. A smaller one changes no match: better detections chose first.
        self._cap = cap if cap is not None and cap != ranking.protocol.max_dets[-1] else None
        self._own_counts: WholeArray | None = None
        if found := self._find():
            self.detection, self._own_counts, count = found  # (h,)
        else:
            # Threshold by threshold: `nonzero` of two axes takes ten times as long, and keeps twice the memory alive.
            rows = [np.flatnonzero(hits_at) for hits_at in self._capped(ranking.hits[area], ranking.candidate)]
            self.detection = ranking.candidate[np.concatenate(rows)]
            label = ranking.label[ranking.candidate]
            count = np.stack([np.bincount(label[row], minlength=ranking.n_labels) for row in rows])
        # The first hit of a cell, and the one after its last, (T, K): detections come by class within a threshold.
        self.stop = np.cumsum(count).reshape(count.shape)
        self.start = self.stop - count

    def _find(self, ties: tuple[RowArray, bool] | None = None) -> tuple[IntArray, RowArray, IntArray] | None:
        ranking, area = self._ranking, self._area
        return find_hits(
            (ranking.label, ranking.rank, ranking.in_range[area]),
            (ranking.candidate, ranking.hits[area], ranking.counts[area]),
            n_labels=ranking.n_labels,
            cap=self._cap,
            ties=ties,
        )

    def _capped(self, flags: BoolArray, rows: IntArray | slice = slice(None)) -> BoolArray:
        return flags if self._cap is None else flags & (self._ranking.rank[rows] < self._cap)

    def own_counts(self, ties: tuple[RowArray, bool] | None = None) -> WholeArray | None:
        """Count the detections of its class that count up to each hit (h,); None without the compiled core.

        Given where each tie begins, and where the last one ends, with the hits of each in front of it, or behind.
        """
        if ties is None:
            return self._own_counts
        found = self._find(ties)
        return None if found is None else found[1]

    @cached_property
    def _counts(self) -> BoolArray:
        return self._capped(self._ranking.counts[self._area], self._ranking.candidate)

    @cached_property
    def _unmatched(self) -> BoolArray:
        return self._capped(self._ranking.in_range[self._area])

    @property
    def threshold(self) -> IntArray:
        """Place of the threshold of each one, shape (h,); made anew, as keeping it would cost 10 MB at COCO's size."""
        return np.repeat(np.arange(len(self.start)), (self.stop - self.start).sum(axis=1))

    @cached_property
    def image(self) -> WholeArray:
        """Image of each one, shape (h,)."""
        return self._ranking.image[self.detection]

    @cached_property
    def _base(self) -> IntArray:
        """Images of what counts unless it matches anything, shape (u,)."""
        return np.asarray(self._ranking.image[self._unmatched])

    @cached_property
    def _changed(self) -> BoolArray:
        """Candidates that count, or do not count, because of what they match; shape (T, c)."""
        return np.asarray(self._counts != self._unmatched[self._ranking.candidate])

    @cached_property
    def _changed_images(self) -> WholeArray:
        """Image of each change by matching, shape (d,)."""
        _, candidate = np.nonzero(self._changed)
        return self._ranking.image[self._ranking.candidate[candidate]]

    @cached_property
    def _signs(self) -> npt.NDArray[np.int8]:
        """For each change by matching, 1 for what counts because of it, else -1; shape (d,)."""
        return np.where(self._counts[self._changed], np.int8(1), np.int8(-1))

    def places(self, rows: WholeArray) -> _Places:
        """Find what counts in front of a row of the ranking for each hit (h,)."""
        ranking = self._ranking
        classes = np.searchsorted(ranking.label, np.arange(ranking.n_labels, dtype=ranking.label.dtype))
        # Two lists: what counts unless it matches, once for all thresholds, and the corrections at candidates, a row a
        # threshold. So nothing of shape (T, n) is ever made.
        of_class, of_hit = (
            thresholds * len(ranking.candidate) + self._candidates_before[at]
            for thresholds, at in ((np.arange(len(self.start))[:, None], classes), (self.threshold, rows))
        )
        base, change = running_total(self._unmatched, np.int32), running_total(self._changed.ravel(), np.int32)
        return _Places(np.broadcast_to(base[classes], self.start.shape), base[rows], change[of_class], change[of_hit])

    def totals(self) -> IntArray:
        """Count all detections that count, of all classes together, at each threshold; shape (T,)."""
        unmatched = np.count_nonzero(self._unmatched)
        of_candidates = np.count_nonzero(self._unmatched[self._ranking.candidate])
        return np.asarray(unmatched - of_candidates + np.count_nonzero(self._counts, axis=1))

    @cached_property
    def own_places(self) -> _Places:
        """What counts up to and including each hit."""
        return self.places(self.detection + 1)

    def weigh(self, weights: IntArray | None, places: _Places) -> IntArray:
        """Return the weight of the detections of a hit's class that count in front of its place, shape (h,)."""
        if weights is None:  # what stands in front is its own weight
            before, outside, change = places.base, places.base_of_class, self._signs
            total = running_total(change, np.int32)
        else:
            base = running_total(weights[self._base])
            before, outside = base[places.base], base[places.base_of_class]
            change = weights[self._changed_images] * self._signs
            total = running_total(change)
        if len(change):
            before, outside = before + total[places.change], outside + total[places.change_of_class]
        return np.asarray(before - np.repeat(outside.ravel(), (self.stop - self.start).ravel()))


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """How many rows of the two lists that count stand in front of each hit (h,), and in front of its class (T, K)."""

    base_of_class: IntArray
    base: IntArray
    change_of_class: IntArray
    change: IntArray


def running_total(values: WholeArray | BoolArray, dtype: type[np.integer] = np.int64) -> npt.NDArray[Any]:
    """Sum up the values in front of each one, and all; shape (n + 1,)."""
    total = np.zeros(len(values) + 1, dtype=dtype)
    np.cumsum(values, dtype=dtype, out=total[1:])
    return total
