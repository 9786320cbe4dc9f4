"""Curves of rankings that do not fit into memory: run files are read bucket by bucket, and what is kept is small.

Everything that is added up across buckets is a whole number, everything else a maximum, so that neither the number of
parts nor the size of buckets changes a bit. The hits of a class are brought together where areas are float sums (VOC).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.engine.buckets import SAMPLES, Bucket, Chain, plan_buckets
from jaccard_eval.engine.memory import release_memory
from jaccard_eval.engine.reducers import (
    BestF1,
    Cell,
    CurveRules,
    Envelope,
    HitsOfArea,
    Shared,
    TiesFirst,
    append_scores,
    joined_curve,
    read_scores,
)
from jaccard_eval.engine.runs import Run, load_ranking
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.order import IntArray, lengths_of_runs, starts_of_runs
from jaccard_eval.matching.ranking import ALL_SIZES, Ranking
from jaccard_eval.metrics.curves import Hits, Steps, required_hits
from jaccard_eval.metrics.detection import NO_TABLE
from jaccard_eval.progress import Stage

BUCKET_ROWS = 500_000

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Objects of all images, shape (m,) and (A, m)."""

    image: IntArray
    label: IntArray
    counts: BoolArray  # whether an object counts in an area range

    def take(self, kept: BoolArray) -> Truth:
        """Return some of the objects."""
        return Truth(self.image[kept], self.label[kept], self.counts[:, kept])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Runs:
    """What was matched, on the disk."""

    protocol: Protocol
    n_images: int
    n_labels: int
    runs: tuple[Run, ...]
    truth: Truth
    scratch: Path
    engine: object = None  # whose files these are: they are removed with it
    bucket_rows: int = BUCKET_ROWS
    workers: int = 1

    def chains(self) -> list[Chain]:
        """Divide all rows into buckets."""
        by_image = self.protocol.score_ties == "image"
        return list(plan_buckets(self.runs, self.n_labels, self.bucket_rows, by_image=by_image))


