"""Counts at every step of a score threshold, at one IoU threshold, over all sizes."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray

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
