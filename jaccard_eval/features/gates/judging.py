"""Judging: what answers the references of rules, the verdicts, and what chance means for them. Nothing is shown."""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any
from typing import Protocol as TypingProtocol

import numpy as np

from jaccard_eval.data.document import PANOPTIC, PIXELS, MetricValue
from jaccard_eval.data.from_document import described_type, made
from jaccard_eval.data.metricref import (
    AT_POINTS,
    AVERAGED,
    BOX_METRICS,
    EXTERNAL,
    FINDING_METRICS,
    MAP_CLASS_METRICS,
    MAP_METRICS,
    METRICS,
    SEGMENT_CLASS_METRICS,
    SEGMENT_METRICS,
    MetricRef,
    canonical,
    qualified,
    split_ref,
    suggest_metric,
)
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import (
    NOT_VALUES,
    TARGET,
    EvaluationResult,
    GateVerdict,
    Measured,
    PairedDelta,
    Resamples,
    Spread,
    Status,
    count_findings,
)
from jaccard_eval.data.signature import BESIDE_METRICS, ORDERS, signature_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap import estimates, non_inferior, paired_deltas, significant_drop
from jaccard_eval.features.gates import AGAINST_BASELINE, DROPS, NON_INFERIOR, Gates, Limit, Rule, asked_of, refuse
from jaccard_eval.findings import Finding, FindingLog, Where, parse_finding
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import (
    WIDEST,
    Axes,
    DetectionMetrics,
    Divisible,
    TieBounds,
    chosen_images,
    mean_accuracy,
    part_of,
    slice_digest,
    weighted_f1,
)
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.text import did_you_mean, printable, quoted_value

KINDS = (EvaluationResult.kind, PIXELS, PANOPTIC)
# Of the kinds that list their values: what they are of, the metrics over all classes, and those of a class.
LISTED = {
    PIXELS: ("label maps", MAP_METRICS, MAP_CLASS_METRICS),
    PANOPTIC: ("segments", SEGMENT_METRICS, SEGMENT_CLASS_METRICS),
}

Values = dict[Hashable, MetricValue]


class Answers(TypingProtocol):
    """A result that can be asked for the value of a metric reference."""

    @property
    def kind(self) -> str:
        """Kind of the result: "evaluation", "pixels" or "panoptic"."""

    @property
    def signature(self) -> str:
        """All that can change its numbers."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Its classes."""

    def value(self, ref: str) -> MetricValue:
        """Return the value of a reference."""

    def on(self, images: Slice) -> Answers:
        """Return the answers for some of the images; for the errors see `value`."""


class ListedResult(TypingProtocol):
    """A result that has the values that it lists and no others, such as a count of pixels."""

    @property
    def kind(self) -> str:
        """Kind of the result."""

    @property
    def signature(self) -> str:
        """All that can change its numbers."""

    @property
    def per_class(self) -> Sequence[Any]:
        """Rows of the classes, which have a name."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to be known of it."""

    def value(self, ref: MetricRef) -> MetricValue:
        """Return a value that is listed; a KeyError else."""


@dataclass(frozen=True, slots=True)
class ResultAnswers:
    """A result in memory: its match table answers anything, also of a slice; without one it has what it lists."""

    kind: str
    signature: str
    class_names: tuple[str, ...]
    source: Measured | ListedResult
    measured: Measured | None
    # Findings of the evaluation, which metrics count; None on a slice.
    counted: tuple[Finding, ...] | None = None

    def value(self, ref: str) -> MetricValue:
        """Measure a reference, or look it up."""
        parsed = parse_ref(ref, self.kind, self.class_names)
        if parsed.name in FINDING_METRICS and self.counted is not None:
            return count_findings(parsed, self.counted)
        return self.source.value(parsed)

    def on(self, images: Slice) -> ResultAnswers:
        """Evaluate some of the images alone."""
        if self.measured is None:
            raise _undivided(self.kind, images)
        part = self.measured.restrict(chosen_images(images, self.measured.image_names))
        return replace(self, source=part, measured=part, counted=None)


def _undivided(kind: str, images: Slice) -> UsageError:
    of = LISTED[kind][0]
    return UsageError(f"slice {quoted_value(images.name)}: {of} have no slices here. Evaluate these images separately")


def answers_of(result: EvaluationResult | ListedResult) -> ResultAnswers:
    """Return what answers for a result in memory."""
    names = tuple(row.name for row in result.per_class)
    # The matches of segments are kept as long as the program runs.
    measured = getattr(result, "measured", None)
    source = result.measured if isinstance(result, EvaluationResult) else result
    return ResultAnswers(result.kind, result.signature, names, source, measured, counted=result.findings)


def parse_ref(text: str, kind: str, class_names: Sequence[str]) -> MetricRef:
    """Return the reference that a text is to a result of a kind; of maps only what there is a value of."""
    if kind == EvaluationResult.kind:
        return MetricRef.parse(text)
    head, items = split_ref(text)
    of, overall, of_class = LISTED[kind]
    known = tuple(dict.fromkeys([*overall, *of_class, *FINDING_METRICS]))
    if head not in known:
        raise UsageError(
            f"unknown metric {quoted_value(text)} for {of}; choose from "
            f"{', '.join(known)}.{suggest_metric(head, known)}"
        )
    other = sorted(set(items) - {"class"})
    if other:
        raise UsageError(f"metric {quoted_value(text)}: {of} have no {' or '.join(other)}")
    if "class" not in items and head in (*overall, *FINDING_METRICS):
        return MetricRef(name=head)
    if "class" not in items or head not in of_class:
        fix = "covers all classes; remove class=" if "class" in items else f"needs a class, as in {head}[class=NAME]"
        raise UsageError(f"metric {quoted_value(text)}: {head} {fix}")
    name = str(items["class"])
    if name not in class_names:
        raise UsageError(
            f"metric {quoted_value(text)}: unknown class {quoted_value(name)}.{did_you_mean(name, class_names)}"
        )
    return MetricRef(name=head, class_name=name)


