"""What reports say about two boxes: where they are, how they overlap, and a picture of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jaccard_eval.features.scale.overlap_raster import draw_boxes
from jaccard_eval.features.scale.overlap_result import Box, OverlapResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Report, Section, Sheet, Table
from jaccard_eval.report.numbers import UNDEFINED, metric_text
from jaccard_eval.report.sections import findings_section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CORNERS = ("x1", "y1", "x2", "y2")


def build_report(result: OverlapResult, options: ReportOptions) -> Report:
    """Return what a summary for people says."""
    title = f"jaccard-eval {result.version}, overlap of two boxes"
    title += f" on {result.image}" if result.image else ""
    sections = (
        Section("Boxes", (_boxes(result),)),
        Section("Overlap", (_measures(result),)),
        Section("Picture", (draw_boxes(result),)),
        *findings_section(result.findings),
    )
    return Report(title, sections)


def build_sheet(result: OverlapResult, options: ReportOptions) -> Sheet:
    """Return one row: the boxes and all measures."""
    areas = {"TP": result.tp, "FP": result.fp, "FN": result.fn}
    corners = {
        f"{side}_{corner}": value
        for side, box in (("pred", result.pred), ("gt", result.gt))
        for corner, value in zip(CORNERS, box, strict=True)
    }
    cells = corners | areas | dict(result.metrics)
    return Sheet(tuple(cells), (tuple(cells.values()),))


def draw(figure: Figure, result: OverlapResult) -> None:
    """Draw the result; loads what drawing needs."""
    from jaccard_eval.features.scale import overlap_plot

    overlap_plot.draw(figure, result)


def _boxes(result: OverlapResult) -> Table:
    titles = (*CORNERS, "width", "height", "area")
    columns = (Column("box", free_text=True), *map(Column, titles), Column("what", free_text=True))
    sides = (("prediction", result.pred, result.pred_name), ("ground truth", result.gt, result.gt_name))
    return Table(columns, tuple((side, *_box_cells(box), name) for side, box, name in sides))


def _box_cells(box: Box) -> tuple[str, ...]:
    width, height = box[2] - box[0], box[3] - box[1]
    return tuple(map(_short, (*box, width, height, width * height)))


def _measures(result: OverlapResult) -> Table:
    columns = (Column("measure", free_text=True), Column("value"), Column("meaning", free_text=True))
    rows = (
        ("IoU", metric_text(result.iou), "intersection over union, 1 - (p + q) / (|B| + q)"),
        ("distance", metric_text(result.distance), "1 - IoU, the Jaccard distance"),
        ("IoA of B", metric_text(result.ioa_gt), "how much of the ground truth is covered"),
        ("IoA of A", metric_text(result.ioa_pred), "how much of the prediction lies in the ground truth"),
        ("GIoU", metric_text(result.giou), "IoU less the empty share of the smallest box around both"),
        ("p, FN", _short(result.fn), "square px of the ground truth missing"),
        ("q, FP", _short(result.fp), "square px of the prediction too many"),
        ("exchange", _rate(result.exchange_rate), "points by which q must shrink to equal one point of p"),
        ("centres", _short(result.centre_distance), "px between the centres"),
        ("edges", _short(result.edge_error), "px that the edge furthest off is off by"),
    )
    return Table(columns, rows)


def _short(value: float) -> str:
    return f"{value:.7g}"


def _rate(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4g}"
