"""The page of a history: the metric as a line, and runs that lead to their pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jaccard_eval.features.history import HistoryResult
from jaccard_eval.features.history.report import RUNS, build_charts, build_report
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Linked, Report, Table
from jaccard_eval.report.outputs.html import linked_pages


def build_page(result: HistoryResult, options: ReportOptions) -> Report:
    """Return the report with a chart, and runs that are links where their pages lie next to it."""
    report = build_report(result, options)
    sections = list(report.sections)
    [at] = [row for row, section in enumerate(sections) if section.key == RUNS]
    table, *notes = sections[at].blocks
    if isinstance(table, Table):
        cells = zip(result.runs, table.rows, strict=True)
        table = replace(table, rows=tuple((Linked(run.name, run.place), *row[1:]) for run, row in cells))
    sections[at] = replace(sections[at], blocks=(*build_charts(result), table, *notes))
    return replace(report, sections=tuple(sections))


def build_folder(result: HistoryResult, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the page of the history, and one for each run."""
    return linked_pages(result, "runs", options)
