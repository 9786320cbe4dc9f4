"""What reports say about an evaluation of label maps: inputs, rules, scores, classes, warnings."""

from __future__ import annotations

from jaccard_eval.data.metricref import MAP_CLASS_METRICS
from jaccard_eval.features.pixels.result import PixelClassRow, PixelsResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Sheet, Table
from jaccard_eval.report.sections import findings_section, gates_section, set_aside_text, sorted_rows, undefined_notes

ALL_CLASSES = "all"
FEW_CLASSES = 30  # up to this many, the classes are listed without being asked for
COUNTS = ("gt_pixels", "pred_pixels")
SORT_COUNTS = {"gt": "gt_pixels", "pred": "pred_pixels"}


def build_report(result: PixelsResult, options: ReportOptions) -> Report:
    """Return what a summary for people says about `result`.

    Raises
    ------
    UsageError
        When `options.sort` names no column of the table of classes.
    """
    sections = [_inputs(result), _rules(result), _summary(result)]
    sections += gates_section(result.gates)
    if options.per_class or len(result.per_class) <= FEW_CLASSES:
        sections.append(_classes(result, options.sort))
    sections += findings_section(result.findings)
    return Report(f"jaccard-eval {result.version}, label maps", tuple(sections), result.signature)


def build_sheet(result: PixelsResult, options: ReportOptions) -> Sheet:
    """Return one row for all classes, then one per class; sorted as `options.sort` says."""
    header = ("class", *COUNTS, *MAP_CLASS_METRICS, *result.metrics)
    totals = [sum(getattr(row, count) for row in result.per_class) for count in COUNTS]
    pooled = (ALL_CLASSES, *totals, *("" for _ in MAP_CLASS_METRICS), *(one.value for one in result.metrics.values()))
    rows = ((*_class_cells(row), *("" for _ in result.metrics)) for row in _sorted(result, options.sort))
    return Sheet(header, (pooled, *rows))


def _inputs(result: PixelsResult) -> Section:
    titles = ("images", "pixels", "classes")
    columns = (
        Column("side", free_text=True),
        Column("format", free_text=True),
        *map(Column, titles),
        Column("path", free_text=True),
    )
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    rows = tuple((side, one.format, one.images, one.pixels, one.classes, one.path) for side, one in sides)
    notes = [Note(f"images correspond by {result.image_strategy}")]
    notes += [Note(f"{side}: set aside: {set_aside_text(one.ignored)}") for side, one in sides if one.ignored]
    return Section("Inputs", (Table(columns, rows), *notes))


def _rules(result: PixelsResult) -> Section:
    """State the rules: scores that go by different ones cannot be compared."""
    rules = result.protocol
    named = "every value that occurs" if rules.classes is None else f"{len(rules.classes):,}, named"
    ignored = ", ".join(map(str, rules.ignore)) or "none"
    reduced = {None: "no", "gt": "ground truth only", "both": "both sides"}[rules.reduce_zero]
    pairs = (
        ("classes", named),
        ("ignored values", ignored),
        ("values count from 1", reduced),
        ("background", rules.background_rule),
        ("means", "over the present classes: those on either side for IoU, those with ground truth for accuracy"),
    )
    return Section("Rules", (KeyValues(pairs),))


def _summary(result: PixelsResult) -> Section:
    columns = (Column("metric", free_text=True), Column("value"), Column("pixels"))
    rows = tuple((name, one.value, one.n) for name, one in result.metrics.items())
    return Section("Summary", (Table(columns, rows), *undefined_notes(result.metrics.items())))


def _classes(result: PixelsResult, sort: str | None) -> Section:
    columns = (Column("class", free_text=True), *map(Column, (*COUNTS, *MAP_CLASS_METRICS)))
    rows = _sorted(result, sort)
    undefined = ((row.name, row.values["IoU"]) for row in rows)
    return Section("Classes", (Table(columns, tuple(map(_class_cells, rows))), *undefined_notes(undefined)))


def _class_cells(row: PixelClassRow) -> tuple[Cell, ...]:
    return row.name, row.gt_pixels, row.pred_pixels, *(row.values[name].value for name in MAP_CLASS_METRICS)


def _sorted(result: PixelsResult, sort: str | None) -> tuple[PixelClassRow, ...]:
    """Return the classes by name ascending, by pixels or a metric descending, undefined last; else as they are."""
    return sorted_rows(result.per_class, sort, SORT_COUNTS, MAP_CLASS_METRICS)
