"""The Markdown report, for pull requests and job summaries: GitHub tables, users' strings made inert."""

from __future__ import annotations

import html
import re

from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import TEXT_KINDS, Drawing, Note, Report, Table, TextBlock, build_report, cell_text
from jaccard_eval.text import broken, printable

SIGNATURE_LINE = 150  # characters, with which escapes leave a line below 200
_SPECIAL = pattern(r"([\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_]))")  # an underscore within a word is none
_LINKED = pattern(r"\b(?:https?|ftp)(?=://)|\bwww(?=\.)|@(?=\w)", re.IGNORECASE)  # what GitHub links by itself
_PARTED = "<!-- -->"  # an empty comment shows nothing, and parts what would be linked


def render(result: Reportable, options: ReportOptions) -> str:
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
    # HTML first: the entities that it makes have none of Markdown's characters in them.
    escaped = _SPECIAL.sub(r"\\\1", html.escape(printable(text), quote=False))
    return _LINKED.sub(rf"\g<0>{_PARTED}", escaped)


REPORTERS = (Reporter(suffixes=(".md", ".markdown"), about="Markdown report", render=render),)
