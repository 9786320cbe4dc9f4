"""The text report of whole lines, for pipes, logs and files: a table is as wide as its texts, and only prose breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from jaccard_eval.frozen import dataclass
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import (
    GAP,
    INDENT,
    LEAST,
    TEXT_KINDS,
    Drawing,
    Look,
    Note,
    Report,
    Table,
    TextBlock,
    TextColumn,
    build_report,
    inert,
    is_unicode,
    parts,
    signature_lines,
    text_columns,
)
from jaccard_eval.text import broken, columns_of, painted

MAX_LINE = 200  # characters; more are hard to read in a log


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the report of a result; see `lay_out`."""
    return lay_out(build_report(result, options), options)


REPORTERS = (Reporter(suffixes=(".txt",), about="text report", render=render),)


def lay_out(report: Report, options: ReportOptions) -> str:
    """Return the lines of a report, the headline last."""
    page = _Page(options.encoding, options.color)
    last = [] if report.headline is None else ["".join(page.shown(of.text, of.look) for of in report.headline.spans)]
    if options.quiet and last:
        return f"{last[0]}\n"
    lines = [page.shown(report.title, "bold")]
    for section in report.sections:
        lines += ["", page.shown(section.title, "bold")]
        for block in section.in_text(verbose=options.verbose):
            lines += page.block(block)
    signature = [page.shown(line, "dim") for line in signature_lines(report, options, MAX_LINE)]
    lines += [*([""] if signature or last else []), *signature, *last]
    return "".join(f"{line.rstrip()}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Page:
    """Turns blocks into lines, in the characters that a stream of this encoding can hold."""

    encoding: str
    color: bool

    def shown(self, text: str, look: Look | Literal["bold"] = "plain") -> str:
        """Return text, made inert, in its look."""
        text = inert(text, self.encoding)
        return painted(text, look) if self.color else text

    def block(self, block: TextBlock) -> Iterator[str]:
        """Yield the lines of a block."""
        if isinstance(block, Table):
            for columns in parts(text_columns(block, self.encoding), MAX_LINE - INDENT):
                yield from self._table(columns)
        elif isinstance(block, Note):
            yield from self._prose(block.text, look=block.look)
        elif isinstance(block, Drawing):
            drawn = block.lines if is_unicode(self.encoding) else block.ascii_lines
            yield from (" " * INDENT + self.shown(line) for line in drawn)
        else:
            widths = [columns_of(inert(term, self.encoding)) for term, _ in block.pairs]
            hanging = max(widths, default=0) + GAP
            for (term, text), width in zip(block.pairs, widths, strict=True):
                yield from self._prose(text, self.shown(term, block.look) + " " * (hanging - width), hanging)

    def _prose(self, text: str, head: str = "", hanging: int = 0, look: Look = "plain") -> Iterator[str]:
        """Yield text broken at blanks, a head of `hanging` columns before it and blanks below that."""
        for line in broken(inert(text, self.encoding), max(MAX_LINE - INDENT - hanging, LEAST), " "):
            yield f"{'':{INDENT}}{head}{self.shown(line, look)}"
            head = " " * hanging

    def _table(self, columns: Sequence[TextColumn]) -> Iterator[str]:
        """Yield a table, its head above a rule."""
        titles, *rows = zip(*map(self._cells, columns), strict=True)
        yield " " * INDENT + self.shown((" " * GAP).join(titles).rstrip(), "bold")
        yield " " * INDENT + self.shown("─") * (sum(column.width + GAP for column in columns) - GAP)
        yield from (" " * INDENT + (" " * GAP).join(row) for row in rows)

    def _cells(self, column: TextColumn) -> Iterator[str]:
        """Yield the cells of a column, its title first, with blanks to its width."""
        for text, look in zip((column.title, *column.texts), ("plain", *column.looks), strict=True):
            blanks, shown = " " * (column.width - columns_of(text)), self.shown(text, look)
            yield shown + blanks if column.kind in TEXT_KINDS else blanks + shown
