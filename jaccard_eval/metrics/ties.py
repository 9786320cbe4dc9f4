"""Average precision over all orders of equal scores: reruns and other tools order them otherwise.

Who matches whom is kept as it is; what moves is where detections with one score stand in the ranking of their class.
The precision at each hit is highest when the hits of a tie come first, lowest when they come last, and that for all
hits at once: so each class attains both bounds at each IoU threshold. The mean over thresholds attains them too where
whoever hits at a higher threshold hits at the lower ones; else it lies between them.
"""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.averages import Averages
from jaccard_eval.metrics.axes import Axes
from jaccard_eval.metrics.curves import MatchCurves, TruePositives
from jaccard_eval.metrics.weighted import running_total


def tie_interval(table: MatchTable, axes: Axes, ref: MetricRef) -> tuple[float, float]:
    """Return the lowest and the highest value of an AP over all orders of equal scores; NaN where undefined.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [50, 50, 60, 60]], score=[0.5, 0.5])
    >>> metrics = evaluate(gt, pred).measured
    >>> [round(bound, 6) for bound in tie_interval(metrics.table, metrics.axes, MetricRef(name="AP"))]
    [0.5, 1.0]
    """
    return TieBounds(table, axes).interval(ref)


class TieBounds:
    """The bounds of any number of averages of precision; curves are made once.

    Parameters
    ----------
    table : MatchTable
    axes : Axes
    """

    def __init__(self, table: MatchTable, axes: Axes) -> None:
        self._low, self._high = (Averages(TieCurves(table, hits_first=first), axes) for first in (False, True))

    def interval(self, ref: MetricRef) -> tuple[float, float]:
        """Return the lowest and the highest value of an AP; NaN where undefined."""
        return self._low.mean(ref), self._high.mean(ref)


def has_ties(table: MatchTable) -> bool:
    """Whether any detection shares its score with another one of its class."""
    return bool(((np.diff(table.score) == 0) & (np.diff(table.label) == 0)).any())


class TieCurves(MatchCurves):
    """Curves in which the hits of each tie stand before everything else in it, or behind.

    Parameters
    ----------
    table : MatchTable
    hits_first : bool
    """

    def __init__(self, table: MatchTable, *, hits_first: bool) -> None:
        super().__init__(table)
        self._hits_first = hits_first
        self._start, self._stop = _tie_bounds(table)

    def true_positives(self, area: int, cap: int) -> TruePositives:
        """Return the true positives of an area range and a cap, and what counts before them in that order."""
        plain = super().true_positives(area, cap)
        outcome, candidate = self.outcome_within(area, cap), self.table.candidate
        before, first = [], 0
        for t, n_hits in enumerate(plain.count.sum(axis=1)):
            counts, hit = outcome.unmatched.astype(np.int64), np.zeros(len(self.table), dtype=np.int64)
            counts[candidate], hit[candidate] = outcome.counts[t], outcome.hits[t]
            before.append(self._before(plain.detection[first : first + n_hits], counts, hit))
            first += n_hits
        return TruePositives(plain.count, plain.index, np.concatenate(before), plain.detection)

    def _before(self, detection: IntArray, counts: IntArray, hit: IntArray) -> IntArray:
        """Count what counts up to and including each hit of one threshold."""
        counted, hits = running_total(counts), running_total(hit)
        start, stop = self._start[detection], self._stop[detection]
        of_class = np.searchsorted(self.table.label, self.table.label[detection])
        before = counted[start] - counted[of_class] + hits[detection + 1] - hits[start]
        if not self._hits_first:
            before += counted[stop] - counted[start] - (hits[stop] - hits[start])
        return before


def _tie_bounds(table: MatchTable) -> tuple[IntArray, IntArray]:
    """Return where the tie of each detection begins and where it ends, shape (n,) each."""
    n = len(table)
    differs = (np.diff(table.score) != 0) | (np.diff(table.label) != 0)
    edges = np.concatenate([np.zeros(min(n, 1), dtype=np.int64), np.flatnonzero(differs) + 1])
    sizes = np.diff(np.append(edges, n))
    return np.repeat(edges, sizes), np.repeat(edges + sizes, sizes)
