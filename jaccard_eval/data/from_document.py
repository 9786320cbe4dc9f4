"""Documents of results: what they can hold, as a check and a JSON Schema, and the way back, all by the types of fields.

Where and how a field stands in documents is its `Form`. What else documents have is listed by its class, with the
keys of fields with a default that they always have (`required`). A field that is read from more than its key is
checked as what it is read as, unless that list has what it is read from.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, Literal, NotRequired, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from jaccard_eval.data.document import (
    ABSENT,
    BY_METRIC,
    DIGEST,
    OTHERS,
    PANOPTIC,
    PIXELS,
    ROUNDING,
    SCHEMA,
    Bounds,
    Count,
    dig,
    forms_of,
    in_order,
    put,
)
from jaccard_eval.data.metricref import EXTERNAL, METRICS, MetricRef, metric_bounds, split_ref
from jaccard_eval.data.result import WithParts, require_ascending
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, Severity, parse_finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import quoted_value

MISSING = "is missing"  # the fault of a field

T = TypeVar("T")
Fault = tuple[str, str]  # the field, and what is wrong with it
Finder = Callable[[Any, str], Iterator[Fault]]  # of a value and the field that it is from


@dataclass(frozen=True, slots=True)
class Check:
    """What the document of a value can be: what finds its faults, the same as JSON Schema, and the way back.

    A schema has as much of it as JSON Schema can express.
    """

    find: Finder
    schema: Mapping[str, Any]
    make: Callable[[Any], Any] = lambda value: value  # of a document without faults


def from_document(kind: type[T], document: Any, faults: list[Fault], **given: Any) -> T | None:
    """Return the value that a document was made of; None where `faults` got what it cannot be made of.

    Fields that are `given` are taken as they are.
    """
    found = list(_record(kind, frozenset(given)).find(document, ""))  # type: ignore[arg-type]
    if not found:
        try:
            return made(kind, document, **given)
        except UsageError as error:
            found.append(("", str(error)))
    faults += found
    return None


def made(kind: type[T], document: Mapping[str, Any], **given: Any) -> T:
    """Return the value that a document without faults was made of; fields that are `given` are taken as they are."""
    hints, values = _type_hints(kind), given  # type: ignore[arg-type]
    for item, form in forms_of(kind):  # type: ignore[arg-type]
        if item.name not in given and (form.read or form.key):
            held = form.read(document) if form.read else dig(document, form.key or "")
            if held is not ABSENT:
                values[item.name] = check_of(hints[item.name]).make(in_order(held, form.order))
    return kind(**values)


def find_faults(document: Mapping[str, Any], kind: type, parts: Mapping[str, type]) -> list[Fault]:
    """Return the fields of a result, and of parts of it, that are missing or have a value that they cannot have.

    The document is as it stands in a file; its kind is known.
    """
    faults = list(check_of(kind).find(document, ""))
    faults += [fault for name, part in parts.items() for fault in check_of(part).find(document[name], name)]
    if faults or not issubclass(kind, WithParts):
        return faults
    # Rules across fields are checked once each field is valid on its own.
    missing = [name for name in ("gt", "pred", "v") if name not in signature_fields(document["signature"])]
    if missing:
        what = f"{described_type(document['signature'])} is not a signature: there is no {'= and no '.join(missing)}="
        faults.append(("signature", what))
    faults += [(f"support.{name}", MISSING) for name in document["metrics"] if name not in document["support"]]
    for i, row in enumerate(document.get("slices", ())):
        faults += [(f"slices[{i}].{name}", MISSING) for name in row["support"] if name not in row]
    return [*faults, *_repeated_rows(document)]


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


def json_schema(kind: type, parts: Mapping[str, type]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the documents of a result, and of parts that it may have."""
    content = check_of(kind).schema
    name: str = kind.kind  # type: ignore[attr-defined]
    head: dict[str, Any] = {"schema": {"const": SCHEMA}, "kind": {"const": name}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaccard-eval: result of kind {name}",
        "type": "object",
        "properties": head
        | content["properties"]
        | {key: check_of(part).schema for key, part in ({**parts, DIGEST: str}).items()},
        "required": [*head, *content["required"], DIGEST],
    }


