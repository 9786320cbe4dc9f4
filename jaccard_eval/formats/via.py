"""VGG Image Annotator 2 and 3: annotations as JSON or CSV, or a whole project; the class is an attribute of regions."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.documents import Record, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import parse_json
from jaccard_eval.reading.records import Scene
from jaccard_eval.text import shown

FORMAT = Format(
    name="via",
    summary="VGG Image Annotator 2: JSON, CSV or project; 3: project; rectangles count, other shapes are set aside",
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
)

_CSV_COLUMN = b"region_shape_attributes"
_PROJECT = "_via_img_metadata"
_SECTIONS = frozenset({"project", "file", "view", "metadata"})  # of version 3


def sniff(path: Path) -> bool:
    """Whether the file is what the annotator exports or saves."""
    if files.is_folder(path):
        return False
    return _CSV_COLUMN in files.head(path).partition(b"\n")[0] or looks_like(path, _is_export)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of an export to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its regions are among the draft's findings.
    """
    # not needed to look for a format

    text = files.read_text(path)
    is_table = not text.lstrip().startswith(("{", "["))
    (read_csv if is_table else read_json)(path, text, draft, options)


def _is_export(outer: set[str], inner: set[str], head: bytes) -> bool:
    if _PROJECT in outer or "_via_settings" in outer or outer >= _SECTIONS:
        return True
    marked = b'"shape_attributes"' in head or b'"file_attributes"' in head
    return not inner and marked and b'"filename"' in head


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
        _hand_over(_export_of_three(document), draft)
        return
    files = document.record(_PROJECT) if document.has(_PROJECT) else document
    export = _Export()
    for key in files.values:
        file = files.record(key)
        image = file.text("filename")
        export.images.append(image)
        export.regions += [(image, region) for region in _regions(file)]
    _hand_over(export, draft)


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
    _hand_over(export, draft)


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


def _hand_over(export: _Export, draft: Draft) -> None:
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
    scene.hand_over(encoding="xywh", listed=True)


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


RECTANGLE = 2
SHAPES = {1: "point", RECTANGLE: "rect", 3: "circle", 4: "ellipse", 5: "line", 6: "polyline", 7: "polygon"}
SECTIONS = frozenset({"project", "file", "view", "metadata"})
SIDES = ("x", "y", "width", "height")


def is_project_of_three(keys: Set[str]) -> bool:
    """Whether the outermost keys of a document are those of a project."""
    return keys >= SECTIONS


def files_and_regions(project: Record) -> Iterator[tuple[str, list[tuple[dict[str, Any], dict[str, Any], Record]]]]:
    """Yield the name of each file with its regions: shape and attributes as version 2 has them, and the record.

    A view of several files shows the first of them.
    """
    names = {key: file.text("fname") for key, file in _entries(project, "file")}
    views = {key: view.array("fid_list") for key, view in _entries(project, "view")}
    attributes = (
        {key: _attribute(one) for key, one in _entries(project, "attribute")} if project.has("attribute") else {}
    )
    regions: dict[str, list[tuple[dict[str, Any], dict[str, Any], Record]]] = {key: [] for key in names}
    for _, region in _entries(project, "metadata"):
        xy = region.values.get("xy")
        if not isinstance(xy, list) or not xy:
            continue  # of a file, or of a stretch of a video
        fids = views.get(region.text("vid")) or [""]
        if str(fids[0]) not in names:
            region.error("field-missing", "vid", "leads to no file")
            continue
        given = region.record("av").values if region.has("av") else {}
        known = {key: value for key, value in given.items() if key in attributes}
        named = {attributes[key][0]: attributes[key][1].get(str(value), value) for key, value in known.items()}
        regions[str(fids[0])].append((_shape(region, xy), named, region))
    yield from ((names[key], found) for key, found in regions.items())


def _entries(project: Record, section: str) -> Iterator[tuple[str, Record]]:
    entries = project.record(section)
    return ((key, entries.record(key)) for key in entries.values)


def _attribute(one: Record) -> tuple[str, dict[str, Any]]:
    """Return the name of an attribute, and what the ids of its options mean."""
    options = one.values.get("options")
    return one.text("aname"), options if isinstance(options, dict) else {}


def _shape(region: Record, xy: list[Any]) -> dict[str, Any]:
    kind = SHAPES.get(xy[0], "unknown") if isinstance(xy[0], int) else "unknown"
    if kind != SHAPES[RECTANGLE]:
        return {"name": kind}
    if len(xy) != 1 + len(SIDES):
        region.error("bbox-length", "xy", f"has {len(xy)} values; expected 2 and 4 numbers")
        return {"name": "unknown"}
    return {"name": kind, **dict(zip(SIDES, xy[1:], strict=True))}
