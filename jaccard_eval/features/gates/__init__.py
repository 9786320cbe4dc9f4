"""Rules of quality gates as frozen values, and their keys in a configuration file. Nothing is judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

from jaccard_eval.data.document import CHECKS, SEVERITIES, SIGNIFICANCES
from jaccard_eval.data.metricref import EXTERNAL, canonical, find_metric, metric_bounds, qualified, split_ref
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AIMS, BEST_F1, Bootstrap, Slice, score_of
from jaccard_eval.patterns import pattern
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value, shown_json

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
        Skip the value if there is less ground truth than this, or of a precision fewer detections; the report lists
        it as skipped.
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
    suspects : int, optional
        How many of the labels that `labels` lists may be rather wrong than right. It judges them alone; with this
        limit, no rule is needed.

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
    suspects: int | None = None

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
    if not gates.rules and gates.suspects is None:
        yield "no rules: a gate without rules passes everything"
    if gates.suspects is not None and gates.suspects < 0:
        yield f"suspects cannot be negative; got {gates.suspects}"
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
    for item in fields(rule):
        value = getattr(rule, item.name)
        key = item.name.replace("_", "-")
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


NUMBER, WHOLE, TEXT, TEXTS, TABLE, TABLES = (
    "number",
    "whole number",
    "string",
    "string or list of strings",
    "table",
    "tables",
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key: its type, its meaning, the values and the keys it can have where these are fixed."""

    type: str
    meaning: str
    choices: tuple[str, ...] = ()
    keys: Mapping[str, Key] | None = None
    # Whether a text may name what a score is to reach.
    aims: bool = False


_LIMITS = {
    "min": "Smallest value allowed.",
    "max": "Largest value allowed.",
    "max-drop": "Largest drop from the baseline, in units of the metric: 0.01 is one point of AP.",
    "max-drop-relative": "Largest drop from the baseline, as a fraction of the baseline's value.",
    "max-rise": "Largest rise from the baseline, for metrics where lower is better.",
    "max-rise-relative": "Largest rise from the baseline, as a fraction of the baseline's value.",
}
_AT = {
    "iou": Key(NUMBER, "IoU threshold."),
    "score": Key(
        NUMBER,
        'Confidence threshold, "best-f1", or what it is to reach, such as "precision=0.9".',
        (BEST_F1,),
        aims=True,
    ),
}
RULE_KEYS: Mapping[str, Key] = {
    "id": Key(TEXT, "Name of the rule in reports (default: made from the metric)."),
    "metric": Key(TEXT, "Metric reference, such as AP50 or recall; external.NAME for a value measured elsewhere."),
    "classes": Key(TEXTS, 'Class names or globs, "*" for every class (default: all classes together).'),
    "aggregate": Key(TEXT, "How to combine the values of the classes into one.", AGGREGATES),
    "below": Key(NUMBER, "Threshold of count-below."),
    "at": Key(TABLE, "Operating point.", keys=_AT),
    "area": Key(TEXT, "Area range, such as small."),
    "max-dets": Key(WHOLE, "Maximum detections per image and class."),
    "slice": Key(TEXT, "Name of a slice of the images."),
    **{check: Key(NUMBER, _LIMITS[check]) for check in CHECKS},
    **{f"warn-{check}": Key(NUMBER, f"Warning level. {_LIMITS[check]}") for check in CHECKS},
    "min-support": Key(
        WHOLE, "Skip values with fewer ground-truth boxes (precision: detections; maps: pixels), and report them."
    ),
    "missing-metric": Key(TEXT, "How to treat an undefined value.", POLICIES),
    "severity": Key(TEXT, "How to report a broken limit; only an error fails the run.", SEVERITIES),
    "significance": Key(
        TEXT,
        "Judge a drop by bootstrap: fail only if it exceeds the limit and is statistically significant"
        " (significant-drop), or unless its whole interval is within the limit (non-inferior).",
        SIGNIFICANCES,
    ),
}
BOOTSTRAP_KEYS: Mapping[str, Key] = {
    "resamples": Key(WHOLE, "Number of resamples (default 1000)."),
    "confidence": Key(NUMBER, "Confidence level, between 0 and 1 (default 0.95)."),
    "seed": Key(WHOLE, "Random seed (default 0)."),
    "group-by": Key(
        TEXT, "Resample whole groups: by folder, or by a CSV file of rows image,group, relative to this file."
    ),
}
GATES_KEYS: Mapping[str, Key] = {
    "baseline": Key(TEXT, "Result to compare with: a JSON file, relative to this file."),
    "missing-baseline": Key(TEXT, "What to do if the baseline does not exist.", POLICIES),
    "missing-metric": Key(TEXT, "How to treat an undefined value.", POLICIES),
    "bootstrap": Key(
        TABLE,
        "Bootstrap every value; rules with a significance are resampled in any case.",
        keys=BOOTSTRAP_KEYS,
    ),
    "epsilon": Key(NUMBER, "Tolerance for rounding in comparisons."),
    "suspects": Key(WHOLE, "Most suspected labels that labels may list as rather wrong than right."),
    "slices": Key(TABLE, "Slices by name: a list of image names and globs, or the path of a file with names."),
    "rules": Key(TABLES, "Limits on metrics.", keys=RULE_KEYS),
}
CONFIG_KEYS: Mapping[str, Key] = {"gates": Key(TABLE, "Quality gates.", keys=GATES_KEYS)}


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``[tool.jaccard-eval]``, and of a file of its own."""
    schema = _object(CONFIG_KEYS)
    rule = schema["properties"]["gates"]["properties"]["rules"]["items"]
    rule["required"] = ["metric"]
    rule["anyOf"] = [{"required": [name]} for check in CHECKS for name in (check, f"warn-{check}")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of jaccard-eval",
        **schema,
    }


def _object(keys: Mapping[str, Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _property(name, key) for name, key in keys.items()},
        "additionalProperties": False,
    }


def _property(name: str, key: Key) -> dict[str, Any]:
    """Describe one key; slices are the only table whose keys are the user's."""
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    by_type: dict[str, dict[str, Any]] = {
        NUMBER: {"type": "number"},
        WHOLE: {"type": "integer", "minimum": 0},
        TEXT: {"type": "string"},
        TEXTS: {"anyOf": [{"type": "string"}, texts]},
        TABLE: _object(key.keys)
        if key.keys
        else {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, texts]}},
        TABLES: {"type": "array", "items": _object(key.keys or {}), "minItems": 1},
    }
    shape = by_type[key.type]
    if key.choices:
        shape = {"enum": list(key.choices)} if key.type == TEXT else {"anyOf": [shape, {"enum": list(key.choices)}]}
    if key.aims:
        shape["anyOf"].append({"type": "string", "pattern": f"^({'|'.join(AIMS)})="})
    return {"description": key.meaning, **shape}


