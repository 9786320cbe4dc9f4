"""Masks in the images of an alignment: polygons are filled, and runs checked against the size of their image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.alignment import Alignment, common_sizes
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.progress import staged
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.text import pluralise, quoted_value

_SLACK = 0.01  # by which fractions may leave 0..1, as in text labels
_STRETCH = 0.02  # by which the sides of a mask may differ in proportion from those of the image it is scaled to
_LEAVING = 0.2  # share of polygons beyond the image from which the order of their numbers is in doubt


def with_mask_sizes(side: Dataset) -> Dataset:
    """Return a side whose images have the size of their first mask of pixels, where its files have no other."""
    shapes: object = side.boxes.shapes
    if not isinstance(shapes, Outlines):
        return side
    sizes, image = side.images.sizes.copy(), side.boxes.image
    own = shapes.masks.sizes[:, ::-1]
    unknown = np.isnan(sizes[image]).any(axis=1)
    (rows,) = np.nonzero(~shapes.has_polygons & unknown & (own > 0).all(axis=1))
    sizes[image[rows[::-1]]] = own[rows[::-1]]
    return replace(side, images=replace(side.images, sizes=sizes)) if len(rows) else side


@staged("filling polygons")
def with_masks(aligned: Alignment, gt: Dataset, pred: Dataset) -> Alignment:
    """Return an alignment whose tables have masks; a DataError names those that do not fit their image."""
    sizes = common_sizes(pred, aligned.placement.images)
    findings = FindingLog()
    tables = [_filled(side, sizes, gt, aligned, findings) for side in (gt, pred)]
    findings.raise_errors()
    return replace(aligned, gt=tables[0], pred=tables[1], findings=(*aligned.findings, *findings.findings()))


def _filled(side: Dataset, sizes: FloatArray, gt: Dataset, aligned: Alignment, findings: FindingLog) -> BoxTable:
    boxes = aligned.gt if side is gt else aligned.pred
    shapes: object = boxes.shapes
    if not isinstance(shapes, Outlines):
        return boxes
    of_image = sizes[:, ::-1][boxes.image]  # height, width
    known: BoolArray = np.logical_and.reduce(np.isfinite(of_image), axis=1)
    if side.reading.units == "norm":
        shapes = _at_size_of_images(shapes, np.where(known[:, None], of_image, shapes.masks.sizes), side, findings)
    own = shapes.masks.sizes

    def where(row: int) -> Where:
        image = quoted_value(aligned.image_names[boxes.image[row]])
        return Where(side.path, record=f"annotations[{boxes.source[row]}] on image {image}", field="segmentation")

    def wrong_size(row: int) -> tuple[Where, str]:
        (height, width), (image_height, image_width) = own[row].tolist(), of_image[row].tolist()
        detail = (
            f"size of RLE is {height} x {width} (height x width), but the image has {image_height:g} x {image_width:g}"
        )
        known_from = "" if side is gt else f" in {gt.path}"
        swapped = ": height and width are swapped" if (height, width) == (image_width, image_height) else ""
        return where(row), f"{detail}{known_from}{swapped}"

    unfit = np.flatnonzero(known & ~shapes.has_polygons & (own != of_image).any(axis=1))
    fix = "Export masks at the size of the image, with size as [height, width]."
    findings.add_rows(Severity.ERROR, "mask-size", unfit, wrong_size, fix=fix)
    unsized = np.flatnonzero(~known & shapes.has_polygons)
    findings.add_rows(
        Severity.ERROR,
        "size-unknown",
        unsized,
        lambda row: (where(row), "the height and width of the image are unknown, which polygons are filled in"),
        fix="Pass the image folder with --images DIR.",
    )
    if not len(unsized):
        _refuse_fractions(side, shapes, boxes, findings)
        _warn_of_axes(side, shapes, of_image, findings)
    if len(unfit) or len(unsized) or findings.has("mask-units"):
        return boxes
    masks = shapes.in_images(np.where(shapes.has_polygons[:, None], of_image, own).astype(np.int64))
    pixels = masks.areas()
    empty = np.flatnonzero(pixels == 0)
    meaning = "objects that cannot be found" if side.role == "gt" else "false positives"
    findings.add_rows(
        Severity.WARNING,
        "mask-empty",
        empty,
        lambda row: (where(row), ""),
        summary=(
            f"{pluralise(len(empty), 'mask')} of {len(boxes):,} {'has' if len(empty) == 1 else 'have'} no pixels"
            f" (outside of the image, normalised, or thinner than a pixel): counted as {meaning}"
        ),
    )
    return replace(boxes, shapes=masks, area=np.where(shapes.counts_pixels, pixels, boxes.area))


def _at_size_of_images(shapes: Outlines, of_image: FloatArray, side: Dataset, findings: FindingLog) -> Outlines:
    """Return masks of pixels at the sizes of their images (n, 2), where these have the same shape.

    Where boxes are fractions, as in Open Images, masks are of any resolution.
    """
    own = shapes.masks.sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        stretched = (own[:, 0] * of_image[:, 1]) / (own[:, 1] * of_image[:, 0])
    is_alike = (np.abs(stretched - 1) <= _STRETCH) | (np.diff(shapes.masks.runs.offsets) == 0)
    wanted = np.where((is_alike & ~shapes.has_polygons)[:, None], of_image, own).astype(np.int64)
    (rows,) = np.nonzero((wanted != own).any(axis=1) & (own > 0).all(axis=1))
    if len(rows):
        first = " x ".join(map(str, own[rows[0]])), " x ".join(map(str, wanted[rows[0]]))
        detail = (
            f"{len(rows):,} of {pluralise(len(own), 'mask')} scaled to their images, each pixel the nearest one:"
            f" first from {first[0]} to {first[1]} (height x width)"
        )
        findings.note("mask-scaled", Where(side.path, field="segmentation"), detail)
    return replace(shapes, masks=shapes.masks.resized(wanted))


def _refuse_fractions(side: Dataset, shapes: Outlines, boxes: BoxTable, findings: FindingLog) -> None:
    """Report polygons that all lie within one pixel, which are fractions of their images."""
    corners, n = shapes.corners, int(np.count_nonzero(shapes.has_polygons))
    if not len(corners) or corners.min() < -_SLACK or corners.max() > 1 + _SLACK:
        return
    detail = f"{pluralise(n, 'polygon lies', 'polygons lie')} within 0..1: normalised, not in pixels"
    fix = f"Rerun with --{side.role}-units norm."
    if (boxes.xywh[:, 2:] > 1 + _SLACK).any():
        fix = "Multiply x by the width and y by the height of the image, as in the boxes."
    findings.error("mask-units", Where(side.path, field="segmentation"), detail, fix=fix)


def _warn_of_axes(side: Dataset, shapes: Outlines, of_image: FloatArray, findings: FindingLog) -> None:
    """Warn about polygons that leave their images, and would not if x and y were exchanged."""
    (drawn,) = np.nonzero(shapes.has_polygons)
    bounds, size = shapes.bounds()[drawn], of_image[drawn, ::-1]  # width, height
    far = bounds[:, :2] + bounds[:, 2:]
    beyond, exchanged = ((end > size + 1).any(axis=1).sum() for end in (far, far[:, ::-1]))
    if beyond > _LEAVING * len(drawn) and exchanged * 10 <= beyond:
        detail = (
            f"{beyond:,} of {pluralise(len(drawn), 'polygon leaves its image', 'polygons leave their images')},"
            f" {exchanged:,} with x and y exchanged: y seems to come first"
        )
        fix = "Write x before y for each corner."
        findings.warning("mask-axes", Where(side.path, field="segmentation"), detail, fix=fix)
