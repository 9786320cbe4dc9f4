"""What kinds of errors an evaluation has: types as TIDE has them, confusion, calibration, confidence curves and LRP."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, freeze
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.features.errors.result import (
    ClassErrors,
    ConfidenceCurve,
    ConfusionMatrix,
    ErrorReport,
    ErrorType,
    LocalisationRecallPrecision,
)
from jaccard_eval.matching.candidates import Pairs
from jaccard_eval.matching.matchtable import MatchTable, detection_rows, match_boxes, pairs_of_any_class
from jaccard_eval.matching.order import IntArray, descending_order
from jaccard_eval.matching.ranking import ALL_SIZES, Ranking
from jaccard_eval.metrics.calibration import calibration
from jaccard_eval.metrics.curves import ScoredHits
from jaccard_eval.metrics.detection import DetectionMetrics


def confusion_matrix(
    gt: BoxTable, pred: BoxTable, protocol: Protocol, names: tuple[str, ...], *, score: float, iou: float, n_images: int
) -> ConfusionMatrix:
    """Count which classes are taken for which.

    Detections with at least `score` are matched by the rules of the protocol, by descending score, as if there were one
    class. Ground truth that is ignored, and what matches it, is left out.
    """
    n = len(names)
    above = pred if pred.score is None else pred.take(pred.score >= score)
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=(), class_agnostic=True)
    numbered = freeze(replace(above, source=np.arange(len(above))))
    table = match_boxes(gt, numbered, rules, n_images=n_images, n_labels=n)
    gt_label, label = (one.label * (not protocol.class_agnostic) for one in (gt, above))
    hit, counts = Ranking.of(table, n_images).outcomes(0)
    found = hit[table.candidate]
    matched_gt = table.pair_gt[table.choice[ALL_SIZES, 0][found]]
    matched_pred = table.source[table.candidate[found]]
    counted = ~table.gt_ignored[ALL_SIZES]
    counted[matched_gt] = False
    wrong = label[table.source[counts & ~hit]]
    cells = np.zeros((n + 1, n + 1), dtype=np.int64)
    np.add.at(cells, (gt_label[matched_gt], label[matched_pred]), 1)
    cells[:n, n] = np.bincount(gt_label[counted], minlength=n)
    cells[n, :n] = np.bincount(wrong, minlength=n)
    return ConfusionMatrix(names=names, counts=cells, score=score, iou=iou)


# Scores that curves are shown at; between them they are steps. Other than of linspace, entry 70 is a score of 0.7.
GRID = np.arange(101) / 100


def confidence_curve(score: FloatArray, hit: BoolArray, positives: int, at: FloatArray = GRID) -> ConfidenceCurve:
    """Return precision, recall and F1 of the detections with at least each score of `at`."""
    kept = np.searchsorted(-score, -at, side="right")  # (S,) detections with at least the score
    tp = np.append(0, np.cumsum(hit))[kept]
    return ConfidenceCurve(
        score=at,
        precision=_ratio(tp, kept),
        recall=_ratio(tp, np.full(len(at), positives)),
        f1=_ratio(2 * tp, kept + positives),
    )


def best_f1_score(score: FloatArray, hit: BoolArray, positives: int) -> tuple[float, float]:
    """Return the score with the highest F1, and that F1; of equal ones the highest score. NaN without a true positive.

    Parameters are those of `confidence_curve`.
    """
    if not hit.any() or positives == 0:
        return float("nan"), float("nan")
    curve = confidence_curve(score, hit, positives, score)
    best = int(curve.f1.argmax())
    return float(score[best]), float(curve.f1[best])


def optimal_lrp(
    score: FloatArray, hit: BoolArray, overlap: FloatArray, positives: int, iou: float
) -> LocalisationRecallPrecision:
    """Return the smallest localisation-recall-precision error over all scores, and its parts.

    LRP(s) = (sum over true positives of (1 - IoU) / (1 - tau) + FP + FN) / (TP + FP + FN), of the detections with at
    least the score s. Of equal errors that of the highest score counts; leaving out all detections gives 1.
    """
    if positives == 0:
        return _lrp(np.nan, np.nan, np.nan, np.nan, np.nan)
    kept = np.append(0, np.searchsorted(-score, -score, side="right"))  # first no detection, then down to each score
    tp = np.append(0, np.cumsum(hit))[kept]
    loss = np.append(0.0, np.cumsum(np.where(hit, 1 - overlap, 0.0)))[kept]
    error = (_scaled(loss, iou) + (kept - tp) + (positives - tp)) / (kept + positives - tp)
    best = int(error.argmin())
    n, t = int(kept[best]), int(tp[best])
    return _lrp(
        error[best],
        loss[best] / t if t else np.nan,
        1 - t / n if n else np.nan,
        1 - t / positives,
        score[best - 1] if best else np.nan,
    )


def mean_lrp(parts: list[LocalisationRecallPrecision]) -> LocalisationRecallPrecision:
    """Average over the classes where a part is defined; a score has no mean."""
    return _lrp(
        _mean([part.olrp for part in parts]),
        _mean([part.localisation for part in parts]),
        _mean([part.false_positive for part in parts]),
        _mean([part.false_negative for part in parts]),
        np.nan,
    )


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


def _scaled(loss: FloatArray, iou: float) -> FloatArray:
    """Scale losses to [0, 1] each; at a threshold of 1 there are none."""
    return loss / (1 - iou) if iou < 1 else np.zeros(len(loss))


def _lrp(olrp: float, localisation: float, fp: float, fn: float, score: float) -> LocalisationRecallPrecision:
    return LocalisationRecallPrecision(
        olrp=float(olrp),
        localisation=float(localisation),
        false_positive=float(fp),
        false_negative=float(fn),
        score=float(score),
    )


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


TYPES = ("classification", "localisation", "both", "duplicate", "background")
CLASSIFICATION, LOCALISATION, BOTH, DUPLICATE, BACKGROUND = range(5)
NO_ERROR = -1
BACKGROUND_IOU = 0.1  # TIDE's t_b: below, a detection has nothing to do with a box
NO_BOX = -1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Errors:
    """Every detection and every box of an evaluation at one threshold, and what is wrong with it."""

    protocol: Protocol
    label: IntArray  # shape (n,)
    # shape (n,) each: overlap with the matched box, NaN for none
    score: FloatArray
    overlap: FloatArray
    # shape (n,) each: true positives, and those that are true or false positives
    hit: BoolArray
    counts: BoolArray
    kind: npt.NDArray[np.int8]  # shape (n,): place in `TYPES` of each false positive, `NO_ERROR` for the others
    # Shape (n,): the box that a repaired detection would match, of errors of classification and localisation;
    # `NO_BOX` where that is matched already or a better detection is repaired to match it
    target: IntArray
    gt_label: IntArray  # shape (m,)
    # shape (m,) each: boxes that can be found, those that are, and those that no repaired detection would match
    # either
    counted: BoolArray
    found: BoolArray
    missed: BoolArray
    n_labels: int

    @property
    def ranking(self) -> ScoredHits:
        """The detections that count, as they are."""
        kept = self.counts
        return ScoredHits(self.label[kept], self.score[kept], self.hit[kept], self.boxes(self.counted))

    def boxes(self, chosen: BoolArray) -> IntArray:
        """Count boxes by class, shape (K,)."""
        return np.bincount(self.gt_label[chosen], minlength=self.n_labels)

    def detections(self, chosen: BoolArray) -> IntArray:
        """Count detections by class, shape (K,)."""
        return np.bincount(self.label[chosen], minlength=self.n_labels)


def find_errors(
    metrics: DetectionMetrics,
    threshold: int,
    gt: BoxTable,
    pred: BoxTable,
    *,
    background_iou: float = BACKGROUND_IOU,
) -> Errors:
    """Say of each false positive and each missed box what is wrong with it, over all sizes.

    In this order, with the IoU t of the threshold and b of the background, over boxes that count: *localisation*, the
    nearest box of its class has b <= IoU < t; *classification*, a box of another class has IoU >= t; *duplicate*, a box
    of its class has IoU >= t and was matched by another; *both*, a box of another class has b <= IoU < t; *background*,
    none of these. A box is missed when it is unmatched and no repaired detection would match it.
    """
    table, n_images = metrics.table, len(metrics.image_names)
    hit, counts = metrics.curves.ranking.outcomes(threshold)
    matched, overlap = _matches(table, threshold, hit)
    counted, found = ~table.gt_ignored[ALL_SIZES], np.zeros(len(table.gt_label), dtype=np.bool_)
    found[matched[hit]] = True
    wrong = np.flatnonzero(counts & ~hit)
    boxes = pred.take(detection_rows(pred, table.protocol, n_images)[wrong])
    pairs = pairs_of_any_class(boxes, gt, counted, table.protocol, threshold=background_iou)
    kind, target = np.full(len(table), NO_ERROR, dtype=np.int8), np.full(len(table), NO_BOX)
    same = table.gt_label[pairs.gt] == table.label[wrong][pairs.det]
    kind[wrong], aimed = _judge(pairs, same, len(wrong), table.protocol.iou_thresholds[threshold])
    target[wrong] = _first_served(aimed, table.score[wrong], found)
    usable = np.zeros(len(counted), dtype=np.bool_)
    usable[target[target != NO_BOX]] = True
    return Errors(
        protocol=table.protocol,
        label=table.label,
        score=table.score,
        overlap=overlap,
        hit=hit,
        counts=counts,
        kind=kind,
        target=target,
        gt_label=table.gt_label,
        counted=counted,
        found=found,
        missed=counted & ~found & ~usable,
        n_labels=table.n_labels,
    )


def error_types(errors: Errors) -> tuple[ErrorType, ...]:
    """Return the six types, each with the average precision that repairing it alone would give back.

    Repairing makes a detection with a target match it, at its own score, and removes the other ones; missed boxes are
    taken out of the ground truth. A class that is left without ground truth is left out of the mean.
    """
    before = errors.ranking.mean_precision(errors.protocol)
    types = []
    for kind, name in enumerate(TYPES):
        chosen = errors.kind == kind
        gain = repaired(errors, chosen).mean_precision(errors.protocol) - before
        types.append(_error_type(name, gain, errors.detections(chosen)))
    without = replace(errors, counted=errors.counted & ~errors.missed).ranking
    gain = without.mean_precision(errors.protocol) - before
    return (*types, _error_type("missed", gain, errors.boxes(errors.missed)))


def all_errors(errors: Errors) -> tuple[ErrorType, ErrorType]:
    """Return all false positives and all unmatched boxes, as if each were one type: both are taken away."""
    before = errors.ranking.mean_precision(errors.protocol)
    wrong, unmatched = errors.counts & ~errors.hit, errors.counted & ~errors.found
    precise = replace(errors, counts=errors.hit).ranking.mean_precision(errors.protocol) - before
    complete = replace(errors, counted=errors.found).ranking.mean_precision(errors.protocol) - before
    return (
        _error_type("false positives", precise, errors.detections(wrong)),
        _error_type("false negatives", complete, errors.boxes(unmatched)),
    )


def repaired(errors: Errors, chosen: BoolArray) -> ScoredHits:
    """Return the ranking after some false positives, shape (n,), are repaired."""
    rows = np.flatnonzero(chosen & (errors.target != NO_BOX))
    label, hit, counts = errors.label.copy(), errors.hit.copy(), errors.counts & ~chosen
    label[rows], hit[rows], counts[rows] = errors.gt_label[errors.target[rows]], True, True
    return replace(errors, label=label, hit=hit, counts=counts).ranking


@dataclass(frozen=True, slots=True, eq=False)
class _Nearest:
    """For each detection the box with the highest overlap, `NO_BOX` and 0 for none."""

    gt: IntArray
    overlap: FloatArray


def _matches(table: MatchTable, threshold: int, hit: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return the box that each true positive matches and how much they overlap, shape (n,) each."""
    choice = table.choice[ALL_SIZES, threshold]
    right = hit[table.candidate]
    gt, overlap = np.full(len(table), NO_BOX), np.full(len(table), np.nan)
    gt[table.candidate[right]] = table.pair_gt[choice[right]]
    overlap[table.candidate[right]] = table.pair_overlap[choice[right]]
    return gt, overlap


