"""Rows of delimited text, with their places, and the table of boxes that they make."""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import Key, key_order
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import CodedKeys
from jaccard_eval.reading.tabular.columns import (
    CLASS_IDS,
    KERAS_HEADER,
    Columns,
    RowIndices,
    TextArray,
    count_known,
    explain_no_header,
    is_keras_row,
    parse_integers,
    position_of,
)
from jaccard_eval.text import quoted_value

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Images or classes of rows, and what the table says of them beside."""

    keys: CodedKeys
    # Names of keys, in the order of reports; those without a box may be among them. Empty where keys are the names.
    names: Mapping[Key, str]
    named: bool = True  # whether these names are more than the keys as text
    # Column of the keys, where they stand beside the names; no other list of names is asked then.
    beside: int | None = None


class Rows(Protocol):
    """Rows that have a box each, or name an image without one, in whatever kind of file they stand."""

    @property
    def header(self) -> tuple[str, ...]:
        """Name of each column."""

    @property
    def headerless(self) -> bool:
        """Whether the names are not in the file."""

    @property
    def listed(self) -> bool:
        """Whether the rows name all images there are."""

    @property
    def units(self) -> str | None:
        """The units of the boxes, where the file says so."""

    def __len__(self) -> int: ...

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row, or of one of its cells."""

    def has_value(self, column: int, rows: Codes) -> BoolArray:
        """Return which cells of a column hold anything."""

    def images(self, columns: Columns, rows: Codes) -> Named:
        """Return the images of some rows."""

    def classes(self, columns: Columns, rows: Codes) -> Named:
        """Return the classes of some rows: integers where every one is an integer, else texts."""


def pair_names(ids: CodedKeys, names: CodedKeys) -> dict[Key, str]:
    """Return the name of each id, sorted by id; none unless each has one, and no other has it."""
    first = _first_codes(ids, names)
    is_one_to_one = len(ids.distinct) == len(names.distinct) == len(np.unique(first))
    return first_names(ids, names) if is_one_to_one and bool((first[ids.codes] == names.codes).all()) else {}


def first_names(ids: CodedKeys, names: CodedKeys) -> dict[Key, str]:
    """Return the name that stands beside each id where it is first seen, sorted by id."""
    rows = _first_codes(ids, names).tolist()
    named = zip(ids.distinct, (str(names.distinct[row]) for row in rows), strict=True)
    return dict(sorted(named, key=lambda pair: key_order(pair[0])))


def _first_codes(ids: CodedKeys, names: CodedKeys) -> Codes:
    first = np.zeros(len(ids.distinct), dtype=np.int64)  # (ids,) of the rows of names
    first[ids.codes[::-1]] = names.codes[::-1]  # backwards: the first row is written last and stays
    return first


DELIMITERS = ",;\t|"
QUOTE_FIX = 'Close each quoted field; double a quote inside one ("").'
HEADER_FIX = "Start the file with a line such as image,class,xmin,ymin,xmax,ymax."

_LINE_BREAK = re.compile(r"\r\n|\r|\n")