class ReducedCurves:
    """Curves of run files; see `Curves` for what is computed. What was not asked for at first costs another pass.

    `images` are the rows of the images that count, ascending; all unless given.
    """

    def __init__(self, runs: Runs, images: IntArray | None = None, *, ties_first: TiesFirst = None) -> None:
        self._runs = runs
        self._rows = images
        self._ties_first = ties_first
        self._mask: BoolArray | None = None
        self._truth = runs.truth
        if images is not None:
            self._mask = np.zeros(runs.n_images, dtype=np.bool_)
            self._mask[images] = True
            self._truth = runs.truth.take(self._mask[runs.truth.image])
        self.protocol = runs.protocol
        self.caps: tuple[int | None, ...] = runs.protocol.max_dets or (None,)
        self._cells: dict[Cell, Any] = {}
        self._counted: dict[float, tuple[IntArray, IntArray]] = {}

    @property
    def n_images(self) -> int:
        """How many images there are."""
        return self._runs.n_images if self._rows is None else len(self._rows)

    @cached_property
    def positives(self) -> IntArray:
        """Objects that count, shape (A, K)."""
        truth, n = self._truth, self._runs.n_labels
        return np.stack([np.bincount(truth.label[counts], minlength=n) for counts in truth.counts])

    @cached_property
    def objects(self) -> IntArray:
        """All objects, whether they count or not, shape (K,)."""
        return np.bincount(self._truth.label, minlength=self._runs.n_labels)

    @cached_property
    def detections(self) -> IntArray:
        """All detections within the largest cap, shape (K,)."""
        if self._mask is None:
            return np.asarray(np.sum([np.diff(run.first) for run in self._runs.runs], axis=0, dtype=np.int64))
        return self._facts.detections

    @property
    def recall_grid(self) -> FloatArray:
        """Recall values of the curves; 101 of them where the protocol itself uses none."""
        return self.protocol.recall_grid if self.protocol.recall_points else np.linspace(0.0, 1.0, 101)

    def restrict(self, images: IntArray) -> ReducedCurves:
        """Return the curves of some images, ascending rows that are then counted from 0."""
        rows = images if self._rows is None else self._rows[images]
        return ReducedCurves(self._runs, rows, ties_first=self._ties_first)

    def ties(self, *, best: bool) -> ReducedCurves:
        """Return the curves with the hits of each tie in front, or behind: the highest precision, or the lowest."""
        view = ReducedCurves(self._runs, self._rows, ties_first=best)
        view._cells = self._cells  # what was made for one view serves the others
        return view

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Compute several curves in one pass."""
        missing = [cell for cell in dict.fromkeys(cells) if cell not in self._cells]
        if missing:
            reducers = self._each_chain(partial(self._reduce_cells, missing), "measuring")
            for cell in missing:
                self._cells[cell] = joined_curve([found[cell] for found in reducers], self._is_area)

    # What averages ask for.

    def hit_counts(self, area: int, cap: int) -> IntArray:
        """Count the true positives, shape (T, K)."""
        count: IntArray = self._cell(area, cap).count
        return count

    def detection_counts(self) -> IntArray:
        """Count the detections that are true or false positives over all sizes, by threshold and class (T, K)."""
        return self._counts_of(-np.inf)[1]

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections within a cap, shape (T, K)."""
        positives = self.positives[area].astype(np.float64)
        positives[positives == 0] = np.nan
        return np.asarray(self.hit_counts(area, cap) / positives)

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        if self._is_area:
            return self.steps(area, cap).interpolated_precision(self.recall_grid)
        until_next = self._cell(area, cap).until_next  # (T, K, R)
        highest = np.maximum.accumulate(until_next[:, :, ::-1], axis=2)[:, :, ::-1]
        return self._undefined(area, np.ascontiguousarray(highest.transpose(0, 2, 1)))

    def area_under_envelope(self, area: int, cap: int) -> FloatArray:
        """Area below the interpolated precision of each class, shape (T, K)."""
        return self.steps(area, cap).area_under_envelope()

    def steps(self, area: int, cap: int) -> Steps:
        """Return where recall rises, which is kept where areas below the envelope are measured."""
        if not self._is_area:
            raise UsageError(NO_TABLE)
        found = self._cell(area, cap)
        stop = np.cumsum(found.count).reshape(found.count.shape)
        start = stop - found.count
        total = np.arange(int(found.count.sum()) + 1)
        return Steps(self.protocol, total, found.before, start, stop, self.positives[area])

    @property
    def _is_area(self) -> bool:
        return self.protocol.interpolation == "area"

    def _cell(self, area: int, cap: int) -> Any:
        cell = (area, cap, self._ties_first)
        if cell not in self._cells:
            # What a summary and the checks ask for, once for all: to read the files costs more than to reduce them.
            last = len(self.caps) - 1
            usual = [(a, last, None) for a in self._areas] + [(ALL_SIZES, m, None) for m in range(last)]
            self.prepare([cell, *usual, (ALL_SIZES, last, True), (ALL_SIZES, last, False)])
        return self._cells[cell]

    def _undefined(self, area: int, values: FloatArray) -> FloatArray:
        values[..., self.positives[area] == 0] = np.nan
        return values

    # Whole curves.

    @cached_property
    def precision(self) -> FloatArray:
        """Interpolated precision at each recall value, shape (T, R, K, A, M)."""
        return self._stack(self.interpolated_precision)

    @cached_property
    def recall(self) -> FloatArray:
        """Recall over all detections, shape (T, K, A, M)."""
        return self._stack(self.final_recall)

    @cached_property
    def scores(self) -> FloatArray:
        """Score at which each recall value is reached, 0 beyond the last; shape (T, R, K, A, M)."""
        return self._stack(self.recall_scores)

    def _stack(self, slice_of: Callable[[int, int], FloatArray]) -> FloatArray:
        self.prepare((area, cap, None) for area in self._areas for cap in range(len(self.caps)))
        return np.stack(
            [np.stack([slice_of(a, m) for m in range(len(self.caps))], axis=-1) for a in self._areas], axis=-2
        )

    @property
    def _areas(self) -> range:
        return range(len(self.protocol.areas))

    def recall_scores(self, area: int, cap: int, grid: FloatArray | None = None) -> FloatArray:
        """Score of the detection that reaches each recall value, those of the curves or a grid from 0; (T, R, K)."""
        grid = self.recall_grid if grid is None else grid
        found = self._each_chain(partial(self._reduce_scores, area, cap, grid), "measuring")
        scores = np.concatenate([scores for scores, _ in found], axis=1)  # (T, K, R)
        scores[:, :, grid == 0] = np.concatenate([first for _, first in found])[:, None]
        return self._undefined(area, np.ascontiguousarray(scores.transpose(0, 2, 1)))

    # Counts at scores.

    def counts_at(self, threshold: int, label: int | None, score: float) -> tuple[int, int, int]:
        """Count true positives, false positives and misses at a score, of a class or of all pooled."""
        known = self._best.get((threshold, label)) if "_best" in self.__dict__ else None
        if label is None and known is None:
            known = self._best_pooled.get(threshold) if "_best_pooled" in self.__dict__ else None
        positives = int((self.positives[ALL_SIZES] if label is None else self.positives[ALL_SIZES, label]).sum())
        if known is not None and known[0] == score:
            _, tp, counted = known
        else:
            hits, counts = (values[threshold] for values in self._counts_of(score))
            tp, counted = (int(values.sum() if label is None else values[label]) for values in (hits, counts))
        return tp, counted - tp, positives - tp

    def best_f1(self, threshold: int, label: int | None) -> float:
        """Return the score with the highest F1 of one class, or (None) of all classes pooled; see `Curves.best_f1`."""
        found = self._best_pooled.get(threshold) if label is None else self._best.get((threshold, label))
        return float("nan") if found is None else found[0]

    def _counts_of(self, score: float) -> tuple[IntArray, IntArray]:
        """Count hits, and detections that count, with at least a score, by threshold and class (T, K)."""
        if score not in self._counted:
            found = self._each_chain(partial(self._reduce_counts, score), "counting")
            self._counted[score] = tuple(np.concatenate(columns, axis=1) for columns in zip(*found, strict=True))  # type: ignore[assignment]
        return self._counted[score]

    @cached_property
    def _best(self) -> dict[tuple[int, int | None], tuple[float, int, int]]:
        """Best score of each threshold and class, with its hits and counts; none for classes without detections."""
        found = self._each_chain(self._reduce_best, "finding the best F1")
        return {key: best for chain in found for key, best in chain.items()}

    @cached_property
    def _best_pooled(self) -> dict[int, tuple[float, int, int]]:
        """Best score of each threshold over all classes, with its hits and counts."""
        positives = int(self.positives[ALL_SIZES].sum())
        best = BestF1(positives, len(self.protocol.iou_thresholds))
        for score, hits, counts in self._by_score():
            best.add(score, hits, counts)
        return {t: found for t, found in enumerate(best.found) if found is not None}

    def _by_score(self) -> Iterator[tuple[FloatArray, IntArray, IntArray]]:
        """Yield all scores of all classes, descending, each once, with how many hit and count (T, s)."""
        runs = self._runs
        step = max(1, runs.bucket_rows // SAMPLES)
        # Copies, as a view would keep all scores of its run.
        samples = [run.read("score", 0, int(run.first[-1]))[::step].copy() for run in runs.runs]
        cuts = np.unique(np.concatenate(samples))[::-SAMPLES]  # descending
        files = [runs.scratch / f"scores-{id(self)}-{place}" for place in range(len(cuts) + 1)]
        with Stage("ranking all classes"):
            for chain in runs.chains():
                for bucket in chain:
                    append_scores(self._load(bucket), cuts, files)
        for file in files:
            if file.exists():
                scores, hits, counts = read_scores(file, len(self.protocol.iou_thresholds))
                file.unlink()
                yield scores, hits, counts

    # Facts of the ranking.

    @property
    def n_tied(self) -> int:
        """How many detections share their score with another one of their class."""
        return self._facts.tied

    @cached_property
    def _facts(self) -> _Facts:
        found = self._each_chain(self._reduce_facts, "counting")
        return _Facts(sum(facts.tied for facts in found), np.concatenate([facts.detections for facts in found]))

    @property
    def ranking(self) -> NoReturn:
        """Not kept."""
        raise UsageError(NO_TABLE)

    def weighted(self, weights: IntArray) -> NoReturn:
        """Not available: every resample would read all files again."""
        raise UsageError(NO_TABLE)

    # The run files, read once for each of these.

    def _each_chain(self, reduce: Callable[[Chain], Found], name: str) -> list[Found]:
        chains = self._runs.chains()
        with Stage(name, sum(len(bucket) for chain in chains for bucket in chain)) as stage:
            found = []
            for chain, reduced in zip(chains, map_in_order(reduce, chains, workers=self._runs.workers), strict=True):
                found.append(reduced)
                stage.advance(sum(map(len, chain)))
                release_memory(sum(map(len, chain)))
        return found

    def _load(self, bucket: Bucket) -> Ranking:
        return load_ranking(bucket.parts, bucket.labels, self.protocol, self._mask)

    def _reduce_cells(self, cells: Sequence[Cell], chain: Chain) -> dict[Cell, Any]:
        labels = chain[0].labels
        kind = HitsOfArea if self._is_area else Envelope
        rules = CurveRules(self.protocol, self.caps, self.positives, self.recall_grid)
        found = {cell: kind(rules, cell, labels) for cell in cells}
        for place, bucket in enumerate(chain):
            ranking = self._load(bucket)
            shared = Shared(ranking)
            for cell, reducer in found.items():
                beyond = self._of_tie(chain, place, cell) if cell[2] is not None and bucket.tied is not None else None
                reducer.add(ranking, shared, beyond)
        return found

    def _of_tie(self, chain: Chain, place: int, cell: Cell) -> tuple[IntArray, IntArray]:
        """Return what moves in front of the hits of a piece of a tie: whole pieces before it, or after it, (T,).

        With hits in front, what counts in earlier pieces is replaced by their hits; behind, what counts in later
        pieces and does not hit comes in front as well.
        """
        tied = chain[place].tied
        pieces = range(place) if cell[2] else range(place + 1, len(chain))
        n = len(self.protocol.iou_thresholds)
        moved = np.zeros(n, dtype=np.int64)
        for other in pieces:
            if chain[other].tied == tied:
                ranking = self._load(chain[other])
                hits = Hits(ranking, cell[0], self.caps[cell[1]], Shared(ranking).candidates_before)
                moved += hits.totals() - (hits.stop - hits.start)[:, 0]
        return (-moved if cell[2] else moved), moved

    def _reduce_scores(self, area: int, cap: int, grid: FloatArray, chain: Chain) -> tuple[FloatArray, FloatArray]:
        first, last = chain[0].labels
        needed = np.maximum(required_hits(self.positives[area, first:last], grid), 1)  # (K, R)
        n = len(self.protocol.iou_thresholds)
        scores = np.zeros((n, *needed.shape))
        of_first = np.zeros(last - first)
        tp = np.zeros((n, last - first), dtype=np.int64)
        seen = np.zeros(last - first, dtype=np.bool_)
        for bucket in chain:
            ranking = self._load(bucket)
            hits = Hits(ranking, area, self.caps[cap], Shared(ranking).candidates_before)
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

    def _reduce_counts(self, score: float, chain: Chain) -> tuple[IntArray, IntArray]:
        first, last = chain[0].labels
        n = len(self.protocol.iou_thresholds)
        tp, counted = (np.zeros((n, last - first), dtype=np.int64) for _ in range(2))
        for bucket in chain:
            ranking = self._load(bucket)
            for t in range(n):
                hit, counts = ranking.outcomes(t)
                above = ranking.score >= score
                tp[t] += np.bincount(ranking.label[hit & above], minlength=last - first)
                counted[t] += np.bincount(ranking.label[counts & above], minlength=last - first)
        return tp, counted

    def _reduce_best(self, chain: Chain) -> dict[tuple[int, int | None], tuple[float, int, int]]:
        first, last = chain[0].labels
        n = len(self.protocol.iou_thresholds)
        best = [BestF1(int(self.positives[ALL_SIZES, label]), n) for label in range(first, last)]
        for bucket in chain:
            ranking = self._load(bucket)
            hits, counts = (np.stack(flags) for flags in zip(*map(ranking.outcomes, range(n)), strict=True))
            bounds = np.searchsorted(ranking.label, np.arange(last - first + 1)).tolist()
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

    def _reduce_facts(self, chain: Chain) -> _Facts:
        first, last = chain[0].labels
        tied, detections = 0, np.zeros(last - first, dtype=np.int64)
        pieces: dict[float, int] = {}
        for bucket in chain:
            ranking = self._load(bucket)
            detections += np.bincount(ranking.label, minlength=last - first)
            if bucket.tied is not None:
                pieces[bucket.tied] = pieces.get(bucket.tied, 0) + len(ranking)
                continue
            _, length = lengths_of_runs(starts_of_runs(ranking.score) | starts_of_runs(ranking.label))
            tied += int(length[length > 1].sum())
        return _Facts(tied + sum(n for n in pieces.values() if n > 1), detections)


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    tied: int
    detections: IntArray  # (K,)