class SavedAnswers:
    """The summary, classes, operating points, slices and cells of the gates that a JSON document holds."""

    def __init__(self, document: Mapping[str, Any], path: str) -> None:
        self.path = path
        self.kind: str = document["kind"]
        self.signature: str = document["signature"]
        self.class_names = tuple(str(row["class"]) for row in document["per_class"])
        self._table: Answers | None = None
        self._axes = None
        if self.kind == EvaluationResult.kind:
            rules, score = made(Protocol, document["protocol"]), document["options"].get("score")
            self._axes = Axes(rules, self.class_names, score=score)
        summary = (
            _measured(self._parsed(name), value, document["support"][name], document["undefined"].get(name))
            for name, value in document["metrics"].items()
        )
        held = (*summary, *_VALUES[self.kind](document), *_finding_values(document))
        self._values: Values = {self._key(metric.ref): metric for metric in held}
        self._slices: dict[str, Values] = {}
        for gate in document["gates"]:
            of_slice = self._slices.setdefault(gate["slice_digest"], {})
            self._remember(gate["cells"], of_slice if gate["slice"] else self._values)
        for row in document.get("slices", ()):
            cells = (
                {"metric": name, "value": row[name], "n": n, "reason": "no detections" if n else "no ground truth"}
                for name, n in row["support"].items()
            )
            self._remember(cells, self._slices.setdefault(row["digest"], {}))

    def with_table(self, table: Answers) -> SavedAnswers:
        """Return the answers of the match table, and of the document what was measured elsewhere."""
        # Copies: the document is read once, and its values are shared.
        both = copy.copy(self)
        both.class_names, both._table = table.class_names, table
        return both

    def value(self, ref: str) -> MetricValue:
        """Look a reference up; see ``Answers.value`` for the errors."""
        # A match table has no findings of its own.
        own = ref.startswith(EXTERNAL) or split_ref(ref)[0] in FINDING_METRICS
        if self._table is not None and not own:
            return self._table.value(ref)
        value = self._values.get(self._key(self._parsed(ref)))
        if value is None:
            name = ref if ref.startswith(EXTERNAL) else canonical(ref)
            raise UsageError(f"{printable(self.path)} has no {printable(name)}. {self._remedy}")
        return value

    def on(self, images: Slice) -> Answers:
        """Return what the saved run and its gates measured on a slice."""
        if self._table is not None:
            return self._table.on(images)
        values = self._slices.get(slice_digest(images))
        if values is None:
            raise UsageError(f"{printable(self.path)} has no slice {quoted_value(images.name)}. {self._remedy}")
        part = copy.copy(self)
        part._values = values
        return part

    @property
    def _remedy(self) -> str:
        if self.kind == EvaluationResult.kind:
            return "Re-run evaluate with this rule, or use the saved run (.npz)."
        return f"Re-run {self.kind} with this rule."

    def _remember(self, cells: Iterable[Mapping[str, Any]], values: Values) -> None:
        """Add what was measured beyond the summary."""
        for cell in cells:
            metric = _measured(self._parsed(cell["metric"]), cell["value"], cell["n"], cell["reason"])
            # The summary and the classes come first; a cell repeats them at most.
            values.setdefault(self._key(metric.ref), metric)

    def _parsed(self, ref: str) -> MetricRef:
        """Read a reference; of what is measured elsewhere, the cells of the gates have the value."""
        return MetricRef(name=ref) if ref.startswith(EXTERNAL) else parse_ref(ref, self.kind, self.class_names)

    def _key(self, ref: MetricRef) -> Hashable:
        """Return what equals for references that mean the same under the protocol of the document."""
        if self._axes is None or ref.name not in METRICS:
            return ref
        ref, averaged = self._axes.resolved(ref), METRICS[ref.name].on in ("curves", "sweep")
        thresholds = self._axes.thresholds(ref) if averaged else [self._axes.single_threshold(ref)]
        # AP is AP50 where 0.5 is the one threshold; AR and AR100 are one number where the largest cap is 100.
        if isinstance(thresholds, list):
            threshold: int | None = thresholds[0]
        else:
            threshold = 0 if len(self._axes.protocol.iou_thresholds) == 1 else None
        # A frequency of classes stands where an area range does.
        area = self._axes.area(ref) if self._axes.classes(ref) is None else ref.area
        return ref.name, threshold, area, self._axes.cap(ref), ref.score, self._axes.label(ref)


class SavedValues:
    """The measured values of an evaluation that was read back from its document: those that this lists."""

    def __init__(self, answers: SavedAnswers) -> None:
        self._answers = answers
        self.image_names: Sequence[str] = ()

    def value(self, ref: MetricRef) -> MetricValue:
        """Look a reference up; a UsageError where the document does not have it."""
        return self._answers.value(str(ref))

    def class_values(self, ref: MetricRef) -> Sequence[MetricValue]:
        """Look a metric of each class up."""
        return [self.value(replace(ref, class_name=name)) for name in self._answers.class_names]

    def restrict(self, images: Sequence[int]) -> Measured:
        """Raise the error of all that needs a match table."""
        raise UsageError(f"{printable(self._answers.path)} has no match table. Use the saved run (.npz).")

    @property
    def curves(self) -> Any:
        """See `restrict`."""
        return self.restrict(())

    @property
    def matches(self) -> Mapping[str, Any]:
        """See `restrict`."""
        return self.restrict(()).matches

    @property
    def missed(self) -> Mapping[str, Any]:
        """See `restrict`."""
        return self.restrict(()).missed


