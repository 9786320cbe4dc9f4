"""Suppression of bare arrays: the public functions. Tables are suppressed by `suppression.suppress`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jaccard_eval.errors import UsageError, shown
from jaccard_eval.features.nms.compute import RankedBoxes, Suppression, resolve
from jaccard_eval.matching.order import IntArray, descending_order
from jaccard_eval.similarity.boxes import Corners
from jaccard_eval.similarity.encoding import edges_of, encode, four_numbers

__all__ = ["nms", "soft_nms", "weighted_nms"]


def nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    iou: float = 0.5,
    by: str = "iou",
    encoding: str = "xyxy",
) -> IntArray:
    """Return the boxes that stay when each, the best first, removes the worse ones it overlaps by more than `iou`.

    Parameters
    ----------
    boxes : array_like, shape (n, 4)
    scores : array_like, shape (n,)
        Of equal scores, the earlier row is the better one.
    labels, images : array_like, shape (n,), optional
        Numbers or texts; boxes of different classes or images never touch each other. Left out: all are of one.
    iou : float
        In [0, 1]; at exactly this overlap both boxes stay.
    by : {"iou", "ioa"}
        What overlap is: intersection over union, or over the area of the smaller box.
    encoding : {"xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm"}

    Returns
    -------
    ndarray of int64, shape (k,)
        Rows that stay, by descending score, ties by row.

    Raises
    ------
    UsageError
        When shapes differ, a number is not finite, a box ends before it starts, or an option is unknown.

    Notes
    -----
    Source: Felzenszwalb et al. (2010), "Object Detection with Discriminatively Trained Part-Based Models", section
    4.2; more than the threshold, not at least, as in torchvision.

    Examples
    --------
    >>> nms([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10]], [0.8, 0.9, 0.7], iou=0.6).tolist()
    [1, 2]
    """
    ranked = _rank(boxes, scores, labels, images, encoding)
    kept = resolve(ranked, Suppression(iou=iou, by=by)).kept
    return _served(ranked.scores, np.flatnonzero(kept))


def soft_nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    method: str = "gaussian",
    sigma: float = 0.5,
    iou: float = 0.5,
    by: str = "iou",
    score_min: float = 0.001,
    encoding: str = "xyxy",
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the boxes whose scores outlast decay: each, the best of the rest first, lowers those that it overlaps.

    Parameters
    ----------
    boxes, scores, labels, images, by, encoding
        As in `nms`; scores must not be negative.
    method : {"gaussian", "linear"}
        Multiply by exp(-overlap² / sigma), for any overlap; or by 1 - overlap where it exceeds `iou`.
    sigma : float
        Of the gaussian.
    iou : float
        Threshold of the linear decay.
    score_min : float
        Boxes with a decayed score below this are left out.

    Returns
    -------
    rows : ndarray of int64, shape (k,)
        Rows that stay, by descending decayed score, ties by row.
    scores : ndarray of float64, shape (k,)
        Their decayed scores.

    Raises
    ------
    UsageError
        As in `nms`, and when a score is negative.

    Notes
    -----
    Source: Bodla et al. (2017), "Soft-NMS: Improving Object Detection With One Line of Code", equations in section 3.

    Examples
    --------
    >>> rows, scores = soft_nms([[0, 0, 10, 10], [0, 0, 10, 5]], [0.9, 0.8], method="linear", iou=0.4)
    >>> rows.tolist(), scores.tolist()
    ([0, 1], [0.9, 0.4])
    """
    if method not in ("gaussian", "linear"):
        raise UsageError(f"method is {shown(method)}; known are gaussian, linear")
    ranked = _rank(boxes, scores, labels, images, encoding)
    outcome = resolve(ranked, Suppression(iou=iou, by=by, method=method, sigma=sigma, score_min=score_min))
    rows = _served(outcome.scores, np.flatnonzero(outcome.kept))
    return rows, outcome.scores[rows]


def weighted_nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    iou: float = 0.5,
    by: str = "iou",
    encoding: str = "xyxy",
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the boxes that `nms` keeps, each moved to the mean of itself and the boxes it removed, by their scores.

    A removed box belongs to the best of the boxes that removed it. The score stays that of the best box. A box that
    removed nothing, or a cluster whose scores are all 0, stays where it is.

    Parameters
    ----------
    boxes, scores, labels, images, iou, by, encoding
        As in `nms`; scores must not be negative.

    Returns
    -------
    rows : ndarray of int64, shape (k,)
        Rows that stay, by descending score, ties by row.
    boxes : ndarray of float64, shape (k, 4)
        Their merged coordinates, in `encoding`.

    Raises
    ------
    UsageError
        As in `nms`, and when a score is negative.

    Notes
    -----
    Source: the mean is that of Solovyev, Wang and Gabruseva (2021), "Weighted boxes fusion", section 3, equations 2
    and 3. Unlike there, clusters are those of suppression (they do not drift with the mean), all boxes come from one
    model, and the score is not rescaled.

    Examples
    --------
    >>> rows, boxes = weighted_nms([[0, 0, 10, 10], [0, 0, 10, 6]], [0.6, 0.2])
    >>> rows.tolist(), boxes.tolist()
    ([0], [[0.0, 0.0, 10.0, 9.0]])
    """
    ranked = _rank(boxes, scores, labels, images, encoding)
    outcome = resolve(ranked, Suppression(iou=iou, by=by, method="weighted"))
    rows = _served(ranked.scores, np.flatnonzero(outcome.kept))
    left, top, right, bottom = outcome.xyxy[rows].T
    merged = encode(left, top, right, bottom, encoding)
    return rows, np.where(outcome.moved[rows, None], merged, four_numbers(boxes)[rows])


def _rank(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None,
    images: npt.ArrayLike | None,
    encoding: str,
) -> RankedBoxes:
    edges = edges_of(boxes, encoding)
    n = len(edges)
    column = np.asarray(scores)
    if column.dtype.kind not in "biuf" or column.shape != (n,) or not np.isfinite(column).all():
        raise UsageError(f"scores must be {n} finite numbers, one per box; got shape {column.shape}, {column.dtype}")
    key = _codes(images, n, "images")
    classes = _codes(labels, n, "labels")
    sides = (edges.left, edges.top, edges.right, edges.bottom, edges.area)
    corners = Corners(*(side.astype(np.float64) for side in sides))
    return RankedBoxes(corners, column.astype(np.float64), key * (int(classes.max(initial=0)) + 1) + classes)


def _codes(values: npt.ArrayLike | None, n: int, name: str) -> IntArray:
    """Return a number from 0 for each distinct value of a column."""
    if values is None:
        return np.zeros(n, dtype=np.int64)
    column = np.asarray(values)
    if column.shape != (n,):
        raise UsageError(f"{name} has shape {column.shape}; expected ({n},), one per box")
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


def _served(scores: npt.NDArray[np.float64], rows: IntArray) -> IntArray:
    """Return rows by descending score, ties by row."""
    return rows[descending_order(scores[rows])]
