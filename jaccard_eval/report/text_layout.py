"""The layout of a text report: fitted to the width of a terminal, or with whole lines for pipes, logs and files.

Numbers are never cut. On a terminal free texts wrap, paths lose their beginning, and a table that is still too wide
goes on below itself. Elsewhere a table is as wide as its texts, and only prose breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

from jaccard_eval.frozen import dataclass
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    TEXT_KINDS,
    Drawing,
    Headline,
    Kind,
    Look,
    Note,
    Report,
    Table,
    TextBlock,
    cell_text,
    look_of,
)
from jaccard_eval.text import broken, columns_of, encodable, painted, printable

MAX_LINE = 200  # characters of prose where there is no terminal; more are hard to read in a log
MAX_WIDTH = 160  # columns of a terminal that prose takes
INDENT = GAP = 2
FOLDED_ROWS = 8  # from so many on, a table that may fold does
# How far columns give way, one after the other, where a table is wider than the terminal.
NARROWING: tuple[tuple[Kind, int], ...] = (("text", 20), ("path", 24), ("text", 10), ("path", 16), ("name", 10))
LEAST: Mapping[Kind, int] = dict(NARROWING)  # the later ones count
SIGNATURE = "signature  "


def lay_out(report: Report, options: ReportOptions) -> str:
    """Return the lines of a report, the headline last; each fits `options.width` when its numbers do."""
    page = _Page(options.encoding, options.width, options.color)
    if options.quiet and report.headline is not None:
        return f"{page.headline(report.headline)}\n"
    lines = page.title(report.title)
    for section in report.sections:
        lines += ["", *page.title(section.title)]
        for block in section.in_text(verbose=options.verbose):
            lines += page.block(block)
    if report.signature or report.headline:
        lines.append("")
    if report.signature:
        lines += page.signature(report.signature if options.verbose or options.is_file else _abridged(report))
    if report.headline is not None:
        lines.append(page.headline(report.headline))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _abridged(report: Report) -> str:
    from jaccard_eval.data.signature import abridged_signature  # brings NumPy along, and not every report has one

    return abridged_signature(report.signature, report.usual)


@dataclass(frozen=True)
class _Column:
    """A column of a table, its cells as texts that are inert."""

    title: str
    kind: Kind
    texts: list[str]
    looks: list[Look]

    @cached_property
    def width(self) -> int:
        """Columns of the terminal that the widest text takes."""
        return max(map(columns_of, (self.title, *self.texts)))

    @property
    def least(self) -> int:
        """Columns of the terminal below which something would be cut that must not be."""
        return max(columns_of(self.title), min(self.width, LEAST.get(self.kind, self.width)))


@dataclass(frozen=True, slots=True)
class _Page:
    """Turns blocks into lines, in the characters that a stream of this encoding can hold."""

    encoding: str
    width: int | None  # of the terminal; None where there is none
    color: bool

    @property
    def is_unicode(self) -> bool:
        """Whether any character can be shown."""
        return self.encoding.lower().replace("_", "-") in ("utf-8", "utf8")

    def inert(self, text: str) -> str:
        """Return text that cannot act on the terminal and that the stream can encode."""
        return encodable(printable(text), self.encoding)

    def painted(self, text: str, look: Look | Literal["bold"]) -> str:
        """Return text, made inert, in its look."""
        return painted(self.inert(text), look) if self.color else self.inert(text)

    def title(self, title: str) -> list[str]:
        """Return a title, broken at blanks where a terminal is narrower."""
        text = self.inert(title)
        lines = [text] if self.width is None else broken(text, max(self.width, LEAST["text"]), " ")
        return [self.painted(line, "bold") for line in lines]

    def headline(self, headline: Headline) -> str:
        """Return the spans of a headline in their looks."""
        return "".join(self.painted(span.text, span.look) for span in headline.spans)

    def signature(self, signature: str) -> list[str]:
        """Return a signature in lines that end behind a part of it: without blanks they are the signature again."""
        room = max(min(self.width or MAX_LINE, MAX_LINE) - len(SIGNATURE), LEAST["text"])
        # A part may be a list of many names.
        lines = [line for part in broken(self.inert(signature), room, "|") for line in broken(part, room, ",")]
        return [self.painted(f"{'' if i else SIGNATURE:{len(SIGNATURE)}}{line}", "dim") for i, line in enumerate(lines)]

    def block(self, block: TextBlock) -> list[str]:
        """Return the lines of a block."""
        if isinstance(block, Table):
            return self._table(block)
        if isinstance(block, Note):
            return self._prose(block.text, look=block.look)
        if isinstance(block, Drawing):
            drawn = block.lines if self.is_unicode else block.ascii_lines
            return [" " * INDENT + self.inert(line) for line in drawn]
        terms = [self.inert(term) for term, _ in block.pairs]
        hanging = max(map(columns_of, terms), default=0) + GAP
        lines = []
        for term, (_, text) in zip(terms, block.pairs, strict=True):
            head = self.painted(term, block.look) + " " * (hanging - columns_of(term))
            lines += self._prose(text, head, hanging)
        return lines

    def _prose(self, text: str, head: str = "", hanging: int = 0, look: Look = "plain") -> list[str]:
        """Return text broken at blanks, a head of `hanging` columns before it and blanks below that."""
        limit = MAX_LINE if self.width is None else min(self.width, MAX_WIDTH)
        lines = broken(self.inert(text), max(limit - INDENT - hanging, LEAST["text"]), " ")
        heads = [head, *[" " * hanging] * (len(lines) - 1)]
        return [f"{'':{INDENT}}{head}{self.painted(line, look)}" for head, line in zip(heads, lines, strict=True)]

    def _table(self, table: Table) -> list[str]:
        """Return a table, its head above a rule; one that is too wide in parts, each with the first column."""
        columns = []
        for i, column in enumerate(table.columns):
            values = [row[i] for row in table.rows]
            texts = [self.inert(cell_text(value, column.kind)) for value in values]
            # The first column names the row: it gives way last.
            kind = "name" if i == 0 and column.kind == "text" else column.kind
            looks = [look_of(value, column.kind) for value in values]
            columns.append(_Column(self.inert(column.title), kind, texts, looks))
        room = (MAX_LINE if self.width is None else self.width) - INDENT
        if table.foldable and self.width is not None:
            columns = _abreast(columns, room)
        lines = []
        for part in _parts(columns, room):
            # Where there is no terminal, a text breaks no line.
            widths = [column.width for column in part] if self.width is None else _fitted(part, room)
            titles = [self._aligned(of, of.title, "plain", width) for of, width in zip(part, widths, strict=True)]
            lines.append(self.painted((" " * GAP).join(titles).rstrip(), "bold"))
            lines.append(self.inert("─") * _total(widths))
            for i in range(len(part[0].texts)):
                cells = [self._cell(column, i, width) for column, width in zip(part, widths, strict=True)]
                height = max(map(len, cells))
                filled = [
                    cell + [" " * width] * (height - len(cell)) for cell, width in zip(cells, widths, strict=True)
                ]
                lines += [(" " * GAP).join(line) for line in zip(*filled, strict=True)]
        return [" " * INDENT + line for line in lines]

    def _cell(self, column: _Column, i: int, width: int) -> list[str]:
        """Return the lines of a cell."""
        text, look = column.texts[i], column.looks[i]
        if column.kind == "path":
            return [self._aligned(column, self._shortened(text, width), look, width)]
        lines = _folded(text, width) if column.kind in TEXT_KINDS else [text]
        return [self._aligned(column, line, look, width) for line in lines]

    def _aligned(self, column: _Column, text: str, look: Look, width: int) -> str:
        """Return a text of a column with blanks to its width."""
        blanks = " " * (width - columns_of(text))
        shown = self.painted(text, look)
        return shown + blanks if column.kind in TEXT_KINDS else blanks + shown

    def _shortened(self, path: str, width: int) -> str:
        """Return a path without as many of its first folders as it takes; paths differ at their ends."""
        if columns_of(path) <= width:
            return path
        dots = self.inert("…")
        folders = path.split("/")
        for i in range(1, len(folders)):
            end = f"{dots}/{'/'.join(folders[i:])}"
            if columns_of(end) <= width and any(folders[i:]):
                return end
        while path and columns_of(dots + path) > width:
            path = path[1:]
        return dots + path


def _folded(text: str, room: int) -> list[str]:
    """Break a text at blanks, and words that are longer than a line where it ends."""
    lines = []
    for line in broken(text, room, " "):
        start, used = 0, 0
        for i, character in enumerate(line):
            used += columns_of(character)
            if used > room and i > start:
                lines.append(line[start:i])
                start, used = i, columns_of(character)
        lines.append(line[start:])
    return lines


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _abreast(columns: list[_Column], room: int) -> list[_Column]:
    """Return a long table with its second half next to the first, where both fit."""
    n = len(columns[0].texts)
    if n < FOLDED_ROWS or 2 * _total([column.width for column in columns]) + 2 * GAP > room:
        return columns
    half = (n + 1) // 2
    left = [_Column(of.title, of.kind, of.texts[:half], of.looks[:half]) for of in columns]
    rest: list[Look] = ["plain"] * (2 * half - n)
    right = [_Column(of.title, of.kind, of.texts[half:] + [""] * len(rest), of.looks[half:] + rest) for of in columns]
    return [*left, _Column("", "word", [""] * half, ["plain"] * half), *right]


def _parts(columns: Sequence[_Column], room: int) -> list[list[_Column]]:
    """Divide columns into tables that fit when their texts give way; each begins with the first column."""
    first, *rest = columns
    parts, used = [[first]], first.least
    for column in rest:
        used += GAP + column.least
        if used > room and len(parts[-1]) > 1:
            parts.append([first])
            used = first.least + GAP + column.least
        parts[-1].append(column)
    return parts


def _fitted(columns: Sequence[_Column], room: int) -> list[int]:
    """Return widths with which columns fit, as far as they can give way."""
    widths = [column.width for column in columns]
    for kind, least in NARROWING:
        flexible = [i for i, column in enumerate(columns) if column.kind == kind]
        while flexible and _total(widths) > room:
            widest = max(flexible, key=widths.__getitem__)
            if widths[widest] <= max(least, columns[widest].least):
                flexible.remove(widest)
            else:
                widths[widest] -= 1
    return widths
