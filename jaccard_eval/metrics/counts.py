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
    """Count detections with at least `score`, or the best one's, of one class or (`label` None) of all classes pooled.

    Precision is undefined without detections, recall without ground truth, F1 without either, and all three where no
    score reaches the precision or recall that it is to reach.
    """
    # Without a score every detection counts, and there may be negative scores (logits).
    given = -math.inf if score is None else score
    at = source.best_score(threshold, label, given) if isinstance(given, str) else float(given)
    # Exact numbers, counted at the score itself: nothing is read off interpolated curves.
    tp, fp, fn = source.counts_at(threshold, label, at)
    if math.isnan(at) and not is_met_by_none(score):
        precision = recall = f1 = math.nan
    else:
        precision, recall, f1 = _ratio(tp, tp + fp), _ratio(tp, tp + fn), _ratio(2 * tp, 2 * tp + fp + fn)
    return OperatingPoint(
        class_name=None if label is None else axes.class_names[label],
        iou=axes.protocol.iou_thresholds[threshold],
        score=at,
        tp=tp,
        fp=fp,
        fn=fn,
        precision=precision,
        recall=recall,
        f1=f1,
    )


def point_of(source: CurveSource, axes: Axes, ref: MetricRef) -> OperatingPoint:
    """Return the operating point of a metric that is a count."""
    ref = axes.resolved(ref)
    return operating_point(source, axes, axes.single_threshold(ref), axes.label(ref), ref.score)


def point_value(point: OperatingPoint, name: str, n_images: int) -> float:
    """Return the value of a metric at an operating point; false positives per image are those of `n_images`."""
    # The one rate that is not one of classes: images without any object count as well.
    if name == "FPPI":
        return point.fp / n_images if n_images else math.nan
    measure = METRICS[name].measure
    return float(getattr(point, name.lower()) if measure is None else measure(point, n_images))


def is_met_by_none(score: float | str | None) -> bool:
    """Whether a set without a single detection does what a score is chosen for; it has no precision, and recall 0."""
    return not isinstance(score, str) or score == BEST_F1 or score.startswith("fppi")


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
