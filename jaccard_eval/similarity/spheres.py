"""Spheres: how near a point in space is to the centre of one, for its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Words
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.signature import digest_each
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows, Similarity


@dataclass(frozen=True, slots=True, eq=False)
class Spheres:
    """A column of n spheres; of detections, points without a size."""

    rows: FloatArray  # (n, 4): x, y and z of the centre, and the diameter, in the units of the file

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: npt.NDArray[Any]) -> Spheres:
        """Return the spheres of some rows, in their order."""
        return Spheres(self.rows[rows])

    def joined(self, others: Sequence[Spheres]) -> Spheres:
        """Return these spheres, then those of the others."""
        return Spheres(np.concatenate([part.rows for part in (self, *others)]))

    def bounds(self) -> FloatArray:
        """Return left, top, width and height of each, seen along z; (n, 4)."""
        return np.concatenate((self.rows[:, :2] - self.rows[:, 3:] / 2, self.rows[:, [3, 3]]), axis=1)

    def hashes(self) -> Words:
        """Digest each, (n, 2)."""
        return digest_each(self.rows)

    def scaled(self, xy: FloatArray) -> Spheres:
        """Multiply x and y by factors (n, 2); a sphere stays one."""
        return Spheres(self.rows * np.pad(xy, ((0, 0), (0, 2)), constant_values=1.0))

    def shifted(self, xy: FloatArray) -> Spheres:
        """Add distances (n, 2) to x and y."""
        return Spheres(self.rows + np.pad(xy, ((0, 0), (0, 2))))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the rows."""
        return {"spheres": self.rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Spheres:
        """Make spheres of what `to_arrays` gave; refuse all others."""
        rows = arrays.get("spheres")
        if arrays.keys() != {"spheres"} or rows is None or rows.dtype != np.float64 or rows.shape[1:] != (4,):
            raise UsageError("spheres are the array spheres of float64, (n, 4)")
        if not np.isfinite(rows).all():
            raise UsageError("spheres must be finite: x, y, z and diameter")
        return cls(rows)


def _rows_of(boxes: BoxTable, _: Protocol) -> FloatArray:
    shapes: object = boxes.shapes
    return shapes.rows if isinstance(shapes, Spheres) else np.zeros((len(boxes), 4))


def near_pairs(
    first: FloatArray,
    second: FloatArray,
    i: Rows,
    j: Rows,
    *,
    crowd: BoolArray | None = None,  # which is as far away as any other sphere
    threshold: float = 0.0,
) -> tuple[Rows, Rows, FloatArray]:
    """Return the pairs whose centres are near enough, with 1 less their distance in diameters of the second sphere.

    More than 0.5 is in that sphere, by squares as LUNA16 compares them: a root would decide by its last bit.
    """
    away = ((first[i, :3] - second[j, :3]) ** 2).sum(axis=1)
    is_within = away < (second[j, 3] / 2) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        value = 1 - np.sqrt(away) / second[j, 3]
    value = np.where(is_within, np.maximum(value, np.nextafter(0.5, 1)), np.minimum(value, 0.5))
    (reached,) = np.nonzero((value >= threshold) & (value > 0))
    return i[reached], j[reached], value[reached]


SIMILARITY = Similarity("spheres", _rows_of, near_pairs, shapes=Spheres)
