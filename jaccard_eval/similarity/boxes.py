"""Overlap of axis-aligned boxes in the arithmetic of pycocotools, and suppression by it.

x2 = x + w, area = w·h, union = (a + b) - i.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import BOXES, Protocol, nearness
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows, Similarity


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """Pairs of boxes (p,) that overlap too much to stay side by side, each pair once."""

    # The better one has the higher score, of equal scores the earlier row. Sorted by the rank of `better`.
    better: Rows
    worse: Rows
    overlap: FloatArray

    def __len__(self) -> int:
        return len(self.better)

    def take(self, chosen: BoolArray) -> Rivals:
        """Return some of the pairs."""
        return Rivals(self.better[chosen], self.worse[chosen], self.overlap[chosen])


def keep_unrivalled(rivals: Rivals, n: int) -> BoolArray:
    """Return which of `n` boxes stay when each one that stays removes its worse rivals, shape (n,).

    Source: Felzenszwalb et al. (2010), "Object Detection with Discriminatively Trained Part-Based Models", section
    4.2: greedily by score.
    """
    kept = np.ones(n, dtype=np.bool_)
    beaten = np.zeros(n, dtype=np.bool_)
    better, worse = rivals.better, rivals.worse
    while len(better):
        # Set and unset rather than made anew: in late rounds n boxes are far more than the pairs that are left.
        beaten[worse] = True
        decided = ~beaten[better]
        beaten[worse] = False
        kept[worse[decided]] = False
        # A pair is over when either box is gone; one whose better box stays has done its work in this round.
        open_pairs = np.flatnonzero(kept[better] & kept[worse])
        better, worse = better[open_pairs], worse[open_pairs]
    return kept


def decay_scores(rivals: Rivals, scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the scores (n,), not negative, after each box, the best of the rest first, has lowered its rivals'.

    `weights` (p,) in [0, 1] are what each pair multiplies the score of its loser by.

    Source: Bodla et al. (2017), "Soft-NMS: Improving Object Detection With One Line of Code", figure 2. A box that
    several others decay may differ from serving one by one in the last bits, by the order of the products.
    """
    scores = scores.copy()
    beaten = np.zeros(len(scores), dtype=np.bool_)
    better, worse = rivals.better, rivals.worse
    while len(better):
        # As scores only fall, a box that no undecided rival surpasses is final. Who is better may change on the way.
        holds = scores[better] >= scores[worse]
        winner, loser = np.where(holds, better, worse), np.where(holds, worse, better)
        beaten[loser] = True
        decided = ~beaten[winner]
        beaten[loser] = False
        # One box may lose to several at once: buffered `*=` would apply one of the weights only.
        np.multiply.at(scores, loser[decided], weights[decided])
        better, worse, weights = better[~decided], worse[~decided], weights[~decided]
    return scores


def clusters(rivals: Rivals, kept: BoolArray) -> Rows:
    """Return for each box the row of the box that stays for it: itself, or the best that removed it, shape (n,)."""
    owner = np.arange(len(kept))
    removed = np.flatnonzero(kept[rivals.better] & ~kept[rivals.worse])[::-1]
    # Backwards, so that the best is written last and stays.
    owner[rivals.worse[removed]] = rivals.better[removed]
    return owner


def weighted_means(values: FloatArray, weights: FloatArray, owner: Rows) -> FloatArray:
    """Return the mean of the values (n, 4) of each cluster in the row of its owner, weighted; alone, a row stays."""
    n = len(values)
    total = np.bincount(owner, weights=weights, minlength=n)
    shared = (np.bincount(owner, minlength=n) > 1) & (total > 0)
    sums = np.stack([np.bincount(owner, weights=weights * column, minlength=n) for column in values.T], axis=1)
    # A mean of one row with itself may differ in the last bit: such rows stay as they are.
    means = values.copy()
    means[shared] = sums[shared] / total[shared, None]
    return means


@dataclass(frozen=True, slots=True, eq=False)
class Corners:
    """Boxes by their corners, with their area; one array (n,) each, so that kernels read only what they need."""

    left: FloatArray
    top: FloatArray
    right: FloatArray
    bottom: FloatArray
    area: FloatArray
    # As of protocols; px for "pixels".
    overlap: Literal["area", "centre", "radius", "diagonal", "width", "pixels"] = field(default="area", kw_only=True)
    reach: float = field(default=0.0, kw_only=True)
    union_epsilon: float = field(default=0.0, kw_only=True)  # px², added to what intersections are divided by

    @classmethod
    def of(cls, xywh: FloatArray, pixel_offset: float = 0.0) -> Corners:
        """Make corners of left, top, width and height; `pixel_offset` is added to both sides (1: inclusive pixels)."""
        x, y, w, h = np.ascontiguousarray(xywh.T)
        # Adding 0 would change nothing and copy both columns.
        if pixel_offset:
            w, h = w + pixel_offset, h + pixel_offset
        # Areas are products of the sides, never of differences of corners, which may be off by a bit.
        return cls(left=x, top=y, right=w + x, bottom=h + y, area=w * h)

    @classmethod
    def prepare(cls, boxes: BoxTable, protocol: Protocol) -> Corners:
        """Make corners of a table under the rules of a protocol; in 32 bits, areas are those of the rounded corners."""
        made = cls.of(boxes.xywh, protocol.pixel_offset)
        if protocol.overlap != "area":
            return replace(made, overlap=protocol.overlap, reach=protocol.reach)
        if not protocol.single_precision:
            return replace(made, union_epsilon=protocol.union_epsilon) if protocol.union_epsilon else made
        edges: Any = [side.astype(np.float32) for side in (made.left, made.top, made.right, made.bottom)]
        left, top, right, bottom = edges
        area = (right - left) * (bottom - top)
        return cls(left, top, right, bottom, area, union_epsilon=protocol.union_epsilon)


