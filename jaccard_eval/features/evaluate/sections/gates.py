"""The verdicts of the quality gates, broken ones first."""

from __future__ import annotations

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.checks import WORST
from jaccard_eval.report.model import Section
from jaccard_eval.report.sections import gates_section

PLACE = 30


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without gates."""
    rank = {status: place for place, status in enumerate(WORST)}
    gates = sorted(result.gates, key=lambda verdict: rank.get(verdict.status, len(rank)))
    return gates_section(gates)
