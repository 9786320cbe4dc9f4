"""The metrics of the summary, each with its interval."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate.report import summary_section
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section

PLACE = 50


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section."""
    return [replace(summary_section(result, verbose=True), title="Metrics", key="metrics")]
