"""Which boxes cost a metric most, each error repaired alone, and the way to another protocol, or to a printed number.

Of a number that another tool printed, rules of its protocol are tried, and causes besides rules that the boxes
themselves give evidence of. A cause changes what is evaluated, or a rule that neither protocol differs in. It is tried
where the files show that it could have changed anything: a cut of scores only where some scores are below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from itertools import combinations, islice, product
from typing import Any

import numpy as np

from jaccard_eval.data.alignment import Alignment, Prints, Sides, align, common_sizes
from jaccard_eval.data.boxtable import FLAGS, BoolArray, BoxTable, FloatArray, RowArray, freeze
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.known_tools import TOOLS
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import BOXES, COCO, PROTOCOLS, Protocol, get_protocol
from jaccard_eval.data.result import EvaluationResult, InputSummary
from jaccard_eval.data.signature import BESIDE_METRICS, ORDERS, RowHasher, quoted, signature, without_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.features.audit.duplicates import Repeats
from jaccard_eval.features.errors.compute import (
    CLASSIFICATION,
    LOCALISATION,
    NO_BOX,
    NO_ERROR,
    TYPES,
    Errors,
    find_errors,
)
from jaccard_eval.features.explain import MISSED, CurvePoint, ExplanationResult, Fit, Fix, Group, Printed, Step
from jaccard_eval.features.nms import Suppression, suppress
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import (
    IntArray,
    WholeArray,
    class_and_score_order,
    distinct,
    group_ranks,
    labels_of,
    lengths_of_runs,
    stable_order,
    starts_of_runs,
    tie_order,
)
from jaccard_eval.matching.judging import are_among, choose_alike, judge
from jaccard_eval.matching.matchtable import ALL_SIZES, EVERY, SLOT_COUNT, SLOTS, Ranking, match_boxes
from jaccard_eval.metrics.curves import Curves, precisions_at_hits
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics, match_sides
from jaccard_eval.options import SideOptions
from jaccard_eval.progress import staged, tracked
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.obb import areas_of
from jaccard_eval.text import is_numeral, pluralise, quoted_value

# Where tools cut by default, or where users do.
SCORE_CUTS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5)
CAPS = (1, 10, 100, 300, 500, 1000)
NMS_OVERLAPS = (0.3, 0.45, 0.5, 0.6, 0.65, 0.7)
MOST_CLASSES = 20  # of more classes, none is removed alone
WHOLE_PIXELS: tuple[tuple[str, Callable[[FloatArray], FloatArray]], ...] = (("rounded", np.round), ("cut", np.trunc))


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Something that may have been otherwise where the number was printed; of one subject one cause holds at a time."""

    subject: str
    name: str
    change: Callable[[BoxTable, BoxTable], tuple[BoxTable, BoxTable]] | None = None
    rules: dict[str, Any] = field(default_factory=dict)
    every_iou: bool = False  # the metric is then the mean over the thresholds of its rules
    limits: tuple[str, ...] = ()  # that do the same, where it is one of a row of such

    @property
    def text(self) -> str:
        """What it is, in words."""
        return f"{self.name} {' or '.join(self.limits)}".strip()

    def of(self, sides: Sides) -> Sides:
        """Return the sides as they were there."""
        if self.change is None:
            return sides
        aligned = sides.aligned
        gt, pred = self.change(aligned.gt_table, aligned.pred_table)
        # Caps over all classes look at what was placed, which has classes that are not evaluated as well.
        placed = aligned.placement.pred.whole()
        gone = np.setdiff1d(aligned.pred_table.source, pred.source)
        placed = placed.take(~np.isin(placed.source, gone))
        placement = replace(aligned.placement, pred=placed)
        return replace(sides, aligned=replace(aligned, gt=gt, pred=pred, placement=placement))

    def metric(self, ref: MetricRef) -> MetricRef:
        """Return the metric as it was there."""
        return replace(ref, iou=None) if self.every_iou else ref


def causes(sides: Sides, rules: Protocol, goal: Protocol, ref: MetricRef) -> Iterator[Cause]:
    """Yield the causes that two sides give evidence of, besides the rules that two protocols differ in."""
    gt, pred = sides.aligned.gt_table, sides.aligned.pred_table
    if not len(gt) or not len(pred):
        return
    yield from _of_scores(pred)
    yield from _of_caps(pred, rules, goal, ref)
    yield from _of_flags(gt)
    yield from _of_images(gt, pred)
    yield from _of_rows(sides, gt, pred)
    if ref.class_name is None:
        yield from _of_classes(sides, gt, pred)
    if sides.aligned.units == "px" and rules.iou_type == BOXES:
        yield from _of_pixels(sides, gt, pred, rules, goal)
    if ref.name in ("AP", "AR"):
        yield from _of_metric(gt, rules, ref)


def _where(
    gt: BoxTable, pred: BoxTable, *, side: str, kept: Callable[[BoxTable], BoolArray]
) -> tuple[BoxTable, BoxTable]:
    """Remove rows of a side, whatever was removed before."""
    return (gt.take(kept(gt)), pred) if side == "gt" else (gt, pred.take(kept(pred)))


def _except(rows: BoxTable) -> Callable[[BoxTable], BoolArray]:
    return lambda boxes: ~np.isin(boxes.source, rows.source)


def _of_scores(pred: BoxTable) -> Iterator[Cause]:
    last = len(pred)
    for cut in SCORE_CUTS:
        low = pred.take(np.zeros(len(pred)) > 0 if pred.score is None else pred.score < cut)
        # Each removes more than the one before, and something is left.
        if len(pred) - last < len(low) < len(pred):
            change = partial(_where, side="pred", kept=_except(low))
            yield Cause("scores", "without scores below", change, limits=(f"{cut:g}",))
            last = len(pred) - len(low)


