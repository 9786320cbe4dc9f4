"""What each type of error costs."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section

PLACE = 80


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without an analysis of errors."""
    if result.errors is None:
        return []
    from jaccard_eval.features.errors.report import types_section

    return [replace(types_section(result.errors), title="What errors cost", key="errors")]
