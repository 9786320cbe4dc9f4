"""Comparison of measured predictions with a baseline: differences of metrics, and what changed box by box."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.intervals import PairedDelta
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError, shown
from jaccard_eval.features.compare.changes import Judged, box_changes
from jaccard_eval.features.compare.result import Contender, Delta, SliceDeltas, Versus
from jaccard_eval.features.gates.rules import Slice
from jaccard_eval.metrics.counts import best_f1_points
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.metrics.slices import measure_slices

BEST_F1 = "best-f1"


def box_threshold(metrics: DetectionMetrics, iou: float | None) -> int:
    """Return the index of the IoU threshold for boxes: the one that is asked for, else 0.5, else the lowest.

    Raises
    ------
    UsageError
        When it is not a threshold of the protocol.
    """
    if iou is None:
        return metrics.protocol.judged_threshold
    try:
        return metrics.axes.single_threshold(MetricRef(name="recall", iou=iou))
    except UsageError as error:
        raise UsageError(f"box_iou: {str(error).partition(': ')[2]}") from None


def contender(result: EvaluationResult, metrics: DetectionMetrics, threshold: int, score: float | str) -> Contender:
    """Name predictions, with the score from which their detections are compared box by box."""
    least = best_f1_points(metrics.curves, threshold)[None] if score == BEST_F1 else float(score)
    return Contender(path=result.pred.path, fingerprint=result.pred.fingerprint, score=least)


def versus(
    baseline: EvaluationResult,
    other: EvaluationResult,
    names: tuple[Contender, Contender],
    *,
    threshold: int,
    moved_iou: float,
    slices: Sequence[Slice] = (),
) -> Versus:
    """Compare two results on one ground truth.

    Parameters
    ----------
    baseline, other : EvaluationResult
    names : tuple of Contender
        Their names, and the score from which detections count.
    threshold : int
        Index of the IoU threshold for boxes.
    moved_iou : float
        Least change of IoU that is a move.
    slices : sequence of Slice
        Parts of the images to compare as well.

    Raises
    ------
    UsageError
        When a slice has no image.
    """
    ours, theirs = detection_metrics(baseline), detection_metrics(other)
    changes = box_changes(
        Judged(ours.table, names[0].score),
        Judged(theirs.table, names[1].score),
        threshold=threshold,
        image_names=ours.image_names,
        class_names=ours.class_names,
        moved_iou=moved_iou,
    )
    return Versus(
        contender=names[1],
        deltas=tuple(_deltas(baseline, other)),
        changes=changes,
        slices=tuple(_slice_deltas(ours, theirs, slices)),
    )


def with_intervals(one: Versus, paired: Iterable[PairedDelta]) -> Versus:
    """Return a comparison whose metrics, of all classes and of each, have the intervals of a paired bootstrap."""
    found = {delta.ref: delta for delta in paired}
    return replace(one, deltas=tuple(_with_interval(delta, found.get(_ref(delta))) for delta in one.deltas))


def slice_with_intervals(part: SliceDeltas, paired: Iterable[PairedDelta]) -> SliceDeltas:
    """Return a slice whose metrics have the intervals of a paired bootstrap over its images."""
    found = {delta.ref: delta for delta in paired}
    return replace(part, deltas=tuple(_with_interval(delta, found.get(delta.metric)) for delta in part.deltas))


def _ref(delta: Delta) -> str:
    return str(replace(MetricRef.parse(delta.metric), class_name=delta.class_name))


def _with_interval(delta: Delta, found: PairedDelta | None) -> Delta:
    if found is None:
        return delta
    return replace(delta, interval=found.interval, probability=found.probability, detectable=found.detectable)


def detection_metrics(result: EvaluationResult) -> DetectionMetrics:
    """Return the metrics of a result with their match table.

    Raises
    ------
    UsageError
        When the result has none, because it was put together by hand.
    """
    if not isinstance(result.measured, DetectionMetrics):
        raise UsageError(f"the result of {shown(result.pred.path)} has no match table to compare")
    return result.measured


def _deltas(baseline: EvaluationResult, other: EvaluationResult) -> Iterator[Delta]:
    yield from _pairs(None, baseline.metrics, other.metrics)
    for ours, theirs in zip(baseline.per_class, other.per_class, strict=True):
        yield from _pairs(ours.name, ours.values, theirs.values)


def _slice_deltas(
    baseline: DetectionMetrics, other: DetectionMetrics, slices: Sequence[Slice]
) -> Iterator[SliceDeltas]:
    sides = (measure_slices(one, slices, one.protocol) for one in (baseline, other))
    for ours, theirs in zip(*sides, strict=True):
        deltas = tuple(_pairs(None, ours.values, theirs.values))
        yield SliceDeltas(name=ours.name, digest=ours.digest, images=ours.images, deltas=deltas)


def _pairs(name: str | None, ours: Mapping[str, MetricValue], theirs: Mapping[str, MetricValue]) -> Iterator[Delta]:
    for metric, one in ours.items():
        value = theirs[metric].value if metric in theirs else math.nan
        yield Delta(metric=metric, class_name=name, baseline=one.value, value=value, n=one.n)
