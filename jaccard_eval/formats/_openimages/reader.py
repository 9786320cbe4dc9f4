"""From a table of Open Images to the draft: the CSV reader, told what the format prescribes."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import read_text
from jaccard_eval.reading.tabular.boxes import NORM_LIMIT, add_boxes
from jaccard_eval.reading.tabular.cells import BoxCells, read_cells
from jaccard_eval.reading.tabular.columns import Columns, is_kaggle, resolve_columns
from jaccard_eval.reading.tabular.prediction_strings import one_row_per_box
from jaccard_eval.reading.tabular.rows import Sheet, open_table, read_sheet

DESCRIPTIONS = "*class-descriptions*.csv"
MID_STARTS = ("/m/", "/g/", "/t/")  # machine-generated ids of the knowledge graph

_UNKNOWN = "-1"  # a flag that nobody checked


def read_table(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a table to the draft; the format prescribes fractions.

    Raises
    ------
    DataError
        When the file cannot be read as a table.
    """
    draft.options = replace(options, units=options.units or "norm")
    sheet = read_sheet(open_table(path, draft.findings))
    if is_kaggle(sheet.header):
        sheet = one_row_per_box(sheet, draft)
    where = Where(sheet.path, line=sheet.first_line)
    columns = resolve_columns(sheet.header, draft.options, draft.findings, where)
    if columns is None:
        return
    sheet = _with_known_flags(sheet, columns, draft)
    cells = read_cells(sheet, columns, draft)
    if options.units is None:
        _require_fractions(cells, draft)
    add_boxes(sheet, columns, cells, draft)
    _name_classes(path, sorted({str(label) for label in sheet.columns[columns.label][cells.rows]}), draft)


def _with_known_flags(sheet: Sheet, columns: Columns, draft: Draft) -> Sheet:
    """Take groups of which nobody knows for none."""
    position = columns.flags.get("group_of")
    if position is None:
        return sheet
    cells = sheet.columns[position]
    unknown = np.array([cell.strip() == _UNKNOWN for cell in cells], dtype=np.bool_)
    if not unknown.any():
        return sheet
    detail = f"{sheet.header[position]} is -1, unknown, in {int(unknown.sum()):,} rows: taken for 0"
    draft.findings.note("group-unknown", Where(draft.path), detail)
    changed = np.where(unknown, "0", cells)
    return replace(sheet, columns=(*sheet.columns[:position], changed, *sheet.columns[position + 1 :]))


def _require_fractions(cells: BoxCells, draft: Draft) -> None:
    """Refuse a table whose boxes are mostly no fractions; a detector's box may leave the image."""
    n_boxes, n_outside = len(cells.coords), int((cells.coords > NORM_LIMIT).any(axis=1).sum())
    if n_outside * 2 > n_boxes:
        detail = (
            f"Open Images holds fractions of the image's width and height, but {n_outside:,} of {n_boxes:,} boxes "
            "have coordinates above 1"
        )
        fix = f"Pass --{draft.options.role}-units px if they are pixels."
        draft.findings.error("coordinate-range", Where(draft.path), detail, fix=fix)


def _name_classes(path: Path, labels: list[str], draft: Draft) -> None:
    """Name classes that are MIDs by the descriptions beside the table, where there are any."""
    mids = [label for label in labels if label.startswith(MID_STARTS)]
    files = sorted(path.parent.glob(DESCRIPTIONS)) if mids else []
    names = {mid: name for file in files for mid, name in _read_descriptions(file)}
    known = [label for label in mids if label in names]
    if known:
        draft.set_classes(labels, [names.get(label, label) for label in labels])
        draft.details.append(f"{len(known):,} class names from {', '.join(file.name for file in files)}")


def _read_descriptions(path: Path) -> list[tuple[str, str]]:
    """Return pairs of MID and name; a header is no pair, for its first field is no MID."""
    rows = csv.reader(io.StringIO(read_text(path), newline=""))
    return [
        (row[0], row[1].strip()) for row in rows if len(row) > 1 and row[0].startswith(MID_STARTS) and row[1].strip()
    ]
