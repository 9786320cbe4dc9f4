"""Evaluation: inputs are read and aligned, matched once, and measured into a result with the parts asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from jaccard_eval.data.alignment import Alignment, AlignOptions, align, place
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.classmaps import AUTO
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.data.protocol import AreaRange, Protocol, get_protocol
from jaccard_eval.data.result import EvaluationResult, InputSummary
from jaccard_eval.data.signature import Words, digest_rows, quoted, row_hashes, signature
from jaccard_eval.errors import UsageError
from jaccard_eval.features.audit.class_maps import best_class_map
from jaccard_eval.features.audit.compute import audit
from jaccard_eval.features.audit.duplicates import repeats_of, without_rows
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.formats import read_dataset
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs
from jaccard_eval.options import ReadOptions
from jaccard_eval.text import shown

if TYPE_CHECKING:
    from jaccard_eval.features.errors.result import ErrorReport
    from jaccard_eval.options import Bootstrap, Slice

DEFAULT_EXTRA_IMAGES = "error"


def record_options(sides: SideOptions, **others: Any) -> dict[str, Any]:
    """Return what was asked for beside the protocol, as the user gave it; what was left out is left out.

    The names are those of `api.evaluate`.
    """
    recorded = {name: _recorded(value) for name, value in (sides | others).items()}
    if recorded.get("extra_images") == DEFAULT_EXTRA_IMAGES:
        del recorded["extra_images"]
    return {name: value for name, value in recorded.items() if _is_given(value)}


def restore_options(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `api.evaluate` that were recorded.

    Raises
    ------
    DataError
        When a folder of images does not exist any more.
    UsageError
        When a number is out of range.
    """
    restored = dict(recorded)
    for name in ("gt_options", "pred_options"):
        restored[name] = _read_options(recorded.get(name, {}))
    if "bootstrap" in recorded:
        from jaccard_eval.options import Bootstrap

        restored["bootstrap"] = Bootstrap(**recorded["bootstrap"])
    if "slices" in recorded:
        from jaccard_eval.options import Slice

        restored["slices"] = tuple(Slice(**one | {"patterns": tuple(one["patterns"])}) for one in recorded["slices"])
    return restored


def _recorded(value: Any) -> Any:
    if isinstance(value, ReadOptions):
        names = (field.name for field in fields(value) if field.name != "role")
        changed = {name: getattr(value, name) for name in names if getattr(value, name) != _DEFAULTS[name]}
        return {name: _recorded(one) for name, one in changed.items()}
    if isinstance(value, Mapping):
        return {str(key): str(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_recorded(one) for one in value]
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _recorded(one) for name, one in given.items() if one is not None}
    return str(Path(value)) if isinstance(value, os.PathLike) else value


_DEFAULTS = {field.name: getattr(ReadOptions(), field.name) for field in fields(ReadOptions)}


def _is_given(value: Any) -> bool:
    """Whether an option was used; 0 is a number like any other."""
    return value is not None and value is not False and value not in ([], {})


def _read_options(recorded: Mapping[str, Any]) -> ReadOptions:
    changes = dict(recorded)
    if "names" in changes:
        changes["names"] = tuple(changes["names"])
    return ReadOptions(**changes)


