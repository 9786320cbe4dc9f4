"""Results compared with the first of them: the same rules and ground truth, then differences and what is chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from string import ascii_uppercase
from typing import Any
from typing import Protocol as TypingProtocol

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.document import MetricValue, to_document
from jaccard_eval.data.metricref import SEGMENT_METRICS, MetricRef
from jaccard_eval.data.result import EvaluationResult, PairedDelta, Resamples
from jaccard_eval.data.signature import BESIDE_METRICS, ORDERS, signature_fields, without_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap import REPEATS, Run, paired_deltas
from jaccard_eval.features.bootstrap.intervals import count_units, remarks, resample_alike, slices_choice, warn_of_few
from jaccard_eval.features.compare import (
    BoxState,
    Change,
    ChangeKind,
    ComparisonResult,
    Contender,
    Delta,
    SliceDeltas,
    Verdict,
    Versus,
)
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import Blocks, IntArray, stable_order, starts_of_runs
from jaccard_eval.matching.matchtable import ALL_SIZES, NO_PAIR, MatchTable, candidate_pairs, least_overlaps
from jaccard_eval.metrics.detection import (
    DetectionMetrics,
    Divisible,
    detection_metrics,
    measure_slices,
    part_of,
    slice_refs,
)
from jaccard_eval.options import BEST_F1, Bootstrap, Slice
from jaccard_eval.progress import staged, tracked
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


# Of a signature: each of the predictions has its own.
PER_RUN_FIELDS = ("pred", *ORDERS, "class_map", "v", *BESIDE_METRICS)
AUTO = "auto"  # intervals where they take little time
# Resamples of "auto" by the work of one: predictions x (images + 40 x classes), each slice counting as much again. Both
# limits are about 3 s, as measured: 1,000 resamples up to the first on one processor (1.7 s of 12 images and 4 classes,
# 3.0 s of 300 images and 5 classes), 200 up to the second on two (1.8 s of 1,000 images, 80 classes, 4.6 s of 5,000).
AUTO_RESAMPLES = {1000: 1_000, 200: 17_000}
CLASS_WORK = 40  # images that take as long as a class


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How predictions are compared; what is reported of boxes does not depend on slices and resamples.

    Parameters
    ----------
    score : float or "best-f1"
        Detections with at least this score are compared; by default, those of each that give it the best F1.
    box_iou : float, optional
        IoU threshold of the protocol from which a detection finds a box; 0.5 where it is one of them, else the lowest.
    moved_iou : float
        Least change of IoU that is reported as a move.
    slices : sequence of Slice
        Parts of the images to compare as well.
    bootstrap : Bootstrap, int or "auto", optional
        How to resample the images for intervals of the differences, or how often. "auto" takes about 3 s at most: 1,000
        resamples where predictions x (images + 40 x classes) is at most 1,000, each slice counting again, 200 up
        to 17,000, none above. None or 0: none.

    Examples
    --------
    >>> from jaccard_eval import Bootstrap, CompareOptions
    >>> CompareOptions(score=0.3, bootstrap=Bootstrap(n_resamples=200)).moved_iou
    0.05
    """

    score: float | str = BEST_F1
    box_iou: float | None = None
    moved_iou: float = MOVED_IOU
    slices: Sequence[Slice] = ()
    bootstrap: Bootstrap | int | str | None = AUTO

    def __post_init__(self) -> None:
        if isinstance(self.bootstrap, str) and self.bootstrap != AUTO:
            raise UsageError(f"bootstrap must be a number of resamples or {AUTO!r}, got {quoted_value(self.bootstrap)}")
        if self.box_iou is not None and not 0 < self.box_iou <= 1:
            raise UsageError(f"box_iou must be above 0 and at most 1, got {self.box_iou}")
        if not 0 <= self.moved_iou <= 1:
            raise UsageError(f"moved_iou must be between 0 and 1, got {self.moved_iou}")

    def chosen(self, level: float) -> tuple[str, ...]:
        """Return their part of a signature; `level` is the IoU threshold that was taken."""
        score = self.score if isinstance(self.score, str) else repr(float(self.score))
        slices = [slices_choice(self.slices)] if self.slices else []
        return f"box_iou={float(level)!r}", f"moved_iou={float(self.moved_iou)!r}", f"box_score={score}", *slices


