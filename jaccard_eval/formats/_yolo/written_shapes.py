"""The masks, poses and oriented boxes of a data set as text labels have them: fractions of the image."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.encodings import outside_image
from jaccard_eval.formats._yolo.lines import IntArray
from jaccard_eval.reading.writing import exact_coords, exact_fractions, number_rows, report_rounded
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.similarity.runs import offsets_of, runs_of_polygons
from jaccard_eval.similarity.tracing import joined_outline, outlines_of
from jaccard_eval.text import pluralise


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
    quads = corners.reshape(-1, 4, 2)
    _, refused = outside_image(np.hstack((quads.min(axis=1), quads.max(axis=1))), "xyxy", dataset.role)
    fix = "Write another format: an oriented box cannot be cut at the border."
    _report_refused(("oriented box", "oriented boxes"), refused, _places(dataset, path), findings, fix)
    return number_rows(corners.reshape(-1, 8), " ")


def box_fractions(dataset: Dataset, path: Path, findings: FindingLog) -> tuple[FloatArray, BoolArray]:
    """Return centres and sizes (n, 4) as fractions of the image, and which are read back to the last bit.

    What the reader would refuse is cut at the border, with a warning.
    """
    xywh = dataset.boxes.xywh
    sizes = None if dataset.units == "norm" else dataset.images.sizes[dataset.boxes.image]
    coords, exact = exact_coords(xywh, "cxcywh", sizes)
    _, refused = outside_image(coords, "cxcywh", dataset.role)
    _report_refused(("box", "boxes"), refused, _places(dataset, path), findings)
    if refused.any():
        most = np.ones((len(xywh), 2)) if sizes is None else sizes
        low = np.clip(xywh[:, :2], 0, most)
        # Of a side below zero nothing is left.
        high = np.clip(xywh[:, :2] + xywh[:, 2:], low, most)
        cut = np.where(refused[:, None], np.hstack((low, high - low)), xywh)
        coords, exact = exact_coords(cut, "cxcywh", sizes)
    return coords, exact


def _places(dataset: Dataset, path: Path) -> Callable[[int], tuple[Where, str]]:
    return lambda row: (Where(str(path), record=f"box {dataset.boxes.source[row]}"), "")


def _report_refused(
    nouns: tuple[str, str],
    refused: BoolArray,
    place: Callable[[int], tuple[Where, str]],
    findings: FindingLog,
    fix: str = "",
) -> None:
    """Report shapes that no reader of such labels takes: an error with `fix`, else a warning that they are cut."""
    (rows,) = np.nonzero(refused)
    detail = pluralise(len(rows), f"{nouns[0]} leaves its image", f"{nouns[1]} leave their images")
    findings.add_rows(
        Severity.ERROR if fix else Severity.WARNING,
        "write-loss",
        rows,
        place,
        fix=fix,
        summary=f"{detail}, which labels cannot hold" + ("" if fix else "; cut at the border"),
    )


def _fractions(points: FloatArray, owner: IntArray, dataset: Dataset) -> tuple[FloatArray, BoolArray]:
    """Return points (m, 2) of boxes as fractions of their images, and which are read back to the last bit."""
    if dataset.units == "norm":
        return points, np.ones(len(points), dtype=np.bool_)
    sizes = dataset.images.sizes[dataset.boxes.image[owner]]
    shares, exact = exact_fractions(points.ravel(), sizes.ravel())
    return shares.reshape(-1, 2), np.all(exact.reshape(-1, 2), axis=1)


def _polygons(shapes: Outlines, dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return a closed line for each mask, which is what such labels hold; parts and holes are joined by bridges."""
    n = len(shapes)
    known = dataset.images.sizes[dataset.boxes.image][:, ::-1]  # height and width
    is_sized = np.logical_and.reduce(np.isfinite(known), axis=1)
    sizes = np.where((shapes.has_polygons & is_sized)[:, None], known, shapes.masks.sizes).astype(np.int64)

    def place(row: int) -> tuple[Where, str]:
        return Where(str(path), record=f"box {dataset.boxes.source[row]}", field="segmentation"), ""

    unfit = ~shapes.has_polygons & is_sized & (sizes != known).any(axis=1) & (dataset.reading.units == "px")
    findings.add_rows(
        Severity.ERROR,
        "mask-size",
        np.flatnonzero(unfit),
        lambda row: (place(row)[0], f"has {sizes[row, 0]} x {sizes[row, 1]} pixels, its image another size"),
        fix="Export masks at the size of the image, with size as [height, width].",
    )
    unit = np.ones((n, 2)) if dataset.units == "norm" else known[:, ::-1]
    bounds = shapes.bounds()
    reach = np.hstack((bounds[:, :2] / unit, (bounds[:, :2] + bounds[:, 2:]) / unit))
    refused = shapes.has_polygons & outside_image(reach, "xyxy", dataset.role)[1]
    _report_refused(("polygon", "polygons"), refused, _places(dataset, path), findings)
    # What is one polygon is written as it is; of others the line is compared with the pixels that it has to give.
    is_single = shapes.has_polygons & (np.diff(shapes.parts) == 1) & ~refused
    (checked,) = np.nonzero(~is_single & (sizes > 0).all(axis=1))
    wanted = shapes.take(checked).in_images(sizes[checked])
    pixels = dict(zip(checked.tolist(), wanted.areas().tolist(), strict=True))
    empty = [row for row in range(n) if not (is_single[row] or pixels.get(row))]
    findings.add_rows(
        Severity.ERROR,
        "write-loss",
        empty,
        place,
        summary=f"masks without an outline: {len(empty):,} of {n:,}; no pixels, or parts in an image of unknown size",
        fix=Fix.missing("Remove masks without pixels, and pass {images} for the sizes.", images=None),
    )
    if empty or unfit.any():
        return [""] * n
    masks = {row: wanted.take(np.array([at])) for at, row in enumerate(checked.tolist())}
    lines = [_line(shapes, row, masks.get(row), is_kept=not refused[row]) for row in range(n)]
    owner = np.repeat(np.arange(n), [len(line) for line in lines])
    corners = np.concatenate(lines) if lines else np.zeros((0, 2))
    if dataset.units == "norm":
        # Polygons are fractions already; runs are pixels at a size of their own.
        corners = np.where(shapes.has_polygons[owner, None], corners, corners / np.maximum(sizes[owner, ::-1], 1))
    shares, exact = _fractions(corners, owner, dataset)
    is_exact = np.ones(n, dtype=np.bool_)
    is_exact[owner[~exact]] = False
    report_rounded(is_exact, path, findings)
    texts, bounds = number_rows(shares, " "), offsets_of([len(line) for line in lines]).tolist()
    return [" ".join(texts[start:stop]) for start, stop in pairwise(bounds)]