def described_type(value: Any) -> str:
    """Return a value as JSON has it; of lists and objects the kind alone."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return f"the string {quoted_value(value)}"
    return "null" if value is None else quoted_value(value).lower() if isinstance(value, bool) else quoted_value(value)


def _refused(value: Any, place: str, expected: str) -> Fault:
    return place, f"expected {expected}, got {described_type(value)}"


def _inner(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def check_of(kind: Any) -> Check:
    """Return what the document of a value of a type can be; in the place of a type there may be a mapping."""
    if isinstance(kind, Mapping):
        return _object(kind)
    if isinstance(kind, Check):
        return kind
    return _list(check_of(kind[0])) if isinstance(kind, list) else _check_of_type(kind)


@cache
def _check_of_type(kind: Any) -> Check:  # noqa: PLR0911 - one per type
    kind, notes = _with_notes(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(origin, "__value__"):  # an alias, which NDArray is from NumPy 2.5 on
        kind = origin.__value__[inner]
        origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return _ANY
    if kind in (int, float):
        return _number(kind, next((note for note in notes if isinstance(note, Bounds)), Bounds()))
    if kind in (str, bool):
        return _choice(notes[0]) if notes else _TEXT if kind is str else _FLAG
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        return _choice(inner) if inner else _choice([member.value for member in kind], make=kind)
    if origin in (Union, types.UnionType):
        return _one_of(inner)
    if origin is Sequence or (origin is tuple and inner[1:] == (...,)):
        return _list(check_of(inner[0]))
    if origin is tuple:
        return _tuple([check_of(item) for item in inner], is_interval=bool(notes))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*inner)
    if origin is np.ndarray:
        return _parsed(partial(_array, get_args(inner[1])[0]), "expected a list of numbers", _list(_ANY))
    if kind is Finding:
        return _parsed(parse_finding, "cannot be read as Finding", _object(_FINDING))
    return _parsed(_parse_ref, "cannot be read as MetricRef", _TEXT) if kind is MetricRef else _record(kind)


def _with_notes(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without the notes of its annotation, and these."""
    inner = get_args(kind)
    return (inner[0], inner[1:]) if get_origin(kind) is Annotated else (kind, ())


def _check(fits: Callable[[Any], bool], expected: str, schema: Mapping[str, Any], **way_back: Any) -> Check:
    def find(value: Any, place: str) -> Iterator[Fault]:
        if not fits(value):
            yield _refused(value, place, expected)

    return Check(find, schema, **way_back)


_ANY = Check(lambda _value, _place: iter(()), {})
_TEXT = _check(lambda value: isinstance(value, str), "a string", {"type": "string"})
_FLAG = _check(lambda value: isinstance(value, bool), "true or false", {"type": "boolean"})


def _choice(choices: Sequence[Any], **way_back: Any) -> Check:
    expected = f"one of {', '.join(map(str, choices))}"
    return _check(lambda value: value in choices, expected, {"type": "string", "enum": list(choices)}, **way_back)


def _number(kind: type, bounds: Bounds) -> Check:
    low, high = bounds.low, bounds.high
    ends = "" if math.isinf(low) else f" >= {low:g}" if math.isinf(high) else f" from {low:g} to {high:g}"
    may_be_null = kind is float and not bounds.known  # how documents write what is undefined
    numbers = int if kind is int else (int, float)  # whole numbers are written without a point

    def fits(value: Any) -> bool:
        # To Python, true is 1. Asked this way round, NaN fails as well.
        is_number = isinstance(value, numbers) and not isinstance(value, bool)
        return (value is None and may_be_null) or (is_number and low - ROUNDING <= value <= high + ROUNDING)

    name = "integer" if kind is int else "number"
    limits = {key: end for key, end in (("minimum", low), ("maximum", high)) if math.isfinite(end)}
    schema = {"type": [name, "null"] if may_be_null else name, **limits}
    if kind is int:
        return _check(fits, f"a whole number{ends}", schema)
    return _check(fits, f"a number{ends}", schema, make=lambda value: math.nan if value is None else float(value))


