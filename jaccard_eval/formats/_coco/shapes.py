"""The masks and keypoints of COCO JSON, read next to its boxes where they are asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes
from jaccard_eval.data.known_protocols import ORIENTED
from jaccard_eval.findings import FindingLog, Severity, SizedRows, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._coco.strict import (
    Content,
    Layout,
    ResultRecord,
    TruthRecord,
    content_of_list,
)
from jaccard_eval.native.calls import (
    LISTS,
    RecordColumns,
    ScannedOutlines,
    ScannedShapes,
    read_poses,
    scan_shape_list,
    scan_shapes,
)
from jaccard_eval.native.calls import read_outlines as compiled_outlines
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import rings_of, turned_corners
from jaccard_eval.reading.json import (
    described_json,
    is_finite,
    is_finite_number,
    is_number,
    parse_json,
    parse_json_lines,
)
from jaccard_eval.reading.oriented import check_outlines, rectangles
from jaccard_eval.reading.outlines import OutlineDraft
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import Runs
from jaccard_eval.text import shown_json

Places = Callable[[int], Where]

_PLAIN = 'Write polygons as [[x1, y1, x2, y2, ...], ...] or RLE as {"size": [height, width], "counts": ...}.'
_WRITTEN_AS = {
    8: "four corners [x1, y1, x2, y2, x3, y3, x4, y4]",
    5: "[centre x, centre y, width, height, angle]",
    4: "[x, y, width, height]",
}
_SQUARES = {8: (0, 0, 1, 0, 1, 1, 0, 1), 5: (0, 0, 1, 1, 0), 4: (0, 0, 1, 1)}  # in place of what cannot be used
_POLYS = ("poly", "polys")  # four corners, as Ultralytics writes predictions of oriented boxes, and spotters words
_SEGMENTATION, _ROTATION = "segmentation", "attributes.rotation"
_TURNED = ("rbbox", "rbox", "rotated_bbox", "obb")  # where others have four corners, or an angle
_ANGLES = {"bbox": "deg-ccw", "rbox": "rad-cw"}  # as Detectron2 and Ultralytics write them
_TRIPLES = "Write x, y, v for each keypoint, in one list."


_OF_BODIES = ("foot_kpts", "face_kpts", "lefthand_kpts", "righthand_kpts")


class ShapeRecord(msgspec.Struct, gc=False):
    """What an annotation has besides its box."""

    segmentation: Any = None
    keypoints: Any = None
    foot_kpts: Any = None  # of COCO-WholeBody, besides `keypoints`, as the lists behind it
    face_kpts: Any = None
    lefthand_kpts: Any = None
    righthand_kpts: Any = None
    num_keypoints: Any = None
    segments: Any = None  # what others call a segmentation
    poly: Any = None
    polys: Any = None  # of spotters of text: one outline, as pairs

    @property
    def whole_body(self) -> Any:
        """Its points, those of the feet, the face and the hands among them where they have lists of their own."""
        parts = [self.keypoints, *(getattr(self, name) for name in _OF_BODIES)]
        if all(part is None for part in parts[1:]):
            return self.keypoints
        return [number for part in parts for number in _flat(part)] if {*map(type, parts)} == {list} else None

    @property
    def outline(self) -> Any:
        """Its mask, under whichever name."""
        given = (self.segmentation, self.segments, self.poly, self.polys and rings_of(self.polys))
        return next((value for value in given if value is not None), None)


_OBJECT = {name: msgspec.json.Decoder(msgspec.defstruct("_Document", [(name, list[ShapeRecord])])) for name in LISTS}
_LIST = msgspec.json.Decoder(list[ShapeRecord])
_LINE = msgspec.json.Decoder(ShapeRecord)


def shape_records(path: Path, data: bytes, layout: Layout, section: str = "") -> list[ShapeRecord]:
    """Return what the records of a file that was read before have besides their boxes."""
    try:
        if layout is Layout.LINES:
            return _LINE.decode_lines(data)
        return getattr(_OBJECT[section].decode(data), section) if section else _LIST.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # What the tolerant reader takes, such as NaN, which is then an error of its record.
        known = ShapeRecord.__struct_fields__
        values = _whole_records(path, data, layout, section)
        return [ShapeRecord(**{name: value[name] for name in known if name in value}) for value in values]


def _whole_records(path: Path, data: bytes, layout: Layout, section: str) -> list[dict[str, Any]]:
    text = files.decode(path, data)
    if layout is Layout.LINES:
        values = [value for _, value in parse_json_lines(path, text, FindingLog())]
    else:
        document = parse_json(path, text)
        values = document[section] if section else document
        values = [*values.values()] if isinstance(values, dict) else values  # by their ids
    return [value if isinstance(value, dict) else {} for value in values]


def read_truth_shapes(
    path: Path, data: bytes, content: Content[TruthRecord], columns: RecordColumns, draft: Draft
) -> tuple[RecordColumns, Shapes]:
    """Return the columns of ground truth, and the shapes that are asked for."""
    if draft.options.iou_type in ORIENTED:
        quads = read_quads(path, data, content, draft)
        area = np.where(np.isnan(columns.area), quads.areas(), columns.area)
        return replace(columns, coords=quads.bounds(), area=area), quads
    places, is_posed = content.places(draft.path), draft.options.iou_type == "keypoints"
    no_box = np.isnan(columns.coords[:, 0])
    is_whole = draft.options.whole_bodies
    scanned = None if is_whole else scan_shapes(data, poses=is_posed, role="gt")
    if scanned is not None and len(scanned.at) != len(no_box):
        scanned = None
    if not is_posed:
        outlines = None if scanned is None else _compiled_outlines(data, scanned, places, draft.findings)
        if outlines is None:
            records = shape_records(path, data, content.layout, content.section)
            outlines = read_outlines(records, columns.coords, places, draft.findings, role="gt")
        outlines = replace(outlines, counts_pixels=np.isnan(columns.area))
        return replace(columns, coords=_boxed(columns.coords, outlines)), outlines
    if not is_whole:
        _note_whole_bodies(data, draft)
    found = None if scanned is None else _compiled_truth_poses(data, scanned)
    if found is None:
        found = read_keypoints(
            shape_records(path, data, content.layout, content.section),
            places,
            draft.findings,
            role="gt",
            is_whole=is_whole,
        )
    poses, unlabelled = found
    for row in np.flatnonzero(no_box & unlabelled).tolist():
        detail = "is missing, and no keypoint is labelled: there is nothing to compare poses with"
        draft.findings.error("field-missing", replace(places(row), field="bbox"), detail)
    (unsized,) = np.nonzero(~(columns.area > 0) & ~unlabelled)
    meaning = "OKS measures distances by it, by that of the box where it is missing"
    # An exporter that never knew it wrote 0 everywhere: no pose but an exact one would be found.
    if len(unsized) and len(unsized) == np.count_nonzero(~unlabelled) and (columns.area[unsized] == 0).any():
        no_sides = (columns.coords == 0).all(axis=1)[:, None]
        area, coords = np.where(columns.area == 0, np.nan, columns.area), np.where(no_sides, np.nan, columns.coords)
        columns = replace(columns, area=area, coords=coords)
        meaning = "no record has one, and OKS measures distances by that of the box"
    meaning = f"area is 0 or missing in {len(unsized):,} of {len(no_box):,} records with keypoints: {meaning}"
    _warn_of_areas(draft.findings, unsized, places, "area", meaning)
    # As in COCO, an ignored object is one without labelled points, whatever else a file calls so.
    return replace(columns, coords=_boxed(columns.coords, poses), ignore=unlabelled.astype(np.int8)), poses


def read_result_shapes(
    path: Path, data: bytes, content: Content[ResultRecord], columns: RecordColumns, draft: Draft
) -> tuple[RecordColumns, Shapes]:
    """Return the columns of predictions, and the shapes that are asked for."""
    if draft.options.iou_type in ORIENTED:
        quads = read_quads(path, data, content, draft)
        return replace(columns, coords=quads.bounds()), quads
    records, places = shape_records(path, data, content.layout, content.section), content.places(draft.path)
    no_box = np.isnan(columns.coords[:, 0])
    _warn_of_missing_boxes(no_box, places, draft.findings)
    if draft.options.iou_type == "keypoints":
        is_whole = draft.options.whole_bodies
        poses, _ = read_keypoints(records, places, draft.findings, role="pred", is_whole=is_whole)
        return replace(columns, coords=_boxed(columns.coords, poses)), poses
    outlines = read_outlines(records, columns.coords, places, draft.findings, role="pred")
    bare = np.array([record.outline is None for record in records], dtype=np.bool_) & ~no_box
    draft.findings.add_rows(
        Severity.WARNING,
        "mask-of-box",
        np.flatnonzero(bare),
        lambda row: (places(row), ""),
        summary=f"{bare.sum():,} of {len(records):,} predictions have no mask: the rectangle of the box is used",
    )
    outlines = replace(outlines, counts_pixels=no_box)
    return replace(columns, coords=_boxed(columns.coords, outlines), of_box=bare), outlines


def read_plain_results(
    file: BufferedIOBase, size: int, draft: Draft
) -> tuple[Content[ResultRecord], RecordColumns, Shapes] | None:
    """Read a results list by the compiled core, without a record for each prediction; None where it does not."""
    if draft.options.whole_bodies:
        return None
    scanned = scan_shape_list(file, size, poses=draft.options.iou_type == "keypoints")
    if scanned is None:
        return None
    content = content_of_list(scanned.key)
    places, no_box = content.places(draft.path), np.isnan(scanned.columns.coords[:, 0])
    shapes: Keypoints | Outlines
    if isinstance(scanned.shapes, ScannedOutlines):
        shapes = replace(_outlines_of(scanned.shapes, places, draft.findings), counts_pixels=no_box)
    else:
        shapes = Keypoints(scanned.shapes)
    _warn_of_missing_boxes(no_box, places, draft.findings)
    return content, replace(scanned.columns, coords=_boxed(scanned.columns.coords, shapes)), shapes


def _compiled_outlines(data: bytes, scanned: ScannedShapes, places: Places, findings: FindingLog) -> Outlines | None:
    found = compiled_outlines(data, scanned)
    return None if found is None else _outlines_of(found, places, findings)


def _outlines_of(found: ScannedOutlines, places: Places, findings: FindingLog) -> Outlines:
    _warn_of_short_parts(np.flatnonzero(found.is_short), places, findings)
    masks = Masks(Runs(found.edges, found.offsets), found.sizes)
    no_pixels = np.zeros_like(found.has_polygons)
    return Outlines(found.corners, found.rings, found.parts, masks, found.has_polygons, no_pixels)


def _compiled_truth_poses(data: bytes, scanned: ScannedShapes) -> tuple[Keypoints, BoolArray] | None:
    """Return what `read_keypoints` does of ground truth, where there is nothing to report."""
    points = read_poses(data, scanned)
    if points is None:
        return None
    seen, unlabelled = points[:, :, 2], scanned.number == 0
    is_sound = np.isin(seen, (0, 1, 2)).all() and (scanned.number >= 0).all() and not (seen[unlabelled] > 0).any()
    return (Keypoints(points), unlabelled) if is_sound else None


def _warn_of_missing_boxes(no_box: BoolArray, places: Places, findings: FindingLog) -> None:
    # The first record decides for all, as in pycocotools: the area of a prediction is that of its box where it has one.
    boxed = bool(len(no_box)) and not no_box[0]
    unboxed = np.flatnonzero(no_box) if boxed else np.zeros(0, dtype=np.int64)
    meaning = (
        f"bbox is missing in {len(unboxed):,} of {len(no_box):,} records, but the first one has it: the area of a"
        " prediction is that of its box, of these records that of the shape"
    )
    _warn_of_areas(findings, unboxed, places, "bbox", meaning)


def _warn_of_areas(findings: FindingLog, rows: SizedRows, places: Places, field: str, meaning: str) -> None:
    """Report records that lack what areas are taken from, and what that means."""
    findings.add_rows(
        Severity.WARNING, "area-missing", rows, lambda row: (replace(places(row), field=field), ""), summary=meaning
    )


def _boxed(coords: FloatArray, shapes: Shapes) -> FloatArray:
    """Return coordinates with the bounds of shapes where a record has no box."""
    missing = np.isnan(coords)
    return np.where(missing, shapes.bounds(), coords) if missing.any() else coords


def read_outlines(
    records: Sequence[ShapeRecord], coords: FloatArray, places: Places, findings: FindingLog, *, role: str
) -> Outlines:
    """Return the mask of each record; predictions with a box and no mask have that of their box."""
    draft = OutlineDraft()
    for row, record in enumerate(records):
        value = record.outline
        if value is None and role == "pred" and not math.isnan(coords[row, 0]):
            left, top, width, height = coords[row].tolist()
            right, bottom = left + width, top + height
            draft.add_polygons([[left, top, left, bottom, right, bottom, right, top]])
            continue
        problem = draft.add(value)
        if problem:
            draft.add_polygons([])
            findings.error("segmentation-invalid", replace(places(row), field="segmentation"), problem, fix=_PLAIN)
    if draft.n_flat:
        detail = f"flat lists of numbers are read as one polygon each: {draft.n_flat:,} of {len(draft):,}"
        findings.note("outline", replace(places(0), record=None, field="segmentation"), detail)
    outlines, problems = draft.build()
    for row, problem in problems:
        findings.error("segmentation-invalid", replace(places(row), field="segmentation"), problem)
    _warn_of_short_parts(draft.short, places, findings)
    return outlines


def _warn_of_short_parts(rows: SizedRows, places: Places, findings: FindingLog) -> None:
    findings.add_rows(
        Severity.WARNING,
        "polygon-short",
        rows,
        lambda row: (replace(places(row), field="segmentation"), "a polygon has fewer than 3 points: it has no pixels"),
        fix="Remove it from the annotation.",
    )


def read_quads(path: Path, data: bytes, content: Content[TruthRecord] | Content[ResultRecord], draft: Draft) -> Quads:
    """Return the oriented box of each record: eight numbers are corners, five centre, sizes and angle.

    Where no record has such a bbox, they are found under another name, as Ultralytics and CVAT write them.
    """
    places, name = content.places(draft.path), "bbox"
    boxes: list[Any] = [record.bbox for record in content.boxes]
    if boxes and all(box is UNSET or (isinstance(box, list | tuple) and len(box) in (4, 5)) for box in boxes):
        records = _whole_records(path, data, content.layout, content.section)
        name, held = _oriented_field(records)
        # Five numbers may count from the centre or from a corner: four corners of the same object are plain.
        if name != _SEGMENTATION and any(box is not UNSET and len(box) == 5 for box in boxes):
            name = ""
        if name:
            boxes = held
            draft.details.append(f"oriented boxes of {name}")
        name = name or "bbox"
    lengths = Counter(len(box) for box in boxes if isinstance(box, list | tuple))
    width = max(_WRITTEN_AS, key=lambda length: (lengths[length], length))
    wrong = [(row, problem) for row, box in enumerate(boxes) if (problem := _oriented_problem(box, width))]
    draft.findings.add_rows(
        Severity.ERROR,
        "bbox-length",
        range(len(wrong)),
        lambda at: (replace(places(wrong[at][0]), field=name), wrong[at][1]),
        fix=f"Write every box as {_WRITTEN_AS[width]}.",
    )
    for row, _ in wrong:  # which end the reading, or are skipped
        boxes[row] = _SQUARES[width]
    numbers = np.array(boxes, dtype=np.float64).reshape(len(boxes), width)
    if width == 8:
        quads = Quads(numbers.reshape(-1, 4, 2))
    elif width == 5:
        usual = _ANGLES.get(name, "")
        quads = rectangles(numbers, draft, lambda row: replace(places(row), field=name), usual=usual)
    else:
        left, top, right, bottom = *numbers[:, :2].T, *(numbers[:, :2] + numbers[:, 2:]).T
        quads = Quads(np.stack((left, top, right, top, right, bottom, left, bottom), axis=1).reshape(-1, 4, 2))
        detail = "boxes have four numbers: read as upright rectangles"
        draft.findings.note("quad-upright", Where(draft.path, field="bbox"), detail)
    check_outlines(quads, places, draft)
    return quads


def _oriented_field(records: Sequence[dict[str, Any]]) -> tuple[str, list[Any]]:
    """Return the field in which most records have an oriented box, if there is any, and what all records have there.

    Corners go before angles, which have to be understood; boxes of annotators are turned about their centre.
    """
    fields: dict[str, Callable[[dict[str, Any]], Any]] = {
        **{name: partial(_given_quad, name) for name in (*_POLYS, *_TURNED)},
        _ROTATION: _rotated_box,
        _SEGMENTATION: _quad_of_mask,
    }
    for wanted in (8, 5):
        for name, found in fields.items():
            held = [found(record) for record in records]
            n_fitting = sum(isinstance(box, list) and len(box) == wanted for box in held)
            if (
                n_fitting
                and 2 * n_fitting >= len(records)
                and (name not in (_SEGMENTATION, _ROTATION) or any(map(_is_turned, held)))
            ):
                return name, [UNSET if box is None else box for box in held]
    return "", []


def _given_quad(name: str, record: dict[str, Any]) -> Any:
    value = record.get(name)
    if not isinstance(value, list) or not all(isinstance(part, list) for part in value):
        return value
    return value[0] if len(value) == 1 else [*chain(*value)] if len(value) == 4 else value


def _quad_of_mask(record: dict[str, Any]) -> Any:
    ring = _given_quad(_SEGMENTATION, record)
    if not isinstance(ring, list) or not all(map(is_number, ring)):
        return None
    return ring[:8] if len(ring) == 10 and ring[:2] == ring[8:] else ring


def _is_turned(ring: Any) -> bool:
    # Of an upright rectangle, two corners each are at one x and at one y.
    return isinstance(ring, list) and max(len(set(ring[::2])), len(set(ring[1::2]))) > 2


def _rotated_box(record: dict[str, Any]) -> Any:
    """Return the corners of a box that CVAT turned about its centre, by degrees clockwise; None of others."""
    attributes, box = record.get("attributes"), record.get("bbox")
    rotation: Any = attributes.get("rotation") if isinstance(attributes, dict) else None
    if not (is_finite_number(rotation) and isinstance(box, list) and len(box) == 4):
        return None
    if not all(map(is_number, box)):
        return None
    return turned_corners(box, rotation)


def _oriented_problem(box: Any, usual: int) -> str:
    if not isinstance(box, list | tuple):
        return "is missing" if box is UNSET else f"is {described_json(box)}; expected {_WRITTEN_AS[usual]}"
    if len(box) != usual:
        return f"has {len(box)} values {shown_json(list(box))}; expected {usual}: {_WRITTEN_AS[usual]}"
    wrong = [number for number in box if not is_number(number) or not is_finite(number)]
    return f"has {described_json(wrong[0])} {shown_json(wrong[0])}; expected finite numbers" if wrong else ""


def read_keypoints(
    records: Sequence[ShapeRecord], places: Places, findings: FindingLog, *, role: str, is_whole: bool = False
) -> tuple[Keypoints, BoolArray]:
    """Return the pose of each record, and which of them do not count because none of their points is labelled.

    Those of whole bodies are labelled in any of their lists, whatever num_keypoints counts of one.
    """
    given = [record.whole_body if is_whole else record.keypoints for record in records]
    poses: list[list[float]] = []
    lengths = Counter(len(_flat(pose)) for pose in given if isinstance(pose, list))
    # Numbers that are not triples cannot be what the others are measured by.
    usual = max((length for length in lengths if length % 3 == 0), key=lengths.__getitem__, default=0)
    unlabelled = np.zeros(len(records), dtype=np.bool_)
    uncounted = []
    for row, record in enumerate(records):
        problem = _pose_problem(given[row], usual)
        if problem:
            findings.error("keypoints-invalid", replace(places(row), field="keypoints"), problem, fix=_TRIPLES)
            poses.append([0.0] * usual)  # which ends the reading, or is skipped
            continue
        pose: list[float] = _flat(given[row])
        poses.append(pose)
        if role == "gt":
            labelled = sum(seen > 0 for seen in pose[2::3])
            _check_seen(pose[2::3], replace(places(row), field="keypoints"), findings)
            number = labelled if is_whole else record.num_keypoints
            if number is None:
                uncounted.append(row)
                number = labelled
            where = replace(places(row), field="num_keypoints")
            if not is_number(number) or number != math.floor(number) or number < 0:
                findings.error("keypoints-invalid", where, f"is {shown_json(number)}; expected a whole number")
                continue
            if number == 0 and labelled:
                detail = f"is 0, but {labelled} keypoints are labelled: the object does not count, as in COCO"
                findings.warning("keypoints-count", where, detail)
            unlabelled[row] = number == 0
    findings.add_rows(
        Severity.WARNING,
        "keypoints-count",
        uncounted,
        lambda row: (replace(places(row), field="num_keypoints"), ""),
        summary=f"num_keypoints is missing in {len(uncounted):,} records: labelled keypoints are counted instead",
    )
    return Keypoints(np.array(poses, dtype=np.float64).reshape(len(records), usual // 3, 3)), unlabelled


def _note_whole_bodies(data: bytes, draft: Draft) -> None:
    """Report what COCO-WholeBody has besides `keypoints`: lists of their own, of feet, face and hands."""
    others = [name for name in _OF_BODIES if f'"{name}"'.encode() in data]
    if others:
        detail = f"only keypoints are compared, not {', '.join(others)}"
        fix = Fix.missing("Pass {sigmas} to compare whole bodies.", sigmas="wholebody")
        draft.findings.warning("shape-unused", Where(draft.path, field="keypoints"), detail, fix=fix)


def _flat(pose: list[Any]) -> list[Any]:
    """Return a pose as one list, where a file has a list for each point."""
    are_points = bool(pose) and all(isinstance(point, list) and len(point) == 3 for point in pose)
    return [number for point in pose for number in point] if are_points else pose


def _pose_problem(value: Any, usual: int) -> str:
    if not isinstance(value, list):
        return "is missing" if value is None else f"is {described_json(value)}; expected a list of numbers"
    value = _flat(value)
    wrong = [number for number in value if not is_number(number) or not is_finite(number)]
    if wrong:
        return f"has {described_json(wrong[0])} {shown_json(wrong[0])}; expected finite numbers"
    if not value or len(value) % 3:
        return f"has {len(value)} numbers, not a multiple of 3" if value else "is an empty list"
    return "" if len(value) == usual else f"has {len(value) // 3} points, other records {usual // 3}"


def _check_seen(seen: Sequence[float], where: Where, findings: FindingLog) -> None:
    # Whole bodies have the confidences of other networks there. What is above 0 is labelled, as in COCO's own code.
    wrong = next((value for value in seen if not 0 <= value <= 2), None)
    if wrong is not None:
        detail = f"visibility v is {wrong:g}; expected 0 (not labelled), 1 (hidden) or 2 (visible)"
        findings.error("keypoints-invalid", where, detail)
