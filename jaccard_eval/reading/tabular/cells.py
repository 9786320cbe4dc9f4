"""From cells to numbers and flags: which rows hold a box, and what every cell that cannot be used is reported as."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE
from jaccard_eval.errors import FindingLog, Severity, Where, shown
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.columns import SCORE, Columns, position_of
from jaccard_eval.reading.tabular.numbers import (
    RowIndices,
    TextArray,
    has_decimal_commas,
    parse_flags,
    parse_numbers,
    replace_commas,
    split_packed,
)
from jaccard_eval.reading.tabular.rows import Sheet
from jaccard_eval.reading.tabular.table import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCells:
    """What the cells of a sheet say, before images and classes are told apart.

    Parameters
    ----------
    used : ndarray of int64, shape (m,)
        Rows that are not blank; each names an image.
    sizes : ndarray of float64, shape (m, 2), optional
        Size of the image in each used row, NaN where not given.
    without_box : ndarray of int64
        Used rows whose box cells are all empty.
    rows : ndarray of int64, shape (n,)
        Rows with a box.
    coords : ndarray of float64, shape (n, 4)
    score, area : ndarray of float64, shape (n,), optional
    flags : dict of str to ndarray of bool, shape (n,)
    decimal_commas : bool
        Whether numbers were written 10,5.
    """

    used: RowIndices
    sizes: FloatArray | None
    without_box: RowIndices
    rows: RowIndices
    coords: FloatArray
    score: FloatArray | None
    area: FloatArray | None
    flags: dict[str, BoolArray]
    decimal_commas: bool

    def take(self, kept: BoolArray) -> BoxCells:
        """Return the cells with the boxes of a mask only; the used rows stay."""
        return replace(
            self,
            rows=self.rows[kept],
            coords=self.coords[kept],
            score=None if self.score is None else self.score[kept],
            area=None if self.area is None else self.area[kept],
            flags={name: values[kept] for name, values in self.flags.items()},
        )


def read_cells(sheet: Sheet, columns: Columns, draft: Draft) -> BoxCells:
    """Read every cell that matters; what cannot be used is among the draft's findings."""
    used = _drop_blank_rows(sheet, columns, draft)
    filled = np.stack([sheet.has_value(column, used) for column in columns.box], axis=1)  # (m, 1 or 4)
    rows = rows_with_box(sheet, columns, used, filled, draft.findings)
    box = _box_cells(sheet, columns, rows, draft.findings)
    score = _unless_empty(sheet, columns.score, rows)
    area = _unless_empty(sheet, columns.area, rows)
    if draft.options.role == "gt":
        _set_scores_aside(sheet, rows, draft)
    others = [sheet.columns[column][rows] for column in (score, area) if column is not None]
    commas = has_decimal_commas([*box, *others], sheet.delimiter)
    reader = _NumberReader(sheet, draft.findings, commas)
    positions = columns.box if len(columns.box) == len(box) else columns.box * len(box)
    coords = [reader.parse(cells, column, rows) for cells, column in zip(box, positions, strict=True)]
    return BoxCells(
        used=used,
        sizes=None if columns.size is None else _read_sizes(reader, columns.size, used),
        without_box=used[~filled.any(axis=1)],
        rows=rows,
        coords=np.stack(coords, axis=1),
        score=None if score is None else reader.parse(sheet.columns[score][rows], score, rows),
        area=None if area is None else reader.parse_given(area, rows),
        flags={flag: _read_flags(sheet, column, rows, draft.findings) for flag, column in columns.flags.items()},
        decimal_commas=commas,
    )


@dataclass(frozen=True, slots=True)
class _NumberReader:
    """Reads numbers of a sheet and reports the cells that are none."""

    sheet: Sheet
    findings: FindingLog
    decimal_commas: bool

    def parse(self, cells: TextArray, column: int, rows: RowIndices) -> FloatArray:
        """Return the numbers of `cells`, which stand in `rows` of a column."""
        numbers, bad = parse_numbers(replace_commas(cells) if self.decimal_commas else cells)

        def describe(index: int) -> tuple[Where, str]:
            cell = cells[index]
            comma = " (a decimal comma? read where half of all numbers have one)" if "," in cell else ""
            detail = f"{shown(cell)} is not a plain finite number{comma}" if cell.strip() else "the cell is empty"
            return self.sheet.where(int(rows[index]), column), detail

        fix = "Write numbers like 12.5: ASCII digits and a point, no units, separators, nan or inf."
        self.findings.add_rows(Severity.ERROR, "csv-number", bad, describe, fix=fix)
        return numbers

    def parse_given(self, column: int, rows: RowIndices) -> FloatArray:
        """Return the numbers of a column, NaN where its cell is empty."""
        cells = self.sheet.columns[column][rows]
        given = np.flatnonzero(cells != "")
        numbers = np.full(len(rows), np.nan)
        numbers[given] = self.parse(cells[given], column, rows[given])
        return numbers


