"""Predictions beside a baseline: differences of metrics, and what changed box by box."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.intervals import PairedDelta
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.features.compare.result import BoxState, Change, ChangeKind, Contender, Delta, SliceDeltas, Versus
from jaccard_eval.matching.candidates import candidate_pairs
from jaccard_eval.matching.greedy import LARGEST_THRESHOLD, NO_PAIR
from jaccard_eval.matching.matchtable import MatchTable, detection_rows
from jaccard_eval.matching.order import Blocks, IntArray, stable_order, starts_of_runs
from jaccard_eval.matching.ranking import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.metrics.slices import measure_slices
from jaccard_eval.options import BEST_F1, Slice
from jaccard_eval.text import quoted_value

MOVED_IOU = 0.05  # least change of IoU that is a move: one step of COCO's thresholds
NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class BoxStates:
    """What one set of predictions makes of each ground-truth box."""

    # Shape (m,): row in the match table of the detection at the box: that which matches it, else one of another
    # class; -1 for none
    detection: IntArray
    found: BoolArray  # shape (m,): whether that detection is of the box's own class
    iou: FloatArray  # shape (m,): of that detection; NaN without one
    duplicates: IntArray  # shape (m,): further detections of the own class on a box that is found

    @classmethod
    def of(cls, judged: Judged, threshold: int) -> BoxStates:
        """Read the states off a match table, at one IoU threshold, for detections with at least the score.

        Matching goes by descending score, so leaving out the detections below a score changes no match above it.
        """
        table = judged.table
        kept = table.score >= judged.score
        detection, iou = _matches(table, threshold, kept)
        found = detection != NONE
        matched = _matched(table, threshold)
        duplicates = _duplicates(table, threshold, kept & ~matched, found)
        other, overlap = _of_other_class(judged, threshold, kept & ~matched, ~found)
        return cls(
            detection=np.where(found, detection, other),
            found=found,
            iou=np.where(found, iou, overlap),
            duplicates=duplicates,
        )

    def describe(self, row: int, table: MatchTable, class_names: Sequence[str]) -> BoxState:
        """Return the state of one box in names."""
        at = int(self.detection[row])
        if at == NONE:
            return BoxState()
        return BoxState(
            predicted=class_names[table.label[at]],
            score=float(table.score[at]),
            iou=float(self.iou[row]),
            duplicates=int(self.duplicates[row]),
        )


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
    base_states, other_states = BoxStates.of(baseline, threshold), BoxStates.of(other, threshold)
    counts = ~truth.gt_ignored[ALL_SIZES]
    labels = _labels(truth, base_states), _labels(table, other_states)
    changes = []
    for rank, (kind, chosen) in enumerate(_kinds(base_states, other_states, *labels, moved_iou)):
        for row in np.flatnonzero(chosen & counts).tolist():
            x, y, width, height = baseline.gt.xywh[row].tolist()
            change = Change(
                kind=kind,
                image=image_names[truth.gt_image[row]],
                class_name=class_names[truth.gt_label[row]],
                row=int(truth.gt_source[row]),
                xywh=(x, y, width, height),
                before=base_states.describe(row, truth, class_names),
                after=other_states.describe(row, table, class_names),
            )
            changes.append((change.image, rank, change.row, change))
    return tuple(change[-1] for change in sorted(changes, key=lambda change: change[:-1]))


def _labels(table: MatchTable, states: BoxStates) -> IntArray:
    """Class of the detection at each box, -1 for none; shape (m,)."""
    return np.append(table.label, NONE)[states.detection]


def _kinds(
    a: BoxStates, b: BoxStates, a_label: IntArray, b_label: IntArray, moved_iou: float
) -> Iterator[tuple[ChangeKind, BoolArray]]:
    """Mark the boxes of each kind, shape (m,)."""
    both = a.found & b.found
    other_class = (a_label != b_label) & (a_label != NONE) & (b_label != NONE)
    yield ChangeKind.LOST, a.found & (b_label == NONE)
    yield ChangeKind.FOUND, b.found & (a_label == NONE)
    yield ChangeKind.RECLASSIFIED, other_class
    yield ChangeKind.DUPLICATED, both & (a.duplicates == 0) & (b.duplicates > 0)
    yield ChangeKind.DEDUPLICATED, both & (a.duplicates > 0) & (b.duplicates == 0)
    yield ChangeKind.MOVED, both & (np.abs(b.iou - a.iou) >= moved_iou)


def _matches(table: MatchTable, threshold: int, kept: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return the detection that matches each ground-truth box, -1 for none, and its IoU; shape (m,) each."""
    detection = np.full(len(table.gt_image), NONE, dtype=np.int64)
    iou = np.full(len(table.gt_image), np.nan)
    choice = table.choice[ALL_SIZES, threshold]
    taken = np.flatnonzero((choice != NO_PAIR) & kept[table.candidate])
    truth = table.pair_gt[choice[taken]]
    detection[truth] = table.candidate[taken]
    iou[truth] = table.pair_overlap[choice[taken]]
    return detection, iou


