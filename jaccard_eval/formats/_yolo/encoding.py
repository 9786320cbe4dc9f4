"""Units and encoding of text boxes: pixels or fractions; corners, left-top-size or centre-size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, to_xywh

LOW, HIGH = -0.01, 1.01  # normalised coordinates may leave 0..1 by this much, as Ultralytics' loader allows
PIXEL_LOOK = 2.0  # a coordinate above this is rather a pixel than a fraction gone astray
PIXEL = 1.0  # by which a box in pixels may leave its image: rounding, or coordinates counted from 1
MIN_EVIDENCE = 20  # boxes; fewer may have x2 > x1 and y2 > y1 by chance
STRAY_SHARE = 0.02  # boxes that may contradict an encoding and still be mistakes of their own
CLEAR_SHARE = 0.05  # boxes that must leave the image before centre-size is ruled out without a doubt
FOREIGN_SHARE = 0.1  # normalised boxes that must leave the image before another encoding than centre-size is tried

USUAL = ("cxcywh", "xywh", "xyxy")  # encodings that are found by looking; the others are read when asked for
FIELDS = {
    "cxcywh": ("cx", "cy", "w", "h"),
    "xywh": ("x", "y", "w", "h"),
    "xyxy": ("x1", "y1", "x2", "y2"),
    "xxyy": ("x1", "x2", "y1", "y2"),
    "yxyx": ("y1", "x1", "y2", "x2"),
}


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """An encoding; what was assumed, where the data does not prove it; and whether it can well be wrong."""

    encoding: str
    assumption: str = ""
    is_doubtful: bool = False


def is_mostly_normalised(coords: FloatArray) -> bool:
    """Return whether at least half of the boxes have no number that looks like a pixel."""
    return int((np.abs(coords) <= PIXEL_LOOK).all(axis=1).sum()) * 2 >= len(coords)


def is_normalised(coords: FloatArray) -> BoolArray:
    """Return for each box (n, 4) whether it lies in 0..1 with every number, within the tolerance."""
    return np.asarray(((coords >= LOW) & (coords <= HIGH)).all(axis=1))


def count_leaving(coords: FloatArray, encoding: str, sizes: FloatArray | None = None) -> int:
    """Count boxes that leave the image or turn inside out when read in an encoding.

    Parameters
    ----------
    coords : ndarray of float64, shape (n, 4)
    encoding : {"xywh", "xyxy", "cxcywh", "xxyy", "yxyx"}
    sizes : ndarray of float64, shape (n, 2), optional
        Width and height of each box's image, NaN where unknown; left out for normalised coordinates.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        xywh = to_xywh(coords, encoding)
        low, high = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
    lowest, highest = (LOW, np.array(HIGH)) if sizes is None else (-PIXEL, sizes + PIXEL)
    return int(((low < lowest) | (high > highest) | (high < low)).any(axis=1).sum())


def choose_normalised(coords: FloatArray) -> EncodingChoice:
    """Return centre-size, the YOLO convention, unless many boxes contradict it and another encoding fits them."""
    leaving = {encoding: count_leaving(coords, encoding) for encoding in USUAL}
    best = min(USUAL, key=lambda encoding: leaving[encoding])
    n = len(coords)
    if n >= MIN_EVIDENCE and leaving["cxcywh"] > FOREIGN_SHARE * n and leaving[best] <= STRAY_SHARE * n:
        assumption = f"{leaving['cxcywh']:,} of {n:,} boxes would leave the image as cx cy w h; read as {best}"
        return EncodingChoice(best, assumption, is_doubtful=True)
    return EncodingChoice("cxcywh")


def choose_pixels(coords: FloatArray, sizes: FloatArray) -> EncodingChoice:
    """Return the encoding of boxes in pixels that the whole set supports.

    Corners, when x2 >= x1 and y2 >= y1 throughout (but for 2 % strays) and no other reading fits the images better:
    boxes of another encoding do that by chance only in small sets. Else left-top-size, unless the images are known and
    fewer boxes leave them as centre-size. What remains possible is said.

    Parameters
    ----------
    coords : ndarray of float64, shape (n, 4)
    sizes : ndarray of float64, shape (n, 2)
        Width and height of each box's image; NaN where unknown.
    """
    n = len(coords)
    leaving = {encoding: count_leaving(coords, encoding, sizes) for encoding in USUAL}
    if leaving["xyxy"] - min(leaving.values()) <= STRAY_SHARE * n:
        proven = n >= MIN_EVIDENCE or leaving["xywh"] > leaving["xyxy"]
        few = f"only {n:,} boxes, all with x2 >= x1 and y2 >= y1: read as x1 y1 x2 y2, but x y w h is possible"
        return EncodingChoice("xyxy", "" if proven else few, is_doubtful=not proven)
    if leaving["cxcywh"] < leaving["xywh"]:
        assumption = (
            f"{leaving['xywh']:,} boxes would leave their images as x y w h, {leaving['cxcywh']:,} as cx cy w h"
        )
        return EncodingChoice("cxcywh", f"{assumption}; read as cx cy w h")
    if leaving["cxcywh"] - leaving["xywh"] >= max(1.0, CLEAR_SHARE * n):
        return EncodingChoice("xywh")
    return EncodingChoice("xywh", "read as x y w h, but the boxes also fit as cx cy w h", is_doubtful=True)
