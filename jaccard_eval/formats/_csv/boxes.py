"""From numbers and names to the draft: images, classes, encoding and units, and the notes on what was decided."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, to_xywh
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.errors import Severity, Where, shown
from jaccard_eval.formats._csv.cells import BoxCells
from jaccard_eval.formats._csv.columns import Columns, listed_names
from jaccard_eval.formats._csv.numbers import TextArray, parse_integers
from jaccard_eval.formats._csv.rows import Sheet
from jaccard_eval.formats._draft import Draft, RawBoxes
from jaccard_eval.formats._keys import Keys

NORM_LIMIT = 1.01  # coordinates up to here, some fractional, are fractions of an image; exporters overshoot a little
EDGE_SLACK = 0.01  # of an image's side: how far a box may reach outside before its encoding is doubted

Codes = npt.NDArray[np.int64]

_NUMERIC_NAME = re.compile(r"(\d{1,18})(?:\.0+)?", re.ASCII)


def add_boxes(sheet: Sheet, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Add images, classes and boxes to the draft, with a note on everything that was decided on the way."""
    used_codes, images = _factorise(sheet.columns[columns.image][cells.used])
    row_codes = np.zeros(len(sheet), dtype=np.int64)  # (rows of the sheet,)
    row_codes[cells.used] = used_codes
    sizes = _image_sizes(sheet, cells, used_codes, len(images), draft)
    _note_empty_rows(sheet, cells, draft)
    if draft.options.role == "gt":
        cells = _drop_zero_rows(sheet, cells, row_codes[cells.rows], draft)
    image_codes = row_codes[cells.rows]
    label_codes, classes = _factorise(sheet.columns[columns.label][cells.rows])
    units = _decide_units(cells.coords, draft)
    if units == "norm" and draft.options.images is not None:
        draft.options.images.fill_sizes(sizes, images, draft.findings)
    draft.set_images(images, sizes=sizes, listed=False)
    box_sizes = np.ones((len(image_codes), 2)) if units == "norm" else sizes[image_codes]
    draft.set_boxes(
        RawBoxes(
            image=_texts(images, image_codes),
            label=_label_keys(label_codes, classes, draft),
            coords=cells.coords,
            encoding=_decide_encoding(sheet, columns, cells.coords, box_sizes, draft),
            units=units,
            units_guessed=draft.options.units is None,
            place=lambda row: sheet.where(int(cells.rows[row])),
            score=cells.score,
            area=cells.area,
            crowd=cells.flags.get("crowd"),
            difficult=cells.flags.get("difficult"),
            group_of=cells.flags.get("group_of"),
            ignore=cells.flags.get("ignore"),
        )
    )
    _warn_alike_images(images, draft)
    _note_reading(sheet, columns, cells, draft)


def _factorise(cells: TextArray) -> tuple[Codes, list[str]]:
    """Return the distinct texts in order of appearance, and the row of each cell among them."""
    import pandas as pd

    codes, texts = pd.factorize(cells, use_na_sentinel=False)
    return codes.astype(np.int64), [str(text) for text in texts]


def _drop_zero_rows(sheet: Sheet, cells: BoxCells, codes: Codes, draft: Draft) -> BoxCells:
    """Take rows with a box of four zeros as images without boxes, where the image has no other box (DeepForest)."""
    zero = (cells.coords == 0).all(axis=1)
    if not zero.any():
        return cells
    has_box = np.bincount(codes[~zero], minlength=int(codes.max()) + 1) > 0
    alone = zero & ~has_box[codes]
    rows = cells.rows[alone]
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-zero",
        rows,
        lambda row: (sheet.where(row), "0, 0, 0, 0"),
        summary=f"{len(rows):,} rows with a box of four zeros were read as images without boxes",
    )
    if len(rows):
        draft.ignored["csv-row-zero"] += len(rows)
    return cells.take(~alone)


def _image_sizes(sheet: Sheet, cells: BoxCells, codes: Codes, n_images: int, draft: Draft) -> FloatArray:
    """Return the size of each image (n_images, 2): the first that a row gives."""
    sizes = unknown_sizes(n_images)
    if cells.sizes is None:
        return sizes
    given = np.flatnonzero(np.isfinite(cells.sizes).all(axis=1))
    sizes[codes[given[::-1]]] = cells.sizes[given[::-1]]  # backwards: the first row is written last and stays
    other = given[(cells.sizes[given] != sizes[codes[given]]).any(axis=1)]
    draft.findings.add_rows(
        Severity.WARNING,
        "image-size-conflict",
        cells.used[other],
        lambda row: (sheet.where(row), "width and height differ from an earlier row of the same image"),
        summary=f"{len(other):,} rows give another size of their image; the first size counts",
    )
    return sizes


def _decide_units(coords: FloatArray, draft: Draft) -> str:
    """Return the asked units, else "norm" when all coordinates are at most 1 and some are fractions."""
    if draft.options.units:
        return draft.options.units
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


def _decide_encoding(sheet: Sheet, columns: Columns, coords: FloatArray, box_sizes: FloatArray, draft: Draft) -> str:
    """Return the header's encoding; columns x and y are centres when only so the boxes lie inside their images."""
    x_name = sheet.header[columns.box[0]].lower()
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


def _label_keys(codes: Codes, classes: list[str], draft: Draft) -> Keys:
    """Name the classes and return the class of each box: integers when every class is one, else the text."""
    integers = parse_integers(classes)
    names = draft.options.names
    if integers is not None:
        if names is not None:
            draft.set_classes(range(len(names)), names)
        return np.array(integers, dtype=np.int64)[codes]
    if names is not None:
        draft.findings.note("csv-names-unused", Where(draft.path), "classes are texts: the list of names is not used")
    draft.set_classes(classes, classes)
    return _texts(classes, codes)


def _texts(names: list[str], codes: Codes) -> list[str]:
    texts: list[str] = np.array(names, dtype=np.object_)[codes].tolist()
    return texts


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
        lambda group: (Where(draft.path), f"image names {', '.join(map(shown, alike[group]))} are kept apart"),
        fix="If they are one image, write its name in one way (spreadsheets turn 001 into 1).",
    )


def _note_empty_rows(sheet: Sheet, cells: BoxCells, draft: Draft) -> None:
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-no-box",
        cells.without_box,
        lambda row: (sheet.where(row), "all box cells are empty"),
        summary=f"{len(cells.without_box):,} rows name an image and no box: images without boxes",
    )


def _note_reading(sheet: Sheet, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Say which columns were read, and how, and which were not."""
    where = Where(draft.path)
    box = ", ".join(sheet.header[column] for column in columns.box)
    draft.details.append(f"box from {box}" + (" (no header: keras-retinanet)" if sheet.headerless else ""))
    if cells.decimal_commas:
        draft.details.append("decimal commas")
        draft.findings.note("csv-decimal-commas", where, "numbers are read with decimal commas: 10,5 is 10.5")
    if columns.unused:
        names = listed_names([sheet.header[column] for column in columns.unused])
        draft.findings.note("csv-columns-unused", where, f"columns passed over: {names}")


def _flag(draft: Draft, option: str) -> str:
    return f"--{draft.options.role}-{option}"