def _judge(pairs: Pairs, same: BoolArray, n: int, iou: float) -> tuple[npt.NDArray[np.int8], IntArray]:
    """Return the type of each false positive, and the box that it was meant for; overlaps that are too small are 0."""
    own, other = _nearest(pairs, same, n), _nearest(pairs, ~same, n)
    tests = [(own.overlap > 0) & (own.overlap < iou), other.overlap >= iou, own.overlap >= iou, other.overlap > 0]
    kind = np.select(tests, [LOCALISATION, CLASSIFICATION, DUPLICATE, BOTH], BACKGROUND).astype(np.int8)
    return kind, np.select([kind == LOCALISATION, kind == CLASSIFICATION], [own.gt, other.gt], NO_BOX)


def _nearest(pairs: Pairs, chosen: BoolArray, n: int) -> _Nearest:
    gt, overlap = np.full(n, NO_BOX), np.zeros(n)
    rows = np.flatnonzero(chosen)
    order = rows[np.lexsort((-pairs.gt[rows], pairs.overlap[rows]))]
    gt[pairs.det[order]] = pairs.gt[order]  # the last assignment wins: the highest overlap, the first such box
    overlap[pairs.det[order]] = pairs.overlap[order]
    return _Nearest(gt, overlap)


def _first_served(aimed: IntArray, score: FloatArray, found: BoolArray) -> IntArray:
    """Give each box that is free to the detection with the highest score that aims at it."""
    wants = np.flatnonzero(aimed != NO_BOX)
    wants = wants[~found[aimed[wants]]]
    order = wants[np.lexsort((wants, -score[wants]))]
    _, first = np.unique(aimed[order], return_index=True)
    target = np.full(len(aimed), NO_BOX)
    target[order[first]] = aimed[order[first]]
    return target


