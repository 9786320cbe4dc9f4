"""Reports of intervals and slices: each metric with its bounds, and how they were found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from jaccard_eval.data.document import DataTable, MetricValue
from jaccard_eval.data.result import TARGET_COLUMN, Resamples, RestDifference, SliceRow, sets_text
from jaccard_eval.report.model import Cell, Column, DataCell, Note, Rows, Section, Table, columns
from jaccard_eval.report.numbers import delta_text, metric_text, p_text
from jaccard_eval.report.sections import SortableRow
from jaccard_eval.text import pluralise

REST = ("n_each", "rest", "difference", "difference_low", "difference_high", "p", "verdict")
SHOWN = 5  # metrics without an interval that are named


def intervals_section(per_class: Sequence[SortableRow], drawn: Resamples) -> Section:
    """Return the section of the intervals of the classes; those of all classes follow their metrics."""
    heads = (*columns("name", "class", "metric"), *columns("metric", "value", "low", "high"))
    rows = tuple((row.name, *cells) for row in per_class for cells in _rows(row.values))
    title = f"Intervals ({100 * drawn.settings.confidence_level:g} %)"
    refused = ((f"{metric} of {row.name}", found) for row in per_class for metric, found in row.values.items())
    return Section(title, (Table(heads, rows), Note(f"low, high: {target_text(drawn)}"), *refused_notes(refused)))


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
    blocks: list[Table | Note] = [Table(heads, rows)]
    compared = [(part, name, found) for part in slices for name, found in part.rest.items()]
    if compared:
        heads = (Column("slice", "name"), *columns("word", "metric", "at"), *columns("metric", "slice", "rest"))
        heads += (Column("difference", "delta"), Column("interval", "interval"), Column("p", "word"))
        rows = tuple(_rest_cells(part, name, found) for part, name, found in compared)
        blocks.append(Table((*heads, Column("verdict", "word")), rows))
        blocks += [Note(_rest_text(*row)) for row in compared if row[-1].verdict in ("better", "worse")]
        text = (
            "Slices have intervals for sets of as many such images as they have. Slice and rest are compared at the"
            " same number of images each, because AP and its like are higher on fewer; p by Holm over the slices."
        )
        blocks.append(Note(text))
    return Section("Slices", tuple(blocks))


def _rest_cells(part: SliceRow, name: str, found: RestDifference) -> tuple[Cell, ...]:
    at = f"{pluralise(found.n_units, part.unit)} each"
    interval = found.interval or (math.nan, math.nan)
    verdict = found.verdict or f"none: {found.refused}"
    return (
        part.name,
        name,
        at,
        found.value,
        found.rest,
        found.delta,
        interval,
        p_text(found.p_value).removeprefix("= "),
        verdict,
    )


def _rest_text(part: SliceRow, name: str, found: RestDifference) -> str:
    at = f"at {pluralise(found.n_units, part.unit)} each"
    return f"{part.name} is {found.verdict}: {name} {delta_text(found.delta, 2)}, p {p_text(found.p_value)} ({at})"


def with_slices(
    header: Sequence[str], rows: Sequence[tuple[DataCell, ...]], slices: Sequence[SliceRow], *, all_classes: str
) -> DataTable:
    """Return a table of classes with a row for each slice, under the metrics and bounds that the table has."""
    if not slices:
        return DataTable(tuple(header), tuple(rows))
    # Slices are named in a last column, and what they differ in behind it; these are not there without any.
    compared = list(dict.fromkeys(f"{name}_{key}" for part in slices for name in part.rest for key in REST))
    table = [(*row, "", *("" for _ in compared)) for row in rows]
    for part in slices:
        bounds = dict(zip(bound_columns(part.values), bound_cells(part.values, part.values), strict=True))
        known: dict[str, DataCell] = {"class": all_classes, "slice": part.name, **bounds}
        known |= dict.fromkeys(("gt", "gt_pixels"), support_of(part))
        known |= {name: metric.value for name, metric in part.values.items()}
        for name, found in part.rest.items():
            cells = (found.n_units, found.rest, found.delta, *(found.interval or (math.nan, math.nan)), found.p_value)
            known |= dict(zip((f"{name}_{key}" for key in REST), (*cells, found.verdict or ""), strict=True))
            known[TARGET_COLUMN] = sets_text(part.n_units, part.unit)
        table.append(tuple(known.get(name, "") for name in (*header, "slice", *compared)))
    return DataTable((*header, "slice", *compared), tuple(table))


def support_of(part: SliceRow) -> int:
    """Return the ground truth of a slice: its boxes, or segments."""
    return next(iter(part.values.values())).n


def interval_notes(metrics: Mapping[str, MetricValue], drawn: Resamples) -> list[Note]:
    """Report what the bounds of metrics are for, how they were found, and why some are missing."""
    settings = drawn.settings
    bounded = ((name, metric) for name, metric in metrics.items() if metric.interval is not None)
    notes = [Note(f"{name} {metric_text(metric.value)}, {interval_text(metric, drawn)}") for name, metric in bounded][
        :1
    ]
    units = f"{drawn.n_units:,} {drawn.unit}s"
    if notes:
        notes.append(
            Note(f"low, high: {target_text(drawn)}; {settings.n_resamples:,} halves of {units}, seed {settings.rng}")
        )
    return [*notes, *refused_notes(metrics.items())]


def refused_notes(metrics: Iterable[tuple[str, MetricValue]]) -> list[Note]:
    """Report which metrics have no interval, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for name, metric in metrics:
        if metric.refused is not None:
            by_reason.setdefault(metric.refused, []).append(name)
    return [
        Note(f"no interval: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''} ({reason})")
        for reason, names in by_reason.items()
    ]


def interval_text(metric: MetricValue, drawn: Resamples) -> str:
    """Return the interval of a metric and what it is for; empty where there is none."""
    if metric.interval is None:
        return ""
    low, high = map(metric_text, metric.interval)
    level = f"{100 * drawn.settings.confidence_level:.6g} % interval"
    return f"{level} {low} to {high} for {drawn.sets}"


def target_text(drawn: Resamples) -> str:
    """Return what bounds are for."""
    level = f"{100 * drawn.settings.confidence_level:.6g} %"
    return f"{level} interval of the expected value on {drawn.sets}"


def _rows(values: Mapping[str, MetricValue]) -> Iterable[tuple[str, float, float, float]]:
    return ((name, metric.value, *metric.interval) for name, metric in values.items() if metric.interval is not None)


def target_cells(drawn: Resamples | None) -> tuple[str, ...]:
    """Return the cell of `TARGET_COLUMN`, or none."""
    return () if drawn is None else (drawn.sets,)


def bound_columns(metrics: Iterable[str]) -> list[str]:
    """Return the columns of the bounds of metrics."""
    return [f"{name}_{bound}" for name in metrics for bound in ("low", "high")]


def bound_cells(values: Mapping[str, MetricValue], metrics: Iterable[str]) -> list[DataCell]:
    """Return the bounds of metrics; NaN where there are none."""
    undefined = (math.nan, math.nan)
    return [bound for name in metrics for bound in (name in values and values[name].interval) or undefined]
