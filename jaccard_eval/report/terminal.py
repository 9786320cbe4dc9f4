"""The text report on a terminal: drawn by rich, which whoever imports this module loads; never for a pipe or a file."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from jaccard_eval.frozen import dataclass
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import (
    GAP,
    GIVING,
    INDENT,
    TEXT_KINDS,
    Drawing,
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

NARROWEST, HEIGHT = 40, 25  # a narrower terminal breaks lines itself; how high it is changes nothing
WIDEST = 160  # columns of a terminal that prose takes
FOLDED_ROWS = 8  # from so many on, a table that may fold does
BAR, SHORTEST_BAR = 12, 6  # columns
ARROWS = {"+": "▲ ", "-": "▼ "}  # before a difference
STYLES = {"plain": "", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim"}
RULE = "    \n    \n {0}{0} \n    \n    \n    \n    \n    \n"  # below the head of a table; see `rich.box.Box`


class _Terminal(Console):
    def show_cursor(self, show: bool = True) -> bool:
        """Let it stand, for a process that is killed would leave it hidden."""
        return False


def make_console(file: TextIO, width: int, *, color: bool) -> Console:
    """Return what draws on a terminal: texts are taken as they are, and nothing is asked of the environment."""
    return _Terminal(
        file=file,
        width=width,
        height=HEIGHT,
        force_terminal=True,
        force_interactive=True,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the report of a result; see `lay_out`."""
    return lay_out(build_report(result, options), options)


def lay_out(report: Report, options: ReportOptions) -> str:
    """Return what draws a report in `options.width` columns, the headline last."""
    drawn = io.StringIO()
    width = max(options.width or 0, NARROWEST)
    page = _Page(make_console(drawn, width, color=options.color), options.encoding, width)
    if not (options.quiet and report.headline is not None):
        page.put(page.text(report.title, "bold"))
        for section in report.sections:
            page.put(Text())
            page.put(page.text(section.title, "bold"))
            for block in section.in_text(verbose=options.verbose):
                page.block(block)
        if report.signature or report.headline:
            page.put(Text())
        for line in signature_lines(report, options, width):
            page.console.print(Text(line, "dim"), soft_wrap=True)
    if report.headline is not None:
        spans = ((inert(span.text, options.encoding), f"bold {STYLES[span.look]}") for span in report.headline.spans)
        page.console.print(Text.assemble(*spans), soft_wrap=True)
    return drawn.getvalue()


