"""The plot: inputs are opened, read and aligned, matched once, measured and audited, and become a result.

`_evaluate` has a paragraph for each step, and `load_and_align` for those that make `Sides` of two inputs; each hands on
one value. What stands below them serves one of the steps.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.alignment import (
    Alignment,
    Prints,
    Sides,
    common_sizes,
    left_out,
    only_images,
)
from jaccard_eval.data.boxtable import Boxes, BoxTable, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import Part, Rows
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.data.protocol import BOXES, COCO, POINTS, Protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import RowHasher, digest_names, fingerprint, quoted
from jaccard_eval.engine import at_work, path_of, session
from jaccard_eval.errors import UsageError
from jaccard_eval.features.audit.compute import audit, is_doubtful
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import in_parts, iou_types, opened
from jaccard_eval.inputs import Input, counted_images, is_counted, read_both, require_readings_used, with_shapes
from jaccard_eval.matching.judging import judge
from jaccard_eval.meanwhile import Meanwhile
from jaccard_eval.metrics.detection import DetectionMetrics, match_sides, metrics_of, needs_table, summary_refs
from jaccard_eval.options import (
    EngineOptions,
    EvaluateOptions,
    ReadOptions,
    SideOptions,
    given_reading,
    to_document,
)
from jaccard_eval.pairing import align_shapes, chosen_rows, with_split
from jaccard_eval.progress import Stage
from jaccard_eval.reading.thumbnails import ImageFiles

if TYPE_CHECKING:
    from typing import Any, TypeVar

    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.features.explain import ExplanationResult
    from jaccard_eval.features.explain.compute import Question
    from jaccard_eval.inputs import Source
    from jaccard_eval.options import PathText

    Options = TypeVar("Options", bound=SideOptions)


# Of fewer, what a thread holds besides weighs more than the time that it saves.
MANY_BOXES, MANY_SHAPES = 500_000, 50_000
# In which order a signature names the choice of rows, images and classes; what stands not here comes behind.
SELECTING = (
    *("nms", "classes", "exclude_classes", "score_min", "extra_images", "images_in_common", "class_map"),
    *("match_images", "mask_sizes", "gt_skipped", "pred_skipped", "gt_resized", "pred_resized"),
)


def at_one_point(options: Options, protocol: Protocol) -> Options:
    """Return options for rules of one operating point, which need no scores; those of a file stay."""
    reading = options.pred_options or ReadOptions()
    if not protocol.is_one_point or reading.assume_score is not None:
        return options
    return replace(options, pred_options=replace(reading, assume_score=1.0))


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
    with at_work(gt, pred, engine, protocol.iou_type, lacking_on_disk(options, protocol)) as store:
        return _evaluate(gt, pred, protocol, options, version=version, found=findings, store=store)


def lacking_on_disk(options: EvaluateOptions, protocol: Protocol) -> list[str]:
    """Return what of that which is asked for needs the match of every detection, all of it at once."""
    asked = {
        f"protocol {protocol.name}": needs_table(protocol),
        "bootstrap": options.bootstrap is not None,
        "errors": options.errors,
        "worst_images": options.worst_images is not None,
    }
    return [name for name, is_asked in asked.items() if is_asked]


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
    # Open and read both sides, align them, and ignore what the rules do not judge.
    options = at_one_point(_as_recorded(options, (gt, pred)), protocol)
    facts = {"regions": protocol.judges_void, "whole_bodies": protocol.whole_bodies, "are_printed_meanwhile": True}
    given = load_and_align(gt, pred, options, store, protocol.iou_type, **facts)
    sides = judge(given, protocol)
    aligned, is_stored = sides.aligned, not isinstance(sides.aligned.pred, BoxTable)
    is_unranked = any(finding.code == "score-assumed" for finding in sides.findings)
    options = _with_score(options, aligned.pred, ranked=not is_unranked and not protocol.is_one_point)
    score = options.score
    if "pyarrow" in sys.modules:
        from jaccard_eval.engine.memory import release_tables

        release_tables(len(aligned.pred))

    # Match once; every number, and every part that was asked for, is counted from that.
    measure = partial(_measure_stored, store, aligned) if store is not None and is_stored else None
    analyse = None if is_stored else partial(_errors_at, boxes=(aligned.gt, aligned.pred), score=score)
    metrics = match_sides(sides, protocol, measure).at(score, analyse)

    # Measure: the metrics of the rules over all classes and of each, and the parts.
    with Stage("measuring"):
        ties = metrics.tie_interval() if is_unranked and not protocol.is_swept else None
        refs = summary_refs(protocol, ranked=ties is None)
        if is_stored:  # there the IoU of matches is not kept
            refs = tuple(ref for ref in refs if METRICS[ref.name].on != "matches")
        summary = {str(ref): metrics.value(ref) for ref in refs}
        per_class = metrics.per_class()
    parts = _parts(metrics, sides, options, store if is_stored else None)

    # Audit: what is wrong beyond doubt ends here, before a number is shown.
    stopping = options if _may_stop(gt, pred) else None
    hashes = sides.prints().hashes
    if not is_stored and (aligned.gt is not given.aligned.gt or aligned.pred is not given.aligned.pred):
        # A fingerprint is that of the boxes as given; checks look at those that are judged.
        hasher = RowHasher.of(aligned.image_names, aligned.class_names)
        hashes = hasher(aligned.gt_table), hasher(aligned.pred_table)
    audited = audit(sides.gt, sides.pred, aligned, metrics, hashes, options=stopping, measure=measure)
    findings = (*found, *_still_said(sides.findings, audited, protocol), *audited)
    _raise_errors(findings)

    # Result: all of that, signed; slices and intervals weigh its images, and nothing is matched again.
    choices = [] if score is None else [f"score={score if isinstance(score, str) else repr(float(score))}"]
    gt_summary, pred_summary = sides.summaries()
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
        boxes=None if is_stored else (aligned.gt_table, aligned.pred_table),
        images=image_files(sides),
        ties=ties,
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


def load_and_align(
    gt: Source,
    pred: Source,
    options: SideOptions,
    store: DiskEngine | None = None,
    iou_type: str = BOXES,
    *,
    regions: bool = False,
    whole_bodies: bool = False,
    are_printed_meanwhile: bool = False,
) -> Sides:
    """Read both sides and bring them to common images, classes and units; `api.evaluate` explains the options.

    A DataError means that an input cannot be used, or that the two do not belong together. Boxes are kept in a `store`
    where one is given. Shapes are read where an `iou_type` compares them, and where rules ask for them, regions that
    nobody judged and all points of whole bodies. Fingerprints of many boxes may be left to a thread, for a caller that
    asks for them.
    """
    # Read: each side by the format that it has, or that was named.
    asked = given_reading(options)
    options = _as_recorded(options, (gt, pred), iou_type)
    read = read_both(
        Input(
            gt,
            options.gt_format,
            with_shapes(options.gt_options, iou_type, regions=regions, whole_bodies=whole_bodies),
            store,
        ),
        Input(pred, options.pred_format, with_shapes(options.pred_options, iou_type, whole_bodies=whole_bodies), store),
    )
    gt_side, pred_side = read.gt, read.pred
    if gt_side is None or pred_side is None or read.errors:
        raise DataError(read.errors)
    require_readings_used(asked, (gt_side, pred_side), iou_type)
    if is_counted(gt) and is_counted(pred):
        # Bare arrays have the same images: what only one side uses is an image without boxes on the other.
        images = counted_images(max(len(gt_side.images), len(pred_side.images)))
        gt_side, pred_side = replace(gt_side, images=images), replace(pred_side, images=images)

    # Choose: repeats, low scores and rivals go before anything is compared.
    gt_side, pred_side = chosen_rows(gt_side, pred_side, options)

    # Align: the same images and classes, boxes and shapes in the same units.
    try:
        gt_side, pred_side, aligned = align_shapes(gt_side, pred_side, options, iou_type)
    except DataError as error:
        raise with_split(error, gt, gt_side, pred_side, options) from None

    # Sign: what the numbers will rest on, by fingerprint, and every choice that can change one.
    selection, prints = _selection(options, gt_side, pred_side, aligned), Meanwhile(partial(_prints, aligned))
    are_many = len(aligned.pred) >= (MANY_BOXES if iou_type == BOXES else MANY_SHAPES)
    if are_printed_meanwhile and are_many and store is None:
        prints.begin()
    elif are_printed_meanwhile or store is not None:
        prints()  # while least is in memory
    return Sides(gt_side, pred_side, aligned, selection, prints)


def _prints(aligned: Alignment) -> Prints:
    names = aligned.image_names, aligned.class_names
    hasher = RowHasher.of(*names)  # once for both sides: names cost as much as rows
    gt_hashes, gt_print = fingerprint(aligned.gt, names, "gt", aligned.units, hasher)
    pred_hashes, pred_print = fingerprint(aligned.pred, names, "pred", aligned.units, hasher)
    return Prints((gt_hashes, pred_hashes), (gt_print, pred_print))


def _as_recorded(options: Options, sources: tuple[Source, Source], iou_type: str | None = None) -> Options:
    """Return options with those that parts of both sides were read with, where any are given."""
    for role, source in zip(("gt", "pred"), sources, strict=True):
        if in_parts(source):
            from jaccard_eval.reading.partitions import with_recorded

            options = with_recorded(options, role, path_of(str(source)), iou_type)
    return options


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

    sides = load_and_trust(gt, pred, options, asked.rules)
    return replace(explain_sides(sides, asked, version=version), images=image_files(sides, images))


def load_and_trust(gt: Source, pred: Source, options: SideOptions, rules: Protocol = COCO) -> Sides:
    """Read and align both sides; stop, as `evaluate_inputs` does, where files were beyond doubt read wrongly."""
    options = at_one_point(options, rules)
    sides = load_and_align(gt, pred, options, iou_type=rules.iou_type, whole_bodies=rules.whole_bodies)
    # A look at a sample settles most cases; the evidence of a stop takes a matching.
    if _may_stop(gt, pred) and is_doubtful(sides.aligned):
        metrics = match_sides(
            sides, rules if rules.overlap in POINTS or rules.sigmas else COCO.comparing(rules.iou_type)
        )
        # COCO's cap need not be one of what comes next.
        without_cap = replace(options, allow=(*options.allow, "max-dets"))
        audited = audit(sides.gt, sides.pred, sides.aligned, metrics, sides.prints().hashes, options=without_cap)
        _raise_errors((*sides.findings, *audited))
    # What the rules make meaningless is not reported by what is made of the sides either.
    gt_side, pred_side = (
        replace(one, findings=tuple(_still_said(one.findings, (), rules))) for one in (sides.gt, sides.pred)
    )
    return replace(sides, gt=gt_side, pred=pred_side)


def load_as_in_ground_truth(
    gt: Source, pred: Source, options: SideOptions, *, lossy: bool = False, iou_type: str = BOXES
) -> Dataset:
    """Read predictions as they are to be written: with the image names, image sizes and classes of the ground truth.

    Shapes are read as well where an `iou_type` names them, as the files have them.
    """
    from jaccard_eval.features.convert import as_in_ground_truth

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


def _measure_stored(
    store: DiskEngine, aligned: Alignment, gt: BoxTable, pred: BoxTable, protocol: Protocol, **changes: Any
) -> DetectionMetrics:
    """Match boxes that are on the disk; see `measure_aligned`."""
    return metrics_of(aligned, store.measure(gt, pred, protocol, n_labels=len(aligned.class_names), **changes))


def _selection(options: SideOptions, gt: Dataset, pred: Dataset, aligned: Alignment) -> tuple[str, ...]:
    """Name what was chosen, and what was found to hold, as a signature does."""
    rules = dict(aligned.applied)
    if isinstance(options.class_map, str):
        rules.setdefault("class_map", aligned.classes.strategy)
    for side in (gt, pred):
        if side.ignored.get("invalid"):
            rules[f"{side.role}_skipped"] = str(side.ignored["invalid"])
        if side.reading.resized is not None:
            rules[f"{side.role}_resized"] = quoted(str(side.reading.resized))
    if options.images_in_common:
        # The fingerprints know no images without boxes; which of these count depends on what the other side lists.
        rules["images_in_common"] = digest_names(aligned.image_names)
    for name in (known.name for known in fields(SideOptions) if known.type == "float | None"):
        number = getattr(options, name)
        rules[name] = "" if number is None else repr(float(number))
    for name in ("classes", "exclude_classes"):
        # Names stand in an order of their own: that of the call changes no number.
        rules[name] = ",".join(map(quoted, sorted(set(getattr(options, name)))))
    rules["extra_images"] = "" if options.extra_images == "error" else options.extra_images
    named = (f"{name}={rules[name]}" for name in dict.fromkeys((*SELECTING, *rules)) if rules.get(name))
    return (*(["drop_duplicates"] if options.drop_duplicates else []), *named)


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
        from jaccard_eval.features.errors.compute import count_confusions

        count = None
        if store is not None:
            n_labels = len(aligned.class_names)
            count = partial(store.confusion, aligned.gt, aligned.pred, metrics.protocol, n_labels=n_labels)
        parts.append(count_confusions(metrics, aligned.gt, aligned.pred, score, count))
    if options.worst_images is not None:
        from jaccard_eval.features.images import count_images

        parts.append(count_images(metrics, score, options.worst_images))
    return parts


def _with_score(options: EvaluateOptions, pred: Boxes, *, ranked: bool) -> EvaluateOptions:
    """Return options with a score where none was asked for and detections are not `ranked`.

    All of them count then, at the score that is assumed of each, or the lowest; of none, at any. Where scores are
    fractions of 1, a UsageError refuses one above 1, which nothing has and which was meant in percent.
    """
    asked = options.score
    if asked is None:
        if ranked:
            return options
        return replace(options, score=min((float(score.min()) for score in _score_columns(pred)), default=0.0))
    if not isinstance(asked, str) and asked > 1:
        scores = _score_columns(pred)
        if scores and all(score.min() >= 0 and score.max() <= 1 for score in scores):
            meant = f" Did you mean {asked / 100:g}?" if asked <= 100 else ""
            above = f"score {asked:g} is above all scores of the predictions"
            raise UsageError(f"{above}, which are between 0 and 1.{meant}")
    return options


def _score_columns(pred: Boxes) -> list[FloatArray]:
    return [table.score for table in pred.tables() if table.score is not None and len(table)]


def _still_said(read: Sequence[Finding], audited: Sequence[Finding], protocol: Protocol) -> Iterator[Finding]:
    """Yield what reading found, except what the audit knows better, or the rules make meaningless."""
    # What polygons alone suggest is reported once, with the evidence of both sides where there is some.
    settled = {finding.examples[0].where.path for finding in audited if finding.code == "mask-axes"}
    for finding in read:
        is_settled = finding.code == "mask-axes" and finding.examples[0].where.path in settled
        no_area_is_read = finding.code == "area-missing" and protocol.oks_box_share is not None
        are_regions = finding.code == "kitti-dontcare" and bool(protocol.class_rules)
        are_points = finding.code == "box-empty" and protocol.overlap in POINTS
        needs_no_score = finding.code == "score-assumed" and protocol.is_swept
        if not needs_no_score and not are_points and not is_settled and not no_area_is_read and not are_regions:
            yield finding
