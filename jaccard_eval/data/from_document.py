"""The way back: results from the documents that `document.to_document` makes of them, by the types of their fields.

Where and how a field stands in documents is its `Form`. `read` of that takes the object and returns the document of
the value; what is not there, or of another type, is reported here, not there.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from jaccard_eval.data.document import ABSENT, dig, forms_of, in_order
from jaccard_eval.data.metricref import EXTERNAL, METRICS, MetricRef, split_ref
from jaccard_eval.data.saved_values import Fault, described_type
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, parse_finding

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
