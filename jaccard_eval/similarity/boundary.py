"""Boundaries of masks: the overlap of the pixels near an edge, and outlines along the edges of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.similarity import Rows, Similarity
from jaccard_eval.similarity.masks import Masks, MaskSide, intersections, mask_pairs, masks_of
from jaccard_eval.similarity.runs import IntArray, Runs, combined, offsets_of, runs_of_edges


@dataclass(frozen=True, slots=True, eq=False)
class BoundarySide:
    """Masks of one side, and how wide their boundaries are: a share of the diagonal of the image."""

    side: MaskSide
    dilation_ratio: float

    @classmethod
    def prepare(cls, boxes: BoxTable, protocol: Protocol) -> BoundarySide:
        """Measure the masks of a table under the rules of a protocol."""
        return cls(MaskSide.of(masks_of(boxes)), protocol.dilation_ratio)


def boundary_pairs(
    first: BoundarySide,
    second: BoundarySide,
    i: Rows,
    j: Rows,
    *,
    crowd: BoolArray | None = None,
    threshold: float = 0.0,
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) that overlap by at least a threshold, in their order, with the overlap.

    It is the smaller one of the IoU of the masks and the IoU of their boundaries; where `crowd` marks a row of
    `second`, it is that of masks alone.

    Source: boundary-iou-api at 37d25586, ``boundary_utils.py``; https://arxiv.org/abs/2103.16562.
    """
    # No pair overlaps by more than its masks do, so that most boundaries are never made.
    i, j, overlap = mask_pairs(first.side, second.side, i, j, crowd=crowd, threshold=threshold)
    plain = np.ones(len(i), dtype=np.bool_) if crowd is None else ~crowd[j]
    rows, of_i = np.unique(i[plain], return_inverse=True)
    columns, of_j = np.unique(j[plain], return_inverse=True)
    ours = boundaries(first.side.masks.take(rows), first.dilation_ratio)
    theirs = boundaries(second.side.masks.take(columns), second.dilation_ratio)
    shared = intersections(ours, theirs, of_i, of_j)
    covered = ours.areas()[of_i] + theirs.areas()[of_j] - shared
    overlap[plain] = np.minimum(overlap[plain], shared / covered)
    (reached,) = np.nonzero((overlap >= threshold) & (overlap > 0))
    return i[reached], j[reached], overlap[reached]


def boundaries(masks: Masks, dilation_ratio: float) -> Runs:
    """Return the pixels of each mask whose square of twice the boundary's width and one does not lie within it."""
    runs = masks.runs
    height = masks.sizes[:, 0]
    widths = [boundary_width(h, w, dilation_ratio) for h, w in masks.sizes.tolist()]
    distance = np.array(widths, dtype=np.int64)
    core = _eroded_across(_eroded_down(runs, height, distance), height, distance)
    # What is in the mask and not in its core: the edges of both, without those where both change.
    edges = np.concatenate((runs.edges, core.edges))
    return runs_of_edges(edges, np.concatenate((runs.owners(), core.owners())), len(runs))


def boundary_width(height: int, width: int, dilation_ratio: float) -> int:
    """Return how many pixels wide boundaries are in an image of some size; halves go to the even number."""
    return max(1, round(dilation_ratio * math.sqrt(height * height + width * width)))


