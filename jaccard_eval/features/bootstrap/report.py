"""What reports say about intervals: each metric with its bounds, and how they were found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report.model import Cell, Column, Note, Section, Table

if TYPE_CHECKING:
    from jaccard_eval.data.intervals import Resamples


def intervals_section(result: EvaluationResult, *, per_class: bool) -> list[Section]:
    """Return the section of the intervals, none where none were asked for."""
    if result.bootstrap is None:
        return []
    columns = (Column("metric", free_text=True), *map(Column, ("value", "low", "high")))
    blocks = [Table(columns, tuple(_rows(result.metrics.items())))]
    if per_class:
        of_class = (Column("class", free_text=True), *columns)
        rows = [(row.name, *cells) for row in result.per_class for cells in _rows(row.values.items())]
        blocks.append(Table(of_class, tuple(rows)))
    level = f"{100 * result.bootstrap.settings.confidence_level:g} %"
    return [Section(f"Intervals ({level})", (*blocks, Note(_how(result.bootstrap))))]


def bound_columns(metrics: Iterable[str]) -> list[str]:
    """Return the columns of the bounds of metrics in the table for machines."""
    return [f"{name}_{bound}" for name in metrics for bound in ("low", "high")]


def bound_cells(values: Mapping[str, MetricValue], metrics: Iterable[str]) -> list[Cell]:
    """Return the bounds of metrics; NaN where there are none."""
    found = (values[name].interval if name in values else None for name in metrics)
    return [bound for one in found for bound in one or (math.nan, math.nan)]


def _rows(values: Iterable[tuple[str, MetricValue]]) -> Iterable[tuple[Cell, ...]]:
    return ((name, one.value, *one.interval) for name, one in values if one.interval is not None)


def _how(resamples: Resamples) -> str:
    n_resamples, seed = resamples.settings.n_resamples, resamples.settings.rng
    return f"percentiles of {n_resamples:,} resamples of {resamples.n_units:,} {resamples.unit}s, seed {seed}"
