"""Reports of scale: what each size loses to what, how boxes are off, what an error costs, how boxes overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from itertools import groupby
from typing import Any

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.scale import (
    ALL,
    Box,
    ExchangeResult,
    LossRow,
    OverlapMatrix,
    OverlapResult,
    PlacementRow,
    SensitivityResult,
)
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Axis,
    Cell,
    Chart,
    Column,
    DataCell,
    Drawing,
    Headline,
    KeyValues,
    Note,
    Report,
    Rows,
    Section,
    Series,
    Span,
    Table,
    columns,
)
from jaccard_eval.report.numbers import UNDEFINED, metric_text, threshold_text
from jaccard_eval.report.sections import findings_section, inputs_section, list_classes, warned_spans

SIZE = "size px"
PARTS = {  # of 1: field of a row, and what a chart calls it
    "ap": "AP",
    "localisation": "lost to localisation",
    "false_positives": "lost to false positives",
    "misses": "lost to misses",
}
SHARE = Axis(ends=(0, 1.02))
TOLD_GROUPS = 12  # sizes and classes whose errors are put into words, the classes with most pairs first
TOLD_RATIO = 0.005  # a smaller difference of size is not worth a word: 1 % in whole percents
TOLD_PIXELS = 0.1
TOLD_LOSS = 0.005  # a smaller loss to localisation needs no explanation
SHARES = ("iou", "missing", "extra", "shift_loss", "size_loss")
PIXEL_ERRORS = ("dx", "dy", "width_error", "height_error", "edge_error")
RATIOS = ("dx_relative", "dy_relative", "width_ratio", "height_ratio")


@singledispatch
def build_report(result: Any, options: ReportOptions) -> Report:
    """Return the report for people, of sensitivity unless registered otherwise; `per_class` adds the classes."""
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    sections = [
        inputs_section(sides, result.correspondence, verbose=options.verbose),
        _losses(result.losses),
        _tolerant(result.losses),
        _placement(result, options),
        *findings_section(result.findings),
    ]
    title = f"jaccard-eval {result.version}, sensitivity to scale, protocol {result.protocol.name}"
    overall = result.losses[0]
    texts = (Span(f"AP {metric_text(overall.ap)}"), Span(f": {loss_text(overall)}"))
    headline = Headline((*texts, *warned_spans(result.findings)))
    return Report(title, tuple(sections), result.signature, headline=headline)


@singledispatch
def build_data(result: Any, options: ReportOptions) -> DataTable:
    """Return one row for all sizes and one per size, then one per class, then one per class and size with pairs."""
    losses: dict[str, dict[str, DataCell]] = {}
    for row in result.losses:
        cells: dict[str, DataCell] = {"gt": row.gt, "side": row.side, "AP": row.ap}
        cells |= {f"lost_to_{name}": getattr(row, name) for name in ("localisation", "false_positives", "misses")}
        cells |= {f"AP_within_{k:g}px": value for k, value in row.within.items()}
        losses[row.size] = cells
    names = ("n", *SHARES, *PIXEL_ERRORS, *RATIOS)
    header = tuple(next(iter(losses.values())))
    rows = []
    for place in result.placement:
        # What a size loses is known of all classes together only.
        shown = losses[place.size or ALL] if place.class_name is None else {}
        numbers = (getattr(place, name) for name in names)
        rows.append((place.class_name or ALL, place.size or ALL, *(shown.get(name, "") for name in header), *numbers))
    return DataTable(("class", "size", *header, "pairs", *names[1:]), tuple(rows))


def placement_text(row: PlacementRow) -> str:
    """Return how boxes are off, such as "6 % too wide, 2 px low"; empty where nothing is consistent."""
    parts = [
        _ratio_text(row.width_ratio, "wide", "narrow") if "width_error" in row.consistent else "",
        _ratio_text(row.height_ratio, "tall", "short") if "height_error" in row.consistent else "",
        _offset_text(row.dx, "too far right", "too far left") if "dx" in row.consistent else "",
        _offset_text(row.dy, "low", "high") if "dy" in row.consistent else "",
    ]
    return ", ".join(part for part in parts if part)


def loss_text(row: LossRow) -> str:
    """Return in words what a size loses most to, and how many pixels explain what it loses to localisation."""
    causes = {"localisation": row.localisation, "false positives": row.false_positives, "misses": row.misses}
    # Without ground truth all parts are undefined, and a maximum of NaN would name any of them.
    if math.isnan(row.ap):
        return "no ground truth"
    cause = max(causes, key=lambda name: causes[name])
    if causes[cause] < TOLD_LOSS:
        return "almost nothing is lost"
    text = f"most is lost to {cause} ({metric_text(causes[cause], 2)})"
    if row.localisation < TOLD_LOSS or not row.within:
        return text
    of_it = "of it" if cause == "localisation" else f"of the loss to localisation ({metric_text(row.localisation, 2)})"
    if row.explained_by is None:
        return f"{text}; no edge tolerance up to {max(row.within):g} px recovers half {of_it}"
    return f"{text}; an edge tolerance of {row.explained_by:g} px recovers half {of_it}"


def _losses(losses: Sequence[LossRow]) -> Section:
    rows: Rows = tuple((row.size, row.gt, row.side, *(getattr(row, name) for name in PARTS)) for row in losses)
    heads = (Column(SIZE), Column("gt", "count"), Column("side", "size"), Column("AP", "metric"))
    table = Table((*heads, *columns("metric", "localisation", "false positives", "misses")), rows)
    words = KeyValues(tuple((_with_unit(row.size), loss_text(row)) for row in losses))
    # "all" is the mean of the other bins: a bar of its own would be read as one more size.
    meaning = Note(
        "AP and the losses add up to 1; side: median square root of the box area; an object is missed if no detection"
        " of its class reaches IoU 0.1"
    )
    sizes = [row for row in losses if row.size != ALL]
    series = tuple(Series(label, [getattr(row, name) for row in sizes]) for name, label in PARTS.items())
    chart = Chart("bar", "What each size loses", series, x=_size_axis(sizes), y=SHARE)
    return Section("What each size loses", (table, meaning, words, chart))


def _with_unit(size: str) -> str:
    return size if size == ALL else f"{size} px"


def _size_axis(sizes: Sequence[LossRow]) -> Axis:
    return Axis("object size: side in px (count)", names=tuple(f"{row.size} ({row.gt:,})" for row in sizes))


def _tolerant(losses: Sequence[LossRow]) -> Section:
    heads = (Column(SIZE), *columns("metric", "AP", *(f"<= {k:g} px" for k in losses[0].within)))
    rows: Rows = tuple((row.size, row.ap, *row.within.values()) for row in losses)
    meaning = Note("a detection matches if no edge is off by more than this, whatever the IoU")
    sizes = [row for row in losses if row.size != ALL]
    series = [Series("AP", [row.ap for row in sizes])]
    series += [Series(f"within {k:g} px", [row.within[k] for row in sizes], group="within") for k in losses[0].within]
    chart = Chart("line", "AP by edge tolerance", tuple(series), x=_size_axis(sizes), y=SHARE)
    return Section("AP by edge tolerance", (Table(heads, rows), meaning, chart))


def _placement(result: SensitivityResult, options: ReportOptions) -> Section:
    groups = {SIZE: [row for row in result.placement if row.class_name is None]}
    by_class = [row for row in result.placement if row.class_name is not None and row.size is None]
    more: tuple[Note, ...] = ()
    if options.chooses_classes:
        paired = [row for row in by_class if row.n]  # others have no IoU
        best_first = [*sorted(paired, key=lambda row: -row.iou), *(row for row in by_class if not row.n)]
        for listed in list_classes(best_first, options, by="IoU", is_defined=lambda row: row.n > 0):
            groups[listed.title.removeprefix("Classes, ")] = [*listed.rows]
            more = listed.more
    elif options.per_class:
        groups["class"] = by_class
    tables = [_placement_tables(title, rows) for title, rows in groups.items()]
    losses = Note(
        f"pairs with IoU >= {threshold_text(result.options.pair_iou)}; 1 - IoU = missing + extra area = shift + size"
    )
    errors = Note(
        "medians: dx (+ right), dy (+ down), width and height relative to the ground truth, largest error of an edge"
    )
    told = []
    # Classes with many pairs first: of few pairs, little is consistent.
    for row in (*groups[SIZE], *sorted(by_class, key=lambda row: -row.n)):
        place = row.class_name or ("all objects" if row.size is None else _with_unit(row.size))
        if text := placement_text(row):
            told.append((f"boxes of {place}", f"are {text} ({row.n:,} pairs)"))
    if len(told) > TOLD_GROUPS:
        rest = len(told) - TOLD_GROUPS
        told[TOLD_GROUPS:] = [("and more", f"{rest:,} more classes; the JSON report lists all")]
    words = [KeyValues(tuple(told))] if told else []
    # Shares of the loss of all groups, then errors in px of all groups: each kind under the note that explains it.
    shares, offsets = [table for table, _ in tables], [table for _, table in tables]
    return Section("How found boxes are off", (*shares, losses, *offsets, errors, *words, *more))


def _placement_tables(title: str, rows: Sequence[PlacementRow]) -> tuple[Table, Table]:
    """Return what of the IoU is lost to what, and how far the edges are off."""
    names = [row.class_name or row.size or ALL for row in rows]
    losses: list[tuple[Cell, ...]] = []
    errors: list[tuple[Cell, ...]] = []
    for name, row in zip(names, rows, strict=True):
        losses.append((name, row.n, *(float(getattr(row, share)) for share in SHARES)))
        errors.append((name, row.dx, row.dy, row.width_ratio, row.height_ratio, row.edge_error))
    titles = columns("metric", "IoU", "missing", "extra", "shift", "size")
    sides = (*columns("size", "dx px", "dy px"), *columns("ratio", "width", "height"), Column("edge px", "size"))
    return (
        Table((Column(title), Column("pairs", "count"), *titles), tuple(losses)),
        Table((Column(title), *sides), tuple(errors)),
    )


def _ratio_text(ratio: float, larger: str, smaller: str) -> str:
    if not abs(ratio - 1) >= TOLD_RATIO:
        return ""
    return f"{abs(ratio - 1) * 100:.0f} % too {larger if ratio > 1 else smaller}"


def _offset_text(offset: float, positive: str, negative: str) -> str:
    if not abs(offset) >= TOLD_PIXELS:
        return ""
    return f"{f'{abs(offset):.1f}'.removesuffix('.0')} px {positive if offset > 0 else negative}"


@build_report.register(ExchangeResult)
def _exchange_report(result: ExchangeResult, options: ReportOptions) -> Report:
    """Return the report for people."""
    heads = (
        *columns("size", "|B|", "p, missing", "q, extra"),
        *columns("metric", "J"),
        *columns("size", "rate", "points"),
    )
    rows: Rows = tuple(
        (
            *(f"{size:.12g}" for size in (row.gt_area, row.missing, row.extra)),
            row.jaccard,
            *(UNDEFINED if math.isnan(rate) else f"{rate:.6g}" for rate in (row.exchange_rate, row.points)),
        )
        for row in result.rows
    )
    notes = (
        Note("J = (|B| - p) / (|B| + q)"),
        Note("rate = (|B| + q) / (|B| - p + 1): how much q must shrink to gain as much as one unit of p"),
    )
    title = f"jaccard-eval {result.version}, what an error costs"
    last = result.rows[-1]
    rate = UNDEFINED if math.isnan(last.exchange_rate) else f"{last.exchange_rate:.6g}"
    headline = Headline((Span(f"J {metric_text(last.jaccard)}  exchange rate {rate}"),))
    return Report(title, (Section("Exchange rate", (Table(heads, rows), *notes)),), headline=headline)


@build_data.register(ExchangeResult)
def _exchange_data(result: ExchangeResult, options: ReportOptions) -> DataTable:
    """Return one row for each object."""
    header = ("gt_area", "missing", "extra", "jaccard", "exchange_rate", "points")
    return DataTable(header, tuple(tuple(getattr(row, name) for name in header) for row in result.rows))


TITLES = {
    "iou": "IoU: intersection over union",
    "ioa": "IoA: intersection over the area of the ground truth",
    "ioa-pred": "IoA: intersection over the area of the prediction",
    "giou": "GIoU: generalised IoU",
}
MAX_COLUMNS = 12  # of a table that people read


@build_report.register(OverlapMatrix)
def _matrix_report(result: OverlapMatrix, options: ReportOptions) -> Report:
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


@build_data.register(OverlapMatrix)
def _matrix_data(result: OverlapMatrix, options: ReportOptions) -> DataTable:
    """Return one row for each prediction, with a column for each ground truth."""
    n_gt = len(result.matrix[0]) if result.matrix else 0
    rows = tuple((i, *row) for i, row in enumerate(result.matrix))
    return DataTable(("pred", *(f"gt_{j}" for j in range(n_gt))), rows)


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


@build_report.register(OverlapResult)
def _overlap_report(result: OverlapResult, options: ReportOptions) -> Report:
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


@build_data.register(OverlapResult)
def _overlap_data(result: OverlapResult, options: ReportOptions) -> DataTable:
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
