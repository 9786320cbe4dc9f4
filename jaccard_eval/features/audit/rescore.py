"""What would the numbers be? Average precision of changed boxes under the rules of an evaluation."""

from __future__ import annotations

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.audit.context import Evidence
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics


def average_precision(evidence: Evidence, gt: BoxTable, pred: BoxTable, *, iou: float, pooled: bool = False) -> float:
    """Match again at one threshold and return AP; NaN without ground truth.

    Parameters
    ----------
    evidence : Evidence
        Whose protocol, images and classes hold.
    gt, pred : BoxTable
        In the rows of its alignment.
    iou : float
    pooled : bool
        Whether boxes of different classes may match.
    """
    rules, aligned = evidence.metrics.protocol, evidence.aligned
    rules = rules.with_options(
        iou_thresholds=(iou,),
        areas=rules.areas[:1],
        max_dets=rules.max_dets[-1:],
        class_agnostic=pooled or rules.class_agnostic,
    )
    names = ("all classes",) if rules.class_agnostic else aligned.class_names
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(gt, pred, rules, n_images=n_images, n_labels=n_labels)
    return DetectionMetrics(table, names, aligned.image_names).value(MetricRef(name="AP")).value
