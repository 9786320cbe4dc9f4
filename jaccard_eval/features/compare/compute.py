"""Predictions compared with a baseline: differences of metrics, and what changed box by box."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from typing import Protocol as TypingProtocol

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import SEGMENT_METRICS, MetricRef
from jaccard_eval.data.result import EvaluationResult, Resamples
from jaccard_eval.data.verdict import PairedDelta
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.compute import REPEATS
from jaccard_eval.features.compare.result import (
    BoxState,
    Change,
    ChangeKind,
    Contender,
    Delta,
    SliceDeltas,
    Verdict,
    Versus,
)
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.candidates import candidate_pairs
from jaccard_eval.matching.greedy import least_overlaps
from jaccard_eval.matching.matchtable import NO_PAIR, MatchTable
from jaccard_eval.matching.order import Blocks, IntArray, stable_order, starts_of_runs
from jaccard_eval.matching.ranking import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.metrics.slices import Divisible, measure_slices, slice_refs
from jaccard_eval.options import Slice
from jaccard_eval.progress import staged
from jaccard_eval.text import quoted_value

MOVED_IOU = 0.05  # least change of IoU that is a move: one step of COCO's thresholds
NOISE = ("interval", "probability", "detectable")  # what a difference takes over from a paired bootstrap
NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A match table with the boxes that it is of, and the score that its detections need to be looked at."""

    table: MatchTable
    gt: BoxTable
    pred: BoxTable
    score: float

    @classmethod
    def of(cls, result: EvaluationResult, score: float) -> Judged:
        """Take what there is of a result."""
        if result.boxes is None:
            raise UsageError(f"the result of {quoted_value(result.pred.path)} has no boxes to compare")
        return cls(detection_metrics(result).table, *result.boxes, score)


@dataclass(frozen=True, slots=True, eq=False)
class BoxStates:
    """What one set of predictions makes of each ground-truth box; shape (m,) each."""

    # Row in the match table of the detection at the box: that which matches it, else one of another class; -1 for none
    detection: IntArray
    label: IntArray  # class of that detection, -1 for none
    found: BoolArray  # whether that detection is of the box's own class
    iou: FloatArray  # of that detection; NaN without one
    duplicates: IntArray  # further detections of the own class on a box that is found

    @classmethod
    def of(cls, judged: Judged, threshold: int) -> BoxStates:
        """Read the states off a match table, at one IoU threshold, for detections with at least the score."""
        table = judged.table
        n_gt = len(table.gt_image)
        # Matching goes by descending score, so that ignoring the detections below a score changes no match above it.
        kept = table.score >= judged.score
        choice = table.chosen_pairs(ALL_SIZES, threshold)
        matching = choice != NO_PAIR
        taken = np.flatnonzero(matching & kept[table.candidate])
        truth = table.pair_gt[choice[taken]]
        detection, iou = np.full(n_gt, NONE, dtype=np.int64), np.full(n_gt, np.nan)
        detection[truth], iou[truth] = table.candidate[taken], table.pair_overlap[choice[taken]]
        found = detection != NONE
        # Only detections that match nothing can be duplicates or of a mistaken class: the others are right elsewhere.
        free = kept.copy()
        free[table.candidate[matching]] = False
        # Capped as where boxes are matched, or an exact copy of a box may miss an IoU of 1 by rounding.
        level = float(least_overlaps(table.protocol)[threshold])
        reaches = (table.pair_overlap >= level) & free[table.pair_detection] & found[table.pair_gt]
        pairs = np.flatnonzero(reaches)
        # A duplicate of two boxes counts once, at the one that it overlaps most.
        best = _best(table.pair_detection[pairs], table.pair_overlap[pairs])
        duplicates = np.bincount(table.pair_gt[pairs[best]], minlength=n_gt)
        rows, others, overlap = _of_other_class(judged, level, np.flatnonzero(free), np.flatnonzero(~found))
        detection[rows], iou[rows] = others, overlap
        label = np.append(table.label, NONE)[detection]  # row -1 is the entry that was appended
        return cls(detection, label, found, iou, duplicates)

    def describe(self, row: int, table: MatchTable, class_names: Sequence[str]) -> BoxState:
        """Return the state of one box in names."""
        at = int(self.detection[row])
        if at == NONE:
            return BoxState()
        return BoxState(
            predicted=class_names[self.label[row]],
            score=float(table.score[at]),
            iou=float(self.iou[row]),
            duplicates=int(self.duplicates[row]),
        )


