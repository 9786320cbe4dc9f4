"""What the JSON documents of all kinds of results are made of: measured values, parts, and how any value is written."""

from __future__ import annotations

import enum
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any
from typing import Protocol as TypingProtocol

from jaccard_eval.data.metricref import MetricRef, as_subset, canonical
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import did_you_mean, quoted_value


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number of a document can be, where its type does not define all of it."""

    low: float = -math.inf
    high: float = math.inf
    known: bool = False  # never null, which is how documents write what is undefined


# In the annotation of a number, or of an interval: the metric that it stands at decides about its bounds.
BY_METRIC = "by metric"

Count = Annotated[int, Bounds(0)]
Share = Annotated[float, Bounds(0.0, 1.0)]
KnownShare = Annotated[float, Bounds(0.0, 1.0, known=True)]
Known = Annotated[float, Bounds(known=True)]
Interval = tuple[Known, Known]
Measure = Annotated[float, BY_METRIC]
Also = tuple[Callable[[Any], Mapping[str, Any]], ...]  # see `fields_document`
# Types of what documents have besides the fields of a class, by keys; `OTHERS` of keys that are not named. In the place
# of a type there may be an object of types, or a list with the type of its items.
Beside = Mapping[str, Any]
OTHERS = "*"

SCHEMA = 1
RUN_ENTRY = "jaccard_eval_run"  # of the archive of a saved run: the document; by its name a run is known
DIGEST = "digest"  # key of what a document or run is known by to be as it was written
# The kinds of results that saved results and gates know without their classes.
PIXELS, PANOPTIC, EVALUATION = "pixels", "panoptic", "evaluation"
# Where documents of results have these fields, of whatever kind they are.
OF_RESULTS = {"version": "tool.version", "findings": "warnings"}
ABSENT: Any = object()  # in the place of what a document does not have
# By which sums of shares may exceed 1, and percentiles each other.
ROUNDING = 1e-9
_FORM = "document"  # in the metadata of a field


# The words of rules and verdicts: the kinds of limits, how grave a broken one is, what is asked of an interval.
CHECKS = ("min", "max", "max-drop", "max-drop-relative", "max-rise", "max-rise-relative")
SEVERITIES = ("error", "warning", "info")
SIGNIFICANCES = ("significant-drop", "non-inferior")


class Status(enum.StrEnum):
    """How a check ended; only `FAIL` fails a run. `INFO` is a broken limit of a rule that only informs."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"
    INFO = "info"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """One measured value: NaN, with a reason, when undefined; resting on `n` ground-truth boxes."""

    ref: MetricRef
    value: float
    n: int
    reason: str | None = None
    # Where its expected value on sets of this size may lie, by halves of the images; else why there is no interval.
    interval: Interval | None = None
    refused: str | None = None


def value_of(ref: str, metrics: Iterable[MetricValue], kind: str) -> float:
    """Return the value of a reference, in any spelling; a UsageError where a kind of results has none of it."""
    values = {str(metric.ref): metric.value for metric in metrics}
    name = next((name for name in (ref, canonical(ref), as_subset(ref)) if name in values), canonical(ref))
    if name not in values:
        raise UsageError(f"unknown metric {quoted_value(ref)} for {kind}.{did_you_mean(ref, values)}")
    return values[name]


@dataclass(frozen=True, slots=True)
class DataTable:
    """One table for machines: a header, and cells at full precision; NaN where undefined."""

    header: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


class Part(TypingProtocol):
    """An analysis that was requested in addition to the metrics; `kind` is its key in the document of the result."""

    @property
    def kind(self) -> str:
        """Name of the part."""

    def tables(self) -> Mapping[str, DataTable]:
        """Return its tables for machines, by the stem of the file that holds one: ``confusion`` of confusion.csv."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A part that is a list, such as slices."""

    kind: str
    rows: tuple[Any, ...]

    def to_document(self) -> Any:
        """Return a list of objects."""
        return to_document(self.rows)

    def tables(self) -> Mapping[str, DataTable]:
        """Return none: such rows stand in the table of the result."""
        return {}


@dataclass(frozen=True, slots=True)
class Form:
    """What a field of a dataclass is in documents."""

    key: str | None  # with those of the objects that it lies in, as in "inputs.gt"; None: it has none
    written: bool = True  # as it stands; else it is read alone, and its class writes it where it is of use
    write: Callable[[Any], Any] | None = None  # from its value to what `to_document` takes
    read: Callable[[Mapping[str, Any]], Any] | None = None  # from the object to the document of its value
    order: Iterable[str] = ()  # of the keys of an object, which documents sort


