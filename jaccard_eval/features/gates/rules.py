"""Rules of quality gates as frozen values, refused at once when they contradict themselves. Nothing is judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from jaccard_eval.data.document import CHECKS, SEVERITIES, SIGNIFICANCES
from jaccard_eval.data.metricref import EXTERNAL, canonical, find_metric, metric_bounds, qualified, split_ref
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value

AGAINST_BASELINE = CHECKS[2:]
DROPS = CHECKS[2:4]
NON_INFERIOR = SIGNIFICANCES[1]
AGGREGATES = ("min", "mean", "median", "count-below")
POLICIES = ("error", "warn", "pass")
LARGEST_EPSILON = 1e-3  # beyond, it would be a tolerance, and a hidden one
_DECIDING = ("missing_baseline", "missing_metric", "epsilon")  # what of gates decides about a rule


@dataclass(frozen=True, slots=True)
class Limit:
    """One kind of limit of a rule: where it fails, where it warns; None for no such level."""

    check: str
    error: float | None
    warn: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A limit on one metric.

    Parameters
    ----------
    metric : str
        Any metric reference, such as ``AP50`` or ``recall[iou=0.5,score=0.4,class=dog]``; ``external.NAME`` for a value
        measured elsewhere.
    id : str
        Name in reports; by default made from the metric and its limits.
    classes : tuple of str
        Names or globs; one value each, unless they are aggregated. Empty: all classes together.
    aggregate : {"min", "mean", "median", "count-below"}, optional
        How to combine the values of the classes into one.
    below : float, optional
        The threshold of "count-below".
    iou, score, area, max_dets
        Further keys of the metric reference.
    slice : str, optional
        Name of a slice of the images.
    min, max, max_drop, max_drop_relative, max_rise, max_rise_relative : float, optional
        Limits, all of which must hold: on the value, on its change from the baseline, on that as a share of the
        baseline's value. A value on the limit passes.
    warn_min, warn_max, warn_max_drop, warn_max_drop_relative, warn_max_rise, warn_max_rise_relative : float, optional
        Limits that warn.
    min_support : int
        Skip the value if there is less ground truth than this; the report lists it as skipped.
    missing_metric : {"error", "warn", "pass"}, optional
        How to treat an undefined value; by default as in `Gates`.
    severity : {"error", "warning", "info"}
        How to report a broken limit.
    significance : {"significant-drop", "non-inferior"}, optional
        How the bootstrap decides on a drop, with the same resamples for run and baseline: a drop beyond the limit
        fails only when the interval of the difference excludes 0, or any drop fails unless the whole interval
        stays within the limit.
    where : Where, optional
        Where the rule stands.

    Raises
    ------
    UsageError
        With everything that is wrong with it.

    Examples
    --------
    >>> from jaccard_eval import Rule
    >>> Rule(metric="AP50[class=dog]", min=0.5).id
    'AP50[class=dog] min'
    """

    metric: str
    id: str = ""
    classes: tuple[str, ...] = ()
    aggregate: str | None = None
    below: float | None = None
    iou: float | None = None
    score: float | str | None = None
    area: str | None = None
    max_dets: int | None = None
    slice: str | None = None
    min: float | None = None
    max: float | None = None
    max_drop: float | None = None
    max_drop_relative: float | None = None
    max_rise: float | None = None
    max_rise_relative: float | None = None
    warn_min: float | None = None
    warn_max: float | None = None
    warn_max_drop: float | None = None
    warn_max_drop_relative: float | None = None
    warn_max_rise: float | None = None
    warn_max_rise_relative: float | None = None
    min_support: int = 0
    missing_metric: str | None = None
    severity: str = "error"
    significance: str | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        # All at once, and when the rule is made: an evaluation can take minutes before it is judged.
        refuse(_problems_of_rule(self), self.where)
        if not self.id:
            object.__setattr__(self, "id", _default_id(self))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits that are set, in the order of `CHECKS`."""
        fields_of = [(check, check.replace("-", "_")) for check in CHECKS]
        every = (Limit(check, getattr(self, name), getattr(self, f"warn_{name}")) for check, name in fields_of)
        return tuple(limit for limit in every if limit.error is not None or limit.warn is not None)

    @property
    def needs_baseline(self) -> bool:
        """Whether any limit is one on a change."""
        return any(limit.check in AGAINST_BASELINE for limit in self.limits)

    @property
    def is_external(self) -> bool:
        """Whether the value is measured elsewhere."""
        return self.metric.startswith(EXTERNAL)

    @property
    def reference(self) -> str:
        """Text of the metric reference without classes."""
        keys = {"iou": self.iou, "area": self.area, "max_dets": self.max_dets, "score": self.score}
        return qualified(self.metric.strip(), keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Rules and their common settings.

    Parameters
    ----------
    rules : tuple of Rule
    slices : tuple of Slice
    baseline : str, optional
        Path of the result to compare with.
    missing_baseline : {"error", "warn", "pass"}
        What to do when that does not exist.
    missing_metric : {"error", "warn", "pass"}
        How to treat an undefined value.
    bootstrap : Bootstrap, optional
        Resample images for an interval of every value; without it, only rules with a significance are resampled, with
        the defaults of `Bootstrap`.
    epsilon : float
        Tolerance for rounding: a perfect detector has an AP of 0.9999999999999998.

    Raises
    ------
    UsageError
        When there are no rules, or two have one id, or with anything else that is wrong.

    Examples
    --------
    >>> from jaccard_eval import Gates, Rule
    >>> gates = Gates(rules=(Rule(metric="AP50", min=0.5), Rule(metric="AP", max_drop=0.01)), missing_baseline="pass")
    >>> [rule.needs_baseline for rule in gates.rules]
    [False, True]
    """

    rules: tuple[Rule, ...]
    slices: tuple[Slice, ...] = ()
    baseline: str | None = None
    missing_baseline: str = "error"
    missing_metric: str = "error"
    bootstrap: Bootstrap | None = None
    epsilon: float = 1e-9

    def __post_init__(self) -> None:
        refuse(_problems_of_gates(self), None)

    @property
    def needs_tables(self) -> bool:
        """Whether any rule can be judged by the match tables of run and baseline only."""
        return any(rule.significance for rule in self.rules)

    @property
    def asks_noise(self) -> bool:
        """Whether images are to be resampled for any rule."""
        return self.bootstrap is not None or self.needs_tables

    def missing_policy(self, rule: Rule) -> str:
        """Return how to treat an undefined value: the rule's own policy, else the common one."""
        return rule.missing_metric or self.missing_metric

    def slice_of(self, rule: Rule) -> Slice | None:
        """Return the slice of a rule; None for all images."""
        return next((images for images in self.slices if images.name == rule.slice), None)


