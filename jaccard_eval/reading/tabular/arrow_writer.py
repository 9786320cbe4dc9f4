"""Parquet and Arrow from a data set: a row per box, and one per image without boxes; nothing is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap
from jaccard_eval.errors import require
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.reading.tabular.arrow_files import OWN_KEY, dump_remarks
from jaccard_eval.reading.tabular.arrow_tables import EXTRA
from jaccard_eval.reading.tabular.rows import Codes
from jaccard_eval.reading.tabular.writer import BOX_COLUMNS, FLAG_COLUMNS
from jaccard_eval.reading.writing import encodable, report_escaped

STREAM_SUFFIX = ".arrows"

Columns = dict[str, Any]  # of pyarrow.Array


def write_parquet(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a Parquet file.

    Raises
    ------
    DataError
        When it must not change anything and has to.
    MachineError
        When the file cannot be written, or pyarrow is not installed.
    """
    _write(dataset, path, findings, require("pyarrow.parquet", extra=EXTRA).write_table)


def write_arrow(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write an Arrow file, or a stream for the suffix ``.arrows``.

    Raises
    ------
    DataError
        When it must not change anything and has to.
    MachineError
        When the file cannot be written, or pyarrow is not installed.
    """

    def dump(table: Any, sink: Any) -> None:
        ipc = require("pyarrow.ipc", extra=EXTRA)
        new = ipc.new_stream if path.suffix.lower() == STREAM_SUFFIX else ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table)

    _write(dataset, path, findings, dump)


def make_table(dataset: Dataset, path: Path, findings: FindingLog) -> Any:
    """Return a data set as a pyarrow.Table, whose schema says what no column does: units, classes without boxes."""
    arrow = require("pyarrow", extra=EXTRA)
    _report_changed(dataset, path, findings)
    bare = np.setdiff1d(np.arange(len(dataset.images)), dataset.boxes.image)
    labels = dataset.labels
    class_columns = _class_columns(arrow, labels, dataset.boxes.label.astype(np.int64), len(bare))
    columns = {
        **_image_columns(arrow, dataset.images, np.concatenate((dataset.boxes.image, bare)).astype(np.int64)),
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


def _write(dataset: Dataset, path: Path, findings: FindingLog, dump: Callable[[Any, Any], None]) -> None:
    """Write a data set whole or not at all; `dump` brings a table into a stream of bytes."""
    table = make_table(dataset, path, findings)
    findings.raise_errors()
    sink = require("pyarrow", extra=EXTRA).BufferOutputStream()
    dump(table, sink)
    replace_file(path, sink.getvalue().to_pybytes())


def _image_columns(arrow: Any, images: ImageTable, rows: Codes) -> Columns:
    """Return the keys of images, their file names where these are not the keys, and their sizes."""
    keys, names = _keys(images.keys), [None if name is None else encodable(name) for name in images.file_names]
    plain = all(isinstance(key, str) for key in keys) and not any(names)
    columns = {"image" if plain else "image_id": _spread(arrow, keys, rows)}
    if any(names):
        columns["file_name"] = _spread(arrow, names, rows)
    if np.isfinite(images.sizes).any():
        sides = zip(("image_width", "image_height"), images.sizes.T, strict=True)
        columns |= {name: _numbers(arrow, side[rows]) for name, side in sides}
    return columns


def _class_columns(arrow: Any, labels: LabelMap, rows: Codes, n_bare: int) -> Columns:
    """Return the keys of classes, and their names where these are not the keys."""
    keys, names = _keys(labels.keys), list(map(encodable, labels.names))
    if keys == names and all(isinstance(key, str) for key in labels.keys):
        return {"class": _spread(arrow, keys, rows, n_bare)}
    columns = {"category_id": _spread(arrow, keys, rows, n_bare)}
    return {**columns, "category_name": _spread(arrow, names, rows, n_bare)} if labels.named else columns


def _box_columns(arrow: Any, dataset: Dataset, n_bare: int) -> Columns:
    """Return left, top, width and height, which is how a data set has its boxes, and what else it has of them."""
    boxes = dataset.boxes
    numbers = dict(zip(BOX_COLUMNS["xywh"], boxes.xywh.T, strict=True))
    if boxes.score is not None:
        numbers["score"] = boxes.score
    usual = boxes.xywh[:, 2] * boxes.xywh[:, 3]
    if (boxes.area != usual).any():
        numbers["area"] = np.where(boxes.area == usual, np.nan, boxes.area)
    bare = np.full(n_bare, np.nan)
    columns = {name: _numbers(arrow, np.concatenate((values, bare))) for name, values in numbers.items()}
    flags = {title: getattr(boxes, flag) for flag, title in FLAG_COLUMNS.items()}
    none = np.zeros(n_bare, dtype=np.bool_)
    return columns | {title: arrow.array(np.concatenate((flag, none))) for title, flag in flags.items() if flag.any()}


def _spread(arrow: Any, values: Sequence[Key | None], rows: Codes, n_bare: int = 0) -> Any:
    """Return a value for each row, texts as indices of a dictionary, and as many gaps at the end."""
    texts = any(isinstance(value, str) for value in values)
    distinct = arrow.array(values, type=arrow.string() if texts else arrow.int64())
    padded = np.concatenate((rows, np.zeros(n_bare, dtype=np.int64)))
    missing = np.arange(len(padded)) >= len(rows)
    if len(distinct) == 0:
        return arrow.nulls(len(padded), distinct.type)
    taken = distinct.take(arrow.array(padded, mask=missing))
    return taken.dictionary_encode() if texts else taken


def _numbers(arrow: Any, values: FloatArray) -> Any:
    return arrow.array(values, mask=np.isnan(values))


def _keys(keys: Sequence[Key]) -> list[Key]:
    """Return keys of one kind: texts where some are."""
    mixed = any(isinstance(key, str) for key in keys)
    return [encodable(str(key)) if mixed else key for key in keys]


def _report_changed(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Warn of keys and names that do not come back as they are: half a character, numbers among texts."""
    keyed: Mapping[str, Sequence[Key]] = {"image": dataset.images.keys, "class": dataset.labels.keys}
    texts = [*keyed["image"], *keyed["class"], *dataset.labels.names, *filter(None, dataset.images.file_names)]
    report_escaped([text for text in texts if isinstance(text, str)], path, findings)
    for field, keys in keyed.items():
        if len({type(key) for key in keys}) > 1:
            findings.warning("write-loss", Where(str(path), field=field), "numbers among texts are written as texts")
