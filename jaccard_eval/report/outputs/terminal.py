"""The text report, for terminals, pipes, logs and files."""

from __future__ import annotations

from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import build_report
from jaccard_eval.report.text_layout import lay_out


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the report; see `lay_out`."""
    return lay_out(build_report(result, options), options)


REPORTERS = (Reporter(suffixes=(".txt",), about="text report", render=render),)