def _box_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    """Yield the values of the classes and of the operating points."""
    for row in document["per_class"]:
        reason = "no detections" if row["gt"] else "no ground truth"
        for name in (name for name in row if name not in NOT_VALUES):
            yield _measured(replace(MetricRef.parse(name), class_name=row["class"]), row[name], row["gt"], reason)
    gt = {row["class"]: row["gt"] for row in reversed(document["per_class"])} | {None: 0}
    for text, value in document.get("errors", {}).get("metrics", {}).items():
        ref = MetricRef.parse(text)
        n = gt.get(ref.class_name, 0) if ref.class_name else sum(gt.values())
        yield _measured(replace(ref, iou=document["errors"]["iou"]), value, n, "see the analysis of errors")
    asked, n_images = document["options"].get("score"), int(signature_fields(document["signature"])["images"])
    for point in document["operating_points"]:
        n, named = point["tp"] + point["fn"], {name: point.get(name.lower()) for name in BOX_METRICS}
        named["FPPI"] = point["fp"] / n_images if n_images else None
        counts = point["tp"] + point["fp"] + point["fn"]
        named["accuracy"] = point["tp"] / counts if counts else None
        # At the score that was asked for, and where that was to be found, at the one that was.
        for score in {asked, point["score"]} - {None}:
            for name in (name for name in named if name in ("FPPI", "accuracy") or name.lower() in point):
                ref = MetricRef(name=name, iou=point["iou"], score=score, class_name=point["class"])
                support = point["tp"] + point["fp"] if name == "precision" else n
                yield _measured(ref, named[name], support, "no detections or no ground truth")
    # Points are listed at every threshold, so that those of a class also have the means over these.
    for class_name in dict.fromkeys(point["class"] for point in document["operating_points"]):
        points = [point for point in document["operating_points"] if point["class"] == class_name]
        f1 = [math.nan if point["f1"] is None else point["f1"] for point in points]
        value = weighted_f1([point["iou"] for point in points], f1)
        swept = mean_accuracy([(point["tp"], point["fp"], point["fn"]) for point in points])
        n = points[0]["tp"] + points[0]["fn"]
        for name, found in (("wF1", value), ("accuracy", swept)):
            ref = MetricRef(name=name, score=asked, class_name=class_name)
            yield _measured(ref, None if math.isnan(found) else found, n, "no detections or no ground truth")


def _finding_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    findings = tuple(map(parse_finding, document["warnings"]))
    return (count_findings(MetricRef(name=name), findings) for name in FINDING_METRICS)


def _map_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    for row in document["per_class"]:
        for name in MAP_CLASS_METRICS:
            ref = MetricRef(name=name, class_name=row["class"])
            yield _measured(ref, row[name], row["gt_pixels"], "neither predicted nor in the ground truth")


def _segment_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    for row in document["per_class"]:
        for name in SEGMENT_CLASS_METRICS:
            yield _measured(MetricRef(name=name, class_name=row["class"]), row[name], row["gt"], "no segments")


_VALUES = {EvaluationResult.kind: _box_values, PIXELS: _map_values, PANOPTIC: _segment_values}


def _measured(ref: MetricRef, value: float | None, n: int, reason: str | None) -> MetricValue:
    if value is None:
        return MetricValue(ref=ref, value=math.nan, n=int(n), reason=reason or "reason unknown")
    if not isinstance(value, int | float):
        raise UsageError(f"expected a number for {ref}, got {described_type(value)}")
    return MetricValue(ref=ref, value=float(value), n=int(n))


BROKEN = {"error": Status.FAIL, "warning": Status.WARN, "info": Status.INFO}
NO_BASELINE, OF_BASELINE = "no baseline", "the baseline is "  # how reasons of verdicts begin
WITHOUT_BASELINE = {"warn": Status.WARN, "pass": Status.SKIP}

IsBroken = Callable[[float], bool]


def broken_level(rule: Rule, limit: Limit, is_broken: IsBroken) -> tuple[Status, float] | None:
    """Return the status of the first level that is broken, and that level; None when none is."""
    for level, status in ((limit.error, BROKEN[rule.severity]), (limit.warn, Status.WARN)):
        if level is not None and is_broken(level):
            return (Status.INFO if rule.severity == "info" else status), level
    return None


def nearest_level(limit: Limit) -> float:
    """Return the level to report for a value that breaks none."""
    return next(level for level in (limit.error, limit.warn) if level is not None)


def undefined_status(gates: Gates, rule: Rule) -> Status:
    """Return what becomes of an undefined value."""
    policy = gates.missing_policy(rule)
    return {"error": BROKEN[rule.severity], "warn": Status.WARN, "pass": Status.SKIP}[policy]


def margin_of(check: str, level: float, value: float, baseline: float) -> float:
    """Return how far a value is on the right side of a limit, in units of the metric; negative when broken."""
    if check in ("min", "max"):
        return value - level if check == "min" else level - value
    allowed, change = allowed_change(check, level, baseline), value - baseline
    return allowed + change if check in DROPS else allowed - change


def allowed_change(check: str, level: float, baseline: float) -> float:
    """Return the change that a limit allows, in units of the metric."""
    return level * abs(baseline) if check.endswith("-relative") else level