def asked_of(gates: Gates, rule: Rule) -> dict[str, Any]:
    """Return a rule, its slice and what of the gates decides about it, as a verdict keeps them: all but defaults."""
    kept: list[tuple[object, Any]] = [(gates, item) for item in fields(Gates) if item.name in _DECIDING]
    kept += [(rule, item) for item in fields(Rule) if item.name not in ("id", "slice", "where")]
    asked = {item.name: getattr(of, item.name) for of, item in kept if getattr(of, item.name) != item.default}
    images = gates.slice_of(rule)
    return asked | ({} if images is None else {"slice": images})


def gates_of(rule_id: str, asked: Mapping[str, Any]) -> Gates:
    """Return the rule that `asked_of` kept, as gates; a UsageError where it cannot have been one."""
    from jaccard_eval.data.from_document import from_document  # slow to load, and rules are read without

    faults: list[tuple[str, str]] = []
    images = from_document(Slice, asked["slice"], faults) if "slice" in asked else None
    rule = from_document(Rule, {**asked, "id": rule_id, "slice": images and images.name}, faults)
    common = {name: asked[name] for name in _DECIDING if name in asked}
    gates = from_document(Gates, common, faults, rules=(rule,), slices=(images,) if images else ())
    if gates is None or faults:
        raise UsageError(f"rule {quoted_value(rule_id)}: {' '.join(filter(None, faults[0]))}")
    return gates


