"""What a page reads off precision-recall curves: precision at each recall, and the score that reaches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaccard_eval.data.protocol import USUAL_IOU
from jaccard_eval.data.result import Measured
from jaccard_eval.features.operating.compute import last_steps
from jaccard_eval.features.operating.packing import pack, per_step
from jaccard_eval.features.operating.result import OperatingSteps
from jaccard_eval.matching.ranking import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report.model import Chart, Live
from jaccard_eval.report.recall_charts import PRECISION, STRICT_IOU
from jaccard_eval.report.svg import HEIGHT, LEFT, TOP, WIDTH

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
