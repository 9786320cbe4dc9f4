"""Matches whatever the classes: which class is predicted as which, at every score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable, FloatArray, RowArray, freeze
from jaccard_eval.data.protocol import EVERY_CLASS, Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.judging import EXPANDING
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.matching.order import IntArray, stable_order
from jaccard_eval.matching.ranking import ALL_SIZES, Ranking
from jaccard_eval.metrics.detection import DetectionMetrics

PART_ROWS = 1 << 17  # of detections that are matched at once, about
_COLUMNS = ("score", "label", "matched_label")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnyClassMatches:
    """Detections that count when all are matched as if there were one class; rows are detections, (n,).

    A better detection never looks at a worse one. So those with at least some score are matched among themselves as
    they are here, and one matching is that of every score.
    """

    iou: float
    score: FloatArray
    label: RowArray
    matched_label: RowArray  # class of the object that each one matches, K for the background
    positives: IntArray  # (K,), objects that count

    @classmethod
    def joined(cls, parts: Sequence[AnyClassMatches]) -> AnyClassMatches:
        """Return the matches of all parts, which have no image in common."""
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
        positives = np.sum([part.positives for part in parts], axis=0)
        return cls(iou=parts[0].iou, positives=positives, **columns)

    @property
    def cell(self) -> IntArray:
        """Place of each detection in the matrix of classes and the background, row by row."""
        return self.matched_label.astype(np.int64) * (len(self.positives) + 1) + self.label

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
    table, n_images = metrics.table, len(metrics.image_names)
    # The caps were applied before, by class: once more, over all classes, they would drop detections that count.
    sides = ((table.image, stable_order(table.image)), (gt.image, stable_order(gt.image)))
    # Where the rows of each image begin, and the end, (n_images + 1,).
    starts, gt_starts = (np.append(0, np.cumsum(np.bincount(image, minlength=n_images))) for image, _ in sides)
    cuts = np.unique(np.searchsorted(starts, np.arange(PART_ROWS, len(table), PART_ROWS)))
    parts = []
    for first, last in pairwise([0, *cuts[(cuts > 0) & (cuts < n_images)].tolist(), n_images]):
        # An image is matched without the others, so that a copy of a few of them at a time will do.
        rows = table.row[sides[0][1][starts[first] : starts[last]]]
        objects = sides[1][1][gt_starts[first] : gt_starts[last]]
        gt_part, pred_part = (
            replace(side, image=side.image - np.int32(first)) for side in (gt.take(objects), pred.take(rows))
        )
        shape = {"n_images": last - first, "n_labels": table.n_labels}
        parts.append(match_part(gt_part, pred_part, metrics.protocol, threshold, **shape))
    return AnyClassMatches.joined(parts)


def match_part(
    gt: BoxTable, kept: BoxTable, protocol: Protocol, threshold: int, *, n_images: int, n_labels: int
) -> AnyClassMatches:
    """Match detections of some images, those within the caps of their classes, in the order of these and of scores."""
    if protocol.judging in EXPANDING and not protocol.class_agnostic:
        return _match_own_class_first(gt, kept, protocol, threshold, n_images=n_images, n_labels=n_labels)
    iou, n = protocol.iou_thresholds[threshold], 1 if protocol.class_agnostic else n_labels
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=(), class_agnostic=True)
    # A class-agnostic table forgets the labels. Numbered sources lead from its rows back to them.
    numbered = freeze(replace(kept, source=np.arange(len(kept))))
    table = match_boxes(gt, numbered, rules, n_images=n_images, n_labels=n)
    # Under a protocol that knows no classes, all boxes are of the one class that there is a name for.
    labels = (gt.label, kept.label[table.source])
    gt_label, label = (column * np.int32(not protocol.class_agnostic) for column in labels)
    hit, counts = Ranking.of(table, n_images).outcomes(0)
    found = hit[table.candidate]
    matched_label = np.full(len(table), n, dtype=np.int32)
    matched_label[table.candidate[found]] = gt_label[table.pair_gt[table.chosen_pairs(ALL_SIZES, 0)[found]]]
    return AnyClassMatches(
        iou=iou,
        score=table.score[counts],
        label=label[counts],
        matched_label=matched_label[counts],
        positives=np.bincount(gt_label[~table.gt_ignored[ALL_SIZES]], minlength=n),
    )


def _match_own_class_first(
    gt: BoxTable, kept: BoxTable, protocol: Protocol, threshold: int, *, n_images: int, n_labels: int
) -> AnyClassMatches:
    """Match within classes, then what is left whatever the classes.

    An object has a copy for each class above its own. Of boxes that are alike, a detection means that of its class.
    """
    iou = protocol.iou_thresholds[threshold]
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=())
    table = match_boxes(gt, kept, rules, n_images=n_images, n_labels=n_labels)
    hit, counts = Ranking.of(table, n_images).outcomes(0)
    pairs = table.chosen_pairs(ALL_SIZES, 0)[hit[table.candidate]]
    is_left = np.ones(len(gt), dtype=np.bool_)
    is_left[table.pair_gt[pairs]] = False
    # What is ignored within its class stays out.
    wrong = kept.take(np.sort(table.row[counts & ~hit]))
    pooled = rules.with_options(judging=EVERY_CLASS)
    rest = match_part(gt.take(is_left), wrong, pooled, 0, n_images=n_images, n_labels=n_labels)
    return AnyClassMatches(
        iou=iou,
        score=np.concatenate((table.score[hit], rest.score)),
        label=np.concatenate((table.label[hit], rest.label)),
        matched_label=np.concatenate((table.label[hit], rest.matched_label)),
        positives=np.bincount(gt.label[~table.gt_ignored[ALL_SIZES]], minlength=n_labels),
    )
