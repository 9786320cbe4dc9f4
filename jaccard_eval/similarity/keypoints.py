"""Object keypoint similarity (OKS): how near the points of a pose are to those of an object, for the object's size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Words
from jaccard_eval.data.known_protocols import RULES, SIGMAS
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.signature import digest_each
from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.native import calls as native
from jaccard_eval.similarity import Rows, Similarity

COCO_SIGMAS = SIGMAS["coco"]  # of its 17 points from nose to ankles, in units of the square root of the area
# From nose to ankles: what is left is right.
COCO_FLIPPED = (0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15)
BLOCK_POSES = 1 << 12  # whose points are looked at together
_WORD = re.compile("left|right")
# A letter that may mean a side: it begins or ends a word or the name, or is a capital behind a small letter.
_LETTER = re.compile(r"(?<![A-Za-z])[LRlr]|[LRlr](?![A-Za-z])|(?<=[a-z])[LR]")
_OTHER_SIDE = {"left": "right", "right": "left", "l": "r", "r": "l"}


def other_sides(names: Sequence[str], n: int) -> tuple[int, ...] | None:
    """Return for each of n points that of the other side, itself where it has none; None where no sides are known.

    The other side is a point of the same name with left and right exchanged, or one letter for these.

    >>> other_sides(("nose", "left_eye", "right_eye"), 3)
    (0, 2, 1)
    >>> other_sides(("LEar", "REar", "Neck"), 3)
    (1, 0, 2)
    """
    if not names and n == len(COCO_FLIPPED):
        return COCO_FLIPPED
    place = {name.lower(): at for at, name in enumerate(names)}
    order = tuple(
        next((place[other] for other in _with_sides_exchanged(name) if place.get(other, at) != at), at)
        for at, name in enumerate(names)
    )
    known = len(names) == n and order != tuple(range(n)) and all(order[order[at]] == at for at in range(n))
    return order if known else None


def _with_sides_exchanged(name: str) -> Iterator[str]:
    """Yield what a point of the other side may be called, in small letters: by words, else by one letter."""
    yield _WORD.sub(lambda side: _OTHER_SIDE[side[0]], name.lower())
    for letter in _LETTER.finditer(name):
        yield f"{name[: letter.start()]}{_OTHER_SIDE[letter[0].lower()]}{name[letter.end() :]}".lower()


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints:
    """A column of n poses of k points each."""

    points: FloatArray  # (n, k, 3): x, y in px, and how well the point is seen; 0: not labelled

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: npt.NDArray[Any]) -> Keypoints:
        """Return the poses of some rows, in their order."""
        return Keypoints(self.points[rows])

    def joined(self, others: Sequence[Keypoints]) -> Keypoints:
        """Return these poses, then those of the others."""
        parts = [part for part in (self, *others) if len(part)] or [self]
        counts = sorted({part.points.shape[1] for part in parts})
        if len(counts) > 1:
            raise UsageError(f"poses of {' and '.join(map(str, counts))} points cannot be joined")
        return Keypoints(np.concatenate([part.points for part in parts]))

    def bounds(self) -> FloatArray:
        """Return left, top, width and height of the points in px, (n, 4), those that are not labelled included."""
        if not self.points.size:
            return np.zeros((len(self), 4))
        bounds = np.empty((len(self), 4))
        # NumPy is slow along an axis as short as that of the points: a block that stays in the cache is turned.
        for start in range(0, len(self), BLOCK_POSES):
            xy = np.ascontiguousarray(self.points[start : start + BLOCK_POSES, :, :2].transpose(1, 2, 0))
            low, high = xy.min(axis=0), xy.max(axis=0)
            bounds[start : start + BLOCK_POSES] = np.concatenate((low, high - low)).T
        return bounds

    def hashes(self) -> Words:
        """Digest each pose, (n, 2)."""
        return digest_each(self.points)

    def scaled(self, xy: FloatArray) -> Keypoints:
        """Multiply x and y by factors (n, 2)."""
        return Keypoints(self.points * np.pad(xy, ((0, 0), (0, 1)), constant_values=1.0)[:, None])

    def shifted(self, xy: FloatArray) -> Keypoints:
        """Add distances (n, 2) to x and y."""
        return Keypoints(self.points + np.pad(xy, ((0, 0), (0, 1)))[:, None])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the points."""
        return {"points": self.points}

    def ordered(self, order: Sequence[int]) -> Keypoints:
        """Return the poses with their points in another order."""
        return Keypoints(self.points[:, list(order)])

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Keypoints:
        """Make poses of what `to_arrays` gave; refuse all others."""
        points = arrays.get("points")
        if arrays.keys() != {"points"} or points is None or points.dtype != np.float64 or points.ndim != 3:
            raise UsageError("keypoints are the array points of float64, (n, k, 3)")
        if points.shape[2] != 3 or not np.isfinite(points).all():
            raise UsageError("keypoints must be finite, three numbers each")
        return cls(points)


