"""The SVG report: a picture of a result, where its kind has one; needs matplotlib."""

from __future__ import annotations

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.outputs.figure import MODULES, render_figure

SUFFIXES = (".svg",)
REQUIRES = MODULES
EXTRA = "report"
ERRORS = True


def render(result: Reportable, options: ReportOptions) -> bytes:
    """Return the picture; `options` change nothing, for it shows every size."""
    return render_figure(result, "svg")
