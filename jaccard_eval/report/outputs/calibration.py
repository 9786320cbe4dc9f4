"""The calibration of an evaluation, bin by bin, as CSV; other kinds of results have their usual CSV."""

from __future__ import annotations

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.outputs.csv_ import part_table, sheet_text
from jaccard_eval.report.outputs.csv_ import render as render_csv

SUFFIXES = ()
NAMES = ("calibration.csv",)
ERRORS = True


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the table; `options` change nothing."""
    table = part_table(result, "calibration")
    return render_csv(result, options) if table is None else sheet_text(table)
