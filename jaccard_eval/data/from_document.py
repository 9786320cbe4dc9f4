"""Documents of results: what they can hold, as a check and a JSON Schema, and the way back to results by their types.

Where and how a field stands in documents is its `Form`. `read` of that takes the object and returns the document of
the value; what is not there, or of another type, is reported here, not there.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from jaccard_eval.data.document import (
    ABSENT,
    CHECKS,
    DIGEST,
    EVALUATION,
    PANOPTIC,
    PIXELS,
    SCHEMA,
    SEVERITIES,
    SIGNIFICANCES,
    Status,
    dig,
    forms_of,
    in_order,
)
from jaccard_eval.data.metricref import (
    EXTERNAL,
    MAP_CLASS_METRICS,
    METRICS,
    SEGMENT_CLASS_METRICS,
    MetricRef,
    metric_bounds,
    split_ref,
)
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, Severity, parse_finding
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


def _mapping_of(check: Check) -> Check:
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
_TEXTS, _COUNTS, _INTERVALS = _list(_text), _mapping_of(_count), _table({}, others=_interval)
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
        **{"method": _text, "target": _text, "metrics": _mapping_of(_SIZE)},
        **{"group_by": _MAYBE_TEXT, "grouping": _MAYBE_TEXT},
    },
)
_NOISE: dict[str, Check] = {"intervals": _INTERVALS, "refused": _mapping_of(_text)}
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
        **{"class": _MAYBE_TEXT, "ties": _nullable(_pair(_real)), "asked": _mapping_of(_any)},
    },
)
_TOOL = _table({"name": _text, "version": _text})
_FIX = _table(
    {"kind": _text, "words": _text, "options": _mapping_of(_any)}
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
    "signature_fields": _mapping_of(_text),
    "metrics": _table({}, others=_measured),
    "undefined": _mapping_of(_MAYBE_TEXT),
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
    {**_NOISE, "unit": _text, "n_units": _count, "rest": _mapping_of(_REST)},
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
    {
        "iou": _SHARE,
        "score": _MAYBE_NUMBER,
        "images": _count,
        "undefined": _mapping_of(_text),
        "rows": _list(_IMAGE_ROW),
    }
)
_EVALUATION = _table(
    {
        **_HEAD,
        "protocol": _mapping_of(_any),
        "options": _mapping_of(_any),
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
    {
        "run_schema": _any,
        "result": _mapping_of(_any),
        "area_known": _flag,
        "class_names": _TEXTS,
        "image_names": _TEXTS,
    },
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
    {"bootstrap": _BOOTSTRAP, **_NOISE, "slices": _list(_SLICE_ROW), "options": _mapping_of(_any)},
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
        "protocol": _mapping_of(_any),
        "inputs": _table({"gt": _SEGMENTS, "pred": _SEGMENTS}),
        "per_class": _list(_SEGMENT_ROW),
    },
    {"bootstrap": _BOOTSTRAP, **_NOISE, "slices": _list(_SLICE_ROW), "options": _mapping_of(_any)},
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


T = TypeVar("T")
_type_hints = cache(get_type_hints)  # slow, and asked for each row of a list
MISSING = "is missing"  # the fault of a field
_PLAIN = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}


def from_document(kind: type[T], document: Any, faults: list[Fault], **given: Any) -> T | None:
    """Return the value that a document was made of; None where `faults` got what it cannot be made of.

    Fields that are `given` are taken as they are.
    """
    return _record(kind, document, "", faults, given)


def _record(kind: type[T], document: Any, place: str, faults: list[Fault], given: Mapping[str, Any]) -> T | None:
    if not isinstance(document, Mapping):
        faults.append((place, f"expected an object, got {described_type(document)}"))
        return None
    n_faults, values = len(faults), dict(given)
    hints = _type_hints(kind)  # type: ignore[arg-type]
    for item, form in forms_of(kind):  # type: ignore[arg-type]
        if item.name in given:
            continue
        key = form.key or item.name
        value = ABSENT if form.key is None else dig(document, key)
        value = in_order(form.read(document) if form.read else value, form.order)
        if value is not ABSENT:
            values[item.name] = _value(hints[item.name], value, f"{place}.{key}" if place else key, faults)
        # What a later release added is missing in what an earlier one wrote.
        elif item.default is item.default_factory is dataclasses.MISSING:
            faults.append((f"{place}.{key}" if place else key, MISSING))
    if len(faults) > n_faults:
        return None
    try:
        return kind(**values)
    except UsageError as error:
        faults.append((place, str(error)))
        return None


def _value(kind: Any, value: Any, place: str, faults: list[Fault]) -> Any:  # noqa: PLR0911 - one per type
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(origin, "__value__"):  # an alias, which NDArray is from NumPy 2.5 on
        kind = origin.__value__[inner]
        origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _one_of(inner, value, place, faults)
    if origin is Literal:
        return _checked(value in inner, value, f"one of {', '.join(map(str, inner))}", place, faults)
    if kind in _PLAIN:
        return _plain(kind, value, place, faults)
    if origin is Sequence:
        origin, inner = tuple, (*inner, ...)
    if origin is tuple:
        return _tuple(inner, value, place, faults)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(inner, value, place, faults)
    if origin is np.ndarray:
        return _array(get_args(inner[1])[0], value, place, faults)
    if kind is Finding or kind is MetricRef or issubclass(kind, enum.Enum):
        parse: Callable[[Any], Any] = {Finding: parse_finding, MetricRef: _parse_ref}.get(kind, kind)
        try:
            return parse(value)
        except (UsageError, ValueError, TypeError, KeyError, AttributeError):
            faults.append((place, f"cannot be read as {kind.__name__}, got {described_type(value)}"))
            return None
    assert is_dataclass(kind), kind
    return _record(kind, value, place, faults, {})  # type: ignore[arg-type]


def _parse_ref(text: str) -> MetricRef:
    """Return what a text refers to, of whatever kind of result."""
    if text.startswith(EXTERNAL):
        return MetricRef(name=text)
    try:
        return MetricRef.parse(text)
    except UsageError:
        head, items = split_ref(text)
        if head not in METRICS:
            raise
        return MetricRef(name=head, class_name=str(items["class"]) if "class" in items else None)


def _checked(holds: bool, value: Any, expected: str, place: str, faults: list[Fault]) -> Any:
    if not holds:
        faults.append((place, f"expected {expected}, got {described_type(value)}"))
    return value


def _plain(kind: type, value: Any, place: str, faults: list[Fault]) -> Any:
    if kind is float and value is None:  # how documents write what is undefined
        return np.nan
    # To Python, true is 1; and whole numbers are written without a point.
    fits = isinstance(value, (int, float) if kind is float else kind) and (kind is bool) is isinstance(value, bool)
    checked = _checked(fits, value, _PLAIN[kind], place, faults)
    return float(checked) if fits and kind is float else checked


def _one_of(kinds: Sequence[Any], value: Any, place: str, faults: list[Fault]) -> Any:
    """Return the value of the first type that it can be; what is wrong is reported of the last one."""
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    for kind in others[:-1]:
        tried: list[Fault] = []
        found = _value(kind, value, place, tried)
        if not tried:
            return found
    return _value(others[-1], value, place, faults)


def _tuple(inner: Sequence[Any], value: Any, place: str, faults: list[Fault]) -> Any:
    is_open = inner[1:] == (...,)
    length = "" if is_open else f" of {len(inner)}"
    if not isinstance(value, list) or not (is_open or len(value) == len(inner)):
        return _checked(False, value, f"a list{length}", place, faults)
    kinds = [inner[0]] * len(value) if is_open else inner
    return tuple(
        _value(kind, item, f"{place}[{i}]", faults) for i, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _mapping(inner: Sequence[Any], value: Any, place: str, faults: list[Fault]) -> Any:
    if not isinstance(value, Mapping):
        return _checked(False, value, "an object", place, faults)
    key, kind = inner
    found = {name: _value(kind, item, f"{place}.{name}", faults) for name, item in value.items()}
    if key is not float:
        return found
    try:  # thresholds and distances, which ascend
        return dict(sorted((float(name), item) for name, item in found.items()))
    except ValueError:
        return _checked(False, value, "an object with numbers as keys", place, faults)


def _array(kind: Any, value: Any, place: str, faults: list[Fault]) -> Any:
    try:
        found = np.array(value)
        if found.dtype == object or not found.size:  # None: NaN
            found = np.array(value, dtype=kind)
        if found.dtype.kind in "iuf":
            return found.astype(kind, casting="same_kind" if kind is not np.float64 else "unsafe")
    except (TypeError, ValueError, OverflowError):
        pass
    return _checked(False, value, "a list of numbers", place, faults)
