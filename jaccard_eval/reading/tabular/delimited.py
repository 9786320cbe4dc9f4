"""Delimited text to a table of boxes: a short way for plain cells, as most files have them, and a long way for all.

A pandas table is read as the file that pandas writes of it: the two never differ. Columns of numbers and of texts are
taken as they are, which is the short way without a file. Whatever else a table holds, and whatever must be reported,
goes through the text that it would be written as.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.blocks import cut_lines, joined_tail, needs_whole, open_blocks, part_of
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.reading.tabular.columns import (
    DELIMITERS,
    IMAGE,
    NOT_USED,
    PIECE,
    Columns,
    RowIndices,
    Sheet,
    TextArray,
    TextFile,
    has_decimal_commas,
    is_kaggle,
    is_keras_row,
    is_rectangular,
    lacks_class,
    may_lack_class,
    meant_header,
    open_table,
    outdone_names,
    parse_numbers,
    parse_table,
    position_of_strings,
    read_naming,
    read_sheet,
    resolve_columns,
    split_packed,
)
from jaccard_eval.reading.tabular.table import (
    NO_CLASS,
    BoxCells,
    Column,
    NumberColumn,
    PackedColumn,
    Table,
    TextColumn,
    add_boxes,
    is_whole_decimal,
    lacks_scores,
    looks_normalised,
    note_no_class,
    read_cells,
)
from jaccard_eval.text import is_numeral, pluralise, quoted_value

if TYPE_CHECKING:
    import pandas as pd


GROUPS = {
    6: ("class", "confidence", "xmin", "ymin", "xmax", "ymax"),  # VinBigData, SIIM-COVID-19, Open Images
    5: ("confidence", "left", "top", "width", "height"),  # Global Wheat, RSNA
}
ONE_CLASS = str(NO_CLASS)
NOTHING = (0.0, 0.0, 1.0, 1.0)  # the box of "14 1 0 0 1 1" and "none 1 0 0 1 1": nothing was found

_SAMPLE = 200  # strings by which the layout of groups is found

WHOLE_LIMIT = 1e15  # up to which floats that are whole are written with ".0"
SINGLE_DIGITS = 9  # with so many, every number of single precision is another text
MAX_EXPONENT = 12  # 10 ** (12 + 9) is still exact in float64
# What readers of delimited text look at twice: quotes, ends of lines, a byte order mark; blanks and comments in front.
_NOT_PLAIN = frozenset('\0\r\n"\ufeff')
_NOT_FIRST = tuple(" \t#")


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


ROW_BYTES = 60  # of a row, about, for so many of them at a time
LONGEST = 8  # parts that one row may take: a quote that never closes must not fill the memory
SAMPLE = 100  # numbers that show most columns not to be true and false


def add_delimited(path: Path, draft: Draft) -> None:
    """Add the images, classes and boxes of a delimited file to the draft."""
    add_file(open_table(path, draft), draft)


def delimited_in_parts(path: Path, draft: Draft, rows: int) -> Iterator[Draft]:
    """Yield drafts with the boxes of about so many rows each, read below the header of the file."""
    size = rows * ROW_BYTES
    head, n_head, n_lines = b"", 0, 0
    with open_blocks(path, size) as opened:
        blocks = (block for block in cut_lines(path, opened, LONGEST * size, quoted=True) if block.strip())
        for block in joined_tail(blocks, size):
            with part_of(draft, lines=n_lines - n_head) as part:
                file = parse_table(path, head + block, part)
                if not n_lines and not file.headerless:
                    head = file.data[: end_of_line(file.data, file.first_line)]
                    n_head = file.first_line
                _require_plain_rows(file, draft.options)
                found = read_file(file, part)
                part.findings.raise_errors()
                if found is not None:
                    _require_keys_as_written(file, found[0], found[1])
                    add_boxes(*found, part)
                yield part
            n_lines += block.count(b"\n")


def _require_plain_rows(file: TextFile, options: ReadOptions) -> None:
    """Raise the error about rows of which only all together show where they end, or what a box is."""
    if b"\r" in file.data and file.data.count(b"\r") != file.data.count(b"\r\n"):
        raise needs_whole(file.path, "lone returns end lines")
    if is_kaggle(file.header) or may_lack_class(file.header, options):
        raise needs_whole(file.path, "a row has more than one box, or no class")


def _require_keys_as_written(file: TextFile, table: Table, columns: Columns) -> None:
    """Raise the error about keys such as 1.0: whether they are 1 is decided by those of all rows."""
    for position in columns.of_keys(file.header):
        column = table.columns[position]
        if isinstance(column, TextColumn) and any(map(is_whole_decimal, column.values.distinct)):
            raise needs_whole(file.path, f"ids in the column {quoted_value(table.titles[position])} end with .0")


def add_file(file: TextFile, draft: Draft) -> None:
    """Add what a delimited file holds."""
    found = read_file(file, draft)
    if found is not None:
        add_boxes(*found, draft)


def read_file(file: TextFile, draft: Draft) -> tuple[Table, Columns, BoxCells] | None:
    """Read a delimited file, the short way where that will do; None, with findings, where a column is missing."""
    plain = plain_table(file, draft.options)
    if plain is not None:
        return plain
    found = text_table(file, draft)
    if found is None:
        return None
    table, columns = found
    return table, columns, read_cells(table, columns, draft.findings)


def plain_table(file: TextFile, options: ReadOptions) -> tuple[Table, Columns, BoxCells] | None:
    """Read a file the short way; None if anything must be reported about a column or a cell, or one may be odd."""
    # pandas treats a lone return as the end of a line, and loses cells after it; see `read_sheet`.
    if b"\r" in file.data and file.data.count(b"\r") != file.data.count(b"\r\n"):
        return None
    if file.data.count(b'"', 0, end_of_line(file.data, file.first_line)) % 2:  # a heading goes on in the next line
        return None
    columns = plain_columns(file, options)
    if columns is None or len(columns.box) == 1:
        return None
    numbers, texts = columns.of_numbers, columns.of_keys(file.header)
    frame = _parse(file, list(numbers), texts)
    # An invalid number is reported by the long way, which has the text of its cell.
    if frame is None or not all(is_plain(frame[position].to_numpy()) for position in numbers):
        return None
    found: dict[int, Column] = {position: NumberColumn(frame[position].to_numpy()) for position in numbers}
    for position in (*texts, *columns.flags.values()):
        coded = _coded(frame[position])
        if coded is None:
            return None
        found[position] = TextColumn(coded)
    return plain_rows(file, columns, found, len(frame), options)


def plain_columns(file: TextFile, options: ReadOptions) -> Columns | None:
    """Return what the columns of a table are; None if anything must be reported about them."""
    findings = FindingLog()
    if is_kaggle(file.header) or may_lack_class(file.header, options):
        return None
    columns = resolve_columns(file.header, options, findings, Where(file.path))
    return None if findings.findings() else columns


def plain_rows(
    file: TextFile, columns: Columns, found: Mapping[int, Column], n_rows: int, options: ReadOptions
) -> tuple[Table, Columns, BoxCells] | None:
    """Return a table of columns that were read already; None if anything must be reported about a cell."""
    findings = FindingLog()
    table = Table(
        header=file.header,
        titles=file.titles,
        columns=found,
        n_rows=n_rows,
        place=file.place,
        typed=False,
        headerless=file.headerless,
    )
    cells = read_cells(table, columns, findings)
    unused = columns.unused_score
    # Only the scores of boxes decide whether they mean anything; see `text_table`.
    says_nothing = unused is not None and not is_plain(found[unused].values[cells.rows])
    # Where scores are missing every column is looked at, as it may hold them.
    is_long = says_nothing or lacks_scores(cells, options) or findings.findings()
    return None if is_long else (table, columns, cells)


def _parse(file: TextFile, numbers: list[int], texts: set[int]) -> pd.DataFrame | None:
    """Parse numbers as numbers, NaN where empty; None where a cell is none, or rows are not equally long."""
    import pandas as pd

    start = 0 if file.headerless else end_of_line(file.data, file.first_line)
    # What texts that start with a letter in the first row are pandas finds out sooner than it makes objects of them.
    end = file.data.find(b"\n", start)
    first = file.data[start : None if end < 0 else end].decode("utf-8").split(file.delimiter)
    words = [at for at in texts if at < len(first) and first[at].lstrip()[:1].isalpha()]
    kinds: dict[int, Any] = dict.fromkeys(range(len(file.header)), object) | dict.fromkeys(numbers, np.float64)
    table = io.BytesIO(file.data)  # which shares the bytes
    table.seek(start)
    # The default is exact since pandas 3.1, which deprecates the option.
    has_precision = "float_precision" in (pd.read_csv.__kwdefaults__ or {})
    read_csv: Any = partial(pd.read_csv, float_precision="round_trip") if has_precision else pd.read_csv
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # of pieces some are all numbers: see `_coded`
            frame: pd.DataFrame = read_csv(
                table,
                sep=file.delimiter,
                header=None,
                dtype={position: kind for position, kind in kinds.items() if position not in words},
                na_values={position: [""] for position in numbers},
                # Names such as NA, null and None are names.
                keep_default_na=False,
                skipinitialspace=_has_leading_blanks(file.data, file.delimiter),  # a third slower where it is set
            )
    except (ValueError, OverflowError):  # ParserError and EmptyDataError are ValueErrors
        return None
    if not len(frame) or frame.shape[1] != len(file.header):
        return None
    # Every row must have all columns: pandas fills short ones.
    quoted = (frame[position] for position in range(frame.shape[1]) if position not in numbers)
    shape = len(frame) + (not file.headerless), len(file.header)
    return frame if is_rectangular(file.data, file.delimiter, quoted, shape) else None


def _has_leading_blanks(table: bytes, delimiter: str) -> bool:
    """Whether a cell may start with a blank."""
    if b"\t" in table or table.startswith(b" "):
        return True
    text = np.frombuffer(table, dtype=np.uint8)
    pieces = (text[at : at + PIECE + 1] for at in range(0, len(text), PIECE))
    before = (piece[:-1][piece[1:] == ord(" ")] for piece in pieces)
    return any(bool(((marks == ord(delimiter)) | (marks == ord("\n"))).any()) for marks in before)


def end_of_line(data: bytes, number: int) -> int:
    """Return where a line ends, counted from 1."""
    end = 0
    for _ in range(number):
        end = data.find(b"\n", end) + 1 or len(data)
    return end


def _coded(texts: pd.Series) -> CodedKeys | None:
    """Return the distinct texts of a column; None where pandas took any for something else: inf, True, 007."""
    import pandas as pd

    if texts.dtype.kind != "O":
        return None
    codes, found = pd.factorize(texts, use_na_sentinel=False)
    distinct = found.tolist()
    return CodedKeys(distinct, codes) if all(isinstance(text, str) for text in distinct) else None


def factorise(cells: TextArray) -> CodedKeys:
    """Return the distinct texts in order of appearance, and the row of each cell among them."""
    import pandas as pd

    codes, texts = pd.factorize(cells, use_na_sentinel=False)
    return CodedKeys([str(text) for text in texts], codes.astype(np.int64))


def is_plain(numbers: FloatArray) -> bool:
    """Whether numbers are finite where given, and cannot be a column of true and false."""
    finite = np.isfinite(numbers)
    if not finite.all():
        numbers, finite = numbers[~np.isnan(numbers)], finite[~np.isnan(numbers)]
    # Asked for floats, pandas reads True as 1: such a column is looked at as text.
    first = numbers[:SAMPLE]
    may_be_flags = len(first) > 0 and bool(((first == 0) | (first == 1)).all())
    return bool(finite.all()) and not (may_be_flags and bool(((numbers == 0) | (numbers == 1)).all()))


def text_table(file: TextFile, draft: Draft) -> tuple[Table, Columns] | None:
    """Read a file the long way, odd cells made plain; None, with findings, where a column is missing."""
    sheet = read_sheet(file)
    if is_kaggle(sheet.header) or may_lack_class(sheet.header, draft.options):
        sheet = one_row_per_box(sheet, draft)
    where = Where(file.path, line=file.first_line)
    columns = resolve_columns(sheet.header, draft.options, draft.findings, where)
    if columns is None:
        return None
    sheet = _without_blank_rows(sheet, columns, draft)
    # Only rows with a box show how numbers are written, and what scores mean.
    filled = np.logical_and.reduce([sheet.cells[column] != "" for column in columns.box])
    boxes = sheet.take(np.flatnonzero(filled))
    unused = columns.unused_score
    if unused is not None and {*boxes.cells[unused]} <= {"", "1", "1.0"}:
        columns = replace(columns, unused_score=None)  # those of Open Images are all 1, and mean nothing
    commas = _has_commas(boxes, columns)
    return Table(
        header=sheet.header,
        titles=sheet.titles,
        columns={at: TextColumn(factorise(cells), commas) for at, cells in enumerate(sheet.cells)},
        n_rows=len(sheet),
        place=sheet.place,
        typed=False,
        headerless=file.headerless,
        decimal_commas=commas,
    ), columns


def _without_blank_rows(sheet: Sheet, columns: Columns, draft: Draft) -> Sheet:
    """Return the rows that hold anything."""
    nameless = np.flatnonzero(sheet.cells[columns.image] == "")
    blank = [row for row in nameless.tolist() if not any(column[row].strip() for column in sheet.cells)]
    if not blank:
        return sheet
    draft.ignored["csv-row-blank"] += len(blank)
    draft.findings.add_rows(
        Severity.WARNING,
        "csv-row-blank",
        blank,
        lambda row: (sheet.where(row), "the row is empty"),
        summary=lambda n: f"ignored {pluralise(n, 'empty row')} (delimiters only)",
    )
    return sheet.take(np.delete(np.arange(len(sheet)), blank))


def _has_commas(boxes: Sheet, columns: Columns) -> bool:
    """Whether the numbers of rows with a box are written with decimal commas."""
    cells = [boxes.cells[column] for column in columns.box]
    if len(cells) == 1:
        cells, _ = split_packed(cells[0])
    optional = [boxes.cells[column] for column in (columns.score, columns.area) if column is not None]
    # A column that no box has anything in would count as numbers without a comma.
    return has_decimal_commas([*cells, *(column for column in optional if (column != "").any())], boxes.file.delimiter)


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
