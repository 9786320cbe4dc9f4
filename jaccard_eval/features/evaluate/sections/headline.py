"""The headline: the first metric with its interval, and the numbers next to it."""

from __future__ import annotations

import math

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Note, Rows, Section, Table
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.text import pluralise

PLACE = 10
TILES = 5  # metrics next to the first


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section, which stands above all others."""
    metrics = [(name, metric) for name, metric in result.metrics.items() if not math.isnan(metric.value)]
    # Those of all sizes first: AP, AP50, AP75, AR100.
    whole = [(name, metric) for name, metric in metrics if metric.ref.area is None]
    rows: Rows = tuple((name, metric.value, _interval(metric)) for name, metric in _chosen(whole or metrics))
    rows += _best_f1(result)
    heads = (Column("metric", "name"), Column("value", "metric"), Column("interval", "text"))
    counts = ", ".join(
        (
            pluralise(result.gt.images, "image"),
            pluralise(result.gt.boxes, "object"),
            pluralise(result.pred.boxes, "detection"),
        )
    )
    about = Note(f"Detection report · protocol {result.protocol.name} · {counts}")
    level = f"{100 * result.bootstrap.settings.confidence_level:g} % interval" if result.bootstrap is not None else ""
    return [Section("Result", (about, Table(heads, rows), Note(level)), key="headline")]


def _chosen(metrics: list[tuple[str, MetricValue]]) -> list[tuple[str, MetricValue]]:
    """Return the averages by threshold, and of the recalls the one with the largest cap."""
    precision = [(name, metric) for name, metric in metrics if metric.ref.name != "AR"]
    recall = [(name, metric) for name, metric in metrics if metric.ref.name == "AR"]
    return [*precision[:TILES], *recall[-1:]]


def _interval(metric: MetricValue) -> str:
    if metric.interval is None or math.isnan(metric.interval[0]):
        return ""
    low, high = metric.interval
    return f"{low:.4f} to {high:.4f}"


def _best_f1(result: EvaluationResult) -> Rows:
    if result.errors is None or math.isnan(result.errors.pooled.best_f1):
        return ()
    pooled = result.errors.pooled
    return ((f"best F1, at score {threshold_text(pooled.best_score)}", pooled.best_f1, ""),)
