"""Operating points in which every image counts as often as its weight says: counts become sums of weights."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.averages import Axes
from jaccard_eval.metrics.counts import ALL_SIZES, detection_outcomes, point_of, point_value
from jaccard_eval.metrics.curves import MatchCurves


class WeightedPoint:
    """A metric at an operating point, counted image by image.

    Parameters
    ----------
    curves : MatchCurves
    axes : Axes
    ref : MetricRef
        Any metric at a score that is a number, or over all detections.
    n_images : int
    """

    def __init__(self, curves: MatchCurves, axes: Axes, ref: MetricRef, n_images: int) -> None:
        table, threshold, label = curves.table, axes.single_threshold(ref), axes.label(ref)
        hit, counts = detection_outcomes(curves, threshold)
        self._ref = ref
        self._iou = axes.protocol.iou_thresholds[threshold]
        self._score = -np.inf if ref.score is None else float(ref.score)
        chosen = table.score >= self._score
        positive = ~table.gt_ignored[ALL_SIZES]
        if label is not None:
            chosen &= table.label == label
            positive &= table.gt_label == label

        def per_image(images: IntArray, rows: BoolArray) -> IntArray:
            return np.bincount(images[rows], minlength=n_images)

        self._tp = per_image(table.image, hit & chosen)  # (n_images,)
        self._fp = per_image(table.image, counts & chosen) - self._tp
        self._fn = per_image(table.gt_image, positive) - self._tp

    def value(self, weights: IntArray) -> float:
        """Return the metric for weights of the images, shape (n_images,); NaN where undefined."""
        tp, fp, fn = (int(weights @ counted) for counted in (self._tp, self._fp, self._fn))
        point = point_of(tp, fp, fn, class_name=self._ref.class_name, iou=self._iou, score=self._score)
        return point_value(point, self._ref.name, int(weights.sum()))
