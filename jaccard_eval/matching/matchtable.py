"""The match table: who overlaps whom, who matched whom at every threshold and area range; all numbers come from it.

The greedy rule of COCO and the best-overlap rule of VOC, vectorised; and what each detection counts as, by score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray
from jaccard_eval.data.protocol import BOXES, BYSTANDER, EVERY_CLASS, Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import (
    Blocks,
    IntArray,
    WholeArray,
    distinct,
    ground_truth_order,
    group_ranks,
    labels_of,
    rank_detections,
    stable_order,
    starts_of_runs,
)
from jaccard_eval.native import calls as native
from jaccard_eval.similarity import KINDS, Similarity

CHUNK_PAIRS = 1 << 15  # pairs whose overlap is computed at once: they stay in the cache, and memory is bounded
BLOCK_ROWS = 1 << 17  # detections that are paired at once: a copy of all of them would be half of what a run needs


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs that may match, sorted by detection, then ground truth; columns of shape (p,)."""

    # Rows in the tables that were paired, which need not be those of the inputs.
    det: IntArray
    gt: IntArray
    # IoU, or IoA where the ground truth is crowd; of another similarity, its value.
    overlap: FloatArray

    def __len__(self) -> int:
        return len(self.det)

    def take(self, chosen: BoolArray) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.det[chosen], self.gt[chosen], self.overlap[chosen])


def candidate_pairs(
    det: BoxTable,
    gt: BoxTable,
    blocks: Blocks,
    protocol: Protocol,
    *,
    threshold: float,
    crowd: BoolArray | None = None,
    similarity: Similarity | None = None,
    rows: WholeArray | None = None,
) -> Pairs:
    """Return all pairs within blocks whose overlap is at least `threshold`; of `crowd` (len(gt),) it is IoA.

    Detections, some `rows` of them or all, may stand in any order, but ground truth by the key that the blocks are of.
    Overlap is what the protocol compares, unless a similarity is given.
    """
    similarity = similarity or KINDS[protocol.iou_type]
    in_core = partial(_compiled_pairs, similarity=similarity, protocol=protocol)
    chosen = np.arange(len(det)) if rows is None else rows.astype(np.int64)
    compiled = in_core(det, chosen, gt, blocks, crowd=crowd, threshold=threshold)
    if compiled is not None:
        return Pairs(*compiled)
    # Corners and the like are made once a side: they would be made again in every chunk, of boxes in many chunks.
    asked = det if rows is None else det.take(rows)
    first, second = similarity.prepare(asked, protocol), similarity.prepare(gt, protocol)
    chunks = [similarity.pairs(first, second, i, j, crowd=crowd, threshold=threshold) for i, j in expand(blocks)]
    return Pairs(*native.joined_columns(chunks))


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Boxes in some order, and a key of each: only those of equal keys may match."""

    boxes: BoxTable
    rows: IntArray  # in `boxes`, (n,)
    key: IntArray  # (n,)

    def places(self) -> IntArray:
        """Return where in that order each row of the boxes is; 0 for one that is not."""
        place = np.zeros(len(self.boxes), dtype=np.int64)
        place[self.rows] = np.arange(len(self.rows))
        return place


def keyed_pairs(
    det: Keyed,
    gt: Keyed,
    protocol: Protocol,
    *,
    threshold: float,
    crowd: BoolArray | None = None,
    similarity: Similarity | None = None,
) -> Pairs:
    """Return what `candidate_pairs` does, of detections in any order and ground truth by ascending key."""
    similarity = similarity or KINDS[protocol.iou_type]
    in_core = partial(_compiled_pairs, similarity=similarity, protocol=protocol)
    # Shapes are larger than boxes by far: they are looked up where they are, and not brought into another order.
    are_large = similarity.shapes is not None
    truth = gt.boxes if are_large else gt.boxes.take(gt.rows)
    second = similarity.prepare(truth, protocol)
    whole = similarity.prepare(det.boxes, protocol) if are_large else None
    of_det, of_gt = (side.places() if are_large else side.rows for side in (det, gt))
    if crowd is not None and are_large:
        crowd = crowd[of_gt] if len(crowd) else np.zeros(len(truth), dtype=np.bool_)
    chunks = []
    for start in range(0, max(len(det.rows), 1), BLOCK_ROWS):
        key = det.key[start : start + BLOCK_ROWS]
        # Ground truth of the classes of these detections alone: keys from 0 on are found in a table.
        lowest = int(key.min(initial=np.iinfo(np.int64).max))
        low, high = np.searchsorted(gt.key, [lowest, int(key.max(initial=-1)) + 1]).tolist()
        high = max(low, high)
        truth_key, key = gt.key[low:high] - lowest, key - lowest
        rows = det.rows[start : start + BLOCK_ROWS]
        # By key, so that what is compared lies together: three times as quick as here and there, and sorted afterwards.
        by_key = stable_order(key)
        blocks = Blocks.of(truth_key, key[by_key])
        shifted = Blocks(blocks.start + low, blocks.stop + low)
        compiled = in_core(det.boxes, rows[by_key], truth, shifted, crowd=crowd, threshold=threshold)
        if compiled is not None:
            found = by_key[compiled[0]]
            in_turn = stable_order(found)
            chunks.append((found[in_turn] + start, compiled[1][in_turn], compiled[2][in_turn]))
            continue
        first = whole if are_large else similarity.prepare(det.boxes.take(rows), protocol)
        for i, j in expand(Blocks.of(truth_key, key)):
            asked = (rows[i], gt.rows[j + low]) if are_large else (i, j + low)
            one, other, overlap = similarity.pairs(first, second, *asked, crowd=crowd, threshold=threshold)
            chunks.append((of_det[one], of_gt[other], overlap) if are_large else (one + start, other, overlap))
    return Pairs(*native.joined_columns(chunks))


def _compiled_pairs(
    det: BoxTable,
    rows: IntArray,
    gt: BoxTable,
    blocks: Blocks,
    *,
    similarity: Similarity,
    protocol: Protocol,
    crowd: BoolArray | None,
    threshold: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Pair some rows of boxes with their blocks by the compiled core; None without it, or of another similarity."""
    plain = protocol.overlap == "area" and not protocol.single_precision and not protocol.union_epsilon
    if similarity.name != BOXES or not plain:
        return None
    within = blocks.start, blocks.stop
    return native.pair_boxes(det.xywh, rows, gt.xywh, within, crowd, threshold=threshold, offset=protocol.pixel_offset)


