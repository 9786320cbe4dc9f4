"""Tables from a data set: delimited text, Parquet and Arrow; a row per box, and one per image without boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import CORNER_ORDER, BoxTable, FloatArray
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap
from jaccard_eval.errors import require
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.reading.tabular.columns import parse_integers
from jaccard_eval.reading.tabular.table import looks_normalised
from jaccard_eval.reading.writing import Column, encodable, exact_coords, report_escaped, report_losses, rows_of
from jaccard_eval.text import inert, is_formula, pluralise, quoted, quoted_value

BOX_COLUMNS = {
    "xywh": ("left", "top", "width", "height"),
    "xyxy": ("xmin", "ymin", "xmax", "ymax"),
    "cxcywh": ("cx", "cy", "w", "h"),
}
FLAG_COLUMNS = {"crowd": "iscrowd", "difficult": "is_difficult", "group_of": "isgroupof", "ignore": "ignore"}
CARRIED = (*FLAG_COLUMNS, "area", "sizes", "images")

Codes = npt.NDArray[np.int64]
Arrays = dict[str, Any]  # of pyarrow.Array

EXTRA = "parquet"
STREAM_SUFFIX = ".arrows"


def write_file(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a data set as delimited text, tabs for the suffix ``.tsv`` and commas for all others.

    The box columns are those that the data set was read from where these give the same bits again, else left, top,
    width and height, always at full precision. What a spreadsheet would run is led by an apostrophe.
    """
    report_losses(dataset, path, findings, CARRIED)
    images = image_texts(dataset.images)
    classes = dataset.labels.names if dataset.labels.named else [str(key) for key in dataset.labels.keys]
    report_texts(images, classes, path, findings)
    encoding, coords = _coords(dataset)
    _report_readings(dataset, coords, classes, path, findings)
    findings.raise_errors()
    mark = "\t" if path.suffix.lower() == ".tsv" else ","
    image_titles, image_cells = _image_cells(dataset.images, images, mark)
    class_cells = [quoted(inert(name), mark) for name in classes]
    titles, cells = _box_cells(dataset.table, BOX_COLUMNS[encoding], coords, mark)
    header = [*image_titles, "class", *titles]
    keys = (image_cells, dataset.table.image), mark, (class_cells, dataset.table.label)
    rows, _ = rows_of([*keys, mark, *cells, "\n"], len(dataset.table), mark=mark)
    # An image without boxes keeps a row, or the file would not know of it.
    gaps = mark * (len(header) - len(image_titles))
    bare = np.setdiff1d(np.arange(len(dataset.images)), dataset.table.image)
    others, _ = rows_of([(image_cells, bare), f"{gaps}\n"], len(bare))
    replace_file(path, b"%b\n%b%b" % (mark.join(header).encode(), rows, others))


def image_texts(images: ImageTable) -> list[str]:
    """Return the file names of the images if they are distinct, else their keys."""
    names = [images.name(row) for row in range(len(images))]
    return names if len(set(names)) == len(names) else [str(key) for key in images.keys]


def _image_cells(images: ImageTable, texts: Sequence[str], mark: str) -> tuple[list[str], list[str]]:
    """Return the titles of the columns about images, and their cells for each image, joined."""
    cells = [quoted(inert(text), mark) for text in texts]
    if not np.isfinite(images.sizes).all(axis=1).any():
        return ["image"], cells
    # Whole sides are written without a point, unknown ones as nothing.
    sides = (["" if math.isnan(side) else format(side, ".17g") for side in size] for size in images.sizes.tolist())
    sized = [mark.join((cell, *size)) for cell, size in zip(cells, sides, strict=True)]
    return ["image", "image_width", "image_height"], sized


def _box_cells(boxes: BoxTable, box: Sequence[str], coords: FloatArray, mark: str) -> tuple[list[str], list[Column]]:
    """Return the titles of the columns behind the class, and their cells with the marks between."""
    numbers = dict(zip(box, coords.T, strict=True))
    if boxes.score is not None:
        numbers["score"] = boxes.score
    if (boxes.area != boxes.xywh[:, 2] * boxes.xywh[:, 3]).any():
        numbers["area"] = boxes.area
    cells: list[Column] = [np.column_stack(list(numbers.values()))]
    flags = {title: getattr(boxes, flag) for flag, title in FLAG_COLUMNS.items()}
    flags = {title: flag for title, flag in flags.items() if flag.any()}
    for flag in flags.values():
        cells += [mark, (("0", "1"), flag)]
    return [*numbers, *flags], cells


