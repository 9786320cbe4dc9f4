"""What reports say about an evaluation: inputs, correspondence, metrics, classes, warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.protocol import LARGEST_AREA, AreaRange, Protocol
from jaccard_eval.data.result import ClassRow, EvaluationResult, OperatingPoint
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.report import bound_cells, bound_columns, intervals_section
from jaccard_eval.features.evaluate.slices_report import slices_section, with_slice_rows
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, Note, Report, Section, Sheet, Table
from jaccard_eval.report.numbers import threshold_text, thresholds_text
from jaccard_eval.report.sections import (
    correspondence_section,
    findings_section,
    gates_section,
    inputs_section,
    sorted_rows,
    undefined_notes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_THRESHOLDS = 4  # up to this many, operating points are shown at every IoU threshold, else at the lowest
ALL_CLASSES = "all"
COUNTS = ("gt", "ignored", "pred")


def build_report(result: EvaluationResult, options: ReportOptions) -> Report:
    """Return what a summary for people says about `result`.

    Raises
    ------
    UsageError
        When `options.sort` names no column of the table of classes.
    """
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    sections = [inputs_section(sides), correspondence_section(result.correspondence), _summary(result)]
    sections += intervals_section(result, per_class=options.per_class)
    sections += gates_section(result.gates)
    if options.per_class:
        sections.append(_per_class(result, options.sort))
    sections += slices_section(result.slices)
    if result.operating_points:
        sections.append(_operating_points(result.operating_points, per_class=options.per_class))
    sections += _errors(result, per_class=options.per_class)
    sections += findings_section(result.findings)
    title = f"jaccard-eval {result.version}, protocol {result.protocol.name}"
    return Report(title, tuple(sections), result.signature)


def build_sheet(result: EvaluationResult, options: ReportOptions) -> Sheet:
    """Return one row for all classes, then one per class, sorted as `options.sort` says; then one for each slice."""
    from jaccard_eval.features.errors.report import error_cells, error_columns

    metrics = tuple(dict.fromkeys([*result.metrics, *class_metrics(result)]))
    classes = sorted_classes(result, options.sort)
    bounded = metrics if result.bootstrap is not None else ()

    def cells(values: Mapping[str, MetricValue], name: str | None) -> list[Cell]:
        return [*_values(values, metrics), *bound_cells(values, bounded), *error_cells(result.errors, name)]

    pooled = (ALL_CLASSES, *_counts(*classes), *cells(result.metrics, None))
    rows = ((row.name, *_counts(row), *cells(row.values, row.name)) for row in classes)
    header = ("class", *COUNTS, *metrics, *bound_columns(bounded), *error_columns(result.errors))
    return with_slice_rows(Sheet(header, (pooled, *rows)), result.slices, ALL_CLASSES)


def draw(figure: Figure, result: EvaluationResult) -> None:
    """Draw the errors of an evaluation.

    Raises
    ------
    UsageError
        When they were not found.
    """
    if result.errors is None:
        raise UsageError("the picture of an evaluation shows its errors; leave out --no-errors")
    from jaccard_eval.features.errors.plot import draw_errors

    draw_errors(figure, result.errors)


def _errors(result: EvaluationResult, *, per_class: bool) -> list[Section]:
    if result.errors is None:
        return []
    from jaccard_eval.features.errors.report import errors_sections  # most runs do not ask for it

    return errors_sections(result.errors, per_class=per_class)


def class_metrics(result: EvaluationResult) -> tuple[str, ...]:
    """Names of the metrics that the classes have, in their order."""
    return tuple(dict.fromkeys(name for row in result.per_class for name in row.values))


def sorted_classes(result: EvaluationResult, sort: str | None) -> tuple[ClassRow, ...]:
    """Return the classes in the order of `sort`: names ascending, counts and metrics descending, undefined last.

    Equal rows keep the ground truth's order.

    Raises
    ------
    UsageError
        When `sort` is neither "name", "gt", "pred" nor a metric of the classes.
    """
    return sorted_rows(result.per_class, sort, {"gt": "gt", "pred": "pred"}, class_metrics(result))


def _counts(*rows: ClassRow) -> list[int]:
    return [sum(getattr(row, count) for row in rows) for count in COUNTS]


def _values(values: Mapping[str, MetricValue], metrics: Iterable[str]) -> list[Cell]:
    return [float(values[name].value) if name in values else "" for name in metrics]


def _summary(result: EvaluationResult) -> Section:
    columns = (
        Column("metric", free_text=True),
        Column("value"),
        Column("IoU", free_text=True),
        Column("area", free_text=True),
        Column("max dets"),
        Column("gt"),
    )
    rows = tuple(_summary_row(name, one, result.protocol) for name, one in result.metrics.items())
    notes = [*undefined_notes(result.metrics.items()), *_area_notes(result.protocol)]
    return Section("Summary", (Table(columns, rows), *notes))


def _summary_row(name: str, metric: MetricValue, protocol: Protocol) -> tuple[Cell, ...]:
    ref = metric.ref
    iou = thresholds_text(protocol.iou_thresholds if ref.iou is None else (ref.iou,))
    caps = (ref.max_dets,) if ref.max_dets is not None else protocol.max_dets[-1:]
    return name, metric.value, iou, ref.area or protocol.areas[0].name, str(caps[0]) if caps else "no cap", metric.n


def _area_notes(protocol: Protocol) -> list[Note]:
    ranges = [f"{area.name} {_range_text(area)}" for area in protocol.areas[1:]]
    return [Note(f"areas in square pixels, both ends included: {', '.join(ranges)}")] if ranges else []


def _range_text(area: AreaRange) -> str:
    return f"{area.low:g} to {area.high:g}" if area.high < LARGEST_AREA else f"from {area.low:g}"


def _per_class(result: EvaluationResult, sort: str | None) -> Section:
    metrics = class_metrics(result)
    columns = (Column("class", free_text=True), *map(Column, ("gt", "ignored", "pred", *metrics)))
    classes = sorted_classes(result, sort)
    rows = tuple(_class_row(row, metrics) for row in classes)
    undefined = ((row.name, row.values[metrics[0]]) for row in classes if metrics and metrics[0] in row.values)
    return Section("Classes", (Table(columns, rows), *undefined_notes(undefined)))


def _class_row(row: ClassRow, metrics: Iterable[str]) -> tuple[Cell, ...]:
    values = [row.values[name].value if name in row.values else math.nan for name in metrics]
    return row.name, row.gt, row.ignored, row.pred, *values


def _operating_points(points: Sequence[OperatingPoint], *, per_class: bool) -> Section:
    titles = ("score >=", "IoU", "TP", "FP", "FN", "precision", "recall", "F1")
    columns = (Column("class", free_text=True), *map(Column, titles))
    ious = list(dict.fromkeys(point.iou for point in points))
    shown_ious = ious if len(ious) <= FEW_THRESHOLDS else ious[:1]
    chosen = (point for point in points if point.iou in shown_ious and (per_class or point.class_name is None))
    rest = Note(f"the JSON report has all {len(ious)} IoU thresholds")
    notes = (rest,) if len(ious) > len(shown_ious) else ()
    return Section("Operating points", (Table(columns, tuple(map(_point_row, chosen))), *notes))


def _point_row(point: OperatingPoint) -> tuple[Cell, ...]:
    name = ALL_CLASSES if point.class_name is None else point.class_name
    place = (name, threshold_text(point.score), threshold_text(point.iou))
    return *place, point.tp, point.fp, point.fn, point.precision, point.recall, point.f1