def expand(blocks: Blocks) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the pairs of all blocks, a bounded number at a time, sorted by detection."""
    sizes = blocks.stop - blocks.start
    # Detections on images without an object of their class are many, and make no pair.
    paired = np.flatnonzero(sizes)
    sizes, start = sizes[paired], blocks.start[paired]
    total = np.cumsum(sizes)
    first = 0
    # One chunk is yielded even without pairs: its empty arrays carry the dtypes that joining them needs.
    while True:
        before = total[first - 1] if first else 0
        # A detection is never cut in two, so that one whose block alone exceeds a chunk still makes a chunk.
        last = max(int(np.searchsorted(total, before + CHUNK_PAIRS, "right")), first + 1)
        chosen = sizes[first:last]
        i = np.repeat(paired[first:last], chosen)
        ends = np.cumsum(chosen)
        # Counting on from the start of each block: 0, 1, 2, ... over all pairs, shifted by where the blocks begin.
        j = np.arange(len(i)) + np.repeat(start[first:last] - (ends - chosen), chosen)
        yield i, j
        first = last
        if first >= len(paired):
            return


EVERY = "every"  # the assignment of detections that may hit several objects
ALL_SIZES = 0  # the first area range of every protocol; operating points and errors are taken over it
NO_PLACE = 0
# pycocotools: a box always matches its exact copy, whatever rounding did. No tolerance: lower thresholds stay exact.
LARGEST_THRESHOLD = 1 - 1e-10

# Which of its own pairs a detection matches, counted from 1, `NO_PLACE` for none: one byte suffices for nearly all.
PairChoice = npt.NDArray[np.unsignedinteger]


def least_overlaps(protocol: Protocol) -> FloatArray:
    """Return the smallest overlap that matches at each threshold, (T,)."""
    thresholds = np.minimum(protocol.iou_thresholds, LARGEST_THRESHOLD)
    if protocol.single_precision:
        thresholds = thresholds.astype(np.float32).astype(np.float64)
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


def assign_every(problem: MatchProblem) -> tuple[IntArray, PairChoice]:
    """Let each detection match the only object it has, which any number may match (LUNA16).

    Of detections that reach several objects there is a copy for each of them; see `_one_pair_each`. The ranking counts
    the first match of an object. Returns what `assign_best_free` does.

    Source: the rules of LUNA16's ``noduleCADEvaluationLUNA16.py``.
    """
    return assign_best_any(replace(problem, reusable=np.ones_like(problem.reusable)))


def assign_first_pair(problem: MatchProblem) -> tuple[IntArray, PairChoice]:
    """Let each object, in the order of the file, take the first detection that is free (ICDAR).

    Detections stand by score, those without one in the order of the file. Those that an ignored object covers are its
    own before any object looks at them. Returns what `assign_best_free` does.

    Source: the rules of ICDAR 2015's ``script.py``, task 1 of incidental scene text.
    """
    segments, pairs = _Segments.of(problem.pairs), problem.pairs
    choice = _nothing_chosen(problem, segments)
    owner = np.repeat(segments.number, segments.stop - segments.start)
    place = np.arange(len(pairs)) - segments.start[owner] + 1
    turn = np.lexsort((pairs.det, pairs.gt))
    for (a, t), _ in np.ndenumerate(choice[..., 0] if len(segments) else np.zeros((0, 0))):
        reaches, is_ignored = pairs.overlap >= problem.thresholds[t], problem.ignored[a][pairs.gt]
        (covered,) = np.nonzero(reaches & is_ignored)
        choice[a, t, owner[covered]] = place[covered]
        taken: set[int] = set()
        for pair in turn[(reaches & ~is_ignored)[turn]].tolist():
            if choice[a, t, owner[pair]] == NO_PLACE and pairs.gt[pair] not in taken:
                taken.add(int(pairs.gt[pair]))
                choice[a, t, owner[pair]] = place[pair]
    return segments.detection, choice


def assign_most_pairs(problem: MatchProblem) -> tuple[IntArray, PairChoice]:
    """Pair as many detections and objects as possible, one to one, and so for those with at least any score.

    A detection that was paired stays so when worse ones are added: only whose object it has may change. What is left
    and reaches an ignored object is its. Returns what `assign_best_free` does.

    Source: Kuhn (1955), "The Hungarian method for the assignment problem", by augmenting paths.
    """
    segments, pairs = _Segments.of(problem.pairs), problem.pairs
    choice = _nothing_chosen(problem, segments)
    owner = np.repeat(segments.number, segments.stop - segments.start)
    place = np.arange(len(pairs)) - segments.start[owner] + 1
    nearest = _by_preference(problem, segments)[::-1]
    for (a, t), _ in np.ndenumerate(choice[..., 0] if len(segments) else np.zeros((0, 0))):
        reaches, is_ignored = pairs.overlap >= problem.thresholds[t], problem.ignored[a][pairs.gt]
        (covered,) = np.nonzero(reaches & is_ignored)
        choice[a, t, owner[covered]] = place[covered]
        competing = reaches & ~is_ignored
        # Most want one object that nobody else wants.
        alone = competing.copy()
        for side in (owner, pairs.gt):
            alone &= (np.bincount(side[competing], minlength=int(side.max(initial=-1)) + 1) == 1)[side]
        choice[a, t, owner[alone]] = place[alone]
        wanted: dict[int, list[int]] = {}
        for pair in nearest[(competing & ~alone)[nearest]].tolist():
            wanted.setdefault(int(owner[pair]), []).append(pair)
        taken = np.array(_most_pairs(wanted, owner.tolist(), pairs.gt.tolist()), dtype=np.int64)
        choice[a, t, owner[taken]] = place[taken]
    return segments.detection, choice


def _most_pairs(wanted: dict[int, list[int]], owner: list[int], gt: list[int]) -> list[int]:
    """Return the most pairs that have no detection and no object in common, of those `wanted` by each detection."""
    taken: dict[int, int] = {}  # by object, the pair that has it
    found: dict[int, int] = {}  # by detection, its pair
    lost: set[int] = set()  # objects from which no path leads to a free one
    for first in sorted(wanted):
        waiting, through = [first], dict[int, int]()
        end = None
        for detection in waiting:
            for pair in wanted[detection]:
                if gt[pair] in through or gt[pair] in lost:
                    continue
                through[gt[pair]] = pair
                if gt[pair] not in taken:
                    end = gt[pair]
                    break
                waiting.append(owner[taken[gt[pair]]])
            if end is not None:
                break
        lost.update(through if end is None else ())
        while end is not None:
            pair = through[end]
            before = found.get(owner[pair])
            taken[end] = found[owner[pair]] = pair
            end = None if before is None else gt[before]
    return [*found.values()]


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
    EVERY: assign_every,
    "first_pair": assign_first_pair,
    "most_pairs": assign_most_pairs,
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
    found = problem.pairs
    compiled = native.first_come(pairs, found.gt, found.overlap, problem.thresholds, problem.reusable)
    # `reduceat` refuses to reduce nothing.
    if compiled is not None or len(pairs) == 0:
        return np.zeros((len(problem.thresholds), 0), dtype=np.bool_) if compiled is None else compiled
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
    # Regions that nobody labelled, among the ground truth, (m,); None where the curve does not ask.
    gt_region: BoolArray | None = None
    # Objects that recall is a share of, ignored ones included, (A, m); None where these are those that count.
    gt_counted: BoolArray | None = None
    # Bits of the subsets that a detection lies outside of, (n,); None where there are none.
    outside: npt.NDArray[np.uint16] | None = None
    # The share of a detection that ignored objects cover, (n,); None where the protocol spares none for it.
    covered: FloatArray | None = None
    # The largest overlap of an object with one that is ignored, (m,); None where no metric of the protocol asks.
    gt_cover: FloatArray | None = None

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
        columns["row"] = np.searchsorted(distinct(rows), rows).astype(np.int32)
        columns |= {name: getattr(self, name)[truth] for name in ("gt_label", "gt_source")}
        for name in ("unpunished", "outside", "covered"):
            column = getattr(self, name)
            columns[name] = None if column is None else column[detections]
        return replace(
            self,
            **columns,
            image=np.searchsorted(images, self.image[detections]).astype(np.int32),
            gt_image=np.searchsorted(images, self.gt_image[truth]),
            gt_ignored=self.gt_ignored[:, truth],
            gt_shared=None if self.gt_shared is None else self.gt_shared[truth],
            gt_region=None if self.gt_region is None else self.gt_region[truth],
            gt_counted=None if self.gt_counted is None else self.gt_counted[:, truth],
            gt_cover=None if self.gt_cover is None else self.gt_cover[truth],
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
    capped: MatchTable | None = None,
) -> MatchTable:
    """Match predictions to ground truth of common image and class rows, once for all thresholds and area ranges.

    The protocol's thresholds are of its own similarity, unless another is given; `known` pairs are those of an earlier
    table of the same boxes and rules, so that no overlap is computed again. A `capped` table is one of these under a
    cap, where the protocol has none: what it holds is not compared again.
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
    sides, lowest = (Keyed(pred, det_order, det_key), Keyed(gt, order, gt_key[order])), float(thresholds[0])
    # Below the lowest threshold nothing can match, and most overlaps are: 50,000 pairs of half a million remain.
    crowd = covers[order] if protocol.crowd_overlap == "ioa" else None
    compared = partial(
        keyed_pairs, gt=sides[1], protocol=protocol, threshold=lowest, crowd=crowd, similarity=similarity
    )
    keeps_pairs = not (protocol.subsets_alone or protocol.spares_covered or protocol.assignment == EVERY)
    if known is not None and keeps_pairs:
        pairs = Pairs(known.det, place[known.gt], known.overlap)
    elif capped is not None and keeps_pairs:
        pairs = _with_pairs_beyond(capped, sides[0], place, compared)
    else:
        pairs = compared(sides[0])
    # Bystanders are of other classes, and match nothing.
    taking_part = ~is_bystander(pred.outside, len(pred))[det_order[pairs.det]] if pred.outside is not None else None
    bits = None if pred.outside is None else pred.outside[det_order]
    if protocol.assignment == EVERY:
        rows, pairs = _one_pair_each(pairs, len(det_order))
        det_order, det_key, rank = det_order[rows], det_key[rows], rank[rows]
        bits = np.where(starts_of_runs(rows), 0, BYSTANDER).astype(np.uint16)
    ignored = ignored_objects(gt, protocol)
    own = pairs if taking_part is None else pairs.take(taking_part)
    problem = MatchProblem(
        pairs=own,
        thresholds=thresholds,
        ignored=ignored[:, order],
        reusable=reusable[order],
        last_wins=protocol.iou_ties == "last",
        key=det_key,
    )
    if protocol.subsets_alone:
        covering = keyed_pairs(
            *sides, protocol, threshold=lowest * (1 - 1e-9), crowd=np.ones(len(order), dtype=np.bool_)
        )
        outside = np.stack([part[det_order] for part in _outside_areas(pred, protocol)])
        pairs, candidate, choice = _matched_alone(problem, pairs, covering, outside, protocol)
    else:
        candidate, choice = ASSIGNMENTS[protocol.assignment](problem)
    covered = None
    if protocol.spares_covered:
        pairs, covered = _with_covered(pairs, *sides, pred.area[det_order], protocol)
    if covered is not None or (taking_part is not None and not taking_part.all()):
        everyone = np.unique(pairs.det)
        chosen = np.full((*choice.shape[:2], len(everyone)), NO_PLACE, dtype=choice.dtype)
        chosen[..., np.searchsorted(everyone, candidate)] = choice
        candidate, choice = everyone, chosen
    # A flag of groups that count may stand next to one that does not.
    shares_all = protocol.assignment == EVERY
    unpunished = pred.ignore if protocol.judging != EVERY_CLASS else None
    shared = (any_flag(gt, protocol.shared_flags) | shares_all) & ~any_flag(gt, protocol.ignored_flags)
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
        gt_shared=shared if protocol.shared_flags or shares_all else None,
        unpunished=None if unpunished is None else unpunished.take(det_order),
        gt_region=reusable if protocol.interpolation == SLOTS else None,
        gt_counted=~out_of_range(gt, protocol) if protocol.counts_ignored else None,
        outside=bits,
        covered=covered,
        gt_cover=_covers(gt, order, gt_key, protocol) if PAIRED in protocol.metrics else None,
    )


