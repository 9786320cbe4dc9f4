"""How far apart the edges of two boxes are: a measure of agreement that does not know the size of the object."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.similarity.boxes import Corners, Rows

DECIMAL_SLACK = 1e-6  # px; edges that are k px apart in decimals differ by more in binary


def closeness(pixels: float) -> float:
    """Return the closeness of two boxes whose edges are up to `pixels` apart: 1 / (1 + pixels), with a slack.

    Closeness takes the place of IoU where boxes are matched by their edges: it lies in (0, 1], 1 for equal boxes, and
    orders pairs as their distance does. Thresholds of closeness are those of `close_pairs`.
    """
    return 1 / (1 + pixels + DECIMAL_SLACK)


def close_pairs(
    first: Corners, second: Corners, i: Rows, j: Rows, *, crowd: BoolArray | None = None, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose closeness reaches a threshold, with it; as `box.overlapping_pairs`.

    Parameters and returns are those of `overlapping_pairs`, with closeness for overlap: 1 / (1 + d), where d is the
    largest distance in px between an edge and its counterpart. Of crowds it is how far the first box reaches out of
    the second one: what lies inside is at distance 0, as its IoA is 1.
    """
    outward = (
        second.left[j] - first.left[i],
        second.top[j] - first.top[i],
        first.right[i] - second.right[j],
        first.bottom[i] - second.bottom[j],
    )  # positive where the first box reaches further out
    distance = np.maximum.reduce([np.abs(edge) for edge in outward])
    if crowd is not None and crowd.any():
        distance = np.where(crowd[j], np.maximum.reduce([*outward, np.zeros(len(j))]), distance)
    value = 1 / (1 + distance)
    reach = np.flatnonzero(value >= threshold)
    return i[reach], j[reach], value[reach]
