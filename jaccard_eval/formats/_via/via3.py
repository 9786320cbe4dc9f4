"""Projects of the third VGG Image Annotator, whose regions stand beside the files: as those of the second have them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from jaccard_eval.reading.json.record import Record

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