def box_changes(
    baseline: Judged,
    other: Judged,
    *,
    threshold: int,
    image_names: Sequence[str],
    class_names: Sequence[str],
    moved_iou: float = MOVED_IOU,
) -> tuple[Change, ...]:
    """Return every ground-truth box that counts and is treated differently, by image, kind and row."""
    truth, table = baseline.table, other.table
    a, b = BoxStates.of(baseline, threshold), BoxStates.of(other, threshold)
    both = a.found & b.found
    # Kinds exclude each other, except the last: a box that both find can be both duplicated and moved.
    kinds = (
        (ChangeKind.LOST, a.found & (b.label == NONE)),
        (ChangeKind.FOUND, b.found & (a.label == NONE)),
        (ChangeKind.RECLASSIFIED, (a.label != b.label) & (a.label != NONE) & (b.label != NONE)),
        (ChangeKind.DUPLICATED, both & (a.duplicates == 0) & (b.duplicates > 0)),
        (ChangeKind.DEDUPLICATED, both & (a.duplicates > 0) & (b.duplicates == 0)),
        (ChangeKind.MOVED, both & (np.abs(b.iou - a.iou) >= moved_iou)),
    )
    counts = ~truth.gt_ignored[ALL_SIZES]
    changes = []
    for rank, (kind, chosen) in enumerate(kinds):
        for row in np.flatnonzero(chosen & counts).tolist():
            x, y, width, height = baseline.gt.xywh[row].tolist()
            change = Change(
                kind=kind,
                image=image_names[truth.gt_image[row]],
                class_name=class_names[truth.gt_label[row]],
                row=int(truth.gt_source[row]),
                xywh=(x, y, width, height),
                before=a.describe(row, truth, class_names),
                after=b.describe(row, table, class_names),
            )
            changes.append((change.image, rank, change.row, change))
    # By name, not by row: the order of images in a file changes nothing.
    return tuple(change[-1] for change in sorted(changes, key=lambda change: change[:-1]))


