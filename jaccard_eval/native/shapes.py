"""Masks and poses by the compiled core: read from COCO JSON, filled, measured, compared; None without a core."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LONGEST_NUMBER = 7  # characters of 5 bits: more than the pixels of any image
SHORTEST_RESULT = 56  # {"image_id":1,"category_id":1,"score":1,"keypoints":[]},
SHORTEST_TRUTH = 17  # {"keypoints":[]},


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedShapes:
    """Where the shapes of a text begin and stop, and next to them the columns (n,) and (n, 4) of results."""

    at: IntArray
    stop: IntArray
    bounds: IntArray  # most numbers of corners, polygons, and edges of runs
    number: IntArray  # of ground truth: its `num_keypoints`, -1 where not given
    image: IntArray
    category: IntArray
    coords: FloatArray  # NaN without a box
    score: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedOutlines:
    """Masks as `Outlines` has them, and which of them have a polygon of fewer than three points, (n,)."""

    corners: FloatArray
    rings: IntArray
    parts: IntArray
    edges: IntArray
    offsets: IntArray
    sizes: IntArray
    has_polygons: BoolArray
    is_short: BoolArray


def scan_shapes(data: bytes, *, poses: bool, role: str) -> ScannedShapes | None:
    """Find the shapes of ground truth or of a results list, of text that is UTF-8; None if any is unusual."""
    core = load_core()
    if core is None:
        return None
    is_truth = role == "gt"
    # Memory that no record comes to is never touched.
    capacity = len(data) // (SHORTEST_TRUTH if is_truth else SHORTEST_RESULT) + 1
    n_results = 0 if is_truth else capacity
    at, stop = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    number = np.empty(capacity if is_truth else 0, np.int64)
    image, category = np.empty(n_results, np.int64), np.empty(n_results, np.int64)
    coords, score = np.empty((n_results, 4)), np.empty(n_results)
    bounds = np.zeros(3, np.int64)
    columns = (bounds, at, stop, number, image, category, coords, score)
    n = _call(core.jaccard_scan_shapes, data, len(data), int(poses), int(is_truth), capacity, *columns)
    if n < 0:
        return None
    return ScannedShapes(
        at=at[:n].copy(),
        stop=stop[:n].copy(),
        bounds=bounds,
        number=number[:n].copy(),
        image=image[:n].copy(),
        category=category[:n].copy(),
        coords=coords[:n].copy(),
        score=score[:n].copy(),
    )


def read_outlines(data: bytes, scanned: ScannedShapes) -> ScannedOutlines | None:
    """Read the masks that were found; None if any is unusual."""
    core = load_core()
    if core is None:
        return None
    n = len(scanned.at)
    n_corners, n_rings, n_edges = scanned.bounds.tolist()
    corners, rings, parts = (
        np.empty((n_corners // 2 + 1, 2)),
        np.empty(n_rings + 1, np.int64),
        np.empty(n + 1, np.int64),
    )
    edges, offsets, sizes = np.empty(n_edges, np.int64), np.empty(n + 1, np.int64), np.empty((n, 2), np.int64)
    has_polygons, is_short = np.empty(n, np.bool_), np.empty(n, np.bool_)
    columns = (corners, rings, parts, edges, offsets, sizes, has_polygons, is_short)
    if _call(core.jaccard_read_outlines, data, len(data), n, scanned.at, scanned.stop, scanned.bounds, *columns) < 0:
        return None
    rings = rings[: parts[-1] + 1]
    return ScannedOutlines(
        corners=corners[: rings[-1]],
        rings=rings,
        parts=parts,
        edges=edges[: offsets[-1]],
        offsets=offsets,
        sizes=sizes,
        has_polygons=has_polygons,
        is_short=is_short,
    )


def read_poses(data: bytes, scanned: ScannedShapes) -> FloatArray | None:
    """Read the poses that were found, (n, k, 3), all of as many points as the first; None if any is unusual."""
    core = load_core()
    if core is None or not len(scanned.at):
        return None
    length = data.count(b",", scanned.at[0], scanned.stop[0]) + 1
    # No list has more numbers than half of its characters.
    if length % 3 or 2 * length * len(scanned.at) > int((scanned.stop - scanned.at).sum()):
        return None
    points = np.empty((len(scanned.at), length // 3, 3))
    places = (scanned.at, scanned.stop)
    found = _call(core.jaccard_read_poses, data, len(data), len(scanned.at), *places, length, points)
    return None if found < 0 else points


def fill_polygons(
    corners: FloatArray, rings: IntArray, masks: IntArray, sizes: IntArray, given: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray] | None:
    """Return edges and offsets of masks of polygons, in images of height and width `sizes` (n, 2).

    Masks without polygons have the edges that are given. Corners are at most `runs.FARTHEST` from the image.
    """
    core = load_core()
    if core is None:
        return None
    columns = (len(sizes), corners, rings, masks, sizes, *given)
    edges = np.empty(_call(core.jaccard_fill_polygons, *columns, None, None), np.int64)
    offsets = np.empty(len(sizes) + 1, np.int64)
    n_edges = _call(core.jaccard_fill_polygons, *columns, edges, offsets)
    return edges[:n_edges], offsets


def measure_masks(
    edges: IntArray, offsets: IntArray, sizes: IntArray | None = None
) -> tuple[IntArray, FloatArray | None] | None:
    """Return the pixels of each mask (n,), and left, top, width and height (n, 4) in images of some size (n, 2)."""
    core = load_core()
    if core is None:
        return None
    area = np.empty(len(offsets) - 1, np.int64)
    box = None if sizes is None else np.empty((len(area), 4))
    _call(core.jaccard_measure_masks, len(area), edges, offsets, sizes, area, box)
    return area, box


def encode_masks(edges: IntArray, offsets: IntArray, pixels: IntArray) -> list[bytes] | None:
    """Return the compressed string of each mask, of images of so many pixels (n,)."""
    core = load_core()
    if core is None:
        return None
    text = np.empty(LONGEST_NUMBER * (len(edges) + len(pixels)), np.uint8)
    stops = np.zeros(len(pixels) + 1, np.int64)
    _call(core.jaccard_encode_masks, len(pixels), edges, offsets, pixels, text, stops[1:])
    whole = text[: stops[-1]].tobytes()
    return [whole[start:stop] for start, stop in pairwise(stops.tolist())]


def gather(values: npt.NDArray[Any], offsets: IntArray, rows: IntArray, n: int) -> npt.NDArray[Any] | None:
    """Return the n values of some rows, one row after the other; values may themselves be rows of an array."""
    core = load_core()
    if core is None or not _within(rows, len(offsets) - 1):
        return None
    taken = np.empty((n, *values.shape[1:]), values.dtype)
    width = values.dtype.itemsize * int(np.prod(values.shape[1:]))
    _call(core.jaccard_gather, len(rows), width, values, offsets, rows, taken)
    return taken


def intersect(
    masks: tuple[IntArray, IntArray], others: tuple[IntArray, IntArray], i: IntArray, j: IntArray
) -> IntArray | None:
    """Return how many pixels masks i and others j have in common, pair by pair; both are edges and offsets."""
    core = load_core()
    if core is None or not (_within(i, len(masks[1]) - 1) and _within(j, len(others[1]) - 1)):
        return None
    shared = np.empty(len(i), np.int64)
    _call(core.jaccard_intersect, len(i), i, j, *masks, *others, shared)
    return shared


def compare_poses(
    points: tuple[FloatArray, FloatArray],
    measures: tuple[FloatArray, FloatArray, FloatArray],
    i: IntArray,
    j: IntArray,
    threshold: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Return which pairs of poses of two columns may reach a threshold, and of each how far its points are apart.

    `points` are those of both columns, (n, k, 3), measures the areas (n,) and zones (n, 4) of the second, and the
    variances (k,). Returns places of pairs and how many of their points are compared (p,), and errors (p, k).
    """
    core = load_core()
    k = points[1].shape[1]
    fits = points[0].shape[1] == k == len(measures[2]) and _within(i, len(points[0])) and _within(j, len(points[1]))
    if core is None or not fits:
        return None
    kept, number, error = np.empty(len(i), np.int64), np.empty(len(i), np.int64), np.empty((len(i), k))
    n = _call(core.jaccard_compare_poses, len(i), i, j, k, *points, *measures, threshold, kept, number, error)
    return kept[:n], number[:n], error[:n]


def _within(rows: IntArray, n: int) -> bool:
    """Whether rows are among the first n; from the end, as NumPy also counts, the core does not count."""
    return rows.dtype == np.int64 and (not len(rows) or bool(rows.min() >= 0 and rows.max() < n))


def _call(function: Any, *values: Any) -> int:
    """Call a function of the core with the places of arrays, of which those that it fills have no gaps."""
    kept = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value for value in values]
    found: int = function(*(value.ctypes.data if isinstance(value, np.ndarray) else value for value in kept))
    return found
