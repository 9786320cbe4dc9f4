"""What reports say about scale: what each size loses to what, how boxes are off, what pixels cost, the ceiling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jaccard_eval.features.scale.result import ALL, LossRow, PlacementRow, SensitivityResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Block, Cell, Column, KeyValues, Note, Report, Section, Sheet, Table
from jaccard_eval.report.numbers import UNDEFINED, metric_text, threshold_text
from jaccard_eval.report.sections import correspondence_section, findings_section, inputs_section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = tuple[Cell, ...]

SIZE = "size px"
TOLD_GROUPS = 12  # sizes and classes whose errors are told in words, the classes with most pairs first
TOLD_RATIO = 0.005  # a size that is off by less is no news: 1 % in whole percents
TOLD_PIXELS = 0.1
TOLD_LOSS = 0.005  # a smaller loss to localisation needs no explanation
SHARES = ("iou", "missing", "extra", "shift_loss", "size_loss")
PIXEL_ERRORS = ("dx", "dy", "width_error", "height_error", "edge_error")
RATIOS = ("dx_relative", "dy_relative", "width_ratio", "height_ratio")


def build_report(result: SensitivityResult, options: ReportOptions) -> Report:
    """Return what a summary for people says; `options.per_class` adds the table of classes."""
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    sections = [
        inputs_section(sides),
        correspondence_section(result.correspondence),
        _losses(result.losses),
        _tolerant(result.losses),
        _ceiling(result),
        _placement(result, per_class=options.per_class),
        _displacements(result),
        _survivors(result),
        *findings_section(result.findings),
    ]
    title = f"jaccard-eval {result.version}, sensitivity to scale, protocol {result.protocol.name}"
    return Report(title, tuple(sections), result.signature)


def build_sheet(result: SensitivityResult, options: ReportOptions) -> Sheet:
    """Return one row for all sizes and one per size, then one per class, then one per class and size with pairs."""
    losses = {row.size: _loss_cells(row) | _displaced_cells(result, row.size) for row in result.losses}
    names = ("n", *SHARES, *PIXEL_ERRORS, *RATIOS)
    header = tuple(next(iter(losses.values())))
    rows = []
    for row in result.placement:
        place = (row.class_name or ALL, row.size or ALL)
        shown = losses[row.size or ALL] if row.class_name is None else {}
        rows.append((*place, *(shown.get(name, "") for name in header), *(getattr(row, name) for name in names)))
    return Sheet(("class", "size", *header, "pairs", *names[1:]), tuple(rows))


def draw(figure: Figure, result: SensitivityResult) -> None:
    """Draw the result; loads what drawing needs."""
    from jaccard_eval.features.scale import plot

    plot.draw(figure, result)


def placement_text(row: PlacementRow) -> str:
    """Return in words how boxes are off, such as "6 % too wide, 2 px low"; empty where nothing is consistent."""
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
    if math.isnan(row.ap):
        return "no ground truth"
    cause = max(causes, key=lambda name: causes[name])
    if causes[cause] < TOLD_LOSS:
        return "nothing to speak of is lost"
    text = f"most is lost to {cause} ({metric_text(causes[cause], 2)})"
    if row.localisation < TOLD_LOSS or not row.within:
        return text
    of_it = "of it" if cause == "localisation" else f"of what localisation costs ({metric_text(row.localisation, 2)})"
    if row.explained_by is None:
        return f"{text}; no tolerance up to {max(row.within):g} px wins back half {of_it}"
    return f"{text}; an edge tolerance of {row.explained_by:g} px wins back half {of_it}"


def _losses(losses: Sequence[LossRow]) -> Section:
    titles = ("gt", "side", "AP", "localisation", "false positives", "misses")
    shares = ("ap", "localisation", "false_positives", "misses")
    rows: list[Row] = [(row.size, row.gt, _pixels(row.side), *_numbers(row, shares)) for row in losses]
    table = Table((Column(SIZE, free_text=True), *map(Column, titles)), tuple(rows))
    words = KeyValues(tuple((_with_unit(row.size), loss_text(row)) for row in losses))
    meaning = Note(
        "AP and what is lost to each cause add up to 1; side: median of the square with the area of the box; an object"
        " is missed when no detection of its class reaches an IoU of 0.1"
    )
    return Section("What each size loses", (table, meaning, words))


def _with_unit(size: str) -> str:
    return size if size == ALL else f"{size} px"


def _tolerant(losses: Sequence[LossRow]) -> Section:
    distances = list(losses[0].within)
    columns = (Column(SIZE, free_text=True), Column("AP"), *(Column(f"<= {k:g} px") for k in distances))
    rows: list[Row] = [(row.size, row.ap, *row.within.values()) for row in losses]
    meaning = Note("a detection matches when none of its edges is further off than that, whatever the IoU")
    return Section("AP by edge tolerance", (Table(columns, tuple(rows)), meaning))


def _ceiling(result: SensitivityResult) -> Section:
    sigmas, options = result.options.sigmas, result.options
    columns = (Column(SIZE, free_text=True), Column("AP"), *(Column(f"sigma {sigma:g} px") for sigma in sigmas))
    rows: list[Row] = [(row.size, row.ap, *row.ceiling.values()) for row in result.losses]
    deviations = [sd for row in result.losses for sd in row.ceiling_sd.values() if not math.isnan(sd)]
    meaning = Note(
        "AP of the ground truth against itself after each edge was moved at random: annotations that uncertain tell no"
        f" detectors apart above it; mean of {options.n_rounds} rounds, seed {options.seed},"
        f" standard deviation at most {metric_text(max(deviations, default=math.nan))}"
    )
    return Section("Annotation-noise ceiling", (Table(columns, tuple(rows)), meaning))


def _placement(result: SensitivityResult, *, per_class: bool) -> Section:
    groups = {SIZE: [row for row in result.placement if row.class_name is None]}
    by_class = [row for row in result.placement if row.class_name is not None and row.size is None]
    groups |= {"class": by_class} if per_class else {}
    losses = Note(
        f"pairs at an IoU from {threshold_text(result.options.pair_iou)}; 1 - IoU is missing + extra area, and also"
        " shift + size"
    )
    errors = Note(
        "medians: dx (+ right), dy (+ down), width and height of the prediction over those of the ground truth, the"
        " largest error of an edge"
    )
    told = _told([*groups[SIZE], *sorted(by_class, key=lambda row: -row.n)])
    blocks: tuple[Block, ...] = (
        *(_loss_table(title, rows) for title, rows in groups.items()),
        losses,
        *(_error_table(title, rows) for title, rows in groups.items()),
        errors,
        *([KeyValues(told)] if told else []),
    )
    return Section("How found boxes are off", blocks)


def _told(rows: Iterable[PlacementRow]) -> tuple[tuple[str, str], ...]:
    texts = ((row, placement_text(row)) for row in rows)
    told = [(f"boxes of {_place(row)}", f"are {text} ({row.n:,} pairs)") for row, text in texts if text]
    rest = len(told) - TOLD_GROUPS
    more = [("and more", f"{rest:,} further classes; the JSON report has all")] if rest > 0 else []
    return (*told[:TOLD_GROUPS], *more)


def _place(row: PlacementRow) -> str:
    if row.class_name is not None:
        return row.class_name
    return "all objects" if row.size is None else _with_unit(row.size)


def _loss_table(title: str, rows: Sequence[PlacementRow]) -> Table:
    columns = (Column(title, free_text=True), *map(Column, ("pairs", "IoU", "missing", "extra", "shift", "size")))
    cells: list[Row] = [(_name(row), row.n, *_numbers(row, SHARES)) for row in rows]
    return Table(columns, tuple(cells))


def _error_table(title: str, rows: Sequence[PlacementRow]) -> Table:
    columns = (Column(title, free_text=True), *map(Column, ("dx px", "dy px", "width", "height", "edge px")))
    cells = [
        (
            _name(row),
            _pixels(row.dx),
            _pixels(row.dy),
            metric_text(row.width_ratio, 3),
            metric_text(row.height_ratio, 3),
            _pixels(row.edge_error),
        )
        for row in rows
    ]
    return Table(columns, tuple(cells))


def _name(row: PlacementRow) -> str:
    return row.class_name or row.size or ALL


def _numbers(row: LossRow | PlacementRow, names: Iterable[str]) -> tuple[float, ...]:
    return tuple(float(getattr(row, name)) for name in names)


def _displacements(result: SensitivityResult) -> Section:
    sizes = [row.size for row in result.losses]
    cells = {(row.displacement, row.pixels, row.size): row for row in result.tolerance}
    pairs = dict.fromkeys((row.displacement, row.pixels) for row in result.tolerance)
    rows: list[Row] = []
    for displacement, k in pairs:
        of_sizes = (cells[displacement, k, size] for size in sizes)
        rows.append(
            (displacement, f"{k:g}", *(f"{metric_text(one.typical, 2)} {metric_text(one.mean, 2)}" for one in of_sizes))
        )
    columns = (Column("displacement", free_text=True), Column("px"), *map(Column, sizes))
    meaning = Note(
        "IoU left of a square with the median side, and mean over the objects; erosion is the worst that edge errors of"
        " so many pixels can do, jitter moves each edge in or out"
    )
    return Section("What pixels cost", (Table(columns, tuple(rows)), meaning))


def _survivors(result: SensitivityResult) -> Section:
    names = list(result.survivors[0].side) if result.survivors else []
    rows = tuple(
        (f"{row.pixels:g}", threshold_text(row.iou), *(f"{side:.1f}" for side in row.side.values()))
        for row in result.survivors
    )
    meaning = Note("smallest side in px of a square that keeps the IoU")
    return Section("Smallest objects that survive", (Table((*map(Column, ("px", "IoU", *names)),), rows), meaning))


def _loss_cells(row: LossRow) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"gt": row.gt, "side": row.side, "AP": row.ap}
    cells |= {f"lost_to_{name}": getattr(row, name) for name in ("localisation", "false_positives", "misses")}
    cells |= {f"AP_within_{k:g}px": value for k, value in row.within.items()}
    return cells | {f"AP_ceiling_{sigma:g}px": value for sigma, value in row.ceiling.items()}


def _displaced_cells(result: SensitivityResult, size: str) -> dict[str, Cell]:
    rows = (row for row in result.tolerance if row.size == size)
    return {f"IoU_after_{row.displacement}_{row.pixels:g}px": row.mean for row in rows}


def _pixels(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value + 0.0:.1f}"


def _ratio_text(ratio: float, larger: str, smaller: str) -> str:
    if not abs(ratio - 1) >= TOLD_RATIO:
        return ""
    return f"{abs(ratio - 1) * 100:.0f} % too {larger if ratio > 1 else smaller}"


def _offset_text(offset: float, positive: str, negative: str) -> str:
    if not abs(offset) >= TOLD_PIXELS:
        return ""
    return f"{f'{abs(offset):.1f}'.removesuffix('.0')} px {positive if offset > 0 else negative}"
