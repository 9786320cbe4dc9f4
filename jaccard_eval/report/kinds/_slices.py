"""What reports say about slices of the images: a row each."""

from __future__ import annotations

from collections.abc import Sequence

from jaccard_eval.data.result import SliceRow
from jaccard_eval.report.model import Cell, Column, Section, Table


def slices_section(slices: Sequence[SliceRow]) -> list[Section]:
    """Return the section of the slices, none without any."""
    if not slices:
        return []
    metrics = list(slices[0].values)
    columns = (Column("slice", free_text=True), *map(Column, ("images", "gt", *metrics)))
    return [Section("Slices", (Table(columns, tuple(_row(one, metrics) for one in slices)),))]


def _row(one: SliceRow, metrics: Sequence[str]) -> tuple[Cell, ...]:
    return one.name, one.images, one.values[metrics[0]].n, *(one.values[name].value for name in metrics)
