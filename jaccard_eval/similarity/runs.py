"""Masks as runs of pixels: compressed strings, polygons and unions to runs and back, without a dense mask.

A mask is where it changes: the ascending numbers of the pixels at which background becomes foreground or the reverse.
Pixels are numbered down the columns, ``x * height + y``. Many masks are one array of `edges` and `offsets` into it; a
mask always has an even number of edges, as a run that reaches the last pixel ends at ``height * width``.

Source: pycocotools 2.0.11 ``common/maskApi.c``, whose strings, areas, boxes and unions these are to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.native import calls as native
from jaccard_eval.native.calls import LONGEST_NUMBER

IntArray = npt.NDArray[np.int64]
Values = TypeVar("Values", bound=npt.NDArray[Any])
Bytes = npt.NDArray[np.uint8]

SUBPIXELS = 5  # corners of polygons are rounded to fifths of a pixel
FARTHEST = 1e8  # px; corners beyond it would leave the range in which whole numbers are multiplied exactly
_FIRST_CHARACTER, _LAST_CHARACTER = 48, 111
_MOST_CROSSINGS = 1 << 20  # of edges of polygons with columns of pixels, worked on at once


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """n masks; the edges of mask i are those from ``offsets[i]`` to ``offsets[i + 1]``."""

    edges: IntArray
    offsets: IntArray  # (n + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def none(cls, n: int) -> Runs:
        """Return n empty masks."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64))

    def take(self, rows: npt.NDArray[Any]) -> Runs:
        """Return the masks of some rows, in their order."""
        return Runs(*taken(self.edges, self.offsets, rows))

    def owners(self) -> IntArray:
        """Return the mask that each edge is of."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def areas(self) -> IntArray:
        """Return how many pixels each mask has, (n,)."""
        measured = native.measure_masks(self.edges, self.offsets)
        if measured is not None:
            return measured[0]
        # Ends minus starts of runs, of which the running sum is cut where masks begin.
        total = np.concatenate(([0], np.cumsum(self.edges[1::2] - self.edges[::2])))
        return total[self.offsets[1:] // 2] - total[self.offsets[:-1] // 2]

    def are_empty(self) -> BoolArray:
        """Return which masks have no pixels, (n,)."""
        return np.asarray(self.offsets[1:] == self.offsets[:-1])

    def ends(self) -> IntArray:
        """Return the pixel behind the last one of each mask, (n,); 0 for an empty one."""
        ends = np.concatenate((self.edges, [0]))[self.offsets[1:] - 1]
        return np.where(self.are_empty(), 0, ends)

    def bounds(self, sizes: IntArray) -> FloatArray:
        """Return left, top, width and height of each mask, (n, 4), in images of height and width `sizes` (n, 2)."""
        measured = native.measure_masks(self.edges, self.offsets, sizes)
        if measured is not None and measured[1] is not None:
            return measured[1]
        bounds = np.zeros((len(self), 4))
        (filled,) = np.nonzero(np.diff(self.offsets))
        if not len(filled):
            return bounds
        height = np.repeat(sizes[:, 0], np.diff(self.offsets) // 2)
        first, last = self.edges[::2], self.edges[1::2] - 1
        left, right = first // height, last // height
        # A run that goes on in the next column has touched the bottom, and goes on at the top.
        wraps = left < right
        top, bottom = np.where(wraps, 0, first - left * height), np.where(wraps, height - 1, last - right * height)
        start = self.offsets[filled] // 2
        x, y = left[start], np.minimum.reduceat(top, start)
        bounds[filled, 0], bounds[filled, 1] = x, y
        bounds[filled, 2] = right[self.offsets[filled + 1] // 2 - 1] - x + 1
        bounds[filled, 3] = np.maximum.reduceat(bottom, start) - y + 1
        return bounds


def taken(values: Values, offsets: IntArray, rows: npt.NDArray[Any]) -> tuple[Values, IntArray]:
    """Return the values of some rows, one row after the other, and their own offsets."""
    rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    own = offsets_of(offsets[rows + 1] - offsets[rows])
    gathered: Any = native.gather(values, offsets, rows, int(own[-1]))
    if gathered is None:
        gathered = values[np.arange(own[-1]) + np.repeat(offsets[rows] - own[:-1], np.diff(own))]
    found: Values = gathered
    return found, own


def offsets_of(lengths: Sequence[int] | IntArray) -> IntArray:
    """Return offsets (n + 1,) from lengths (n,)."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def runs_of_counts(counts: IntArray, offsets: IntArray) -> tuple[Runs, IntArray]:
    """Return masks from the lengths of their runs, background first, and how many pixels the runs of each have.

    Lengths are 0 or more. Runs that do not make up the image are for the caller to refuse.
    """
    n = np.diff(offsets)
    total = np.concatenate(([0], np.cumsum(counts)))
    ends = total[1:] - np.repeat(total[offsets[:-1]], n)
    pixels = total[offsets[1:]] - total[offsets[:-1]]
    # With an odd number of runs the last one is background, and its end is not an edge.
    kept = np.ones(len(counts), dtype=np.bool_)
    kept[offsets[1:][n % 2 == 1] - 1] = False
    return without_empty_runs(Runs(ends[kept], offsets_of(n - n % 2))), pixels


