"""Reports of two boxes: where they are, how they overlap, and a drawing."""

from __future__ import annotations

import math
from itertools import groupby

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.scale import Box, OverlapResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.headlines import warned_spans
from jaccard_eval.report.model import Column, Drawing, Headline, Report, Section, Span, Table, columns
from jaccard_eval.report.numbers import UNDEFINED, metric_text
from jaccard_eval.report.sections import findings_section

MAX_ROWS, MAX_UNITS = 16, 30  # lines, and pairs of columns, that the boxes take at most
GLYPHS = {"TP": "█", "FP": "░", "FN": "▒", "TN": "·"}
ASCII_GLYPHS = {"TP": "#", "FP": "+", "FN": "-", "TN": "."}

Cells = list[list[str]]  # rows of areas: "TP", "FP", "FN" or "TN"


def draw_boxes(result: OverlapResult) -> Drawing:
    """Return the drawing with its areas labelled, and a legend below."""
    cells = rasterise(result.pred, result.gt)
    areas = {"TP": result.tp, "FP": result.fp, "FN": result.fn}
    return Drawing(_lines(cells, GLYPHS, areas), _lines(cells, ASCII_GLYPHS, areas))


def rasterise(pred: Box, gt: Box) -> Cells:
    """Return the areas at the centres of cells that cover both boxes and a margin."""
    left, top = min(pred[0], gt[0]), min(pred[1], gt[1])
    width, height = max(pred[2], gt[2]) - left, max(pred[3], gt[3]) - top
    # A cell is one px high where the boxes fit, else so high that they do. It is half as wide: characters of a terminal
    # are about twice as high as wide.
    unit = max(width / MAX_UNITS, height / MAX_ROWS, 1.0)
    n_rows, n_columns = math.ceil(height / unit) + 2, 2 * (math.ceil(width / unit) + 2)
    ys = [top + (i - 0.5) * unit for i in range(n_rows)]
    xs = [left + (j - 1.5) * unit / 2 for j in range(n_columns)]
    return [[_area(x, y, pred, gt) for x in xs] for y in ys]


def _area(x: float, y: float, pred: Box, gt: Box) -> str:
    in_pred, in_gt = (box[0] <= x < box[2] and box[1] <= y < box[3] for box in (pred, gt))
    if in_pred:
        return "TP" if in_gt else "FP"
    return "FN" if in_gt else "TN"


def _lines(cells: Cells, glyphs: dict[str, str], areas: dict[str, float]) -> tuple[str, ...]:
    rows = [[glyphs[area] for area in row] for row in cells]
    runs: dict[str, list[tuple[int, int, int]]] = {}  # of each area: row, first cell, how many cells
    for i, row in enumerate(cells):
        start = 0
        for area, group in groupby(row):
            length = len(list(group))
            runs.setdefault(area, []).append((i, start, length))
            start += length
    for area, found in runs.items():
        longest = max(length for *_, length in found)
        if longest < len(area):
            continue
        # The name of an area stands in its longest run, the middle one of several.
        candidates = [run for run in found if run[2] == longest]
        i, start, length = candidates[len(candidates) // 2]
        text = f" {area} " if length >= len(area) + 2 else area
        at = start + (length - len(text)) // 2
        rows[i][at : at + len(text)] = text
    legend = [f"{glyphs[area]} {area} {size:.6g}" for area, size in areas.items()]
    return (*("".join(row) for row in rows), "", "   ".join([*legend, f"{glyphs['TN']} TN   (areas in square px)"]))


CORNERS = ("x1", "y1", "x2", "y2")


def build_report(result: OverlapResult, options: ReportOptions) -> Report:
    """Return the report for people."""
    boxes = []
    for side, box, name in (("prediction", result.pred, result.pred_name), ("ground truth", result.gt, result.gt_name)):
        width, height = box[2] - box[0], box[3] - box[1]
        boxes.append((side, *(f"{value:.7g}" for value in (*box, width, height, width * height)), name))
    heads = (Column("box"), *columns("size", *CORNERS, "width", "height", "area"), Column("what"))
    title = f"jaccard-eval {result.version}, overlap of two boxes"
    title += f" on {result.image}" if result.image else ""
    sections = (
        Section("Boxes", (Table(heads, tuple(boxes)),)),
        Section("Overlap", (_measures(result),)),
        Section("Picture", (draw_boxes(result),)),
        *findings_section(result.findings),
    )
    headline = Headline((Span(f"IoU {metric_text(result.iou)}"), *warned_spans(result.findings)))
    return Report(title, sections, headline=headline)


def build_data(result: OverlapResult, options: ReportOptions) -> DataTable:
    """Return one row: the boxes and all measures."""
    areas = {"TP": result.tp, "FP": result.fp, "FN": result.fn}
    corners = {
        f"{side}_{corner}": value
        for side, box in (("pred", result.pred), ("gt", result.gt))
        for corner, value in zip(CORNERS, box, strict=True)
    }
    cells = corners | areas | dict(result.metrics)
    return DataTable(tuple(cells), (tuple(cells.values()),))


def _measures(result: OverlapResult) -> Table:
    rate = UNDEFINED if math.isnan(result.exchange_rate) else f"{result.exchange_rate:.4g}"
    rows = (
        ("IoU", metric_text(result.iou), "intersection over union, 1 - (p + q) / (|B| + q)"),
        ("distance", metric_text(result.distance), "1 - IoU, the Jaccard distance"),
        ("IoA of B", metric_text(result.ioa_gt), "share of the ground truth that is covered"),
        ("IoA of A", metric_text(result.ioa_pred), "share of the prediction inside the ground truth"),
        ("GIoU", metric_text(result.giou), "IoU minus the empty share of the box around both"),
        ("p, FN", f"{result.fn:.7g}", "missing part of the ground truth, in square px"),
        ("q, FP", f"{result.fp:.7g}", "extra part of the prediction, in square px"),
        ("exchange", rate, "how much q must shrink to gain as much as one unit of p"),
        ("centres", f"{result.centre_distance:.7g}", "distance of the centres in px"),
        ("edges", f"{result.edge_error:.7g}", "largest error of an edge in px"),
    )
    return Table((Column("measure"), Column("value", "metric"), Column("meaning")), rows)
