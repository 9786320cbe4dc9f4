"""What a folder of all images has of an evaluation: the columns of its boxes, and what is known of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.features.errors.compute import report_errors
from jaccard_eval.features.evaluate.page import (
    build_page,
    explained_of,
    first_metrics,
    interval_of,
    lost_of,
    name_of,
    with_explanation,
)
from jaccard_eval.features.images.columns import columns_of, placed
from jaccard_eval.features.images.reasons import Explained
from jaccard_eval.features.labels import Suspect
from jaccard_eval.features.labels.report import places_of, review_data
from jaccard_eval.features.operating.page import score_text
from jaccard_eval.fixes import Fix
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Explorer
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.text import pluralise, printable

MOST_BOXES = 1_500_000  # that a browser opens within two seconds


def build_explorer(result: EvaluationResult, options: ReportOptions) -> Explorer:
    """Return all images of `result`, and its page without any."""
    result, model = explorer_model(result, "", suspects=options.suspects)
    return Explorer(
        title=options.title or name_of(result),
        models={"a": model},
        images=result.images,
        numbers=build_page(result, options),
    )


def explorer_model(
    result: EvaluationResult, name: str, first: Explained | None = None, *, suspects: Sequence[Suspect] = ()
) -> tuple[EvaluationResult, dict[str, Any]]:
    """Return a result with what became of its boxes, and what the folder has of it.

    Of a second model, boxes are counted at the scores of the `first`.
    """
    metrics = result.measured
    if result.part("errors") is None and result.boxes is not None and isinstance(metrics, DetectionMetrics):
        result = result.with_part(report_errors(metrics, *result.boxes, result.options.get("score")))
    result = with_explanation(result, None if first is None else first.steps)
    found, sentences = explained_of(result)
    if found is None:
        raise UsageError("a folder of all images needs the boxes: give ground truth and predictions, or a run (.npz)")
    if len(found.outcomes.image) > MOST_BOXES:
        raise UsageError(
            f"the folder would have {len(found.outcomes.image):,} boxes, more than the {MOST_BOXES:,} that a browser"
            " opens in a while.",
            fix=Fix.missing("Ignore low scores with {score_min}.", score_min=None),
        )
    cost = str(MetricRef(name="AP", iou=found.steps.iou))
    boxes = placed(found, (), MOST_BOXES)
    # The first metric of each class, by which classes are ordered.
    values = [next(iter(row.values.values())).value if row.values else math.nan for row in result.per_class]
    return result, {
        **columns_of(found, boxes, (), result.images, [part for part in result.slices if part.rows], most=MOST_BOXES),
        "suspects": [
            (one.kind, at) for one, at in zip(suspects, places_of(suspects, found, boxes), strict=True)
        ],
        "review": review_data(suspects) if suspects else None,
        "name": printable(name),
        "value": "AP",
        "about": ", ".join(
            pluralise(n, what)
            for n, what in (
                *((len(found.metrics.image_names), "image"), (len(found.errors.gt_label), "object")),
                (len(found.errors.label), "detection"),
            )
        ),
        "steps": [score_text(score) for score in found.steps.scores.tolist()],
        "start": found.steps.start,
        "metrics": [[title, metric_text(metric.value), interval_of(result, metric)]
                    for title, metric in first_metrics(result)],
        "next": [
            [sentence.text, sentence.advice, {key: printable(value) for key, value in sentence.pick.items()},
             f"+{metric_text(sentence.gain)} {cost}" if sentence.gain > 0 else ""]
            for sentence in sentences
        ],
        "values": [None if math.isnan(value) else value for value in values],
        "lost": [lost_of(row) for row in result.per_class],
        "positives": found.steps.positives.tolist(),
    }  # fmt: skip
