"""Delimited text from a data set: a row per box, and one per image without boxes; numbers at full precision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import CORNER_ORDER, FloatArray
from jaccard_eval.data.dataset import Dataset, ImageTable
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.reading.tabular.boxes import looks_normalised
from jaccard_eval.reading.tabular.columns import parse_integers
from jaccard_eval.reading.writing import exact_coords, report_escaped, report_losses
from jaccard_eval.text import inert, is_formula, quoted, shown

BOX_COLUMNS = {
    "xywh": ("left", "top", "width", "height"),
    "xyxy": ("xmin", "ymin", "xmax", "ymax"),
    "cxcywh": ("cx", "cy", "w", "h"),
}
FLAG_COLUMNS = {"crowd": "iscrowd", "difficult": "is_difficult", "group_of": "isgroupof", "ignore": "ignore"}
CARRIED = (*FLAG_COLUMNS, "area", "sizes", "images")

Columns = dict[str, Sequence[str]]


def write_file(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a data set as delimited text, tabs for the suffix ``.tsv`` and commas for all others.

    The box columns are those that the data set was read from where these give the same bits again, else left, top,
    width and height. What a spreadsheet would run is led by an apostrophe.

    Raises
    ------
    DataError
        When it must not lose anything and cannot carry all.
    MachineError
        When the file cannot be written.
    """
    report_losses(dataset, path, findings, CARRIED)
    images = image_texts(dataset.images)
    classes = dataset.labels.names if dataset.labels.named else [str(key) for key in dataset.labels.keys]
    report_texts(images, classes, path, findings)
    encoding, coords = _coords(dataset)
    _report_readings(dataset, coords, classes, path, findings)
    findings.raise_errors()
    box_columns: Columns = dict(zip(BOX_COLUMNS[encoding], map(_numbers, coords.T), strict=True))
    columns = _columns(dataset, images, classes, box_columns)
    mark = "\t" if path.suffix.lower() == ".tsv" else ","
    empty = np.setdiff1d(np.arange(len(dataset.images)), dataset.boxes.image)
    bare = ({**dict.fromkeys(columns, ""), **row} for row in _bare_rows(dataset.images, images, empty, columns))
    rows = [tuple(columns), *zip(*columns.values(), strict=True), *(tuple(row.values()) for row in bare)]
    text = "".join(mark.join(quoted(cell, mark) for cell in row) + "\n" for row in rows)
    replace_file(path, text.encode("utf-8", "backslashreplace"))


def image_texts(images: ImageTable) -> list[str]:
    """Return the file names of the images where these tell them apart, else their keys."""
    names = [images.name(row) for row in range(len(images))]
    return names if len(set(names)) == len(names) else [str(key) for key in images.keys]


def _columns(dataset: Dataset, images: Sequence[str], classes: Sequence[str], box: Columns) -> Columns:
    """Return the cells of the rows with boxes, by the names of their columns."""
    boxes = dataset.boxes
    image_rows = boxes.image.tolist()
    columns: Columns = {"image": [inert(images[row]) for row in image_rows]}
    if np.isfinite(dataset.images.sizes).all(axis=1).any():
        sizes = dataset.images.sizes[boxes.image]
        columns |= {"image_width": _optional(sizes[:, 0]), "image_height": _optional(sizes[:, 1])}
    columns["class"] = [inert(classes[row]) for row in boxes.label.tolist()]
    columns |= box
    if boxes.score is not None:
        columns["score"] = _numbers(boxes.score)
    if (boxes.area != boxes.xywh[:, 2] * boxes.xywh[:, 3]).any():
        columns["area"] = _numbers(boxes.area)
    flags = {title: getattr(boxes, flag) for flag, title in FLAG_COLUMNS.items()}
    return columns | {title: [str(int(one)) for one in flag] for title, flag in flags.items() if flag.any()}


def _coords(dataset: Dataset) -> tuple[str, FloatArray]:
    """Return the boxes as the file had them where that is exact, else as the table has them, which always is."""
    if dataset.units == dataset.reading.units:
        encoding = "xyxy" if dataset.reading.encoding in CORNER_ORDER else dataset.reading.encoding
        coords, exact = exact_coords(dataset.boxes.xywh, encoding)
        if exact.all():
            return encoding, coords
    return "xywh", dataset.boxes.xywh


def _bare_rows(
    images: ImageTable, names: Sequence[str], rows: Iterable[int], columns: Columns
) -> Iterable[dict[str, str]]:
    """Yield the cells of images without boxes."""
    for row in rows:
        sides = zip(("image_width", "image_height"), _optional(images.sizes[row]), strict=True)
        yield {"image": inert(names[row]), **{name: side for name, side in sides if name in columns}}


def _numbers(values: FloatArray) -> list[str]:
    return list(map(repr, values.tolist()))


def _optional(values: FloatArray) -> list[str]:
    """Write sizes: whole ones without a point, unknown ones as nothing."""
    return ["" if math.isnan(value) else f"{value:.17g}" for value in values.tolist()]


def report_texts(images: Sequence[str], classes: Sequence[str], path: Path, findings: FindingLog) -> None:
    """Warn of texts that a spreadsheet would run or UTF-8 cannot hold: they come back changed. Refuse a NUL."""
    report_escaped((*images, *classes), path, findings)
    broken = [text for text in (*images, *classes) if "\0" in text]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (Where(str(path)), f"{shown(broken[row])} holds a NUL, which no table can have"),
        fix="Rename the image or class.",
    )
    changed = [text for text in (*images, *classes) if is_formula(text)]
    findings.add_rows(
        Severity.WARNING,
        "write-formula",
        range(len(changed)),
        lambda row: (Where(str(path)), shown(changed[row])),
        summary=f"names that a spreadsheet would run, now led by an apostrophe: {len(changed):,}",
    )


def _report_readings(
    dataset: Dataset, coords: FloatArray, classes: Sequence[str], path: Path, findings: FindingLog
) -> None:
    """Say where reading the file gives something else than the data set holds: texts for ids, indices, units."""
    labels, keys = dataset.labels, dataset.images.keys
    if labels.named and classes and parse_integers(classes) is not None:
        detail = "all class names are whole numbers, and will be read as indices"
        findings.warning("write-loss", Where(str(path), field="class"), detail)
    elif labels.named and any(isinstance(key, int) for key in labels.keys):
        detail = "classes are written by name; their ids are not carried"
        findings.note("write-loss", Where(str(path), field="class"), detail)
    if any(isinstance(key, int) for key in keys):
        detail = "images are written by file name, else by id as text"
        findings.note("write-loss", Where(str(path), field="image"), detail)
    if len(coords) and dataset.units != ("norm" if looks_normalised(coords) else "px"):
        detail = f"by their values the boxes will not be taken for {dataset.units}"
        fix = f"Read the file with --{dataset.role}-units {dataset.units}."
        findings.warning("write-loss", Where(str(path), field="units"), detail, fix=fix)
