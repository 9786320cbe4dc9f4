"""Counts at every step of a score threshold, at one IoU threshold, over all sizes.

Matches are made once, as no better detection looks at a worse one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, WholeArray
from jaccard_eval.metrics.detection import AnyClassMatches, DetectionMetrics
from jaccard_eval.progress import staged

N_STOPS = 101  # of a slider: hundredths from 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatingSteps:
    """What the detections with at least each of some scores count as.

    Parameters
    ----------
    iou : float
        Where a pair matches.
    scores : ndarray of float64, shape (S,)
        Ascending: `N_STOPS` of a slider, and one more where it starts between two of these.
    start : int
        Place of the score that is shown at first.
    names : tuple of str, length K
    positives : ndarray of int64, shape (K,)
        Objects that count.
    tp, fp : ndarray of int64, shape (K, S)
        True and false positives of each class.
    cells : ndarray of int64, shape (c,)
        Places in the confusion matrix, row by row, of the cells that are not always 0; missed objects are not among
        them, as they are what the others of a row leave.
    confused : ndarray of int64, shape (c, S)
        What these cells count.
    """

    iou: float
    scores: FloatArray
    start: int
    names: tuple[str, ...]
    positives: IntArray
    tp: IntArray
    fp: IntArray
    cells: IntArray
    confused: IntArray

    @property
    def score(self) -> float:
        """The score that is shown at first."""
        return float(self.scores[self.start])

    @property
    def stops(self) -> IntArray:
        """Place of the score at each stop of a slider, shape (N_STOPS,)."""
        places = np.arange(len(self.scores))
        return places if len(places) == N_STOPS else np.delete(places, self.start)

    @property
    def thumb(self) -> int:
        """The stop that a slider starts at: the start itself, or the one below."""
        return int(np.searchsorted(self.stops, self.start, "right")) - 1 if self.start else 0

    def counts(self, step: int) -> list[StepCounts]:
        """Return the counts at a step, of all classes pooled and then of each."""
        tp, fp = (np.append(side[:, step].sum(), side[:, step]).tolist() for side in (self.tp, self.fp))
        positives = np.append(self.positives.sum(), self.positives).tolist()
        return [StepCounts(*numbers) for numbers in zip(tp, fp, positives, strict=True)]

    def confusion(self, step: int) -> npt.NDArray[np.int64]:
        """Return the confusion matrix at a step, (K + 1, K + 1); rows are ground truth, the background is last."""
        n = len(self.names) + 1
        matrix = np.zeros((n, n), dtype=np.int64)
        matrix.flat[self.cells] = self.confused[:, step]
        matrix[:-1, -1] = self.positives - matrix[:-1].sum(axis=1)
        return matrix


@dataclass(frozen=True, slots=True)
class StepCounts:
    """True and false positives and objects at one step, and what follows from them; NaN where undefined."""

    tp: int
    fp: int
    positives: int

    @property
    def fn(self) -> int:
        """Objects that are missed."""
        return self.positives - self.tp

    @property
    def precision(self) -> float:
        """Share of the detections that are right."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else math.nan

    @property
    def recall(self) -> float:
        """Share of the objects that are found."""
        return self.tp / self.positives if self.positives else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        whole = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / whole if whole else math.nan


FIRST = ord("?")  # of 64 letters up to "~", none of which HTML knows
BITS = 5  # of a number in a letter
MORE = 1 << BITS  # set where more letters follow


def pack(counts: IntArray) -> str:
    """Return the counts other than 0 of an array, read row by row: how many zeros come before each, then the count.

    Every number has its lowest bits first.
    """
    flat = counts.ravel()
    places = np.flatnonzero(flat)
    numbers = np.column_stack([np.diff(places, prepend=-1) - 1, flat[places]]).ravel()
    n_letters = np.maximum(1, (np.frexp(numbers.astype(np.float64))[1] + BITS - 1) // BITS)
    ends = np.cumsum(n_letters)
    # Place of each letter within its number.
    place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - n_letters, n_letters)
    digits = (np.repeat(numbers, n_letters) >> (BITS * place)) & (MORE - 1)
    digits[place < np.repeat(n_letters, n_letters) - 1] |= MORE
    return str((digits + FIRST).astype(np.uint8).tobytes(), "ascii")