def counts_of_runs(masks: Runs, pixels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the lengths of runs as files have them, background first, with offsets; images have `pixels` (n,)."""
    n = np.diff(masks.offsets)
    # One more than edges, but where the last edge is the end of the image.
    is_open = np.ones(len(masks), dtype=np.bool_)
    filled = n > 0
    is_open[filled] = masks.edges[masks.offsets[1:][filled] - 1] < pixels[filled]
    offsets = offsets_of(n + is_open)
    ends = np.zeros(offsets[-1], dtype=np.int64)
    is_edge = np.ones(len(ends), dtype=np.bool_)
    is_edge[offsets[1:][is_open] - 1] = False
    ends[is_edge], ends[~is_edge] = masks.edges, pixels[is_open]
    counts = np.diff(ends, prepend=0)
    counts[offsets[:-1]] = ends[offsets[:-1]]
    return counts, offsets


def without_empty_runs(masks: Runs) -> Runs:
    """Omit edges that meet an even number of times: between them lies nothing."""
    edges, owner = masks.edges, masks.owners()
    alike = (edges[1:] == edges[:-1]) & (owner[1:] == owner[:-1])
    if not alike.any():
        return masks
    first = np.flatnonzero(np.concatenate(([True], ~alike)))
    odd = first[np.diff(np.append(first, len(edges))) % 2 == 1]
    return Runs(edges[odd], offsets_of(np.bincount(owner[odd], minlength=len(masks))))


def runs_of_edges(edges: IntArray, owner: IntArray, n: int) -> Runs:
    """Return n masks of edges in any order, each of its owner; edges that meet an even number of times are none."""
    offsets = offsets_of(np.bincount(owner, minlength=n))
    span = int(edges.max(initial=0)) + 1
    if span <= np.iinfo(np.int64).max // max(n, 1):
        # One number of both: values are sorted in a quarter of the time that an order of two columns takes.
        ordered = np.sort(edges + owner * span) - np.repeat(np.arange(n) * span, np.diff(offsets))
    else:
        ordered = edges[np.lexsort((edges, owner))]
    return without_empty_runs(Runs(ordered, offsets))


# Pixels


def runs_of_pixels(masks: Iterable[tuple[BoolArray, int, int, int]]) -> Runs:
    """Return masks of pixels (h, w), each with the column and row of its first pixel and the height of its image.

    They are looked at one after the other: no more than one needs to be in memory.
    """
    found: list[IntArray] = []
    for pixels, left, top, height in masks:
        # Only what is around the pixels is turned into columns: looking for it goes along the rows, as memory does.
        rows = np.flatnonzero(pixels.any(axis=1))
        if not len(rows):
            found.append(rows)
            continue
        filled = pixels[rows[0] : rows[-1] + 1]
        across = np.flatnonzero(filled.any(axis=0))
        filled = filled[:, across[0] : across[-1] + 1]
        h, w = filled.shape
        # Down the columns, with background above and below: an edge is where two neighbours differ.
        columns = np.zeros((w, h + 2), dtype=np.bool_)
        columns[:, 1:-1] = filled.T
        flat = columns.reshape(-1)
        column, row = np.divmod(np.flatnonzero(flat[1:] != flat[:-1]) + 1, h + 2)
        found.append((left + across[0] + column) * height + top + rows[0] + row - 1)
    edges = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
    return without_empty_runs(Runs(edges, offsets_of([len(part) for part in found])))


def runs_of_labels(values: npt.NDArray[Any]) -> tuple[IntArray, Runs]:
    """Return the distinct values of a map (h, w) but 0, ascending, and where each one is."""
    flat = np.ascontiguousarray(values.T).reshape(-1)
    starts = np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1])))
    of_run = flat[starts].astype(np.int64)
    ends = np.append(starts[1:], len(flat))
    order = np.argsort(of_run, kind="stable")
    order = order[of_run[order] != 0]
    labels, counts = np.unique(of_run[order], return_counts=True)
    edges = np.stack((starts[order], ends[order]), axis=1).reshape(-1)
    return labels, Runs(edges, offsets_of(2 * counts))


def resized(masks: Runs, sizes: IntArray, wanted: IntArray) -> Runs:
    """Return masks of images of height and width `sizes` (n, 2) in images of other sizes.

    A pixel is what the old pixel is that its centre lies in, the right or lower one where it lies between two: NEAREST
    of Pillow without its roundings.
    """
    (start, end), owner = masks.edges.reshape(-1, 2).T, masks.owners()[::2]
    height, width = sizes[owner].T
    # Runs column by column.
    first, n = start // height, (end - 1) // height - start // height + 1
    run = np.repeat(np.arange(len(start)), n)
    column = np.arange(len(run)) - np.repeat(np.cumsum(n) - n, n) + first[run]
    height, width, owner = height[run], width[run], owner[run]
    new_height, new_width = wanted[owner].T

    def moved(at: IntArray, old: IntArray, new: IntArray) -> IntArray:
        """Return the first new pixel whose centre is at the edge `at` of old pixels, or behind it."""
        found: IntArray = -((old - 2 * at * new) // (2 * old))
        return found

    top = moved(np.maximum(start[run] - column * height, 0), height, new_height)
    bottom = moved(np.minimum(end[run] - column * height, height), height, new_height)
    left, right = moved(column, width, new_width), moved(column + 1, width, new_width)
    n = np.where(bottom > top, right - left, 0)
    part = np.repeat(np.arange(len(n)), n)
    x = np.arange(len(part)) - np.repeat(np.cumsum(n) - n, n) + left[part]
    edges = np.concatenate((x * new_height[part] + top[part], x * new_height[part] + bottom[part]))
    return runs_of_edges(edges, np.tile(owner[part], 2), len(masks))


# Edges that masks may have when they are transposed, besides so many times as many as they had: a few runs of a huge
# image can become as many as it has pixels.
MOST_TRANSPOSED, MOST_GROWN = 1 << 26, 64


def transposed(masks: Runs, sizes: IntArray) -> Runs:
    """Return masks of images of height and width `sizes` (n, 2) with rows and columns exchanged.

    A UsageError means that their runs would not fit into memory.
    """
    n, height = len(masks), sizes[:, 0]
    owner = masks.owners()
    # Where a pixel differs from the one to its left: the mask without what it shares with itself, a column further on.
    edges = np.concatenate((masks.edges, masks.edges + height[owner]))
    owner = np.concatenate((owner, owner))
    differs = runs_of_edges(edges, owner, n)
    start, end = differs.edges.reshape(-1, 2).T
    length = end - start
    most, wanted = MOST_TRANSPOSED + MOST_GROWN * len(masks.edges), length.sum(dtype=np.float64)
    if wanted > most:
        raise UsageError(
            f"masks cannot be transposed: they would have {wanted:,.0f} edges of runs, and memory is used for at most"
            f" {most:,}. Check the size of their images."
        )
    of_run = differs.owners()[::2]
    of_pixel = np.repeat(of_run, length)
    pixel = np.arange(len(of_pixel)) - np.repeat(np.cumsum(length) - length, length) + np.repeat(start, length)
    # Behind the last column begins the next row: what ends there and what begins there cancel each other.
    moved = pixel % height[of_pixel] * sizes[of_pixel, 1] + pixel // height[of_pixel]
    return runs_of_edges(moved, of_pixel, n)


# Compressed strings


def decode_strings(strings: Sequence[bytes]) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the lengths of runs in compressed strings (n,), with offsets, and which strings are invalid, (n,).

    An invalid string gets no runs: it has a character that is not used, ends within a number, or has a number below 0
    or of more digits than an image can have pixels.
    """
    offsets = offsets_of([len(text) for text in strings])
    raw = np.frombuffer(b"".join(strings), dtype=np.uint8)
    wrong = _wrong_strings(raw, offsets)
    if wrong.any():
        raw = raw[~np.repeat(wrong, np.diff(offsets))]
        offsets = offsets_of(np.where(wrong, 0, np.diff(offsets)))
    if not len(raw):
        return np.zeros(0, dtype=np.int64), np.zeros(len(strings) + 1, dtype=np.int64), wrong
    bits = raw - np.uint8(_FIRST_CHARACTER)
    ends = np.flatnonzero(bits < 32)  # the sixth bit is set where the number goes on
    starts = np.concatenate(([0], ends[:-1] + 1))
    digit = np.arange(len(bits)) - np.repeat(starts, ends - starts + 1)
    values = np.add.reduceat((bits & 31).astype(np.int64) << (5 * digit), starts)
    values -= (bits[ends] >> 4 & 1).astype(np.int64) << (5 * (ends - starts + 1))  # the fifth of the last is the sign
    of_string = np.searchsorted(ends, offsets)
    counts = _undo_differences(values, of_string)
    negative = np.zeros(len(strings), dtype=np.bool_)
    negative[np.searchsorted(of_string, np.flatnonzero(counts < 0), "right") - 1] = True
    if negative.any():
        lengths = np.diff(of_string)
        counts, of_string = counts[~np.repeat(negative, lengths)], offsets_of(np.where(negative, 0, lengths))
    return counts, of_string, wrong | negative


def _wrong_strings(raw: Bytes, offsets: IntArray) -> BoolArray:
    """Mark what cannot be read as numbers at all, (n,)."""
    odd = (raw < _FIRST_CHARACTER) | (raw > _LAST_CHARACTER)
    # A number is too long if too many characters in a row are continued.
    goes_on = (raw - np.uint8(_FIRST_CHARACTER)) >= 32
    run = goes_on.copy()
    for shift in range(1, LONGEST_NUMBER):
        run[shift:] &= goes_on[:-shift]
        run[:shift] = False
    odd |= run
    wrong = np.zeros(len(offsets) - 1, dtype=np.bool_)
    wrong[np.searchsorted(offsets, np.flatnonzero(odd), "right") - 1] = True
    (filled,) = np.nonzero(np.diff(offsets))
    wrong[filled] |= goes_on[offsets[filled + 1] - 1]
    return wrong


def _undo_differences(values: IntArray, offsets: IntArray) -> IntArray:
    """Add to each number, from the fourth of a string on, the one two before it."""
    place = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets))
    for parity in (0, 1):
        # The first three numbers of a string are lengths themselves: sums begin with the second and the third.
        (chosen,) = np.nonzero((place % 2 == parity) & (place > 0))
        if not len(chosen):
            continue
        total = np.cumsum(values[chosen])
        first = np.flatnonzero(place[chosen] == 2 - parity)
        before = total[first] - values[chosen[first]]
        values[chosen] = total - np.repeat(before, np.diff(np.append(first, len(chosen))))
    return values