def _matched(table: MatchTable, threshold: int) -> BoolArray:
    """Mark the detections that match anything, shape (n,)."""
    matched = np.zeros(len(table), dtype=np.bool_)
    matched[table.candidate] = table.choice[ALL_SIZES, threshold] != NO_PAIR
    return matched


def _duplicates(table: MatchTable, threshold: int, free: BoolArray, found: BoolArray) -> IntArray:
    """Count unmatched detections on each box that is found; each counts at the box that it overlaps most."""
    reaches = table.pair_overlap >= _level(table, threshold)
    pairs = np.flatnonzero(reaches & free[table.pair_detection] & found[table.pair_gt])
    best = _best(table.pair_detection[pairs], table.pair_overlap[pairs])
    return np.bincount(table.pair_gt[pairs[best]], minlength=len(found))


def _of_other_class(judged: Judged, threshold: int, free: BoolArray, missed: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return the unmatched detection of another class that overlaps each missed box most; -1 and NaN for none."""
    table = judged.table
    detection, iou = np.full(len(missed), NONE, dtype=np.int64), np.full(len(missed), np.nan)
    dets, truth = np.flatnonzero(free), np.flatnonzero(missed)
    truth = truth[stable_order(table.gt_image[truth])]
    if not len(dets) or not len(truth):
        return detection, iou
    n_images = int(max(judged.gt.image.max(initial=-1), judged.pred.image.max(initial=-1))) + 1
    pairs = candidate_pairs(
        judged.pred.take(detection_rows(judged.pred, table.protocol, n_images)[dets]),
        judged.gt.take(truth),
        Blocks.of(table.gt_image[truth], table.image[dets]),
        table.protocol,
        threshold=_level(table, threshold),
    )
    other = table.label[dets[pairs.det]] != table.gt_label[truth[pairs.gt]]
    det, gt, overlap = dets[pairs.det[other]], truth[pairs.gt[other]], pairs.overlap[other]
    best = _best(gt, overlap)
    detection[gt[best]], iou[gt[best]] = det[best], overlap[best]
    return detection, iou


def _best(key: IntArray, overlap: FloatArray) -> IntArray:
    """Return the row with the largest overlap of each key; of equal ones the first."""
    order = np.lexsort((np.arange(len(key)), -overlap, key))
    return order[starts_of_runs(key[order])]


def _level(table: MatchTable, threshold: int) -> float:
    return min(table.protocol.iou_thresholds[threshold], LARGEST_THRESHOLD)


def box_threshold(metrics: DetectionMetrics, iou: float | None) -> int:
    """Return the index of the IoU threshold for boxes: the one that is asked for, else 0.5, else the lowest."""
    if iou is None:
        return metrics.protocol.judged_threshold
    try:
        return metrics.axes.single_threshold(MetricRef(name="recall", iou=iou))
    except UsageError as error:
        raise UsageError(f"box_iou: {str(error).partition(': ')[2]}") from None


def contender(result: EvaluationResult, metrics: DetectionMetrics, threshold: int, score: float | str) -> Contender:
    """Name predictions, with the score from which their detections are compared box by box."""
    least = metrics.curves.best_f1(threshold, None) if score == BEST_F1 else float(score)
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
    """Compare two results on one ground truth."""
    base_metrics, other_metrics = detection_metrics(baseline), detection_metrics(other)
    changes = box_changes(
        Judged.of(baseline, names[0].score),
        Judged.of(other, names[1].score),
        threshold=threshold,
        image_names=base_metrics.image_names,
        class_names=base_metrics.class_names,
        moved_iou=moved_iou,
    )
    return Versus(
        contender=names[1],
        deltas=tuple(_deltas(baseline, other)),
        changes=changes,
        slices=tuple(_slice_deltas(base_metrics, other_metrics, slices)),
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


def _deltas(baseline: EvaluationResult, other: EvaluationResult) -> Iterator[Delta]:
    yield from _pairs(None, baseline.metrics, other.metrics)
    for base_row, other_row in zip(baseline.per_class, other.per_class, strict=True):
        yield from _pairs(base_row.name, base_row.values, other_row.values)


def _slice_deltas(
    baseline: DetectionMetrics, other: DetectionMetrics, slices: Sequence[Slice]
) -> Iterator[SliceDeltas]:
    sides = (measure_slices(one, slices, one.protocol) for one in (baseline, other))
    for base_row, other_row in zip(*sides, strict=True):
        deltas = tuple(_pairs(None, base_row.values, other_row.values))
        yield SliceDeltas(name=base_row.name, digest=base_row.digest, images=base_row.images, deltas=deltas)


def _pairs(
    name: str | None, base_values: Mapping[str, MetricValue], other_values: Mapping[str, MetricValue]
) -> Iterator[Delta]:
    for metric, one in base_values.items():
        value = other_values[metric].value if metric in other_values else math.nan
        yield Delta(metric=metric, class_name=name, baseline=one.value, value=value, n=one.n)
