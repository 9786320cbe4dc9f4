"""The page of a text report, laid out: the only module that knows rich.

Numbers are never cut: a table is made as wide as its numbers need, and only columns of free text wrap.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Block, Cell, Drawing, Note, Report, Table
from jaccard_eval.report.numbers import UNDEFINED, metric_text
from jaccard_eval.text import printable

MAX_WIDTH = 160  # columns; wider lines are hard to read across
FREE_TEXT_WIDTH = 10  # columns that free text keeps at least
INDENT = 2
GAP = 2  # blanks between columns, the divider included
_RULED = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_RULED_ASCII = box.Box(str(_RULED).replace("─", "-"), ascii=True)


def draw_page(report: Report, options: ReportOptions) -> str:
    """Return the lines of a report; each fits `options.width` when its numbers do."""
    page = _Page(options)
    parts = list(page.lay_out(report))
    text = io.StringIO()
    console = Console(
        file=text,
        width=max(part.width for part in parts),
        force_terminal=options.color,
        color_system="standard" if options.color else None,
        no_color=not options.color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        console.print(part.shown, width=part.width)
    if report.signature:
        console.print()
        # In one piece, to be copied and searched.
        console.print(page.text(f"signature  {report.signature}"), soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])


@dataclass(frozen=True, slots=True)
class _Part:
    """What rich prints, and the columns that it may take."""

    shown: RenderableType
    width: int


class _Page:
    """Turns blocks into what rich prints, in the characters that the stream can hold."""

    def __init__(self, options: ReportOptions) -> None:
        self._encoding = options.encoding
        self._is_unicode = options.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
        self._width = min(options.width, MAX_WIDTH)

    def lay_out(self, report: Report) -> Iterator[_Part]:
        """Yield the parts of the page, in order; a table below which a number would be cut is wider than the page."""
        yield _Part(self.text(report.title, "bold"), self._width)
        for section in report.sections:
            yield from (_Part("", self._width), _Part(self.text(section.title, "bold"), self._width))
            for block in section.blocks:
                needed = self._table_width(block) if isinstance(block, Table) else 0
                yield _Part(Padding(self._block(block), (0, 0, 0, INDENT)), max(self._width, needed))

    def text(self, text: str, style: str = "") -> Text:
        """Return text that cannot act on the terminal and that the stream can encode."""
        inert = printable(text)
        return Text(inert.encode(self._encoding, "backslashreplace").decode(self._encoding), style, overflow="fold")

    def _block(self, block: Block) -> RenderableType:
        if isinstance(block, Table):
            return self._table(block)
        if isinstance(block, Note):
            return self.text(block.text, "dim")
        if isinstance(block, Drawing):
            lines = block.lines if self._is_unicode else block.ascii_lines
            return Text("\n").join(map(self.text, lines))
        facts = RichTable.grid(padding=(0, GAP, 0, 0))
        facts.add_column(no_wrap=True)
        facts.add_column(overflow="fold")
        for term, text in block.pairs:
            facts.add_row(self.text(term), self.text(text))
        return facts

    def _table(self, table: Table) -> RichTable:
        lines = _RULED if self._is_unicode else _RULED_ASCII
        rich_table = RichTable(
            box=lines, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold"
        )
        for column in table.columns:
            if column.free_text:
                rich_table.add_column(self.text(column.title), overflow="fold")
            elif column.left:
                rich_table.add_column(self.text(column.title), no_wrap=True)
            else:
                rich_table.add_column(self.text(column.title), justify="right", no_wrap=True)
        for row in table.rows:
            rich_table.add_row(*map(self.cell, row))
        return rich_table

    def cell(self, cell: Cell) -> Text:
        """Return one cell; what is undefined is dim."""
        if isinstance(cell, str):
            return self.text(cell)
        shown = metric_text(cell) if isinstance(cell, float) else f"{cell:,}"
        return Text(shown, "dim" if shown == UNDEFINED else "")

    def _table_width(self, table: Table) -> int:
        """Columns below which a number would be cut."""
        width = INDENT
        for i, column in enumerate(table.columns):
            cells = (self.cell(row[i]).plain for row in table.rows)
            widest = max(map(cell_len, (column.title, *cells)))
            width += GAP + (min(widest, FREE_TEXT_WIDTH) if column.free_text else widest)
        return width
