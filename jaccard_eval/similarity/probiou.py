"""ProbIoU of oriented boxes: how alike the normal distributions are that spread as the boxes do. It is not an IoU.

Equal boxes reach .99955, and squares are the same at any angle: values compare with those of Ultralytics, which
measures oriented boxes so, and with no others.
"""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows, Similarity
from jaccard_eval.similarity.obb import Quads, quads_of

_SMALL = 1e-7  # added where Ultralytics adds it


@dataclass(frozen=True, slots=True, eq=False)
class SpreadSide:
    """Where the boxes of one side are, and how they spread; columns (n,)."""

    x: FloatArray
    y: FloatArray
    xx: FloatArray
    yy: FloatArray
    xy: FloatArray

    @classmethod
    def prepare(cls, boxes: BoxTable, protocol: Protocol) -> SpreadSide:
        """Measure the quadrilaterals of a table: rectangles, or else the parallelograms of their mean sides."""
        corners = quads_of(boxes).corners
        along, across = ((corners[:, [k, k + 1]] - corners[:, [k - 1, (k + 2) % 4]]).mean(axis=1) for k in (1, 2))
        x, y = corners.mean(axis=1).T
        # Spread evenly over a side of length w, a coordinate along it has the variance w^2 / 12.
        xx, yy, xy = (
            (along[:, a] * along[:, b] + across[:, a] * across[:, b]) / 12 for a, b in ((0, 0), (1, 1), (0, 1))
        )
        return cls(x, y, xx, yy, xy)


def spread_pairs(
    first: SpreadSide,
    second: SpreadSide,
    i: Rows,
    j: Rows,
    *,
    crowd: BoolArray | None = None,  # which is compared like any other box
    threshold: float = 0.0,
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose ProbIoU reaches a threshold, in their order, with it.

    It is 1 minus the Hellinger distance of the two distributions.

    Source: Ultralytics at 000df7b3 ``ultralytics/utils/metrics.py``, ``batch_probiou``; https://arxiv.org/abs/2106.06072.
    """
    xx, yy, xy = first.xx[i] + second.xx[j], first.yy[i] + second.yy[j], first.xy[i] + second.xy[j]
    dx, dy = first.x[i] - second.x[j], first.y[i] - second.y[j]
    spread = xx * yy - xy**2
    away = (xx * dy**2 + yy * dx**2) / (spread + _SMALL) / 4 - xy * dx * dy / (spread + _SMALL) / 2
    own, others = (np.maximum(side.xx * side.yy - side.xy**2, 0) for side in (first, second))
    unlike = np.log(spread / (4 * np.sqrt(own[i] * others[j]) + _SMALL) + _SMALL) / 2
    distance = np.clip(away + unlike, _SMALL, 100)
    value = 1 - np.sqrt(1 - np.exp(-distance) + _SMALL)
    (reached,) = np.nonzero((value >= threshold) & (value > 0))
    return i[reached], j[reached], value[reached]


SIMILARITY = Similarity("probiou", SpreadSide.prepare, spread_pairs, shapes=Quads)
