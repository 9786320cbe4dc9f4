"""Boxes in any encoding to their edges and back, clipped to their image or scaled with it; no overlap.

Raw outputs of a YOLO head, one grid cell and anchor each, are an encoding too. No suppression happens here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import array_of
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import did_you_mean, quoted_value

# float32 when every input is, else float64: what comes from a network stays as small as it was.
Floats = npt.NDArray[np.floating[Any]]
# Width and height in pixels.
ImageSize = Sequence[float] | None

NORM_SUFFIX = "_norm"
BOX_ENCODINGS = ("xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm")
# A hull of two boxes is at most (2 + 2)² times as large as the square of the largest number.
_AREA_HEADROOM = 16.0


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Boxes by their edges and sides, one array each; the arrays broadcast against those of other boxes."""

    left: Floats
    top: Floats
    right: Floats
    bottom: Floats
    width: Floats
    height: Floats

    @property
    def area(self) -> Floats:
        """Width times height."""
        return self.width * self.height

    def __len__(self) -> int:
        return len(self.left)

    def column(self, rows: slice) -> Edges:
        """Return some boxes as columns (k, 1), to be paired with all of a row of others."""
        return Edges(*(getattr(self, name)[rows, None] for name in self.__slots__))


def edges_of(boxes: npt.ArrayLike, encoding: str, image_size: ImageSize = None, name: str = "boxes") -> Edges:
    """Return the edges of boxes (n, 4); refuse what are none, by row and numbers."""
    numbers = four_numbers(boxes, name)
    if encoding not in BOX_ENCODINGS:
        known = ", ".join(BOX_ENCODINGS)
        raise UsageError(
            f"unknown box encoding {quoted_value(encoding)}; choose from "
            f"{known}.{did_you_mean(str(encoding), BOX_ENCODINGS)}"
        )
    pixels = numbers
    if image_size is not None:
        width, height = pixel_size(image_size)
        unit = [width, height] * 2 if encoding.endswith(NORM_SUFFIX) else [1.0] * 4
        # In the dtype of the boxes, which float64 factors would widen.
        pixels = numbers * np.array(unit, dtype=numbers.dtype)
    # One array a number, contiguous: kernels read each of them many times.
    first, second, third, fourth = np.ascontiguousarray(pixels.T)
    # Sides are taken as they are given: corners give x2 - x1, sizes give x + w, as in the reference implementations of
    # either encoding. A conversion there and back would cost the last bit.
    match encoding.removesuffix(NORM_SUFFIX):
        case "xyxy":
            edges = Edges(first, second, third, fourth, third - first, fourth - second)
        case "xywh":
            edges = Edges(first, second, third + first, fourth + second, third, fourth)
        case _:
            left, top = first - third / 2, second - fourth / 2
            edges = Edges(left, top, left + third, top + fourth, third, fourth)
    wrong = np.flatnonzero((edges.width < 0) | (edges.height < 0))
    if len(wrong):
        row = int(wrong[0])
        corners = encoding.startswith("xyxy")
        what = "x2 < x1 or y2 < y1 (is it xywh? pass encoding='xywh')" if corners else "a negative width or height"
        more = f"; and {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        raise UsageError(f"{name}[{row}] is {numbers[row].tolist()}, which has {what}{more}")
    return edges


