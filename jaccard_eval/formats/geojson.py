"""GeoJSON with coordinates in pixels: QuPath's annotations, exports of GIS tools, and xView's boxes in pixels.

A file for each image, or one whose features name their images. Coordinates on the earth are refused: only the image of
a map shows where its pixels lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import parse_json
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector
from jaccard_eval.text import quoted_value

FORMAT = Format(
    name="geojson",
    summary="GeoJSON with polygons in pixels: QuPath, QGIS, xView's bounds_imcoords; a file, or one per image",
    source="https://datatracker.ietf.org/doc/html/rfc7946 and https://qupath.readthedocs.io",
    example="""{
  "type": "FeatureCollection",
  "features": [
    {
      "type": "Feature",
      "properties": {"image": "tile.tif", "label": "building", "score": 0.9},
      "geometry": {"type": "Polygon", "coordinates": [[[10, 20], [110, 20], [110, 220], [10, 220], [10, 20]]]}
    }
  ]
}
""",
    carries=("images", "scores"),
    suffixes=(".geojson",),
    member=".geojson",
    reads={"bbox": "bounds of the polygons", "segm": "Polygon, MultiPolygon, in pixels"},
)

_SUFFIXES = (".geojson", ".json")
_BOUNDS, _KIND, _QUPATH = "bounds_imcoords", "type_id", "classification"  # of xView, and of QuPath
_DEGREES = (180.0, 90.0)
_GLOBAL = (":4326", "CRS84", "WGS84")  # reference systems of degrees
_LARGEST = 1e5  # of the side of an image; metres on a map are counted from far away
_SMALL = 0.5  # of a coordinate, which objects on the earth do not reach, and those in pixels do
ONE_CLASS = 0
_FIX = "Write polygons with rings of [x, y] in pixels."

_MEASURED = "Detection probability"  # of StarDist in QuPath


def looks_like(peek: Peek) -> Likeness | None:
    """Rate JSON by its type; a folder by its first documents."""
    if not peek.is_folder:
        return _rate(peek)
    found = peek.first_files(lambda name: name.lower().endswith(_SUFFIXES))
    rated = [document for document in found if _rate(document)]
    return Likeness.STRUCTURE if rated and len(rated) * 2 > len(found) else None


def _rate(peek: Peek) -> Likeness | None:
    if not peek.is_json:
        return None
    if peek.top_keys >= {"type", "features"} or peek.item_keys >= {"type", "geometry"}:
        return Likeness.NAMED
    return Likeness.STRUCTURE if peek.top_keys >= {"type", "geometry"} else None


def reads_name(name: str) -> bool:
    """Whether a file in a folder is read with it: QuPath writes both suffixes."""
    return name.lower().endswith(_SUFFIXES)


def iou_types(_: Peek) -> set[str]:
    """Return what there is: boxes around polygons are compared only where they are asked for."""
    return {"segm"}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and polygons of features to the draft."""
    side = RecordCollector(draft)
    found = files.members(path, _SUFFIXES, draft.findings)
    known: set[str] = set()
    seen: list[tuple[float, float, float, float]] = []
    systems: list[str] = []
    has_class = False
    for stem, file, value in files.read_each(
        found, lambda file: parse_json(file, files.read_text(file)), draft.findings
    ):
        where = Where(str(file))
        features = [*_features(value, where, draft, systems)]
        own = [_image_of(feature) for feature in features]
        # A file that names no image is one, with objects or without.
        for image in own if any(own) else [stem]:
            if image and image not in known:
                known.add(image)
                side.add_image(image)
        for feature, image in zip(features, own, strict=True):
            label = _label_of(feature)
            has_class |= label is not None
            _add_feature(side, feature, image or stem, ONE_CLASS if label is None else label, seen)
    if not has_class:
        from jaccard_eval.reading.tabular.table import note_no_class

        note_no_class(draft)
    _refuse_places(seen, systems, path, draft)
    draft.findings.raise_errors()
    # Features that name images other than their files do not show which images have no object.
    side.to_draft(encoding="xywh", listed=known <= found.keys())


