"""The text report, for terminals, pipes, logs and files."""

from __future__ import annotations

from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import build_report
from jaccard_eval.report.page import draw_page


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the report; see `draw_page`."""
    return draw_page(build_report(result, options), options)


REPORTERS = (Reporter(suffixes=(".txt",), about="text report", render=render, errors=True),)
