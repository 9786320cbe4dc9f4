"""Calibration: whether the score of a detection is the probability that it is right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.frozen import dataclass

# Guo et al. 2017 use 15 for images; detections of a class are fewer.
N_BINS = 10


def calibration(score: FloatArray, hit: BoolArray, n_bins: int = N_BINS) -> Calibration:
    """Compare scores (n,) with the share of true positives, in bins of equal width.

    The expected calibration error is the mean distance of the two, weighted by detections; the largest one is that of
    the worst bin that is not empty. Both are undefined without detections, and where scores outside [0, 1] cannot be
    probabilities.

    Source: Guo et al. (2017), "On calibration of modern neural networks", equations 3 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> round(calibration(np.array([0.75, 0.75, 0.25]), np.array([True, False, False])).ece, 4)
    0.25
    """
    unfit = np.any((score < 0) | (score > 1))
    reason = "no detections" if len(score) == 0 else "scores outside [0, 1]" if unfit else ""
    # Undefined, but still with a table of bins, all of them empty: reports lay out the same rows.
    chosen = slice(0, 0) if reason else slice(None)
    score, hit = score[chosen], hit[chosen]
    # The score 1 would open a bin of its own; it belongs to the last one.
    bins = np.minimum((score * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    # 0 / 0 in empty bins.
    with np.errstate(invalid="ignore"):
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """Whether scores are probabilities: by bin of equal width, how many detections are true positives."""

    # Expected and largest calibration error; NaN, with a reason, where undefined.
    ece: float
    mce: float
    # Detections, mean score and share of true positives by bin, (B,). A bin holds scores in [low, high), the last one
    # 1 as well; empty ones have NaN.
    count: npt.NDArray[np.int64]
    score: FloatArray
    precision: FloatArray
    reason: str = ""