def map_boundaries(values: npt.NDArray[Any], dilation_ratio: float) -> BoolArray:
    """Return which pixels of a map of ids (h, w) belong to the boundary of the segment that they are of.

    Those are the boundaries that `boundaries` makes of the segments one by one, all at once: the square of twice the
    width and one around a pixel of the core has one id and lies within the image.
    """
    height, width = values.shape
    distance = boundary_width(height, width, dilation_ratio)
    is_boundary = np.ones((height, width), dtype=np.bool_)
    if min(height, width) <= 2 * distance:
        return is_boundary
    # A square has one id where none of its rows changes and its first column does not either: two sums of changes,
    # each along one axis, in place of a look at every pixel of every square.
    across = np.zeros((height, width), dtype=np.int32)
    np.cumsum(values[:, 1:] != values[:, :-1], axis=1, out=across[:, 1:])
    rows_alike = across[:, 2 * distance :] == across[:, : width - 2 * distance]  # (h, w - 2 d)
    changes = np.zeros((height, width - 2 * distance), dtype=np.int32)
    starts = values[:, : width - 2 * distance]
    changes[1:] = starts[1:] != starts[:-1]
    changes[1:] |= ~rows_alike[1:]
    np.cumsum(changes, axis=0, out=changes)
    columns_alike = changes[2 * distance :] == changes[: height - 2 * distance]
    core = columns_alike & rows_alike[: height - 2 * distance]
    is_boundary[distance : height - distance, distance : width - distance] = ~core
    return is_boundary


def _eroded_down(runs: Runs, height: IntArray, distance: IntArray) -> Runs:
    """Shorten the runs by a distance in px at both ends of each column."""
    owner = runs.owners()[::2]
    start, stop = runs.edges[::2], runs.edges[1::2]
    # A run that goes on in other columns is cut where they begin.
    first = start // height[owner]
    n_columns = (stop - 1) // height[owner] - first + 1
    run = np.repeat(np.arange(len(start)), n_columns)
    column = np.arange(len(run)) - np.repeat(np.cumsum(n_columns) - n_columns, n_columns) + first[run]
    owner = owner[run]
    top = column * height[owner]
    # Where the run ends at the top or the bottom of the image, its end counts as an edge as well.
    low = np.maximum(start[run], top) + distance[owner]
    high = np.minimum(stop[run], top + height[owner]) - distance[owner]
    (kept,) = np.nonzero(low < high)
    edges = np.stack((low[kept], high[kept]), axis=1).ravel()
    return Runs(edges, offsets_of(2 * np.bincount(owner[kept], minlength=len(runs))))


def _eroded_across(runs: Runs, height: IntArray, distance: IntArray) -> Runs:
    """Keep the pixels that have all others of their row up to a distance in px to either side.

    The runs lie within columns; so do those returned, unless they touch.
    """
    done: list[tuple[IntArray, Runs]] = []
    for d in np.unique(distance).tolist():
        (rows,) = np.nonzero(distance == d)
        part, step = runs.take(rows), height[rows]
        # Windows of 1, 2, 4, ... columns, each the intersection of two of half its width; the last two overlap.
        width, wanted = 1, 2 * d + 1
        while width < wanted:
            shift = min(width, wanted - width)
            part, width = _intersected(part, _moved(part, -shift * step)), width + shift
        done.append((rows, _moved(part, d * step)))
    if not done:
        return runs
    order = np.argsort(np.concatenate([rows for rows, _ in done]))
    lengths = np.concatenate([np.diff(part.offsets) for _, part in done])
    whole = Runs(np.concatenate([part.edges for _, part in done]), offsets_of(lengths))
    return whole.take(order)


def _moved(runs: Runs, by: IntArray) -> Runs:
    """Move masks by whole columns; what leaves the image on the left is dropped."""
    owner = runs.owners()
    edges = np.maximum(runs.edges + by[owner], 0)
    kept = np.repeat(edges[1::2] > edges[::2], 2)
    return Runs(edges[kept], offsets_of(np.bincount(owner[kept], minlength=len(runs))))


def _intersected(first: Runs, second: Runs) -> Runs:
    n = len(first)
    # The parts of an owner stand together: mask 0 of both, mask 1 of both, and so on.
    both = Runs(
        np.concatenate((first.edges, second.edges)), np.append(first.offsets, second.offsets[1:] + len(first.edges))
    )
    turns = np.arange(2 * n).reshape(2, n).T.ravel()
    return combined(both.take(turns), np.repeat(np.arange(n), 2), n, least=2)


SIMILARITY = Similarity("boundary", BoundarySide.prepare, boundary_pairs, shapes=Masks)


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