def _coords(dataset: Dataset) -> tuple[str, FloatArray]:
    """Return the boxes as the file had them where that is exact, else as the table has them, which always is."""
    if dataset.units == dataset.reading.units:
        encoding = "xyxy" if dataset.reading.encoding in CORNER_ORDER else dataset.reading.encoding
        # Boxes go out as they came in where that gives the same bits: files that are compared by eye stay alike.
        coords, exact = exact_coords(dataset.table.xywh, encoding)
        if exact.all():
            return encoding, coords
    return "xywh", dataset.table.xywh


def report_texts(images: Sequence[str], classes: Sequence[str], path: Path, findings: FindingLog) -> None:
    """Warn of texts that a spreadsheet would run or UTF-8 cannot hold: they come back changed. Refuse a NUL."""
    report_escaped((*images, *classes), path, findings)
    broken = [text for text in (*images, *classes) if "\0" in text]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (Where(str(path)), f"{quoted_value(broken[row])} holds a NUL character, which tables cannot hold"),
        fix="Rename the image or class.",
    )
    changed = [text for text in (*images, *classes) if is_formula(text)]
    findings.add_rows(
        Severity.WARNING,
        "write-formula",
        range(len(changed)),
        lambda row: (Where(str(path)), quoted_value(changed[row])),
        summary=(
            f"prefixed {pluralise(len(changed), 'name')} with an apostrophe: spreadsheets would run them as formulas"
        ),
    )


def _report_readings(
    dataset: Dataset, coords: FloatArray, classes: Sequence[str], path: Path, findings: FindingLog
) -> None:
    """Report where reading the file gives something else than the dataset holds: texts for ids, indices, units."""
    labels, keys = dataset.labels, dataset.images.keys
    # Reading back detects types from values once more: what would be read differently is reported now.
    if labels.named and classes and parse_integers(classes) is not None:
        detail = "all class names are whole numbers: read back, they become class indices"
        findings.warning("write-loss", Where(str(path), field="class"), detail)
    elif labels.named and any(isinstance(key, int) for key in labels.keys):
        detail = "classes are written by name, without their ids"
        findings.note("write-loss", Where(str(path), field="class"), detail)
    if any(isinstance(key, int) for key in keys):
        detail = "images are written by file name, or by id if they have none"
        findings.note("write-loss", Where(str(path), field="image"), detail)
    if len(coords) and dataset.units != ("norm" if looks_normalised(coords) else "px"):
        detail = f"reading the file back, the boxes will not be recognised as {dataset.units}"
        fix = Fix.of_side(dataset.role, "Read the file with {units}.", units=dataset.units)
        findings.warning("write-loss", Where(str(path), field="units"), detail, fix=fix)


def write_parquet(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a Parquet file."""
    write = partial(require("pyarrow.parquet", extra=EXTRA).write_table, write_page_checksum=True)
    _write_table(dataset, path, findings, write)


def write_arrow(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write an Arrow file, or a stream for the suffix ``.arrows``."""

    def dump(table: Any, sink: Any) -> None:
        ipc = require("pyarrow.ipc", extra=EXTRA)
        new = ipc.new_stream if path.suffix.lower() == STREAM_SUFFIX else ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table)

    _write_table(dataset, path, findings, dump)


def _make_table(dataset: Dataset, path: Path, findings: FindingLog) -> Any:
    """Return a dataset as a pyarrow.Table, whose schema holds what no column does: units, classes without boxes."""
    from jaccard_eval.reading.tabular.arrow_files import OWN_KEY, dump_remarks

    arrow = require("pyarrow", extra=EXTRA)
    keyed: Mapping[str, Sequence[Key]] = {"image": dataset.images.keys, "class": dataset.labels.keys}
    texts = [*keyed["image"], *keyed["class"], *dataset.labels.names, *filter(None, dataset.images.file_names)]
    report_escaped([text for text in texts if isinstance(text, str)], path, findings)
    for field, keys in keyed.items():
        if len({type(key) for key in keys}) > 1:
            findings.warning(
                "write-loss", Where(str(path), field=field), "numbers among strings are written as strings"
            )
    bare = np.setdiff1d(np.arange(len(dataset.images)), dataset.table.image)
    labels = dataset.labels
    class_columns = _class_columns(arrow, labels, dataset.table.label.astype(np.int64), len(bare))
    columns = {
        **_image_columns(arrow, dataset.images, np.concatenate((dataset.table.image, bare)).astype(np.int64)),
        **class_columns,
        **_box_columns(arrow, dataset, len(bare)),
    }
    remarks = dump_remarks(
        next(iter(class_columns)),
        dict(zip(_keys(labels.keys), map(encodable, labels.names), strict=True)),
        units=dataset.units,
        listed=dataset.images.listed,
        named=labels.named,
    )
    return arrow.table(columns).replace_schema_metadata({OWN_KEY: remarks})


