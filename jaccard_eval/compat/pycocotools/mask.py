"""Masks as ``pycocotools.mask`` has them: compressed RLE in dictionaries, with the same names, shapes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.shapes import MaskError, Record, decoded, masks_of, rles, rles_of
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs
from jaccard_eval.similarity.masks import Masks, MaskSide, mask_pairs
from jaccard_eval.similarity.runs import combined, runs_of_pixels
from jaccard_eval.text import quoted_value

__all__ = ["area", "decode", "encode", "frPyObjects", "iou", "merge", "toBbox"]


def encode(bimask: npt.ArrayLike) -> Any:
    """Return the RLE of pixels: of an array (h, w) a dictionary, of (h, w, n) a list of them.

    Parameters
    ----------
    bimask : array_like, shape (h, w) or (h, w, n)
        What is not 0 belongs to the mask.

    Raises
    ------
    MaskError
        For another number of axes.

    Notes
    -----
    Source: pycocotools 2.0.11 ``mask.py``, as for all functions here.

    Examples
    --------
    >>> import numpy as np
    >>> encode(np.eye(2, dtype=np.uint8))
    {'size': [2, 2], 'counts': b'0120'}
    """
    pixels = np.asarray(bimask)
    if pixels.ndim not in (2, 3):
        raise MaskError(f"encode() takes an array (h, w) or (h, w, n), got shape {pixels.shape}")
    stacked = pixels.reshape((*pixels.shape[:2], -1))
    height, width, n = stacked.shape
    runs = runs_of_pixels((stacked[:, :, row] != 0, 0, 0, height) for row in range(n))
    found = rles_of(Masks(runs, np.full((n, 2), (height, width), dtype=np.int64)))
    return found if pixels.ndim == 3 else found[0]


def decode(rleObjs: Any) -> npt.NDArray[np.uint8]:
    """Return the pixels of RLE, 1 where the mask is: of a dictionary (h, w), of a list of them (h, w, n)."""
    if not isinstance(rleObjs, list | tuple):
        return decoded(rleObjs)
    if not rleObjs:
        return np.zeros((0, 0, 0), dtype=np.uint8, order="F")
    return np.asfortranarray(np.stack([decoded(rle) for rle in rleObjs], axis=2))


def merge(rleObjs: Sequence[Record], intersect: bool = False) -> Record:
    """Return the union of masks of one size, or their intersection."""
    masks = _masks(rleObjs)
    sizes = np.unique(masks.sizes, axis=0)
    if len(sizes) > 1:
        raise MaskError(f"merge() takes masks of one size, got {sizes.tolist()}")
    if not len(masks):
        return {"size": [0, 0], "counts": b""}
    owner = np.zeros(len(masks), dtype=np.int64)
    return rles_of(Masks(combined(masks.runs, owner, 1, len(masks) if intersect else 1), sizes))[0]


def area(rleObjs: Any) -> Any:
    """Return how many pixels masks have: of a list an array (n,), of a dictionary one number."""
    areas = _masks(rleObjs).areas().astype(np.uint32)
    return areas if isinstance(rleObjs, list | tuple) else areas[0]


def toBbox(rleObjs: Any) -> FloatArray:
    """Return left, top, width and height of masks: of a list (n, 4), of a dictionary (4,)."""
    bounds = _masks(rleObjs).bounds()
    return bounds if isinstance(rleObjs, list | tuple) else bounds[0]


def iou(dt: Any, gt: Any, pyiscrowd: Any) -> Any:
    """Return how much detections and ground truth overlap, both RLE or both boxes (n, 4) of left, top, width, height.

    Parameters
    ----------
    dt, gt : list of dict, or array_like of shape (n, 4)
    pyiscrowd : array_like of int, shape (G,)
        Of a crowd the intersection is divided by the area of the detection.

    Returns
    -------
    ndarray, shape (D, G)
        An empty list where a side is empty. Masks of two sizes that meet have -1.

    Raises
    ------
    MaskError
        When one side is RLE and the other boxes, or `pyiscrowd` has another length.
    """
    first, second = _compared(dt), _compared(gt)
    if not len(first) or not len(second):
        return []
    if isinstance(first, Masks) is not isinstance(second, Masks):
        raise MaskError("iou() compares RLE with RLE or boxes with boxes, got one of each")
    crowd = np.asarray(pyiscrowd, dtype=np.uint8).astype(np.bool_)
    if crowd.shape != (len(second),):
        raise MaskError(f"pyiscrowd must have {len(second)} values, one for each ground truth, got {crowd.shape}")
    overlaps = np.zeros((len(first), len(second)), order="F")
    i, j = (grid.ravel().astype(np.int64) for grid in np.indices(overlaps.shape))
    if isinstance(first, Masks) and isinstance(second, Masks):
        differ = (first.sizes[i] != second.sizes[j]).any(axis=1)
        bounds = Corners.of(first.bounds()), Corners.of(second.bounds())
        met = overlapping_pairs(bounds[0], bounds[1], i[differ], j[differ], threshold=-np.inf)
        overlaps[met[0], met[1]] = -1.0
        found = mask_pairs(MaskSide.of(first), MaskSide.of(second), i[~differ], j[~differ], crowd=crowd)
    else:
        corners = Corners.of(np.asarray(first)), Corners.of(np.asarray(second))
        found = overlapping_pairs(corners[0], corners[1], i, j, crowd=crowd, threshold=-np.inf)
    overlaps[found[0], found[1]] = found[2]
    return overlaps


def frPyObjects(pyobj: Any, h: Any, w: Any) -> Any:
    """Return the RLE of boxes, polygons or listed runs in an image of height `h` and width `w`.

    Parameters
    ----------
    pyobj : ndarray (n, 4), list, or dict
        Boxes of left, top, width and height; polygons ``[x1, y1, x2, y2, ...]``, each a mask of its own; dictionaries
        of ``counts`` and ``size``. One box, polygon or dictionary is one mask.

    Raises
    ------
    MaskError
        For anything else.
    """
    given = pyobj.tolist() if isinstance(pyobj, np.ndarray) else pyobj
    if isinstance(given, list):
        given = [one.tolist() if isinstance(one, np.ndarray) else one for one in given]
    if isinstance(given, dict) or (isinstance(given, list) and given and not isinstance(given[0], list | tuple | dict)):
        found: list[Record] = frPyObjects([given], h, w)
        return found[0]
    if not isinstance(given, list):
        raise MaskError(f"frPyObjects() takes boxes, polygons or RLE with counts, got {quoted_value(pyobj)}")
    rows = [[_outline(one)] if isinstance(one, list | tuple) else one for one in given]
    image = {"height": int(h), "width": int(w)}
    return rles([{"image_id": 0, "segmentation": row} for row in rows], {0: image})


def _outline(numbers: Sequence[float]) -> list[float]:
    """Return the corners of a box, or of a polygon those that it has."""
    if len(numbers) != 4:
        return list(numbers)
    left, top, width, height = numbers
    right, bottom = left + width, top + height
    return [left, top, left, bottom, right, bottom, right, top]


def _compared(given: Any) -> Masks | FloatArray:
    if isinstance(given, np.ndarray) or not all(isinstance(one, dict) for one in given):
        boxes = np.asarray(given, dtype=np.float64)
        boxes = boxes[None] if boxes.shape == (4,) else boxes
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise MaskError(f"boxes are an array (n, 4) of left, top, width and height, got shape {boxes.shape}")
        return boxes
    return _masks(given)


def _masks(given: Any) -> Masks:
    listed = given if isinstance(given, list | tuple) else [given]
    return masks_of([{"segmentation": rle} for rle in listed])
