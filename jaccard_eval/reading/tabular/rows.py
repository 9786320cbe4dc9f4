"""Delimited text: its first line, its cells as text, and the line on which each row stands."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.columns import (
    KERAS_HEADER,
    RowIndices,
    TextArray,
    count_known,
    explain_no_header,
    is_keras_row,
    meant_header,
    read_naming,
)
from jaccard_eval.text import pluralise, quoted_value

DELIMITERS = ",;\t|"
PIECE = 1 << 20  # bytes that are looked at together: they stay in the cache of the processor
QUOTE_FIX = 'Close each quoted field; double a quote inside one ("").'
HEADER_FIX = "Start the file with a line such as image,class,xmin,ymin,xmax,ymax."

_LINE_BREAK = pattern(r"\r\n|\r|\n")

# keras-retinanet writes an image without objects as path,,,,, but four commas are seen as well.
_SHORT_KERAS_ROW = pattern(rb"^([^,\"\r\n]+,,,,)(?=\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class TextFile:
    """A delimited file, before its cells are separated."""

    path: str
    data: bytes  # UTF-8 text, kept so that lines can be counted when a message needs one
    delimiter: str
    titles: tuple[str, ...]  # of the header
    header: tuple[str, ...]  # the same by what columns mean, if the user names it
    first_line: int  # of the header, or of the first row where there is none
    headerless: bool  # whether the titles are not in the file
    naming: Mapping[str, str]  # from the user's option
    is_frame: bool = False  # whether this was a DataFrame: messages name rows, from 0

    def place(self, row: int, column: str | None = None) -> Where:
        """Return the place of a row, or of its cell in a column, by the line on which the row starts."""
        if self.is_frame:
            return Where(self.path, record=f"row {row}", field=column)
        return Where(self.path, line=self._lines[row + (not self.headerless)], field=column)

    @cached_property
    def _lines(self) -> list[int]:
        # Quoted cells hold line breaks, so that lines are counted by a parser that knows quotes: once, for messages.
        text = self.data.decode("utf-8")
        with fields_up_to(len(text)):
            return [line for line, _ in _records(text, self.delimiter)]


@dataclass(frozen=True)
class Sheet:
    """The cells of a delimited file below its header, as text, while odd ones are made plain."""

    file: TextFile
    header: tuple[str, ...]
    titles: tuple[str, ...]  # the header as the file has it
    cells: tuple[TextArray, ...]  # by column, (n,) each
    source: RowIndices  # the row of the file that each row came from

    def __len__(self) -> int:
        return len(self.source)

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row in the file, or of one of its cells."""
        return self.place(row, None if column is None else self.titles[column])

    def place(self, row: int, column: str | None) -> Where:
        """Return the place of a row in the file, or of its cell in a column."""
        return self.file.place(int(self.source[row]), column)

    def take(self, rows: RowIndices) -> Sheet:
        """Return some of the rows, which may be there more than once."""
        return replace(self, cells=tuple(column[rows] for column in self.cells), source=self.source[rows])


def open_table(path: Path, draft: Draft) -> TextFile:
    """Read a delimited file as it is, except for comments, and its first line."""
    return parse_table(path, files.read_bytes(path), draft)


def parse_table(path: Path, data: bytes, draft: Draft) -> TextFile:
    """Find the first line of what a delimited file holds, without its comments."""
    naming = read_naming(draft.options.columns)
    text = files.decode(path, data)
    # Where lone returns end lines, the whole file would be one line that starts with #.
    if b"#" in data and (data.startswith(b"#") or b"\n#" in data) and data.count(b"\r") == data.count(b"\r\n"):
        text = _without_comments(text, Where(str(path)), naming, draft.findings)
        data = text.encode("utf-8")
    line, start = first_line(text)
    where = Where(str(path), line=line)
    if not start:
        raise DataError.single("file-empty", where, "the file is empty: blank lines, no header", fix="Export it again.")
    delimiter, first = split_first_line(start, naming)
    headerless = is_keras_row(first)
    if headerless:
        # Done to the bytes, so that both ways through the file see rows of one length.
        data = _SHORT_KERAS_ROW.sub(rb"\1,", data)
    elif not count_known(meant_header(first, naming)):
        raise DataError.single("csv-header", where, explain_no_header(first), fix=HEADER_FIX)
    titles = KERAS_HEADER[: len(first)] if headerless else tuple(cell.strip() for cell in first)
    return TextFile(str(path), data, delimiter, titles, meant_header(titles, naming), line, headerless, naming)