_BOOTSTRAP_FIELDS = {"resamples": "n_resamples", "confidence": "confidence_level", "seed": "rng"}
_GLOB = pattern(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigText:
    """Where a configuration stands, and what its text is like."""

    path: str  # for messages
    table: str = ""  # the table that holds it, with a dot behind; empty in a file of its own
    typed: bool = True  # whether numbers are numbers; YAML is read as texts
    rule_lines: Sequence[int] = ()  # the line that each rule begins in; empty when unknown
    # Reads a file of image names, by its path as the configuration has it.
    read_names: Callable[[str], tuple[str, ...]] = lambda _: ()


def parse_config(content: Mapping[str, Any], text: ConfigText, *, further: Sequence[Rule] = ()) -> Gates | None:
    """Return the gates of a configuration, with `further` rules behind its own; None when it has none."""
    reader = _Reader(text)
    top = reader.take(content, CONFIG_KEYS, Where(text.path, record=text.table.rstrip(".") or None))
    gates = _gates(top["gates"], reader, further) if "gates" in top else None
    refuse(reader.problems, None)
    return gates


def _gates(table: Mapping[str, Any], reader: _Reader, further: Sequence[Rule]) -> Gates | None:
    """Return the gates; None when there are problems, which the reader then holds."""
    where = reader.place("gates")
    values = reader.take(table, GATES_KEYS, where)
    rules = [_rule(rule, i, reader) for i, rule in enumerate(values.pop("rules", ()))]
    slices = [_slice(name, given, reader) for name, given in values.pop("slices", {}).items()]
    bootstrap = _bootstrap(values.pop("bootstrap"), reader) if "bootstrap" in values else None
    if reader.problems:
        return None
    try:
        own, chosen = (rule for rule in rules if rule), (images for images in slices if images)
        return Gates(rules=(*own, *further), slices=tuple(chosen), bootstrap=bootstrap, **values)
    except UsageError as error:
        for problem in str(error).split("\n"):
            reader.add_problem(where, problem)
    return None


def _rule(table: Mapping[str, Any], i: int, reader: _Reader) -> Rule | None:
    line = reader.text.rule_lines[i] if i < len(reader.text.rule_lines) else None
    where = replace(reader.place(f"gates.rules[{i}]"), line=line)
    before = len(reader.problems)
    values = reader.take(table, RULE_KEYS, where)
    if "metric" not in values and len(reader.problems) == before:
        reader.add_problem(where, "metric is missing")
    if len(reader.problems) > before:
        return None
    values |= reader.take(values.pop("at", {}), RULE_KEYS["at"].keys or {}, where)
    try:
        return Rule(**values, where=where)
    except UsageError as error:
        reader.problems += str(error).split("\n")
    return None


def _slice(name: str, given: Any, reader: _Reader) -> Slice | None:
    """Return a slice: a list of names and globs, or the path of a file of names."""
    where = reader.place("gates.slices", name)
    if isinstance(given, list) and all(isinstance(glob, str) for glob in given):
        return Slice(name=name, patterns=tuple(given))
    if isinstance(given, str) and not _GLOB.search(given):
        try:
            return Slice(name=name, patterns=reader.text.read_names(given), exact=True)
        except UsageError as error:
            reader.add_problem(where, str(error))
    elif isinstance(given, str):
        reader.add_problem(
            where, f"a string is read as the path of a file; write globs as a list: [{quoted_value(given)}]"
        )
    else:
        expected = "a list of names and globs, or the path of a file with names"
        reader.add_problem(where, f"expected {expected}; got {shown_json(given)}")
    return None


def _bootstrap(table: Mapping[str, Any], reader: _Reader) -> Bootstrap | None:
    where = reader.place("gates.bootstrap")
    values = reader.take(table, BOOTSTRAP_KEYS, where)
    try:
        return Bootstrap(**{_BOOTSTRAP_FIELDS.get(name, name): value for name, value in values.items()})
    except UsageError as error:
        reader.add_problem(where, str(error))
    return None


@dataclass(slots=True)
class _Reader:
    """Takes values out of tables by their keys, and remembers what is wrong."""

    text: ConfigText
    problems: list[str] = field(default_factory=list)

    def place(self, record: str, key: str | None = None) -> Where:
        return Where(self.text.path, record=f"{self.text.table}{record}", field=key)

    def add_problem(self, where: Where, problem: str) -> None:
        self.problems.append(f"{where}: {problem}")

    def take(self, table: Any, keys: Mapping[str, Key], where: Where) -> dict[str, Any]:
        """Return the values of the types that their keys ask for, by the key with underscores."""
        if not isinstance(table, Mapping):
            self.add_problem(where, f"expected a table, got {shown_json(table)}")
            return {}
        values: dict[str, Any] = {}
        for given, value in table.items():
            # Keys have dashes; who writes Python, or YAML for other tools, types underscores.
            name = str(given).replace("_", "-")
            if name not in keys:
                meant = did_you_mean(name, keys) or f" Choose from {', '.join(keys)}."
                self.add_problem(where, f"unknown key {quoted_value(given)}.{meant}")
            elif name.replace("-", "_") in values:
                self.add_problem(where, f"{name} is given twice, with dashes and with underscores; keep one")
            else:
                try:
                    values[name.replace("-", "_")] = _converted(value, keys[name], typed=self.text.typed)
                except UsageError as error:
                    self.add_problem(replace(where, field=name), str(error))
        return values


def _converted(value: Any, key: Key, *, typed: bool) -> Any:
    """Return a value as its key wants it, or raise a UsageError."""
    if isinstance(value, str) and (value in key.choices or (key.aims and isinstance(score_of(value), str))):
        return value
    if key.type in (NUMBER, WHOLE):
        # YAML is read as texts, so that no name becomes true, null or a date.
        if not typed and isinstance(value, str) and is_numeral(value.strip()):
            value = float(value)
            value = int(value) if key.type == WHOLE and value.is_integer() else value
        # To Python, true is a number.
        if isinstance(value, int if key.type == WHOLE else int | float) and not isinstance(value, bool):
            return value if key.type == WHOLE else float(value)
        raise UsageError(f"expected {_expected(key)}, got {shown_json(value)}")
    if key.type == TEXTS:
        value = [value] if isinstance(value, str) else value
        if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
            return tuple(value)
    expected = {TEXT: str, TABLE: Mapping, TABLES: list, TEXTS: ()}[key.type]
    if isinstance(value, expected):  # type: ignore[arg-type]
        return value
    raise UsageError(f"expected {_expected(key)}, got {shown_json(value)}")


def _expected(key: Key) -> str:
    what = {TABLES: "a list of tables", TEXTS: "a string or a list of strings"}.get(key.type, f"a {key.type}")
    return f"{what} or {' or '.join(map(quoted_value, key.choices))}" if key.choices and key.type == NUMBER else what
