"""JSON of a script's own: a record for each box, or images with lists of boxes, whatever their fields are called.

Read where no tool's format fits. The fields are found by the names that columns of tables have (`reading.tabular`).
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import described_json, looks_like_json_lines
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.records import documents, line_records
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="records",
    summary="JSON of a script: a record per box, or images with lists of boxes; a file, JSON Lines, a file per image",
    source="scripts that write what a model returns; fields are named as the columns of csv",
    example="""[
  {"file_name": "street.jpg", "detections": [
    {"class_name": "dog", "confidence": 0.9, "x1": 10, "y1": 20, "x2": 110, "y2": 220}
  ]}
]
""",
    carries=("images", "sizes", "names", "scores", "crowd", "difficult", "group_of", "ignore", "area"),
    suffixes=(".json", ".jsonl"),
    reads={"bbox": "", "obb": "x1, y1, ..., x4, y4; cx, cy, w, h, angle"},
)
ASKED_LAST = True
SHAPES = "shapelists"  # the format that reads other shapes of such records

# Where the boxes of an image are, those of its own side first where a file has both.
_OF_SIDE = {
    "gt": ("annotations", "ground_truth", "ground_truths", "groundtruth", "gt", "targets", "labels"),
    "pred": ("predictions", "detections", "results", "preds", "pred"),
}
_OF_BOTH = ("objects", "instances", "boxes", "bboxes", "regions", "items")
_LISTS = {*_OF_SIDE["gt"], *_OF_SIDE["pred"], *_OF_BOTH}
_PREFIXES = {"gt": ("gt_", "true_", "target_", "targets_"), "pred": ("pred_", "predicted_", "prediction_", "det_")}
_ARRAYS = ("boxes", "bboxes", "bbox")  # an array of four numbers for each box
_SINGULAR = {"scores": "score", "confidences": "confidence", "confs": "conf", "probs": "prob"}
_WRAPPERS = ("images", "data", "records", "samples", "frames", "items")
_ROW = ("x1", "y1", "x2", "y2")  # of a box that is a list of numbers, before score and class

_BY_KEY = ("imgs", "assets", "images", "frames", "annotations", "samples", "records", "data")  # objects by image
_OF_TOOLS = {"imgs", "assets"}  # of TT100K and VoTT
_CELL_OF_BOXES = pattern(r"""[,;\t|]\s*["']?\[\s*[\[{]""")
_LISTED_NAMES = ("classes", "class_names", "names", "types", "tags", "categories")
_BOX_FIELD = pattern(rb'"(?:\w+_)?(?:b?box|b?boxes|bounding_?box(?:es)?|x_?min|x1|left)"\s*:', re.IGNORECASE)
_ROWS_BY_IMAGE = pattern(rb'\{\s*"[^"]*"\s*:\s*\[\s*\[\s*-?\d')
_LAYOUT = (
    'Write [{"image": "a.jpg", "class": "dog", "score": 0.9, "x1": 10, "y1": 20, "x2": 110, "y2": 220}, ...], or CSV'
    " with these columns."
)


def looks_like(peek: Peek) -> Likeness | None:
    """Rate records by the names of their fields; JSON of any other shape only where it has boxes at all."""
    if not peek.is_folder:
        return _rate(peek) if peek.is_json else _rate_table(peek)
    # A file of each image; one file may be anything, and lies in a folder by chance.
    documents = peek.documents()
    # One that lists images is a set by itself, such as a split: joined, images of several would share their ids.
    lists_images = any("images" in document.top_keys for document in documents)
    is_one_each = (
        len(documents) > 1 and not lists_images and all(_rate(document) is Likeness.SUFFIX for document in documents)
    )
    return Likeness.SUFFIX if is_one_each else None


def _rate(document: Peek) -> Likeness | None:
    from jaccard_eval.reading.tabular.columns import IMAGE, is_header, lacks_class, position_of  # only for JSON

    keys = sorted(document.item_keys or (document.top_keys if document.kind is Kind.JSON_LINES else ()))
    if is_header(keys):
        # Other fields of records without a class decide whose they are.
        return None if lacks_class(keys) else Likeness.CONTENT
    if position_of(keys, IMAGE) is not None and any(_plain_name(key) in _LISTS for key in keys):
        return Likeness.CONTENT
    has_boxes = _BOX_FIELD.search(document.head) or _ROWS_BY_IMAGE.match(document.head.lstrip())
    if has_boxes and document.top_keys & _OF_TOOLS:
        return Likeness.CONTENT
    return Likeness.SUFFIX if has_boxes else None


def iou_types(peek: Peek) -> set[str]:
    """Return what there is, by the fields of records: upright boxes are only those around oriented ones."""
    from jaccard_eval.reading.tabular.columns import is_oriented

    found = peek.documents() if peek.is_folder else [peek]
    are_turned = [is_oriented(sorted(one.item_keys or one.top_keys)) for one in found]
    return {"obb"} if are_turned and all(are_turned) else {"bbox"}


