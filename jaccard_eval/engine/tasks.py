"""What a worker does: match one part into a run file, bring runs together by score, or reduce a chain of buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.engine.reducers import (
    BestScore,
    Bucket,
    Cell,
    Chain,
    CurveReducer,
    CurveRules,
    Envelope,
    Facts,
    HitsOfArea,
    Run,
    Shared,
    load_ranking,
    write_run,
)
from jaccard_eval.engine.scratch import ScratchPlace, read_bytes, write_whole
from jaccard_eval.engine.stored import Tables
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, rank_detections, starts_of_runs
from jaccard_eval.matching.matchtable import ALL_SIZES, MatchTable, Ranking, match_boxes
from jaccard_eval.metrics.curves import Hits, is_behind, misses_of, required_hits
from jaccard_eval.metrics.detection import match_part
from jaccard_eval.text import pluralise

TOGETHER = 100_000  # rows that are sorted at once, at least: a block may be of a few


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of a file: each has the scores of one range, then what counts at each, packed."""

    path: ScratchPlace
    index: IntArray  # (b, 3): the range of a block, where it begins in bytes, and how many rows it has


def write_scores(path: ScratchPlace, parts: Iterable[tuple[int, FloatArray, BoolArray]]) -> Blocks:
    """Write rows of ranges, with whether each hits and counts (2, T, n): whole or not at all."""
    index = []

    def blocks() -> Iterator[bytes]:
        start = 0
        for place, scores, outcomes in parts:
            index.append((place, start, len(scores)))
            block = scores.tobytes() + np.ascontiguousarray(_packed_outcomes(outcomes)).tobytes()
            start += len(block)
            yield block

    write_whole(path, blocks())
    return Blocks(path, np.array(index, dtype=np.int64).reshape(-1, 3))


def _packed_outcomes(outcomes: BoolArray) -> npt.NDArray[np.uint8]:
    return np.packbits(outcomes.reshape(-1, outcomes.shape[2]), axis=0).T  # (n, bytes)


