"""The match table: who matched whom at every threshold and area range; all numbers are computed from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray
from jaccard_eval.data.protocol import EVERY_CLASS, Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.candidates import BLOCK_ROWS, Keyed, Pairs, candidate_pairs, keyed_pairs
from jaccard_eval.matching.greedy import (
    ASSIGNMENTS,
    NO_PLACE,
    MatchProblem,
    PairChoice,
    least_overlaps,
)
from jaccard_eval.matching.order import (
    Blocks,
    IntArray,
    WholeArray,
    ground_truth_order,
    labels_of,
    rank_detections,
    stable_order,
    starts_of_runs,
)
from jaccard_eval.similarity import Similarity

NO_PAIR = -1
PairRows = npt.NDArray[np.int32]


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
    image: RowArray
    label: RowArray
    rank: RowArray
    row: RowArray
    source: IntArray
    score: FloatArray
    area: FloatArray
    # Only detections that overlap some ground truth enough have a choice, (c,) of them, ascending: a fifth of the
    # detections of a large run, and what the outcome of all others is needs no memory.
    candidate: IntArray
    # Which of its own pairs a candidate matches, counted from 1, (A, T, c); `NO_PLACE` for none.
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
    # Groups that count, (m,): any number of detections match one, and the best of these is its true positive. None
    # where the protocol has no such groups.
    gt_shared: BoolArray | None = None
    # Detections that do not count where they match nothing, (n,); None where all do.
    unpunished: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.image)

    @property
    def first_pair(self) -> PairRows:
        """The first pair of each candidate, whose pairs stand together, shape (c,)."""
        return np.flatnonzero(starts_of_runs(self.pair_detection)).astype(np.int32)

    def chosen_pairs(self, area: int, threshold: int | slice = slice(None)) -> PairRows:
        """Return the pair that each candidate matches, `NO_PAIR` for none, shape (c,); (T, c) of all thresholds."""
        place = self.choice[area, threshold]
        return np.where(place == NO_PLACE, np.int32(NO_PAIR), (self.first_pair - np.int32(1) + place).astype(np.int32))

    def ignored_match(self, area: int) -> BoolArray:
        """Whether a candidate matched ground truth that does not count in an area range, shape (T, c)."""
        # A closing False is what `NO_PAIR`, -1, finds.
        ignored: BoolArray = np.append(self.gt_ignored[area][self.pair_gt], False)[self.chosen_pairs(area)]
        return ignored

    def restrict(self, images: IntArray) -> MatchTable:
        """Return the table of some images, ascending rows that are then counted from 0.

        Matching never looks beyond an image, so this equals matching the boxes of these images alone, bit for bit; rows
        of predictions count those within the caps.
        """
        detections, truth = np.isin(self.image, images), np.isin(self.gt_image, images)
        # Both ends of a pair are of one image, so that both are kept or neither is.
        pairs, candidates = detections[self.pair_detection], detections[self.candidate]
        new_row, new_gt = (np.cumsum(kept) - 1 for kept in (detections, truth))
        # Ranks are within an image and class, and the order of images is kept: neither has to be made anew.
        kept = ("label", "rank", "source", "score", "area")
        columns = {name: getattr(self, name)[detections] for name in kept}
        # Rows of the predictions of these images alone, without those beyond the caps.
        rows = self.row[detections]
        columns["row"] = np.searchsorted(np.sort(rows), rows).astype(np.int32)
        columns |= {name: getattr(self, name)[truth] for name in ("gt_label", "gt_source")}
        columns["unpunished"] = None if self.unpunished is None else self.unpunished[detections]
        return replace(
            self,
            **columns,
            image=np.searchsorted(images, self.image[detections]).astype(np.int32),
            gt_image=np.searchsorted(images, self.gt_image[truth]),
            gt_ignored=self.gt_ignored[:, truth],
            gt_shared=None if self.gt_shared is None else self.gt_shared[truth],
            candidate=new_row[self.candidate[candidates]],
            choice=self.choice[:, :, candidates],
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
    gt_label = labels_of(gt, protocol)
    gt_key = gt_label * n_images + gt.image
    order = ground_truth_order(gt, gt_key, protocol)
    # Sorted by key, so that each detection finds what it may match in one block of rows.
    # What each row of the input is in that order: the inverse of a permutation.
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    thresholds = least_overlaps(protocol)
    reusable, covers = any_flag(gt, protocol.reusable_flags), any_flag(gt, protocol.covering_flags)
    # Below the lowest threshold nothing can match, and most overlaps are: 50,000 pairs of half a million remain.
    pairs = (
        Pairs(known.det, place[known.gt], known.overlap)
        if known is not None
        else keyed_pairs(
            Keyed(pred, det_order, det_key),
            Keyed(gt, order, gt_key[order]),
            protocol,
            threshold=float(thresholds[0]),
            crowd=covers[order] if protocol.crowd_overlap == "ioa" else None,
            similarity=similarity,
        )
    )
    ignored = ignored_objects(gt, protocol)
    problem = MatchProblem(
        pairs=pairs,
        thresholds=thresholds,
        ignored=ignored[:, order],
        reusable=reusable[order],
        last_wins=protocol.iou_ties == "last",
        key=det_key,
    )
    candidate, choice = ASSIGNMENTS[protocol.assignment](problem)
    # A flag of groups that count may stand next to one that does not.
    shared = any_flag(gt, protocol.shared_flags) & ~any_flag(gt, protocol.ignored_flags)
    unpunished = pred.ignore if protocol.judging != EVERY_CLASS else None
    return MatchTable(
        protocol=protocol,
        n_labels=1 if protocol.class_agnostic else n_labels,
        image=pred.image.take(det_order),
        label=np.zeros(len(det_order), np.int32) if protocol.class_agnostic else pred.label.take(det_order),
        rank=rank,
        row=det_order.astype(np.int32),
        source=pred.source.take(det_order),
        score=np.zeros(len(det_order)) if pred.score is None else pred.score.take(det_order),
        area=pred.area.take(det_order),
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
        gt_shared=shared if protocol.shared_flags else None,
        unpunished=None if unpunished is None else unpunished.take(det_order),
    )


def ignored_objects(gt: BoxTable, protocol: Protocol) -> BoolArray:
    """Mark ground truth that does not count in an area range: flagged, or outside of it, both ends included; (A, m)."""
    flagged = any_flag(gt, protocol.ignored_flags)
    # The area is that of the annotation, of a mask where the file has one, as in pycocotools.
    areas = protocol.object_areas(gt)
    return np.stack([flagged | (areas < area.low) | (areas > area.high) for area in protocol.areas])


def any_flag(gt: BoxTable, flags: Sequence[str]) -> BoolArray:
    """Mark the boxes that have any of some flags set, shape (m,)."""
    found = np.zeros(len(gt), dtype=np.bool_)
    for flag in flags:
        found = found | getattr(gt, flag)
    return found


def pairs_of_any_class(
    pred: BoxTable, det_rows: WholeArray, gt: BoxTable, chosen: BoolArray, protocol: Protocol, *, threshold: float
) -> Iterator[tuple[slice, Pairs]]:
    """Yield the pairs of an image that overlap by at least `threshold`, sorted by detection, then ground truth.

    Detections are those of some rows, a bounded number at a time: which of these, and the pairs among them. `chosen`
    (len(gt),) is the ground truth that takes part; a crowd is one object like others.
    """
    rows = np.flatnonzero(chosen)
    rows = rows[stable_order(gt.image[rows])]
    objects = gt.take(rows)
    for start in range(0, len(det_rows), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        some = pred.take(det_rows[block])
        blocks = Blocks.of(objects.image.astype(np.int64), some.image.astype(np.int64))
        pairs = candidate_pairs(some, objects, blocks, protocol, threshold=threshold)
        yield block, Pairs(pairs.det, rows[pairs.gt], pairs.overlap)
