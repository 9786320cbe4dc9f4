"""The metrics of the summary, each with its interval."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate.report import summary_section
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Drawn, Section, Table

PLACE = 50


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section."""
    section = summary_section(result, verbose=True)
    blocks = [_with_dots(block, result) if isinstance(block, Table) else block for block in section.blocks]
    return [Section("Metrics", tuple(blocks), key="metrics")]


def _with_dots(table: Table, result: EvaluationResult) -> Table:
    """Draw each value next to its number, with its interval."""
    head, value, *others = table.columns
    rows = [
        (name, number, Drawn(metric.value, metric.interval, look="dot"), *cells)
        for (name, number, *cells), metric in zip(table.rows, result.metrics.values(), strict=True)
    ]
    return replace(table, columns=(head, value, Column("", "drawn"), *others), rows=tuple(rows))
