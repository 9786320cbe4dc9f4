"""From a table of typed columns to a draft: which column is what, and what the cells make of it."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.errors import Where
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.boxes import add_boxes
from jaccard_eval.reading.tabular.columns import CLASS_IDS, Columns, position_of, resolve_columns
from jaccard_eval.reading.tabular.objects.cells import read_cells
from jaccard_eval.reading.tabular.objects.table import IMAGE_IDS, Table


def add_table(table: Table, draft: Draft) -> None:
    """Add images, classes and boxes to the draft; what cannot be used is among its findings."""
    columns = resolve_columns(table.header, draft.options, draft.findings, Where(draft.path))
    if columns is None:
        return
    columns = _with_ids(table, columns)
    cells = read_cells(table, columns, draft)
    draft.findings.raise_errors()  # what follows takes the cells for good
    add_boxes(table, columns, cells, draft)


def _with_ids(table: Table, columns: Columns) -> Columns:
    """Take ids for the keys where the table says so; those of images also where some have no name."""
    image, label = position_of(table.header, IMAGE_IDS), position_of(table.header, CLASS_IDS)
    named = table.column(columns.image).filled.all()
    if image is None or not (table.keyed or (table.column(image).filled.all() and not named)):
        image = columns.image
    if label is None or not table.keyed:
        label = columns.label
    needed = {image, label}
    unused = {*columns.unused, columns.image, columns.label} - needed
    return replace(columns, image=image, label=label, unused=tuple(sorted(unused)))
