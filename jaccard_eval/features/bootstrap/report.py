"""Reports of intervals: each metric with its bounds, and how they were found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.result import EvaluationResult, Resamples
from jaccard_eval.report.model import DataCell, Section, Table, columns


def intervals_section(result: EvaluationResult, drawn: Resamples) -> Section:
    """Return the section of the intervals of the classes; those of all classes follow their metrics."""
    heads = (*columns("name", "class", "metric"), *columns("metric", "value", "low", "high"))
    rows = tuple((row.name, *cells) for row in result.per_class for cells in _rows(row.values))
    return Section(f"Intervals ({100 * drawn.settings.confidence_level:g} %)", (Table(heads, rows),))


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
