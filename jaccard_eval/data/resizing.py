"""What was done to images before prediction, and the way back from the pixels of a network's input."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze
from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from fractions import Fraction

# Few digits: a fraction of "1e999999" would be a number of a million.
_SIDE = r"[1-9]\d{0,5}"
_FACTOR = r"\d{1,4}(?:/[1-9]\d{0,3}|\.\d{1,9})?"
_OFFSET = r"[+-]?\d{1,6}(?:\.\d{1,9})?"
_ONE_OR_TWO = {number: pattern(f"({number})(?:x({number}))?", re.ASCII) for number in (_SIDE, _FACTOR)}
_PAIRS = {number: pattern(f"({number}),({number})", re.ASCII) for number in (_SIDE, _OFFSET)}
FORMS = {
    "scale": _ONE_OR_TWO[_FACTOR],
    "stretch": _ONE_OR_TWO[_SIDE],
    "letterbox": _ONE_OR_TWO[_SIDE],
    "pad": _ONE_OR_TWO[_SIDE],
    "short": _PAIRS[_SIDE],
    "offset": _PAIRS[_OFFSET],
    "rect": pattern(f"({_SIDE})", re.ASCII),
    "letterbox-px": _ONE_OR_TWO[_SIDE],
}
MIRROR = "mirror"
# As exchanges of x and y (s), then of left and right (x), then of top and bottom (y). rot90 turns counter-clockwise, as
# numpy.rot90 and Pillow's ROTATE_90 do.
TURNS = {MIRROR: "x", "swap": "s", "rot90": "sy", "rot180": "xy", "rot270": "sx", "flip": "y", "anti": "sxy"}
STRIDE = 32  # px, that Ultralytics and YOLOv5 pad to with `rect`
_ANY_SIZE = {"scale", "offset", "swap"}  # the same for images of any size
_BY_PARTS = {"stretch", "letterbox", "pad"}  # whose result has the size that they name
EXPECTED = (
    "stretch:640x480 (width x height), letterbox:640, pad:640, short:800,1333, scale:0.5, offset:-20,0, rect:640,"
    f" letterbox-px:640, or {', '.join(TURNS)}; several are joined with +"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done: a turn, or a form with what stands behind its colon, for x and y."""

    kind: str
    x: Fraction | float = 1
    y: Fraction | float = 1

    def __str__(self) -> str:
        if self.kind in TURNS:
            return self.kind
        if self.kind in ("short", "offset"):
            return f"{self.kind}:{_decimal(self.x)},{_decimal(self.y)}"
        x, y = map(_fraction, (self.x, self.y))
        return f"{self.kind}:{x}" if x == y else f"{self.kind}:{x}x{y}"

    def geometry(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what a form does to images of `sizes`: factors, what was added at the left and top, and new sizes.

        All are (n, 2).
        """
        return geometry_of(self.kind, np.array([float(self.x), float(self.y)]), sizes)


def geometry_of(kind: str, sides: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what a form with `sides` (2,), or sides for each image (n, 2), does: see `Step.geometry`."""
    none = np.zeros_like(sizes)
    if kind == "offset":
        return np.ones_like(sizes), none + sides, sizes
    if kind == "scale":
        return none + sides, none, sizes * sides
    # The size of an image may be any number above 0; what overflows on the way back is refused as too large.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if kind == "stretch":
            return sides / sizes, none, none + sides
        if kind == "short":
            factor = np.minimum(sides[..., 0] / sizes.min(axis=1), sides[..., 1] / sizes.max(axis=1))[:, None] + none
            return factor, none, factor * sizes
        if kind == "rect":
            factor = sides[..., :1] / sizes.max(axis=1, keepdims=True) + none
            whole = np.round(factor * sizes)
            padding = -whole % STRIDE
            return factor, padding / 2, whole + padding
        # The side that is longer for the input fills it; "letterbox" splits what the other one leaves free in
        # halves, and "pad" has it all behind the image.
        factor = (sides / sizes).min(axis=1, keepdims=True) + none
        padding = {
            "pad": none,
            "letterbox": (sides - factor * sizes) / 2,
            # Ultralytics: both halves in whole pixels, with the odd one behind the image.
            "letterbox-px": np.round((sides - np.round(factor * sizes)) / 2 - 0.1),
        }[kind]
        return factor, padding, none + sides


class Geometry(NamedTuple):
    """Where a point of an image went: to `factor` times itself plus `offset`, both (n, 2), after x and y swapped."""

    factor: FloatArray
    offset: FloatArray
    swapped: bool


@dataclass(frozen=True, slots=True)
class Resizing:
    """How images were turned and resized, one step after the other; the turns stand first mostly.

    "letterbox" keeps the aspect ratio and pads both ends alike, "pad" pads behind; "stretch" does not keep it; "short"
    brings the short side to the first number, unless the long one would exceed the second; "scale" multiplies the
    sides; "offset" adds to x and y, as a crop does; "rect" brings the long side to its number and pads both sides to
    multiples of 32. The turn exchanges the sides for what follows.
    """

    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> Resizing:
        """Read "letterbox:640", "stretch:640x512", "scale:1/2", "mirror+pad:640"; raise a UsageError for others."""
        from fractions import Fraction  # slow to load, and seldom needed

        steps = []
        for part in text.strip().split("+"):
            kind, _, rest = part.partition(":")
            found = FORMS[kind].fullmatch(rest) if kind in FORMS else None
            numbers = [Fraction(number) for number in found.groups() if number] if found else []
            if part in TURNS:
                steps.append(Step(part))
            elif numbers and (kind == "offset" or all(numbers)) and not (kind == "rect" and numbers[0] % STRIDE):
                steps.append(Step(kind, numbers[0], numbers[-1]))
            else:
                raise UsageError(f"resized: got {quoted_value(text)}; expected {EXPECTED}")
        return cls(tuple(steps))

    @classmethod
    def for_side(cls, text: str, role: str, units: str) -> Resizing:
        """Read what was given for one side; fractions of an image may be of its turned or padded form."""
        resizing = cls.parse(text)
        if units == "px" or resizing.is_turn or resizing.is_fraction:
            return resizing
        raise UsageError(
            fix=Fix.of_side(
                role,
                "{resized} is for boxes in pixels; these are read as fractions of their image. Remove it, or add"
                " {units}. Fractions of a padded square are letterbox:1.",
                resized=str(resizing),
                units="px",
            )
        )

    def __str__(self) -> str:
        return "+".join(map(str, self.steps))

    @property
    def is_turn(self) -> bool:
        """Whether nothing was resized: fractions of an image are then fractions again."""
        return all(step.kind in TURNS for step in self.steps)

    @property
    def is_fraction(self) -> bool:
        """Whether what results is one wide and high, so that boxes are fractions of it."""
        last = self.steps[-1]
        return last.kind in _BY_PARTS and last.x == last.y == 1

    @property
    def needs_sizes(self) -> bool:
        """Whether the sizes of the images are needed for the way back."""
        return any(step.kind not in _ANY_SIZE for step in self.steps)

    @property
    def moves(self) -> bool:
        """Whether pixels are elsewhere in an image of the same size."""
        return any(step.kind in TURNS or step.kind == "offset" for step in self.steps)

    @property
    def swaps(self) -> bool:
        """Whether x and y change places."""
        return sum("s" in TURNS.get(step.kind, "") for step in self.steps) % 2 == 1

    def geometry(self, sizes: FloatArray) -> Geometry:
        """Return where points of images of `sizes` (n, 2) went."""
        factor, offset = np.ones_like(sizes), np.zeros_like(sizes)
        for step in self.steps:
            for turn in TURNS.get(step.kind, ""):
                if turn == "s":
                    factor, offset, sizes = factor[:, ::-1], offset[:, ::-1], sizes[:, ::-1]
                else:
                    at = np.array([turn == "x", turn == "y"])
                    factor, offset = np.where(at, -factor, factor), np.where(at, sizes - offset, offset)
            if step.kind in FORMS:
                by, added, sizes = step.geometry(sizes)
                with np.errstate(over="ignore", invalid="ignore"):
                    factor, offset = factor * by, offset * by + added
        return Geometry(factor, offset, self.swaps)

    def apply(self, xywh: FloatArray, sizes: FloatArray) -> FloatArray:
        """Turn boxes (n, 4) on images of `sizes` (n, 2) into boxes on the resized ones."""
        factor, offset, swapped = self.geometry(sizes)
        xywh = xywh[:, [1, 0, 3, 2]] if swapped else xywh
        return _in_corner_order(np.concatenate((xywh[:, :2] * factor + offset, xywh[:, 2:] * factor), axis=1), factor)

    def undo(self, xywh: FloatArray, sizes: FloatArray) -> FloatArray:
        """Turn boxes (n, 4) on resized images into boxes on images of `sizes` (n, 2)."""
        factor, offset, swapped = self.geometry(sizes)
        with np.errstate(over="ignore", invalid="ignore"):
            mapped = np.concatenate(((xywh[:, :2] - offset) / factor, xywh[:, 2:] / factor), axis=1)
        mapped = _in_corner_order(mapped, factor)
        return mapped[:, [1, 0, 3, 2]] if swapped else mapped

    def mapped_back(self, boxes: BoxTable, sizes: FloatArray) -> BoxTable:
        """Return boxes on resized images as boxes on images of known sizes (images, 2), with their areas and shapes."""
        size = sizes[boxes.image]
        factor, offset, swapped = self.geometry(size)
        shapes = boxes.shapes
        if shapes is not None and swapped:
            detail = f"resized: {self} exchanges x and y, which is undone for boxes alone"
            raise UsageError(f"{detail}. Export the masks or points as they are in the images.")
        shapes = None if shapes is None else shapes.shifted(-offset).scaled(1 / factor)
        xywh = self.undo(boxes.xywh, size)
        return freeze(replace(boxes, xywh=xywh, area=boxes.area / np.abs(factor.prod(axis=1)), shapes=shapes))


def _fraction(number: Fraction | float) -> str:
    """Return the shorter of a fraction and of its decimals, where these are the same number."""
    decimal = _decimal(number)
    return decimal if len(decimal) < len(str(number)) and float(decimal) == float(number) else str(number)


def _decimal(number: Fraction | float) -> str:
    return f"{float(number):.9f}".rstrip("0").rstrip(".")


def _in_corner_order(xywh: FloatArray, factor: FloatArray) -> FloatArray:
    """Return boxes (n, 4) from their left side on, where a negative factor (n, 2) made this the right one."""
    mirrored = factor < 0
    if not mirrored.any():
        return xywh
    start = np.where(mirrored, xywh[:, :2] + xywh[:, 2:], xywh[:, :2])
    return np.concatenate((start, np.where(mirrored, -xywh[:, 2:], xywh[:, 2:])), axis=1)
