"""Objects of a COCO JSON file, whose fields are read with a report of whatever is wrong with them.

A field that cannot be used is recorded as an error and read as a placeholder, so that the rest of the file is read too.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._coco.strict import (
    GROUP_KEYS,
    INT64_MAX,
    INT64_MIN,
    NOT_GIVEN,
    VERIFIED,
    Boxes,
    CategoryRecord,
    Content,
    ImageRecord,
    Layout,
    ResultRecord,
    TruthRecord,
)
from jaccard_eval.native.calls import LISTS
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import (
    described_json,
    is_finite,
    is_finite_number,
    is_number,
    kind_of,
    looks_like_json_lines,
    parse_json,
    parse_json_lines,
)
from jaccard_eval.reading.records import Record
from jaccard_eval.text import quoted_value, shown_json

_EXACT_FLOATS = 2.0**53  # from here on not every integer is a float: an id written as one may be another
_NEEDED = "Every record needs it, under this name."
_SHOWN_KEYS = 5  # of an object that is not COCO JSON

# What other tools call the fields; named when a field is missing, never read in its place.
_ALIASES = {
    "image_id": ("image", "img_id", "imageid", "image_name", "file_name", "filename"),
    "category_id": ("category", "class_id", "class", "cls", "label", "label_id", "category_name"),
    "bbox": ("box", "boxes", "bounding_box", "xywh", "xyxy", "rect", "segmentation", "keypoints"),
    "score": ("confidence", "conf", "prob", "probability", "scores"),
}
_WHOLE = "Export the whole dataset, with images, annotations and categories."
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
_LISTS = f"{', '.join(LISTS[:-1])} or {LISTS[-1]}"
_TRUTH_FIELDS = ("image_id", "category_id", "bbox", "area", "iscrowd", "ignore", *GROUP_KEYS)
_RESULT_FIELDS = ("image_id", "category_id", "bbox", "score", "file_name", "category_name")
_IMAGE_FIELDS = ("id", "file_name", "width", "height", *VERIFIED)
_CATEGORY_FIELDS = ("id", "name")


def read_truth(path: Path, text: str, findings: FindingLog, *, boxes: Boxes = Boxes.NEEDED) -> Content[TruthRecord]:
    """Read ground truth; a DataError has every fault of the file."""
    in_lines = looks_like_json_lines(text)
    document = None if in_lines else parse_json(path, text)
    if in_lines or _is_result(document):
        detail = f"JSON Lines (one JSON object per line) hold predictions; ground truth is {_TRUTH_LAYOUT}"
        raise DataError.single("json-lines", Where(str(path)), detail, fix="Pass the COCO file of the dataset.")
    outermost = _outermost(document, Where(str(path)), findings, _TRUTH_LAYOUT)
    outermost.refuse_repeated(tuple(_SECTIONS))
    content = Content(
        layout=Layout.OBJECT,
        section="annotations",
        images=[_image(record) for record in _section(outermost, "images")],
        categories=[_category(record) for record in _section(outermost, "categories")],
        boxes=[_truth(record, boxes) for record in _section(outermost, "annotations")],
    )
    findings.raise_errors()
    return content


def read_results(
    path: Path, text: str, draft: Draft, *, scores_optional: bool, boxes: Boxes = Boxes.NEEDED
) -> Content[ResultRecord]:
    """Read detections of any layout; `scores_optional` when it will do that no record has a score."""
    where, findings = Where(str(path)), draft.findings
    numbered = parse_json_lines(path, text, findings) if looks_like_json_lines(text) else None
    document = parse_json(path, text) if numbered is None else None
    if _is_result(document):  # a single line
        numbered = [(text.count("\n", 0, len(text) - len(text.lstrip())) + 1, document)]
    if numbered is not None:
        lines = [number for number, _ in numbered]
        values = [(replace(where, line=number), value) for number, value in numbered]
        records = _objects(values, findings, _RESULT)
        content = Content(
            layout=Layout.LINES, boxes=_results(_classed(records, draft), scores_optional, boxes), lines=lines
        )
    elif isinstance(document, list):
        records = _classed(_objects(_placed(where, "", document), findings, _RESULT), draft)
        content = Content(layout=Layout.ARRAY, boxes=_results(records, scores_optional, boxes))
    else:
        outermost = _outermost(document, where, findings, _RESULT_LAYOUT)
        content = _result_object(outermost, scores_optional, boxes)
    findings.raise_errors()
    return content


def _is_result(document: Any) -> bool:
    """Whether a document is one result by itself, as the only line of JSON Lines."""
    return isinstance(document, dict) and {"image_id", "bbox"} <= document.keys()


def _outermost(document: Any, where: Where, findings: FindingLog, expected: str) -> Record:
    """Return the outermost object; anything else cannot be read at all."""
    if isinstance(document, dict):
        records = document.get("annotations")
        if isinstance(records, list) and records and isinstance(records[0], dict) and "segments_info" in records[0]:
            alone, against = "panoptic GT PRED", "panoptic GT PRED --against OTHER"
            words = f"Evaluate it with {{command:{alone}}}, or compare predictions with {{command:{against}}}."
            fix = Fix.missing(words, command=(alone, against))
            detail = "annotations have segments_info: a panoptic segmentation, which has no boxes of its own"
            raise DataError.single("layout", where, detail, fix=fix)
        return Record(document, where, findings)
    if isinstance(document, list):
        raise refuse_list(Path(where.path), len(document), expected)
    found = described_json(document)
    raise DataError.single("layout", where, f"the top level is {found}; expected {expected}")


def refuse_list(path: Path, n_values: int, expected: str = _TRUTH_LAYOUT) -> DataError:
    """Return the error about an array in the place of an object."""
    detail = f"the top level is an array of {n_values:,} values (a list of results?); expected {expected}"
    fix = "Pass the ground truth first, then the predictions."
    return DataError.single("layout", Where(str(path)), detail, fix=fix)


def _section(outermost: Record, name: str) -> list[Record]:
    """Return the objects of a section that must be there."""
    values = _required(outermost, name, _SECTIONS.get(name, _WHOLE), code="section-missing")
    if isinstance(values, dict) and values and all(isinstance(value, dict) for value in values.values()):
        values = [*values.values()]  # by their ids, as LIVECell has them
    if isinstance(values, list):
        return _objects(_placed(outermost.where, name, values), outermost.findings, "an object")
    if name in outermost.values:
        outermost.error("section-type", name, f"is {kind_of(values)}; expected an array (list)", "")
    return []


def _placed(where: Where, name: str, values: list[Any]) -> list[tuple[Where, Any]]:
    return [(replace(where, record=f"{name}[{row}]"), value) for row, value in enumerate(values)]


def _objects(placed: list[tuple[Where, Any]], findings: FindingLog, expected: str) -> list[Record]:
    """Return values that are objects; anything else is recorded and skipped."""
    records = []
    for where, value in placed:
        if isinstance(value, dict):
            records.append(Record(value, where, findings))
        else:
            findings.error("record-type", where, f"is {described_json(value)}; expected {expected}")
            # In its place, so that others keep theirs; that it lacks every field is not reported, too.
            records.append(Record({}, where, FindingLog()))
    return records


def _result_object(outermost: Record, scores_optional: bool, boxes: Boxes) -> Content[ResultRecord]:
    name = _result_section(outermost)
    outermost.refuse_repeated((*_SECTIONS, name))
    found = _results(_of_one_category(_section(outermost, name), outermost), scores_optional, boxes)
    # Unlike ground truth, detections need neither images nor categories.
    images = map(_image, _section(outermost, "images")) if outermost.has("images") else None
    categories = map(_category, _section(outermost, "categories")) if outermost.has("categories") else None
    return Content(
        layout=Layout.OBJECT,
        boxes=found,
        section=name,
        images=None if images is None else list(images),
        categories=None if categories is None else list(categories),
    )


def _result_section(outermost: Record) -> str:
    """Return the key of the detections: of several lists that may be them, the one that has scores."""
    found = [name for name in LISTS if name in outermost.values]
    lists = {name: values for name in found if isinstance(values := outermost.values[name], list)}
    if len(lists) > 1:
        scored = [
            name for name, values in lists.items() if any(isinstance(row, dict) and "score" in row for row in values)
        ]
        if len(scored) == 1:
            return scored[0]
        counts = " and ".join(f"{len(values):,} {name}" for name, values in lists.items())
        detail = f"the object has {counts}, {'all' if scored else 'none'} with scores: which are the predictions?"
        fix = f"Keep only one of the keys {', '.join(map(quoted_value, lists))}."
        raise DataError.single("layout", outermost.where, detail, fix=fix)
    if found:
        return next(iter(lists or found))
    keys = ", ".join(map(quoted_value, list(outermost.values)[:_SHOWN_KEYS])) or "no keys"
    detail = f"the top level is an object with {keys}; expected {_RESULT_LAYOUT}, or an object with it as {_LISTS}"
    others = [
        name for name, values in outermost.values.items() if isinstance(values, list) and any(map(_is_result, values))
    ]
    fix = (
        f"Rename {quoted_value(others[0])} to 'predictions'." if len(others) == 1 else "Pass only the array of results."
    )
    raise DataError.single("layout", outermost.where, detail, fix=fix)


def _of_one_category(records: list[Record], outermost: Record) -> list[Record]:
    """Return records that have a class: the only category that their file has, where none of them names any."""
    listed = outermost.values.get("categories")
    only = listed[0] if isinstance(listed, list) and len(listed) == 1 else None
    names = {"category_id", *_ALIASES["category_id"]}
    if not isinstance(only, dict) or "id" not in only or any(names & {*record.values} for record in records):
        return records
    detail = f"records name no class: all are of the only category, {quoted_value(only.get('name', only['id']))}"
    outermost.findings.note("csv-one-class", outermost.where, detail)
    return [replace(record, values={**record.values, "category_id": only["id"]}) for record in records]


def _classed(records: list[Record], draft: Draft) -> list[Record]:
    """Return records that have a class: one for all where nothing names any, as of detectors of one class."""
    from jaccard_eval.reading.tabular.table import NO_CLASS, note_no_class  # most results name theirs

    names = {"category_id", *_ALIASES["category_id"]}
    if not any("bbox" in record.values for record in records) or any(names & {*record.values} for record in records):
        return records
    note_no_class(draft)
    return [replace(record, values={**record.values, "category_id": NO_CLASS}) for record in records]


def _results(records: list[Record], scores_optional: bool, boxes: Boxes) -> list[ResultRecord]:
    scored = any("score" in record.values for record in records)
    if scored or not scores_optional:
        fix = (
            ""
            if scored
            else (
                Fix.missing(
                    "Ground truth has none: were the files swapped? To rank all predictions equally, pass"
                    " {assume_score}.",
                    assume_score="1.0",
                )
            )
        )
        for record in records:
            _required(record, "score", fix, code="score-missing")
    return [_result(record, boxes) for record in records]


def _result(record: Record, boxes: Boxes) -> ResultRecord:
    record.refuse_repeated(_RESULT_FIELDS)
    return ResultRecord(
        image_id=_id(record, "image_id"),
        category_id=_id(record, "category_id"),
        bbox=_box(record, boxes),
        score=_number(record, "score"),
        file_name=_text(record, "file_name"),
        category_name=_text(record, "category_name"),
    )


def _truth(record: Record, boxes: Boxes) -> TruthRecord:
    record.refuse_repeated(_TRUTH_FIELDS)
    own_id = record.values.get("id", UNSET)
    return TruthRecord(
        image_id=_id(record, "image_id"),
        category_id=_id(record, "category_id"),
        bbox=_box(record, boxes),
        area=float("nan") if record.values.get("area") is None else _number(record, "area"),
        iscrowd=_flag(record, "iscrowd"),
        ignore=_flag(record, "ignore"),
        id=own_id if isinstance(own_id, int | float | str) else UNSET,
        score=record.values.get("score", UNSET),
        vis_ratio=record.values.get("vis_ratio", UNSET),
        **{key: _group(record, key) for key in GROUP_KEYS},
    )


def _image(record: Record) -> ImageRecord:
    record.refuse_repeated(_IMAGE_FIELDS)
    width, height = _side(record, "width"), _side(record, "height")
    return ImageRecord(
        id=_id(record, "id"),
        file_name=_text(record, "file_name"),
        width=width,
        height=height,
        **{name: _ids(record, name) for name in VERIFIED},
        crowd_index=record.values.get("crowdIndex"),
    )


def _category(record: Record) -> CategoryRecord:
    record.refuse_repeated(_CATEGORY_FIELDS)
    supercategory = record.values.get("supercategory")
    frequency = record.values.get("frequency")
    return CategoryRecord(
        id=_id(record, "id"), name=_text(record, "name"), supercategory=supercategory, frequency=frequency
    )


def _ids(record: Record, field: str) -> list[int | str] | UnsetType:
    """Read a list of ids of classes; null, as nothing, which the reader of all images warns of."""
    values = record.values.get(field)
    if values is None:
        return UNSET
    if isinstance(values, list) and all(isinstance(value, int | str) for value in values):
        return [int(value) if isinstance(value, bool) else value for value in values]
    record.error("image-labels-type", field, f"is {described_json(values)}; expected a list of category ids", "")
    return UNSET


def _id(record: Record, field: str) -> int | str:
    """Read an id: an integer, a float that is one, or a text."""
    value = _required(record, field)
    if isinstance(value, str) and value.strip():
        return value
    # A number too large for a float is treated as an integer, which is out of range.
    is_large = is_number(value) and not is_finite(value) and (isinstance(value, int) or math.isinf(value))
    if is_large or (is_finite_number(value) and value == math.floor(value)):
        exact = isinstance(value, int) or abs(value) < _EXACT_FLOATS
        if exact and INT64_MIN <= value <= INT64_MAX:
            return int(value)
        record.error("id-range", field, f"is {shown_json(value)}, out of the range of ids (64-bit integers)", "")
    elif field in record.values:
        detail = f"is {described_json(value)}; expected an integer or a string"
        record.error("id-type", field, detail, "Write ids as integers.")
    return 0


def _box(record: Record, boxes: Boxes) -> Any:
    """Read the four numbers of a box; where boxes are optional, one may be absent or an empty list."""
    if boxes is Boxes.ORIENTED:
        return record.values.get("bbox", UNSET)
    if boxes is Boxes.OPTIONAL and record.values.get("bbox", []) == []:
        return UNSET
    value = _required(record, "bbox")
    expected = "expected 4 numbers [x, y, width, height]"
    if isinstance(value, list) and len(value) == 4:
        left, top, width, height = (record.finite(f"bbox[{at}]", number) for at, number in enumerate(value))
        return left, top, width, height
    if isinstance(value, list):
        record.error("bbox-length", "bbox", f"has {len(value)} values {shown_json(value)}; {expected}", "")
    elif "bbox" in record.values:
        record.error("bbox-type", "bbox", f"is {described_json(value)}; {expected}", "")
    return 0.0, 0.0, 0.0, 0.0


def _number(record: Record, field: str) -> float:
    """Read a finite number; NaN where it is not given, which null is not."""
    return record.finite(field, record.values[field]) if field in record.values else math.nan


def _flag(record: Record, field: str) -> int:
    """Read 0, 1, true or false; null, which pylabel writes, as not given."""
    value = record.values.get(field, NOT_GIVEN)
    if value is None:
        where = replace(record.where, field=field)
        record.findings.warning("flag-null", where, "is null: read as 0", fix="Write 0 or 1.")
        return NOT_GIVEN
    if field in record.values and not (isinstance(value, bool | int | float) and value in (0, 1)):
        record.error("flag-value", field, f"is {described_json(value)}; expected 0 or 1", "Write 0 or 1.")
        return NOT_GIVEN
    return int(value)


def _group(record: Record, field: str) -> int:
    """Read a flag of Open Images, where -1 is what nobody checked."""
    if record.values.get(field) != -1:
        return _flag(record, field)
    record.findings.note("group-unknown", replace(record.where, field=field), "is -1 (unknown): read as 0")
    return 0


def _text(record: Record, field: str) -> str | UnsetType | None:
    """Read an optional text; a number in its place is converted, anything else is skipped with a warning."""
    value = record.values.get(field, UNSET)
    if value is UNSET or value is None or isinstance(value, str):
        return value
    taken = str(value) if is_number(value) else None
    what = "ignored" if taken is None else "read as a string"
    where = replace(record.where, field=field)
    record.findings.warning("text-type", where, f"is {described_json(value)}, expected a string: {what}")
    return taken


def _side(record: Record, field: str) -> float | UnsetType | None:
    """Read a side of an image; what is not a number is skipped with a warning."""
    value = record.values.get(field, UNSET)
    if value is UNSET or value is None:
        return value
    if is_number(value):
        return float(value) if is_finite(value) or isinstance(value, float) else math.inf
    where = replace(record.where, field=field)
    record.findings.warning("image-size", where, f"{field} is {described_json(value)}: treated as unknown")
    return None


def _required(record: Record, field: str, fix: Fix | str = _NEEDED, *, code: str = "field-missing") -> Any:
    """Return a field that must be there; record its absence, and what may have been meant for it."""
    if field not in record.values:
        likely = _likely(field, tuple(record.values))
        record.error(code, field, f"is missing{likely}", _NEEDED if likely else fix)
    return record.values.get(field)


@lru_cache(maxsize=64)  # the records of a file have few sets of keys, and a field may be missing in all of them
def _likely(field: str, keys: tuple[str, ...]) -> str:
    """Suggest which of the keys may have been meant for a field."""

    def fold(key: str) -> str:
        return key.casefold().replace("_", "").replace("-", "").replace(" ", "")

    folded = {fold(key): key for key in reversed(keys)}
    names = [fold(field), *map(fold, _ALIASES.get(field, ()))]
    # Known aliases go before keys that are merely spelled alike.
    names += difflib.get_close_matches(fold(field), folded, n=1, cutoff=0.8)
    found = next((folded[name] for name in names if name in folded), None)
    return "" if found is None else f"; found {quoted_value(found)} instead"