@dataclass(frozen=True, slots=True, eq=False)
class PoseSide:
    """Poses of one side with what OKS needs besides the points."""

    points: FloatArray  # (n, k, 3)
    area: FloatArray  # (n,), in px²
    zone: FloatArray  # (n, 4): left, top, right, bottom of the box grown by its own size on every side
    variances: FloatArray  # (k,)

    @classmethod
    def prepare(cls, boxes: BoxTable, protocol: Protocol) -> PoseSide:
        """Take the poses of a table under the rules of a protocol."""
        shapes: object = boxes.shapes
        points = shapes.points if isinstance(shapes, Keypoints) else np.zeros((len(boxes), 0, 3))
        sigmas = protocol.sigmas or COCO_SIGMAS
        x, y, width, height = boxes.xywh.T
        zone = np.stack((x - width, y - height, x + width * 2, y + height * 2), axis=1)
        variances = (np.array(sigmas) * 2) ** 2
        if len(variances) == 1:  # of all points
            variances = np.repeat(variances, points.shape[1])
        return cls(points, protocol.object_areas(boxes), zone, variances)


def pose_pairs(
    first: PoseSide,
    second: PoseSide,
    i: Rows,
    j: Rows,
    *,
    crowd: BoolArray | None = None,  # which is compared like any other pose
    threshold: float = 0.0,
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose OKS reaches a threshold, in their order, with it.

    The points that `second` has labelled are compared; where it has none, those of the first box outside of the zone
    around the second one are far by their distance from it.

    Source: pycocotools 2.0.11 ``cocoeval.py``, ``computeOks``.
    """
    compared = native.compare_poses(
        (first.points, second.points), (second.area, second.zone, second.variances), i, j, threshold
    )
    oks = np.zeros(len(i))
    if compared is None:
        for chosen, error in _errors(first, second, i, j):
            oks[chosen] = _likeness(error)
    else:
        kept, number, errors = compared
        for n in np.unique(number).tolist():
            (rows,) = np.nonzero(number == n)
            oks[kept[rows]] = _likeness(np.ascontiguousarray(errors[rows, :n]))
    (reached,) = np.nonzero((oks >= threshold) & (oks > 0))
    return i[reached], j[reached], oks[reached]


def _likeness(error: FloatArray) -> FloatArray:
    likeness: FloatArray = np.exp(-error).sum(axis=1) / max(error.shape[1], 1)
    return likeness


def _errors(first: PoseSide, second: PoseSide, i: Rows, j: Rows) -> Iterator[tuple[Rows, FloatArray]]:
    """Yield pairs with as many points each, and how far their points are apart.

    They are summed together: NumPy adds eight and more numbers in another order than fewer.
    """
    labelled = second.points[:, :, 2] > 0
    n_labelled = np.count_nonzero(labelled, axis=1)
    for n in np.unique(n_labelled[j]).tolist():
        (chosen,) = np.nonzero(n_labelled[j] == n)
        one, other = i[chosen], j[chosen]
        points = first.points[one]
        if n:
            # The labelled points of a pose, first to last.
            at = np.nonzero(labelled[other])[1].reshape(len(other), n)
            away = np.take_along_axis(points[:, :, :2] - second.points[other][:, :, :2], at[:, :, None], axis=1)
            variances = second.variances[at]
        else:
            zone = second.zone[other][:, None]
            away = np.maximum(zone[..., :2] - points[..., :2], 0) + np.maximum(points[..., :2] - zone[..., 2:], 0)
            variances = np.broadcast_to(second.variances, away.shape[:2])
        squares = away[..., 0] ** 2 + away[..., 1] ** 2
        # In this order, as there: each division rounds.
        error = squares / variances / (second.area[other] + np.spacing(1))[:, None] / 2
        yield chosen, error


def no_sigmas(poses: Keypoints, protocol: Protocol) -> str:
    """Return why poses have no sigmas: they are never guessed."""
    n_points, n_sigmas = poses.points.shape[1], len(protocol.sigmas or COCO_SIGMAS)
    if not len(poses) or n_sigmas in (1, n_points):
        return ""
    whose = "given" if protocol.sigmas else "of COCO"
    return f"poses have {n_points} keypoints, but there are {n_sigmas} sigmas {whose}."


def _remedy(poses: Keypoints) -> Fix:
    known = [name for name, sigmas in SIGMAS.items() if len(sigmas) == poses.points.shape[1]]
    words, options = "Pass {sigmas}, one per keypoint, or one number for all.", dict[str, Value](sigmas=None)
    for name in known:
        words += f" If the points are those of {name}, pass {{{'protocol' if name in RULES else f'sigmas:{name}'}}}."
        options |= {"protocol": name} if name in RULES else {}
    return Fix.missing(words, **options)


SIMILARITY = Similarity("keypoints", PoseSide.prepare, pose_pairs, shapes=Keypoints, refuses=no_sigmas, remedy=_remedy)
