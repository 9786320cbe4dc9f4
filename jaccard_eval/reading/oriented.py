"""Oriented boxes while they are read: from centre, sizes and angle to corners, and what can be wrong with outlines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.options import ANGLES, spelled_angle
from jaccard_eval.reading.draft import Draft
from jaccard_eval.similarity.obb import OutlineKinds, Quads
from jaccard_eval.text import did_you_mean, pluralise, quoted_value

Places = Callable[[int], Where]

_WHOLE_TURN = 2 * math.pi
_UPRIGHT = 1e-9  # share of the box around it by which an upright box may be smaller: rounding


def rectangles(boxes: FloatArray, draft: Draft, places: Places, *, usual: str = "") -> Quads:
    """Return rectangles from centre, width, height and angle (n, 5).

    Angles are read as the options name them, else as the numbers show; where these leave it open, as is `usual` for the
    format. What is open still is an error.
    """
    sizes, angle = boxes[:, 2:4], boxes[:, 4]
    draft.findings.add_rows(
        Severity.ERROR,
        "box-negative",
        np.flatnonzero((sizes < 0).any(axis=1)),
        lambda row: (places(row), f"the box has width {sizes[row, 0]:g} and height {sizes[row, 1]:g}"),
        fix="Write centre, width, height and angle, with sizes that are not negative.",
    )
    draft.angle = _convention(angle[np.isfinite(angle)], draft, usual)
    unit, _, direction = draft.angle.partition("-")
    turned = np.deg2rad(angle) if unit == "deg" else angle
    with np.errstate(over="ignore", invalid="ignore"):
        return Quads.rotated(boxes[:, :4], turned if direction == "cw" else -turned)


def _convention(angle: FloatArray, draft: Draft, usual: str) -> str:
    """Return the unit and the direction of angles (n,), such as deg-cw."""
    role, given = draft.options.role, draft.options.angle
    if given is not None:
        if given not in ANGLES:
            known = ", ".join(ANGLES)
            hint = did_you_mean(given, ANGLES)
            raise UsageError(f"unknown angle {quoted_value(given)}; choose from {known}.{hint}")
        draft.details.append(f"angles in {spelled_angle(given)}")
        return given
    if not angle.any():
        return "deg-cw"  # upright boxes, whatever the unit
    low, high = float(angle.min()), float(angle.max())
    usual_unit, _, direction = usual.partition("-")
    # No angle in radians leaves a whole turn; small ones may be either.
    unit = "deg" if max(-low, high) > _WHOLE_TURN else usual_unit if usual_unit == "rad" else ""
    # Turned by right angles a box is the same either way.
    if not direction and unit == "deg" and not (angle % 90).any():
        direction = "cw"
    where = Where(draft.path, field="angle")
    if unit and direction:
        chosen = f"{unit}-{direction}"
        others = tuple(name for name in ANGLES if name != chosen)
        detail = f"angles from {low:g} to {high:g} are read as {spelled_angle(chosen)}"
        draft.findings.note(
            "angle-assumed", where, detail, fix=Fix.of_side(role, "For others, pass {angle}.", angle=others)
        )
        draft.details.append(f"angles in {spelled_angle(chosen)}")
        return chosen
    # The usual direction is that of the usual unit, degrees.
    fitting = [
        name
        for name in ANGLES
        if name.startswith(unit) and (name.endswith("-" + direction if direction else "") or name.startswith("rad"))
    ]
    meaning = " or ".join(map(spelled_angle, fitting))
    fix = Fix.of_side(role, "Pass {angle}.", angle=tuple(fitting))
    draft.findings.error("angle-ambiguous", where, f"angles from {low:g} to {high:g} may be {meaning}", fix=fix)
    return fitting[0]


def quads_of(points: FloatArray, corners: FloatArray, places: Places, draft: Draft) -> Shapes | None:
    """Return quadrilaterals by their points (n, 4, 2), checked, where such are compared, or their masks.

    Else there are none, and those that are smaller than `corners`, the upright box around them, are counted in a note.
    """
    if draft.options.iou_type in ORIENTED:
        quads = Quads(points)
        check_outlines(quads, places, draft)
        return quads
    if draft.options.iou_type in MASKS:
        from jaccard_eval.reading.outlines import OutlineDraft

        outlines = OutlineDraft()
        for ring in points.reshape(-1, 8).tolist():
            outlines.add_polygons([ring])
        return replace(outlines.build()[0], counts_pixels=np.ones(len(points), dtype=np.bool_))
    following, (left, top, right, bottom) = np.roll(points, -1, axis=1), corners.T
    with np.errstate(over="ignore", invalid="ignore"):
        cross = points[..., 0] * following[..., 1] - following[..., 0] * points[..., 1]
        area = np.abs(cross.sum(axis=1)) / 2  # of a polygon, by its corners
        n_oriented = int(np.count_nonzero(area < (right - left) * (bottom - top) * (1 - _UPRIGHT)))
    if n_oriented:
        detail = f"read as the boxes around them: {pluralise(n_oriented, 'oriented box', 'oriented boxes')}"
        draft.findings.note("outline", Where(draft.path), detail)
    return None


def check_outlines(quads: Quads, places: Places, draft: Draft) -> None:
    """Report quadrilaterals without area, and outlines that cross themselves or are not convex."""
    with np.errstate(over="ignore", invalid="ignore"):
        kinds = OutlineKinds.of(quads.corners)
    # Of numbers that are not finite it is reported that they are not.
    known = np.isfinite(quads.corners).all(axis=(1, 2))
    meaning = "objects that cannot be found" if draft.options.role == "gt" else "false positives"
    order = "Write the four corners in their order around the object."

    def report(code: str, chosen: BoolArray, what: str, fix: str = order) -> None:
        rows = np.flatnonzero(chosen & known)
        have = "has" if len(rows) == 1 else "have"
        draft.findings.add_rows(
            Severity.WARNING,
            code,
            rows,
            lambda row: (replace(places(row), field=None), ""),
            fix=fix,
            summary=f"{len(rows):,} of {len(chosen):,} oriented boxes {have} {what}",
        )

    report("quad-flat", kinds.is_flat, f"no area: counted as {meaning}", fix="")
    crossing = "corners in the wrong order: the outline crosses itself, and the two triangles within it are compared"
    report("quad-crossing", kinds.is_crossing, crossing)
    report("quad-dented", kinds.is_dented, "an outline that is not convex: what lies within it is compared")
