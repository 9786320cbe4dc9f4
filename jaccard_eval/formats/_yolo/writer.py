"""A folder of text labels from a data set: a file per image, a line per box or shape, and ``data.yaml``."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.reader import IntArray, outside_image
from jaccard_eval.formats._yolo.sources import twin_folder
from jaccard_eval.reading.files import is_label_name
from jaccard_eval.reading.writing import (
    UNIVERSE,
    Column,
    below_shared_place,
    exact_coords,
    exact_fractions,
    number_rows,
    report_losses,
    report_rounded,
    require_file_names,
    require_names,
    require_sizes,
    rows_by_owner,
)
from jaccard_eval.similarity.boundary import joined_outline, outlines_of
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import offsets_of, runs_of_polygons
from jaccard_eval.text import pluralise, quoted_value


def shape_rows(dataset: Dataset, path: Path, findings: FindingLog) -> list[str] | None:
    """Return the numbers of each line behind its class, without the score; None where there are boxes alone."""
    boxes = dataset.table
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
    xywh = dataset.table.xywh
    sizes = None if dataset.units == "norm" else dataset.images.sizes[dataset.table.image]
    coords, exact = exact_coords(xywh, "cxcywh", sizes)
    _, refused = outside_image(coords, "cxcywh", dataset.role)
    _report_refused(("box", "boxes"), refused, _places(dataset, path), findings)
    if refused.any():
        most = np.ones((len(xywh), 2)) if sizes is None else sizes
        low = np.clip(xywh[:, :2], 0, most)
        # Of a side below zero nothing is left.
        high = np.clip(xywh[:, :2] + xywh[:, 2:], low, most)
        cut = np.hstack((low, high - low))[refused]
        coords[refused], exact[refused] = exact_coords(cut, "cxcywh", most[refused])
    return coords, exact


def _places(dataset: Dataset, path: Path) -> Callable[[int], tuple[Where, str]]:
    return lambda row: (Where(str(path), record=f"box {dataset.table.source[row]}"), "")


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
    sizes = dataset.images.sizes[dataset.table.image[owner]]
    shares, exact = exact_fractions(points.ravel(), sizes.ravel())
    return shares.reshape(-1, 2), np.all(exact.reshape(-1, 2), axis=1)


def _polygons(shapes: Outlines, dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return a closed line for each mask, which is what such labels hold; parts and holes are joined by bridges."""
    n = len(shapes)
    known = dataset.images.sizes[dataset.table.image][:, ::-1]  # height and width
    is_sized = np.logical_and.reduce(np.isfinite(known), axis=1)
    sizes = np.where((shapes.has_polygons & is_sized)[:, None], known, shapes.masks.sizes).astype(np.int64)

    def place(row: int) -> tuple[Where, str]:
        return Where(str(path), record=f"box {dataset.table.source[row]}", field="segmentation"), ""

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
    boxes, n = dataset.table, poses.points.shape[1]
    points = poses.points.copy()
    if dataset.role == "gt":
        points[boxes.ignore, :, 2] = 0
    coords, exact = box_fractions(dataset, path, findings)
    xy, exact_points = _fractions(points[:, :, :2].reshape(-1, 2), np.repeat(np.arange(len(boxes)), n), dataset)
    points[:, :, :2] = xy.reshape(-1, n, 2)
    report_rounded(exact & np.all(exact_points.reshape(-1, n), axis=1), path, findings)
    return number_rows(np.concatenate((coords, points.reshape(len(boxes), -1)), axis=1), " ")


DESCRIPTION = "data.yaml"
_REMARK = (
    "# Paths start from the folder of this file. Labels are looked for next to the images, in labels/ for images/.\n"
)
# Formats whose class keys are indices; those of others may count from 1 or leave gaps, as COCO's ids do.
_INDEXED = ("yolo", "arrays")