def compare_results(
    results: Sequence[EvaluationResult],
    options: CompareOptions,
    *,
    version: str,
    run: Run = map,
    names: Mapping[str, str] | None = None,
) -> ComparisonResult:
    """Compare results with the first of them; `names` by letter stand in place of A, B, C, ..."""
    require_two(len(results))
    called = side_names(len(results), names or {})
    baseline, *others = results
    _require_same_rules(baseline, others)
    threshold = box_threshold(detection_metrics(baseline), options.box_iou)
    first, *rest = (
        contender(result, threshold, options.score, name) for result, name in zip(results, called, strict=True)
    )
    level = baseline.protocol.iou_thresholds[threshold]
    beside = [
        versus(baseline, other, (first, name), threshold=threshold, moved_iou=options.moved_iou, slices=options.slices)
        for other, name in zip(others, rest, strict=True)
    ]
    findings = [finding for result in results for finding in result.findings]
    drawn, settings = None, options.bootstrap
    is_auto = settings == AUTO
    if is_auto:
        settings, doubts = _affordable(results, 1 + len(options.slices))
        findings += doubts
        if settings == Bootstrap():
            run = map  # of arrays this small, threads would wait for each other more than they work
    if isinstance(settings, int):
        settings = Bootstrap(n_resamples=settings) if settings else None
    if isinstance(settings, Bootstrap):
        beside, drawn, doubts = with_noise(
            beside,
            [detection_metrics(result) for result in results],
            settings,
            path=baseline.pred.path,
            slices=options.slices,
            refs=slice_refs(baseline.protocol),
            run=run,
        )
        # Nobody asked for these intervals: --strict must not refuse what makes them doubtful.
        findings += [replace(finding, severity=Severity.NOTE) if is_auto else finding for finding in doubts]
    against = ",".join(name.fingerprint for name in rest)
    fields = [signature_fields(result.signature) for result in others]
    orders = ["+".join(given[name] for name in ORDERS if name in given) for given in fields]
    noise = [f"against_ties={','.join(orders)}"] if any(orders) else []
    # What the baseline was asked besides its metrics does not belong to a comparison.
    rules = without_fields(baseline.signature, BESIDE_METRICS)
    noise += [] if drawn is None else [drawn.choice]
    return ComparisonResult(
        version=version,
        signature="|".join([rules, f"against={against}", *options.chosen(level), *noise]),
        protocol=baseline.protocol.name,
        gt=baseline.gt.path,
        baseline=first,
        box_iou=level,
        moved_iou=options.moved_iou,
        others=tuple(beside),
        findings=tuple(dict.fromkeys(findings)),  # those of the ground truth come with every result
        bootstrap=drawn,
        options={
            "protocol": to_document(baseline.protocol),
            "predictions": [dict(result.options) for result in results],
            "compared": to_document(replace(options, bootstrap=AUTO if is_auto else settings)),
        },
        results=tuple(results),
    )


