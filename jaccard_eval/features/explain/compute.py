"""Which boxes cost a metric most, each error repaired alone, and the way from one protocol to another."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any

import numpy as np

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.boxtable import FLAGS, BoolArray, BoxTable, FloatArray, freeze
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.known_tools import TOOLS
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import PROTOCOLS, Protocol, get_protocol
from jaccard_eval.data.sides import Sides
from jaccard_eval.data.signature import quoted
from jaccard_eval.errors import UsageError
from jaccard_eval.features.errors.compute import (
    CLASSIFICATION,
    LOCALISATION,
    NO_BOX,
    NO_ERROR,
    TYPES,
    Errors,
    find_errors,
)
from jaccard_eval.features.explain import MISSED, CurvePoint, ExplanationResult, Fix, Group, Printed, Step
from jaccard_eval.features.explain.causes import Cause, causes
from jaccard_eval.features.explain.printed import Search, find_printed
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.judging import choose_alike, judge
from jaccard_eval.matching.matchtable import ALL_SIZES, SLOT_COUNT, SLOTS, Ranking, match_boxes
from jaccard_eval.matching.order import IntArray, WholeArray, group_ranks
from jaccard_eval.metrics.curves import ScoredHits
from jaccard_eval.metrics.detection import DetectionMetrics, match_sides
from jaccard_eval.progress import staged, tracked
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.obb import areas_of
from jaccard_eval.text import is_numeral, quoted_value

SPARE = 3  # fixes that are measured for each that is shown: estimates skip caps and what is ignored
LEAST_MEASURED = 100  # fixes, so that small data is searched whole
SMALL_GAIN = 0.005  # below, no single box is worth beginning with
N_CLASSES = 10  # classes that are measured as a whole
N_POINTS = 11  # recall 0, .1, ..., 1
AVERAGE_RECALL = "AR"
COUNTED = (AVERAGE_RECALL, "recall", "precision", "F1")
AVERAGES = ("AP", AVERAGE_RECALL)
AT_A_SCORE = COUNTED[1:]  # metrics that need one
POINT = ("precision", "recall", "F1", "TP", "FP", "FN")
REPAIRED = (*TYPES, MISSED)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Costs:
    """What it takes to price errors: the errors, and the boxes and names that they are about."""

    errors: Errors
    rows: WholeArray  # shape (n,): row among the predictions of each detection of the errors
    aligned: Alignment


def costliest(
    costs: Costs,
    n: int,
    label: int | None = None,
) -> tuple[Fix, ...]:
    """Return the `n` fixes that seem to give most average precision, of one class or (None) all, each alone.

    A detection of the wrong class that has a target gets its class, one that lies next to its target is moved there, at
    its own score; any other wrong one is removed; a missed box is found at a score above all others. Gains are those at
    one threshold, without caps and without what is ignored. Fixes that gain nothing are ignored.
    """
    errors = costs.errors
    base = errors.ranking.class_precisions(errors.protocol)
    counted = ~np.isnan(base) if label is None else np.arange(errors.n_labels) == label
    before = np.where(counted, np.nan_to_num(base), 0.0)
    share = max(int(counted.sum()), 1)
    positives = errors.boxes(errors.counted)
    queues: dict[tuple[int, int, int], deque[tuple[int, int]]] = {}
    aims, findable = aimed_labels(errors), findable_misses(costs)
    for place, detection in enumerate(candidates(errors, n, counted)):
        key = int(errors.kind[detection]), int(errors.label[detection]), int(aims[detection])
        queues.setdefault(key, deque()).append((place, detection))

    def first_of(queue: deque[tuple[int, int]]) -> tuple[float, int, int, deque[tuple[int, int]]]:
        place, detection = queue.popleft()
        return -_gain(errors, positives, detection, before, counted) / share, place, detection, queue

    # Within a queue the first gives most, so that only the first of each has to be priced until it is taken.
    heap = [first_of(queue) for queue in queues.values()]
    heapify(heap)
    priced: list[Fix] = []
    while heap and len(priced) < n:
        cost, _, detection, queue = heappop(heap)
        priced.append(wrong_fix(costs, detection, -cost))
        if queue:
            heappush(heap, first_of(queue))
    for k in np.flatnonzero(counted).tolist():
        # One more box of the class found, before all others: every missed box of a class gives the same.
        boxes = np.flatnonzero(findable & (errors.gt_label == k))[:n]
        if not len(boxes):
            continue
        rows = errors.rows_of(k)
        score, hit = np.append(np.inf, errors.score[rows]), np.append(True, errors.hit[rows])
        found = _precision(errors.protocol, positives[k], score, hit)
        priced += [missed_fix(costs, int(box), (found - float(before[k])) / share) for box in boxes]
    return _most(priced, n)


@dataclass(frozen=True, slots=True, eq=False)
class Repairs:
    """Changes of predictions, column by column: those of fixes that are shown, or of all errors of a kind or class."""

    kind: IntArray  # shape (n,): place in `REPAIRED`
    row: IntArray  # shape (n,): of the prediction; of what is missed, of the object
    target: IntArray  # shape (n,): row of the object that the prediction is meant for, `NO_BOX` for none

    @classmethod
    def of(cls, fixes: Sequence[Fix]) -> Repairs:
        """Read fixes."""
        columns = [(REPAIRED.index(fix.kind), fix.row, fix.target) for fix in fixes]
        return cls(*np.array(columns, dtype=np.int64).reshape(len(fixes), 3).T)

    @classmethod
    def of_errors(cls, costs: Costs, wrong: IntArray, missed: IntArray) -> Repairs:
        """Repair some detections of the errors and some missed objects, by their rows there."""
        errors, none = costs.errors, np.full(len(missed), NO_BOX)
        return cls(
            np.concatenate((errors.kind[wrong], np.full(len(missed), len(TYPES)))).astype(np.int64),
            np.concatenate((costs.rows[wrong], missed)).astype(np.int64),
            np.concatenate((errors.target[wrong], none)).astype(np.int64),
        )

    def apply(self, pred: BoxTable, gt: BoxTable, *, least: float = 0.0) -> BoxTable:
        """Return the predictions after them; what was missed is added with a score above all, and from `least`."""
        n = len(pred)
        score = np.zeros(n) if pred.score is None else pred.score
        pred, missed, aims = replace(pred, score=score), self.kind == len(TYPES), self.target != NO_BOX
        moved, named = aims & (self.kind == LOCALISATION), aims & (self.kind == CLASSIFICATION)
        kept = np.ones(n, dtype=np.bool_)
        kept[self.row[~(missed | moved | named)]] = False
        # What is moved takes the shape of its object, whatever shapes are: its row stands behind those of predictions.
        place = np.arange(n)
        place[self.row[moved]] = n + self.target[moved]
        place = np.concatenate((place[kept], n + self.row[missed]))
        own, n_added = np.flatnonzero(kept), int(missed.sum())
        is_object = place >= n
        both = BoxTable.concat([pred, replace(gt, score=np.zeros(len(gt)))]).take(place)
        label = pred.label.copy()
        label[self.row[named]] = gt.label[self.target[named]]
        top = np.nextafter(score.max(initial=least), np.inf)
        beyond = pred.source.max(initial=0) + 1 + np.arange(n_added)
        # Areas of objects are those of the boxes, as predictions that are read have them: of masks, too.
        area = both.xywh[:, 2] * both.xywh[:, 3] if both.shapes is None else areas_of(both.shapes, both.xywh)
        unset = np.zeros(n_added, dtype=np.bool_)
        flags: dict[str, Any] = {name: np.append(getattr(pred, name)[own], unset) for name in FLAGS}
        return freeze(
            replace(
                both,
                label=np.append(label[own], gt.label[self.row[missed]]),
                score=np.append(score[own], np.full(n_added, top)),
                source=np.append(pred.source[own], beyond),
                area=np.where(is_object, area, both.area),
                **flags,
            )
        )


def candidates(errors: Errors, n: int, counted: BoolArray) -> Iterator[int]:
    """Yield the false positives with the highest scores by class, type and target, if a class that counts gains.

    `counted` marks these classes, shape (K,).
    """
    aims = aimed_labels(errors)
    concerned = counted[errors.label] | ((aims != NO_BOX) & counted[aims])
    for kind in range(len(TYPES)):
        of_kind = np.flatnonzero((errors.kind == kind) & concerned)  # in class order: scores descend
        # Of errors of one class, type and target class, those with lower scores give no more: `n` of them are enough.
        key = errors.label[of_kind] * (errors.n_labels + 1) + aims[of_kind] + 1
        yield from of_kind[group_ranks(key) < n].tolist()


def aimed_labels(errors: Errors) -> IntArray:
    """Return the class of the box that each detection would match when repaired, shape (n,); `NO_BOX` for none."""
    return np.where(errors.target == NO_BOX, NO_BOX, np.append(errors.gt_label, NO_BOX)[errors.target])


def findable_misses(costs: Costs) -> BoolArray:
    """Mark the missed boxes that a copy would find, shape (m,): a box without width and an empty mask overlap none."""
    errors, gt = costs.errors, costs.aligned.gt_table
    rows = np.flatnonzero(errors.missed)
    similarity = KINDS[errors.protocol.iou_type]
    objects = similarity.prepare(gt.take(rows), errors.protocol)
    each, findable = np.arange(len(rows)), np.zeros(len(gt), dtype=np.bool_)
    # A copy is found at every threshold, or at none.
    found, _, _ = similarity.pairs(objects, objects, each, each, threshold=errors.protocol.iou_thresholds[0])
    findable[rows[found]] = True
    return findable


def _most(priced: Sequence[Fix], n: int) -> tuple[Fix, ...]:
    """Return the `n` fixes that give most, without those that give nothing; equal ones keep their order."""
    return tuple(sorted((fix for fix in priced if fix.gain > 0), key=lambda fix: -fix.gain)[:n])


def _gain(errors: Errors, positives: IntArray, detection: int, before: FloatArray, counted: BoolArray) -> float:
    """Return the sum over classes of what repairing one detection changes."""
    own, target = int(errors.label[detection]), int(errors.target[detection])
    other = own if target == NO_BOX else int(errors.gt_label[target])
    rows, protocol = errors.rows_of(own), errors.protocol
    score, hit = errors.score[rows], errors.hit[rows]
    if target != NO_BOX and other == own:
        return _precision(protocol, positives[own], score, hit | (rows == detection)) - float(before[own])
    # What leaves a class changes that class, and where it goes another. A class that does not count changes nothing.
    change = 0.0
    if counted[own]:
        left = rows != detection
        change += _precision(protocol, positives[own], score[left], hit[left]) - before[own]
    if other != own and counted[other]:
        rows = errors.rows_of(other)
        score, tie = errors.score[rows], errors.tie[rows]
        own_score, own_tie = errors.score[detection], errors.tie[detection]
        # Among equal scores it stands where its image or its place in the file puts it.
        place = np.count_nonzero((score > own_score) | ((score == own_score) & (tie < own_tie)))
        score, hit = np.insert(score, place, own_score), np.insert(errors.hit[rows], place, True)
        change += _precision(protocol, positives[other], score, hit) - before[other]
    return float(change)


def _precision(protocol: Protocol, positives: int, score: FloatArray, hit: BoolArray) -> float:
    """Return the average precision of one class alone: a fix changes two classes, and ranking all would be waste."""
    alone = ScoredHits(np.zeros(len(score), dtype=np.int64), score, hit, np.array([positives]))
    return float(alone.class_precisions(protocol)[0])


def wrong_fix(costs: Costs, detection: int, gain: float) -> Fix:
    """Return the repair of a false positive, given by its row."""
    errors, aligned, row = costs.errors, costs.aligned, int(costs.rows[detection])
    target, kind, own = int(errors.target[detection]), int(errors.kind[detection]), int(aligned.pred_table.label[row])
    moved, named = (target != NO_BOX and kind == which for which in (LOCALISATION, CLASSIFICATION))
    becomes = aligned.gt_table.label[target] if named else own
    return Fix(
        kind=TYPES[kind],
        image=aligned.image_names[aligned.pred_table.image[row]],
        class_name=aligned.class_names[own],
        score=float(errors.score[detection]),
        row=row,
        source=int(aligned.pred_table.source[row]),
        target=target,
        becomes=aligned.class_names[becomes] if moved or named else "",
        xywh=tuple((aligned.gt_table.xywh[target] if moved else aligned.pred_table.xywh[row]).tolist()),
        gain=gain,
    )


def missed_fix(costs: Costs, box: int, gain: float) -> Fix:
    """Return what finds a missed box, given by its row."""
    aligned = costs.aligned
    name = aligned.class_names[aligned.gt_table.label[box]]
    return Fix(
        kind=MISSED,
        image=aligned.image_names[aligned.gt_table.image[box]],
        class_name=name,
        score=math.nan,
        row=box,
        source=int(aligned.gt_table.source[box]),
        target=NO_BOX,
        becomes=name,
        xywh=tuple(aligned.gt_table.xywh[box].tolist()),
        gain=gain,
    )


class Repricing:
    """Prices fixes by an AP or AR: the image of a fix is matched again.

    A fix changes one image, and matching never looks beyond an image: the rows of all others stay as they are.
    """

    def __init__(self, aligned: Alignment, metrics: DetectionMetrics, ref: MetricRef) -> None:
        label = metrics.axes.label(ref)
        self._ref = ref
        self._aligned = aligned
        self._ranking = metrics.curves.ranking
        thresholds = np.arange(len(metrics.protocol.iou_thresholds))[metrics.axes.thresholds(ref)].tolist()
        # Only the first area range is explained; the others would be matched for nothing.
        self._rules = metrics.protocol.with_options(
            areas=metrics.protocol.areas[:1],
            iou_thresholds=tuple(metrics.protocol.iou_thresholds[t] for t in thresholds),
        )
        self._positives = metrics.curves.positives[ALL_SIZES]
        self._counted = self._positives > 0
        if label is not None:
            self._counted &= np.arange(len(self._positives)) == label
        self._outcomes = self._outcomes_of(self._ranking, thresholds)
        self._before: dict[int, float] = {}
        scores = aligned.pred_table.score
        self._highest = 0.0 if scores is None else float(scores.max(initial=0.0))

    def gain(self, fix: Fix) -> float:
        """Return what one fix alone adds to the mean over the classes that count."""
        gt, pred, repairs = self._aligned.gt_table, self._aligned.pred_table, Repairs.of([fix])
        own = gt if fix.kind == MISSED else pred
        image = own.image[fix.row]
        gt_rows, pred_rows = (np.flatnonzero(boxes.image == image) for boxes in (gt, pred))
        # Names of classes need not be unique, rows are.
        touched = {int(own.label[fix.row])} | ({int(gt.label[fix.target])} if fix.target != NO_BOX else set())
        local = replace(
            repairs,
            row=np.searchsorted(gt_rows if fix.kind == MISSED else pred_rows, repairs.row),
            target=np.where(repairs.target == NO_BOX, NO_BOX, np.searchsorted(gt_rows, repairs.target)),
        )
        gt, pred = gt.take(gt_rows), pred.take(pred_rows)
        repaired = local.apply(pred, gt, least=self._highest)
        table = match_boxes(gt, repaired, self._rules, n_images=self._ranking.n_images, n_labels=self._ranking.n_labels)
        changed = Ranking.of(table, self._ranking.n_images)
        outcomes = self._outcomes_of(changed, range(len(self._rules.iou_thresholds)))
        total = 0.0
        # All boxes are of one class under a protocol that knows no classes.
        for k in [0] if self._rules.class_agnostic else sorted(touched):
            if self._counted[k]:
                kept = np.flatnonzero((self._ranking.label == k) & (self._ranking.image != image))
                own_rows = np.flatnonzero(changed.label == k)
                total += self._mean(k, [(self._ranking, self._outcomes, kept), (changed, outcomes, own_rows)])
                total -= self._mean_before(k)
        return total / max(int(self._counted.sum()), 1)

    def _outcomes_of(self, ranking: Ranking, thresholds: Iterable[int]) -> tuple[BoolArray, BoolArray]:
        """Return which detections are hits and which count within the cap of the metric, shape (T, n) each."""
        hits, counts = zip(*map(ranking.outcomes, thresholds), strict=True)
        cap = self._ref.max_dets
        # A cap below the largest changes no match: better detections chose first.
        within = np.ones(len(ranking), dtype=np.bool_) if cap is None else ranking.rank < cap
        return np.stack(hits) & within, np.stack(counts) & within

    def _mean_before(self, k: int) -> float:
        if k not in self._before:
            rows = np.flatnonzero(self._ranking.label == k)
            self._before[k] = self._mean(k, [(self._ranking, self._outcomes, rows)])
        return self._before[k]

    def _mean(self, k: int, parts: Sequence[tuple[Ranking, tuple[BoolArray, BoolArray], IntArray]]) -> float:
        """Return the metric of one class, the mean over the thresholds, of rows of several rankings."""
        if self._ref.name == AVERAGE_RECALL:
            found = sum(outcomes[0][:, rows].sum(axis=1) for _, outcomes, rows in parts)
            return float(np.mean(found / self._positives[k]))
        score, tie, rank = (
            np.concatenate([getattr(ranking, name)[rows] for ranking, _, rows in parts])
            for name in ("score", "tie", "rank")
        )
        order = np.lexsort((rank, tie, -score))
        hits, counts = (
            np.concatenate([outcomes[i][:, rows] for _, outcomes, rows in parts], axis=1)[:, order] for i in range(2)
        )
        # A threshold stands where a class does, so that all of them are measured at once.
        threshold, row = np.nonzero(counts)
        positives = np.full(len(hits), self._positives[k])
        curves = ScoredHits(threshold, score[order][row], hits[counts], positives)
        return float(curves.class_precisions(self._rules).mean())


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """True and false positives and ground-truth boxes by class, shape (K,) each."""

    tp: IntArray
    fp: IntArray
    positives: IntArray

    @classmethod
    def of(cls, errors: Errors) -> Counts:
        """Count what an evaluation found."""
        wrong = errors.counts & ~errors.hit
        return cls(errors.detections(errors.hit), errors.detections(wrong), errors.boxes(errors.counted))

    def plus(self, *, tp: int | None = None, fp: int | None = None) -> Counts:
        """Return the counts with a true positive more of one class, and a false positive less of one."""
        more, fewer = self.tp.copy(), self.fp.copy()
        if tp is not None:
            more[tp] += 1
        if fp is not None:
            fewer[fp] -= 1
        return replace(self, tp=more, fp=fewer)

    def measure(self, name: str, label: int | None) -> float:
        """Return a metric of `COUNTED`, of one class or, for None, of all: the mean of recall, else pooled; or NaN."""
        chosen = slice(None) if label is None else slice(label, label + 1)
        tp, fp, positives = self.tp[chosen], self.fp[chosen], self.positives[chosen]
        if name == AVERAGE_RECALL:
            defined = positives > 0
            return float((tp[defined] / positives[defined]).mean()) if defined.any() else math.nan
        # F1 = 2 TP / (2 TP + FP + FN), and TP + FN are the positives.
        whole = {"recall": positives, "precision": tp + fp, "F1": (tp + fp + positives) / 2}[name].sum()
        return float(tp.sum() / whole) if whole else math.nan


def costliest_counted(costs: Costs, n: int, name: str, label: int | None = None) -> tuple[Fix, ...]:
    """Return the `n` fixes that give a metric of `COUNTED` most, of one class or (None) all; see `costliest`."""
    errors, counts = costs.errors, Counts.of(costs.errors)
    before = counts.measure(name, label)
    counted = np.ones(errors.n_labels, dtype=np.bool_) if label is None else np.arange(errors.n_labels) == label
    wrong = np.fromiter(candidates(errors, n, counted), dtype=np.int64)
    # Counts know no ranking: whatever the detection, one of this class repaired to that class gives the same.
    pairs = list(zip(errors.label[wrong].tolist(), aimed_labels(errors)[wrong].tolist(), strict=True))
    values = {
        (own, aim): counts.plus(tp=None if aim == NO_BOX else aim, fp=own).measure(name, label)
        for own, aim in set(pairs)
    }
    after = np.array([values[pair] for pair in pairs])
    # Of errors that give the same those with the highest scores come first.
    order = np.lexsort((-errors.score[wrong], -after))[:n]
    priced = [wrong_fix(costs, int(wrong[i]), float(after[i]) - before) for i in order]
    findable = findable_misses(costs)
    for k in np.flatnonzero(counted).tolist():
        boxes = np.flatnonzero(findable & (errors.gt_label == k))[:n]
        gain = counts.plus(tp=k).measure(name, label) - before
        priced += [missed_fix(costs, int(box), gain) for box in boxes]
    return _most(priced, n)


RULES = (  # the order of the steps, and the fields that only make sense together
    (
        "crowd and ignored boxes",
        ("ignored_flags", "reusable_flags", "crowd_overlap", "dropped_flags"),
    ),
    ("regions that nobody labelled", ("region_flags", "counts_ignored")),
    ("empty boxes", ("drop_empty",)),
    ("boxes beyond the image", ("clipped",)),
    ("classes judged on an image", ("judging", "frequencies")),
    ("caps on detections", ("max_dets", "max_dets_per", "drops_ties")),
    ("area ranges", ("areas",)),
    ("subsets", ("subsets", "subsets_alone")),
    ("rules of classes", ("class_rules",)),
    ("objects too small to count", ("least_area",)),
    ("detections that ignored objects cover", ("spares_covered",)),
    ("pixels added to sides", ("pixel_offset",)),
    ("what boxes are compared by", ("overlap", "reach")),
    ("rounding of overlaps", ("single_precision", "union_epsilon")),
    ("assignment", ("assignment", "iou_ties")),
    ("order of equal scores", ("score_ties",)),
    ("interpolation", ("interpolation", "recall_points", "precision_epsilon", "metrics")),
    ("reading of miss rates", ("miss_rate_at", "miss_rate_reading")),
    ("IoU thresholds", ("iou_thresholds", "above_threshold")),
    ("distances between keypoints", ("sigmas", "oks_box_share")),
    ("width of boundaries", ("dilation_ratio",)),
    ("classes", ("class_agnostic",)),
)


def protocol_steps(start: Protocol, end: Protocol) -> Iterator[tuple[str, str, Protocol]]:
    """Yield each rule that differs, what changes, and the protocol after it; the last one has all rules of `end`."""
    now = start
    # Classes without ground truth are undefined under every protocol, so that there is no step for them.
    for rule, names in RULES:
        changes = {name: getattr(end, name) for name in names if getattr(end, name) != getattr(now, name)}
        if changes:
            text = ", ".join(f"{name}: {_text(getattr(now, name))} -> {_text(new)}" for name, new in changes.items())
            now = now.with_options(**changes)
            yield rule, text, now


@staged("trying causes")
def _printed(asked: Question, sides: Sides, ref: MetricRef, measured: Callable[..., float]) -> Printed | None:
    """Try which rules of the other protocol, and which causes that the boxes know, give the number that was printed."""
    rules, goal = asked.rules, asked.against
    if goal is None or asked.printed is None:
        return None
    steps = {
        rule: {name: new for name in names if (new := getattr(goal, name)) != getattr(rules, name)}
        for rule, names in RULES
    }
    search = Search(
        {rule: changes for rule, changes in steps.items() if changes},
        lambda changes, causes: measured(rules.with_options(**changes), causes),
    )
    n_boxes = len(sides.aligned.gt) + len(sides.aligned.pred)
    return find_printed(asked.printed, search, causes(sides, rules, goal, ref), n_boxes)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        shown = [getattr(item, "name", None) or _text(item) for item in value]
        return "+".join(shown if len(shown) <= 4 else [shown[0], "...", shown[-1]]) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _protocol_of(name: str) -> str:
    """Return a name of a protocol, or that of the one which gives the number of a tool: "torchmetrics"."""
    by_tool = {tool.name.split()[0].casefold(): tool.protocol.partition(",")[0] for tool in reversed(TOOLS)}
    return name if name in PROTOCOLS else by_tool.get(name.casefold(), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be explained: a metric by some rules, perhaps with those of another protocol."""

    ref: MetricRef
    rules: Protocol
    against: Protocol | None
    boxes: int
    printed: str | None = None  # by the other tool, as it stood there

    @classmethod
    def of(cls, metric: str, rules: Protocol, *, against: str | Protocol | None, boxes: int) -> Question:
        """Read the metric, and leave the two protocols no difference in what it names."""
        ref = MetricRef.parse(metric)
        if ref.area in {subset.name for subset in rules.subsets} - {area.name for area in rules.areas}:
            ref = replace(ref, area=None, subset=ref.area)
        if ref.name not in ("AP", *COUNTED) or ref.area is not None or (ref.name == "AP" and ref.max_dets is not None):
            raise UsageError(
                f"metric {quoted_value(str(ref))} cannot be explained; choose from AP, AP50 and the like, "
                "AR, AR100 and the like, precision, recall and F1, of all sizes, and each with [class=NAME];"
                " AP and AR also with [subset=NAME]"
            )
        if boxes < 1:
            raise UsageError(f"boxes must be at least 1, got {boxes}")
        printed = None
        if isinstance(against, str):
            against, equals, number = against.partition("=")
            printed = number.strip() if equals else None
            if printed is not None and not (is_numeral(printed) and 0 <= float(printed) <= 100):
                raise UsageError(
                    f"against must be a protocol, or one with the number that its tool printed, such as"
                    f" 'ultralytics=0.532'; got {quoted_value(printed)} for the number"
                )
        goal = get_protocol(_protocol_of(against)).comparing(rules.iou_type) if isinstance(against, str) else against
        if ref.iou is None and ref.name in AT_A_SCORE:
            ref = replace(ref, iou=rules.iou_thresholds[rules.judged_threshold])
        # AP50 is AP50 on both sides: what the metric names itself does not differ between the protocols.
        if goal is not None and ref.iou is not None:
            rules, goal = (rule.with_options(iou_thresholds=(ref.iou,)) for rule in (rules, goal))
        if goal is not None and ref.subset is not None:
            goal = goal.with_options(subsets=rules.subsets)
        if goal is not None and ref.max_dets is not None:
            # Of an image over all classes there is one cap.
            alike = goal.max_dets_per == rules.max_dets_per
            goal = goal.with_options(max_dets=rules.max_dets if alike else (ref.max_dets,))
        return cls(ref=ref, rules=rules, against=goal, boxes=boxes, printed=printed)


