"""The short way through a table in which every cell that matters is a plain number or text, as in most files.

Rows may name images without boxes. Whatever else a cell may be (with a decimal comma, infinite, packed with others,
missing) is read the long way, which tells each cell apart and says what is wrong with it. Both give the same, to the
last bit.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import CodedKeys, Draft
from jaccard_eval.reading.tabular.boxes import BoxCells, add_boxes, check_image_sizes, mention_unused_scores
from jaccard_eval.reading.tabular.columns import (
    CLASS_IDS,
    SCORE,
    Columns,
    RowIndices,
    is_kaggle,
    parse_flags,
    position_of,
    resolve_columns,
)
from jaccard_eval.reading.tabular.rows import TextFile, TextRows, factorise, is_rectangular

if TYPE_CHECKING:
    import pandas as pd

SAMPLE = 100  # numbers that show most columns not to be true and false


@dataclass(frozen=True)
class PlainRows(TextRows):
    """Rows that each name an image, and the columns of texts that tell what each is."""

    n_rows: int
    texts: Mapping[int, CodedKeys]

    def __len__(self) -> int:
        return self.n_rows

    def has_value(self, column: int, rows: RowIndices) -> BoolArray:
        """Return which cells of a column of texts hold anything."""
        texts = self.texts[column]
        filled = np.array([text != "" for text in texts.distinct], dtype=np.bool_)
        return np.asarray(filled[texts.codes[rows]])

    def keys(self, column: int, rows: RowIndices) -> CodedKeys:
        """Return the texts of some rows of a column: the distinct ones in order of appearance."""
        texts = self.texts[column]
        return texts if len(rows) == self.n_rows else _in_order(texts.distinct, texts.codes[rows])


def add_plain_boxes(file: TextFile, draft: Draft) -> bool:
    """Add images, classes and boxes to the draft; False, and nothing is added, where the file needs the long way."""
    columns = _plain_columns(file, draft.options)
    frame = None if columns is None else _parse(file, columns)
    if columns is None or frame is None:
        return False
    texts, cells = _texts(frame, file, columns), _cells(frame, columns)
    if texts is None or cells is None:
        return False
    rows = PlainRows(
        file.path, file.data, file.delimiter, file.header, file.first_line, file.headerless, len(frame), texts
    )
    scores = _unused_scores(frame, file, columns, cells.rows)
    if scores is None or not rows.has_value(columns.label, cells.rows).all():
        return False
    if len(scores):
        mention_unused_scores(len(scores), draft)
    if cells.sizes is not None:
        check_image_sizes(rows, cells.sizes, cells.used, draft.findings)
    add_boxes(rows, columns, cells, draft)
    return True


def _plain_columns(file: TextFile, options: ReadOptions) -> Columns | None:
    """Return what the columns are; None where something is to be said of them, or a cell holds more than one value."""
    if b"\r" in file.data and file.data.count(b"\r") != file.data.count(b"\r\n"):
        return None
    if file.data.count(b'"', 0, _end_of_line(file.data, file.first_line)) % 2:  # a line break within quotes
        return None
    if is_kaggle(file.header):
        return None
    findings = FindingLog()
    columns = resolve_columns(file.header, options, findings, Where(file.path))
    return None if columns is None or len(columns.box) == 1 or findings.findings() else columns


def _parse(file: TextFile, columns: Columns) -> pd.DataFrame | None:
    """Parse numbers as numbers, NaN where empty; None where a cell is none, or rows are not equally long."""
    import pandas as pd

    start = 0 if file.headerless else _end_of_line(file.data, file.first_line)
    numbers = [*_number_columns(columns), *_unused_score(file, columns)]
    # Texts that start with a letter in the first row are categories, as objects take more time; of categories that
    # are all numbers pandas makes numbers.
    end = file.data.find(b"\n", start)
    first = file.data[start : None if end < 0 else end].decode("utf-8").split(file.delimiter)
    words = [at for at in _text_columns(file, columns) if at < len(first) and first[at].lstrip()[:1].isalpha()]
    kinds: dict[int, Any] = dict.fromkeys(numbers, np.float64) | dict.fromkeys(words, "category")
    table = io.BytesIO(file.data)  # which shares the bytes
    table.seek(start)
    # The default is exact since pandas 3.1, which deprecates the option.
    has_precision = "float_precision" in (pd.read_csv.__kwdefaults__ or {})
    read_csv: Any = partial(pd.read_csv, float_precision="round_trip") if has_precision else pd.read_csv
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            frame: pd.DataFrame = read_csv(
                table,
                sep=file.delimiter,
                header=None,
                dtype={position: kinds.get(position, object) for position in range(len(file.header))},
                na_values={position: [""] for position in numbers},
                keep_default_na=False,
                skipinitialspace=_has_leading_blanks(file.data, file.delimiter),  # a third slower where it is set
            )
    except (ValueError, OverflowError):  # ParserError and EmptyDataError are ValueErrors
        return None
    if not len(frame) or frame.shape[1] != len(file.header):
        return None
    # Every row must have all columns: pandas fills short ones.
    texts = (frame[position] for position in range(frame.shape[1]) if position not in numbers)
    shape = len(frame) + (not file.headerless), len(file.header)
    return frame if is_rectangular(file.data, file.delimiter, texts, shape) else None


def _has_leading_blanks(table: bytes, delimiter: str) -> bool:
    """Whether a cell may start with a blank."""
    text = np.frombuffer(table, dtype=np.uint8)
    before = text[np.flatnonzero(text[1:] == ord(" "))]
    return b"\t" in table or table.startswith(b" ") or bool(((before == ord(delimiter)) | (before == ord("\n"))).any())


def _end_of_line(data: bytes, number: int) -> int:
    """Return where a line ends, counted from 1."""
    end = 0
    for _ in range(number):
        end = data.find(b"\n", end) + 1 or len(data)
    return end


def _text_columns(file: TextFile, columns: Columns) -> set[int]:
    beside = position_of(file.header, CLASS_IDS)
    return {columns.image, columns.label, *([] if beside is None else [beside])}


def _number_columns(columns: Columns) -> list[int]:
    optional = [column for column in (columns.score, columns.area) if column is not None]
    return [*columns.box, *(columns.size or ()), *optional]


def _unused_score(file: TextFile, columns: Columns) -> list[int]:
    """Return the column of the scores that ground truth has."""
    position = position_of(file.header, SCORE)
    return [] if position is None or columns.score is not None else [position]


def _unused_scores(frame: pd.DataFrame, file: TextFile, columns: Columns, rows: RowIndices) -> FloatArray | None:
    """Return the scores of ground truth; None where they may say nothing, as those of Open Images, which are all 1."""
    for position in _unused_score(file, columns):
        given = frame[position].to_numpy()[rows]
        given = given[~np.isnan(given)]
        return given if _is_plain(given) else None
    return np.empty(0)


def _texts(frame: pd.DataFrame, file: TextFile, columns: Columns) -> dict[int, CodedKeys] | None:
    """Return the columns of texts as keys; None where a row has no image."""
    texts: dict[int, CodedKeys] = {}
    for position in _text_columns(file, columns):
        keys = _keys(frame[position])
        if keys is None or (position == columns.image and "" in keys.distinct):
            return None
        texts[position] = keys
    return texts


def _keys(texts: pd.Series) -> CodedKeys | None:
    """Return the texts of a column as keys; None where pandas took them for something else: inf, True."""
    if texts.dtype == object:
        return factorise(texts.to_numpy())
    distinct = texts.cat.categories.tolist()
    if not all(isinstance(text, str) for text in distinct):
        return None
    return _in_order(distinct, texts.cat.codes.to_numpy().astype(np.int64))


def _in_order(distinct: Sequence[Key], codes: RowIndices) -> CodedKeys:
    """Return keys that are used, in order of appearance."""
    first = np.full(len(distinct), len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # backwards: the first row is written last and stays
    used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
    new = np.zeros(len(distinct), dtype=np.int64)
    new[used] = np.arange(len(used))
    return CodedKeys([distinct[row] for row in used.tolist()], new[codes])


def _cells(frame: pd.DataFrame, columns: Columns) -> BoxCells | None:
    """Return the numbers and flags; None where one is not plain, or a box is incomplete."""
    numbers = {position: frame[position].to_numpy() for position in _number_columns(columns)}
    coords = np.stack([numbers[position] for position in columns.box], axis=1)
    empty = np.isnan(coords)
    without = empty[:, 0] & empty[:, 1] & empty[:, 2] & empty[:, 3]
    rows = np.flatnonzero(~without)
    if (empty.any() and empty[rows].any()) or not all(map(_is_plain, numbers.values())):
        return None
    flags = {flag: parse_flags(frame[position].to_numpy()[rows]) for flag, position in columns.flags.items()}
    score, area = (_given(numbers, column, rows) for column in (columns.score, columns.area))
    if any(len(bad) for _, bad in flags.values()) or (score is not None and np.isnan(score).any()):
        return None
    return BoxCells(
        used=np.arange(len(frame)),
        sizes=None if columns.size is None else np.stack([numbers[side] for side in columns.size], axis=1),
        without_box=np.flatnonzero(without),
        rows=rows,
        coords=_of_rows(coords, rows),
        score=score,
        area=area,
        flags={flag: values for flag, (values, _) in flags.items()},
        decimal_commas=False,
    )


def _given(numbers: Mapping[int, FloatArray], column: int | None, rows: RowIndices) -> FloatArray | None:
    """Return the numbers of some rows of a column, None where all are empty or there is none."""
    values = None if column is None else _of_rows(numbers[column], rows)
    return None if values is None or np.isnan(values).all() else values


def _of_rows(values: FloatArray, rows: RowIndices) -> FloatArray:
    return values if len(rows) == len(values) else values[rows]


def _is_plain(numbers: FloatArray) -> bool:
    """Whether numbers are finite where given, and may not stand for a column of true and false."""
    finite = np.isfinite(numbers)
    if not finite.all():
        numbers, finite = numbers[~np.isnan(numbers)], finite[~np.isnan(numbers)]
    first = numbers[:SAMPLE]
    may_be_flags = len(first) > 0 and bool(((first == 0) | (first == 1)).all())
    return bool(finite.all()) and not (may_be_flags and bool(((numbers == 0) | (numbers == 1)).all()))
