"""The Markdown report, for pull requests and job summaries: GitHub tables, users' strings made inert."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import Block, Cell, Drawing, Note, Report, Section, Table, build_report
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.text import printable

SUFFIXES = (".md", ".markdown")
ERRORS = True
_SPECIAL = re.compile(r"([\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_]))")  # an underscore within a word is none
_LINKED = re.compile(r"\b(?:https?|ftp)(?=://)|\bwww(?=\.)|@(?=\w)", re.IGNORECASE)  # what GitHub links by itself
_PARTED = "<!-- -->"  # an empty comment shows nothing, and parts what would be linked


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the report with a heading per section, the signature last."""
    return render_report(build_report(result, options))


def render_report(report: Report) -> str:
    """Return what `render` does of a report that is put together already."""
    parts = [f"<!-- {report.marker} -->"] if report.marker else []
    parts += [f"## {_escape(report.title)}", *map(_section, report.sections)]
    parts += [f"Signature: {_escape(report.signature)}"] if report.signature else []
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> str:
    return "\n\n".join([f"### {_escape(section.title)}", *map(_block, section.blocks)])


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Note):
        return _escape(block.text)
    if isinstance(block, Drawing):
        return "\n".join(["```text", *block.lines, "```"])
    return _bullets(f"{term}: {text}" for term, text in block.pairs)


def _table(table: Table) -> str:
    head = [column.title for column in table.columns]
    rule = ["---" if column.free_text or column.left else "---:" for column in table.columns]
    return "\n".join([_row(map(_escape, head)), _row(rule), *(_row(map(_cell, row)) for row in table.rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _escape(cell)
    return metric_text(cell) if isinstance(cell, float) else f"{cell:,}"


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(text)}" for text in texts)


def _escape(text: str) -> str:
    """Make text stand for itself: it gives no control characters, HTML, table cells, emphasis, links or mentions."""
    escaped = _SPECIAL.sub(r"\\\1", html.escape(printable(text), quote=False))
    return _LINKED.sub(rf"\g<0>{_PARTED}", escaped)
