"""Counting by image at an operating point, and what became of each box, from the match table."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.features.images.result import WorstImages
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.matchtable import NO_PAIR
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import ALL_SIZES
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import BEST_F1


def count_images(metrics: DetectionMetrics, score: float | str | None, n: int) -> WorstImages:
    """Count every image at IoU .5, or else the lowest threshold, over all sizes.

    Predictions count with at least `score`: the best F1 of all classes pooled, unless it is a number. What is ignored,
    and what matches it, counts nowhere, as in every number of the evaluation.
    """
    threshold = metrics.protocol.judged_threshold
    at = (
        float(score) if isinstance(score, int | float) else metrics.curves.best_score(threshold, None, score or BEST_F1)
    )
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
        names=tuple(metrics.image_names),
        gt=gt,
        tp=tp,
        fp=fp,
        fn=gt - tp,
        cost=(gt - tp).astype(np.float64) + lost,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoxOutcomes:
    """What became of every box at one IoU threshold, whatever the score; objects first, then detections; (n,) each."""

    image: IntArray
    label: IntArray
    xywh: FloatArray
    is_object: BoolArray
    # Whether a detection is a true positive, or an object is found by one.
    is_hit: BoolArray
    # Whether it is neither right nor wrong: flagged, of a size that does not count, or matching such an object.
    is_ignored: BoolArray
    # Of a detection; of an object that of the detection that finds it, NaN where none does.
    score: FloatArray
    # With the partner; NaN without one.
    iou: FloatArray
    # In the table of its side.
    row: IntArray
    # Masks or keypoints of both sides, where these were compared.
    shapes: tuple[Shapes | None, Shapes | None]

    def take(self, rows: IntArray) -> BoxOutcomes:
        """Return some of the boxes."""
        columns = {item.name: getattr(self, item.name)[rows] for item in fields(self) if item.name != "shapes"}
        return BoxOutcomes(shapes=self.shapes, **columns)

    def counts_at(self, score: float) -> BoolArray:
        """Return which boxes show at a score: detections that have it, and objects that none of these finds.

        Matching goes by descending score, so that a higher threshold changes no match above it.
        """
        with np.errstate(invalid="ignore"):
            reached = self.score >= score
        shown: BoolArray = np.where(self.is_object, ~reached | self.is_ignored, reached)
        return shown


def box_outcomes(metrics: DetectionMetrics, gt: BoxTable, pred: BoxTable, threshold: int) -> BoxOutcomes:
    """Judge all boxes at one IoU threshold, over all sizes; `gt` and `pred` are those that were matched."""
    table, ranking = metrics.table, metrics.curves.ranking
    hit, counts = ranking.outcomes(threshold)
    choice = table.chosen_pairs(ALL_SIZES, threshold)
    matched = np.flatnonzero(choice != NO_PAIR)
    detection, truth = table.candidate[matched], table.pair_gt[choice[matched]]
    iou, gt_iou = np.full(len(table), np.nan), np.full(len(gt), np.nan)
    iou[detection] = gt_iou[truth] = table.pair_overlap[choice[matched]]
    found, finder = np.zeros(len(gt), dtype=np.bool_), np.full(len(gt), np.nan)
    # An object that does not count may be matched by many; who finds it is of no interest.
    right = hit[detection]
    found[truth[right]], finder[truth[right]] = True, table.score[detection[right]]
    ignored = ~ranking.gt_counts[ALL_SIZES]
    is_object = np.arange(len(gt) + len(table)) < len(gt)
    return BoxOutcomes(
        image=np.concatenate((table.gt_image, table.image)),
        label=np.concatenate((gt.label, pred.label[table.row])).astype(np.int64),
        xywh=np.concatenate((gt.xywh, pred.xywh[table.row])),
        is_object=is_object,
        is_hit=np.concatenate((found, hit)),
        is_ignored=np.concatenate((ignored, ~counts)),
        score=np.concatenate((finder, table.score)),
        iou=np.concatenate((np.where(found, gt_iou, np.nan), iou)),
        row=np.concatenate((np.arange(len(gt)), table.row)),
        shapes=(gt.shapes, pred.shapes),
    )
