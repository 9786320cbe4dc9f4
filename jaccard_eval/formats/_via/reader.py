"""From exports of the VGG Image Annotator to the draft: files and their regions, the class among the attributes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaccard_eval.errors import DataError, Where, shown
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._via.via3 import files_and_regions, is_project_of_three
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import Scene
from jaccard_eval.reading.json.values import parse_json

_PROJECT = "_via_img_metadata"
_SIDES = ("x", "y", "width", "height")
_SHAPE, _ATTRIBUTES = "shape_attributes", "region_attributes"
_USUAL = ("class", "label", "category", "name", "type", "object")  # what people call the class, the likeliest first


@dataclass(slots=True)
class _Export:
    """The files of an export, and the regions of each."""

    images: list[str] = field(default_factory=list)
    regions: list[tuple[str, Record]] = field(default_factory=list)


def read_json(path: Path, text: str, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of JSON."""
    document = Record.of(parse_json(path, text), Where(str(path)), draft.findings)
    if is_project_of_three(set(document.values)):
        _hand_over(_export_of_three(document), draft, options)
        return
    files = document.record(_PROJECT) if document.has(_PROJECT) else document
    export = _Export()
    for key in files.values:
        file = files.record(key)
        image = file.text("filename")
        export.images.append(image)
        export.regions += [(image, region) for region in _regions(file)]
    _hand_over(export, draft, options)


def _export_of_three(project: Record) -> _Export:
    """Take a project of version 3 for an export."""
    export = _Export()
    for image, regions in files_and_regions(project):
        export.images.append(image)
        cells = [({_SHAPE: shape, _ATTRIBUTES: attributes}, region) for shape, attributes, region in regions]
        export.regions += [(image, Record(values, region.where, region.findings)) for values, region in cells]
    return export


def read_csv(path: Path, text: str, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of CSV, in which a file has a row for each region, or one without."""
    export, known = _Export(), set[str]()
    rows = csv.DictReader(io.StringIO(text.removeprefix("#"), newline=""), strict=True)
    try:
        for row in rows:
            record = Record(dict(row), Where(str(path), line=rows.line_num), draft.findings)
            image = record.text("filename")
            if image not in known:
                known.add(image)
                export.images.append(image)
            cells = {_SHAPE: _cell(record, f"region_{_SHAPE}"), _ATTRIBUTES: _cell(record, _ATTRIBUTES)}
            if cells[_SHAPE]:
                export.regions.append((image, Record(cells, record.where, draft.findings)))
    except csv.Error as error:
        where = Where(str(path), line=rows.line_num + 1)  # where the row begins
        draft.findings.error("csv-quote", where, f"not readable as CSV: {error}", fix="Export the file again.")
    _hand_over(export, draft, options)


def _cell(record: Record, name: str) -> Any:
    """Return the JSON in a cell."""
    try:
        return parse_json(Path(record.where.path), record.text(name) or "{}")
    except DataError as error:
        record.error("json-syntax", name, error.findings[0].examples[0].detail)
        return {}


def _regions(file: Record) -> Iterator[Record]:
    """Yield the regions of a file: an array, or in files of version 1 an object."""
    if isinstance(file.values.get("regions"), dict):
        regions = file.record("regions")
        yield from (regions.record(key) for key in regions.values)
    else:
        yield from file.records("regions")


def _hand_over(export: _Export, draft: Draft, options: ReadOptions) -> None:
    scene = Scene(draft)
    for image in export.images:
        scene.add_image(image, file_name=image)
    boxes: list[tuple[str, Record, Record]] = []
    for image, region in export.regions:
        shape = region.record(_SHAPE)
        kind = shape.text("name")
        if kind == "rect":
            boxes.append((image, region, shape))
        elif kind:
            scene.count_shape(kind)
    name = _class_attribute([region for _, region, _ in boxes], draft)
    for image, region, shape in boxes:
        coords = [shape.number(side) for side in _SIDES]
        scene.add_box(image, _class_name(region, name), coords, region.where)
    scene.hand_over(options, encoding="xywh", listed=True)


def _class_attribute(regions: list[Record], draft: Draft) -> str:
    """Return which attribute is the class: the only one, else the one with the likeliest name."""
    counts = Counter(name for region in regions for name in _attributes(region))
    if len(counts) == 1 or not counts:
        return next(iter(counts), _USUAL[0])
    usual = [name for wanted in _USUAL for name in counts if name.lower() == wanted]
    if usual:
        draft.details.append(f"class: attribute {shown(usual[0])}")
        return usual[0]
    listed = ", ".join(shown(name) for name in sorted(counts))
    detail = f"the class may be any of the attributes {listed}"
    draft.findings.error(
        "columns-ambiguous", Where(draft.path, field=_ATTRIBUTES), detail, fix="Call the one that it is class."
    )
    return next(iter(counts))


def _attributes(region: Record) -> dict[str, Any]:
    values = region.values.get(_ATTRIBUTES)
    return values if isinstance(values, dict) else {}


def _class_name(region: Record, name: str) -> str:
    """Return the class: a text, or the one option that is true of a group of check boxes."""
    attributes = region.record(_ATTRIBUTES)
    value = attributes.values.get(name)
    if not isinstance(value, dict):
        return attributes.text(name)
    chosen = [option for option, is_set in value.items() if is_set is True]
    if len(chosen) != 1:
        attributes.error("class-invalid", name, f"has {len(chosen)} options that are true; a box has one class")
        return ""
    return str(chosen[0])
