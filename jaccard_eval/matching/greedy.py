"""Assignment of detections to ground truth: the greedy rule of COCO and the best-overlap rule of VOC, vectorised.

The greedy rule is serial only among detections that share a ground truth. So all detections that no earlier one still
waiting competes with are decided at once, for all area ranges and thresholds together, round after round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.candidates import Pairs
from jaccard_eval.matching.order import IntArray, group_ranks, stable_order, starts_of_runs

NO_PLACE = 0
# pycocotools: a box always matches its exact copy, whatever rounding did. No tolerance: lower thresholds stay exact.
LARGEST_THRESHOLD = 1 - 1e-10

# Which of its own pairs a detection matches, counted from 1, `NO_PLACE` for none: one byte suffices for nearly all.
PairChoice = npt.NDArray[np.unsignedinteger]


def least_overlaps(protocol: Protocol) -> FloatArray:
    """Return the smallest overlap that matches at each threshold, (T,)."""
    thresholds = np.minimum(protocol.iou_thresholds, LARGEST_THRESHOLD)
    return np.nextafter(thresholds, 1.0) if protocol.above_threshold else thresholds


@dataclass(frozen=True, slots=True, eq=False)
class MatchProblem:
    """What detections compete for."""

    # Sorted by detection; a detection's row is its turn within its image and class.
    pairs: Pairs
    thresholds: FloatArray  # (T,)
    # Ground truth that does not count, by area range, (A, n_gt): wanted only where nothing that counts is free.
    ignored: BoolArray
    # Ground truth that can be matched any number of times (crowds, groups), (n_gt,).
    reusable: BoolArray
    # Which of several ground truths with equal overlap is preferred: the last by COCO, the first by VOC.
    last_wins: bool
    # Of each detection, (n,): those of different keys never compete. None: any two may.
    key: IntArray | None = None


# Pairs of a detection, on average, from which on detections are served one after the other within their key; and the
# share of those waiting that a round must serve: where a thousand want the same objects, each waits for the one before.
CROWDED_PAIRS, LEAST_SERVED = 32, 1 / 8
BLOCK_PAIRS = 1 << 19  # that are put in order at once


def assign_best_free(problem: MatchProblem) -> tuple[IntArray, PairChoice]:
    """Let each detection, by score, take the best ground truth that is still free (COCO).

    Ground truth that counts comes before ignored, then the highest overlap, then the later one in the file. Returns
    the detections that have any candidate (c,), ascending, and the place of the pair that each one takes among its own
    (A, T, c), or `NO_PLACE`.

    Source: pycocotools 2.0.11 ``cocoeval.py``, ``COCOeval.evaluateImg``.
    """
    segments = _Segments.of(problem.pairs)
    n_areas, n_gt = problem.ignored.shape
    # Most detections have one candidate that is wanted only by others with one candidate. They need no rounds: whoever
    # comes first takes it, at each threshold, and in all area ranges alike, as there is nothing to prefer.
    single = segments.stop - segments.start == 1
    wanted_by_others = np.zeros(n_gt, dtype=np.bool_)
    for block in segments.take(~single).blocks():
        wanted_by_others[problem.pairs.gt[block.expand()[0]]] = True
    alone = single & ~wanted_by_others[problem.pairs.gt[segments.start]]
    settled, waiting = segments.take(alone), segments.take(~alone)
    first_come = np.full((len(problem.thresholds), len(segments)), NO_PLACE, dtype=segments.place_type)
    first_come[:, settled.number] = _first_come(problem, settled.start)
    choice = np.repeat(first_come[None], n_areas, axis=0)
    preferred = _by_preference(problem, waiting)
    # What is taken differs by area range and threshold, so that each has a memory of its own: (A, T, n_gt).
    taken = np.zeros((*choice.shape[:2], n_gt), dtype=np.bool_)
    crowded = int((waiting.stop - waiting.start).sum()) > CROWDED_PAIRS * len(waiting)
    # Each round decides at least the first detection of every group in which anybody waits, and looks at all pairs.
    while len(waiting) and not crowded:
        ready = _ready(problem, waiting)
        served, waiting = waiting.take(ready), waiting.take(~ready)
        choice[..., served.number] = _choose(problem, served, preferred, taken)
        crowded = len(served) < LEAST_SERVED * len(waiting)
    for served in _in_turn(problem, waiting):
        choice[..., served.number] = _choose(problem, served, preferred, taken)
    return segments.detection, choice


def assign_best_any(problem: MatchProblem) -> tuple[IntArray, PairChoice]:
    """Let each detection claim the ground truth it overlaps most, taken or not; the first claim wins (VOC).

    A detection whose best ground truth was claimed before stays unmatched even if another would do. Ignored ground
    truth absorbs any number of detections. Returns what `assign_best_free` does.

    Source: PASCAL VOC development kit, ``VOCevaldet.m``.
    """
    segments = _Segments.of(problem.pairs)
    # (c,) The most preferred pair of each detection. Whether it counts plays no part: the kit takes the maximum over
    # all boxes of the image, difficult and taken ones too, before it looks at either.
    best = _by_preference(problem, segments)[segments.stop - 1]
    choice = _nothing_chosen(problem, segments)
    _claim(problem, segments, best, choice, np.ones(len(best), dtype=np.bool_))
    return segments.detection, choice


def assign_objects_first(problem: MatchProblem) -> tuple[IntArray, PairChoice]:
    """Let each detection claim the object it overlaps most, else the group it lies in most (Open Images).

    Objects are claimed as by `assign_best_any`. What gets none of them goes to a group, which is reusable: it takes any
    number of detections. Returns what `assign_best_free` does.

    Source: TensorFlow Object Detection API, ``per_image_evaluation.py``, ``_compute_tp_fp_for_single_class``.
    """
    segments = _Segments.of(problem.pairs)
    choice = _nothing_chosen(problem, segments)
    for wanted in (~problem.reusable, problem.reusable):
        best = _by_preference(problem, segments, wanted)[segments.stop - 1]
        _claim(problem, segments, best, choice, wanted[problem.pairs.gt[best]])
    return segments.detection, choice


def _nothing_chosen(problem: MatchProblem, segments: _Segments) -> PairChoice:
    shape = len(problem.ignored), len(problem.thresholds), len(segments)
    return np.full(shape, NO_PLACE, dtype=segments.place_type)


def _claim(
    problem: MatchProblem, segments: _Segments, best: IntArray, choice: PairChoice, may_claim: BoolArray
) -> None:
    """Give what detections want most, the pair `best` (c,), to the first that reaches it, or to all that share it.

    Only those take part that have chosen nothing yet and `may_claim` (c,); `choice` is written to.
    """
    gt = problem.pairs.gt[best]
    reaches = (problem.pairs.overlap[best] >= problem.thresholds[:, None]) & may_claim  # (T, c)
    place = best - segments.start + 1
    for a, ignored in enumerate(problem.ignored):
        # What is reusable and counts is a group: all may have it, and the ranking counts the best of them.
        shared = ignored | problem.reusable
        for t, reached in enumerate(reaches):
            # By descending score, as detections of a class stand in that order: the first claim is the best one.
            claims = np.flatnonzero(reached & (choice[a, t] == NO_PLACE))
            wins = shared[gt[claims]] | _first_of_each(gt[claims])
            choice[a, t, claims[wins]] = place[claims[wins]]


# By the names that protocols have for them.
ASSIGNMENTS: dict[str, Callable[[MatchProblem], tuple[IntArray, PairChoice]]] = {
    "best_free": assign_best_free,
    "best_any": assign_best_any,
    "objects_first": assign_objects_first,
}


def _first_of_each(values: IntArray) -> BoolArray:
    """Mark the first occurrence of each value."""
    places = np.arange(len(values))
    first = np.full(values.max(initial=-1) + 1, len(values))
    np.minimum.at(first, values, places)  # `unique` loads NumPy's masked arrays, which takes longer than many a run
    return np.asarray(first[values] == places)


@dataclass(frozen=True, slots=True, eq=False)
class _Segments:
    """Runs of pairs [start, stop) that belong to one detection each; `number` counts the detections from 0."""

    detection: IntArray
    number: IntArray
    start: IntArray
    stop: IntArray

    @classmethod
    def of(cls, pairs: Pairs) -> _Segments:
        start = np.flatnonzero(starts_of_runs(pairs.det))
        # Cut to length for the sake of no pairs at all, where the end alone would be left.
        return cls(pairs.det[start], np.arange(len(start)), start, np.append(start[1:], len(pairs))[: len(start)])

    def __len__(self) -> int:
        return len(self.number)

    @property
    def place_type(self) -> np.dtype[np.unsignedinteger]:
        """The smallest type that counts the pairs of any detection."""
        return np.min_scalar_type(int((self.stop - self.start).max(initial=1)))

    def take(self, chosen: BoolArray | IntArray | slice) -> _Segments:
        return _Segments(self.detection[chosen], self.number[chosen], self.start[chosen], self.stop[chosen])

    def blocks(self) -> Iterator[_Segments]:
        """Yield them in their order, a bounded number of pairs at a time."""
        last = (np.cumsum(self.stop - self.start) - 1) // BLOCK_PAIRS
        for low, high in pairwise((0, *(np.flatnonzero(np.diff(last)) + 1).tolist(), len(self))):
            yield self.take(slice(low, high))

    def expand(self) -> tuple[IntArray, IntArray]:
        """Return all their pairs, and where in that list each run starts."""
        sizes = self.stop - self.start
        offset = np.cumsum(sizes) - sizes
        return np.arange(int(sizes.sum())) + np.repeat(self.start - offset, sizes), offset


def _first_come(problem: MatchProblem, pairs: IntArray) -> BoolArray:
    """Return which pairs win, as each ground truth is given to the first that reaches the threshold; shape (T, p)."""
    # `reduceat` refuses to reduce nothing.
    if len(pairs) == 0:
        return np.zeros((len(problem.thresholds), 0), dtype=np.bool_)
    # Pairs come by detection, so that a stable sort by ground truth leaves those of each in the order of their scores.
    order = stable_order(problem.pairs.gt[pairs])
    gt, pair = problem.pairs.gt[pairs][order], pairs[order]
    new = starts_of_runs(gt)
    place = np.arange(len(order), dtype=np.int32)
    reaches = problem.pairs.overlap[pair] >= problem.thresholds[:, None]  # (T, p)
    # Where nobody reaches a threshold, the first place is one that does not exist.
    first = np.minimum.reduceat(np.where(reaches, place, len(order)), np.flatnonzero(new), axis=1)
    wins = reaches & ((first[:, np.cumsum(new) - 1] == place) | problem.reusable[gt])
    in_turn = np.zeros(wins.shape, dtype=np.bool_)
    in_turn[:, order] = wins
    return in_turn


def _by_preference(problem: MatchProblem, segments: _Segments, wanted: BoolArray | None = None) -> IntArray:
    """Return the pairs of each segment, in its place, the most preferred last: by overlap, then place in the file.

    Those with ground truth that is `wanted` (n_gt,), where that is given, come after all others.
    """
    preferred = np.arange(len(problem.pairs))
    for block in segments.blocks():
        # `lexsort` sorts by its last key first; detections keep their places, as they come in ascending order already.
        pairs, _ = block.expand()
        det, gt, overlap = problem.pairs.det[pairs], problem.pairs.gt[pairs], problem.pairs.overlap[pairs]
        keys = (gt if problem.last_wins else -gt, overlap, *(() if wanted is None else (wanted[gt],)), det)
        preferred[pairs] = pairs[np.lexsort(keys)]
    return preferred


def _in_turn(problem: MatchProblem, waiting: _Segments) -> Iterator[_Segments]:
    """Yield the first detection of each key, then the second of each, and so on: none of them compete."""
    key = np.zeros(len(waiting), np.int64) if problem.key is None else problem.key[waiting.detection]
    turn = group_ranks(key)
    order = stable_order(turn)
    cuts = np.flatnonzero(starts_of_runs(turn[order])).tolist()
    for low, high in pairwise((*cuts, len(order))):
        yield waiting.take(order[low:high])


def _ready(problem: MatchProblem, waiting: _Segments) -> BoolArray:
    """Mark the detections that are first in line at all ground truth they compete for; nobody competes for a crowd."""
    pairs, starts = waiting.expand()
    gt = problem.pairs.gt[pairs]
    det = problem.pairs.det[pairs]
    # Empty, not zeros: only entries that are written on the next line are read.
    first = np.empty(problem.ignored.shape[1], dtype=np.int64)
    # Of several assignments the last one stays. Backwards, that is the smallest detection, as pairs ascend.
    first[gt[::-1]] = det[::-1]
    return np.logical_and.reduceat((first[gt] == det) | problem.reusable[gt], starts)


def _choose(problem: MatchProblem, served: _Segments, preferred: IntArray, taken: BoolArray) -> PairChoice:
    """Decide for detections that do not compete with each other; marks what they take. Returns shape (A, T, s)."""
    position, starts = served.expand()
    pair = preferred[position]
    gt = problem.pairs.gt[pair]
    rank = position - np.repeat(served.start, served.stop - served.start) + 1  # 1 is the least preferred
    # More than any rank, so that the worst ground truth that counts comes before the best that is ignored. Ranks in
    # place of overlaps make one integer of both, whose maximum is found for all area ranges and thresholds at once.
    bonus = int(rank.max()) + 1
    worth = rank + np.where(problem.ignored[:, gt], 0, bonus)  # (A, p)
    within = problem.pairs.overlap[pair] >= problem.thresholds[:, None]  # (T, p)
    usable = within & ~taken[:, :, gt]  # (A, T, p)
    best = np.maximum.reduceat(np.where(usable, worth[:, None, :].astype(np.int32), 0), starts, axis=2)
    # Back from worth to rank, from rank to the pair; valid where best > 0, which is where anything was usable.
    chosen = preferred[served.start + np.where(best > bonus, best - bonus, best) - 1]
    a, t, s = np.nonzero(best)
    won = problem.pairs.gt[chosen[a, t, s]]
    # No two of those served want one ground truth, but a crowd, which is never taken: no assignment is lost.
    taken[a, t, won] = ~problem.reusable[won]
    return np.where(best > 0, chosen - served.start + 1, NO_PLACE).astype(served.place_type)
