"""Supervisely: a JSON file per image in folders called ann: rectangles, polygons, bitmaps and graphs of points."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.findings import DataError
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, kinds_in, rings_of
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector, document_records

if TYPE_CHECKING:
    from jaccard_eval.similarity.runs import IntArray

FORMAT = Format(
    name="supervisely",
    summary="Supervisely JSON: a project folder, or one file per image (street.jpg.json); scores are tags",
    source="https://docs.supervisely.com/data-organization/00_ann_format_navi/04_supervisely_format_annotation",
    example="""{
  "description": "",
  "size": {"height": 480, "width": 640},
  "tags": [],
  "objects": [
    {"classTitle": "dog", "geometryType": "rectangle", "points": {"exterior": [[10, 20], [110, 220]], "interior": []}}
  ]
}
""",
    carries=("images", "sizes", "scores"),
    member=".json",
    reads={"bbox": "rectangle", "obb": "oriented_bbox", "segm": "polygon, bitmap", "keypoints": "nodes"},
)

_META = frozenset({"meta.json", "obj_class_to_machine_color.json", "img_info/", "meta/"})  # of project and images
_FOLDER = "ann"
_KINDS = {
    "bbox": pattern(rb'"rectangle"'),
    "segm": pattern(rb'"(?:polygon|bitmap)"'),
    "obb": pattern(rb'"oriented_bbox"'),
    "keypoints": pattern(rb'"nodes"\s*:\s*\{\s*"'),
}
_LABELLED = 2.0  # how well a point is seen that annotators have placed
_SCORE_TAGS = ("confidence", "conf", "score")


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its keys, and a project by its files."""
    return peek.rate_documents(
        lambda document: Likeness.STRUCTURE if document.top_keys >= {"size", "objects"} else None, besides=_META
    )


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a project."""
    collector = RecordCollector(draft)
    for name, record in document_records(path, draft, besides=_META):
        # Annotations lie in ds/ann, their images in ds/img, so "ann" does not belong to an image's name.
        key = "/".join(part for part in name.split("/") if part != _FOLDER)
        size = record.record("size")
        collector.add_image(key, file_name=key, size=(size.side("width"), size.side("height")))
        for entry in record.records("objects"):
            kind = entry.text("geometryType")
            if not kind:
                continue
            tags = entry.records("tags") if entry.has("tags") else ()
            scores = [tag.number("value") for tag in tags if tag.values.get("name") in _SCORE_TAGS]
            score = scores[0] if scores else math.nan
            label = entry.text("classTitle")
            if kind == "rectangle" and collector.reads_boxes:
                collector.add_box(key, label, entry.record("points").corners("exterior"), entry.where, score=score)
            else:
                collector.add_drawn(key, label, _drawn(entry, kind, size), entry.where, score=score)
    collector.to_draft(encoding="xyxy", listed=True)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first files have: boxes, masks, points, or several of them."""
    return kinds_in(peek.documents(_META) if peek.is_folder else [peek], _KINDS)


def _drawn(entry: Record, kind: str, size: Record) -> Drawn:
    """Return what an object draws."""
    drawn = Drawn(kind=kind)
    if kind == "rectangle":
        drawn.box = entry.record("points").corners("exterior")
    elif kind in ("polygon", "oriented_bbox") and entry.has("points"):
        points = entry.record("points")
        outer = points.entries("exterior")
        ring = points.ring([outer.numbers(name, 2) for name in outer.values])
        holes = rings_of(points.values.get("interior"))
        drawn.rings = [ring] if ring else []
        if holes and ring:
            drawn.pixels = _with_holes(ring, holes, size)
    elif kind == "bitmap" and entry.has("bitmap"):
        drawn.pixels = _bitmap(entry.record("bitmap"), size)
    elif kind == "graph" and entry.has("nodes"):
        nodes = entry.record("nodes")
        found = {name: nodes.record(name) for name in nodes.values}
        drawn.points = {name: (*node.numbers("loc", 2), _LABELLED) for name, node in found.items()}
    return drawn


def _with_holes(ring: list[float], holes: list[list[float]], size: Record) -> tuple[IntArray, tuple[int, int]]:
    """Return the runs of a polygon without those of its holes."""
    from jaccard_eval.similarity.runs import Runs, offsets_of, runs_of_polygons

    height, width = int(size.side("height")), int(size.side("width"))
    every = [ring, *holes]
    corners = np.array([value for points in every for value in points]).reshape(-1, 2)
    rings = offsets_of([len(points) // 2 for points in every])
    sizes = np.full((len(every), 2), (height, width))
    pixels: Runs = runs_of_polygons(corners, rings, np.arange(len(every) + 1), sizes)
    filled = np.zeros(height * width, dtype=np.bool_)
    for at in range(len(every)):
        edges = pixels.edges[pixels.offsets[at] : pixels.offsets[at + 1]]
        for start, stop in edges.reshape(-1, 2).tolist():
            filled[start:stop] = at == 0
    changes = np.flatnonzero(np.diff(np.concatenate(([False], filled, [False])).astype(np.int8)))
    return changes.astype(np.int64), (height, width)


def _bitmap(bitmap: Record, size: Record) -> tuple[IntArray, tuple[int, int]] | None:
    """Return the runs of a mask: a PNG of a part of the image, packed by zlib, in base64."""
    from jaccard_eval.reading.labelmaps import edges_of_crop, pixels_of_base64

    text, (x, y) = bitmap.text("data"), bitmap.numbers("origin", 2)
    try:
        png = base64.b64encode(zlib.decompress(base64.b64decode(text))).decode()
        pixels = pixels_of_base64(png, replace(bitmap.where, field="data"))
        whole = int(size.side("height")), int(size.side("width"))
        edges = edges_of_crop(pixels, int(x), int(y), whole)
    except (ValueError, zlib.error):
        bitmap.error("segmentation-invalid", "data", "is not an image that was packed by zlib, in base64")
        return None
    except DataError as error:
        bitmap.findings.extend(error.findings)
        return None
    if isinstance(edges, str):
        bitmap.error("segmentation-invalid", "origin", edges)
        return None
    return edges, whole
