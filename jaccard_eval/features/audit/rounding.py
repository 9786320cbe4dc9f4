"""Boxes that were rounded on one side: to whole pixels or few decimals, and the IoU that this can cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.alignment import common_sizes
from jaccard_eval.data.boxtable import BoxTable, FloatArray, from_xywh
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import FindingLog, Where, counted
from jaccard_eval.features.audit.context import Evidence

FEWEST = 20  # boxes from which coordinates that are all multiples of a step are no accident
FIRST = 200  # boxes that are looked at before all are
MAX_DECIMALS = {"px": 1, "norm": 4}  # decimals looked for; finer steps move no box by a tenth of a pixel
NEARLY = 0.01  # of a step: fractions with six decimals come back as pixels that are whole to within it
FINER = 2.0  # how many times coarser one side must be than the other
NOTED, WARNED = 0.01, 0.1  # IoU lost at the smallest tenth of the objects from which it is told, and warned of
THRESHOLDS = (0.95, 0.75, 0.5)


@dataclass(frozen=True, slots=True)
class Step:
    """The decimal step of which all coordinates of a file are multiples, and how long it is in the common units."""

    decimals: int
    units: str
    length: tuple[float, float]

    def __str__(self) -> str:
        if self.decimals == 0:
            return "whole pixels"
        what = "pixels" if self.units == "px" else "fractions"
        steps = f", in steps of {self.length[0]:.2g} x {self.length[1]:.2g}" if self.units == "norm" else ""
        return f"{what} with {counted(self.decimals, 'decimal')}{steps}"


def check_rounding(evidence: Evidence, findings: FindingLog) -> None:
    """Report boxes of one side that are rounded while those of the other are not."""
    placed = evidence.aligned.placement
    if min(len(placed.gt), len(placed.pred)) < FEWEST:
        return
    gt, pred = _step_of(evidence, evidence.gt, placed.gt), _step_of(evidence, evidence.pred, placed.pred)
    if pred is not None and _coarser(pred, gt):
        _report(evidence, evidence.pred, pred, findings)
    elif gt is not None and _coarser(gt, pred):
        _report(evidence, evidence.gt, gt, findings)


def least_iou(sides: FloatArray, step: npt.ArrayLike) -> FloatArray:
    """Return the lowest IoU that a box can have with itself rounded to multiples of a step.

    Rounding moves each edge by at most half a step s. Along one axis the edges that move inward take p off the side w,
    those that move outward add q, with p + q <= s; an edge does one of both. With ``o = w - p`` in common per axis,

        1 / IoU = w h / (o_x o_y) + (1 + q_x / o_x) (1 + q_y / o_y) - 1.

    This is linear in each ``1 / o``, so the extremes are at p = 0 and p = s; of the four combinations all edges inward
    is the lowest: ``IoU >= (1 - s / w) (1 - s / h)``. Cutting off instead of rounding moves edges by up to a whole
    step: pass twice the step for it.

    Parameters
    ----------
    sides : ndarray of float64, shape (n, 2)
        Width and height.
    step : array_like, shape () or (2,)
        In the same units.

    Returns
    -------
    ndarray of float64, shape (n,)
        0 where a side is no longer than a step.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(sides > 0, 1 - np.asarray(step) / sides, 0.0)
    return np.asarray(np.clip(kept, 0, None).prod(axis=-1))


def decimal_step(coords: FloatArray, max_decimals: int) -> int | None:
    """Return the fewest decimals that all coordinates (n, 4) have; None when they have more than `max_decimals`."""
    for decimals in range(max_decimals + 1):
        scaled = coords * 10**decimals
        if (np.abs(scaled - np.rint(scaled)) < NEARLY).all():
            return decimals
    return None


def _step_of(evidence: Evidence, side: Dataset, boxes: BoxTable) -> Step | None:
    """Find the step of one side in the fractions of its file, else in pixels."""
    placed = evidence.aligned.placement
    in_pixels = placed.units == "px"
    if side.reading.units == "norm":
        n_images = len(placed.images.table)
        sizes = common_sizes(evidence.pred, placed.images) if in_pixels else np.ones((n_images, 2))
        size = sizes[boxes.image]
        decimals = _decimals(from_xywh(boxes.xywh / np.tile(size, 2), side.reading.encoding), "norm")
        if decimals is not None:
            width, height = np.median(size, axis=0) / 10**decimals
            return Step(decimals, "norm", (float(width), float(height)))
    decimals = _decimals(boxes.xywh, "px") if in_pixels else None
    return None if decimals is None else Step(decimals, "px", (0.1**decimals, 0.1**decimals))


def _decimals(coords: FloatArray, units: str) -> int | None:
    """Return the decimals of coordinates; the first boxes settle most files."""
    limit = MAX_DECIMALS[units]
    return None if decimal_step(coords[:FIRST], limit) is None else decimal_step(coords, limit)


def _coarser(one: Step, other: Step | None) -> bool:
    return other is None or max(one.length) > FINER * max(other.length)


def _report(evidence: Evidence, side: Dataset, step: Step, findings: FindingLog) -> None:
    """Say what the rounding of one side can cost at the sizes of the objects present."""
    sides = evidence.aligned.gt.xywh[~evidence.aligned.gt.crowd, 2:]
    sides = sides[(sides > 0).all(axis=1)]
    if len(sides) == 0:
        return
    overlap = least_iou(sides, step.length)
    median, smallest = 1 - np.quantile(overlap, (0.5, 0.1))
    if not _is_told(side, step, smallest):
        return
    where, text = Where(side.path), _message(side, step, sides, (median, smallest))
    evidence_rows = tuple((f"{t:g}", f"{(overlap < t).mean():.1%}") for t in THRESHOLDS)
    table = (("IoU threshold", "objects that rounding alone can push below it"), *evidence_rows)
    report = findings.warning if side.role == "pred" and smallest >= WARNED else findings.note
    report("box-rounded", where, text, fix="Export coordinates with all their digits.", table=table)


def _is_told(side: Dataset, step: Step, smallest: float) -> bool:
    """Whether it matters enough: ground truth is drawn in whole pixels as a rule, predictions are not."""
    if side.role == "gt":
        return smallest >= WARNED
    return smallest >= NOTED or step.decimals == 0


def _message(side: Dataset, step: Step, sides: FloatArray, losses: tuple[float, float]) -> str:
    what = "ground truth is" if side.role == "gt" else "predictions are"
    other = "predictions are" if side.role == "gt" else "the ground truth is"
    lengths = np.quantile(np.sqrt(sides.prod(axis=1)), (0.5, 0.1))
    return (
        f"{what} rounded to {step}, {other} not: this can cost up to {losses[0]:.3f} IoU at the median object "
        f"(side {lengths[0]:.3g}) and {losses[1]:.3f} or more at the smallest tenth (side {lengths[1]:.3g}), about "
        "twice that if digits were cut off"
    )
