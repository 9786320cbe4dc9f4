"""The page of a text report, laid out: the only module that knows rich.

Numbers are never cut: a table is made as wide as its numbers need, and only columns of free text wrap.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Drawing, Headline, KeyValues, Look, Note, Report, Table, cell_text
from jaccard_eval.report.numbers import UNDEFINED
from jaccard_eval.text import printable

MAX_WIDTH = 160  # columns; wider lines are hard to read across
FREE_TEXT_WIDTH = 10  # columns that free text keeps at least
INDENT = 2
STYLES: Mapping[Look, str] = {"plain": "", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim"}
GAP = 2  # blanks between columns, the divider included
_RULED = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_RULED_ASCII = box.Box(str(_RULED).replace("─", "-"), ascii=True)


def draw_page(report: Report, options: ReportOptions) -> str:
    """Return the lines of a report, the headline last; each fits `options.width` when its numbers do."""
    medium = _Medium(options.encoding, options.encoding.lower().replace("_", "-") in ("utf-8", "utf8"))
    usual = min(options.width, MAX_WIDTH)
    parts: list[tuple[RenderableType, int]] = []
    is_whole = report.headline is None or not options.quiet
    parts += [(medium.text(report.title, "bold"), usual)] if is_whole else []
    for section in report.sections if is_whole else ():
        parts += [("", usual), (medium.text(section.title, "bold"), usual)]
        for block in section.in_text():
            shown, needed = medium.table(block) if isinstance(block, Table) else (medium.block(block), 0)
            # A table whose numbers would be cut is wider than the page.
            parts.append((Padding(shown, (0, 0, 0, INDENT)), max(usual, needed)))
    text = io.StringIO()
    console = Console(
        file=text,
        width=max((width for _, width in parts), default=usual),
        force_terminal=options.color,
        color_system="standard" if options.color else None,
        no_color=not options.color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part, width in parts:
        console.print(part, width=width)
    if report.signature and is_whole:
        console.print()
        # In one piece, to be copied and searched.
        console.print(medium.text(f"signature  {report.signature}"), soft_wrap=True)
    if report.headline is not None:
        if is_whole:
            console.print()
        console.print(medium.headline(report.headline), soft_wrap=True)
    # rich fills lines with blanks up to the width.
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])


@dataclass(frozen=True, slots=True)
class _Medium:
    """Turns blocks into what rich prints, in the characters that a stream of this encoding can hold."""

    encoding: str
    is_unicode: bool

    def text(self, text: str, style: str = "") -> Text:
        """Return text that cannot act on the terminal and that the stream can encode."""
        encoded = printable(text).encode(self.encoding, "backslashreplace")
        return Text(encoded.decode(self.encoding), style, overflow="fold")

    def headline(self, headline: Headline) -> Text:
        """Return the spans of a headline in their colours."""
        return Text("").join(self.text(span.text, STYLES[span.look]) for span in headline.spans)

    def block(self, block: KeyValues | Note | Drawing) -> RenderableType:
        """Return what is no table."""
        if isinstance(block, Note):
            return self.text(block.text, "dim")
        if isinstance(block, Drawing):
            return Text("\n").join(map(self.text, block.lines if self.is_unicode else block.ascii_lines))
        facts = RichTable.grid(padding=(0, GAP, 0, 0))
        facts.add_column(no_wrap=True)
        facts.add_column(overflow="fold")
        for term, text in block.pairs:
            facts.add_row(self.text(term), self.text(text))
        return facts

    def table(self, table: Table) -> tuple[RichTable, int]:
        """Return a table, and the columns below which a number would be cut."""
        lines = _RULED if self.is_unicode else _RULED_ASCII
        rich_table = RichTable(
            box=lines, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold"
        )
        needed = INDENT
        shown = []
        for row in table.rows:
            texts = []
            for cell, column in zip(row, table.columns, strict=True):
                text = cell_text(cell, column.kind)
                # What is undefined is dim; a text that happens to read so is the feature's own.
                is_dim = text == UNDEFINED and not isinstance(cell, str)
                texts.append(self.text(text, "dim" if is_dim else ""))
            shown.append(texts)
        for i, column in enumerate(table.columns):
            title = self.text(column.title)
            if column.kind == "text":
                rich_table.add_column(title, overflow="fold")
            else:
                rich_table.add_column(title, justify="left" if column.kind == "word" else "right", no_wrap=True)
            # In cells of the terminal, not characters: a Chinese letter takes two.
            widest = max(cell_len(column.title), *(cell_len(texts[i].plain) for texts in shown), 0)
            needed += GAP + (min(widest, FREE_TEXT_WIDTH) if column.kind == "text" else widest)
        for texts in shown:
            rich_table.add_row(*texts)
        return rich_table, needed
