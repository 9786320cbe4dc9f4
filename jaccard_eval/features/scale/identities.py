"""What an error costs objects of different size."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.errors import UsageError


def jaccard_from_error(gt_area: npt.ArrayLike, missing: npt.ArrayLike, extra: npt.ArrayLike) -> FloatArray:
    """Return the Jaccard index of a ground truth of which `missing` is not covered while `extra` is covered besides.

    The intersection is what is left of the ground truth, ``gt_area - missing``; the union is all of it and the rest of
    the prediction, ``gt_area + extra``. So J = 1 - (missing + extra) / (gt_area + extra): a missing point lowers the
    intersection, a point too many raises the union, and the same error costs a small object more.

    Parameters
    ----------
    gt_area, missing, extra : array_like of float
        Areas in px², or counts of points; they broadcast. ``0 <= missing <= gt_area`` and ``0 <= extra``.

    Returns
    -------
    ndarray of float64
        In [0, 1]; NaN where both sides are empty.

    Raises
    ------
    UsageError
        When an area is not finite or is negative, or more is missing than there is.

    Examples
    --------
    >>> float(jaccard_from_error(100, 10, 25))
    0.72
    """
    area, p, q = _areas(gt_area, missing, extra)
    with np.errstate(invalid="ignore"):
        return np.asarray((area - p) / (area + q))


def exchange_rate(gt_area: npt.ArrayLike, missing: npt.ArrayLike, extra: npt.ArrayLike) -> FloatArray:
    """Return by how much `extra` must shrink to raise the Jaccard index as much as one more point of the ground truth.

    One missing point less gives (B - p + 1) / (B + q); q - d instead of q gives (B - p) / (B + q - d). They are
    equal for d = (B + q) / (B - (p - 1)). Where d exceeds q, no shrinking makes up for the point.

    Parameters
    ----------
    gt_area, missing, extra : array_like of float
        As for `jaccard_from_error`.

    Returns
    -------
    ndarray of float64
        At least 1; NaN where less than one point is missing, for then there is no point to win.

    Raises
    ------
    UsageError
        As for `jaccard_from_error`.

    Examples
    --------
    An image of 101 x 101 points, an object of 21 x 21, and a prediction of all points but one of the object's:

    >>> round(float(exchange_rate(21**2, 1, 101**2 - 21**2)), 2)
    23.13
    """
    area, p, q = _areas(gt_area, missing, extra)
    rate = np.full(area.shape, np.nan)
    return np.asarray(np.divide(area + q, area - (p - 1), out=rate, where=p >= 1))


def _areas(gt_area: npt.ArrayLike, missing: npt.ArrayLike, extra: npt.ArrayLike) -> tuple[FloatArray, ...]:
    area, p, q = np.broadcast_arrays(*(np.asarray(size, dtype=np.float64) for size in (gt_area, missing, extra)))
    if not (np.isfinite(area) & np.isfinite(q) & (p >= 0) & (p <= area) & (q >= 0)).all():
        raise UsageError("areas must be finite, with 0 <= missing <= gt_area and 0 <= extra")
    return area, p, q


# How far each edge (left, top, right, bottom) moves, in units of k; jitter is the mean over its sixteen ways.
MOVES: dict[str, tuple[tuple[int, ...], ...]] = {
    "shift": ((1, 1, 1, 1),),
    "dilation": ((-1, -1, 1, 1),),
    "erosion": ((1, 1, -1, -1),),
    "jitter": tuple(itertools.product((-1, 1), repeat=4)),
}
