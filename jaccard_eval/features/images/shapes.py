"""Shapes of boxes as columns for the script of a page, which draws them: masks by cells, all others by points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes
from jaccard_eval.features.images.gallery import COCO_EDGES, COCO_POINTS, seen_points
from jaccard_eval.matching import IntArray
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.obb import Quads

Column = npt.NDArray[Any]
CELLS = 32  # along the longer side of a mask
UNSEEN = np.iinfo(np.uint16).max  # for the coordinates of a point
MOST_NUMBERS = 20  # of a shape that takes one place of those that a page has


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
