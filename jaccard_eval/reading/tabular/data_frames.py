"""pandas tables, read as the delimited files that pandas writes of them: a table and its file never differ.

Columns of numbers and of texts are taken as they are, which is the short way of `delimited` without a file. Whatever
else a table holds, and whatever must be reported, goes through the text that it would be written as.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.reading.tabular.boxes import add_boxes
from jaccard_eval.reading.tabular.columns import Columns, is_keras_row, meant_header, read_naming
from jaccard_eval.reading.tabular.delimited import add_file, factorise, is_plain, plain_columns, plain_rows
from jaccard_eval.reading.tabular.rows import DELIMITERS, TextFile, parse_table
from jaccard_eval.reading.tabular.table import BoxCells, Column, NumberColumn, PackedColumn, Table, TextColumn
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    import pandas as pd

WHOLE_LIMIT = 1e15  # up to which floats that are whole are written with ".0"
SINGLE_DIGITS = 9  # with so many, every number of single precision is another text
MAX_EXPONENT = 12  # 10 ** (12 + 9) is still exact in float64
# What readers of delimited text look at twice: quotes, ends of lines, a byte order mark; blanks and comments in front.
_NOT_PLAIN = frozenset('\0\r\n"\ufeff')
_NOT_FIRST = tuple(" \t#")


def add_frame(frame: pd.DataFrame, draft: Draft) -> None:
    """Add a pandas table."""
    unnamed = [name for name in frame.columns if not isinstance(name, str)]
    if unnamed:
        detail = f"columns need names, such as image, class, xmin; got {quoted_value(unnamed[0])}"
        raise DataError.single("csv-header", Where(draft.path), detail, fix="Rename the columns of the DataFrame.")
    # An index with a name is a column; one without counts rows.
    frame = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
    plain = _plain_table(frame, draft)
    if plain is not None:
        add_boxes(*plain, draft)
        return
    text = (frame.apply(_plain_column) if len(frame) else frame).to_csv(index=False, lineterminator="\n")
    data = text.encode("utf-8", "surrogatepass")
    add_file(replace(parse_table(Path(draft.path), data, draft), is_frame=True), draft)


def _plain_column(column: pd.Series) -> pd.Series:
    if column.dtype.kind == "O":
        # Arrays print as text with eight digits, lists of NumPy numbers as calls.
        plain = [np.asarray(cell).tolist() if isinstance(cell, list | tuple | np.ndarray) else cell for cell in column]
        # By cell, as `map` would look for pandas' own type of texts, which holds no lone surrogates.
        import pandas as pd

        return pd.Series(plain, index=column.index, dtype=object)
    # With missing cells, pandas turns the 1 of a flag or an id into 1.0.
    return column.astype("Int64") if _is_whole_with_gaps(column) else column


def _is_whole_with_gaps(column: pd.Series) -> bool:
    if column.dtype.kind != "f" or not column.hasnans:
        return False
    given = column.dropna()
    return bool(((given % 1 == 0) & (given.abs() < 2.0**53)).all())


def _plain_table(frame: pd.DataFrame, draft: Draft) -> tuple[Table, Columns, BoxCells] | None:
    """Take the columns of a table as they are; None where it has to be read as text."""
    titles = tuple(map(str, frame.columns))
    is_odd = any(not _is_plain_text(title) or set(DELIMITERS) & {*title} for title in titles)
    if not len(frame) or is_odd or is_keras_row(titles):
        return None
    naming = read_naming(draft.options.columns)
    titles = tuple(title.strip() for title in titles)
    header = meant_header(titles, naming)
    file = TextFile(draft.path, b"", ",", titles, header, 1, headerless=False, naming=naming, is_frame=True)
    columns = plain_columns(file, draft.options)
    if columns is None:
        return None
    texts = {*columns.of_keys(header), *columns.flags.values()}
    found: dict[int, Column] = {}
    for at in range(len(titles)):
        column: Column | None = None
        if at in texts:
            keys = _keys_of(frame.iloc[:, at])
            column = None if keys is None else TextColumn(keys)
        elif len(columns.box) == 1 and at in columns.box:
            column = _boxes_of(frame.iloc[:, at])
        elif at in columns.of_numbers:
            numbers = _numbers_of(frame.iloc[:, at])
            column = NumberColumn(numbers) if numbers is not None and is_plain(numbers) else None
        elif frame.dtypes.iloc[at].kind in "biuf" or _keys_of(frame.iloc[:, at]) is not None:
            continue  # nobody asks for it, and it does not keep the others from being read
        if column is None:
            return None
        found[at] = column
    return plain_rows(file, columns, found, len(frame), draft.options)


def _numbers_of(column: pd.Series) -> FloatArray | None:
    """Return a column of numbers; None of anything else."""
    kind = column.dtype.kind
    if kind not in "iuf":
        return None
    # pandas' own types, which know missing cells, are those of NumPy within.
    own: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
    if kind == "f" and own.itemsize < np.dtype(np.float64).itemsize:
        given: npt.NDArray[Any] = column.to_numpy(own, na_value=np.nan)
        return shortest_decimals(given) if own == np.float32 else given.astype(str).astype(np.float64)
    return np.ascontiguousarray(column.to_numpy(np.float64, na_value=np.nan))


def shortest_decimals(numbers: npt.NDArray[np.float32]) -> FloatArray:
    """Return the numbers that single precision is written as: 0.1, where the widened one is 0.10000000149."""
    wide = numbers.astype(np.float64)
    found = np.where(np.isfinite(wide) & (wide != 0), np.nan, wide)
    exponent = np.zeros(len(wide), dtype=np.int64)
    left = np.flatnonzero(np.isnan(found) & ~np.isnan(wide))
    exponent[left] = np.floor(np.log10(np.abs(wide[left]))).astype(np.int64)
    # Only so far are the power of ten and the quotient exact; the few others are written and read.
    left = left[np.abs(exponent[left]) <= MAX_EXPONENT]
    for n_digits in range(1, SINGLE_DIGITS + 1):
        scale = 10.0 ** (n_digits - 1 - exponent[left])
        upper = np.maximum(scale, 1.0)
        lower = np.maximum(10.0 ** (exponent[left] - n_digits + 1), 1.0)
        decimal = np.rint(wide[left] * upper / lower) / upper * lower
        fits = decimal.astype(np.float32) == numbers[left]
        found[left[fits]] = decimal[fits]
        left = left[~fits]
    rest = np.flatnonzero(np.isnan(found) & ~np.isnan(wide))
    found[rest] = numbers[rest].astype(str).astype(np.float64)
    return found


def _boxes_of(column: pd.Series) -> Column | None:
    """Return a column of four numbers in each cell; None of anything else."""
    cells = column.tolist()
    if column.dtype.kind != "O" or not all(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
        return None
    try:
        boxes = np.array(cells)
    except ValueError:  # of different lengths
        return None
    if boxes.ndim != 2 or boxes.shape[1] != 4 or boxes.dtype.kind not in "iuf":
        return None
    values = np.ascontiguousarray(boxes, dtype=np.float64)
    return PackedColumn(values) if np.isfinite(values).all() else None


def _keys_of(column: pd.Series) -> CodedKeys | None:
    """Return the texts that a column is written as, empty where a cell is missing; None where that is not plain."""
    kind = column.dtype.kind
    if kind in "iub" and not column.hasnans:
        codes = factorise(column.to_numpy())
        return CodedKeys([str(value) for value in codes.distinct], codes.codes)
    if kind == "f":
        numbers = column.to_numpy(np.float64, na_value=np.nan)
        given = numbers[~np.isnan(numbers)]
        if not ((given % 1 == 0) & (np.abs(given) < WHOLE_LIMIT)).all():
            return None
        texts = _whole_texts(numbers, is_float=len(given) == len(numbers))
        return factorise(texts)
    # Categories and pandas' own texts are objects then.
    if kind != "O":
        return None
    missing, cells = column.isna().to_numpy(), column.to_numpy(dtype=object)
    if missing.any():
        cells = np.where(missing, "", cells)
    if not all(type(cell) is str for cell in cells):
        return None
    keys = factorise(cells)
    return keys if all(_is_plain_text(str(text)) for text in keys.distinct) else None


def _whole_texts(numbers: FloatArray, *, is_float: bool) -> npt.NDArray[np.object_]:
    """Return whole numbers as they are written: as floats where none is missing."""
    ending = ".0" if is_float else ""
    distinct, places = np.unique(numbers, return_inverse=True)
    texts = ["" if np.isnan(number) else f"{int(number)}{ending}" for number in distinct]
    return np.array(texts, dtype=object)[places]


def _is_plain_text(text: str) -> bool:
    """Whether a text is read from a file as it is, wherever it stands."""
    return not text.startswith(_NOT_FIRST) and _NOT_PLAIN.isdisjoint(text) and (text.isascii() or _is_unicode(text))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