def per_step(counts: IntArray) -> IntArray:
    """Return how much counts (..., S) that never rise fall behind each step: numbers that pack well."""
    return np.asarray(counts - np.concatenate([counts[..., 1:], np.zeros_like(counts[..., :1])], axis=-1))


FEW_STOPS = 5  # scores that lie between so few of the hundredths are squeezed, if there are many
MOST_DIGITS = 17  # that a float64 needs


@staged("counting at every score")
def operating_steps(
    metrics: DetectionMetrics, any_class: AnyClassMatches, start: float, *, given: bool
) -> OperatingSteps:
    """Count at every step, at IoU .5 or else the lowest threshold; `given` starts stand as they are."""
    table, ranking, n = metrics.table, metrics.curves.ranking, len(metrics.class_names)
    hit, counts = ranking.outcomes(metrics.protocol.judged_threshold)
    scores, place = score_steps(table.score, start, given=given)
    steps, last = len(scores), last_steps(table.score, scores)

    def count(row: WholeArray, at: IntArray, n_rows: int) -> IntArray:
        # A detection counts at all steps up to its last one: sums from the end.
        cells = np.bincount((row * steps + at)[at >= 0], minlength=n_rows * steps).reshape(n_rows, steps)
        return np.asarray(cells[:, ::-1].cumsum(axis=1)[:, ::-1])

    wrong = counts & ~hit
    # A table of all cells finds those that occur faster than sorting the detections.
    cells = np.flatnonzero(np.bincount(any_class.cell))
    place_of = np.zeros((n + 1) ** 2, dtype=np.int64)
    place_of[cells] = np.arange(len(cells))
    return OperatingSteps(
        iou=any_class.iou,
        scores=scores,
        start=place,
        names=metrics.class_names,
        positives=any_class.positives,
        tp=count(ranking.label[hit], last[hit], n),
        fp=count(ranking.label[wrong], last[wrong], n),
        cells=cells,
        confused=count(place_of[any_class.cell], last_steps(any_class.score, scores), len(cells)),
    )


def score_steps(score: FloatArray, start: float, *, given: bool) -> tuple[FloatArray, int]:
    """Return the steps for detections with some scores (n,), ascending, and the place of the start among them.

    They are the hundredths from 0 to 1. Where scores lie outside of these, or many of them between a few of these, they
    are quantiles of the scores. A start that was found, not given, becomes the shortest number that keeps what it does.
    """
    # Not .01 * k, which is 0.07000000000000001 for 7.
    steps = np.arange(N_STOPS) / (N_STOPS - 1)
    outside = len(score) > 0 and (score.min() < 0 or score.max() > 1)
    if outside or np.count_nonzero(np.bincount(last_steps(score, steps).clip(0))) <= FEW_STOPS:
        distinct = np.unique(score)
        if outside or len(distinct) >= N_STOPS:
            # Of the distinct ones: a score that half of the detections share would take half of the stops.
            places = np.linspace(0, len(distinct) - 1, N_STOPS).round().astype(np.int64)
            lower = np.append(-np.inf, distinct)[places]
            steps = np.array(list(map(shortest_between, lower.tolist(), distinct[places].tolist())))
    if not given:
        start = shortest_between(float(score.max(where=score < start, initial=-np.inf)), start)
    place = int(np.searchsorted(steps, start))
    if place == len(steps) or steps[place] != start:
        steps = np.insert(steps, place, start)
    return steps, place


def shortest_between(below: float, score: float) -> float:
    """Return the number with the fewest decimals, two or more, that is above `below` and at most `score`.

    >>> shortest_between(0.41, 0.4237812), shortest_between(0.4231, 0.4237812), shortest_between(-2.5, -2.5)
    (0.42, 0.4237, -2.5)
    """
    # Of numbers without any room for decimals, the product may be infinite.
    for digits in range(2, MOST_DIGITS) if abs(score) < 2.0**53 else ():
        number = round(math.floor(score * 10.0**digits) / 10.0**digits, digits)
        if below < number <= score:
            return number
    return score


def last_steps(score: FloatArray, steps: FloatArray) -> IntArray:
    """Return the last step that each score reaches; -1 for none, which is that of NaN."""
    return np.where(np.isnan(score), -1, np.searchsorted(steps, score, "right") - 1)
