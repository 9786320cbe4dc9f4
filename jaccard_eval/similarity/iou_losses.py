"""Losses of boxes: one minus a similarity, per box and its own target. Gradients are the business of a framework."""

from __future__ import annotations

import numpy.typing as npt

from jaccard_eval.similarity.encoding import Floats, ImageSize
from jaccard_eval.similarity.iou import box_ciou, box_diou, box_giou, box_iou

__all__ = ["ciou_loss", "diou_loss", "giou_loss", "iou_loss"]


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
