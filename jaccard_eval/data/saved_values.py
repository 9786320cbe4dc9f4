"""What the JSON document of a result can hold: its fields, their types and their bounds. Nothing is read here.

Each check is written once, and is both what finds faults and the JSON Schema that others can validate by.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jaccard_eval.data.document import (
    CHECKS,
    DIGEST,
    EVALUATION,
    PANOPTIC,
    PIXELS,
    SCHEMA,
    SEVERITIES,
    SIGNIFICANCES,
    Status,
)
from jaccard_eval.data.metricref import MAP_CLASS_METRICS, SEGMENT_CLASS_METRICS, metric_bounds
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.findings import Severity
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import quoted_value

# By which sums of shares may exceed 1, and percentiles each other.
ROUNDING = 1e-9

Fault = tuple[str, str]  # the field, and what is wrong with it
Finder = Callable[[Any, str], Iterator[Fault]]  # of a value and the field that it is from


@dataclass(frozen=True, slots=True)
class Check:
    """What a value can be: what finds its faults, and the same as JSON Schema, as far as that can express it."""

    find: Finder
    schema: Mapping[str, Any]

    def __call__(self, value: Any, place: str) -> Iterator[Fault]:
        """Yield what is wrong with a value."""
        return self.find(value, place)


def find_faults(document: Mapping[str, Any]) -> list[Fault]:
    """Return the fields of a result that gates judge that are missing or have a value that they cannot have.

    The document is as it stands in a file; its kind is known.
    """
    known = _KINDS.get(document["kind"])
    faults = list((known or _ANY)(document, ""))
    if faults or not known:  # what other kinds hold shows when they are read back
        return faults
    # Rules across fields are checked once each field is valid on its own.
    missing = [name for name in ("gt", "pred", "v") if name not in signature_fields(document["signature"])]
    if missing:
        what = f"{described_type(document['signature'])} is not a signature: there is no {'= and no '.join(missing)}="
        faults.append(("signature", what))
    faults += [(f"support.{name}", "is missing") for name in document["metrics"] if name not in document["support"]]
    for i, row in enumerate(document.get("slices", ())):
        faults += [(f"slices[{i}].{name}", "is missing") for name in row["support"] if name not in row]
    return [*faults, *_repeated_rows(document)]


def find_run_faults(run: Any) -> list[Fault]:
    """Return what is wrong with a saved run outside its match table; its result is checked elsewhere."""
    return list(_RUN(run, ""))


def _repeated_rows(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the rows that repeat one above: as many are right as the ground truth has classes of one name."""
    # The name of each class of the ground truth; there are files that give one name to two.
    if document["kind"] == PIXELS:
        names = Counter(document["protocol"].get("classes") or ())
    elif document["kind"] == PANOPTIC:
        names = Counter(row["class"] for row in document["per_class"])  # categories may share a name
    else:
        sides = document["correspondence"]
        names = Counter([*(gt for gt, _ in sides["classes"]), *sides["gt_only_classes"]])
    for part, keys in (("per_class", ("class",)), ("operating_points", ("class", "iou")), ("slices", ("slice",))):
        seen: Counter[tuple[Any, ...]] = Counter()
        for i, row in enumerate(document.get(part, ())):
            key = tuple(row[name] for name in keys)
            seen[key] += 1
            if seen[key] > max(1, names[row[keys[0]]] if keys[0] == "class" else 1):
                yield f"{part}[{i}].{keys[0]}", f"{described_type(row[keys[0]])} has two rows"


def _find_nothing(_value: Any, _place: str) -> Iterator[Fault]:
    """Check nothing: what reads it does."""
    return iter(())


