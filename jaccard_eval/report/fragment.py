"""A report as a piece of HTML, for a cell of a notebook: tables, texts and images in it, every string escaped.

The notebook's own style sheet decides how tables look; images have theirs, which reaches nothing else. Nothing is run,
linked or loaded.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jaccard_eval.frozen import dataclass
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.markup import draw, draw_image, legend
from jaccard_eval.report.model import (
    STATE_TITLES,
    TEXT_KINDS,
    Drawing,
    Gallery,
    Note,
    Section,
    Table,
    TextBlock,
    build_charts,
    build_report,
    cell_text,
)
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.report.sections import MADE
from jaccard_eval.text import printable

SHOWN_ROWS = 100  # of a table; a cell is looked at, not searched
IMAGE_WIDTH = 320  # pixels, so that three stand side by side
ASSETS = Path(__file__).parent / "assets"
# Of the style sheets of a page: the light colours, and the rules for what is drawn, from one line to another.
DRAWN = {"page.css": ("svg { color", "td.drawn svg"), "gallery.css": (".paper {", ".gallery:has")}


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the headline, the first chart, the sections below their titles, and, folded, how all that was made."""
    report = build_report(result, options)
    parts = [_element("p", f"<b>{_escape(report.headline.text)}</b>")] if report.headline else []
    parts.append(_element("p", _escape(report.title)))
    for chart in build_charts(result)[:1]:
        parts.append(_element("h4", _escape(chart.title)))
        parts.append(_picture(draw(chart), chart.title))
        named = [_coloured(name, look.partition(" ")[0]) for look, name in legend(chart)]
        parts += [_element("p", f"<small>{', '.join(named)}</small>")] if named else []
    parts += [text for section in report.sections if section.title not in MADE for text in _section(section, options)]
    made = [text for section in report.sections if section.title in MADE for text in _section(section, options)]
    if report.signature:
        # One long word: without this it would run out of the cell.
        code = f'<code style="overflow-wrap: anywhere; white-space: normal">{_escape(report.signature)}</code>'
        made.append(_element("p", f"<small>signature: {code}</small>"))
    if made:
        parts.append(_element("details", "\n".join(["<summary>How it was made</summary>", *made])))
    return _element("div", "\n".join(parts))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShownImages:
    """Images of a result with what became of their boxes, as a cell of a notebook shows them.

    Parameters
    ----------
    gallery : Gallery
    class_name : str, optional
        The class that they were chosen by, whose boxes stand out.
    """

    gallery: Gallery
    class_name: str | None = None

    def __repr__(self) -> str:
        """Return a line for each image: what is missed, wrong and found in it."""
        of = "" if self.class_name is None else f" of {printable(self.class_name)}"
        lines = [f"{printable(name)}: {counts}" for name, counts in self._counted()]
        return "\n".join(lines) or f"no image has a miss or a false positive{of}"

    def _repr_html_(self) -> str:
        gallery = self.gallery
        if not gallery.images:
            return _element("p", _escape(repr(self)))
        iou = f"{gallery.measure} >= {threshold_text(gallery.iou)}"
        at = _escape(f"score >= {threshold_text(gallery.score)}, {iou}")
        keys = ", ".join(_coloured(title, state) for state, title in STATE_TITLES.items())
        numbers = {name: place for place, name in enumerate(gallery.names)}
        faint = ""
        if self.class_name is not None:
            faint = f'[data-c]:not([data-c="{numbers.get(self.class_name, -1)}"]) {{ opacity: .3; }}'
        cells = []
        for image, (name, counts) in zip(gallery.images, self._counted(), strict=True):
            picture = _picture(draw_image(image, gallery, numbers), name, width=IMAGE_WIDTH, style=faint)
            caption = f"{_escape(name)}<br>{counts}"
            style = f"display: inline-block; vertical-align: top; margin: 0 12px 12px 0; width: {IMAGE_WIDTH}px"
            cells.append(f'<div style="{style}">{picture}<br><small>{caption}</small></div>')
        notes = [_element("p", _escape(note)) for note in gallery.notes]
        return _element("div", "\n".join([_element("p", f"{at}: {keys}"), *cells, *notes]))

    def _counted(self) -> list[tuple[str, str]]:
        """Return the name of each image, and the counts of the boxes that it was chosen by."""
        gallery, counted = self.gallery, []
        for image in gallery.images:
            counts = dict.fromkeys(STATE_TITLES, 0)
            for box in image.boxes:
                if box.shows_at(gallery.score) and self.class_name in (None, box.label):
                    counts[box.state] += 1
            counted.append((image.name, gallery.count_text(counts)))
        return counted


def _picture(drawn: str, title: str, *, width: int | None = None, style: str = "") -> str:
    """Return a drawing as an image of its own: no style of it reaches the notebook, and none of the notebook's it."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {drawn.removeprefix("<svg ").partition(">")[0]}>'
    whole = f"{head}<style>{_style()}{style}</style>{drawn.partition('>')[2]}"
    data = base64.b64encode(whole.encode("utf-8", "replace")).decode()
    sized = "" if width is None else f' width="{width}"'
    return f'<img{sized} alt="{_escape_attribute(title)}" src="data:image/svg+xml;base64,{data}">'


@cache
def _style() -> str:
    """Return the rules of the page for what is drawn, in its light colours whatever the system's: cells are light."""
    rules = []
    for name, (first, end) in DRAWN.items():
        text = (ASSETS / name).read_text(encoding="utf-8")
        colours = text[text.index(":root {") : text.index("}", text.index(":root {")) + 1]
        rules += [colours.replace("light dark", "light"), text[text.index(f"\n{first}") : text.index(f"\n{end}")]]
    return "".join([*rules, "svg { background: var(--bg); font-family: system-ui, sans-serif; }"])


def _coloured(text: str, look: str) -> str:
    """Return text in the colour that the page has for a series or the state of a box."""
    found = re.search(rf"--{look}: (#\w+)", _style())
    return _escape(text) if found is None else f'<span style="color: {found[1]}">{_escape(text)}</span>'


def _section(section: Section, options: ReportOptions) -> list[str]:
    return [_element("h4", _escape(section.title)), *map(_block, section.in_text(verbose=options.verbose))]


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


def _escape_attribute(text: str) -> str:
    # Within an attribute there is no element that could keep two dollars apart.
    return html.escape(printable(text)).replace("$", "&#36;")


def _escape(text: str, *, lines: bool = False) -> str:
    """Return text that is shown as it is: no markup, and no formula either, which notebooks find between dollars."""
    shown = "\n".join(map(printable, text.split("\n"))) if lines else printable(text)
    return html.escape(shown).replace("$", "<span>$</span>")
