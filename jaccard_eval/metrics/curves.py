"""Curves of all classes and thresholds at once, from a ranking: hits, precision, recall, ties.

A resample shares what a ranking prepares once: it has other weights, not another ranking. KITTI's curve has precision
at 41 numbers of hits, each of detections that are matched anew from a score on. The Jaccard index of a set of
detections is how many pairs a best one-to-one assignment finds, of all that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal
from typing import Protocol as TypingProtocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, RowArray, Words
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import (
    IntArray,
    WholeArray,
    class_and_score_order,
    descending_order,
    distinct,
    lengths_of_runs,
    stable_order,
    starts_of_runs,
)
from jaccard_eval.matching.matchtable import (
    ALL_SIZES,
    SLOT_COUNT,
    SLOTS,
    MatchTable,
    Ranking,
    is_bystander,
    least_overlaps,
    outside_of,
)
from jaccard_eval.native.calls import HitLists, find_hits, interpolate, weigh_curves
from jaccard_eval.options import BEST_F1

if TYPE_CHECKING:
    from hashlib import _Hash


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


SCORE_CUTS: FloatArray = np.multiply(0.1, np.arange(10), dtype=np.float64)  # detections with more than these are paired
_EPSILON = 1e-6


def pairing_shares(table: MatchTable, threshold: int, n_images: int) -> tuple[FloatArray, BoolArray]:
    """Return the index of each class and image by score cut, and whether anything is there; (S, K, n_images) each.

    It is k / (m + n - k) for k pairs of m objects and n detections, with 1e-6 added below. Pairs are those of a one-to-
    one assignment with the highest sum of overlaps. What has no partner and is covered by ignored ground truth is not
    there.

    Source: Chu et al. (2020), "Detection in Crowded Scenes: One Proposal, Multiple Predictions", section 4, with the
    cuts and the summand of its code.
    """
    least = least_overlaps(table.protocol)[threshold]
    shape = table.n_labels, n_images
    reaches = table.pair_overlap >= least
    is_object = ~table.gt_ignored[ALL_SIZES]
    of_object = is_object[table.pair_gt]
    cell = table.label.astype(np.int64) * n_images + table.image
    gt_cell = table.gt_label * n_images + table.gt_image
    covered = np.zeros(len(table), dtype=np.bool_)
    covered[table.pair_detection[reaches & ~of_object]] = True
    gt_covered = np.zeros(len(is_object), dtype=np.bool_) if table.gt_cover is None else table.gt_cover >= least
    shares, is_there = np.zeros((len(SCORE_CUTS), *shape)), np.zeros((len(SCORE_CUTS), *shape), dtype=np.bool_)
    for place, cut in enumerate(SCORE_CUTS):
        kept = table.score > cut
        edges = np.flatnonzero(reaches & of_object & kept[table.pair_detection])
        edges = edges[_assigned(table, edges, cell[table.pair_detection[edges]])]
        paired, gt_paired = np.zeros(len(table), dtype=np.bool_), np.zeros(len(is_object), dtype=np.bool_)
        paired[table.pair_detection[edges]], gt_paired[table.pair_gt[edges]] = True, True
        k, n, m = (
            np.bincount(cells, minlength=shape[0] * n_images).reshape(shape)
            for cells in (
                cell[paired],
                cell[kept & (paired | ~covered)],
                gt_cell[is_object & (gt_paired | ~gt_covered)],
            )
        )
        shares[place], is_there[place] = k / (m + n - k + _EPSILON), m + n > 0
    return shares, is_there


def _assigned(table: MatchTable, edges: IntArray, cell: IntArray) -> BoolArray:
    """Mark the pairs, of some by their class and image, of the assignments with the highest sums."""
    det, gt = table.pair_detection[edges], table.pair_gt[edges]
    # Most pairs have no rival.
    chosen: BoolArray = (np.bincount(det)[det] == 1) & (np.bincount(gt)[gt] == 1) if len(edges) else edges > 0
    rivals = np.flatnonzero(~chosen)
    rivals = rivals[stable_order(cell[rivals])] if len(rivals) else rivals
    first, size = lengths_of_runs(starts_of_runs(cell[rivals]))
    for at, n in zip(first.tolist(), size.tolist(), strict=True):
        rows = rivals[at : at + n]
        names, columns = zip(*(np.unique(side[rows], return_inverse=True) for side in (det, gt)), strict=True)
        weights = np.zeros([len(side) for side in names])
        weights[columns] = table.pair_overlap[edges[rows]]
        partner = heaviest_assignment(weights)
        chosen[rows] = partner[columns[0]] == columns[1]
    return chosen


def heaviest_assignment(weights: FloatArray) -> IntArray:
    """Return the column of each row in the one-to-one assignment with the highest sum, -1 for none.

    Source: Kuhn (1955) and Munkres (1957), by shortest augmenting paths: rows are added one by one.

    Examples
    --------
    >>> import numpy as np
    >>> heaviest_assignment(np.array([[0.9, 0.8], [0.7, 0.0]])).tolist()
    [1, 0]
    """
    n_rows, n_columns = weights.shape
    if n_rows > n_columns:
        row_of = heaviest_assignment(weights.T)
        column_of = np.full(n_rows, -1)
        column_of[row_of[row_of >= 0]] = np.flatnonzero(row_of >= 0)
        return column_of
    # The last column is where each path begins.
    prices, gains = np.zeros(n_columns + 1), np.zeros(n_rows)
    owner = np.full(n_columns + 1, -1)
    for row in range(n_rows):
        reached, at = np.zeros(n_columns + 1, dtype=np.bool_), n_columns
        distance, came_from = np.full(n_columns + 1, np.inf), np.full(n_columns + 1, n_columns)
        owner[at] = row
        while owner[at] >= 0:
            reached[at] = True
            through = np.append(-weights[owner[at]] - gains[owner[at]] - prices[:-1], np.inf)
            nearer = ~reached & (through < distance)
            distance[nearer], came_from[nearer] = through[nearer], at
            nearest = int(np.where(reached, np.inf, distance).argmin())
            step = distance[nearest]
            gains[owner[reached]] += step
            prices[reached] -= step
            distance[~reached] -= step
            at = nearest
        while at != n_columns:
            owner[at] = owner[came_from[at]]
            at = int(came_from[at])
    column_of = np.empty(n_rows, dtype=np.int64)
    column_of[owner[:-1][owner[:-1] >= 0]] = np.flatnonzero(owner[:-1] >= 0)
    return column_of


class Hits:
    """True positives of one area range and cap, by threshold, class and rank, and what counts before them."""

    def __init__(self, ranking: Ranking, area: int, cap: int | None) -> None:
        self._ranking = ranking
        self._area = area
        # The largest cap was applied before matching. A smaller one changes no match: better detections chose first.
        self._cap = cap if cap is not None and cap != ranking.protocol.max_dets[-1] else None
        self._own_counts: WholeArray | None = None
        self.detection: WholeArray  # (h,)
        if found := self._find():
            self.detection, self._own_counts, count = found
        else:
            # Threshold by threshold: `nonzero` of two axes takes ten times as long, and keeps twice the memory alive.
            rows = [np.flatnonzero(hits_at) for hits_at in self._capped(ranking.hits[area], ranking.candidate)]
            self.detection = ranking.candidate[np.concatenate(rows)]
            label = ranking.label[ranking.candidate]
            count = np.stack([np.bincount(label[row], minlength=ranking.n_labels) for row in rows])
        # The first hit of a cell, and the one after its last, (T, K): detections come by class within a threshold.
        self.stop = np.cumsum(count).reshape(count.shape)
        self.start = self.stop - count

    def _find(self, ties: tuple[RowArray, bool] | None = None) -> tuple[RowArray, RowArray, IntArray] | None:
        ranking, area = self._ranking, self._area
        return find_hits(
            (ranking.label, ranking.rank, ranking.in_range[area]),
            (ranking.candidate, ranking.hits[area], ranking.counts[area]),
            n_labels=ranking.n_labels,
            cap=self._cap,
            ties=ties,
        )

    def _capped(self, flags: BoolArray, rows: IntArray | slice = slice(None)) -> BoolArray:
        return flags if self._cap is None else flags & (self._ranking.rank[rows] < self._cap)

    def own_counts(self, ties: tuple[RowArray, bool] | None = None) -> WholeArray | None:
        """Count the detections of its class that count up to each hit (h,); None without the compiled core.

        Given where each tie begins, and where the last one ends, with the hits of each in front of it, or behind.
        """
        if ties is None:
            return self._own_counts
        found = self._find(ties)
        return None if found is None else found[1]

    @cached_property
    def _counts(self) -> BoolArray:
        return self._capped(self._ranking.counts[self._area], self._ranking.candidate)

    @cached_property
    def _unmatched(self) -> BoolArray:
        return self._capped(self._ranking.in_range[self._area])

    @property
    def threshold(self) -> IntArray:
        """Place of the threshold of each one, shape (h,); made anew, as keeping it would cost 10 MB at COCO's size."""
        return np.repeat(np.arange(len(self.start)), (self.stop - self.start).sum(axis=1))

    @cached_property
    def image(self) -> WholeArray:
        """Image of each one, shape (h,)."""
        return self._ranking.image[self.detection]

    @cached_property
    def _base(self) -> IntArray:
        """Images of what counts unless it matches anything, shape (u,)."""
        return np.asarray(self._ranking.image[self._unmatched])

    @cached_property
    def _changed(self) -> BoolArray:
        """Candidates that count, or do not count, because of what they match; shape (T, c)."""
        return np.asarray(self._counts != self._unmatched[self._ranking.candidate])

    @cached_property
    def _changed_images(self) -> WholeArray:
        """Image of each change by matching, shape (d,)."""
        _, candidate = np.nonzero(self._changed)
        return self._ranking.image[self._ranking.candidate[candidate]]

    @cached_property
    def _signs(self) -> npt.NDArray[np.int8]:
        """For each change by matching, 1 for what counts because of it, else -1; shape (d,)."""
        return np.where(self._counts[self._changed], np.int8(1), np.int8(-1))

    def places(self, rows: WholeArray) -> _Places:
        """Find what counts in front of a row of the ranking for each hit (h,)."""
        ranking = self._ranking
        classes = np.searchsorted(ranking.label, np.arange(ranking.n_labels, dtype=ranking.label.dtype))
        # Two lists: what counts unless it matches, once for all thresholds, and the corrections at candidates, a row a
        # threshold. So nothing of shape (T, n) is ever made.
        is_candidate = np.zeros(len(ranking), dtype=np.bool_)
        is_candidate[ranking.candidate] = True
        before = running_total(is_candidate, np.int32)
        of_class, of_hit = (
            thresholds * len(ranking.candidate) + before[at]
            for thresholds, at in ((np.arange(len(self.start))[:, None], classes), (self.threshold, rows))
        )
        base, change = running_total(self._unmatched, np.int32), running_total(self._changed.ravel(), np.int32)
        return _Places(np.broadcast_to(base[classes], self.start.shape), base[rows], change[of_class], change[of_hit])

    def totals(self) -> IntArray:
        """Count all detections that count, of all classes together, at each threshold; shape (T,)."""
        unmatched = np.count_nonzero(self._unmatched)
        of_candidates = np.count_nonzero(self._unmatched[self._ranking.candidate])
        return np.asarray(unmatched - of_candidates + np.count_nonzero(self._counts, axis=1))

    @cached_property
    def own_places(self) -> _Places:
        """What counts up to and including each hit."""
        return self.places(self.detection + 1)

    @cached_property
    def lists(self) -> HitLists:
        """What resamples are measured by in compiled code."""
        places = self.own_places
        of_hits = self.image, places.base, places.change
        of_cells = places.base_of_class, places.change_of_class, self.start, self.stop
        return HitLists(self._base, self._changed_images, self._signs, *of_hits, *of_cells)

    def weigh(self, weights: IntArray | None, places: _Places) -> IntArray:
        """Return the weight of the detections of a hit's class that count in front of its place, shape (h,)."""
        if weights is None:  # what stands in front is its own weight
            before, outside, change = places.base, places.base_of_class, self._signs
            total = running_total(change, np.int32)
        else:
            base = running_total(weights[self._base])
            before, outside = base[places.base], base[places.base_of_class]
            change = weights[self._changed_images] * self._signs
            total = running_total(change)
        if len(change):
            before, outside = before + total[places.change], outside + total[places.change_of_class]
        return np.asarray(before - np.repeat(outside.ravel(), (self.stop - self.start).ravel()))


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """How many rows of the two lists that count stand in front of each hit (h,), and in front of its class (T, K)."""

    base_of_class: IntArray
    base: IntArray
    change_of_class: IntArray
    change: IntArray


