"""Counts at an operating point: true and false positives and misses among detections above a score."""

from __future__ import annotations

import math

from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.data.result import OperatingPoint
from jaccard_eval.metrics.averages import Axes
from jaccard_eval.metrics.curves import CurveSource
from jaccard_eval.options import BEST_F1


def operating_point(
    source: CurveSource, axes: Axes, threshold: int, label: int | None, score: float | str | None
) -> OperatingPoint:
    """Count detections with at least `score`, or the best F1's, of one class or (`label` None) of all classes pooled.

    Precision is undefined without detections, recall without ground truth, F1 without either.
    """
    # Without a score every detection counts, and there may be negative scores (logits).
    given = -math.inf if score is None else score
    at = source.best_f1(threshold, label) if given == BEST_F1 else float(given)
    # Exact numbers, counted at the score itself: nothing is read off interpolated curves.
    tp, fp, fn = source.counts_at(threshold, label, at)
    return OperatingPoint(
        class_name=None if label is None else axes.class_names[label],
        iou=axes.protocol.iou_thresholds[threshold],
        score=at,
        tp=tp,
        fp=fp,
        fn=fn,
        precision=_ratio(tp, tp + fp),
        recall=_ratio(tp, tp + fn),
        f1=_ratio(2 * tp, 2 * tp + fp + fn),
    )


def point_of(source: CurveSource, axes: Axes, ref: MetricRef) -> OperatingPoint:
    """Return the operating point of a metric that is a count."""
    return operating_point(source, axes, axes.single_threshold(ref), axes.label(ref), ref.score)


def point_value(point: OperatingPoint, name: str, n_images: int) -> float:
    """Return the value of a metric at an operating point; false positives per image are those of `n_images`."""
    # The one rate that is not one of classes: images without any object count as well.
    if name == "FPPI":
        return point.fp / n_images if n_images else math.nan
    measure = METRICS[name].measure
    return float(getattr(point, name.lower()) if measure is None else measure(point, n_images))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