def _rate_table(peek: Peek) -> Likeness | None:
    """Rate a table by a column whose cells are lists of boxes, as scripts write them that keep an image in each row."""
    if peek.kind is not Kind.TEXT or b"[" not in peek.head or not _CELL_OF_BOXES.search(peek.text):
        return None
    from jaccard_eval.reading.tabular.columns import IMAGE, position_of, split_first_line

    header = split_first_line(peek.lines[0])[1]
    is_table = position_of(header, IMAGE) is not None and any(_plain_name(name) in _LISTS for name in header)
    return Likeness.CONTENT if is_table else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of records to the draft."""
    from jaccard_eval.reading.tabular.table import OBJECTS, add_flat_rows, add_object_rows

    is_folder = files.is_folder(path)
    text = "" if is_folder else files.read_text(path)
    found: list[tuple[Mapping[str, Any], Where]]
    if text and text.lstrip()[:1] not in ("{", "["):
        found = [*_table_records(path, text, draft)]
    elif looks_like_json_lines(text):
        found = [(record.values, record.where) for record in line_records(path, text, draft)]
    else:
        found = []
        for key, file, value in documents(path, draft):
            draft.listed_names = draft.listed_names or _listed_names(value)
            found += _records(value, Where(str(file)), key if is_folder else None, options.role)
    draft.findings.raise_errors()
    rows = [_row(values, options.role) for values, _ in found]
    if not any(OBJECTS in row or _has_box(row) for row in rows):
        detail = "no boxes found: there is no record with a box, and no image with a list of them"
        raise DataError.single("layout", Where(str(path)), detail, fix=_LAYOUT)
    # Arrays of four numbers without names are corners, as detectors return them; a bbox of a record is COCO's.
    if options.box is None and any(_array_of(_of_side(values, options.role)) is not None for values, _ in found):
        draft.options = replace(draft.options, box="xyxy")
    add = add_object_rows if any(OBJECTS in row for row in rows) else add_flat_rows
    add(rows, lambda row: found[row][1], draft)


def _table_records(path: Path, text: str, draft: Draft) -> Iterator[tuple[Mapping[str, Any], Where]]:
    """Yield the rows of a table whose cells are lists, as JSON or Python writes them."""
    import csv  # looks for formats do without it

    from jaccard_eval.reading.tabular.columns import fields_up_to, split_first_line
    from jaccard_eval.reading.tabular.table import OF_THE_IMAGE

    delimiter, header = split_first_line(re.split("[\r\n]", text.lstrip(), maxsplit=1)[0])
    with fields_up_to(len(text)):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        for row in reader:
            where = Where(str(path), line=reader.line_num)
            if reader.line_num == 1 or not row:
                continue
            if len(row) != len(header):
                detail = f"has {len(row)} cells; the header has {len(header)}"
                draft.findings.error("columns", where, detail, fix="Give every row as many cells as the header.")
                continue
            values: dict[str, Any] = dict(zip(map(str.strip, header), row, strict=True))
            for name, cell in values.items():
                if cell.lstrip().startswith("["):
                    values[name] = _listed_in(cell)
                elif name in (*OF_THE_IMAGE, *OF_THE_IMAGE.values()) and is_numeral(cell.strip()):
                    values[name] = float(cell)
                if values[name] is None or (_plain_name(name) in _LISTS and not isinstance(values[name], list)):
                    shown = quoted_value(cell)
                    detail = f"{shown} is not a list of boxes as JSON or Python writes it"
                    draft.findings.error("layout", replace(where, field=name), detail, fix=_LAYOUT)
                    values[name] = []
            yield values, where


def _listed_in(cell: str) -> list[Any] | None:
    """Return the list that a cell is, None of one that is none."""
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found = parse(cell.strip())
            return found if isinstance(found, list) else None
    return None


def _records(value: Any, where: Where, image: str | None, role: str) -> Iterator[tuple[Mapping[str, Any], Where]]:
    """Yield the records of a document, each with its image: its own, or the file or key that it is found under."""

    def inside(key: object) -> Where:
        return replace(where, record=f"{where.record or ''}[{key}]" if isinstance(key, int) else str(key))

    if isinstance(value, list):
        if image is not None and not any(isinstance(entry, dict) and _names_image(entry) for entry in value):
            yield {"image": image, "objects": value}, where
            return
        for at, entry in enumerate(value):
            if not isinstance(entry, dict):
                detail = f"expected a record (object), got {described_json(entry)}"
                raise DataError.single("layout", inside(at), detail, fix=_LAYOUT)
            yield entry, inside(at)
        return
    if not isinstance(value, dict):
        raise DataError.single("layout", where, f"expected records, got {described_json(value)}", fix=_LAYOUT)
    if isinstance(asset := value.get("asset"), dict):  # of VoTT
        value = {"image": {"file_name": asset.get("name"), **(asset.get("size") or {})}, **value}
    if _names_image(value):
        yield value, where
        return
    lists, by_key = _parts(value, role)
    if image is not None and (lists or any(_plain_name(key) in _ARRAYS for key in value)):
        yield {"image": image, **value}, where
        return
    # Lists go before objects by image, and where there are neither, any object may have the images.
    for name in [*lists, *by_key][:1] or list(value):
        inner = value[name]
        if isinstance(inner, list | dict):
            yield from _records(inner, inside(name), image if lists or by_key else name, role)


def _parts(value: Mapping[str, Any], role: str) -> tuple[list[str], list[str]]:
    """Return the fields of an object that are lists of records, those of its own side first, and objects by image."""
    other = next(names for side, names in _OF_SIDE.items() if side != role)
    known = (*_WRAPPERS, *_OF_SIDE[role], *_OF_BOTH, *other)
    lists = [name for name in known if isinstance(value.get(name), list)]
    return lists, [name for name in (*_BY_KEY, *known) if _is_by_key(value.get(name))]


def _is_by_key(value: Any) -> bool:
    """Whether a value has objects or lists by the names or ids of their images."""
    return isinstance(value, dict) and bool(value) and all(isinstance(inner, dict | list) for inner in value.values())


def _listed_names(document: Any) -> tuple[str, ...]:
    """Return the names of classes that a document lists next to its records, as FiftyOne's do; none if it does not."""
    for name in _LISTED_NAMES if isinstance(document, dict) else ():
        listed = document.get(name)
        given = [entry.get("name") if isinstance(entry, dict) else entry for entry in listed or ()]
        names = [text for text in given if isinstance(text, str)]
        if isinstance(listed, list) and 0 < len(names) == len(given):
            return tuple(names) if len({*names}) == len(names) else ()
    return ()


