"""The polygons, poses and oriented boxes of a data set as text labels have them: fractions of the image."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.formats._yolo.lines import IntArray
from jaccard_eval.reading.writing import exact_coords, exact_fractions, number_rows, report_rounded
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.similarity.quads import Quads


def shape_rows(dataset: Dataset, path: Path, findings: FindingLog) -> list[str] | None:
    """Return the numbers of each line behind its class, without the score; None where there are boxes alone."""
    boxes = dataset.boxes
    shapes: object = boxes.shapes
    if isinstance(shapes, Outlines):
        return _polygons(shapes, dataset, path, findings)
    if isinstance(shapes, Keypoints):
        return _poses(shapes, dataset, path, findings)
    if not isinstance(shapes, Quads):
        return None
    corners, exact = _fractions(shapes.corners.reshape(-1, 2), np.repeat(np.arange(len(boxes)), 4), dataset)
    report_rounded(np.all(exact.reshape(-1, 4), axis=1), path, findings)
    return number_rows(corners.reshape(-1, 8), " ")


def _fractions(points: FloatArray, owner: IntArray, dataset: Dataset) -> tuple[FloatArray, BoolArray]:
    """Return points (m, 2) of boxes as fractions of their images, and which are read back to the last bit."""
    if dataset.units == "norm":
        return points, np.ones(len(points), dtype=np.bool_)
    sizes = dataset.images.sizes[dataset.boxes.image[owner]]
    shares, exact = exact_fractions(points.ravel(), sizes.ravel())
    return shares.reshape(-1, 2), np.all(exact.reshape(-1, 2), axis=1)


def _polygons(shapes: Outlines, dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return the corners of polygons; what has none, or several, is what such labels cannot hold."""

    def place(row: int) -> tuple[Where, str]:
        return Where(str(path), record=f"box {dataset.boxes.source[row]}", field="segmentation"), ""

    n_rings = np.diff(shapes.parts)
    (coded,) = np.nonzero(~shapes.has_polygons)
    findings.add_rows(
        Severity.ERROR,
        "write-loss",
        coded,
        place,
        summary=f"{len(coded):,} masks are RLE; labels of YOLO hold polygons",
        fix="Write COCO JSON (--to coco), or boxes alone (--iou-type bbox).",
    )
    (parted,) = np.nonzero(n_rings > 1)
    if len(parted):
        detail = f"masks of several polygons: {len(parted):,}; the output format holds one, the largest is written"
        findings.warning("write-loss", Where(str(path), field="segmentation"), detail)
    lengths = np.diff(shapes.rings)
    largest = [
        start + int(np.argmax(_sizes(shapes, start, stop))) if stop > start else -1
        for start, stop in pairwise(shapes.parts.tolist())
    ]
    owner = np.repeat(np.repeat(np.arange(len(shapes)), n_rings), lengths)
    corners, exact = _fractions(shapes.corners, owner, dataset)
    is_exact = np.ones(len(shapes), dtype=np.bool_)
    is_exact[owner[~exact]] = False
    report_rounded(is_exact, path, findings)
    texts = number_rows(corners, " ")
    bounds = shapes.rings.tolist()
    return [" ".join(texts[bounds[ring] : bounds[ring + 1]]) if ring >= 0 else "" for ring in largest]


def _sizes(shapes: Outlines, start: int, stop: int) -> list[float]:
    """Return twice the area of some polygons."""
    found = []
    for ring in range(start, stop):
        x, y = shapes.corners[shapes.rings[ring] : shapes.rings[ring + 1]].T
        found.append(abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())))
    return found


def _poses(poses: Keypoints, dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return boxes, then x, y and visibility of each point; of what does not count no point is labelled."""
    boxes, n = dataset.boxes, poses.points.shape[1]
    points = poses.points.copy()
    if dataset.role == "gt":
        points[boxes.ignore, :, 2] = 0
    sizes = None if dataset.units == "norm" else dataset.images.sizes[boxes.image]
    coords, exact = exact_coords(boxes.xywh, "cxcywh", sizes)
    xy, exact_points = _fractions(points[:, :, :2].reshape(-1, 2), np.repeat(np.arange(len(boxes)), n), dataset)
    points[:, :, :2] = xy.reshape(-1, n, 2)
    report_rounded(exact & np.all(exact_points.reshape(-1, n), axis=1), path, findings)
    return number_rows(np.concatenate((coords, points.reshape(len(boxes), -1)), axis=1), " ")
