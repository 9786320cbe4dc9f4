"""What was found about the data: warnings with their fixes, then the notes, folded."""

from __future__ import annotations

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section
from jaccard_eval.report.sections import remarks_sections

PLACE = 40


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without findings."""
    return remarks_sections(result.findings)