def explain_sides(sides: Sides, asked: Question, *, version: str) -> ExplanationResult:
    """Explain a metric of two sides."""
    rules, goal, boxes = asked.rules, asked.against, asked.boxes
    if goal is not None and sides.judged_by is not None and not choose_alike(sides.judged_by, goal):
        raise UsageError(
            f"protocols {rules.name} and {goal.name} judge different boxes, and a result has only those of its own;"
            " pass ground truth and predictions"
        )
    given, sides = sides, judge(sides, rules)
    metrics = match_sides(sides, rules)
    ref = asked.ref
    if isinstance(ref.score, str):
        # Fixes would move the score of the best F1: it is named before, 0 where there is none.
        best = metrics.curves.best_score(metrics.axes.single_threshold(ref), metrics.axes.label(ref))
        ref = replace(ref, score=0.0 if np.isnan(best) else float(best))
    value = metrics.value(ref)
    threshold = rules.judged_threshold if ref.iou is None else metrics.axes.single_threshold(ref)
    fixes, fixed, groups = _fixes(sides, metrics, threshold, value, boxes)
    steps, now = [], value.value

    def by_rules(protocol: Protocol, causes: Sequence[Cause] = ()) -> float:
        there, metric = given, ref
        for cause in causes:
            there, metric = cause.of(there), cause.metric(metric)
        return match_sides(judge(there, protocol), protocol).value(metric).value

    for rule, change, protocol in () if goal is None else protocol_steps(rules, goal):
        after = by_rules(protocol)
        steps.append(Step(rule=rule, change=change, value=after, delta=after - now))
        now = after
    gt, pred = sides.summaries()
    choices = ["kind=explanation", f"metric={quoted(str(ref))}", f"boxes={boxes}"]
    number = "" if asked.printed is None else f"={asked.printed}"
    choices += [] if goal is None else [f"against={quoted(goal.name)}{number}"]
    return ExplanationResult(
        version=version,
        signature=sides.sign(rules, *choices, *metrics.tie_choice, version=version),
        protocol=rules.name,
        gt=gt,
        pred=pred,
        metric=value,
        parts=_parts(metrics, ref),
        judged_iou=rules.iou_thresholds[threshold],
        curve=_curve(metrics, ref),
        fixes=fixes,
        fixed=fixed,
        groups=groups,
        against=None if goal is None else goal.name,
        steps=tuple(steps),
        printed=_printed(asked, given, ref, by_rules),
        findings=sides.findings,
        measured=metrics,
        boxes=(sides.aligned.gt_table, sides.aligned.pred_table),
    )


