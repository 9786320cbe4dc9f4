"""Explanations: the number, the points of its curve, the boxes that cost most, and what other rules make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval import __version__
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import AreaRange, Protocol, ProtocolOptions, get_protocol
from jaccard_eval.data.signature import quoted
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import Sides, bring_together, detection_metrics
from jaccard_eval.features.errors.compute import find_errors
from jaccard_eval.features.explain.compute import (
    AVERAGE_RECALL,
    COUNTED,
    Costs,
    costliest,
    costliest_counted,
    protocol_steps,
    repair_predictions,
)
from jaccard_eval.features.explain.result import CurvePoint, ExplanationResult, Fix, Step
from jaccard_eval.matching.matchtable import detection_rows
from jaccard_eval.metrics.counts import best_f1_points
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import ReadOptions, SideOptions
from jaccard_eval.text import shown

if TYPE_CHECKING:
    from jaccard_eval.evaluation import Source


N_BOXES = 12
SPARE = 3  # fixes that are looked at for each that is named, where some may turn out to give nothing
N_POINTS = 11  # recall 0, .1, ..., 1
OF_A_SCORE = tuple(name for name in COUNTED if name != AVERAGE_RECALL)
POINT = ("precision", "recall", "F1", "TP", "FP", "FN")


def explain(
    gt: Source,
    pred: Source,
    metric: str = "AP",
    *,
    protocol: str | Protocol = "coco",
    iou: Sequence[float] | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    against: str | Protocol | None = None,
    boxes: int = N_BOXES,
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
) -> ExplanationResult:
    """Explain a metric: from the number to what it is made of, to the boxes that cost most.

    Boxes are judged at the metric's IoU threshold; of a mean over thresholds at .5, or else the lowest. What fixing
    them would give is measured: the changed predictions are matched again.

    Parameters
    ----------
    gt, pred : path, Dataset or BoxTable
    metric : str
        AP, of any IoU threshold and class: ``AP50[class=dog]``; AR, of any cap; or precision, recall or F1 at a score:
        ``F1[iou=0.5,score=0.4]``. The score "best-f1" is that of the predictions as they are.
    protocol : str or Protocol
    iou, max_dets, areas, class_agnostic
        As in `evaluate`; the first area range is the one that is explained.
    against : str or Protocol, optional
        Another protocol: the metric is measured again, one rule changed after another. A threshold or cap that
        the metric names stays.
    boxes : int
        How many boxes are named at most.
    classes, exclude_classes, score_min, nms, drop_duplicates, class_map, match_images, extra_images
        What is chosen from both sides, and how they are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options
        How they are read, as in `evaluate`.

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
    rules = ProtocolOptions(
        protocol=protocol, iou=iou, max_dets=max_dets, areas=areas, class_agnostic=class_agnostic
    ).rules()
    options = SideOptions(
        classes=classes,
        exclude_classes=exclude_classes,
        score_min=score_min,
        nms=nms,
        drop_duplicates=drop_duplicates,
        class_map=class_map,
        match_images=match_images,
        extra_images=extra_images,
        gt_format=gt_format,
        pred_format=pred_format,
        gt_options=gt_options,
        pred_options=pred_options,
    )
    return explain_inputs(gt, pred, metric, rules, options, against=against, boxes=boxes)


def explain_inputs(
    gt: Source,
    pred: Source,
    metric: str,
    rules: Protocol,
    options: SideOptions,
    *,
    against: str | Protocol | None = None,
    boxes: int = N_BOXES,
) -> ExplanationResult:
    """Explain a metric by rules and options that are put together already; see `explain`."""
    ref = MetricRef.parse(metric)
    _require_explainable(ref, boxes)
    goal = get_protocol(against) if isinstance(against, str) else against
    if ref.iou is None and ref.name in OF_A_SCORE:
        ref = replace(ref, iou=rules.iou_thresholds[rules.judged_threshold])
    if goal is not None:
        rules, goal = _between(rules, goal, ref)
    together = bring_together(gt, pred, options)
    metrics = detection_metrics(together, rules)
    ref = _with_score(metrics, ref)
    value = metrics.value(ref)
    threshold = rules.judged_threshold if ref.iou is None else metrics.axes.single_threshold(ref)
    fixes = _fixes(together, metrics, threshold, ref, boxes)
    if _is_full(metrics):
        fixes = _measured_alone(together, rules, fixes, replace(ref, iou=rules.iou_thresholds[threshold]))
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
        parts=_parts(metrics, ref),
        judged_iou=rules.iou_thresholds[threshold],
        curve=_curve(metrics, ref),
        fixes=fixes,
        fixed=_fixed_value(together, rules, fixes, ref),
        against=None if goal is None else goal.name,
        steps=() if goal is None else _steps(together, rules, goal, ref, value.value),
        findings=together.findings,
    )


def _require_explainable(ref: MetricRef, boxes: int) -> None:
    if ref.name not in ("AP", *COUNTED) or ref.area is not None or (ref.name == "AP" and ref.max_dets is not None):
        raise UsageError(
            f"metric {shown(str(ref))} cannot be explained; known are AP, AP50 and the like, AR, AR100 and the like,"
            " precision, recall and F1, of all sizes, and each with [class=NAME]"
        )
    if boxes < 1:
        raise UsageError(f"boxes must be at least 1, got {boxes}")


