"""Evaluation: inputs are read and aligned, matched once, and measured into a result with the parts asked for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from jaccard_eval.data.alignment import (
    Alignment,
    Sides,
    align,
    align_images,
    common_sizes,
    in_own_pixels,
    left_out,
    only_images,
    place,
)
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.classmaps import AUTO, fold_name
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.data.document import Part, Rows
from jaccard_eval.data.protocol import BOXES, COCO, Protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import HashSum, digest_names, quoted, row_hashes
from jaccard_eval.errors import UsageError
from jaccard_eval.features.audit.class_maps import applied_counting, best_class_map
from jaccard_eval.features.audit.compute import audit, is_doubtful
from jaccard_eval.features.audit.duplicates import repeats_of
from jaccard_eval.features.audit.images import applied_numbers
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.formats import read_dataset
from jaccard_eval.metrics.detection import DetectionMetrics, match_sides, metrics_of, summary_refs
from jaccard_eval.options import EngineOptions, EvaluateOptions, ReadOptions, SideOptions, to_document
from jaccard_eval.progress import Stage, staged
from jaccard_eval.reading.thumbnails import ImageFiles

if TYPE_CHECKING:
    from typing import Any

    import pandas as pd

    from jaccard_eval.data.boxtable import Words
    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.features.explain.compute import Question
    from jaccard_eval.features.explain.result import ExplanationResult
    from jaccard_eval.options import PathText

    Source = (
        str | os.PathLike[str] | Dataset | BoxTable | pd.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    )


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input as it was named, and how to read it; see `load`."""

    source: Source
    format_name: str | None = None
    options: ReadOptions | None = None
    store: DiskEngine | None = None  # where predictions go that do not fit into memory

    def attempt(self, role: str) -> tuple[Dataset | None, tuple[Finding, ...]]:
        """Read it as ground truth ("gt") or predictions ("pred"); None with the errors where that cannot be done."""
        try:
            if self.store is not None and role == "pred":
                return _load_stored(self, self.store), ()
            return load(self.source, role=role, format_name=self.format_name, options=self.options), ()
        except DataError as error:
            return None, error.findings