def _error_type(name: str, gain: float, by_class: IntArray) -> ErrorType:
    return ErrorType(name=name, count=int(by_class.sum()), gain=gain, by_class=tuple(by_class.tolist()))


def report_errors(metrics: DetectionMetrics, gt: BoxTable, pred: BoxTable, score: float | str | None) -> ErrorReport:
    """Say what kinds of errors an evaluation has, over all sizes, at IoU .5 or else its lowest threshold."""
    n_images = len(metrics.image_names)
    threshold = metrics.protocol.judged_threshold
    iou = metrics.protocol.iou_thresholds[threshold]
    errors = find_errors(metrics, threshold, gt, pred)
    classes = [_class_errors(errors, k, name, iou) for k, name in enumerate(metrics.class_names)]
    pooled = _pooled_errors(errors, classes)
    kept = pred.take(detection_rows(pred, metrics.protocol, n_images))
    wrong, unmatched = all_errors(errors)
    return ErrorReport(
        iou=iou,
        background_iou=BACKGROUND_IOU,
        ap=errors.ranking.mean_precision(errors.protocol),
        types=error_types(errors),
        false_positives=wrong,
        false_negatives=unmatched,
        confusion=confusion_matrix(
            gt,
            kept,
            metrics.protocol,
            metrics.class_names,
            score=_matrix_score(score, pooled.best_score),
            iou=iou,
            n_images=n_images,
        ),
        pooled=pooled,
        classes=tuple(classes),
    )


