"""Every box of an evaluation as columns for the script of a page: bytes, squeezed, about ten of them a detection.

They lie by image, objects first, and a box is known by its place among all of these. Scores and overlaps are rounded
down, so that ``>= 0.37`` keeps the boxes that it keeps here, and none reads as a threshold that it does not reach.
Shapes are drawn by the script: masks by cells, all others by points.

Regions of label maps have the same columns: where classes or segments lie, and why. An object is a region of the ground
truth, a detection one of the predictions; each has one score, so that a page of them has no slider. Regions of pixels
that are predicted as another class are an object and a detection at once.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.result import ImageSource, SliceRow
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.errors.compute import NO_BOX, NO_ERROR
from jaccard_eval.features.images import BoxOutcomes
from jaccard_eval.features.images.gallery import COCO_EDGES, COCO_POINTS, PLAIN_SIDE, seen_points
from jaccard_eval.features.images.reasons import ERRORS, Explained
from jaccard_eval.features.operating import last_steps
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, stable_order
from jaccard_eval.report.model import GalleryImage
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import Panel, encoded
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.text import printable

MOST_BOXES = 500_000  # that a page has: 7 MB. Of more, those of the images that it shows
FOUND, IGNORED = len(ERRORS), len(ERRORS) + 1  # kinds of detections, behind those of errors
# What a detection matches of any class: its own, nothing, where it does not count 2, and from there on another class.
AS_LABELLED, ON_NOTHING, OTHERS = 0, 1, 3
FINEST = 8  # steps of a pixel
BOXES_A_SHAPE = 25  # of the boxes that a page can hold, so many take the room of a shape
SCORES, OVERLAPS = 10_000, 200  # steps from 0 to 1
MOST = np.iinfo(np.uint16).max
# Kinds of what is missed and of what is false, in words.
LISTS = (
    (
        "missed",
        (("nothing", "Nothing near"), ("below", "Below the score"), ("off", "Box is off"), ("taken", "Other class")),
    ),
    (
        "false",
        (
            *(("background", "On nothing"), ("box", "Box is off"), ("class", "Wrong class")),
            *(("both", "Class and box"), ("double", "Duplicate")),
        ),
    ),
)
Column = npt.NDArray[Any]
CELLS = 32  # along the longer side of a mask
UNSEEN = np.iinfo(np.uint16).max  # for the coordinates of a point
MOST_NUMBERS = 20  # of a shape that takes one place of those that a page has
LAYERS = ("ground truth", "prediction", "difference")
NOBODY = -1  # no partner
PLAIN_MAP = 100  # of an image whose size nobody read
SHOWN_NEXT = 3  # sentences


def placed(found: Explained, shown: Sequence[int], most: int | None = None) -> BoxOutcomes:
    """Return all boxes with their places in the columns, -1 of those that are omitted.

    All images take part, or those that are `shown` where all boxes are more than the `most` that a page can hold.
    """
    outcomes, is_there = found.outcomes, np.zeros(len(found.metrics.image_names), dtype=np.bool_)
    is_there[_rows(found, shown, most)] = True
    sides = [np.flatnonzero(side & is_there[outcomes.image]) for side in (outcomes.is_object, ~outcomes.is_object)]
    order = np.concatenate([side[stable_order(outcomes.image[side])] for side in sides])
    place = np.full(len(outcomes.image), -1)
    place[order] = np.arange(len(order))
    return replace(outcomes, place=place)


def columns_of(
    found: Explained,
    outcomes: BoxOutcomes,
    shown: Sequence[GalleryImage],
    images: ImageSource | None,
    slices: Sequence[SliceRow],
    *,
    folder: Path | None = None,
    most: int | None = None,
) -> dict[str, Any]:
    """Return the columns of `outcomes` that are `placed` for the images of a page, with what they mean.

    A page in a `folder` shows the files of images from there.
    """
    errors, steps, n_images = found.errors, found.steps, len(found.metrics.image_names)
    rows = _rows(found, [image.row for image in shown], most)
    place = outcomes.place
    there = np.flatnonzero(place >= 0)
    order = np.empty(len(there), dtype=np.int64)
    order[place[there]] = there
    n_gt, n = len(errors.gt_label), int(np.count_nonzero(outcomes.is_object[order]))
    objects, detections = order[:n], order[n:] - n_gt
    scores, low, unit = _graded(outcomes.score[order])
    sizes = _image_sizes(found, images)
    for image in shown:  # whose files are known
        sizes[image.row] = image.size
    sides = sizes if found.metrics.area_known else np.ones((1, 2))
    grid = _grid(outcomes.xywh.take(order, axis=0), float(sides.max(initial=1)))
    boxes = coded_boxes(outcomes.xywh.take(order, axis=0), grid)
    kind, overlap = errors.kind.copy(), errors.near_overlap.copy()
    kind[kind == NO_ERROR] = IGNORED
    kind[errors.hit], overlap[errors.hit] = FOUND, errors.overlap[errors.hit]
    of_images = np.stack([np.bincount(outcomes.image[side], minlength=n_images) for side in (objects, order[n:])])
    # Partners by their place within their image, counted from 1.
    first = (np.cumsum(of_images[0]) - of_images[0])[outcomes.image[order[n:]]]
    near = np.append(place[:n_gt], NO_BOX)[errors.near[detections]]
    first_wrong = n + (np.cumsum(of_images[1]) - of_images[1])[outcomes.image[objects]]
    # Of an object, those that explain why it is missed.
    wrong = {
        name: np.where(row == NO_BOX, 0, place[n_gt + row] - first_wrong + 1)
        for name, row in (("taken", errors.taken[objects]), ("beside", errors.beside[objects]))
    }
    matched = found.matched[detections]
    on_nothing = matched == len(found.metrics.class_names)
    as_class = np.where(on_nothing, ON_NOTHING, matched + OTHERS)
    as_class[matched == errors.label[detections]] = AS_LABELLED
    # Wrong boxes have a shape first, then objects, and the surest detections.
    rank = np.where(found.wrong[order], 0, np.where(outcomes.is_object[order], 1, 2 - scores / SCORES))
    shapes, about_shapes = shape_columns(
        _joined(outcomes, objects, detections + n_gt), rank, sizes.max(axis=1)[outcomes.image[order]], grid,
        (MOST_BOXES if most is None else most) // BOXES_A_SHAPE,
    )  # fmt: skip
    names = [found.metrics.image_names[row] for row in rows.tolist()]
    if not all(map(str.isprintable, names)):
        names = list(map(printable, names))
    pictures, files = _files(images, rows, names, folder)
    columns = {
        "names": coded_text(names),
        **files,
        "width": np.rint(sizes[rows, 0]),
        "height": np.rint(sizes[rows, 1]),
        "objects": of_images[0, rows],
        "detections": of_images[1, rows],
        **dict(zip(("x", "y", "w", "h"), boxes, strict=True)),
        "label": outcomes.label[order],
        "size": found.sizes[order] + 1,
        "score": scores,
        "step": last_steps(outcomes.score[order], steps.scores) + 1,  # how many it is there at; NaN: none
        "ignored": outcomes.is_ignored[objects],
        "seen": last_steps(found.seen, steps.scores)[objects] + 1,
        **wrong,
        "kind": kind[detections],
        "near": np.where(near == NO_BOX, 0, near - first + 1),
        "iou": np.floor(overlap[detections] * OVERLAPS + 1e-9),
        "as": as_class,
        **{f"slice {i}": np.isin(rows, part.rows) for i, part in enumerate(slices)},
        **shapes,
    }
    layout, text = packed(columns)
    return {
        "layout": layout,
        "text": text,
        "classes": [printable(name) for name in found.metrics.class_names],
        "slices": [printable(part.name) for part in slices],
        "pictures": pictures,
        "suspects": [],  # kind and place of each
        "rows": None if len(rows) == n_images else rows.tolist(),
        "boxes": [grid.low, grid.unit, not found.metrics.area_known],
        "shapes": about_shapes,
        "scores": [low, unit],
        "lists": LISTS,
        **{"unit": ("box", "boxes"), "nothing": "nothing near", "off": "box is off", "nobody": "background"},
        "verb": "detected",
        "measure": overlap_name(found.metrics.protocol),
        "exact": found.metrics.protocol.iou_type == BOXES,
        "iou": found.steps.iou,
    }


def packed(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[list[tuple[str, int, int]], str]:
    """Return name, bytes of a number and length of each column of whole numbers, and all of them squeezed.

    Each takes the fewest bytes that hold its largest number. The lowest bytes of all numbers come first, as each row
    of bytes is like itself: that saves a quarter.
    """
    layout, parts = [], []
    for name, column in columns.items():
        largest = int(column.max()) if len(column) else 0
        width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
        raw = np.ascontiguousarray(column.astype(f"<u{width}")).view(np.uint8)
        parts.append(raw.reshape(-1, width).T.tobytes())
        layout.append((name, width, len(column)))
    # Bytes repeat in runs, if at all: a search for more needs six times the time and finds nothing.
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    return layout, base64.b64encode(packer.compress(b"".join(parts)) + packer.flush()).decode()


def _rows(found: Explained, shown: Sequence[int], most: int | None) -> IntArray:
    """Return the images that take part."""
    if len(found.outcomes.image) > (MOST_BOXES if most is None else most):
        return np.unique(np.array(shown, dtype=np.int64))
    return np.arange(len(found.metrics.image_names))


def _graded(score: FloatArray) -> tuple[FloatArray, float, float]:
    """Return scores as whole numbers, rounded down, and the first one and the step that these count from."""
    low, high = float(np.fmin.reduce(score, initial=0)), float(np.fmax.reduce(score, initial=1))
    unit = (high - low) / SCORES
    whole = np.floor((np.where(np.isnan(score), low, score) - low) / unit)
    if (low, high) == (0, 1):
        # Where a product is off in its last digit.
        whole += score >= (whole + 1) / SCORES
        whole -= score < whole / SCORES
    return whole, low, unit


def coded_text(value: Any) -> npt.NDArray[np.uint8]:
    """Return what JSON can hold as a column."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def _files(
    images: ImageSource | None, rows: IntArray, names: Sequence[str], folder: Path | None
) -> tuple[str, dict[str, npt.NDArray[np.uint8]]]:
    """Return what the files of all images begin with, and how they go on where that is not the name of the image."""
    if images is None or not images.given or folder is None:
        return "", {}
    every = images.addresses(folder)
    files = [every[row] for row in rows.tolist()]
    common = os.path.commonprefix([file for file in files if file])  # noqa: RUF071 - cut at a slash below
    start = common[: common.rfind("/") + 1]
    rest = [file and file[len(start) :] for file in files]
    return start, {} if not start or rest == list(map(quote, names)) else {"files": coded_text(rest)}


