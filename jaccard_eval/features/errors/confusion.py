"""The confusion matrix of an evaluation, by whatever engine it is counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.features.errors.result import ConfusionMatrix
from jaccard_eval.metrics.any_class import match_any_class
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import BEST_F1
from jaccard_eval.progress import staged

# Counts, at a threshold and a score, all detections whatever their classes: (K + 1, K + 1).
Count = Callable[[int, float], npt.NDArray[np.int64]]


def chosen_score(metrics: DetectionMetrics, threshold: int, score: float | str | None) -> float:
    """Return the score that detections must have: what was asked for, or the best F1, of all classes pooled."""
    if score is not None and not isinstance(score, str):
        return float(score)
    best = metrics.source.best_score(threshold, None, score or BEST_F1)
    # Without any true positive there is no best score: all detections take part.
    is_there = not np.isnan(best) and metrics.source.counts_at(threshold, None, best)[0] > 0
    return best if is_there else 0.0


@staged("counting confusions")
def count_confusions(
    metrics: DetectionMetrics, gt: BoxTable, pred: BoxTable, score: float | str | None, count: Count | None = None
) -> ConfusionMatrix:
    """Count which classes are predicted as which, over all sizes, at IoU .5 or else the lowest threshold.

    In memory, unless there is another way to `count`.
    """
    threshold = metrics.protocol.judged_threshold
    at = chosen_score(metrics, threshold, score)
    counts = match_any_class(metrics, threshold, gt, pred).confusion(at) if count is None else count(threshold, at)
    return ConfusionMatrix(
        names=metrics.class_names, counts=counts, score=at, iou=metrics.protocol.iou_thresholds[threshold]
    )