@staged("finding fixes")
def _fixes(
    sides: Sides, metrics: DetectionMetrics, threshold: int, value: MetricValue, boxes: int
) -> tuple[tuple[Fix, ...], float, tuple[Group, ...]]:
    """Return the fixes that give most, the metric after all of them, and what groups give where these give little."""
    ref = value.ref
    label, wanted = metrics.axes.label(ref), max(SPARE * boxes, LEAST_MEASURED)
    if ref.name == "AP":
        rules, costs = metrics.protocol, _costs(sides, metrics, threshold, ref)
        named = costliest(costs, wanted, label)
    else:
        rules, costs = _costs_of_counts(sides, metrics, threshold, ref)
        named = costliest_counted(costs, SPARE * boxes, ref.name, label)
        rules = metrics.protocol if ref.name in AVERAGES else rules

    def gain(repairs: Repairs) -> float:
        return _fixed_value(sides, rules, repairs, ref) - value.value

    # Named by one threshold, the cheap way; what each gives is measured.
    if ref.name in AVERAGES:
        # One image is enough where a metric is a mean of curves over all boxes, each of one matching.
        is_plain = ref.subset is None and not rules.class_rules and rules.interpolation not in (SLOTS, "scores")
        price = Repricing(sides.aligned, metrics, ref).gain if is_plain else lambda fix: gain(Repairs.of([fix]))
        fixes = _most([replace(fix, gain=price(fix)) for fix in tracked(named, "measuring")], boxes)
    else:
        priced = (replace(fix, gain=gain(Repairs.of([fix]))) for fix in tracked(named, "measuring"))
        # Under a cap, what is added may take another's place, and give nothing.
        fixes = _most(tuple(islice((fix for fix in priced if fix.gain > 0), boxes)), boxes)
    fixed = _fixed_value(sides, rules, Repairs.of(fixes), ref) if fixes else value.value
    is_small = not any(fix.gain >= SMALL_GAIN for fix in fixes) and not math.isnan(value.value)
    return fixes, fixed, tuple(_groups(costs, gain, label)) if is_small else ()


