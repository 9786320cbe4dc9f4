"""Rows of a table as HTML: written here and not in a template, for a page may have 50,000 cells."""

from __future__ import annotations

from html import escape

from jaccard_eval.report.model import TEXT_KINDS, Cell, Column, Drawn, Linked, Table, cell_text, look_of
from jaccard_eval.report.svg import draw_cell
from jaccard_eval.text import printable


def rows(table: Table) -> str:
    """Return all rows, the first cell of each its heading."""
    keys = [f' data-key="{_safe(key)}"' for key in table.keys] or [""] * len(table.rows)
    return "\n".join(f"<tr{key}>{_cells(row, table)}</tr>" for key, row in zip(keys, table.rows, strict=True))


def _cells(row: tuple[Cell, ...], table: Table) -> str:
    first, *others = (_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))
    return "".join([f'<th scope="row"{first}</th>', *(f"<td{cell}</td>" for cell in others)])


def _cell(cell: Cell, column: Column) -> str:
    """Return the attributes and the content of a cell. Numbers need no class: they are what the style is made for."""
    if isinstance(cell, Drawn):
        return f' class="drawn">{draw_cell(cell)}'
    kind = column.kind if column.kind in TEXT_KINDS else ""
    look = look_of(cell, column.kind)
    classes = f"{kind} {'' if look == 'plain' else look}".strip()
    attributes = f' class="{classes}"' if classes else ""
    attributes += f' data-live="{_safe(column.key)}"' if column.key else ""
    text = _safe(cell_text(cell, column.kind))
    if isinstance(cell, Linked) and cell.place:
        text = f'<a href="{_safe(cell.place)}">{text}</a>'
    return f"{attributes}>{text}"


def _safe(text: str) -> str:
    return escape(printable(text))
