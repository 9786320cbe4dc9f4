"""One object of an annotation file in JSON, whose fields are read with a report of whatever is wrong with them.

A field that cannot be used is recorded as an error and read as a placeholder, so that the rest of the file is read too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from jaccard_eval.data.dataset import MAX_IMAGE_SIDE
from jaccard_eval.errors import FindingLog, Where, shown, shown_json
from jaccard_eval.reading.json.values import RepeatedKeys, described_json, is_finite, is_number

_EXPORT = "Export the file again, or mend it at that place."


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the file: its values, its place, and where to record what is wrong."""

    values: dict[str, Any]
    where: Where
    findings: FindingLog

    @classmethod
    def of(cls, value: Any, where: Where, findings: FindingLog) -> Record:
        """Take a value as an object; of one that is none, the faults are told once and no more."""
        if not isinstance(value, dict):
            findings.error("record-type", where, f"is {described_json(value)}; expected an object", fix=_EXPORT)
            return cls({}, where, FindingLog())
        for key in value.repeated if isinstance(value, RepeatedKeys) else ():
            place = replace(where, field=key)
            findings.error("key-duplicate", place, f"duplicate key {shown(key)} in one object", fix="Keep one of them.")
        return cls(value, where, findings)

    @classmethod
    def list_of(cls, value: Any, where: Where, findings: FindingLog) -> Iterator[Record]:
        """Take a value as a list of objects; what is none is told and left out."""
        return cls({"": value}, where, findings).records("")

    def has(self, field: str) -> bool:
        """Whether a field is given and not null."""
        return self.values.get(field) is not None

    def number(self, field: str) -> float:
        """Read a finite number; NaN where there is none."""
        return self._finite(field, self.values[field]) if self._require(field) else math.nan

    def side(self, field: str) -> float:
        """Read the width or height of an image in pixels; NaN where it is unknown, for which some tools write 0."""
        value = self.number(field)
        if not math.isnan(value) and (not 0 <= value <= MAX_IMAGE_SIDE or value % 1):
            expected = f"a whole number of pixels, at most {MAX_IMAGE_SIDE:g}"
            detail = f"is {shown_json(self.values[field])}; expected {expected}"
            self.error("image-size", field, detail, "Write the true size, or leave it out and pass --images DIR.")
        return value or math.nan

    def numbers(self, field: str, count: int) -> list[float]:
        """Read so many finite numbers in an array."""
        values = self.array(field)
        if len(values) == count:
            return [self._finite(f"{field}[{at}]", value) for at, value in enumerate(values)]
        if isinstance(self.values.get(field), list):
            self.error("bbox-length", field, f"has {len(values)} values; expected {count} numbers")
        return [math.nan] * count

    def corners(self, field: str) -> list[float]:
        """Read two opposite corners, or all four, drawn in any direction, as left, top, right and bottom."""
        points = self.array(field)
        if len(points) not in (2, 4):
            if isinstance(self.values.get(field), list):
                self.error("bbox-length", field, f"has {len(points)} points; a rectangle has 2 opposite corners, or 4")
            return [math.nan] * 4
        named = Record({f"{field}[{at}]": point for at, point in enumerate(points)}, self.where, self.findings)
        xs, ys = zip(*(named.numbers(name, 2) for name in named.values), strict=True)
        return [min(xs), min(ys), max(xs), max(ys)]

    def text(self, field: str) -> str:
        """Read a text that must not be empty; empty where there is none."""
        if not self._require(field):
            return ""
        value = self.values[field]
        if isinstance(value, str) and value.strip():
            return value
        self.error("field-missing", field, f"is {described_json(value)}; expected a text that is not empty")
        return ""

    def array(self, field: str) -> list[Any]:
        """Read an array; empty where there is none."""
        if not self._require(field):
            return []
        value = self.values[field]
        if not isinstance(value, list):
            self.error("section-type", field, f"is {described_json(value)}; expected an array (list)")
            return []
        return value

    def records(self, field: str) -> Iterator[Record]:
        """Read an array of objects; what is none is told and left out."""
        for at, value in enumerate(self.array(field)):
            record = Record.of(value, self._inner(f"{field}[{at}]"), self.findings)
            if isinstance(value, dict):
                yield record

    def record(self, field: str) -> Record:
        """Read an object in this one."""
        if not self._require(field):
            return Record({}, self.where, FindingLog())
        return Record.of(self.values[field], self._inner(field), self.findings)

    def at(self, field: str) -> Where:
        """Return the place of a field as that of a record."""
        return self._inner(field)

    def error(self, code: str, field: str, detail: str, fix: str = _EXPORT) -> None:
        """Record a fault of a field."""
        self.findings.error(code, replace(self.where, field=field), detail, fix=fix)

    def _require(self, field: str) -> bool:
        if self.has(field):
            return True
        self.error("field-missing", field, "is null" if field in self.values else "is missing")
        return False

    def _inner(self, name: str) -> Where:
        outer = self.where.record or ""
        joint = "." if outer and not name.startswith("[") else ""
        return replace(self.where, record=f"{outer}{joint}{name}")

    def _finite(self, field: str, value: Any) -> float:
        if not is_number(value):
            self.error("number-type", field, f"is {described_json(value)}, not a number", "Write numbers unquoted.")
        elif not is_finite(value):
            detail = f"is {shown_json(value)}; numbers must be finite and not too large (at most 1.8e308)"
            self.error("number-not-finite", field, detail, "Fix the exporter or drop the record.")
        else:
            return float(value)
        return math.nan
