"""Reports of the overlap of many boxes with many others."""

from __future__ import annotations

import math

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.scale import OverlapMatrix
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Headline, Note, Report, Section, Span, Table, columns
from jaccard_eval.report.numbers import metric_text

TITLES = {
    "iou": "IoU: intersection over union",
    "ioa": "IoA: intersection over the area of the ground truth",
    "ioa-pred": "IoA: intersection over the area of the prediction",
    "giou": "GIoU: generalised IoU",
}
MAX_COLUMNS = 12  # of a table that people read


def build_report(result: OverlapMatrix, options: ReportOptions) -> Report:
    """Return the report for people."""
    n_gt = len(result.matrix[0]) if result.matrix else 0
    heads = (Column("prediction", "count"), *columns("metric", *map(str, range(min(n_gt, MAX_COLUMNS)))))
    rows = tuple((i, *row[:MAX_COLUMNS]) for i, row in enumerate(result.matrix))
    notes = [Note("rows are predictions, columns are ground truth, both numbered from 0")]
    if n_gt > MAX_COLUMNS:
        notes.append(Note(f"{n_gt - MAX_COLUMNS:,} more columns; for all, use --json or -o matrix.csv"))
    title = f"jaccard-eval {result.version}, overlap of {len(result.matrix):,} with {n_gt:,} boxes"
    best = max((value for row in result.matrix for value in row), default=math.nan)
    headline = Headline(
        (Span(f"{TITLES[result.by].partition(':')[0]} of {len(rows):,} x {n_gt:,} boxes, largest {metric_text(best)}"),)
    )
    return Report(title, (Section(TITLES[result.by], (Table(heads, rows), *notes)),), headline=headline)


def build_data(result: OverlapMatrix, options: ReportOptions) -> DataTable:
    """Return one row for each prediction, with a column for each ground truth."""
    n_gt = len(result.matrix[0]) if result.matrix else 0
    rows = tuple((i, *row) for i, row in enumerate(result.matrix))
    return DataTable(("pred", *(f"gt_{j}" for j in range(n_gt))), rows)