def _load_stored(given: Input, store: DiskEngine) -> Dataset:
    """Read predictions whose boxes are kept on the disk."""
    # Most evaluations go without.
    from jaccard_eval.formats import read_stored
    from jaccard_eval.reading.stored import keep_on_disk

    if isinstance(given.source, str | os.PathLike):
        options = replace(given.options or ReadOptions(), role="pred")
        return read_stored(Path(given.source), options, given.format_name, store)
    return keep_on_disk(load(given.source, role="pred", format_name=given.format_name, options=given.options), store)


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What could be read of two inputs; `errors` explains why a side is None, or that the two are swapped."""

    gt: Dataset | None
    pred: Dataset | None
    errors: tuple[Finding, ...] = ()


def load(
    source: Source, *, role: str = "gt", format_name: str | None = None, options: ReadOptions | None = None
) -> Dataset:
    """Read one side of an evaluation.

    Parameters
    ----------
    source : path, Dataset, BoxTable or data
        A file or folder in any known format, or a table, COCO dict or list of dicts as `evaluate` takes them; data that
        is loaded already is passed through.
    role : {"gt", "pred"}
    format_name : str, optional
        Name of the format; detected if None.
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
        When loaded data is to be predictions and has no scores, or the source is none of these.

    Examples
    --------
    >>> from jaccard_eval import load
    >>> results = [{"image_id": 1, "category_id": 3, "bbox": [0, 0, 10, 10], "score": 0.9}]
    >>> load(results, role="pred").boxes.score.tolist()
    [0.9]
    """
    if isinstance(source, Dataset | BoxTable):
        dataset = _wrap(source, role) if isinstance(source, BoxTable) else source
        if role == "pred" and dataset.boxes.score is None:
            raise UsageError("predictions need scores: BoxTable.from_arrays(..., score=...) or load(..., role='pred')")
        return dataset
    if not isinstance(source, str | os.PathLike):
        from jaccard_eval.formats import read_object

        found = read_object(source, replace(options or ReadOptions(), role=role))
        if found is not None:
            return found
        kind = type(source).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise UsageError(
            f"evaluate() cannot read {article} {kind}. Pass a path, a DataFrame, a COCO dict or a list of dicts."
        )
    return read_dataset(Path(source), replace(options or ReadOptions(), role=role), format_name)


def read_both(gt: Input, pred: Input) -> Readings:
    """Read what can be read of both sides; sides that were given in the wrong order are read as what they are."""
    gt_side, gt_errors = gt.attempt("gt")
    pred_side, pred_errors = pred.attempt("pred")
    are_files = all(isinstance(given.source, str | os.PathLike) for given in (gt, pred))
    if are_files and any(error.code == "score-missing" for error in pred_errors):
        truth, results = pred.attempt("gt")[0], gt.attempt("pred")[0]
        if truth is not None and results is not None:
            detail = f"has no scores, but {results.path}, given as ground truth, has: the two sides are swapped"
            fix = f"Pass --gt {truth.path} --pred {results.path}."
            swapped = DataError.single("sides-swapped", Where(truth.path), detail, fix=fix)
            return Readings(truth, results, swapped.findings)
    if are_files and gt_side is not None and pred_side is not None:
        gt_side, pred_side = (
            _with_names_above(gt_side, pred_side, gt),
            _with_names_above(pred_side, gt_side, pred),
        )
    return Readings(gt_side, pred_side, (*gt_errors, *pred_errors))


def _with_names_above(side: Dataset, other: Dataset, given_as: Input) -> Dataset:
    """Name the classes of a side that only numbers them from the one names file that lies above it, with a note.

    Where all numbers are ids of the other side they correspond to these, whatever a file elsewhere calls them.
    """
    keys, names, options = side.labels.keys, other.labels.names, given_as.options
    is_bare = bool(keys) and not side.labels.named and all(isinstance(key, int) for key in keys)
    if not is_bare or not other.labels.named or set(keys) <= set(other.labels.keys) or (options and options.names):
        return side
    from jaccard_eval.reading.names import names_above, read_names

    found: dict[tuple[str, ...], Path] = {}
    for path in names_above(Path(side.path), Path(other.path)):
        with contextlib.suppress(DataError):
            found.setdefault(read_names(path, FindingLog()), path)
    indices = [key for key in keys if isinstance(key, int)]
    fitting = [given for given in found if min(indices) >= 0 and max(indices) < len(given)]
    # Two that differ leave the choice to the user; one whose names the other side does not know is of other data.
    known = {fold_name(name) for name in names}
    if len(fitting) != 1 or len(found) > 1 or not known & {fold_name(fitting[0][index]) for index in indices}:
        return side
    (given, path), log = (fitting[0], found[fitting[0]]), FindingLog()
    detail = f"its classes are numbers; named by the {len(given)} names in {path}"
    log.note("names-found", Where(side.path), detail, fix=f"For other names, pass --{side.role}-names.")
    options = replace(options or ReadOptions(), role=side.role, names=given)
    named, errors = replace(given_as, source=side.path, format_name=side.format, options=options).attempt(side.role)
    if named is None:
        raise DataError(errors)
    return replace(named, findings=(*log.findings(), *named.findings))


def read_alone(given: Input, role: str | None = None) -> Dataset:
    """Read one input by itself, as what it is: predictions where it has scores, else ground truth.

    A `role` decides what to read it as.
    """
    if isinstance(given.source, BoxTable) and role is None:
        role = "gt" if given.source.score is None else "pred"
    if role is not None or isinstance(given.source, Dataset):
        side = load(given.source, role=role or "gt", format_name=given.format_name, options=given.options)
        return in_own_pixels(side)
    truth, errors = given.attempt("gt")
    if truth is not None and not truth.ignored.get("score"):
        return in_own_pixels(truth)
    predictions, pred_errors = given.attempt("pred")
    if predictions is not None or truth is not None:
        return in_own_pixels(predictions or truth)  # type: ignore[arg-type]
    # A list has no layout of ground truth: what is wrong with it as predictions explains more.
    is_list = any(error.code in ("layout", "json-lines") for error in errors)
    raise DataError(pred_errors if is_list else errors)


def _wrap(boxes: BoxTable, role: str) -> Dataset:
    """Make a dataset of bare arrays: image and class rows are their own keys where these have no names."""
    labels = range(int(boxes.label.max(initial=-1)) + 1)
    names = boxes.class_names
    images = _counted_images(int(boxes.image.max(initial=-1)) + 1)
    if boxes.image_names is not None:
        n = len(boxes.image_names)
        # Only images with boxes are known, as in a table of boxes.
        images = ImageTable(boxes.image_names, (None,) * n, unknown_sizes(n), listed=False)
    return Dataset(
        path="<arrays>",
        format="arrays",
        role=role,
        images=images,
        labels=LabelMap(tuple(labels), tuple(map(str, labels)), named=False)
        if names is None
        else LabelMap(tuple(range(len(names))), names, named=True),
        boxes=replace(boxes, image_names=None, class_names=None),
        reading=Reading("xyxy", "px", named=("box", "units")),  # how from_arrays reads boxes by default
    )


def _is_counted(source: Source) -> bool:
    """Whether images are nothing but numbers from 0 on, those of both sides alike."""
    return isinstance(source, BoxTable) and source.image_names is None


def _counted_images(n: int) -> ImageTable:
    return ImageTable(tuple(range(n)), (None,) * n, unknown_sizes(n), listed=True)


def load_and_align(gt: Source, pred: Source, options: SideOptions, store: DiskEngine | None = None) -> Sides:
    """Read both sides and bring them to common images, classes and units; `api.evaluate` explains the options.

    A DataError means that an input cannot be used, or that the two do not belong together. Predictions are kept in a
    `store` where one is given.
    """
    read = read_both(
        Input(gt, options.gt_format, options.gt_options),
        Input(pred, options.pred_format, options.pred_options, store),
    )
    gt_side, pred_side = read.gt, read.pred
    if gt_side is None or pred_side is None or read.errors:
        raise DataError(read.errors)
    if _is_counted(gt) and _is_counted(pred):
        # Bare arrays have the same images: what only one side uses is an image without boxes on the other.
        images = _counted_images(max(len(gt_side.images), len(pred_side.images)))
        gt_side, pred_side = replace(gt_side, images=images), replace(pred_side, images=images)
    if options.drop_duplicates or options.nms is not None:
        pred_side = replace(pred_side, boxes=pred_side.boxes.arranged(len(pred_side.images)))
    if options.drop_duplicates:
        gt_side, pred_side = _without_repeats(gt_side), _without_repeats(pred_side)
    if options.score_min is not None:
        pred_side = _above(pred_side, options.score_min)
    if options.nms is not None:
        pred_side = _without_rivals(pred_side, options.nms)
    try:
        aligned = align_datasets(gt_side, pred_side, options)
    except DataError as error:
        raise _with_split(error, gt, gt_side, pred_side, options) from None
    names = aligned.image_names, aligned.class_names
    gt_rows = row_hashes(aligned.gt, *names)
    pred_rows = _hashes(aligned.pred, *names)
    rules = {"class_map": aligned.classes.strategy} if isinstance(options.class_map, str) else {}
    for side in (gt_side, pred_side):
        if side.reading.resized is not None:
            rules[f"{side.role}_resized"] = quoted(str(side.reading.resized))
    if options.images_in_common:
        # The fingerprints know no images without boxes; which of these count depends on what the other side lists.
        rules["images_in_common"] = digest_names(aligned.image_names)
    selection = _selection(options, {**rules, **aligned.applied})
    return Sides(gt_side, pred_side, aligned, selection, (gt_rows, pred_rows))


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

    sides = load_and_trust(gt, pred, options)
    return replace(explain_sides(sides, asked, version=version), images=image_files(sides, images))


def _hashes(pred: BoxTable, image_names: Sequence[str], class_names: Sequence[str]) -> Words | HashSum:
    """Return a hash of each prediction, or of those that do not fit into memory the sum of all."""
    if isinstance(pred, BoxTable):
        return row_hashes(pred, image_names, class_names)
    from jaccard_eval.reading.stored import hash_sum

    return hash_sum(pred, image_names, class_names)


SPLITS = ("train", "val", "test")


def _with_split(error: DataError, gt: Source, gt_side: Dataset, pred: Dataset, options: SideOptions) -> DataError:
    """Return an error about images with the split of the ground truth that has them all, where another one has."""
    is_split = isinstance(gt, str | os.PathLike) and (
        Path(gt).is_dir() or Path(gt).suffix in (".yaml", ".yml", ".data")
    )
    if not is_split or not any(finding.code == "image-unknown" for finding in error.findings):
        return error
    given = options.gt_options or ReadOptions()
    for split in SPLITS:
        try:
            sibling = load(gt, format_name=gt_side.format, options=replace(given, split=split))
            if split == given.split or sibling.images.keys == gt_side.images.keys:
                continue
            align_images(sibling, pred, options, FindingLog())
        except (DataError, UsageError):
            continue
        fix = f"Rerun with --split {split}. All images of the predictions are in that split, not in {given.split}."
        return DataError(
            [replace(finding, fix=fix) if finding.code == "image-unknown" else finding for finding in error.findings]
        )
    return error


def load_and_trust(gt: Source, pred: Source, options: SideOptions) -> Sides:
    """Read and align both sides; stop, as `evaluate_inputs` does, where files were beyond doubt read wrongly."""
    sides = load_and_align(gt, pred, options)
    # A look at a sample settles most cases; the evidence of a stop takes a matching.
    if _may_stop(gt, pred) and is_doubtful(sides.aligned):
        metrics = match_sides(sides, COCO)
        found = audit(sides.gt, sides.pred, sides.aligned, metrics, sides.hashes, options=options)
        _raise_errors((*sides.findings, *found))
    return sides


def load_as_in_ground_truth(gt: Source, pred: Source, options: SideOptions, *, lossy: bool = False) -> Dataset:
    """Read predictions as they are to be written: with the image names, image sizes and classes of the ground truth."""
    from jaccard_eval.features.convert.write import as_in_ground_truth

    try:
        return as_in_ground_truth(load_and_trust(gt, pred, options), lossy=lossy)
    except DataError as error:
        fix = f"Convert {gt}, and pass --gt {pred}."
        found = error.findings
        raise DataError(
            [replace(finding, fix=fix) if finding.code == "sides-swapped" else finding for finding in found]
        ) from None


def _may_stop(gt: Source, pred: Source) -> bool:
    """Whether what is read wrongly stops the run: the encoding and ids of arrays are the caller's own statement."""
    return not isinstance(pred, Dataset | BoxTable) and not isinstance(gt, BoxTable)


