"""Boxes moved: clipped to their image, or scaled with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jaccard_eval.errors import UsageError, shown
from jaccard_eval.similarity.encoding import NORM_SUFFIX, Floats, edges_of, encode, four_numbers, pixel_size

__all__ = ["clip", "scale"]


def clip(boxes: npt.ArrayLike, image_size: Sequence[float], *, encoding: str = "xyxy") -> Floats:
    """Cut boxes off at the borders of their image.

    Parameters
    ----------
    boxes : array_like, shape (n, 4)
    image_size : (float, float)
        Width and height in pixels.
    encoding : {"xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm"}
        What the four numbers of a box are, also in the result.

    Returns
    -------
    ndarray, shape (n, 4)
        A copy. A box beside the image becomes one without width or height on its border, so that rows stay aligned.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Examples
    --------
    >>> clip([[-5, 10, 20, 90]], (100, 50)).tolist()
    [[0.0, 10.0, 20.0, 50.0]]
    """
    width, height = pixel_size(image_size)
    if encoding.endswith(NORM_SUFFIX):
        width, height = 1.0, 1.0
    edges = edges_of(boxes, encoding)
    left, right = np.clip(edges.left, 0, width), np.clip(edges.right, 0, width)
    top, bottom = np.clip(edges.top, 0, height), np.clip(edges.bottom, 0, height)
    return encode(left, top, right, bottom, encoding)


def scale(boxes: npt.ArrayLike, factor: float | Sequence[float]) -> Floats:
    """Scale boxes with their image, as when it is resized; the origin stays.

    Parameters
    ----------
    boxes : array_like, shape (n, 4)
        In pixels, of any encoding: positions and sizes scale alike.
    factor : float or (float, float)
        New size over old size; one number for both directions, or one for x and one for y.

    Returns
    -------
    ndarray, shape (n, 4)
        A copy.

    Raises
    ------
    UsageError
        When a shape is wrong, a number is not finite, or a factor is not positive.

    Examples
    --------
    >>> scale([[10, 20, 30, 40]], (2, 0.5)).tolist()
    [[20.0, 10.0, 60.0, 20.0]]
    """
    numbers = four_numbers(boxes)
    factors = np.asarray(factor, dtype=numbers.dtype)
    if factors.shape not in ((), (2,)) or not (np.isfinite(factors) & (factors > 0)).all():
        raise UsageError(f"factor must be a positive number, or one for x and one for y, got {shown(factor)}")
    return numbers * np.tile(np.broadcast_to(factors, 2), 2)
