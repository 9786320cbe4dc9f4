"""Overlap of quadrilaterals, such as oriented boxes: the exact area that they share, by clipping one by the other."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows, Similarity
from jaccard_eval.similarity.quads import Pieces, Quads

_PAIRS_AT_ONCE = 1 << 12  # that are clipped at once: more leave the cache


@dataclass(frozen=True, slots=True, eq=False)
class QuadSide:
    """Quadrilaterals of one side with what decides whether two of them can overlap at all; columns (n,)."""

    pieces: Pieces
    area: FloatArray
    left: FloatArray
    top: FloatArray
    right: FloatArray
    bottom: FloatArray

    @classmethod
    def of(cls, quads: Quads) -> QuadSide:
        """Measure quadrilaterals."""
        pieces = Pieces.of(quads)
        (left, top), (right, bottom) = quads.corners.min(axis=1).T, quads.corners.max(axis=1).T
        return cls(pieces, pieces.totals(), left, top, right, bottom)

    @classmethod
    def prepare(cls, boxes: BoxTable, protocol: Protocol) -> QuadSide:
        """Measure the quadrilaterals of a table."""
        return cls.of(quads_of(boxes))


def quads_of(boxes: BoxTable) -> Quads:
    """Return the quadrilaterals of a table; a table without rows need not carry any."""
    shapes: object = boxes.shapes
    return shapes if isinstance(shapes, Quads) else Quads(np.zeros((0, 4, 2)))


def quad_pairs(
    first: QuadSide, second: QuadSide, i: Rows, j: Rows, *, crowd: BoolArray | None = None, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose overlap reaches a threshold, in their order, with the overlap.

    It is the intersection over the union; where `crowd` marks a row of `second`, over the area of the first one. What
    has no area overlaps nothing.
    """
    # One axis after the other: pairs without a common width are gone before any height is gathered.
    width = np.minimum(first.right[i], second.right[j]) - np.maximum(first.left[i], second.left[j])
    (meets,) = np.nonzero(width > 0)
    i, j, width = i[meets], j[meets], width[meets]
    height = np.minimum(first.bottom[i], second.bottom[j]) - np.maximum(first.top[i], second.top[j])
    one, other = first.area[i], second.area[j]
    is_crowd = np.zeros(len(i), dtype=np.bool_) if crowd is None else crowd[j]
    # They share no more than the smaller one has, nor than the boxes around them do, and cover at least the larger
    # one: most pairs are out before they are clipped.
    most = np.minimum(np.minimum(one, other), width * height)
    least = np.where(is_crowd, one, np.maximum(one, other))
    (chosen,) = np.nonzero((most > 0) & (most >= threshold * least * (1 - 1e-9)))
    i, j, one, other, is_crowd = i[chosen], j[chosen], one[chosen], other[chosen], is_crowd[chosen]
    shared = shared_areas(first.pieces, second.pieces, i, j)
    covered = np.where(is_crowd, one, (one + other) - shared)
    # Rounding may put a copy of a quadrilateral above 1.
    overlap = np.minimum(shared / covered, 1.0)
    (reached,) = np.nonzero((overlap >= threshold) & (shared > 0))
    return i[reached], j[reached], overlap[reached]


