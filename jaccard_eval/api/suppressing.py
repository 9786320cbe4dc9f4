"""Suppression of a side that was read: the side that is left, and the counts of its classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.features.nms.compute import SOFT_METHODS, Suppression, suppress
from jaccard_eval.features.nms.result import ClassCounts, SuppressionResult


def suppress_side(
    pred: Dataset,
    rule: Suppression,
    *,
    class_agnostic: bool = False,
    score_min: float | None = None,
    output: str = "",
    version: str,
) -> tuple[Dataset, SuppressionResult]:
    """Suppress predictions, and count what happened to each class.

    Parameters
    ----------
    pred : Dataset
    rule : Suppression
    class_agnostic : bool
        Whether boxes of different classes are rivals.
    score_min : float, optional
        Leave out boxes with less first, and decayed ones afterwards.
    output : str
        Where the caller writes what is left.
    version : str
        Of the tool.

    Returns
    -------
    left : Dataset
    result : SuppressionResult

    Raises
    ------
    UsageError
        When the predictions have no scores, or scores below 0 are to decay or to weigh.
    """
    boxes = pred.boxes
    scored = boxes
    if score_min is not None and boxes.score is not None:
        scored = boxes.take(boxes.score >= score_min)
        rule = replace(rule, score_min=score_min)
    left = suppress(scored, rule, class_agnostic=class_agnostic)
    n_classes = len(pred.labels)
    before, kept, after = (np.bincount(table.label, minlength=n_classes) for table in (boxes, scored, left))
    counts = zip(pred.labels.names, before.tolist(), after.tolist(), (before - kept).tolist(), strict=True)
    result = SuppressionResult(
        version=version,
        path=pred.path,
        output=output,
        format=pred.format,
        rule=describe_rule(rule, class_agnostic=class_agnostic, score_min=score_min),
        classes=tuple(ClassCounts(name=name, before=b, after=a, below=low) for name, b, a, low in counts),
    )
    return replace(pred, boxes=left), result


def describe_rule(rule: Suppression, *, class_agnostic: bool, score_min: float | None) -> dict[str, str | float | bool]:
    """Return what the outcome depends on, and nothing else."""
    description: dict[str, str | float | bool] = {"method": rule.method, "by": rule.by}
    if rule.method != "gaussian":
        description["iou"] = rule.iou
    else:
        description["sigma"] = rule.sigma
    if rule.method in SOFT_METHODS or score_min is not None:
        description["score_min"] = rule.score_min
    return description | {"class_agnostic": class_agnostic}