def _drop_blank_rows(sheet: Sheet, columns: Columns, draft: Draft) -> RowIndices:
    """Return the rows that hold anything; of these every one must name an image."""
    nameless = np.flatnonzero(sheet.columns[columns.image] == "")
    is_blank = np.array([not any(column[row].strip() for column in sheet.columns) for row in nameless], dtype=np.bool_)
    blank = nameless[is_blank]
    draft.findings.add_rows(
        Severity.WARNING,
        "csv-row-blank",
        blank,
        lambda row: (sheet.where(row), "the row is empty"),
        summary=f"{len(blank):,} empty rows (delimiters only) set aside",
    )
    if len(blank):
        draft.ignored["csv-row-blank"] += len(blank)
    report_empty(sheet, columns.image, nameless[~is_blank], "the row names no image", draft.findings)
    return np.delete(np.arange(len(sheet)), blank)


def rows_with_box(
    table: Rows, columns: Columns, used: RowIndices, filled: BoolArray, findings: FindingLog
) -> RowIndices:
    """Return the rows whose box is whole; a box must be whole or absent, and has a class."""
    whole = filled.all(axis=1)
    partial = np.flatnonzero(filled.any(axis=1) & ~whole)

    def describe(index: int) -> tuple[Where, str]:
        empty = [column for column, given in zip(columns.box, filled[index], strict=True) if not given]
        names = ", ".join(table.header[column] for column in empty)
        return table.where(int(used[index]), empty[0]), f"the box is incomplete: {names} empty"

    fix = "Give all four numbers of a box, or none for an image without boxes."
    findings.add_rows(Severity.ERROR, "csv-box-partial", partial, describe, fix=fix)
    rows = used[whole]
    nameless = rows[~table.has_value(columns.label, rows)]
    report_empty(table, columns.label, nameless, "the box has no class", findings)
    return rows


def report_empty(table: Rows, column: int, rows: RowIndices, detail: str, findings: FindingLog) -> None:
    """Report rows whose cell in a column must not be empty."""
    findings.add_rows(
        Severity.ERROR, "csv-cell-empty", rows, lambda row: (table.where(row, column), f"{detail}; the cell is empty")
    )


def _box_cells(sheet: Sheet, columns: Columns, rows: RowIndices, findings: FindingLog) -> list[TextArray]:
    """Return the four columns of text that the boxes are."""
    if len(columns.box) > 1:
        return [sheet.columns[column][rows] for column in columns.box]
    column = columns.box[0]
    cells = sheet.columns[column][rows]
    parts, bad = split_packed(cells)
    findings.add_rows(
        Severity.ERROR,
        "csv-bbox",
        bad,
        lambda index: (sheet.where(int(rows[index]), column), f"{shown(cells[index])} is not four numbers"),
        fix='Write a packed box like "[10, 20, 100, 200]".',
    )
    return parts


def _set_scores_aside(sheet: Sheet, rows: RowIndices, draft: Draft) -> None:
    """Count the scores of ground truth; those of Open Images are all 1, and say nothing."""
    column = position_of(sheet.header, SCORE)
    if column is None:
        return
    given = [cell for cell in sheet.columns[column][rows] if cell.strip()]
    if not {*given} <= {"1", "1.0"}:
        mention_unused_scores(len(given), draft)


def mention_unused_scores(count: int, draft: Draft) -> None:
    """Say that ground truth has scores, and count them."""
    draft.ignored["score"] += count
    draft.findings.note("gt-scores", Where(draft.path), "the scores of ground truth are not used")


def _unless_empty(sheet: Sheet, column: int | None, rows: RowIndices) -> int | None:
    """Return the column unless none of its cells holds anything."""
    return column if column is not None and bool((sheet.columns[column][rows] != "").any()) else None


def _read_sizes(reader: _NumberReader, size: tuple[int, int], used: RowIndices) -> FloatArray:
    """Return width and height (m, 2) of the image that each row names."""
    sizes: npt.NDArray[np.float64] = np.stack([reader.parse_given(column, used) for column in size], axis=1)
    check_image_sizes(reader.sheet, sizes, used, reader.findings)
    return sizes


def check_image_sizes(table: Rows, sizes: FloatArray, used: RowIndices, findings: FindingLog) -> None:
    """Report sizes (m, 2) of the images of some rows that no image has."""
    is_bad = (sizes <= 0) | (sizes > MAX_IMAGE_SIDE)  # (m, 2)
    bad = np.flatnonzero(is_bad[:, 0] | is_bad[:, 1])
    findings.add_rows(
        Severity.ERROR,
        "image-size",
        bad,
        lambda index: (
            table.where(int(used[index])),
            f"the image's size is {sizes[index, 0]:g} x {sizes[index, 1]:g};"
            f" sides must be positive and at most {MAX_IMAGE_SIDE:g}",
        ),
    )


def _read_flags(sheet: Sheet, column: int, rows: RowIndices, findings: FindingLog) -> BoolArray:
    cells = sheet.columns[column][rows]
    flags, bad = parse_flags(cells)
    findings.add_rows(
        Severity.ERROR,
        "csv-flag",
        bad,
        lambda index: (sheet.where(int(rows[index]), column), f"{shown(cells[index])} is neither 0 nor 1"),
        fix="Write 0, 1, true or false.",
    )
    return flags