def aggregated(rule: Rule, values: Sequence[float], epsilon: float) -> float:
    """Return the one value of some classes, one or more; the lowest where there is nothing to aggregate."""
    if rule.aggregate == "mean":
        return math.fsum(values) / len(values)
    if rule.aggregate == "median":
        return statistics.median(values)
    if rule.aggregate == "count-below":
        return float(sum(is_below(rule, value, epsilon) for value in values))
    return min(values)


def is_below(rule: Rule, value: float, epsilon: float) -> bool:
    """Whether an aggregate that counts low values counts this one."""
    # A value that misses the bound by a rounding error has reached it.
    return value < (rule.below or 0.0) - epsilon


def limit_of(rule: Rule, verdict: GateVerdict) -> Limit:
    """Return the limit of a rule that a verdict is about."""
    return next(limit for limit in rule.limits if limit.check == verdict.check)


def kept_refs(rule: Rule, verdict: GateVerdict) -> tuple[MetricRef, ...]:
    """Return the metrics that a value was made of; none where it is measured elsewhere, or nothing was compared."""
    if rule.is_external or verdict.status is Status.SKIP or math.isnan(verdict.margin):
        return ()
    kept = (cell for cell in verdict.cells if cell.n >= rule.min_support and not math.isnan(cell.value))
    return tuple(cell.ref for cell in kept)


# Of the signatures of run and baseline: the model, the tool, what else.
MAY_DIFFER = ("pred", *ORDERS, "v", *BESIDE_METRICS)
SHOWN_CLASSES = 3