def _image_sizes(found: Explained, images: ImageSource | None) -> FloatArray:
    """Return width and height of each image in px: as read, else what holds its boxes."""
    n = len(found.metrics.image_names)
    sizes = np.full((n, 2), np.nan) if images is None else np.array(images.sizes, dtype=np.float64)
    unknown = ~(np.isfinite(sizes) & (sizes >= 1)).all(axis=1)
    if unknown.any():
        sizes[unknown] = 1.0 if found.metrics.area_known else PLAIN_SIDE
        if found.metrics.area_known:
            outcomes = found.outcomes
            chosen = unknown[outcomes.image]
            corners = outcomes.xywh[chosen, :2] + outcomes.xywh[chosen, 2:]
            np.maximum.at(sizes, outcomes.image[chosen], np.ceil(np.nan_to_num(corners)))
    return np.asarray(np.minimum(sizes, 2.0**31))


def _joined(outcomes: BoxOutcomes, objects: IntArray, detections: IntArray) -> Shapes | None:
    """Return the shapes of some objects and detections; None where boxes have none."""
    sides = [
        shapes.take(outcomes.row[rows])
        for shapes, rows in zip(outcomes.shapes, (objects, detections), strict=True)
        if shapes is not None and len(rows)
    ]
    whole = sum(map(len, sides)) == len(objects) + len(detections)
    return sides[0].joined(sides[1:]) if sides and whole else None


