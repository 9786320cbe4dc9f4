"""Are all boxes off by the same half or whole pixel? Counted from 1 here and from 0 there, or last pixels as edges."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze
from jaccard_eval.errors import FindingLog, Where
from jaccard_eval.features.audit.context import MISREAD, Evidence
from jaccard_eval.features.audit.rescore import average_precision

FEWEST_OBJECTS = 20  # objects found, from which a median says something
TOLERANCE = 0.15  # px between a median and the offset that explains it
LARGEST_ERROR = 0.25  # px, standard error of a median up to which it is believed: half the smallest offset
NORMAL_SPREAD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
MEDIAN_ERROR = 1.2533  # standard error of a median over that of a mean: √(π/2)
STRICT_IOU = 0.75
NOTICEABLE = 0.01  # AP that the offset must cost to be more than a note


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Which edges are off (left and top, right and bottom), what does that, and how it is undone."""

    near: int
    far: int
    cause: str


PATTERNS = (
    _Pattern(1, 1, "pixels counted from 1 on one side and from 0 on the other, or pixel centres taken for edges"),
    _Pattern(0, 1, "the last pixel taken for the edge behind it (width = x2 - x1 + 1) on one side only"),
    _Pattern(1, 0, "pixels counted from 1 with their last one as the edge (PASCAL VOC) on one side only"),
)
STEPS = (1.0, 0.5)  # px


def check_offsets(evidence: Evidence, findings: FindingLog) -> None:
    """Say when the boxes of the predictions are all shifted by the same half or whole pixel."""
    if evidence.aligned.units != "px" or findings.has(*MISREAD):
        return
    medians = _edge_medians(evidence)
    if medians is None:
        return
    for pattern in PATTERNS:
        step = _step_of(medians, pattern)
        if step:
            _report(evidence, pattern, step, medians, findings)
            return


def _edge_medians(evidence: Evidence) -> FloatArray | None:
    """Return the medians of prediction minus ground truth at left, top, right, bottom; None where they say nothing."""
    pred_row, gt_row = evidence.sample.objects()
    if len(pred_row) < FEWEST_OBJECTS:
        return None
    difference = _edges(evidence.sample.pred.xywh[pred_row]) - _edges(evidence.sample.gt.xywh[gt_row])  # (n, 4)
    medians = np.median(difference, axis=0)
    spread = np.median(np.abs(difference - medians), axis=0)
    error = MEDIAN_ERROR * NORMAL_SPREAD * spread / math.sqrt(len(difference))
    return medians if (error <= LARGEST_ERROR).all() else None


def _edges(xywh: FloatArray) -> FloatArray:
    return np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)


def _step_of(medians: FloatArray, pattern: _Pattern) -> float:
    """Return the signed offset in pixels under which the medians have the pattern, 0 for none."""
    shape = np.array([pattern.near, pattern.near, pattern.far, pattern.far])
    for step in STEPS:
        for signed in (step, -step):
            if (np.abs(medians - signed * shape) <= TOLERANCE).all():
                return signed
    return 0.0


def _report(evidence: Evidence, pattern: _Pattern, step: float, medians: FloatArray, findings: FindingLog) -> None:
    aligned = evidence.aligned
    mended = _moved(aligned.pred, -step * pattern.near, -step * pattern.far)
    given, undone = (average_precision(evidence, aligned.gt, one, iou=STRICT_IOU) for one in (aligned.pred, mended))
    edges = {(1, 1): "in x and y", (0, 1): "at the right and bottom", (1, 0): "at the left and top"}
    listed = ", ".join(f"{value:+.2f}" for value in medians)
    detail = (
        f"boxes are shifted by {step:+g} px {edges[pattern.near, pattern.far]} against the ground truth (medians "
        f"left, top, right, bottom: {listed}): {pattern.cause}; AP75 {given:.3f} as given, {undone:.3f} without"
    )
    where, fix = Where(evidence.pred.path, field="box"), _rerun(evidence, pattern, step) or _repair(pattern, step)
    if undone - given >= NOTICEABLE:
        findings.warning("box-offset", where, detail, fix=fix)
    else:
        findings.note("box-offset", where, detail, fix=fix)


def _moved(boxes: BoxTable, near: float, far: float) -> BoxTable:
    xywh = boxes.xywh + np.array([near, near, far - near, far - near])
    return freeze(replace(boxes, xywh=xywh, area=xywh[:, 2] * xywh[:, 3]))


def _rerun(evidence: Evidence, pattern: _Pattern, step: float) -> str:
    """Name the option that counts the pixels of a side as the other side does, if one does."""
    if (pattern.near, pattern.far, abs(step)) != (1, 1, 1.0):
        return ""
    moved, still = (evidence.pred, evidence.gt) if step > 0 else (evidence.gt, evidence.pred)
    if still.reading.origin:
        return f"Rerun with --{still.role}-origin 0. It leaves x and y of {_SIDES[still.role]} as they are."
    if moved.reading.origin or moved.reading.units != "px" or moved.format == "arrays":
        return ""
    return f"Rerun with --{moved.role}-origin 1. It subtracts 1 from x and y of {_SIDES[moved.role]}."


_SIDES = {"gt": "the ground truth", "pred": "the predictions"}


def _repair(pattern: _Pattern, step: float) -> str:
    """Say what to do to the predictions, as left, top, width and height."""
    less, more = f"subtract {abs(step):g} from", f"add {abs(step):g} to"
    undo, redo = (less, more) if step > 0 else (more, less)
    todo = {
        (1, 1): f"{undo} x and y of the predictions",
        (0, 1): f"{undo} width and height of the predictions",
        (1, 0): f"{undo} x and y of the predictions and {redo} their width and height",
    }
    return f"Export with the same convention on both sides: {todo[pattern.near, pattern.far]}."
