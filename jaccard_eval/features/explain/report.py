"""What reports say about an explanation: the curve, the boxes that cost most, the way to another protocol."""

from __future__ import annotations

import math
from collections.abc import Callable

from jaccard_eval.data.document import DataTable, MetricValue
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.features.explain.result import MISSED, ExplanationResult, Fix
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, KeyValues, Kind, Note, Report, Section, Table
from jaccard_eval.report.numbers import UNDEFINED, delta_text, metric_text, side_text, threshold_text
from jaccard_eval.report.sections import findings_section, inputs_section
from jaccard_eval.text import pluralise

FIX_COLUMNS = ("error", "image", "class", "score", "fix", "row", "gain")


def build_report(result: ExplanationResult, options: ReportOptions) -> Report:
    """Return the explanation; `options` change nothing."""
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    metric = result.metric
    reason = f" ({metric.reason})" if metric.reason else ""
    text = f"{_value_text(metric)}{reason}, of {pluralise(metric.n, 'object')}"
    parts = ((str(part.ref), _value_text(part)) for part in result.parts)
    sections = [inputs_section(sides), Section("Number", (KeyValues(((str(metric.ref), text), *parts)),))]
    if result.curve:
        heads = (Column("recall", "threshold"), Column("precision", "metric"), Column("score", "threshold"))
        rows = tuple((point.recall, point.precision, _score(point.score)) for point in result.curve)
        note = Note("interpolated precision; a mean of several curves has no score")
        sections.append(Section("Curve", (Table(heads, rows), note)))
    sections += [_boxes(result), *_steps(result), *findings_section(result.findings)]
    title = f"jaccard-eval {result.version}, explanation of {result.metric.ref}, protocol {result.protocol}"
    return Report(title, tuple(sections), result.signature)


def build_data(result: ExplanationResult, options: ReportOptions) -> DataTable:
    """Return one row per box; `options` change nothing."""
    rows = tuple(
        (fix.kind, fix.image, fix.class_name, fix.score, _change(fix), fix.source, fix.gain) for fix in result.fixes
    )
    return DataTable(FIX_COLUMNS, rows)


def promise(result: ExplanationResult) -> str:
    """Return what fixing the boxes gives, in one line.

    The one place that words it: ``fixing these 12 boxes: +0.0130``.
    """
    if not result.fixes:
        return "no single box can be fixed to raise it"
    n = len(result.fixes)
    return f"fixing {'this box' if n == 1 else f'these {n} boxes'}: {delta_text(result.fixed - result.metric.value)}"


def _value_text(metric: MetricValue) -> str:
    """Return a metric with its decimals, a count as it is."""
    is_count = METRICS[metric.ref.name].kind == "count"
    return f"{metric.value:,.0f}" if is_count else metric_text(metric.value)


def _boxes(result: ExplanationResult) -> Section:
    if not result.fixes:
        return Section("Boxes that cost most", (Note(promise(result)),))
    kinds: tuple[Kind, ...] = ("word", "text", "text", "threshold", "text", "count", "delta")
    rows = tuple(
        (fix.kind, fix.image, fix.class_name, _score(fix.score), _change(fix, side_text), fix.source, fix.gain)
        for fix in result.fixes
    )
    # Measured: gains of single fixes do not add up, as two of them may move the same class.
    note = f"{promise(result)}, measured; the gain of each is that alone, at IoU {threshold_text(result.judged_iou)}"
    return Section("Boxes that cost most", (Table(tuple(map(Column, FIX_COLUMNS, kinds)), rows), Note(note)))


def _steps(result: ExplanationResult) -> list[Section]:
    if result.against is None:
        return []
    heads = (Column("rule"), Column("value", "metric"), Column("change", "delta"), Column("from -> to"))
    rows: list[tuple[Cell, ...]] = [(result.protocol, result.metric.value, "", "")]
    rows += [(step.rule, step.value, step.delta, step.change) for step in result.steps]
    total = result.steps[-1].value - result.metric.value if result.steps else 0.0
    note = Note(f"from {result.protocol} to {result.against}: {delta_text(total)}; rules change one after another")
    return [Section(f"Against {result.against}", (Table(heads, tuple(rows)), note))]


def _change(fix: Fix, side_text: Callable[[float], str] = "{:.6g}".format) -> str:
    if not fix.becomes:
        return "remove"
    place = " ".join(map(side_text, fix.xywh))
    return f"{'add ' if fix.kind == MISSED else ''}{fix.becomes} at {place}"


def _score(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4f}"  # four decimals, of a score that may be 1 as well
