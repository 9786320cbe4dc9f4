"""Shapes as galleries draw them: outlines with few corners, and the points of poses with the lines between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import Shapes
from jaccard_eval.report.model import DrawnShape, Points
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.similarity.tracing import traced

MOST_CELLS = 128  # along the longer side of a mask, which is sampled where it has more pixels
STEPS = 320  # corners less than so small a part of the image's longer side from an outline are dropped
CORNER = 0.03  # of the longer side of an image, around its origin: predictions of zeros are not all zeros
COCO_POINTS = 17
# Lines between COCO's points, counted from 0: those of ``categories[].skeleton`` in person_keypoints_val2017.json.
COCO_EDGES = (
    (15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6), (5, 7), (6, 8), (7, 9), (8, 10),
    (1, 2), (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6),
)  # fmt: skip


def drawing_of(
    shapes: Shapes | None, row: int, size: tuple[int, int], scale: tuple[float, float] = (1, 1)
) -> DrawnShape | None:
    """Return how one shape is drawn in an image of a width and a height; None where there is nothing but its box.

    Corners are multiplied by a `scale`, that of the image where they are fractions of it.
    """
    if isinstance(shapes, Quads):
        return DrawnShape(rings=(tuple(map(tuple, (shapes.corners[row] * scale).tolist())),), is_box=True)
    if isinstance(shapes, Masks):
        rings = outlines(shapes, row, max(size) / STEPS)
        return DrawnShape(rings=rings) if rings else None
    if isinstance(shapes, Keypoints):
        return _pose(shapes.points[row], CORNER * max(size))
    return None


def outlines(masks: Masks, row: int, tolerance: float) -> tuple[Points, ...]:
    """Return the closed outlines of a mask in px, without corners nearer than a tolerance to the line without them.

    Around pixels they go clockwise as one sees them, around holes the other way.
    """
    mask = masks.take(np.array([row]))
    left, top, width, height = mask.bounds()[0].astype(np.int64).tolist()
    step = max(1, -(-max(width, height) // MOST_CELLS))
    # The middle of each cell of step x step pixels, down the columns as the mask is stored.
    x, y = (np.minimum(np.arange(step // 2, side + step // 2, step), side - 1) for side in (width, height))
    pixel = (left + x) * int(masks.sizes[row, 0]) + (top + y)[:, None]  # (rows, columns)
    inside = np.searchsorted(mask.runs.edges, pixel, "right") % 2 == 1
    rings = []
    for ring in traced(inside):
        corners = np.minimum(np.array(ring) * step, (width, height)) + np.array((left, top))
        # Where cells are larger than pixels, their stairs go as well.
        kept = _simplified(corners.astype(np.float64), max(tolerance, step) if step > 1 else tolerance)
        if len(kept) > 2:
            rings.append(tuple(map(tuple, kept.tolist())))
    return tuple(rings)


def _simplified(corners: npt.NDArray[np.float64], tolerance: float) -> npt.NDArray[np.float64]:
    """Drop corners (n, 2) of a closed line within a tolerance of what is left, as Douglas and Peucker (1973) do."""
    n = len(corners)
    # Cut into two at the corner farthest from the first one.
    far = int(np.argmax(np.hypot(*(corners - corners[0]).T)))
    closed = np.concatenate((corners, corners[:1]))
    kept = np.zeros(n + 1, dtype=np.bool_)
    kept[[0, far]] = True
    parts = [(0, far), (far, n)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        away, line = closed[first + 1 : last] - closed[first], closed[last] - closed[first]
        length = float(np.hypot(*line))
        distance = np.abs(away[:, 0] * line[1] - away[:, 1] * line[0]) / length if length else np.hypot(*away.T)
        most = int(np.argmax(distance))
        if distance[most] > tolerance:
            kept[first + 1 + most] = True
            parts += [(first, first + 1 + most), (first + 1 + most, last)]
    return corners[kept[:-1]]


def _pose(points: npt.NDArray[np.float64], near: float) -> DrawnShape | None:
    """Return the labelled points of a pose; where there are none, all of them, as they may be those of a prediction.

    What lies `near` the origin, far from all else of the pose, was not found: files have zeros there.
    """
    shown = points[:, 2] > 0
    if not shown.any():
        shown[:] = (points[:, :2] != 0).any(axis=1)
    away = np.hypot(*points[:, :2].T)
    found = shown & (away > near)
    if found.any():
        extent = float(np.hypot(*np.ptp(points[found, :2], axis=0)))
        shown = found if away[found].min() > extent / 2 else shown  # as long as a line of a pose may be
    if not shown.any():
        return None
    edges = COCO_EDGES if len(points) == COCO_POINTS else ()
    lines = [(tuple(points[a, :2].tolist()), tuple(points[b, :2].tolist())) for a, b in edges if shown[a] and shown[b]]
    return DrawnShape(points=tuple(map(tuple, points[shown, :2].tolist())), lines=tuple(lines))
