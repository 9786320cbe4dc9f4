"""What the JSON documents of all kinds of results are made of: measured values, parts, and how any value is written."""

from __future__ import annotations

import enum
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any
from typing import Protocol as TypingProtocol

from jaccard_eval.data.metricref import MetricRef, canonical
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import did_you_mean, quoted_value

Interval = tuple[float, float]

SCHEMA = 1
RUN_ENTRY = "jaccard_eval_run"  # of the archive of a saved run: the document; by its name a run is known
DIGEST = "digest"  # key of what a document or run is known by to be as it was written
# The kinds of results that saved results and gates know without their classes.
PIXELS, PANOPTIC, EVALUATION = "pixels", "panoptic", "evaluation"
# In the metadata of a field: its key in documents, where that is not its name; None: it has none.
_KEY = "document"


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
    name = ref if ref in values else canonical(ref)
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

    def to_document(self) -> Any:
        """Return plain types, None where undefined."""

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


def written_as(key: str | None) -> dict[str, str | None]:
    """Return the metadata of a dataclass field that documents rename, or omit (None)."""
    return {_KEY: key}


def document_key(item: Field[Any]) -> str | None:
    """Return the key of a dataclass field in documents; None where they omit it."""
    key: str | None = item.metadata.get(_KEY, item.name)
    return key


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
    """Return the object that a dataclass becomes: its fields by their keys."""
    keys = ((document_key(item), item.name) for item in fields(value))
    return {key: to_document(getattr(value, name)) for key, name in keys if key is not None}


def result_document(kind: str, version: str, findings: Iterable[Finding], **others: Any) -> dict[str, Any]:
    """Return the document of a result: its schema and kind, what made it, what was found, and all that is its own."""
    document = {
        "schema": SCHEMA,
        "kind": kind,
        "tool": {"name": "jaccard-eval", "version": version},
        **{name: to_document(value) for name, value in others.items()},
        "warnings": to_document(tuple(findings)),
    }
    return document | {DIGEST: document_digest(document)}


def document_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of all that a document holds but its own digest; layout and order of keys do not count.

    It is that of the JSON text with sorted keys, no blanks and the shortest digits of every float.
    """
    content = {key: value for key, value in document.items() if key != DIGEST}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
