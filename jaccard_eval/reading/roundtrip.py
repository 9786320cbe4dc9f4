"""Writing boxes so that reading them gives the same bits: the numbers whose conversion to xywh is exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from jaccard_eval.data.boxtable import CORNER_ORDER, BoolArray, FloatArray

REACH = (0, 1, -1, 2, -2)  # units in the last place around the nearest number that are tried


def exact_coords(xywh: FloatArray, encoding: str, sizes: FloatArray | None = None) -> tuple[FloatArray, BoolArray]:
    """Return boxes in another encoding, and which of them are read back to the last bit.

    Reading subtracts (``cx - w / 2``, ``x2 - x1``) and, for fractions, multiplies by the image's size, with a rounding
    each; the nearest number may lie one or two units beside the one that leads back. Boxes that were read from such
    numbers have one that does; others need not.

    Parameters
    ----------
    xywh : ndarray of float64, shape (n, 4)
    encoding : {"xywh", "xyxy", "cxcywh", "xxyy", "yxyx"}
    sizes : ndarray of float64, shape (n, 2), optional
        Width and height of each box's image, to write fractions of it.

    Returns
    -------
    coords : ndarray of float64, shape (n, 4)
    exact : ndarray of bool, shape (n,)
    """
    units = np.ones((len(xywh), 2)) if sizes is None else sizes
    kind = "xyxy" if encoding in CORNER_ORDER else encoding
    x = _Axis.solve(xywh[:, 0], xywh[:, 2], units[:, 0], kind)
    y = _Axis.solve(xywh[:, 1], xywh[:, 3], units[:, 1], kind)
    coords = np.empty((len(xywh), 4))
    coords[:, CORNER_ORDER.get(encoding, slice(None))] = np.stack((x.first, y.first, x.second, y.second), axis=1)
    return coords, x.found & y.found


class _Axis:
    """The two numbers of boxes along one axis, (n,) each, and for which of them a solution was found."""

    def __init__(self, n: int) -> None:
        self.first, self.second = np.zeros(n), np.zeros(n)
        self.found = np.zeros(n, dtype=np.bool_)

    @classmethod
    def solve(cls, start: FloatArray, length: FloatArray, unit: FloatArray, encoding: str) -> _Axis:
        """Try the nearest numbers, then their neighbours for the boxes that are left; else keep the nearest."""
        axis = cls(len(start))
        left = np.arange(len(start))
        for trial, steps in enumerate(_trials(encoding)):
            first, second, good = _try(start[left], length[left], unit[left], encoding, steps)
            chosen = left[good] if trial else left
            taken = good if trial else slice(None)
            axis.first[chosen], axis.second[chosen] = first[taken], second[taken]
            axis.found[left[good]] = True
            left = left[~good]
            if not len(left):
                break
        return axis


def _trials(encoding: str) -> Iterator[tuple[int, int, int]]:
    """Yield steps away from the nearest start, length and sum; the nearest of all come first."""
    sums = (0,) if encoding == "xywh" else REACH
    return iter(sorted(product(REACH, REACH, sums), key=lambda steps: sum(map(abs, steps))))


def _try(
    start: FloatArray, length: FloatArray, unit: FloatArray, encoding: str, steps: tuple[int, int, int]
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the two numbers that are so many steps beside the nearest, and whether they are read back exactly."""
    low, side = _beside(start / unit, steps[0]), _beside(length / unit, steps[1])
    good = (low * unit == start) & (side * unit == length)
    if encoding == "xywh":
        return low, side, good
    if encoding == "xyxy":
        high = _beside(low + side, steps[2])
        return low, high, good & (high - low == side)
    centre = _beside(low + side / 2, steps[2])
    return centre, side, good & (centre - side / 2 == low)


def _beside(values: FloatArray, steps: int) -> FloatArray:
    for _ in range(abs(steps)):
        values = np.nextafter(values, np.copysign(np.inf, steps))
    return values
