"""What reports say about a saved result that gates judged again."""

from __future__ import annotations

from jaccard_eval.data.verdict import GateResult, GateVerdict
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.kinds._gates import gates_section
from jaccard_eval.report.model import Cell, KeyValues, Report, Section, Sheet

_FIELDS = (
    "rule",
    "metric",
    "slice",
    "check",
    "status",
    "severity",
    "value",
    "limit",
    "margin",
    "baseline",
    "delta",
    "n",
)


def build_report(result: GateResult, options: ReportOptions) -> Report:
    """Return what a summary for people says; `options` change nothing."""
    inputs = (("result", result.path), *([("baseline", result.baseline)] if result.baseline else []))
    sections = (Section("Inputs", (KeyValues(inputs),)), *gates_section(result.gates))
    return Report(f"jaccard-eval {result.version}, gates", sections, result.signature)


def build_sheet(result: GateResult, options: ReportOptions) -> Sheet:
    """Return one row per verdict; `options` change nothing."""
    return Sheet((*_FIELDS, "reason"), tuple(map(_row, result.gates)))


def _row(one: GateVerdict) -> tuple[Cell, ...]:
    cells = {name: getattr(one, name) for name in _FIELDS} | {"status": str(one.status)}
    return (*cells.values(), one.reason)
