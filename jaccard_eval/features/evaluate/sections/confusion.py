"""Which classes are confused with which."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Section

PLACE = 90


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without an analysis of errors."""
    if result.errors is None:
        return []
    from jaccard_eval.features.errors.report import confusion_section

    return [replace(confusion_section(result.errors.confusion), key="confusion")]