def _with_pairs_beyond(capped: MatchTable, det: Keyed, gt_place: IntArray, compared: Callable[[Keyed], Pairs]) -> Pairs:
    """Return the pairs of a table under a cap and those of the detections that it has not, which are compared."""
    is_beyond = np.ones(len(det.boxes), dtype=np.bool_)
    is_beyond[capped.row] = False
    (beyond,) = np.nonzero(is_beyond[det.rows])
    more = compared(Keyed(det.boxes, det.rows[beyond], det.key[beyond]))
    rows = np.concatenate((det.places()[capped.row[capped.pair_detection]], beyond[more.det]))
    gt = np.concatenate((gt_place[capped.pair_gt], more.gt))
    overlap = np.concatenate((capped.pair_overlap, more.overlap))
    turn = stable_order(rows)
    return Pairs(rows[turn], gt[turn], overlap[turn])


def _one_pair_each(pairs: Pairs, n: int) -> tuple[IntArray, Pairs]:
    """Return which of `n` detections each row is, with one more for every further pair, and the pairs of these rows.

    The first row of a detection has its largest overlap: where that is too small it matches nothing. The others are
    bystanders, which are never punished.
    """
    order = np.lexsort((-pairs.overlap, pairs.det))
    det = pairs.det[order]
    rows = np.sort(np.concatenate((np.arange(n), det[~starts_of_runs(det)])))
    return rows, Pairs(np.searchsorted(rows, det) + group_ranks(det), pairs.gt[order], pairs.overlap[order])


