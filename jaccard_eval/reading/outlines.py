"""Masks while they are read: polygons, rings, runs and strings are collected, and checked and decoded all at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import RowArray, from_xywh, to_xywh
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, ImageTable
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.options import MASK_AXES
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.json import described_json, is_finite, is_number
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.runs import FARTHEST, IntArray, Runs, decode_strings, offsets_of, runs_of_counts
from jaccard_eval.text import did_you_mean, quoted_value, shown_json

_WKT = pattern(r"\s*(?:SRID=\d+;)?\s*(MULTI)?POLYGON\s*(?:Z|M|ZM)?\s*(EMPTY|\(.*\))\s*", re.IGNORECASE | re.DOTALL)
_RING = pattern(r"\(([^()]*)\)")
_PARTS = pattern(r"\)\s*\)\s*,\s*\(\s*\(")

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


_NO_SIZE = (0, 0)


def is_rectangle(ring: Sequence[float | str | bytes]) -> bool:
    """Whether a polygon x1, y1, x2, y2, ... is an upright rectangle, with the first corner once more at its end or not.

    Not a single number is computed with, so that they may be texts.
    """
    xs, ys = ring[::2], ring[1::2]
    if len(xs) == len(ys) == 5 and (xs[0], ys[0]) == (xs[4], ys[4]):
        xs, ys = xs[:4], ys[:4]
    # Each side has one x or one y, by turns.
    sides = [(xs[at - 1] == xs[at], ys[at - 1] == ys[at]) for at in range(len(xs))]
    return len(xs) == len(ys) == 4 and sides in ([(True, False), (False, True)] * 2, [(False, True), (True, False)] * 2)


class OutlineDraft:
    """The masks of an input, one after the other, in whichever way each is written."""

    def __init__(self) -> None:
        self.short: list[int] = []  # masks with a polygon of fewer than three points, which has no pixels
        self.n_flat = 0  # polygons that do not stand in a list of polygons
        self._rings: list[Sequence[float]] = []
        self._n_rings: list[int] = []
        self._counts: list[Sequence[int]] = []  # of each mask that has runs
        self._strings: list[bytes] = []
        self._edges: list[IntArray] = []  # of masks that are pixels
        self._sizes: list[tuple[int, int]] = []
        self._kinds: list[str] = []  # "polygons", "counts", "string", "pixels"

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, value: Any) -> str:
        """Add a mask as COCO JSON or pycocotools has it; return the problem where that cannot be done."""
        if isinstance(value, list):
            if len(value) >= 6 and len(value) % 2 == 0 and all(map(is_number, value)):
                self.n_flat += 1
                value = [value]
            problem = _polygons_problem(value)
            if problem:
                # In memory, polygons come as arrays and tuples, too.
                value = [_in_python(ring) for ring in value]
                problem = _polygons_problem(value)
            if not problem:
                self.add_polygons(value)
            return problem
        if not isinstance(value, dict):
            return "is missing" if value is None else f"is {described_json(value)}; expected polygons or RLE"
        problem = _rle_problem(value)
        if problem:
            # So do sizes and runs, and tensors and floats; a file has none of these.
            value = {name: _in_python(value[name]) for name in ("size", "counts") if name in value}
            problem = _rle_problem(value)
        if problem:
            return problem
        counts, (height, width) = value["counts"], value["size"]
        if isinstance(counts, list):
            self.add_counts(counts, height, width)
        else:
            text = counts if isinstance(counts, bytes) else counts.encode("utf-8", "surrogatepass")
            self.add_string(text, height, width)
        return ""

    def add_polygons(self, rings: Sequence[Sequence[float]]) -> None:
        """Add the union of polygons, each x1, y1, x2, y2, ..."""
        kept = [ring for ring in rings if len(ring) >= 6]
        if len(kept) < len(rings):
            self.short.append(len(self))
        self._rings += kept
        self._append("polygons", len(kept), _NO_SIZE)

    def add_counts(self, counts: Sequence[int], height: int, width: int) -> None:
        """Add a mask by the lengths of its runs, which make up the image."""
        self._counts.append(counts)
        self._append("counts", 0, (height, width))

    def add_string(self, text: bytes, height: int, width: int) -> None:
        """Add a mask by its compressed string."""
        self._strings.append(text)
        self._append("string", 0, (height, width))

    def add_pixels(self, edges: IntArray, height: int, width: int) -> None:
        """Add a mask by the edges of its runs."""
        self._edges.append(edges)
        self._append("pixels", 0, (height, width))

    def _append(self, kind: str, n_rings: int, size: tuple[int, int]) -> None:
        self._kinds.append(kind)
        self._n_rings.append(n_rings)
        self._sizes.append(size)

    def build(self) -> tuple[Outlines, list[tuple[int, str]]]:
        """Return the masks, and what is wrong with some of them, by row; those have no pixels."""
        kinds, sizes = np.array(self._kinds, dtype=object), np.array(self._sizes, dtype=np.int64).reshape(-1, 2)
        problems: list[tuple[int, str]] = []
        corners = np.fromiter(chain.from_iterable(self._rings), np.float64, sum(map(len, self._rings))).reshape(-1, 2)
        rings = offsets_of([len(ring) // 2 for ring in self._rings])
        parts = offsets_of(self._n_rings)
        far = np.flatnonzero((np.abs(corners) > FARTHEST).any(axis=1))
        if len(far):
            of_mask = np.searchsorted(parts, np.searchsorted(rings, far, "right") - 1, "right") - 1
            for row, corner in {int(row): corner for row, corner in zip(of_mask[::-1], far[::-1], strict=True)}.items():
                x, y = corners[corner].tolist()
                problems.append((row, f"a polygon has the corner {x:g}, {y:g}, too large for an image"))
            corners = np.clip(corners, -FARTHEST, FARTHEST)
        (of_strings,), (of_counts,) = np.nonzero(kinds == "string"), np.nonzero(kinds == "counts")
        counts, offsets, wrong = decode_strings(self._strings)
        problems += [(row, "counts of RLE is not a valid compressed string") for row in of_strings[wrong].tolist()]
        strings, pixels = runs_of_counts(counts, offsets)
        wanted = sizes[of_strings].prod(axis=1)
        unfit = np.flatnonzero((pixels != wanted) & ~wrong)
        for at in unfit.tolist():
            height, width = sizes[of_strings[at]].tolist()
            detail = f"counts of RLE sum to {pixels[at]:,}, but {height} x {width} are {wanted[at]:,} pixels"
            problems.append((int(of_strings[at]), detail))
        flat = np.fromiter(chain.from_iterable(self._counts), np.int64, sum(map(len, self._counts)))
        listed, _ = runs_of_counts(flat, offsets_of([len(counts) for counts in self._counts]))
        # Strings, lists, pixels, then polygons, which have no runs yet; and back to the order of the input.
        (of_pixels,), (others,) = np.nonzero(kinds == "pixels"), np.nonzero(kinds == "polygons")
        given = np.array([len(edges) for edges in self._edges], dtype=np.int64)
        lengths = [np.diff(strings.offsets), np.diff(listed.offsets), given, np.zeros(len(others), dtype=np.int64)]
        runs = Runs(np.concatenate((strings.edges, listed.edges, *self._edges)), offsets_of(np.concatenate(lengths)))
        order = np.argsort(np.concatenate((of_strings, of_counts, of_pixels, others)), kind="stable")
        drawn = kinds == "polygons"
        outlines = Outlines(corners, rings, parts, Masks(runs.take(order), sizes), drawn, np.zeros_like(drawn))
        return outlines, sorted(problems)


_CLOSE = 1e-9  # by which numbers of a box may differ from those of its mask, for what rounds differently


def with_axes(raw: RawBoxes, axes: str, role: str, path: str, findings: FindingLog) -> RawBoxes:
    """Return boxes whose masks are read with what `axes` of `options.MASK_AXES` names exchanged.

    Boxes that are the bounds of their masks follow them; masks that are the rectangles of their boxes stay.
    """
    if axes not in MASK_AXES:
        hint = did_you_mean(axes, MASK_AXES)
        raise UsageError(f"unknown mask axes {quoted_value(axes)}; choose from {', '.join(MASK_AXES)}.{hint}")
    shapes: object = raw.shapes
    given = shapes if isinstance(shapes, Outlines) else None
    drawn = np.zeros(0, dtype=np.bool_) if given is None else given.has_polygons
    of_box = np.zeros_like(drawn) if raw.of_box is None or given is None else raw.of_box
    (changed,) = np.nonzero(~of_box & (drawn if axes == "yx" else ~drawn))
    if given is None or not len(changed):
        kind = "polygons" if axes == "yx" else "pixels"
        fix = Fix.of_side(role, "Remove {mask_axes}.", mask_axes=None)
        if not len(drawn):
            words = f"Compare masks with {{iou_type}}, or remove {{{role}_mask_axes}}."
            fix = Fix.missing(words, iou_type="segm", **{f"{role}_mask_axes": None})
        where, detail = Where(path, field="segmentation"), f"no masks of {kind} are read: mask axes {axes} are unused"
        findings.warning("mask-axes-unused", where, detail, fix=fix)
        return raw
    kept = np.setdiff1d(np.arange(len(given)), changed)
    read = given.take(changed).with_axes(axes)
    if len(kept):
        read = given.take(kept).joined([read]).take(np.argsort(np.concatenate((kept, changed))))
    bounds = given.bounds()
    if raw.units == "norm":  # around pixels that are not fractions of anything
        bounds[~drawn] /= np.maximum(given.masks.sizes[~drawn][:, [1, 0, 1, 0]], 1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused later
        is_around = np.abs(to_xywh(raw.coords, raw.encoding) - bounds) <= _CLOSE * (1 + np.abs(bounds))
    around = changed[is_around[changed].all(axis=1)]
    coords = raw.coords.copy()
    if axes in ("yx", "transposed"):  # no number becomes another one
        coords[around] = coords[around][:, [2, 3, 0, 1] if raw.encoding == "xxyy" else [1, 0, 3, 2]]
    else:
        new = read.bounds()[around]
        if raw.units == "norm":
            new /= np.maximum(read.masks.sizes[around][:, [1, 0, 1, 0]], 1)
        coords[around] = from_xywh(new, raw.encoding)
    return replace(raw, coords=coords, shapes=read)


def with_new_sizes(images: ImageTable, rows: RowArray, old: RawBoxes, new: RawBoxes) -> ImageTable:
    """Return images with the sizes of masks as they are read, where they have that of masks as they are written.

    Many formats know no other size of an image than that of its masks; `rows` are those of the images of each mask.
    """
    before, after = (
        shapes.masks.sizes[:, ::-1] if isinstance(shapes, Outlines) else np.zeros((0, 2))
        for shapes in (old.shapes, new.shapes)
    )
    (moved,) = np.nonzero((before != after).any(axis=1) & (rows >= 0))
    moved = moved[(images.sizes[rows[moved]] == before[moved]).all(axis=1)]
    sizes = images.sizes.copy()
    sizes[rows[moved]] = after[moved]
    return replace(images, sizes=sizes)


def _polygons_problem(value: list[Any]) -> str:
    if not value:
        return "is an empty list: there is no mask"
    if not all(isinstance(part, list) for part in value):
        what = "a flat list of numbers" if all(map(is_number, value)) else f"a list with {described_json(value[0])}"
        return f"is {what}; expected a list of polygons"
    for part in value:
        wrong = [number for number in part if not is_number(number)]
        if wrong:
            nested = " (pairs must be flat: x1, y1, x2, y2, ...)" if isinstance(wrong[0], list) else ""
            return f"a polygon has {described_json(wrong[0])} {shown_json(wrong[0])}; expected numbers{nested}"
        if len(part) % 2 or not all(map(is_finite, part)):
            what = f"{len(part)} numbers; expected pairs of x and y" if len(part) % 2 else "a number that is not finite"
            return f"a polygon has {what}"
    few = len(value[0]) < 6
    return f"the first polygon has {len(value[0]) // 2} points; expected at least 3" if few else ""


def _rle_problem(value: dict[str, Any]) -> str:
    return _size_problem(value) or _counts_problem(value["counts"], *value["size"])


def _in_python(values: Any) -> Any:
    """Return a sequence of numbers as a list, whole ones as int; anything else as it is."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(listed, list | tuple):
        return listed
    plain = [number.item() if hasattr(number, "item") else number for number in listed]
    return [int(number) if isinstance(number, float) and number.is_integer() else number for number in plain]


def _size_problem(value: dict[str, Any]) -> str:
    missing = [name for name in ("size", "counts") if name not in value]
    if missing:
        return f"RLE has no {' and no '.join(missing)}"
    size: Any = value["size"]
    whole = isinstance(size, list) and all(isinstance(side, int) and not isinstance(side, bool) for side in size)
    if whole and len(size) == 2 and min(size) >= 0 and max(size) <= MAX_IMAGE_SIDE:
        return ""
    return f"size of RLE is {shown_json(size)}; expected [height, width] in whole pixels"


def _counts_problem(counts: Any, height: int, width: int) -> str:
    if isinstance(counts, str | bytes):
        return ""
    if not isinstance(counts, list):
        return f"counts of RLE is {described_json(counts)}; expected a string or a list of whole numbers"
    wrong = [run for run in counts if not isinstance(run, int) or isinstance(run, bool) or run < 0]
    if wrong:
        return f"counts of RLE has {shown_json(wrong[0])}; expected whole numbers of pixels, 0 or more"
    if sum(counts) != height * width:
        return f"counts of RLE sum to {sum(counts):,}, but {height} x {width} are {height * width:,} pixels"
    return ""
