"""How the rows of all runs are divided into buckets that fit into memory, in the order of one ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from jaccard_eval.engine.runs import Run
from jaccard_eval.engine.scratch import gathered
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray

SAMPLES = 16  # scores looked at for each bucket that a class is cut into


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """Consecutive rows of the ranking of all detections, of the classes in the range `labels`."""

    rows: IntArray  # (r, 3): of a run, the first row and the end
    labels: tuple[int, int]
    # The score that all its rows have, where it is a piece of a tie that is too large for one bucket.
    tied: float | None = None

    def __len__(self) -> int:
        return int((self.rows[:, 2] - self.rows[:, 1]).sum())


# Buckets that follow each other within one class; or one bucket, of whole classes.
Chain = tuple[Bucket, ...]


def plan_buckets(runs: Sequence[Run], n_labels: int, most: int, *, by_image: bool) -> Iterator[Chain]:
    """Yield all rows in buckets of about `most` at most; `by_image` is whether that orders equal scores.

    No bucket begins or ends within a tie, unless the tie alone is too large.
    """
    counts = np.asarray(np.sum([np.diff(run.first) for run in runs], axis=0, dtype=np.int64))
    first = 0
    if not n_labels:
        yield (_bucket(np.zeros((len(runs), 2), dtype=np.int64), (0, 0)),)
    while first < n_labels:
        if counts[first] > most:
            yield tuple(_cut_class(runs, first, most, by_image=by_image))
            first += 1
            continue
        filled = np.cumsum(counts[first:])
        stop = first + max(1, int(np.searchsorted(filled, most, "right")))
        bounds = [(run.first[first], run.first[stop]) for run in runs]
        yield (_bucket(np.array(bounds), (first, stop)),)
        first = stop


def _bucket(bounds: IntArray, labels: tuple[int, int], tied: float | None = None) -> Bucket:
    """Return the rows between `bounds` (runs, 2); a run without any is not among them, if others have some."""
    rows = np.column_stack((np.arange(len(bounds)), bounds))
    filled = rows[bounds[:, 1] > bounds[:, 0]]
    return Bucket(filled if len(filled) else rows[:1], labels, tied)


def _cut_class(runs: Sequence[Run], label: int, most: int, *, by_image: bool) -> Iterator[Bucket]:
    """Cut a class by score, and by what orders equal scores where too many are equal."""
    start = np.array([run.first[label] for run in runs])
    ends = np.array([run.first[label + 1] for run in runs])
    labels = (label, label + 1)
    for cut in _cuts(runs, label, most):
        stop = np.array(gathered(partial(_stop, cut), list(zip(runs, start, ends, strict=True)), runs[0].path))
        bounds = np.stack((start, stop), axis=1)
        start = stop
        if cut.is_tie and int((bounds[:, 1] - bounds[:, 0]).sum()) > most:
            yield from _cut_tie(runs, bounds, labels, cut.score, most, by_image=by_image)
        elif (bounds[:, 1] > bounds[:, 0]).any():
            yield _bucket(bounds, labels)
    if (ends > start).any():
        yield _bucket(np.stack((start, ends), axis=1), labels)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a bucket ends: in front of all rows of a score, or behind them; then it may hold that score alone."""

    score: float
    is_behind: bool
    is_tie: bool = False


def _stop(cut: _Cut, rows: tuple[Run, int, int]) -> int:
    run, low, high = rows
    return run.place(low, high, cut.score, behind=cut.is_behind)


def _cuts(runs: Sequence[Run], label: int, most: int) -> Iterator[_Cut]:
    """Yield the ends of buckets by descending score."""
    step = max(1, most // SAMPLES)
    every = gathered(lambda run: run.read("score", run.first[label], run.first[label + 1]), runs, runs[0].path)
    sampled = [scores[::step] for scores in every]
    scores = np.sort(np.concatenate(sampled))[::-1]
    # There is a sample for `step` rows; a score that would fill half a bucket gets one of its own.
    for score in np.unique(scores[SAMPLES - 1 :: SAMPLES])[::-1].tolist():
        is_tie = 2 * int(np.count_nonzero(scores == score)) >= SAMPLES
        if is_tie:
            yield _Cut(score, is_behind=False)
        yield _Cut(score, is_behind=True, is_tie=is_tie)


def _cut_tie(
    runs: Sequence[Run], bounds: IntArray, labels: tuple[int, int], score: float, most: int, *, by_image: bool
) -> Iterator[Bucket]:
    """Cut rows of one score, which are sorted within each run: by run, as images ascend, or by their place."""
    if by_image:
        for run, (first, last) in enumerate(bounds.tolist()):
            for place in range(first, last, most):
                yield Bucket(np.array([[run, place, min(place + most, last)]]), labels, score)
        return
    ties = [run.read("tie", start, stop) for run, (start, stop) in zip(runs, bounds, strict=True)]
    every = np.sort(np.concatenate(ties))
    start = bounds[:, 0]
    for last in [*every[most - 1 :: most].tolist(), int(every[-1])]:
        stop = bounds[:, 0] + [np.searchsorted(tie, last, "right") for tie in ties]
        if (stop > start).any():
            yield _bucket(np.stack((start, stop), axis=1), labels, score)
        start = stop
