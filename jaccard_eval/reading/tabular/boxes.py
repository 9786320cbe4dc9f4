"""From the cells of a table to boxes: every cell that is wrong is named with its row and column."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, to_xywh
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, unknown_sizes
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.reading.draft import CodedKeys, Draft, Keys, RawBoxes
from jaccard_eval.reading.tabular.columns import (
    SCORE,
    Columns,
    RowIndices,
    TextArray,
    has_decimal_commas,
    listed_names,
    parse_flags,
    parse_numbers,
    position_of,
    replace_commas,
    split_packed,
)
from jaccard_eval.reading.tabular.rows import Codes, Named, Rows, Sheet
from jaccard_eval.text import pluralise, quoted_value


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCells:
    """What the cells of a sheet say, before images and classes are told apart."""

    used: RowIndices  # rows that are not blank (m,); each names an image
    sizes: FloatArray | None  # of the image in each used row (m, 2), NaN where not given
    without_box: RowIndices  # used rows whose box cells are all empty
    rows: RowIndices  # those with a box (n,)
    coords: FloatArray  # (n, 4)
    score: FloatArray | None
    area: FloatArray | None
    flags: dict[str, BoolArray]
    decimal_commas: bool  # whether numbers were written 10,5

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
    unused = position_of(sheet.header, SCORE) if draft.options.role == "gt" else None
    if unused is not None:
        given = [cell for cell in sheet.columns[unused][rows] if cell.strip()]
        if not {*given} <= {"1", "1.0"}:  # those of Open Images are all 1, and say nothing
            mention_unused_scores(len(given), draft)
    others = [sheet.columns[column][rows] for column in (score, area) if column is not None]
    commas = has_decimal_commas([*box, *others], sheet.delimiter)
    reader = _NumberReader(sheet, draft.findings, commas)
    positions = columns.box if len(columns.box) == len(box) else columns.box * len(box)
    coords = [reader.parse(cells, column, rows) for cells, column in zip(box, positions, strict=True)]
    sizes: FloatArray | None = None  # width and height (m, 2) of the image that each row names
    if columns.size is not None:
        sizes = np.stack([reader.parse_given(column, used) for column in columns.size], axis=1)
        check_image_sizes(sheet, sizes, used, draft.findings)
    return BoxCells(
        used=used,
        sizes=sizes,
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
            detail = (
                f"{quoted_value(cell)} is not a plain finite number{comma}" if cell.strip() else "the cell is empty"
            )
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
        lambda index: (sheet.where(int(rows[index]), column), f"{quoted_value(cells[index])} is not four numbers"),
        fix='Write a packed box like "[10, 20, 100, 200]".',
    )
    return parts


def mention_unused_scores(count: int, draft: Draft) -> None:
    """Say that ground truth has scores, and count them."""
    draft.ignored["score"] += count
    draft.findings.note("gt-scores", Where(draft.path), "the scores of ground truth are not used")


def _unless_empty(sheet: Sheet, column: int | None, rows: RowIndices) -> int | None:
    """Return the column unless none of its cells holds anything."""
    return column if column is not None and bool((sheet.columns[column][rows] != "").any()) else None


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
        lambda index: (sheet.where(int(rows[index]), column), f"{quoted_value(cells[index])} is neither 0 nor 1"),
        fix="Write 0, 1, true or false.",
    )
    return flags


NORM_LIMIT = 1.01  # coordinates up to here, some fractional, are fractions of an image; exporters overshoot a little
EDGE_SLACK = 0.01  # of an image's side: how far a box may reach outside before its encoding is doubted

_NUMERIC_NAME = re.compile(r"(\d{1,18})(?:\.0+)?", re.ASCII)


def add_boxes(table: Rows, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Add images, classes and boxes to the draft, with a note on everything that was decided on the way."""
    images = table.images(columns, cells.used)
    keys = list(images.keys.distinct)
    row_codes = np.zeros(len(table), dtype=np.int64)  # (rows of the table,)
    row_codes[cells.used] = images.keys.codes
    sizes = _image_sizes(table, cells, images.keys.codes, len(keys), draft)
    if not table.listed:
        n_without = len(cells.without_box)
        draft.findings.add_rows(
            Severity.NOTE,
            "csv-row-no-box",
            cells.without_box,
            lambda row: (table.where(row), "all box cells are empty"),
            summary=pluralise(
                n_without,
                "row names an image and no box: an image without boxes",
                "rows name an image and no box: images without boxes",
            ),
        )
    if draft.options.role == "gt" and not table.listed:
        cells = _drop_zero_rows(table, cells, row_codes[cells.rows], draft)
    image_codes = row_codes[cells.rows]
    units = _decide_units(table, cells.coords, draft)
    names = [images.names.get(key, str(key)) for key in keys]
    if units == "norm":
        draft.fill_sizes(sizes, names)
    draft.set_images(keys, file_names=[images.names.get(key) for key in keys], sizes=sizes, listed=table.listed)
    classes = table.classes(columns, cells.rows)
    beside = (images.beside, classes.beside)
    columns = replace(columns, unused=tuple(column for column in columns.unused if column not in beside))
    box_sizes = np.ones((len(image_codes), 2)) if units == "norm" else sizes[image_codes]
    draft.add_boxes(
        RawBoxes(
            image=CodedKeys(keys, image_codes),
            label=_set_classes(classes, draft),
            coords=cells.coords,
            encoding=_decide_encoding(table, columns, cells.coords, box_sizes, draft),
            units=units,
            units_guessed=draft.options.units is None and table.units is None,
            place=lambda row: table.where(int(cells.rows[row])),
            score=cells.score,
            area=cells.area,
            crowd=cells.flags.get("crowd"),
            difficult=cells.flags.get("difficult"),
            group_of=cells.flags.get("group_of"),
            ignore=cells.flags.get("ignore"),
        )
    )
    _warn_alike_images(names, draft)
    _note_reading(table, columns, cells, draft)