def _of_caps(pred: BoxTable, rules: Protocol, goal: Protocol, ref: MetricRef) -> Iterator[Cause]:
    if ref.max_dets is not None:
        return
    of_image = int(np.bincount(pred.image).max())
    n_labels = int(pred.label.max()) + 1
    of_class = int(group_ranks(pred.image.astype(np.int64) * n_labels + pred.label).max()) + 1
    known = {(each.max_dets_per, each.max_dets[-1:]) for each in (rules, goal)}
    if any(each.max_dets and each.max_dets[-1] < of_image for each in (rules, goal)):
        yield Cause("caps per image", "no cap on detections", rules={"max_dets": (), "max_dets_per": "image and class"})
    for per, most in (("image and class", of_class), ("image", of_image)):
        for cap in CAPS:
            if cap < most and (per, (cap,)) not in known:
                rule = {"max_dets": (cap,), "max_dets_per": per}
                yield Cause(f"caps per {per}", f"cap on detections of an {per}:", rules=rule, limits=(f"{cap:,}",))


def _of_flags(gt: BoxTable) -> Iterator[Cause]:
    alike: dict[bytes, list[str]] = {}
    for flag in FLAGS:
        if (marked := getattr(gt, flag)).any():
            alike.setdefault(marked.tobytes(), []).append(flag)

    def counted(gt: BoxTable, pred: BoxTable, *, flags: list[str]) -> tuple[BoxTable, BoxTable]:
        unset: dict[str, Any] = {flag: np.zeros(len(gt), dtype=np.bool_) for flag in flags}
        return freeze(replace(gt, **unset)), pred

    for flags in alike.values():
        named = f"objects marked {' and '.join(flags)}"
        yield Cause("marked objects", f"{named} counted", partial(counted, flags=flags))
        left_out = partial(_where, side="gt", kept=_except(gt.take(getattr(gt, flags[0]))))
        yield Cause("marked objects", f"{named} removed", left_out)


def _of_images(gt: BoxTable, pred: BoxTable) -> Iterator[Cause]:
    def shared(gt: BoxTable, pred: BoxTable, *, side: str) -> tuple[BoxTable, BoxTable]:
        other = pred if side == "gt" else gt
        return _where(gt, pred, side=side, kept=lambda boxes: np.isin(boxes.image, other.image))

    for side, lacking in (("gt", "predictions"), ("pred", "objects")):
        is_shared = np.isin(gt.image, pred.image) if side == "gt" else np.isin(pred.image, gt.image)
        if is_shared.any() and not is_shared.all():
            yield Cause("images", f"images without {lacking} removed", partial(shared, side=side))


def _of_rows(sides: Sides, gt: BoxTable, pred: BoxTable) -> Iterator[Cause]:
    hasher = RowHasher.of(sides.aligned.image_names, sides.aligned.class_names)
    for side, name, boxes in (("gt", "objects", gt), ("pred", "predictions", pred)):
        if len(repeated := Repeats.of(boxes, hasher(boxes)).rows):
            change = partial(_where, side=side, kept=_except(boxes.take(np.asarray(repeated))))
            yield Cause(f"repeated {name}", f"repeated {name} removed", change)
    last = len(pred)
    # From the loosest on, each removes more.
    for overlap in NMS_OVERLAPS[::-1] if pred.score is not None else ():
        left = suppress(pred, Suppression(iou=overlap))
        if len(left) < last:
            change = partial(_where, side="pred", kept=_except(pred.take(_except(left)(pred))))
            yield Cause("NMS", "NMS at IoU", change, limits=(f"{overlap:g}",))
            last = len(left)


def _of_classes(sides: Sides, gt: BoxTable, pred: BoxTable) -> Iterator[Cause]:
    names, found = sides.aligned.class_names, np.unique(gt.label)
    if len(names) < 2:
        return

    def chosen(gt: BoxTable, pred: BoxTable, *, labels: list[int], kept: bool) -> tuple[BoxTable, BoxTable]:
        return gt.take(np.isin(gt.label, labels) == kept), pred.take(np.isin(pred.label, labels) == kept)

    def shifted(gt: BoxTable, pred: BoxTable, *, by: int) -> tuple[BoxTable, BoxTable]:
        inside = pred.take((pred.label + by >= 0) & (pred.label + by < len(names)))
        return gt, freeze(replace(inside, label=(inside.label + by).astype(np.int32)))

    yield Cause("classes", "all classes as one", rules={"class_agnostic": True})
    if not (sides.gt.labels.named and sides.pred.labels.named):
        # Numbers may have been read from 0 or from 1 there.
        for by, way in ((1, "up"), (-1, "down")):
            yield Cause("classes", f"class numbers of predictions one {way}", partial(shifted, by=by))
    lacking = np.setdiff1d(found, pred.label).tolist()
    if 0 < len(lacking) < len(found):
        yield Cause("classes", "classes without predictions removed", partial(chosen, labels=lacking, kept=False))
    for k in found.tolist() if 1 < len(found) <= MOST_CLASSES else ():
        yield Cause("classes", f"class {names[k]} alone", partial(chosen, labels=[k], kept=True))
        if [k] != lacking and len(found) > 2:
            yield Cause("classes", f"class {names[k]} removed", partial(chosen, labels=[k], kept=False))


