"""Shapes as columns of a part: lists of numbers, a list for each box, as any reader of Parquet shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import Shapes, Words
from jaccard_eval.errors import UsageError
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.similarity.runs import IntArray, offsets_of

# Of each kind, by the name that `iou_type` has for it.
COLUMNS: dict[str, dict[str, str]] = {
    "segm": {
        "runs": "int64 lists",  # where runs begin and end, down the columns of an image of this height and width
        "height": "int64",
        "width": "int64",
        "polygons": "int64 lists",  # how many corners each has
        "corners": "double lists",  # x and y of each
        "has_polygons": "bool",
        "counts_pixels": "bool",  # whether the area of the object is that of its pixels
    },
    "keypoints": {"points": "double lists"},  # x, y and visibility of each
    "obb": {"corners": "double lists"},  # x and y of four
}

Lists = tuple[npt.NDArray[Any], IntArray]  # the numbers of all rows, and where those of each row begin, and the end
Column = npt.NDArray[Any] | Lists


def columns_of_shapes(shapes: Shapes) -> dict[str, Column]:
    """Return the columns of shapes by name."""
    if isinstance(shapes, Outlines):
        runs = shapes.masks.runs
        return {
            "runs": (runs.edges, runs.offsets),
            "height": shapes.masks.sizes[:, 0],
            "width": shapes.masks.sizes[:, 1],
            "polygons": (np.diff(shapes.rings), shapes.parts),
            "corners": (shapes.corners.ravel(), shapes.rings[shapes.parts] * 2),
            "has_polygons": shapes.has_polygons,
            "counts_pixels": shapes.counts_pixels,
        }
    ((name, numbers),) = shapes.to_arrays().items()
    return {name: (numbers.ravel(), np.arange(len(numbers) + 1) * int(np.prod(numbers.shape[1:])))}


def shapes_of_columns(kind: str, columns: Mapping[str, Any]) -> Shapes:
    """Return the shapes of some rows; a ValueError reports columns that are not those of any."""
    try:
        if kind == "segm":
            return _outlines(columns)
        if kind == "obb":
            return Quads.from_arrays({"corners": _alike(columns["corners"], 8).reshape(-1, 4, 2)})
        n, length = len(columns["points"][1]) - 1, int(columns["points"][1][1])
        return Keypoints.from_arrays({"points": _alike(columns["points"], length).reshape(n, -1, 3)})
    except UsageError as error:
        raise ValueError(str(error)) from None


def meaning_of(shapes: Shapes) -> Words:
    """Return what of shapes no hash of theirs covers, as words (n, k)."""
    if not isinstance(shapes, Outlines):
        return np.zeros((len(shapes), 0), dtype=np.uint64)
    return np.stack((shapes.has_polygons, shapes.counts_pixels), axis=1).astype(np.uint64)


def _outlines(columns: Mapping[str, Any]) -> Outlines:
    (runs, offsets), (cuts, parts), (corners, ends) = (columns[name] for name in ("runs", "polygons", "corners"))
    rings = offsets_of(cuts)
    # Lists of another length would be corners of the next mask.
    if (cuts < 0).any() or not np.array_equal(rings[parts] * 2, ends):
        raise ValueError("masks: corners and polygons do not fit together")
    sizes = np.stack((columns["height"], columns["width"]), axis=1)
    flags = {name: columns[name] for name in ("has_polygons", "counts_pixels")}
    polygons = {"corners": corners.reshape(-1, 2), "rings": rings, "parts": parts}
    return Outlines.from_arrays({"edges": runs, "offsets": offsets, "sizes": sizes, **polygons, **flags})


def _alike(lists: Any, length: int) -> npt.NDArray[Any]:
    """Return the numbers of all rows, each of which must have as many."""
    numbers, offsets = lists
    if (np.diff(offsets) != length).any():
        raise ValueError(f"shapes must have {length} numbers in every row")
    return np.asarray(numbers)
