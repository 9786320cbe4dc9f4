"""Counting by image at an operating point, from the match table."""

from __future__ import annotations

import numpy as np

from jaccard_eval.features.images.result import WorstImages
from jaccard_eval.matching.ranking import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import BEST_F1


def count_images(metrics: DetectionMetrics, score: float | str | None, n: int) -> WorstImages:
    """Count every image at IoU .5, or else the lowest threshold, over all sizes.

    Predictions count with at least `score`: the best F1 of all classes pooled, unless it is a number. What is ignored,
    and what matches it, counts nowhere, as in every number of the evaluation.
    """
    threshold = metrics.protocol.judged_threshold
    at = metrics.curves.best_f1(threshold, None) if score is None or score == BEST_F1 else float(score)
    ranking, n_images = metrics.curves.ranking, len(metrics.image_names)
    hit, counts = ranking.outcomes(threshold)
    above = ranking.score >= at
    wrong = above & counts & ~hit
    gt = np.bincount(ranking.gt_image[ranking.gt_counts[ALL_SIZES]], minlength=n_images)
    tp, fp = (np.bincount(ranking.image[chosen], minlength=n_images) for chosen in (above & hit, wrong))
    lost = np.bincount(ranking.image[wrong], weights=ranking.score[wrong], minlength=n_images)
    return WorstImages(
        iou=metrics.protocol.iou_thresholds[threshold],
        score=at,
        n=n,
        names=metrics.image_names,
        gt=gt,
        tp=tp,
        fp=fp,
        fn=gt - tp,
        cost=(gt - tp).astype(np.float64) + lost,
    )