@dataclass(frozen=True, slots=True)
class PathEnd:
    """A path that loses its first folders where there is little room: paths differ at their ends."""

    path: str
    style: str = ""
    dots: str = "…"

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        """Return the least and the most columns that it takes."""
        return Measurement(1, max(cell_len(self.path), 1)).with_maximum(options.max_width)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield as much of the end as there is room for, from the beginning of a folder if that does."""
        shown, room = self.path, options.max_width - cell_len(self.dots)
        if cell_len(shown) > options.max_width:
            while shown and cell_len(shown) > room:
                shown = shown[1:]
            shown = self.dots + (shown[shown.index("/") :] if "/" in shown[:-1] else shown)
        yield Text(shown, self.style, no_wrap=True)


@dataclass(frozen=True, slots=True)
class _Page:
    """Puts blocks on a console, in the characters that its stream can hold."""

    console: Console
    encoding: str
    width: int

    def put(self, what: RenderableType, width: int = 0) -> None:
        """Draw something in so many columns, as many as the terminal has where that is not given."""
        self.console.width = width or self.width
        self.console.print(what)

    def text(self, text: str, style: str = "") -> Text:
        """Return text of a user, taken as it is."""
        return Text(inert(text, self.encoding), style, overflow="fold")

    def block(self, block: TextBlock) -> None:
        """Draw a block."""
        if isinstance(block, Table):
            self._table(block)
        elif isinstance(block, Note):
            self._prose(self.text(block.text, STYLES[block.look]))
        elif isinstance(block, Drawing):
            for line in block.lines if is_unicode(self.encoding) else block.ascii_lines:
                self.console.print(self.text(" " * INDENT + line), soft_wrap=True)
        else:
            grid = Grid.grid(padding=(0, GAP, 0, 0))
            grid.add_column(style=STYLES[block.look])
            for term, text in block.pairs:
                grid.add_row(self.text(term), self.text(text))
            self._prose(grid)

    def _prose(self, what: RenderableType) -> None:
        self.put(Padding.indent(what, INDENT), min(self.width, WIDEST))

    def _table(self, table: Table) -> None:
        """Draw a table; a long one in two halves side by side, a wide one in parts, each with the first column."""
        columns, room, n = text_columns(table, self.encoding), self.width - INDENT, len(table.rows)
        # What pleases comes where there is room for it.
        signed = [_signed(column) for column in columns] if is_unicode(self.encoding) else columns
        columns = signed if _natural(signed) <= room else columns
        if table.foldable and n >= FOLDED_ROWS and 2 * (_natural(columns) + GAP) <= room:
            halves = Grid.grid(padding=(0, 2 * GAP, 0, 0))
            halves.add_row(*(self._part(columns, rows) for rows in (range((n + 1) // 2), range((n + 1) // 2, n))))
            self.put(Padding.indent(halves, INDENT))
            return
        bars: list[RenderableType] = []
        place = next((i for i, column in enumerate(table.columns) if column.title == table.bars), -1)
        width = min(room - _natural(columns) - GAP, BAR)
        if table.bars and place >= 0 and is_unicode(self.encoding) and width >= SHORTEST_BAR:
            # What is undefined has none.
            bars = [
                draw_bar(cell, width) if isinstance(cell := row[place], float) and not math.isnan(cell) else Text()
                for row in table.rows
            ]
        for part in parts(columns, room):
            # A number that has no room goes over the edge: it is not cut.
            least = INDENT + sum(column.least + GAP for column in part) - GAP
            self.put(Padding.indent(self._part(part, range(n), table.bars, bars), INDENT), max(self.width, least))

    def _part(
        self, columns: Sequence[TextColumn], rows: Sequence[int], title: str = "", bars: Sequence[RenderableType] = ()
    ) -> Grid:
        """Return some rows of columns, the head above a rule, and bars of their own title."""
        rule = Box(RULE.format("─" if is_unicode(self.encoding) else "-"))
        grid = Grid(box=rule, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), border_style="dim")
        for column in columns:
            grid.add_column(
                Text(column.title, "bold"),
                justify="left" if column.kind in TEXT_KINDS else "right",
                no_wrap=column.kind not in GIVING,
                # The oldest rich adds the gap, which the last column does not have.
                min_width=column.least - (GAP - 1) * (column is columns[-1]),
            )
        if bars:
            grid.add_column(self.text(title, "bold"))
        for row in rows:
            grid.add_row(*(self._cell(column, row) for column in columns), *bars[row : row + 1])
        return grid

    def _cell(self, column: TextColumn, row: int) -> RenderableType:
        text, style = column.texts[row], STYLES[column.looks[row]]
        if column.kind == "path":
            return PathEnd(text, style, inert("…", self.encoding))
        return Text(text, style, overflow="fold", no_wrap=column.kind not in GIVING)


def _natural(columns: Sequence[TextColumn]) -> int:
    """Return how wide a table is whose texts do not give way."""
    return sum(column.width + GAP for column in columns) - GAP


def _signed(column: TextColumn) -> TextColumn:
    """Return a column, of differences with arrows that show their direction."""
    if column.kind != "delta":
        return column
    return replace(column, texts=[ARROWS.get(text[:1], "") + text for text in column.texts])


def draw_bar(value: float, width: int = BAR) -> ProgressBar:
    """Return a value from 0 to 1 as a bar."""
    return ProgressBar(1, value, width, style="dim", complete_style="cyan", finished_style="cyan")
