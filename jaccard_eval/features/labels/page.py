"""The page of suspected labels: all that are listed, each to be accepted or rejected, and saved for `--reviewed`."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.features.labels.report import COLUMNS, TITLES, build_data
from jaccard_eval.features.labels.result import LabelsResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.default_page import default_page
from jaccard_eval.report.model import Live, Note, Report, Section

HOW = (
    "Accept or reject suspects, here or in a column of labels.csv, and pass the list as reviewed: what was judged"
    " is hidden, and AP is measured with what was accepted."
)


def build_page(result: LabelsResult, options: ReportOptions) -> Report:
    """Return the report with every suspect that is listed, and before these what their review needs."""
    report = default_page(result, replace(options, verbose=True))
    if not result.suspects:
        return report
    data = Live("review", {"columns": (*COLUMNS, "verdict"), "rows": build_data(result, options).rows})
    first = next(i for i, section in enumerate(report.sections) if section.title in TITLES.values())
    review = Section("Review", (Note(HOW), data), key="review")
    return replace(report, sections=(*report.sections[:first], review, *report.sections[first:]))
