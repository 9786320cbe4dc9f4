"""The CSV reports: the one table that a result has for machines, and what tables it has besides, by their names.

Cells have all digits, and are empty where undefined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from jaccard_eval.data.document import DataTable
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import build_data
from jaccard_eval.text import inert, printable, quoted

_KEPT = pattern(r"([\t\r\n])")  # a quoted cell holds these


def render(result: Reportable, options: ReportOptions, name: str = "") -> str:
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


REPORTERS = (
    Reporter(suffixes=(".csv",), about="table", render=render),
    # Tables of parts are looked for by name.
    Reporter(
        names=("calibration.csv",),
        about="scores against precision",
        render=partial(render, name="calibration"),
        errors=True,
    ),
    Reporter(
        names=("confusion.csv",),
        about="confusion matrix",
        render=partial(render, name="confusion"),
        errors=True,
        confusion=True,
    ),
    Reporter(
        names=("confusion_normalised.csv", "confusion_normalized.csv"),
        about="confusion matrix as shares of the ground truth",
        render=partial(render, name="confusion_normalised"),
        errors=True,
        confusion=True,
    ),
    Reporter(
        names=("curves.csv",),
        about="precision, recall and F1 by score",
        render=partial(render, name="curves"),
        errors=True,
    ),
    Reporter(names=("images.csv",), about="images by their cost", render=partial(render, name="images"), images=True),
)
