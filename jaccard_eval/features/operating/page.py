"""The operating point on a page: where its slider starts, the counts of every step, and what is read off the curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.document import Rows
from jaccard_eval.data.protocol import USUAL_IOU
from jaccard_eval.data.result import EvaluationResult, Measured
from jaccard_eval.features.operating import OperatingSteps, StepCounts, last_steps, operating_steps, pack, per_step
from jaccard_eval.matching import IntArray, descending_order
from jaccard_eval.matching.matchtable import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics, match_any_class
from jaccard_eval.report.markup import HEIGHT, LEFT, TOP, WIDTH
from jaccard_eval.report.model import Cell, Chart, Column, Live, Section, Table
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.report.recall_charts import PRECISION, STRICT_IOU

MOST_POINTS = 1001  # of recall: more are finer than a pointer
UNITS = 10_000  # of precision, which is shown with four decimals


def live_curves(measured: Measured, charts: Sequence[Chart], steps: OperatingSteps) -> list[Live]:
    """Return the data for `recall_charts`: precision, and the last step that reaches each recall.

    Rows are the mean and the classes that have a line; packed as what they lose from each recall to the next. A mean
    over thresholds is reached at no one score. None for grids that are finer than a screen.
    """
    if not isinstance(measured, DetectionMetrics) or not charts or len(measured.curves.recall_grid) > MOST_POINTS:
        return []
    curves, thresholds = measured.curves, measured.protocol.iou_thresholds
    scores = curves.recall_scores(ALL_SIZES, len(curves.caps) - 1)  # (T, R, K)
    ious = [iou for iou in (USUAL_IOU, STRICT_IOU) if iou in thresholds] or thresholds[: len(thresholds) == 1]
    data: list[dict[str, Any]] = []
    for i, chart in enumerate(charts):
        *classes, mean = chart.series
        keys = [int(series.key) for series in classes]
        precision = np.array([mean.y, *(series.y for series in classes)])
        whole = np.rint(precision * UNITS).astype(np.int64)
        # As numbers are written: 0 and 1 only where exact.
        whole = np.where((precision > 0) & (precision < 1), whole.clip(1, UNITS - 1), whole)
        shown = {"keys": keys, "precision": pack(per_step(whole)), "reached": ""}
        if i < len(ious):
            # A single class has no line but the mean.
            reached = last_steps(scores[thresholds.index(ious[i])].T[keys or [0]], steps.scores).clip(0)
            of_mean = np.zeros_like(reached[: len(keys) > 0])
            shown["reached"] = pack(per_step(np.concatenate([of_mean, reached])))
        data.append(shown)
    plot = {"left": LEFT, "top": TOP, "width": WIDTH, "height": HEIGHT, "high": (PRECISION.ends or (0, 1))[1]}
    return [Live("curves", {**plot, "points": len(curves.recall_grid), "charts": data})]


PART = "operating_steps"
MOST_LIVE = 100  # classes whose numbers follow the slider; those of the others stay at its start
FEW_CLASSES = 40  # up to which a confusion matrix has all of them at first
MOST_CONFUSED = 30  # that a larger one has


def with_steps(result: EvaluationResult) -> EvaluationResult:
    """Return the result with its counts at every step; as it is without a match table or an analysis of errors."""
    metrics, errors = result.measured, result.part("errors")
    if errors is None or result.boxes is None or not isinstance(metrics, DetectionMetrics):
        return result
    # An analysis that was read back from a document has no matches of its own.
    any_class = errors.any_class or match_any_class(metrics, metrics.protocol.judged_threshold, *result.boxes)
    given = isinstance(result.options.get("score"), int | float)
    # The score that the confusion matrix of documents is at.
    steps = operating_steps(metrics, any_class, errors.confusion.score, given=given)
    return result.with_part(Rows(PART, (steps, any_class)))


def steps_of(result: EvaluationResult) -> OperatingSteps | None:
    """Return the counts at every step that a page of the result has."""
    part = result.part(PART)
    return None if part is None else part.rows[0]


POINT_COLUMNS = (
    Column("precision", "metric", key="precision"),
    Column("recall", "metric", key="recall"),
    Column("F1", "metric", key="f1"),
    Column("TP", "count", key="tp"),
    Column("FP", "count", key="fp"),
    Column("FN", "count", key="fn"),
)


def point_cells(counts: StepCounts) -> tuple[Cell, ...]:
    """Return the cells of `POINT_COLUMNS`."""
    return counts.precision, counts.recall, counts.f1, counts.tp, counts.fp, counts.fn


def score_section(steps: OperatingSteps, measure: str) -> Section:
    """Return the section with the slider: its row is that of the start, and all that moves follows it."""
    heads = (Column("score", "threshold", key="score"), *POINT_COLUMNS)
    row = (score_text(steps.score), *point_cells(steps.counts(steps.start)[0]))
    title = f"Score threshold ({measure} {threshold_text(steps.iou)})"
    return Section(
        title, (Table(heads, (row,), keys=(str(steps.thumb / 100),)), Live("score", live_data(steps))), key="score"
    )


def score_text(score: float) -> str:
    """Return a score with two decimals, or with all that it has."""
    text = f"{score:.2f}"
    return text if float(text) == score else repr(score)


def live_classes(steps: OperatingSteps) -> IntArray:
    """Return the classes that follow the slider: all of a few, else the most confused and those with most objects."""
    if len(steps.names) <= MOST_LIVE:
        return np.arange(len(steps.names))
    first = most_confused(steps.confusion(steps.start))
    order = np.concatenate([first, descending_order(steps.positives.astype(np.float64))])
    # `unique` finds the first place of each class, so that those that come first in the order are kept.
    _, place = np.unique(order, return_index=True)
    return np.sort(order[np.sort(place)[:MOST_LIVE]])


def most_confused(matrix: npt.NDArray[np.int64]) -> IntArray:
    """Return the classes that a matrix has at first, ascending: all of a few, else those confused most with others."""
    n = len(matrix) - 1
    if n <= FEW_CLASSES:
        return np.arange(n)
    between = matrix[:-1, :-1].copy()
    np.fill_diagonal(between, 0)
    weight = between.sum(axis=0) + between.sum(axis=1)
    return np.sort(descending_order(weight.astype(np.float64))[:MOST_CONFUSED])


def live_data(steps: OperatingSteps) -> dict[str, Any]:
    """Return what the script reads: counts of all classes pooled and of the live ones, and the confusion matrix.

    Counts are packed as what they lose from each step to the next.
    """
    live, shown = live_classes(steps), most_confused(steps.confusion(steps.start))
    rows = [np.vstack([side.sum(axis=0), side[live]]) for side in (steps.tp, steps.fp)]
    return {
        "scores": [score_text(score) for score in steps.scores.tolist()],
        "start": steps.start,
        "keys": live.tolist(),
        "positives": [int(steps.positives.sum()), *steps.positives[live].tolist()],
        "tp": pack(per_step(rows[0])),
        "fp": pack(per_step(rows[1])),
        "shown": steps.positives[shown].tolist(),
        "cells": pack(per_step(_shown_cells(steps, shown))),
    }


def _shown_cells(steps: OperatingSteps, shown: IntArray) -> IntArray:
    """Return the counts of the matrix of some classes, all others as one, and the background; ((n + 2)², S)."""
    size = len(shown) + 2
    place = np.full(len(steps.names) + 1, len(shown))
    place[shown], place[-1] = np.arange(len(shown)), size - 1
    cells = np.zeros((size * size, len(steps.scores)), dtype=np.int64)
    row, column = np.divmod(steps.cells, len(steps.names) + 1)
    # Cells of the others come together, so that rows add up to their objects.
    np.add.at(cells, place[row] * size + place[column], steps.confused)
    return cells
