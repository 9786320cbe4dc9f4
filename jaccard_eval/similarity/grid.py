"""Raw outputs of a YOLO head, one grid cell and anchor each, to boxes and scores. No suppression happens here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import array_of
from jaccard_eval.errors import UsageError
from jaccard_eval.similarity.encoding import Floats
from jaccard_eval.text import did_you_mean, quoted_value

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