def refuse(problems: Sequence[str] | Iterator[str], where: Where | None) -> None:
    """Raise a UsageError that lists all `problems`, one a line, each with its place."""
    lines = [f"{where}: {problem}" if where else problem for problem in problems]
    if lines:
        raise UsageError("\n".join(lines))


def parse_rule(text: str) -> Rule:
    """Return the rule of a text such as ``AP50>=0.5``; a UsageError shows what one looks like."""
    for sign, limit in ((">=", "min"), ("<=", "max")):
        metric, found, value = text.rpartition(sign) if isinstance(text, str) else ("", "", "")
        if found and metric.strip() and is_numeral(value.strip()):
            return Rule(metric=metric.strip(), id=text.strip(), **{limit: float(value)})  # type: ignore[arg-type]
    raise UsageError(f"cannot read the rule {quoted_value(text)}; write METRIC>=VALUE or METRIC<=VALUE: AP50>=0.5")


def _default_id(rule: Rule) -> str:
    """Name a rule by what it judges and how; two rules that differ in neither need ids of their own."""
    metric = rule.reference if rule.is_external else canonical(rule.reference)
    scope = f"{rule.aggregate}({metric})" if rule.aggregate else metric
    of_classes = f" of {', '.join(rule.classes)}" if rule.classes else ""
    on_slice = f" on {rule.slice}" if rule.slice else ""
    how = f" {rule.significance}" if rule.significance else ""
    return f"{scope}{of_classes}{on_slice} {'+'.join(limit.check for limit in rule.limits)}{how}"


def _problems_of_gates(gates: Gates) -> Iterator[str]:
    if not gates.rules:
        yield "no rules: a gate without rules passes everything"
    yield from _unknown("missing-baseline", gates.missing_baseline, POLICIES)
    yield from _unknown("missing-metric", gates.missing_metric, POLICIES)
    if not 0 <= gates.epsilon <= LARGEST_EPSILON:
        yield f"epsilon must be between 0 and {LARGEST_EPSILON:g}; got {gates.epsilon:g}"
    ids = [rule.id for rule in gates.rules]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"{ids.count(name)} rules have the id {quoted_value(name)}; give each rule its own id"
    known = [images.name for images in gates.slices]
    for images in gates.slices:
        if not images.patterns:
            yield f"slice {quoted_value(images.name)} is empty; list image names or globs"
    for rule in gates.rules:
        if rule.slice is not None and rule.slice not in known:
            yield (
                f"rule {quoted_value(rule.id)}: unknown slice "
                f"{quoted_value(rule.slice)}.{did_you_mean(rule.slice, known)}"
            )


def _problems_of_rule(rule: Rule) -> Iterator[str]:
    yield from _unknown("severity", rule.severity, SEVERITIES)
    yield from _unknown("missing-metric", rule.missing_metric, POLICIES)
    yield from _unknown("aggregate", rule.aggregate, AGGREGATES)
    yield from _unknown("significance", rule.significance, SIGNIFICANCES)
    if rule.significance and not any(limit.check in DROPS for limit in rule.limits):
        yield f"significance works with drops only; set {' or '.join(DROPS)}"
    if not rule.limits:
        yield f"no limit; set one of {', '.join(CHECKS)}"
    if rule.min_support < 0:
        yield f"min-support cannot be negative; got {rule.min_support}"
    yield from _problems_of_external(rule) if rule.is_external else _problems_of_metric(rule)
    if rule.aggregate and not rule.classes:
        yield 'aggregate needs classes; add classes = "*"'
    if (rule.aggregate == "count-below") != (rule.below is not None):
        yield 'aggregate = "count-below" and below = VALUE go together; set both'
    yield from _problems_of_numbers(rule)
    yield from _problems_of_levels(rule)


