"""Reports of a saved result that gates judged again."""

from __future__ import annotations

import math

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.result import GateResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Chart, DataCell, KeyValues, Report, Section, bars_by_name
from jaccard_eval.report.sections import findings_section, gates_headline, gates_section

_FIELDS = (
    *("rule", "metric", "slice", "check", "status", "severity"),
    *("value", "limit", "margin", "baseline", "delta", "n"),
)
_NOISE = ("significance", "low", "high", "probability", "detectable")


def build_report(result: GateResult, options: ReportOptions) -> Report:
    """Return the report for people; `options` change nothing."""
    inputs = (("result", result.path), *([("baseline", result.baseline)] if result.baseline else []))
    sections = [Section("Inputs", (KeyValues(inputs),)), *gates_section(result.gates)]
    sections += findings_section(result.findings)
    title = f"jaccard-eval {result.version}, gates"
    return Report(title, tuple(sections), result.signature, headline=gates_headline(result.gates))


def build_charts(result: GateResult) -> list[Chart]:
    """Return how far each judged value is on the right side of its limit, and none where nothing was judged."""
    margins = [
        (f"{verdict.metric} {verdict.check} {verdict.limit:g} ({verdict.status})", verdict.margin)
        for verdict in result.gates
        if not math.isnan(verdict.margin)
    ]
    title = "Distance to the limit; broken rules are below 0"
    return [bars_by_name(title, "margin", margins)] if margins else []


def build_data(result: GateResult, options: ReportOptions) -> DataTable:
    """Return one row per verdict; `options` change nothing."""
    rows: list[tuple[DataCell, ...]] = []
    for verdict in result.gates:
        spread = verdict.spread
        low, high = spread.interval if spread else (math.nan, math.nan)
        paired = spread.paired if spread else None
        tested = (paired.probability, paired.detectable) if paired else (math.nan, math.nan)
        cells = {name: getattr(verdict, name) for name in _FIELDS} | {"status": str(verdict.status)}
        rows.append((*cells.values(), verdict.significance or "", low, high, *tested, verdict.reason))
    return DataTable((*_FIELDS, *_NOISE, "reason"), tuple(rows))