def _raise_errors(findings: Sequence[Finding]) -> None:
    """Raise the errors among findings, with all warnings but those that mean the same."""
    errors = {finding.code for finding in findings if finding.severity is Severity.ERROR}
    if errors:
        raise DataError(
            [finding for finding in findings if finding.severity is Severity.ERROR or finding.code not in errors]
        )


@staged("aligning")
def align_datasets(gt: Dataset, pred: Dataset, options: SideOptions) -> Alignment:
    """Align, with the map of classes that the boxes support where it is asked for.

    Where it fails, the DataError has the evidence that the boxes hold.
    """
    notes = FindingLog()
    applied: dict[str, str] = {}
    try:
        # Classes are looked at where boxes lie on their own images.
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
    boxes = pred.boxes.mapped(
        lambda table: table if table.score is None else table.take(table.score >= score_min),
    )
    return replace(pred, boxes=boxes, ignored={**pred.ignored, "score-min": len(pred.boxes) - len(boxes)})


def _without_rivals(pred: Dataset, iou: float) -> Dataset:
    """Remove predictions that a better one of their image and class overlaps by more than `iou`, counted."""
    from jaccard_eval.features.nms.compute import Suppression, suppress

    boxes = pred.boxes.mapped(lambda table: suppress(table, Suppression(iou=iou)))
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
    """Match predictions that are on the disk; see `measure_aligned`."""
    from jaccard_eval.engine.stored import StoredBoxes

    curves = store.measure(gt, cast("StoredBoxes", pred), protocol, n_labels=len(aligned.class_names), **changes)
    return metrics_of(aligned, curves)


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
        "gt_resized": rules.get("gt_resized", ""),
        "pred_resized": rules.get("pred_resized", ""),
    }
    named = (f"{name}={text}" for name, text in parts.items() if text)
    return (*(["drop_duplicates"] if options.drop_duplicates else []), *named)


