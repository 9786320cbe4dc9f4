"""What reports say about a saved result that gates judged again."""

from __future__ import annotations

import math

from jaccard_eval.data.verdict import GateResult, GateVerdict
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, KeyValues, Report, Section, Sheet
from jaccard_eval.report.sections import findings_section, gates_section

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
_NOISE = ("significance", "low", "high", "probability", "detectable")


def build_report(result: GateResult, options: ReportOptions) -> Report:
    """Return what a summary for people says; `options` change nothing."""
    inputs = (("result", result.path), *([("baseline", result.baseline)] if result.baseline else []))
    sections = [Section("Inputs", (KeyValues(inputs),)), *gates_section(result.gates)]
    sections += findings_section(result.findings)
    return Report(f"jaccard-eval {result.version}, gates", tuple(sections), result.signature)


def build_sheet(result: GateResult, options: ReportOptions) -> Sheet:
    """Return one row per verdict; `options` change nothing."""
    return Sheet((*_FIELDS, *_NOISE, "reason"), tuple(map(_row, result.gates)))


def _row(verdict: GateVerdict) -> tuple[Cell, ...]:
    cells = {name: getattr(verdict, name) for name in _FIELDS} | {"status": str(verdict.status)}
    return (*cells.values(), *_noise(verdict), verdict.reason)


def _noise(verdict: GateVerdict) -> tuple[Cell, ...]:
    """Return the significance asked for, the bounds of the interval, the probability and the detectable change."""
    low, high = verdict.spread.interval if verdict.spread else (math.nan, math.nan)
    paired = verdict.spread.paired if verdict.spread else None
    tested = (paired.probability, paired.detectable) if paired else (math.nan, math.nan)
    return verdict.significance or "", low, high, *tested
