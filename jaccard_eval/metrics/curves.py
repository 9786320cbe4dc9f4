"""Precision and recall curves of all classes and thresholds at once, from the match table.

Interpolated precision changes only at true positives, so only those are visited. The arithmetic follows pycocotools to
the last bit: ``rc = tp / npig``, ``pr = tp / ((fp + tp) + eps)``, recall values looked up with ``searchsorted(left)``.

Axes: T IoU thresholds, R recall values, K classes, A area ranges, M caps on detections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import required_hits


@dataclass(frozen=True, slots=True, eq=False)
class TruePositives:
    """True positives of one area range and cap, sorted by threshold, then class, then rank.

    Parameters
    ----------
    count : ndarray of int64, shape (T, K)
    index : ndarray of int64, shape (h,)
        Which true positive of its class it is, from 1.
    before : ndarray of int64, shape (h,)
        Detections that count (true or false positives) up to and including it.
    detection : ndarray of int64, shape (h,)
        Its row in the match table.
    """

    count: IntArray
    index: IntArray
    before: IntArray
    detection: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What detections count as in one area range.

    Parameters
    ----------
    hits : ndarray of bool, shape (T, c)
        Candidates that are true positives.
    counts : ndarray of bool, shape (T, c)
        Candidates that are true or false positives; the others are ignored.
    unmatched : ndarray of bool, shape (n,)
        Detections that are false positives if they match nothing; those outside the area range are ignored.
    """

    hits: BoolArray
    counts: BoolArray
    unmatched: BoolArray

    @classmethod
    def of(cls, table: MatchTable, area: int) -> Outcome:
        """Read the outcome off the match table."""
        matched = table.choice[area] >= 0
        in_range = table.in_range(area)
        counts = np.where(matched, ~table.ignored_match(area), in_range[table.candidate])
        return cls(hits=counts & matched, counts=counts, unmatched=in_range)

    def within(self, chosen: BoolArray | None, candidate: IntArray) -> Outcome:
        """Keep the chosen detections (n,) only; None keeps all."""
        if chosen is None:
            return self
        kept = chosen[candidate]
        return Outcome(self.hits & kept, self.counts & kept, self.unmatched & chosen)


