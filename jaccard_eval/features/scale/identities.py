"""What an error costs objects of different size, and the IoU that is left of a box when its edges move."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.errors import UsageError
from jaccard_eval.similarity.iou import box_iou
from jaccard_eval.text import did_you_mean, quoted_value


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
SURVIVABLE = ("shift", "dilation", "erosion")  # whose IoU can be solved for the side


def displaced_iou(width: npt.ArrayLike, height: npt.ArrayLike, pixels: float, displacement: str) -> FloatArray:
    """Return the IoU of a box with itself after its edges have moved by k pixels, in closed form.

    Shift: all edges by k to the right and down. Dilation: all edges outward. Erosion: all inward, which is the worst
    that edge errors of at most k can do, so that it bounds every other. Jitter: each edge inward or outward, as four
    tosses of a coin decide; the expected IoU.

    Parameters
    ----------
    width, height : array_like of float
        Sides in px; they broadcast.
    pixels : float
        k, at least 0.
    displacement : {"shift", "dilation", "erosion", "jitter"}

    Returns
    -------
    ndarray of float64
        In [0, 1]; 0 for boxes without area.

    Raises
    ------
    UsageError
        When the displacement is unknown or k is negative.

    Notes
    -----
    Along each side of length s a box is moved, grown or shrunk, which leaves the length i of the intersection and the
    length a of the prediction; J = ii' / (aa' + ss' - ii') with both sides' lengths. See ``docs/explanation/scale.md``.

    Examples
    --------
    >>> float(displaced_iou(10, 10, 1, "erosion"))
    0.64
    """
    _require_known(displacement, MOVES, pixels)
    sides = [np.asarray(side, dtype=np.float64) for side in (width, height)]
    # Along a side that is moved, grown or shrunk: the length of the intersection, and that of the prediction.
    lengths = []
    for side in sides:
        left = np.maximum(side - 2 * pixels, 0)
        lengths.append(((np.maximum(side - pixels, 0), side), (side, side + 2 * pixels), (left, left)))
    # Two edges that toss a coin each move a side half the time, and grow or shrink it a quarter of the time each.
    chances = (0.5, 0.25, 0.25) if displacement == "jitter" else _CERTAIN[displacement]
    total = np.zeros(np.broadcast_shapes(sides[0].shape, sides[1].shape))
    for i, j in itertools.product(range(len(chances)), repeat=2):
        if chances[i] * chances[j]:
            (common_x, pred_x), (common_y, pred_y) = lengths[0][i], lengths[1][j]
            common = common_x * common_y
            union = pred_x * pred_y + sides[0] * sides[1] - common
            # A box without area has nothing in common with itself: 0, as `box_iou` has it.
            total = total + chances[i] * chances[j] * (common / np.where(union == 0, 1.0, union))
    return np.asarray(total)


def displaced_box_iou(xywh: FloatArray, pixels: float, displacement: str) -> FloatArray:
    """Return the IoU of each box (n, 4) xywh with itself after its edges have moved by k pixels, by moving them."""
    _require_known(displacement, MOVES, pixels)
    corners = np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)
    moves = MOVES[displacement]
    total = np.zeros(len(xywh))
    for move in moves:
        moved = corners + pixels * np.array(move)
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2])  # a box turned inside out covers nothing
        total += box_iou(moved, corners, pairwise=False)
    return total / len(moves)


def smallest_side(pixels: float, iou: float, displacement: str) -> float:
    """Return the side of the smallest square whose IoU is still `iou` after its edges have moved by k pixels.

    Erosion is the worst case: a square of that side survives every error of at most k px at its edges.

    Parameters
    ----------
    pixels : float
        k, at least 0.
    iou : float
        In (0, 1).
    displacement : {"shift", "dilation", "erosion"}

    Returns
    -------
    float
        In px.

    Raises
    ------
    UsageError
        When the displacement has no closed form, k is negative, or the IoU does not lie between 0 and 1.

    Examples
    --------
    A square that may lose one pixel at every edge keeps an IoU of 0.81 from 20 px on: 18² / 20² = 0.81.

    >>> round(smallest_side(1, 0.81, "erosion"), 9)
    20.0
    """
    _require_known(displacement, SURVIVABLE, pixels)
    if not 0 < iou < 1:
        raise UsageError(f"iou must be between 0 and 1, got {iou:g}")
    root = math.sqrt(iou)
    # Each is the equation of its IoU with the threshold t, solved for the side s.
    if displacement == "shift":  # (s - k)² / (2 s² - (s - k)²) = t
        return pixels / (1 - math.sqrt(2 * iou / (1 + iou)))
    if displacement == "dilation":  # s² / (s + 2k)² = t
        return 2 * pixels * root / (1 - root)
    return 2 * pixels / (1 - root)  # (s - 2k)² / s² = t


# Chances that a side is moved, grown or shrunk.
_CERTAIN = {"shift": (1.0, 0.0, 0.0), "dilation": (0.0, 1.0, 0.0), "erosion": (0.0, 0.0, 1.0)}


def _require_known(displacement: str, known: Iterable[str], pixels: float) -> None:
    known = tuple(known)
    if displacement not in known:
        names = ", ".join(known)
        raise UsageError(
            f"unknown displacement {quoted_value(displacement)}; choose from"
            f" {names}.{did_you_mean(displacement, known)}"
        )
    if not 0 <= pixels < math.inf:
        raise UsageError(f"a distance in pixels must be finite and not negative, got {pixels:g}")
