"""Tables for machines: CSV, a workbook for spreadsheets, and the score to use of each class for a deployment.

A result has one table, and others besides by their names. Cells of CSV have all digits, those of a workbook 16, as
spreadsheets keep them, and both are empty where undefined. In a workbook a name is never a formula, and equal results
have equal bytes. Scores to use are the best F1's or what was asked for, as a map in JSON or YAML.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from jaccard_eval.data.document import DataTable
from jaccard_eval.errors import UsageError
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import build_data
from jaccard_eval.text import inert, printable, quoted

_KEPT = pattern(r"([\t\r\n])")  # a quoted cell holds these


def render_csv(result: Reportable, options: ReportOptions, name: str = "") -> str:
    """Return the table of this name, or else the usual one, whose rows are in the order of `options.sort`."""
    table = (part_table(result, name) if name else None) or build_data(result, options)
    return "".join(f"{','.join(map(_cell, line))}\n" for line in (table.header, *table.rows))


def part_table(result: Reportable, name: str) -> DataTable | None:
    """Return a table of the parts of a result by its name; None where no part has it."""
    return next((table for known, table in part_tables(result) if known == name), None)


def part_tables(result: Reportable) -> Iterator[tuple[str, DataTable]]:
    """Yield the tables of the parts of a result with their names; an explanation's parts are values, without any."""
    for part in getattr(result, "parts", ()):
        yield from part.tables().items() if hasattr(part, "tables") else ()


def _cell(cell: str | float) -> str:
    if isinstance(cell, str):
        # What could act on a terminal that the file is shown in is escaped.
        return quoted(inert("".join(part if _KEPT.fullmatch(part) else printable(part) for part in _KEPT.split(cell))))
    return "" if math.isnan(cell) else str(cell) if isinstance(cell, int) else repr(float(cell))


MOST_ROWS = 2**20  # of a sheet, its header among them
MOST_LETTERS = 32_767  # of a cell
EPOCH = "1980-01-01T00:00:00Z"  # the first day that an archive can name
TIMES = pattern(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")


def render_workbook(result: Reportable, options: ReportOptions) -> bytes:
    """Return the workbook: what is undefined or endless is no number of a spreadsheet, and stays empty."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for name, table in _sheets(result, options):
        if len(table.rows) >= MOST_ROWS:
            raise UsageError(f"{name} has {len(table.rows):,} rows, more than a sheet holds. Write .csv files instead.")
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "B2"
        for row in (table.header, *table.rows):
            sheet.append([_sheet_cell(sheet, cell) for cell in row])
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


def _sheet_cell(sheet: Any, value: str | float) -> Any:
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


# Names that no YAML takes for anything but a text: letters first, then no sign that means something.
_PLAIN = pattern(r"[^\W\d_]\w*(?:[ -]\w+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})  # unless they are one of these
_LONGEST_KEY = 1000  # characters; beyond 1024, YAML wants a question mark before a key

Entry = Mapping[str, str]  # score, n and few, as both formats write them


def _scores(result: Reportable) -> dict[str, Entry]:
    """Return the score of all classes and of each, how many objects it rests on, and whether these are few."""
    table = part_table(result, "thresholds")
    if table is None:
        if result.kind != "evaluation":
            raise UsageError(f"thresholds files are for evaluations; this result is of the kind {result.kind}")
        # A saved result holds what was asked for when it was made.
        raise UsageError(
            "the best scores per class were not computed. Evaluate the inputs with '-o thresholds.yaml' (or .json), and"
            " without --no-errors."
        )
    # A class that has the name of all of them means itself.
    return {
        str(name): {"score": _number_text(float(score)), "n": str(n), **({"few": str(few)} if few else {})}
        for name, score, n, few in table.rows
    }


def map_text(scores: Mapping[str, Entry]) -> str:
    """Return the scores as JSON at full precision, the Unicode of names escaped.

    >>> print(map_text({"dog": {"score": "1.0e-05", "n": "6", "few": "true"}}))
    {
      "dog": {"score": 1.0e-05, "n": 6, "few": true}
    }
    """
    lines = [f"  {json.dumps(name)}: {{{_items(entry, chr(34))}}}" for name, entry in scores.items()]
    return "\n".join(["{", ",\n".join(lines), "}"]) if lines else "{}"


def yaml_text(scores: Mapping[str, Entry]) -> str:
    """Return the scores as YAML, a class a line; names that YAML would read as anything but themselves are quoted.

    >>> entry = {"score": "0.25", "n": "31"}
    >>> print(yaml_text({"traffic light": entry, "no": entry, "1e3": entry}), end="")
    traffic light: {score: 0.25, n: 31}
    "no": {score: 0.25, n: 31}
    "1e3": {score: 0.25, n: 31}
    """
    lines = []
    for name, entry in scores.items():
        key = name
        if not _PLAIN.fullmatch(name) or name.casefold() in _WORDS:
            import yaml  # whose quotes escape what JSON's cannot: beyond 16 bits, these differ

            key = yaml.safe_dump(name, default_style='"', width=float("inf")).rstrip("\n")
        text = f"{{{_items(entry, '')}}}"
        lines.append(f"? {key}\n: {text}\n" if len(key) > _LONGEST_KEY else f"{key}: {text}\n")
    return "".join(lines) or "{}\n"


def _items(entry: Entry, quote: str) -> str:
    return ", ".join(f"{quote}{key}{quote}: {text}" for key, text in entry.items())


def _number_text(number: float) -> str:
    """Return a number with a dot in its mantissa: YAML 1.1 reads 1e-05 as a text; null where no score is best."""
    if math.isnan(number):
        return "null"
    mantissa, e, exponent = repr(float(number)).partition("e")
    return f"{mantissa}{'.0' if e and '.' not in mantissa else ''}{e}{exponent}"


REPORTERS = (
    Reporter(suffixes=(".csv",), about="table", render=render_csv),
    # Tables of parts are looked for by name.
    Reporter(
        names=("calibration.csv",),
        about="scores against precision",
        render=partial(render_csv, name="calibration"),
        errors=True,
    ),
    Reporter(
        names=("confusion.csv",),
        about="confusion matrix",
        render=partial(render_csv, name="confusion"),
        errors=True,
        confusion=True,
    ),
    Reporter(
        names=("confusion_normalised.csv", "confusion_normalized.csv"),
        about="confusion matrix as shares of the ground truth",
        render=partial(render_csv, name="confusion_normalised"),
        errors=True,
        confusion=True,
    ),
    Reporter(
        names=("curves.csv",),
        about="precision, recall and F1 by score",
        render=partial(render_csv, name="curves"),
        errors=True,
    ),
    Reporter(
        names=("images.csv",), about="images by their cost", render=partial(render_csv, name="images"), images=True
    ),
    Reporter(
        suffixes=(".xlsx",),
        about="workbook: a sheet per table",
        render=render_workbook,
        requires=("openpyxl",),
        extra="excel",
        errors=True,
        images=True,
    ),
    Reporter(
        names=("thresholds.json",),
        about="best score per class",
        errors=True,
        render=lambda result, options: map_text(_scores(result)) + "\n",
    ),
    Reporter(
        names=("thresholds.yaml", "thresholds.yml"),
        about="best score per class",
        errors=True,
        render=lambda result, options: yaml_text(_scores(result)),
    ),
)
