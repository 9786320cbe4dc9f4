"""The thorough reader of COCO JSON: takes the dialects that writers produce, and names every fault with its place.

Slower than the typed decoder, and used only where that one gives up. What both accept, they read alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET

from jaccard_eval.errors import DataError, FindingLog, Where, shown
from jaccard_eval.formats._coco.entry import Entry
from jaccard_eval.formats._coco.records import (
    CategoryRecord,
    Content,
    ImageRecord,
    Layout,
    ResultRecord,
    TruthRecord,
)
from jaccard_eval.reading.json.values import (
    described_json,
    kind_of,
    looks_like_json_lines,
    parse_json,
    parse_json_lines,
)

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
    """Read ground truth.

    Raises
    ------
    DataError
        With every fault of the file.
    """
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
    """Read detections of any layout; `scores_optional` when it will do that no record has a score.

    Raises
    ------
    DataError
        With every fault of the file.
    """
    file = _File(str(path), findings)
    if looks_like_json_lines(text):
        content = _result_lines(file, parse_json_lines(path, text, findings), scores_optional)
    else:
        document = parse_json(path, text)
        if _is_result(document):
            content = _result_lines(file, [(_first_line(text), document)], scores_optional)
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
        keys = ", ".join(map(shown, list(outermost.values)[:_SHOWN_KEYS])) or "no keys"
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


def _first_line(text: str) -> int:
    return text.count("\n", 0, len(text) - len(text.lstrip())) + 1