def overlapping_pairs(
    first: Corners, second: Corners, i: Rows, j: Rows, *, crowd: BoolArray | None = None, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose overlap reaches a threshold, in their order, with the overlap.

    Where `crowd` marks a row of `second`, it is the intersection over the area of the first box (IoA) instead of IoU.
    Touching boxes and boxes of negative size overlap by nothing.

    Source: pycocotools 2.0.11 ``common/maskApi.c``, ``bbIou``.
    """
    if second.overlap != "area":
        return _centred_pairs(first, second, i, j, threshold)
    i, j, intersection = _intersecting(first, second, i, j)
    # In this order, as in C there: a + (b - i) may differ in the last bit.
    union = (first.area[i] + second.area[j]) - intersection
    if crowd is not None and crowd.any():
        union = np.where(crowd[j], first.area[i], union)
    if first.union_epsilon:
        union += first.union_epsilon
    return _reaching(i, j, intersection, union, threshold)


def _centred_pairs(
    first: Corners, second: Corners, i: Rows, j: Rows, threshold: float
) -> tuple[Rows, Rows, FloatArray]:
    """Return the pairs whose centres are near enough, in units of the second box, with 1 less their distance.

    A box without a size has no centre that another could be near, but in pixels.
    """
    away = [
        np.abs((near_i[i] + far_i[i]) - (near_j[j] + far_j[j])) / 2
        for near_i, far_i, near_j, far_j in (
            (first.left, first.right, second.left, second.right),
            (first.top, first.bottom, second.top, second.bottom),
        )
    ]
    sides = [(second.right - second.left)[j], (second.bottom - second.top)[j]]
    with np.errstate(invalid="ignore", divide="ignore"):
        if second.overlap == "centre":
            value = 1 - np.maximum(away[0] / sides[0], away[1] / sides[1])
        elif second.overlap == "radius":
            value = 1 - np.hypot(*away) / ((sides[0] + sides[1]) / 2)
        else:
            units = {"diagonal": np.hypot(*sides), "width": sides[0]}
            unit = units.get(second.overlap, 2 * second.reach)
            value = nearness(np.hypot(*away), unit)
    (reached,) = np.nonzero((value >= threshold) & (value > 0))
    return i[reached], j[reached], value[reached]


def covering_pairs(
    first: Corners, second: Corners, i: Rows, j: Rows, *, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return the pairs of which the larger box covers enough of the smaller one: intersection over the smaller area.

    Parameters and returns are those of `overlapping_pairs`.
    """
    i, j, intersection = _intersecting(first, second, i, j)
    return _reaching(i, j, intersection, np.minimum(first.area[i], second.area[j]), threshold)


def _intersecting(first: Corners, second: Corners, i: Rows, j: Rows) -> tuple[Rows, Rows, FloatArray]:
    """Return the pairs that have more than an edge in common, with the area that they have."""
    # One axis after the other: pairs without a common width are gone before any height is gathered.
    width = np.minimum(first.right[i], second.right[j]) - np.maximum(first.left[i], second.left[j])
    reach = np.flatnonzero(width > 0)
    i, j, width = i[reach], j[reach], width[reach]
    height = np.minimum(first.bottom[i], second.bottom[j]) - np.maximum(first.top[i], second.top[j])
    reach = np.flatnonzero(height > 0)
    return i[reach], j[reach], width[reach] * height[reach]


def _reaching(
    i: Rows, j: Rows, intersection: FloatArray, whole: FloatArray, threshold: float
) -> tuple[Rows, Rows, FloatArray]:
    # Sides so short that areas round to 0 give 0 / 0, and NaN reaches no threshold.
    with np.errstate(invalid="ignore"):
        overlap = intersection / whole
    reach = np.flatnonzero(overlap >= threshold)
    return i[reach], j[reach], overlap[reach].astype(np.float64, copy=False)


# px; edges that are k px apart in decimals differ by more in binary.
DECIMAL_SLACK = 1e-6


def closeness(pixels: float) -> float:
    """Return the closeness of two boxes whose edges are up to `pixels` apart: 1 / (1 + pixels), with a slack.

    Closeness takes the place of IoU where boxes are matched by their edges: it lies in (0, 1], 1 for equal boxes, and
    orders pairs as their distance does. Thresholds of closeness are those of `close_pairs`.
    """
    return 1 / (1 + pixels + DECIMAL_SLACK)


def close_pairs(
    first: Corners, second: Corners, i: Rows, j: Rows, *, crowd: BoolArray | None = None, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose closeness reaches a threshold, with it.

    Parameters and returns are those of `overlapping_pairs`, with closeness for overlap: 1 / (1 + d), where d is the
    largest distance in px between an edge and its counterpart. Of crowds it is how far the first box reaches out of
    the second one: what lies inside is at distance 0, as its IoA is 1.
    """
    # Positive where the first box reaches further out.
    outward = (
        second.left[j] - first.left[i],
        second.top[j] - first.top[i],
        first.right[i] - second.right[j],
        first.bottom[i] - second.bottom[j],
    )
    distance = np.maximum.reduce([np.abs(edge) for edge in outward])
    if crowd is not None and crowd.any():
        distance = np.where(crowd[j], np.maximum.reduce([*outward, np.zeros(len(j))]), distance)
    value = 1 / (1 + distance)
    reach = np.flatnonzero(value >= threshold)
    return i[reach], j[reach], value[reach]


SIMILARITY = Similarity(BOXES, Corners.prepare, overlapping_pairs)
# Not to be asked for, as `KINDS` looks for `SIMILARITY` alone: the analysis of scale matches by it.
CLOSENESS = Similarity("closeness", Corners.prepare, close_pairs)
