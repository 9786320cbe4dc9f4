"""Average precision of a ranking that is given by its hits, as the curves of a match table have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.matching.order import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Detections that count, in any order; of equal scores the earlier row comes first.

    Parameters
    ----------
    label : ndarray of int64, shape (n,)
    score : ndarray of float64, shape (n,)
    hit : ndarray of bool, shape (n,)
    positives : ndarray of int64, shape (K,)
        Ground-truth boxes of each class.
    """

    label: IntArray
    score: FloatArray
    hit: BoolArray
    positives: IntArray

    def take(self, kept: BoolArray) -> Ranking:
        """Keep some detections."""
        return Ranking(self.label[kept], self.score[kept], self.hit[kept], self.positives)


def class_precisions(ranking: Ranking, protocol: Protocol) -> FloatArray:
    """Return the average precision of each class, shape (K,); NaN without ground truth.

    The arithmetic is that of `curves`: precision ``tp / ((fp + tp) + epsilon)``, recall values reached as there.
    """
    order = _order(ranking)
    bounds = np.searchsorted(ranking.label[order], np.arange(len(ranking.positives) + 1))
    needed = required_hits(ranking.positives, protocol.recall_grid)  # (K, R)
    result = np.full(len(ranking.positives), np.nan)
    for k in np.flatnonzero(ranking.positives):
        envelope = _envelope(ranking.hit[order[bounds[k] : bounds[k + 1]]], protocol.precision_epsilon)
        if protocol.interpolation == "area":
            recall = np.arange(len(envelope) + 1) / ranking.positives[k]
            result[k] = np.sum(np.diff(recall) * envelope)
        else:
            place = np.minimum(np.maximum(needed[k] - 1, 0), len(envelope))
            result[k] = np.append(envelope, 0.0)[place].mean()
    return result


def mean_precision(ranking: Ranking, protocol: Protocol) -> float:
    """Return the mean over the classes with ground truth; NaN without any."""
    values = class_precisions(ranking, protocol)
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _order(ranking: Ranking) -> IntArray:
    """Return rows by class, then by descending score, equal scores in their order; rows that are so are not sorted."""
    label, score = ranking.label, ranking.score
    same, later = label[1:] == label[:-1], label[1:] > label[:-1]
    if np.all(later | (same & (score[1:] <= score[:-1]))):
        return np.arange(len(label))
    return np.lexsort((-score, label))


def _envelope(hit: BoolArray, epsilon: float) -> FloatArray:
    """Return the highest precision at or beyond each true positive."""
    place = np.flatnonzero(hit)
    precision = np.arange(1, len(place) + 1) / (place + 1 + epsilon)
    return np.asarray(np.maximum.accumulate(precision[::-1])[::-1])


def required_hits(positives: IntArray, grid: FloatArray) -> IntArray:
    """Return the smallest number of hits h with ``h / positives >= grid`` in float64 division, shape (K, R).

    Where `positives` is 0 the answer is larger than any count.
    """
    n = np.maximum(positives, 1).astype(np.float64)[:, None]
    hits = np.ceil(grid * n)
    hits -= (hits > 0) & ((hits - 1) / n >= grid)
    hits += hits / n < grid
    hits[positives == 0] = np.iinfo(np.int32).max
    return hits.astype(np.int64)