def _names_image(record: Mapping[str, Any]) -> bool:
    from jaccard_eval.reading.tabular.columns import IMAGE, position_of

    return position_of(tuple(record), IMAGE) is not None


def _has_box(record: Mapping[str, Any]) -> bool:
    from jaccard_eval.reading.tabular.columns import is_header
    from jaccard_eval.reading.tabular.table import inner_fields

    return is_header(("image", *inner_fields(record)))


def _plain_name(name: str) -> str:
    """Return the name of a field without the side that it belongs to."""
    prefix = next((prefix for side in _PREFIXES.values() for prefix in side if name.startswith(prefix)), "")
    return name[len(prefix) :]


def _of_side(record: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the fields of a record without those of the other side, and the side's own without their prefix.

    A list of boxes may lie in an object, as in FiftyOne's samples.
    """
    inside = {name: value["detections"] for name, value in record.items() if _is_detections(value)}
    others = [name for name in inside if name not in _LISTS]
    if len(others) == 1 and not inside.keys() & _OF_SIDE[role]:
        inside[_OF_SIDE[role][0]] = inside[others[0]]  # of predictions, FiftyOne's users choose the name
    record = {**record, **inside}
    own, other = _PREFIXES[role], next(prefixes for side, prefixes in _PREFIXES.items() if side != role)
    if not any(name.startswith((*own, *other)) and _plain_name(name) in _ARRAYS for name in record):
        return dict(record)
    kept = {name: value for name, value in record.items() if not name.startswith((*own, *other))}
    return kept | {_plain_name(name): value for name, value in record.items() if name.startswith(own)}


def _row(record: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return a record with its boxes as "objects"; as it is where it is a box itself."""
    from jaccard_eval.reading.tabular.table import OBJECTS, SINGULAR

    fields = _of_side(record, role)
    array = _array_of(fields)
    if array is not None:
        own = {
            name: value
            for name, value in fields.items()
            if name == array or (isinstance(value, list) and name in (*SINGULAR, *_SINGULAR))
        }
        objects = {_SINGULAR.get(name, name): value for name, value in own.items()}
        return {**{name: value for name, value in fields.items() if name not in own}, OBJECTS: objects}
    other = next(names for side, names in _OF_SIDE.items() if side != role)
    for name in (*_OF_SIDE[role], *_OF_BOTH, *other):
        boxes = fields.get(name)
        if isinstance(boxes, list) and all(isinstance(box, dict | list) for box in boxes):
            outer = {key: value for key, value in fields.items() if key != name}
            are_rows = bool(boxes) and all(isinstance(box, list) for box in boxes)
            if are_rows:
                boxes = [dict(zip((*_ROW, "score", "class"), row, strict=False)) for row in boxes]
            return {**outer, OBJECTS: boxes}
    return fields


def _is_detections(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("detections"), list)


def _array_of(fields: Mapping[str, Any]) -> str | None:
    """Return the field that has a list of four numbers for each box."""
    for name in _ARRAYS:
        values = fields.get(name)
        if isinstance(values, list) and all(isinstance(box, list) and len(box) == 4 for box in values):
            return name
    return None
