"""What the four numbers of boxes in text labels are, by how likely boxes with these numbers are under each encoding.

Counting boxes that leave their image is not enough: small boxes stay inside whatever is read, and a few inverted ones
would outvote thousands. So each box counts by its likelihood. Boxes have some usual shape, are small rather than large,
lie anywhere in their image, often touch its border, and now and then one is simply wrong.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import CORNER_ORDER, BoolArray, FloatArray, to_xywh
from jaccard_eval.findings import Severity
from jaccard_eval.frozen import dataclass

LOW, HIGH = -0.01, 1.01  # normalised coordinates may leave 0..1 by this much, as Ultralytics' loader allows
PIXEL_LOOK = 2.0  # a coordinate above this is rather a pixel than a fraction gone astray
PIXEL = 1.0  # by which a box in pixels may leave its image: rounding, or coordinates counted from 1

USUAL = ("cxcywh", "xywh", "xyxy")  # encodings that are detected; the others are read when asked for
FIELDS = {
    "cxcywh": ("cx", "cy", "w", "h"),
    "xywh": ("x", "y", "w", "h"),
    "xyxy": ("x1", "y1", "x2", "y2"),
    "xxyy": ("x1", "x2", "y1", "y2"),
    "yxyx": ("y1", "x1", "y2", "x2"),
}

# Natural logarithms of odds. What leads by less than CLEAR is not settled: a factor of 1,000, because the boxes of one
# image resemble each other, and count as if each had been drawn anew.
CLEAR = 7.0
# Before any box is seen: fractions are centre-size, as YOLO has them; pixels are not, as no known tool writes that.
HABIT = {"norm": {"cxcywh": 0.0, "xyxy": -2.0, "xywh": -2.0}, "px": {"cxcywh": -2.0}}
IMPOSSIBLE = -1e12  # of an encoding under which most boxes are none

_LEAST_DENSITY = sys.float_info.min  # of a stray box; of numbers such as 1e100 it is 0, and has no logarithm
_STRAY = 0.005  # share of boxes that may have any numbers whatever
_LEAST_GOOD = 0.8  # share of boxes that must not be strays
_SHAPE = 0.8  # standard deviation of ln(width / height)
_FLAT = 0.1  # share of the image's side below which lengths are about equally likely
_LENGTHS = 2.4  # ln((1 + _FLAT) / _FLAT), which the density of lengths integrates to
_AT_BORDER = 0.04  # share of boxes that an exporter has cut at the border of the image
_BORDER = 0.0002  # share of the image's side within which a box touches it: the rounding of four decimals
_BEYOND = 0.2  # of its own side by which a detector may draw a box beyond the image
_OUTSIDE = 0.3  # how likely that is, compared with staying inside
_FOREIGN_SHARE = 0.1  # of normalised boxes that must contradict centre-size before the YOLO convention is given up
_MOST_ROWS = 20_000  # that are looked at; more make nothing clearer


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What boxes are seen in: units, sizes (n, 2) of their images, NaN where unknown, and how far the numbers reach."""

    units: str
    sizes: FloatArray
    reach: float

    @classmethod
    def of(cls, numbers: FloatArray, units: str, sizes: FloatArray) -> Frame:
        """Return the frame of the boxes with these `numbers` (n, columns)."""
        if units == "norm":
            return cls(units=units, sizes=np.ones((len(numbers), 2)), reach=1.0)
        # One box at 1e9 must not make all others look like points.
        reach = float(np.quantile(np.abs(numbers), 0.99)) if numbers.size else 1.0
        return cls(units=units, sizes=sizes, reach=max(reach, 1.0))

    def take(self, rows: npt.NDArray[np.int64]) -> Frame:
        """Return the frame of some of the boxes."""
        return Frame(units=self.units, sizes=self.sizes[rows], reach=self.reach)


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """An encoding; what to report about it if the boxes do not all prove it, and how loudly."""

    encoding: str
    assumption: str = ""
    severity: Severity = Severity.NOTE
    rivals: tuple[str, ...] = ()  # other encodings that the boxes do not rule out


def is_mostly_normalised(coords: FloatArray) -> bool:
    """Return whether at least half of the boxes have no number that looks like a pixel."""
    return int((np.abs(coords) <= PIXEL_LOOK).all(axis=1).sum()) * 2 >= len(coords)