def strings_of_runs(masks: Runs, pixels: IntArray) -> list[bytes]:
    """Return the compressed string of each mask; images have `pixels` (n,)."""
    compiled = native.encode_masks(masks.edges, masks.offsets, pixels)
    if compiled is not None or not len(masks):
        return compiled or []
    return encode_counts(*counts_of_runs(masks, pixels))


def encode_counts(counts: IntArray, offsets: IntArray) -> list[bytes]:
    """Return the compressed string of each mask from the lengths of its runs."""
    place = np.arange(len(counts)) - np.repeat(offsets[:-1], np.diff(offsets))
    values = counts.copy()
    values[2:] -= np.where(place[2:] > 2, counts[:-2], 0)
    # Characters of a number: the fewest groups of 5 bits that hold it with its sign.
    groups = np.stack([values >> (5 * digit) for digit in range(LONGEST_NUMBER + 1)])
    fits = (groups[1:] == 0) & (groups[:-1] & 16 == 0) | (groups[1:] == -1) & (groups[:-1] & 16 != 0)
    last = np.argmax(fits, axis=0)
    digits = np.arange(LONGEST_NUMBER)[:, None]
    characters = (groups[:-1] & 31) + 32 * (digits < last) + _FIRST_CHARACTER
    used = (digits <= last).T
    text = characters.T[used].astype(np.uint8).tobytes()
    cuts = np.concatenate(([0], np.cumsum(last + 1)))[offsets].tolist()
    return [text[start:stop] for start, stop in pairwise(cuts)]