def _of_other_class(
    judged: Judged, level: float, dets: IntArray, truth: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Pair missed boxes with the free detection of another class that overlaps them most: boxes, detections, IoU."""
    table = judged.table
    if not len(dets) or not len(truth):
        return truth[:0], dets[:0], np.zeros(0)
    # The match table has pairs of one class only. These are made here, for what is missed and what is free.
    truth = truth[stable_order(table.gt_image[truth])]
    pairs = candidate_pairs(
        judged.pred.take(table.row[dets]),
        judged.gt.take(truth),
        Blocks.of(table.gt_image[truth], table.image[dets]),
        table.protocol,
        threshold=level,
    )
    other = table.label[dets[pairs.det]] != table.gt_label[truth[pairs.gt]]
    det, gt, overlap = dets[pairs.det[other]], truth[pairs.gt[other]], pairs.overlap[other]
    best = _best(gt, overlap)
    return gt[best], det[best], overlap[best]


def _best(key: IntArray, overlap: FloatArray) -> IntArray:
    """Return the row with the largest overlap of each key; of equal ones the first."""
    order = np.lexsort((np.arange(len(key)), -overlap, key))
    return order[starts_of_runs(key[order])]


def box_threshold(metrics: DetectionMetrics, iou: float | None) -> int:
    """Return the index of the IoU threshold for boxes: the one that is asked for, else 0.5, else the lowest."""
    if iou is None:
        return metrics.protocol.judged_threshold
    try:
        return metrics.axes.single_threshold(MetricRef(name="recall", iou=iou))
    except UsageError as error:
        raise UsageError(f"box_iou: {str(error).partition(': ')[2]}") from None


def contender(result: EvaluationResult, threshold: int, score: float | str, name: str) -> Contender:
    """Name predictions, with the score from which their detections are compared box by box."""
    aimed = isinstance(score, str)
    least = detection_metrics(result).curves.best_score(threshold, None, str(score)) if aimed else float(score)
    return Contender(path=result.pred.path, fingerprint=result.pred.fingerprint, score=least, name=name)


@staged("comparing")
def versus(
    baseline: EvaluationResult,
    other: EvaluationResult,
    names: tuple[Contender, Contender],
    *,
    threshold: int,
    moved_iou: float,
    slices: Sequence[Slice] = (),
) -> Versus:
    """Compare two results on one ground truth; the names bring the scores from which detections count."""
    base_metrics, other_metrics = detection_metrics(baseline), detection_metrics(other)
    return Versus(
        contender=names[1],
        deltas=metric_deltas(baseline, other),
        changes=box_changes(
            Judged.of(baseline, names[0].score),
            Judged.of(other, names[1].score),
            threshold=threshold,
            image_names=base_metrics.image_names,
            class_names=base_metrics.class_names,
            moved_iou=moved_iou,
        ),
        slices=slice_deltas(base_metrics, other_metrics, slices, slice_refs(base_metrics.protocol)),
    )


class Scored(TypingProtocol):
    """A result with metrics over all classes and of each class."""

    @property
    def metrics(self) -> Mapping[str, MetricValue]:
        """Those over all classes."""

    @property
    def per_class(self) -> Sequence[Any]:
        """Rows of the classes, with `name` and `values`."""


def metric_deltas(baseline: Scored, other: Scored) -> tuple[Delta, ...]:
    """Return the differences of two results, over all classes and then of each class."""
    deltas = _deltas(None, baseline.metrics, other.metrics)
    for base_row, other_row in zip(baseline.per_class, other.per_class, strict=True):
        deltas += _deltas(base_row.name, base_row.values, other_row.values)
    return deltas


def slice_deltas(
    baseline: Divisible, other: Divisible, slices: Sequence[Slice], refs: Sequence[MetricRef]
) -> tuple[SliceDeltas, ...]:
    """Return the differences of some metrics on each slice."""
    parts = (measure_slices(metrics, slices, refs) for metrics in (baseline, other))
    return tuple(
        SliceDeltas(
            name=base_part.name,
            digest=base_part.digest,
            images=base_part.images,
            deltas=_deltas(None, base_part.values, other_part.values),
        )
        for base_part, other_part in zip(*parts, strict=True)
    )


def _deltas(
    name: str | None, base_values: Mapping[str, MetricValue], other_values: Mapping[str, MetricValue]
) -> tuple[Delta, ...]:
    # Metrics are those of the baseline: what it was not asked has nothing to differ from.
    return tuple(
        Delta(
            metric=metric,
            class_name=name,
            baseline=base.value,
            value=other_values[metric].value if metric in other_values else math.nan,
            n=base.n,
        )
        for metric, base in base_values.items()
    )


def with_intervals(deltas: Iterable[Delta], paired: Iterable[PairedDelta]) -> tuple[Delta, ...]:
    """Return differences with the intervals of a paired bootstrap, of those metrics that it has."""
    found = {drawn.ref: drawn for drawn in paired}
    weighed = []
    for delta in deltas:
        # Of segments, which are measured otherwise, names are whole.
        ref = MetricRef(name=delta.metric) if delta.metric in SEGMENT_METRICS else MetricRef.parse(delta.metric)
        drawn = found.get(str(replace(ref, class_name=delta.class_name)))
        noise = {} if drawn is None else {name: getattr(drawn, name) for name in NOISE}
        weighed.append(replace(delta, **noise))
    return tuple(weighed)


def verdict(delta: Delta, drawn: Resamples) -> Verdict | None:
    """Judge a difference by its interval and p-value; both have to exclude chance. None where they cannot."""
    chance = 1 - drawn.settings.confidence_level
    # With 20 draws with repeats p is at least 2 / 21: nothing would ever be significant at 95 %.
    least = 2 / (drawn.settings.n_resamples + 1) if drawn.method == REPEATS else 0.0
    if delta.interval is None or math.isnan(delta.delta) or least > chance:
        return None
    # Interval and p-value count the same resamples, but round differently at the edge: the stricter one decides. And a
    # percentile interval need not hold the difference itself.
    if delta.p_value <= chance:
        if delta.delta > 0 and delta.interval[0] > 0:
            return Verdict.BETTER
        if delta.delta < 0 and delta.interval[1] < 0:
            return Verdict.WORSE
    return Verdict.NO_DIFFERENT
