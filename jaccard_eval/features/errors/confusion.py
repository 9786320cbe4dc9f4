"""The confusion matrix: detections above a score matched to ground truth of any class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, freeze
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.features.errors.result import ConfusionMatrix
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.counts import ALL_SIZES, detection_outcomes
from jaccard_eval.metrics.curves import MatchCurves


def confusion_matrix(
    gt: BoxTable, pred: BoxTable, protocol: Protocol, names: tuple[str, ...], *, score: float, iou: float, n_images: int
) -> ConfusionMatrix:
    """Count which classes are taken for which.

    Detections with at least `score` are matched by the rules of the protocol, by descending score, as if there were one
    class. Ground truth that is ignored, and what matches it, is left out.

    Parameters
    ----------
    gt, pred : BoxTable
        With common image and class rows; `pred` as far as its caps on detections go.
    protocol : Protocol
    names : tuple of str, length K
    score, iou : float
    n_images : int
    """
    n = len(names)
    above = pred if pred.score is None else pred.take(pred.score >= score)
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=(), class_agnostic=True)
    numbered = freeze(replace(above, source=np.arange(len(above))))
    table = match_boxes(gt, numbered, rules, n_images=n_images, n_labels=n)
    gt_label, label = (one.label * (not protocol.class_agnostic) for one in (gt, above))
    hit, counts = detection_outcomes(MatchCurves(table), 0)
    found = hit[table.candidate]
    matched_gt = table.pair_gt[table.choice[ALL_SIZES, 0][found]]
    matched_pred = table.source[table.candidate[found]]
    counted = ~table.gt_ignored[ALL_SIZES]
    counted[matched_gt] = False
    wrong = label[table.source[counts & ~hit]]
    cells = np.zeros((n + 1, n + 1), dtype=np.int64)
    np.add.at(cells, (gt_label[matched_gt], label[matched_pred]), 1)
    cells[:n, n] = np.bincount(gt_label[counted], minlength=n)
    cells[n, :n] = np.bincount(wrong, minlength=n)
    return ConfusionMatrix(names=names, counts=cells, score=score, iou=iou)
