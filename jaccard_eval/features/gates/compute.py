"""Judging: rules, and something that answers metric references, give verdicts. Pure; nothing is read or shown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import partial

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import EXTERNAL, MetricRef, qualified
from jaccard_eval.data.signature import BESIDE_METRICS, ORDERS, signature_fields
from jaccard_eval.data.verdict import GateVerdict, Status
from jaccard_eval.errors import UsageError
from jaccard_eval.features.gates.lookup import Answers
from jaccard_eval.features.gates.rules import AGAINST_BASELINE, DROPS, Gates, Limit, Rule, asked_of
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.slices import slice_digest
from jaccard_eval.text import did_you_mean, quoted_value

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
        raise UsageError(
            f"cannot compare this run with the baseline: {'; '.join(changes)}.",
            fix=Fix.missing("Update the baseline with {update_baseline}.", update_baseline=ON),
        )


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
