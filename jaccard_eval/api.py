"""The library's verbs: load and evaluate, each an orchestration of the layers below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval import __version__
from jaccard_eval.analysis.audit import audit
from jaccard_eval.analysis.classmaps import best_class_map
from jaccard_eval.analysis.failures import explain_failure
from jaccard_eval.analysis.rows import repeats_of, without_rows
from jaccard_eval.data.align import Alignment, align, place
from jaccard_eval.data.alignimages import AlignOptions
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.classrules import AUTO
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.data.protocol import AreaRange, Protocol, get_protocol
from jaccard_eval.data.result import EvaluationResult, InputSummary
from jaccard_eval.data.signature import digest_rows, row_hashes, signature
from jaccard_eval.errors import DataError, FindingLog, UsageError, Where, shown
from jaccard_eval.formats import ReadOptions, read_dataset
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs

if TYPE_CHECKING:
    import os

    Source = str | os.PathLike[str] | Dataset | BoxTable

__all__ = ["evaluate", "load"]


def load(
    source: Source, *, role: str = "gt", format_name: str | None = None, options: ReadOptions | None = None
) -> Dataset:
    """Read one side of an evaluation.

    Parameters
    ----------
    source : path, Dataset or BoxTable
        A file or folder in any known format; data that is loaded already is passed through.
    role : {"gt", "pred"}
    format_name : str, optional
        Name of the format; found by looking when left out.
    options : ReadOptions, optional
        Encoding, units, class names, images.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        With every problem of the input, each with its place.
    UsageError
        When loaded data is to be predictions and has no scores.
    """
    if isinstance(source, Dataset | BoxTable):
        dataset = _wrap(source, role) if isinstance(source, BoxTable) else source
        if role == "pred" and dataset.boxes.score is None:
            raise UsageError("predictions need scores: BoxTable.from_arrays(..., score=...) or load(..., role='pred')")
        return dataset
    return read_dataset(Path(source), replace(options or ReadOptions(), role=role), format_name)


def evaluate(
    gt: Source,
    pred: Source,
    *,
    protocol: str | Protocol = "coco",
    iou: Sequence[float] | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    drop_duplicates: bool = False,
    score: float | str | None = None,
    class_map: Mapping[str, str] | str | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
) -> EvaluationResult:
    """Evaluate predictions against ground truth.

    Parameters
    ----------
    gt, pred : path, Dataset or BoxTable
        Files or folders in any known format, loaded data, or arrays (`BoxTable.from_arrays`).
    protocol : str or Protocol
        "coco", "voc2007", "voc2012", or a protocol of your own.
    iou : sequence of float, optional
        IoU thresholds instead of the protocol's.
    max_dets : sequence of int, optional
        Caps on detections per image and class; empty for none.
    areas : sequence of AreaRange, optional
        Size ranges in square pixels; the first is that of the headline.
    class_agnostic : bool
        Pool all classes.
    classes, exclude_classes : sequence of str
        Ground-truth classes to evaluate, or to leave out.
    score_min : float, optional
        Leave out predictions below this score; average precision drops with it.
    drop_duplicates : bool
        Leave out rows of either side that equal an earlier one in every column.
    score : float or "best-f1", optional
        Operating point for precision, recall, F1 and counts.
    class_map : mapping of str to str, or str, optional
        Prediction class to ground-truth class, the name of a rule ("id+1", "contiguous", "alphabetical", ...), or
        "auto": whatever makes most of the objects that lie in one place agree.
    match_images : {"id", "name", "path", "basename", "stem", "case", "decorated", "number", "id+1", "id-1"}, optional
        How images correspond; found by trying when left out.
    extra_images : {"error", "ignore", "empty"}
        What to do with prediction images that the ground truth does not have.
    gt_format, pred_format : str, optional
    gt_options, pred_options : ReadOptions, optional

    Returns
    -------
    EvaluationResult

    Raises
    ------
    DataError
        When an input cannot be used, or the two do not belong together.
    UsageError
        When an option names what does not exist.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> round(evaluate(gt, pred)["AP50"], 4)
    0.505
    """
    _require_numbers(score_min=score_min, score=None if score == "best-f1" else score)
    rules = _rules(protocol, iou=iou, max_dets=max_dets, areas=areas, class_agnostic=class_agnostic)
    ours = load(gt, role="gt", format_name=gt_format, options=gt_options)
    theirs = load(pred, role="pred", format_name=pred_format, options=pred_options)
    if isinstance(gt, BoxTable) and isinstance(pred, BoxTable):
        ours, theirs = _with_common_images(ours, theirs)
    if drop_duplicates:
        ours, theirs = _without_repeats(ours), _without_repeats(theirs)
    if score_min is not None:
        theirs = _above(theirs, score_min)
    options = AlignOptions(
        match_images=match_images,
        extra_images=extra_images,
        class_map=class_map,
        classes=classes,
        exclude_classes=exclude_classes,
    )
    aligned = _align(ours, theirs, options)
    rule = aligned.classes.strategy if isinstance(class_map, str) else ""
    chosen = ("drop_duplicates",) if drop_duplicates else ()
    selection = chosen + _selection(classes, exclude_classes, score_min, extra_images, rule)
    return _measure(ours, theirs, aligned, protocol=rules, selection=selection, score=score)


def _align(gt: Dataset, pred: Dataset, options: AlignOptions) -> Alignment:
    """Align, with the map of classes that the boxes speak for where it is asked for; say why where it fails."""
    notes = FindingLog()
    try:
        if options.class_map == AUTO:
            placed = place(gt, pred, options, FindingLog())
            options = replace(options, class_map=best_class_map(gt, pred, placed, notes))
        aligned = align(gt, pred, options)
    except DataError as error:
        raise DataError(explain_failure(error.findings, gt, pred, options)) from None
    return replace(aligned, findings=(*aligned.findings, *notes.findings()))


def _measure(
    gt: Dataset,
    pred: Dataset,
    aligned: Alignment,
    protocol: Protocol,
    *,
    selection: Sequence[str],
    score: float | str | None,
) -> EvaluationResult:
    _require_pixels(gt, aligned, protocol)
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(aligned.gt, aligned.pred, protocol, n_images=n_images, n_labels=n_labels)
    names = ("all classes",) if protocol.class_agnostic else aligned.class_names
    metrics = DetectionMetrics(table, names, aligned.image_names, area_known=aligned.units == "px")
    hashes = [row_hashes(boxes, aligned.image_names, aligned.class_names) for boxes in (aligned.gt, aligned.pred)]
    prints = [digest_rows(rows, role, aligned.units) for rows, role in zip(hashes, ("gt", "pred"), strict=True)]
    return EvaluationResult(
        protocol=protocol,
        signature=signature(protocol, selection=selection, gt=prints[0], pred=prints[1], version=__version__),
        version=__version__,
        gt=_summary(gt, prints[0]),
        pred=_summary(pred, prints[1]),
        correspondence=aligned.correspondence,
        metrics={str(ref): metrics.value(ref) for ref in summary_refs(protocol)},
        per_class=metrics.per_class(class_refs(protocol)),
        operating_points=() if score is None else metrics.operating_points(score),
        findings=(*gt.findings, *pred.findings, *aligned.findings, *audit(gt, pred, aligned, metrics, hashes)),
        measured=metrics,
    )


def _rules(
    protocol: str | Protocol,
    *,
    iou: Sequence[float] | None,
    max_dets: Sequence[int] | None,
    areas: Sequence[AreaRange] | None,
    class_agnostic: bool,
) -> Protocol:
    rules = get_protocol(protocol) if isinstance(protocol, str) else protocol
    changes: dict[str, Any] = {"class_agnostic": class_agnostic or rules.class_agnostic}
    if iou is not None:
        changes["iou_thresholds"] = tuple(float(value) for value in iou)
    if max_dets is not None:
        changes["max_dets"] = tuple(sorted(int(value) for value in max_dets))
    if areas is not None:
        changes["areas"] = tuple(areas)
    return rules.with_options(**changes)


def _require_numbers(**options: float | str | None) -> None:
    for name, value in options.items():
        if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
            or_word = " or 'best-f1'" if name == "score" else ""
            raise UsageError(f"{name} must be a finite number{or_word}, got {shown(value)}")


def _wrap(boxes: BoxTable, role: str) -> Dataset:
    """Make a dataset of bare arrays: image and class rows are their own keys."""
    labels = range(int(boxes.label.max(initial=-1)) + 1)
    return Dataset(
        path="<arrays>",
        format="arrays",
        role=role,
        images=_counted_images(int(boxes.image.max(initial=-1)) + 1),
        labels=LabelMap(tuple(labels), tuple(map(str, labels)), named=False),
        boxes=boxes,
        reading=Reading("xyxy", "px"),  # what from_arrays takes boxes for unless it is told
    )


def _with_common_images(gt: Dataset, pred: Dataset) -> tuple[Dataset, Dataset]:
    """Give bare arrays the same images: what only one side uses is an image without boxes on the other."""
    images = _counted_images(max(len(gt.images), len(pred.images)))
    return replace(gt, images=images), replace(pred, images=images)


def _counted_images(n: int) -> ImageTable:
    return ImageTable(tuple(range(n)), (None,) * n, unknown_sizes(n), listed=True)


def _above(pred: Dataset, score_min: float) -> Dataset:
    """Leave out predictions below a score, counted."""
    if pred.boxes.score is None:
        return pred
    kept = pred.boxes.score >= score_min
    below = int(np.count_nonzero(~kept))
    ignored = {**pred.ignored, "score-min": below}
    return replace(pred, boxes=pred.boxes.take(kept), ignored=ignored)


def _without_repeats(side: Dataset) -> Dataset:
    """Keep the first of rows that are equal in every column, the others counted."""
    repeated = repeats_of(side).rows
    if len(repeated) == 0:
        return side
    ignored = {**side.ignored, "duplicates": len(repeated)}
    return replace(side, boxes=without_rows(side.boxes, repeated), ignored=ignored)


def _selection(
    classes: Sequence[str],
    exclude_classes: Sequence[str],
    score_min: float | None,
    extra_images: str,
    class_map: str,
) -> tuple[str, ...]:
    parts = {"classes": ",".join(classes), "exclude_classes": ",".join(exclude_classes)}
    parts["score_min"] = "" if score_min is None else repr(float(score_min))
    parts["extra_images"] = "" if extra_images == "error" else extra_images
    parts["class_map"] = class_map
    return tuple(f"{name}={text}" for name, text in parts.items() if text)


def _require_pixels(gt: Dataset, aligned: Alignment, protocol: Protocol) -> None:
    if protocol.pixel_offset and aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(gt.path),
            f"protocol {protocol.name} adds a pixel to every side, but boxes are normalised and image sizes unknown",
            fix="Give the pictures with --images DIR.",
        )


def _summary(side: Dataset, fingerprint: str) -> InputSummary:
    return InputSummary(
        path=side.path,
        format=side.format,
        units=side.units,
        images=len(side.images),
        boxes=len(side.boxes),
        classes=len(side.labels),
        fingerprint=fingerprint,
        details=side.details,
        ignored=side.ignored,
    )
