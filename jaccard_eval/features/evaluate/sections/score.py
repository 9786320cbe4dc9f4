"""The score threshold, and what counts above it: a slider that all that depends on it follows."""

from __future__ import annotations

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.operating.page import score_section, steps_of
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section

PLACE = 20


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without counts at every step."""
    steps = steps_of(result)
    return [] if steps is None else [score_section(steps, overlap_name(result.protocol))]
