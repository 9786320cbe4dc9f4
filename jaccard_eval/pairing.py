"""Two data sets brought together: rows that count, shapes, images, classes; boxes explain what is in the way."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.alignment import (
    AUTO,
    Alignment,
    CommonImages,
    align,
    align_images,
    common_sizes,
    merged_classes,
    named_through,
    place,
)
from jaccard_eval.data.boxtable import BoxTable, freeze
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine import path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.features.audit.correspondence import applied_counting, applied_numbers, best_class_map
from jaccard_eval.features.audit.duplicates import repeats_of
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.inputs import load
from jaccard_eval.options import ReadOptions, SideOptions
from jaccard_eval.progress import staged
from jaccard_eval.text import pluralise

if TYPE_CHECKING:
    from jaccard_eval.inputs import Source

SPLITS = ("train", "val", "test")


def align_shapes(gt: Dataset, pred: Dataset, options: SideOptions, iou_type: str) -> tuple[Dataset, Dataset, Alignment]:
    """Align with what an `iou_type` compares, masks as pixels; sides get the sizes that masks give to images."""
    gt, pred = (_with_mask_sizes(side, iou_type) for side in (gt, pred))
    if iou_type == "keypoints" and gt.point_names and pred.point_names:
        pred = _in_order_of_names(pred, gt.point_names)
    if options.gt_class_map:
        gt = merged_classes(gt, options.gt_class_map, "gt_class_map")
    aligned = align_datasets(gt, pred, options)
    if iou_type == BOXES:
        return gt, pred, aligned
    from jaccard_eval.reading.in_images import with_image_sizes

    images = aligned.placement.images
    sizes = common_sizes(pred, images)
    sized = with_image_sizes(gt, sizes, images.gt_rows), with_image_sizes(pred, sizes, images.pred_rows)
    if sized[0] is not gt or sized[1] is not pred:
        aligned = align_datasets(*sized, options)
    return *sized, _with_masks(aligned, *sized, iou_type)


def _in_order_of_names(pred: Dataset, names: Sequence[str]) -> Dataset:
    """Return predictions whose points have the order of the ground truth's `names`, as a note reports."""
    wanted, found = ([re.sub(r"[\W_]", "", name).lower() for name in side] for side in (names, pred.point_names))
    if wanted == found:
        return pred
    places = [found.index(name) if name in found else -1 for name in wanted]
    findings, where = FindingLog(), Where(pred.path, field="keypoints")
    shared = [name for name, place in zip(names, places, strict=True) if place >= 0]
    others = len(found) - len(shared)
    if shared:
        without = f", {pluralise(others, 'other is', 'others are')} not compared" if others else ""
        detail = f"{pluralise(len(shared), 'point')} in the order of the ground truth by name: {', '.join(shared)}"
        findings.note("keypoints-order", where, detail + without)
    else:
        detail = "points have other names than those of the ground truth: they are compared by place"
        fix = Fix.missing("Check {pred_keypoint_order}.", pred_keypoint_order=None)
        findings.warning("keypoints-order", where, detail, fix=fix)
    boxes = pred.boxes.mapped(partial(_points_at, places=places)).settled() if shared else pred.boxes
    return replace(pred, boxes=boxes, findings=(*pred.findings, *findings.findings()))


def _points_at(boxes: BoxTable, places: Sequence[int]) -> BoxTable:
    from jaccard_eval.similarity.keypoints import Keypoints

    poses: object = boxes.shapes
    if not isinstance(poses, Keypoints) or not len(poses):
        return boxes
    points = np.where((np.array(places) >= 0)[None, :, None], poses.points[:, places], 0.0)
    return freeze(replace(boxes, shapes=Keypoints(points)))


def _with_masks(aligned: Alignment, gt: Dataset, pred: Dataset, iou_type: str) -> Alignment:
    from jaccard_eval.reading import in_images

    with_masks = partial(in_images.with_masks, anywhere=iou_type == "segm")

    try:
        if not gt.facts.ancestors:
            return with_masks(aligned, gt, pred)
        # A class that is not evaluated counts for those above it.
        return with_masks(aligned.with_every_class(), gt, pred).with_chosen_classes(gt.labels)
    except DataError as error:
        if not any(finding.code == "mask-size" for finding in error.findings):
            raise
        from jaccard_eval.features.audit.shapes import explain_sizes

        raise DataError(explain_sizes(error.findings, gt, pred, aligned)) from None


def _with_mask_sizes(side: Dataset, iou_type: str) -> Dataset:
    # In pixels, predictions do not decide how large the images of the ground truth are.
    if iou_type == BOXES or (side.role == "pred" and side.units != "norm"):
        return side
    from jaccard_eval.reading.in_images import with_mask_sizes  # boxes alone are evaluated without

    return with_mask_sizes(side)


