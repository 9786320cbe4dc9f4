"""Curves in which every image counts as often as its weight says, exactly: what resampling of images evaluates.

An image of weight w stands for w copies of it that were matched alike, and copies of a detection stand next to each
other in the ranking. No row is repeated: counts become sums of weights. Between the copies of one true positive
precision only rises, so the interpolated precision at the last copy is that of all of them; weights of 1 give the plain
curves bit for bit. What does not depend on the weights is worked out once, in a `WeightedPlan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.curves import MatchCurves, envelope_area, highest_beyond, required_hits


@dataclass(frozen=True, slots=True, eq=False)
class RankedHits:
    """True positives of one area range and cap, by threshold, class and rank, and what counts before each of them.

    Parameters
    ----------
    count : ndarray of int64, shape (T, K)
        How many there are.
    image : ndarray of int64, shape (h,)
    base_image : ndarray of int64, shape (u,)
        Image of each detection that is a false positive when it matches nothing, in class order.
    base_first, base_last : ndarray of int64, shape (h,)
        How many of them stand before the class of a hit, and up to and including the hit itself.
    change_image, change_sign : ndarray of int64, shape (d,)
        Detections that count because of what they match (1), or do not count because of it (-1).
    change_first, change_last : ndarray of int64, shape (h,)
    """

    count: IntArray
    image: IntArray
    base_image: IntArray
    base_first: IntArray
    base_last: IntArray
    change_image: IntArray
    change_sign: IntArray
    change_first: IntArray
    change_last: IntArray

    @classmethod
    def of(cls, curves: MatchCurves, area: int, cap: int) -> RankedHits:
        """List the hits of a match table."""
        table, outcome = curves.table, curves.outcome_within(area, cap)
        label = table.label[table.candidate]  # (c,)
        t, c = np.nonzero(outcome.hits)
        detection, first_of_class = table.candidate[c], np.searchsorted(table.label, label[c])
        place = running_total(outcome.unmatched.astype(np.int64))
        change = outcome.counts.astype(np.int8) - outcome.unmatched[table.candidate]  # (T, c)
        changed_t, changed_c = np.nonzero(change)
        n_candidates = len(table.candidate)
        changed = changed_t * n_candidates + changed_c  # ascending
        cell = t * table.n_labels + label[c]
        return cls(
            count=np.bincount(cell, minlength=len(change) * table.n_labels).reshape(len(change), table.n_labels),
            image=table.image[detection],
            base_image=table.image[outcome.unmatched],
            base_first=place[first_of_class],
            base_last=place[detection + 1],
            change_image=table.image[table.candidate[changed_c]],
            change_sign=change[changed_t, changed_c].astype(np.int64),
            change_first=np.searchsorted(changed, t * n_candidates + np.searchsorted(label, label[c])),
            change_last=np.searchsorted(changed, t * n_candidates + c, side="right"),
        )

    @property
    def stop(self) -> IntArray:
        """Where the hits of each threshold and class end, shape (T, K)."""
        return np.cumsum(self.count).reshape(self.count.shape)

    def weigh_before(self, weights: IntArray) -> IntArray:
        """Return the weight of what counts before and with each hit, shape (h,)."""
        base = running_total(weights[self.base_image])
        before: IntArray = base[self.base_last] - base[self.base_first]
        if len(self.change_image):
            change = running_total(weights[self.change_image] * self.change_sign)
            before += change[self.change_last] - change[self.change_first]
        return before


class WeightedPlan:
    """Lists what weighted curves of a match table need, once per area range and cap.

    Parameters
    ----------
    curves : MatchCurves
    """

    def __init__(self, curves: MatchCurves) -> None:
        self.plain = curves
        self._hits: dict[tuple[int, int], RankedHits] = {}

    @property
    def table(self) -> MatchTable:
        """The match table."""
        return self.plain.table

    def hits(self, area: int, cap: int) -> RankedHits:
        """Return the hits of an area range and a cap (by their places on the axes A and M)."""
        if (area, cap) not in self._hits:
            self._hits[area, cap] = RankedHits.of(self.plain, area, cap)
        return self._hits[area, cap]

    def weigh(self, weights: IntArray) -> WeightedCurves:
        """Return the curves for weights of the images, whole numbers from 0 on."""
        return WeightedCurves(self, weights)


class WeightedCurves:
    """Curves for one set of weights; as `MatchCurves`, NaN where no weight lies on ground truth of a class.

    Parameters
    ----------
    plan : WeightedPlan
    weights : ndarray of int64, shape (n_images,)
    """

    def __init__(self, plan: WeightedPlan, weights: IntArray) -> None:
        self._plan = plan
        self._weights = weights

    @cached_property
    def positives(self) -> IntArray:
        """Weight of the ground-truth boxes that count, shape (A, K)."""
        table = self._plan.table
        weight = self._weights[table.gt_image]
        sums = [
            np.bincount(table.gt_label, weights=np.where(ignored, 0, weight), minlength=table.n_labels)
            for ignored in table.gt_ignored
        ]
        return np.stack(sums).astype(np.int64)

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections within a cap, shape (T, K)."""
        hits = self._plan.hits(area, cap)
        total = running_total(self._weights[hits.image])
        positives = self.positives[area].astype(np.float64)
        positives[positives == 0] = np.nan
        return np.asarray((total[hits.stop] - total[hits.stop - hits.count]) / positives)

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        hits = self._plan.hits(area, cap)
        total = running_total(self._weights[hits.image])
        precision = self._precision(hits, total)
        cells = np.arange(hits.count.size)
        padded = np.zeros(len(precision) + len(cells))  # a closing 0 after each (threshold, class)
        padded[np.arange(len(precision)) + np.repeat(cells, hits.count.ravel())] = precision
        at = self._first_reaching(hits, total, area) + cells.reshape(hits.count.shape)[:, :, None]
        highest = highest_beyond(padded, at)
        highest[..., self.positives[area] == 0] = np.nan
        return highest

    def area_under_envelope(self, area: int, cap: int) -> FloatArray:
        """Area below the interpolated precision of each class, shape (T, K)."""
        hits = self._plan.hits(area, cap)
        total = running_total(self._weights[hits.image])
        precision = self._precision(hits, total)
        result = np.full(hits.count.shape, np.nan)
        positives, stop = self.positives[area], hits.stop
        for t, k in np.argwhere(positives[None] > np.zeros_like(hits.count)):
            start = stop[t, k] - hits.count[t, k]
            recall = (total[start : stop[t, k] + 1] - total[start]) / positives[k]
            result[t, k] = envelope_area(recall, precision[start : stop[t, k]])
        return result

    def _precision(self, hits: RankedHits, total: IntArray) -> FloatArray:
        """Precision at each hit; 0 before the first that has a weight."""
        start = (hits.stop - hits.count).ravel()
        index = total[1:] - np.repeat(total[start], hits.count.ravel())
        before = np.maximum(hits.weigh_before(self._weights), 1)
        return np.asarray(index / (before + self._plan.table.protocol.precision_epsilon))

    def _first_reaching(self, hits: RankedHits, total: IntArray, area: int) -> IntArray:
        """Find the hit that reaches each recall value, the end of its class where none does; shape (T, K, R)."""
        needed = required_hits(self.positives[area], self._plan.plain.recall_grid)  # (K, R)
        start = hits.stop - hits.count
        target = total[start][:, :, None] + np.maximum(needed, 1)[None]
        found = np.searchsorted(total[1:], target.ravel()).reshape(target.shape)
        return np.asarray(np.minimum(found, hits.stop[:, :, None]))


def running_total(values: IntArray) -> IntArray:
    """Cumulative sum with a leading 0."""
    total = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=total[1:])
    return total