def write_folder(dataset: Dataset, path: Path, findings: FindingLog, *, as_read: bool = False) -> None:
    """Write a data set as text labels: centre-size fractions, or `as_read` pixels where it was read from pixels.

    Predictions end with their score.
    """
    in_pixels = as_read and dataset.reading.units == "px"
    report_losses(dataset, path, findings, ("shapes", *UNIVERSE))  # of sizes, fractions need none
    if not in_pixels:
        require_sizes(dataset, "YOLO", findings)
    if dataset.key_format not in _INDEXED:
        require_names(dataset, "YOLO", findings)
    files = _file_names(dataset, path, findings)
    numbers, names = _classes(dataset, path, findings)
    boxes = dataset.table
    coords = np.zeros((0, 4))
    rows = None if in_pixels else shape_rows(dataset, path, findings)
    if rows is None and not in_pixels:
        coords, exact = box_fractions(dataset, path, findings)
        report_rounded(exact, path, findings)
    findings.raise_errors()
    if in_pixels:
        coords = _pixels(dataset, path, findings)
    columns: list[Column] = [(list(map(str, numbers)), boxes.label), " "]
    columns += [coords if rows is None else (rows, np.arange(len(rows)))]
    columns += [] if boxes.score is None else [" ", boxes.score[:, None]]
    texts = rows_by_owner([*columns, "\n"], boxes.image, len(files))
    contents = {f"{name}.txt": text for name, text in zip(files, texts, strict=True)}
    shapes: object = boxes.shapes
    if isinstance(shapes, Keypoints) and len(shapes):
        names = names or tuple(str(number) for number in range(max(numbers) + 1))
        contents[DESCRIPTION] = _description(path, names, kpt_shape=[shapes.points.shape[1], 3]).encode()
    elif names:
        contents[DESCRIPTION] = _description(path, names).encode()
    replace_folder(path, contents)


def _file_names(dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return the label file of each image, without its suffix: that of its file name, else its key."""
    images = dataset.images
    written = [without_suffix(images.name(row)).replace("\\", "/") for row in range(len(images))]
    names = below_shared_place(written, path, findings)
    require_file_names(dataset, names, findings, is_usable=lambda name: is_label_name(f"{name}.txt"))
    return names


def _classes(dataset: Dataset, path: Path, findings: FindingLog) -> tuple[list[int], tuple[str, ...]]:
    """Return the number of each class in label lines, and all names by number: none where keys are indices.

    Where keys are not indices from 0, classes are numbered in their order, and named.
    """
    labels = dataset.labels
    indices = [key for key in labels.keys if isinstance(key, int) and key >= 0]
    where = Where(str(path), field="class")
    if not labels.named and len(indices) == len(labels):
        return indices, ()
    if indices != list(range(len(labels))):
        detail = f"classes are numbered 0 to {len(labels) - 1} in the order of their keys; {DESCRIPTION} names them"
        findings.note("write-loss", where, detail)
    broken = [name for name in labels.names if not name.strip() or name != " ".join(name.splitlines()).strip()]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (
            Where(dataset.path, field="class"),
            f"{quoted_value(broken[row])} cannot be the name of a class in {DESCRIPTION}",
        ),
        fix="Rename the class: one line, no spaces at the ends.",
    )
    return list(range(len(labels))), labels.names


def _pixels(dataset: Dataset, path: Path, findings: FindingLog) -> FloatArray:
    """Return the numbers of the boxes (n, 4) as they were read, and report how to read them again."""
    encoding = dataset.reading.encoding
    coords, exact = exact_coords(dataset.table.xywh, encoding)
    fix = Fix.of_side(dataset.role, "Read it with {units} {box}.", units="px", box=encoding)
    findings.note("write-pixels", Where(str(path)), f"boxes are written in pixels, as {encoding}", fix=fix)
    report_rounded(exact, path, findings)
    return coords


def _description(path: Path, names: tuple[str, ...], **more: list[int]) -> str:
    """Return the text of ``data.yaml``, as Ultralytics has it."""
    import yaml  # most outputs are none

    folder = Path(os.path.abspath(path))  # noqa: PTH100 - links stay, as in the paths that are compared with it
    images = Path(os.path.relpath(twin_folder(folder, "labels", "images"), folder)).as_posix()
    # No "path": where it is missing, paths start from the file; a relative one starts from a folder of settings.
    # Ultralytics insists on both splits.
    content = {"train": images, "val": images, "nc": len(names), "names": dict(enumerate(names)), **more}
    return _REMARK + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
