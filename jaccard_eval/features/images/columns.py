"""Every box of an evaluation as columns for the script of a page: bytes, squeezed, about ten of them a detection.

They lie by image, objects first, and a box is known by its place among all of these. Scores and overlaps are rounded
down, so that ``>= 0.37`` keeps the boxes that it keeps here, and none reads as a threshold that it does not reach.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray, Shapes
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.result import ImageSource, SliceRow
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.errors.compute import NO_BOX, NO_ERROR
from jaccard_eval.features.images.compute import BoxOutcomes
from jaccard_eval.features.images.gallery import PLAIN_SIDE
from jaccard_eval.features.images.reasons import ERRORS, Explained
from jaccard_eval.features.images.shapes import shape_columns
from jaccard_eval.features.operating import last_steps
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, stable_order
from jaccard_eval.report.model import GalleryImage
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
        _joined(outcomes, objects, detections + n_gt), rank, sizes[outcomes.image[order]].max(axis=1), grid,
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