def _without_comments(text: str, where: Where, naming: Mapping[str, str], findings: FindingLog) -> str:
    """Empty the lines that start with # and have not the fields of a row, so that all others keep their numbers."""
    lines = text.split("\n")
    marked = [row for row, line in enumerate(lines) if line.startswith("#")]
    header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    delimiter, fields = split_first_line(first_line(header)[1], naming)
    # An odd number of quotes before a line means that it stands within a quoted cell.
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
        summary=lambda n: f"ignored {pluralise(n, 'line')} starting with # (comments)",
    )
    left = {*comments}
    return "\n".join("" if row in left else line for row, line in enumerate(lines))


def is_rectangular(data: bytes, delimiter: str, texts: Iterable[Iterable[object]], shape: tuple[int, int]) -> bool:
    """Whether no row was short: pandas refuses long rows and fills short ones, so the delimiters must add up.

    `texts` are the columns that may hold delimiters, in quotes; `shape` is how many lines, the header included, and
    columns there should be.
    """
    n_lines, n_fields = shape
    text, mark = np.frombuffer(data, dtype=np.uint8), ord(delimiter)
    between = sum(int(np.count_nonzero(text[at : at + PIECE] == mark)) for at in range(0, len(text), PIECE))
    if b'"' in data:
        between -= sum("".join(map(str, column)).count(delimiter) for column in texts)
    return between == n_lines * (n_fields - 1)


def read_sheet(file: TextFile) -> Sheet:
    """Separate the cells of a delimited file."""
    cells = _read_cells(Path(file.path), file.data, file.delimiter)
    if file.headerless:
        titles = KERAS_HEADER[: len(cells)]
    else:
        # Read anew: a heading may have a line break within quotes, before which the first line ends.
        titles = tuple(str(column[0]).strip() for column in cells)
        cells = [column[1:] for column in cells]
    return Sheet(file, meant_header(titles, file.naming), titles, tuple(cells), np.arange(len(cells[0])))


def first_line(text: str) -> tuple[int, str]:
    """Return number and text of the first line that is not blank; a newline within quotes may cut it."""
    rest = text.lstrip()
    skipped = text[: len(text) - len(rest)]
    end = _LINE_BREAK.search(rest)
    return len(_LINE_BREAK.findall(skipped)) + 1, rest if end is None else rest[: end.start()]


def split_first_line(line: str, naming: Mapping[str, str] = MappingProxyType({})) -> tuple[str, list[str]]:
    """Return the delimiter that shows most known names in a first line, else most fields, and the fields."""
    with fields_up_to(len(line)):
        choices = [(mark, next(csv.reader([line], delimiter=mark, skipinitialspace=True))) for mark in DELIMITERS]
    return max(choices, key=lambda choice: (count_known(meant_header(choice[1], naming)), len(choice[1])))


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
def fields_up_to(length: int) -> Iterator[None]:
    """Let the csv module read long fields for a while: its limit is a setting of the process."""
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
        with fields_up_to(len(text)):
            writer.writerows(fields for _, fields in _records(text, delimiter, strict=True))
    except csv.Error as error:
        raise DataError.single("csv-quote", Where(str(path)), f"quotes do not pair: {error}", fix=QUOTE_FIX) from None
    return table.getvalue().encode("utf-8")


def _shape_error(path: Path, data: bytes, delimiter: str, reason: str) -> DataError:
    """Make the error that names every row that has not as many fields as the first one."""
    text = data.decode("utf-8")
    with fields_up_to(len(text)):
        records = list(_records(text, delimiter))
    if "EOF inside string" in reason:
        where = Where(str(path), line=records[-1][0])
        return DataError.single("csv-quote", where, "a quoted field opens in this row and never closes", fix=QUOTE_FIX)
    # pandas reports only the first long row and no short one; the csv module finds them all.
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
