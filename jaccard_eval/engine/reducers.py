"""What buckets of ranked detections are reduced to: the envelope of a curve, hits, the best F1, counts by score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray, WholeArray, lengths_of_runs, starts_of_runs
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.metrics.curves import merits, required_hits
from jaccard_eval.metrics.hits import Hits, running_total
from jaccard_eval.metrics.ties import TieOrder, late_misses, late_of_hits

# Hits of each tie in front of everything else in it, behind, or where they stand.
TiesFirst = bool | None
Cell = tuple[int, int, TiesFirst]  # area, cap, and how ties are ordered


@dataclass(frozen=True, slots=True, eq=False)
class CurveRules:
    """What all curves of a source have in common."""

    protocol: Protocol
    caps: tuple[int | None, ...]
    positives: IntArray  # (A, K)
    recall_grid: FloatArray


class Shared:
    """What all curves of a bucket need."""

    def __init__(self, ranking: Ranking) -> None:
        is_candidate = np.zeros(len(ranking), dtype=np.bool_)
        is_candidate[ranking.candidate] = True
        self.candidates_before = running_total(is_candidate, np.int32)
        self._ranking = ranking

    @cached_property
    def runs(self) -> tuple[IntArray, IntArray]:
        """Where each run of detections of one class and score begins, and how long it is."""
        return lengths_of_runs(starts_of_runs(self._ranking.score) | starts_of_runs(self._ranking.label))

    @cached_property
    def ties(self) -> tuple[IntArray, IntArray]:
        """Where the tie of each detection begins and where it ends."""
        first, size = self.runs
        return np.repeat(first, size), np.repeat(first + size, size)


class Facts:
    """How many detections of a chain are tied with another one of their class, and how many each class has (K,)."""

    def __init__(self, labels: tuple[int, int]) -> None:
        self.detections = np.zeros(labels[1] - labels[0], dtype=np.int64)
        self._tied = 0
        self._order = TieOrder()
        self.tie_orders: dict[int, str] = {}  # of each class that has ties which span a hit and a miss
        self._pieces: dict[float, int] = {}  # rows of each tie that is cut

    @property
    def tied(self) -> int:
        """How many detections are tied."""
        return self._tied + sum(n for n in self._pieces.values() if n > 1)

    def add(self, ranking: Ranking, shared: Shared, tied: float | None) -> None:
        """Add a bucket; one that is a piece of a tie has its score."""
        self.detections += np.bincount(ranking.label, minlength=len(self.detections))
        if tied is not None:
            self._order.add_piece(ranking)
            self._pieces[tied] = self._pieces.get(tied, 0) + len(ranking)
            return
        self._order.close()
        self._order.add(ranking, shared.runs)
        _, size = shared.runs
        self._tied += int(size[size > 1].sum())

    def close(self) -> None:
        """End the chain, and with it what no other process could take over."""
        self.tie_orders = self._order.digests()
        del self._order


class CurveReducer:
    """Adds up the buckets of a chain for one curve."""

    def __init__(self, rules: CurveRules, cell: Cell, labels: tuple[int, int]) -> None:
        self.area, cap, self.ties_first = cell
        self.cap = rules.caps[cap]
        self.protocol = rules.protocol
        self.positives = rules.positives[self.area, labels[0] : labels[1]]
        shape = len(rules.protocol.iou_thresholds), labels[1] - labels[0]
        self.count = np.zeros(shape, dtype=np.int64)  # hits of earlier buckets, (T, K)
        self._counted = np.zeros(shape, dtype=np.int64)  # and detections that count

    def add(self, ranking: Ranking, shared: Shared, beyond: tuple[IntArray, IntArray] | None) -> None:
        """Add a bucket."""
        hits = Hits(ranking, self.area, self.cap, shared.candidates_before)
        count = hits.stop - hits.start
        before = self._before(hits, shared) + np.repeat(self._counted.ravel(), count.ravel())
        if beyond is not None:
            before += np.repeat(beyond[0], count.sum(axis=1))
        elif self.ties_first is False:
            start, _ = shared.ties
            late = late_misses(ranking, self.area, self.cap, start[ranking.candidate])
            before -= late_of_hits(late, hits, start[hits.detection])
        self.take(hits, before)
        self.count += count
        # Only a class that is cut goes on, and is then alone in its buckets.
        if len(self.positives) == 1:
            self._counted[:, 0] += hits.totals()

    def _before(self, hits: Hits, shared: Shared) -> WholeArray:
        """Count what counts in front of each hit in its bucket and class, itself included; see `Curves.steps`."""
        if self.ties_first is None:
            own = hits.own_counts()
            return hits.weigh(None, hits.places(hits.detection + 1)) if own is None else own
        start, stop = shared.ties
        first, size = lengths_of_runs(starts_of_runs(hits.threshold) | starts_of_runs(start[hits.detection]))
        before = hits.weigh(None, hits.places((start if self.ties_first else stop)[hits.detection]))
        total = np.arange(len(hits.detection) + 1)
        return before + total[1:] - total[np.repeat(first if self.ties_first else first + size, size)]

    def take(self, hits: Hits, before: WholeArray) -> None:
        """Use the hits of a bucket, with what counts before each one in its class."""
        raise NotImplementedError


class Envelope(CurveReducer):
    """Keeps the highest precision between neighbouring recall values."""

    def __init__(self, rules: CurveRules, cell: Cell, labels: tuple[int, int]) -> None:
        super().__init__(rules, cell, labels)
        self._needed = np.maximum(required_hits(self.positives, rules.recall_grid), 1)  # (K, R)
        self.until_next = np.zeros((*self.count.shape, self._needed.shape[1]))

    def take(self, hits: Hits, before: WholeArray) -> None:
        """Raise the envelope where the precision at a hit is higher."""
        if not len(before):
            return
        number = np.arange(len(before)) - np.repeat((hits.start - self.count).ravel(), (hits.stop - hits.start).ravel())
        precision = np.zeros(len(before) + 1)
        np.divide(number + 1, np.maximum(before, 1) + self.protocol.precision_epsilon, out=precision[:-1])
        # The hit that reaches each recall value, or the first one of the bucket behind it.
        place = np.clip(self._needed - 1 - self.count[:, :, None], 0, (hits.stop - hits.start)[:, :, None])
        at = place + hits.start[:, :, None]
        highest = np.maximum.reduceat(precision, at.ravel()).reshape(at.shape)
        highest[at == hits.stop[:, :, None]] = 0
        np.maximum(self.until_next, highest, out=self.until_next)


class HitsOfArea(CurveReducer):
    """Keeps the hits themselves, as the area below their envelope is one sum."""

    def __init__(self, rules: CurveRules, cell: Cell, labels: tuple[int, int]) -> None:
        super().__init__(rules, cell, labels)
        self.blocks: list[list[WholeArray]] = [[] for _ in self.count]  # of each threshold

    def take(self, hits: Hits, before: WholeArray) -> None:
        """Keep what counts before each hit."""
        bounds = np.append(hits.start[:, 0], len(before))
        for t, blocks in enumerate(self.blocks):
            blocks.append(before[bounds[t] : bounds[t + 1]])


@dataclass(frozen=True, slots=True, eq=False)
class JoinedCurve:
    """A curve of all classes."""

    count: IntArray  # (T, K)
    until_next: FloatArray | None = None  # (T, K, R)
    before: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def joined_curve(reducers: Sequence[Any], is_area: bool) -> JoinedCurve:
    """Put the classes of all chains together."""
    count = np.concatenate([reducer.count for reducer in reducers], axis=1)
    if not is_area:
        return JoinedCurve(count, np.concatenate([reducer.until_next for reducer in reducers], axis=1))
    blocks = [block for t in range(len(count)) for reducer in reducers for block in reducer.blocks[t]]
    return JoinedCurve(count, None, np.concatenate([np.zeros(0, dtype=np.int64), *blocks]))


class BestScore:
    """The score that does best by an aim at each threshold, of scores that come descending; see `merits`."""

    def __init__(
        self, aim: str, positives: int, n_images: int, n_thresholds: int, before: IntArray | None = None
    ) -> None:
        self._aim, self._positives, self._n_images = aim, positives, n_images
        # What hits and what counts so far, (2, T): that of higher scores, which others look at, to begin with.
        self._tp, self._counted = np.zeros((2, n_thresholds), dtype=np.int64) if before is None else before
        self.highest = np.zeros(n_thresholds)
        self._waiting: tuple[FloatArray, IntArray, IntArray] | None = None
        self.found: list[tuple[float, int, int] | None] = [None] * n_thresholds

    def count_rows(self, score: FloatArray, hits: BoolArray, counts: BoolArray) -> None:
        """Add detections (n,), with whether each hits and counts (T, n)."""
        first = np.flatnonzero(starts_of_runs(score))
        summed = [np.add.reduceat(flags, first, axis=1, dtype=np.int64) for flags in (hits, counts)]
        scores = score[first]
        # The last score may go on in the next bucket.
        if self._waiting is not None:
            last, waiting_hits, waiting_counts = self._waiting
            if last[0] == scores[0]:
                summed[0][:, :1] += waiting_hits
                summed[1][:, :1] += waiting_counts
            else:
                self.add(*self._waiting)
        self.add(scores[:-1], summed[0][:, :-1], summed[1][:, :-1])
        self._waiting = scores[-1:], summed[0][:, -1:], summed[1][:, -1:]

    def flush(self) -> None:
        """Add the last score."""
        if self._waiting is not None:
            self.add(*self._waiting)
            self._waiting = None

    def add(self, score: FloatArray, hits: IntArray, counts: IntArray) -> None:
        """Add different scores (s,), with how many detections hit and count at each (T, s)."""
        if not len(score):
            return
        tp = self._tp[:, None] + np.cumsum(hits, axis=1)
        counted = self._counted[:, None] + np.cumsum(counts, axis=1)
        merit = merits(self._aim, tp, counted, self._positives, self._n_images)
        for t, best in enumerate(merit.argmax(axis=1).tolist()):
            # Of equal ones the highest score, which came first.
            if merit[t, best] > self.highest[t]:
                self.highest[t] = merit[t, best]
                self.found[t] = float(score[best]), int(tp[t, best]), int(counted[t, best])
        self._tp, self._counted = tp[:, -1], counted[:, -1]

    def follow(self, lower: BestScore) -> None:
        """Take over what is better among lower scores."""
        for t in np.flatnonzero(lower.highest > self.highest).tolist():
            self.highest[t], self.found[t] = lower.highest[t], lower.found[t]
