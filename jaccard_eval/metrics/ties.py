"""Average precision over all orders of equal scores: reruns and other tools order them otherwise.

Who matches whom is kept as it is; what moves is where detections with one score stand in the ranking of their class.
The precision at each hit is highest when the hits of a tie come first, lowest when they come last, and that for all
hits at once: so each class attains both bounds at each IoU threshold. The mean over thresholds attains them too where
whoever hits at a higher threshold hits at the lower ones; else it lies between them.
"""

from __future__ import annotations

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import starts_of_runs
from jaccard_eval.metrics.averages import Averages, Axes
from jaccard_eval.metrics.curves import Curves

WIDEST = 1e-6  # of an interval that is not worth telling


class TieBounds:
    """The bounds of any number of averages of precision; curves are made once.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [50, 50, 60, 60]], score=[0.5, 0.5])
    >>> metrics = evaluate(gt, pred).measured
    >>> [round(bound, 6) for bound in TieBounds(metrics.curves, metrics.axes).interval(MetricRef(name="AP"))]
    [0.5, 1.0]
    """

    def __init__(self, curves: Curves, axes: Axes) -> None:
        self._low, self._high = (Averages(curves.ties(best=best), axes) for best in (False, True))

    def interval(self, ref: MetricRef) -> tuple[float, float]:
        """Return the lowest and the highest value of an AP over all orders of equal scores; NaN where undefined."""
        return self._low.mean(ref), self._high.mean(ref)


def has_ties(table: MatchTable) -> bool:
    """Whether any detection shares its score with another one of its class."""
    return not bool((starts_of_runs(table.score) | starts_of_runs(table.label)).all())
