"""The confusion matrix of an evaluation, as CSV; other kinds of results have their usual CSV."""

from __future__ import annotations

from jaccard_eval.features.errors.report import confusion_sheet, errors_of
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.outputs.csv_ import render as render_csv
from jaccard_eval.report.outputs.csv_ import sheet_text

SUFFIXES = ()
NAMES = ("confusion.csv",)
ERRORS = True


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the table; `options` change nothing."""
    errors = errors_of(result)
    return render_csv(result, options) if errors is None else sheet_text(confusion_sheet(errors))
