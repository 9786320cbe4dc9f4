"""The CSV report: the one table that a result has for machines, at full precision; empty cells where undefined."""

from __future__ import annotations

import math

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import Cell, build_sheet

SUFFIXES = (".csv",)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula (OWASP, CSV injection)


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the table; its rows are sorted as `options.sort` says."""
    sheet = build_sheet(result, options)
    return "".join(f"{','.join(map(_cell, line))}\n" for line in (sheet.header, *sheet.rows))


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _quoted(_inert(cell))
    return "" if math.isnan(cell) else str(cell) if isinstance(cell, int) else repr(float(cell))


def _quoted(cell: str) -> str:
    """Quote as RFC 4180 says; the csv module leaves a lone carriage return bare when lines end with a newline."""
    if not any(character in cell for character in ',"\r\n'):
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _inert(name: str) -> str:
    """Keep a spreadsheet from running a name."""
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
