"""Charts of precision by recall: of one evaluation with each of its classes, and of several side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import USUAL_IOU
from jaccard_eval.data.result import Measured
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, descending_order
from jaccard_eval.matching.matchtable import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report.model import Axis, Chart, Series
from jaccard_eval.report.numbers import metric_text, threshold_text, thresholds_text

STRICT_IOU = 0.75  # of AP75
MOST_CLASSES = 100  # lines of one chart: beyond that they are a grey surface; those with the most objects stay
RECALL, PRECISION = Axis("recall", ends=(0.0, 1.0)), Axis("precision", ends=(0.0, 1.02))


@dataclass(frozen=True, slots=True, eq=False)
class RecallCurves:
    """Interpolated precision (R, K) at recall values (R,), NaN for classes without ground truth; AP is its mean."""

    ref: MetricRef
    where: str
    grid: FloatArray
    precision: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Mean of the classes, shape (R,)."""
        return np.asarray(np.nanmean(self.precision, axis=1))


def recall_curves(measured: Measured) -> list[RecallCurves]:
    """Return the curves at IoU .5, .75 and on average over the thresholds, as far as the protocol has them.

    None where there is no match table, or no class with ground truth.
    """
    if not isinstance(measured, DetectionMetrics) or not measured.curves.positives[ALL_SIZES].any():
        return []
    curves, thresholds = measured.curves, measured.protocol.iou_thresholds
    precision = curves.interpolated_precision(ALL_SIZES, len(curves.caps) - 1)  # (T, R, K)
    grid = curves.recall_grid
    found, measure = [], overlap_name(measured.protocol)
    for iou in (USUAL_IOU, STRICT_IOU):
        if iou in thresholds:
            where = f" at {measure} {threshold_text(iou)}"
            found.append(RecallCurves(MetricRef(name="AP", iou=iou), where, grid, precision[thresholds.index(iou)]))
    if len(thresholds) > 1 or not found:
        over = ", mean over" if len(thresholds) > 1 else " at"
        where = f"{over} {measure} {thresholds_text(thresholds)}"
        found.append(RecallCurves(MetricRef(name="AP"), where, grid, precision.mean(axis=0)))
    return found


def recall_charts(measured: Measured) -> list[Chart]:
    """Return a chart for each of `recall_curves`: the mean of the classes in front of each of them."""
    if not isinstance(measured, DetectionMetrics):
        return []
    names, shown = measured.class_names, _shown_classes(measured)
    charts = []
    for curves in recall_curves(measured):
        lines = [Series(names[k], curves.precision[:, k], curves.grid, "faint", key=str(k)) for k in shown]
        title = f"{curves.ref} {metric_text(measured.value(curves.ref).value)}: precision-recall{curves.where}"
        mean = Series("mean of classes" if len(names) > 1 else names[0], curves.mean, curves.grid, "curve")
        charts.append(Chart("line", title, (*(lines if len(names) > 1 else []), mean), x=RECALL, y=PRECISION))
    return charts


def compared_recall_charts(sides: Sequence[tuple[str, Measured]]) -> list[Chart]:
    """Return the means of several named sides, the first solid and all others dashed."""
    lines: dict[str, list[Series]] = {}
    for place, (name, measured) in enumerate(sides):
        for curves in recall_curves(measured):
            series = Series(name, curves.mean, curves.grid, "dashes" if place else "curve")
            lines.setdefault(curves.where, []).append(series)
    return [
        Chart("line", f"Mean of classes: precision-recall{where}", tuple(series), x=RECALL, y=PRECISION)
        for where, series in lines.items()
    ]


def _shown_classes(metrics: DetectionMetrics) -> IntArray:
    positives = metrics.curves.positives[ALL_SIZES]
    most = descending_order(positives.astype(np.float64))[:MOST_CLASSES]
    return np.sort(most[positives[most] > 0])
