"""What text reports have in common, on terminals and elsewhere: columns of inert texts, and how tables are divided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from jaccard_eval.frozen import dataclass
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Kind, Look, Report, Table, cell_text, look_of
from jaccard_eval.text import broken, columns_of, encodable, printable

INDENT = GAP = 2
LEAST = 12  # columns that are left of texts and paths where a terminal is narrow
GIVING = ("text", "name", "path")  # kinds of columns that a terminal may make narrower
SIGNATURE = "signature  "


def signature_lines(report: Report, options: ReportOptions, width: int) -> list[str]:
    """Return a signature in lines that end behind a part of it: without blanks they are the signature again."""
    text = report.signature
    if text and not (options.verbose or options.is_file):
        from jaccard_eval.data.signature import abridged_signature  # brings NumPy along, and not every report has one

        text = abridged_signature(text, report.usual)
    room = max(width - len(SIGNATURE), LEAST)
    # A part may be a list of many names.
    parts = broken(inert(text, options.encoding), room, "|") if text else []
    lines = [line for part in parts for line in broken(part, room, ",")]
    return [f"{'' if i else SIGNATURE:{len(SIGNATURE)}}{line}" for i, line in enumerate(lines)]


def inert(text: str, encoding: str) -> str:
    """Return text that cannot act on a terminal, in the characters that an encoding has."""
    return encodable(printable(text), encoding)


def is_unicode(encoding: str) -> bool:
    """Whether an encoding has all characters."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8")


@dataclass(frozen=True)
class TextColumn:
    """A column of a table, its cells as texts that are inert."""

    title: str
    kind: Kind
    texts: list[str]
    looks: list[Look]

    @cached_property
    def width(self) -> int:
        """Columns of the screen that the widest text takes."""
        return max(map(columns_of, (self.title, *self.texts)))

    @property
    def least(self) -> int:
        """Columns of the screen below which something would be cut that must not be."""
        return min(self.width, LEAST) if self.kind in GIVING else self.width


def text_columns(table: Table, encoding: str) -> list[TextColumn]:
    """Return the columns of a table with the characters that an encoding has."""
    columns = []
    for i, column in enumerate(table.columns):
        values = [row[i] for row in table.rows]
        texts = [inert(cell_text(value, column.kind), encoding) for value in values]
        looks = [look_of(value, column.kind) for value in values]
        columns.append(TextColumn(inert(column.title, encoding), column.kind, texts, looks))
    return columns


def parts(columns: Sequence[TextColumn], room: int) -> list[list[TextColumn]]:
    """Divide columns into tables that fit when their texts give way; each begins with the first column."""
    first, *rest = columns
    divided, used = [[first]], first.least
    for column in rest:
        used += GAP + column.least
        if used > room and len(divided[-1]) > 1:
            divided.append([first])
            used = first.least + GAP + column.least
        divided[-1].append(column)
    return divided