def side_names(n: int, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the sides are called: A, B, C, ..., and numbers where letters end, unless `names` has another."""
    numbers: Iterator[str] = map(str, count(len(ascii_uppercase) + 1))
    letters = list(islice(chain(ascii_uppercase, numbers), n))
    for letter, name in names.items():
        if letter not in letters:
            raise UsageError(f"cannot name side {quoted_value(letter)}; the sides are {', '.join(letters)}")
        if not name.strip():
            raise UsageError(f"the name of side {letter} is empty")
    called = [names.get(letter, letter).strip() for letter in letters]
    for i, name in enumerate(called):
        if name in called[:i]:
            first = letters[called.index(name)]
            raise UsageError(f"sides {first} and {letters[i]} have the same name {quoted_value(name)}")
    return tuple(called)


def _affordable(results: Sequence[EvaluationResult], n_parts: int) -> tuple[Bootstrap | None, tuple[Finding, ...]]:
    """Return the default resamples, or None and a note where they cannot be drawn or would take long."""
    findings = FindingLog()
    runs = [detection_metrics(result) for result in results]
    images, classes = runs[0].image_names, len(runs[0].class_names)
    fix: Fix | None = None
    settings = quick_settings(n_parts * work_of(len(runs), runs[0]))
    if any(set(metrics.image_names) != set(images) for metrics in runs[1:]):
        reason = "the predictions are for different images"
    elif len(images) < 2:
        reason = "there are fewer than 2 images to draw from"
    elif settings is None:
        reason = f"{len(images):,} images and {classes:,} classes take a while"
        fix = Fix.missing("Add them with {bootstrap}.", bootstrap=str(Bootstrap().n_resamples))
    else:
        return settings, ()
    findings.note("bootstrap-skipped", Where(results[0].pred.path), f"no confidence intervals: {reason}", fix=fix)
    return None, findings.findings()


def work_of(n_runs: int, metrics: DetectionMetrics) -> int:
    """Return how much one resample of some runs takes, each with the images and classes of this one."""
    return n_runs * (len(metrics.image_names) + CLASS_WORK * len(metrics.class_names))


def quick_settings(work: int) -> Bootstrap | None:
    """Return the default resamples of so much work, or None where they would take long."""
    return next((Bootstrap(n_resamples=n) for n, most in AUTO_RESAMPLES.items() if work <= most), None)


def with_noise(
    others: Sequence[Versus],
    runs: Sequence[Any],
    settings: Bootstrap,
    *,
    path: str,
    slices: Sequence[Slice],
    refs: Sequence[MetricRef],
    run: Run,
) -> tuple[list[Versus], Resamples, tuple[Finding, ...]]:
    """Give every difference its interval; return the resamples of the baseline too, and what makes them doubtful.

    `runs` are the matches of all, the baseline's from `path` first; `refs` are measured on slices.
    """
    findings = FindingLog()
    n_drawn, unit = count_units(runs[0].image_names, settings), "image" if settings.group_by is None else "group"
    if n_drawn < 2:
        raise UsageError(f"the bootstrap needs at least 2 {unit}s, got {n_drawn}")
    # Differences are tested on fewer images than intervals of one run are made of.
    draw = partial(resample_alike, settings=settings, run=run, method=None, least=2)
    # All predictions are resampled on the same images: what is hard for all of them cancels out in a difference.
    base, *rest = draw(runs)
    deltas = [
        with_intervals(beside.deltas, paired_deltas(base, drawn)) for beside, drawn in zip(others, rest, strict=True)
    ]
    parts = [list(beside.slices) for beside in others]
    n_units = []
    for i, images in enumerate(tracked(slices, "resampling slices")):
        restricted = [part_of(metrics, images) for metrics in runs]
        n_units.append(count_units(restricted[0].image_names, settings))
        # A slice draws from its own images.
        base_part, *rest_parts = draw(restricted, refs=refs)
        for of_slices, drawn in zip(parts, rest_parts, strict=True):
            weighed = with_intervals(of_slices[i].deltas, paired_deltas(base_part, drawn))
            of_slices[i] = replace(of_slices[i], deltas=weighed)
    warn_of_few([images.name for images in slices], n_units, findings, path)
    weighed_others = [
        replace(beside, deltas=of_all, slices=tuple(of_slices), verdict=verdict(of_all[0], base))
        for beside, of_all, of_slices in zip(others, deltas, parts, strict=True)
    ]
    return weighed_others, base, (*remarks(base, runs[0].image_names, path), *findings.findings())


def require_two(count: int) -> None:
    """Raise a UsageError unless there is something to compare."""
    if count < 2:
        raise UsageError(f"a comparison needs two or more predictions, got {count}")


def _require_same_rules(baseline: EvaluationResult, others: Sequence[EvaluationResult]) -> None:
    """Raise a DataError unless all results rest on one ground truth and on the same rules."""
    findings = FindingLog()
    class_names = detection_metrics(baseline).class_names
    again = "Compare results with the same ground truth and rules. Evaluate again where they differ."
    protocol = signature_fields(baseline.signature).get("protocol", "")
    for other in others:
        rules = dict(differing_rules(baseline.signature, other.signature))
        for name, difference in rules.items():
            if "protocol" in rules and name not in ("protocol", "gt"):
                continue  # it follows from the protocol
            fix = Fix.missing(f"{again} {{protocol}} gives these the rules of the baseline.", protocol=protocol)
            findings.error(
                "comparison-unequal",
                Where(other.pred.path, field=name),
                f"{difference} for the baseline {baseline.pred.path}",
                fix=fix if name == "protocol" else again,
            )
        # The fingerprint knows no order. Boxes are compared by their row, classes by their place.
        what = "classes" if class_names != detection_metrics(other).class_names else "boxes"
        if what == "classes" or not _has_equal_rows(baseline, other):
            findings.error(
                "comparison-unequal",
                Where(other.pred.path, field=what),
                f"the {what} of the ground truth, or their order, differ from those of the baseline"
                f" {baseline.pred.path}",
                fix="Evaluate both against the same ground-truth file.",
            )
    findings.raise_errors()


def differing_rules(baseline: str, other: str) -> Iterator[tuple[str, str]]:
    """Yield what two signatures differ by that are to be compared: the field, and what it is in the other and here."""
    base_fields, other_fields = signature_fields(baseline), signature_fields(other)
    for name in dict.fromkeys([*base_fields, *other_fields]):
        if name not in PER_RUN_FIELDS and base_fields.get(name) != other_fields.get(name):
            what = "the fingerprint of the ground truth" if name == "gt" else f"the rule {name}"
            here, there = (quoted_value(fields.get(name, "not set")) for fields in (base_fields, other_fields))
            yield name, f"{what} is {there}, and {here}"


def _has_equal_rows(baseline: EvaluationResult, other: EvaluationResult) -> bool:
    """Whether the ground truth is the same row by row; images may be in any order."""
    if baseline.boxes is None or other.boxes is None:
        return False
    base_metrics, other_metrics = detection_metrics(baseline), detection_metrics(other)
    (before, _), (after, _) = baseline.boxes, other.boxes
    row = {name: i for i, name in enumerate(base_metrics.image_names)}
    place = np.array([row.get(name, -1) for name in other_metrics.image_names], dtype=np.int64)
    pairs: list[tuple[Any, Any]] = [
        (base_metrics.table.gt_label, other_metrics.table.gt_label),
        (before.xywh, after.xywh),
        (before.image, place[after.image]),
    ]
    if before.shapes is not None and after.shapes is not None:
        pairs.append((before.shapes.hashes(), after.shapes.hashes()))
    return all(np.array_equal(first, second) for first, second in pairs)
