"""What reports say about an explanation: the curve, the boxes that cost most, the way to another protocol."""

from __future__ import annotations

import math
from collections.abc import Callable

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.features.explain.result import MISSED, ExplanationResult, Fix
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Sheet, Table
from jaccard_eval.report.numbers import UNDEFINED, delta_text, metric_text, side_text, threshold_text
from jaccard_eval.report.sections import findings_section, inputs_section
from jaccard_eval.text import counted

FIX_COLUMNS = ("error", "image", "class", "score", "fix", "row", "gain")


def build_report(result: ExplanationResult, options: ReportOptions) -> Report:
    """Return the explanation; `options` change nothing."""
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    sections = [inputs_section(sides), _number(result), *_curve(result), _boxes(result), *_steps(result)]
    sections += findings_section(result.findings)
    title = f"jaccard-eval {result.version}, explanation of {result.metric.ref}, protocol {result.protocol}"
    return Report(title, tuple(sections), result.signature)


def build_sheet(result: ExplanationResult, options: ReportOptions) -> Sheet:
    """Return one row per box; `options` change nothing."""
    rows = tuple(
        (one.kind, one.image, one.class_name, one.score, _change(one), one.source, one.gain) for one in result.fixes
    )
    return Sheet(FIX_COLUMNS, rows)


def promise(result: ExplanationResult) -> str:
    """Return what fixing the boxes gives, in one line.

    The one place that words it: ``fixing these 12 boxes: +0.0130``.
    """
    if not result.fixes:
        return "no single box can be fixed to raise it"
    n = len(result.fixes)
    return f"fixing {'this box' if n == 1 else f'these {n} boxes'}: {delta_text(result.fixed - result.metric.value)}"


def _number(result: ExplanationResult) -> Section:
    one = result.metric
    reason = f" ({one.reason})" if one.reason else ""
    parts = ((str(part.ref), _value_text(part)) for part in result.parts)
    return Section(
        "Number", (KeyValues(((str(one.ref), f"{_value_text(one)}{reason}, of {counted(one.n, 'object')}"), *parts)),)
    )


def _value_text(one: MetricValue) -> str:
    """Return a metric with its decimals, a count as it is."""
    is_count = METRICS[one.ref.name].kind == "count"
    return f"{one.value:,.0f}" if is_count else metric_text(one.value)


def _curve(result: ExplanationResult) -> list[Section]:
    if not result.curve:
        return []
    columns = tuple(map(Column, ("recall", "precision", "score")))
    rows = tuple((threshold_text(one.recall), one.precision, _score(one.score)) for one in result.curve)
    note = "interpolated precision; a mean of several curves has no score"
    return [Section("Curve", (Table(columns, rows), Note(note)))]


def _boxes(result: ExplanationResult) -> Section:
    if not result.fixes:
        return Section("Boxes that cost most", (Note(promise(result)),))
    texts = {"image", "class", "fix"}
    columns = tuple(Column(name, free_text=name in texts, left=name == "error") for name in FIX_COLUMNS)
    rows = tuple(
        (
            one.kind,
            one.image,
            one.class_name,
            _score(one.score),
            _change(one, side_text),
            one.source,
            delta_text(one.gain),
        )
        for one in result.fixes
    )
    note = f"{promise(result)}, measured; the gain of each is that alone, at IoU {threshold_text(result.judged_iou)}"
    return Section("Boxes that cost most", (Table(columns, rows), Note(note)))


def _steps(result: ExplanationResult) -> list[Section]:
    if result.against is None:
        return []
    columns = (Column("rule", free_text=True), Column("value"), Column("change"), Column("from -> to", free_text=True))
    rows: list[tuple[Cell, ...]] = [(result.protocol, result.metric.value, "", "")]
    rows += [(one.rule, one.value, delta_text(one.delta), one.change) for one in result.steps]
    total = result.steps[-1].value - result.metric.value if result.steps else 0.0
    note = Note(f"from {result.protocol} to {result.against}: {delta_text(total)}; rules change one after another")
    return [Section(f"Against {result.against}", (Table(columns, tuple(rows)), note))]


def _change(one: Fix, side_text: Callable[[float], str] = "{:.6g}".format) -> str:
    if not one.becomes:
        return "remove"
    place = " ".join(map(side_text, one.xywh))
    return f"{'add ' if one.kind == MISSED else ''}{one.becomes} at {place}"


def _score(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4f}"
