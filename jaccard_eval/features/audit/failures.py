"""Why do two inputs not correspond? An error of alignment is given the evidence that the boxes hold, and its repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaccard_eval.data.alignment import place
from jaccard_eval.data.class_alignment import match_classes
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.image_alignment import AlignOptions
from jaccard_eval.errors import Finding, FindingLog, Where
from jaccard_eval.features.audit.class_maps import Confusion, judge, option_text
from jaccard_eval.features.audit.image_failures import explain_images
from jaccard_eval.features.audit.sample import take_sample

FEWEST_PAIRS = 3  # objects in one place from which a map is suggested where nothing else is known


def explain_failure(
    findings: Sequence[Finding], gt: Dataset, pred: Dataset, options: AlignOptions
) -> tuple[Finding, ...]:
    """Return the findings of a failed alignment, those that the boxes can explain with evidence and the flag to add.

    Parameters
    ----------
    findings : sequence of Finding
        Of the error.
    gt, pred : Dataset
    options : AlignOptions
        What the alignment was asked for.
    """
    return tuple(_EXPLAINERS.get(one.code, _leave)(one, gt, pred, options) for one in findings)


def _leave(finding: Finding, gt: Dataset, pred: Dataset, options: AlignOptions) -> Finding:
    return finding


def _explain_classes(finding: Finding, gt: Dataset, pred: Dataset, options: AlignOptions) -> Finding:
    """Add the maps of classes that objects in one place speak for."""
    placed = place(gt, pred, options, FindingLog())
    confusion = Confusion.of(take_sample(placed.gt, placed.pred, len(placed.images.table)))
    given = match_classes(gt.labels, pred.labels, options.class_map, Where(pred.path), FindingLog()).rows
    verdict = judge(gt.labels, pred.labels, confusion, given)
    if confusion.pairs < FEWEST_PAIRS or not verdict.candidates:
        return finding
    best = verdict.candidates[0]
    if verdict.better is None and best.agreement < 1:
        return replace(finding, table=verdict.table())
    fix = f"Rerun with --class-map {option_text((verdict.better or best).class_map)}."
    return replace(finding, table=verdict.table(), fix=fix)


_EXPLAINERS = {"class-none": _explain_classes, "image-unknown": explain_images, "image-ambiguous": explain_images}