class MatchCurves:
    """Curves of a match table; everything is computed when asked for, NaN where a class has no ground truth.

    Parameters
    ----------
    table : MatchTable
    """

    def __init__(self, table: MatchTable) -> None:
        self.table = table
        self.caps: tuple[int | None, ...] = table.protocol.max_dets or (None,)
        self.positives = table.positives
        self._outcomes: dict[int, Outcome] = {}
        self._hits: dict[tuple[int, int], TruePositives] = {}

    @cached_property
    def precision(self) -> FloatArray:
        """Interpolated precision at each recall value, shape (T, R, K, A, M)."""
        return self._stack(self.interpolated_precision)

    @cached_property
    def scores(self) -> FloatArray:
        """Score at which each recall value is reached, 0 beyond the last; shape (T, R, K, A, M)."""
        return self._stack(self.recall_scores)

    @cached_property
    def recall(self) -> FloatArray:
        """Recall over all detections, shape (T, K, A, M)."""
        return self._stack(self.final_recall)

    def _stack(self, slice_of: Callable[[int, int], FloatArray]) -> FloatArray:
        areas, caps = range(len(self.table.protocol.areas)), range(len(self.caps))
        return np.stack([np.stack([slice_of(a, m) for m in caps], axis=-1) for a in areas], axis=-2)

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections within a cap, shape (T, K)."""
        positives = self.positives[area].astype(np.float64)
        positives[positives == 0] = np.nan
        return np.asarray(self.hit_counts(area, cap) / positives)

    def hit_counts(self, area: int, cap: int) -> IntArray:
        """Count the true positives, shape (T, K)."""
        if (area, cap) in self._hits:
            return self._hits[area, cap].count
        return _count_by_class(self.table, *np.nonzero(self.outcome_within(area, cap).hits))

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        hits = self.true_positives(area, cap)
        precision = hits.index / (hits.before + self.table.protocol.precision_epsilon)
        at, values = self._lookup(hits, area, precision)
        return self._undefined_without_truth(highest_beyond(values, at), area)

    def area_under_envelope(self, area: int, cap: int) -> FloatArray:
        """Area below the interpolated precision of each class, shape (T, K).

        Source: PASCAL VOC development kit, ``VOCap.m`` of 2010 and later.
        """
        hits = self.true_positives(area, cap)
        precision = hits.index / (hits.before + self.table.protocol.precision_epsilon)
        stop = np.cumsum(hits.count).reshape(hits.count.shape)
        result = np.full(hits.count.shape, np.nan)
        positives = self.positives[area]
        for t, k in np.argwhere(positives[None] > np.zeros_like(hits.count)):
            of_class = precision[stop[t, k] - hits.count[t, k] : stop[t, k]]
            result[t, k] = envelope_area(np.arange(len(of_class) + 1) / positives[k], of_class)
        return result

    def recall_scores(self, area: int, cap: int) -> FloatArray:
        """Score of the detection that reaches each recall value, shape (T, R, K)."""
        hits = self.true_positives(area, cap)
        at, values = self._lookup(hits, area, self.table.score[hits.detection])
        scores = values[at]  # (T, K, R)
        scores[:, :, self.recall_grid == 0] = self._first_scores()[:, None]
        return self._undefined_without_truth(np.ascontiguousarray(scores.transpose(0, 2, 1)), area)

    @property
    def recall_grid(self) -> FloatArray:
        """Recall values of the curves; 101 of them where the protocol itself uses none."""
        return self.table.protocol.recall_grid if self.table.protocol.recall_points else np.linspace(0.0, 1.0, 101)

    def outcome(self, area: int) -> Outcome:
        """Return what each detection counts as in an area range."""
        if area not in self._outcomes:
            self._outcomes[area] = Outcome.of(self.table, area)
        return self._outcomes[area]

    def outcome_within(self, area: int, cap: int) -> Outcome:
        """Return what each detection within a cap counts as (by their places on the axes A and M)."""
        return self.outcome(area).within(self._rank_below(cap), self.table.candidate)

    def true_positives(self, area: int, cap: int) -> TruePositives:
        """Return the true positives of an area range and a cap (by their places on the axes A and M)."""
        if (area, cap) not in self._hits:
            self._hits[area, cap] = _collect(self.table, self.outcome_within(area, cap))
        return self._hits[area, cap]

    def _rank_below(self, cap: int) -> BoolArray | None:
        limit = self.caps[cap]
        return None if limit is None or limit == self.caps[-1] else self.table.rank < limit

    def _lookup(self, hits: TruePositives, area: int, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """Place each recall value among the true positives of its class.

        Returns where to look, shape (T, K, R), in `values` with a closing 0 after each (threshold, class).
        """
        count = hits.count.ravel()  # (T * K,)
        start = np.cumsum(count + 1) - (count + 1)
        padded = np.zeros(len(values) + len(count))
        padded[np.arange(len(values)) + np.repeat(np.arange(len(count)), count)] = values
        needed = np.maximum(required_hits(self.positives[area], self.recall_grid) - 1, 0)  # (K, R)
        steps = np.minimum(needed[None], hits.count[:, :, None])
        return start.reshape(hits.count.shape)[:, :, None] + steps, padded

    def _first_scores(self) -> FloatArray:
        """Score of the first detection of each class, 0 without any; shape (K,)."""
        first = np.zeros(self.table.n_labels)
        labels, rows = np.unique(self.table.label, return_index=True)
        first[labels] = self.table.score[rows]
        return first

    def _undefined_without_truth(self, values: FloatArray, area: int) -> FloatArray:
        values[..., self.positives[area] == 0] = np.nan
        return values


def highest_beyond(values: FloatArray, at: IntArray) -> FloatArray:
    """Return the highest of `values` from each place `at` (T, K, R) to the end of its class, shape (T, R, K)."""
    return highest_from(np.maximum.reduceat(values, at.ravel()).reshape(at.shape))


def highest_from(until_next: FloatArray) -> FloatArray:
    """Return the highest from each recall value on, of those up to the next one (T, K, R); shape (T, R, K)."""
    highest = np.maximum.accumulate(until_next[:, :, ::-1], axis=2)[:, :, ::-1]
    return np.ascontiguousarray(highest.transpose(0, 2, 1))


def envelope_area(recall: FloatArray, precision: FloatArray) -> float:
    """Return the area below the interpolated precision (h,) of hits; recall (h + 1,) begins with 0."""
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall) * envelope))


def _count_by_class(table: MatchTable, t: IntArray, c: IntArray) -> IntArray:
    """Count hits given by threshold and candidate; shape (T, K)."""
    n_thresholds = len(table.protocol.iou_thresholds)
    cell = t * table.n_labels + table.label[table.candidate][c]
    return np.bincount(cell, minlength=n_thresholds * table.n_labels).reshape(n_thresholds, table.n_labels)


def _collect(table: MatchTable, outcome: Outcome) -> TruePositives:
    """List the hits, and how many detections that count stand before each in its class."""
    classes = np.arange(table.n_labels)
    base, change = _running_counts(table, outcome)
    candidate_label = table.label[table.candidate]
    base_start = base[np.searchsorted(table.label, classes)]  # (K,)
    change_start = change[:, np.searchsorted(candidate_label, classes)]  # (T, K)
    t, c = np.nonzero(outcome.hits)
    label, detection = candidate_label[c], table.candidate[c]
    before = base[detection + 1] - base_start[label] + change[t, c + 1] - change_start[t, label]
    count = _count_by_class(table, t, c)
    index = np.arange(len(t)) - np.repeat(np.cumsum(count) - count.ravel(), count.ravel()) + 1
    return TruePositives(count, index, before, detection)


def count_before(table: MatchTable, outcome: Outcome, t: IntArray, rows: IntArray) -> IntArray:
    """Count the detections that count at thresholds `t` (h,) in front of rows (..., h) of the match table."""
    base, change = _running_counts(table, outcome)
    is_candidate = np.zeros(len(table), dtype=np.bool_)
    is_candidate[table.candidate] = True
    return np.asarray(base[rows] + change[t, _running_total(is_candidate)[rows]])


def _running_counts(table: MatchTable, outcome: Outcome) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return running totals of what counts: of all as if unmatched (n + 1,), and what candidates change (T, c + 1)."""
    change = outcome.counts.astype(np.int8) - outcome.unmatched[table.candidate]
    return _running_total(outcome.unmatched), _running_total(change)


def _running_total(values: BoolArray | npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
    """Cumulative sum along the last axis with a leading 0."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=np.int32)
    np.cumsum(values, axis=-1, dtype=np.int32, out=total[..., 1:])
    return total