def running_total(values: WholeArray | BoolArray, dtype: type[np.integer] = np.int64) -> npt.NDArray[Any]:
    """Sum up the values in front of each one, and all; shape (n + 1,)."""
    total = np.zeros(len(values) + 1, dtype=dtype)
    np.cumsum(values, dtype=dtype, out=total[1:])
    return total


MOST_NEEDED = 1 << 13  # numbers of objects whose needs are kept: 7 MB at 101 recall values
BLOCK_ROWS = 1 << 16  # about as many detections are looked at together


class TieOrder:
    """Digests, for each class, the ties that span a hit and a miss at any area range and threshold, in their order.

    Rankings may be added in pieces, the rows of a class one after the other. A tie that is cut is added piece by piece.
    """

    def __init__(self) -> None:
        self._of_class: dict[int, _Hash] = {}
        # The tie that is cut and may go on: class and score, digest with it, where it hits and misses (w,).
        self._open: tuple[int, float, _Hash, Words, Words] | None = None

    def add(self, ranking: Ranking, ties: tuple[WholeArray, WholeArray]) -> None:
        """Add a ranking, with where each run of one class and score begins and how long it is."""
        first, size = ties
        # Only what hits somewhere can span: of most ties nothing does.
        candidates = np.flatnonzero(np.repeat(size > 1, size)[ranking.candidate])
        run = np.searchsorted(first, ranking.candidate[candidates], "right") - 1
        hits = ranking.hits[..., candidates].any(axis=(0, 1))
        chosen = distinct(run[hits])
        for block in np.split(chosen, np.flatnonzero(np.diff(np.cumsum(size[chosen]) // BLOCK_ROWS)) + 1):
            if len(block):
                self._add_runs(ranking, first[block], size[block])

    def _add_runs(self, ranking: Ranking, first: WholeArray, size: WholeArray) -> None:
        start = np.cumsum(size) - size
        rows = np.arange(size.sum()) + np.repeat(first - start, size)
        hits, misses = outcomes(ranking, rows)
        both = np.bitwise_or.reduceat(hits, start) & np.bitwise_or.reduceat(misses, start)
        cut = at_smaller_cap(ranking, rows, hits, np.repeat(first, size))
        spans = both.any(axis=1) | np.logical_or.reduceat(cut, start)
        kept = np.flatnonzero(np.repeat(spans, size))
        if not len(kept):
            return
        words, label = words_of(ranking, rows[kept], hits[kept], misses[kept]), ranking.label[rows[kept]]
        cuts, lengths = lengths_of_runs(starts_of_runs(label))
        for at, n in zip(cuts.tolist(), lengths.tolist(), strict=True):
            self._of_class.setdefault(int(label[at]), sha256()).update(words[at : at + n].tobytes())

    def add_piece(self, ranking: Ranking) -> None:
        """Add a piece of a tie of one class, which other pieces may follow."""
        if not len(ranking):
            return
        rows = np.arange(len(ranking))
        hits, misses = outcomes(ranking, rows)
        label, score = int(ranking.label[0]), float(ranking.score[0])
        if self._open is None or self._open[:2] != (label, score):
            self.close()
            content = self._of_class.get(label, sha256()).copy()
            self._open = label, score, content, np.zeros_like(hits[0]), np.zeros_like(hits[0])
        *_, content, has_hits, has_misses = self._open
        # What a smaller cap cuts counts as a tie that spans both.
        if at_smaller_cap(ranking, rows, hits, np.zeros_like(rows)).any():
            has_hits[0] = has_misses[0] = 1
        content.update(words_of(ranking, rows, hits, misses).tobytes())
        has_hits |= np.bitwise_or.reduce(hits, axis=0)
        has_misses |= np.bitwise_or.reduce(misses, axis=0)

    def close(self) -> None:
        """Take over the tie that was cut, if it spans a hit and a miss."""
        if self._open is not None:
            label, _, content, has_hits, has_misses = self._open
            if (has_hits & has_misses).any():
                self._of_class[label] = content
        self._open = None

    def digests(self) -> dict[int, str]:
        """Return the digest of each class that has such ties."""
        self.close()
        return {label: content.hexdigest() for label, content in self._of_class.items()}


def at_smaller_cap(ranking: Ranking, rows: IntArray, hits: Words, tie: IntArray) -> BoolArray:
    """Mark the first of those detections of one tie and image, (r,), that a smaller cap parts, where not all hit alike.

    The recall within that cap depends on their order: AR1 and AR10.
    """
    marked = np.zeros(len(rows), dtype=np.bool_)
    if len(caps := ranking.protocol.max_dets[:-1]):
        image, rank = ranking.image[rows], ranking.rank[rows]
        # Rows ascend by tie, then as the protocol orders them, mostly by image, then by rank.
        order = np.arange(len(rows)) if ranking.protocol.score_ties == "image" else np.lexsort((rank, image, tie))
        first, size = lengths_of_runs(starts_of_runs(tie[order]) | starts_of_runs(image[order]))
        low, high = rank[order[first]], rank[order[first + size - 1]]
        parted = np.logical_or.reduce([(low < cap) & (cap <= high) for cap in caps])
        ordered = hits[order]
        alike = np.bitwise_or.reduceat(ordered, first) == np.bitwise_and.reduceat(ordered, first)
        marked[order[first]] = parted & ~alike.all(axis=1)
    return marked


def late_misses(
    ranking: Ranking, area: int, cap: int | None, first: WholeArray, weights: IntArray | None = None
) -> tuple[WholeArray, IntArray]:
    """Count the misses of each tie, by where it begins (u,), that no order puts before its hits: (T, u).

    `first` is where the tie of each candidate begins, (c,). Of candidates of one image in one tie, only those behind
    another one are meant: if it stood in front, it might take the object that the other one finds.
    """
    rows = ranking.candidate
    # Candidates of one tie are neighbours; most stand alone.
    same = first[1:] == first[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    late = tied[is_behind(first[tied], ranking.image[rows[tied]])]
    ties, place = np.unique(first[late], return_inverse=True)
    misses = misses_of(ranking, area, cap, late)
    weight = misses if weights is None else misses * weights[ranking.image[rows[late]]]
    counts = [np.bincount(place, of_threshold, len(ties)) for of_threshold in weight]
    return ties, np.stack(counts).astype(np.int64)


def misses_of(ranking: Ranking, area: int, cap: int | None, candidates: IntArray) -> BoolArray:
    """Return which of some candidates are false positives within a cap, (T, r)."""
    within = True if cap is None else ranking.rank[ranking.candidate[candidates]] < cap
    return np.asarray(ranking.counts[area][:, candidates] & ~ranking.hits[area][:, candidates] & within)


def late_of_hits(
    late: tuple[WholeArray, IntArray], hits: Hits, start: WholeArray
) -> tuple[IntArray, npt.NDArray[np.integer]]:
    """Return the hits whose tie has `late_misses`, (r,), and how many; the tie of each row (n,) begins at `start`."""
    ties, counts = late
    if not len(ties):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # A mark of one byte for each row: the few hits that are meant are found in the cache.
    is_late = np.zeros(len(start), dtype=np.bool_)
    is_late[ties] = True
    (some,) = np.nonzero(is_late[start][hits.detection])
    threshold, tie = np.searchsorted(hits.stop[:, -1], some, "right"), start[hits.detection[some]]
    return some, counts[threshold, np.searchsorted(ties, tie)]


def is_behind(*keys: WholeArray) -> BoolArray:
    """Return which rows have the same keys as an earlier one, (r,)."""
    order = np.lexsort(keys)
    same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
    behind = np.zeros(len(order), dtype=np.bool_)
    behind[order[1:][same]] = True
    return behind


def outcomes(ranking: Ranking, rows: IntArray) -> tuple[Words, Words]:
    """Return which detections are true positives, and which false ones, a bit by area range and threshold (r, w)."""
    n_areas, n_thresholds, _ = ranking.hits.shape
    at = np.searchsorted(rows, ranking.candidate)
    chosen = np.flatnonzero((at < len(rows)) & (rows[np.minimum(at, len(rows) - 1)] == ranking.candidate))
    hits, counts = (
        _packed(flags[..., chosen].reshape(n_areas * n_thresholds, len(chosen)))
        for flags in (ranking.hits, ranking.counts)
    )
    misses = np.zeros((len(rows), hits.shape[1]), dtype=np.uint64)
    bits_of_areas = _packed(np.repeat(np.eye(n_areas, dtype=np.bool_), n_thresholds, axis=0))  # (A, w)
    for in_range, bits in zip(ranking.in_range, bits_of_areas, strict=True):
        misses |= in_range[rows, None] * bits
    found = np.zeros_like(misses)
    found[at[chosen]], misses[at[chosen]] = hits, counts & ~hits
    return found, misses


def _packed(flags: BoolArray) -> Words:
    """Return flags (f, r) as bits of whole words (r, w), which are combined at once."""
    bits = np.packbits(flags, axis=0)
    words = np.zeros((flags.shape[1], 8 * -(-len(bits) // 8)), dtype=np.uint8)
    words[:, : len(bits)] = bits.T
    return words.view(np.uint64)


def words_of(ranking: Ranking, rows: IntArray, hits: Words, misses: Words) -> npt.NDArray[np.uint8]:
    """Return the score and the outcomes of some detections as bytes, (r, b)."""
    n_areas, n_thresholds, _ = ranking.hits.shape
    n_bytes = -(-n_areas * n_thresholds // 8)
    scores = (ranking.score[rows].astype("<f8") + 0.0).view(np.uint8).reshape(len(rows), 8)
    return np.hstack((scores, *(bits.view(np.uint8)[:, :n_bytes] for bits in (hits, misses))))


LINES = "lines"  # from (0, 1) between the points of scores
BETWEEN = "between"  # the reading of recall at rates of false positives that draws such lines from (0, 0)
# Hits that no class has; far from the end of int64, so that sums with it do not wrap.
NEVER = np.iinfo(np.int32).max


class CurveSource(TypingProtocol):
    """What averages and operating points are taken of, wherever it was computed; NaN for a class without ground truth.

    Areas, caps and thresholds are given by their places on the axes A, M and T.
    """

    @property
    def protocol(self) -> Protocol:
        """The rules that boxes were matched by."""

    @property
    def n_images(self) -> int:
        """How many images there are."""

    @property
    def positives(self) -> IntArray:
        """Objects that count, shape (A, K)."""

    @property
    def objects(self) -> IntArray:
        """All objects, whether they count or not, shape (K,)."""

    @property
    def detections(self) -> IntArray:
        """All detections within the largest cap, shape (K,)."""

    @property
    def n_tied(self) -> int:
        """How many detections share their score with another one of their class."""

    @property
    def tie_orders(self) -> Mapping[int, str]:
        """Digest of the ties that span a hit and a miss, in their order, of each class that has any."""

    def restrict(self, images: IntArray) -> CurveSource:
        """Return the curves of some images, ascending rows that are then counted from 0."""

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""

    def area_under_curve(self, area: int, cap: int) -> FloatArray:
        """Area below the curve as the protocol draws it between its corners, shape (T, K)."""

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections, shape (T, K)."""

    def recall_at(
        self, threshold: int, rates: FloatArray, *, area: int = ALL_SIZES, reaching: bool = False
    ) -> FloatArray:
        """Recall of each class at rates of false positives per image, (K, r); see `Curves.recall_at`."""

    def counts_at(self, threshold: int, label: int | None, score: float) -> tuple[int, int, int]:
        """Count true positives, false positives and misses of detections with at least `score`, over all sizes.

        Those of one class or, for None, of all classes pooled.
        """

    def best_score(self, threshold: int, label: int | None, aim: str = BEST_F1) -> float:
        """Return the score that does best by an aim and, of several, the highest one; NaN where none does; `merits`."""


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Where recall rises: the hits of each threshold and class (a cell), by rank."""

    protocol: Protocol
    # Weight of the hits in front of each one, (h + 1,), of all cells together: differences are those of a cell.
    total: WholeArray
    # Weight of the detections of its cell that count, up to and including each hit, (h,).
    before: WholeArray
    # The first hit of each cell, and the one after its last, (T, K).
    start: IntArray
    stop: IntArray
    positives: IntArray  # (K,)

    @property
    def precision(self) -> FloatArray:
        """Precision at each hit, and a closing 0; shape (h + 1,)."""
        index = self.total[1:] - np.repeat(self.total[self.start].ravel(), (self.stop - self.start).ravel())
        # Hits of no weight may have nothing before them that counts: 0 / 1 there.
        before = np.maximum(self.before, 1)
        # pycocotools adds np.spacing(1) against 0 / 0, so that a lone hit has 0.9999999999999998; kept for parity.
        precision = np.zeros(len(self.total))
        np.divide(index, before + self.protocol.precision_epsilon, out=precision[:-1])
        return precision

    def needed(self, grid: FloatArray) -> IntArray:
        """Return the weight of hits that reaches each recall value, shape (K, R)."""
        return needed_hits(self.positives, grid)

    def first_reaching(self, needed: IntArray) -> IntArray:
        """Find the hit that reaches each recall value, `stop` where none does; shape (T, K, R)."""
        target = self.total[self.start][:, :, None] + needed
        # Totals are whole numbers that never fall, so that counting them replaces a search: entry w is how many hits
        # there are up to which there is no more than the weight w.
        n_short = np.cumsum(np.bincount(self.total[1:], minlength=1))
        found = n_short[np.minimum(target - 1, len(n_short) - 1)]
        return np.asarray(np.minimum(found, self.stop[:, :, None]))

    def interpolated_precision(self, grid: FloatArray) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        needed, epsilon = self.needed(grid), self.protocol.precision_epsilon
        compiled = interpolate(self.total, self.before, (self.start, self.stop), needed, epsilon=epsilon)
        if compiled is not None:
            return self.undefined_without_truth(compiled)
        at = self.first_reaching(needed)
        # A grid begins with 0, which the first hit of any weight reaches; hits before it have precision 0. So what is
        # found up to the next place is that of one class alone, except for values that it does not reach.
        until_next = np.maximum.reduceat(self.precision, at.ravel()).reshape(at.shape)
        until_next[at == self.stop[:, :, None]] = 0
        # The envelope: from the highest recall down, precision never falls. Means are later taken over memory in the
        # order (T, R, K), which decides the last bit of a pairwise sum: hence the copy.
        highest = np.maximum.accumulate(until_next[:, :, ::-1], axis=2)[:, :, ::-1]
        return self.undefined_without_truth(np.ascontiguousarray(highest.transpose(0, 2, 1)))

    def defined_precision(self, grid: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the same of the classes with ground truth, (T, R, k), and which these are, (k,), ascending."""
        (kept,) = np.nonzero(self.positives > 0)
        others = self.positives == 0
        # Images of weight 0 leave hits to a class without objects; without the core, all hits are visited.
        if others.any() and not (self.stop - self.start)[:, others].any():
            start, stop = (np.ascontiguousarray(cells[:, kept]) for cells in (self.start, self.stop))
            steps = Steps(self.protocol, self.total, self.before, start, stop, self.positives[kept])
            shape = len(start), len(grid), 0
            return (steps.interpolated_precision(grid) if len(kept) else np.zeros(shape)), kept
        precision = self.interpolated_precision(grid)
        return np.ascontiguousarray(precision[..., kept]) if others.any() else precision, kept

    def area_under_lines(self, detections: IntArray, grid: FloatArray, *, tail: bool) -> FloatArray:
        """Area below straight lines between the corners of each curve, by trapezoids between recall values; (T, K).

        Of `detections` (T, K), those of each cell that count, the last one stands where recall ends. Behind it a line
        falls to (1, 0), the `tail`; without it, precision is 0 from the last recall on.

        Source: the rules of Ultralytics, ``compute_ap`` of its ``utils/metrics.py``: ``numpy.interp`` on the envelope.
        """
        area = np.zeros(self.start.shape)
        weights, precision = np.diff(self.total), self.precision
        for t, k in zip(*np.nonzero(np.broadcast_to(self.positives > 0, area.shape)), strict=True):
            rows = np.arange(self.start[t, k], self.stop[t, k])
            rows = rows[weights[rows] > 0]
            weight, before, n = weights[rows], self.before[rows], self.positives[k]
            reached = np.cumsum(weight)
            envelope = np.maximum.accumulate(precision[rows][::-1])[::-1]
            # A line to a hit begins at the hit in front; where something else counts between the two, it is level.
            is_level = before - weight > np.append(0, before[:-1])
            begin = np.where(is_level, envelope, np.append(1.0, envelope[:-1]))
            # A hit of some weight is that many of weight 1, all but the first of them level.
            recall = np.stack((reached - weight, reached - weight + 1, reached), axis=1).ravel() / n
            height = np.stack((begin, envelope, envelope), axis=1).ravel()
            last = reached[-1] if len(rows) else 0
            end = last / max(detections[t, k], 1) if tail else 0.0
            line = np.interp(grid, np.append(recall, (last / n, 1.0)), np.append(height, (end, 0.0)))
            area[t, k] = (np.diff(grid) * (line[1:] + line[:-1]) / 2.0).sum()
        return self.undefined_without_truth(area)

    def area_under_points(self, *, from_one: bool = False) -> FloatArray:
        """Area below straight lines between the points of all detections, from the first one, or (0, 1), on; (T, K).

        Source: the rules of CrowdDet's ``lib/evaluate``.
        """
        area = np.zeros(self.start.shape)
        weights = np.diff(self.total)
        for t, k in zip(*np.nonzero(np.broadcast_to(self.positives > 0, area.shape)), strict=True):
            rows = np.arange(self.start[t, k], self.stop[t, k])
            # A hit of some weight is that many of weight 1; recall stands still between hits, which adds no area.
            before = np.repeat(self.before[rows] - np.cumsum(weights[rows]), weights[rows])
            hits = np.arange(1, len(before) + 1)
            before = before + hits
            # What nothing stands in front of is the first point; a line from (0, 1) to it is level.
            led = before > 1
            front = (hits[led] - 1) / (before[led] - 1)
            area[t, k] = (1 / self.positives[k]) * np.count_nonzero(~led) * from_one
            area[t, k] += ((front + hits[led] / before[led]) / 2).sum() / self.positives[k]
        return self.undefined_without_truth(area)

    def area_in_slots(self) -> FloatArray:
        """Mean precision in KITTI's slots from 1 on, of detections that were matched once; shape (T, K)."""
        area, precision = np.zeros(self.start.shape), self.precision
        for t, k in zip(*np.nonzero(np.broadcast_to(self.positives > 0, area.shape)), strict=True):
            rows = np.arange(self.start[t, k], self.stop[t, k])
            at = precision[np.repeat(rows, np.diff(self.total)[rows])]
            places = chosen_places(len(at), int(self.positives[k]))
            area[t, k] = np.maximum.accumulate(at[places][::-1])[: max(len(places) - 1, 0)].sum() / (SLOT_COUNT - 1)
        return self.undefined_without_truth(area)

    def mean_at_hits(self) -> FloatArray:
        """Mean precision at all objects, that of each hit and 0 of what is missed, without an envelope; shape (T, K).

        Source: the rules of ICDAR 2015's ``script.py``, ``compute_ap``.
        """
        summed = np.append(0, np.cumsum(self.precision[:-1] * np.diff(self.total)))
        found = np.zeros(self.start.shape)
        np.divide(summed[self.stop] - summed[self.start], self.positives, out=found, where=self.positives > 0)
        return self.undefined_without_truth(found)

    def area_by_rule(self, detections: Callable[[], IntArray]) -> FloatArray:
        """Area below the curve of each cell as the protocol draws it, (T, K); `detections` counts those of each."""
        kind = self.protocol.interpolation
        if kind in ("area", "scores"):
            return self.area_under_envelope()
        if kind in ("points", LINES):
            return self.area_under_points(from_one=kind == LINES)
        if kind == SLOTS:
            return self.area_in_slots()
        if kind == "hits":
            return self.mean_at_hits()
        return self.area_under_lines(detections(), self.protocol.recall_grid, tail=kind == "linear to 1")

    def mean_precisions(self, detections: Callable[[], IntArray]) -> FloatArray:
        """Return the average precision of each class at the only threshold, (K,); `detections` counts those of each."""
        if self.protocol.interpolation != "grid":
            return np.asarray(self.area_by_rule(lambda: detections()[None])[0])
        # Class by class in memory: the sum of a mean over another axis adds up in another order, and ends otherwise.
        precision = self.interpolated_precision(self.protocol.recall_grid)[0]  # (R, K)
        return np.asarray(np.ascontiguousarray(precision.T).mean(axis=1))

    def area_under_envelope(self) -> FloatArray:
        """Area below the interpolated precision of each class, shape (T, K).

        Source: PASCAL VOC development kit, ``VOCap.m`` of 2010 and later.
        """
        precision = self.precision
        area = np.full(self.start.shape, np.nan)
        for t, k in np.argwhere(np.broadcast_to(self.positives > 0, area.shape)):
            start, stop = self.start[t, k], self.stop[t, k]
            # Hits alone do: between them recall stands still, and the envelope of misses adds no area.
            recall = (self.total[start : stop + 1] - self.total[start]) / self.positives[k]
            envelope = np.maximum.accumulate(precision[start:stop][::-1])[::-1]
            area[t, k] = np.sum(np.diff(recall) * envelope)
        return area

    def recall_at(self, threshold: int, rates: FloatArray, n_images: int, *, reaching: bool) -> FloatArray:
        """Return the recall of each class at rates of false positives per image, (K, r); see `Curves.recall_at`."""
        side: Literal["left", "right"] = "left" if reaching else "right"
        # A rate of so many images may lie an ulp below the number that it means.
        most = rates * n_images * (1 + 1e-12)
        if reaching:
            most = required_hits(np.array([n_images]), rates)[0]
        recall = np.full((len(self.positives), len(rates)), np.nan)
        for k in np.flatnonzero(self.positives).tolist():
            rows = slice(self.start[threshold, k], self.stop[threshold, k])
            hits = self.total[1:][rows] - self.total[rows.start]
            within = np.searchsorted(self.before[rows] - hits, most, side)
            recall[k] = np.append(0, hits)[within] / self.positives[k]
        return recall

    def recall_between(self, threshold: int, rates: FloatArray, n_images: int, worst: Steps) -> FloatArray:
        """Return the same off straight lines between the points of scores that occur, from (0, 0) on, (K, r).

        Hits stand here in front of everything else in their ties, and in `worst` behind: between the two lies the line
        of a tie.

        Source: the rules of LUNA16's ``noduleCADEvaluationLUNA16.py``.
        """
        recall = np.full((len(self.positives), len(rates)), np.nan)
        for k in np.flatnonzero(self.positives).tolist():
            rows = slice(self.start[threshold, k], self.stop[threshold, k])
            hits = self.total[1:][rows] - self.total[rows.start]
            begin, end = (steps.before[rows] - hits for steps in (self, worst))
            first, size = lengths_of_runs(starts_of_runs(begin) | starts_of_runs(end))
            misses = np.stack((begin[first], end[first]), axis=1)
            found = np.stack((self.total[:-1][rows][first] - self.total[rows.start], hits[first + size - 1]), axis=1)
            recall[k] = np.interp(rates * n_images, np.append(0, misses), np.append(0, found)) / self.positives[k]
        return recall

    def undefined_without_truth(self, values: FloatArray) -> FloatArray:
        """Set values (..., K) of classes without ground truth to NaN."""
        values[..., self.positives == 0] = np.nan
        return values


class Curves:
    """Curves of a ranking; everything is computed when asked for, NaN where a class has no ground truth.

    `weights` (n_images,) are how often each image counts, from 0 on; once unless given. `hits_first` puts the hits of
    each tie before everything else in it, or behind; they stay where they stand unless given.
    """

    def __init__(
        self,
        ranking: Ranking,
        *,
        weights: IntArray | None = None,
        hits_first: bool | None = None,
        plan: _Plan | None = None,
    ) -> None:
        self.ranking = ranking
        self.caps: tuple[int | None, ...] = ranking.protocol.max_dets or (None,)
        self._weights = weights
        self._hits_first = hits_first
        # Shared by all views: a bootstrap makes a thousand of them, and preparing costs more than measuring.
        self._plan = plan or _Plan(ranking)
        self._totals: dict[tuple[int, int], IntArray] = {}
        self._counted: dict[tuple[int, int], IntArray] = {}  # the weight of the hits of each cell, (T, K)

    def weighted(self, weights: IntArray) -> Curves:
        """Return the curves for other weights of the images."""
        return Curves(self.ranking, weights=weights, hits_first=self._hits_first, plan=self._plan)

    def ties(self, *, best: bool) -> Curves:
        """Return the curves with the hits of each tie in front, or behind: the highest precision, or the lowest."""
        return Curves(self.ranking, weights=self._weights, hits_first=best, plan=self._plan)

    @property
    def protocol(self) -> Protocol:
        """The rules that boxes were matched by."""
        return self.ranking.protocol

    @property
    def objects(self) -> IntArray:
        """All objects, whether they count or not, shape (K,)."""
        return np.bincount(self.ranking.gt_label, minlength=self.ranking.n_labels)

    @property
    def detections(self) -> IntArray:
        """All detections within the largest cap, shape (K,)."""
        return np.bincount(self.ranking.own_labels, minlength=self.ranking.n_labels)

    @cached_property
    def n_tied(self) -> int:
        """How many detections share their score with another one of their class."""
        return len(self.ranking) - int(np.count_nonzero(np.diff(self._plan.tie_bounds) == 1))

    @cached_property
    def tie_orders(self) -> Mapping[int, str]:
        """Digest of the ties that span a hit and a miss, in their order, of each class that has any."""
        order, ranking = TieOrder(), self.ranking
        bounds = self._plan.tie_bounds
        order.add(ranking, (bounds[:-1], np.diff(bounds)))
        return order.digests()

    def restrict(self, images: IntArray) -> Curves:
        """Return the curves of some images, ascending rows that are then counted from 0."""
        return Curves(self.ranking.restrict(images))

    @property
    def n_images(self) -> int:
        """How many images there are."""
        return self.ranking.n_images if self._weights is None else int(self._weights.sum())

    @cached_property
    def positives(self) -> IntArray:
        """Objects that count, shape (A, K)."""
        (cell, image), shape = self._plan.truth, (len(self.ranking.gt_counts), self.ranking.n_labels)
        # bincount sums floats where it has weights; these stay whole numbers, exact up to 2**53.
        weights = None if self._weights is None else self._weights[image]
        return np.bincount(cell, weights, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)

    @cached_property
    def images_of_classes(self) -> IntArray:
        """How many images hold an object of each class, whether it counts or not; shape (K,)."""
        ranking = self.ranking
        label, image = np.divmod(np.unique(ranking.gt_label * ranking.n_images + ranking.gt_image), ranking.n_images)
        weights = None if self._weights is None else self._weights[image]
        return np.bincount(label, weights, minlength=ranking.n_labels).astype(np.int64)

    @cached_property
    def precision(self) -> FloatArray:
        """Interpolated precision at each recall value, shape (T, R, K, A, M)."""
        return self._stack(self.interpolated_precision)

    @cached_property
    def scores(self) -> FloatArray:
        """Score at which each recall value is reached, 0 beyond the last; shape (T, R, K, A, M)."""
        return self._stack(self.recall_scores)

    @cached_property
    def recall(self) -> FloatArray:
        """Recall over all detections, shape (T, K, A, M)."""
        return self._stack(self.final_recall)

    # All area ranges and caps at once are 78 MB for the 80 classes of COCO. So the summary asks slice by slice, and
    # only who wants whole curves gets these.
    def _stack(self, slice_of: Callable[[int, int], FloatArray]) -> FloatArray:
        areas, caps = range(len(self.ranking.gt_counts)), range(len(self.caps))
        return np.stack([np.stack([slice_of(a, m) for m in caps], axis=-1) for a in areas], axis=-2)

    @property
    def recall_grid(self) -> FloatArray:
        """Recall values of the curves; 101 of them where the protocol itself uses none."""
        return self._plan.recall_grid.copy()

    def hit_counts(self, area: int, cap: int) -> IntArray:
        """Count the true positives, shape (T, K)."""
        if self._weights is None:
            key = area, self.caps[cap]
            if key not in self._plan.hit_counts:
                self._plan.latest_hits(*key)
            return self._plan.hit_counts[key]
        if self._weighed(area, cap, np.zeros(0, np.int64)) is not None:
            return self._counted[area, cap]
        hits, total = self._hits(area, cap), self._total(area, cap)
        return np.asarray(total[hits.stop] - total[hits.start])

    def _of(self, rows: IntArray) -> IntArray:
        """Return the weight of detections, (r,)."""
        return np.ones_like(rows) if self._weights is None else self._weights[self.ranking.image[rows]]

    def detection_counts(self, area: int = ALL_SIZES, cap: int = -1) -> IntArray:
        """Count the detections that are true or false positives, over all sizes by default, (T, K)."""
        ranking, most = self.ranking, self.caps[cap]
        within = slice(None) if most is None else ranking.rank < most
        candidates = ranking.candidate

        def count(rows: IntArray) -> IntArray:
            return np.bincount(ranking.label[rows], self._of(rows), minlength=ranking.n_labels).astype(np.int64)

        # A detection that is not a candidate counts alike at every threshold, so that it is counted once.
        in_range, kept = np.zeros((2, len(ranking)), dtype=np.bool_)
        in_range[within], kept[within] = ranking.in_range[area][within], True
        unmatched = count(np.flatnonzero(in_range)) - count(candidates[in_range[candidates]])
        return unmatched + np.stack([count(candidates[at & kept[candidates]]) for at in ranking.counts[area]])

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections within a cap, shape (T, K)."""
        positives = self.positives[area].astype(np.float64)
        positives[positives == 0] = np.nan
        return np.asarray(self.hit_counts(area, cap) / positives)

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        return self.steps(area, cap).interpolated_precision(self.recall_grid)

    def defined_precision(self, area: int, cap: int) -> tuple[FloatArray, IntArray]:
        """Return the same of the classes with ground truth, (T, R, k), and which these are, (k,), ascending."""
        (kept,) = np.nonzero(self.positives[area] > 0)
        if (precision := self._weighed(area, cap, kept)) is not None:
            return precision, kept
        return self.steps(area, cap).defined_precision(self.recall_grid)

    def _weighed(self, area: int, cap: int, kept: IntArray) -> FloatArray | None:
        """Return the precision of some classes in a resample, and keep its counts; None without the compiled core."""
        if self._weights is None or self._hits_first is not None:
            return None
        if not len(kept) and (area, cap) in self._counted:
            return np.zeros(0)
        hits, needed = self._hits(area, cap), self._plan.needed(self.positives[area, kept])
        found = weigh_curves(self._weights, hits.lists, kept, needed, epsilon=self.protocol.precision_epsilon)
        if found is not None:
            self._counted[area, cap] = found[1]
        return None if found is None else found[0]

    def slot_precision(self, area: int) -> FloatArray:
        """Precision in KITTI's 41 slots, NaN without ground truth; shape (T, K, 41)."""
        weights = np.ones(self.ranking.n_images, dtype=np.int64) if self._weights is None else self._weights
        positives = self.positives[area]
        found = np.full((len(self.protocol.iou_thresholds), len(positives), SLOT_COUNT), np.nan)
        for t in range(len(found)):
            matched = self._plan.matched_anew(area, t)
            for k in np.flatnonzero(positives).tolist():
                found[t, k] = matched[k].precision(int(positives[k]), weights)
        return found

    def area_under_curve(self, area: int, cap: int) -> FloatArray:
        """Area below the curve of each class, as the protocol draws it between its corners; shape (T, K)."""
        if self.protocol.interpolation == SLOTS:
            return np.asarray(self.slot_precision(area)[..., 1:].mean(axis=-1))
        if self.protocol.interpolation == "scores":
            return self._area_at_scores(area)
        if self.protocol.interpolation == LINES and self._hits_first is None:
            return self._area_under_lines(area)
        return self.steps(area, cap).area_by_rule(partial(self.detection_counts, area, cap))

    def _area_at_scores(self, area: int) -> FloatArray:
        """Area below the envelope of points at evenly spaced scores, as the protocol counts them; shape (T, K).

        Source: the rules of WIDER FACE's ``eval_tools``: ``norm_score.m``, ``evaluation.m`` and ``VOCap.m``.
        """
        ranking, n = self.ranking, self.protocol.recall_points
        highest = max(float(ranking.score.max(initial=0)), float(np.finfo(np.float32).tiny))
        lowest = float(ranking.score.min(initial=highest))
        scores = (ranking.score - lowest) / (highest - lowest) if highest > lowest else np.zeros(len(ranking))
        levels = 1 - np.arange(1, n + 1) / n
        found = np.full(self.hit_counts(area, 0).shape, np.nan)
        for (t, k), rows, weight, hit, counts in self._each_curve(area, found.shape):
            at = np.searchsorted(-scores[rows], -levels, "right")
            tp, counted = (np.append(0, np.cumsum(flag * weight))[at] for flag in (hit, counts))
            envelope = np.maximum.accumulate((tp / np.maximum(counted, 1))[::-1])[::-1]
            found[t, k] = np.sum(np.diff(np.append(0, tp)) * envelope) / self.positives[area, k]
        return found

    def _area_under_lines(self, area: int) -> FloatArray:
        """Area below straight lines from (0, 1) between the points of scores, of equal ones all at once; shape (T, K).

        Source: the rules of cityscapesScripts' ``evalInstanceLevelSemanticLabeling.py``: the width of a point is half
        the distance of the recalls next to it.
        """
        ranking = self.ranking
        found = np.full(self.hit_counts(area, 0).shape, np.nan)
        for (t, k), rows, weight, hit, counts in self._each_curve(area, found.shape):
            (last,) = np.nonzero(starts_of_runs(np.append(ranking.score[rows], np.nan))[1:])
            tp, counted = (np.cumsum(flag * weight)[last] for flag in (hit, counts))
            # What is ignored is not a point: in front of all others the line is level.
            precision = np.append(1.0, np.where(counted > 0, tp / np.maximum(counted, 1), 1.0))
            rises = np.diff(np.append(0, tp))
            found[t, k] = np.sum(rises * (precision[1:] + precision[:-1])) / 2 / self.positives[area, k]
        return found

    def _each_curve(
        self, area: int, shape: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, int], slice, IntArray, BoolArray, BoolArray]]:
        """Yield the threshold and class of each curve, with the rows of its detections, their weights and outcomes."""
        for t in range(shape[0]):
            hit, counts = self.ranking.outcomes(t, area)
            for k in np.flatnonzero(self.positives[area]).tolist():
                rows = self._plan.rows(k)
                yield (t, k), rows, self._of(np.arange(len(self.ranking))[rows]), hit[rows], counts[rows]

    def recall_at(
        self, threshold: int, rates: FloatArray, *, area: int = ALL_SIZES, reaching: bool = False
    ) -> FloatArray:
        """Return the recall of each class with at most so many false positives per image (r,), shape (K, r).

        It is that of the last detection up to there, or of the first one with at least as many, else the last of all;
        equal scores stand as the protocol orders them.
        """
        if self.protocol.miss_rate_reading == BETWEEN and self._hits_first is None:
            best, worst = (self.ties(best=best).steps(area, len(self.caps) - 1) for best in (True, False))
            return best.recall_between(threshold, rates, self.n_images, worst)
        steps = self.steps(area, len(self.caps) - 1)
        return steps.recall_at(threshold, rates, self.n_images, reaching=reaching)

    def pairing_share(self, threshold: int) -> FloatArray:
        """Return the mean of `pairing_shares` over images at the score cut with the highest one of each class, (K,)."""
        if self.ranking.table is None:
            raise UsageError("JI needs a protocol that pairs boxes for it: evaluate with crowdhuman")
        shares, is_there = self._plan.pairing_shares(threshold)
        weights = np.ones(self.ranking.n_images) if self._weights is None else self._weights
        # 0 / 0 without any image that counts.
        with np.errstate(invalid="ignore"):
            best = ((shares @ weights) / (is_there @ weights)).max(axis=0)
        return np.where(self.positives[ALL_SIZES] > 0, best, np.nan)

    def at_best_mean_f1(self, threshold: int) -> tuple[FloatArray, FloatArray]:
        """Return precision and recall of each class (K,) at the score where the mean F1 of the classes is highest.

        Over 1,000 scores from 0 to 1, each class is read off straight lines between its detections, and the mean is
        smoothed over 101 of them. NaN without ground truth.

        Source: the rules of Ultralytics, ``ap_per_class`` and ``smooth`` of its ``utils/metrics.py``.
        """
        ranking, positives = self.ranking, self.positives[ALL_SIZES]
        scores = np.linspace(0.0, 1.0, 1000)
        precision, recall = np.zeros((2, ranking.n_labels, len(scores)))
        hit, counts = self._plan.outcomes(threshold)
        for k in np.flatnonzero(positives).tolist():
            rows = np.arange(len(ranking))[self._plan.rows(k)]
            rows = rows[counts[rows] & (self._of(rows) > 0)]
            if len(rows):
                weight = self._of(rows)
                tp, counted = np.cumsum(hit[rows] * weight), np.cumsum(weight)
                recall[k] = np.interp(-scores, -ranking.score[rows], tp / positives[k], left=0)
                precision[k] = np.interp(-scores, -ranking.score[rows], tp / counted, left=1)
        f1 = (2 * precision * recall / (precision + recall + 1e-16))[positives > 0]
        precision[positives == 0] = recall[positives == 0] = np.nan
        if not len(f1):
            return precision[:, 0], recall[:, 0]
        width = 101
        padded = np.pad(f1.mean(axis=0), width // 2, mode="edge")
        best = int(np.convolve(padded, np.full(width, 1 / width), mode="valid").argmax())
        return precision[:, best], recall[:, best]

    def recall_scores(self, area: int, cap: int, grid: FloatArray | None = None) -> FloatArray:
        """Score of the detection that reaches each recall value, those of the curves or a grid from 0; (T, R, K)."""
        ranking, steps = self.ranking, self.steps(area, cap)
        grid = self.recall_grid if grid is None else grid
        at = steps.first_reaching(steps.needed(grid))  # (T, K, R)
        # The closing 0 is what `stop` finds behind the last hit of all; elsewhere it finds a hit of the next cell.
        scores = np.append(ranking.score[self._hits(area, cap).detection], 0.0)[at]
        scores[at == steps.stop[:, :, None]] = 0
        # Recall 0 is reached by the first detection, whether it hits or not, as by pycocotools.
        # An image of weight 0 was not drawn, and its detections are not there to be the first.
        rows = np.arange(len(ranking)) if self._weights is None else np.flatnonzero(self._weights[ranking.image])
        first = rows[starts_of_runs(ranking.label[rows])]
        of_first = np.zeros(ranking.n_labels)
        of_first[ranking.label[first]] = ranking.score[first]
        scores[:, :, grid == 0] = of_first[:, None]
        return steps.undefined_without_truth(np.ascontiguousarray(scores.transpose(0, 2, 1)))

    def steps(self, area: int, cap: int) -> Steps:
        """Return where recall rises within an area range and a cap (by their places on the axes A and M)."""
        hits, total = self._hits(area, cap), self._total(area, cap)
        ties = None if self._hits_first is None else (self._plan.tie_bounds, self._hits_first)
        before: WholeArray | None = hits.own_counts(ties) if self._weights is None else None
        if before is not None:
            pass  # by the compiled core
        elif ties is None:
            # Plain curves are made once: arrays kept for them would cost more than they save.
            places = hits.places(hits.detection + 1) if self._weights is None else hits.own_places
            before = hits.weigh(self._weights, places)
        else:
            # With its hits in front, a hit has before it what counts before the tie, and the hits of the tie up to
            # itself; behind, what counts in and before the tie, less the hits of the tie after it.
            bounds, hits_first = ties
            tie = np.searchsorted(bounds, hits.detection.astype(np.int32), "right")
            first, size = lengths_of_runs(starts_of_runs(hits.threshold) | starts_of_runs(tie))
            row = bounds[tie - hits_first]
            before = hits.weigh(self._weights, hits.places(row)) + total[1:]
            before = before - total[np.repeat(first if hits_first else first + size, size)]
        if self._hits_first is False:
            some, late = self._late(hits, area, cap)
            before[some] -= late
        return Steps(self.ranking.protocol, total, before, hits.start, hits.stop, self.positives[area])

    def _late(self, hits: Hits, area: int, cap: int) -> tuple[IntArray, npt.NDArray[np.integer]]:
        """Return the hits behind which misses stay in their ties, (r,), and the weight of these."""
        bounds, ranking = self._plan.tie_bounds, self.ranking
        start = np.repeat(bounds[:-1], np.diff(bounds))
        late = late_misses(ranking, area, self.caps[cap], start[ranking.candidate], self._weights)
        return late_of_hits(late, hits, start)

    def _hits(self, area: int, cap: int) -> Hits:
        # Resamples ask for the same hits a thousand times, a summary once for each of six cells.
        find = self._plan.latest_hits if self._weights is None else self._plan.hits
        return find(area, self.caps[cap])

    def _total(self, area: int, cap: int) -> WholeArray:
        """Weight of the hits in front of each one, of all thresholds and classes; shape (h + 1,)."""
        hits = self._hits(area, cap)
        if self._weights is None:
            return np.arange(len(hits.detection) + 1, dtype=np.int32)
        if (area, cap) not in self._totals:
            self._totals[area, cap] = running_total(self._weights[hits.image])
        return self._totals[area, cap]

    def counts_at(self, threshold: int, label: int | None, score: float) -> tuple[int, int, int]:
        """Count true positives, false positives and misses at a score.

        Matching goes by descending score, so dropping the detections below a score changes no match above it.
        """
        if self._weights is None:
            tp, counted, positives = map(len, self._plan.images_at(threshold, label, score))
        else:
            # Counts of each image are the same in every resample, which then costs three dot products.
            by_image = self._plan.counts_by_image(threshold, label, score)
            tp, counted, positives = (int(self._weights @ count) for count in by_image)
        return tp, counted - tp, positives - tp

    def counts_of_images(self, threshold: int, label: int | None, score: float) -> tuple[IntArray, ...]:
        """Return how many hits, detections that count and objects each image has, and how often it counts; (n,)."""
        counts = self._plan.counts_by_image(threshold, label, score)
        return (*counts, np.ones(self.n_images, dtype=np.int64) if self._weights is None else self._weights)

    def best_score(self, threshold: int, label: int | None, aim: str = BEST_F1) -> float:
        """Return the best score of one class, or (None) of all classes pooled; see `merits`.

        Taken from every score that occurs, not from the interpolated curve; of equal ones the highest score.
        """
        ranking = self.ranking
        rows = descending_order(ranking.score) if label is None else np.arange(len(ranking))[self._plan.rows(label)]
        if len(rows) == 0:
            return float("nan")
        positives = self.positives[ALL_SIZES] if label is None else self.positives[ALL_SIZES, label]
        weight = np.int8(1) if self._weights is None else self._weights[ranking.image[rows]]
        score = ranking.score[rows]
        # A threshold keeps all of a tie or nothing, so that only the counts at the last of equal scores are real.
        last_of_tie = np.flatnonzero(np.append(score[1:] != score[:-1], True))
        tp, counted = (running_total(flag[rows] * weight)[1:][last_of_tie] for flag in self._plan.outcomes(threshold))
        merit = merits(aim, tp, counted, int(positives.sum()), self.n_images)
        best = int(merit.argmax())
        return float(score[last_of_tie[best]]) if merit[best] > 0 else float("nan")


def merits(aim: str, tp: IntArray, counted: IntArray, positives: int, n_images: int) -> FloatArray:
    """Return what each score is worth by an aim, of so many hits and counting detections at it; 0 where it misses it.

    "best-f1" is worth its F1; "precision=0.9" the recall of those with at least that precision; "recall=0.8" the
    precision of those with at least that recall; "fppi=1" the recall of those with at most so many false positives per
    image.
    """
    if aim == BEST_F1:
        # 2 TP / (2 TP + FP + FN), as counted is TP + FP and positives are TP + FN.
        return np.asarray(2 * tp / np.maximum(counted + positives, 1))
    kind, _, text = aim.partition("=")
    precision, level = tp / np.maximum(counted, 1), float(text)
    if kind == "recall":
        return np.where(tp / max(positives, 1) >= level, precision, 0.0)
    return np.where(precision >= level if kind == "precision" else (counted - tp) / max(n_images, 1) <= level, tp, 0.0)


class _Plan:
    """What the curves of a ranking share whatever the weights; each part is prepared when it is first asked for."""

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        self._hits: dict[tuple[int, int | None], Hits] = {}
        self._latest: tuple[tuple[int, int | None], Hits] | None = None
        self.hit_counts: dict[tuple[int, int | None], IntArray] = {}  # (T, K) each
        self._outcomes: dict[int, tuple[BoolArray, BoolArray]] = {}
        self._matched: dict[tuple[int, int], list[Matched]] = {}
        self._shares: dict[int, tuple[FloatArray, BoolArray]] = {}
        self._counts: dict[tuple[int, int | None, float], tuple[IntArray, ...]] = {}

    def pairing_shares(self, threshold: int) -> tuple[FloatArray, BoolArray]:
        """Return `pairing_shares` of the match table, found once for all resamples."""
        table = self.ranking.table
        if threshold not in self._shares and table is not None:
            self._shares[threshold] = pairing_shares(table, threshold, self.ranking.n_images)
        return self._shares[threshold]

    def matched_anew(self, area: int, threshold: int) -> list[Matched]:
        """Return `match_anew` of the match table, found once for all resamples."""
        table = self.ranking.table
        if (area, threshold) not in self._matched and table is not None:
            self._matched[area, threshold] = match_anew(table, area, threshold)
        return self._matched[area, threshold]

    @cached_property
    def truth(self) -> tuple[IntArray, IntArray]:
        """Objects that count, over all area ranges: which of the (A, K) each counts in, and its image."""
        # Rows, not counts, because the weight of an object is that of its image.
        area, row = np.nonzero(self.ranking.gt_counts)
        return area * self.ranking.n_labels + self.ranking.gt_label[row], self.ranking.gt_image[row]

    @cached_property
    def tie_bounds(self) -> RowArray:
        """Where each tie begins, and where the last one ends."""
        starts = starts_of_runs(self.ranking.score) | starts_of_runs(self.ranking.label)
        return np.flatnonzero(np.append(starts, True)).astype(np.int32)

    @cached_property
    def recall_grid(self) -> FloatArray:
        """`Curves.recall_grid`."""
        # linspace, as in pycocotools: ten of its values lie one unit in the last place above i / 100.
        protocol = self.ranking.protocol
        return protocol.recall_grid if protocol.recall_points else np.linspace(0.0, 1.0, 101)

    @cached_property
    def _needed(self) -> IntArray:
        """What each number of objects needs, (n, R): as many as a resample may have, up to a bound."""
        most = int(np.bincount(self.truth[0], minlength=1).max())
        return needed_hits(np.arange(min(2 * most + 1, MOST_NEEDED)), self.recall_grid)

    def needed(self, positives: IntArray) -> IntArray:
        """Return the weight of hits that reaches each recall value, (k, R), of some numbers of objects (k,)."""
        # A thousand resamples have the same numbers over and over again: they are looked up.
        is_known = positives.max(initial=0) < len(self._needed)
        return self._needed[positives] if is_known else needed_hits(positives, self.recall_grid)

    def hits(self, area: int, cap: int | None) -> Hits:
        """Return the hits of an area range within a cap."""
        if (area, cap) not in self._hits:
            self._hits[area, cap] = Hits(self.ranking, area, cap)
        return self._hits[area, cap]

    def latest_hits(self, area: int, cap: int | None) -> Hits:
        """Return the same where it is wanted once: only those asked for last are kept, and how many each cell has."""
        if (area, cap) in self._hits:
            return self._hits[area, cap]
        if self._latest is None or self._latest[0] != (area, cap):
            self._latest = None  # before others are made
            hits = Hits(self.ranking, area, cap)
            self._latest = (area, cap), hits
            self.hit_counts[area, cap] = hits.stop - hits.start
        return self._latest[1]

    def rows(self, label: int | None) -> slice:
        """Return where the detections of a class stand; None means all."""
        if label is None:
            return slice(None)
        # Classes stand one after the other, so that one of them is a slice, without a copy.
        # Of the same type, or the whole column would be copied to compare.
        bounds = np.array([label, label + 1], dtype=self.ranking.label.dtype)
        return slice(*np.searchsorted(self.ranking.label, bounds).tolist())

    def outcomes(self, threshold: int) -> tuple[BoolArray, BoolArray]:
        """Return `Ranking.outcomes`."""
        if threshold not in self._outcomes:
            self._outcomes[threshold] = self.ranking.outcomes(threshold)
        return self._outcomes[threshold]

    def images_at(self, threshold: int, label: int | None, score: float) -> tuple[WholeArray, WholeArray, WholeArray]:
        """Return the image of each hit, of each detection that counts, and of each object, as `counts_at` counts."""
        ranking, rows = self.ranking, self.rows(label)
        hit, counts = (flag[rows] & (ranking.score[rows] >= score) for flag in self.outcomes(threshold))
        positive = ranking.gt_counts[ALL_SIZES] & (True if label is None else ranking.gt_label == label)
        return ranking.image[rows][hit], ranking.image[rows][counts], ranking.gt_image[positive]

    def counts_by_image(self, threshold: int, label: int | None, score: float) -> tuple[IntArray, ...]:
        """Count what `images_at` lists in each image, shape (n_images,) each: once for all resamples."""
        key = threshold, label, score
        if key not in self._counts:
            self._counts[key] = tuple(
                np.bincount(images, minlength=self.ranking.n_images) for images in self.images_at(*key)
            )
        return self._counts[key]


def required_hits(positives: IntArray, grid: FloatArray) -> IntArray:
    """Return the smallest number of hits h with ``h / positives >= grid`` in float64 division, shape (K, R).

    Where `positives` is 0 the answer is larger than any count.
    """
    n = np.maximum(positives, 1).astype(np.float64)[:, None]
    # As `searchsorted(recall, r, "left")` of pycocotools finds it: the first hit whose recall is at least r.
    hits = np.ceil(grid * n)
    # The product is rounded, so that it may be one too high or too low: the division decides.
    hits -= (hits > 0) & ((hits - 1) / n >= grid)
    hits += hits / n < grid
    hits[positives == 0] = NEVER
    return hits.astype(np.int64)


def needed_hits(positives: IntArray, grid: FloatArray) -> IntArray:
    """Return the weight of hits that reaches each recall value of so many objects, (K, R)."""
    # At recall 0 nothing is needed, but the envelope there is what it is at the first hit. Trials of
    # repairs ask for the same few numbers over and over again.
    numbers = distinct(positives)
    return np.maximum(required_hits(numbers, grid), 1)[np.searchsorted(numbers, positives)]


@dataclass(frozen=True, slots=True, eq=False)
class ScoredHits:
    """Detections that count (n,), in any order; of equal scores the earlier row comes first."""

    label: WholeArray
    score: FloatArray
    hit: BoolArray
    positives: IntArray  # (K,), objects of each class

    def class_precisions(self, protocol: Protocol) -> FloatArray:
        """Return the average precision of each class, shape (K,), as curves have it; NaN without ground truth."""
        label, hit = self.label, self.hit
        same, later = label[1:] == label[:-1], label[1:] > label[:-1]
        # Rows of a match table are in class order already, and to see that costs less than to sort them.
        if not np.all(later | (same & (self.score[1:] <= self.score[:-1]))):
            order = class_and_score_order(label, self.score)
            label, hit = label[order], hit[order]
        place = np.flatnonzero(hit)
        # One threshold, so that a cell is a class; everything that is here counts, so that a place is a count.
        classes = np.arange(len(self.positives) + 1, dtype=label.dtype)
        first, bounds = np.searchsorted(label, classes), np.searchsorted(label[place], classes)
        steps = Steps(
            protocol,
            total=np.arange(len(place) + 1),
            before=place + 1 - first[label[place]],
            start=bounds[None, :-1],
            stop=bounds[None, 1:],
            positives=self.positives,
        )
        return steps.mean_precisions(lambda: np.bincount(label, minlength=len(self.positives)))

    def mean_precision(self, protocol: Protocol) -> float:
        """Return the mean over the classes with ground truth; NaN without any."""
        values = self.class_precisions(protocol)
        defined = values[~np.isnan(values)]
        return float(defined.mean()) if len(defined) else float("nan")


def precisions_at_hits(protocol: Protocol, positives: IntArray, before: Sequence[IntArray], n: IntArray) -> FloatArray:
    """Return the average precision of curves of their own, (k,), as `ScoredHits.class_precisions` has it.

    Each is of so many objects, and of `n` detections; `before` counts those up to and including each of its hits.
    """
    stop = np.cumsum([len(hits) for hits in before])[None]
    start = np.append(0, stop[0, :-1])[None]
    total = np.arange(int(stop[0, -1]) + 1)
    return Steps(protocol, total, np.concatenate(before), start, stop, positives).mean_precisions(lambda: n)