def _with_covered(
    pairs: Pairs, det: Keyed, gt: Keyed, area: FloatArray, protocol: Protocol
) -> tuple[Pairs, FloatArray]:
    """Return the share of each detection that ignored objects cover, (n,), and pairs of all that it may spare.

    Source: the rules of cityscapesScripts' ``evalInstanceLevelSemanticLabeling.py``.
    """
    reasons = np.zeros(len(gt.rows), dtype=np.int64)
    for flag in protocol.ignored_flags:
        reasons += getattr(gt.boxes, flag)[gt.rows]
    (ignored,) = np.nonzero(reasons)
    others = Keyed(gt.boxes, gt.rows[ignored], gt.key[ignored])
    found = keyed_pairs(det, others, protocol, threshold=0.0, crowd=np.ones(len(ignored), dtype=np.bool_))
    # Whole pixels, so that a share is one division.
    pixels = np.rint(found.overlap * area[found.det]) * reasons[ignored[found.gt]]
    share = np.bincount(found.det, pixels, len(area)) / np.maximum(area, 1)
    # What is spared at some threshold and not at another has to be a candidate, which has a pair.
    more = ~np.isin(found.det, pairs.det) & (share[found.det] > protocol.iou_thresholds[0])
    more &= starts_of_runs(found.det)[: len(found)]
    spared, objects = found.det[more], ignored[found.gt[more]]
    rows = np.concatenate((pairs.det, spared))
    order = stable_order(rows)
    gt_rows, overlap = np.concatenate((pairs.gt, objects)), np.concatenate((pairs.overlap, np.zeros(len(spared))))
    return Pairs(rows[order], gt_rows[order], overlap[order]), share


