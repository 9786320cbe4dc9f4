"""Masks, keypoints and oriented boxes that a program holds by image, as columns of shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.errors import UsageError
from jaccard_eval.reading.outlines import OutlineDraft
from jaccard_eval.similarity.encoding import encode
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.similarity.runs import runs_of_pixels
from jaccard_eval.text import quoted_value

ImageShapes = Masks | Keypoints | Quads
# Keys of the dicts, by what is compared.
KEYS = dict.fromkeys(MASKS, "masks") | {"keypoints": "keypoints"} | dict.fromkeys(ORIENTED, "obb")


def shapes_of(record: Mapping[str, Any], name: str, iou_type: str, array: Any) -> ImageShapes:
    """Return the shapes of one dict, which messages call `name`; `array` makes arrays of tensors."""
    key = KEYS.get(iou_type)
    if key is None:
        raise UsageError(
            "dicts by image hold boxes, masks, keypoints or oriented boxes,"
            f" and none of what iou_type {iou_type} compares"
        )
    if key not in record:
        raise UsageError(f"{name} has no {key}; it has {', '.join(map(str, record))}")
    place, values = f"{name}[{key!r}]", record[key]
    if key == "masks":
        is_rle = isinstance(values, Sequence) and len(values) > 0 and isinstance(values[0], Mapping)
        return _encoded(values, place) if is_rle else _dense(array(values), place)
    if key == "obb":
        return _oriented(array(values), place)
    points = array(values)
    if points.size == 0:
        return Keypoints(np.zeros((len(points) if points.ndim == 3 else 0, 0, 3)))
    if points.ndim != 3 or points.shape[2] not in (2, 3) or points.dtype.kind not in "biuf":
        raise UsageError(f"{place} has shape {points.shape}; expected (n, k, 3): x, y and v of k points")
    points = points.astype(np.float64)
    if not np.isfinite(points).all():
        raise UsageError(f"{place} must be finite numbers")
    # Predictions need no third number: whether a point counts is decided by the object.
    return Keypoints(np.pad(points, ((0, 0), (0, 0), (0, 3 - points.shape[2])), constant_values=1.0))


def _oriented(numbers: npt.NDArray[Any], place: str) -> Quads:
    """Return oriented boxes: four corners, or centre, sizes and angle as Ultralytics has them."""
    if numbers.size == 0:
        return Quads(np.zeros((0, 4, 2)))
    if numbers.dtype.kind not in "biuf" or numbers.shape[1:] not in ((4, 2), (8,), (5,)):
        raise UsageError(
            f"{place} has shape {numbers.shape}; expected corners (n, 4, 2) or (n, 8),"
            " or centre, width, height and angle in radians (n, 5)"
        )
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise UsageError(f"{place} must be finite numbers")
    if numbers.shape[1:] != (5,):
        return Quads(numbers.reshape(-1, 4, 2))
    (turned,) = np.nonzero(np.abs(numbers[:, 4]) > 2 * np.pi)
    (negative,) = np.nonzero((numbers[:, 2:4] < 0).any(axis=1))
    if len(turned):
        row = int(turned[0])
        raise UsageError(f"{place}[{row}] has the angle {numbers[row, 4]:g}; expected radians, clockwise")
    if len(negative):
        row = int(negative[0])
        raise UsageError(f"{place}[{row}] is {numbers[row, 2]:g} wide and {numbers[row, 3]:g} high")
    return Quads.rotated(numbers[:, :4], numbers[:, 4])


def _dense(pixels: npt.NDArray[Any], place: str) -> Masks:
    """Return masks of pixels (n, h, w): booleans, or 0 and 1."""
    if pixels.size == 0 and pixels.ndim < 3:
        pixels = np.zeros((0, 0, 0), dtype=np.bool_)
    if pixels.ndim != 3:
        raise UsageError(f"{place} has shape {pixels.shape}; expected (n, height, width), or a list of RLE")
    if pixels.dtype != np.bool_:
        if not ((pixels == 0) | (pixels == 1)).all():
            raise UsageError(f"{place} must be booleans, or 0 and 1; threshold the masks first, as in masks > 0.5")
        pixels = pixels != 0
    _, height, width = pixels.shape
    runs = runs_of_pixels((mask, 0, 0, height) for mask in pixels)
    return Masks(runs, np.full((len(pixels), 2), (height, width)))


def _encoded(values: Sequence[Any], place: str) -> Masks:
    """Return masks of RLE, as pycocotools writes them."""
    draft = OutlineDraft()
    for row, value in enumerate(values):
        problem = draft.add(value)
        if isinstance(value, list):
            problem = "is polygons, whose image has no size here; pass RLE or arrays of pixels"
        if problem:
            raise UsageError(f"{place}[{row}] {problem}")
    outlines, problems = draft.build()
    if problems:
        row, problem = problems[0]
        raise UsageError(f"{place}[{row}] {problem}")
    return outlines.masks


def bounds_of(shapes: ImageShapes, encoding: str) -> FloatArray:
    """Return boxes around shapes (n, 4), where a dict has none, of poses around their labelled points."""
    x, y, width, height = shapes.bounds().T
    if isinstance(shapes, Keypoints) and shapes.points.size:
        labelled = shapes.points[:, :, 2:] > 0
        labelled |= ~labelled.any(axis=1, keepdims=True)
        low = np.where(labelled, shapes.points[:, :, :2], np.inf).min(axis=1)
        high = np.where(labelled, shapes.points[:, :, :2], -np.inf).max(axis=1)
        (x, y), (width, height) = low.T, (high - low).T
    return encode(x, y, x + width, y + height, encoding).astype(np.float64)


def joined_shapes(parts: Sequence[ImageShapes | None]) -> ImageShapes | None:
    """Return the shapes of all parts, those without rows aside."""
    filled: list[Any] = [part for part in parts if part is not None and len(part)]
    return filled[0].joined(filled[1:]) if filled else next((part for part in parts if part is not None), None)


def sizes_of(shapes: ImageShapes | None, boxes: npt.NDArray[np.int64]) -> FloatArray:
    """Return width and height of each image (m, 2), which has so many masks as `boxes` has (m,); NaN without one."""
    sizes = unknown_sizes(len(boxes))
    if isinstance(shapes, Masks) and len(shapes):
        (having,) = np.nonzero(boxes)
        first = (np.cumsum(boxes) - boxes)[having]
        sizes[having] = shapes.sizes[first][:, ::-1]
        owner = np.repeat(np.arange(len(boxes)), boxes)
        for row in np.flatnonzero((shapes.sizes[:, ::-1] != sizes[owner]).any(axis=1)).tolist():
            own, other = shapes.sizes[row].tolist(), sizes[owner[row]][::-1].tolist()
            raise UsageError(f"masks of one image have two sizes: {quoted_value(own)} and {quoted_value(other)}")
    return sizes
