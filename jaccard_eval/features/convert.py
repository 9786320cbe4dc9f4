"""Conversion: an input of any format, written in another; what the target cannot carry is never lost unasked."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaccard_eval.data.alignment import Sides, align, common_sizes
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.engine import path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, Where
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.formats import format_for_path, format_writer, write_dataset
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import SideOptions
from jaccard_eval.similarity.iou import box_iou
from jaccard_eval.text import example_keys, pluralise, quoted_value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conversion:
    """What was written."""

    # As it was read; predictions that were aligned to ground truth have the images and classes of that
    dataset: Dataset
    path: Path
    format: str  # name of the target's format
    findings: tuple[Finding, ...]  # what the target does not carry, and what else is to be known about it


def target_format(path: Path, name: str | None = None) -> str:
    """Return the name of the format to write: as given, else by the suffix of the path."""
    name = name or format_for_path(path)
    if name is None:
        fix = Fix.missing("Name one with {to}.", to=None)
        raise UsageError(f"cannot choose a format by the suffix of {quoted_value(str(path))}.", fix=fix)
    format_writer(name)
    return name


def as_in_ground_truth(sides: Sides, *, lossy: bool) -> Dataset:
    """Return predictions with the image names, image sizes and classes of the ground truth.

    A DataError names predictions of classes that it does not have, unless they may be dropped (`lossy`).
    """
    gt, pred, aligned = sides.gt, sides.pred, sides.aligned
    unknown = np.flatnonzero(aligned.classes.rows < 0)
    lost = int(np.isin(pred.table.label, unknown).sum())
    if lost and not lossy:
        names = example_keys(pred.labels.names[row] for row in unknown.tolist())
        detail = f"{gt.path} does not have the classes of {pluralise(lost, 'prediction')}: {names}"
        fix = Fix.missing("Map them with {class_map}, or drop them with {lossy}.", class_map=None, lossy=ON)
        raise DataError.single("write-loss", Where(pred.path, field="class"), detail, fix=fix)
    images = aligned.placement.images
    return replace(
        pred,
        images=replace(images.table, sizes=common_sizes(pred, images)),
        labels=gt.labels,
        boxes=aligned.pred,
        units=aligned.units,
        reading=replace(pred.reading, resized=None),
        has_no_class=False,
        truth=gt,
        findings=sides.findings,
    )


SAME_IOU = 0.5  # with an object of the original, from which one of its image and class is that object


def require_ground_truth(dataset: Dataset) -> None:
    """Raise a UsageError for predictions: their ids are those of the ground truth."""
    if dataset.role == "pred":
        fix = Fix.missing("Pass the ground truth of predictions with {gt}.", gt=None)
        raise UsageError("ids_from keeps the ids of ground truth, and these are predictions.", fix=fix)


def with_ids_of(dataset: Dataset, original: Dataset) -> Dataset:
    """Return ground truth with the images, classes and ids of the file that it once came from.

    An object keeps the id of the one that it overlaps most, first among those of its class; new ones are numbered on.
    A DataError names images and classes that the original does not have.
    """
    aligned = align(original, dataset, SideOptions())
    unknown = np.flatnonzero(aligned.classes.rows < 0)
    if np.isin(dataset.table.label, unknown).any():
        names = example_keys(dataset.labels.names[row] for row in unknown.tolist())
        detail = f"{original.path} does not have the classes {names}"
        fix = Fix.missing("Map them with {class_map}.", class_map=None)
        raise DataError.single("write-loss", Where(dataset.path, field="class"), detail, fix=fix)
    gt, boxes = aligned.gt_table, aligned.pred_table
    given = [*original.annotation_ids] or [*range(1, len(original.boxes) + 1)]
    ids: list[object] = [None] * len(boxes)
    for image in np.unique(boxes.image).tolist():
        mine, theirs = (np.flatnonzero(side.image == image) for side in (boxes, gt))
        overlap = box_iou(boxes.xywh[mine], gt.xywh[theirs], encoding="xywh")
        same = boxes.label[mine][:, None] == gt.label[theirs]
        # One of another class comes after all of the same.
        rank = np.where(overlap >= SAME_IOU, overlap + same, 0.0)
        for place in np.argsort(-rank, axis=None, kind="stable").tolist():
            at, other = divmod(place, len(theirs))
            if not rank[at, other]:
                break
            ids[mine[at]] = given[gt.source[theirs[other]]]
            rank[at], rank[:, other] = 0.0, 0.0
    last = max((number for number in given if isinstance(number, int | np.integer)), default=0)
    fresh = itertools.count(int(last) + 1)
    return replace(
        dataset,
        images=replace(aligned.placement.images.table, sizes=common_sizes(dataset, aligned.placement.images)),
        labels=original.labels,
        boxes=replace(boxes, source=np.arange(len(boxes)), image_names=None, class_names=None),
        units=aligned.units,
        reading=replace(dataset.reading, resized=None),
        has_no_class=False,
        truth=original,
        annotation_ids=[next(fresh) if one is None else one for one in ids],
    )


def convert_input(
    dataset: Dataset,
    path: Path,
    name: str,
    *,
    lossy: bool = False,
    replace: bool = False,
    findings: tuple[Finding, ...] = (),
) -> Conversion:
    """Write a data set that was read, with `findings` from reading it; see `convert` for the errors."""
    paths = [dataset.path, *([] if dataset.truth is None else [dataset.truth.path])]
    inputs = [path for path in map(path_of, paths) if os.path.lexists(path)]
    try:
        written = write_dataset(dataset, path, format_name=name, inputs=inputs, replace=replace, lossy=lossy)
    except DataError as error:
        raise DataError([_with_way_out(finding, dataset) for finding in error.findings]) from None
    return Conversion(dataset=dataset, path=path, format=name, findings=(*findings, *written))


def _with_way_out(finding: Finding, dataset: Dataset) -> Finding:
    """Name the ground truth where it may know the sizes of images that predictions lack."""
    if finding.code != "size-unknown" or dataset.role != "pred" or dataset.truth is not None:
        return finding
    words = "Pass the ground truth with {gt}, or the image folder with {images}."
    return replace(finding, fix=Fix.missing(words, gt=None, images=None))
