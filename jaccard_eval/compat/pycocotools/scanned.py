"""Results as the compiled core reads them from a file: columns, without a record for each of them."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray, Shapes
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import (
    ScannedResults,
    ScannedShapes,
    read_outlines,
    read_poses,
    scan_results,
    scan_shapes,
)
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.runs import Runs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScannedRows:
    """Results in the order of their file, with the areas and boxes that `COCO.loadRes` gives them; ids count from 1."""

    kind: str  # what they can be compared as, besides boxes
    image: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    boxes: FloatArray
    area: FloatArray
    score: FloatArray
    shapes: Shapes | None


def scan_rows(data: bytes) -> ScannedRows | None:
    """Read a list of results; None without a core, or where anything is out of the ordinary."""
    is_posed = b'"keypoints"' in data
    if not is_posed and b'"segmentation"' not in data:
        found = scan_results(BytesIO(data), len(data))
        is_plain = found is not None and not found.key and len(found.score)
        return _rows(found, "bbox", found.coords, _area(found.coords), None) if found is not None and is_plain else None
    scanned = scan_shapes(data, poses=is_posed, role="pred")
    if scanned is None or not len(scanned.score):
        return None
    boxes, absent = scanned.coords, np.isnan(scanned.coords).any(axis=1)
    shapes = _poses(data, scanned) if is_posed else _masks(data, scanned)
    if shapes is None or (absent.any() and not absent.all()):
        return None
    if not absent.any():
        return _rows(scanned, "keypoints" if is_posed else "segm", boxes, _area(boxes), shapes)
    if isinstance(shapes, Masks):
        return _rows(scanned, "segm", shapes.bounds(), shapes.areas().astype(np.float64), shapes)
    xy = shapes.points[:, :, :2]
    boxes = np.hstack((xy.min(axis=1), xy.max(axis=1) - xy.min(axis=1)))
    return _rows(scanned, "keypoints", boxes, _area(boxes), shapes)


def _rows(
    found: ScannedResults | ScannedShapes, kind: str, boxes: FloatArray, area: FloatArray, shapes: Shapes | None
) -> ScannedRows:
    image, category, score = found.image, found.category, found.score
    return ScannedRows(kind=kind, image=image, category=category, boxes=boxes, area=area, score=score, shapes=shapes)


def _poses(data: bytes, scanned: ScannedShapes) -> Keypoints | None:
    points = read_poses(data, scanned)
    return None if points is None else Keypoints(points)


def _masks(data: bytes, scanned: ScannedShapes) -> Masks | None:
    outlines = read_outlines(data, scanned)
    if outlines is None or outlines.has_polygons.any():  # which need the sizes of images
        return None
    return Masks(Runs(outlines.edges, outlines.offsets), outlines.sizes)


def _area(boxes: FloatArray) -> FloatArray:
    return boxes[:, 2] * boxes[:, 3]