def _outside_areas(pred: BoxTable, protocol: Protocol) -> list[BoolArray]:
    """Return which detections are not there in each area range and subset, (n,) each; sizes exclude none."""
    parts = outside_of(pred.outside, protocol) if pred.outside is not None else []
    return [np.zeros(len(pred), dtype=np.bool_) for _ in protocol.areas] + parts


def _matched_alone(
    problem: MatchProblem, pairs: Pairs, covering: Pairs, outside: BoolArray, protocol: Protocol
) -> tuple[Pairs, IntArray, PairChoice]:
    """Match each area range and subset as if it were all; `covering` are pairs by what covers a detection, (A, n).

    Returns all pairs, by their usual overlap, and what assignments return.

    Source: the rules of CityPersons' ``eval_MR_multisetup.py``.
    """
    n_gt = problem.ignored.shape[1]
    usual, key = np.zeros(len(covering)), covering.det * n_gt + covering.gt
    usual[np.searchsorted(key, pairs.det * n_gt + pairs.gt)] = pairs.overlap
    found = replace(covering, overlap=usual)
    choices = []
    for ignored, is_outside in zip(problem.ignored, outside, strict=True):
        overlap = np.where(ignored[found.gt], covering.overlap, usual)
        there = replace(found, overlap=np.where(is_outside[found.det], 0.0, overlap))
        alone = replace(problem, pairs=there, ignored=ignored[None], reusable=problem.reusable | ignored)
        candidate, choice = ASSIGNMENTS[protocol.assignment](alone)
        choices.append(choice)
    return found, candidate, np.concatenate(choices)