def with_split(error: DataError, gt: Source, gt_side: Dataset, pred: Dataset, options: SideOptions) -> DataError:
    """Return an error about images with the split of the ground truth that has them all, where another one has."""
    path = path_of(gt) if isinstance(gt, str | os.PathLike) else None
    is_split = path is not None and (path.is_dir() or path.suffix in (".yaml", ".yml", ".data"))
    if not is_split or not any(finding.code == "image-unknown" for finding in error.findings):
        return error
    given = options.gt_options or ReadOptions()
    for split in SPLITS:
        try:
            sibling = load(gt, format_name=options.gt_format, options=replace(given, split=split))
            if split == given.split or sibling.images.keys == gt_side.images.keys:
                continue
            align_images(sibling, pred, options, FindingLog())
        except (DataError, UsageError):
            continue
        words = "Rerun with {split}. All images of the predictions are in that split, not in"
        fix = Fix.missing(f"{words} {given.split}.", split=split)
        return DataError(
            [replace(finding, fix=fix) if finding.code == "image-unknown" else finding for finding in error.findings]
        )
    return error


def pair_images(gt: Dataset, pred: Dataset, options: SideOptions, findings: FindingLog) -> CommonImages:
    """Return the common images of both sides, as an evaluation pairs them."""
    way = applied_numbers(gt, pred, options, FindingLog())
    return align_images(gt, pred, options if way is None else replace(options, match_images=way), findings)


@staged("aligning")
def align_datasets(gt: Dataset, pred: Dataset, options: SideOptions) -> Alignment:
    """Align, with the map of classes that the boxes support where it is asked for.

    Where it fails, the DataError has the evidence that the boxes hold.
    """
    notes = FindingLog()
    applied: dict[str, str] = {}
    is_numbered = not pred.labels.named and not pred.has_no_class
    if (
        isinstance(options.class_map, Mapping)
        and is_numbered
        and options.class_map.keys() - {*map(str, pred.labels.keys)}
    ):
        # What is mapped by name are the classes of the ground truth that the numbers are.
        rule = applied_counting(gt, pred, replace(options, class_map=None), notes) or "id"
        pred = replace(pred, labels=named_through(gt.labels, pred.labels, rule))
    try:
        # Classes are looked at where boxes lie on their own images. What is in the way is reported below.
        with contextlib.suppress(DataError):
            numbers = applied_numbers(gt, pred, options, notes)
            if numbers is not None:
                options = replace(options, match_images=numbers)
                applied["match_images"] = numbers
            counting = applied_counting(gt, pred, options, notes)
            if counting is not None:
                options = replace(options, class_map=counting)
                applied["class_map"] = counting
        if options.class_map == AUTO:
            placed = place(gt, pred, options, FindingLog())
            options = replace(options, class_map=best_class_map(gt, pred, placed, notes))
        aligned = align(gt, pred, options)
    except DataError as error:
        from jaccard_eval.features.audit.failures import explain_failure

        raise DataError(explain_failure(error.findings, gt, pred, options)) from None
    return replace(aligned, applied=applied, findings=(*aligned.findings, *notes.findings()))


def chosen_rows(gt: Dataset, pred: Dataset, options: SideOptions) -> tuple[Dataset, Dataset]:
    """Return both sides without the rows that options remove, in the order in which they are counted."""
    if options.drop_duplicates:  # looks at whole images, as the removal of rivals does
        gt = _without_repeats(replace(gt, boxes=gt.boxes.arranged(len(gt.images))))
    if options.drop_duplicates or options.nms is not None:
        pred = replace(pred, boxes=pred.boxes.arranged(len(pred.images)))
    if options.drop_duplicates:
        pred = _without_repeats(pred)
    if options.score_min is not None:
        pred = _above(pred, options.score_min)
    if options.nms is not None:
        pred = _without_rivals(pred, options.nms)
    return gt, pred


def _above(pred: Dataset, score_min: float) -> Dataset:
    """Remove predictions below a score, counted."""
    boxes = pred.boxes.mapped(partial(_rows_above, score_min=score_min))
    ignored = {**pred.ignored, "score-min": len(pred.boxes) - len(boxes)}
    if len(boxes) or not len(pred.boxes):
        return replace(pred, boxes=boxes, ignored=ignored)
    highest = max(float(table.score.max()) for table in pred.boxes.tables() if table.score is not None and len(table))
    findings = FindingLog()
    detail = f"all {len(pred.boxes):,} scores are below {score_min:g}; the highest is {highest:.6g}"
    findings.warning(
        "pred-empty", Where(pred.path, field="score"), detail, fix=Fix.missing("Lower {score_min}.", score_min=None)
    )
    return replace(pred, boxes=boxes, ignored=ignored, findings=(*pred.findings, *findings.findings()))


def _rows_above(table: BoxTable, *, score_min: float) -> BoxTable:
    return table if table.score is None else table.take(table.score >= score_min)


def _without_rivals(pred: Dataset, iou: float) -> Dataset:
    """Remove predictions that a better one of their image and class overlaps by more than `iou`, counted."""
    from jaccard_eval.features.nms import Suppression, suppress

    boxes = pred.boxes.mapped(partial(suppress, rule=Suppression(iou=iou)))
    return replace(pred, boxes=boxes, ignored={**pred.ignored, "nms": len(pred.boxes) - len(boxes)})


@staged("finding duplicates")
def _without_repeats(side: Dataset) -> Dataset:
    """Keep the first of rows that are equal in every column, the others counted."""
    found = repeats_of(side)
    if len(found.rows) == 0:
        return side
    ignored = {**side.ignored, "duplicates": len(found.rows)}
    return replace(side, boxes=found.single, ignored=ignored)
