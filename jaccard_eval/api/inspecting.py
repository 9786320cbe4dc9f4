"""Inspections: what inputs hold, how they correspond and what is odd about them, as far as they can be read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jaccard_eval.data.alignment import Alignment, common_sizes
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.result import InputSummary
from jaccard_eval.data.signature import digest_rows, row_hashes
from jaccard_eval.evaluation import Input, Readings, align_datasets, read_alone, read_both, summarise
from jaccard_eval.features.audit.compute import audit, audit_alone
from jaccard_eval.features.inspect.compute import BoxView, describe, describe_pair
from jaccard_eval.features.inspect.result import Inspection
from jaccard_eval.findings import DataError, Finding, Severity
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import AlignOptions


def inspect_alone(given: Input, role: str | None, *, version: str) -> Inspection:
    """Inspect one input; see `inputs.read_alone` for its role and the errors. `version` is that of the tool."""
    side = read_alone(given, role)
    readings = Readings(side, None) if side.role == "gt" else Readings(None, side)
    return _inspect(readings, AlignOptions(), version)


def inspect_both(gt: Input, pred: Input, options: AlignOptions, *, version: str) -> Inspection:
    """Inspect two inputs together. `version` is that of the tool.

    Raises
    ------
    DataError
        When neither can be read.
    UsageError
        When an option names what does not exist.
    """
    readings = read_both(gt, pred)
    if readings.gt is None and readings.pred is None:
        raise DataError(readings.errors)
    return _inspect(readings, options, version)


def _inspect(readings: Readings, options: AlignOptions, version: str) -> Inspection:
    gt, pred = readings.gt, readings.pred
    aligned: Alignment | None = None
    odd: tuple[Finding, ...] = ()
    if gt is not None and pred is not None:
        aligned, odd = _align(gt, pred, options)
    sides = [side for side in (gt, pred) if side is not None]
    own = [finding for side in sides for finding in side.findings]
    if aligned is None:
        own += [finding for side in sides for finding in audit_alone(side)]
    return Inspection(
        version=version,
        gt=None if gt is None else describe(gt, _summary(gt), _view(gt, pred, aligned)),
        pred=None if pred is None else describe(pred, _summary(pred), _view(pred, pred, aligned)),
        pairing=None if aligned is None else describe_pair(aligned, COCO),
        findings=_by_severity((*readings.errors, *own, *odd)),
    )


def _align(gt: Dataset, pred: Dataset, options: AlignOptions) -> tuple[Alignment | None, tuple[Finding, ...]]:
    """Bring two sides together and audit them; or say why that cannot be done."""
    try:
        aligned = align_datasets(gt, pred, options)
    except DataError as error:
        return None, error.findings
    names = aligned.image_names, aligned.class_names
    table = match_boxes(aligned.gt, aligned.pred, COCO, n_images=len(names[0]), n_labels=len(names[1]))
    metrics = DetectionMetrics(table, names[1], names[0], area_known=aligned.units == "px")
    hashes = [row_hashes(boxes, *names) for boxes in (aligned.gt, aligned.pred)]
    return aligned, (*aligned.findings, *audit(gt, pred, aligned, metrics, hashes))


def _view(side: Dataset, pred: Dataset | None, aligned: Alignment | None) -> BoxView:
    """Return the boxes of one side as read, with all sizes that either side knows, or in common units if converted."""
    if aligned is None or pred is None:
        return BoxView.of(side)
    placed = aligned.placement
    sizes = common_sizes(pred, placed.images)
    boxes, rows = (placed.gt, placed.images.gt_rows) if side.role == "gt" else (placed.pred, placed.images.pred_rows)
    if placed.units != side.units:
        return BoxView(boxes, sizes[boxes.image], placed.units)
    own = rows[side.boxes.image]  # -1: the image is on this side only
    return BoxView(side.boxes, np.where(own[:, np.newaxis] >= 0, sizes[own], np.nan), side.units)


def _summary(side: Dataset) -> InputSummary:
    """Summarise one side by itself; its fingerprint is that of its own names."""
    images = [side.images.name(row) for row in range(len(side.images))]
    return summarise(side, digest_rows(row_hashes(side.boxes, images, side.labels.names), side.role, side.units))


def _by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))
