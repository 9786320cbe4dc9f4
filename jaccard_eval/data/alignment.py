"""Bring two inputs together: which images and classes are the same, in which units; what is left over is said."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray, freeze
from jaccard_eval.data.class_alignment import ClassMatch, match_classes
from jaccard_eval.data.dataset import Dataset, LabelMap
from jaccard_eval.data.image_alignment import AlignOptions, CommonImages, align_images
from jaccard_eval.data.result import Correspondence
from jaccard_eval.errors import (
    DataError,
    Finding,
    FindingLog,
    UsageError,
    Where,
    counted,
    did_you_mean,
    example_keys,
    shown,
)

LISTED_NAMES = 10  # names of leftover images and classes that a correspondence keeps


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Both sides in common image rows and units, each still with its own classes.

    Parameters
    ----------
    gt, pred : BoxTable
        Boxes; `label` counts in the classes of their own side.
    units : {"px", "norm"}
    images : CommonImages
    """

    gt: BoxTable
    pred: BoxTable
    units: str
    images: CommonImages


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment:
    """Both sides in common rows.

    Parameters
    ----------
    gt, pred : BoxTable
        Boxes with common image and class rows, in common units.
    placement : Placement
        What it was before classes were matched and chosen.
    classes : ClassMatch
    image_names, class_names : tuple of str
    correspondence : Correspondence
    findings : tuple of Finding
    """

    gt: BoxTable
    pred: BoxTable
    placement: Placement
    classes: ClassMatch
    image_names: tuple[str, ...]
    class_names: tuple[str, ...]
    correspondence: Correspondence
    findings: tuple[Finding, ...]

    @property
    def units(self) -> str:
        """Units of the boxes: "px" or "norm"."""
        return self.placement.units


def align(gt: Dataset, pred: Dataset, options: AlignOptions) -> Alignment:
    """Align predictions with ground truth.

    Raises
    ------
    DataError
        When images, classes or units cannot be brought together.
    UsageError
        When an option names a class or strategy that does not exist.
    """
    findings = FindingLog()
    placed = place(gt, pred, options, findings)
    classes = match_classes(gt.labels, pred.labels, options.class_map, Where(pred.path), findings)
    _check_classes(gt, pred, classes, findings)
    findings.raise_errors()
    chosen = _chosen_classes(gt.labels, options)
    table = placed.images.table
    return Alignment(
        gt=_relabel(placed.gt, chosen),
        pred=_relabel(placed.pred, np.append(chosen, np.int32(-1))[classes.rows]),
        placement=placed,
        classes=classes,
        image_names=tuple(table.name(row) for row in range(len(table))),
        class_names=tuple(name for row, name in enumerate(gt.labels.names) if chosen[row] >= 0),
        correspondence=_describe(gt, pred, placed.images, classes, chosen),
        findings=findings.findings(),
    )


def place(gt: Dataset, pred: Dataset, options: AlignOptions, findings: FindingLog) -> Placement:
    """Bring boxes to common images and units; the first half of `align`.

    Raises
    ------
    DataError
        When images or units cannot be brought together.
    """
    images = align_images(gt, pred, options, findings)
    boxes = _move(gt.boxes, images.gt_rows), _move(pred.boxes, images.pred_rows)
    return Placement(*_common_units(gt, pred, boxes, images, findings), images)


def _check_classes(gt: Dataset, pred: Dataset, classes: ClassMatch, findings: FindingLog) -> None:
    """Warn of prediction classes that the ground truth lacks; stop when it lacks them all."""
    unknown = np.flatnonzero(classes.rows < 0)
    if not len(unknown):
        return
    names = [pred.labels.names[row] for row in unknown]
    boxes = int(np.isin(pred.boxes.label, unknown).sum())
    where = Where(pred.path, field="class")
    if len(unknown) == len(classes.rows) and len(gt.labels):
        findings.error(
            "class-none",
            where,
            f"no prediction class is a category of the ground truth: predictions have {example_keys(names)}, "
            f"ground truth has {example_keys(gt.labels.names)} (ids {example_keys(gt.labels.keys)})",
            fix="Name the classes by index with --pred-names or --gt-names, or map them with --class-map.",
        )
    elif boxes:
        are = "is" if len(unknown) == 1 else "are"
        what = f"{counted(boxes, 'prediction')} of {counted(len(unknown), 'class', 'classes')}"
        detail = f"{what} that {are} no category of the ground truth set aside: {example_keys(names, 10)}"
        findings.warning("class-unknown", where, detail)


def _move(boxes: BoxTable, rows: RowArray) -> BoxTable:
    """Move boxes to common images; those whose image has none are left out."""
    image = rows[boxes.image]
    return _kept(replace(boxes, image=image), image >= 0)