def _groups(costs: Costs, gain: Callable[[Repairs], float], label: int | None) -> Iterator[Group]:
    """Yield what repairing all errors of a kind gives, then all of a class, measured; those that give most first."""
    errors, findable = costs.errors, findable_misses(costs)
    wrong = errors.kind != NO_ERROR
    if label is not None:
        aims = aimed_labels(errors)
        wrong, findable = wrong & ((errors.label == label) | (aims == label)), findable & (errors.gt_label == label)
    none = np.zeros(0, dtype=np.int64)
    kinds = [(name, np.flatnonzero(wrong & (errors.kind == kind)), none) for kind, name in enumerate(TYPES)]
    kinds.append((MISSED, none, np.flatnonzero(findable)))
    names, counts = costs.aligned.class_names, errors.detections(wrong) + errors.boxes(findable)
    # Of classes with few objects each error costs more.
    share = counts / np.maximum(counts + errors.detections(errors.hit), 1)
    most = np.argsort(-np.where(errors.boxes(errors.counted) > 0, share, 0), kind="stable")[:N_CLASSES]
    classes = [
        (names[k], np.flatnonzero(wrong & (errors.label == k)), np.flatnonzero(findable & (errors.gt_label == k)))
        for k in (most.tolist() if label is None and errors.n_labels > 1 else ())
    ]
    for by, groups in (("kind", kinds), ("class", classes)):
        measured = [
            Group(by=by, name=name, count=len(rows) + len(boxes), gain=gain(Repairs.of_errors(costs, rows, boxes)))
            for name, rows, boxes in groups
            if len(rows) + len(boxes)
        ]
        yield from sorted((group for group in measured if group.gain > 0), key=lambda group: -group.gain)


