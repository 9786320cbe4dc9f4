"""What was done to images before prediction, and the way back from the pixels of a network's input."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze
from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from fractions import Fraction

# Few digits: a fraction of "1e999999" would be a number of a million.
_SIDE = re.compile(r"[1-9]\d{0,5}", re.ASCII)
_FACTOR = re.compile(r"\d{1,4}(/[1-9]\d{0,3}|\.\d{1,9})?", re.ASCII)
MIRROR = "mirror"
_KINDS = {"letterbox": _SIDE, "stretch": _SIDE, "scale": _FACTOR}


@dataclass(frozen=True, slots=True)
class Resizing:
    """How images were resized: a kind, and what stands behind its colon, for x and y.

    "letterbox" keeps the aspect ratio and pads both ends alike, to `x` by `y` pixels; "stretch" does not keep it;
    "scale" multiplies the sides by `x` and `y`, whatever they are. "mirror" exchanges left and right, and has no
    numbers.
    """

    kind: str
    x: Fraction
    y: Fraction

    @classmethod
    def parse(cls, text: str) -> Resizing:
        """Read "letterbox:640", "stretch:640x512", "scale:1/2" or "mirror"; raise a UsageError for anything else."""
        from fractions import Fraction  # slow to load, and seldom needed

        if text.strip() == MIRROR:
            return cls(MIRROR, Fraction(1), Fraction(1))
        kind, _, rest = text.strip().partition(":")
        sides, number = rest.split("x"), _KINDS.get(kind)
        if number is not None and len(sides) <= 2 and all(number.fullmatch(side) for side in sides):
            x, y = Fraction(sides[0]), Fraction(sides[-1])
            if x and y:
                return cls(kind, x, y)
        raise UsageError(
            f"resized: got {quoted_value(text)}; expected letterbox:640, letterbox:640x512 (width x height),"
            " stretch:640x512, a factor such as scale:0.5 or scale:1/3, or mirror"
        )

    @classmethod
    def for_side(cls, text: str, role: str, units: str) -> Resizing:
        """Read what was given for one side; fractions of images, which are the same for any size, may be mirrored."""
        if units != "px" and text.strip() != MIRROR:
            raise UsageError(
                fix=Fix.of_side(
                    role,
                    "{resized} is for boxes in pixels; these are read as fractions of their image. Remove it, or add"
                    " {units}.",
                    resized=None,
                    units="px",
                )
            )
        return cls.parse(text)

    def __str__(self) -> str:
        if self.kind == MIRROR:
            return MIRROR
        return f"{self.kind}:{self.x}" if self.x == self.y else f"{self.kind}:{self.x}x{self.y}"

    @property
    def called(self) -> str:
        """What a message calls it: "letterbox 640 x 640"."""
        if self.kind == MIRROR:
            return "mirrored images"
        is_factor = self.kind == "scale" and self.x == self.y
        return f"scale {self.x}" if is_factor else f"{self.kind} {self.x} x {self.y}"

    def geometry(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factor of images of `sizes` (n, 2), and what was added at their left and top, both (n, 2)."""
        sides = np.array([float(self.x), float(self.y)])
        if self.kind == MIRROR:
            factor = np.tile([-1.0, 1.0], (len(sizes), 1))
            return factor, np.where(factor < 0, sizes, 0.0)
        if self.kind == "scale":
            return np.tile(sides, (len(sizes), 1)), np.zeros_like(sizes)
        # The size of an image may be any number above 0; what overflows on the way back is refused as too large.
        with np.errstate(over="ignore"):
            factor = sides / sizes
        if self.kind == "stretch":
            return factor, np.zeros_like(sizes)
        # The side that is longer for the input fills it; what the other one leaves free is split in halves. Tools that
        # cut the halves to whole pixels differ from this by less than a pixel of the input.
        factor = np.repeat(factor.min(axis=1, keepdims=True), 2, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            return factor, (sides - factor * sizes) / 2

    def apply(self, xywh: FloatArray, sizes: FloatArray) -> FloatArray:
        """Turn boxes (n, 4) on images of `sizes` (n, 2) into boxes on the resized ones."""
        factor, padding = self.geometry(sizes)
        return _in_corner_order(np.concatenate((xywh[:, :2] * factor + padding, xywh[:, 2:] * factor), axis=1), factor)

    def undo(self, xywh: FloatArray, sizes: FloatArray) -> FloatArray:
        """Turn boxes (n, 4) on resized images into boxes on images of `sizes` (n, 2)."""
        factor, padding = self.geometry(sizes)
        with np.errstate(over="ignore", invalid="ignore"):
            mapped = np.concatenate(((xywh[:, :2] - padding) / factor, xywh[:, 2:] / factor), axis=1)
        return _in_corner_order(mapped, factor)

    def mapped_back(self, boxes: BoxTable, sizes: FloatArray) -> BoxTable:
        """Return boxes on resized images as boxes on images of known sizes (images, 2), with their areas and shapes."""
        size = sizes[boxes.image]
        factor, padding = self.geometry(size)
        shapes = None if boxes.shapes is None else boxes.shapes.shifted(-padding).scaled(1 / factor)
        xywh = self.undo(boxes.xywh, size)
        return freeze(replace(boxes, xywh=xywh, area=boxes.area / np.abs(factor.prod(axis=1)), shapes=shapes))


def _in_corner_order(xywh: FloatArray, factor: FloatArray) -> FloatArray:
    """Return boxes (n, 4) from their left side on, where a negative factor (n, 2) made this the right one."""
    mirrored = factor < 0
    if not mirrored.any():
        return xywh
    start = np.where(mirrored, xywh[:, :2] + xywh[:, 2:], xywh[:, :2])
    return np.concatenate((start, np.where(mirrored, -xywh[:, 2:], xywh[:, 2:])), axis=1)
