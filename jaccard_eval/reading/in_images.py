"""Masks in the images of an alignment: polygons are filled, and runs checked against the size of their image."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from jaccard_eval.data.alignment import Alignment, common_sizes
from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, Chosen, FloatArray, RowArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import IMAGES_OF, Fix
from jaccard_eval.progress import staged
from jaccard_eval.similarity.masks import Masks, filled, on_canvases, outlines_of, sizes_in_images, with_sizes
from jaccard_eval.text import pluralise, quoted_value

_SLACK = 0.01  # by which fractions may leave 0..1, as in text labels
_LEAVING = 0.2  # share of polygons beyond the image from which the order of their numbers is in doubt


def with_mask_sizes(side: Dataset) -> Dataset:
    """Return a side whose images have the size of their first mask of pixels, where its files have no other."""
    sizes = side.images.sizes.copy()
    unknown: BoolArray = np.logical_or.reduce(np.isnan(sizes), axis=1)
    for boxes in side.boxes.tables() if unknown.any() else ():
        outlines = outlines_of(boxes)
        if outlines is not None:
            own = outlines.masks.sizes[:, ::-1]
            (rows,) = np.nonzero(~outlines.has_polygons & unknown[boxes.image] & (own > 0).all(axis=1))
            sizes[boxes.image[rows[::-1]]] = own[rows[::-1]]
            unknown[boxes.image[rows]] = False
    return replace(side, images=replace(side.images, sizes=sizes))


def with_image_sizes(side: Dataset, sizes: FloatArray, rows: RowArray) -> Dataset:
    """Return a side whose masks have the size of their image where its file has none; the same side if all have one.

    `sizes` are those of common images, `rows` which of these each image of the side is, -1 for none.
    """
    if not any((found := outlines_of(table)) is not None and found.are_unsized.any() for table in side.boxes.tables()):
        return side
    own = np.where(rows[:, None] < 0, np.nan, sizes[rows])
    return replace(side, boxes=side.boxes.mapped(partial(with_sizes, sizes=own)).settled())


@staged("filling polygons")
def with_masks(aligned: Alignment, gt: Dataset, pred: Dataset, *, anywhere: bool = False) -> Alignment:
    """Return an alignment whose tables have masks; a DataError names those that do not fit their image.

    Masks are `anywhere` where only what they share counts, not where in the image they are: images whose size neither
    side knows then need none.
    """
    sizes = common_sizes(pred, aligned.placement.images)
    findings = FindingLog()
    if anywhere and np.isnan(sizes).any():
        known, sizes = sizes, on_canvases(sizes, chain(aligned.gt.tables(), aligned.pred.tables()))
        found = np.isnan(known).any(axis=1) & np.isfinite(sizes).all(axis=1)
        are_runs = bool((sizes[found, 0] == 1).any())
        if found.any():
            detail = (
                f"the size of {pluralise(int(found.sum()), 'image')} is not known: masks are compared as if"
                f" {'all runs went down the columns' if are_runs else 'nothing of them left the image'}"
            )
            report = findings.warning if are_runs else findings.note
            report("size-assumed", Where(pred.path, field="segmentation"), detail, fix=IMAGES_OF["gt"])
            aligned = replace(aligned, applied={**aligned.applied, "mask_sizes": f"assumed:{int(found.sum())}"})
    tables = [_filled(side, sizes, gt, aligned, findings) for side in (gt, pred)]
    findings.raise_errors()
    return replace(aligned, gt=tables[0], pred=tables[1], findings=(*aligned.findings, *findings.findings()))


def _filled(side: Dataset, sizes: FloatArray, gt: Dataset, aligned: Alignment, findings: FindingLog) -> Boxes:
    boxes = aligned.gt if side is gt else aligned.pred
    # Where boxes are fractions, as in Open Images, masks are of any resolution.
    scales = side.reading.units == "norm"
    found = _Outlined(scales=scales)
    for table in boxes.tables():
        found.add(table, sizes)
    if not found.n_shapes:
        return boxes

    def where(table: BoxTable, row: int) -> Where:
        image = quoted_value(aligned.image_names[table.image[row]])
        return Where(side.path, record=f"annotations[{table.source[row]}] on image {image}", field="segmentation")

    def wrong_size(row: int) -> tuple[Where, str]:
        table = found.unfit.boxes
        outlines = outlines_of(table)
        assert outlines is not None  # of tables that have some
        height, width = outlines.masks.sizes[row].tolist()
        image_width, image_height = sizes[table.image[row]].tolist()
        if outlines.are_unsized[row]:
            last = int(outlines.masks.runs.ends()[row])
            size = f"{image_width:g} x {image_height:g} pixels (width x height)"
            return where(table, row), f"runs reach pixel {last:,}, but the image has {size}"
        detail = (
            f"size of RLE is {height} x {width} (height x width), but the image has {image_height:g} x {image_width:g}"
        )
        known_from = "" if side is gt else f" in {gt.path}"
        swapped = ": height and width are swapped" if (height, width) == (image_width, image_height) else ""
        return where(table, row), f"{detail}{known_from}{swapped}"

    resized = side.reading.resized
    if found.n_pixels and resized is not None and resized.moves:
        detail = f"{pluralise(found.n_pixels, 'mask')} of pixels cannot be mapped back from {resized}"
        words = "Export polygons, or masks of the images themselves without {resized}."
        undo = Fix.of_side(side.role, words, resized=None)
        findings.error("mask-size", Where(side.path, field="segmentation"), detail, fix=undo)
    found.report_scaled(side, sizes, findings)
    fix = "Export masks at the size of the image, with size as [height, width]."
    findings.add_rows(Severity.ERROR, "mask-size", found.unfit, wrong_size, fix=fix)
    findings.add_rows(
        Severity.ERROR,
        "size-unknown",
        found.unsized,
        lambda row: (
            where(found.unsized.boxes, row),
            "the height and width of the image are unknown, which masks lie in",
        ),
        fix=IMAGES_OF[side.role],
    )
    if not len(found.unsized):
        found.report_readings(side, findings)
    if len(found.unfit) or len(found.unsized) or findings.has("mask-units"):
        return boxes
    pixels, empty = boxes.mapped(partial(filled, sizes=sizes, scales=scales)).settled(), Chosen()
    for table in pixels.tables():
        if isinstance(table.shapes, Masks):
            empty.add(table, np.flatnonzero(table.shapes.runs.are_empty()))
    meaning = "objects that cannot be found" if side.role == "gt" else "false positives"
    findings.add_rows(
        Severity.WARNING,
        "mask-empty",
        empty,
        lambda row: (where(empty.boxes, row), ""),
        summary=(
            f"{pluralise(len(empty), 'mask')} of {len(boxes):,} {'has' if len(empty) == 1 else 'have'} no pixels"
            f" (outside of the image, normalised, or thinner than a pixel): counted as {meaning}"
        ),
    )
    return pixels


class _Outlined:
    """What is to be known of the masks of one side before they are filled, gathered table by table."""

    def __init__(self, *, scales: bool) -> None:
        self._scales, self.scaled = scales, Chosen()  # whether pixels are of any resolution, and those of another one
        self.unfit, self.unsized = Chosen(), Chosen()  # runs of another size than their image; polygons without any
        self.n_shapes = self.n_pixels = self._n_polygons = self._n_beyond = self._n_exchanged = 0
        self._low, self._high = np.inf, -np.inf  # of all corners
        self._largest = 0.0  # width or height of a box

    def add(self, boxes: BoxTable, sizes: FloatArray) -> None:
        """Look at a table; `sizes` are the width and height of the images."""
        outlines = outlines_of(boxes)
        if outlines is None:
            return
        self.n_shapes += len(outlines)
        of_image, drawn = sizes[boxes.image], outlines.has_polygons
        known = np.isfinite(of_image).all(axis=1)
        unsized = outlines.are_unsized
        outlines = outlines.sized(of_image[:, ::-1])
        own = outlines.masks.sizes
        if self._scales:
            wanted = sizes_in_images(outlines, of_image[:, ::-1])
            self.scaled.add(boxes, np.flatnonzero((wanted != own).any(axis=1) & (own > 0).all(axis=1)))
            own = wanted
        self.unfit.add(boxes, np.flatnonzero(known & ~drawn & (own != of_image[:, ::-1]).any(axis=1)))
        self.unsized.add(boxes, np.flatnonzero(~known & (drawn | unsized)))
        self._n_polygons += int(np.count_nonzero(drawn))
        self.n_pixels += int(np.count_nonzero(~drawn))
        self._low = min(self._low, float(outlines.corners.min(initial=np.inf)))
        self._high = max(self._high, float(outlines.corners.max(initial=-np.inf)))
        self._largest = max(self._largest, float(boxes.xywh[:, 2:].max(initial=0)))
        bounds = outlines.bounds()[drawn]
        far, size = bounds[:, :2] + bounds[:, 2:], of_image[drawn]
        self._n_beyond += int((far > size + 1).any(axis=1).sum())
        self._n_exchanged += int((far[:, ::-1] > size + 1).any(axis=1).sum())

    def report_scaled(self, side: Dataset, sizes: FloatArray, findings: FindingLog) -> None:
        """Report masks of pixels that are scaled to the size of their images."""
        first = self.scaled.boxes.take(np.arange(1)) if len(self.scaled) else None
        outlines = None if first is None else outlines_of(first)
        if first is None or outlines is None:
            return
        own, wanted = (
            " x ".join(map(str, rows[0]))
            for rows in (outlines.masks.sizes, sizes_in_images(outlines, sizes[first.image, ::-1]))
        )
        detail = (
            f"{len(self.scaled):,} of {pluralise(self.n_shapes, 'mask')} scaled to their images, each pixel the"
            f" nearest one: first from {own} to {wanted} (height x width)"
        )
        findings.note("mask-scaled", Where(side.path, field="segmentation"), detail)

    def report_readings(self, side: Dataset, findings: FindingLog) -> None:
        """Report polygons that are fractions of their images, or seem to have y before x."""
        where, n = Where(side.path, field="segmentation"), self._n_polygons
        if n and self._low >= -_SLACK and self._high <= 1 + _SLACK:
            detail = f"{pluralise(n, 'polygon lies', 'polygons lie')} within 0..1: normalised, not in pixels"
            fix = Fix.of_side(side.role, "Pass {units}.", units="norm")
            if self._largest > 1 + _SLACK:
                fix = Fix.missing("Multiply x by the width and y by the height of the image, as in the boxes.")
            findings.error("mask-units", where, detail, fix=fix)
        beyond, exchanged = self._n_beyond, self._n_exchanged
        if beyond > _LEAVING * n and exchanged * 10 <= beyond:
            detail = (
                f"{beyond:,} of {pluralise(n, 'polygon leaves its image', 'polygons leave their images')},"
                f" {exchanged:,} with x and y exchanged: y seems to come first"
            )
            other = {f"{side.role}_mask_axes": "" if side.reading.mask_axes == "yx" else "yx"}
            metric = "polygons inside their images"
            fix = Fix.reading(other, metric=metric, before=1 - beyond / n, after=1 - exchanged / n)
            findings.warning("mask-axes", where, detail, fix=fix)