def _between(start: Protocol, end: Protocol, ref: MetricRef) -> tuple[Protocol, Protocol]:
    """Return two protocols that do not differ in what a metric names."""
    if ref.iou is not None:
        start, end = (one.with_options(iou_thresholds=(ref.iou,)) for one in (start, end))
    if ref.max_dets is not None:
        end = end.with_options(max_dets=start.max_dets)
    return start, end


def _with_score(metrics: DetectionMetrics, ref: MetricRef) -> MetricRef:
    """Name the score of the best F1, which fixes would move; 0 where there is none."""
    if not isinstance(ref.score, str):
        return ref
    best = best_f1_points(metrics.curves, metrics.axes.single_threshold(ref))[metrics.axes.label(ref)]
    return replace(ref, score=0.0 if np.isnan(best) else float(best))


def _fixes(sides: Sides, metrics: DetectionMetrics, threshold: int, ref: MetricRef, boxes: int) -> tuple[Fix, ...]:
    label = metrics.axes.label(ref)
    if ref.name == "AP":
        return costliest(_costs(sides, metrics, threshold), boxes, label)
    rules = metrics.protocol
    caps = rules.max_dets[-1:] if ref.max_dets is None else (ref.max_dets,)
    rules = rules.with_options(
        iou_thresholds=rules.iou_thresholds[threshold:][:1], areas=rules.areas[:1], max_dets=caps
    )
    pred = sides.aligned.pred
    score = np.full(len(pred), np.inf) if pred.score is None else pred.score
    kept = np.flatnonzero(score >= _least(ref))  # those below the score change no match above it
    above = _with_pred(sides, pred.take(kept))
    costs = _costs(above, detection_metrics(above, rules), 0)
    costs = replace(costs, pred=pred, rows=kept[costs.rows])
    named = costliest_counted(costs, SPARE * boxes, ref.name, label)
    return _measured(sides, rules, named, ref, boxes)


def _measured(sides: Sides, rules: Protocol, fixes: tuple[Fix, ...], ref: MetricRef, n: int) -> tuple[Fix, ...]:
    """Measure fixes alone until `n` give something: under a cap, what is added may take another's place."""
    before = detection_metrics(sides, rules).value(ref).value
    gains = (replace(one, gain=_fixed_value(sides, rules, (one,), ref) - before) for one in fixes)
    worth = islice((one for one in gains if one.gain > 0), n)
    return tuple(sorted(worth, key=lambda one: -one.gain))


def _costs(sides: Sides, metrics: DetectionMetrics, threshold: int) -> Costs:
    aligned, n_images = sides.aligned, len(metrics.image_names)
    return Costs(
        errors=find_errors(metrics.curves, threshold, aligned.gt, aligned.pred, n_images=n_images),
        rows=detection_rows(aligned.pred, metrics.protocol, n_images),
        gt=aligned.gt,
        pred=aligned.pred,
        class_names=aligned.class_names,
        image_names=aligned.image_names,
    )


def _least(ref: MetricRef) -> float:
    """Return the score that detections need to count."""
    return float(ref.score) if isinstance(ref.score, float | int) else -np.inf


def _is_full(metrics: DetectionMetrics) -> bool:
    """Whether an image has as many detections of a class as the cap lets in: a fixed box may take another's place."""
    cap = metrics.curves.caps[-1]
    return cap is not None and int(metrics.table.rank.max(initial=-1)) + 1 >= cap


def _measured_alone(sides: Sides, protocol: Protocol, fixes: tuple[Fix, ...], ref: MetricRef) -> tuple[Fix, ...]:
    """Measure what each fix alone gives, by matching again; the largest gain first."""
    before = _fixed_value(sides, protocol, (), ref)
    measured = (replace(one, gain=_fixed_value(sides, protocol, (one,), ref) - before) for one in fixes)
    return tuple(sorted(measured, key=lambda one: -one.gain))


def _fixed_value(sides: Sides, protocol: Protocol, fixes: tuple[Fix, ...], ref: MetricRef) -> float:
    aligned = sides.aligned
    pred = repair_predictions(aligned.pred, aligned.gt, fixes, aligned.class_names, least=max(_least(ref), 0.0))
    return detection_metrics(_with_pred(sides, pred), protocol).value(ref).value


def _with_pred(sides: Sides, pred: BoxTable) -> Sides:
    return replace(sides, aligned=replace(sides.aligned, pred=pred))


def _parts(metrics: DetectionMetrics, ref: MetricRef) -> tuple[MetricValue, ...]:
    """Return what a metric is the mean of, or what it is counted from."""
    if ref.name in OF_A_SCORE:
        names = [name for name in POINT if name != ref.name]
        return tuple(metrics.value(replace(ref, name=name)) for name in names)
    ious = metrics.protocol.iou_thresholds
    if ref.iou is not None or len(ious) == 1:
        return ()
    return tuple(metrics.value(replace(ref, iou=iou)) for iou in ious)


def _curve(metrics: DetectionMetrics, ref: MetricRef) -> tuple[CurvePoint, ...]:
    """Return points of an AP's curve, of all sizes and detections; the mean over the classes and thresholds in it."""
    if ref.name != "AP":
        return ()
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
