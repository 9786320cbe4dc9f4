"""Quadrilaterals: oriented boxes by their four corners, and the area that two of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes, Words
from jaccard_eval.data.signature import digest_each
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows


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
