"""Matches whatever the classes: which class is predicted as which, at every score."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import ALL_SIZES, Ranking
from jaccard_eval.metrics.detection import DetectionMetrics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnyClassMatches:
    """Detections that count when all are matched as if there were one class; rows are detections, (n,).

    A better detection never looks at a worse one. So those with at least some score are matched among themselves as
    they are here, and one matching is that of every score.
    """

    iou: float
    score: FloatArray
    label: IntArray
    matched_label: IntArray  # class of the object that each one matches, K for the background
    positives: IntArray  # (K,), objects that count

    @property
    def cell(self) -> IntArray:
        """Place of each detection in the matrix of classes and the background, row by row."""
        return self.matched_label * (len(self.positives) + 1) + self.label

    def confusion(self, score: float) -> npt.NDArray[np.int64]:
        """Count the detections with at least a score, (K + 1, K + 1); rows are ground truth, the background last."""
        n = len(self.positives) + 1
        cells = np.bincount(self.cell[self.score >= score], minlength=n * n).reshape(n, n)
        cells[:-1, -1] = self.positives - cells[:-1].sum(axis=1)
        return cells


def match_any_class(metrics: DetectionMetrics, threshold: int, gt: BoxTable, pred: BoxTable) -> AnyClassMatches:
    """Match the detections of an evaluation at one of its IoU thresholds, whatever the classes, by its other rules.

    Ground truth that is ignored, and what matches it, is ignored.
    """
    protocol, n = metrics.protocol, len(metrics.class_names)
    # The caps were applied before, by class: once more, over all classes, they would drop detections that count.
    kept = pred.take(metrics.table.row)
    iou = protocol.iou_thresholds[threshold]
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=(), class_agnostic=True)
    # A class-agnostic table forgets the labels. Numbered sources lead from its rows back to them.
    numbered = freeze(replace(kept, source=np.arange(len(kept))))
    n_images = len(metrics.image_names)
    table = match_boxes(gt, numbered, rules, n_images=n_images, n_labels=n)
    # Under a protocol that knows no classes, all boxes are of the one class that there is a name for.
    labels = (gt.label, kept.label[table.source])
    gt_label, label = (column.astype(np.int64) * (not protocol.class_agnostic) for column in labels)
    hit, counts = Ranking.of(table, n_images).outcomes(0)
    found = hit[table.candidate]
    matched_label = np.full(len(table), n)
    matched_label[table.candidate[found]] = gt_label[table.pair_gt[table.choice[ALL_SIZES, 0][found]]]
    return AnyClassMatches(
        iou=iou,
        score=table.score[counts],
        label=label[counts],
        matched_label=matched_label[counts],
        positives=np.bincount(gt_label[~table.gt_ignored[ALL_SIZES]], minlength=n),
    )