@dataclass(frozen=True, slots=True)
class Grid:
    """Where coordinates are whole numbers: from `low` to `high`, `unit` of them a pixel."""

    low: float
    high: float
    unit: float

    def __call__(self, value: FloatArray) -> npt.NDArray[np.uint16]:
        """Return coordinates as whole numbers; what lies outside is cut off."""
        return np.asarray(np.rint((value.clip(self.low, self.high) - self.low) * self.unit).astype(np.uint16))


def _grid(xywh: FloatArray, side: float) -> Grid:
    """Return the finest grid that holds boxes (n, 4), except what lies far outside of the longest side of an image."""
    ends = [side_of for axis in (0, 1) for side_of in (xywh[:, axis], xywh[:, axis] + xywh[:, axis + 2])]
    low = math.floor(max(min(0.0, *(float(end.min(initial=0)) for end in ends)), -side))
    high = min(max(side, *(float(end.max(initial=0)) for end in ends)), 2 * side)
    unit = 2.0 ** math.floor(math.log2(MOST / (high - low)))
    return Grid(low, high, min(unit, FINEST) if side > 1 else unit)


def coded_boxes(xywh: FloatArray, grid: Grid) -> list[npt.NDArray[np.uint16]]:
    """Return left, top, width and height of boxes (n, 4) as whole numbers."""
    left, top, right, bottom = (grid(end) for end in (*xywh[:, :2].T, *(xywh[:, :2] + xywh[:, 2:]).T))
    return [left, top, right - left, bottom - top]