SLOTS = "slots"  # the curve that matches anew
SLOT_COUNT = 41
PAIRED = "JI"  # the metric that pairs objects anew, and ignores those that ignored ones cover


def _covers(gt: BoxTable, order: IntArray, key: IntArray, protocol: Protocol) -> FloatArray:
    """Return the largest overlap of each object with an ignored one of its image and class, as of detections; (m,)."""
    flagged = any_flag(gt, protocol.ignored_flags)
    (objects, ignored), covers = (
        (order[flagged[order] == is_ignored] for is_ignored in (False, True)),
        np.zeros(len(gt)),
    )
    crowd = np.ones(len(ignored), dtype=np.bool_) if protocol.crowd_overlap == "ioa" else None
    sides = Keyed(gt, objects, key[objects]), Keyed(gt, ignored, key[ignored])
    pairs = keyed_pairs(*sides, protocol, threshold=float(least_overlaps(protocol)[0]), crowd=crowd)
    np.maximum.at(covers, objects[pairs.det], pairs.overlap)
    return covers


def ignored_objects(gt: BoxTable, protocol: Protocol) -> BoolArray:
    """Mark ground truth that does not count in an area range: flagged, or outside of it, both ends included; (A, m)."""
    return any_flag(gt, protocol.ignored_flags) | out_of_range(gt, protocol)


def out_of_range(gt: BoxTable, protocol: Protocol) -> BoolArray:
    """Mark ground truth that lies outside of an area range or subset, (A, m)."""
    # The area is that of the annotation, of a mask where the file has one, as in pycocotools.
    areas = protocol.object_areas(gt)
    ranges = [(areas < area.low) | (areas > area.high) for area in protocol.areas]
    return np.stack(ranges + [ranges[ALL_SIZES] | is_outside for is_outside in outside_of(gt.outside, protocol)])


def outside_of(bits: npt.NDArray[np.uint16] | None, protocol: Protocol) -> list[BoolArray]:
    """Return which boxes lie outside of each subset, (n,) each; those of unknown bits are in all."""
    places = range(len(protocol.subsets))
    of_all = np.zeros(1, dtype=np.uint16) if bits is None else bits
    return [(of_all >> place) & 1 > 0 for place in places]


