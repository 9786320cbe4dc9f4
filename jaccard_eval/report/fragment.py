"""A report as a piece of HTML, for a cell of a notebook: tables and texts alone, every string escaped.

The notebook's own style sheet decides how it looks; nothing in it is run, linked or loaded.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import TEXT_KINDS, Drawing, Note, Table, TextBlock, build_report, cell_text
from jaccard_eval.text import printable

SHOWN_ROWS = 100  # of a table; a cell is looked at, not searched


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the headline, then the sections of the report, each below its title, and the signature."""
    report = build_report(result, options)
    parts = [_element("p", f"<b>{_escape(report.headline.text)}</b>")] if report.headline else []
    parts.append(_element("p", _escape(report.title)))
    for section in report.sections:
        parts.append(_element("h4", _escape(section.title)))
        parts += map(_block, section.in_text(verbose=options.verbose))
    if report.signature:
        # One long word: without this it would run out of the cell.
        code = f'<code style="overflow-wrap: anywhere; white-space: normal">{_escape(report.signature)}</code>'
        parts.append(_element("p", f"<small>signature: {code}</small>"))
    return _element("div", "\n".join(parts))


def _block(block: TextBlock) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Note):
        return _element("p", _escape(block.text))
    if isinstance(block, Drawing):
        return _element("pre", _escape("\n".join(block.lines), lines=True))
    return _rows([_element("th", _escape(term)), _element("td", _escape(text))] for term, text in block.pairs)


def _table(table: Table) -> str:
    heads = [_element("th", _escape(column.title)) for column in table.columns]
    rows = []
    for row in table.rows[:SHOWN_ROWS]:
        cells = zip(row, table.columns, strict=True)
        # Notebooks align cells to the right, which suits numbers.
        rows.append(
            [
                _element("td", _escape(cell_text(cell, column.kind)), left=column.kind in TEXT_KINDS)
                for cell, column in cells
            ]
        )
    hidden = len(table.rows) - SHOWN_ROWS
    more = _element("p", f"{hidden:,} more rows") if hidden > 0 else ""
    return _rows([heads, *rows]) + more


def _rows(rows: Iterable[Iterable[str]]) -> str:
    return _element("table", "\n".join(_element("tr", "".join(row)) for row in rows))


def _element(name: str, content: str, *, left: bool = False) -> str:
    style = ' style="text-align: left"' if left else ""
    return f"<{name}{style}>{content}</{name}>"


def _escape(text: str, *, lines: bool = False) -> str:
    """Return text that is shown as it is: no markup, and no formula either, which notebooks find between dollars."""
    shown = "\n".join(map(printable, text.split("\n"))) if lines else printable(text)
    return html.escape(shown).replace("$", "<span>$</span>")
