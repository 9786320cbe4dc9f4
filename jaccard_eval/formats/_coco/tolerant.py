"""One object of a COCO JSON file, whose fields are read with a report of whatever is wrong with them.

A field that cannot be used is recorded as an error and read as a placeholder, so that the rest of the file is read too.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.formats._coco.strict import (
    INT64_MAX,
    INT64_MIN,
    NOT_GIVEN,
    Box,
    CategoryRecord,
    Content,
    ImageRecord,
    Layout,
    ResultRecord,
    TruthRecord,
)
from jaccard_eval.reading.json import (
    RepeatedKeys,
    described_json,
    is_finite,
    is_number,
    kind_of,
    looks_like_json_lines,
    parse_json,
    parse_json_lines,
)
from jaccard_eval.text import quoted_value, shown_json

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
                        "key-duplicate",
                        field,
                        f"duplicate key {quoted_value(field)} in one object",
                        "Keep one of them.",
                    )

    def id(self, field: str) -> int | str:
        """Read an id: an integer, a float that is one, or a text."""
        value = self.required(field)
        if isinstance(value, str) and value.strip():
            return value
        # A number too large for a float is taken for an integer, which is out of range.
        is_large = is_number(value) and not is_finite(value) and (isinstance(value, int) or math.isinf(value))
        if is_large or (is_number(value) and is_finite(value) and value == math.floor(value)):
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
            left, top, width, height = (self._finite(f"bbox[{at}]", number) for at, number in enumerate(value))
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


@lru_cache(maxsize=64)  # the records of a file have few sets of keys, and a field may be missing in all of them
def _likely(field: str, keys: tuple[str, ...]) -> str:
    """Say which of the keys may have been meant for a field."""
    folded = {_fold(key): key for key in reversed(keys)}
    names = [_fold(field), *map(_fold, ALIASES.get(field, ()))]
    names += difflib.get_close_matches(_fold(field), folded, n=1, cutoff=0.8)
    found = next((folded[name] for name in names if name in folded), None)
    return "" if found is None else f"; found {quoted_value(found)} instead"


def _fold(key: str) -> str:
    return key.casefold().replace("_", "").replace("-", "").replace(" ", "")


_SHOWN_KEYS = 5  # of an object that is no COCO JSON
_WHOLE = "Export the whole data set, with images, annotations and categories."
_SECTIONS = {
    "images": _WHOLE,
    "annotations": (
        "Files that only list images, as COCO's image_info_*.json, hold no ground truth: pass the one with the boxes,"
        ' or write "annotations": [] where there are none.'
    ),
    "categories": _WHOLE,
}  # to the fix where it is missing
_TRUTH_LAYOUT = "one JSON object with images, annotations and categories"
_RESULT = "an object with image_id, category_id, bbox and score"
_RESULT_LAYOUT = "an array (list) of objects with image_id, category_id, bbox and score"
_TRUTH_FIELDS = ("image_id", "category_id", "bbox", "area", "iscrowd", "ignore")
_RESULT_FIELDS = ("image_id", "category_id", "bbox", "score", "file_name", "category_name")
_IMAGE_FIELDS = ("id", "file_name", "width", "height")
_CATEGORY_FIELDS = ("id", "name")


def read_truth(path: Path, text: str, findings: FindingLog) -> Content[TruthRecord]:
    """Read ground truth; a DataError has every fault of the file."""
    in_lines = looks_like_json_lines(text)
    document = None if in_lines else parse_json(path, text)
    if in_lines or _is_result(document):
        detail = f"JSON Lines (one JSON object per line) hold predictions; ground truth is {_TRUTH_LAYOUT}"
        raise DataError.single("json-lines", Where(str(path)), detail, fix="Pass the COCO file of the data set.")
    file = _File(str(path), findings)
    outermost = file.outermost(document, _TRUTH_LAYOUT)
    outermost.refuse_repeated(tuple(_SECTIONS))
    content = Content(
        layout=Layout.OBJECT,
        images=[_image(entry) for entry in file.section(outermost, "images")],
        categories=[_category(entry) for entry in file.section(outermost, "categories")],
        boxes=[_truth(entry) for entry in file.section(outermost, "annotations")],
    )
    findings.raise_errors()
    return content


def read_results(path: Path, text: str, findings: FindingLog, *, scores_optional: bool) -> Content[ResultRecord]:
    """Read detections of any layout; `scores_optional` when it will do that no record has a score."""
    file = _File(str(path), findings)
    if looks_like_json_lines(text):
        content = _result_lines(file, parse_json_lines(path, text, findings), scores_optional)
    else:
        document = parse_json(path, text)
        if _is_result(document):
            line = text.count("\n", 0, len(text) - len(text.lstrip())) + 1
            content = _result_lines(file, [(line, document)], scores_optional)
        elif isinstance(document, list):
            entries = file.entries("", document, _RESULT)
            content = Content(layout=Layout.ARRAY, boxes=_results(entries, scores_optional))
        else:
            content = _result_object(file, file.outermost(document, _RESULT_LAYOUT), scores_optional)
    findings.raise_errors()
    return content


@dataclass(frozen=True, slots=True)
class _File:
    """The file that is read: makes entries of its parts, and records what is none."""

    path: str
    findings: FindingLog

    def outermost(self, document: Any, expected: str) -> Entry:
        """Return the outermost object; anything else cannot be read at all."""
        if isinstance(document, dict):
            return Entry(document, Where(self.path), self.findings)
        found = described_json(document)
        if isinstance(document, list):
            found = f"an array of {len(document):,} values (a list of results?)"
        raise DataError.single("layout", Where(self.path), f"the top level is {found}; expected {expected}")

    def section(self, outermost: Entry, name: str) -> list[Entry]:
        """Return the entries of a section that must be there."""
        values = outermost.required(name, _SECTIONS[name], code="section-missing")
        if isinstance(values, list):
            return self.entries(name, values, "an object")
        if name in outermost.values:
            detail = f"is {kind_of(values)}; expected an array (list)"
            self.findings.error("section-type", Where(self.path, field=name), detail)
        return []

    def entries(self, name: str, values: list[Any], expected: str) -> list[Entry]:
        """Return the objects of an array."""
        places = (Where(self.path, record=f"{name}[{row}]") for row in range(len(values)))
        return [
            entry for where, value in zip(places, values, strict=True) if (entry := self.entry(where, value, expected))
        ]

    def entry(self, where: Where, value: Any, expected: str) -> Entry | None:
        """Return an object; record anything else."""
        if isinstance(value, dict):
            return Entry(value, where, self.findings)
        self.findings.error("record-type", where, f"is {described_json(value)}; expected {expected}")
        return None


def _result_object(file: _File, outermost: Entry, scores_optional: bool) -> Content[ResultRecord]:
    if "annotations" not in outermost.values:
        keys = ", ".join(map(quoted_value, list(outermost.values)[:_SHOWN_KEYS])) or "no keys"
        detail = f"the top level is an object with {keys}; expected {_RESULT_LAYOUT}, or a COCO object with annotations"
        raise DataError.single("layout", Where(file.path), detail, fix="Pass the array of results by itself.")
    outermost.refuse_repeated(tuple(_SECTIONS))
    boxes = _results(file.section(outermost, "annotations"), scores_optional)
    images = None if outermost.values.get("images") is None else file.section(outermost, "images")
    categories = None if outermost.values.get("categories") is None else file.section(outermost, "categories")
    return Content(
        layout=Layout.OBJECT,
        boxes=boxes,
        images=None if images is None else list(map(_image, images)),
        categories=None if categories is None else list(map(_category, categories)),
    )


def _result_lines(file: _File, numbered: list[tuple[int, Any]], scores_optional: bool) -> Content[ResultRecord]:
    places = (Where(file.path, line=number) for number, _ in numbered)
    found = (file.entry(where, value, _RESULT) for where, (_, value) in zip(places, numbered, strict=True))
    entries = [entry for entry in found if entry is not None]
    lines = [number for number, _ in numbered]
    return Content(layout=Layout.LINES, boxes=_results(entries, scores_optional), lines=lines)


def _results(entries: list[Entry], scores_optional: bool) -> list[ResultRecord]:
    scored = any("score" in entry.values for entry in entries)
    if scored or not scores_optional:
        fix = "" if scored else "Ground truth has none: were the files swapped? --assume-score 1.0 ranks all alike."
        for entry in entries:
            entry.required("score", fix, code="score-missing")
    return list(map(_result, entries))


def _result(entry: Entry) -> ResultRecord:
    entry.refuse_repeated(_RESULT_FIELDS)
    return ResultRecord(
        image_id=entry.id("image_id"),
        category_id=entry.id("category_id"),
        bbox=entry.box(),
        score=entry.number("score"),
        file_name=entry.text("file_name"),
        category_name=entry.text("category_name"),
    )


def _truth(entry: Entry) -> TruthRecord:
    entry.refuse_repeated(_TRUTH_FIELDS)
    own_id = entry.values.get("id", UNSET)
    return TruthRecord(
        image_id=entry.id("image_id"),
        category_id=entry.id("category_id"),
        bbox=entry.box(),
        area=entry.number("area"),
        iscrowd=entry.flag("iscrowd"),
        ignore=entry.flag("ignore"),
        id=own_id if isinstance(own_id, int | float | str) else UNSET,
        score=entry.values.get("score", UNSET),
    )


def _image(entry: Entry) -> ImageRecord:
    entry.refuse_repeated(_IMAGE_FIELDS)
    return ImageRecord(
        id=entry.id("id"), file_name=entry.text("file_name"), width=entry.size("width"), height=entry.size("height")
    )


def _category(entry: Entry) -> CategoryRecord:
    entry.refuse_repeated(_CATEGORY_FIELDS)
    return CategoryRecord(id=entry.id("id"), name=entry.text("name"), supercategory=entry.values.get("supercategory"))


def _is_result(document: Any) -> bool:
    """Whether a document is one result by itself, as the only line of JSON Lines."""
    return isinstance(document, dict) and {"image_id", "bbox"} <= document.keys()