def is_normalised(coords: FloatArray) -> BoolArray:
    """Return for each box (n, 4) whether it lies in 0..1 with every number, within the tolerance."""
    return np.asarray(((coords >= LOW) & (coords <= HIGH)).all(axis=1))


def distinct_rows(numbers: FloatArray, frame: Frame) -> npt.NDArray[np.int64]:
    """Return rows of numbers that differ visibly: a parked car in a thousand frames of a video is one witness."""
    with np.errstate(over="ignore"):
        cells = np.clip(np.round(numbers / frame.reach * 100), -1000, 1000).astype(np.int64)
    # Rows as one integer each: to find distinct rows of an array takes NumPy twenty times as long.
    _, rows = np.unique(cells @ 2001 ** np.arange(numbers.shape[1]), return_index=True)
    return np.sort(rows)[:: max(1, len(rows) // _MOST_ROWS)]


def outside_image(coords: FloatArray, encoding: str, role: str) -> tuple[BoolArray, BoolArray]:
    """Return which fractions (n, 4) leave 0..1, and which of these labels of the `role` must not hold."""
    outside = np.asarray(((coords < LOW) | (coords > HIGH)).any(axis=1))
    negative = (coords[:, 2:] < LOW).any(axis=1) & (encoding not in CORNER_ORDER)
    # A detector may draw a box beyond the image: up to the size of the image that is a warning. Ground truth is not
    # drawn so, and Ultralytics refuses it.
    refused = np.asarray(outside & ((role == "gt") | negative | (np.abs(coords) > PIXEL_LOOK).any(axis=1)))
    return outside, refused


def contradictions(coords: FloatArray, encoding: str, frame: Frame) -> BoolArray:
    """Return for each box (n, 4) whether it is inside out, or leaves its image, when read in an encoding."""
    with np.errstate(over="ignore", invalid="ignore"):
        xywh = to_xywh(coords, encoding)
        low, high = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
        allowed = -LOW if frame.units == "norm" else PIXEL
        # Comparisons with the NaN of an unknown size are false: such a box cannot leave its image at the far end.
        outside = (low < -allowed) | (high > frame.sizes + allowed) | (high < low)
    return np.asarray(outside.any(axis=1))


def fit(coords: FloatArray, encoding: str, frame: Frame, is_possible: BoolArray | None = None) -> float:
    """Return the log-likelihood of boxes (n, 4) read in an encoding.

    `is_possible` (n,) is false if something else contradicts the row, such as a score beyond 1.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        density = _densities(coords, encoding, frame)
    if is_possible is not None:
        density = np.where(is_possible, density, 0.0)
    if np.count_nonzero(density) < _LEAST_GOOD * len(density):
        return IMPOSSIBLE  # strays are exceptions: of two boxes, none can be one
    stray = max(frame.reach**-4.0, _LEAST_DENSITY)  # as likely anywhere
    return float(np.log((1 - _STRAY) * density + _STRAY * stray).sum())


def choose_encoding(coords: FloatArray, frame: Frame, *, is_scored: bool) -> EncodingChoice:
    """Return the encoding that the boxes (n, 4) support, and what has to be reported about it.

    Fractions are YOLO's where the boxes leave that possible. `is_scored` where the lines have a score: then pixels have
    no convention, so that corners and sizes that fit alike are an error; else they are corners if nothing contradicts.
    """
    rows = distinct_rows(coords, frame)
    seen = frame.take(rows)
    habit = HABIT[frame.units]
    fits = {encoding: fit(coords[rows], encoding, seen) + habit.get(encoding, 0.0) for encoding in USUAL}
    against = {encoding: int(contradictions(coords, encoding, frame).sum()) for encoding in USUAL}
    best = max(USUAL, key=lambda encoding: fits[encoding])
    rivals = tuple(encoding for encoding in USUAL if encoding != best and fits[best] - fits[encoding] < CLEAR)
    is_normalised_set = frame.units == "norm"
    if is_normalised_set and not is_scored:
        # A set of labels as large as YOLO's has strays of many kinds.
        is_foreign = best != "cxcywh" and not rivals and against["cxcywh"] > _FOREIGN_SHARE * len(coords)
        if not is_foreign:
            return EncodingChoice("cxcywh")
    if not rivals:
        return EncodingChoice(best, _minority(best, against, len(coords), frame.units))
    near = (best, *rivals)
    if is_normalised_set and "cxcywh" in near:
        others = ", ".join(spelled(encoding) for encoding in near if encoding != "cxcywh")
        return EncodingChoice("cxcywh", f"read as cx cy w h, as YOLO writes it, but the boxes also fit as {others}")
    # Centre-size and left-top-size differ at the borders alone, where small sets have no box; nobody writes the former.
    if is_scored and near != ("xywh", "cxcywh"):
        return EncodingChoice(best, "", Severity.ERROR, rivals)
    if "xyxy" in near and against["xyxy"] == 0:
        text = (
            f"only {len(coords):,} boxes, all with x2 >= x1 and y2 >= y1: read as x1 y1 x2 y2, but x y w h is possible"
        )
        return EncodingChoice("xyxy", text, Severity.WARNING)
    text = f"read as {spelled(best)}, but the boxes also fit as {spelled(rivals[0])}"
    return EncodingChoice(best, text, Severity.WARNING, rivals)


def spelled(encoding: str) -> str:
    """Return an encoding as messages name it: "cx cy w h"."""
    return " ".join(FIELDS[encoding])


def _minority(best: str, against: dict[str, int], n: int, units: str) -> str:
    """Report how many boxes contradict what the others prove, or the convention; nothing if none does."""
    usual = "cxcywh" if units == "norm" else "xywh"
    fewest = min(USUAL, key=lambda encoding: against[encoding])
    if against[fewest] < against[best] <= (1 - _LEAST_GOOD) * n:
        return (
            f"{against[best]:,} of {n:,} boxes are inverted or leave their image as {spelled(best)}, "
            f"{against[fewest]:,} as {spelled(fewest)}; the others are clearly {spelled(best)}, so all are"
            " read that way"
        )
    if best != usual and (units == "norm" or best == "cxcywh"):
        return (
            f"{against[usual]:,} of {n:,} boxes would leave their image as {spelled(usual)}, "
            f"{against[best]:,} as {spelled(best)}; read as {spelled(best)}"
        )
    return ""


def _densities(coords: FloatArray, encoding: str, frame: Frame) -> FloatArray:
    """Return how likely each box is, (n,), in 1/units**4; 0 where it is none. All encodings here have determinant 1."""
    xywh = to_xywh(coords, encoding)
    low, side = xywh[:, :2], xywh[:, 2:]  # (n, 2) each
    known = np.isfinite(frame.sizes)
    # Images of unknown size are as large as the boxes require. Centre-size borrows the extent of left-top-size: which
    # of the two reaches farther depends on where objects like to be, and proves nothing.
    far = coords[:, 2:] if encoding == "xyxy" else coords[:, :2] + coords[:, 2:]
    extent = np.quantile(far, 0.98, axis=0) if len(far) else np.ones(2)
    sizes = np.where(known, frame.sizes, np.maximum(extent, 1e-9))
    length = np.maximum(side, 0.002 * sizes)  # a box of no width is as likely as a thin one, not infinitely more
    shape = np.log(length / sizes)
    density = np.exp(-((shape[:, 0] - shape[:, 1]) ** 2) / (2 * _SHAPE**2)) / (_SHAPE * np.sqrt(2 * np.pi))
    density = density / (length + _FLAT * sizes).prod(axis=1) / _LENGTHS**2
    room = np.maximum(sizes - length, 0) + 0.02 * sizes
    width = _BORDER * sizes if frame.units == "norm" else np.full_like(sizes, 0.5)
    touching = (np.abs(low) <= width) + 1.0 * (known & (np.abs(low + side - sizes) <= width))
    place = (1 - _AT_BORDER) / room + _AT_BORDER / 2 * touching / (2 * width)
    beyond = np.maximum(-low, np.where(known, low + side - sizes, 0))
    tolerated = -LOW if frame.units == "norm" else PIXEL
    place = np.where(beyond > tolerated, np.where(known, _OUTSIDE, 1.0) / room, place)
    place = np.where((beyond > tolerated) & (beyond > _BEYOND * side), 0, place)
    good = (side >= 0).all(axis=1) & np.isfinite(coords).all(axis=1)
    return np.asarray(np.where(good, density * place.prod(axis=1), 0.0))
