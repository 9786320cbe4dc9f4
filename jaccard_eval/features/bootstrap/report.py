"""Reports of intervals and slices: each metric with its bounds, and how they were found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from jaccard_eval.data.document import DataTable, MetricValue
from jaccard_eval.data.result import Resamples, SliceRow
from jaccard_eval.report.model import Column, DataCell, Rows, Section, Table, columns
from jaccard_eval.report.sections import SortableRow


def intervals_section(per_class: Iterable[SortableRow], drawn: Resamples) -> Section:
    """Return the section of the intervals of the classes; those of all classes follow their metrics."""
    heads = (*columns("name", "class", "metric"), *columns("metric", "value", "low", "high"))
    rows = tuple((row.name, *cells) for row in per_class for cells in _rows(row.values))
    return Section(f"Intervals ({100 * drawn.settings.confidence_level:g} %)", (Table(heads, rows),))


def slices_section(slices: Sequence[SliceRow]) -> Section:
    """Return the metrics of the slices, with their bounds where they have any."""
    metrics = list(slices[0].values)
    bounded = metrics if any(metric.interval for part in slices for metric in part.values.values()) else []
    heads = (Column("slice"), *columns("count", "images", "gt"), *columns("metric", *metrics, *bound_columns(bounded)))
    rows: Rows = tuple(
        (
            *(part.name, part.images, support_of(part)),
            *(part.values[name].value for name in metrics),
            *bound_cells(part.values, bounded),
        )
        for part in slices
    )
    return Section("Slices", (Table(heads, rows),))


def with_slices(
    header: Sequence[str], rows: Sequence[tuple[DataCell, ...]], slices: Sequence[SliceRow], *, all_classes: str
) -> DataTable:
    """Return a table of classes with a row for each slice, under the metrics and bounds that the table has."""
    if not slices:
        return DataTable(tuple(header), tuple(rows))
    # Slices are named in a last column, which is not there without any.
    table = [(*row, "") for row in rows]
    for part in slices:
        bounds = dict(zip(bound_columns(part.values), bound_cells(part.values, part.values), strict=True))
        known: dict[str, DataCell] = {"class": all_classes, "gt": support_of(part), **bounds}
        known |= {name: metric.value for name, metric in part.values.items()}
        table.append((*(known.get(name, "") for name in header), part.name))
    return DataTable((*header, "slice"), tuple(table))


def support_of(part: SliceRow) -> int:
    """Return the ground truth of a slice: its boxes, or segments."""
    return next(iter(part.values.values())).n


def drawn_text(drawn: Resamples) -> str:
    """Describe the bounds of a metric."""
    settings = drawn.settings
    how = f"percentiles of {settings.n_resamples:,} resamples of {drawn.n_units:,} {drawn.unit}s, seed {settings.rng}"
    return f"low, high: {100 * settings.confidence_level:g} % interval, {how}"


def _rows(values: Mapping[str, MetricValue]) -> Iterable[tuple[str, float, float, float]]:
    return ((name, metric.value, *metric.interval) for name, metric in values.items() if metric.interval is not None)


def bound_columns(metrics: Iterable[str]) -> list[str]:
    """Return the columns of the bounds of metrics."""
    return [f"{name}_{bound}" for name in metrics for bound in ("low", "high")]


def bound_cells(values: Mapping[str, MetricValue], metrics: Iterable[str]) -> list[DataCell]:
    """Return the bounds of metrics; NaN where there are none."""
    undefined = (math.nan, math.nan)
    return [bound for name in metrics for bound in (name in values and values[name].interval) or undefined]