def shape_columns(
    shapes: Shapes | None,
    rank: FloatArray,
    sides: FloatArray,
    coded: Callable[[FloatArray], npt.NDArray[np.uint16]],
    most: int,
) -> tuple[dict[str, Column], dict[str, Any]]:
    """Return columns of the shapes of n boxes, and what a script has to know of them.

    Of more than `most` masks, or as many numbers of points, those that `rank` first have one, all others are `boxed`.
    `coded` makes whole numbers of coordinates; `sides` are the longer sides of the images of the boxes, in their units.
    """
    about: dict[str, Any]
    if isinstance(shapes, Masks):
        there: BoolArray = np.asarray(shapes.areas() > 0)
        shaped = _first(there, rank, most)
        kept = shapes.take(np.flatnonzero(shaped))
        bounds = kept.bounds().astype(np.int64)
        ends, more = [bounds[:, ::2], bounds[:, 1::2]], {"cells": _cells(kept, bounds)}
        about = {"form": "mask", "points": 2, "cells": CELLS}
    elif isinstance(shapes, Quads | Keypoints):
        points = shapes.corners if isinstance(shapes, Quads) else shapes.points[..., :2]
        seen = (
            np.ones(points.shape[:2], dtype=np.bool_)
            if isinstance(shapes, Quads)
            else seen_points(shapes.points, sides)
        )
        there, k, more = np.asarray(seen.any(axis=1)), points.shape[1], {}
        shaped = _first(there, rank, most * MOST_NUMBERS // max(2 * k, 1))
        ends = [np.where(seen, np.minimum(coded(points[..., axis]), UNSEEN - 1), UNSEEN)[shaped] for axis in (0, 1)]
        lines = {} if isinstance(shapes, Quads) else {"lines": COCO_EDGES if k == COCO_POINTS else ()}
        about = {"form": "pose" if lines else "oriented", "points": k, **lines}
    else:
        return {}, {}
    about["boxed"] = int(np.count_nonzero(there & ~shaped))
    return {"shaped": shaped, "px": ends[0].ravel(), "py": ends[1].ravel(), **more}, about


def _first(there: BoolArray, rank: FloatArray, most: int) -> BoolArray:
    """Return which of those that are there come first, at most so many."""
    if np.count_nonzero(there) <= most:
        return there
    first = np.zeros(len(there), dtype=np.bool_)
    first[np.argsort(np.where(there, rank, np.inf), kind="stable")[:most]] = True
    return first


def _cells(masks: Masks, bounds: IntArray) -> npt.NDArray[np.uint8]:
    """Return whether the pixel in the middle of each cell is of the mask, as bits: row by row, a byte begins a mask."""
    left, top, width, height = bounds.T
    side = np.maximum(-(-np.maximum(width, height) // CELLS), 1)
    across, down = -(-width // side), -(-height // side)
    n = across * down
    mask = np.repeat(np.arange(len(n)), n)
    cell = np.arange(len(mask)) - np.repeat(np.cumsum(n) - n, n)
    y, x = np.divmod(cell, across[mask])
    x, y = (np.minimum(at * side[mask] + side[mask] // 2, end[mask] - 1) for at, end in ((x, width), (y, height)))
    pixel = (left[mask] + x) * masks.sizes[mask, 0] + top[mask] + y
    # Masks one behind the other, so that one search serves all.
    start = np.append(0, np.cumsum(masks.sizes.prod(axis=1) + 1))
    edges = masks.runs.edges + start[masks.runs.owners()]
    inside = np.searchsorted(edges, pixel + start[mask], "right") % 2 == 1  # a mask has an even number of edges
    n_bytes = -(-n // 8)
    bits = np.zeros(8 * int(n_bytes.sum()), dtype=np.bool_)
    bits[8 * np.repeat(np.cumsum(n_bytes) - n_bytes, n) + cell] = inside
    return np.packbits(bits, bitorder="little")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regions:
    """Regions of one side by ascending image, shape (n,) each; partners are rows of the other side, or `NOBODY`."""

    image: IntArray
    label: IntArray
    found: BoolArray
    ignored: BoolArray
    partner: IntArray  # of what is found, and of what is wrong the nearest one
    overlap: FloatArray  # with it
    is_seen: BoolArray  # whether that overlap is one that matches, of any class
    pixels: IntArray | None = None  # where these count in place of regions

    @classmethod
    def joined(cls, parts: Sequence[Regions], others: Sequence[Regions]) -> Regions:
        """Put the regions of images together, whose partners are those of `others`."""
        before = np.cumsum([0, *(len(other.label) for other in others)])
        partners = [
            np.where(part.partner == NOBODY, NOBODY, part.partner + start)
            for part, start in zip(parts, before.tolist(), strict=False)
        ]
        return cls(
            image=np.repeat(np.arange(len(parts)), [len(part.label) for part in parts]),
            label=np.concatenate([part.label for part in parts]),
            found=np.concatenate([part.found for part in parts]),
            ignored=np.concatenate([part.ignored for part in parts]),
            partner=np.concatenate(partners),
            overlap=np.concatenate([part.overlap for part in parts]),
            is_seen=np.concatenate([part.is_seen for part in parts]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlines:
    """Where n regions lie: left, top, width and height in px (n, 4), 0 of those that are not drawn; cells of some."""

    bounds: IntArray
    cells: Sequence[bytes]  # as `shapes` packs those of masks; empty of those without

    @classmethod
    def joined(cls, parts: Sequence[Outlines]) -> Outlines:
        """Put those of images together."""
        bounds = np.concatenate([part.bounds for part in parts])
        return cls(bounds=bounds, cells=[cells for part in parts for cells in part.cells])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapImages:
    """Images of label maps: names and captions, width and height (n, 2), and the panels of those that are drawn."""

    names: Sequence[str]
    captions: Sequence[str]
    sizes: IntArray
    panels: Mapping[int, Sequence[Panel]]  # by row

    @property
    def pictures(self) -> list[str]:
        """What the names of the files of each image begin with; empty of those without."""
        return [f"maps/{row:06}-" if row in self.panels else "" for row in range(len(self.names))]

    @property
    def files(self) -> dict[str, bytes]:
        """The files of the panels."""
        starts = self.pictures
        return {
            f"{starts[row]}{layer}.png": encoded(panel)
            for row, panels in self.panels.items()
            for layer, panel in enumerate(panels)
        }


def outlined(numbers: IntArray, n: int, size: tuple[int, int]) -> Outlines:
    """Return where `n` regions lie whose numbers the pixels (h, w) of a smaller map have, -1 where there is none."""
    y, x = np.nonzero(numbers >= 0)
    at, ends = numbers[y, x], []
    for place, length, whole in ((x, numbers.shape[1], size[0]), (y, numbers.shape[0], size[1])):
        first, last = place * whole // length, np.maximum(-(-(place + 1) * whole // length), 1)
        low, high = np.full(n, whole), np.zeros(n, dtype=np.int64)
        np.minimum.at(low, at, first)
        np.maximum.at(high, at, last)
        ends.append((first, last, low, np.maximum(high - low, 0)))
    (left, right, low_x, width), (top, bottom, low_y, height) = ends
    bounds = np.stack([low_x, low_y, width, height], axis=1) * (width > 0)[:, None]
    side = np.maximum(-(-np.maximum(width, height) // CELLS), 1)
    across, down = -(-width // side), -(-height // side)
    n_bytes = -(-across * down // 8)
    start = np.cumsum(n_bytes) - n_bytes
    bits = np.zeros(8 * int(n_bytes.sum()), dtype=np.bool_)
    # A pixel of the smaller map is several of the map, in more than one cell.
    for dy in range(int((bottom - top).max(initial=0))):
        for dx in range(int((right - left).max(initial=0))):
            column = (np.minimum(left + dx, right - 1) - low_x[at]) // side[at]
            row = (np.minimum(top + dy, bottom - 1) - low_y[at]) // side[at]
            bits[8 * start[at] + row * across[at] + column] = True
    packed_bits = np.packbits(bits, bitorder="little")
    cells = [packed_bits[first : first + length].tobytes() for first, length in zip(start, n_bytes, strict=True)]
    return Outlines(bounds=bounds, cells=cells)


def map_model(
    images: MapImages,
    sides: tuple[Regions, Regions],
    outlines: Sequence[Outlines],
    names: Sequence[str],
    slices: Sequence[SliceRow],
    **words: Any,
) -> dict[str, Any]:
    """Return what the folder has of label maps: columns of their regions, and `words` about them."""
    objects, detections = sides
    n_images = len(images.names)
    counts = [np.bincount(side.image, minlength=n_images) for side in sides]
    first = [np.cumsum(count) - count for count in counts]

    def places(own: Regions, other: int, chosen: BoolArray) -> IntArray:
        """Return the partners of some regions by their places within the image, counted from 1; 0 of others."""
        there = chosen & (own.partner != NOBODY)
        return np.where(there, own.partner - first[other][own.image] + 1, 0)

    lost, false = (_kinds(*pair) for pair in ((objects, detections), (detections, objects)))
    kinds = np.full(len(detections.label), FOUND)
    kinds[detections.ignored] = IGNORED
    for kind, chosen in false.items():
        kinds[chosen] = ERRORS.index(kind)
    matched = np.where(detections.is_seen, np.append(objects.label, NOBODY)[detections.partner] + OTHERS, ON_NOTHING)
    matched[detections.found], matched[detections.ignored] = AS_LABELLED, AS_LABELLED + 2
    bounds = np.concatenate([part.bounds for part in outlines])
    label = np.concatenate([side.label for side in sides])
    shaped = np.array([bool(cells) for part in outlines for cells in part.cells], dtype=np.bool_)
    zeros = np.zeros(len(label), dtype=np.int64)
    shares = bounds / np.tile(images.sizes[np.concatenate([side.image for side in sides])], 2)
    columns: dict[str, npt.NDArray[Any]] = {
        "names": coded_text(list(map(printable, images.names))),
        "captions": coded_text(list(images.captions)),
        "width": images.sizes[:, 0],
        "height": images.sizes[:, 1],
        "objects": counts[0],
        "detections": counts[1],
        **dict(zip(("x", "y", "w", "h"), coded_boxes(shares, Grid(0.0, 1.0, float(MOST))), strict=True)),
        "label": label,
        "size": zeros,
        "score": zeros,
        "step": np.append(objects.found, np.ones(len(detections.label), dtype=np.bool_)),
        "ignored": objects.ignored,
        "seen": objects.found | objects.is_seen,
        "taken": places(objects, 1, lost["class"]),
        "beside": places(objects, 1, lost["box"]),
        "kind": kinds,
        "near": places(detections, 0, ~detections.ignored),
        "iou": np.floor(detections.overlap * 200 + 1e-9),
        "as": matched,
        "shaped": shaped,
        "px": bounds[shaped][:, ::2].ravel(),
        "py": bounds[shaped][:, 1::2].ravel(),
        "cells": np.frombuffer(b"".join(cells for part in outlines for cells in part.cells), dtype=np.uint8),
        **{f"slice {i}": np.isin(np.arange(n_images), part.rows) for i, part in enumerate(slices)},
    }
    if objects.pixels is not None and detections.pixels is not None:
        columns["pixels"] = np.append(objects.pixels, detections.pixels)
    layout, text = packed(columns)
    return {
        "layout": layout,
        "text": text,
        "classes": list(map(printable, names)),
        "slices": [printable(part.name) for part in slices],
        "pictures": "",
        "suspects": [],
        "review": None,
        "rows": None,
        "boxes": [0, MOST, True],
        "shapes": {"form": "mask", "points": 2, "cells": CELLS, "boxed": 0},
        "scores": [0, 1],
        "measure": "IoU",
        "exact": False,
        "iou": 0.5,
        "name": "",
        "steps": ["1"],
        "start": 0,
        "maps": LAYERS,
        "verb": "predicted",
        **words,
    }


def _kinds(own: Regions, other: Regions) -> dict[str, BoolArray]:
    """Return which regions of a side are wrong, by why, in the words of what is false."""
    is_wrong = ~own.found & ~own.ignored
    near, same = own.partner != NOBODY, np.append(other.label, NOBODY)[own.partner] == own.label
    return {
        "background": is_wrong & ~near,
        "box": is_wrong & near & same,
        "class": is_wrong & own.is_seen,
        "both": is_wrong & near & ~same & ~own.is_seen,
    }


def wrong_of(objects: Regions, detections: Regions) -> tuple[dict[str, IntArray], dict[str, IntArray]]:
    """Return the classes of the regions that are missed, and of those that are false, by why."""
    lost, false = (_kinds(*pair) for pair in ((objects, detections), (detections, objects)))
    lost = {"nothing": lost["background"] | lost["both"], "off": lost["box"], "taken": lost["class"]}
    return (
        {kind: objects.label[chosen] for kind, chosen in lost.items()},
        {kind: detections.label[chosen] for kind, chosen in false.items()},
    )


def class_values(values: Sequence[MetricValue], sizes: Sequence[int]) -> dict[str, Any]:
    """Return the metric of each class, and what it could still give: its size, as far as that is not reached."""
    known = [None if math.isnan(value.value) else value.value for value in values]
    lost = [0 if value is None else size * (1 - value) for value, size in zip(known, sizes, strict=True)]
    return {"values": known, "lost": lost}


def next_of(rows: Sequence[tuple[float, str, str, Mapping[str, str]]], metric: str) -> list[Any]:
    """Return the sentences of the largest gains, of gain, text, advice and what it is about."""
    best = sorted(rows, key=lambda row: -row[0])[:SHOWN_NEXT]
    return [
        [text, advice, {key: printable(value) for key, value in pick.items()}, f"+{metric_text(gain)} {metric}"]
        for gain, text, advice, pick in best
        if gain > 0
    ]
