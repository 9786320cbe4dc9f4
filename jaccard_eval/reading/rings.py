"""Polygons as geographic formats write them, well-known text and GeoJSON: rings of an outline and of its holes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_WKT = re.compile(r"\s*(?:SRID=\d+;)?\s*(MULTI)?POLYGON\s*(?:Z|M|ZM)?\s*(EMPTY|\(.*\))\s*", re.IGNORECASE | re.DOTALL)
_RING = re.compile(r"\(([^()]*)\)")
_PARTS = re.compile(r"\)\s*\)\s*,\s*\(\s*\(")

Points = Sequence[Sequence[float]]


def is_wkt(text: str) -> bool:
    """Whether a text begins as a polygon in well-known text does."""
    return bool(re.match(r"\s*(SRID=\d+;)?\s*(MULTI)?POLYGON\b", text, re.IGNORECASE))


def rings_of_wkt(text: str) -> list[list[float]]:
    """Return a polygon or several, each x1, y1, x2, y2, ...; a ValueError where it is neither."""
    found = _WKT.fullmatch(text)
    if found is None:
        raise ValueError("is not a POLYGON or MULTIPOLYGON in well-known text")
    if found[2].upper() == "EMPTY":
        return []
    parts = []
    for part in _PARTS.split(found[2]):
        rings = _RING.findall(f"({part.strip().strip('()').strip()})")
        parts.append([[[float(number) for number in point.split()] for point in ring.split(",")] for ring in rings])
    return [ring for part in parts for ring in filled_ring(part)]


def rings_of_geometry(geometry: Any) -> list[list[float]]:
    """Return the polygons of a GeoJSON geometry; a ValueError where it is of another kind."""
    kind, coordinates = geometry["type"], geometry.get("coordinates")
    if kind == "GeometryCollection":
        return [ring for inner in geometry["geometries"] for ring in rings_of_geometry(inner)]
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"is a {kind}")
    return [ring for part in (coordinates if kind == "MultiPolygon" else [coordinates]) for ring in filled_ring(part)]


def filled_ring(rings: Sequence[Points]) -> list[list[float]]:
    """Return an outline with its holes as one polygon, x1, y1, x2, y2, ...; nothing where it is empty.

    Masks are filled by counting how often a line is crossed: a way to the hole and back is crossed twice.
    """
    outer, *holes = ([_point(point) for point in _opened(ring)] for ring in rings) if rings else ([],)
    way = [*outer]
    for hole in holes:
        way += [outer[0], *hole, hole[0]] if hole else []
    return [[number for point in ([*way, outer[0]] if holes else way) for number in point]] if outer else []


def _opened(ring: Points) -> Points:
    return ring[:-1] if len(ring) > 1 and list(ring[0][:2]) == list(ring[-1][:2]) else ring


def _point(point: Sequence[float]) -> tuple[float, float]:
    x, y = point[:2]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in (x, y)):
        raise ValueError("has a point that is not two numbers")
    return x, y
