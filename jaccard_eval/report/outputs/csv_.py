"""The CSV report: the one table that a result has for machines, at full precision; empty cells where undefined."""

from __future__ import annotations

import math
import re

from jaccard_eval.data.document import DataTable
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import Cell, build_sheet
from jaccard_eval.text import inert, printable, quoted

SUFFIXES = (".csv",)
ERRORS = True
_KEPT = re.compile(r"([\t\r\n])")  # a quoted cell holds these


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the table; its rows are sorted as `options.sort` says."""
    return sheet_text(build_sheet(result, options))


def sheet_text(sheet: DataTable) -> str:
    """Return a table as comma-separated values."""
    return "".join(f"{','.join(map(_cell, line))}\n" for line in (sheet.header, *sheet.rows))


def part_table(result: Reportable, name: str) -> DataTable | None:
    """Return a table of the parts of a result by its name; None where no part has it."""
    tables = (part.tables() for part in getattr(result, "parts", ()))
    return next((found[name] for found in tables if name in found), None)


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return quoted(inert(_escape(cell)))
    return "" if math.isnan(cell) else str(cell) if isinstance(cell, int) else repr(float(cell))


def _escape(text: str) -> str:
    """Escape what could act on a terminal that the file is shown in."""
    return "".join(part if _KEPT.fullmatch(part) else printable(part) for part in _KEPT.split(text))