def written_as(key: str | None, **form: Any) -> dict[str, Form]:
    """Return the metadata of a dataclass field that documents rename, omit (None), or hold in another `Form`."""
    return {_FORM: Form(key, **form)}


@cache
def forms_of(kind: Any) -> tuple[tuple[Field[Any], Form], ...]:
    """Return the fields of a dataclass, each with its form."""
    of_results = OF_RESULTS if hasattr(kind, "reported_by") else {}
    return tuple((item, item.metadata.get(_FORM, Form(of_results.get(item.name, item.name)))) for item in fields(kind))


def each(rows: Any, change: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return a list with every object in it changed; anything else is left as it is."""
    if not isinstance(rows, list):
        return rows
    return [change(row) if isinstance(row, Mapping) else row for row in rows]


def in_order(values: Any, known: Iterable[str]) -> Any:
    """Return an object with the keys that are known first: documents sort them, which reports do not show."""
    if not isinstance(values, Mapping):
        return values
    return {name: values[name] for name in dict.fromkeys([*(name for name in known if name in values), *values])}


def dig(document: Any, key: str) -> Any:
    """Return what stands at a key, which may lead through objects, else `ABSENT`."""
    for name in key.split("."):
        document = document.get(name, ABSENT) if isinstance(document, Mapping) else ABSENT
    return document


def to_document(value: Any) -> Any:
    """Return a value as documents hold it: plain types all the way down, None where a number is not finite.

    A dataclass becomes an object of its fields, unless it has a `to_document` of its own.
    """
    document = value
    # Numbers that are not finite have no place in JSON: what reads NaN elsewhere is not agreed upon.
    match value:
        case float():
            document = value if math.isfinite(value) else None
        case None | bool() | int():
            pass
        case str():
            document = str(value)
        case list() | tuple():
            document = [to_document(item) for item in value]
        case dict() | Mapping():
            # Thresholds and distances as keys are short: "2", not "2.0".
            short = {f"{key:g}" if isinstance(key, float) else str(key): item for key, item in value.items()}
            document = {key: to_document(item) for key, item in short.items()}
        # An array: to name its type would load NumPy for the help of -o.
        case _ if hasattr(value, "tolist"):
            document = value.tolist()
            # Asked of all numbers at once: curves are most of a document.
            if value.dtype.kind not in "biuf" or not (abs(value) < math.inf).all():
                document = to_document(document)
        case Finding():
            document = {name: getattr(value, name) for name in ("code", "message", "count")}
            examples = [str(example) for example in value.examples]
            document |= {"severity": str(value.severity), "examples": examples, "table": to_document(value.table)}
            document["fix"] = to_document(value.fix)
        case _ if hasattr(value, "to_document"):
            document = value.to_document()
        case _ if is_dataclass(value):
            document = fields_document(value)
    return document


def fields_document(value: Any) -> dict[str, Any]:
    """Return the object that a dataclass becomes: its fields by their keys.

    `also` of its class are functions of the value that return what documents have besides, by keys.
    """
    document: dict[str, Any] = {}
    for item, form in forms_of(type(value)):  # type: ignore[arg-type]
        if form.key is not None and form.written:
            held = getattr(value, item.name)
            put(document, form.key, to_document(form.write(held) if form.write else held))
    for further in getattr(value, "also", ()):
        for key, held in further(value).items():
            put(document, key, to_document(held))
    return document


def put(document: dict[str, Any], key: str, value: Any) -> None:
    """Set what stands at a key, which may lead through objects; that of a metric, as F1[iou=0.75], does not."""
    *outer, last = key.split(".") if "." in key and not key.endswith("]") else (key,)
    for name in outer:
        document = document.setdefault(name, {})
    document[last] = value


def result_document(result: Any, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a result: its schema and kind, what made it, its fields and its parts."""
    document = {"schema": SCHEMA, "kind": result.kind, **fields_document(result), **to_document(parts)}
    document["tool"]["name"] = "jaccard-eval"
    return document | {DIGEST: document_digest(document)}


def document_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of all that a document holds but its own digest; layout and order of keys do not count.

    It is that of the JSON text with sorted keys, no blanks and the shortest digits of every float.
    """
    content = {key: value for key, value in document.items() if key != DIGEST}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
