"""Detections in the order of their scores and what each counts as: all that curves and counts need of a match table.

A ranking holds no geometry and no pairs, and its rows know their images. So those of disjoint sets of images merge:
concatenate the rows and sort the detections by (class, score descending, tie, rank).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, RowArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.greedy import NO_PLACE
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray

ALL_SIZES = 0  # the first area range of every protocol; operating points and errors are taken over it


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """What detections and objects count as; axes are A area ranges, T IoU thresholds, K classes."""

    protocol: Protocol
    n_images: int
    n_labels: int
    # Of each detection, (n,), in class order: by class, then score descending, then tie, then rank in image and class.
    image: RowArray
    label: RowArray
    rank: RowArray
    # What orders equal scores under this protocol: the image, or the place in the file.
    tie: RowArray | IntArray
    score: FloatArray
    # Detections that are false positives if they match nothing, (A, n); those of another size are ignored.
    in_range: BoolArray
    # The detections that could match anything, (c,), ascending; all others count by `in_range`.
    candidate: IntArray
    # Candidates that are true positives, and those that are true or false positives; the others are ignored. (A, T, c)
    hits: BoolArray
    counts: BoolArray
    # Of the objects, (m,) and (A, m): where they are, and which of them count in each area range.
    gt_image: IntArray
    gt_label: IntArray
    gt_counts: BoolArray

    def __len__(self) -> int:
        return len(self.image)

    @classmethod
    def of(cls, table: MatchTable, n_images: int) -> Ranking:
        """Read a ranking off a match table; columns are shared with it."""
        areas = table.protocol.areas
        in_range = np.stack([(table.area >= area.low) & (table.area <= area.high) for area in areas])
        if table.unpunished is not None:
            in_range &= ~table.unpunished
        hits, counts = (np.empty(table.choice.shape, dtype=np.bool_) for _ in range(2))
        before = table.first_pair - np.int32(1)
        for a, choice in enumerate(table.choice):
            counting = ~table.gt_ignored[a][table.pair_gt]
            # Threshold by threshold, as places among all pairs take four times the memory of the choice.
            for t, place in enumerate(choice):
                np.logical_and(place != NO_PLACE, counting[before + place], out=hits[a, t])
                if table.gt_shared is not None:
                    hits[a, t] &= _is_best_of_group(table, table.gt_shared, hits[a, t], before + place)
            # The size of a detection decides only where it matches nothing; a match counts as its object does, and
            # what else a group takes besides its best detection is ignored.
            np.logical_and(choice == NO_PLACE, in_range[a][table.candidate], out=counts[a])
            counts[a] |= hits[a]
        return cls(
            protocol=table.protocol,
            n_images=n_images,
            n_labels=table.n_labels,
            image=table.image,
            label=table.label,
            rank=table.rank,
            tie=table.image if table.protocol.score_ties == "image" else table.source,
            score=table.score,
            in_range=in_range,
            candidate=table.candidate,
            hits=hits,
            counts=counts,
            gt_image=table.gt_image,
            gt_label=table.gt_label,
            gt_counts=~table.gt_ignored,
        )

    def restrict(self, images: IntArray) -> Ranking:
        """Return the ranking of some images, ascending rows that are then counted from 0."""
        kept, truth = np.isin(self.image, images), np.isin(self.gt_image, images)
        candidates = kept[self.candidate]
        image = np.searchsorted(images, self.image[kept]).astype(np.int32)
        return replace(
            self,
            n_images=len(images),
            image=image,
            label=self.label[kept],
            rank=self.rank[kept],
            tie=image if self.protocol.score_ties == "image" else self.tie[kept],
            score=self.score[kept],
            in_range=self.in_range[:, kept],
            candidate=(np.cumsum(kept) - 1)[self.candidate[candidates]],
            hits=self.hits[..., candidates],
            counts=self.counts[..., candidates],
            gt_image=np.searchsorted(images, self.gt_image[truth]),
            gt_label=self.gt_label[truth],
            gt_counts=self.gt_counts[:, truth],
        )

    def outcomes(self, threshold: int) -> tuple[BoolArray, BoolArray]:
        """Return which detections are true positives and which count at all, over all sizes; shape (n,) each."""
        hit = np.zeros(len(self), dtype=np.bool_)
        hit[self.candidate] = self.hits[ALL_SIZES, threshold]
        counts = self.in_range[ALL_SIZES].copy()
        counts[self.candidate] = self.counts[ALL_SIZES, threshold]
        return hit, counts


def _is_best_of_group(table: MatchTable, shared: BoolArray, hits: BoolArray, pairs: RowArray) -> BoolArray:
    """Mark the hits (c,) that count: all on single objects, the first on each group that counts, if above 0.

    Source: TensorFlow Object Detection API, ``per_image_evaluation.py``: the score of a group starts at 0.
    """
    gt = table.pair_gt[pairs]
    counts = hits & ~shared[gt]
    # Candidates stand in the order of their scores; backwards, the first of each group is written last.
    grouped = np.flatnonzero(hits & shared[gt])[::-1]
    first = np.empty(len(shared), dtype=np.int64)
    first[gt[grouped]] = grouped
    best = grouped[first[gt[grouped]] == grouped]
    counts[best] = table.score[table.candidate[best]] > 0
    return counts