def _costs_of_counts(sides: Sides, metrics: DetectionMetrics, threshold: int, ref: MetricRef) -> tuple[Protocol, Costs]:
    """Return the rules that a metric of `COUNTED` is counted by at one threshold, and the errors by these."""
    rules = metrics.protocol
    caps = rules.max_dets[-1:] if ref.max_dets is None else (ref.max_dets,)
    rules = rules.with_options(
        iou_thresholds=rules.iou_thresholds[threshold:][:1], areas=rules.areas[:1], max_dets=caps
    )
    pred = sides.aligned.pred_table
    score = np.full(len(pred), np.inf) if pred.score is None else pred.score
    least = -np.inf if ref.score is None else float(ref.score)
    kept = np.flatnonzero(score >= least)  # those below the score change no match above it
    above = _with_pred(sides, pred.take(kept))
    costs = _costs(above, match_sides(above, rules), 0, ref)
    # Fixes name rows of all predictions, of which these are a part.
    return rules, replace(costs, aligned=sides.aligned, rows=kept[costs.rows])


def _costs(sides: Sides, metrics: DetectionMetrics, threshold: int, ref: MetricRef) -> Costs:
    aligned = sides.aligned
    return Costs(
        errors=find_errors(metrics, threshold, aligned.gt_table, aligned.pred_table, area=metrics.axes.area(ref)),
        rows=metrics.table.row,
        aligned=aligned,
    )