def _of_pixels(sides: Sides, gt: BoxTable, pred: BoxTable, rules: Protocol, goal: Protocol) -> Iterator[Cause]:
    def moved(gt: BoxTable, pred: BoxTable, *, by: float) -> tuple[BoxTable, BoxTable]:
        return gt, freeze(replace(pred, xywh=pred.xywh + np.array([by, by, 0, 0])))

    def whole(
        gt: BoxTable, pred: BoxTable, *, how: Callable[[FloatArray], FloatArray], both: bool
    ) -> tuple[BoxTable, BoxTable]:
        return _in_whole_pixels(gt, how) if both else gt, _in_whole_pixels(pred, how)

    are_whole = [not np.any(boxes.xywh % 1) for boxes in (gt, pred)]
    sizes = common_sizes(sides.pred, sides.aligned.placement.images)
    if not (rules.clipped or goal.clipped) and any(
        (boxes.xywh[:, :2] + boxes.xywh[:, 2:] > sizes[boxes.image]).any() or (boxes.xywh[:, :2] < 0).any()
        for boxes in (gt, pred)
    ):
        yield Cause("boxes beyond the image", "boxes cut at the image", rules={"clipped": True})
    if not are_whole[1]:
        for name, how in WHOLE_PIXELS:
            yield Cause("whole pixels", f"predictions {name} to whole pixels", partial(whole, how=how, both=False))
            if not are_whole[0]:
                yield Cause("whole pixels", f"boxes {name} to whole pixels", partial(whole, how=how, both=True))
    if any(are_whole):
        # Only whole numbers are pixels, of which the first may be 0 or 1, and the last inside or outside.
        if rules.pixel_offset == goal.pixel_offset:
            other = 1.0 - rules.pixel_offset
            name = "a pixel added to sides" if other else "no pixel added to sides"
            yield Cause("first and last pixel", name, rules={"pixel_offset": other})
        for by in (1.0, -1.0):
            name = f"predictions moved by {by:+g} pixel in x and y"
            yield Cause("first and last pixel", name, partial(moved, by=by))


def _in_whole_pixels(boxes: BoxTable, how: Callable[[FloatArray], FloatArray]) -> BoxTable:
    """Return boxes with corners of whole pixels; areas of files, which may be those of masks, stay."""
    near, far = how(boxes.xywh[:, :2]), how(boxes.xywh[:, :2] + boxes.xywh[:, 2:])
    xywh = np.concatenate((near, far - near), axis=1)
    is_box = boxes.area == boxes.xywh[:, 2] * boxes.xywh[:, 3]
    return freeze(replace(boxes, xywh=xywh, area=np.where(is_box, xywh[:, 2] * xywh[:, 3], boxes.area)))


def _of_metric(gt: BoxTable, rules: Protocol, ref: MetricRef) -> Iterator[Cause]:
    now = rules.iou_thresholds if ref.iou is None else (ref.iou,)
    for name, thresholds in (
        ("IoU .5 alone", (0.5,)),
        ("IoU .75 alone", (0.75,)),
        ("IoU .5 to .95", COCO.iou_thresholds),
    ):
        if now != thresholds:
            yield Cause("IoU", name, rules={"iou_thresholds": thresholds}, every_iou=True)
    for area in (rules.areas[1:] or COCO.areas[1:]) if ref.subset is None else ():
        inside = (rules.object_areas(gt) >= area.low) & (rules.object_areas(gt) <= area.high)
        if inside.any() and not inside.all():
            yield Cause("sizes", f"{area.name} objects alone", rules={"areas": (area,)})


LEAST_DIGITS = 4  # decimals of a share: with fewer, other combinations fit by chance
LIKELY_CHANCE = 0.02  # that one of so many values lies within the last digit of the number; of two causes a fourth
NEIGHBOURS = 10  # values around the number, whose distance shows how dense all lie
SAME = 1e-9  # values that are no further apart are one: a cause without effect
# Each combination is a matching: of many boxes fewer are tried.
MOST_TRIED, LEAST_TRIED, BOXES_TRIED = 2000, 64, 20_000_000

