"""Which boxes cost a metric of counts most: recall, precision, F1, and average recall; see `costs` for the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.features.errors.error_types import NO_BOX, Errors
from jaccard_eval.features.explain.repairs import Costs, aimed_labels, candidates, missed_fix, wrong_fix
from jaccard_eval.features.explain.result import Fix
from jaccard_eval.matching.order import IntArray

AVERAGE_RECALL = "AR"
COUNTED = (AVERAGE_RECALL, "recall", "precision", "F1")


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """True and false positives and ground-truth boxes by class, shape (K,) each."""

    tp: IntArray
    fp: IntArray
    positives: IntArray

    @classmethod
    def of(cls, errors: Errors) -> Counts:
        """Count what an evaluation found."""
        wrong = errors.counts & ~errors.hit
        return cls(errors.detections(errors.hit), errors.detections(wrong), errors.boxes(errors.counted))

    def plus(self, *, tp: int | None = None, fp: int | None = None) -> Counts:
        """Return the counts with a true positive more of one class, and a false positive less of one."""
        more, fewer = self.tp.copy(), self.fp.copy()
        if tp is not None:
            more[tp] += 1
        if fp is not None:
            fewer[fp] -= 1
        return replace(self, tp=more, fp=fewer)

    def measure(self, name: str, label: int | None) -> float:
        """Return a metric of `COUNTED`, of one class or, for None, of all: the mean of recall, else pooled; or NaN."""
        chosen = slice(None) if label is None else slice(label, label + 1)
        tp, fp, positives = self.tp[chosen], self.fp[chosen], self.positives[chosen]
        if name == AVERAGE_RECALL:
            defined = positives > 0
            return float((tp[defined] / positives[defined]).mean()) if defined.any() else float("nan")
        whole = {"recall": positives, "precision": tp + fp, "F1": (tp + fp + positives) / 2}[name].sum()
        return float(tp.sum() / whole) if whole else float("nan")


def costliest_counted(costs: Costs, n: int, name: str, label: int | None = None) -> tuple[Fix, ...]:
    """Return the `n` fixes that give a metric of `COUNTED` most, each alone; those that give nothing are left out.

    The fixes are those of `costs.costliest`, of the detections that the errors have: all with a score that counts.
    Of errors that give the same those with the highest scores come first.

    Parameters
    ----------
    costs : Costs
    n : int
    name : str
    label : int, optional
        The one class that is meant; None means all.
    """
    errors, counts = costs.errors, Counts.of(costs.errors)
    before = counts.measure(name, label)
    wrong, gains = _false_positives(errors, n, counts, name, label)
    order = np.lexsort((-errors.score[wrong], -gains))[:n]
    priced = [wrong_fix(costs, int(wrong[i]), float(gains[i]) - before) for i in order]
    for k in range(errors.n_labels) if label is None else [label]:
        boxes = np.flatnonzero(errors.missed & (errors.gt_label == k))[:n]
        gain = counts.plus(tp=k).measure(name, label) - before if len(boxes) else 0.0
        priced += [missed_fix(costs, int(box), gain) for box in boxes]
    return tuple(sorted((one for one in priced if one.gain > 0), key=lambda one: -one.gain)[:n])


def _false_positives(
    errors: Errors, n: int, counts: Counts, name: str, label: int | None
) -> tuple[IntArray, FloatArray]:
    """Return rows of false positives, and what the metric is when each alone is repaired."""
    counted = np.ones(errors.n_labels, dtype=np.bool_) if label is None else np.arange(errors.n_labels) == label
    rows = np.fromiter(candidates(errors, n, counted), dtype=np.int64)
    owns, aims = errors.label[rows].tolist(), aimed_labels(errors)[rows].tolist()
    pairs = list(zip(owns, aims, strict=True))
    values = {
        (own, aim): counts.plus(tp=None if aim == NO_BOX else aim, fp=own).measure(name, label)
        for own, aim in set(pairs)
    }
    return rows, np.array([values[pair] for pair in pairs])
