"""Outlines of masks: along the edges of their pixels, and as one line where there are several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.similarity.masks import Masks


def outlines_of(mask: Masks) -> list[FloatArray]:
    """Return the outlines (k, 2) of the parts and holes of one mask in px, along the edges of pixels.

    Filled together, they give the mask: what two of them go around is a hole. No more than its bounds are unpacked.
    """
    left, top, width, height = mask.bounds()[0].astype(np.int64).tolist()
    pixel = (left + np.arange(width)) * int(mask.sizes[0, 0]) + (top + np.arange(height))[:, None]  # (rows, columns)
    inside = np.searchsorted(mask.runs.edges, pixel, "right") % 2 == 1
    return [np.array(ring, dtype=np.float64) + np.array((left, top)) for ring in traced(inside)]


def joined_outline(rings: Sequence[FloatArray]) -> FloatArray:
    """Return one closed line that goes along all rings (k, 2), with a bridge to each, which it crosses both ways.

    Filled, it gives what the rings give together, as both ways along a bridge cancel each other. Ultralytics'
    ``merge_multi_segment`` joins the parts of an object in the same way, at the nearest corners.
    """
    line = rings[0]
    for ring in rings[1:]:
        away = ((line[:, None] - ring[None]) ** 2).sum(axis=2)
        at, start = np.unravel_index(int(np.argmin(away)), away.shape)
        around = np.concatenate((ring[start:], ring[: start + 1]))
        line = np.concatenate((line[: at + 1], around, line[at:]))
    return line


def traced(inside: npt.NDArray[np.bool_]) -> list[list[tuple[int, int]]]:
    """Return the corners (x, y) of the outlines of cells, one after the other."""
    padded = np.pad(inside, 1)
    cell = padded[1:-1, 1:-1]
    # From which corner of a cell to which other one, on each side where the neighbour is outside.
    sides = (
        (padded[:-2, 1:-1], (0, 0), (1, 0)),
        (padded[1:-1, 2:], (1, 0), (1, 1)),
        (padded[2:, 1:-1], (1, 1), (0, 1)),
        (padded[1:-1, :-2], (0, 1), (0, 0)),
    )
    following: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for neighbour, (x0, y0), (x1, y1) in sides:
        for y, x in np.argwhere(cell & ~neighbour).tolist():
            following.setdefault((x + x0, y + y0), []).append((x + x1, y + y1))
    rings = []
    while following:
        start = at = next(iter(following))
        ring: list[tuple[int, int]] = []
        while True:
            # Where two cells touch at a corner, either way on closes a ring.
            ends = following[at]
            after = ends.pop()
            if not ends:
                del following[at]
            ring.append(at)
            at = after
            if at == start:
                break
        turns = [
            (x - before[0]) * (after[1] - y) != (y - before[1]) * (after[0] - x)
            for before, (x, y), after in zip((ring[-1], *ring), ring, (*ring[1:], ring[0]), strict=False)
        ]
        rings.append([corner for corner, turn in zip(ring, turns, strict=True) if turn])
    return rings
