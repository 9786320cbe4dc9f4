"""What each image costs at the operating point, the worst first, and what became of each box, from the match table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.data.document import Also, Beside, Count, DataTable, Form, Known, KnownShare, Share, dig, written_as
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, descending_order
from jaccard_eval.matching.matchtable import ALL_SIZES, NO_PAIR
from jaccard_eval.metrics.curves import ScoredHits
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import BEST_F1

# Why a ratio of an image is undefined.
REASONS = {
    "precision": "no predictions with at least this score",
    "recall": "no objects",
    "f1": "neither objects nor predictions with at least this score",
}
TITLES = {"f1": "F1"}  # of columns, where they are not called as in documents


def _of_rows(key: str) -> dict[str, Form]:
    """Return the metadata of a column: documents have rows, of the first images alone."""
    return written_as(None, read=lambda document: [dig(row, key) for row in document["rows"]])


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstImages:
    """Counts of every image at one IoU threshold and score, over all sizes and classes.

    Parameters
    ----------
    iou, score : float
        Where a pair matches, and the least score of a prediction that counts; NaN where nothing was predicted.
    n : int
        How many images summaries and documents list; the table has all.
    names : tuple of str
    gt, tp, fp, fn : ndarray of int64, shape (n_images,)
        By row of the image: objects that count, true positives, false positives, misses.
    ap, mean_iou : ndarray of float64, shape (n_images,)
        AP of the image alone, over all scores, and mean IoU of its true positives; NaN where undefined.
    cost : ndarray of float64, shape (n_images,)
        Misses plus the sum of the scores of the false positives.
    """

    iou: KnownShare
    score: float
    n: int = field(metadata=written_as(None, read=lambda document: len(document["rows"])))
    names: tuple[str, ...] = field(metadata=_of_rows("image"))
    gt: IntArray = field(metadata=_of_rows("gt"))
    tp: IntArray = field(metadata=_of_rows("tp"))
    fp: IntArray = field(metadata=_of_rows("fp"))
    fn: IntArray = field(metadata=_of_rows("fn"))
    ap: FloatArray = field(metadata=_of_rows("AP"))
    mean_iou: FloatArray = field(metadata=_of_rows("mean_IoU"))
    cost: FloatArray = field(metadata=_of_rows("cost"))

    # Images that the table does not have: a document that was read back has the worst ones alone.
    unlisted: int = field(
        default=0, metadata=written_as(None, read=lambda document: document["images"] - len(document["rows"]))
    )

    kind: ClassVar[str] = "worst_images"
    beside: ClassVar[Beside] = {
        "images": Count,
        "undefined": Mapping[str, str],
        "rows": [
            {
                **{"image": str, "gt": Count, "tp": Count, "fp": Count, "fn": Count, "cost": Known},
                **dict.fromkeys(("precision", "recall", "f1", "AP", "mean_IoU"), Share),
            }
        ],
    }
    also: ClassVar[Also] = (
        lambda images: {
            "images": len(images.names) + images.unlisted,
            "undefined": images.undefined(),
            "rows": images.rows(images.n),
        },
    )

    @cached_property
    def order(self) -> IntArray:
        """Rows of the images, the highest cost first; equal ones in the order of the images."""
        return descending_order(self.cost)

    def rows(self, n: int | None = None) -> list[dict[str, str | int | float]]:
        """Return the first `n` images, or all, the worst first, by the names of documents; NaN where undefined."""
        rows: list[dict[str, str | int | float]] = []
        for row in self.order[:n].tolist():
            gt, tp, fp, fn = (int(count[row]) for count in (self.gt, self.tp, self.fp, self.fn))
            ratios = {"precision": (tp, tp + fp), "recall": (tp, gt), "f1": (2 * tp, 2 * tp + fp + fn)}
            rows.append(
                {
                    "image": self.names[row],
                    **{"gt": gt, "tp": tp, "fp": fp, "fn": fn},
                    **{name: part / whole if whole else math.nan for name, (part, whole) in ratios.items()},
                    "cost": float(self.cost[row]),
                    **{"AP": float(self.ap[row]), "mean_IoU": float(self.mean_iou[row])},
                }
            )
        return rows

    def undefined(self) -> dict[str, str]:
        """Return the ratios that one of the first `n` images lacks, and why."""
        rows = self.rows(self.n)
        return {name: reason for name, reason in REASONS.items() if any(row[name] != row[name] for row in rows)}

    def tables(self) -> Mapping[str, DataTable]:
        """Return all images that are known."""
        header = ("image", "gt", "tp", "fp", "fn", "precision", "recall", "F1", "cost", "AP", "mean_IoU")
        return {"images": DataTable(header, tuple(tuple(row.values()) for row in self.rows()))}


def precision_by_image(metrics: DetectionMetrics) -> FloatArray:
    """Return the AP of each image as if it were all there is (n_images,); NaN where it has no object that counts.

    A class of an image is ranked as a class by itself, so that one pass serves all images.
    """
    ranking, n_images, n_labels = metrics.curves.ranking, len(metrics.image_names), len(metrics.class_names)
    protocol, truth = metrics.protocol, ranking.gt_counts[ALL_SIZES]
    cells, place = np.unique(ranking.gt_image[truth].astype(np.int64) * n_labels + ranking.gt_label[truth],
                             return_inverse=True)  # fmt: skip
    cell = ranking.image.astype(np.int64) * n_labels + ranking.label
    found = np.searchsorted(cells, cell).clip(0, max(len(cells) - 1, 0))
    # Classes that an image has no object of are not in its mean. Rows of a class descend by score already.
    rows = np.flatnonzero(cells[found] == cell) if len(cells) else np.zeros(0, dtype=np.int64)
    rows = rows[np.argsort(found[rows], kind="stable")]
    total, positives = np.zeros(n_images), np.bincount(place.ravel(), minlength=len(cells))
    for threshold in range(len(protocol.iou_thresholds)):
        hit, counts = ranking.outcomes(threshold)
        kept = rows[counts[rows]]
        ranked = ScoredHits(found[kept], ranking.score[kept], hit[kept], positives)
        total += np.bincount(cells // n_labels, ranked.class_precisions(protocol), minlength=n_images)
    n_cells = np.bincount(cells // n_labels, minlength=n_images) * len(protocol.iou_thresholds)
    return np.asarray(np.divide(total, n_cells, out=np.full(n_images, np.nan), where=n_cells > 0))


def judging_score(metrics: DetectionMetrics, score: float | str | None) -> float:
    """Return a score that was asked for, else the best one of all classes pooled: by what was named, else by F1."""
    if isinstance(score, int | float):
        return float(score)
    return metrics.curves.best_score(metrics.protocol.judged_threshold, None, score or BEST_F1)


def count_images(metrics: DetectionMetrics, score: float | str | None, n: int, *, measured: bool = True) -> WorstImages:
    """Count every image at IoU .5, or else the lowest threshold, over all sizes.

    Predictions count with at least `score`: the best F1 of all classes pooled, unless it is a number. What is ignored,
    and what matches it, counts nowhere, as in every number of the evaluation. Where images are only counted, not
    `measured`, the AP of each is NaN: it takes longer than all else.
    """
    threshold = metrics.protocol.judged_threshold
    at = judging_score(metrics, score)
    ranking, n_images = metrics.curves.ranking, len(metrics.image_names)
    hit, counts = ranking.outcomes(threshold)
    above = ranking.score >= at
    wrong = above & counts & ~hit
    gt = np.bincount(ranking.gt_image[ranking.gt_counts[ALL_SIZES]], minlength=n_images)
    tp, fp = (np.bincount(ranking.image[chosen], minlength=n_images) for chosen in (above & hit, wrong))
    image, _, overlap = metrics.matched_overlaps(threshold, at)
    total = np.bincount(image, overlap, minlength=n_images)
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
        ap=precision_by_image(metrics) if measured else np.full(n_images, np.nan),
        mean_iou=np.divide(total, tp, out=np.full(n_images, np.nan), where=tp > 0),
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
    # Among the boxes of a page, -1 of those that it does not have; empty where it has none.
    place: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def take(self, rows: IntArray) -> BoxOutcomes:
        """Return some of the boxes."""
        columns = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "shapes"}
        taken = {name: column.take(rows, axis=0) if len(column) else column for name, column in columns.items()}
        return BoxOutcomes(shapes=self.shapes, **taken)

    def counts_at(self, score: float) -> BoolArray:
        """Return which boxes show at a score: detections that have it, and objects that none of these finds.

        Matching goes by descending score, so that a higher threshold changes no match above it.
        """
        with np.errstate(invalid="ignore"):
            reached = self.score >= score
        shown: BoolArray = np.where(self.is_object, ~reached | self.is_ignored, reached)
        return shown

    def wrong_at(self, score: float) -> BoolArray:
        """Return which boxes are false positives or missed objects at a score."""
        return np.asarray(self.counts_at(score) & ~self.is_ignored & (self.is_object | ~self.is_hit))


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
        # Many times as fast as an index of rows.
        xywh=np.concatenate((gt.xywh, pred.xywh.take(table.row, axis=0))),
        is_object=is_object,
        is_hit=np.concatenate((found, hit)),
        is_ignored=np.concatenate((ignored, ~counts)),
        score=np.concatenate((finder, table.score)),
        iou=np.concatenate((np.where(found, gt_iou, np.nan), iou)),
        row=np.concatenate((np.arange(len(gt)), table.row)),
        shapes=(gt.shapes, pred.shapes),
    )
