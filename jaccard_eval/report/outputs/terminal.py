"""The text report, for terminals, pipes and logs; what lays it out is loaded when there is a page to draw."""

from __future__ import annotations

from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import build_report


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the report; every line fits `options.width` when its numbers do."""
    from jaccard_eval.report.page import draw_page  # rich takes longer to load than most results to compute

    return draw_page(build_report(result, options), options)


REPORTERS = (Reporter(suffixes=(".txt",), about="text report", render=render, errors=True),)
