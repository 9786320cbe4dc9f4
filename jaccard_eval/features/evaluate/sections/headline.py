"""The headline: the first metric with its interval, and the numbers next to it."""

from __future__ import annotations

import math

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Note, Rows, Section, Table
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.text import pluralise

PLACE = 10
TILES = 5  # metrics next to the first


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section, which stands above all others."""
    # Where nothing is defined, the first metric is, as n/a.
    metrics = [*result.metrics.items()][:1]
    metrics = [(name, metric) for name, metric in result.metrics.items() if not math.isnan(metric.value)] or metrics
    # Those of all sizes first: AP, AP50, AP75, AR100.
    whole = [(name, metric) for name, metric in metrics if metric.ref.area is None]
    chosen = _chosen(whole or metrics)
    rows: Rows = tuple((name, metric.value, _interval(result, metric)) for name, metric in chosen)
    rows += _best_f1(result)
    heads = (Column("metric", "name"), Column("value", "metric"), Column("within"))
    counts = ", ".join(
        (
            pluralise(result.gt.images, "image"),
            pluralise(result.gt.boxes, "object"),
            pluralise(result.pred.boxes, "detection"),
        )
    )
    about = Note(f"Detection report · protocol {result.protocol.name} · {counts}")
    return [Section("Result", (about, Table(heads, rows)), key="headline")]


def _chosen(metrics: list[tuple[str, MetricValue]]) -> list[tuple[str, MetricValue]]:
    """Return the averages by threshold, and of the recalls the one with the largest cap."""
    precision = [(name, metric) for name, metric in metrics if metric.ref.name != "AR"]
    recall = [(name, metric) for name, metric in metrics if metric.ref.name == "AR"]
    return [*precision[:TILES], *recall[-1:]]


def _interval(result: EvaluationResult, metric: MetricValue) -> str:
    if result.bootstrap is None or metric.interval is None:
        return ""
    level = f"{100 * result.bootstrap.settings.confidence_level:.6g} % interval"
    return f"{level} {' to '.join(map(metric_text, metric.interval))}"


def _best_f1(result: EvaluationResult) -> Rows:
    if result.errors is None or math.isnan(result.errors.pooled.best_f1):
        return ()
    pooled = result.errors.pooled
    return ((f"best F1, at score {pooled.best_score:.4g}", pooled.best_f1, ""),)