def _features(value: Any, where: Where, draft: Draft, systems: list[str]) -> Iterator[Record]:
    """Yield the features of a document: a collection, whose reference system is noted, a list, or one feature."""
    if isinstance(value, list):
        yield from Record.list_of(value, where, draft.findings)
        return
    outer = Record.of(value, where, draft.findings)
    if value and isinstance(value, dict) and "features" not in value:
        yield outer
        return
    crs = value.get("crs") if isinstance(value, dict) else None
    if crs is not None:
        systems.append(str(crs.get("properties", {}).get("name", "") if isinstance(crs, dict) else crs))
    yield from outer.records("features")


def _properties(feature: Record) -> dict[str, Any]:
    found = feature.values.get("properties")
    return found if isinstance(found, dict) else {}


def _image_of(feature: Record) -> str:
    from jaccard_eval.reading.tabular.columns import IMAGE, position_of

    properties = _properties(feature)
    at = position_of(tuple(properties), IMAGE)
    value = None if at is None else [*properties.values()][at]
    return str(value) if isinstance(value, str | int) and str(value).strip() else ""


def _label_of(feature: Record) -> str | int | None:
    from jaccard_eval.reading.tabular.columns import CLASS, position_of

    properties = _properties(feature)
    value = properties.get(_QUPATH)
    if isinstance(value, dict):
        value = value.get("name")
    if value is None:
        at = position_of(tuple(properties), CLASS)
        value = properties.get(_KIND) if at is None else [*properties.values()][at]
    return value if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else None


def _score_of(feature: Record) -> float:
    from jaccard_eval.reading.tabular.columns import SCORE, position_of

    properties = _properties(feature)
    measured = properties.get("measurements")
    if isinstance(measured, dict) and _MEASURED in measured:
        properties = {_MEASURED: measured[_MEASURED]}
    at = 0 if _MEASURED in properties else position_of(tuple(properties), SCORE)
    if at is None or [*properties.values()][at] is None:
        return math.nan
    return replace(feature, where=feature.at("properties"), values=properties).number([*properties][at])


def _add_feature(
    side: RecordCollector,
    feature: Record,
    image: str,
    label: str | int,
    seen: list[tuple[float, float, float, float]],
) -> None:
    from jaccard_eval.reading.outlines import rings_of_geometry

    bounds = _properties(feature).get(_BOUNDS)
    geometry = feature.values.get("geometry")
    try:
        if bounds is not None:
            left, top, right, bottom = (float(number) for number in str(bounds).split(","))
            rings = [[left, top, right, top, right, bottom, left, bottom]]
        elif not isinstance(geometry, dict):
            side.count_shape("null")
            return
        else:
            rings = rings_of_geometry(geometry)
    except (ValueError, KeyError, TypeError) as error:
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        if kind in ("Point", "MultiPoint", "LineString", "MultiLineString"):
            side.count_shape(str(kind))
        else:
            detail = str(error) if isinstance(error, ValueError) else "has no rings of points"
            feature.error("segmentation-invalid", _BOUNDS if bounds is not None else "geometry", detail, _FIX)
        return
    if not rings:
        side.count_shape("empty")
        return
    if bounds is None:
        xs, ys = ([number for ring in rings for number in ring[axis::2]] for axis in (0, 1))
        seen.append((min(xs), min(ys), max(xs), max(ys)))
    side.add_polygons(image, label, rings, feature.where, score=_score_of(feature))


def _refuse_places(seen: list[tuple[float, float, float, float]], systems: list[str], path: Path, draft: Draft) -> None:
    """Refuse places on the earth: degrees of objects that are much smaller, and metres beyond the side of an image.

    Tools that convert to pixels leave the reference system as it was.
    """
    if not seen:
        return
    corners = np.array(seen)
    far = np.abs(corners).reshape(-1, 2).max(axis=0)
    is_global = any(name.endswith(_GLOBAL) for name in systems)
    are_degrees = (far <= _DEGREES).all() and (is_global or np.median(corners[:, 2:] - corners[:, :2]) < _SMALL)
    if not are_degrees and far.max() <= _LARGEST:
        return
    x, y = corners[0, :2].tolist()
    what = "degrees" if are_degrees else "metres on a map"
    named = f" of {quoted_value(systems[0])}" if systems else ""
    detail = f"coordinates are {what}{named}, not pixels: the first object begins at {x:g}, {y:g}"
    fix = "Convert them to pixels with the transform of the image."
    draft.findings.error("geo-coordinates", Where(str(path)), detail, fix=fix)
