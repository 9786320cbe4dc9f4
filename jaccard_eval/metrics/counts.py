"""Counts at an operating point: true and false positives and misses among detections above a score, as columns too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.result import OperatingPoint
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray, descending_order
from jaccard_eval.metrics.curves import MatchCurves

ALL_SIZES = 0  # operating points are taken over the first area range


def operating_point(
    curves: MatchCurves, threshold: int, label: int | None, score: float, *, class_name: str | None, iou: float
) -> OperatingPoint:
    """Count detections with at least `score`, of one class or (`label` None) of all classes pooled.

    Matching goes by descending score, so leaving out the detections below a score changes no match above it.
    Precision is undefined without detections, recall without ground truth, F1 without either.
    """
    hit, counts = detection_outcomes(curves, threshold)
    chosen = curves.table.score >= score
    positives = curves.positives[ALL_SIZES]
    if label is not None:
        chosen &= curves.table.label == label
        positives = positives[label]
    n_hits = int((hit & chosen).sum())
    return point_of(
        n_hits,
        int((counts & chosen).sum()) - n_hits,
        int(positives.sum()) - n_hits,
        class_name=class_name,
        iou=iou,
        score=score,
    )


def point_of(tp: int, fp: int, fn: int, *, class_name: str | None, iou: float, score: float) -> OperatingPoint:
    """Return the operating point of some counts."""
    return OperatingPoint(
        class_name=class_name,
        iou=iou,
        score=score,
        tp=tp,
        fp=fp,
        fn=fn,
        precision=_ratio(tp, tp + fp),
        recall=_ratio(tp, tp + fn),
        f1=_ratio(2 * tp, 2 * tp + fp + fn),
    )


def point_value(point: OperatingPoint, name: str, n_images: int) -> float:
    """Return the value of a metric at an operating point; false positives per image are those of `n_images`."""
    if name == "FPPI":
        return point.fp / n_images if n_images else math.nan
    return float(getattr(point, name.lower()))


def best_f1_points(curves: MatchCurves, threshold: int) -> dict[int | None, float]:
    """Return the score with the highest F1 of each class, and under None of all classes pooled.

    Taken from every score that occurs, not from the interpolated curve; of equal F1 the highest score. NaN for a
    class without detections.
    """
    table = curves.table
    hit, counts = detection_outcomes(curves, threshold)
    positives = curves.positives[ALL_SIZES]
    best: dict[int | None, float] = {}
    bounds = np.searchsorted(table.label, np.arange(table.n_labels + 1))
    for k in range(table.n_labels):
        rows = slice(bounds[k], bounds[k + 1])
        best[k] = _best_score(table.score[rows], hit[rows], counts[rows], int(positives[k]))
    order = descending_order(table.score)
    best[None] = _best_score(table.score[order], hit[order], counts[order], int(positives.sum()))
    return best


def detection_outcomes(curves: MatchCurves, threshold: int) -> tuple[BoolArray, BoolArray]:
    """Return which detections are true positives and which count at all, shape (n,) each."""
    outcome, candidate = curves.outcome(ALL_SIZES), curves.table.candidate
    hit = np.zeros(len(curves.table), dtype=np.bool_)
    hit[candidate] = outcome.hits[threshold]
    counts = outcome.unmatched.copy()
    counts[candidate] = outcome.counts[threshold]
    return hit, counts


def _best_score(score: FloatArray, hit: BoolArray, counts: BoolArray, positives: int) -> float:
    """Return the score of the best F1 among detections in descending order of score."""
    if len(score) == 0:
        return float("nan")
    tp: IntArray = np.cumsum(hit)
    f1 = 2 * tp / np.maximum(np.cumsum(counts) + positives, 1)
    last_of_tie = np.append(score[1:] != score[:-1], True)
    return float(score[np.where(last_of_tie, f1, -1.0).argmax()])


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def match_columns(curves: MatchCurves, images: Sequence[str], classes: Sequence[str]) -> Mapping[str, Any]:
    """Return one row per detection kept, in the order of the predictions; columns (n,) or (n, T)."""
    table, outcome = curves.table, curves.outcome(ALL_SIZES)
    order = np.argsort(table.source, kind="stable")
    n, n_thresholds = len(table), len(outcome.hits)
    gt = np.full((n, n_thresholds), -1, dtype=np.int64)
    overlap = np.full((n, n_thresholds), np.nan)
    hits = np.zeros((n, n_thresholds), dtype=np.bool_)
    counts = np.repeat(outcome.unmatched[:, None], n_thresholds, axis=1)
    choice = table.choice[ALL_SIZES].T  # (c, T)
    c, t = np.nonzero(choice >= 0)
    gt[table.candidate[c], t] = table.gt_source[table.pair_gt[choice[c, t]]]
    overlap[table.candidate[c], t] = table.pair_overlap[choice[c, t]]
    hits[table.candidate], counts[table.candidate] = outcome.hits.T, outcome.counts.T
    columns = {"score": table.score, "source": table.source, "gt": gt, "iou": overlap}
    columns |= {"tp": hits, "fp": counts & ~hits, "ignored": ~counts}
    return _named(table.image, table.label, images, classes, order) | {k: v[order] for k, v in columns.items()}


def missed_columns(table: MatchTable, images: Sequence[str], classes: Sequence[str]) -> Mapping[str, Any]:
    """Return one row per ground-truth box that counts and that some threshold leaves unmatched."""
    found = _found(table)
    missed = ~found & ~table.gt_ignored[ALL_SIZES][:, None]
    rows = np.flatnonzero(missed.any(axis=1))
    named = _named(table.gt_image, table.gt_label, images, classes, rows)
    return named | {"source": table.gt_source[rows], "missed": missed[rows]}


def _found(table: MatchTable) -> BoolArray:
    """Mark ground truth that a detection matched, shape (m, T)."""
    choice = table.choice[ALL_SIZES]
    found = np.zeros((len(table.gt_image), len(choice)), dtype=np.bool_)
    t, c = np.nonzero(choice >= 0)
    found[table.pair_gt[choice[t, c]], t] = True
    return found


def _named(
    image: IntArray, label: IntArray, images: Sequence[str], classes: Sequence[str], rows: IntArray
) -> dict[str, Any]:
    return {
        "image": np.array(images, dtype=object)[image[rows]] if len(rows) else np.array([], dtype=object),
        "class": np.array(classes, dtype=object)[label[rows]] if len(rows) else np.array([], dtype=object),
    }
