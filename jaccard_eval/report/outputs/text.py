"""The report as text: whole lines for pipes, logs and files, and Markdown for pull requests and job summaries.

Tables of lines are as wide as their texts, and only prose breaks; in Markdown, users' strings are made inert.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
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
    cell_text,
    inert,
    is_unicode,
    parts,
    signature_lines,
    text_columns,
)
from jaccard_eval.text import broken, columns_of, painted, printable

SIGNATURE_LINE = 150  # characters, with which escapes leave a line below 200
_SPECIAL = pattern(r"([\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_]))")  # an underscore within a word is none
_LINKED = pattern(r"\b(?:https?|ftp)(?=://)|\bwww(?=\.)|@(?=\w)", re.IGNORECASE)  # what GitHub links by itself
_PARTED = "<!-- -->"  # an empty comment shows nothing, and parts what would be linked


def render_markdown(result: Reportable, options: ReportOptions) -> str:
    """Return the report with a heading per section, the signature and the headline last."""
    return render_report(build_report(result, options), verbose=options.verbose)


def render_report(report: Report, *, verbose: bool = False) -> str:
    """Return what `render` does of a report that is put together already."""
    parts = [f"<!-- {report.marker} -->"] if report.marker else []
    parts.append(f"## {_escape(report.title)}")
    for section in report.sections:
        parts.append(f"### {_escape(section.title)}")
        parts += map(_block, section.in_text(verbose=verbose))
    if report.signature:
        lines = broken(report.signature, SIGNATURE_LINE, "|")
        parts.append("\n".join(map(_escape, [f"Signature: {lines[0]}", *lines[1:]])))
    parts += [_escape(report.headline.text)] if report.headline else []
    return "\n\n".join(parts) + "\n"


def _block(block: TextBlock) -> str:
    if isinstance(block, Table):
        lines = [[_escape(column.title) for column in block.columns]]
        lines.append(["---" if column.kind in TEXT_KINDS else "---:" for column in block.columns])
        for row in block.rows:
            texts = (cell_text(cell, column.kind) for cell, column in zip(row, block.columns, strict=True))
            lines.append(list(map(_escape, texts)))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    if isinstance(block, Note):
        return _escape(block.text)
    if isinstance(block, Drawing):
        return "\n".join(["```text", *block.lines, "```"])
    return "\n".join(f"- {_escape(f'{term}: {text}')}" for term, text in block.pairs)


def _escape(text: str) -> str:
    """Make text literal: it gives no control characters, HTML, table cells, emphasis, links or mentions."""
    import html  # has a table of all entities, and Markdown alone needs it

    # HTML first: the entities that it makes have none of Markdown's characters in them.
    escaped = _SPECIAL.sub(r"\\\1", html.escape(printable(text), quote=False))
    return _LINKED.sub(rf"\g<0>{_PARTED}", escaped)


MAX_LINE = 200  # characters; more are hard to read in a log


def render_text(result: Reportable, options: ReportOptions) -> str:
    """Return the report of a result; see `lay_out`."""
    return lay_out(build_report(result, options), options)


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


REPORTERS = (
    Reporter(suffixes=(".txt",), about="text report", render=render_text),
    Reporter(suffixes=(".md", ".markdown"), about="Markdown report", render=render_markdown),
)
