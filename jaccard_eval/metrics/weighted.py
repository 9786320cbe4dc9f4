"""Curves in which every image counts as often as its weight says, exactly: what resampling of images evaluates.

An image of weight w stands for w copies of it that were matched alike, and copies of a detection stand next to each
other in the ranking. No row is repeated: counts become sums of weights. Between the copies of one true positive
precision only rises, so the interpolated precision at the last copy is that of all of them; weights of 1 give the plain
curves bit for bit. What does not depend on the weights is worked out once, in a `WeightedPlan`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import required_hits
from jaccard_eval.metrics.curves import MatchCurves, envelope_area, highest_from


@dataclass(frozen=True, slots=True, eq=False)
class RankedHits:
    """True positives of one area range and cap, by threshold, class and rank, and what counts before each of them.

    Parameters
    ----------
    count, start, stop : ndarray of int64, shape (T, K)
        How many there are, the first, and the one after the last.
    image : ndarray of int64, shape (h,)
    base_image : ndarray of int64, shape (u,)
        Image of each detection that is a false positive when it matches nothing, in class order.
    base_first : ndarray of int64, shape (T, K)
        How many of them stand before the class.
    base_last : ndarray of int64, shape (h,)
        How many of them stand up to and including the hit itself.
    change_image, change_sign : ndarray of int64, shape (d,)
        Detections that count because of what they match (1), or do not count because of it (-1).
    change_first : ndarray of int64, shape (T, K)
    change_last : ndarray of int64, shape (h,)
    """

    count: IntArray
    start: IntArray
    stop: IntArray
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
        n_thresholds, n_candidates = outcome.hits.shape
        thresholds, classes = np.arange(n_thresholds)[:, None], np.arange(table.n_labels)
        change = outcome.counts.astype(np.int8) - outcome.unmatched[table.candidate]  # (T, c)
        changed_t, changed_c = np.nonzero(change)
        changed = changed_t * n_candidates + changed_c  # ascending
        place = running_total(outcome.unmatched.astype(np.int64))
        count = np.bincount(t * table.n_labels + label[c], minlength=thresholds.size * classes.size)
        stop = np.cumsum(count)
        shape = thresholds.size, classes.size
        return cls(
            count=count.reshape(shape),
            start=(stop - count).reshape(shape),
            stop=stop.reshape(shape),
            image=table.image[table.candidate[c]],
            base_image=table.image[outcome.unmatched],
            base_first=np.broadcast_to(place[np.searchsorted(table.label, classes)], shape),
            base_last=place[table.candidate[c] + 1],
            change_image=table.image[table.candidate[changed_c]],
            change_sign=change[changed_t, changed_c].astype(np.int64),
            change_first=np.searchsorted(changed, thresholds * n_candidates + np.searchsorted(label, classes)),
            change_last=np.searchsorted(changed, t * n_candidates + c, side="right"),
        )

    def weigh_before(self, weights: IntArray) -> IntArray:
        """Return the weight of what counts before and with each hit, shape (h,)."""
        base = running_total(weights[self.base_image])
        before, outside = base[self.base_last], base[self.base_first]
        if len(self.change_image):
            change = running_total(weights[self.change_image] * self.change_sign)
            before += change[self.change_last]
            outside += change[self.change_first]
        before -= self.spread(outside)
        return before

    def spread(self, values: IntArray) -> IntArray:
        """Return for each hit the value (T, K) of its threshold and class, shape (h,)."""
        return np.repeat(values.ravel(), self.count.ravel())


class WeightedPlan:
    """Lists what weighted curves of a match table need, once per area range and cap.

    Parameters
    ----------
    curves : MatchCurves
    """

    def __init__(self, curves: MatchCurves) -> None:
        self.plain = curves
        self._hits: dict[tuple[int, int], RankedHits] = {}
        self._truth = _counting_truth(curves.table)

    @property
    def table(self) -> MatchTable:
        """The match table."""
        return self.plain.table

    def hits(self, area: int, cap: int) -> RankedHits:
        """Return the hits of an area range and a cap (by their places on the axes A and M)."""
        if (area, cap) not in self._hits:
            self._hits[area, cap] = RankedHits.of(self.plain, area, cap)
        return self._hits[area, cap]

    def positives(self, weights: IntArray) -> IntArray:
        """Return the weight of the ground-truth boxes that count, shape (A, K)."""
        cell, image = self._truth
        shape = len(self.table.gt_ignored), self.table.n_labels
        return np.bincount(cell, weights=weights[image], minlength=math.prod(shape)).astype(np.int64).reshape(shape)

    def weigh(self, weights: IntArray) -> WeightedCurves:
        """Return the curves for weights of the images, whole numbers from 0 on."""
        return WeightedCurves(self, weights)


def _counting_truth(table: MatchTable) -> tuple[IntArray, IntArray]:
    """List the boxes that count, over all area ranges: which of the (A, K) each counts in, and its image."""
    area, row = np.nonzero(~table.gt_ignored)
    return area * table.n_labels + table.gt_label[row], table.gt_image[row]


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
        self._totals: dict[tuple[int, int], IntArray] = {}

    @cached_property
    def positives(self) -> IntArray:
        """Weight of the ground-truth boxes that count, shape (A, K)."""
        return self._plan.positives(self._weights)

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections within a cap, shape (T, K)."""
        hits, total = self._plan.hits(area, cap), self._total(area, cap)
        positives = self.positives[area].astype(np.float64)
        positives[positives == 0] = np.nan
        return np.asarray((total[hits.stop] - total[hits.start]) / positives)

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        hits = self._plan.hits(area, cap)
        at = self._first_reaching(area, cap)  # (T, K, R)
        # Recall values begin with 0, which the first hit of any weight reaches; hits before it have precision 0. So
        # what is found up to the next place is that of one class alone, but for values that it does not reach.
        highest = np.maximum.reduceat(self._precision(area, cap), at.ravel()).reshape(at.shape)
        highest[at == hits.stop[:, :, None]] = 0
        highest = highest_from(highest)
        highest[..., self.positives[area] == 0] = np.nan
        return highest

    def area_under_envelope(self, area: int, cap: int) -> FloatArray:
        """Area below the interpolated precision of each class, shape (T, K)."""
        hits, total = self._plan.hits(area, cap), self._total(area, cap)
        precision = self._precision(area, cap)
        result = np.full(hits.count.shape, np.nan)
        positives = self.positives[area]
        for t, k in np.argwhere(positives[None] > np.zeros_like(hits.count)):
            start, stop = hits.start[t, k], hits.stop[t, k]
            recall = (total[start : stop + 1] - total[start]) / positives[k]
            result[t, k] = envelope_area(recall, precision[start:stop])
        return result

    def _total(self, area: int, cap: int) -> IntArray:
        """Weight of the hits before each of them, of all thresholds and classes; shape (h + 1,)."""
        if (area, cap) not in self._totals:
            self._totals[area, cap] = running_total(self._weights[self._plan.hits(area, cap).image])
        return self._totals[area, cap]

    def _precision(self, area: int, cap: int) -> FloatArray:
        """Precision at each hit, 0 before the first that has a weight; and a closing 0, shape (h + 1,)."""
        hits, total = self._plan.hits(area, cap), self._total(area, cap)
        index = total[1:] - hits.spread(total[hits.start])
        before = np.maximum(hits.weigh_before(self._weights), 1)
        precision = np.zeros(len(total))
        np.divide(index, before + self._plan.table.protocol.precision_epsilon, out=precision[:-1])
        return precision

    def _first_reaching(self, area: int, cap: int) -> IntArray:
        """Find the hit that reaches each recall value, the end of its class where none does; shape (T, K, R)."""
        hits, total = self._plan.hits(area, cap), self._total(area, cap)
        needed = required_hits(self.positives[area], self._plan.plain.recall_grid)  # (K, R)
        target = total[hits.start][:, :, None] + np.maximum(needed, 1)[None]
        n_short = np.cumsum(np.bincount(total[1:], minlength=1))  # hits up to which there is no more than that weight
        found = n_short[np.minimum(target - 1, len(n_short) - 1)]
        return np.asarray(np.minimum(found, hits.stop[:, :, None]))


def running_total(values: IntArray) -> IntArray:
    """Cumulative sum with a leading 0."""
    total = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=total[1:])
    return total