def covering_quads(
    first: QuadSide, second: QuadSide, i: Rows, j: Rows, *, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return what `quad_pairs` does, of the intersection over the area of the smaller one."""
    meets = np.minimum(first.right[i], second.right[j]) > np.maximum(first.left[i], second.left[j])
    meets &= np.minimum(first.bottom[i], second.bottom[j]) > np.maximum(first.top[i], second.top[j])
    smaller = np.minimum(first.area[i], second.area[j])
    (chosen,) = np.nonzero(meets & (smaller > 0))
    i, j = i[chosen], j[chosen]
    overlap = np.minimum(shared_areas(first.pieces, second.pieces, i, j) / smaller[chosen], 1.0)
    (reached,) = np.nonzero((overlap >= threshold) & (overlap > 0))
    return i[reached], j[reached], overlap[reached]


def shared_areas(first: Pieces, second: Pieces, i: Rows, j: Rows) -> FloatArray:
    """Return the area that the quadrilaterals i of one side and j of the other have in common, pair by pair."""
    shared = np.zeros(len(i))
    for start in range(0, len(i), _PAIRS_AT_ONCE):
        chosen = slice(start, start + _PAIRS_AT_ONCE)
        n_first, n_second = np.diff(first.first)[i[chosen]], np.diff(second.first)[j[chosen]]
        # Each piece with each piece: of convex ones, nearly all, there is one of either.
        n = n_first * n_second
        pair = np.repeat(np.arange(len(n)), n)
        turn = np.arange(len(pair)) - np.repeat(np.cumsum(n) - n, n)
        one = first.first[i[chosen]][pair] + turn // n_second[pair]
        other = second.first[j[chosen]][pair] + turn % n_second[pair]
        areas = _convex_intersections(first.corners[one], second.corners[other])
        shared[chosen] = np.bincount(pair, weights=areas, minlength=len(n))
    return shared


def _convex_intersections(subject: FloatArray, clip: FloatArray) -> FloatArray:
    """Return the areas that convex quadrilaterals (n, 4, 2), which turn left, have in common, row by row.

    Source: Sutherland and Hodgman (1974), "Reentrant Polygon Clipping", with polygons of one length: half of the
    plane after the other takes one corner more at most, so that a polygon which it does not cut repeats its last one.
    """
    area = np.zeros(len(subject))
    rows = np.arange(len(subject))
    # At a corner of one of them no digits are lost far from the origin of the image. Corners first, (4, n).
    origin = clip[:, :1]
    x, y = np.ascontiguousarray((subject - origin).transpose(2, 1, 0))
    clip_x, clip_y = np.ascontiguousarray((clip - origin).transpose(2, 1, 0))
    for k in range(4):
        side_x, side_y = clip_x[k - 3] - clip_x[k], clip_y[k - 3] - clip_y[k]
        height = side_x * (y - clip_y[k]) - side_y * (x - clip_x[k])
        inside = height >= 0
        n_inside = np.count_nonzero(inside, axis=0)
        x, y = np.concatenate((x, x[-1:])), np.concatenate((y, y[-1:]))
        (cut,) = np.nonzero((n_inside > 0) & (n_inside < len(inside)))
        if len(cut):
            x[:, cut], y[:, cut] = _cut(x[:, cut], y[:, cut], height[:, cut], inside[:, cut])
        (left,) = np.nonzero(n_inside)
        if len(left) < len(rows):
            rows, x, y, clip_x, clip_y = rows[left], x[:, left], y[:, left], clip_x[:, left], clip_y[:, left]
    # Corner after corner, so that the order of the sum is that of every machine.
    total = np.zeros(len(rows))
    for k in range(len(x)):
        total += x[k - 1] * y[k] - x[k] * y[k - 1]
    area[rows] = np.maximum(total / 2, 0)
    return area


def _cut(x: FloatArray, y: FloatArray, height: FloatArray, inside: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Cut polygons where their height above a line is 0; x and y (m + 1, n) have room for the corner that is added.

    The corners below it stand together: they become the point where the outline leaves, and behind them comes the one
    where it enters again. `height` and `inside` (m, n) are those of the corners that there are.
    """
    m, n = inside.shape
    columns = np.arange(n)
    goes_on = np.roll(inside, -1, axis=0)
    last_inside, last_outside = np.argmax(inside & ~goes_on, axis=0), np.argmax(~inside & goes_on, axis=0)

    def crossing(at: Rows) -> tuple[FloatArray, FloatArray]:
        following = (at + 1) % m
        one, other = height[at, columns], height[following, columns]
        share = one / (one - other)
        from_x, from_y = x[at, columns], y[at, columns]
        return from_x + share * (x[following, columns] - from_x), from_y + share * (y[following, columns] - from_y)

    leaves, enters = crossing(last_inside), crossing(last_outside)
    # Corners behind the last one outside move on by one place.
    place = np.arange(m + 1)[:, None]
    moved = place > last_outside
    stays = np.where(moved, np.concatenate((inside[:1], inside)), np.concatenate((inside, inside[:1])))
    found = []
    for values, leaving, entering in zip((x, y), leaves, enters, strict=True):
        shifted = np.where(moved, np.concatenate((values[:1], values[:-1])), values)
        corners = np.where(stays, shifted, leaving)
        corners[last_outside + 1, columns] = entering
        found.append(corners)
    return found[0], found[1]


SIMILARITY = Similarity("obb", QuadSide.prepare, quad_pairs, shapes=Quads)
