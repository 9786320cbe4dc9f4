"""VGG Image Annotator 2 and 3: annotations as JSON or CSV, or a whole project; the class is an attribute of regions."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn
from jaccard_eval.reading.json import parse_json
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector
from jaccard_eval.text import quoted_value

FORMAT = Format(
    name="via",
    summary="VGG Image Annotator 2: JSON, CSV or project; 3: project; reads rectangles, ignores other shapes",
    source="https://gitlab.com/vgg/via/-/blob/via-2.x.y/via-2.x.y/CodeDoc.md",
    example="""{
  "street.jpg4222": {
    "filename": "street.jpg",
    "size": 4222,
    "regions": [
      {
        "shape_attributes": {"name": "rect", "x": 10, "y": 20, "width": 100, "height": 200},
        "region_attributes": {"class": "dog"}
      }
    ],
    "file_attributes": {}
  }
}
""",
    carries=("images",),
    suffixes=(".json", ".csv"),
    reads={"bbox": "rect", "segm": "polygon"},
)

_CSV_COLUMN = b"region_shape_attributes"
_PROJECT = "_via_img_metadata"
_PROJECT_KEYS = (_PROJECT, "_via_settings")
_SECTIONS = frozenset({"project", "file", "view", "metadata"})  # of version 3
_SHAPE, _ATTRIBUTES = "shape_attributes", "region_attributes"
_SIDES = ("x", "y", "width", "height")
_USUAL = ("class", "label", "category", "name", "type", "object")  # what people call the class, the likeliest first
_RECTANGLE, _POLYGON = "rect", "polygon"
_KINDS = {1: "point", 2: _RECTANGLE, 3: "circle", 4: "ellipse", 5: "line", 6: "polyline", 7: _POLYGON}  # of version 3

Content = tuple[list[str], list[tuple[str, Record]]]  # the files of an export, and the regions, each with its file


def looks_like(peek: Peek) -> Likeness | None:
    """Rate what the annotator exports or saves: a table by the columns that hold JSON, JSON by its keys."""
    keys, head = peek.top_keys, peek.head
    if not keys.isdisjoint(_PROJECT_KEYS) or _CSV_COLUMN in head.partition(b"\n")[0]:
        return Likeness.NAMED
    is_marked = b'"shape_attributes"' in head or b'"file_attributes"' in head
    is_export = peek.is_json and not peek.item_keys and is_marked and b'"filename"' in head
    return Likeness.STRUCTURE if keys >= _SECTIONS or is_export else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of an export to the draft."""
    text = files.read_text(path)
    is_json = text.lstrip().startswith(("{", "["))
    images, regions = _read_json(path, text, draft) if is_json else _read_csv(path, text, draft)
    collector = RecordCollector(draft)
    for image in images:
        collector.add_image(image, file_name=image)
    boxes: list[tuple[str, Record, Record]] = []
    for image, region in regions:
        shape = region.record(_SHAPE)
        kind = shape.text("name")
        if kind in (_RECTANGLE, _POLYGON):
            boxes.append((image, region, shape))
        elif kind:
            collector.count_shape(kind)
    name = _class_attribute([region for _, region, _ in boxes], draft)
    if boxes and not name:
        from jaccard_eval.reading.tabular.table import NO_CLASS, note_no_class

        note_no_class(draft)
        one_class = {"": options.names[0] if options.names else str(NO_CLASS)}
        boxes = [
            (image, replace(region, values={**region.values, _ATTRIBUTES: one_class}), shape)
            for image, region, shape in boxes
        ]
    for image, region, shape in boxes:
        if collector.reads_masks:
            ring = _ring(shape)
            if ring and all(map(math.isfinite, ring)):
                collector.add_polygons(image, _class_name(region, name), [ring], region.where)
            continue
        label = _class_name(region, name)
        if shape.values.get("name") == _RECTANGLE:
            collector.add_drawn(image, label, Drawn(box=[shape.number(side) for side in _SIDES]), region.where)
        elif ring := _ring(shape):
            collector.add_drawn(image, label, Drawn(rings=[ring], kind=_POLYGON), region.where)
    collector.to_draft(encoding="xyxy" if collector.reads_masks else "xywh", listed=True)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first regions are: boxes, masks or both."""
    found = {"bbox"} if b"rect" in peek.head else set()
    return found | ({"segm"} if b"all_points_x" in peek.head else set()) or {"bbox"}


def _ring(shape: Record) -> list[float]:
    """Return the corners of a polygon or a rectangle."""
    if shape.values.get("name") == _RECTANGLE:
        x, y, width, height = (shape.number(side) for side in _SIDES)
        return [x, y, x, y + height, x + width, y + height, x + width, y]
    xs, ys = (shape.entries(f"all_points_{axis}") for axis in "xy")
    if len(xs.values) != len(ys.values):
        detail = f"has {len(ys.values)} values; all_points_x has {len(xs.values)}"
        shape.error("segmentation-invalid", "all_points_y", detail)
        return []
    return shape.ring([(xs.number(x), ys.number(y)) for x, y in zip(xs.values, ys.values, strict=True)])


def _read_json(path: Path, text: str, draft: Draft) -> Content:
    document = Record.of(parse_json(path, text), Where(str(path)), draft.findings)
    if document.values.keys() >= _SECTIONS:
        return _read_project_of_three(document)
    listed = document.record(_PROJECT) if document.has(_PROJECT) else document
    images: list[str] = []
    regions: list[tuple[str, Record]] = []
    for key in listed.values:
        file = listed.record(key)
        images.append(file.text("filename"))
        found = file.records("regions")
        # Files of version 1 number their regions.
        if isinstance(file.values.get("regions"), dict):
            numbered = file.record("regions")
            found = map(numbered.record, numbered.values)
        regions += [(images[-1], region) for region in found]
    return images, regions


def _read_project_of_three(project: Record) -> Content:
    """Read a project of version 3, whose regions are given the shape and the attributes of version 2."""
    names = {key: file.text("fname") for key, file in _entries(project, "file")}
    views = {key: view.array("fid_list") for key, view in _entries(project, "view")}
    attributes: dict[str, tuple[str, dict[str, Any]]] = {}  # name, and what the ids of the options mean
    for key, attribute in _entries(project, "attribute") if project.has("attribute") else ():
        meanings = attribute.values.get("options")
        attributes[key] = attribute.text("aname"), meanings if isinstance(meanings, dict) else {}
    regions: dict[str, list[Record]] = {key: [] for key in names}
    for _, region in _entries(project, "metadata"):
        xy = region.values.get("xy")
        # Without coordinates it is about a file, or a stretch of a video.
        if not isinstance(xy, list) or not xy:
            continue
        # A view of several files shows the first of them.
        file = str((views.get(region.text("vid")) or [""])[0])
        if file not in names:
            region.error("field-missing", "vid", "does not lead to a file")
            continue
        given = region.record("av").values if region.has("av") else {}
        known = {key: value for key, value in given.items() if key in attributes}
        named = {attributes[key][0]: attributes[key][1].get(str(value), value) for key, value in known.items()}
        cells = {_SHAPE: _shape(region, xy), _ATTRIBUTES: named}
        regions[file].append(Record(cells, region.where, region.findings))
    placed = [(names[key], region) for key, found in regions.items() for region in found]
    return list(names.values()), placed


def _entries(project: Record, section: str) -> Iterator[tuple[str, Record]]:
    entries = project.record(section)
    return ((key, entries.record(key)) for key in entries.values)


def _shape(region: Record, xy: list[Any]) -> dict[str, Any]:
    kind = _KINDS.get(xy[0], "unknown") if isinstance(xy[0], int) else "unknown"
    if kind == _POLYGON:
        return {"name": kind, "all_points_x": xy[1::2], "all_points_y": xy[2::2]}
    if kind != _RECTANGLE:
        return {"name": kind}
    if len(xy) != 1 + len(_SIDES):
        region.error("bbox-length", "xy", f"has {len(xy)} values; expected 2 and 4 numbers")
        return {"name": "unknown"}
    return {"name": kind, **dict(zip(_SIDES, xy[1:], strict=True))}


def _read_csv(path: Path, text: str, draft: Draft) -> Content:
    """Read a table, in which a file has a row for each region, or one without."""
    import csv

    images: dict[str, None] = {}
    regions: list[tuple[str, Record]] = []
    rows = csv.DictReader(io.StringIO(text.removeprefix("#"), newline=""), strict=True)
    try:
        for row in rows:
            record = Record(dict(row), Where(str(path), line=rows.line_num), draft.findings)
            image = record.text("filename")
            images[image] = None
            cells = {_SHAPE: _cell(record, f"region_{_SHAPE}"), _ATTRIBUTES: _cell(record, _ATTRIBUTES)}
            if cells[_SHAPE]:
                regions.append((image, Record(cells, record.where, draft.findings)))
    except csv.Error as error:
        where = Where(str(path), line=rows.line_num + 1)  # where the row begins
        draft.findings.error("csv-quote", where, f"not readable as CSV: {error}", fix="Export the file again.")
    return list(images), regions


def _cell(record: Record, name: str) -> Any:
    """Return the JSON in a cell."""
    try:
        return parse_json(Path(record.where.path), record.text(name) or "{}")
    except DataError as error:
        record.error("json-syntax", name, error.findings[0].examples[0].detail)
        return {}


def _class_attribute(regions: list[Record], draft: Draft) -> str:
    """Return which attribute is the class: the only one, else the one with the likeliest name."""
    given = (region.values.get(_ATTRIBUTES) for region in regions)
    names: dict[str, None] = dict.fromkeys(
        name for attributes in given if isinstance(attributes, dict) for name in attributes
    )
    if len(names) <= 1:
        # Where one object is drawn, nobody names it.
        return next(iter(names), "")
    usual = [name for wanted in _USUAL for name in names if name.lower() == wanted]
    if usual:
        draft.details.append(f"class: attribute {quoted_value(usual[0])}")
        return usual[0]
    detail = f"the class may be any of the attributes {', '.join(map(quoted_value, sorted(names)))}"
    fix = "Rename the right one to class."
    draft.findings.error("columns-ambiguous", Where(draft.path, field=_ATTRIBUTES), detail, fix=fix)
    return next(iter(names))


def _class_name(region: Record, name: str) -> str:
    """Return the class: a text, or the one option that is true of a group of check boxes."""
    attributes = region.record(_ATTRIBUTES)
    value = attributes.values.get(name)
    if not isinstance(value, dict):
        return attributes.text(name)
    chosen = [option for option, is_set in value.items() if is_set is True]
    if len(chosen) != 1:
        attributes.error("class-invalid", name, f"has {len(chosen)} options set to true; a box has one class")
        return ""
    return str(chosen[0])
