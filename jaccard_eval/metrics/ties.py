"""Average precision over all orders of equal scores: reruns and other tools order them otherwise.

Who matches whom is kept as it is; what moves is where detections with one score stand in the ranking of their class.
The precision at each hit is highest when the hits of a tie come first, lowest when they come last, and that for all
hits at once: so each class attains both bounds at each IoU threshold. The mean over thresholds attains them too where
whoever hits at a higher threshold hits at the lower ones; else it lies between them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray, lengths_of_runs, starts_of_runs
from jaccard_eval.metrics.averages import Averages, Axes
from jaccard_eval.metrics.curves import MatchCurves, TruePositives, count_before


def tie_interval(curves: MatchCurves, axes: Axes, ref: MetricRef) -> tuple[float, float]:
    """Return the lowest and the highest value of an AP over all orders of equal scores; NaN where undefined.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [50, 50, 60, 60]], score=[0.5, 0.5])
    >>> metrics = evaluate(gt, pred).measured
    >>> [round(bound, 6) for bound in tie_interval(metrics.curves, metrics.axes, MetricRef(name="AP"))]
    [0.5, 1.0]
    """
    return TieBounds(curves, axes).interval(ref)


class TieBounds:
    """The bounds of any number of averages of precision; curves are made once.

    Parameters
    ----------
    curves : MatchCurves
        In the order that the protocol gives equal scores.
    axes : Axes
    """

    def __init__(self, curves: MatchCurves, axes: Axes) -> None:
        ties = _Ties(curves)
        self._low, self._high = (Averages(_TieCurves(ties, hits_first=first), axes) for first in (False, True))

    def interval(self, ref: MetricRef) -> tuple[float, float]:
        """Return the lowest and the highest value of an AP; NaN where undefined."""
        return self._low.mean(ref), self._high.mean(ref)


def has_ties(table: MatchTable) -> bool:
    """Whether any detection shares its score with another one of its class."""
    return not bool(_starts_of_ties(table).all())


class _TieCurves(MatchCurves):
    """Curves in which the hits of each tie stand before everything else in it, or behind."""

    def __init__(self, ties: _Ties, *, hits_first: bool) -> None:
        super().__init__(ties.curves.table)
        self._ties = ties
        self._hits_first = hits_first

    def true_positives(self, area: int, cap: int) -> TruePositives:
        """Return the true positives of an area range and a cap, and what counts before them in that order."""
        first, last = self._ties.before(area, cap)
        return replace(self._ties.curves.true_positives(area, cap), before=first if self._hits_first else last)


class _Ties:
    """How many detections that count stand up to each hit, for the two extreme orders of each tie."""

    def __init__(self, curves: MatchCurves) -> None:
        self.curves = curves
        self._start, self._stop = _tie_bounds(curves.table)
        self._before: dict[tuple[int, int], tuple[IntArray, IntArray]] = {}

    def before(self, area: int, cap: int) -> tuple[IntArray, IntArray]:
        """Return the counts with hits first and with hits last, shape (h,) each."""
        if (area, cap) not in self._before:
            self._before[area, cap] = self._extremes(area, cap)
        return self._before[area, cap]

    def _extremes(self, area: int, cap: int) -> tuple[IntArray, IntArray]:
        hits = self.curves.true_positives(area, cap)
        of_threshold = hits.count.sum(axis=1)
        t = np.repeat(np.arange(len(of_threshold)), of_threshold)
        start, stop = self._start[hits.detection], self._stop[hits.detection]
        rows = np.stack([start, hits.detection + 1, stop])
        at_start, here, at_stop = count_before(self.curves.table, self.curves.outcome_within(area, cap), t, rows)
        first, sizes = lengths_of_runs(starts_of_runs(t) | starts_of_runs(start))
        place = np.arange(len(t))
        up_to, after = place - np.repeat(first, sizes) + 1, np.repeat(first + sizes, sizes) - place - 1  # hits of a tie
        return hits.before - (here - at_start) + up_to, hits.before + (at_stop - here) - after


def _starts_of_ties(table: MatchTable) -> BoolArray:
    return starts_of_runs(table.score) | starts_of_runs(table.label)


def _tie_bounds(table: MatchTable) -> tuple[IntArray, IntArray]:
    """Return where the tie of each detection begins and where it ends, shape (n,) each."""
    first, sizes = lengths_of_runs(_starts_of_ties(table))
    return np.repeat(first, sizes), np.repeat(first + sizes, sizes)


WIDEST = 1e-6  # of an interval that is not worth telling