def evaluate_inputs(
    gt: Source,
    pred: Source,
    protocol: Protocol,
    options: EvaluateOptions,
    *,
    version: str,
    engine: EngineOptions | None = None,
) -> EvaluationResult:
    """Evaluate two inputs with all that was asked for, which the result records; `version` is that of the tool.

    A DataError means that an input cannot be used, or the two do not belong together, or that the protocol needs sizes
    that are unknown.
    """
    from jaccard_eval.engine.choice import takes_disk

    if engine is None or not takes_disk(pred, engine):
        return _evaluate(gt, pred, protocol, options, version=version)
    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.engine.scratch import explained, remove_scratch

    refuse_on_disk(protocol, options)
    store = DiskEngine.open(engine)
    try:
        with explained(store.scratch):
            return _evaluate(gt, pred, protocol, options, version=version, store=store)
    except BaseException:
        remove_scratch(store.scratch)
        raise


def refuse_on_disk(protocol: Protocol, options: EvaluateOptions) -> None:
    """Raise a UsageError for what needs the match of every detection, all of it at once."""
    asked = {
        "bootstrap": options.bootstrap is not None,
        "errors": options.errors,
        "worst_images": options.worst_images is not None,
        f"iou_type {protocol.iou_type}": protocol.iou_type != BOXES,
    }
    names = ", ".join(name for name, is_asked in asked.items() if is_asked)
    if names:
        raise UsageError(f"{names}: not available with the disk engine. Pass --engine memory, or omit it.")


