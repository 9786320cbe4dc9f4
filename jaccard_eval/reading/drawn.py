"""What records draw besides boxes, or in place of them: turned boxes, polygons, masks, points.

What a record holds decides what can be compared, whatever its format is called; `ShapeDraft` makes a column of it.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes, from_xywh, to_xywh
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.findings import Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.text import pluralise, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.reading.lines import TextBoxes
    from jaccard_eval.reading.peek import Peek
    from jaccard_eval.similarity.keypoints import Keypoints
    from jaccard_eval.similarity.masks import Outlines
    from jaccard_eval.similarity.obb import Quads
    from jaccard_eval.similarity.runs import IntArray

Points = Mapping[Any, Sequence[float]]  # x, y and how well it is seen, by the number or the name of a point

# What the 17 points of COCO are called, in the order in which they are compared.
_COCO_POINTS = (
    "nose", "lefteye", "righteye", "leftear", "rightear", "leftshoulder", "rightshoulder", "leftelbow", "rightelbow",
    "leftwrist", "rightwrist", "lefthip", "righthip", "leftknee", "rightknee", "leftankle", "rightankle",
)  # fmt: skip
_LARGEST = sys.float_info.max
_CORNERS = [0, 1, 2, 1, 2, 3, 0, 3]  # of left, top, right and bottom, around the box
# Keys of JSON under which shapes are found, and what these can be compared as.
_POLYGON_KEYS = (
    "segmentation",
    "segments",
    "polygon",
    "polygons",
    "poly",
    "polys",
    "quad",
    "corners",
    "points",
    "vertices",
    "pts",
    "contour",
    "coordinates",
    "mask",
)
_TURNED_KEYS = ("rbox", "rbbox", "rotated_bbox", "obb", "bbox", "box")  # the last where it has more than four numbers
_MASK_KEYS = ("rle",)
_FOUR_CORNERS = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")


class Fields(Protocol):
    """An object of JSON, as `records.Record` is one."""

    @property
    def values(self) -> Mapping[str, Any]:
        """What it holds."""

    def has(self, field: str) -> bool:
        """Whether a field is given and not null."""

    def error(self, code: str, field: str, detail: str, fix: str = ..., /) -> None:
        """Record a fault of a field."""


@dataclass(slots=True, kw_only=True)
class Drawn:
    """What one record draws; of several the one that is compared counts.

    Parameters
    ----------
    box : sequence of float, optional
        Four numbers, in the encoding of the file.
    turned : sequence of float, optional
        Centre, width, height and angle.
    rings : sequence of list of float
        Polygons, x1, y1, x2, y2, ... each.
    rle : object, optional
        A mask as COCO JSON has it.
    pixels : tuple, optional
        Edges of the runs of a mask, and the height and width of the image.
    points : mapping, optional
    kind : str
        What it is called where it cannot be compared.
    """

    box: Sequence[float] | None = None
    turned: Sequence[float] | None = None
    rings: Sequence[Sequence[float]] = ()
    rle: Any = None
    pixels: tuple[IntArray, tuple[int, int]] | None = None
    points: Points | None = None
    kind: str = "shape without numbers"

    @property
    def corners(self) -> Sequence[float] | None:
        """The four corners of an oriented box, eight numbers; None of what has others."""
        if len(self.rings) != 1:
            return None
        ring = self.rings[0]
        closed = ring[:8] if len(ring) == 10 and [*ring[:2]] == [*ring[8:]] else ring
        return closed if len(closed) == 8 else None

    @property
    def has_outline(self) -> bool:
        """Whether it has more than a box."""
        return bool(self.rings) or self.turned is not None or self.rle is not None or self.pixels is not None

    def fits(self, iou_type: str) -> bool:
        """Whether there is something to compare."""
        if iou_type == "keypoints":
            return bool(self.points)
        if iou_type in ORIENTED:
            return self.corners is not None or self.turned is not None or self.box is not None
        return self.box is not None or self.has_outline or (iou_type not in MASKS and bool(self.points))


@dataclass(slots=True)
class ShapeDraft:
    """The shapes of an input, one after the other, in whichever way each is drawn."""

    usual_angle: str = ""  # of `options.ANGLES`, where the format defines it
    rows: list[int] = field(default_factory=list)  # those of the boxes
    drawn: list[Drawn] = field(default_factory=list)

    def add(self, row: int, drawn: Drawn) -> None:
        """Add what the record of a row draws, which `fits`."""
        self.rows.append(row)
        self.drawn.append(drawn)

    def build(
        self, coords: FloatArray, encoding: str, places: Callable[[int], Where], draft: Draft
    ) -> tuple[FloatArray, Shapes | None]:
        """Return all boxes (n, 4) in an encoding, with those around shapes where there are none, and the shapes."""
        iou_type = draft.options.iou_type
        where = [places(row) for row in self.rows]
        (turned,) = np.nonzero([one.turned is not None and one.corners is None for one in self.drawn])
        if len(turned):
            from jaccard_eval.reading.oriented import rectangles

            numbers = np.array([self.drawn[at].turned for at in turned.tolist()], dtype=np.float64)
            quads = rectangles(numbers, draft, lambda row: where[int(turned[row])], usual=self.usual_angle)
            for at, corners in zip(turned.tolist(), quads.corners.reshape(-1, 8).tolist(), strict=True):
                self.drawn[at].rings = [corners]
        if iou_type == "keypoints":
            shapes: Any = self._poses(where, draft)
        elif iou_type in ORIENTED:
            shapes = self._quads(encoding, where, draft)
        else:
            shapes = self._outlines(encoding, where, draft)
        bare = np.array([np.isnan(coords[row, 0]) for row in self.rows], dtype=np.bool_)
        if iou_type in (*MASKS, *ORIENTED):
            bare = np.ones_like(bare)
        if shapes is not None and bare.any():
            rows = np.array(self.rows)[bare]
            coords = coords.copy()
            coords[rows] = from_xywh(shapes.bounds()[bare], encoding)
        if iou_type in MASKS and not any(one.has_outline for one in self.drawn):
            shapes = None  # boxes alone
        elif iou_type not in (*MASKS, *ORIENTED, "keypoints"):
            shapes = None
            if n := int(bare.sum()):
                detail = f"read as the boxes around them: {pluralise(n, 'shape', 'shapes')}"
                draft.findings.note("outline", Where(draft.path), detail)
        return coords, shapes

    @staticmethod
    def ignored(shapes: object, options: ReadOptions) -> BoolArray | None:
        """Return which objects do not count, as no point of theirs is labelled, (n,)."""
        from jaccard_eval.similarity.keypoints import Keypoints

        is_posed = isinstance(shapes, Keypoints) and options.role == "gt"
        return np.all(shapes.points[:, :, 2] == 0, axis=1) if is_posed else None  # type: ignore[attr-defined]

    def _rectangle(self, one: Drawn, encoding: str) -> list[float]:
        xywh = to_xywh(np.array([one.box], dtype=np.float64), encoding)[0].tolist()
        sides = [xywh[0], xywh[1], xywh[0] + xywh[2], xywh[1] + xywh[3]]
        return [sides[at] for at in _CORNERS]

    def _outlines(self, encoding: str, where: Sequence[Where], draft: Draft) -> Outlines:
        """Return the masks; those of records that only have a box are its rectangle."""
        from jaccard_eval.reading.outlines import OutlineDraft

        outlines, n_boxes = OutlineDraft(), 0
        for at, one in enumerate(self.drawn):
            if one.pixels is not None:
                outlines.add_pixels(one.pixels[0], *one.pixels[1])
            elif one.rle is not None:
                problem = outlines.add(one.rle)
                if problem:
                    outlines.add_polygons([])
                    draft.findings.error("segmentation-invalid", where[at], problem)
            elif one.rings:
                outlines.add_polygons(one.rings)
            elif one.box is not None:
                n_boxes += 1
                outlines.add_polygons([self._rectangle(one, encoding)])
            else:
                xy = [value for x, y, seen in (one.points or {}).values() if seen > 0 for value in (x, y)]
                outlines.add_polygons([(xy * 3)[: max(len(xy), 6)]])
        built, problems = outlines.build()
        for row, problem in problems:
            draft.findings.error("segmentation-invalid", where[row], problem)
        draft.findings.add_rows(
            Severity.WARNING,
            "polygon-short",
            outlines.short,
            lambda row: (where[row], "a polygon has fewer than 3 points: it has no pixels"),
            fix="Remove it from the annotation.",
        )
        if draft.options.iou_type in MASKS and 0 < n_boxes < len(self.drawn):
            detail = f"{n_boxes:,} of {len(self.drawn):,} objects have no mask: the rectangle of the box is used"
            draft.findings.note("outline", Where(draft.path), detail)
        # Such files have no area of an object: that of its pixels counts.
        built.counts_pixels[:] = True
        return built

    def _quads(self, encoding: str, where: Sequence[Where], draft: Draft) -> Quads:
        from jaccard_eval.reading.oriented import check_outlines
        from jaccard_eval.similarity.obb import Quads

        upright = [one.corners is None for one in self.drawn]
        found = [self._rectangle(one, encoding) if (corners := one.corners) is None else corners for one in self.drawn]
        quads = Quads(np.array(found, dtype=np.float64).reshape(-1, 4, 2))
        if all(upright):
            detail = "boxes have four numbers: read as upright rectangles"
            draft.findings.note("quad-upright", Where(draft.path), detail)
        check_outlines(quads, where.__getitem__, draft)
        return quads

    def _poses(self, where: Sequence[Where], draft: Draft) -> Keypoints:
        """Return the points of each record in one order: by number, else as they are first named."""
        from jaccard_eval.similarity.keypoints import Keypoints

        keys = [*dict.fromkeys(key for one in self.drawn for key in one.points or ())]
        if all(isinstance(key, int) for key in keys):
            keys.sort()
        else:
            plain = {re.sub(r"[\W_]", "", str(key)).lower(): key for key in keys}
            if plain.keys() == {*_COCO_POINTS}:
                keys = [plain[name] for name in _COCO_POINTS]
            draft.point_names = tuple(map(str, keys))
            draft.details.append(f"keypoints in the order {', '.join(draft.point_names)}")
        at = {key: column for column, key in enumerate(keys)}
        poses = np.zeros((len(self.drawn), len(keys), 3))
        for row, one in enumerate(self.drawn):
            for key, point in (one.points or {}).items():
                poses[row, at[key]] = point
        places = poses[:, :, :2]
        if places.size and places.max() <= 1 and np.unique(places).size > 2:
            detail = f"all points are between {places.min():g} and {places.max():g}, as shares of the sides of an image"
            fix = "Write pixels: x times the width, y times the height, in this order."
            draft.findings.error("keypoints-invalid", where[0], detail, fix=fix)
        if draft.options.role == "gt":
            draft.findings.note(
                "area-missing", Where(draft.path), "objects have no areas: OKS measures distances by that of the box"
            )
        return Keypoints(poses)


def add_shapes(
    lines: TextBoxes,
    coords: FloatArray,
    drawn: Mapping[int, Drawn],
    draft: Draft,
    *,
    usual_angle: str = "",
    **columns: Any,
) -> None:
    """Add lines of which some draw other shapes than their corners (n, 4), by row; what cannot be compared is counted.

    What is drawn may have no number that can be used, which is an error of its line.
    """
    iou_type, coords = draft.options.iou_type, coords.copy()
    shapes, kept, unfit = ShapeDraft(usual_angle), np.ones(len(lines), dtype=np.bool_), Counter[str]()
    for row in range(len(lines)):
        one = drawn.get(row) or Drawn(box=coords[row].tolist(), kind="box")
        if not all(map(math.isfinite, (*(one.turned or ()), *(number for ring in one.rings for number in ring)))):
            detail = f"{one.kind} has no plain finite numbers"
            draft.findings.error("number-invalid", lines.where(row, one.kind), detail, fix="Export it again.")
            kept[row] = False
        elif not one.fits(iou_type):
            unfit[one.kind] += 1
            kept[row] = False
        elif one.box is None or iou_type != BOXES:
            coords[row] = np.nan if one.box is None else coords[row]
            shapes.add(row, one)
    if unfit:
        draft.ignored["shape"] += unfit.total()
        kinds = ", ".join(f"{count:,} {quoted_value(kind)}" for kind, count in sorted(unfit.items()))
        detail = f"ignored shapes that cannot be compared: {kinds}"
        draft.findings.warning("shape-unused", Where(draft.path), detail, fix="Compare masks or boxes instead.")
    coords, column = shapes.build(coords, "xyxy", lines.where, draft)
    if column is not None and shapes.rows:  # of lines that are ignored, that of any other
        at = np.searchsorted(np.array(shapes.rows), np.arange(len(lines))).clip(0, len(shapes.rows) - 1)
        columns["shapes"] = column.take(at)
    lines.add_to(draft, coords, rows=None if kept.all() else np.flatnonzero(kept), **columns)


def drawn_by(record: Fields, *, box: Sequence[float] | None = None, kind: str = "") -> Drawn:
    """Return what an object of JSON draws, found by the names that its fields usually have."""
    drawn = Drawn(box=box, kind=kind or "object without a shape")
    for name in _TURNED_KEYS:
        value = record.values.get(name)
        if _are_numbers(value) and len(value) in (5, 8):
            drawn.turned, drawn.rings = (value, ()) if len(value) == 5 else (None, [value])
        elif isinstance(value, list) and len(value) == 4 and (rings := rings_of(value)):
            drawn.rings = rings
    for name in _MASK_KEYS:
        value = record.values.get(name)
        if isinstance(value, dict) and "counts" in value:
            drawn.rle = value
    for name in _POLYGON_KEYS:
        value = record.values.get(name)
        if isinstance(value, dict) and "counts" in value:
            drawn.rle = value
        elif value and (rings := rings_of(value)):
            drawn.rings = rings
            break
        elif value:
            detail = "is not a polygon: write x1, y1, x2, y2, ..., or a list of points x, y"
            record.error("segmentation-invalid", name, detail)
    if record.has("keypoints"):
        drawn.points = points_of(record)
    elif record.has("joints"):  # of MPII, which has next to them whether each is labelled
        seen = record.values.get("joints_vis")
        drawn.points = points_of(record, "joints")
        if _are_numbers(seen) and len(seen) == len(drawn.points):
            pairs = zip(drawn.points.items(), seen, strict=True)
            drawn.points = {key: [x, y, float(is_seen > 0)] for (key, (x, y, _)), is_seen in pairs}
    return drawn


def turned_corners(box: Sequence[float], degrees: float) -> list[float]:
    """Return the corners of a box of left, top, width and height after a turn about its centre, clockwise."""
    from jaccard_eval.similarity.obb import Quads

    left, top, width, height = box
    centred = np.array([[left + width / 2, top + height / 2, width, height]], dtype=np.float64)
    corners: list[float] = Quads.rotated(centred, np.radians([float(degrees)])).corners.ravel().tolist()
    return corners


def _are_numbers(value: Any) -> TypeGuard[list[float]]:
    # A whole number of any length is none that can be computed with.
    return isinstance(value, list) and all(
        isinstance(number, float) or (isinstance(number, int) and abs(number) < _LARGEST) for number in value
    )


def rings_of(value: Any, deepest: int = 4) -> list[list[float]]:
    """Return polygons, however their points are written: flat, as pairs, as objects, by side, as x1 to y4."""
    if isinstance(value, dict) and isinstance(value.get("paths", value.get("path")), list):
        value = value.get("paths", value.get("path"))  # of Darwin
    elif isinstance(value, dict) and _are_numbers(corners := [value.get(name) for name in _FOUR_CORNERS]):
        value = corners
    if isinstance(value, dict):
        xs, ys = value.get("x"), value.get("y")
        if _are_numbers(xs) and _are_numbers(ys) and len(xs) == len(ys):
            return [[number for pair in zip(xs, ys, strict=True) for number in pair]] if len(xs) > 2 else []
        return []
    if not isinstance(value, list) or not value:
        return []
    if _are_numbers(value):
        return [[*map(float, value)]] if len(value) >= 6 and len(value) % 2 == 0 else []
    pairs = [_pair(point) for point in value]
    if all(pair is not None for pair in pairs):
        return [[number for pair in pairs for number in pair or ()]] if len(pairs) > 2 else []
    rings = [rings_of(ring, deepest - 1) for ring in value] if deepest else [[]]
    return [ring for found in rings for ring in found] if all(len(found) == 1 for found in rings) else []


def _pair(point: Any) -> tuple[float, float] | None:
    if isinstance(point, dict):
        point = [point.get("x"), point.get("y")]
    # A third value is what kind of point it is.
    is_pair = isinstance(point, list) and (len(point) == 2 or (len(point) == 3 and isinstance(point[2], str)))
    return (float(point[0]), float(point[1])) if is_pair and _are_numbers(point[:2]) else None


def points_of(record: Fields, name: str = "keypoints") -> Points:
    """Return the points of a pose by their number: triples in one list, lists of each, or objects."""
    value = record.values[name]
    rows: Iterable[Any] = ()
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(point, dict | list) for point in value.values())
        and "x" not in value
    ):
        placed = {key: _point(point) for key, point in value.items()}
        if all(point is not None and _are_numbers([*point]) for point in placed.values()):
            return {key: [*map(float, point or ())] for key, point in placed.items()}
    if isinstance(value, dict):
        xs, ys = value.get("x"), value.get("y")
        seen = next((value[key] for key in ("visible", "v", "confidence") if value.get(key) is not None), None)
        if _are_numbers(xs) and _are_numbers(ys):
            rows = zip(xs, ys, seen if _are_numbers(seen) else [1.0] * len(xs), strict=False)
    elif _are_numbers(value) and value and len(value) % 3 == 0:
        rows = zip(value[::3], value[1::3], value[2::3], strict=True)
    elif isinstance(value, list):
        rows = [_point(point) for point in value]
    found: list[Any] = [*rows]
    if not found or any(point is None or not _are_numbers([*point]) for point in found):
        record.error("keypoints-invalid", name, "has points without x and y", "Write x, y, v for each, in one list.")
        return {}
    keys: Sequence[Any] = range(len(found))
    for kind, names in ((int, ("class_id",)), (str, ("name", "part"))):
        given = [
            next((point[key] for key in names if key in point), None) for point in value if isinstance(point, dict)
        ]
        if len(given) == len(found) and all(isinstance(key, kind) for key in given):
            keys = given
            break
    return {key: [*map(float, point)] for key, point in zip(keys, found, strict=True)}


def _point(point: Any) -> Sequence[Any] | None:
    if isinstance(point, dict):
        seen = next((point[key] for key in ("visible", "v", "visibility", "confidence", "score") if key in point), 1.0)
        placed = point["position"] if isinstance(point.get("position"), dict) else point  # of tensorflow.js
        point = [placed.get("x"), placed.get("y"), seen]
    if not isinstance(point, list) or len(point) not in (2, 3):
        return None
    return [*point, 1.0] if len(point) == 2 else point


def kinds_in(documents: Iterable[Peek], marks: Mapping[str, re.Pattern[bytes]]) -> set[str]:
    """Return what the beginnings of files can be compared as, by what stands in them; boxes where nothing does."""
    heads = [document.head for document in documents]
    return {kind for kind, mark in marks.items() if any(map(mark.search, heads))} or {"bbox"}
