"""KITTI's curve: precision at 41 numbers of hits, each of detections that are matched anew from a score on."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, lengths_of_runs, stable_order, starts_of_runs
from jaccard_eval.matching.matchtable import SLOT_COUNT, MatchTable, is_bystander, least_overlaps, outside_of


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """What matching gives a class: hits of the first pass, and how counts change as the score falls; in any order."""

    hit_score: FloatArray  # (h,)
    hit_image: IntArray
    score: FloatArray  # (e,)
    image: IntArray
    more_hits: IntArray
    more_misses: IntArray

    def precision(self, positives: int, weights: IntArray) -> FloatArray:
        """Return precision in each slot, the best one from there on, for weights of the images; shape (41,).

        A slot is that of the k-th score which brings the number of hits nearest to k of 40 parts of the objects.
        """
        slots = np.zeros(SLOT_COUNT)
        order = np.argsort(-self.hit_score, kind="stable")
        scores = np.repeat(self.hit_score[order], weights[self.hit_image[order]])
        chosen = np.array([scores[place] for place in chosen_places(len(scores), positives)])
        falling = np.argsort(-self.score, kind="stable")
        weight = weights[self.image[falling]]
        hits, misses = (
            np.append(0, np.cumsum(more[falling] * weight))[np.searchsorted(-self.score[falling], -chosen, "right")]
            for more in (self.more_hits, self.more_misses)
        )
        slots[: len(chosen)] = hits / np.maximum(hits + misses, 1)
        return np.maximum.accumulate(slots[::-1])[::-1]


def chosen_places(n_hits: int, positives: int) -> list[int]:
    """Return which of so many hits, by falling score, have a slot.

    Source: the rules of KITTI's development kit, ``getThresholds``.
    """
    places: list[int] = []
    recall = 0.0
    for place in range(n_hits):
        left, right = (place + 1) / positives, (place + 2) / positives
        if place + 1 < n_hits and right - recall < recall - left:
            continue
        places.append(place)
        recall += 1 / (SLOT_COUNT - 1.0)
    return places[:SLOT_COUNT]


def match_anew(table: MatchTable, area: int, threshold: int) -> list[Matched]:
    """Match an area range or subset at a threshold from every score on, once for each class.

    Objects choose, in the order of the file: first the detection with the highest score, which gives the scores of the
    slots; then, of those with at least a score, the one they overlap most, else the first that is ignored. What is
    ignored, or hits what is, counts nowhere; nor does what is left and lies in a region.

    Source: the rules of KITTI's development kit, ``cleanData`` and ``computeStatistics``.
    """
    subset = area - len(table.protocol.areas)
    is_small = outside_of(table.outside, table.protocol)[subset] if subset >= 0 else np.zeros(1, dtype=np.bool_)
    is_small = np.broadcast_to(is_small, len(table))
    # Detections of other classes take part where they are too small to count in any.
    is_there = is_small | ~is_bystander(table.outside, len(table))
    is_region = np.zeros(len(table.gt_label), dtype=np.bool_) if table.gt_region is None else table.gt_region
    reaches = (table.pair_overlap >= least_overlaps(table.protocol)[threshold]) & is_there[table.pair_detection]
    pairs = np.flatnonzero(reaches)
    on_region = np.zeros(len(table), dtype=np.bool_)
    on_region[table.pair_detection[pairs[is_region[table.pair_gt[pairs]]]]] = True
    pairs = pairs[~is_region[table.pair_gt[pairs]]]
    # Images of a class whose pairs share neither are matched apart.
    key = table.label[table.pair_detection[pairs]].astype(np.int64) * (int(table.image.max(initial=0)) + 1)
    pairs = pairs[stable_order(key + table.image[table.pair_detection[pairs]])]
    alone = np.ones(len(table), dtype=np.bool_)
    alone[table.pair_detection[pairs]] = False
    alone &= ~is_small & is_there & ~on_region
    rows = [
        (int(label), score, image, 0, 1)
        for label, score, image in zip(table.label[alone], table.score[alone], table.image[alone], strict=True)
    ]
    hits: list[tuple[int, float, int]] = []
    runs = starts_of_runs(table.label[table.pair_detection[pairs]]) | starts_of_runs(
        table.image[table.pair_detection[pairs]]
    )
    for at, n in zip(*map(np.ndarray.tolist, lengths_of_runs(runs)), strict=True):
        group = _Group(table, pairs[at : at + n], table.gt_ignored[area], is_small, on_region)
        label, image = int(table.label[group.detections[0]]), int(table.image[group.detections[0]])
        hits += [(label, score, image) for score in group.first_scores()]
        before = 0, 0
        for score in sorted({float(score) for score in table.score[group.detections]}, reverse=True):
            found = group.counts(score)
            rows.append((label, score, image, found[0] - before[0], found[1] - before[1]))
            before = found
    return [_of_class(label, rows, hits) for label in range(table.n_labels)]


def _of_class(label: int, rows: list[tuple[int, float, int, int, int]], hits: list[tuple[int, float, int]]) -> Matched:
    own, found = [row[1:] for row in rows if row[0] == label], [hit[1:] for hit in hits if hit[0] == label]
    score, image, more_hits, more_misses = np.array(own, dtype=np.float64).reshape(-1, 4).T
    hit_score, hit_image = np.array(found, dtype=np.float64).reshape(-1, 2).T
    whole = (column.astype(np.int64) for column in (image, more_hits, more_misses))
    return Matched(hit_score, hit_image.astype(np.int64), score, *whole)


class _Group:
    """Detections and objects of a class on an image that overlap, in the orders of their files."""

    def __init__(
        self, table: MatchTable, pairs: IntArray, ignored: BoolArray, small: BoolArray, on_region: BoolArray
    ) -> None:
        detections, objects = np.unique(table.pair_detection[pairs]), np.unique(table.pair_gt[pairs])
        self.detections = detections[np.argsort(table.source[detections], kind="stable")]
        objects = objects[np.argsort(table.gt_source[objects], kind="stable")]
        det_place = {row: place for place, row in enumerate(self.detections.tolist())}
        gt_place = {row: place for place, row in enumerate(objects.tolist())}
        self._score = table.score[self.detections].tolist()
        self._small, self._on_region = (column[self.detections].tolist() for column in (small, on_region))
        self._ignored = ignored[objects].tolist()
        self._near: list[list[tuple[int, float]]] = [[] for _ in objects]
        columns = table.pair_detection[pairs], table.pair_gt[pairs], table.pair_overlap[pairs]
        for row, gt, overlap in zip(*map(np.ndarray.tolist, columns), strict=True):
            self._near[gt_place[gt]].append((det_place[row], overlap))
        for near in self._near:
            near.sort()

    def first_scores(self) -> list[float]:
        """Return the scores of the hits where objects take the detection with the highest one."""
        taken: set[int] = set()
        scores = []
        for near, ignored in zip(self._near, self._ignored, strict=True):
            free = [place for place, _ in near if place not in taken]
            if free:
                best = max(free, key=lambda place: (self._score[place], -place))
                taken.add(best)
                if not ignored and not self._small[best]:
                    scores.append(self._score[best])
        return scores

    def counts(self, least: float) -> tuple[int, int]:
        """Count hits and misses among the detections with at least a score."""
        taken: set[int] = set()
        n_hits = 0
        for near, ignored in zip(self._near, self._ignored, strict=True):
            free = [(place, overlap) for place, overlap in near if place not in taken and self._score[place] >= least]
            proper = [(overlap, -place) for place, overlap in free if not self._small[place]]
            if free:
                best = -max(proper)[1] if proper else free[0][0]
                taken.add(best)
                n_hits += not ignored and bool(proper)
        left = (place for place in range(len(self._score)) if place not in taken and self._score[place] >= least)
        return n_hits, sum(not self._small[place] and not self._on_region[place] for place in left)