def judge(
    gates: Gates,
    run: Answers,
    *,
    baseline: Answers | None = None,
    external: Mapping[str, float] | None = None,
) -> tuple[GateVerdict, ...]:
    """Judge a result by rules.

    Values are compared as they are, never rounded, and pass when they miss a limit by no more than ``gates.epsilon``.
    """
    if baseline is not None:
        require_comparable(run, baseline)
    bench = Bench(gates, run, baseline, external or {})
    verdicts: list[GateVerdict] = []
    problems = []
    # A metric that does not exist in one rule must not hide what is wrong with the next.
    for rule in gates.rules:
        try:
            verdicts += bench.judge(rule)
        except UsageError as error:
            problems.append(f"{rule.where}: {error}" if rule.where else f"rule {quoted_value(rule.id)}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return tuple(verdicts)


def require_comparable(run: Answers, baseline: Answers) -> None:
    """Raise a UsageError unless both results are of one kind, one protocol and one ground truth."""
    if run.kind != baseline.kind:
        raise UsageError(f"the baseline is of kind {baseline.kind}, the run of kind {run.kind}")
    now, before = signature_fields(run.signature), signature_fields(baseline.signature)
    differing = [name for name in {**before, **now} if name not in MAY_DIFFER and now.get(name) != before.get(name)]
    if differing:

        def setting_text(fields: Mapping[str, str], name: str) -> str:
            return quoted_value(fields[name]) if name in fields else "not set"

        changes = (f"{name} was {setting_text(before, name)}, now {setting_text(now, name)}" for name in differing)
        fix = Fix.missing("Update the baseline with {update_baseline}.", update_baseline=ON)
        if "protocol" in differing:  # as of a benchmark's own files, whose marks choose the rules
            text = "Evaluate with {protocol} for its rules, or update it with {update_baseline}."
            fix = Fix.missing(text, protocol=before["protocol"], update_baseline=ON)
        raise UsageError(f"cannot compare this run with the baseline: {'; '.join(changes)}.", fix=fix)


def matching_classes(patterns: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the classes that names and globs match, in the order of `known`."""
    found: set[str] = set()
    for pattern in patterns:
        # A name is taken as it is first: classes may be called [x] or a*b.
        matched = {pattern} & set(known) or {name for name in known if fnmatchcase(name, pattern)}
        if not matched:
            raise UsageError(f"no class matches {quoted_value(pattern)}.{did_you_mean(pattern, known)}")
        found |= matched
    return tuple(name for name in known if name in found)


@dataclass(frozen=True, slots=True)
class _Sample:
    """What one side has for one verdict: the cells, by class, and the value made of them; empty reason when defined."""

    cells: Mapping[str | None, MetricValue]
    value: float
    n: int
    reason: str = ""
    is_small: bool = False  # all cells are below the least support
    has_gaps: bool = False  # undefined classes were ignored, where that is allowed


@dataclass(frozen=True, slots=True)
class Bench:
    """Judges rules one by one; slices are evaluated once."""

    gates: Gates
    run: Answers
    baseline: Answers | None
    external: Mapping[str, float]
    # By name, and whether it is the run's: a slice is evaluated once, however many rules ask for it.
    slices: dict[tuple[str, bool], Answers] = field(default_factory=dict)

    def judge(self, rule: Rule) -> list[GateVerdict]:
        """Return the verdicts of one rule: each subject's, each limit's."""
        if self.baseline is None and rule.needs_baseline and self.gates.missing_baseline == "error":
            raise UsageError("no baseline to compare with")
        # Classes whose values become one; None means all classes together.
        subjects: list[tuple[str | None, ...]] = [(None,)]
        if rule.classes:
            names = matching_classes(rule.classes, self.run.class_names)
            subjects = [names] if rule.aggregate else [(name,) for name in names]
        verdicts = []
        for subject in subjects:
            run, kept = self._of_run(rule, subject)
            baseline = self._of_baseline(rule, kept)
            verdicts += [self._verdict(rule, limit, run, baseline) for limit in rule.limits]
        return verdicts

    def again(self, verdict: GateVerdict) -> GateVerdict:
        """Return a verdict of the one rule, judged again; without a baseline, by the value that it has of it."""
        (rule,) = self.gates.rules
        subject: tuple[str | None, ...] = (verdict.class_name,)
        if rule.aggregate:
            subject = matching_classes(rule.classes, self.run.class_names)
        run, kept = self._of_run(rule, subject)
        baseline = self._of_baseline(rule, kept)
        if self.baseline is None and kept and verdict.reason != NO_BASELINE:
            known = not math.isnan(verdict.baseline)
            if known or rule.needs_baseline:
                baseline = _Sample({}, verdict.baseline, 0, verdict.reason.removeprefix(OF_BASELINE))
        return self._verdict(rule, limit_of(rule, verdict), run, baseline)

    def _of_run(self, rule: Rule, subject: tuple[str | None, ...]) -> tuple[_Sample, tuple[str | None, ...]]:
        """Return what the run has, and the classes that rest on enough."""
        cells = {name: self._measure(rule, name) for name in subject}
        kept = tuple(name for name in subject if cells[name].n >= rule.min_support)
        return self._sample(rule, cells, kept), kept

    def _measure(self, rule: Rule, class_name: str | None) -> MetricValue:
        """Return a value of the run; what is measured elsewhere was handed in, or a saved result remembers it."""
        if not rule.is_external:
            return self._on_slice(self.run, rule).value(qualified(rule.reference, {"class": class_name}))
        ref = rule.metric.strip()
        name = ref.removeprefix(EXTERNAL)
        if name in self.external:
            value = self.external[name]
            reason = "no value was given" if math.isnan(value) else None
            return MetricValue(ref=MetricRef(name=ref), value=value, n=0, reason=reason)
        # A saved result was judged by its own rules before, and has the values of these.
        try:
            return self.run.value(ref)
        except UsageError:
            known = did_you_mean(name, self.external)
            fix = Fix.missing(f"Add {{metric:{name}=VALUE}}.{known}", metric=None)
            raise UsageError(f"no value for {quoted_value(ref)}.", fix=fix) from None

    def _on_slice(self, answers: Answers, rule: Rule) -> Answers:
        images = self.gates.slice_of(rule)
        if images is None:
            return answers
        key = (images.name, answers is self.run)
        if key not in self.slices:
            self.slices[key] = answers.on(images)
        return self.slices[key]

    def _of_baseline(self, rule: Rule, kept: tuple[str | None, ...]) -> _Sample | None:
        """Return what the baseline has; where no limit needs it, it may lack the number."""
        if self.baseline is None or not kept:
            return None
        try:
            answers = self._on_slice(self.baseline, rule)
            cells = {name: answers.value(qualified(rule.reference, {"class": name})) for name in kept}
        except UsageError:
            # An older baseline may not hold a number; a rule that only shows it next to the run's does without.
            if rule.needs_baseline:
                raise
            return None
        return self._sample(rule, cells, kept)

    def _sample(self, rule: Rule, cells: Mapping[str | None, MetricValue], kept: tuple[str | None, ...]) -> _Sample:
        """Make one value of the cells that are kept; undefined ones count unless the policy differs."""
        n = sum(cells[name].n for name in kept)
        if not kept:
            support = max((cell.n for cell in cells.values()), default=0)
            reason = f"support {support:,} is below min-support {rule.min_support:,}"
            return _Sample(cells, math.nan, support, reason, is_small=True)
        gaps = [name for name in kept if math.isnan(cells[name].value)]
        defined = [name for name in kept if name not in gaps]
        small = len(cells) - len(kept)
        notes = [f"{small:,} of {len(cells):,} classes skipped: support below {rule.min_support:,}"] if small else []
        if gaps and (not defined or self.gates.missing_policy(rule) == "error"):
            return _Sample(cells, math.nan, n, "; ".join([_undefined(gaps, cells), *notes]))
        notes = [f"ignored: {_undefined(gaps, cells)}", *notes] if gaps else notes
        value, remark = _aggregated(rule, {str(name): cells[name].value for name in defined}, self.gates.epsilon)
        return _Sample(cells, value, n, "; ".join([*remark, *notes]), has_gaps=bool(gaps))

    def _verdict(self, rule: Rule, limit: Limit, run: _Sample, baseline: _Sample | None) -> GateVerdict:
        base = math.nan if baseline is None else baseline.value
        status, level, reason = self._decide(rule, limit, run, baseline)
        images = self.gates.slice_of(rule)
        return GateVerdict(
            rule=rule.id,
            metric=_judged(rule, run),
            class_name=next(iter(run.cells)) if rule.classes and not rule.aggregate else None,
            check=limit.check,
            status=status,
            severity=rule.severity,
            value=run.value,
            limit=level,
            n=run.n,
            margin=margin_of(limit.check, level, run.value, base),
            baseline=base,
            delta=run.value - base,
            reason=reason,
            slice="" if images is None else images.name,
            slice_digest="" if images is None else slice_digest(images),
            cells=tuple(run.cells.values()),
            where=rule.where,
            significance=rule.significance if limit.check in DROPS else None,
            asked=asked_of(self.gates, rule),
        )

    def _decide(self, rule: Rule, limit: Limit, run: _Sample, baseline: _Sample | None) -> tuple[Status, float, str]:
        """Return the status, the level that decided it, and why."""
        nearest = nearest_level(limit)
        if run.is_small:
            return Status.SKIP, nearest, run.reason
        if limit.check in AGAINST_BASELINE and baseline is None:
            return WITHOUT_BASELINE[self.gates.missing_baseline], nearest, NO_BASELINE
        base = math.nan if baseline is None else baseline.value
        if math.isnan(run.value):
            return undefined_status(self.gates, rule), nearest, run.reason
        if limit.check in AGAINST_BASELINE and baseline is not None and math.isnan(base):
            return undefined_status(self.gates, rule), nearest, f"{OF_BASELINE}{baseline.reason}"
        margin = partial(margin_of, limit.check, value=run.value, baseline=base)
        # Not "< -epsilon": a margin that is no number breaks the limit.
        broken = broken_level(rule, limit, lambda level: not margin(level) >= -self.gates.epsilon)
        if broken is not None:
            return (*broken, run.reason)
        # A class that was ignored could have been the worst: that is worth a warning where one is asked for.
        passed = Status.WARN if run.has_gaps and self.gates.missing_policy(rule) == "warn" else Status.PASS
        return passed, nearest, run.reason


def _undefined(gaps: Sequence[str | None], cells: Mapping[str | None, MetricValue]) -> str:
    """Return which classes are undefined, and why the first of them is."""
    why = cells[gaps[0]].reason or "reason unknown"
    names = ", ".join(quoted_value(name) for name in gaps[:SHOWN_CLASSES] if name is not None and len(cells) > 1)
    more = f" and {len(gaps) - SHOWN_CLASSES:,} more" if len(gaps) > SHOWN_CLASSES else ""
    return f"undefined for {names}{more}: {why}" if names else f"undefined: {why}"


def _aggregated(rule: Rule, values: Mapping[str, float], epsilon: float) -> tuple[float, list[str]]:
    """Return the one value of some classes, and a remark on it."""
    value = aggregated(rule, tuple(values.values()), epsilon)
    if rule.aggregate == "count-below":
        below = [name for name, value_of in values.items() if is_below(rule, value_of, epsilon)]
        more = ", ..." if len(below) > SHOWN_CLASSES else ""
        return value, [f"below: {', '.join(map(quoted_value, below[:SHOWN_CLASSES]))}{more}"] if below else []
    if rule.aggregate == "min":
        return value, [f"lowest: {quoted_value(min(values, key=values.__getitem__))}"]
    return value, []


def _judged(rule: Rule, run: _Sample) -> str:
    """Return the text of what was judged."""
    if not rule.aggregate:
        return str(next(iter(run.cells.values())).ref)
    below = "" if rule.below is None else f", {rule.below:g}"
    return f"{rule.aggregate}({qualified(rule.reference, {'class': ' '.join(rule.classes)})}{below})"


NO_INTERVAL = "no interval: "  # how the reason of a verdict without one begins

Draw = Callable[..., Sequence[Resamples]]  # `resample_alike`
Drawn = tuple[Resamples | None, Resamples]  # of the baseline and of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRuns:
    """The matches of a run and of its baseline, of boxes or of segments, and how their images are drawn."""

    run: Divisible
    base: Divisible | None
    settings: Bootstrap
    draw: Draw  # measures metrics of one or several runs at the same draws of their images
    known: Resamples | None = None  # of the whole run, where it was resampled already

    def measure(self, images: Slice | None, refs: Sequence[MetricRef], *, paired: bool) -> Drawn:
        """Measure the run at draws of all images, or of a slice as if these were all; `paired`, with its baseline."""
        if paired and self.base is not None:
            parts = [part_of(self.run, images), part_of(self.base, images)]
            run, base = self.draw(parts, self.settings, refs=refs, method=None)
            return base, run
        # The run itself may have been resampled in just this way, for its own intervals.
        known = self.known if images is None else None
        if known is not None and known.settings == self.settings and {str(ref) for ref in refs} <= set(known.refs):
            return None, known
        return None, self.draw([part_of(self.run, images)], self.settings, refs=refs)[0]


def weigh_noise(verdicts: Sequence[GateVerdict], gates: Gates, runs: PairedRuns) -> tuple[GateVerdict, ...]:
    """Give verdicts the spread of what they judge, and judge those again whose rules ask for significance."""
    rules = {rule.id: rule for rule in gates.rules}
    cases = [_Case(gates, rules[verdict.rule], verdict) for verdict in verdicts]
    refuse((problem for case in cases for problem in case.problems()), None)
    by_draw: dict[tuple[str, bool], list[_Case]] = {}  # by slice ("": all images), and whether it is of a difference
    for case in cases:
        by_draw.setdefault(case.draw, []).append(case)
    drawn = {draw: _drawn(alike, runs) for draw, alike in by_draw.items()}
    weighed = [
        case.verdict if (found := drawn[case.draw]) is None or not case.refs else case.weighed(found) for case in cases
    ]
    refuse(
        (
            f"rule {quoted_value(verdict.rule)}: {verdict.metric} has {verdict.reason}"
            for verdict in weighed
            if verdict.significance and verdict.reason.startswith(NO_INTERVAL)
        ),
        None,
    )
    return tuple(weighed)


def weighed_again(gates: Gates, saved: GateVerdict, again: GateVerdict) -> GateVerdict:
    """Return a verdict of the one rule that was judged again, with the spread that was drawn for the saved one."""
    (rule,) = gates.rules
    case, spread = _Case(gates, rule, again), saved.spread
    if spread is not None and spread.paired is not None:
        moved = {name: getattr(again, name) for name in ("value", "delta")}
        return case._of_delta(replace(spread.paired, base=again.baseline, **moved), spread.drawn)
    if saved.reason.startswith(NO_INTERVAL) and saved.reason.endswith(again.reason):
        again = replace(again, reason=saved.reason)
    elif again.significance and math.isnan(saved.margin) and not math.isnan(again.margin):
        # No draw has both values, or the baseline has no matches: its reason names which.
        open_ = {undefined_status(gates, rule), WITHOUT_BASELINE.get(gates.missing_baseline)}
        status = saved.status if saved.status in open_ else undefined_status(gates, rule)
        again = replace(again, status=status, margin=math.nan, reason=saved.reason)
    return replace(again, spread=spread)


def drop_breaks(verdict: GateVerdict, delta: PairedDelta, epsilon: float) -> Callable[[float], bool]:
    """Return the test of whether a difference breaks a level of the limit of a verdict with a significance."""

    def breaks(level: float) -> bool:
        allowed = allowed_change(verdict.check, level, verdict.baseline) + epsilon
        return (
            not non_inferior(delta, allowed)
            if verdict.significance == NON_INFERIOR
            else significant_drop(delta, allowed)
        )

    return breaks


def shifted(delta: PairedDelta, by: float) -> PairedDelta:
    """Return the difference with another value of the second model; its interval is taken to move along."""
    low, high = delta.interval or (math.nan, math.nan)
    return replace(delta, value=delta.value + by, delta=delta.delta + by, interval=(low + by, high + by))


def drop_margin(significance: str, delta: PairedDelta, allowed: float) -> float:
    """Return how far a difference is from breaking a limit by its interval; negative when it does."""
    low, high = delta.interval or (delta.delta, delta.delta)
    return min(low, delta.delta) + allowed if significance == NON_INFERIOR else max(delta.delta + allowed, high)


@dataclass(frozen=True, slots=True)
class _Case:
    """A verdict, and what it takes to weigh it."""

    gates: Gates
    rule: Rule
    verdict: GateVerdict

    def problems(self) -> Iterator[str]:
        """Yield what cannot be judged as the rule asks."""
        verdict = self.verdict
        if verdict.significance and not all(map(_is_resampled, kept_refs(self.rule, verdict))):
            moving = any(isinstance(ref.score, str) for ref in kept_refs(self.rule, verdict))
            why = "it is measured over all images. Use max-drop without significance"
            why = "the best score changes with the images. Set a fixed score, such as score=0.5" if moving else why
            yield f"rule {quoted_value(verdict.rule)}: {verdict.metric} cannot be resampled, because {why}"

    @property
    def draw(self) -> tuple[str, bool]:
        """The slice, and whether a difference is judged: which draws it takes."""
        return self.verdict.slice, self.verdict.check in AGAINST_BASELINE

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """What has to be resampled; nothing where no interval is asked for, or nothing was compared."""
        asked = self.gates.bootstrap is not None or self.verdict.significance is not None
        refs = kept_refs(self.rule, self.verdict) if asked else ()
        return refs if all(map(_is_resampled, refs)) else ()

    def weighed(self, drawn: Drawn) -> GateVerdict:
        """Return the verdict with its spread, judged again where that is asked for."""
        verdict, (of_base, of_run) = self.verdict, drawn
        run = self._combined(of_run)
        if of_base is not None:
            (delta,) = paired_deltas(self._combined(of_base), run)
            return self._refused(delta.refused) if delta.refused else self._of_delta(delta, run.drawn_document())
        if verdict.significance:
            status = WITHOUT_BASELINE[self.gates.missing_baseline]
            return replace(verdict, status=status, margin=math.nan, reason="the baseline has no match table")
        found = estimates(run)[verdict.metric]
        if found.interval is None:
            return self._refused(found.refused) if found.refused else verdict
        return replace(verdict, spread=Spread(interval=found.interval, drawn=run.drawn_document() | {"target": TARGET}))

    def _refused(self, reason: str) -> GateVerdict:
        """Return the verdict with the reason why there is no interval."""
        why = f"{NO_INTERVAL}{reason}"
        return replace(self.verdict, reason="; ".join(filter(None, (why, self.verdict.reason))))

    def _combined(self, drawn: Resamples) -> Resamples:
        """Make one column of those of the cells, as the rule makes one value of them."""
        columns = [drawn.refs.index(str(ref)) for ref in self.refs]
        combined = []
        for values in (drawn.estimate[None], drawn.values):  # (1, c) and (n, c); a class may lack a value in a resample
            rows = (row[~np.isnan(row)].tolist() for row in values[:, columns])
            made = [aggregated(self.rule, row, self.gates.epsilon) if row else math.nan for row in rows]
            combined.append(np.array(made))
        shown = [drawn.shown[column] for column in columns]
        # The lowest class may be any of them; what is of all of them rests on the images of all.
        fewest, is_count = self.rule.aggregate == "min", self.rule.aggregate == "count-below"
        units = (min if fewest else max)(row.units for row in shown)
        about = replace(shown[0], units=units, top=math.inf if is_count else shown[0].top)
        return replace(
            drawn, refs=(self.verdict.metric,), estimate=combined[0], values=combined[1][:, None], shown=(about,)
        )

    def _of_delta(self, delta: PairedDelta, drawn: Mapping[str, Any]) -> GateVerdict:
        """Return the verdict on a difference, judged by its interval where that is asked for."""
        verdict = self.verdict
        if delta.interval is not None:
            with_spread = replace(verdict, spread=Spread(interval=delta.interval, drawn=drawn, paired=delta))
            return self._judged(with_spread, delta) if verdict.significance else with_spread
        if not verdict.significance:
            return verdict
        status, reason = undefined_status(self.gates, self.rule), "undefined in every resample"
        return replace(verdict, status=status, margin=math.nan, reason=reason)

    def _judged(self, verdict: GateVerdict, delta: PairedDelta) -> GateVerdict:
        limit, significance = limit_of(self.rule, verdict), str(verdict.significance)
        broken = broken_level(self.rule, limit, drop_breaks(verdict, delta, self.gates.epsilon))
        # Undefined classes that were ignored may be worth a warning, even where no level is broken.
        policy = self.gates.missing_policy(self.rule)
        gaps = any(math.isnan(cell.value) for cell in verdict.cells if cell.n >= self.rule.min_support)
        passed = Status.WARN if gaps and policy == "warn" else Status.PASS
        status, level = broken or (passed, nearest_level(limit))
        allowed = allowed_change(verdict.check, level, verdict.baseline)
        reasons = (_why(delta, allowed, is_broken=broken is not None), verdict.reason)
        return replace(
            verdict,
            status=status,
            limit=level,
            margin=drop_margin(significance, delta, allowed),
            reason="; ".join(filter(None, reasons)),
        )


def _drawn(cases: Sequence[_Case], runs: PairedRuns) -> Drawn | None:
    """Measure what the verdicts on one slice need; None where that is nothing."""
    refs = tuple(dict.fromkeys(ref for case in cases for ref in case.refs))
    if not refs:
        return None
    images = cases[0].gates.slice_of(cases[0].rule)
    return runs.measure(images, refs, paired=cases[0].draw[1])


RESAMPLED = (*AVERAGED, *AT_POINTS)


def _is_resampled(ref: MetricRef) -> bool:
    # With other images, a score that is found would be another one.
    return not isinstance(ref.score, str) and (ref.name not in METRICS or METRICS[ref.name].on in RESAMPLED)


def _why(delta: PairedDelta, allowed: float, *, is_broken: bool) -> str:
    """Return why the interval overruled the drop; nothing where both agree."""
    drops_more = -delta.delta > allowed
    if drops_more and not is_broken:
        return "the drop exceeds the limit but is not statistically significant (the interval includes 0)"
    if is_broken and not drops_more:
        return "the drop is within the limit, but its interval exceeds it"
    return ""


def find_ties(verdicts: Sequence[GateVerdict], gates: Gates, metrics: DetectionMetrics) -> tuple[GateVerdict, ...]:
    """Give verdicts on AP its bounds over all orders of equal scores, where these end differently."""
    if not metrics.source.n_tied:
        return tuple(verdicts)
    rules = {rule.id: rule for rule in gates.rules}
    bounds: dict[str, TieBounds] = {}  # by slice: its curves are made once, and "" means all images
    found = []
    for verdict in verdicts:
        rule = rules[verdict.rule]
        refs = kept_refs(rule, verdict)
        # There are bounds of AP alone.
        if not refs or any(ref.name != "AP" for ref in refs):
            found.append(verdict)
            continue
        if verdict.slice not in bounds:
            part = part_of(metrics, gates.slice_of(rule))
            bounds[verdict.slice] = TieBounds(part.curves, part.axes)
        ends = zip(*(bounds[verdict.slice].interval(ref) for ref in refs), strict=True)
        low, high = sorted(aggregated(rule, end, gates.epsilon) for end in ends)
        statuses = {_status_at(value, verdict, rule, gates.epsilon) for value in (low, verdict.value, high)}
        decides = high - low > WIDEST and len(statuses) > 1
        found.append(replace(verdict, ties=(low, high)) if decides else verdict)
    return tuple(found)


def _status_at(value: float, verdict: GateVerdict, rule: Rule, epsilon: float) -> Status | None:
    """Return what a verdict would be if its value were another; None where no level were broken."""
    if verdict.significance and verdict.spread and verdict.spread.paired:
        moved = shifted(verdict.spread.paired, value - verdict.value)
        breaks = drop_breaks(verdict, moved, epsilon)
    else:

        def breaks(level: float) -> bool:
            return not margin_of(verdict.check, level, value, verdict.baseline) >= -epsilon

    broken = broken_level(rule, limit_of(rule, verdict), breaks)
    return broken and broken[0]


DIGITS = 2  # of the limit that is proposed


def gate_findings(verdicts: Iterable[GateVerdict]) -> tuple[Finding, ...]:
    """Return warnings on verdicts that hang on chance."""
    findings = FindingLog()
    for verdict in verdicts:
        where = verdict.where or Where("gates", record=verdict.rule)
        if verdict.spread is not None and verdict.check in AGAINST_BASELINE:
            _check_noise(verdict, verdict.spread, where, findings)
        if verdict.ties is not None:
            low, high = verdict.ties
            findings.warning(
                "gate-crossed-by-ties",
                where,
                f"Tied scores: {verdict.metric} is between {low:.6f} and {high:.6f} depending on how ties are broken,"
                " and the verdict with it",
                fix="Export more decimals, or choose a limit that both values keep or break.",
            )
    return findings.findings()


def _check_noise(verdict: GateVerdict, spread: Spread, where: Where, findings: FindingLog) -> None:
    """Warn of a limit on changes that chance alone exceeds."""
    unit = allowed_change(verdict.check, 1.0, verdict.baseline)
    if verdict.limit * unit >= spread.half_width or unit == 0:
        return
    # Two digits, and never below what the noise supports: a limit just under it would warn again.
    supported = spread.half_width / unit
    step = 10.0 ** (math.floor(math.log10(supported)) + 1 - DIGITS)
    supported = math.ceil(round(supported / step, 6)) * step
    what = "the difference" if spread.paired else verdict.metric
    drawn = spread.drawn
    findings.warning(
        "gate-below-noise",
        where,
        f"{verdict.metric}: {verdict.check} {verdict.limit:.6g} is below the noise of this test set: with"
        f" {drawn['n_units']:,} {drawn['unit']}s {what} varies by ±{spread.half_width:.2g}"
        f" ({100 * drawn['confidence_level']:g} % CI). The smallest meaningful limit is {supported:.6g}",
        fix="Use this limit, or evaluate more images: four times as many halve the noise.",
    )
