"""Maps of classes as small panels next to each other: their colours, and the figure of several panels."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jaccard_eval.metrics.pixel_counts import NO_CLASS

IntArray = npt.NDArray[np.int64]
Panel = npt.NDArray[np.uint8]  # (h, w, 3)
Colour = tuple[int, int, int]

SIDE, LARGE, GAP = 240, 640, 6  # pixels of a panel's longer side, of that in a file of its own, and between panels
VOID: Colour = (224, 224, 192)  # of pixels without a class, as PASCAL VOC draws them
WRONG, RIGHT, PAPER = (214, 30, 30), (235, 237, 240), (255, 255, 255)


def encoded(panel: Panel) -> bytes:
    """Return a panel as a PNG."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(panel).save(file, format="PNG", optimize=True)
    return file.getvalue()


def side_by_side(panels: Sequence[Panel]) -> tuple[tuple[int, int], bytes]:
    """Return panels of one size next to each other as a PNG, and its width and height."""
    height, width = panels[0].shape[:2]
    whole = np.full((height, len(panels) * (width + GAP) - GAP, 3), PAPER, dtype=np.uint8)
    for place, panel in enumerate(panels):
        whole[:, place * (width + GAP) :][:, :width] = panel
    return (whole.shape[1], height), encoded(whole)


class ClassColours:
    """A colour for each class: those of a table or palette, else those of PASCAL VOC's colour map."""

    def __init__(self, given: dict[int, Colour]) -> None:
        self._given = given

    def of(self, number: int) -> Colour:
        """Return the colour of a class."""
        if number == NO_CLASS:
            return VOID
        return self._given.get(number) or voc_colour(number)

    def text(self, number: int) -> str:
        """Return the colour of a class as pages write it."""
        return "#{:02x}{:02x}{:02x}".format(*self.of(number))

    def paint(self, numbers: IntArray) -> Panel:
        """Return a map in colours, shape (h, w, 3)."""
        distinct, places = np.unique(numbers, return_inverse=True)
        colours = np.array([self.of(number) for number in distinct.tolist()], dtype=np.uint8)
        return colours[places.reshape(numbers.shape)]


def voc_colour(number: int) -> Colour:
    """Return the colour of a class in PASCAL VOC's colour map: its bits, three by three, from the highest of each."""
    red = green = blue = 0
    for place in range(8):
        red |= (number & 1) << (7 - place)
        green |= (number >> 1 & 1) << (7 - place)
        blue |= (number >> 2 & 1) << (7 - place)
        number >>= 3
    return red, green, blue