def _matrix_score(score: float | str | None, best: float) -> float:
    """Return the score of the confusion matrix; without any true positive all detections take part."""
    if score is None or isinstance(score, str):
        return 0.0 if math.isnan(best) else best
    return float(score)


def _class_errors(errors: Errors, label: int, name: str, iou: float) -> ClassErrors:
    rows = np.flatnonzero(errors.counts & (errors.label == label))
    positives = int(errors.boxes(errors.counted)[label])
    lrp = optimal_lrp(errors.score[rows], errors.hit[rows], errors.overlap[rows], positives, iou)
    return ClassErrors(name=name, lrp=lrp, **_chosen_by_score(errors, rows, positives))


def _pooled_errors(errors: Errors, classes: list[ClassErrors]) -> ClassErrors:
    rows = np.flatnonzero(errors.counts)
    rows = rows[descending_order(errors.score[rows])]
    lrp = mean_lrp([row_class.lrp for row_class in classes])
    return ClassErrors(name=None, lrp=lrp, **_chosen_by_score(errors, rows, int(errors.counted.sum())))


def _chosen_by_score(errors: Errors, rows: IntArray, positives: int) -> dict[str, Any]:
    """Return what depends on the choice of a score, of detections in descending order of it."""
    score, hit = errors.score[rows], errors.hit[rows]
    best_score, best_f1 = best_f1_score(score, hit, positives)
    return {
        "calibration": calibration(score, hit),
        "curve": confidence_curve(score, hit, positives),
        "best_score": best_score,
        "best_f1": best_f1,
    }
