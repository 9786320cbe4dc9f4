"""Similarity of boxes: Jaccard index (IoU), coverage (IoA), generalised, distance and complete IoU, and losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import array_of
from jaccard_eval.errors import UsageError
from jaccard_eval.similarity.encoding import NORM_SUFFIX, Edges, Floats, ImageSize, edges_of
from jaccard_eval.text import quoted_value

# Pairs whose intermediate arrays exist at once: 512 kB each in float64, so that they stay in the cache.
CHUNK_CELLS = 1 << 16

Kernel = Callable[[Edges, Edges], Floats]


def box_iou(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = True,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return the Jaccard index of boxes: the area of the intersection over that of the union.

    Parameters
    ----------
    first : array_like, shape (n, 4)
        Predictions.
    second : array_like, shape (m, 4)
        Ground truth; m is n when `pairwise` is false.
    pairwise : bool
        Whether every box of `first` meets every box of `second`, or only that of its own row.
    encoding : {"xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm"}
        What the four numbers of a box are; ``_norm`` ones are fractions of the image's width and height.
    image_size : (float, float), optional
        Width and height in pixels, for ``_norm`` encodings. This index is the same without it.

    Returns
    -------
    ndarray, shape (n, m) or (n,)
        In [0, 1]; float32 when both inputs are, else float64. Boxes that touch and boxes without area have 0, also
        with themselves. No boxes on a side give an empty array of that shape.

    Raises
    ------
    UsageError
        When a shape, an encoding or a size is wrong, a number is not finite, or a box ends before it starts.

    Notes
    -----
    Source: Jaccard (1912), "The distribution of the flora in the alpine zone". No pixel is added to widths, nothing to
    the denominator. In xywh the arithmetic is that of pycocotools 2.0.11 (``maskApi.c``, ``bbIou``) to the last bit,
    so that a box and its copy may have an index one unit in the last place off 1; in xyxy it is exactly 1.

    Examples
    --------
    >>> box_iou([[0, 0, 10, 10]], [[5, 0, 15, 10], [20, 20, 30, 30]]).round(3).tolist()
    [[0.333, 0.0]]
    """
    return _compare(_iou, first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def box_ioa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    over: str = "second",
    pairwise: bool = True,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return the intersection over the area of one of the boxes: how much of it the other one covers.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `box_iou`.
    over : {"second", "first", "smaller"}
        Whose area divides: that of the second box (how much of each ground truth is covered, as in detectron2's
        ``pairwise_ioa``), of the first (COCO's rule for crowds), or of the smaller one.

    Returns
    -------
    ndarray, shape (n, m) or (n,)
        In [0, 1]; 0 where the area that divides is 0.

    Raises
    ------
    UsageError
        As in `box_iou`, and when `over` is unknown.

    Notes
    -----
    Source: detectron2, ``structures/boxes.py``, ``pairwise_ioa``; pycocotools 2.0.11, ``maskApi.c``, ``bbIou`` (crowd).

    Examples
    --------
    >>> box_ioa([[10, 20, 50, 80]], [[20, 30, 60, 90], [20, 30, 40, 50]]).tolist()
    [[0.625, 1.0]]
    """
    if over not in _IOA:
        raise UsageError(f"over is {quoted_value(over)}; choose from {', '.join(_IOA)}")
    return _compare(_IOA[over], first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def box_giou(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = True,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return the generalised IoU: IoU less the share of the smallest enclosing box that the union leaves empty.

    Unlike IoU it distinguishes boxes that are far apart from boxes that nearly touch.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `box_iou`.

    Returns
    -------
    ndarray, shape (n, m) or (n,)
        In (-1, 1], at most the IoU; 0 where the enclosing box has no area.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Notes
    -----
    Source: Rezatofighi et al. (2019), "Generalized Intersection over Union", algorithm 2: IoU - (C - U) / C.

    Examples
    --------
    >>> box_giou([[0, 0, 1, 1]], [[0, 0, 1, 1], [3, 0, 4, 1]]).tolist()
    [[1.0, -0.5]]
    """
    return _compare(_giou, first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def box_diou(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = True,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return the distance IoU: IoU less the squared distance of the centres over the squared enclosing diagonal.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `box_iou`; a ``_norm`` encoding needs the image's size here, as distances depend on it.

    Returns
    -------
    ndarray, shape (n, m) or (n,)
        In (-1, 1], at most the IoU; 0 for two points at the same place.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Notes
    -----
    Source: Zheng et al. (2020), "Distance-IoU Loss", equation 7: IoU - rho² / c².

    Examples
    --------
    >>> box_diou([[0, 0, 3, 4]], [[0, 0, 3, 4], [3, 4, 6, 8]]).tolist()
    [[1.0, -0.25]]
    """
    _require_size(encoding, image_size)
    return _compare(_diou, first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def box_ciou(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = True,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return the complete IoU: the distance IoU less a penalty for unlike aspect ratios.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `box_diou`.

    Returns
    -------
    ndarray, shape (n, m) or (n,)
        At most the distance IoU. The angle atan(w / h) of a box without height is pi / 2, that of a point 0.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Notes
    -----
    Source: Zheng et al. (2020), "Distance-IoU Loss", equations 8 to 11: DIoU - alpha v with
    v = 4 / pi² (atan(w2 / h2) - atan(w1 / h1))² and alpha = v / ((1 - IoU) + v). The later paper of 2021 drops the
    penalty below an IoU of .5; this is the first form, as in torchvision, without its epsilon.

    Examples
    --------
    >>> box_ciou([[0, 0, 2, 2]], [[0, 0, 2, 2], [2, 2, 4, 4]]).tolist()
    [[1.0, -0.25]]
    """
    _require_size(encoding, image_size)
    return _compare(_ciou, first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def jaccard_distance(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = True,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return the Jaccard distance of boxes, 1 - IoU.

    It is a metric on boxes with an area: symmetric, 0 for a box and its copy, and no detour is shorter.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `box_iou`.

    Returns
    -------
    ndarray, shape (n, m) or (n,)
        In [0, 1]; 1 for boxes without area, as they have no intersection even with themselves.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Notes
    -----
    Source: Kosub (2019), "A note on the triangle inequality for the Jaccard distance".

    Examples
    --------
    >>> jaccard_distance([[0, 0, 10, 10]], [[0, 0, 10, 5]]).tolist()
    [[0.5]]
    """
    similarity = box_iou(first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)
    # A copy in xywh may have an index just above 1, and a distance is not negative.
    return np.maximum(1 - similarity, 0)


def jaccard_from_counts(tp: npt.ArrayLike, fp: npt.ArrayLike, fn: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the Jaccard index from counts of true positives, false positives and false negatives.

    Parameters
    ----------
    tp, fp, fn : array_like
        Counts or areas, not negative, of shapes that broadcast.

    Returns
    -------
    ndarray of float64
        tp / (tp + fp + fn); NaN where all three are 0, which leaves the index undefined.

    Raises
    ------
    UsageError
        When a count is negative or not finite.

    Examples
    --------
    >>> jaccard_from_counts([6, 0], [2, 0], [4, 0]).tolist()
    [0.5, nan]
    """
    counts = {name: array_of(given, name) for name, given in (("tp", tp), ("fp", fp), ("fn", fn))}
    for name, values in counts.items():
        if values.dtype.kind not in "biuf" or not (np.isfinite(values) & (values >= 0)).all():
            raise UsageError(f"{name} must hold counts, finite and not negative, got {quoted_value(values.tolist())}")
    try:
        hits, extra, missed = np.broadcast_arrays(*(values.astype(np.float64) for values in counts.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in counts.items())
        raise UsageError(f"counts must have one shape, or be single numbers, got {shapes}") from None
    union = hits + extra + missed
    index: npt.NDArray[np.float64] = np.divide(hits, union, out=np.full(union.shape, np.nan), where=union > 0)
    return index


def _compare(
    kernel: Kernel,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool,
    encoding: str,
    image_size: ImageSize,
) -> Floats:
    """Apply a kernel to all pairs, a bounded number at a time, or to boxes of equal row."""
    a, b = edges_of(first, encoding, image_size, "first"), edges_of(second, encoding, image_size, "second")
    if not pairwise:
        if len(a) != len(b):
            raise UsageError(f"first has {len(a)} boxes, second {len(b)}; pairwise=False compares equal rows")
        return kernel(a, b)
    out = np.empty((len(a), len(b)), dtype=np.result_type(a.left, b.left))
    # Whole rows at a time, so that only the answer has the size of all pairs; a kernel makes a dozen arrays on its way.
    step = max(1, CHUNK_CELLS // max(len(b), 1))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        out[rows] = kernel(a.column(rows), b)
    return out


# Ratios of areas are the same in fractions of an image, and those of distances are not, unless the image is a square.
def _require_size(encoding: str, image_size: ImageSize) -> None:
    if encoding.endswith(NORM_SUFFIX) and image_size is None:
        raise UsageError(
            f"encoding {quoted_value(encoding)} needs image_size=(width, height): distances depend on its shape"
        )


def _intersection(a: Edges, b: Edges) -> Floats:
    width = np.minimum(a.right, b.right) - np.maximum(a.left, b.left)
    height = np.minimum(a.bottom, b.bottom) - np.maximum(a.top, b.top)
    # Each side by itself: of boxes apart in both directions, the product of two negative sides would be an overlap.
    overlap: Floats = np.maximum(width, 0) * np.maximum(height, 0)
    return overlap


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Divide; 0 where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(part, whole)
    ratio: Floats = np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
    return ratio


def _iou(a: Edges, b: Edges) -> Floats:
    # The order of pycocotools, (a + b) - i: any other may differ in the last bit.
    intersection = _intersection(a, b)
    return _ratio(intersection, (a.area + b.area) - intersection)


_IOA: dict[str, Kernel] = {
    "first": lambda a, b: _ratio(_intersection(a, b), a.area),
    "second": lambda a, b: _ratio(_intersection(a, b), b.area),
    "smaller": lambda a, b: _ratio(_intersection(a, b), np.minimum(a.area, b.area)),
}


def _hull(a: Edges, b: Edges) -> tuple[Floats, Floats]:
    """Width and height of the smallest box around both."""
    width: Floats = np.maximum(a.right, b.right) - np.minimum(a.left, b.left)
    height: Floats = np.maximum(a.bottom, b.bottom) - np.minimum(a.top, b.top)
    return width, height


def _giou(a: Edges, b: Edges) -> Floats:
    intersection = _intersection(a, b)
    union = (a.area + b.area) - intersection
    width, height = _hull(a, b)
    hull = width * height
    # Of a box and its copy, rounding may leave less than nothing.
    empty = np.maximum(hull - union, 0)
    return _ratio(intersection, union) - _ratio(empty, hull)


def _diou(a: Edges, b: Edges) -> Floats:
    # Squares throughout: rho² / c² of equation 7 needs no root.
    across = ((a.left + a.right) - (b.left + b.right)) / 2
    down = ((a.top + a.bottom) - (b.top + b.bottom)) / 2
    width, height = _hull(a, b)
    return _iou(a, b) - _ratio(across**2 + down**2, width**2 + height**2)


def _ciou(a: Edges, b: Edges) -> Floats:
    # arctan2, not arctan of a ratio: boxes without height have an angle, too.
    tilt = np.arctan2(b.width, b.height) - np.arctan2(a.width, a.height)
    v = (4 / np.pi**2) * tilt**2
    # alpha · v of equations 8 to 11 as one ratio: 0 for a box and its copy, where alpha alone would be 0 / 0.
    penalty = _ratio(v * v, np.asarray((1 - _iou(a, b)) + v))
    return _diou(a, b) - penalty


def iou_loss(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = False,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return 1 - IoU.

    A loss compares each box with its own target, so equal rows are compared unless `pairwise` is set. UnitBox (Yu et
    al., 2016) has -ln IoU in its place, which is infinite for boxes apart.

    Parameters
    ----------
    first : array_like, shape (n, 4)
        Predictions.
    second : array_like, shape (n, 4), or (m, 4) when `pairwise`
        Targets.
    pairwise, encoding, image_size
        As in `box_iou`.

    Returns
    -------
    ndarray, shape (n,) or (n, m)
        In [0, 1]; not reduced.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Examples
    --------
    >>> iou_loss([[0, 0, 10, 10]], [[0, 0, 10, 5]]).tolist()
    [0.5]
    """
    return 1 - box_iou(first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def giou_loss(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = False,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return 1 - GIoU.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `iou_loss`.

    Returns
    -------
    ndarray, shape (n,) or (n, m)
        In [0, 2).

    Raises
    ------
    UsageError
        As in `box_iou`.

    Notes
    -----
    Source: Rezatofighi et al. (2019), "Generalized Intersection over Union", algorithm 2.

    Examples
    --------
    >>> giou_loss([[0, 0, 1, 1]], [[3, 0, 4, 1]]).tolist()
    [1.5]
    """
    return 1 - box_giou(first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def diou_loss(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = False,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return 1 - DIoU.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `iou_loss`.

    Returns
    -------
    ndarray, shape (n,) or (n, m)
        In [0, 2).

    Raises
    ------
    UsageError
        As in `box_diou`.

    Notes
    -----
    Source: Zheng et al. (2020), "Distance-IoU Loss", equation 7.

    Examples
    --------
    >>> diou_loss([[0, 0, 3, 4]], [[3, 4, 6, 8]]).tolist()
    [1.25]
    """
    return 1 - box_diou(first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)


def ciou_loss(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    pairwise: bool = False,
    encoding: str = "xyxy",
    image_size: ImageSize = None,
) -> Floats:
    """Return 1 - CIoU.

    Parameters
    ----------
    first, second, pairwise, encoding, image_size
        As in `iou_loss`.

    Returns
    -------
    ndarray, shape (n,) or (n, m)
        Not negative.

    Raises
    ------
    UsageError
        As in `box_diou`.

    Notes
    -----
    Source: Zheng et al. (2020), "Distance-IoU Loss", equation 10. The value is this; in training, alpha is taken as a
    constant.

    Examples
    --------
    >>> ciou_loss([[0, 0, 2, 2]], [[2, 2, 4, 4]]).tolist()
    [1.25]
    """
    return 1 - box_ciou(first, second, pairwise=pairwise, encoding=encoding, image_size=image_size)