def _write_table(dataset: Dataset, path: Path, findings: FindingLog, dump: Callable[[Any, Any], None]) -> None:
    """Write a data set whole or not at all; `dump` brings a table into a stream of bytes."""
    table = _make_table(dataset, path, findings)
    findings.raise_errors()
    sink = require("pyarrow", extra=EXTRA).BufferOutputStream()
    dump(table, sink)
    replace_file(path, sink.getvalue().to_pybytes())


def _image_columns(arrow: Any, images: ImageTable, rows: Codes) -> Arrays:
    """Return the keys of images, their file names where these are not the keys, and their sizes."""
    keys, names = _keys(images.keys), [None if name is None else encodable(name) for name in images.file_names]
    plain = all(isinstance(key, str) for key in keys) and not any(names)
    columns = {"image" if plain else "image_id": _spread(arrow, keys, rows)}
    if any(names):
        columns["file_name"] = _spread(arrow, names, rows)
    if np.isfinite(images.sizes).any():
        sides = zip(("image_width", "image_height"), images.sizes.T, strict=True)
        columns |= {name: _number_array(arrow, side[rows]) for name, side in sides}
    return columns


def _class_columns(arrow: Any, labels: LabelMap, rows: Codes, n_bare: int) -> Arrays:
    """Return the keys of classes, and their names where these are not the keys."""
    keys, names = _keys(labels.keys), list(map(encodable, labels.names))
    if keys == names and all(isinstance(key, str) for key in labels.keys):
        return {"class": _spread(arrow, keys, rows, n_bare)}
    columns = {"category_id": _spread(arrow, keys, rows, n_bare)}
    return {**columns, "category_name": _spread(arrow, names, rows, n_bare)} if labels.named else columns


def _box_columns(arrow: Any, dataset: Dataset, n_bare: int) -> Arrays:
    """Return left, top, width and height, which is how a data set has its boxes, and what else it has of them."""
    boxes = dataset.table
    numbers = dict(zip(BOX_COLUMNS["xywh"], boxes.xywh.T, strict=True))
    if boxes.score is not None:
        numbers["score"] = boxes.score
    usual = boxes.xywh[:, 2] * boxes.xywh[:, 3]
    if (boxes.area != usual).any():
        numbers["area"] = np.where(boxes.area == usual, np.nan, boxes.area)
    # Rows of images without boxes stand behind all others, with gaps for their numbers.
    bare = np.full(n_bare, np.nan)
    columns = {name: _number_array(arrow, np.concatenate((values, bare))) for name, values in numbers.items()}
    flags = {title: getattr(boxes, flag) for flag, title in FLAG_COLUMNS.items()}
    none = np.zeros(n_bare, dtype=np.bool_)
    return columns | {title: arrow.array(np.concatenate((flag, none))) for title, flag in flags.items() if flag.any()}


def _spread(arrow: Any, values: Sequence[Key | None], rows: Codes, n_bare: int = 0) -> Any:
    """Return a value for each row, texts as indices of a dictionary, and as many gaps at the end."""
    # An empty list has no type to be inferred, so that one is always named.
    texts = any(isinstance(value, str) for value in values)
    distinct = arrow.array(values, type=arrow.string() if texts else arrow.int64())
    padded = np.concatenate((rows, np.zeros(n_bare, dtype=np.int64)))
    missing = np.arange(len(padded)) >= len(rows)
    if len(distinct) == 0:
        return arrow.nulls(len(padded), distinct.type)
    taken = distinct.take(arrow.array(padded, mask=missing))
    return taken.dictionary_encode() if texts else taken


def _number_array(arrow: Any, values: FloatArray) -> Any:
    return arrow.array(values, mask=np.isnan(values))


def _keys(keys: Sequence[Key]) -> list[Key]:
    """Return keys of one kind: texts where some are."""
    # A column has one type: numbers among texts become texts, which was warned of.
    mixed = any(isinstance(key, str) for key in keys)
    return [encodable(str(key)) if mixed else key for key in keys]
