"""Boxes that leave their images, and boxes larger than those."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.alignment import common_sizes
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Dataset
from jaccard_eval.errors import FindingLog, Severity, Where
from jaccard_eval.features.audit.context import MISREAD, Evidence
from jaccard_eval.features.audit.sample import IntArray

SLACK_PIXELS = 1.0  # px by which a box may leave its image: rounding, or coordinates counted from 1
SLACK_SHARE = 0.01  # of the image's side by which it may, whichever is more
MANY = 0.2  # share of boxes outside from which they are no accident
LARGER = 1.1  # times the image's area from which a box is larger than the image
FIX = "Check the encoding and units of the boxes, and that the sizes are those of these images."
EDGES = ("left", "top", "right", "bottom")


def check_outside(evidence: Evidence, findings: FindingLog) -> None:
    """Count the boxes that leave their image; warn of many, and of ground truth whose centre lies outside."""
    sizes = image_sizes(evidence)
    if findings.has(*MISREAD):
        return
    sizes = np.where(np.isnan(sizes), MAX_IMAGE_SIDE, sizes)  # whatever their size, no images are larger
    placed, sample = evidence.aligned.placement, evidence.sample
    for side, boxes in ((evidence.gt, placed.gt), (evidence.pred, sample.pred)):  # all objects, some predictions
        is_sample = boxes is sample.pred and sample.share < 1
        images = _Images(side, sizes, evidence.aligned.image_names, placed.units, is_sample)
        outside = images.outside(boxes)
        if len(outside):
            _report_outside(images, boxes, outside, findings)
            _report_large(images, boxes, outside, findings)


def image_sizes(evidence: Evidence) -> FloatArray:
    """Return width and height of the common images (n, 2) in the units of the boxes; NaN where they are not known."""
    placed = evidence.aligned.placement
    if placed.units == "norm":
        return np.ones((len(placed.images.table), 2))
    sizes = common_sizes(evidence.pred, placed.images)
    return np.where(sizes > 0, sizes, np.nan)  # exporters write 0 for a size they do not know


def leaving(xywh: FloatArray, size: FloatArray, units: str) -> BoolArray:
    """Return whether boxes leave their image at the left, top, right and bottom, shape (n, 4).

    Parameters
    ----------
    xywh : ndarray of float64, shape (n, 4)
    size : ndarray of float64, shape (n, 2)
        Width and height of each box's image; no box leaves an image of unknown size.
    units : {"px", "norm"}
        Pixels may be left by one; a hundredth of the side always.
    """
    slack = np.maximum(SLACK_SHARE * size, SLACK_PIXELS if units == "px" else 0.0)
    near, far = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
    return np.concatenate((near < -slack, far > size + slack), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Images:
    """One side, with the sizes (n, 2) and names of the common images."""

    side: Dataset
    sizes: FloatArray
    names: tuple[str, ...]
    units: str
    is_sample: bool

    def outside(self, boxes: BoxTable) -> IntArray:
        """Rows of boxes that leave their image."""
        left, top, right, bottom = leaving(boxes.xywh, self.sizes[boxes.image], self.units).T
        return np.flatnonzero(left | top | right | bottom)

    def count(self, boxes: BoxTable) -> str:
        """Say how many boxes there are, or were looked at."""
        return f"{len(boxes):,} boxes{' looked at' if self.is_sample else ''}"

    def describe(self, boxes: BoxTable, row: int) -> tuple[Where, str]:
        """Name a box by its image and numbers."""
        image = boxes.image[row]
        numbers = ", ".join(f"{value:.6g}" for value in boxes.xywh[row])
        width, height = self.sizes[image]
        where = Where(self.side.path, record=f"image {self.names[image]}")
        size = "any image" if MAX_IMAGE_SIDE in (width, height) else f"{width:g} x {height:g}"
        return where, f"x y w h {numbers} in {size}"


def _report_outside(images: _Images, boxes: BoxTable, rows: IntArray, findings: FindingLog) -> None:
    xywh, size = boxes.xywh[rows], images.sizes[boxes.image[rows]]
    counts = np.count_nonzero(leaving(xywh, size, images.units), axis=0)
    edges = ", ".join(f"{count:,} at the {edge}" for edge, count in zip(EDGES, counts, strict=True) if count)
    centre = xywh[:, :2] + xywh[:, 2:] / 2
    far = int(np.count_nonzero(((centre < 0) | (centre > size)).any(axis=1)))
    beyond = f"; the centre of {far:,} lies outside" if far else ""
    leave = "leaves its image" if len(rows) == 1 else "leave their image"
    is_wrong = len(rows) > MANY * len(boxes) or (images.side.role == "gt" and far > 0)
    findings.add_rows(
        Severity.WARNING if is_wrong else Severity.NOTE,
        "box-outside",
        rows,
        lambda row: images.describe(boxes, row),
        summary=f"{len(rows):,} of {images.count(boxes)} {leave} ({edges}){beyond}",
        fix=FIX if is_wrong else "",
    )


def _report_large(images: _Images, boxes: BoxTable, rows: IntArray, findings: FindingLog) -> None:
    size = images.sizes[boxes.image[rows]]
    large = rows[boxes.xywh[rows, 2] * boxes.xywh[rows, 3] > LARGER * size[:, 0] * size[:, 1]]
    larger = "is larger than its image" if len(large) == 1 else "are larger than their image"
    is_wrong = images.side.role == "gt" or len(large) > MANY * len(boxes)
    findings.add_rows(
        Severity.WARNING if is_wrong else Severity.NOTE,
        "box-gigantic",
        large,
        lambda row: images.describe(boxes, row),
        summary=f"{len(large):,} of {images.count(boxes)} {larger}",
        fix=FIX if is_wrong else "",
    )