# keras-retinanet writes an image without objects as path,,,,, but four commas are seen as well.
_SHORT_KERAS_ROW = re.compile(rb"^([^,\"\r\n]+,,,,)(?=\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class TextFile:
    """A delimited file, before its cells are told apart."""

    path: str
    data: bytes  # UTF-8 text, kept so that lines can be counted when a message needs one
    delimiter: str
    header: tuple[str, ...]
    first_line: int  # of the header, or of the first row where there is none
    headerless: bool  # whether `header` is not in the file
    # Nothing says whether the rows name all images there are, or what the units of the boxes are.
    listed: ClassVar[bool] = False
    units: ClassVar[str | None] = None

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row, or of one of its cells, by the line on which the row starts."""
        line = self._lines[row + (not self.headerless)]
        return Where(self.path, line=line, field=None if column is None else self.header[column])

    @cached_property
    def _lines(self) -> list[int]:
        text = self.data.decode("utf-8")
        with _fields_up_to(len(text)):
            return [line for line, _ in _records(text, self.delimiter)]


class TextRows(TextFile, ABC):
    """The rows of a delimited file, of which some columns can be had as keys."""

    @abstractmethod
    def keys(self, column: int, rows: RowIndices) -> CodedKeys:
        """Return the texts of some rows of a column: the distinct ones in order of appearance."""

    def images(self, columns: Columns, rows: RowIndices) -> Named:
        """Return the images of some rows, texts as written."""
        return Named(keys=self.keys(columns.image, rows), names={})

    def classes(self, columns: Columns, rows: RowIndices) -> Named:
        """Return the classes of some rows: integers where every one is written as an integer, else texts.

        Numbers that stand beside the names, one for each, are the keys.
        """
        keys = self.keys(columns.label, rows)
        integers = _integers(keys)
        if integers is not None:
            return Named(keys=integers, names={})
        beside = position_of(self.header, CLASS_IDS)
        numbers = None if beside is None else _integers(self.keys(beside, rows))
        names = {} if numbers is None else pair_names(numbers, keys)
        return Named(keys=numbers, names=names, beside=beside) if numbers and names else Named(keys=keys, names={})


@dataclass(frozen=True)
class Sheet(TextRows):
    """The cells of a delimited file below its header, column by column, as text.

    Parameters
    ----------
    columns : tuple of ndarray of object
        Texts, each of shape (n,).
    """

    columns: tuple[TextArray, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def has_value(self, column: int, rows: RowIndices) -> BoolArray:
        """Return which cells of a column hold anything."""
        filled: BoolArray = self.columns[column][rows] != ""
        return filled

    def keys(self, column: int, rows: RowIndices) -> CodedKeys:
        """Return the texts of some rows of a column: the distinct ones in order of appearance."""
        return factorise(self.columns[column][rows])


def _integers(keys: CodedKeys) -> CodedKeys | None:
    """Return the integers that texts are, when all are written as one is printed."""
    integers = parse_integers([str(text) for text in keys.distinct])
    return None if integers is None else CodedKeys(integers, keys.codes)


def factorise(cells: TextArray) -> CodedKeys:
    """Return the distinct texts in order of appearance, and the row of each cell among them."""
    import pandas as pd

    codes, texts = pd.factorize(cells, use_na_sentinel=False)
    return CodedKeys([str(text) for text in texts], codes.astype(np.int64))


def open_table(path: Path, findings: FindingLog) -> TextFile:
    """Read a delimited file as it is, but for comments, and its first line."""
    data = files.read_bytes(path)
    text = files.decode(path, data)
    if b"#" in data and (data.startswith(b"#") or b"\n#" in data) and data.count(b"\r") == data.count(b"\r\n"):
        text = _without_comments(text, Where(str(path)), findings)
        data = text.encode("utf-8")
    line, start = first_line(text)
    where = Where(str(path), line=line)
    if not start:
        raise DataError.single("file-empty", where, "the file is empty: blank lines, no header", fix="Export it again.")
    delimiter, first = split_first_line(start)
    headerless = is_keras_row(first)
    if headerless:
        data = _SHORT_KERAS_ROW.sub(rb"\1,", data)
    elif not count_known(first):
        raise DataError.single("csv-header", where, explain_no_header(first), fix=HEADER_FIX)
    header = KERAS_HEADER[: len(first)] if headerless else tuple(cell.strip() for cell in first)
    return TextFile(str(path), data, delimiter, header, line, headerless)


def _without_comments(text: str, where: Where, findings: FindingLog) -> str:
    """Empty the lines that start with # and have not the fields of a row, so that all others keep their numbers."""
    lines = text.split("\n")
    marked = [row for row, line in enumerate(lines) if line.startswith("#")]
    header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    delimiter, fields = split_first_line(first_line(header)[1])
    n_quotes = np.cumsum([line.count('"') for line in lines])
    comments = [
        row
        for row in marked
        if lines[row].count(delimiter) != len(fields) - 1 and (row == 0 or n_quotes[row - 1] % 2 == 0)
    ]
    findings.add_rows(
        Severity.NOTE,
        "csv-comment",
        comments,
        lambda row: (Where(where.path, line=row + 1), quoted_value(lines[row])),
        summary=f"lines that start with # were passed over as comments: {len(comments):,}",
    )
    left = {*comments}
    return "\n".join("" if row in left else line for row, line in enumerate(lines))


def is_rectangular(data: bytes, delimiter: str, texts: Iterable[Iterable[object]], shape: tuple[int, int]) -> bool:
    """Whether no row was short: pandas refuses long rows and fills short ones, so the delimiters must add up.

    Parameters
    ----------
    data : bytes
    delimiter : str
    texts : iterable of columns
        Those that may hold delimiters, in quotes.
    shape : (int, int)
        Lines, the header included, and columns that there should be.
    """
    n_lines, n_fields = shape
    between = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord(delimiter)))
    if b'"' in data:
        between -= sum("".join(map(str, column)).count(delimiter) for column in texts)
    return between == n_lines * (n_fields - 1)