def read_scores(files: Sequence[Blocks], place: int, n_thresholds: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the different scores of a range, descending, with how many detections hit and count (T, s)."""
    scores = np.zeros(0)
    counted = np.zeros((2 * n_thresholds, 0), dtype=np.int64)
    given: list[FloatArray] = []
    values: list[npt.NDArray[np.uint8]] = []
    waiting = 0

    def merged() -> tuple[FloatArray, IntArray]:
        every = np.concatenate((scores, *given))
        order = np.argsort(-every, kind="stable")
        first = np.flatnonzero(starts_of_runs(every[order]))
        columns = np.concatenate((counted, *values), axis=1)[:, order]
        return every[order][first], np.add.reduceat(columns, first, axis=1, dtype=np.int64)

    for block_scores, flags in _blocks(files, place, n_thresholds):
        given.append(block_scores)
        values.append(flags)
        waiting += len(block_scores)
        # Together before all are read: where few scores differ, they stay few.
        if waiting >= TOGETHER:
            scores, counted = merged()
            given, values, waiting = [], [], 0
    if waiting:
        scores, counted = merged()
    return scores, counted[:n_thresholds], counted[n_thresholds:]


def _blocks(
    files: Sequence[Blocks], place: int, n_thresholds: int
) -> Iterator[tuple[FloatArray, npt.NDArray[np.uint8]]]:
    width = -(-2 * n_thresholds // 8)
    for blocks in files:
        rows = blocks.index[blocks.index[:, 0] == place]
        for _, start, n in rows.tolist():
            block = read_bytes(blocks.path, start, n * (8 + width))
            packed = np.frombuffer(block, np.uint8, offset=8 * n).reshape(n, width)
            yield np.frombuffer(block, np.float64, n), np.unpackbits(packed.T, axis=0, count=2 * n_thresholds)


TableChange = Callable[[MatchTable], MatchTable]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartTask:
    """Works on the boxes of one part."""

    protocol: Protocol
    n_labels: int
    bounds: IntArray  # the first image of each part, and the end
    rows: IntArray  # predictions of each part
    gt: Tables
    pred: Tables

    def boxes(self, place: int) -> tuple[BoxTable, BoxTable, int, int]:
        """Return ground truth and predictions of a part, its first image, which is 0 in them, and how many it has."""
        first, last = int(self.bounds[place]), int(self.bounds[place + 1])
        gt, pred = (_from_image(side[place], first) for side in (self.gt, self.pred))
        return gt, pred, first, last - first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchPart(PartTask):
    """Matches one part, and writes what its detections count as; a `change` is made to the match table before."""

    folder: ScratchPlace
    change: TableChange | None = None

    def describe(self, place: int) -> str:
        """Name a part for a message."""
        return f"part {place + 1} of {len(self.rows)}, with {int(self.rows[place]):,} predictions"

    def __call__(self, place: int) -> tuple[Run, int]:
        """Return the run of a part, and how many predictions it has."""
        objects, boxes, first, n_images = self.boxes(place)
        table = match_boxes(objects, boxes, self.protocol, n_images=n_images, n_labels=self.n_labels)
        table = table if self.change is None else self.change(table)
        run = write_run(self.folder / f"run-{place:05}", Ranking.of(table, n_images), first)
        return run, len(boxes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountConfusion(PartTask):
    """Matches one part whatever the classes, and counts which are predicted as which by detections from a score on."""

    threshold: int  # place of the IoU threshold
    score: float

    def __call__(self, place: int) -> tuple[npt.NDArray[np.int64], int]:
        """Return the matrix of a part, and how many predictions it has."""
        objects, boxes, _, n_images = self.boxes(place)
        # In the order of classes and scores, without those beyond the caps.
        kept = boxes.take(rank_detections(boxes, self.protocol, n_images)[0])
        shape = {"n_images": n_images, "n_labels": self.n_labels}
        return match_part(objects, kept, self.protocol, self.threshold, **shape).confusion(self.score), len(boxes)


def _from_image(boxes: BoxTable, first: int) -> BoxTable:
    """Count images from one of them: small keys are found in a table, large ones by search."""
    return replace(boxes, image=boxes.image - np.int32(first))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChainTask:
    """Reads the buckets of a chain; where there is a mask of `images`, only rows of these."""

    runs: tuple[Run, ...]
    rules: CurveRules
    images: BoolArray | None = None

    def describe(self, item: Any) -> str:
        """Name a chain for a message."""
        chain = item if isinstance(item[0], Bucket) else item[1]
        first, last = chain[0].labels
        classes = pluralise(last - first, "class", "classes")
        return f"a chain of {pluralise(len(chain), 'bucket')}, with {sum(map(len, chain)):,} detections of {classes}"

    @property
    def n_thresholds(self) -> int:
        """How many IoU thresholds there are."""
        return len(self.rules.protocol.iou_thresholds)

    def load(self, bucket: Bucket) -> Ranking:
        """Return a bucket in the order of its ranking."""
        return load_ranking(self.runs, bucket.rows, bucket.labels, self.rules.protocol, self.images)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReduceCurves(ChainTask):
    """Reduces curves to what is kept of them, and counts what the ranking holds."""

    cells: tuple[Cell, ...]

    def __call__(self, chain: Chain) -> tuple[dict[Cell, CurveReducer], Facts]:
        """Return the reducer of each curve, with all rows of the chain."""
        kind = HitsOfArea if self.rules.protocol.interpolation == "area" else Envelope
        found: dict[Cell, CurveReducer] = {cell: kind(self.rules, cell, chain[0].labels) for cell in self.cells}
        facts = Facts(chain[0].labels)
        for place, bucket in enumerate(chain):
            ranking = self.load(bucket)
            shared = Shared(ranking)
            facts.add(ranking, shared, bucket.tied)
            for cell, reducer in found.items():
                beyond = self._of_tie(chain, place, cell) if cell[2] is not None and bucket.tied is not None else None
                reducer.add(ranking, shared, beyond)
        facts.close()
        return found, facts

    def _of_tie(self, chain: Chain, place: int, cell: Cell) -> tuple[IntArray, IntArray]:
        """Return what moves in front of the hits of a piece of a tie: whole pieces before it, or after it, (T,).

        With hits in front, what counts in earlier pieces is replaced by their hits; behind, what counts in later
        pieces and does not hit comes in front as well, except the `late_misses` of all pieces.
        """
        tied = chain[place].tied
        area, cap = cell[0], self.rules.caps[cell[1]]
        moved = np.zeros(self.n_thresholds, dtype=np.int64)
        earlier = np.zeros(0, dtype=np.int32)  # images of candidates
        for other, bucket in enumerate(chain):
            if bucket.tied != tied or (cell[2] and other >= place):
                continue
            ranking = self.load(bucket)
            if cell[2] or other > place:
                hits = Hits(ranking, area, cap)
                moved += hits.totals() - (hits.stop - hits.start)[:, 0]
            if not cell[2]:
                image = ranking.image[ranking.candidate]
                late = is_behind(np.append(earlier, image))[len(earlier) :]
                moved -= misses_of(ranking, area, cap, np.flatnonzero(late)).sum(axis=1)
                earlier = np.union1d(earlier, image)
        return (-moved if cell[2] else moved), moved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindRecallScores(ChainTask):
    """Finds the scores at which recall values are reached."""

    area: int
    cap: int
    grid: FloatArray

    def __call__(self, chain: Chain) -> tuple[FloatArray, FloatArray]:
        """Return the score of each recall value (T, K, R), and the highest score of each class (K,)."""
        first, last = chain[0].labels
        needed = np.maximum(required_hits(self.rules.positives[self.area, first:last], self.grid), 1)  # (K, R)
        n = self.n_thresholds
        scores = np.zeros((n, *needed.shape))
        of_first = np.zeros(last - first)
        tp = np.zeros((n, last - first), dtype=np.int64)
        seen = np.zeros(last - first, dtype=np.bool_)
        for bucket in chain:
            ranking = self.load(bucket)
            hits = Hits(ranking, self.area, self.rules.caps[self.cap])
            place = needed - 1 - tp[:, :, None]  # (T, K, R) among the hits of the bucket
            there = (place >= 0) & (place < (hits.stop - hits.start)[:, :, None])
            at = np.where(there, place + hits.start[:, :, None], 0)
            of_hit = ranking.score[hits.detection]
            if len(of_hit):
                scores = np.where(there, of_hit[at], scores)
            tp += hits.stop - hits.start
            labels, rows = np.unique(ranking.label, return_index=True)
            new = ~seen[labels]
            of_first[labels[new]] = ranking.score[rows[new]]
            seen[labels] = True
        return scores, of_first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountAtScore(ChainTask):
    """Counts hits, and detections that count, with at least a score."""

    score: float

    def __call__(self, chain: Chain) -> tuple[IntArray, IntArray]:
        """Return both counts, (T, K)."""
        first, last = chain[0].labels
        tp, counted = (np.zeros((self.n_thresholds, last - first), dtype=np.int64) for _ in range(2))
        for bucket in chain:
            ranking = self.load(bucket)
            above = ranking.score >= self.score
            for t in range(self.n_thresholds):
                hit, counts = ranking.outcomes(t)
                tp[t] += np.bincount(ranking.label[hit & above], minlength=last - first)
                counted[t] += np.bincount(ranking.label[counts & above], minlength=last - first)
        return tp, counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindBestScores(ChainTask):
    """Finds the best score of each class by an aim."""

    aim: str
    n_images: int

    def __call__(self, chain: Chain) -> dict[tuple[int, int | None], tuple[float, int, int]]:
        """Return the best score of each threshold and class, with its hits and counts."""
        first, last = chain[0].labels
        positives = self.rules.positives[ALL_SIZES]
        best = [
            BestScore(self.aim, int(positives[label]), self.n_images, self.n_thresholds) for label in range(first, last)
        ]
        for bucket in chain:
            ranking = self.load(bucket)
            hits, counts = outcomes_of(ranking)
            bounds = np.searchsorted(ranking.label, np.arange(last - first + 1, dtype=ranking.label.dtype)).tolist()
            for label, (start, stop) in enumerate(pairwise(bounds)):
                if stop > start:
                    rows = slice(start, stop)
                    best[label].count_rows(ranking.score[rows], hits[:, rows], counts[:, rows])
        for of_label in best:
            of_label.flush()
        return {
            (t, first + label): found
            for label, of_label in enumerate(best)
            for t, found in enumerate(of_label.found)
            if found is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitByScore(ChainTask):
    """Writes what detections count as in ranges of scores: the first half of ranking all classes as one."""

    cuts: FloatArray  # descending
    folder: ScratchPlace

    def __call__(self, numbered: tuple[int, Chain]) -> tuple[Blocks, IntArray]:
        """Return where each range lies in the file of a chain, and what hits and counts in it, (ranges, 2, T)."""
        place, chain = numbered
        totals = np.zeros((len(self.cuts) + 1, 2, self.n_thresholds), dtype=np.int64)

        def parts() -> Any:
            for bucket in chain:
                ranking = self.load(bucket)
                outcomes = np.stack(outcomes_of(ranking))  # (2, T, n)
                ranges = np.searchsorted(-self.cuts, -ranking.score, "right")
                for at in np.unique(ranges).tolist():
                    rows = ranges == at
                    totals[at] += np.count_nonzero(outcomes[:, :, rows], axis=2)
                    yield at, ranking.score[rows], outcomes[:, :, rows]

        return write_scores(self.folder / f"chain-{place:05}", parts()), totals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestOfScores:
    """Finds the best of a range of scores over all classes by an aim: the second half."""

    aim: str
    n_images: int
    blocks: tuple[Blocks, ...]  # of all chains
    positives: int
    before: IntArray  # what hits and counts in the ranges above each one, (ranges, 2, T)

    def __call__(self, place: int) -> BestScore:
        """Return the best scores of one range."""
        n = self.before.shape[2]
        best = BestScore(self.aim, self.positives, self.n_images, n, self.before[place])
        best.add(*read_scores(self.blocks, place, n))
        return best


def outcomes_of(ranking: Ranking) -> tuple[BoolArray, BoolArray]:
    """Return which detections hit and which count, over all sizes, at each threshold (T, n)."""
    both: Sequence[tuple[BoolArray, BoolArray]] = [
        ranking.outcomes(t) for t in range(len(ranking.protocol.iou_thresholds))
    ]
    return np.stack([hit for hit, _ in both]), np.stack([counts for _, counts in both])
