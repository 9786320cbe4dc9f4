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
    Contest,
    PairChoice,
    assign_best_any,
    assign_best_free,
)
from jaccard_eval.matching.order import Blocks, IntArray, class_order, ground_truth_order, group_ranks, stable_order
from jaccard_eval.similarity import Similarity


@dataclass(frozen=True, slots=True, eq=False)
class MatchTable:
    """Detections with what they matched, and the ground truth they were matched against; where they lie is not here.

    Detections stand in *class order*: by class, then score descending, then image (or file order, as the protocol
    says).

    Parameters
    ----------
    protocol : Protocol
    n_labels : int
        Number of classes, K.
    image, label, rank, source : ndarray of int, shape (n,)
        Image and class row of each detection, its rank by score within image and class, its row in the predictions.
    score, area : ndarray of float64, shape (n,)
    candidate : ndarray of int64, shape (c,)
        The detections that overlap any ground truth enough, ascending.
    choice : ndarray of int32, shape (A, T, c)
        The pair that a candidate matches, -1 for none.
    pair_detection, pair_gt : ndarray of int64, shape (p,)
        The detection of each pair, ascending, and its ground-truth row.
    pair_overlap : ndarray of float64, shape (p,)
        IoU of each pair (IoA for crowds).
    gt_image, gt_label, gt_source : ndarray of int, shape (m,)
    gt_ignored : ndarray of bool, shape (A, m)
        Ground truth that does not count, by area range.
    """

    protocol: Protocol
    n_labels: int
    image: IntArray
    label: IntArray
    rank: IntArray
    source: IntArray
    score: FloatArray
    area: FloatArray
    candidate: IntArray
    choice: PairChoice
    pair_detection: IntArray
    pair_gt: IntArray
    pair_overlap: FloatArray
    gt_image: IntArray
    gt_label: IntArray
    gt_source: IntArray
    gt_ignored: BoolArray

    def __len__(self) -> int:
        return len(self.image)

    def ignored_match(self, area: int) -> BoolArray:
        """Whether a candidate matched ground truth that does not count in an area range, shape (T, c)."""
        choice = self.choice[area]
        if len(self.pair_gt) == 0:
            return np.zeros(choice.shape, dtype=np.bool_)
        ignored_pair: BoolArray = self.gt_ignored[area][self.pair_gt]
        ignored: BoolArray = ignored_pair[choice] & (choice != NO_PAIR)
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
        columns = {name: getattr(self, name)[detections] for name in ("label", "rank", "source", "score", "area")}
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
    """Match predictions to ground truth, once for all thresholds and area ranges.

    Parameters
    ----------
    gt, pred : BoxTable
        With common image and class rows.
    protocol : Protocol
    n_images, n_labels : int
        How many images and classes there are.
    similarity : Similarity, optional
        What the protocol's thresholds are thresholds of: its own, unless given otherwise.
    known : Pairs, optional
        The pairs of an earlier table of the same boxes and rules, so that no overlap is computed again.
    """
    det = Detections.of(pred, protocol, n_images)
    ranked = pred.take(det.order)
    gt_label = _labels(gt, protocol)
    gt_key = gt_label * n_images + gt.image
    order = ground_truth_order(gt, gt_key, protocol)
    truth = gt.take(order)  # each detection finds what it may match in one block of these rows
    thresholds = np.minimum(protocol.iou_thresholds, LARGEST_THRESHOLD)
    pairs = (
        Pairs(known.det, _inverse(order)[known.gt], known.overlap)
        if known is not None
        else candidate_pairs(
            ranked,
            truth,
            Blocks.of(gt_key[order], det.key),
            protocol,
            threshold=float(thresholds[0]),
            crowd=truth.crowd if protocol.crowd_overlap == "ioa" else None,
            similarity=similarity,
        )
    )
    # Ground truth that does not count: flagged, or outside the area range; (A, m).
    flagged = any_flag(gt, protocol.ignored_flags)
    ignored = np.stack([flagged | (gt.area < area.low) | (gt.area > area.high) for area in protocol.areas])
    assign = assign_best_free if protocol.assignment == "best_free" else assign_best_any
    candidate, choice = assign(
        Contest(
            pairs=pairs,
            thresholds=thresholds,
            ignored=ignored[:, order],
            reusable=any_flag(truth, protocol.reusable_flags),
            last_wins=protocol.iou_ties == "last",
        )
    )
    return MatchTable(
        protocol=protocol,
        n_labels=1 if protocol.class_agnostic else n_labels,
        image=ranked.image.astype(np.int64),
        label=det.key // max(n_images, 1),
        rank=det.rank,
        source=ranked.source,
        score=np.zeros(len(ranked)) if ranked.score is None else ranked.score,
        area=ranked.area,
        candidate=candidate,
        choice=choice,
        pair_detection=pairs.det,
        pair_gt=order[pairs.gt],
        pair_overlap=pairs.overlap,
        gt_image=gt.image.astype(np.int64),
        gt_label=gt_label,
        gt_source=gt.source,
        gt_ignored=ignored,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """Detections in class order, those beyond the cap left out, with their (class, image) key and rank in it.

    Parameters
    ----------
    order, key, rank : ndarray of int64, shape (n,)
        `order` is the row of each in the table of the predictions.
    """

    order: IntArray
    key: IntArray
    rank: IntArray

    @classmethod
    def of(cls, pred: BoxTable, protocol: Protocol, n_images: int) -> Detections:
        """Order predictions and apply the protocol's largest cap."""
        label = _labels(pred, protocol)
        order = class_order(pred, label, protocol)
        key = label[order] * n_images + pred.image[order]
        rank = group_ranks(key)
        if not protocol.max_dets or rank.max(initial=0) < protocol.max_dets[-1]:
            return cls(order, key, rank)
        kept = rank < protocol.max_dets[-1]
        return cls(order[kept], key[kept], rank[kept])


def _labels(table: BoxTable, protocol: Protocol) -> IntArray:
    if protocol.class_agnostic:
        return np.zeros(len(table), dtype=np.int64)
    return table.label.astype(np.int64)


def any_flag(gt: BoxTable, flags: Sequence[str]) -> BoolArray:
    """Mark the boxes that have any of some flags set, shape (m,)."""
    found = np.zeros(len(gt), dtype=np.bool_)
    for flag in flags:
        found = found | getattr(gt, flag)
    return found


def _inverse(order: IntArray) -> IntArray:
    """Return the place of each row in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def detection_rows(pred: BoxTable, protocol: Protocol, n_images: int) -> IntArray:
    """Return the row in `pred` of each detection of a match table, shape (n,).

    Parameters
    ----------
    pred : BoxTable
        The predictions that were matched.
    protocol : Protocol
    n_images : int
    """
    return Detections.of(pred, protocol, n_images).order


def pairs_of_any_class(
    pred: BoxTable, gt: BoxTable, chosen: BoolArray, protocol: Protocol, *, threshold: float
) -> Pairs:
    """Return the pairs of an image that overlap by at least `threshold`, sorted by detection, then ground truth.

    Parameters
    ----------
    pred, gt : BoxTable
        With common image rows.
    chosen : ndarray of bool, shape (len(gt),)
        Ground truth that takes part; a crowd is one object like others.
    protocol : Protocol
        What overlap is, between boxes of any class.
    threshold : float
    """
    rows = np.flatnonzero(chosen)
    rows = rows[stable_order(gt.image[rows])]
    blocks = Blocks.of(gt.image[rows].astype(np.int64), pred.image.astype(np.int64))
    pairs = candidate_pairs(pred, gt.take(rows), blocks, protocol, threshold=threshold)
    return Pairs(pairs.det, rows[pairs.gt], pairs.overlap)
