"""Reports of an evaluation: inputs, correspondence, metrics, classes, slices, warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaccard_eval.data.document import DataTable, MetricValue
from jaccard_eval.data.known_protocols import LARGEST_AREA
from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.data.result import TARGET_COLUMN, ClassRow, EvaluationResult, OperatingPoint
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.metrics.detection import UNRANKED, detection_metrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Album,
    Cell,
    Chart,
    Column,
    DataCell,
    Headline,
    Note,
    Report,
    Rows,
    Section,
    Span,
    Table,
    columns,
)
from jaccard_eval.report.numbers import UNDEFINED, metric_text, threshold_text, thresholds_text
from jaccard_eval.report.sections import (
    findings_section,
    gates_headline,
    gates_section,
    inputs_section,
    listed_rows,
    metrics_headline,
    sorted_rows,
    undefined_notes,
    warned_spans,
)

if TYPE_CHECKING:
    from jaccard_eval.features.images import WorstImages

FEW_THRESHOLDS = 4  # up to this many, operating points are shown at every IoU threshold, else at the lowest
ALL_CLASSES = "all"
COUNTS = ("gt", "ignored", "pred")
SORT_COUNTS = {"gt": "gt", "pred": "pred"}


def build_report(result: EvaluationResult, options: ReportOptions) -> Report:
    """Return the report of `result` for people."""
    sides, measure = (("ground truth", result.gt), ("predictions", result.pred)), overlap_name(result.protocol)
    inputs = inputs_section(sides, result.correspondence, verbose=options.verbose)
    sections = [inputs, summary_section(result, verbose=options.verbose)]
    # What most runs do not ask for is loaded when it is.
    if result.bootstrap is not None and options.per_class:
        from jaccard_eval.features.bootstrap.report import intervals_section

        sections.append(intervals_section(result.per_class, result.bootstrap))
    sections += gates_section(result.gates)
    if options.lists_classes:
        sections += _per_class(result, options)
    if result.slices:
        from jaccard_eval.features.bootstrap.report import slices_section

        sections.append(slices_section(result.slices))
    if result.operating_points:
        sections.append(operating_points_section(result.operating_points, measure, per_class=options.per_class))
    if result.part("errors") is not None:
        from jaccard_eval.features.errors.report import errors_sections

        sections += errors_sections(result.part("errors"), measure, per_class=options.per_class)
    elif (confusion := result.part("confusion")) is not None:
        from jaccard_eval.features.errors.report import confusion_section

        sections.append(confusion_section(confusion, measure))
    if result.part("worst_images") is not None:
        sections.append(_images_section(result.part("worst_images"), measure))
    sections += findings_section(result.findings)
    return Report(rules_title(result), tuple(sections), result.signature, headline=headline(result))


def build_charts(result: EvaluationResult) -> list[Chart]:
    """Return the charts of a figure: precision by recall, then, where errors were analysed, their charts."""
    from jaccard_eval.report.recall_charts import recall_charts

    charts = recall_charts(result.measured)
    if result.part("errors") is not None:
        from jaccard_eval.features.errors.report import error_charts

        charts += error_charts(result.part("errors"), overlap_name(result.protocol))
    elif (confusion := result.part("confusion")) is not None:
        from jaccard_eval.features.errors.report import confusion_chart

        charts.append(confusion_chart(confusion, overlap_name(result.protocol)))
    return charts


def rules_title(result: EvaluationResult) -> str:
    """Return what measured, and by which rules."""
    protocol = result.protocol
    caps = f"max dets {protocol.max_dets[-1]}" if protocol.max_dets else "no cap"
    rules = f"{overlap_name(protocol)} {thresholds_text(protocol.iou_thresholds)}, {caps}"
    return f"jaccard-eval {result.version}, protocol {protocol.name} ({rules})"


def headline(result: EvaluationResult) -> Headline:
    """Return how the gates ended, else the first metrics."""
    if result.gates:
        return gates_headline(result.gates)
    if result.ties is not None:
        values = [(name, result.metrics[name].value) for name in UNRANKED if name in result.metrics]
        texts = [f"{name.replace('_', ' ')} {metric_text(value)}" for name, value in values]
        texts.append(f"AP {' to '.join(map(metric_text, result.ties))} by the order of predictions without scores")
        return Headline((Span("  ".join(texts)), *warned_spans(result.findings)))
    refs = {metric.ref for metric in result.metrics.values()}
    # At a single threshold, AP is the number that AP50 is.
    ious = result.protocol.iou_thresholds
    shown = {
        name: metric.value
        for name, metric in result.metrics.items()
        if len(ious) > 1 or metric.ref.iou is not None or replace(metric.ref, iou=ious[0]) not in refs
    }
    at, judged = {}, ious[result.protocol.judged_threshold]
    for point in result.operating_points:
        if point.class_name is None and point.iou == judged:
            at = {f"at {threshold_text(point.score)}: precision": point.precision, "recall": point.recall}
            at["F1"] = point.f1
    return metrics_headline(shown, result.findings, at)


def build_album(result: EvaluationResult, options: ReportOptions) -> Album:
    """Return the images with the highest cost; `options` change nothing."""
    from jaccard_eval.features.images import count_images
    from jaccard_eval.features.images.gallery import DEFAULT_IMAGES, build_album

    counted = result.part("worst_images") or count_images(
        detection_metrics(result), result.options.get("score"), DEFAULT_IMAGES
    )
    threshold = result.protocol.judged_threshold
    return build_album(result, counted.order[: counted.n].tolist(), threshold=threshold, score=counted.score)


def build_data(result: EvaluationResult, options: ReportOptions) -> DataTable:
    """Return one row for all classes, then one per class, in the order of `options.sort`; then one for each slice."""
    from jaccard_eval.features.bootstrap.report import (
        bound_cells,
        bound_columns,
        target_cells,
        with_slices,
    )
    from jaccard_eval.features.errors.report import error_cells, error_columns

    classes = sorted_classes(result, options.sort)
    metrics = tuple(dict.fromkeys([*result.metrics, *class_metrics(classes)]))
    bounded, target = metrics if result.bootstrap is not None else (), target_cells(result.bootstrap)

    def cells(values: Mapping[str, MetricValue], name: str | None) -> list[DataCell]:
        # What a metric is not asked of, as AP_small of a class may be, is empty; what is undefined is NaN.
        numbers: list[DataCell] = [float(values[metric].value) if metric in values else "" for metric in metrics]
        return [*numbers, *bound_cells(values, bounded), *target, *error_cells(result.part("errors"), name)]

    totals = [sum(getattr(row, count) for row in classes) for count in COUNTS]
    frequency = frequency_heads(classes)
    rows: list[tuple[DataCell, ...]] = [
        (ALL_CLASSES, *("" for _ in frequency), *totals, *cells(result.metrics, None)),
        *(
            (
                row.name,
                *frequency_cells(row),
                row.gt,
                row.ignored,
                row.pred,
                *cells({**row.sizes, **row.values}, row.name),
            )
            for row in classes
        ),
    ]
    target_head = (TARGET_COLUMN,) if target else ()
    header = ("class", *frequency, *COUNTS, *metrics, *bound_columns(bounded), *target_head)
    header = (*header, *error_columns(result.part("errors")))
    return with_slices(header, rows, result.slices, all_classes=ALL_CLASSES)


def frequency_heads(classes: Sequence[ClassRow]) -> tuple[str, ...]:
    """Name the column of how frequent classes are, where the protocol asks for that."""
    return ("frequency",) if any(row.frequency is not None for row in classes) else ()


def frequency_cells(row: ClassRow) -> tuple[str, ...]:
    """Return the cell of that column, or none."""
    return () if row.frequency is None else (row.frequency,)


def class_metrics(classes: Sequence[ClassRow]) -> tuple[str, ...]:
    """Names of the metrics that the classes have, in their order."""
    return tuple(dict.fromkeys(name for row in classes for name in row.values))


def measured_classes(result: EvaluationResult, sort: str | None) -> tuple[ClassRow, ...]:
    """Return the classes; with what they are sorted by, where that is a metric that their table does not have."""
    classes = result.per_class
    # A result that was put together by hand has the values that it has.
    known = (None, "name", *SORT_COUNTS, *class_metrics(classes))
    if sort in known or not hasattr(result.measured, "class_values"):
        return classes
    ref = MetricRef.parse(str(sort))
    if ref.class_name is not None:  # one number for all classes sorts nothing
        return classes
    values = result.measured.class_values(ref)
    return tuple(
        replace(row, values={**row.values, str(sort): value}) for row, value in zip(classes, values, strict=True)
    )


def sorted_classes(result: EvaluationResult, sort: str | None) -> tuple[ClassRow, ...]:
    """Return the classes in the order of `sort`: names ascending, counts and metrics descending, undefined last.

    Equal rows keep the ground truth's order.
    """
    classes = measured_classes(result, sort)
    return sorted_rows(classes, sort, SORT_COUNTS, class_metrics(classes))


def summary_section(result: EvaluationResult, *, verbose: bool) -> Section:
    """Return the metrics; details are what their names mean, and those that are undefined."""
    protocol, drawn = result.protocol, result.bootstrap
    heads = (Column("metric", "name"), *columns("metric", "value", *(("low", "high") if drawn else ())))
    heads += (*columns("word", overlap_name(protocol), "area"), Column("max dets", "count")) if verbose else ()
    rows: list[tuple[Cell, ...]] = []
    for name, metric in result.metrics.items():
        bounds = (metric.interval or (math.nan, math.nan)) if drawn else ()
        ref = metric.ref
        settings: tuple[str, ...] = ()
        if verbose:
            iou = thresholds_text(protocol.iou_thresholds if ref.iou is None else (ref.iou,))
            caps = (ref.max_dets,) if ref.max_dets is not None else protocol.max_dets[-1:]
            # Classes of a frequency have objects of all sizes.
            area = f"all, frequency {ref.area}" if ref.area in protocol.frequencies else ref.area
            settings = (iou, area or ref.subset or protocol.areas[0].name, str(caps[0]) if caps else "no cap")
        if verbose or not math.isnan(metric.value):
            rows.append((name, metric.value, *bounds, *settings, metric.n))
    notes = undefined_notes(result.metrics.items())
    # The first range holds all sizes and excludes nothing.
    ranges = [
        f"{area.name} {f'{area.low:g} to {area.high:g}' if area.high < LARGEST_AREA else f'from {area.low:g}'}"
        for area in protocol.areas[1:]
    ]
    if ranges and verbose:
        notes.append(Note(f"areas in square pixels, both ends included: {', '.join(ranges)}"))
    if drawn is not None:
        from jaccard_eval.features.bootstrap.report import interval_notes

        notes += interval_notes(result.metrics, drawn)
    if result.ties is not None:
        low, high = map(metric_text, result.ties)
        notes.insert(0, Note(f"predictions have no scores: AP is between {low} and {high}, by their order"))
    # A precision is of detections, everything else of objects.
    is_mixed = any(metric.ref.name == "precision" for metric in result.metrics.values())
    if is_mixed:
        notes.append(Note("n: objects, of precision detections"))
    # Without a single number, only the notes describe what there would be.
    tables = [Table((*heads, Column("n" if is_mixed else "gt", "count")), tuple(rows), foldable=True)] if rows else []
    return Section("Summary", (*tables, *notes))


def _per_class(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    classes = measured_classes(result, options.sort)
    metrics = class_metrics(classes)
    heads = (Column("class"), *map(Column, frequency_heads(classes)), *columns("count", *COUNTS))
    heads += columns("metric", *metrics)
    sections = []
    for listed in listed_rows(classes, options, SORT_COUNTS, metrics):
        rows: Rows = tuple(
            (
                *(row.name, *frequency_cells(row)),
                *(row.gt, row.ignored, row.pred),
                *(_value_cell(row.values[name]) if name in row.values else math.nan for name in metrics),
            )
            for row in listed.rows
        )
        table = Table(heads, rows, bars=next(iter(metrics), ""))
        undefined = ((row.name, row.values[metrics[0]]) for row in listed.rows if metrics and metrics[0] in row.values)
        sections.append(Section(listed.title, (table, *undefined_notes(undefined), *listed.more)))
    return sections


def _value_cell(metric: MetricValue) -> int | float:
    """Return a value, a count as a whole number."""
    return int(metric.value) if METRICS[metric.ref.name].kind == "count" else metric.value


def operating_points_section(points: Sequence[OperatingPoint], measure: str, *, per_class: bool) -> Section:
    """Return precision, recall, F1 and counts at the scores that were asked for."""
    ious = list(dict.fromkeys(point.iou for point in points))
    # COCO has ten thresholds: a table of all of them would be ten times the classes long.
    shown_ious = ious if len(ious) <= FEW_THRESHOLDS else ious[:1]
    heads = (Column("class"), *columns("threshold", "score >=", measure), *columns("count", "TP", "FP", "FN"))
    rows: Rows = tuple(
        (
            *(ALL_CLASSES if point.class_name is None else point.class_name, point.score, point.iou),
            *(point.tp, point.fp, point.fn, point.precision, point.recall, point.f1),
        )
        for point in points
        if point.iou in shown_ious and (per_class or point.class_name is None)
    )
    rest = Note(f"the JSON report has all {len(ious)} {measure} thresholds")
    notes = (rest,) if len(ious) > len(shown_ious) else ()
    table = Table((*heads, *columns("metric", "precision", "recall", "F1")), rows)
    return Section("Operating points", (table, *notes))


def _images_section(images: WorstImages, measure: str) -> Section:
    """Return the images with the highest cost."""
    from jaccard_eval.features.images import TITLES

    # What an image is worth next to what it costs would be too wide; files for machines have it.
    rows: Rows = tuple(
        tuple(value for name, value in row.items() if name not in ("AP", "mean_IoU")) for row in images.rows(images.n)
    )
    heads = (
        Column("image", "path"),
        *columns("count", "gt", "TP", "FP", "FN"),
        *columns("metric", "precision", "recall", "F1"),
    )
    notes = [Note("cost: misses plus the scores of false positives")]
    notes += [Note(f"{UNDEFINED}: {TITLES.get(name, name)}: {reason}") for name, reason in images.undefined().items()]
    hidden = len(images.names) + images.unlisted - len(rows)
    notes += [Note(f"and {hidden:,} more; -o images.csv writes all")] if hidden > 0 else []
    at = f"score >= {threshold_text(images.score)}, {measure} >= {threshold_text(images.iou)}"
    return Section(f"Worst images ({at})", (Table((*heads, Column("cost", "ratio")), rows), *notes))
