"""The polygons and poses of text labels, read next to their boxes where they are asked for."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes, to_xywh
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.findings import Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.checks import LineReporter
from jaccard_eval.formats._yolo.columns import POSE, Columns
from jaccard_eval.formats._yolo.lines import IntArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.oriented import check_outlines, rectangles
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.similarity.runs import Runs, offsets_of


@dataclass(frozen=True, slots=True)
class ShapeRows:
    """Lines of labels: where the numbers of each shape begin among all values, and how many there are."""

    reporter: LineReporter
    rows: IntArray
    values: FloatArray
    first: IntArray
    count: IntArray


def polygons(values: FloatArray, first: IntArray, count: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the corners (c, 2) of polygons that stand among values, one behind the other, and their offsets."""
    offsets = offsets_of(count // 2)
    # All at once: a segmentation set has millions of them.
    at = np.repeat(first - 2 * offsets[:-1], count // 2) + 2 * np.arange(int(offsets[-1]))
    return np.stack((values[at], values[at + 1]), axis=1), offsets


def read_shapes(
    lines: ShapeRows, columns: Columns, drawn: BoolArray, coords: FloatArray, encoding: str
) -> tuple[BoolArray | None, Shapes | None]:
    """Return which objects do not count, and the shapes that are asked for; neither where lines have none.

    Lines that are `drawn` (n,) are polygons; the others have boxes, `coords` (n, 4) in an `encoding`.
    """
    iou_type = lines.reporter.draft.options.iou_type
    if iou_type == "keypoints" and columns.shape == POSE:
        return _read_poses(lines, columns)
    if columns.shape == "xywhr" or (iou_type in ORIENTED and columns.shape == "obb"):
        return None, _read_quads(lines, columns)
    if iou_type in MASKS and columns.shape != POSE and drawn.any():
        return None, _read_outlines(lines, drawn, coords, encoding)
    return None, None


def _read_outlines(lines: ShapeRows, drawn: BoolArray, coords: FloatArray, encoding: str) -> Outlines:
    """Return the polygon of each line; predictions that have a box alone are the rectangle of it."""
    draft, (bare,) = lines.reporter.draft, np.nonzero(~drawn)
    if draft.options.role == "gt":
        fix = Fix.missing("Give every object a polygon, or compare boxes: {iou_type}.", iou_type="bbox")
        lines.reporter.report(
            "segmentation-invalid", lines.rows[bare], lambda _: "is a box; expected a polygon of 3 points or more", fix
        )
    else:
        draft.findings.add_rows(
            Severity.WARNING,
            "mask-of-box",
            bare,
            lambda row: (lines.reporter.place(int(lines.rows[row])), ""),
            summary=f"{len(bare):,} of {len(drawn):,} predictions have no mask: the rectangle of the box is used",
        )
    corners, rings = polygons(lines.values, lines.first[drawn], lines.count[drawn])
    x, y, width, height = to_xywh(coords[bare], encoding).T
    # In the order of what COCO's loader makes of a box.
    boxes = np.stack((x, y, x, y + height, x + width, y + height, x + width, y), axis=1).reshape(-1, 2)
    n, n_boxes = len(drawn), len(bare)
    all_rings = offsets_of(np.concatenate((np.diff(rings), np.full(n_boxes, 4))))
    none = Masks(Runs(np.zeros(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)), np.zeros((n, 2), dtype=np.int64))
    every = np.ones(n, dtype=np.bool_)
    # A polygon has no area of its own in such files: that of its pixels counts.
    counted = np.concatenate((every[: n - n_boxes], np.zeros(n_boxes, dtype=np.bool_)))
    outlines = Outlines(np.concatenate((corners, boxes)), all_rings, np.arange(n + 1), none, every, counted)
    return outlines.take(np.argsort(np.concatenate((np.flatnonzero(drawn), bare)), kind="stable"))


def _read_quads(lines: ShapeRows, columns: Columns) -> Quads:
    """Return the oriented box of each line: four corners, or centre, sizes and angle."""
    draft, first = lines.reporter.draft, lines.first

    def place(row: int) -> Where:
        return lines.reporter.place(int(lines.rows[row]))

    if columns.shape == "xywhr":
        # As Ultralytics has them.
        quads = rectangles(lines.values[first[:, None] + np.arange(5)], draft, place, usual="rad-cw")
    else:
        quads = Quads(lines.values[first[:, None] + np.arange(8)].reshape(-1, 4, 2))
    check_outlines(quads, place, draft)
    return quads


def _read_poses(lines: ShapeRows, columns: Columns) -> tuple[BoolArray | None, Keypoints]:
    """Return which objects have no labelled point, and the points of each line."""
    (n_points, width), draft = columns.points, lines.reporter.draft
    at = lines.first[:, None] + 4 + np.arange(n_points * width)
    points = np.ones((len(at), n_points, 3))
    points[:, :, :width] = lines.values[at].reshape(len(at), n_points, width)
    if draft.options.role == "pred":
        return None, Keypoints(points)
    if width == 2:  # a point that is not there is written as zeros, or as negative numbers
        points[:, :, 2] = np.where((points[:, :, :2] == 0).all(axis=2) | (points[:, :, :2] < 0).any(axis=2), 0, 2)
    seen = points[:, :, 2]
    wrong = ~np.isin(seen, (0, 1, 2))

    def describe(line: int) -> str:
        row = int(np.searchsorted(lines.rows, line))
        point = int(np.flatnonzero(wrong[row])[0])
        return f"keypoint {point + 1}: visibility is {seen[row, point]:g}; expected 0 (not labelled), 1 or 2"

    words = "Write x, y and visibility of each keypoint, or name other columns with {gt_columns} (pose-17x2, ...)."
    fix = Fix.missing(words, gt_columns=None)
    lines.reporter.report("keypoints-invalid", lines.rows[wrong.any(axis=1)], describe, fix)
    detail = "labels have no areas: OKS measures distances by the area of the box"
    draft.findings.note("area-missing", Where(draft.path), detail)
    return np.all(seen == 0, axis=1), Keypoints(points)