def encode(left: Floats, top: Floats, right: Floats, bottom: Floats, encoding: str) -> Floats:
    """Return boxes (n, 4) of an encoding from their four edges (n,)."""
    match encoding.removesuffix(NORM_SUFFIX):
        case "xyxy":
            columns = (left, top, right, bottom)
        case "xywh":
            columns = (left, top, right - left, bottom - top)
        case _:
            columns = ((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
    return np.stack(columns, axis=1)


def four_numbers(boxes: npt.ArrayLike, name: str = "boxes") -> Floats:
    """Return boxes as finite numbers (n, 4): float32 stays, everything else becomes float64; see `edges_of`."""
    given = array_of(boxes, name)
    if given.dtype.kind not in "biuf":
        raise UsageError(f"{name} must hold numbers, got {given.dtype}")
    numbers: Floats = given if given.dtype == np.float32 else given.astype(np.float64)
    if numbers.shape == (0,):
        numbers = numbers.reshape(0, 4)
    if numbers.ndim != 2 or numbers.shape[1] != 4:
        raise UsageError(f"{name} has shape {numbers.shape}; expected (n, 4), four numbers per box")
    limit = np.sqrt(np.finfo(numbers.dtype).max / _AREA_HEADROOM)
    # False for NaN as well, so that one comparison finds all that cannot be computed with.
    good = np.abs(numbers) <= limit
    if not good.all():
        row = int(np.flatnonzero(~good.all(axis=1))[0])
        problem = "too large for an area" if np.isfinite(numbers[row]).all() else "not finite"
        raise UsageError(f"{name}[{row}] is {numbers[row].tolist()}; its numbers are {problem}")
    return numbers


def pixel_size(image_size: Sequence[float]) -> tuple[float, float]:
    """Return width and height; raise a UsageError when these are not two positive numbers."""
    size = array_of(image_size, "image_size")
    if size.dtype.kind not in "iuf" or size.shape != (2,) or not (np.isfinite(size) & (size > 0)).all():
        raise UsageError(f"image_size must be (width, height) in pixels, got {quoted_value(image_size)}")
    return float(size[0]), float(size[1])


def clip(boxes: npt.ArrayLike, image_size: Sequence[float], *, encoding: str = "xyxy") -> Floats:
    """Clip boxes to their image, or to a window of it.

    Parameters
    ----------
    boxes : array_like, shape (n, 4)
    image_size : (float, float) or (float, float, float, float)
        Width and height in pixels; or left, top, right and bottom of a window, in the unit of the boxes.
    encoding : {"xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm"}
        What the four numbers of a box are, also in the result.

    Returns
    -------
    ndarray, shape (n, 4)
        A copy. A box outside the image becomes one without width or height on its border, so that rows stay aligned.

    Raises
    ------
    UsageError
        As in `box_iou`.

    Examples
    --------
    >>> clip([[-5, 10, 20, 90]], (100, 50)).tolist()
    [[0.0, 10.0, 20.0, 50.0]]
    """
    if np.shape(image_size) == (4,):
        window = edges_of([image_size], "xyxy", name="window")
        x1, y1, x2, y2 = (float(edge[0]) for edge in (window.left, window.top, window.right, window.bottom))
    else:
        x1, y1, (x2, y2) = 0.0, 0.0, pixel_size(image_size)
        # In fractions the border is at 1, whatever the size; it was asked for all the same, as of every encoding.
        if encoding.endswith(NORM_SUFFIX):
            x2, y2 = 1.0, 1.0
    edges = edges_of(boxes, encoding)
    left, right = np.clip(edges.left, x1, x2), np.clip(edges.right, x1, x2)
    top, bottom = np.clip(edges.top, y1, y2), np.clip(edges.bottom, y1, y2)
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
    factors = array_of(factor, "factor")
    is_pair = factors.dtype.kind in "iuf" and factors.shape in ((), (2,))
    if not is_pair or not (np.isfinite(factors) & (factors > 0)).all():
        raise UsageError(f"factor must be a positive number, or one for x and one for y, got {quoted_value(factor)}")
    # x, y, x, y: corners and sizes alike stand in this order in all encodings.
    scaled: Floats = numbers * np.tile(np.broadcast_to(factors.astype(numbers.dtype), 2), 2)
    return scaled


# Numbers before the classes: tx, ty, tw, th and objectness.
BOX_AND_OBJECTNESS = 5
GRID_FORMULAS = ("yolov3", "yolov5")


def decode_grid(
    raw: npt.ArrayLike, anchors: npt.ArrayLike, stride: float, *, formula: str = "yolov3"
) -> tuple[Floats, Floats]:
    """Turn the raw grid output of a YOLO head into boxes and class scores.

    A cell at column i and row j of the grid sees the square of `stride` pixels whose corner is (i, j) times `stride`.
    Each of its anchors predicts four numbers of a box, an objectness and one number per class, all before any sigmoid.

    Parameters
    ----------
    raw : array_like, shape (..., A, H, W, 4 + 1 + C)
        Per anchor, row and column: tx, ty, tw, th, objectness and C classes, as Ultralytics' YOLOv5 arranges its heads
        before decoding. Darknet's (A · (4 + 1 + C), H, W) is brought here by
        ``raw.reshape(A, -1, H, W).transpose(0, 2, 3, 1)``.
    anchors : array_like, shape (A, 2)
        Width and height of each anchor in pixels of the network's input.
    stride : float
        Pixels of the network's input per cell.
    formula : {"yolov3", "yolov5"}
        With s the sigmoid, "yolov3" puts the centre at (s(tx) + i) · stride and makes the width anchor · exp(tw);
        "yolov5" at (2 s(tx) - .5 + i) · stride and anchor · (2 s(tw))².

    Returns
    -------
    boxes : ndarray, shape (..., A · H · W, 4)
        xyxy in pixels of the network's input, in the order of anchors, rows and columns; float32 when `raw` is.
    scores : ndarray, shape (..., A · H · W, C)
        Objectness times class probability; objectness alone, (..., A · H · W, 1), when there are no classes.

    Raises
    ------
    UsageError
        When shapes do not fit each other, a number is not finite, or a formula is unknown.

    Notes
    -----
    Source: Redmon and Farhadi (2018), "YOLOv3: An Incremental Improvement", section 2.1; Ultralytics YOLOv5,
    ``models/yolo.py``, ``Detect.forward``. Both treat classes as independent (sigmoid, not softmax).

    Examples
    --------
    >>> boxes, scores = decode_grid([[[[0, 0, 0, 0, 100, 0]]]], [[16, 8]], 32)
    >>> boxes.tolist(), scores.round(3).tolist()
    ([[8.0, 12.0, 24.0, 20.0]], [[0.5]])
    """
    grid, sides, pixels = _checked(raw, anchors, stride)
    if formula not in GRID_FORMULAS:
        known = ", ".join(GRID_FORMULAS)
        raise UsageError(
            f"formula is {quoted_value(formula)}; choose from {known}.{did_you_mean(str(formula), GRID_FORMULAS)}"
        )
    rows, columns = grid.shape[-3:-1]
    cells = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).astype(grid.dtype)  # (H, W, 2)
    if formula == "yolov3":
        centres = (_sigmoid(grid[..., :2]) + cells) * pixels
        # No larger than that areas stay finite: a head that was not trained gives any number.
        sizes = np.exp(np.minimum(grid[..., 2:4], np.log(np.finfo(grid.dtype).max) / 4)) * sides
    else:
        centres = (2 * _sigmoid(grid[..., :2]) - 0.5 + cells) * pixels
        sizes = (2 * _sigmoid(grid[..., 2:4])) ** 2 * sides
    boxes = np.concatenate((centres - sizes / 2, centres + sizes / 2), axis=-1)
    objectness = _sigmoid(grid[..., 4:BOX_AND_OBJECTNESS])
    classes = _sigmoid(grid[..., BOX_AND_OBJECTNESS:])
    return _flat(boxes), _flat(objectness * classes if classes.shape[-1] else objectness)


def _checked(raw: npt.ArrayLike, anchors: npt.ArrayLike, stride: float) -> tuple[Floats, Floats, Any]:
    """Return the grid, the anchors (A, 1, 1, 2) and the stride in one dtype."""
    grid, sides = array_of(raw, "raw"), array_of(anchors, "anchors")
    if grid.dtype.kind not in "iuf" or sides.dtype.kind not in "iuf":
        raise UsageError(f"raw and anchors must hold numbers, got {grid.dtype} and {sides.dtype}")
    grid = grid if grid.dtype == np.float32 else grid.astype(np.float64)
    if grid.ndim < 4 or grid.shape[-1] < BOX_AND_OBJECTNESS:
        raise UsageError(f"raw has shape {grid.shape}; expected (..., anchors, rows, columns, 4 + 1 + classes)")
    if sides.shape != (grid.shape[-4], 2):
        raise UsageError(f"anchors have shape {sides.shape}; raw of shape {grid.shape} needs ({grid.shape[-4]}, 2)")
    if not (np.isfinite(sides).all() and (sides > 0).all() and np.isfinite(stride) and stride > 0):
        raise UsageError(
            f"anchors and stride must be positive, got {quoted_value(sides.tolist())} and {quoted_value(stride)}"
        )
    if not np.isfinite(grid).all():
        place = tuple(int(at) for at in np.argwhere(~np.isfinite(grid))[0])
        raise UsageError(f"raw{list(place)} is {grid[place]}; numbers must be finite")
    return grid, sides.astype(grid.dtype)[:, None, None, :], grid.dtype.type(stride)


def _sigmoid(values: Floats) -> Floats:
    """Return 1 / (1 + exp(-x))."""
    # By way of tanh, which does not overflow; a half of the same dtype keeps float32 what it is.
    half = values.dtype.type(0.5)
    return half * (1 + np.tanh(half * values))


def _flat(grid: Floats) -> Floats:
    """Merge the axes of anchors, rows and columns."""
    return grid.reshape(*grid.shape[:-4], math.prod(grid.shape[-4:-1]), grid.shape[-1])
