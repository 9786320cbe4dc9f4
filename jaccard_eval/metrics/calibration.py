"""Calibration: whether the score of a detection is the probability that it is right."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.features.errors.result import Calibration

N_BINS = 10  # Guo et al. 2017 use 15 for images; detections of a class are fewer


def calibration(score: FloatArray, hit: BoolArray, n_bins: int = N_BINS) -> Calibration:
    """Compare scores with the share of true positives, in bins of equal width.

    The expected calibration error is the mean distance of the two, weighted by detections; the largest one is that of
    the worst bin that is not empty. A bin holds scores in [low, high), the last one 1 as well.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
    hit : ndarray of bool, shape (n,)
        Whether each detection is a true positive.
    n_bins : int

    Returns
    -------
    Calibration
        Undefined without detections, and where scores outside [0, 1] cannot be probabilities.

    Notes
    -----
    Source: Guo et al. (2017), "On calibration of modern neural networks", equations 3 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> round(calibration(np.array([0.75, 0.75, 0.25]), np.array([True, False, False])).ece, 4)
    0.25
    """
    unfit = np.any((score < 0) | (score > 1))
    reason = "no detections" if len(score) == 0 else "scores outside [0, 1]" if unfit else ""
    chosen = slice(0, 0) if reason else slice(None)
    score, hit = score[chosen], hit[chosen]
    bins = np.minimum((score * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):  # 0 / 0 in empty bins
        mean = np.bincount(bins, weights=score, minlength=n_bins) / count
        precision = np.bincount(bins, weights=hit, minlength=n_bins) / count
    gap = np.abs(precision - mean)[count > 0]
    weight = count[count > 0] / max(len(score), 1)
    return Calibration(
        ece=float("nan") if reason else float((weight * gap).sum()),
        mce=float("nan") if reason else float(gap.max()),
        count=count,
        score=mean,
        precision=precision,
        reason=reason,
    )
