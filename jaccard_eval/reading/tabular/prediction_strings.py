"""Kaggle's tables: all boxes of an image in one string, and packed boxes without a class; made to a row per box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.findings import Severity
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.boxes import NO_CLASS, looks_normalised, note_no_class
from jaccard_eval.reading.tabular.columns import (
    IMAGE,
    NOT_USED,
    RowIndices,
    TextArray,
    lacks_class,
    outdone_names,
    parse_numbers,
    position_of_strings,
)
from jaccard_eval.reading.tabular.rows import Sheet
from jaccard_eval.text import is_numeral, pluralise, quoted_value

GROUPS = {
    6: ("class", "confidence", "xmin", "ymin", "xmax", "ymax"),  # VinBigData, SIIM-COVID-19, Open Images
    5: ("confidence", "left", "top", "width", "height"),  # Global Wheat, RSNA
}
ONE_CLASS = str(NO_CLASS)
NOTHING = (0.0, 0.0, 1.0, 1.0)  # the box of "14 1 0 0 1 1" and "none 1 0 0 1 1": nothing was found

_SAMPLE = 200  # strings by which the layout of groups is found


def one_row_per_box(sheet: Sheet, draft: Draft) -> Sheet:
    """Return a table with a row per box and with a class, which is 0 where the file has none.

    Strings that are not groups of numbers are among the draft's findings.
    """
    at = position_of_strings(sheet.header)
    if at is not None:
        sheet = _unfold(sheet, at, draft)
    if not lacks_class(sheet.header):
        return sheet
    note_no_class(draft)
    cells = np.full(len(sheet), ONE_CLASS, dtype=np.object_)
    header, titles = ((*names, "class") for names in (sheet.header, sheet.titles))
    return replace(sheet, header=header, titles=titles, cells=(*sheet.cells, cells))


def _unfold(sheet: Sheet, at: int, draft: Draft) -> Sheet:
    """Give each group of a string a row of its own, and an empty string a row without a box."""
    strings = [str(cell).split() for cell in sheet.cells[at]]
    names = GROUPS[_group_size(strings)]
    _report_uneven(sheet, at, strings, len(names), draft)
    whole = [fields if len(fields) % len(names) == 0 else [] for fields in strings]
    rows = np.repeat(np.arange(len(whole)), [len(fields) // len(names) for fields in whole])
    cells = np.array([field for fields in whole for field in fields], dtype=np.object_).reshape(-1, len(names))
    nothing = _find_nothing(cells, draft)
    _note_nothing(sheet, rows[nothing], draft)
    rows, cells = rows[~nothing], cells[~nothing]
    # An image of which nothing is left keeps one row, without a box, in its place among the others.
    empty = np.setdiff1d(np.arange(len(strings)), rows)
    rows = np.concatenate((rows, empty))
    order = np.argsort(rows, kind="stable")
    cells = np.concatenate((cells, np.full((len(empty), len(names)), "", dtype=np.object_)))[order]
    draft.details.append(f"{sheet.titles[at]}: groups of {' '.join(names)}")
    others = [position for position in range(len(sheet.header)) if position != at]
    # A single other column can only be the image, whatever it is called.
    beside = [IMAGE[0]] if len(others) == 1 else [sheet.header[position] for position in others]
    # Columns that did not count next to the strings do not count because these are gone.
    beside = [f"{name}{NOT_USED}" if name in outdone_names(sheet.header) else name for name in beside]
    titles = beside if len(others) == 1 else [sheet.titles[position] for position in others]
    taken = sheet.take(rows[order])
    return replace(
        taken,
        header=(*beside, *names),
        titles=(*titles, *names),
        cells=(*(taken.cells[at] for at in others), *cells.T),
    )


def _group_size(strings: list[list[str]]) -> int:
    """Return how many fields a group has: of the sizes that strings are multiples of, the one whose fields fit."""
    # Thirty fields are five groups of six or six of five: only the values of the fields decide.
    sample = [fields for fields in strings if fields][:_SAMPLE]

    def fitting(size: int) -> tuple[int, int]:
        whole = [fields for fields in sample if len(fields) % size == 0]
        return sum(_fits(fields, size) for fields in whole), len(whole)

    return max(GROUPS, key=fitting)


def _fits(fields: list[str], size: int) -> bool:
    """Whether confidences are at most 1, and classes, if there are any, names or whole numbers."""
    scores = fields[GROUPS[size].index("confidence") :: size]
    classes = fields[::size] if "class" in GROUPS[size] else []
    numbers = all(is_numeral(score) and 0 <= float(score) <= 1 for score in scores)
    return numbers and all(not is_numeral(label) or float(label).is_integer() for label in classes)


def _report_uneven(sheet: Sheet, at: int, strings: list[list[str]], size: int, draft: Draft) -> None:
    uneven = [row for row, fields in enumerate(strings) if len(fields) % size]
    draft.findings.add_rows(
        Severity.ERROR,
        "csv-prediction-string",
        uneven,
        lambda row: (
            sheet.where(row, at),
            f"has {len(strings[row])} fields, not a multiple of {size} ({' '.join(GROUPS[size])}):"
            f" {quoted_value(' '.join(strings[row]))}",
        ),
        fix="Write groups of class confidence x1 y1 x2 y2, or of confidence x y width height, separated by spaces.",
    )


def _find_nothing(cells: TextArray, draft: Draft) -> BoolArray:
    """Return which groups mean that nothing was found; among fractions their box is the whole image, and a box."""
    coords = np.stack([parse_numbers(column)[0] for column in cells.T[-4:]], axis=1)
    nothing: BoolArray = (coords == NOTHING).all(axis=1)
    # Where pixels are counted, a box of one pixel in the corner is nobody's detection.
    is_norm = draft.options.units == "norm" or (draft.options.units is None and looks_normalised(coords))
    return np.zeros(len(cells), dtype=np.bool_) if is_norm else nothing


def _note_nothing(sheet: Sheet, rows: RowIndices, draft: Draft) -> None:
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-nothing-found",
        rows,
        lambda row: (sheet.where(row), "0 0 1 1"),
        summary=f"{pluralise(len(rows), 'group')} with the box 0 0 1 1 read as an image without detections",
    )
    if len(rows):
        draft.ignored["csv-nothing-found"] += len(rows)
