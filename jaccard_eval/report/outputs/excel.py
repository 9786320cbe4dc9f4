"""A workbook for spreadsheets: the tables that ``.csv`` files have, a sheet for each, findings, and how it was made.

Numbers have 16 digits, as spreadsheets keep them, and are empty where undefined. A name is never a formula, and equal
results have equal bytes.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from typing import Any

from jaccard_eval.data.document import DataTable
from jaccard_eval.errors import UsageError
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import build_data
from jaccard_eval.report.outputs.csv_ import part_tables
from jaccard_eval.text import printable

MOST_ROWS = 2**20  # of a sheet, its header among them
MOST_LETTERS = 32_767  # of a cell
EPOCH = "1980-01-01T00:00:00Z"  # the first day that an archive can name
TIMES = pattern(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")


def render(result: Reportable, options: ReportOptions) -> bytes:
    """Return the workbook: what is undefined or endless is no number of a spreadsheet, and stays empty."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for name, table in _sheets(result, options):
        if len(table.rows) >= MOST_ROWS:
            raise UsageError(f"{name} has {len(table.rows):,} rows, more than a sheet holds. Write .csv files instead.")
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "B2"
        for row in (table.header, *table.rows):
            sheet.append([_cell(sheet, cell) for cell in row])
    file = io.BytesIO()
    book.save(file)
    return _without_clock(file.getvalue())


def _sheets(result: Reportable, options: ReportOptions) -> Iterator[tuple[str, DataTable]]:
    yield result.kind, build_data(result, options)
    yield from part_tables(result)
    findings = getattr(result, "findings", ())
    rows = tuple((finding.severity.value, finding.code, finding.count, finding.message) for finding in findings)
    yield "findings", DataTable(("severity", "code", "count", "message"), rows)
    about = [("jaccard-eval", result.version), ("signature", getattr(result, "signature", ""))]
    sides = ((side, getattr(getattr(result, side, None), "path", None)) for side in ("gt", "pred"))
    about += [(side, path) for side, path in sides if path]
    yield "about", DataTable(("what", "value"), tuple(about))


def _cell(sheet: Any, value: str | float) -> Any:
    if not isinstance(value, str):
        return value if math.isfinite(value) else None
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, printable(value)[:MOST_LETTERS])
    cell.data_type = "s"  # a text, also where it begins as a formula does
    return cell


def _without_clock(book: bytes) -> bytes:
    """Return the archive with the same members, none of which has the time at which it was written."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as written, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in written.namelist():
            content = TIMES.sub(rb"\g<1>" + EPOCH.encode(), written.read(name))
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=zipfile.ZIP_DEFLATED)
    return file.getvalue()


REPORTERS = (
    Reporter(
        suffixes=(".xlsx",),
        about="workbook: a sheet per table",
        render=render,
        requires=("openpyxl",),
        extra="excel",
        errors=True,
        images=True,
    ),
)