Changes = Mapping[str, Any]
Combination = tuple[tuple[str, ...], tuple[Cause, ...]]
Key = frozenset[str]
Trial = tuple[int, IntArray, int]  # a class, its detections up to each hit, and all of them


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Measures combinations of rules of the other protocol and of causes, each once."""

    steps: Mapping[str, Changes]  # of each rule that differs by its name, the fields of the other protocol
    measured: Callable[[Changes, tuple[Cause, ...]], float]
    known: dict[Key, float] = field(default_factory=dict)

    def value(self, rules: Iterable[str], causes: tuple[Cause, ...] = ()) -> float:
        """Return the metric by some rules of the other protocol, with some causes."""
        key = _key((tuple(rules), causes))
        if key not in self.known:
            changes = {name: new for rule in self.steps if rule in key for name, new in self.steps[rule].items()}
            for cause in causes:
                changes |= cause.rules
            self.known[key] = self.measured(changes, causes)
        return self.known[key]

    def mattering_rules(self) -> list[str]:
        """Return the rules that change the metric, alone or together with all others."""
        every = [*self.steps]
        return [
            rule
            for rule in every
            if _differ(self.value([rule]), self.value([]))
            or _differ(self.value(every), self.value(other for other in every if other != rule))
        ]

    def mattering(self, causes: Iterable[Cause]) -> list[Cause]:
        """Return the causes that change the metric by the rules of either protocol; limits that do the same are one."""
        found: dict[tuple[str, float, float], Cause] = {}
        ends = [self.value([]), self.value(self.steps)]
        for cause in causes:
            values = [self.value([], (cause,)), self.value(self.steps, (cause,))]
            if not any(map(_differ, values, ends)):
                continue
            key = cause.subject if cause.limits else cause.name, values[0], values[1]
            if key in found:
                found[key] = replace(found[key], limits=(*found[key].limits, *cause.limits))
            else:
                found[key] = cause
        return [*found.values()]

    def has_idle(self, chosen: Combination) -> bool:
        """Whether one of several changes nothing: the combination without it has the same value."""
        rules, causes = chosen
        fewer = [*(([other for other in rules if other != rule], causes) for rule in rules)]
        fewer += [([*rules], tuple(other for other in causes if other is not cause)) for cause in causes]
        return any(not _differ(self.value(*chosen), self.value(*others)) for others in fewer)


def find_printed(text: str, search: Search, causes: Iterable[Cause], n_boxes: int) -> Printed:
    """Try which rules and causes, of those that change the metric here, give the number that was printed.

    Two causes at once are tried where none with fewer fits.
    """
    rules, mattering = search.mattering_rules(), search.mattering(tracked([*causes], "trying causes"))
    subsets = [chosen for n in range(len(rules) + 1) for chosen in combinations(rules, n)]
    most = max(LEAST_TRIED, min(MOST_TRIED, BOXES_TRIED // max(n_boxes, 1)))
    pairs = [pair for pair in combinations(mattering, 2) if pair[0].subject != pair[1].subject]
    # Rules alone are tried in any case.
    tried: list[Combination] = [(chosen, ()) for chosen in subsets]
    printed = Printed(text, 0, (), None)
    for stage in ([(cause,) for cause in mattering], pairs):
        # With any of the rules, or where that would be too many, with those of either protocol.
        ends = [(), tuple(rules)] if rules else [()]
        given = subsets if len(stage) * len(subsets) <= most else ends
        if len(stage) * len(given) > most:
            printed = replace(printed, untried=printed.untried + len(stage) * len(given))
            continue
        tried += product(given, stage)
        if _fits(printed, search, tried):
            break
    values, fits = np.array([search.value(*chosen) for chosen in tried]), _fits(printed, search, tried)
    named = (Fit((*names, *(cause.text for cause in given)), search.value(names, given)) for names, given in fits)
    printed = replace(printed, tried=len(tried), fits=tuple(named))
    # What a fit competes with are combinations of no more causes.
    rivals = [not fits or len(given) <= len(fits[0][1]) for _, given in tried]
    return replace(printed, undecided=_undecided(printed, values[rivals], len(fits[0][1]) if fits else 0))


def _fits(printed: Printed, search: Search, tried: Sequence[Combination]) -> list[Combination]:
    """Return the combinations that give the number; what rules alone give needs no cause that does the same."""
    found = [chosen for chosen in tracked([*tried], "trying causes") if printed.has(search.value(*chosen))]
    fits = [chosen for chosen in found if not search.has_idle(chosen)]
    by_rules = [search.value(*chosen) for chosen in fits if not chosen[1]]
    return [fit for fit in fits if not fit[1] or all(_differ(search.value(*fit), value) for value in by_rules)]


def _undecided(printed: Printed, values: FloatArray, n_causes: int) -> str | None:
    """Return why no single combination is named, if that is so; `values` are those that were tried."""
    if len(printed.fits) != 1:
        return "no combination fits" if not printed.fits else f"{len(printed.fits)} combinations fit"
    if printed.digits < LEAST_DIGITS:
        return f"{pluralise(printed.digits, 'decimal')} of a share may fit by chance"
    # How dense other values lie around the number: so likely is one of them within its last digit.
    others = np.unique(values[~np.isnan(values) & (np.abs(values - printed.fits[0].value) > SAME)])
    near = np.sort(np.abs(others - printed.value))[:NEIGHBOURS]
    chance = len(near) * 10.0**-printed.digits / (2 * near[-1]) if len(near) else 0.0
    return (
        f"of {len(values):,} combinations one may fit by chance"
        if chance * max(n_causes, 1) ** 2 > LIKELY_CHANCE
        else None
    )


def _differ(value: float, other: float) -> bool:
    return not (abs(value - other) <= SAME or (np.isnan(value) and np.isnan(other)))


def _key(chosen: Combination) -> Key:
    rules, causes = chosen
    return frozenset((*rules, *(cause.text for cause in causes)))


SPARE = 3  # fixes that are measured for each that is shown: estimates skip caps and what is ignored
LEAST_MEASURED = 100  # fixes, so that small data is searched whole
SMALL_GAIN = 0.005  # below, no single box is worth beginning with
N_CLASSES = 10  # classes that are measured as a whole
PRICED = 1_000  # fixes that are matched at once, each on a copy of its image
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
    trials = _Trials(errors, np.where(counted, np.nan_to_num(base), 0.0), counted)
    aims, findable = aimed_labels(errors), findable_misses(costs)
    found = candidates(errors, n, counted)
    key = (errors.kind[found] * np.int64(errors.n_labels) + errors.label[found]) * (errors.n_labels + 1) + aims[found]
    # Within a queue, of one kind, class and aim, the first gives most: only that has to be priced until it is taken.
    queues = np.argsort(key, kind="stable")
    starts, sizes = lengths_of_runs(starts_of_runs(key[queues]))
    heap = [
        (-gain, int(queues[start]), start, start + size)
        for gain, start, size in zip(trials.gains(found[queues[starts]]), starts.tolist(), sizes.tolist(), strict=True)
    ]
    heapify(heap)
    priced: list[Fix] = []
    while heap and len(priced) < n:
        cost, place, first, end = heappop(heap)
        priced.append(wrong_fix(costs, int(found[place]), -cost))
        if first + 1 < end:
            place = int(queues[first + 1])
            heappush(heap, (-trials.gains(found[[place]])[0], place, first + 1, end))
    gains = trials.gains_of_misses()
    for k in np.flatnonzero(counted).tolist():
        # One more box of the class found, before all others: every missed box of a class gives the same.
        boxes = np.flatnonzero(findable & (errors.gt_label == k))[:n]
        priced += [missed_fix(costs, int(box), gains[k]) for box in boxes]
    return _most(priced, n)


class _Trials:
    """What single repairs give the mean average precision of classes at one threshold, each alone."""

    def __init__(self, errors: Errors, before: FloatArray, counted: BoolArray) -> None:
        self._errors = errors
        self._before = before  # precision of each class (K,), 0 where it does not count
        self._counted = counted
        self._share = max(int(counted.sum()), 1)
        self._positives = errors.boxes(errors.counted)
        self._classes: dict[int, tuple[IntArray, IntArray]] = {}

    def gains(self, detections: IntArray) -> list[float]:
        """Return what repairing each detection gives, a bounded number of curves at a time."""
        gains: list[float] = []
        for first in range(0, len(detections), PRICED):
            trials = [[*self._trials(row)] for row in detections[first : first + PRICED].tolist()]
            after = iter(self._precisions([trial for some in trials for trial in some]))
            for some in trials:
                # What leaves a class changes that class, and where it goes another.
                change = 0.0
                for k, _, _ in some:
                    change += next(after) - float(self._before[k])
                gains.append(change / self._share)
        return gains

    def gains_of_misses(self) -> list[float]:
        """Return what one more object found before all others gives each class, (K,); 0 where it does not count."""
        classes = np.flatnonzero(self._counted).tolist()
        trials = [(k, np.append(1, self._class(k)[1] + 2), len(self._class(k)[0]) + 1) for k in classes]
        gains = [0.0] * len(self._counted)
        for k, after in zip(classes, self._precisions(trials), strict=True):
            gains[k] = (after - float(self._before[k])) / self._share
        return gains

    def _precisions(self, trials: Sequence[Trial]) -> list[float]:
        if not trials:
            return []
        classes, before, n = zip(*trials, strict=True)
        positives = self._positives[list(classes)]
        return list(precisions_at_hits(self._errors.protocol, positives, before, np.array(n)).tolist())

    def _class(self, k: int) -> tuple[IntArray, IntArray]:
        """Return the detections of a class that count, and which of them are hits."""
        if k not in self._classes:
            rows = self._errors.rows_of(k)
            self._classes[k] = rows, np.flatnonzero(self._errors.hit[rows])
        return self._classes[k]

    def _trials(self, detection: int) -> Iterator[Trial]:
        """Yield the classes that a repair changes; one that does not count changes nothing."""
        errors = self._errors
        own, target = int(errors.label[detection]), int(errors.target[detection])
        other = own if target == NO_BOX else int(errors.gt_label[target])
        rows, hits = self._class(own)
        at = int(np.searchsorted(rows, detection))
        if target != NO_BOX and other == own:
            place = int(np.searchsorted(hits, at))
            yield own, np.insert(hits, place, at) + 1, len(rows)
            return
        if self._counted[own]:
            yield own, hits + 1 - (hits > at), len(rows) - 1
        if other != own and self._counted[other]:
            rows, hits = self._class(other)
            score, tie = errors.score[rows], errors.tie[rows]
            own_score, own_tie = errors.score[detection], errors.tie[detection]
            # Among equal scores it stands where its image or its place in the file puts it.
            at = int(np.count_nonzero((score > own_score) | ((score == own_score) & (tie < own_tie))))
            place = int(np.searchsorted(hits, at))
            yield other, np.concatenate((hits[:place] + 1, [at + 1], hits[place:] + 2)), len(rows) + 1


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

    @property
    def is_missed(self) -> BoolArray:
        """Which add an object that is missed, (n,)."""
        return np.asarray(self.kind == len(TYPES))

    @property
    def is_moved(self) -> BoolArray:
        """Which move a detection to its object, (n,)."""
        return np.asarray((self.target != NO_BOX) & (self.kind == LOCALISATION))

    @property
    def is_named(self) -> BoolArray:
        """Which give a detection the class of its object, (n,)."""
        return np.asarray((self.target != NO_BOX) & (self.kind == CLASSIFICATION))

    @property
    def is_removed(self) -> BoolArray:
        """Which remove a detection, (n,)."""
        return ~(self.is_missed | self.is_moved | self.is_named)

    def apply(self, pred: BoxTable, gt: BoxTable, *, least: float = 0.0) -> BoxTable:
        """Return the predictions after them; what was missed is added with a score above all, and from `least`."""
        n = len(pred)
        score = np.zeros(n) if pred.score is None else pred.score
        pred, missed, moved, named = replace(pred, score=score), self.is_missed, self.is_moved, self.is_named
        kept = np.ones(n, dtype=np.bool_)
        kept[self.row[self.is_removed]] = False
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


def _found_at(at: BoolArray, values: Any, rows: IntArray) -> Any:
    """Return the values of rows where `at`, else 0: other rows are of another table, and this one may be empty."""
    found = np.zeros(len(rows), dtype=values.dtype)
    found[at] = values[rows[at]]
    return found


def candidates(errors: Errors, n: int, counted: BoolArray) -> IntArray:
    """Return the false positives with the highest scores by class, type and target, if a class that counts gains.

    `counted` marks these classes, shape (K,).
    """
    aims = aimed_labels(errors)
    concerned = counted[errors.label] | ((aims != NO_BOX) & counted[aims])
    found = []
    for kind in range(len(TYPES)):
        of_kind = np.flatnonzero((errors.kind == kind) & concerned)  # in class order: scores descend
        # Of errors of one class, type and target class, those with lower scores give no more: `n` of them are enough.
        key = errors.label[of_kind] * (errors.n_labels + 1) + aims[of_kind] + 1
        found.append(of_kind[group_ranks(key) < n])
    return np.concatenate(found)


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
    """Prices repairs by an AP or AR: what they touch is matched again.

    Matching never looks beyond an image, nor, without caps over all classes, beyond its class: the rows of all others
    stay as they are.
    """

    def __init__(self, aligned: Alignment, metrics: DetectionMetrics, ref: MetricRef) -> None:
        label = metrics.axes.label(ref)
        self._ref = ref
        self._aligned = aligned
        self._metrics = metrics
        self._ranking = metrics.curves.ranking
        thresholds = np.arange(len(metrics.protocol.iou_thresholds))[metrics.axes.thresholds(ref)].tolist()
        self._thresholds = thresholds
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

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        """What objects and predictions are matched within, (m,) and (n,): an image and class, or an image."""
        rules, sides = self._rules, (self._aligned.gt_table, self._aligned.pred_table)
        if rules.max_dets_per == "image":
            return sides[0].image.astype(np.int64), sides[1].image.astype(np.int64)
        gt, pred = (labels_of(side, rules) * self._ranking.n_images + side.image for side in sides)
        return gt, pred

    @cached_property
    def _turn(self) -> IntArray:
        """Where each prediction stands among all of them by its score, (n,)."""
        pred = self._aligned.pred_table
        by_tie, turn = tie_order(pred, self._rules), np.empty(len(pred), dtype=np.int64)
        score = np.zeros(len(pred)) if pred.score is None else pred.score
        turn[by_tie[class_and_score_order(np.zeros(len(pred), np.int32), score[by_tie])]] = np.arange(len(pred))
        return turn

    @cached_property
    def _own_turn(self) -> IntArray:
        """Return `_turn` of the detections as they are ranked, (n,)."""
        return self._turn[self._metrics.table.row]

    @cached_property
    def _span(self) -> int:
        """How many turns there are, of predictions and what repairs may add."""
        return len(self._aligned.pred_table) + len(self._aligned.gt_table)

    @cached_property
    def _order(self) -> IntArray:
        """What detections are ranked by, ascending, (n,): class and turn."""
        return self._ranking.label * np.int64(self._span) + self._own_turn

    @cached_property
    def _places(self) -> IntArray:
        """Where each prediction is ranked, (n,); `NO_BOX` for those beyond the caps."""
        places = np.full(len(self._aligned.pred_table), NO_BOX, dtype=np.int64)
        places[self._metrics.table.row] = np.arange(len(self._metrics.table))
        return places

    @cached_property
    def _is_crowded(self) -> BoolArray:
        """Whether a cap may cut what each prediction is matched among, (n,): where one goes, others then come in.

        All objects may be added there.
        """
        caps, both = self._rules.max_dets, np.concatenate(self._keys)
        cap = self._ref.max_dets or (caps[-1] if caps else len(both))
        return are_among(self._keys[1], distinct(both[group_ranks(both) >= cap]))

    def value(self, repairs: Repairs) -> float:
        """Return the metric after repairs, as matching everything again would have it."""
        ranking = self._repaired(repairs)
        metrics = DetectionMetrics(Curves(ranking), self._metrics.class_names, self._metrics.image_names)
        return metrics.value(self._ref).value

    def _repaired(self, repairs: Repairs) -> Ranking:
        """Return the ranking after repairs, at the thresholds of the metric and over all sizes."""
        gt, pred, table, before = (
            self._aligned.gt_table,
            self._aligned.pred_table,
            self._metrics.table,
            self._ranking,
        )
        (gt_key, key), n = self._keys, len(pred)
        own, is_removed = ~repairs.is_missed, np.zeros(n, dtype=np.bool_)
        is_removed[repairs.row[repairs.is_removed]] = True
        # What could match nothing stays as it is, and so does what others match.
        is_known = self._is_crowded.copy()
        is_known[table.row[table.candidate]] = True
        is_known[repairs.row[own & ~repairs.is_removed]] = True
        touching = own & _found_at(own, is_known, repairs.row)
        named = repairs.target[repairs.is_named]
        touched = distinct(np.concatenate((key[repairs.row[touching]], gt_key[named], gt_key[repairs.row[~own]])))
        is_touched = is_known & are_among(key, touched)
        gt_rows, rows = np.flatnonzero(are_among(gt_key, touched)), np.flatnonzero(is_touched)
        inside = ~own | _found_at(own, is_touched, repairs.row)
        row, target = repairs.row[inside], repairs.target[inside]
        local = Repairs(
            repairs.kind[inside],
            np.where(own[inside], np.searchsorted(rows, row), np.searchsorted(gt_rows, row)),
            np.where(target == NO_BOX, NO_BOX, np.searchsorted(gt_rows, target)),
        )
        repaired = local.apply(pred.take(rows), gt.take(gt_rows), least=self._highest)
        again = match_boxes(gt.take(gt_rows), repaired, self._rules, n_images=before.n_images, n_labels=before.n_labels)
        changed = Ranking.of(again, before.n_images)

        # What is added has a score above all: it stands in front of the first of its class.
        n_added = int(repairs.is_missed.sum())
        added = repaired.take(np.arange(len(repaired) - n_added, len(repaired)))
        first = np.empty(n_added, dtype=np.int64)
        first[tie_order(added, self._rules)] = np.arange(-n_added, 0)
        left = np.delete(rows, local.row[local.is_removed])
        turn = np.concatenate((self._turn[left], first))[again.row]
        # Detections stay where they were while their class is the same; where they are gone from, nothing counts.
        place = np.concatenate((self._places[left], np.full(n_added, NO_BOX)))[again.row]
        is_new = np.append(before.label, NO_BOX)[place] != changed.label
        at = np.searchsorted(self._order, changed.label[is_new] * self._span + turn[is_new])
        shift = np.cumsum(np.bincount(at, minlength=len(before) + 1))
        place += shift[place]
        place[is_new] = at + np.arange(len(at))
        (chosen,) = np.nonzero(~(is_removed | is_touched)[table.row[before.candidate]])
        own_candidates = before.candidate[chosen]
        candidate = np.concatenate((own_candidates + shift[own_candidates], place[changed.candidate]))
        in_turn = np.argsort(candidate, kind="stable")
        sources = np.concatenate((chosen, len(before.candidate) + np.arange(len(changed.candidate))))[in_turn]

        def joined(name: str) -> Any:
            column = getattr(before, name)
            return np.insert(column, at, getattr(changed, name)[is_new]) if len(at) else column

        def outcomes(name: str) -> BoolArray:
            of_all = getattr(before, name)[ALL_SIZES, self._metrics.axes.thresholds(self._ref)]
            both = np.concatenate((of_all, getattr(changed, name)[ALL_SIZES]), axis=1)
            return both.take(sources, axis=1)[None]

        in_range = before.in_range[0] & ~(is_removed | is_touched)[table.row]
        in_range = np.insert(in_range, at, False)
        in_range[place] = changed.in_range[0]
        image, rank = joined("image"), np.insert(before.rank, at, 0)
        rank[place] = changed.rank
        return replace(
            before,
            protocol=self._rules,
            image=image,
            label=joined("label"),
            rank=rank,
            tie=image if self._rules.score_ties == "image" else joined("tie"),
            score=joined("score"),
            in_range=in_range[None],
            candidate=candidate[in_turn],
            hits=outcomes("hits"),
            counts=outcomes("counts"),
            gt_counts=before.gt_counts[:1],
            table=None,
        )

    def gains(self, fixes: Sequence[Fix]) -> list[float]:
        """Return what each fix alone adds to the mean over the classes that count.

        One matching is that of all: each fix has a copy of its image.
        """
        sides, repairs = (self._aligned.gt_table, self._aligned.pred_table), Repairs.of(fixes)
        missed = repairs.is_missed
        images = _found_at(missed, sides[0].image, repairs.row) + _found_at(~missed, sides[1].image, repairs.row)
        (gt_rows, gt_copy), (rows, copy) = (_rows_of_images(side.image, images) for side in sides)
        gt, pred = (
            freeze(replace(side.take(of_side), image=its_copy.astype(np.int32)))
            for side, of_side, its_copy in zip(sides, (gt_rows, rows), (gt_copy, copy), strict=True)
        )
        which = np.arange(len(fixes))

        def local(row: IntArray, of_side: IntArray, its_copy: IntArray) -> IntArray:
            n = int(of_side.max(initial=0)) + 1
            return np.searchsorted(its_copy * n + of_side, which * n + row)

        copied = Repairs(
            repairs.kind,
            np.where(missed, local(repairs.row, gt_rows, gt_copy), local(repairs.row, rows, copy)),
            np.where(repairs.target == NO_BOX, NO_BOX, local(repairs.target, gt_rows, gt_copy)),
        )
        repaired = copied.apply(pred, gt, least=self._highest)
        table = match_boxes(gt, repaired, self._rules, n_images=len(fixes), n_labels=self._ranking.n_labels)
        changed = Ranking.of(table, len(fixes))
        outcomes = self._outcomes_of(changed, range(len(self._rules.iou_thresholds)))
        first = np.full(int(missed.sum()), -1)
        turn = np.concatenate((self._turn[np.delete(rows, copied.row[copied.is_removed])], first))[table.row]
        gains = []
        for i, fix in enumerate(fixes):
            own = sides[0] if fix.kind == MISSED else sides[1]
            # Names of classes need not be unique, rows are.
            touched = {int(own.label[fix.row])} | ({int(sides[0].label[fix.target])} if fix.target != NO_BOX else set())
            total = 0.0
            # All boxes are of one class under a protocol that knows no classes.
            for k in [0] if self._rules.class_agnostic else sorted(touched):
                if self._counted[k]:
                    kept = self._rows_of(k)
                    kept = kept[self._ranking.image[kept] != images[i]]
                    (again,) = np.nonzero((changed.label == k) & (changed.image == i))
                    columns = zip(
                        (self._own_turn[kept], *self._outcomes[..., kept]),
                        (turn[again], *outcomes[..., again]),
                        strict=True,
                    )
                    total += self._mean(k, *(np.concatenate(both, axis=-1) for both in columns)) - self._mean_before(k)
            gains.append(total / max(int(self._counted.sum()), 1))
        return gains

    def _rows_of(self, k: int) -> IntArray:
        bounds = np.array([k, k + 1], dtype=self._ranking.label.dtype)
        return np.arange(*np.searchsorted(self._ranking.label, bounds).tolist())

    def _outcomes_of(self, ranking: Ranking, thresholds: Iterable[int]) -> BoolArray:
        """Return which detections are hits and which count within the cap of the metric, shape (2, T, n)."""
        hits, counts = zip(*map(ranking.outcomes, thresholds), strict=True)
        cap = self._ref.max_dets
        # A cap below the largest changes no match: better detections chose first.
        within = np.ones(len(ranking), dtype=np.bool_) if cap is None else ranking.rank < cap
        return np.asarray(np.stack((hits, counts)) & within)

    def _mean_before(self, k: int) -> float:
        if k not in self._before:
            rows = self._rows_of(k)
            self._before[k] = self._mean(k, self._own_turn[rows], *self._outcomes[..., rows])
        return self._before[k]

    def _mean(self, k: int, turn: IntArray, hits: BoolArray, counts: BoolArray) -> float:
        """Return the metric of one class, the mean over the thresholds, of detections that stand by `turn` (n,)."""
        if self._ref.name == AVERAGE_RECALL:
            return float(np.mean(hits.sum(axis=1) / self._positives[k]))
        order = np.argsort(turn, kind="stable")
        hits, counts = hits.take(order, axis=1), counts.take(order, axis=1)
        # What counts up to each hit, at one threshold after the other.
        total, n_hits = np.cumsum(counts, axis=1, dtype=np.int64), np.count_nonzero(hits, axis=1)
        before = np.split(total[hits], np.cumsum(n_hits)[:-1])
        positives = np.full(len(hits), self._positives[k])
        found = precisions_at_hits(self._rules, positives, before, np.count_nonzero(counts, axis=1))
        return float(found.mean())


def _rows_of_images(image: RowArray, images: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of images, one after the other, and which of these each is of; one may be there twice."""
    order = stable_order(image)
    start, stop = (np.searchsorted(image[order], images, side) for side in ("left", "right"))
    sizes = stop - start
    place = np.arange(int(sizes.sum())) + np.repeat(start - (np.cumsum(sizes) - sizes), sizes)
    return order[place], np.repeat(np.arange(len(images)), sizes)


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
    wrong = candidates(errors, n, counted)
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

    # What changes is enough where a metric is a mean of curves over all boxes, each of one matching.
    is_plain = ref.subset is None and not rules.class_rules and rules.interpolation not in (SLOTS, "scores")
    is_plain &= rules.assignment != EVERY  # by which a detection may be ranked more than once
    repricing = Repricing(sides.aligned, metrics, ref) if ref.name in AVERAGES and is_plain else None
    fixed_value = partial(_fixed_value, sides, rules, ref) if repricing is None else repricing.value

    def gain(repairs: Repairs) -> float:
        return fixed_value(repairs) - value.value

    # Named by one threshold, the cheap way; what each gives is measured.
    if ref.name in AVERAGES:
        if repricing is None:
            priced = (replace(fix, gain=gain(Repairs.of([fix]))) for fix in tracked(named, "measuring"))
        else:
            parts = [named[first : first + PRICED] for first in range(0, len(named), PRICED)]
            priced = (
                replace(fix, gain=one)
                for some in tracked(parts, "measuring")
                for fix, one in zip(some, repricing.gains(some), strict=True)
            )
        fixes = _most([*priced], boxes)
    else:
        priced = (replace(fix, gain=gain(Repairs.of([fix]))) for fix in tracked(named, "measuring"))
        # Under a cap, what is added may take another's place, and give nothing.
        fixes = _most(tuple(islice((fix for fix in priced if fix.gain > 0), boxes)), boxes)
    fixed = fixed_value(Repairs.of(fixes)) if fixes else value.value
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