def is_bystander(bits: npt.NDArray[np.uint16] | None, n: int) -> BoolArray:
    """Return which detections are copies of those of another class, (n,)."""
    return np.zeros(n, dtype=np.bool_) if bits is None else (bits & BYSTANDER) > 0


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
        some = det_rows[block]
        blocks = Blocks.of(objects.image.astype(np.int64), pred.image[some].astype(np.int64))
        pairs = candidate_pairs(pred, objects, blocks, protocol, threshold=threshold, rows=some)
        yield block, Pairs(pairs.det, rows[pairs.gt], pairs.overlap)


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
    table: MatchTable | None = None  # whose pairs a metric of the protocol asks for

    def __len__(self) -> int:
        return len(self.image)

    @classmethod
    def of(cls, table: MatchTable, n_images: int) -> Ranking:
        """Read a ranking off a match table; columns are shared with it."""
        areas = table.protocol.areas
        ranges = [(table.area >= area.low) & (table.area <= area.high) for area in areas]
        ranges += [ranges[ALL_SIZES] & ~is_outside for is_outside in outside_of(table.outside, table.protocol)]
        in_range = np.stack(ranges)
        if table.outside is not None:
            in_range &= ~is_bystander(table.outside, len(table))
        if table.unpunished is not None:
            in_range &= ~table.unpunished
        hits, counts = (np.empty(table.choice.shape, dtype=np.bool_) for _ in range(2))
        first = table.first_pair
        before = first - np.int32(1)
        (several,) = np.nonzero(np.diff(np.append(first, len(table.pair_gt))) > 1)
        for a, choice in enumerate(table.choice):
            counting = ~table.gt_ignored[a][table.pair_gt]
            # Most candidates have one pair, which is looked up once for all thresholds.
            np.logical_and(choice != NO_PLACE, counting[first], out=hits[a])
            # Threshold by threshold, as places among all pairs take four times the memory of the choice.
            for t, place in enumerate(choice):
                some = place[several]
                hits[a, t, several] = (some != NO_PLACE) & counting[before[several] + some]
                if table.gt_shared is not None:
                    hits[a, t] &= _is_best_of_group(table, table.gt_shared, hits[a, t], before + place)
            # The size of a detection decides only where it matches nothing; a match counts as its object does, and
            # what else a group takes besides its best detection is ignored.
            np.logical_and(choice == NO_PLACE, in_range[a][table.candidate], out=counts[a])
            if table.covered is not None:
                limits = np.asarray(table.protocol.iou_thresholds)[:, None]
                counts[a] &= table.covered[table.candidate] <= limits
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
            gt_counts=~table.gt_ignored if table.gt_counted is None else table.gt_counted,
            table=None if table.gt_cover is None and table.gt_region is None else table,
        )

    @property
    def own_labels(self) -> RowArray:
        """Classes of the detections, each of these once: copies are of another class, or stand behind the first one."""
        if self.table is not None and self.table.outside is not None:
            return self.label[~is_bystander(self.table.outside, len(self))]
        if self.protocol.assignment != EVERY:
            return self.label
        return self.label[starts_of_runs(self.image) | starts_of_runs(self.rank) | starts_of_runs(self.label)]

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
            table=None if self.table is None else self.table.restrict(images),
        )

    def outcomes(self, threshold: int, area: int = ALL_SIZES) -> tuple[BoolArray, BoolArray]:
        """Return which detections are true positives and which count at all, of all sizes or one; shape (n,) each."""
        hit = np.zeros(len(self), dtype=np.bool_)
        hit[self.candidate] = self.hits[area, threshold]
        counts = self.in_range[area].copy()
        counts[self.candidate] = self.counts[area, threshold]
        return hit, counts


def _is_best_of_group(table: MatchTable, shared: BoolArray, hits: BoolArray, pairs: RowArray) -> BoolArray:
    """Mark the hits (c,) that count: all on single objects, the first on each group that counts.

    Where objects come first, the score of that has to be above 0.

    Source: TensorFlow Object Detection API, ``per_image_evaluation.py``: the score of a group starts at 0.
    """
    gt = table.pair_gt[pairs]
    counts = hits & ~shared[gt]
    # Candidates stand in the order of their scores; backwards, the first of each group is written last.
    grouped = np.flatnonzero(hits & shared[gt])[::-1]
    first = np.empty(len(shared), dtype=np.int64)
    first[gt[grouped]] = grouped
    best = grouped[first[gt[grouped]] == grouped]
    counts[best] = (table.protocol.assignment == EVERY) | (table.score[table.candidate[best]] > 0)
    return counts