def read_sheet(file: TextFile) -> Sheet:
    """Tell the cells of a delimited file apart."""
    cells = _read_cells(Path(file.path), file.data, file.delimiter)
    plain = file.headerless
    header = KERAS_HEADER[: len(cells)] if plain else tuple(str(column[0]).strip() for column in cells)
    columns = tuple(cells if plain else [column[1:] for column in cells])
    return Sheet(file.path, file.data, file.delimiter, header, file.first_line, plain, columns)


def first_line(text: str) -> tuple[int, str]:
    """Return number and text of the first line that is not blank; a newline within quotes may cut it."""
    rest = text.lstrip()
    skipped = text[: len(text) - len(rest)]
    end = _LINE_BREAK.search(rest)
    return len(_LINE_BREAK.findall(skipped)) + 1, rest if end is None else rest[: end.start()]


def split_first_line(line: str) -> tuple[str, list[str]]:
    """Return the delimiter that shows most known names in a first line, else most fields, and the fields."""
    with _fields_up_to(len(line)):
        choices = [(mark, next(csv.reader([line], delimiter=mark, skipinitialspace=True))) for mark in DELIMITERS]
    return max(choices, key=lambda choice: (count_known(choice[1]), len(choice[1])))


def _read_cells(path: Path, data: bytes, delimiter: str) -> list[TextArray]:
    """Parse every cell as text, the header's included."""
    import pandas as pd

    table = data if data.count(b"\r") == data.count(b"\r\n") else _without_lone_returns(path, data, delimiter)
    try:
        frame = pd.read_csv(
            io.BytesIO(table),
            sep=delimiter,
            header=None,
            dtype=object,
            na_filter=False,
            skipinitialspace=True,
            low_memory=False,
        )
    except pd.errors.ParserError as error:
        raise _shape_error(path, data, delimiter, str(error)) from None
    columns = [frame[position].to_numpy() for position in frame.columns]
    if not is_rectangular(table, delimiter, columns, (len(columns[0]), len(columns))):
        raise _shape_error(path, data, delimiter, "rows differ in their number of fields")
    return columns


def _records(text: str, delimiter: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the starting line and the fields of each record that is not blank: slow, for messages only."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=strict)
    start = 1
    for fields in reader:
        if len(fields) > 1 or "".join(fields).strip(" \t"):
            yield start, fields
        start = reader.line_num + 1


@contextmanager
def _fields_up_to(length: int) -> Iterator[None]:
    """Let the csv module take long fields for a while: its limit is a setting of the process."""
    usual = csv.field_size_limit(length + 1)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _without_lone_returns(path: Path, data: bytes, delimiter: str) -> bytes:
    """Write lines that end in a carriage return anew: after one, pandas 3.1 loses a row's empty first field."""
    text = data.decode("utf-8")
    table = io.StringIO(newline="")
    writer = csv.writer(table, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    try:
        with _fields_up_to(len(text)):
            writer.writerows(fields for _, fields in _records(text, delimiter, strict=True))
    except csv.Error as error:
        raise DataError.single("csv-quote", Where(str(path)), f"quotes do not pair: {error}", fix=QUOTE_FIX) from None
    return table.getvalue().encode("utf-8")


def _shape_error(path: Path, data: bytes, delimiter: str, reason: str) -> DataError:
    """Make the error that names every row that has not as many fields as the first one."""
    text = data.decode("utf-8")
    with _fields_up_to(len(text)):
        records = list(_records(text, delimiter))
    if "EOF inside string" in reason:
        where = Where(str(path), line=records[-1][0])
        return DataError.single("csv-quote", where, "a quoted field opens in this row and never closes", fix=QUOTE_FIX)
    expected = len(records[0][1])
    uneven = [row for row, (_, fields) in enumerate(records) if len(fields) != expected]
    if not uneven:
        return DataError.single("csv-fields", Where(str(path)), f"cannot be split into columns: {reason}")

    def describe(row: int) -> tuple[Where, str]:
        line, fields = records[row]
        others = [mark for mark in DELIMITERS if fields[0].count(mark) == expected - 1]
        hint = f" (delimited by {quoted_value(others[0])}, unlike the first line?)" if others else ""
        return Where(str(path), line=line), f"expected {expected} fields, got {len(fields)}{hint}"

    log = FindingLog()
    fix = "Give each row one field per column; quote fields that hold the delimiter."
    log.add_rows(Severity.ERROR, "csv-fields", uneven, describe, fix=fix)
    return DataError(log.findings())