def _drop_zero_rows(table: Rows, cells: BoxCells, codes: Codes, draft: Draft) -> BoxCells:
    """Take rows with a box of four zeros as images without boxes, where the image has no other box (DeepForest)."""
    zero = np.logical_and.reduce([column == 0 for column in cells.coords.T])
    if not zero.any():
        return cells
    has_box = np.bincount(codes[~zero], minlength=int(codes.max()) + 1) > 0
    alone = zero & ~has_box[codes]
    rows = cells.rows[alone]
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-zero",
        rows,
        lambda row: (table.where(row), "0, 0, 0, 0"),
        summary=f"{len(rows):,} rows with a box of four zeros were read as images without boxes",
    )
    if len(rows):
        draft.ignored["csv-row-zero"] += len(rows)
    return cells.take(~alone)


def _image_sizes(table: Rows, cells: BoxCells, codes: Codes, n_images: int, draft: Draft) -> FloatArray:
    """Return the size of each image (n_images, 2): the first that a row gives."""
    sizes = unknown_sizes(n_images)
    if cells.sizes is None:
        return sizes
    given = np.flatnonzero(np.isfinite(cells.sizes[:, 0]) & np.isfinite(cells.sizes[:, 1]))
    first = np.full(n_images, -1)
    first[codes[given[::-1]]] = given[::-1]  # backwards: the first row is written last and stays
    sizes[first >= 0] = cells.sizes[first[first >= 0]]
    width, height = cells.sizes.T
    other = np.flatnonzero((width != sizes[codes, 0]) | (height != sizes[codes, 1]))
    other = other[np.isfinite(cells.sizes[other]).all(axis=1)]  # those that give a size
    draft.findings.add_rows(
        Severity.WARNING,
        "image-size-conflict",
        cells.used[other],
        lambda row: (table.where(row), "width and height differ from an earlier row of the same image"),
        summary=f"{len(other):,} rows give another size of their image; the first size counts",
    )
    return sizes


def _decide_units(table: Rows, coords: FloatArray, draft: Draft) -> str:
    """Return the asked units, else the table's, else "norm" when no coordinate exceeds 1 and some are fractions."""
    if draft.options.units or table.units:
        return draft.options.units or table.units or ""
    if not looks_normalised(coords):
        return "px"
    draft.details.append("normalised")
    draft.findings.note(
        "csv-normalised",
        Where(draft.path),
        "coordinates are read as normalised: fractions of the image's width and height, as none exceeds 1",
        fix=f"Pass {_flag(draft, 'units')} px if they are pixels.",
    )
    return "norm"


