"""The keys of gates in a configuration file, in one table, and the way from its plain values to rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from jaccard_eval.data.document import CHECKS, SEVERITIES, SIGNIFICANCES
from jaccard_eval.errors import UsageError
from jaccard_eval.features.gates.rules import AGGREGATES, POLICIES, Gates, Rule, refuse
from jaccard_eval.findings import Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AIMS, BEST_F1, Bootstrap, Slice, score_of
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value, shown_json

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
    "min-support": Key(WHOLE, "Skip values with fewer ground-truth boxes (or pixels), and report them."),
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
_GLOB = re.compile(r"[*?\[]")


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