def _fixed_value(sides: Sides, protocol: Protocol, ref: MetricRef, repairs: Repairs) -> float:
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
    places = distinct(np.round(np.linspace(0, len(grid) - 1, N_POINTS)).astype(np.int64))
    return tuple(
        CurvePoint(
            recall=float(grid[i]),
            precision=float(defined[:, i].mean()),
            score=float(scores[0, i, 0]) if single and defined[0, i, 0] > 0 else math.nan,
        )
        for i in places
    )


def sides_again(result: EvaluationResult) -> Sides:
    """Return the sides that were matched, in the same rows and with the same fingerprints."""
    metrics = detection_metrics(result)
    if result.boxes is None or result.protocol.class_agnostic:
        raise UsageError(
            "explain needs the boxes of this evaluation and their classes, which its result does not have; "
            "pass ground truth and predictions with the same options"
        )
    units = "px" if metrics.area_known else "norm"

    def side(role: str, summary: InputSummary, boxes: BoxTable) -> Dataset:
        images, classes = tuple(metrics.image_names), metrics.class_names
        return Dataset(
            path=summary.path,
            format=summary.format,
            role=role,
            # Rows are the keys: names need not be unique.
            images=ImageTable(tuple(range(len(images))), images, unknown_sizes(len(images)), listed=True),
            labels=LabelMap(tuple(range(len(classes))), classes, named=False),
            boxes=boxes,
            units=units,
            reading=Reading("xywh", units, named=("box", "units")),
        )

    gt, pred = (
        side(role, summary, boxes)
        for role, summary, boxes in zip(("gt", "pred"), (result.gt, result.pred), result.boxes, strict=True)
    )
    aligned = replace(
        align(gt, pred, SideOptions(match_images="id")), correspondence=result.correspondence, findings=()
    )
    hasher = RowHasher.of(aligned.image_names, aligned.class_names)
    fingerprints = result.gt.fingerprint, result.pred.fingerprint
    prints = Prints((hasher(aligned.gt_table), hasher(aligned.pred_table)), fingerprints)
    # What was found is part of the result; the ground truth's findings come first among those of the sides.
    found = replace(gt, findings=result.findings)
    return Sides(found, pred, aligned, _selection(result), lambda: prints, judged_by=result.protocol)


def _selection(result: EvaluationResult) -> tuple[str, ...]:
    """Return what was chosen of the data: the fields of the signature that are neither rules, inputs nor additions."""
    rules = signature(result.protocol, selection=(), gt="", pred="", version="").split("|")
    given = without_fields(result.signature, (*BESIDE_METRICS, *ORDERS, "images", "gt", "pred", "v")).split("|")
    return tuple(part for part in given if part not in rules)