if TYPE_CHECKING:
    Source = str | os.PathLike[str] | Dataset | BoxTable


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input as it was named, and how to read it; see `load`."""

    source: Source
    format_name: str | None = None
    options: ReadOptions | None = None

    def read(self, role: str) -> Dataset:
        """Read it as ground truth ("gt") or predictions ("pred"); see `load` for the errors."""
        return load(self.source, role=role, format_name=self.format_name, options=self.options)


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What could be read of two inputs; `errors` says why a side is None, or that the two are swapped."""

    gt: Dataset | None
    pred: Dataset | None
    errors: tuple[Finding, ...] = ()


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
        When loaded data is to be predictions and has no scores, or the source is none of these.
    """
    if isinstance(source, Dataset | BoxTable):
        dataset = _wrap(source, role) if isinstance(source, BoxTable) else source
        if role == "pred" and dataset.boxes.score is None:
            raise UsageError("predictions need scores: BoxTable.from_arrays(..., score=...) or load(..., role='pred')")
        return dataset
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise UsageError(f"{kind} is no input: pass a path, a Dataset or a BoxTable; BoxTable.from_arrays takes arrays")
    return read_dataset(Path(source), replace(options or ReadOptions(), role=role), format_name)


def load_both(gt: Input, pred: Input) -> tuple[Dataset, Dataset]:
    """Read both sides of an evaluation.

    Raises
    ------
    DataError
        With every problem of both inputs.
    UsageError
        When loaded data is to be predictions and has no scores.
    """
    sides = read_both(gt, pred)
    if sides.gt is None or sides.pred is None or sides.errors:
        raise DataError(sides.errors)
    arrays = isinstance(gt.source, BoxTable) and isinstance(pred.source, BoxTable)
    return _with_common_images(sides.gt, sides.pred) if arrays else (sides.gt, sides.pred)


def read_both(gt: Input, pred: Input) -> Readings:
    """Read what can be read of both sides; sides that were given in the wrong order are read as what they are."""
    ours, theirs = _attempt(gt, "gt"), _attempt(pred, "pred")
    errors = (*ours.errors, *theirs.errors)
    if any(error.code == "score-missing" for error in theirs.errors):
        return _swapped(gt, pred) or Readings(ours.gt, None, errors)
    return Readings(ours.gt, theirs.pred, errors)


def read_alone(given: Input, role: str | None = None) -> Dataset:
    """Read one input by itself, as what it is: predictions where it has scores, else ground truth.

    Parameters
    ----------
    given : Input
    role : {"gt", "pred"}, optional
        What to read it as.

    Raises
    ------
    DataError
        With every problem of the input.
    """
    if isinstance(given.source, BoxTable) and role is None:
        role = "gt" if given.source.score is None else "pred"
    if role is not None or isinstance(given.source, Dataset):
        return given.read(role or "gt")
    truth = _attempt(given, "gt")
    if truth.gt is not None and not truth.gt.ignored.get("score"):
        return truth.gt
    predictions = _attempt(given, "pred")
    if predictions.pred is not None or truth.gt is not None:
        return predictions.pred or truth.gt  # type: ignore[return-value]
    is_list = any(error.code in ("layout", "json-lines") for error in truth.errors)
    raise DataError(predictions.errors if is_list else truth.errors)


def _attempt(given: Input, role: str) -> Readings:
    """Read one side, its errors kept."""
    try:
        side = given.read(role)
    except DataError as error:
        return Readings(None, None, error.findings)
    return Readings(side, None) if role == "gt" else Readings(None, side)


def _swapped(gt: Input, pred: Input) -> Readings | None:
    """Read both sides the other way round; None when that does not work either."""
    if isinstance(gt.source, Dataset | BoxTable) or isinstance(pred.source, Dataset | BoxTable):
        return None
    ours, theirs = _attempt(pred, "gt"), _attempt(gt, "pred")
    if ours.gt is None or theirs.pred is None:
        return None
    detail = f"has no score, and {theirs.pred.path}, given as ground truth, has: the two sides are swapped"
    fix = f"Pass --gt {ours.gt.path} --pred {theirs.pred.path}."
    return Readings(
        ours.gt, theirs.pred, DataError.single("sides-swapped", Where(ours.gt.path), detail, fix=fix).findings
    )


def _with_common_images(gt: Dataset, pred: Dataset) -> tuple[Dataset, Dataset]:
    """Give bare arrays the same images: what only one side uses is an image without boxes on the other."""
    images = _counted_images(max(len(gt.images), len(pred.images)))
    return replace(gt, images=images), replace(pred, images=images)


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


def _counted_images(n: int) -> ImageTable:
    return ImageTable(tuple(range(n)), (None,) * n, unknown_sizes(n), listed=True)


class SideOptions(TypedDict, total=False):
    """How both sides are read, chosen from and brought together; `api.evaluate` explains each."""

    classes: Sequence[str]
    exclude_classes: Sequence[str]
    score_min: float | None
    nms: float | None
    drop_duplicates: bool
    class_map: Mapping[str, str] | str | None
    match_images: str | None
    extra_images: str
    gt_format: str | None
    pred_format: str | None
    gt_options: ReadOptions | None
    pred_options: ReadOptions | None


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both sides as read, and what they have in common.

    Parameters
    ----------
    gt, pred : Dataset
    aligned : Alignment
    selection : tuple of str
        What was chosen, as a signature names it.
    hashes : tuple of ndarray of uint64, shape (n,) each
        A hash of every aligned row, of the ground truth and of the predictions.
    """

    gt: Dataset
    pred: Dataset
    aligned: Alignment
    selection: tuple[str, ...]
    hashes: tuple[Words, Words]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What reading and aligning found."""
        return (*self.gt.findings, *self.pred.findings, *self.aligned.findings)

    def fingerprints(self) -> tuple[str, str]:
        """Digest the aligned boxes of either side."""
        gt, pred = self.hashes
        return digest_rows(gt, "gt", self.aligned.units), digest_rows(pred, "pred", self.aligned.units)

    def summaries(self) -> tuple[InputSummary, InputSummary]:
        """Return both sides in short, with their fingerprints."""
        gt, pred = self.fingerprints()
        return summarise(self.gt, gt), summarise(self.pred, pred)

    def sign(self, protocol: Protocol, *choices: str, version: str) -> str:
        """Return the signature of a result: the protocol, what was chosen, further choices, and the inputs.

        Fingerprints leave no trace of images without boxes; rates per image depend on how many there are.
        """
        gt, pred = self.fingerprints()
        selection = (*self.selection, *choices, f"images={len(self.aligned.image_names)}")
        return signature(protocol, selection=selection, gt=gt, pred=pred, version=version)


def bring_together(
    gt: Source,
    pred: Source,
    *,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
) -> Sides:
    """Read both sides and bring them to common images, classes and units; `api.evaluate` explains the options.

    Raises
    ------
    DataError
        When an input cannot be used, or the two do not belong together.
    UsageError
        When an option names what does not exist.
    """
    require_lists(classes=classes, exclude_classes=exclude_classes)
    ours, theirs = load_both(Input(gt, gt_format, gt_options), Input(pred, pred_format, pred_options))
    if drop_duplicates:
        ours, theirs = _without_repeats(ours), _without_repeats(theirs)
    if score_min is not None:
        theirs = _above(theirs, score_min)
    if nms is not None:
        theirs = _without_rivals(theirs, nms)
    options = AlignOptions(
        match_images=match_images,
        extra_images=extra_images,
        class_map=class_map,
        classes=classes,
        exclude_classes=exclude_classes,
    )
    aligned = align_datasets(ours, theirs, options)
    rule = aligned.classes.strategy if isinstance(class_map, str) else ""
    chosen = [*(["drop_duplicates"] if drop_duplicates else []), *([] if nms is None else [f"nms={float(nms)!r}"])]
    selection = (*chosen, *_selection(classes, exclude_classes, score_min, extra_images, rule))
    gt_rows, pred_rows = (
        row_hashes(boxes, aligned.image_names, aligned.class_names) for boxes in (aligned.gt, aligned.pred)
    )
    return Sides(ours, theirs, aligned, selection, (gt_rows, pred_rows))


def summarise(side: Dataset, fingerprint: str) -> InputSummary:
    """Return one side in short."""
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


def align_datasets(gt: Dataset, pred: Dataset, options: AlignOptions) -> Alignment:
    """Align, with the map of classes that the boxes speak for where it is asked for; say why where it fails.

    Raises
    ------
    DataError
        With the evidence that the boxes hold, where the two do not belong together.
    """
    notes = FindingLog()
    try:
        if options.class_map == AUTO:
            placed = place(gt, pred, options, FindingLog())
            options = replace(options, class_map=best_class_map(gt, pred, placed, notes))
        aligned = align(gt, pred, options)
    except DataError as error:
        from jaccard_eval.features.audit.failures import explain_failure

        raise DataError(explain_failure(error.findings, gt, pred, options)) from None
    return replace(aligned, findings=(*aligned.findings, *notes.findings()))


def _above(pred: Dataset, score_min: float) -> Dataset:
    """Leave out predictions below a score, counted."""
    if pred.boxes.score is None:
        return pred
    kept = pred.boxes.score >= score_min
    below = int(np.count_nonzero(~kept))
    ignored = {**pred.ignored, "score-min": below}
    return replace(pred, boxes=pred.boxes.take(kept), ignored=ignored)


def _without_rivals(pred: Dataset, iou: float) -> Dataset:
    """Leave out predictions that a better one of their image and class overlaps by more than `iou`, counted."""
    from jaccard_eval.features.nms.compute import Suppression, suppress

    boxes = suppress(pred.boxes, Suppression(iou=iou))
    return replace(pred, boxes=boxes, ignored={**pred.ignored, "nms": len(pred.boxes) - len(boxes)})


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
    parts = {"classes": _listed(classes), "exclude_classes": _listed(exclude_classes)}
    parts["score_min"] = "" if score_min is None else repr(float(score_min))
    parts["extra_images"] = "" if extra_images == "error" else extra_images
    parts["class_map"] = class_map
    return tuple(f"{name}={text}" for name, text in parts.items() if text)


def _listed(names: Sequence[str]) -> str:
    """Join names in an order of their own: that of the call changes no number."""
    return ",".join(map(quoted, sorted(set(names))))


def require_numbers(**options: float | str | None) -> None:
    """Refuse what is no finite number; None means: not given."""
    for name, value in options.items():
        if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
            or_word = " or 'best-f1'" if name == "score" else ""
            raise UsageError(f"{name} must be a finite number{or_word}, got {shown(value)}")


def require_lists(**options: object) -> None:
    """Refuse a single value, a text too, where several can stand; None means: not given."""
    for name, value in options.items():
        if value is not None and (isinstance(value, str) or not isinstance(value, Iterable)):
            raise UsageError(f"{name} must be a list, such as [{shown(value)}], got {shown(value)}")


def measure(
    sides: Sides, protocol: Protocol, *, score: float | str | None = None, errors: bool = False, version: str
) -> EvaluationResult:
    """Evaluate two sides; `api.evaluate` explains the options, and `version` is that of the tool.

    Raises
    ------
    DataError
        When the protocol needs sizes in pixels, and they are unknown.
    """
    aligned = sides.aligned
    metrics = detection_metrics(sides, protocol)
    gt, pred = sides.summaries()
    audited = audit(sides.gt, sides.pred, aligned, metrics, sides.hashes)
    return EvaluationResult(
        protocol=protocol,
        signature=sides.sign(protocol, *_point(score), version=version),
        version=version,
        gt=gt,
        pred=pred,
        correspondence=aligned.correspondence,
        metrics={str(ref): metrics.value(ref) for ref in summary_refs(protocol)},
        per_class=metrics.per_class(class_refs(protocol)),
        operating_points=() if score is None else metrics.operating_points(score),
        findings=(*sides.findings, *audited),
        errors=_errors(metrics, aligned, score) if errors else None,
        measured=metrics,
    )


def _errors(metrics: DetectionMetrics, aligned: Alignment, score: float | str | None) -> ErrorReport:
    from jaccard_eval.features.errors.compute import report_errors  # most evaluations do not ask for it

    return report_errors(metrics, aligned.gt, aligned.pred, score)


def detection_metrics(sides: Sides, protocol: Protocol) -> DetectionMetrics:
    """Match, and return the metrics; see `measure` for the errors."""
    _require_pixels(sides, protocol)
    aligned = sides.aligned
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(aligned.gt, aligned.pred, protocol, n_images=n_images, n_labels=n_labels)
    names = ("all classes",) if protocol.class_agnostic else aligned.class_names
    return DetectionMetrics(table, names, aligned.image_names, area_known=aligned.units == "px")


def protocol_rules(
    protocol: str | Protocol,
    *,
    iou: Sequence[float] | None,
    max_dets: Sequence[int] | None,
    areas: Sequence[AreaRange] | None,
    class_agnostic: bool,
) -> Protocol:
    """Return a protocol, with what options change of it.

    Raises
    ------
    UsageError
        When there is no such protocol, or an option is not valid.
    """
    require_lists(iou=iou, max_dets=max_dets, areas=areas)
    rules = get_protocol(protocol) if isinstance(protocol, str) else protocol
    changes: dict[str, Any] = {"class_agnostic": class_agnostic or rules.class_agnostic}
    if iou is not None:
        changes["iou_thresholds"] = tuple(float(value) for value in iou)
    if max_dets is not None:
        changes["max_dets"] = tuple(sorted(int(value) for value in max_dets))
    if areas is not None:
        changes["areas"] = tuple(areas)
    return rules.with_options(**changes)


def bootstrap_settings(bootstrap: Bootstrap | int | None) -> Bootstrap | None:
    """Return how to resample; a number says how often."""
    if not isinstance(bootstrap, int):
        return bootstrap
    from jaccard_eval.options import Bootstrap

    return Bootstrap(n_resamples=bootstrap)


def with_parts(result: EvaluationResult, drawn: Bootstrap | None, slices: Sequence[Slice]) -> EvaluationResult:
    """Add the slices and intervals that were asked for."""
    if slices:
        from jaccard_eval.features.bootstrap.slicing import with_slices

        result = with_slices(result, slices, drawn)
    if drawn is not None:
        from jaccard_eval.features.bootstrap.intervals import with_intervals

        result = with_intervals(result, drawn)
    return result


def _point(score: float | str | None) -> list[str]:
    """Name the operating point as a signature does."""
    return [] if score is None else [f"score={score if isinstance(score, str) else repr(float(score))}"]


def _require_pixels(sides: Sides, protocol: Protocol) -> None:
    if protocol.pixel_offset and sides.aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            f"protocol {protocol.name} adds a pixel to every side, but boxes are normalised and image sizes unknown",
            fix="Give the pictures with --images DIR.",
        )
