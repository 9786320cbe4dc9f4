"""How the rows of all runs are divided into buckets that fit into memory, in the order of one ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.engine.runs import Rows, Run
from jaccard_eval.matching.order import IntArray

SAMPLES = 16  # scores looked at for each bucket that a class is cut into


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """Consecutive rows of the ranking of all detections, of the classes in the range `labels`."""

    parts: tuple[Rows, ...]
    labels: tuple[int, int]
    # The score that all its rows have, where it is a piece of a tie that is too large for one bucket.
    tied: float | None = None

    def __len__(self) -> int:
        return sum(part.stop - part.start for part in self.parts)


# Buckets that follow each other within one class; or one bucket, of whole classes.
Chain = tuple[Bucket, ...]


def plan_buckets(runs: Sequence[Run], n_labels: int, most: int, *, by_image: bool) -> Iterator[Chain]:
    """Yield all rows in buckets of about `most` at most; `by_image` is whether that orders equal scores.

    No bucket begins or ends within a tie, unless the tie alone is too large.
    """
    counts = np.asarray(np.sum([np.diff(run.first) for run in runs], axis=0, dtype=np.int64))
    first = 0
    if not n_labels:
        yield (_bucket(runs, np.zeros((len(runs), 2), dtype=np.int64), (0, 0)),)
    while first < n_labels:
        if counts[first] > most:
            yield tuple(_cut_class(runs, first, most, by_image=by_image))
            first += 1
            continue
        filled = np.cumsum(counts[first:])
        stop = first + max(1, int(np.searchsorted(filled, most, "right")))
        bounds = [(run.first[first], run.first[stop]) for run in runs]
        yield (_bucket(runs, np.array(bounds), (first, stop)),)
        first = stop


def _bucket(runs: Sequence[Run], bounds: IntArray, labels: tuple[int, int], tied: float | None = None) -> Bucket:
    """Return the rows between `bounds` (runs, 2); a run without any is not among its parts, if others have some."""
    parts = [Rows(run, int(start), int(stop)) for run, (start, stop) in zip(runs, bounds, strict=True)]
    return Bucket(tuple([part for part in parts if part.stop > part.start] or parts[:1]), labels, tied)


def _cut_class(runs: Sequence[Run], label: int, most: int, *, by_image: bool) -> Iterator[Bucket]:
    """Cut a class by score, and by what orders equal scores where too many are equal."""
    start = np.array([run.first[label] for run in runs])
    ends = np.array([run.first[label + 1] for run in runs])
    labels = (label, label + 1)
    for cut in _cuts(runs, label, most):
        stop = np.array([_place(run, low, high, cut) for run, low, high in zip(runs, start, ends, strict=True)])
        bounds = np.stack((start, stop), axis=1)
        start = stop
        if cut.is_tie and int((bounds[:, 1] - bounds[:, 0]).sum()) > most:
            yield from _cut_tie(runs, bounds, labels, cut.score, most, by_image=by_image)
        elif (bounds[:, 1] > bounds[:, 0]).any():
            yield _bucket(runs, bounds, labels)
    if (ends > start).any():
        yield _bucket(runs, np.stack((start, ends), axis=1), labels)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a bucket ends: in front of all rows of a score, or behind them; then it may hold that score alone."""

    score: float
    is_behind: bool
    is_tie: bool = False


def _cuts(runs: Sequence[Run], label: int, most: int) -> Iterator[_Cut]:
    """Yield the ends of buckets by descending score."""
    step = max(1, most // SAMPLES)
    sampled = [run.read("score", run.first[label], run.first[label + 1])[::step] for run in runs]
    scores = np.sort(np.concatenate(sampled))[::-1]
    # There is a sample for `step` rows; a score that would fill half a bucket gets one of its own.
    for score in np.unique(scores[SAMPLES - 1 :: SAMPLES])[::-1].tolist():
        is_tie = 2 * int(np.count_nonzero(scores == score)) >= SAMPLES
        if is_tie:
            yield _Cut(score, is_behind=False)
        yield _Cut(score, is_behind=True, is_tie=is_tie)


def _place(run: Run, low: int, high: int, cut: _Cut) -> int:
    """Return where the rows of a class in front of a cut end."""
    scores: FloatArray = run.read("score", low, high)
    return int(low + np.searchsorted(-scores, -cut.score, "right" if cut.is_behind else "left"))


def _cut_tie(
    runs: Sequence[Run], bounds: IntArray, labels: tuple[int, int], score: float, most: int, *, by_image: bool
) -> Iterator[Bucket]:
    """Cut rows of one score, which are sorted within each run: by run, as images ascend, or by their place."""
    if by_image:
        for run, (first, last) in zip(runs, bounds.tolist(), strict=True):
            for place in range(first, last, most):
                yield Bucket((Rows(run, place, min(place + most, last)),), labels, score)
        return
    ties = [run.read("tie", start, stop) for run, (start, stop) in zip(runs, bounds, strict=True)]
    every = np.sort(np.concatenate(ties))
    start = bounds[:, 0]
    for last in [*every[most - 1 :: most].tolist(), int(every[-1])]:
        stop = bounds[:, 0] + [np.searchsorted(tie, last, "right") for tie in ties]
        if (stop > start).any():
            yield _bucket(runs, np.stack((start, stop), axis=1), labels, score)
        start = stop