def _one_of(kinds: Sequence[Any]) -> Check:
    """Check a value by the first type that it can be; what is wrong is reported of the last one."""
    *others, last = (check_of(kind) for kind in kinds if kind is not type(None))
    may_be_null = type(None) in kinds

    def fitting(value: Any) -> Check:
        return next((check for check in others if not any(check.find(value, ""))), last)

    def find(value: Any, place: str) -> Iterator[Fault]:
        return iter(()) if value is None and may_be_null else fitting(value).find(value, place)

    def make(value: Any) -> Any:
        return None if value is None and may_be_null else fitting(value).make(value)

    schema = last.schema
    if others:
        schema = {"anyOf": [check.schema for check in (*others, last)] + [{"type": "null"}] * may_be_null}
    elif may_be_null and isinstance(schema.get("type"), str):
        schema = {**schema, "type": [schema["type"], "null"]}
    return Check(find, schema, make)


def _list(check: Check) -> Check:
    def find(value: Any, place: str) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield _refused(value, place, "a list")
            return
        for i, item in enumerate(value):
            yield from check.find(item, f"{place}[{i}]")

    return Check(find, {"type": "array", "items": check.schema}, lambda value: tuple(map(check.make, value)))


def _tuple(checks: Sequence[Check], *, is_interval: bool) -> Check:
    n = len(checks)

    def find(value: Any, place: str) -> Iterator[Fault]:
        if not isinstance(value, list) or len(value) != n:
            yield _refused(value, place, f"a list of {'two' if n == 2 else n}")
            return
        faults = [fault for i, check in enumerate(checks) for fault in check.find(value[i], f"{place}[{i}]")]
        yield from faults
        if is_interval and not faults:
            yield from _found_by(require_ascending, value, place)

    # All of one type, in all documents that have a schema.
    schema = {"type": "array", "items": checks[0].schema, "minItems": n, "maxItems": n}
    return Check(find, schema, lambda value: tuple(check.make(item) for check, item in zip(checks, value, strict=True)))


def _found_by(make: Callable[[Any], Any], value: Any, place: str) -> Iterator[Fault]:
    """Yield the error of what cannot be made of a value."""
    try:
        make(value)
    except UsageError as error:
        yield place, str(error)


def _mapping(key: Any, kind: Any) -> Check:
    check, inner = _object({OTHERS: kind}), check_of(kind)

    def make(value: Any) -> Any:
        found = {name: inner.make(item) for name, item in value.items()}
        # Thresholds and distances ascend.
        return dict(sorted((float(name), item) for name, item in found.items())) if key is float else found

    if key is float:
        return _parsed(make, "expected an object with numbers as keys", check)
    return Check(check.find, check.schema, make)


def _object(kinds: Mapping[str, Any]) -> Check:
    """Check an object by the types of its keys, those of a metric by what that can be."""
    named = {name: get_args(kind)[0] if get_origin(kind) is NotRequired else kind for name, kind in kinds.items()}
    measured = {name: _with_notes(kind)[0] for name, kind in named.items() if BY_METRIC in _with_notes(kind)[1]}
    checks = {name: check_of(kind) for name, kind in named.items()}
    required = [name for name, kind in kinds.items() if name != OTHERS and get_origin(kind) is not NotRequired]

    def find(value: Any, place: str) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield _refused(value, place, "an object")
            return
        yield from ((_inner(place, name), MISSING) for name in required if name not in value)
        for name, item in value.items():
            key = name if name in checks else OTHERS
            metric = str(value.get("metric")) if name == "value" else name  # one that the object names, or each of many
            check = _bounded(measured[key], metric) if key in measured else checks.get(key, _ANY)
            yield from check.find(item, _inner(place, name))

    known = {name: _bounded(kind, name) for name, kind in measured.items() if name in METRICS}
    schemas = {name: check.schema for name, check in (checks | known).items()}
    # Whatever the name: bounds that depend on it are beyond a schema.
    others = {"additionalProperties": schemas.pop(OTHERS)} if OTHERS in schemas else {}
    stated = {name: content for name, content in (("properties", schemas), ("required", required)) if content}
    return Check(find, {"type": "object", **stated, **others})


