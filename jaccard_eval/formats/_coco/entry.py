"""One object of a COCO JSON file, whose fields are read with a report of whatever is wrong with them.

A field that cannot be used is recorded as an error and read as a placeholder, so that the rest of the file is read too.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from msgspec import UNSET, UnsetType

from jaccard_eval.errors import FindingLog, Where, shown, shown_json
from jaccard_eval.formats._coco.records import INT64_MAX, INT64_MIN, NOT_GIVEN, Box
from jaccard_eval.reading.json.values import RepeatedKeys, described_json, is_finite, is_number

EXACT_FLOATS = 2.0**53  # from here on not every integer is a float: an id written as one may be another

NEEDED = "Every record needs it, under this name."

# What other tools call the fields; named when a field is missing, never read in its place.
ALIASES = {
    "image_id": ("image", "img_id", "imageid", "image_name", "file_name", "filename"),
    "category_id": ("category", "class_id", "class", "cls", "label", "label_id", "category_name"),
    "bbox": ("box", "boxes", "bounding_box", "xywh", "xyxy", "rect", "segmentation", "keypoints"),
    "score": ("confidence", "conf", "prob", "probability", "scores"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of the file: its values, its place, and where to record what is wrong."""

    values: Mapping[str, Any]
    where: Where
    findings: FindingLog

    def refuse_repeated(self, fields: tuple[str, ...]) -> None:
        """Record which of the fields stand in the object more than once."""
        if isinstance(self.values, RepeatedKeys):
            for field in self.values.repeated:
                if field in fields:
                    self._error(
                        "key-duplicate", field, f"duplicate key {shown(field)} in one object", "Keep one of them."
                    )

    def id(self, field: str) -> int | str:
        """Read an id: an integer, a float that is one, or a text."""
        value = self.required(field)
        if isinstance(value, str) and value.strip():
            return value
        if _is_integer(value):
            exact = isinstance(value, int) or abs(value) < EXACT_FLOATS
            if exact and INT64_MIN <= value <= INT64_MAX:
                return int(value)
            self._error("id-range", field, f"is {shown_json(value)}, out of the range of ids (64-bit integers)")
        elif field in self.values:
            self._error(
                "id-type", field, f"is {described_json(value)}; expected an integer or a text", "Write ids as integers."
            )
        return 0

    def box(self) -> Box:
        """Read the four numbers of a box."""
        value = self.required("bbox")
        expected = "expected 4 numbers [x, y, width, height]"
        if "bbox" not in self.values:
            return 0.0, 0.0, 0.0, 0.0
        if not isinstance(value, list):
            self._error("bbox-type", "bbox", f"is {described_json(value)}; {expected}")
        elif len(value) != 4:
            self._error("bbox-length", "bbox", f"has {len(value)} values {shown_json(value)}; {expected}")
        else:
            left, top, width, height = (self._finite(f"bbox[{at}]", one) for at, one in enumerate(value))
            return left, top, width, height
        return 0.0, 0.0, 0.0, 0.0

    def number(self, field: str) -> float:
        """Read a finite number; NaN where the field is not given."""
        return self._finite(field, self.values[field]) if field in self.values else math.nan

    def flag(self, field: str) -> int:
        """Read 0, 1, true or false; null, which pylabel writes, as not given."""
        value = self.values.get(field, NOT_GIVEN)
        if value is None:
            where = replace(self.where, field=field)
            self.findings.warning("flag-null", where, "is null: read as 0", fix="Write 0 or 1.")
            return NOT_GIVEN
        if field in self.values and not (isinstance(value, bool | int | float) and value in (0, 1)):
            self._error("flag-value", field, f"is {described_json(value)}; expected 0 or 1", "Write 0 or 1.")
            return NOT_GIVEN
        return int(value)

    def text(self, field: str) -> str | UnsetType | None:
        """Read an optional text; a number in its place is written out, anything else is left out with a warning."""
        value = self.values.get(field, UNSET)
        if value is UNSET or value is None or isinstance(value, str):
            return value
        where = replace(self.where, field=field)
        taken = str(value) if is_number(value) else None
        what = "left out" if taken is None else "read as a text"
        self.findings.warning("text-type", where, f"is {described_json(value)}, expected a text: {what}")
        return taken

    def size(self, field: str) -> float | UnsetType | None:
        """Read a side of an image; what is no number is left out with a warning."""
        value = self.values.get(field, UNSET)
        if value is UNSET or value is None:
            return value
        if is_number(value):
            return float(value) if is_finite(value) or isinstance(value, float) else math.inf
        where = replace(self.where, field=field)
        self.findings.warning("image-size", where, f"{field} is {described_json(value)}: taken as unknown")
        return None

    def required(self, field: str, fix: str = NEEDED, *, code: str = "field-missing") -> Any:
        """Return a field that must be there; record its absence, and what may have been meant for it."""
        if field not in self.values:
            likely = _likely(field, tuple(self.values))
            fix = NEEDED if likely else fix
            self._error(code, field, f"is missing{likely}", fix)
        return self.values.get(field)

    def _finite(self, place: str, value: Any) -> float:
        if not is_number(value):
            detail = f"is {described_json(value)}, not a number"
            self._error("number-type", place, detail, "Write numbers without quotes.")
            return 0.0
        if not is_finite(value):
            detail = f"is {shown_json(value)}; numbers must be finite and not too large (at most 1.8e308)"
            self._error("number-not-finite", place, detail, "Fix the exporter or drop the record.")
            return 0.0
        return float(value)

    def _error(self, code: str, field: str, detail: str, fix: str = "") -> None:
        self.findings.error(code, replace(self.where, field=field), detail, fix=fix)


def _is_integer(value: object) -> bool:
    """Whether a JSON value is an integer, or a number too large to be anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return value == math.floor(value) if is_finite(value) else isinstance(value, int) or math.isinf(value)


@lru_cache(maxsize=64)  # the records of a file have few sets of keys, and a field may be missing in all of them
def _likely(field: str, keys: tuple[str, ...]) -> str:
    """Say which of the keys may have been meant for a field."""
    folded = {_fold(key): key for key in reversed(keys)}
    names = [_fold(field), *map(_fold, ALIASES.get(field, ()))]
    names += difflib.get_close_matches(_fold(field), folded, n=1, cutoff=0.8)
    found = next((folded[name] for name in names if name in folded), None)
    return "" if found is None else f"; found {shown(found)} instead"


def _fold(key: str) -> str:
    return key.casefold().replace("_", "").replace("-", "").replace(" ", "")