# Polygons


def runs_of_polygons(corners: FloatArray, rings: IntArray, masks: IntArray, sizes: IntArray) -> Runs:
    """Return masks of polygons, in images of height and width `sizes` (n, 2).

    Ring r has the corners (x, y) from ``rings[r]`` to ``rings[r + 1]``, mask i the rings from ``masks[i]`` on, of which
    it is the union. Within a ring, what its outline goes around twice is background.
    """
    compiled = compiled_polygons(corners, rings, masks, sizes, Runs.none(len(masks) - 1))
    if compiled is not None:
        return compiled
    owner = np.repeat(np.arange(len(masks) - 1), np.diff(masks))
    filled = _fill(corners, rings, sizes[owner])
    return combined(filled, owner, len(masks) - 1)


def compiled_polygons(
    corners: FloatArray, rings: IntArray, masks: IntArray, sizes: IntArray, given: Runs
) -> Runs | None:
    """Return masks of polygons by the compiled core, those given where there are none; None if it cannot be used."""
    if not np.abs(corners).max(initial=0) <= FARTHEST:
        return None
    compiled = native.fill_polygons(corners, rings, masks, sizes, (given.edges, given.offsets))
    return None if compiled is None else Runs(*compiled)


def _fill(corners: FloatArray, rings: IntArray, sizes: IntArray) -> Runs:
    """Return the pixels within each ring, in an image of its own size (r, 2)."""
    # Towards 0, as C rounds; corners left of or above the image are not moved into it by that.
    start = np.trunc(corners * SUBPIXELS + 0.5).astype(np.int64)
    following = np.arange(1, len(start) + 1)
    filled = np.flatnonzero(np.diff(rings))
    following[rings[1:][filled] - 1] = rings[:-1][filled]
    ring = np.repeat(np.arange(len(rings) - 1), np.diff(rings))
    # An outline enters or leaves a column of pixels where it passes its centre, between 5x + 2 and 5x + 3 fifths.
    low = np.minimum(start[:, 0], start[following, 0])
    high = np.maximum(start[:, 0], start[following, 0])
    first = np.maximum(-(-(low - 2) // SUBPIXELS), 0)
    last = np.minimum((high - 3) // SUBPIXELS, sizes[ring, 1] - 1)
    n_crossed = np.maximum(last - first + 1, 0)
    crossed = np.flatnonzero(n_crossed)
    total = np.cumsum(n_crossed[crossed])
    found, at = [np.zeros(0, dtype=np.int64)], 0
    stride = int((sizes[:, 0] * sizes[:, 1]).max(initial=0)) + 1
    while at < len(crossed):
        before = total[at - 1] if at else 0
        stop = max(int(np.searchsorted(total, before + _MOST_CROSSINGS, "right")), at + 1)
        lines = crossed[at:stop]
        n = n_crossed[lines]
        line = np.repeat(lines, n)
        column = np.arange(len(line)) - np.repeat(np.cumsum(n) - n, n) + first[line]
        row = _crossing(start[line], start[following[line]], SUBPIXELS * column + 2)
        height = sizes[ring[line], 0]
        # Of the two points around the centre the upper one decides; rows beyond the image are cut off.
        row = np.ceil(np.clip((row + 0.5) / SUBPIXELS - 0.5, 0, height)).astype(np.int64)
        found.append(ring[line] * stride + column * height + row)
        at = stop
    keys = np.sort(np.concatenate(found))
    owner = keys // stride
    n_edges = np.bincount(owner, minlength=len(sizes)) if len(keys) else np.zeros(len(sizes), dtype=np.int64)
    return without_empty_runs(Runs(keys - owner * stride, offsets_of(n_edges)))


def _crossing(a: IntArray, b: IntArray, column: IntArray) -> IntArray:
    """Return the lower y of the two points that a line from a to b, (n, 2), has at `column` and at the next one.

    Lines are walked in unit steps along their longer axis, always upwards on it, and rounded on the other.
    """
    sides = np.abs(b - a)
    along_x = sides[:, 0] >= sides[:, 1]
    main = np.where(along_x, 0, 1)
    rows = np.arange(len(a))
    flipped = a[rows, main] > b[rows, main]
    low, high = np.where(flipped[:, None], b, a), np.where(flipped[:, None], a, b)
    n_steps = (high - low)[rows, main]
    slope = (high - low)[rows, 1 - main] / n_steps
    other = low[rows, 1 - main]

    def rounded(step: IntArray) -> IntArray:
        # Two roundings, product and sum: one of both would give other pixels.
        found: IntArray = np.trunc(other + slope * step + 0.5).astype(np.int64)
        return found

    step = column - low[:, 0]
    across = np.minimum(rounded(step), rounded(step + 1))
    # Along y, the step at which x passes from one column to the next is that of exact arithmetic, or one more or less.
    shift = np.abs((high - low)[:, 0])
    rising = slope > 0
    with np.errstate(divide="ignore"):
        twice = np.where(rising, 2 * (column - low[:, 0]) + 1, 2 * (low[:, 0] - column) - 1) * n_steps
        exact = np.where(rising, -(-twice // (2 * shift)), twice // (2 * shift) + 1)

    def passed(step: IntArray) -> BoolArray:
        found: BoolArray = np.where(rising, rounded(step) > column, rounded(step) <= column)
        return found

    exact = exact - passed(exact - 1) + ~passed(exact)
    return np.where(along_x, across, low[:, 1] + exact - 1)


def combined(parts: Runs, owner: IntArray, n: int, least: int = 1) -> Runs:
    """Return (n,) masks of the pixels that at least so many of the parts with the same owner have; owners ascend.

    With 1 it is their union, with 2 the intersection of two.
    """
    n_edges = np.bincount(owner, weights=np.diff(parts.offsets), minlength=n).astype(np.int64)
    if least == 1 and np.bincount(owner, minlength=n).max(initial=0) <= 1:
        return Runs(parts.edges, offsets_of(n_edges))
    stride = int(parts.edges.max(initial=0)) + 1
    key = owner[parts.owners()] * stride + parts.edges
    order = np.argsort(key, kind="stable")
    # How many parts cover a pixel; each ends what it begins, so that the count is 0 again where a mask begins.
    key, step = key[order], 1 - 2 * (order % 2)
    depth = np.cumsum(step)
    last = np.append(key[1:] != key[:-1], True)[: len(key)]
    key, inside = key[last], depth[last] >= least
    changes = inside != np.concatenate(([False], inside[:-1]))[: len(inside)]
    key = key[changes]
    of_mask = key // stride
    return Runs(key - of_mask * stride, offsets_of(np.bincount(of_mask, minlength=n)))
