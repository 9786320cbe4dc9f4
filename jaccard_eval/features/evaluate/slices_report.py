"""What reports say about slices of the images: a row each."""

from __future__ import annotations

from collections.abc import Sequence

from jaccard_eval.data.result import SliceRow
from jaccard_eval.features.bootstrap.report import bound_cells, bound_columns
from jaccard_eval.report.model import Cell, Column, Section, Sheet, Table


def slices_section(slices: Sequence[SliceRow]) -> list[Section]:
    """Return the section of the slices, none without any."""
    if not slices:
        return []
    metrics = list(slices[0].values)
    bounded = metrics if any(value.interval for one in slices for value in one.values.values()) else []
    titles = ("images", "gt", *metrics, *bound_columns(bounded))
    columns = (Column("slice", free_text=True), *map(Column, titles))
    return [Section("Slices", (Table(columns, tuple(_row(one, metrics, bounded) for one in slices)),))]


def with_slice_rows(sheet: Sheet, slices: Sequence[SliceRow], all_classes: str) -> Sheet:
    """Return the table for machines with a row for each slice, named in a last column; as it is without any."""
    if not slices:
        return sheet
    rows = [(*row, "") for row in sheet.rows]
    rows += [(*_cells(one, sheet.header, all_classes), one.name) for one in slices]
    return Sheet((*sheet.header, "slice"), tuple(rows))


def _row(one: SliceRow, metrics: Sequence[str], bounded: Sequence[str]) -> tuple[Cell, ...]:
    values = (one.values[name].value for name in metrics)
    return one.name, one.images, _support(one), *values, *bound_cells(one.values, bounded)


def _cells(one: SliceRow, header: Sequence[str], all_classes: str) -> list[Cell]:
    """Place what a slice has below the columns of the table; other cells are empty."""
    bounds = dict(zip(bound_columns(one.values), bound_cells(one.values, one.values), strict=True))
    known: dict[str, Cell] = {"class": all_classes, "gt": _support(one)}
    known |= {name: value.value for name, value in one.values.items()} | bounds
    return [known.get(name, "") for name in header]


def _support(one: SliceRow) -> int:
    """Ground-truth boxes of a slice."""
    return next(iter(one.values.values())).n
