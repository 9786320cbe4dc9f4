"""Quadrilaterals such as oriented boxes: their corners, and the exact area that two share, by clipping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes, Words
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.signature import digest_each
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows, Similarity


@dataclass(frozen=True, slots=True, eq=False)
class Quads:
    """A column of n quadrilaterals."""

    corners: FloatArray  # (n, 4, 2): x and y in px, in their order around the outline, either way

    @classmethod
    def rotated(cls, boxes: FloatArray, angle: FloatArray) -> Quads:
        """Make rectangles of centre and sizes (n, 4), turned by an angle (n,) in radians, from x towards y."""
        centre, half = boxes[:, None, :2], boxes[:, 2:] / 2
        along = half[:, :1] * np.stack((np.cos(angle), np.sin(angle)), axis=1)
        across = half[:, 1:] * np.stack((-np.sin(angle), np.cos(angle)), axis=1)
        return cls(centre + np.stack((-along - across, along - across, along + across, across - along), axis=1))

    def __len__(self) -> int:
        return len(self.corners)

    def take(self, rows: npt.NDArray[Any]) -> Quads:
        """Return the quadrilaterals of some rows, in their order."""
        return Quads(self.corners[rows])

    def joined(self, others: Sequence[Quads]) -> Quads:
        """Return these quadrilaterals, then those of the others."""
        return Quads(np.concatenate([part.corners for part in (self, *others)]))

    def bounds(self) -> FloatArray:
        """Return left, top, width and height of each, (n, 4)."""
        low, high = self.corners.min(axis=1), self.corners.max(axis=1)
        return np.concatenate((low, high - low), axis=1)

    def areas(self) -> FloatArray:
        """Return the area within each outline, (n,); of one that crosses itself that of its two triangles."""
        return Pieces.of(self).totals()

    def hashes(self) -> Words:
        """Digest each, (n, 2)."""
        return digest_each(self.corners)

    def scaled(self, xy: FloatArray) -> Quads:
        """Multiply x and y by factors (n, 2)."""
        return Quads(self.corners * xy[:, None])

    def shifted(self, xy: FloatArray) -> Quads:
        """Add distances (n, 2) to x and y."""
        return Quads(self.corners + xy[:, None])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the corners."""
        return {"corners": self.corners}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Quads:
        """Make quadrilaterals of what `to_arrays` gave; refuse all others."""
        corners = arrays.get("corners")
        if arrays.keys() != {"corners"} or corners is None or corners.dtype != np.float64:
            raise UsageError("quadrilaterals are the array corners of float64")
        if corners.shape[1:] != (4, 2) or not np.isfinite(corners).all():
            raise UsageError("quadrilaterals are four finite corners each, (n, 4, 2)")
        return cls(corners)


def turns(corners: FloatArray) -> FloatArray:
    """Return how far each corner (n, 4) turns: the cross product of the sides that meet there, in px²."""
    sides = np.roll(corners, -1, axis=1) - corners
    before = np.roll(sides, 1, axis=1)
    found: FloatArray = before[..., 0] * sides[..., 1] - before[..., 1] * sides[..., 0]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class OutlineKinds:
    """What kind of outline each quadrilateral has, (n,) each."""

    is_flat: BoolArray  # no area: repeated corners, or all on a line
    is_crossing: BoolArray  # two opposite sides cross
    is_dented: BoolArray  # one corner points inwards

    @classmethod
    def of(cls, corners: FloatArray) -> OutlineKinds:
        """Look at the turns of the corners: two against two is a crossing, one against three a dent."""
        turned = turns(corners)
        # What is left of a turn after rounding is none: corners on one line are written with a few decimals.
        size = np.ptp(corners, axis=1).max(axis=1)
        noise = (1e-12 * size * np.abs(corners).max(axis=(1, 2)))[:, None]
        left, right = (turned > noise).sum(axis=1), (turned < -noise).sum(axis=1)
        return cls((left == 0) & (right == 0), (left == 2) & (right == 2), np.minimum(left, right) == 1)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Convex pieces of quadrilaterals: itself where it is convex, else two triangles, whose first corner is repeated.

    Those of a quadrilateral stand together; together they are what lies within its outline.
    """

    corners: FloatArray  # (m, 4, 2), turning left
    area: FloatArray  # (m,)
    owner: Rows  # (m,), ascending
    first: Rows  # (n + 1,): the pieces of quadrilateral i begin at first[i]

    @classmethod
    def of(cls, quads: Quads) -> Pieces:
        """Cut what is not convex at its dent, or where it crosses itself."""
        corners = quads.corners
        # At an origin of its own no digits are lost far from that of the image.
        near = corners - corners[:, :1]
        turned = turns(near)
        bent = np.flatnonzero((turned.min(axis=1, initial=0.0) < 0) & (turned.max(axis=1, initial=0.0) > 0))
        n_pieces = np.ones(len(corners), dtype=np.int64)
        n_pieces[bent] = 2
        owner = np.repeat(np.arange(len(corners)), n_pieces)
        first = np.concatenate(([0], np.cumsum(n_pieces)))
        pieces = corners[owner]
        if len(bent):
            pieces[first[bent]], pieces[first[bent] + 1] = _triangles(corners[bent], turned[bent])
        area = signed_areas(pieces)
        return cls(np.where((area < 0)[:, None, None], pieces[:, ::-1], pieces), np.abs(area), owner, first)

    def totals(self) -> FloatArray:
        """Return the area of each quadrilateral, (n,)."""
        found = np.bincount(self.owner, weights=self.area, minlength=len(self.first) - 1)
        return found.astype(np.float64, copy=False)


def signed_areas(corners: FloatArray) -> FloatArray:
    """Return the area of quadrilaterals (n, 4, 2), negative where they turn right."""
    one, other = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    # Half the cross product of the diagonals.
    area: FloatArray = (one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]) / 2
    return area


def _triangles(corners: FloatArray, turned: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut quadrilaterals that are not convex into two triangles each."""
    n_left, n_right = (turned > 0).sum(axis=1), (turned < 0).sum(axis=1)
    crossing = (n_left == 2) & (n_right == 2)
    # Begin with the dent, or where the first of two corners that turn alike comes: its side is one of those that cross.
    alike = (turned > 0) == np.roll(turned > 0, -1, axis=1)
    odd = np.where(n_left <= n_right, 1, -1)[:, None] * turned > 0
    start = np.where(crossing, np.argmax(~alike, axis=1), np.argmax(odd, axis=1))
    a, b, c, d = np.take_along_axis(corners, (start[:, None] + np.arange(4))[:, :, None] % 4, axis=1).swapaxes(0, 1)
    # From the dent to the opposite corner; where sides cross, both triangles end there instead.
    ab, cd = b - a, d - c
    across = ab[:, 0] * cd[:, 1] - ab[:, 1] * cd[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = ((c - a)[:, 0] * cd[:, 1] - (c - a)[:, 1] * cd[:, 0]) / across
        meeting = a + share[:, None] * ab
    crossed = crossing[:, None]
    one = np.stack((a, a, np.where(crossed, meeting, b), np.where(crossed, d, c)), axis=1)
    other = np.stack((np.where(crossed, c, a), np.where(crossed, c, a), np.where(crossed, meeting, c),
                      np.where(crossed, b, d)), axis=1)  # fmt: skip
    return one, other


def areas_of(shapes: Shapes, xywh: FloatArray) -> FloatArray:
    """Return the areas of quadrilaterals, of other shapes those of their boxes, as predictions have them."""
    return shapes.areas() if isinstance(shapes, Quads) else xywh[:, 2] * xywh[:, 3]


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
