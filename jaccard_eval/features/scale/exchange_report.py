"""Reports of the cost of an error for objects of given sizes."""

from __future__ import annotations

import math

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.scale import ExchangeResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Headline, Note, Report, Rows, Section, Span, Table, columns
from jaccard_eval.report.numbers import UNDEFINED, metric_text


def build_report(result: ExchangeResult, options: ReportOptions) -> Report:
    """Return the report for people."""
    heads = (
        *columns("size", "|B|", "p, missing", "q, extra"),
        *columns("metric", "J"),
        *columns("size", "rate", "points"),
    )
    rows: Rows = tuple(
        (
            *(f"{size:.12g}" for size in (row.gt_area, row.missing, row.extra)),
            row.jaccard,
            *(UNDEFINED if math.isnan(rate) else f"{rate:.6g}" for rate in (row.exchange_rate, row.points)),
        )
        for row in result.rows
    )
    notes = (
        Note("J = (|B| - p) / (|B| + q)"),
        Note("rate = (|B| + q) / (|B| - p + 1): how much q must shrink to gain as much as one unit of p"),
    )
    title = f"jaccard-eval {result.version}, what an error costs"
    last = result.rows[-1]
    rate = UNDEFINED if math.isnan(last.exchange_rate) else f"{last.exchange_rate:.6g}"
    headline = Headline((Span(f"J {metric_text(last.jaccard)}  exchange rate {rate}"),))
    return Report(title, (Section("Exchange rate", (Table(heads, rows), *notes)),), headline=headline)


def build_data(result: ExchangeResult, options: ReportOptions) -> DataTable:
    """Return one row for each object."""
    header = ("gt_area", "missing", "extra", "jaccard", "exchange_rate", "points")
    return DataTable(header, tuple(tuple(getattr(row, name) for name in header) for row in result.rows))