def _bounded(kind: Any, metric: str) -> Check:
    """Check a value of a metric, or an interval of it."""
    bounds = metric_bounds(metric)
    if kind is float:
        return _check_of_type(Annotated[float, Bounds(*bounds)])
    end = Annotated[float, Bounds(*bounds, known=True)]
    return _check_of_type(Annotated[tuple[end, end], BY_METRIC])


_type_hints = cache(partial(get_type_hints, include_extras=True))  # slow, and asked for each row of a list


@cache
def _record(kind: Any, given: frozenset[str] = frozenset()) -> Check:
    """Check the document of a dataclass, without fields that are `given`."""
    hints, required, beside = _type_hints(kind), getattr(kind, "required", ()), getattr(kind, "beside", {})
    content: dict[str, Any] = {}
    read = []
    for item, form in forms_of(kind):
        # What a later release added is missing in what an earlier one wrote.
        has_default = not item.default is item.default_factory is dataclasses.MISSING
        if form.read and item.name not in given and not (beside and form.key in {None, *beside}):
            read.append((form.key or item.name, form.read, check_of(hints[item.name]), has_default))
        elif form.key and item.name not in given:
            is_optional = has_default and form.key not in required
            put(content, form.key, NotRequired[hints[item.name]] if is_optional else hints[item.name])
    of_results = {"tool.name": str} if hasattr(kind, "reported_by") else {}
    for key, held in (of_results | beside).items():
        put(content, key, held)
    table = _object(content)

    def find(value: Any, place: str) -> Iterator[Fault]:
        faults = [*table.find(value, place)]
        if not faults:
            for key, held_in, check, has_default in read:
                held = held_in(value)
                if held is not ABSENT:
                    faults += check.find(held, _inner(place, key))
                elif not has_default:
                    faults.append((_inner(place, key), MISSING))
        yield from faults
        if hasattr(kind, "__post_init__") and not faults and not given:
            yield from _found_by(partial(made, kind), value, place)

    return Check(find, table.schema, partial(made, kind))


def _parsed(parse: Callable[[Any], Any], fault: str, check: Check) -> Check:
    """Check what only what reads it knows to be right."""

    def find(value: Any, place: str) -> Iterator[Fault]:
        faults = [*check.find(value, place)]
        yield from faults
        try:
            if not faults:
                parse(value)
        except (UsageError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
            yield place, f"{fault}, got {described_type(value)}"

    return Check(find, check.schema, parse)


# Findings lie below what documents are made of.
_FIX = {
    **dict.fromkeys(("kind", "words", "metric", "allow"), str),
    **{"options": Mapping[str, Any], "before": float, "after": float},
}
_FINDING = {
    **{"code": str, "message": str, "count": Count, "severity": Severity, "examples": tuple[str, ...]},
    "table": tuple[tuple[str, ...], ...],
    "fix": _one_of((_FIX, type(None))),
}


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


def _array(kind: Any, value: Any) -> Any:
    found = np.array(value)
    if found.dtype == object or not found.size:  # None: NaN
        found = np.array(value, dtype=kind)
    if found.dtype.kind not in "iuf":
        raise TypeError(found.dtype)
    return found.astype(kind, casting="same_kind" if kind is not np.float64 else "unsafe")
