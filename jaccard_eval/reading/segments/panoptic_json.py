"""COCO's panoptic format: a JSON file that lists the segments of each image, and a PNG file with their ids.

The id of a pixel is red + 256 green + 65,536 blue; 0 is void. Cityscapes' converter writes the same, with names as ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from jaccard_eval.data.imagekeys import posix
from jaccard_eval.engine import bring, list_names
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.reading.files import head, is_folder, read_text, refuse_result
from jaccard_eval.reading.json import described_json, is_number, kind_of, parse_json
from jaccard_eval.reading.labelmaps.arrays import ArrayMap, ArrayMaps
from jaccard_eval.reading.labelmaps.images import EncodedImage
from jaccard_eval.reading.records import Record
from jaccard_eval.reading.segments.sides import (
    MAX_ID,
    Category,
    ListedSegments,
    SegmentedImage,
    SegmentedSide,
)
from jaccard_eval.text import pluralise, quoted_value, shown_json

FORMAT = "coco-panoptic"
_SUFFIXES = (".json.gz", ".json")
_UNIQUE = "Ids must be unique; drop or renumber the repeated entries."
_BOXES_FIX = Fix.missing("These are boxes: evaluate them with {command}.", command="evaluate GT PRED")
_ID_FIX = "Ids of segments are whole numbers from 1 to 16777215, as three bytes of a PNG file can hold them."


def read_file(role: str, path: Path, masks: Path | ArrayMaps | None, findings: FindingLog) -> SegmentedSide | None:
    """Read a JSON file; its maps lie in the folder that is called like it, unless another one is given."""
    try:
        refuse_result(path, head(path))
        document = parse_json(path, read_text(path))
    except DataError as error:
        findings.extend(error.findings)
        return None
    if not isinstance(document, dict):
        detail = f"is {described_json(document)}; expected an object with annotations"
        is_boxes = isinstance(document, list) and document and isinstance(document[0], dict) and "bbox" in document[0]
        fix = _BOXES_FIX if is_boxes else 'Write {"annotations": [...]}, a record with segments_info for each image.'
        findings.error("record-type", Where(str(path)), detail, fix=fix)
        return None
    return read_document(role, document, str(path), masks or folder_of(path), findings)


def folder_of(path: Path) -> Path:
    """Return the folder of the maps of a JSON file, as panopticapi has it: the path without its suffix."""
    for suffix in _SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.with_name(path.name[: -len(suffix)])
    return path.with_suffix("")


def read_document(
    role: str, document: Mapping[str, Any], path: str, masks: Path | ArrayMaps, findings: FindingLog
) -> SegmentedSide | None:
    """Read what a JSON file holds; of predictions, the annotations alone. None without classes to read them by."""
    record = Record.of(dict(document), Where(path), findings)
    annotations = document.get("annotations")
    first = annotations[0] if isinstance(annotations, list) and annotations else None
    if isinstance(first, dict) and "bbox" in first and "segments_info" not in first:
        record.error("layout", "annotations", "are of boxes: they have no segments_info", _BOXES_FIX)
        return None
    is_gt = role == "gt"
    if is_gt and "categories" not in document and "annotations" in document:
        order = "Pass the ground truth first, then the predictions: its JSON file has the categories."
        record.error("field-missing", "categories", "is missing", order)
        return None
    categories = _categories(record) if is_gt else ()
    listed = _images(record) if record.has("images") else {}
    if isinstance(masks, Path) and not is_folder(masks):
        fix = Fix.of_side(role, "Pass the folder of the PNG files with {masks}.", masks=None)
        findings.error("not-a-folder", Where(str(masks)), "there is no such folder of maps", fix=fix)
    reader = _Annotations(role, masks, {category.key for category in categories} if is_gt else None, listed)
    images = tuple(image for image in map(reader.read, record.records("annotations")) if image is not None)
    reader.add_remarks(findings, path)
    if isinstance(masks, Path):
        list_names(masks)
        bring(image.map for image in images if isinstance(image.map, Path))
    decode = partial(EncodedImage.decode_ids, colored=True)
    failed = reader.seen - {image.key for image in images}
    return SegmentedSide(path, str(masks), FORMAT, categories, images, decode, frozenset(failed))


def _categories(record: Record) -> tuple[Category, ...]:
    found: dict[str, Category] = {}
    for row in record.records("categories"):
        key = _key(row, "id")
        name = row.text("name") if row.has("name") else key
        is_thing = _flag(row, "isthing", required=True)
        color = row.values.get("color")
        colour = None
        if isinstance(color, list) and len(color) == 3 and all(type(part) is int for part in color):
            red, green, blue = (part & 255 for part in color)
            colour = red, green, blue
        if key in found:
            row.error("class-duplicate", "id", f"duplicate class id {key}", _UNIQUE)
        elif key:
            found[key] = Category(key, name, is_thing, colour)
    return tuple(found.values())


def _images(record: Record) -> dict[str, tuple[str, tuple[int, int] | None]]:
    """Return file name and size of each image by its id."""
    found: dict[str, tuple[str, tuple[int, int] | None]] = {}
    for row in record.records("images"):
        key = _key(row, "id")
        width, height = row.size()
        size = None if math.isnan(width) or math.isnan(height) else (int(width), int(height))
        if key in found:
            row.error("image-duplicate", "id", f"duplicate image id {key}", _UNIQUE)
        found[key] = (row.text("file_name") if row.has("file_name") else key, size)
    return found


def _key(record: Record, field: str) -> str:
    """Read an id as a text; empty where there is none."""
    value = record.values.get(field)
    if type(value) is int or (isinstance(value, str) and value):
        return str(value)
    if value is None:
        record.error("field-missing", field, "is null" if field in record.values else "is missing")
    else:
        detail = f"is {described_json(value)}; expected an integer or a string"
        record.error("id-type", field, detail, "Write ids as integers.")
    return ""


def _flag(record: Record, field: str, *, required: bool = False) -> bool:
    value = record.values.get(field)
    if value is None:
        if required:
            fix = "Write 1 for classes with instances, 0 for stuff."
            record.error("field-missing", field, "is missing: neither a thing nor stuff", fix)
        return False
    if value not in (0, 1):
        record.error("flag-value", field, f"is {described_json(value)}; expected 0 or 1", "Write 0 or 1.")
    return bool(value)


class _Annotations:
    """Reads the records of images, and counts what their segments lack."""

    def __init__(
        self,
        role: str,
        masks: Path | ArrayMaps,
        known: set[str] | None,
        listed: Mapping[str, tuple[str, tuple[int, int] | None]],
    ) -> None:
        self.role, self.masks, self.known, self.listed = role, masks, known, listed
        self.seen: set[str] = set()
        self._places: dict[str, str] = {}
        self._missing = dict.fromkeys(("iscrowd", "area"), 0)
        self._crowded: list[tuple[Where, str]] = []
        self._n_segments = 0

    def read(self, record: Record) -> SegmentedImage | None:
        """Read one record; None where it cannot be used."""
        key, file_name = _key(record, "image_id"), record.text("file_name")
        self.seen.add(key)
        segments = self._segments(record)
        source = self._map(record, file_name) if file_name else None
        if not key or source is None:
            return None
        place = record.where.record or ""
        if self._places.setdefault(key, place) != place:
            detail = f"image {key} is annotated twice, first at {self._places[key]}"
            record.error("image-duplicate", "image_id", detail, "Keep one record for each image.")
            return None
        name, size = self.listed.get(key, (file_name, None))
        return SegmentedImage(key, name, source, record.where, size, segments)

    def add_remarks(self, findings: FindingLog, path: str) -> None:
        """Add what concerns all records."""
        uses = {"iscrowd": "read as 0", "area": "counted in the map"}
        for field, count in self._missing.items():
            if count and self.role == "gt":
                detail = f"{field} is missing in {count:,} of {self._n_segments:,} segments: {uses[field]}"
                findings.note("segment-fields", Where(path, field=field), detail)
        findings.add_rows(
            Severity.WARNING,
            "crowd-several",
            range(len(self._crowded)),
            self._crowded.__getitem__,
            fix="Merge the crowds of a class into one segment, as COCO has them.",
        )

    def _map(self, record: Record, file_name: str) -> Path | ArrayMap | None:
        if isinstance(self.masks, ArrayMaps):
            if file_name in self.masks.maps:
                return self.masks.map(file_name)
            detail = f"there is no map {quoted_value(file_name)} among the {len(self.masks.maps):,} given"
            record.error("map-unpaired", "file_name", detail, "Pass a map for each image.")
            return None
        parts = PurePosixPath(posix(file_name)).parts
        # A file outside the folder is none of the data set's: it may be anything that the user can read.
        if ".." in parts or posix(file_name).startswith("/") or (parts and parts[0].endswith(":")):
            detail = f"file_name {quoted_value(file_name)} leads out of the folder of the maps"
            record.error("map-outside", "file_name", detail, "Write the name of a file in the folder.")
            return None
        return self.masks / posix(file_name)

    def _segments(self, record: Record) -> ListedSegments | None:
        rows = [*record.records("segments_info")]
        ids, categories, crowd, area = [], [], [], []
        seen: dict[int, str] = {}
        for row in rows:
            identifier = self._id(row)
            category = _key(row, "category_id")
            if self.known is not None and category and category not in self.known:
                fix = "Add it to the categories, or fix the segment."
                row.error("class-unknown", "category_id", f"category {category} is not in the categories", fix)
            place = row.where.record or ""
            if identifier is not None and seen.setdefault(identifier, place) != place:
                detail = f"id {identifier} is listed twice, first at {seen[identifier]}"
                row.error("segment-duplicate", "id", detail, "Give every segment of an image an id of its own.")
            listed = row.values.get("area")
            self._missing["iscrowd"] += "iscrowd" not in row.values
            self._missing["area"] += listed is None
            ids.append(identifier or 0)
            categories.append(category)
            crowd.append(_flag(row, "iscrowd"))
            area.append(float(listed) if listed is not None and is_number(listed) else math.nan)
        self._n_segments += len(rows)
        if not isinstance(record.values.get("segments_info"), list):
            return None
        self._note_crowds(record, categories, crowd)
        return ListedSegments(
            np.array(ids, dtype=np.int64), tuple(categories), np.array(crowd, dtype=np.bool_), np.array(area)
        )

    def _note_crowds(self, record: Record, categories: list[str], crowd: list[bool]) -> None:
        if self.role != "gt" or sum(crowd) < 2:
            return
        of_crowds = [category for category, is_crowd in zip(categories, crowd, strict=True) if is_crowd]
        several = sorted({category for category in of_crowds if of_crowds.count(category) > 1})
        if several:
            what = pluralise(of_crowds.count(several[0]), "crowd")
            detail = f"has {what} of class {several[0]}; as in panopticapi, predictions may lie on the last one alone"
            self._crowded.append((record.where, detail))

    def _id(self, row: Record) -> int | None:
        value = row.values.get("id")
        if type(value) is int and 0 < value <= MAX_ID:
            return value
        if value is None:
            row.error("field-missing", "id", "is null" if "id" in row.values else "is missing")
        elif value == 0 and type(value) is int:
            row.error("segment-id", "id", "is 0, which marks void: pixels of no segment", _ID_FIX)
        else:
            what = f"{shown_json(value)}, out of range" if type(value) is int else f"{kind_of(value)}, not an id"
            row.error("segment-id", "id", f"is {what}", _ID_FIX)
        return None