def _fixed_value(sides: Sides, protocol: Protocol, repairs: Repairs, ref: MetricRef) -> float:
    # What is added must count, whatever score the metric asks for.
    least = max(float(ref.score or 0), 0.0)
    pred = repairs.apply(sides.aligned.pred_table, sides.aligned.gt_table, least=least)
    return match_sides(_with_pred(sides, pred), protocol).value(ref).value


def _with_pred(sides: Sides, pred: BoxTable) -> Sides:
    return replace(sides, aligned=replace(sides.aligned, pred=pred))


def _parts(metrics: DetectionMetrics, ref: MetricRef) -> tuple[MetricValue, ...]:
    """Return what a metric is the mean of, or what it is counted from."""
    if ref.name in AT_A_SCORE:
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
    last, area = len(curves.caps) - 1, metrics.axes.area(ref)
    of_class = slice(None) if label is None else slice(label, label + 1)
    grid = curves.recall_grid
    if metrics.protocol.interpolation == SLOTS:
        precision, grid = curves.slot_precision(area).transpose(0, 2, 1), np.linspace(0.0, 1.0, SLOT_COUNT)
        scores = np.full(precision.shape, np.nan)  # each slot is of another matching
    else:
        precision, scores = curves.interpolated_precision(area, last), curves.recall_scores(area, last)  # (T, R, K)
    own = metrics.axes.own_thresholds if ref.iou is None else None
    if own is None:
        precision, scores = precision[chosen][..., of_class], scores[chosen][..., of_class]
    else:  # each class at its own threshold
        at = own[None, None]
        precision, scores = (np.take_along_axis(values, at, 0)[..., of_class] for values in (precision, scores))
    defined = precision[:, :, ~np.isnan(precision).any(axis=(0, 1))]
    if not defined.size:
        return ()
    # A mean of several curves is reached at no score.
    single = len(scores) == 1 and scores.size == len(grid)
    places = np.unique(np.round(np.linspace(0, len(grid) - 1, N_POINTS)).astype(np.int64))
    return tuple(
        CurvePoint(
            recall=float(grid[i]),
            precision=float(defined[:, i].mean()),
            score=float(scores[0, i, 0]) if single and defined[0, i, 0] > 0 else math.nan,
        )
        for i in places
    )