def _evaluate(
    gt: Source,
    pred: Source,
    protocol: Protocol,
    options: EvaluateOptions,
    *,
    version: str,
    store: DiskEngine | None = None,
) -> EvaluationResult:
    sides = load_and_align(gt, pred, options, store)
    aligned, score = sides.aligned, options.score
    is_stored = not isinstance(aligned.pred, BoxTable)
    measure = partial(_measure_stored, store, aligned) if store is not None and is_stored else None
    metrics = match_sides(sides, protocol, measure)
    # The parts are imported when they are asked for: most evaluations go without.
    parts: list[Part] = []
    choices = []
    if score is not None:
        parts.append(Rows("operating_points", metrics.operating_points(score)))
        choices.append(f"score={score if isinstance(score, str) else repr(float(score))}")
    if options.errors:
        from jaccard_eval.features.errors.compute import report_errors

        parts.append(report_errors(metrics, aligned.gt, aligned.pred, score))
    if options.worst_images is not None:
        from jaccard_eval.features.images.compute import count_images

        parts.append(count_images(metrics, score, options.worst_images))
    gt_summary, pred_summary = sides.summaries()
    stopping = options if _may_stop(gt, pred) else None
    findings = (
        *sides.findings,
        *audit(sides.gt, sides.pred, aligned, metrics, sides.hashes, options=stopping, measure=measure),
    )
    _raise_errors(findings)
    with Stage("measuring"):
        summary = {str(ref): metrics.value(ref) for ref in summary_refs(protocol)}
        per_class = metrics.per_class()
    result = EvaluationResult(
        protocol=protocol,
        signature=sides.sign(protocol, *choices, version=version),
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
