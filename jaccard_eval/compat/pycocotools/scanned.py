"""Results as the compiled core reads them from a file: columns, without a record for each of them."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray, Shapes
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import (
    RecordColumns,
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
        columns = None if found is None or found.key else found.columns
        return None if columns is None or not len(columns) else _rows(columns, "bbox", columns.coords, None)
    scanned = scan_shapes(data, poses=is_posed, role="pred")
    if scanned is None or not len(scanned.at):
        return None
    columns, boxes = scanned.columns, scanned.columns.coords
    absent = np.isnan(boxes).any(axis=1)
    shapes = _poses(data, scanned) if is_posed else _masks(data, scanned)
    if shapes is None or (absent.any() and not absent.all()):
        return None
    if not absent.any():
        return _rows(columns, "keypoints" if is_posed else "segm", boxes, shapes)
    if isinstance(shapes, Masks):
        return _rows(columns, "segm", shapes.bounds(), shapes, shapes.areas().astype(np.float64))
    xy = shapes.points[:, :, :2]
    boxes = np.hstack((xy.min(axis=1), xy.max(axis=1) - xy.min(axis=1)))
    return _rows(columns, "keypoints", boxes, shapes)


def _rows(
    columns: RecordColumns, kind: str, boxes: FloatArray, shapes: Shapes | None, area: FloatArray | None = None
) -> ScannedRows:
    return ScannedRows(
        kind=kind,
        image=np.asarray(columns.image),
        category=np.asarray(columns.category),
        boxes=boxes,
        area=boxes[:, 2] * boxes[:, 3] if area is None else area,
        score=columns.score,
        shapes=shapes,
    )


def _poses(data: bytes, scanned: ScannedShapes) -> Keypoints | None:
    points = read_poses(data, scanned)
    return None if points is None else Keypoints(points)


def _masks(data: bytes, scanned: ScannedShapes) -> Masks | None:
    outlines = read_outlines(data, scanned)
    if outlines is None or outlines.has_polygons.any():  # which need the sizes of images
        return None
    return Masks(Runs(outlines.edges, outlines.offsets), outlines.sizes)
