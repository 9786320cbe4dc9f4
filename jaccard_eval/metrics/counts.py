"""Counts at an operating point: true and false positives and misses among detections above a score, as columns too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import OperatingPoint
from jaccard_eval.matching.greedy import NO_PAIR
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import ALL_SIZES, Ranking
from jaccard_eval.metrics.averages import Axes
from jaccard_eval.metrics.curves import CurveSource
from jaccard_eval.options import BEST_F1


def operating_point(
    source: CurveSource, threshold: int, label: int | None, score: float, *, class_name: str | None, iou: float
) -> OperatingPoint:
    """Count detections with at least `score`, of one class or (`label` None) of all classes pooled.

    Precision is undefined without detections, recall without ground truth, F1 without either.
    """
    tp, fp, fn = source.counts_at(threshold, label, score)
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


def point_of(source: CurveSource, axes: Axes, ref: MetricRef) -> OperatingPoint:
    """Return the operating point of a metric that is a count: at its score or the best F1's, else of all detections."""
    threshold, label = axes.single_threshold(ref), axes.label(ref)
    score = source.best_f1(threshold, label) if ref.score == BEST_F1 else ref.score
    return operating_point(
        source,
        threshold,
        label,
        -np.inf if score is None else float(score),
        class_name=ref.class_name,
        iou=axes.protocol.iou_thresholds[threshold],
    )


def point_value(point: OperatingPoint, name: str, n_images: int) -> float:
    """Return the value of a metric at an operating point; false positives per image are those of `n_images`."""
    if name == "FPPI":
        return point.fp / n_images if n_images else math.nan
    return float(getattr(point, name.lower()))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def match_columns(
    table: MatchTable, ranking: Ranking, images: Sequence[str], classes: Sequence[str]
) -> Mapping[str, Any]:
    """Return one row per detection kept, in the order of the predictions; columns (n,) or (n, T)."""
    order = np.argsort(table.source, kind="stable")
    choice = table.choice[ALL_SIZES].T  # (c, T)
    shape = len(table), choice.shape[1]
    gt, overlap, hits = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    counts = np.repeat(ranking.in_range[ALL_SIZES][:, None], shape[1], axis=1)
    c, t = np.nonzero(choice != NO_PAIR)
    gt[table.candidate[c], t] = table.gt_source[table.pair_gt[choice[c, t]]]
    overlap[table.candidate[c], t] = table.pair_overlap[choice[c, t]]
    hits[table.candidate], counts[table.candidate] = ranking.hits[ALL_SIZES].T, ranking.counts[ALL_SIZES].T
    columns = {"score": table.score, "source": table.source, "gt": gt, "iou": overlap}
    columns |= {"tp": hits, "fp": counts & ~hits, "ignored": ~counts}
    return _named(table.image, table.label, images, classes, order) | {k: v[order] for k, v in columns.items()}


def missed_columns(table: MatchTable, images: Sequence[str], classes: Sequence[str]) -> Mapping[str, Any]:
    """Return one row per ground-truth box that counts and that some threshold leaves unmatched."""
    choice = table.choice[ALL_SIZES]
    t, c = np.nonzero(choice != NO_PAIR)
    missed = np.repeat(~table.gt_ignored[ALL_SIZES][:, None], len(choice), axis=1)  # (m, T)
    missed[table.pair_gt[choice[t, c]], t] = False
    rows = np.flatnonzero(missed.any(axis=1))
    named = _named(table.gt_image, table.gt_label, images, classes, rows)
    return named | {"source": table.gt_source[rows], "missed": missed[rows]}


def _named(
    image: IntArray, label: IntArray, images: Sequence[str], classes: Sequence[str], rows: IntArray
) -> dict[str, Any]:
    return {
        "image": np.array(images, dtype=object)[image[rows]] if len(rows) else np.array([], dtype=object),
        "class": np.array(classes, dtype=object)[label[rows]] if len(rows) else np.array([], dtype=object),
    }
