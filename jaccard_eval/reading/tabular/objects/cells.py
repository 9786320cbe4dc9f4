"""From typed columns to numbers and flags; every cell that cannot be used is told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.errors import Severity, Where
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.cells import (
    BoxCells,
    check_image_sizes,
    mention_unused_scores,
    report_empty,
    rows_with_box,
)
from jaccard_eval.reading.tabular.columns import SCORE, Columns, position_of
from jaccard_eval.reading.tabular.objects.table import Table
from jaccard_eval.reading.tabular.table import Codes


class _Fault(NamedTuple):
    """What is wrong with a cell, and what to do about it."""

    what: str
    fix: str


def read_cells(table: Table, columns: Columns, draft: Draft) -> BoxCells:
    """Read every cell that matters; what cannot be used is among the draft's findings."""
    every = np.arange(len(table))
    has_image = table.has_value(columns.image, every)
    report_empty(table, columns.image, np.flatnonzero(~has_image), "the row names no image", draft.findings)
    used = every[has_image]
    filled = np.stack([table.has_value(column, used) for column in columns.box]).T  # (m, 1 or 4)
    _check_boxes(table, columns, used[~filled.any(axis=1)])
    rows = rows_with_box(table, columns, used, filled, draft.findings)
    _check_keys(table, columns.image, used)
    _check_keys(table, columns.label, rows[table.has_value(columns.label, rows)])
    _set_scores_aside(table, rows, draft)
    return BoxCells(
        used=used,
        sizes=_sizes(table, columns, used),
        without_box=used[~filled.any(axis=1)],
        rows=rows,
        coords=_coords(table, columns, rows),
        score=_scores(table, columns.score, rows),
        area=_numbers(table, columns.area, rows),
        flags={flag: _flags(table, column, rows) for flag, column in columns.flags.items()},
        decimal_commas=False,
    )


def _check_boxes(table: Table, columns: Columns, without_box: Codes) -> None:
    """Report objects without a box, which are no images without objects."""
    if table.bare is not None:
        objects = without_box[~table.bare[without_box]]
        report_empty(table, columns.box[0], objects, "the object has no box", table.findings)


def _check_keys(table: Table, column: int, rows: Codes) -> None:
    _, bad = table.column(column).keys(rows)
    fault = _Fault("is neither text nor a whole number", "Call images and classes by texts or by whole numbers.")
    _report_cells(table, column, rows[bad], "id-type", fault)


def _sizes(table: Table, columns: Columns, used: Codes) -> FloatArray | None:
    """Return width and height (m, 2) of the image that each row names; NaN where not given."""
    if columns.size is None:
        return None
    sizes = np.stack([_parse(table, column, used) for column in columns.size], axis=1)
    check_image_sizes(table, sizes, used, table.findings)
    return sizes


def _coords(table: Table, columns: Columns, rows: Codes) -> FloatArray:
    if len(columns.box) > 1:
        return np.stack([_parse(table, column, rows) for column in columns.box], axis=1)
    coords, bad = table.column(columns.box[0]).packed(rows)
    _report_cells(
        table,
        columns.box[0],
        rows[bad],
        "csv-bbox",
        _Fault("is not four numbers", "Give each box a list of four numbers."),
    )
    return coords


def _scores(table: Table, column: int | None, rows: Codes) -> FloatArray | None:
    """Return the scores: one for each box, or none."""
    scores = _numbers(table, column, rows)
    if scores is None or column is None:
        return None
    missing = rows[~table.has_value(column, rows)]
    report_empty(table, column, missing, "the box has no score", table.findings)
    return scores


def _set_scores_aside(table: Table, rows: Codes, draft: Draft) -> None:
    """Count the scores of ground truth."""
    column = position_of(table.header, SCORE)
    if draft.options.role == "gt" and column is not None and table.has_value(column, rows).any():
        mention_unused_scores(int(table.has_value(column, rows).sum()), draft)


def _numbers(table: Table, column: int | None, rows: Codes) -> FloatArray | None:
    """Return the numbers of a column, NaN where there is none; None where there is none at all."""
    if column is None or not table.has_value(column, rows).any():
        return None
    return _parse(table, column, rows)


def _parse(table: Table, column: int, rows: Codes) -> FloatArray:
    numbers, bad = table.column(column).numbers(rows)
    _report_cells(
        table,
        column,
        rows[bad],
        "csv-number",
        _Fault("is not a number", "Write numbers; convert text before it is written."),
    )
    return numbers


def _flags(table: Table, column: int, rows: Codes) -> BoolArray:
    flags, bad = table.column(column).flags(rows)
    _report_cells(table, column, rows[bad], "csv-flag", _Fault("is neither 0 nor 1", "Write 0, 1, true or false."))
    return flags


def _report_cells(table: Table, column: int, rows: Codes, code: str, fault: _Fault) -> None:
    """Record that cells of a column cannot be used."""

    def describe(row: int) -> tuple[Where, str]:
        return table.where(row, column), f"{table.column(column).shown(row)} {fault.what}"

    table.findings.add_rows(Severity.ERROR, code, rows, describe, fix=fault.fix)
