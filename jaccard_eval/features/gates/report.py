"""Reports of a saved result that gates judged again."""

from __future__ import annotations

import math

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.result import GateResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.headlines import gates_headline
from jaccard_eval.report.model import DataCell, KeyValues, Report, Section
from jaccard_eval.report.sections import findings_section, gates_section

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
