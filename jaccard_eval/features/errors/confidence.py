"""What a choice of score does: precision, recall and F1 above it, and the localisation-recall-precision error."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.features.errors.result import ConfidenceCurve, LocalisationRecallPrecision
from jaccard_eval.matching.order import IntArray

# Scores that curves are shown at; between them they are steps. Other than of linspace, entry 70 is a score of 0.7.
GRID = np.arange(101) / 100


def confidence_curve(score: FloatArray, hit: BoolArray, positives: int, at: FloatArray = GRID) -> ConfidenceCurve:
    """Return precision, recall and F1 of the detections with at least each score of `at`.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Descending.
    hit : ndarray of bool, shape (n,)
    positives : int
        Ground-truth boxes.
    at : ndarray of float64, shape (S,)

    Returns
    -------
    ConfidenceCurve
        Exact: steps are counted, nothing is interpolated. Precision is undefined without detections, recall without
        ground truth, F1 without either.
    """
    kept = np.searchsorted(-score, -at, side="right")  # (S,) detections with at least the score
    tp = np.append(0, np.cumsum(hit))[kept]
    return ConfidenceCurve(
        score=at,
        precision=_ratio(tp, kept),
        recall=_ratio(tp, np.full(len(at), positives)),
        f1=_ratio(2 * tp, kept + positives),
    )


def best_f1_score(score: FloatArray, hit: BoolArray, positives: int) -> tuple[float, float]:
    """Return the score with the highest F1, and that F1; of equal ones the highest score. NaN without a true positive.

    Parameters are those of `confidence_curve`.
    """
    if not hit.any() or positives == 0:
        return float("nan"), float("nan")
    curve = confidence_curve(score, hit, positives, score)
    best = int(curve.f1.argmax())
    return float(score[best]), float(curve.f1[best])


def optimal_lrp(
    score: FloatArray, hit: BoolArray, overlap: FloatArray, positives: int, iou: float
) -> LocalisationRecallPrecision:
    """Return the smallest localisation-recall-precision error over all scores, and its parts.

    LRP(s) = (sum over true positives of (1 - IoU) / (1 - tau) + FP + FN) / (TP + FP + FN), of the detections with at
    least the score s. Of equal errors that of the highest score counts; leaving out all detections gives 1.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Descending.
    hit : ndarray of bool, shape (n,)
    overlap : ndarray of float64, shape (n,)
        IoU of the true positives; the others are not read.
    positives : int
        Ground-truth boxes.
    iou : float
        The threshold tau.

    Notes
    -----
    Source: Oksuz et al. (2018), "Localization recall precision (LRP): a new performance metric for object detection",
    and Oksuz et al. (2021), "One metric to measure them all", equations 4 and 8 there.
    """
    if positives == 0:
        return _lrp(np.nan, np.nan, np.nan, np.nan, np.nan)
    kept = np.append(0, np.searchsorted(-score, -score, side="right"))  # first no detection, then down to each score
    tp = np.append(0, np.cumsum(hit))[kept]
    loss = np.append(0.0, np.cumsum(np.where(hit, 1 - overlap, 0.0)))[kept]
    error = (_scaled(loss, iou) + (kept - tp) + (positives - tp)) / (kept + positives - tp)
    best = int(error.argmin())
    n, t = int(kept[best]), int(tp[best])
    return _lrp(
        error[best],
        loss[best] / t if t else np.nan,
        1 - t / n if n else np.nan,
        1 - t / positives,
        score[best - 1] if best else np.nan,
    )


def mean_lrp(parts: list[LocalisationRecallPrecision]) -> LocalisationRecallPrecision:
    """Average over the classes where a part is defined; a score has no mean."""
    return _lrp(
        _mean([one.olrp for one in parts]),
        _mean([one.localisation for one in parts]),
        _mean([one.false_positive for one in parts]),
        _mean([one.false_negative for one in parts]),
        np.nan,
    )


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


def _scaled(loss: FloatArray, iou: float) -> FloatArray:
    """Scale losses to [0, 1] each; at a threshold of 1 there are none."""
    return loss / (1 - iou) if iou < 1 else np.zeros(len(loss))


def _lrp(olrp: float, localisation: float, fp: float, fn: float, score: float) -> LocalisationRecallPrecision:
    return LocalisationRecallPrecision(
        olrp=float(olrp),
        localisation=float(localisation),
        false_positive=float(fp),
        false_negative=float(fn),
        score=float(score),
    )


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))
