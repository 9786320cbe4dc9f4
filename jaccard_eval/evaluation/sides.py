"""Both sides of an evaluation: read, chosen from, and brought to common images, classes and units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from jaccard_eval.data.alignment import Alignment, align, place
from jaccard_eval.data.class_rules import AUTO
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.image_alignment import AlignOptions
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import InputSummary
from jaccard_eval.data.signature import Words, digest_rows, quoted, row_hashes, signature
from jaccard_eval.errors import DataError, Finding, FindingLog, UsageError, shown
from jaccard_eval.evaluation.inputs import Input, load_both
from jaccard_eval.features.audit.class_maps import best_class_map
from jaccard_eval.features.audit.duplicates import repeats_of, without_rows
from jaccard_eval.formats import ReadOptions

if TYPE_CHECKING:
    from jaccard_eval.evaluation.inputs import Source


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
