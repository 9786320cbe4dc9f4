"""The error report of an evaluation: types, confusion, calibration, confidence curves and LRP, put together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.features.errors.confidence import best_f1_score, confidence_curve, mean_lrp, optimal_lrp
from jaccard_eval.features.errors.confusion import confusion_matrix
from jaccard_eval.features.errors.error_types import BACKGROUND_IOU, Errors, all_errors, error_types, find_errors
from jaccard_eval.features.errors.result import ClassErrors, ErrorReport
from jaccard_eval.matching.anyclass import detection_rows
from jaccard_eval.matching.order import IntArray, descending_order
from jaccard_eval.matching.ranking import mean_precision
from jaccard_eval.metrics.calibration import calibration
from jaccard_eval.metrics.detection import DetectionMetrics


def report_errors(metrics: DetectionMetrics, gt: BoxTable, pred: BoxTable, score: float | str | None) -> ErrorReport:
    """Say what kinds of errors an evaluation has, over all sizes, at IoU .5 or else its lowest threshold.

    Parameters
    ----------
    metrics : DetectionMetrics
        Of the whole evaluation.
    gt, pred : BoxTable
        What it was measured on.
    score : float, "best-f1" or None
        Of the confusion matrix: that with the best F1 of all classes pooled unless it is a number.
    """
    n_images = len(metrics.image_names)
    threshold = metrics.protocol.judged_threshold
    iou = metrics.protocol.iou_thresholds[threshold]
    errors = find_errors(metrics.curves, threshold, gt, pred, n_images=n_images)
    classes = [_class_errors(errors, k, name, iou) for k, name in enumerate(metrics.class_names)]
    pooled = _pooled_errors(errors, classes)
    kept = pred.take(detection_rows(pred, metrics.protocol, n_images))
    wrong, unmatched = all_errors(errors)
    return ErrorReport(
        iou=iou,
        background_iou=BACKGROUND_IOU,
        ap=mean_precision(errors.ranking, errors.protocol),
        types=error_types(errors),
        false_positives=wrong,
        false_negatives=unmatched,
        confusion=confusion_matrix(
            gt,
            kept,
            metrics.protocol,
            metrics.class_names,
            score=_matrix_score(score, pooled.best_score),
            iou=iou,
            n_images=n_images,
        ),
        pooled=pooled,
        classes=tuple(classes),
    )


def _matrix_score(score: float | str | None, best: float) -> float:
    """Return the score of the confusion matrix; without any true positive all detections take part."""
    if score is None or isinstance(score, str):
        return 0.0 if math.isnan(best) else best
    return float(score)


def _class_errors(errors: Errors, label: int, name: str, iou: float) -> ClassErrors:
    rows = np.flatnonzero(errors.counts & (errors.label == label))
    positives = int(errors.boxes(errors.counted)[label])
    lrp = optimal_lrp(errors.score[rows], errors.hit[rows], errors.overlap[rows], positives, iou)
    return ClassErrors(name=name, lrp=lrp, **_chosen_by_score(errors, rows, positives))


def _pooled_errors(errors: Errors, classes: list[ClassErrors]) -> ClassErrors:
    rows = np.flatnonzero(errors.counts)
    rows = rows[descending_order(errors.score[rows])]
    lrp = mean_lrp([one.lrp for one in classes])
    return ClassErrors(name=None, lrp=lrp, **_chosen_by_score(errors, rows, int(errors.counted.sum())))


def _chosen_by_score(errors: Errors, rows: IntArray, positives: int) -> dict[str, Any]:
    """Return what depends on the choice of a score, of detections in descending order of it."""
    score, hit = errors.score[rows], errors.hit[rows]
    best_score, best_f1 = best_f1_score(score, hit, positives)
    return {
        "calibration": calibration(score, hit),
        "curve": confidence_curve(score, hit, positives),
        "best_score": best_score,
        "best_f1": best_f1,
    }