def _unknown(key: str, given: str | None, known: Sequence[str]) -> Iterator[str]:
    if given is not None and given not in known:
        yield f"{key} must be one of {', '.join(known)}; got {quoted_value(given)}.{did_you_mean(given, known)}"


def _problems_of_external(rule: Rule) -> Iterator[str]:
    keys = ("classes", "aggregate", "iou", "score", "area", "max_dets", "slice", "min_support", "significance")
    for key in keys:
        if getattr(rule, key) not in (None, (), 0):
            yield f"{quoted_value(rule.metric)} is an external value; remove {key.replace('_', '-')}"
    if rule.metric == EXTERNAL:
        yield f"{quoted_value(rule.metric)} lacks a name; write {EXTERNAL}latency_ms"


def _problems_of_metric(rule: Rule) -> Iterator[str]:
    try:
        head, items = split_ref(rule.metric)
    except UsageError as error:
        yield str(error)
        return
    if rule.classes and "class" in items:
        yield f"metric {quoted_value(rule.metric)} names a class, and so does classes; keep one"
    # A count of bad classes is better when lower, whatever its metric is.
    counts_below = rule.aggregate == "count-below"
    metric = find_metric(head)
    lower_is_better = counts_below or (metric is not None and not metric.higher_is_better)
    if lower_is_better and any(limit.check.startswith("max-drop") for limit in rule.limits):
        what = rule.aggregate if counts_below else head
        yield f"lower is better for {what}; use max-rise instead of max-drop"


def _problems_of_numbers(rule: Rule) -> Iterator[str]:
    """Refuse numbers out of range, and suggest a fraction where a percentage was probably meant."""
    for field in fields(rule):
        value = getattr(rule, field.name)
        key = field.name.replace("_", "-")
        check = key.removeprefix("warn-")
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{key} must be a finite number; got {value:g}"
        elif check not in (*CHECKS, "below") or value is None:
            continue
        elif value < 0 and (check in AGAINST_BASELINE or not rule.is_external):
            yield f"{key} cannot be negative; got {float(value):g}"
        elif value > 1 and _is_share(rule, key):
            # Per cent are the usual slip, and such a limit would always or never be kept.
            meant = f". Did you mean {value / 100:.6g}?" if value <= 100 else ""
            relative = key.endswith("-relative")
            what = "a fraction of the baseline" if relative else quoted_value(rule.metric)
            yield f"{key} = {float(value):g}, but {what} is between 0 and 1{meant}"


def _is_share(rule: Rule, key: str) -> bool:
    """Whether a limit is one on a number in [0, 1]."""
    if key.endswith("-relative"):
        return not key.removeprefix("warn-").startswith("max-rise")  # a value may well double
    counts_classes = rule.aggregate == "count-below" and key != "below"
    return not (rule.is_external or counts_classes or metric_bounds(rule.metric) == (0, math.inf))


def _problems_of_levels(rule: Rule) -> Iterator[str]:
    """Refuse levels that contradict each other, or a warning that would come after the failure."""
    for limit in rule.limits:
        if limit.error is not None and limit.warn is not None:
            late = limit.warn <= limit.error if limit.check == "min" else limit.warn >= limit.error
            if late:
                side = f"{'above' if limit.check == 'min' else 'below'} {limit.check} = {limit.error:g}"
                yield f"warn-{limit.check} = {limit.warn:g} never applies; set it {side}"
    if rule.min is not None and rule.max is not None and rule.min > rule.max:
        yield f"no value can pass: min = {rule.min:g} is above max = {rule.max:g}"
