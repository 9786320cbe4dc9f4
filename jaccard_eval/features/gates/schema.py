"""The keys of gates in a configuration file: one table, of which the reader and the JSON Schema are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaccard_eval.features.gates.rules import AGGREGATES, CHECKS, POLICIES, SEVERITIES, SIGNIFICANCES

NUMBER, WHOLE, TEXT, TEXTS, TABLE, TABLES = "number", "whole number", "text", "text or list of texts", "table", "tables"


@dataclass(frozen=True, slots=True)
class Key:
    """A key: what its value is, what it means, the values it can have, the keys below it, where these are fixed."""

    type: str
    meaning: str
    choices: tuple[str, ...] = ()
    keys: Mapping[str, Key] | None = None


_LIMITS = {
    "min": "Least value.",
    "max": "Largest value.",
    "max-drop": "Largest loss against the baseline, in units of the metric: 0.01 is one point of AP.",
    "max-drop-relative": "Largest loss against the baseline, as a share of the baseline's value.",
    "max-rise": "Largest rise against the baseline, where lower is better.",
    "max-rise-relative": "Largest rise against the baseline, as a share of the baseline's value.",
}
_AT = {
    "iou": Key(NUMBER, "IoU threshold."),
    "score": Key(NUMBER, 'Least score of detections that count, or "best-f1".', ("best-f1",)),
}
RULE_KEYS: Mapping[str, Key] = {
    "id": Key(TEXT, "Name of the rule in reports; made of the metric when left out."),
    "metric": Key(TEXT, "Metric reference, such as AP50 or recall; external.NAME for a value measured elsewhere."),
    "classes": Key(TEXTS, 'Names or globs of classes, "*" for every class; all together when left out.'),
    "aggregate": Key(TEXT, "One value out of those of the classes.", AGGREGATES),
    "below": Key(NUMBER, "What count-below counts below."),
    "at": Key(TABLE, "Operating point.", keys=_AT),
    "area": Key(TEXT, "Size range, such as small."),
    "max-dets": Key(WHOLE, "Cap on detections per image and class."),
    "slice": Key(TEXT, "Name of a slice of the images."),
    **{check: Key(NUMBER, _LIMITS[check]) for check in CHECKS},
    **{f"warn-{check}": Key(NUMBER, f"The same, but a warning. {_LIMITS[check]}") for check in CHECKS},
    "min-support": Key(WHOLE, "Ground-truth boxes (or pixels) below which a value is skipped, and reported."),
    "missing-metric": Key(TEXT, "What an undefined value is.", POLICIES),
    "severity": Key(TEXT, "What a broken limit is; only an error fails the run.", SEVERITIES),
    "significance": Key(
        TEXT,
        "What besides breaks a limit on drops, by resampling images: the interval of the difference excludes 0"
        " (significant-drop), or does not stay within the limit, however small the drop (non-inferior).",
        SIGNIFICANCES,
    ),
}
BOOTSTRAP_KEYS: Mapping[str, Key] = {
    "resamples": Key(WHOLE, "How many resamples are drawn; 1000 when left out."),
    "confidence": Key(NUMBER, "Of the intervals, between 0 and 1; 0.95 when left out."),
    "seed": Key(WHOLE, "Of the resamples; 0 when left out."),
    "group-by": Key(
        TEXT, "What is drawn as a whole: folder, or a CSV file of rows image,group, relative to this file."
    ),
}
GATES_KEYS: Mapping[str, Key] = {
    "baseline": Key(TEXT, "Result to compare with: the path of a JSON document, relative to this file."),
    "missing-baseline": Key(TEXT, "What a baseline that does not exist is.", POLICIES),
    "missing-metric": Key(TEXT, "What an undefined value is.", POLICIES),
    "bootstrap": Key(
        TABLE,
        "How images are resampled, for the interval of every value; as by default for rules with a significance.",
        keys=BOOTSTRAP_KEYS,
    ),
    "epsilon": Key(NUMBER, "Rounding error that comparisons forgive."),
    "slices": Key(TABLE, "Slices of the images by name: a list of names and globs, or the path of a file of names."),
    "rules": Key(TABLES, "What the metrics have to be.", keys=RULE_KEYS),
}
CONFIG_KEYS: Mapping[str, Key] = {"gates": Key(TABLE, "Quality gates.", keys=GATES_KEYS)}


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``[tool.jaccard-eval]``, and of a file of its own."""
    schema = _object(CONFIG_KEYS)
    rule = schema["properties"]["gates"]["properties"]["rules"]["items"]
    rule["required"] = ["metric"]
    rule["anyOf"] = [{"required": [name]} for name in _limit_names()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of jaccard-eval",
        **schema,
    }


def _limit_names() -> list[str]:
    return [name for check in CHECKS for name in (check, f"warn-{check}")]


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
    return {"description": key.meaning, **shape}
