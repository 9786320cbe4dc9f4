"""Charts of the curves of an evaluation: the mean of the classes, and each of them."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import USUAL_IOU
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report.model import Axis, Chart, Series
from jaccard_eval.report.numbers import metric_text, threshold_text, thresholds_text

STRICT_IOU = 0.75  # of AP75
MOST_CLASSES = 100  # lines of one chart: beyond that they are a grey surface; those with the most objects stay
UNIT = (0.0, 1.0)


def recall_charts(result: EvaluationResult) -> list[Chart]:
    """Return precision by recall at IoU .5, .75 and on average, as far as the protocol has them.

    None where the result has no match table, or no class ground truth.
    """
    metrics = result.measured
    if not isinstance(metrics, DetectionMetrics):
        return []
    curves, thresholds = metrics.curves, metrics.protocol.iou_thresholds
    precision = curves.interpolated_precision(ALL_SIZES, len(curves.caps) - 1)  # (T, R, K)
    positives = curves.positives[ALL_SIZES]
    if not positives.any():
        return []
    shown = np.argsort(-positives, kind="stable")[:MOST_CLASSES]
    shown = np.sort(shown[positives[shown] > 0])
    found = {}
    for iou in (USUAL_IOU, STRICT_IOU):
        if iou in thresholds:
            found[_title(metrics, iou, f" at IoU {threshold_text(iou)}")] = precision[thresholds.index(iou)]
    if len(thresholds) > 1 or not found:
        over = ", mean over" if len(thresholds) > 1 else " at"
        found[_title(metrics, None, f"{over} IoU {thresholds_text(thresholds)}")] = precision.mean(axis=0)
    grid = curves.recall_grid
    return [_recall_chart(title, grid, values, shown, metrics.class_names) for title, values in found.items()]


def _title(metrics: DetectionMetrics, iou: float | None, where: str) -> str:
    ref = MetricRef(name="AP", iou=iou)
    return f"{ref} {metric_text(metrics.value(ref).value)}: precision-recall{where}"


def _recall_chart(
    title: str, grid: FloatArray, precision: FloatArray, shown: IntArray, names: tuple[str, ...]
) -> Chart:
    classes = [Series(names[k], precision[:, k], grid, "faint", key=str(k)) for k in shown] if len(names) > 1 else []
    mean = np.nanmean(precision, axis=1)
    series = (*classes, Series("mean of classes" if len(names) > 1 else names[0], mean, grid, "curve"))
    return Chart("line", title, series, x=Axis("recall", ends=UNIT), y=Axis("precision", ends=(0, 1.02)))
