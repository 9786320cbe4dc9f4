"""The match table: who matched whom at every threshold and area range; all numbers are computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.matching.candidates import Pairs, candidate_pairs
from jaccard_eval.matching.greedy import (
    LARGEST_THRESHOLD,
    NO_PAIR,
    MatchProblem,
    PairChoice,
    assign_best_any,
    assign_best_free,
)
from jaccard_eval.matching.order import (
    Blocks,
    IntArray,
    ground_truth_order,
    labels_of,
    rank_detections,
    stable_order,
)
from jaccard_eval.similarity import Similarity


@dataclass(frozen=True, slots=True, eq=False)
class MatchTable:
    """Detections with what they matched, and the ground truth they were matched against; where they lie is not here.

    Detections stand in *class order*: by class, then score descending, then image (or file order, by
    the protocol). Axes: K classes, A area ranges, T IoU thresholds.
    """

    protocol: Protocol
    n_labels: int
    # Of each detection, (n,): its image and class, its rank by score within them, its row in the table of predictions
    # that was matched, and in what that was read from.
    image: IntArray
    label: IntArray
    rank: IntArray
    row: IntArray
    source: IntArray
    score: FloatArray
    area: FloatArray
    # Only detections that overlap some ground truth enough have a choice, (c,) of them, ascending: a fifth of the
    # detections of a large run, and what the outcome of all others is needs no memory.
    candidate: IntArray
    # The pair that a candidate matches, (A, T, c); `NO_PAIR` for none.
    choice: PairChoice
    # The detection of each pair, ascending, its ground-truth row, and its IoU (IoA for crowds); (p,).
    pair_detection: IntArray
    pair_gt: IntArray
    pair_overlap: FloatArray
    # Of the ground truth in the order of the input, (m,) and (A, m): where it is, and where it does not count.
    gt_image: IntArray
    gt_label: IntArray
    gt_source: IntArray
    gt_ignored: BoolArray

    def __len__(self) -> int:
        return len(self.image)

    def ignored_match(self, area: int) -> BoolArray:
        """Whether a candidate matched ground truth that does not count in an area range, shape (T, c)."""
        # A closing False is what `NO_PAIR`, -1, finds.
        ignored: BoolArray = np.append(self.gt_ignored[area][self.pair_gt], False)[self.choice[area]]
        return ignored

    def restrict(self, images: IntArray) -> MatchTable:
        """Return the table of some images, ascending rows that are then counted from 0.

        Matching never looks beyond an image, so this equals matching the boxes of these images alone, bit for bit.
        """
        detections, truth = np.isin(self.image, images), np.isin(self.gt_image, images)
        # Both ends of a pair are of one image, so that both are kept or neither is.
        pairs, candidates = detections[self.pair_detection], detections[self.candidate]
        new_row, new_gt, new_pair = (np.cumsum(kept) - 1 for kept in (detections, truth, pairs))
        choice = self.choice[:, :, candidates]
        # Ranks are within an image and class, and the order of images is kept: neither has to be made anew.
        kept = ("label", "rank", "source", "score", "area")
        columns = {name: getattr(self, name)[detections] for name in kept}
        # Rows of the predictions of these images alone.
        rows = self.row[detections]
        columns["row"] = np.searchsorted(np.sort(rows), rows)
        columns |= {name: getattr(self, name)[truth] for name in ("gt_label", "gt_source")}
        return replace(
            self,
            **columns,
            image=np.searchsorted(images, self.image[detections]),
            gt_image=np.searchsorted(images, self.gt_image[truth]),
            gt_ignored=self.gt_ignored[:, truth],
            candidate=new_row[self.candidate[candidates]],
            choice=np.where(choice == NO_PAIR, NO_PAIR, new_pair[choice]).astype(choice.dtype),
            pair_detection=new_row[self.pair_detection[pairs]],
            pair_gt=new_gt[self.pair_gt[pairs]],
            pair_overlap=self.pair_overlap[pairs],
        )


def match_boxes(
    gt: BoxTable,
    pred: BoxTable,
    protocol: Protocol,
    *,
    n_images: int,
    n_labels: int,
    similarity: Similarity | None = None,
    known: Pairs | None = None,
) -> MatchTable:
    """Match predictions to ground truth of common image and class rows, once for all thresholds and area ranges.

    The protocol's thresholds are of its own similarity, unless another is given; `known` pairs are those of an earlier
    table of the same boxes and rules, so that no overlap is computed again.
    """
    det_order, det_key, rank = rank_detections(pred, protocol, n_images)
    ranked = pred.take(det_order)
    gt_label = labels_of(gt, protocol)
    gt_key = gt_label * n_images + gt.image
    order = ground_truth_order(gt, gt_key, protocol)
    # Sorted by key, so that each detection finds what it may match in one block of rows.
    truth = gt.take(order)
    # What each row of the input is in that order: the inverse of a permutation.
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    thresholds = np.minimum(protocol.iou_thresholds, LARGEST_THRESHOLD)
    # Below the lowest threshold nothing can match, and most overlaps are: 50,000 pairs of half a million remain.
    pairs = (
        Pairs(known.det, place[known.gt], known.overlap)
        if known is not None
        else candidate_pairs(
            ranked,
            truth,
            Blocks.of(gt_key[order], det_key),
            protocol,
            threshold=float(thresholds[0]),
            crowd=truth.crowd if protocol.crowd_overlap == "ioa" else None,
            similarity=similarity,
        )
    )
    ignored = ignored_objects(gt, protocol)
    problem = MatchProblem(
        pairs=pairs,
        thresholds=thresholds,
        ignored=ignored[:, order],
        reusable=any_flag(truth, protocol.reusable_flags),
        last_wins=protocol.iou_ties == "last",
    )
    candidate, choice = (assign_best_free if protocol.assignment == "best_free" else assign_best_any)(problem)
    return MatchTable(
        protocol=protocol,
        n_labels=1 if protocol.class_agnostic else n_labels,
        image=ranked.image.astype(np.int64),
        # Back from the key; without images there are no rows, but 0 // 0 would warn all the same.
        label=det_key // max(n_images, 1),
        rank=rank,
        row=det_order,
        source=ranked.source,
        score=np.zeros(len(ranked)) if ranked.score is None else ranked.score,
        area=ranked.area,
        candidate=candidate,
        choice=choice,
        pair_detection=pairs.det,
        # Outside of matching, ground truth is known by its row in the input.
        pair_gt=order[pairs.gt],
        pair_overlap=pairs.overlap,
        gt_image=gt.image.astype(np.int64),
        gt_label=gt_label,
        gt_source=gt.source,
        gt_ignored=ignored,
    )


def ignored_objects(gt: BoxTable, protocol: Protocol) -> BoolArray:
    """Mark ground truth that does not count in an area range: flagged, or outside of it, both ends included; (A, m)."""
    flagged = any_flag(gt, protocol.ignored_flags)
    # The area is that of the annotation, of a mask where the file has one, as in pycocotools.
    return np.stack([flagged | (gt.area < area.low) | (gt.area > area.high) for area in protocol.areas])


def any_flag(gt: BoxTable, flags: Sequence[str]) -> BoolArray:
    """Mark the boxes that have any of some flags set, shape (m,)."""
    found = np.zeros(len(gt), dtype=np.bool_)
    for flag in flags:
        found = found | getattr(gt, flag)
    return found


def pairs_of_any_class(
    pred: BoxTable, gt: BoxTable, chosen: BoolArray, protocol: Protocol, *, threshold: float
) -> Pairs:
    """Return the pairs of an image that overlap by at least `threshold`, sorted by detection, then ground truth.

    `chosen` (len(gt),) is the ground truth that takes part; a crowd is one object like others.
    """
    rows = np.flatnonzero(chosen)
    rows = rows[stable_order(gt.image[rows])]
    blocks = Blocks.of(gt.image[rows].astype(np.int64), pred.image.astype(np.int64))
    pairs = candidate_pairs(pred, gt.take(rows), blocks, protocol, threshold=threshold)
    return Pairs(pairs.det, rows[pairs.gt], pairs.overlap)
