"""Reports of scale: what each size loses to what, and how boxes are off."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.scale import ALL, LossRow, PlacementRow, SensitivityResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.classes import list_classes
from jaccard_eval.report.headlines import warned_spans
from jaccard_eval.report.model import (
    Axis,
    Cell,
    Chart,
    Column,
    DataCell,
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
from jaccard_eval.report.numbers import metric_text, threshold_text
from jaccard_eval.report.sections import findings_section, inputs_section

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


def build_report(result: SensitivityResult, options: ReportOptions) -> Report:
    """Return the report for people; `options.per_class` adds the table of classes."""
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


def build_data(result: SensitivityResult, options: ReportOptions) -> DataTable:
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