def looks_normalised(coords: FloatArray) -> bool:
    """Whether boxes look like fractions: no number exceeds 1, and some are no whole numbers."""
    within = len(coords) > 0 and bool((np.abs(coords) <= NORM_LIMIT).all())
    return within and bool((coords % 1).any())


def _decide_encoding(table: Rows, columns: Columns, coords: FloatArray, box_sizes: FloatArray, draft: Draft) -> str:
    """Return the header's encoding; columns x and y are centres when only so the boxes lie inside their images."""
    x_name = table.header[columns.box[0]].lower()
    if draft.options.box or columns.encoding != "xywh" or x_name != "x":
        return columns.encoding
    outside = np.flatnonzero(_leaves_image(coords, "xywh", box_sizes))
    if not len(outside) or not np.isfinite(box_sizes).all() or _leaves_image(coords, "cxcywh", box_sizes).any():
        return columns.encoding
    draft.details.append("x and y are centres")
    draft.findings.warning(
        "csv-centres",
        Where(draft.path),
        f"x and y are read as centres of boxes: as corners they take {len(outside):,} boxes out of their images",
        fix=f"Pass {_flag(draft, 'box')} xywh if they are corners.",
    )
    return "cxcywh"


def _leaves_image(coords: FloatArray, encoding: str, box_sizes: FloatArray) -> BoolArray:
    xywh = to_xywh(coords, encoding)
    with np.errstate(over="ignore"):
        near, far = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
    slack = EDGE_SLACK * box_sizes
    outside = (near < -slack) | (far > box_sizes + slack)  # (n, 2)
    return outside[:, 0] | outside[:, 1]


def _set_classes(classes: Named, draft: Draft) -> Keys:
    """Name the classes, numbered ones by the user's list before that of the table; return the class of each box."""
    distinct, names = classes.keys.distinct, draft.options.names
    numbered = all(isinstance(key, int) for key in distinct)
    if numbered and names is not None and classes.beside is None:
        draft.set_classes(range(len(names)), names)
    elif classes.names or not numbered:
        if names is not None:
            detail = f"classes are {'texts' if classes.beside is None else 'named'}: the list of names is not used"
            draft.findings.note("csv-names-unused", Where(draft.path), detail)
        given = classes.names or {key: str(key) for key in distinct}
        draft.set_classes(list(given), list(given.values()), named=classes.named)
    return classes.keys


def _warn_alike_images(images: list[str], draft: Draft) -> None:
    """Warn of image names that are one number written in several ways, as spreadsheets make of 001."""
    spellings: defaultdict[int, list[str]] = defaultdict(list)
    for name in images:
        if match := _NUMERIC_NAME.fullmatch(name):
            spellings[int(match[1])].append(name)
    alike = [names for names in spellings.values() if len(names) > 1]
    draft.findings.add_rows(
        Severity.WARNING,
        "image-names-alike",
        range(len(alike)),
        lambda group: (Where(draft.path), f"image names {', '.join(map(quoted_value, alike[group]))} are kept apart"),
        fix="If they are one image, write its name in one way (spreadsheets turn 001 into 1).",
    )


def _note_reading(table: Rows, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Say which columns were read, and how, and which were not."""
    where = Where(draft.path)
    box = ", ".join(table.header[column] for column in columns.box)
    packed = f" ({columns.encoding})" if len(columns.box) == 1 else ""
    draft.details.append(f"box from {box}{packed}" + (" (no header: keras-retinanet)" if table.headerless else ""))
    if cells.decimal_commas:
        draft.details.append("decimal commas")
        draft.findings.note("csv-decimal-commas", where, "numbers are read with decimal commas: 10,5 is 10.5")
    if columns.unused:
        names = listed_names([table.header[column] for column in columns.unused])
        draft.findings.note("csv-columns-unused", where, f"columns passed over: {names}")


def _flag(draft: Draft, option: str) -> str:
    return f"--{draft.options.role}-{option}"
