"""Averages of precision and recall over thresholds, recall values and classes, for plain and weighted curves alike."""

from __future__ import annotations

import math
from typing import Protocol as TypingProtocol

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.metrics.axes import Axes

AVERAGES = ("AP", "AR")  # all other metrics are counts at an operating point, or made of them


class AveragedCurves(TypingProtocol):
    """What averages are taken of; NaN for a class without ground truth."""

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Precision at each recall value, shape (T, R, K)."""

    def area_under_envelope(self, area: int, cap: int) -> FloatArray:
        """Area below the interpolated precision, shape (T, K)."""

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections, shape (T, K)."""


class Averages:
    """Averages of curves.

    Parameters
    ----------
    curves : AveragedCurves
    axes : Axes
    """

    def __init__(self, curves: AveragedCurves, axes: Axes) -> None:
        self.curves = curves
        self.axes = axes
        self._precision: dict[tuple[int, int], FloatArray] = {}

    def mean(self, ref: MetricRef) -> float:
        """Average of an AP or AR over what it is taken over; classes without ground truth are left out, NaN if all."""
        label = self.axes.label(ref)
        values = self._values(ref)
        chosen = values if label is None else values[..., label]
        defined = chosen[~np.isnan(chosen)]
        return float(np.mean(defined)) if len(defined) else math.nan

    def class_means(self, ref: MetricRef) -> FloatArray:
        """Average of each class alone, shape (K,); NaN without ground truth."""
        values = self._values(ref)
        by_class = np.ascontiguousarray(values.reshape(math.prod(values.shape[:-1]), values.shape[-1]).T)
        return np.asarray(by_class.mean(axis=1))

    def _values(self, ref: MetricRef) -> FloatArray:
        """Values that an average is taken over, classes last: (T, R, K) or (T, K), one threshold or all."""
        area, cap, chosen = self.axes.area(ref), self.axes.cap(ref), self.axes.thresholds(ref)
        if ref.name == "AR":
            return self.curves.final_recall(area, cap)[chosen]
        if self.axes.protocol.interpolation == "area":
            return self.curves.area_under_envelope(area, cap)[chosen]
        if (area, cap) not in self._precision:
            self._precision[area, cap] = self.curves.interpolated_precision(area, cap)
        return self._precision[area, cap][chosen]
