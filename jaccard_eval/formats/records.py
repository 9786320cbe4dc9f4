"""JSON of a script's own: a record for each box, or images with lists of boxes, whatever their fields are called.

Read where no tool's format fits. The fields are found by the names that columns of tables have (`reading.tabular`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import described_json, looks_like_json_lines
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.records import documents, line_records

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
)
ASKED_LAST = True

# Where the boxes of an image are, those of its own side first where a file has both.
_OF_SIDE = {
    "gt": ("annotations", "ground_truth", "ground_truths", "groundtruth", "gt", "targets", "labels"),
    "pred": ("predictions", "detections", "results", "preds", "pred"),
}
_OF_BOTH = ("objects", "instances", "boxes", "bboxes", "regions", "items")
_PREFIXES = {"gt": ("gt_", "true_", "target_", "targets_"), "pred": ("pred_", "predicted_", "prediction_", "det_")}
_ARRAYS = ("boxes", "bboxes", "bbox")  # an array of four numbers for each box
_SINGULAR = {"scores": "score", "confidences": "confidence", "confs": "conf", "probs": "prob"}
_WRAPPERS = ("images", "data", "records", "samples", "frames", "items")
_ROW = ("x1", "y1", "x2", "y2")  # of a box that is a list of numbers, before score and class

_BOX_FIELD = re.compile(rb'"(?:\w+_)?(?:b?box|b?boxes|bounding_?box(?:es)?|x_?min|x1|left)"\s*:', re.IGNORECASE)
_ROWS_BY_IMAGE = re.compile(rb'\{\s*"[^"]*"\s*:\s*\[\s*\[\s*-?\d')
_LAYOUT = (
    'Write [{"image": "a.jpg", "class": "dog", "score": 0.9, "x1": 10, "y1": 20, "x2": 110, "y2": 220}, ...], or CSV'
    " with these columns."
)


def looks_like(peek: Peek) -> Likeness | None:
    """Rate records by the names of their fields; JSON of any other shape only where it has boxes at all."""
    if not peek.is_folder:
        return _rate(peek) if peek.is_json else None
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
    if position_of(keys, IMAGE) is not None:
        lists = {name for names in _OF_SIDE.values() for name in names}.union(_OF_BOTH)
        if any(_plain_name(key) in lists for key in keys):
            return Likeness.CONTENT
    has_boxes = _BOX_FIELD.search(document.head) or _ROWS_BY_IMAGE.match(document.head.lstrip())
    return Likeness.SUFFIX if has_boxes else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of records to the draft."""
    from jaccard_eval.reading.tabular.objects import OBJECTS, add_flat_rows, add_object_rows

    is_folder = files.is_folder(path)
    text = "" if is_folder else files.read_text(path)
    found: list[tuple[Mapping[str, Any], Where]]
    if looks_like_json_lines(text):
        found = [(record.values, record.where) for record in line_records(path, text, draft)]
    else:
        found = []
        for key, file, value in documents(path, draft):
            draft.listed_names = draft.listed_names or _listed_names(value)
            found += _records(value, Where(str(file)), key if is_folder else None)
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


def _records(value: Any, where: Where, image: str | None) -> Iterator[tuple[Mapping[str, Any], Where]]:
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
    if _names_image(value):
        yield value, where
        return
    lists = [name for name in (*_WRAPPERS, *sum(_OF_SIDE.values(), ()), *_OF_BOTH) if name in value]
    is_image = image is not None and any(isinstance(value[name], list) for name in lists)
    if is_image or (image is not None and any(_plain_name(key) in _ARRAYS for key in value)):
        yield {"image": image, **value}, where
    elif lists:
        yield from _records(value[lists[0]], inside(lists[0]), image)
    else:
        for name, inner in value.items():
            if isinstance(inner, list | dict):
                yield from _records(inner, inside(name), name)


def _listed_names(document: Any) -> tuple[str, ...]:
    """Return the names of classes that a document lists next to its records, as FiftyOne's do; none if it does not."""
    for name in ("classes", "class_names", "names") if isinstance(document, dict) else ():
        names = document.get(name)
        if isinstance(names, list) and names and all(isinstance(text, str) for text in names):
            return tuple(names) if len({*names}) == len(names) else ()
    return ()


def _names_image(record: Mapping[str, Any]) -> bool:
    from jaccard_eval.reading.tabular.columns import IMAGE, position_of

    return position_of(tuple(record), IMAGE) is not None


def _has_box(record: Mapping[str, Any]) -> bool:
    from jaccard_eval.reading.tabular.columns import is_header
    from jaccard_eval.reading.tabular.objects import inner_fields

    return is_header(("image", *inner_fields(record)))


def _plain_name(name: str) -> str:
    """Return the name of a field without the side that it belongs to."""
    prefix = next((prefix for side in _PREFIXES.values() for prefix in side if name.startswith(prefix)), "")
    return name[len(prefix) :]


def _of_side(record: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the fields of a record without those of the other side, and the side's own without their prefix."""
    own, other = _PREFIXES[role], next(prefixes for side, prefixes in _PREFIXES.items() if side != role)
    if not any(name.startswith((*own, *other)) and _plain_name(name) in _ARRAYS for name in record):
        return dict(record)
    kept = {name: value for name, value in record.items() if not name.startswith((*own, *other))}
    return kept | {_plain_name(name): value for name, value in record.items() if name.startswith(own)}


def _row(record: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return a record with its boxes as "objects"; as it is where it is a box itself."""
    from jaccard_eval.reading.tabular.objects import OBJECTS, SINGULAR

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
            return {**outer, OBJECTS: _numbers_named(boxes) if are_rows else boxes}
    return fields


def _array_of(fields: Mapping[str, Any]) -> str | None:
    """Return the field that has a list of four numbers for each box."""
    for name in _ARRAYS:
        values = fields.get(name)
        if isinstance(values, list) and all(isinstance(box, list) and len(box) == 4 for box in values):
            return name
    return None


def _numbers_named(rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return boxes that are lists of numbers as records: corners, then the score, then the class."""
    return [dict(zip((*_ROW, "score", "class"), row, strict=False)) for row in rows]