def _relabel(boxes: BoxTable, rows: RowArray) -> BoxTable:
    """Give boxes common classes; those whose class has none are left out."""
    label = rows[boxes.label]
    return _kept(replace(boxes, label=label), label >= 0)


def _kept(boxes: BoxTable, known: BoolArray) -> BoxTable:
    return freeze(boxes) if known.all() else boxes.take(known)


def _common_units(
    gt: Dataset, pred: Dataset, boxes: tuple[BoxTable, BoxTable], images: CommonImages, findings: FindingLog
) -> tuple[BoxTable, BoxTable, str]:
    """Turn the side that is in fractions of the image into pixels, when the other side is in pixels."""
    gt_boxes, pred_boxes = boxes
    if gt.units == pred.units:
        return gt_boxes, pred_boxes, gt.units
    sizes = common_sizes(pred, images)
    fractions, pixels = boxes if gt.units == "norm" else boxes[::-1]
    if not len(pixels) and len(_unsized(fractions, sizes)):
        return gt_boxes, pred_boxes, "norm"  # what is empty is in any units
    if gt.units == "norm":
        return _to_pixels(gt, gt_boxes, sizes, images, findings), pred_boxes, "px"
    return gt_boxes, _to_pixels(pred, pred_boxes, sizes, images, findings), "px"


def common_sizes(pred: Dataset, images: CommonImages) -> FloatArray:
    """Return width and height of the common images (n, 2), from whichever side knows them; NaN where neither does."""
    matched = images.pred_rows >= 0
    theirs = np.full_like(images.table.sizes, np.nan)
    theirs[images.pred_rows[matched]] = pred.images.sizes[matched]
    return np.where(np.isnan(images.table.sizes), theirs, images.table.sizes)


def _unsized(boxes: BoxTable, sizes: FloatArray) -> RowArray:
    """Return the images whose boxes cannot be turned into pixels."""
    return np.unique(boxes.image[np.isnan(sizes[boxes.image]).any(axis=1)])


def _to_pixels(
    side: Dataset, boxes: BoxTable, sizes: FloatArray, images: CommonImages, findings: FindingLog
) -> BoxTable:
    unknown = _unsized(boxes, sizes)
    if len(unknown):
        names = example_keys(images.table.name(int(row)) for row in unknown)
        detail = (
            f"boxes are normalised and the other side is in pixels, but the width and height of "
            f"{counted(len(unknown), 'image')} are not known: {names}"
        )
        where, fix = Where(side.path), "Give the pictures with --images DIR."
        if not side.units_guessed:
            raise DataError.single("size-unknown", where, detail, fix=fix)
        findings.warning("units-mixed", where, f"{detail}; compared as if they were pixels", fix=fix)
        return boxes
    size = sizes[boxes.image]
    xywh = boxes.xywh * np.concatenate((size, size), axis=1)
    return freeze(replace(boxes, xywh=xywh, area=xywh[:, 2] * xywh[:, 3]))


def _chosen_classes(labels: LabelMap, options: AlignOptions) -> RowArray:
    """Return the row of each class among those to evaluate, -1 for classes left out."""
    for name in (*options.classes, *options.exclude_classes):
        if name not in labels.names:
            raise UsageError(f"unknown class {shown(name)} in the ground truth.{did_you_mean(name, labels.names)}")
    wanted = [
        (not options.classes or name in options.classes) and name not in options.exclude_classes
        for name in labels.names
    ]
    if wanted and not any(wanted):
        raise UsageError("--classes and --exclude-classes leave no class to evaluate")
    return np.where(wanted, np.cumsum(wanted) - 1, -1).astype(np.int32)


def _describe(
    gt: Dataset, pred: Dataset, images: CommonImages, classes: ClassMatch, chosen: RowArray
) -> Correspondence:
    matched = np.isin(images.gt_rows, images.pred_rows)
    known = np.isin(images.pred_rows, images.gt_rows)
    gt_only = [gt.images.name(int(row)) for row in np.flatnonzero(~matched)]
    pred_only = [pred.images.name(int(row)) for row in np.flatnonzero(~known)]
    pairs = [(gt.labels.names[row], pred.labels.names[i]) for i, row in enumerate(classes.rows) if row >= 0]
    claimed = set(classes.rows.tolist())
    return Correspondence(
        image_strategy=images.strategy,
        class_strategy=classes.strategy,
        matched_images=int(matched.sum()),
        n_gt_only_images=len(gt_only),
        n_pred_only_images=len(pred_only),
        gt_only_images=tuple(gt_only[:LISTED_NAMES]),
        pred_only_images=tuple(pred_only[:LISTED_NAMES]),
        classes=tuple(pairs),
        gt_only_classes=tuple(name for row, name in enumerate(gt.labels.names) if row not in claimed),
        pred_only_classes=tuple(pred.labels.names[i] for i, row in enumerate(classes.rows) if row < 0),
    )