def _line(shapes: Outlines, row: int, mask: Masks | None, *, is_kept: bool) -> FloatArray:
    """Return the corners (k, 2) of the line for a mask: its own where they give its pixels, else those around them.

    Its own are not used unless `is_kept`.
    """
    rings = [
        shapes.corners[shapes.rings[ring] : shapes.rings[ring + 1]]
        for ring in range(shapes.parts[row], shapes.parts[row + 1])
    ]
    if mask is None:
        return rings[0] if rings else np.zeros((0, 2))
    if rings and is_kept:
        line = joined_outline([ring for ring in rings if len(ring)])
        filled = runs_of_polygons(line, np.array([0, len(line)]), np.array([0, 1]), mask.sizes)
        if np.array_equal(filled.edges, mask.runs.edges):
            return line
    return joined_outline(outlines_of(mask))


def _poses(poses: Keypoints, dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return boxes, then x, y and visibility of each point; of what does not count no point is labelled."""
    boxes, n = dataset.boxes, poses.points.shape[1]
    points = poses.points.copy()
    if dataset.role == "gt":
        points[boxes.ignore, :, 2] = 0
    coords, exact = box_fractions(dataset, path, findings)
    xy, exact_points = _fractions(points[:, :, :2].reshape(-1, 2), np.repeat(np.arange(len(boxes)), n), dataset)
    points[:, :, :2] = xy.reshape(-1, n, 2)
    report_rounded(exact & np.all(exact_points.reshape(-1, n), axis=1), path, findings)
    return number_rows(np.concatenate((coords, points.reshape(len(boxes), -1)), axis=1), " ")
