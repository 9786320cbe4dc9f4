"""Precision by recall at each threshold that matters, and precision, recall and F1 by score."""

from __future__ import annotations

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.operating.curves import live_curves
from jaccard_eval.features.operating.page import steps_of
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Block, Note, Section
from jaccard_eval.report.recall_charts import recall_charts

PLACE = 70


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none where no class has both ground truth and a match table."""
    charts, steps = recall_charts(result.measured), steps_of(result)
    live = [] if steps is None else live_curves(result.measured, charts, steps)
    if result.errors is not None:
        from jaccard_eval.features.errors.report import confidence_chart

        charts.append(confidence_chart(result.errors.pooled))
    blocks: list[Block] = [*charts, *live]
    if not isinstance(result.measured, DetectionMetrics):
        blocks.append(Note("Precision-recall curves need the saved run: write it with -o run.npz, and pass it here."))
    return [Section("Precision and recall", tuple(blocks), key="curves")] if blocks else []