def _find_no_text(value: Any, place: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield place, f"expected a string, got {described_type(value)}"


def _find_no_flag(value: Any, place: str) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield place, f"expected true or false, got {described_type(value)}"


def _choice(choices: Sequence[str]) -> Check:
    def find(value: Any, place: str) -> Iterator[Fault]:
        if value not in choices:
            yield place, f"expected one of {', '.join(choices)}, got {described_type(value)}"

    return Check(find, {"type": "string", "enum": list(choices)})


def _count_from(least: int) -> Check:
    def find(value: Any, place: str) -> Iterator[Fault]:
        # True and False are whole numbers to Python, and not to JSON.
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            yield place, f"expected a whole number >= {least}, got {described_type(value)}"

    return Check(find, {"type": "integer", "minimum": least})


def _number(low: float = -math.inf, high: float = math.inf) -> Check:
    def find(value: Any, place: str) -> Iterator[Fault]:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Asked this way round, NaN fails as well.
        if not is_number or not low - ROUNDING <= value <= high + ROUNDING:
            bounds = "" if math.isinf(low) else f" >= {low:g}" if math.isinf(high) else f" from {low:g} to {high:g}"
            yield place, f"expected a number{bounds}, got {described_type(value)}"

    ends = {name: end for name, end in (("minimum", low), ("maximum", high)) if math.isfinite(end)}
    return Check(find, {"type": "number", **ends})


def _nullable(check: Check) -> Check:
    kind = check.schema.get("type")
    return Check(
        lambda value, place: iter(()) if value is None else check(value, place),
        {**check.schema, "type": [kind, "null"]} if kind else check.schema,
    )


def _list(check: Check) -> Check:
    def find(value: Any, place: str) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield place, f"expected a list, got {described_type(value)}"
            return
        for i, item in enumerate(value):
            yield from check(item, f"{place}[{i}]")

    return Check(find, {"type": "array", "items": check.schema})


def _pair(check: Check) -> Check:
    both = _list(check)

    def find(value: Any, place: str) -> Iterator[Fault]:
        if isinstance(value, list) and len(value) == 2:
            yield from both(value, place)
        else:
            yield place, f"expected a list of two, got {described_type(value)}"

    return Check(find, {**both.schema, "minItems": 2, "maxItems": 2})


def _table(
    required: Mapping[str, Check],
    optional: Mapping[str, Check] | None = None,
    others: Callable[[str], Check] | None = None,
) -> Check:
    """Check an object: `others` gives the check of a field by its name, where it is not one of those that are named."""
    named = {**(optional or {}), **required}

    def find(value: Any, place: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield place, f"expected an object, got {described_type(value)}"
            return
        yield from ((_inner(place, name), "is missing") for name in required if name not in value)
        for name, item in value.items():
            check = named.get(name) or (others(name) if others else _any)
            yield from check(item, _inner(place, name))

    schema: dict[str, Any] = {"type": "object"}
    if named:
        schema["properties"] = {name: check.schema for name, check in named.items()}
    if required:
        schema["required"] = list(required)
    if others:
        # Whatever the name: bounds that depend on it are beyond a schema.
        schema["additionalProperties"] = others("").schema
    return Check(find, schema)


def _mapping(check: Check) -> Check:
    return _table({}, others=lambda _: check)


def _measured(metric: str) -> Check:
    """Check the value of a metric; null where it is undefined."""
    return _nullable(_number(*metric_bounds(metric)))


def _interval(metric: str) -> Check:
    ends = _pair(_number(*metric_bounds(metric)))

    def find(value: Any, place: str) -> Iterator[Fault]:
        faults = list(ends(value, place))
        yield from faults or _ascending(value, place)

    return Check(find, ends.schema)


def _find_in_cell(value: Any, place: str) -> Iterator[Fault]:
    """Check one value that a gate was judged by, by the metric that it names."""
    faults = list(_CELL(value, place))
    yield from faults or _measured(value["metric"])(value["value"], _inner(place, "value"))


def _find_in_spread(value: Any, place: str) -> Iterator[Fault]:
    faults = list(_SPREAD(value, place))
    # An end is null where no resample defines the value; then there is nothing to compare.
    ends = [] if faults else [value["low"], value["high"]]
    yield from faults if None in ends or not ends else _ascending(ends, place)


def _ascending(ends: Sequence[float], place: str) -> Iterator[Fault]:
    low, high = ends
    if low > high + ROUNDING:
        yield place, f"the interval ends at {high}, below its start {low}"


def _inner(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def described_type(value: Any) -> str:
    """Return a value as JSON has it; of lists and objects the kind alone."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return f"the string {quoted_value(value)}"
    return "null" if value is None else quoted_value(value).lower() if isinstance(value, bool) else quoted_value(value)


_any = Check(_find_nothing, {})
_text = Check(_find_no_text, {"type": "string"})
_flag = Check(_find_no_flag, {"type": "boolean"})
_count = _count_from(0)
_real = _number()
_SHARE = _number(0.0, 1.0)
_MAYBE_TEXT, _MAYBE_NUMBER, _MAYBE_SHARE = _nullable(_text), _nullable(_real), _nullable(_SHARE)
_TEXTS, _COUNTS, _INTERVALS = _list(_text), _mapping(_count), _table({}, others=_interval)
_RESAMPLING: dict[str, Check] = {
    "n_resamples": _count_from(1),
    "confidence_level": _SHARE,
    "rng": _count,
    "unit": _text,
    "n_units": _count,
}
_SIZE = _table({"halves": _real, "population": _nullable(_pair(_real)), "reason": _MAYBE_TEXT, "biased": _flag})
_BOOTSTRAP = _table(
    _RESAMPLING,
    {
        **{"method": _text, "target": _text, "metrics": _mapping(_SIZE)},
        **{"group_by": _MAYBE_TEXT, "grouping": _MAYBE_TEXT},
    },
)
_NOISE: dict[str, Check] = {"intervals": _INTERVALS, "refused": _mapping(_text)}
_REST = _table(
    {
        "n_units": _count,
        **dict.fromkeys(("value", "rest", "delta", "p_value"), _MAYBE_NUMBER),
        "interval": _nullable(_pair(_real)),
        **dict.fromkeys(("verdict", "refused"), _MAYBE_TEXT),
    }
)
_CELL = _table({"metric": _text, "value": _MAYBE_NUMBER, "n": _count, "reason": _MAYBE_TEXT})
_SPREAD = _table(
    {**_RESAMPLING, "low": _MAYBE_NUMBER, "high": _MAYBE_NUMBER},
    {"probability": _MAYBE_SHARE, "detectable": _MAYBE_NUMBER, "of": _choice(("value", "delta"))},
)
_GATE = _table(
    {
        **dict.fromkeys(("rule", "metric", "reason", "slice", "slice_digest"), _text),
        **{"check": _choice(CHECKS), "severity": _choice(SEVERITIES), "status": _choice(tuple(Status))},
        **dict.fromkeys(("value", "limit", "margin", "baseline", "delta"), _MAYBE_NUMBER),
        "n": _count,
        "cells": _list(Check(_find_in_cell, _CELL.schema)),
    },
    {
        "spread": _nullable(Check(_find_in_spread, _SPREAD.schema)),
        "significance": _nullable(_choice(SIGNIFICANCES)),
        **{"class": _MAYBE_TEXT, "ties": _nullable(_pair(_real)), "asked": _mapping(_any)},
    },
)
_TOOL = _table({"name": _text, "version": _text})
_FIX = _table(
    {"kind": _text, "words": _text, "options": _mapping(_any)}
    | {"metric": _text, "before": _MAYBE_NUMBER, "after": _MAYBE_NUMBER, "allow": _text}
)
_FINDING = _table(
    {"code": _text, "message": _text, "count": _count, "severity": _choice(tuple(Severity)), "examples": _TEXTS}
    | {"table": _list(_TEXTS), "fix": _nullable(_FIX)}
)
_ANY = _table({"tool": _TOOL}, {"gates": _list(_GATE), "warnings": _list(_FINDING)})
_HEAD: dict[str, Check] = {
    "tool": _TOOL,
    "signature": _text,
    "signature_fields": _mapping(_text),
    "metrics": _table({}, others=_measured),
    "undefined": _mapping(_MAYBE_TEXT),
    "support": _COUNTS,
    "gates": _list(_GATE),
    "warnings": _list(_FINDING),
}
_INPUT: dict[str, Check] = {
    **dict.fromkeys(("path", "format", "fingerprint"), _text),
    **dict.fromkeys(("images", "classes"), _count),
}
_BOXES = _table(
    {**_INPUT, "units": _text, "boxes": _count}, {"details": _TEXTS, "ignored": _COUNTS, "unmatched_images": _count}
)
_MAPS = _table({**_INPUT, "pixels": _count}, {"ignored": _COUNTS})
_CORRESPONDENCE = _table(
    {
        **dict.fromkeys(("image_strategy", "class_strategy"), _text),
        **dict.fromkeys(("matched_images", "n_gt_only_images", "n_pred_only_images"), _count),
        **dict.fromkeys(("gt_only_images", "pred_only_images", "gt_only_classes", "pred_only_classes"), _TEXTS),
        "classes": _list(_pair(_text)),
    }
)
_CLASS_ROW = _table(
    {"class": _text, "gt": _count, "ignored": _count, "pred": _count},
    {**_NOISE, "frequency": _text, "sizes": _table({}, others=_measured)},
    others=_measured,
)
_POINT = _table(
    {
        "class": _MAYBE_TEXT,
        "iou": _SHARE,
        "score": _MAYBE_NUMBER,
        **dict.fromkeys(("tp", "fp", "fn"), _count),
        **dict.fromkeys(("precision", "recall", "f1"), _MAYBE_SHARE),
    }
)
_SLICE_ROW = _table(
    {"slice": _text, "digest": _text, "images": _count, "support": _COUNTS},
    {**_NOISE, "unit": _text, "n_units": _count, "rest": _mapping(_REST)},
    others=_measured,
)
_IMAGE_ROW = _table(
    {
        "image": _text,
        **dict.fromkeys(("gt", "tp", "fp", "fn"), _count),
        **dict.fromkeys(("precision", "recall", "f1", "AP", "mean_IoU"), _MAYBE_SHARE),
        "cost": _real,
    }
)
_WORST_IMAGES = _table(
    {"iou": _SHARE, "score": _MAYBE_NUMBER, "images": _count, "undefined": _mapping(_text), "rows": _list(_IMAGE_ROW)}
)
_EVALUATION = _table(
    {
        **_HEAD,
        "protocol": _mapping(_any),
        "options": _mapping(_any),
        "inputs": _table({"gt": _BOXES, "pred": _BOXES}),
        "correspondence": _CORRESPONDENCE,
        "per_class": _list(_CLASS_ROW),
        "operating_points": _list(_POINT),
    },
    {
        "bootstrap": _BOOTSTRAP,
        **_NOISE,
        "slices": _list(_SLICE_ROW),
        "worst_images": _WORST_IMAGES,
    },
)
_RUN = _table(
    {"run_schema": _any, "result": _mapping(_any), "area_known": _flag, "class_names": _TEXTS, "image_names": _TEXTS},
    {"class_frequency": _TEXTS},
)
_PIXEL_ROW = _table(
    {
        "class": _text,
        "gt_pixels": _count,
        "pred_pixels": _count,
        **{name: _measured(name) for name in MAP_CLASS_METRICS},
    },
    _NOISE,
)
_PIXELS = _table(
    {
        **_HEAD,
        "protocol": _table({}, {"classes": _nullable(_TEXTS)}),
        "inputs": _table({"gt": _MAPS, "pred": _MAPS}),
        "per_class": _list(_PIXEL_ROW),
        "confusion": _list(_table({"gt": _text, "pred": _MAYBE_TEXT, "pixels": _count})),
    },
    {"bootstrap": _BOOTSTRAP, **_NOISE, "slices": _list(_SLICE_ROW), "options": _mapping(_any)},
)
_SEGMENTS = _table(
    {**_INPUT, "masks": _text, "segments": _count, "crowds": _count},
    {"ignored": _COUNTS},
)
_SEGMENT_ROW = _table(
    {
        "class": _text,
        "isthing": _flag,
        **dict.fromkeys(("gt", "pred", "TP", "FP", "FN"), _count),
        **{name: _measured(name) for name in SEGMENT_CLASS_METRICS if name not in ("TP", "FP", "FN")},
    },
    _NOISE,
)
_PANOPTIC = _table(
    {
        **_HEAD,
        "protocol": _mapping(_any),
        "inputs": _table({"gt": _SEGMENTS, "pred": _SEGMENTS}),
        "per_class": _list(_SEGMENT_ROW),
    },
    {"bootstrap": _BOOTSTRAP, **_NOISE, "slices": _list(_SLICE_ROW), "options": _mapping(_any)},
)
_KINDS = {PIXELS: _PIXELS, PANOPTIC: _PANOPTIC, EVALUATION: _EVALUATION}


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the documents of a kind that gates judge."""
    content = _KINDS[kind].schema
    head = {"schema": {"const": SCHEMA}, "kind": {"const": kind}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaccard-eval: result of kind {kind}",
        "type": "object",
        "properties": {**head, **content["properties"], DIGEST: _text.schema},
        "required": [*head, *content["required"], DIGEST],
    }
