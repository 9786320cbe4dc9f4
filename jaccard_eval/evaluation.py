"""Evaluation: inputs are read and aligned, matched once, and measured into a result with the parts asked for."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.alignment import (
    Alignment,
    CommonImages,
    align,
    align_images,
    common_sizes,
    left_out,
    merged_classes,
    only_images,
    place,
)
from jaccard_eval.data.boxtable import BoxTable, freeze
from jaccard_eval.data.classmaps import AUTO, named_through
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import Part, Rows
from jaccard_eval.data.protocol import BOXES, COCO, Protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.sides import Sides
from jaccard_eval.data.signature import RowHasher, digest_names, fingerprint, quoted
from jaccard_eval.engine import at_work, path_of, session
from jaccard_eval.errors import UsageError
from jaccard_eval.features.audit.class_maps import applied_counting, best_class_map
from jaccard_eval.features.audit.compute import audit, is_doubtful
from jaccard_eval.features.audit.duplicates import repeats_of
from jaccard_eval.features.audit.images import applied_numbers
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import in_parts
from jaccard_eval.inputs import Input, counted_images, is_counted, load, read_both, with_shapes
from jaccard_eval.matching.judging import judge
from jaccard_eval.metrics.detection import DetectionMetrics, match_sides, metrics_of, summary_refs
from jaccard_eval.options import (
    EngineOptions,
    EvaluateOptions,
    ReadOptions,
    SideOptions,
    given_reading,
    require_effect,
    to_document,
)
from jaccard_eval.progress import Stage, staged
from jaccard_eval.reading.thumbnails import ImageFiles
from jaccard_eval.text import pluralise

if TYPE_CHECKING:
    from typing import Any, TypeVar

    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.features.explain.compute import Question
    from jaccard_eval.features.explain.result import ExplanationResult
    from jaccard_eval.inputs import Source
    from jaccard_eval.options import PathText

    Options = TypeVar("Options", bound=SideOptions)


def load_and_align(
    gt: Source, pred: Source, options: SideOptions, store: DiskEngine | None = None, iou_type: str = BOXES
) -> Sides:
    """Read both sides and bring them to common images, classes and units; `api.evaluate` explains the options.

    A DataError means that an input cannot be used, or that the two do not belong together. Boxes are kept in a `store`
    where one is given. Shapes are read where an `iou_type` compares them.
    """
    asked = given_reading(options)
    options = _as_recorded(options, (gt, pred), iou_type)
    read = read_both(
        Input(gt, options.gt_format, with_shapes(options.gt_options, iou_type), store),
        Input(pred, options.pred_format, with_shapes(options.pred_options, iou_type), store),
    )
    gt_side, pred_side = read.gt, read.pred
    if gt_side is None or pred_side is None or read.errors:
        raise DataError(read.errors)
    require_effect(asked, "kinds", {"": iou_type})
    # Folders may hold splits, whatever the format of their files.
    places = (*(given for given in (gt, pred) if isinstance(given, str | os.PathLike)), gt_side.path, pred_side.path)
    are_folders = any(map(os.path.isdir, places))
    asked = tuple(name for name in asked if name != "split" or not are_folders)
    require_effect(asked, "formats", {"gt": gt_side.format, "pred": pred_side.format})
    if is_counted(gt) and is_counted(pred):
        # Bare arrays have the same images: what only one side uses is an image without boxes on the other.
        images = counted_images(max(len(gt_side.images), len(pred_side.images)))
        gt_side, pred_side = replace(gt_side, images=images), replace(pred_side, images=images)
    if options.drop_duplicates:
        gt_side = replace(gt_side, boxes=gt_side.boxes.arranged(len(gt_side.images)))
    if options.drop_duplicates or options.nms is not None:
        pred_side = replace(pred_side, boxes=pred_side.boxes.arranged(len(pred_side.images)))
    if options.drop_duplicates:
        gt_side, pred_side = _without_repeats(gt_side), _without_repeats(pred_side)
    if options.score_min is not None:
        pred_side = _above(pred_side, options.score_min)
    if options.nms is not None:
        pred_side = _without_rivals(pred_side, options.nms)
    try:
        gt_side, pred_side, aligned = align_shapes(gt_side, pred_side, options, iou_type)
    except DataError as error:
        raise _with_split(error, gt, gt_side, pred_side, options) from None
    names = aligned.image_names, aligned.class_names
    hasher = RowHasher.of(*names)  # once for both sides: names cost as much as rows
    gt_hashes, gt_print = fingerprint(aligned.gt, names, "gt", aligned.units, hasher)
    pred_hashes, pred_print = fingerprint(aligned.pred, names, "pred", aligned.units, hasher)
    rules = {"class_map": aligned.classes.strategy} if isinstance(options.class_map, str) else {}
    for side in (gt_side, pred_side):
        if side.ignored.get("invalid"):
            rules[f"{side.role}_skipped"] = str(side.ignored["invalid"])
        if side.reading.resized is not None:
            rules[f"{side.role}_resized"] = quoted(str(side.reading.resized))
    if options.images_in_common:
        # The fingerprints know no images without boxes; which of these count depends on what the other side lists.
        rules["images_in_common"] = digest_names(aligned.image_names)
    selection = _selection(options, {**rules, **aligned.applied})
    return Sides(gt_side, pred_side, aligned, selection, (gt_hashes, pred_hashes), (gt_print, pred_print))


def _as_recorded(options: Options, sources: tuple[Source, Source], iou_type: str | None = None) -> Options:
    """Return options with those that parts of both sides were read with, where any are given."""
    for role, source in zip(("gt", "pred"), sources, strict=True):
        if in_parts(source):
            from jaccard_eval.reading.partitions.manifest import with_recorded

            options = with_recorded(options, role, path_of(str(source)), iou_type)
    return options


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
    from functools import partial

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
        from jaccard_eval.features.audit.mask_axes import explain_sizes

        raise DataError(explain_sizes(error.findings, gt, pred, aligned)) from None


def _with_mask_sizes(side: Dataset, iou_type: str) -> Dataset:
    # In pixels, predictions do not decide how large the images of the ground truth are.
    if iou_type == BOXES or (side.role == "pred" and side.units != "norm"):
        return side
    from jaccard_eval.reading.in_images import with_mask_sizes  # boxes alone are evaluated without

    return with_mask_sizes(side)


def image_files(sides: Sides, folder: PathText | None = None) -> ImageFiles:
    """Return where the images of two sides lie: in `folder`, else in those named or found when either was read."""
    given = (folder, sides.gt.image_folder, sides.pred.image_folder)
    folders = dict.fromkeys(place for place in given if place is not None)
    sizes = common_sizes(sides.pred, sides.aligned.placement.images)
    return ImageFiles(tuple(folders), sides.aligned.image_names, sizes)


def explain_inputs(
    gt: Source, pred: Source, asked: Question, options: SideOptions, *, images: PathText | None = None, version: str
) -> ExplanationResult:
    """Explain a metric of two inputs; `images` is a folder to show them from, which no number depends on."""
    from jaccard_eval.features.explain.compute import explain_sides

    sides = load_and_trust(gt, pred, options, asked.rules.iou_type)
    return replace(explain_sides(sides, asked, version=version), images=image_files(sides, images))


SPLITS = ("train", "val", "test")


def _with_split(error: DataError, gt: Source, gt_side: Dataset, pred: Dataset, options: SideOptions) -> DataError:
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


def load_and_trust(gt: Source, pred: Source, options: SideOptions, iou_type: str = BOXES) -> Sides:
    """Read and align both sides; stop, as `evaluate_inputs` does, where files were beyond doubt read wrongly."""
    sides = load_and_align(gt, pred, options, iou_type=iou_type)
    # A look at a sample settles most cases; the evidence of a stop takes a matching.
    if _may_stop(gt, pred) and is_doubtful(sides.aligned):
        metrics = match_sides(sides, COCO.comparing(iou_type))
        # COCO's cap need not be one of what comes next.
        without_cap = replace(options, allow=(*options.allow, "max-dets"))
        found = audit(sides.gt, sides.pred, sides.aligned, metrics, sides.hashes, options=without_cap)
        _raise_errors((*sides.findings, *found))
    return sides


def load_as_in_ground_truth(
    gt: Source, pred: Source, options: SideOptions, *, lossy: bool = False, iou_type: str = BOXES
) -> Dataset:
    """Read predictions as they are to be written: with the image names, image sizes and classes of the ground truth.

    Shapes are read as well where an `iou_type` names them, as the files have them.
    """
    from jaccard_eval.features.convert.write import as_in_ground_truth
    from jaccard_eval.formats import iou_types, opened

    if iou_type != BOXES:
        options = replace(options, pred_options=with_shapes(options.pred_options, iou_type))
        # The ground truth only names images and classes, but may have nothing else to be read.
        kinds = iou_types(opened(gt, options.gt_format))
        if iou_type in kinds and BOXES not in kinds:
            options = replace(options, gt_options=with_shapes(options.gt_options, iou_type))

    try:
        return as_in_ground_truth(load_and_trust(gt, pred, options), lossy=lossy)
    except DataError as error:
        fix = Fix.missing(f"Convert {gt}, and pass {{gt}}.", gt=str(pred))
        found = error.findings
        raise DataError(
            [replace(finding, fix=fix) if finding.code == "sides-swapped" else finding for finding in found]
        ) from None


def _may_stop(gt: Source, pred: Source) -> bool:
    """Whether what is read wrongly stops the run: what arrays and frames hold is the caller's own statement.

    Ground truth that was read from a path for several predictions may be doubted with each.
    """
    return isinstance(pred, str | os.PathLike) and isinstance(gt, str | os.PathLike | Dataset)


def _raise_errors(findings: Sequence[Finding]) -> None:
    """Raise the errors among findings, with all warnings but those that mean the same."""
    errors = {finding.code for finding in findings if finding.severity is Severity.ERROR}
    if errors:
        raise DataError(
            [finding for finding in findings if finding.severity is Severity.ERROR or finding.code not in errors]
        )


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


def in_every(gt: Dataset, preds: Sequence[Source], options: SideOptions) -> Dataset:
    """Cut ground truth to the images that all predictions list, so that all are compared on the same ones."""
    kept = np.ones(len(gt.images), dtype=np.bool_)
    for pred in preds:
        # Read again for the evaluation: what is loaded here would pass for data whose reading nobody doubts.
        kept &= load_and_align(gt, pred, options).aligned.placement.images.gt_rows >= 0
    lost = left_out(gt, np.flatnonzero(~kept), "object")
    if not lost:
        return gt
    findings = FindingLog()
    detail = f"not all predictions list all images. Ignored: {lost}"
    findings.warning("images-in-common", Where(gt.path, field="image"), detail)
    return replace(only_images(gt, kept), findings=(*gt.findings, *findings.findings()))


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
    from jaccard_eval.features.nms.compute import Suppression, suppress

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


def _measure_stored(
    store: DiskEngine, aligned: Alignment, gt: BoxTable, pred: BoxTable, protocol: Protocol, **changes: Any
) -> DetectionMetrics:
    """Match boxes that are on the disk; see `measure_aligned`."""
    return metrics_of(aligned, store.measure(gt, pred, protocol, n_labels=len(aligned.class_names), **changes))


def _selection(options: SideOptions, rules: dict[str, str]) -> tuple[str, ...]:
    """Name what was chosen as a signature does, in the order that its first release had; `rules` were found to hold."""
    # Names stand in an order of their own: that of the call changes no number.
    lists = {
        name: ",".join(map(quoted, sorted(set(getattr(options, name))))) for name in ("classes", "exclude_classes")
    }
    parts = {
        "nms": "" if options.nms is None else repr(float(options.nms)),
        **lists,
        "score_min": "" if options.score_min is None else repr(float(options.score_min)),
        "extra_images": "" if options.extra_images == "error" else options.extra_images,
        "images_in_common": rules.get("images_in_common", ""),
        "class_map": rules.get("class_map", ""),
        "match_images": rules.get("match_images", ""),
        "mask_sizes": rules.get("mask_sizes", ""),
        "gt_skipped": rules.get("gt_skipped", ""),
        "pred_skipped": rules.get("pred_skipped", ""),
        "gt_resized": rules.get("gt_resized", ""),
        "pred_resized": rules.get("pred_resized", ""),
    }
    named = (f"{name}={text}" for name, text in parts.items() if text)
    return (*(["drop_duplicates"] if options.drop_duplicates else []), *named)


@session()
def evaluate_inputs(
    gt: Source,
    pred: Source,
    protocol: Protocol,
    options: EvaluateOptions,
    *,
    version: str,
    engine: EngineOptions | None = None,
    findings: tuple[Finding, ...] = (),
) -> EvaluationResult:
    """Evaluate two inputs with all that was asked for, which the result records; `version` is that of the tool.

    Its `findings` begin with those of the caller.

    A DataError means that an input cannot be used, or the two do not belong together, or that the protocol needs sizes
    that are unknown.
    """
    with at_work(gt, pred, engine, protocol.iou_type, lacking_on_disk(options)) as store:
        return _evaluate(gt, pred, protocol, options, version=version, found=findings, store=store)


def lacking_on_disk(options: EvaluateOptions) -> list[str]:
    """Return what of that which is asked for needs the match of every detection, all of it at once."""
    asked = {
        "bootstrap": options.bootstrap is not None,
        "errors": options.errors,
        "worst_images": options.worst_images is not None,
    }
    return [name for name, is_asked in asked.items() if is_asked]


def _errors_at(metrics: DetectionMetrics, threshold: int, **how: Any) -> Part:
    from jaccard_eval.features.errors.compute import errors_at  # when it is asked for

    return errors_at(metrics, threshold, **how)


def _parts(metrics: DetectionMetrics, sides: Sides, options: EvaluateOptions, store: DiskEngine | None) -> list[Part]:
    """Return the parts that were asked for; those of boxes on the disk are counted by its `store`."""
    aligned, score = sides.aligned, options.score
    # They are imported when they are asked for: most evaluations go without.
    parts: list[Part] = []
    if score is not None:
        parts.append(Rows("operating_points", metrics.operating_points(score)))
    if options.errors:
        parts.append(metrics.errors_at(metrics.protocol.judged_threshold))
    if options.confusion:
        from jaccard_eval.features.errors.confusion import count_confusions

        count = None
        if store is not None:
            n_labels = len(aligned.class_names)
            count = partial(store.confusion, aligned.gt, aligned.pred, metrics.protocol, n_labels=n_labels)
        parts.append(count_confusions(metrics, aligned.gt, aligned.pred, score, count))
    if options.worst_images is not None:
        from jaccard_eval.features.images.compute import count_images

        parts.append(count_images(metrics, score, options.worst_images))
    return parts


def _evaluate(
    gt: Source,
    pred: Source,
    protocol: Protocol,
    options: EvaluateOptions,
    *,
    version: str,
    found: tuple[Finding, ...] = (),
    store: DiskEngine | None = None,
) -> EvaluationResult:
    options = _as_recorded(options, (gt, pred))
    given = load_and_align(gt, pred, options, store, protocol.iou_type)
    sides = judge(given, protocol)
    aligned, score = sides.aligned, options.score
    if "pyarrow" in sys.modules:
        from jaccard_eval.engine.memory import release_tables

        release_tables(len(aligned.pred))
    is_stored = not isinstance(aligned.pred, BoxTable)
    measure = partial(_measure_stored, store, aligned) if store is not None and is_stored else None
    analyse = None if is_stored else partial(_errors_at, boxes=(aligned.gt, aligned.pred), score=score)
    metrics = match_sides(sides, protocol, measure).at(score, analyse)
    parts = _parts(metrics, sides, options, store if is_stored else None)
    choices = [] if score is None else [f"score={score if isinstance(score, str) else repr(float(score))}"]
    gt_summary, pred_summary = sides.summaries()
    stopping = options if _may_stop(gt, pred) else None
    # A fingerprint is that of the boxes as given; checks look at those that are judged.
    hashes = sides.hashes
    if sides is not given and not is_stored:
        hasher = RowHasher.of(aligned.image_names, aligned.class_names)
        hashes = hasher(aligned.gt), hasher(aligned.pred)
    audited = audit(sides.gt, sides.pred, aligned, metrics, hashes, options=stopping, measure=measure)
    # What polygons alone suggest is reported once, with the evidence of both sides where there is some.
    settled = {finding.examples[0].where.path for finding in audited if finding.code == "mask-axes"}
    read = (
        finding
        for finding in sides.findings
        if finding.code != "mask-axes" or finding.examples[0].where.path not in settled
    )
    findings = (*found, *read, *audited)
    if protocol.oks_box_share is not None:  # no area is read, so that none is missed
        findings = tuple(finding for finding in findings if finding.code != "area-missing")
    _raise_errors(findings)
    with Stage("measuring"):
        summary = {str(ref): metrics.value(ref) for ref in summary_refs(protocol)}
        per_class = metrics.per_class()
    result = EvaluationResult(
        protocol=protocol,
        signature=sides.sign(protocol, *choices, *metrics.tie_choice, version=version),
        version=version,
        gt=gt_summary,
        pred=pred_summary,
        correspondence=aligned.correspondence,
        metrics=summary,
        per_class=per_class,
        findings=findings,
        measured=metrics,
        boxes=None if is_stored else (aligned.gt, aligned.pred),
        images=image_files(sides),
        options=to_document(options),
        parts=tuple(parts),
    )
    if options.slices:
        from jaccard_eval.features.bootstrap.intervals import with_slices

        result = with_slices(result, options.slices, options.bootstrap)
    if options.bootstrap is not None:
        from jaccard_eval.features.bootstrap.intervals import with_intervals

        result = with_intervals(result, options.bootstrap)
    return result
