"""Explanations: the number, the points of its curve, the boxes that cost most, and what other rules make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from jaccard_eval import __version__
from jaccard_eval.analysis.costs import Costs, costliest, repair_predictions
from jaccard_eval.analysis.errortypes import find_errors
from jaccard_eval.analysis.protocolsteps import protocol_steps
from jaccard_eval.api.measuring import detection_metrics
from jaccard_eval.api.sides import SideOptions, Sides, bring_together
from jaccard_eval.data.explanation import CurvePoint, ExplanationResult, Fix, Step
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import Protocol, get_protocol
from jaccard_eval.data.signature import quoted
from jaccard_eval.errors import UsageError, shown
from jaccard_eval.matching.anyclass import detection_rows
from jaccard_eval.metrics.detection import DetectionMetrics

if TYPE_CHECKING:
    from jaccard_eval.api.inputs import Source

__all__ = ["explain"]

N_BOXES = 12
N_POINTS = 11  # recall 0, .1, ..., 1


def explain(
    gt: Source,
    pred: Source,
    metric: str = "AP",
    *,
    protocol: str | Protocol = "coco",
    against: str | Protocol | None = None,
    boxes: int = N_BOXES,
    **sides: Unpack[SideOptions],
) -> ExplanationResult:
    """Explain an average precision: from the number to the points of its curve, to the boxes that cost most.

    Boxes are judged at the metric's IoU threshold; of a mean over thresholds at .5, or else the lowest. What fixing
    them would give is measured: the changed predictions are matched again.

    Parameters
    ----------
    gt, pred : path, Dataset or BoxTable
    metric : str
        AP, of any IoU threshold and class: ``AP50[class=dog]``.
    protocol : str or Protocol
    against : str or Protocol, optional
        Another protocol: the metric is measured again, one rule changed after another. A threshold that the metric
        names stays.
    boxes : int
        How many boxes are named at most.
    **sides
        How both sides are read, chosen from and brought together, as in `evaluate`.

    Returns
    -------
    ExplanationResult

    Raises
    ------
    DataError
        When an input cannot be used, or the two do not belong together.
    UsageError
        When an option or the metric names what does not exist, or the metric cannot be explained.
    """
    ref = MetricRef.parse(metric)
    _require_explainable(ref, boxes)
    rules = get_protocol(protocol) if isinstance(protocol, str) else protocol
    goal = get_protocol(against) if isinstance(against, str) else against
    if goal is not None and ref.iou is not None:
        rules, goal = (one.with_options(iou_thresholds=(ref.iou,)) for one in (rules, goal))
    together = bring_together(gt, pred, **sides)
    metrics = detection_metrics(together, rules)
    value = metrics.value(ref)
    threshold = rules.judged_threshold if ref.iou is None else metrics.axes.single_threshold(ref)
    fixes = _fixes(together, metrics, threshold, ref, boxes)
    summaries = together.summaries()
    choices = ("kind=explanation", f"metric={quoted(str(ref))}", f"boxes={boxes}")
    other = () if goal is None else (f"against={quoted(goal.name)}",)
    return ExplanationResult(
        version=__version__,
        signature=together.sign(rules, *choices, *other, version=__version__),
        protocol=rules.name,
        gt=summaries[0],
        pred=summaries[1],
        metric=value,
        judged_iou=rules.iou_thresholds[threshold],
        curve=_curve(metrics, ref),
        fixes=fixes,
        fixed=_fixed_value(together, rules, fixes, ref),
        against=None if goal is None else goal.name,
        steps=() if goal is None else _steps(together, rules, goal, ref, value.value),
        findings=together.findings,
    )


def _require_explainable(ref: MetricRef, boxes: int) -> None:
    if ref.name != "AP" or ref.area is not None or ref.max_dets is not None:
        raise UsageError(
            f"metric {shown(str(ref))} cannot be explained; known are AP, AP50 and the like, and AP50[class=NAME]"
        )
    if boxes < 1:
        raise UsageError(f"boxes must be at least 1, got {boxes}")


def _fixes(sides: Sides, metrics: DetectionMetrics, threshold: int, ref: MetricRef, boxes: int) -> tuple[Fix, ...]:
    aligned, n_images = sides.aligned, len(metrics.image_names)
    costs = Costs(
        errors=find_errors(metrics.curves, threshold, aligned.gt, aligned.pred, n_images=n_images),
        rows=detection_rows(aligned.pred, metrics.protocol, n_images),
        gt=aligned.gt,
        pred=aligned.pred,
        class_names=aligned.class_names,
        image_names=aligned.image_names,
    )
    return costliest(costs, boxes, metrics.axes.label(ref))


def _fixed_value(sides: Sides, protocol: Protocol, fixes: tuple[Fix, ...], ref: MetricRef) -> float:
    aligned = sides.aligned
    pred = repair_predictions(aligned.pred, aligned.gt, fixes, aligned.class_names)
    return detection_metrics(replace(sides, aligned=replace(aligned, pred=pred)), protocol).value(ref).value


def _curve(metrics: DetectionMetrics, ref: MetricRef) -> tuple[CurvePoint, ...]:
    """Return points of the curve, of all sizes and detections; the mean over the classes and thresholds in it."""
    curves, label = metrics.curves, metrics.axes.label(ref)
    chosen = metrics.axes.thresholds(ref)
    last = len(curves.caps) - 1
    of_class = slice(None) if label is None else slice(label, label + 1)
    precision = curves.interpolated_precision(0, last)[chosen][..., of_class]  # (T, R, K)
    scores = curves.recall_scores(0, last)[chosen][..., of_class]
    defined = precision[:, :, ~np.isnan(precision).any(axis=(0, 1))]
    if not defined.size:
        return ()
    grid = curves.recall_grid
    single = scores.shape[0] == 1 and scores.shape[2] == 1
    places = np.unique(np.round(np.linspace(0, len(grid) - 1, N_POINTS)).astype(np.int64))
    return tuple(
        CurvePoint(
            recall=float(grid[i]),
            precision=float(defined[:, i].mean()),
            score=float(scores[0, i, 0]) if single and defined[0, i, 0] > 0 else float("nan"),
        )
        for i in places
    )


def _steps(sides: Sides, start: Protocol, end: Protocol, ref: MetricRef, value: float) -> tuple[Step, ...]:
    steps = []
    for rule, change, protocol in protocol_steps(start, end):
        after = detection_metrics(sides, protocol).value(ref).value
        steps.append(Step(rule=rule, change=change, value=after, delta=after - value))
        value = after
    return tuple(steps)
