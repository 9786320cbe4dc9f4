"""Overlap of masks, in the arithmetic of pycocotools: whole numbers of pixels, divided once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Words
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.signature import digest_each
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.native import calls as native
from jaccard_eval.similarity import Rows, Similarity
from jaccard_eval.similarity.runs import (
    FARTHEST,
    IntArray,
    Runs,
    compiled_polygons,
    offsets_of,
    resized,
    runs_of_polygons,
    taken,
    transposed,
)

_DOWN, _ALONG = (0, 0), (0, 1)  # sizes of runs without any: down the columns, or along the rows
STRETCH = 0.02  # by which the sides of a mask may differ in proportion from those of the image it is scaled to
_EDGES_AT_ONCE = 1 << 18  # of masks that are looked up: more are slower, as they leave the cache


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """A column of n masks, each in an image of a height and a width.

    Of runs in a file without sizes the height is 0 until that of the image is known; see `Outlines.sized`.
    """

    runs: Runs
    sizes: IntArray  # (n, 2): height, width

    def __len__(self) -> int:
        return len(self.runs)

    def take(self, rows: npt.NDArray[Any]) -> Masks:
        """Return the masks of some rows, in their order."""
        return Masks(self.runs.take(rows), self.sizes[rows])

    def resized(self, sizes: IntArray) -> Masks:
        """Return the masks in images of other heights and widths (n, 2): each pixel is the nearest one of the mask."""
        (rows,) = np.nonzero((self.sizes != sizes).any(axis=1))
        if not len(rows):
            return self
        kept = np.setdiff1d(np.arange(len(self)), rows)
        moved = Masks(resized(self.runs.take(rows), self.sizes[rows], sizes[rows]), sizes[rows])
        return self.take(kept).joined([moved]).take(np.argsort(np.concatenate((kept, rows))))

    def transposed(self) -> Masks:
        """Return the masks with rows and columns exchanged."""
        return Masks(transposed(self.runs, self.sizes), self.sizes[:, ::-1])

    def joined(self, others: Sequence[Masks]) -> Masks:
        """Return these masks, then those of the others."""
        parts = (self, *others)
        lengths = np.concatenate([np.diff(part.runs.offsets) for part in parts])
        edges = np.concatenate([part.runs.edges for part in parts])
        return Masks(Runs(edges, offsets_of(lengths)), np.concatenate([part.sizes for part in parts]))

    def bounds(self) -> FloatArray:
        """Return left, top, width and height of each mask in px, (n, 4); zeros for an empty one."""
        return self.runs.bounds(np.maximum(self.sizes, 1))

    def areas(self) -> FloatArray:
        """Return how many pixels each mask has, (n,)."""
        return self.runs.areas().astype(np.float64)

    def hashes(self) -> Words:
        """Digest each mask, (n, 2)."""
        return digest_each(self.sizes, (self.runs.edges, self.runs.offsets))

    def scaled(self, xy: FloatArray) -> Masks:
        """Return the masks as they are, by factors of 1; pixels cannot be scaled by others."""
        if (xy != 1).any():
            raise UsageError("masks cannot be scaled. Export them at the size of the images.")
        return self

    def shifted(self, xy: FloatArray) -> Masks:
        """Return the masks as they are: pixels are the same ones, whatever number the first of them has."""
        return self

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return edges, offsets and sizes."""
        return {"edges": self.runs.edges, "offsets": self.runs.offsets, "sizes": self.sizes}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Masks:
        """Make masks of what `to_arrays` gave; refuse all others."""
        if arrays.keys() != {"edges", "offsets", "sizes"} or any(array.dtype != np.int64 for array in arrays.values()):
            raise UsageError("masks are the arrays edges, offsets and sizes of 64-bit integers")
        edges, offsets, sizes = (arrays[name] for name in ("edges", "offsets", "sizes"))
        if edges.ndim != 1 or offsets.ndim != 1 or sizes.shape != (len(offsets) - 1, 2):
            raise UsageError("masks: edges, offsets and sizes do not fit together")
        lengths = np.diff(offsets)
        fits = offsets[0] == 0 and offsets[-1] == len(edges) and (lengths >= 0).all() and (lengths % 2 == 0).all()
        if not fits or (sizes < 0).any() or (sizes > np.iinfo(np.int32).max).any():
            raise UsageError("masks: offsets or sizes out of range")
        owner = np.repeat(np.arange(len(lengths)), lengths)
        ascends = (edges[1:] > edges[:-1]) | (owner[1:] != owner[:-1])
        if not ascends.all() or (edges < 0).any() or (edges > sizes.prod(axis=1)[owner]).any():
            raise UsageError("masks: runs must ascend within the image")
        return cls(Runs(edges, offsets), sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Outlines:
    """A column of n masks as files have them: polygons, whose pixels depend on the size of the image, or runs.

    Mask i has the polygons from ``parts[i]`` to ``parts[i + 1]``, polygon r the corners from ``rings[r]`` on.
    """

    corners: FloatArray  # (c, 2): x, y
    rings: IntArray
    parts: IntArray  # (n + 1,)
    masks: Masks  # of size 0 x 0 where there are polygons
    has_polygons: BoolArray  # (n,)
    counts_pixels: BoolArray  # (n,): whether the area of the object is that of its pixels

    @classmethod
    def of_masks(cls, masks: Masks, counts_pixels: BoolArray) -> Outlines:
        """Return masks that are pixels already, whose size is still to be compared with that of their image."""
        nothing = np.zeros(1, dtype=np.int64)
        parts, drawn = np.zeros(len(masks) + 1, dtype=np.int64), np.zeros(len(masks), dtype=np.bool_)
        return cls(np.zeros((0, 2)), nothing, parts, masks, drawn, counts_pixels)

    def __len__(self) -> int:
        return len(self.masks)

    def take(self, rows: npt.NDArray[Any]) -> Outlines:
        """Return the masks of some rows, in their order."""
        of_ring, parts = taken(np.arange(len(self.rings) - 1), self.parts, rows)
        corners, rings = taken(self.corners, self.rings, of_ring)
        masks, flags = self.masks.take(rows), (self.has_polygons[rows], self.counts_pixels[rows])
        return Outlines(corners, rings, parts, masks, *flags)

    def joined(self, others: Sequence[Outlines]) -> Outlines:
        """Return these masks, then those of the others."""
        every = (self, *others)
        return Outlines(
            np.concatenate([part.corners for part in every]),
            offsets_of(np.concatenate([np.diff(part.rings) for part in every])),
            offsets_of(np.concatenate([np.diff(part.parts) for part in every])),
            self.masks.joined([part.masks for part in others]),
            np.concatenate([part.has_polygons for part in every]),
            np.concatenate([part.counts_pixels for part in every]),
        )

    def bounds(self) -> FloatArray:
        """Return left, top, width and height in px, (n, 4), of corners or of pixels."""
        bounds = self.masks.bounds()
        first = self.rings[self.parts]
        (filled,) = np.nonzero(np.diff(first))
        if len(filled):
            low = np.minimum.reduceat(self.corners, first[filled])
            bounds[filled, :2], bounds[filled, 2:] = low, np.maximum.reduceat(self.corners, first[filled]) - low
        return bounds

    def hashes(self) -> Words:
        """Digest each mask with its polygons, (n, 4)."""
        polygons, corners = np.diff(self.rings), self.corners.ravel()
        outlines = digest_each((polygons, self.parts), (corners, self.rings[self.parts] * 2))
        return np.hstack((self.masks.hashes(), outlines))

    def scaled(self, xy: FloatArray) -> Outlines:
        """Multiply the corners by factors (n, 2); runs stay at their own size, which is compared with their image's."""
        return replace(self, corners=self.corners * self._of_corners(xy))

    def shifted(self, xy: FloatArray) -> Outlines:
        """Add distances (n, 2) to the corners; pixels are the same ones, whatever number the first of them has."""
        return replace(self, corners=self.corners + self._of_corners(xy))

    def _of_corners(self, xy: FloatArray) -> FloatArray:
        return np.repeat(xy, np.diff(self.rings[self.parts]), axis=0)

    def with_axes(self, axes: str, *, undo: bool = False) -> Outlines:
        """Return the masks as they are meant, of which the file has `axes` of `options.MASK_AXES`; or the reverse."""
        if axes == "yx":
            return replace(self, corners=self.corners[:, ::-1])
        if self.are_unsized.any():
            sizes = self.masks.sizes.copy()
            if axes in ("transposed", "row-major"):
                sizes[self.are_unsized] = _DOWN if undo else _ALONG
            return replace(self, masks=Masks(self.masks.runs, sizes))
        masks, resized = self.masks, axes in ("wh", "row-major")
        if axes in ("transposed", "row-major") and undo:
            masks = masks.transposed()
        if resized:
            masks = Masks(masks.runs, masks.sizes[:, ::-1])
        if axes in ("transposed", "row-major") and not undo:
            masks = masks.transposed()
        return replace(self, masks=masks)

    @property
    def are_unsized(self) -> BoolArray:
        """Which masks are runs in an image whose height and width the file does not have, (n,)."""
        are_unsized: BoolArray = ~self.has_polygons & (self.masks.sizes[:, 0] == 0) & ~self.masks.runs.are_empty()
        return are_unsized

    def sized(self, of_image: FloatArray) -> Outlines:
        """Return the masks with the height and width of their images (n, 2) for runs without.

        Where that is not known (NaN), or runs leave the image, they stay as they are.
        """
        found = self.are_unsized
        if not found.any():
            return self
        with np.errstate(invalid="ignore"):
            found &= self.masks.runs.ends() <= of_image.prod(axis=1)
        along = found & (self.masks.sizes[:, 1] == _ALONG[1])
        sizes = np.where(found[:, None], np.where(along[:, None], of_image[:, ::-1], of_image), self.masks.sizes)
        masks = Masks(self.masks.runs, sizes.astype(np.int64))
        (turned,), (kept,) = np.nonzero(along), np.nonzero(~along)
        if len(turned):
            parts = masks.take(kept).joined([masks.take(turned).transposed()])
            masks = parts.take(np.argsort(np.concatenate((kept, turned))))
        return replace(self, masks=masks)

    def in_images(self, sizes: IntArray) -> Masks:
        """Return the pixels of each mask in an image of the height and width `sizes` (n, 2)."""
        (drawn,), (given,) = np.nonzero(self.has_polygons), np.nonzero(~self.has_polygons)
        if not len(drawn):
            return self.masks
        compiled = compiled_polygons(self.corners, self.rings, self.parts, sizes, self.masks.runs)
        if compiled is not None:
            return Masks(compiled, sizes)
        outlines = self.take(drawn)
        polygons = Masks(runs_of_polygons(outlines.corners, outlines.rings, outlines.parts, sizes[drawn]), sizes[drawn])
        return polygons.joined([self.masks.take(given)]).take(np.argsort(np.concatenate((drawn, given))))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return polygons, and the arrays of the masks."""
        polygons = {"corners": self.corners, "rings": self.rings, "parts": self.parts}
        flags = {"has_polygons": self.has_polygons, "counts_pixels": self.counts_pixels}
        return self.masks.to_arrays() | polygons | flags

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Outlines:
        """Make outlines of what `to_arrays` gave; refuse all others."""
        kinds = {"corners": "f", "rings": "i", "parts": "i", "has_polygons": "b", "counts_pixels": "b"}
        of_masks = {name: array for name, array in arrays.items() if name not in kinds}
        masks = Masks.from_arrays(of_masks)
        if arrays.keys() - of_masks.keys() != kinds.keys() or any(arrays[n].dtype.kind != k for n, k in kinds.items()):
            raise UsageError("outlines are corners, rings, parts, has_polygons and counts_pixels, with masks")
        corners, rings, parts, drawn, counts = (arrays[name] for name in kinds)
        fits = corners.ndim == 2 and corners.shape[1] == 2 and drawn.shape == counts.shape == (len(masks),)
        ends = [(rings, len(corners)), (parts, len(rings) - 1)]
        fits = (
            fits
            and parts.shape == (len(masks) + 1,)
            and all(
                at.ndim == 1 and len(at) and at[0] == 0 and at[-1] == end and (np.diff(at) >= 0).all()
                for at, end in ends
            )
        )
        if not fits or not (np.abs(corners) <= FARTHEST).all() or (np.diff(parts)[~drawn] > 0).any():
            raise UsageError("outlines: corners, rings and parts do not fit together")
        return cls(corners, rings, parts, masks, drawn, counts)


def outlines_of(boxes: BoxTable) -> Outlines | None:
    """Return the masks of a table as its file has them; None of a table without any."""
    shapes: object = boxes.shapes
    return shapes if isinstance(shapes, Outlines) else None


def sizes_in_images(outlines: Outlines, of_image: FloatArray) -> IntArray:
    """Return the height and width of the images (n, 2) for masks of pixels of their shape, for others their own."""
    own = outlines.masks.sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        stretched = (own[:, 0] * of_image[:, 1]) / (own[:, 1] * of_image[:, 0])
    is_alike = (np.abs(stretched - 1) <= STRETCH) | outlines.masks.runs.are_empty()
    is_alike &= np.isfinite(of_image).all(axis=1) & ~outlines.has_polygons
    return np.where(is_alike[:, None], of_image, own).astype(np.int64)


def filled(boxes: BoxTable, *, sizes: FloatArray, scales: bool) -> BoxTable:
    """Return boxes with the pixels of their masks; `sizes` are the width and height of the images.

    Masks of pixels are of the size of their image, unless `scales` brings them to it.
    """
    outlines = outlines_of(boxes)
    if outlines is None:
        return boxes
    of_image = sizes[boxes.image, ::-1]
    outlines = outlines.sized(of_image)
    if scales:
        outlines = replace(outlines, masks=outlines.masks.resized(sizes_in_images(outlines, of_image)))
    masks = outlines.in_images(
        np.where(outlines.has_polygons[:, None], of_image, outlines.masks.sizes).astype(np.int64)
    )
    return replace(boxes, shapes=masks, area=np.where(outlines.counts_pixels, masks.areas(), boxes.area))


def with_sizes(boxes: BoxTable, *, sizes: FloatArray) -> BoxTable:
    """Return boxes around masks whose size is that of their image, where the file has none; see `Outlines.sized`."""
    outlines = outlines_of(boxes)
    if outlines is None or not (unsized := outlines.are_unsized).any():
        return boxes
    outlines = outlines.sized(sizes[boxes.image, ::-1])
    return replace(boxes, shapes=outlines, xywh=np.where(unsized[:, None], outlines.bounds(), boxes.xywh))


def on_canvases(sizes: FloatArray, tables: Iterable[BoxTable]) -> FloatArray:
    """Return sizes of images, those that are not known (NaN) by what lies in them: unless it needs to be known.

    All polygons of an image fit into it, with x and y exchanged as well, or all runs down its columns into one column.
    """
    (unknown,) = np.nonzero(np.isnan(sizes).any(axis=1))
    far, kinds = np.zeros(len(sizes)), np.zeros(len(sizes), dtype=np.int64)
    for table in tables:
        outlines = outlines_of(table)
        if outlines is not None:
            bounds, drawn = outlines.bounds(), outlines.has_polygons
            reach = np.where(drawn, (bounds[:, :2] + bounds[:, 2:]).max(axis=1), outlines.masks.runs.ends())
            np.maximum.at(far, table.image, np.ceil(reach) + 1)
            np.bitwise_or.at(kinds, table.image, np.where(drawn, 1, np.where(outlines.masks.sizes[:, 1] > 0, 4, 2)))
    found, sizes = unknown[(kinds[unknown] > 0) & (kinds[unknown] <= 2)], sizes.copy()
    sizes[found] = far[found, None]
    sizes[found[kinds[found] == 2], 0] = 1
    return sizes


@dataclass(frozen=True, slots=True, eq=False)
class MaskSide:
    """Masks of one side with what decides whether two of them can overlap at all; columns (n,)."""

    masks: Masks
    area: FloatArray
    left: FloatArray
    top: FloatArray
    right: FloatArray
    bottom: FloatArray

    @classmethod
    def of(cls, masks: Masks) -> MaskSide:
        """Measure masks."""
        x, y, width, height = masks.bounds().T
        return cls(masks, masks.areas(), x, y, x + width, y + height)

    @classmethod
    def prepare(cls, boxes: BoxTable, protocol: Protocol) -> MaskSide:
        """Measure the masks of a table."""
        return cls.of(masks_of(boxes))


def masks_of(boxes: BoxTable) -> Masks:
    """Return the masks of a table; a table without rows need not carry any."""
    shapes: object = boxes.shapes
    if isinstance(shapes, Masks):
        return shapes
    return Masks(Runs.none(0), np.zeros((0, 2), dtype=np.int64))


def mask_pairs(
    first: MaskSide, second: MaskSide, i: Rows, j: Rows, *, crowd: BoolArray | None = None, threshold: float = 0.0
) -> tuple[Rows, Rows, FloatArray]:
    """Return those of the pairs (i, j) whose masks overlap by at least a threshold, in their order, with the overlap.

    Where `crowd` marks a row of `second`, it is the intersection over the area of the first mask instead of IoU.

    Source: pycocotools 2.0.11 ``common/maskApi.c``, ``rleIou``.
    """
    is_crowd = np.zeros(len(i), dtype=np.bool_) if crowd is None else crowd[j]
    meets = (np.minimum(first.right[i], second.right[j]) > np.maximum(first.left[i], second.left[j])) & (
        np.minimum(first.bottom[i], second.bottom[j]) > np.maximum(first.top[i], second.top[j])
    )
    # At most the smaller mask is shared, and at least the larger one covered: most pairs are out before any look at
    # pixels.
    smaller, larger = np.minimum(first.area[i], second.area[j]), np.maximum(first.area[i], second.area[j])
    meets &= is_crowd | (smaller >= threshold * larger * (1 - 1e-9))
    (chosen,) = np.nonzero(meets)
    i, j, is_crowd = i[chosen], j[chosen], is_crowd[chosen]
    shared = intersections(first.masks.runs, second.masks.runs, i, j).astype(np.float64)
    covered = np.where(is_crowd, first.area[i], first.area[i] + second.area[j] - shared)
    # Both have pixels, as they meet.
    overlap = shared / covered
    (reached,) = np.nonzero((overlap >= threshold) & (shared > 0))
    return i[reached], j[reached], overlap[reached]


def intersections(first: Runs, second: Runs, i: Rows, j: Rows) -> IntArray:
    """Return how many pixels the masks i of one column and j of another have in common, pair by pair."""
    compiled = native.intersect((first.edges, first.offsets), (second.edges, second.offsets), i, j)
    if compiled is not None:
        return compiled
    n_first, n_second = np.diff(first.offsets)[i], np.diff(second.offsets)[j]
    shared = np.zeros(len(i), dtype=np.int64)
    # Each run of a mask asks the other one how many pixels it has before its end and before its start: the mask with
    # fewer runs asks.
    for asks, asking, asked, rows, others, n in (
        (n_first <= n_second, first, second, i, j, n_first),
        (n_first > n_second, second, first, j, i, n_second),
    ):
        (chosen,) = np.nonzero(asks)
        total = np.cumsum(n[chosen])
        at = 0
        while at < len(chosen):
            before = total[at - 1] if at else 0
            stop = max(int(np.searchsorted(total, before + _EDGES_AT_ONCE, "right")), at + 1)
            part = chosen[at:stop]
            shared[part] = _shared_pixels(asking, rows[part], asked, others[part])
            at = stop
    return shared


def _shared_pixels(asking: Runs, i: Rows, asked: Runs, j: Rows) -> IntArray:
    # Of each mask that is asked a table is made once, whatever the number of pairs it is in.
    distinct, of_pair = np.unique(j, return_inverse=True)
    table = asked.take(distinct)
    stride = 1 + max(int(table.edges.max(initial=0)), int(asking.edges.max(initial=0)))
    keys = table.edges + table.owners() * stride
    # Pixels before each edge, within its mask: ends of runs add what their starts took away.
    lengths = np.zeros(len(keys), dtype=np.int64)
    lengths[1::2] = table.edges[1::2] - table.edges[::2]
    pixels = np.cumsum(lengths)
    questions = asking.take(i)
    n = np.diff(questions.offsets)
    owner = np.repeat(of_pair, n)
    at = np.searchsorted(keys, questions.edges + owner * stride, "right")  # edges at or before each question
    last = np.maximum(at - 1, 0)
    # Within a run, what of it lies before the question comes on top; between masks `at` is even, and nothing does.
    # What earlier masks have is in both answers of a run, and goes out when they are taken from each other.
    inside = at % 2 == 1
    found = np.where(at > 0, pixels[last], 0) if len(keys) else np.zeros(len(at), dtype=np.int64)
    if len(keys):
        found = found + np.where(inside, questions.edges + owner * stride - keys[last], 0)
    total = np.concatenate(([0], np.cumsum(found[1::2] - found[::2])))
    return total[questions.offsets[1:] // 2] - total[questions.offsets[:-1] // 2]


SIMILARITY = Similarity("segm", MaskSide.prepare, mask_pairs, shapes=Masks)
