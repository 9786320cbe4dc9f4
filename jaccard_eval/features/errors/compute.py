"""What kinds of errors an evaluation has: types as TIDE has them, confusion, calibration, confidence curves and LRP."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, FloatArray, RowArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.features.errors import (
    ClassErrors,
    ConfidenceCurve,
    ConfusionMatrix,
    ErrorReport,
    ErrorType,
    LocalisationRecallPrecision,
)
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import (
    IntArray,
    WholeArray,
    descending_order,
    lengths_of_runs,
    stable_order,
    starts_of_runs,
)
from jaccard_eval.matching.matchtable import ALL_SIZES, Pairs, least_overlaps, pairs_of_any_class
from jaccard_eval.metrics.curves import ScoredHits
from jaccard_eval.metrics.detection import DetectionMetrics, calibration, match_any_class, summary_refs
from jaccard_eval.options import BEST_F1
from jaccard_eval.progress import staged

# Counts, at a threshold and a score, all detections whatever their classes: (K + 1, K + 1).
Count = Callable[[int, float], npt.NDArray[np.int64]]


def chosen_score(metrics: DetectionMetrics, threshold: int, score: float | str | None) -> float:
    """Return the score that detections must have: what was asked for, or the best F1, of all classes pooled."""
    if score is not None and not isinstance(score, str):
        return float(score)
    best = metrics.source.best_score(threshold, None, score or BEST_F1)
    # Without any true positive there is no best score: all detections take part.
    is_there = not np.isnan(best) and metrics.source.counts_at(threshold, None, best)[0] > 0
    return best if is_there else 0.0


@staged("counting confusions")
def count_confusions(
    metrics: DetectionMetrics, gt: Boxes, pred: Boxes, score: float | str | None, count: Count | None = None
) -> ConfusionMatrix:
    """Count which classes are predicted as which, over all sizes, at IoU .5 or else the lowest threshold.

    In memory, unless there is another way to `count`.
    """
    threshold = metrics.protocol.judged_threshold
    at = chosen_score(metrics, threshold, score)
    if count is not None:
        counts = count(threshold, at)
    else:
        counts = match_any_class(metrics, threshold, gt.whole(), pred.whole()).confusion(at)
    return ConfusionMatrix(
        names=metrics.class_names, counts=counts, score=at, iou=metrics.protocol.iou_thresholds[threshold]
    )


# Scores that curves are shown at; between them they are steps. Other than of linspace, entry 70 is a score of 0.7.
GRID = np.arange(101) / 100


def confidence_curve(score: FloatArray, hit: BoolArray, positives: int, at: FloatArray = GRID) -> ConfidenceCurve:
    """Return precision, recall and F1 of the detections with at least each score of `at`; scores (n,) descend.

    Precision is undefined without detections, recall without ground truth, F1 without either.
    """
    # Exact at every score: steps are counted, nothing is interpolated.
    kept = np.searchsorted(-score, -at, side="right")  # (S,) detections with at least the score
    tp = np.append(0, np.cumsum(hit))[kept]
    return ConfidenceCurve(
        score=at,
        precision=_ratio(tp, kept),
        recall=_ratio(tp, np.full(len(at), positives)),
        f1=_ratio(2 * tp, kept + positives),
    )


def best_f1_score(score: FloatArray, hit: BoolArray, positives: int) -> tuple[float, float]:
    """Return the score with the highest F1, and that F1; without a true positive no score, and 0. Scores descend."""
    if not hit.any() or positives == 0:
        return math.nan, 0.0 if positives else math.nan
    # Exact at every score, as `confidence_curve` has it, and taken once a tie: all of it is kept, or nothing.
    first, size = lengths_of_runs(starts_of_runs(score))
    tp = np.cumsum(hit, dtype=np.int32)[first + size - 1]
    f1 = 2 * tp / (first + size + positives)
    best = int(f1.argmax())  # of equal ones the first, which has the highest score
    return float(score[first[best]]), float(f1[best])


def optimal_lrp(
    score: FloatArray, hit: BoolArray, overlap: FloatArray, positives: int, iou: float
) -> LocalisationRecallPrecision:
    """Return the smallest localisation-recall-precision error over all scores, and its parts.

    LRP(s) = (sum over true positives of (1 - IoU) / (1 - tau) + FP + FN) / (TP + FP + FN), of the detections with at
    least the score s. Of equal errors that of the highest score counts; ignoring all detections gives 1.
    """
    # Oksuz et al. (2018), "Localization recall precision (LRP): a new performance metric for object detection", and
    # Oksuz et al. (2021), "One metric to measure them all", equations 4 and 8 there.
    if positives == 0:
        return LocalisationRecallPrecision(
            olrp=math.nan, localisation=math.nan, false_positive=math.nan, false_negative=math.nan, score=math.nan
        )
    kept = np.append(0, np.searchsorted(-score, -score, side="right"))  # first no detection, then down to each score
    tp = np.append(0, np.cumsum(hit))[kept]
    loss = np.append(0.0, np.cumsum(np.where(hit, 1 - overlap, 0.0)))[kept]
    # A match loses 1 - tau at most, so that 1 / (1 - tau) scales it to [0, 1]; at a threshold of 1 none loses anything.
    scaled = loss / (1 - iou) if iou < 1 else np.zeros(len(loss))
    error = (scaled + (kept - tp) + (positives - tp)) / (kept + positives - tp)
    best = int(error.argmin())
    n, t = int(kept[best]), int(tp[best])
    return LocalisationRecallPrecision(
        olrp=float(error[best]),
        localisation=float(loss[best]) / t if t else math.nan,
        false_positive=1 - t / n if n else math.nan,
        false_negative=1 - t / positives,
        score=float(score[best - 1]) if best else math.nan,
    )


def mean_lrp(parts: list[LocalisationRecallPrecision]) -> LocalisationRecallPrecision:
    """Average over the classes where a part is defined."""
    means = {}
    for name in ("olrp", "localisation", "false_positive", "false_negative"):
        defined = [value for part in parts if not math.isnan(value := getattr(part, name))]
        means[name] = float(np.mean(defined)) if defined else math.nan
    # Each class has its best score: the mean of these would be nobody's.
    return LocalisationRecallPrecision(**means, score=math.nan)


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
    label: WholeArray  # shape (n,)
    tie: IntArray  # shape (n,): places in the order in which equal scores of a class stand
    # shape (n,) each: overlap with the matched box, NaN for none
    score: FloatArray
    overlap: FloatArray
    # shape (n,) each: true positives, and those that are true or false positives
    hit: BoolArray
    counts: BoolArray
    kind: npt.NDArray[np.int8]  # shape (n,): place in `TYPES` of each false positive, `NO_ERROR` for the others
    # Shape (n,): the box that a repaired detection would match, of errors of classification and localisation;
    # `NO_BOX` where that is matched already or a better detection is repaired to match it
    target: RowArray
    near: RowArray  # shape (n,): the box that decided on the type of each false positive, `NO_BOX` for none
    near_overlap: FloatArray  # shape (n,): with that box, 0 for none
    # Shape (m,) each: of the false positives on a box the surest one of another class that would match it, and the
    # surest one of its class next to it; `NO_BOX` for none
    taken: RowArray
    beside: RowArray
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

    def rows_of(self, label: int) -> IntArray:
        """Return the detections of a class that count; they stand by class, so that they are found by bisection."""
        start, stop = np.searchsorted(self.label, np.array([label, label + 1], dtype=self.label.dtype))
        return np.asarray(start + np.flatnonzero(self.counts[start:stop]))

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
    area: int = ALL_SIZES,
    background_iou: float = BACKGROUND_IOU,
) -> Errors:
    """Find what is wrong with each false positive and each missed box, of all sizes or of one range or subset.

    In this order, with the IoU t of the threshold and b of the background, over boxes that count: *localisation*, the
    nearest box of its class has b <= IoU < t; *classification*, a box of another class has IoU >= t; *duplicate*, a box
    of its class has IoU >= t and was matched by another; *both*, a box of another class has b <= IoU < t; *background*,
    none of these. A box is missed when it is unmatched and no repaired detection would match it.
    """
    # Bolya et al. (2020), "TIDE: a general toolbox for identifying object detection errors". Its implementation,
    # tidecv 1.0.1, differs where an IoU is exactly a threshold: IoU = t with a box of its class is a localisation
    # error there even where that box is taken, and IoU = b with a box of another class is background.
    table = metrics.table
    hit, counts = metrics.curves.ranking.outcomes(threshold, area)
    choice, right = table.chosen_pairs(area, threshold), hit[table.candidate]
    matched_gt = table.pair_gt[choice[right]]
    overlap = np.full(len(table), np.nan)
    overlap[table.candidate[right]] = table.pair_overlap[choice[right]]
    counted, found = ~table.gt_ignored[area], np.zeros(len(table.gt_label), dtype=np.bool_)
    found[matched_gt] = True
    wrong = np.flatnonzero(counts & ~hit)
    # The match table holds pairs of one class only; what lies on another class is paired here, for the wrong ones.
    kind, target = np.full(len(table), NO_ERROR, dtype=np.int8), np.full(len(table), NO_BOX, dtype=np.int32)
    near, near_overlap = target.copy(), np.zeros(len(table))
    least = float(least_overlaps(table.protocol)[threshold])
    taken, beside = (np.full(len(counted), NO_BOX, dtype=np.int32) for _ in range(2))
    # Of one class, rows stand in the order of ties already: where classes are pooled, it goes by class in an image.
    in_turn = np.arange(len(table)) if table.protocol.class_agnostic else stable_order(table.row)
    tie = np.empty(len(table), dtype=np.int64)
    tie[in_turn[stable_order(metrics.curves.ranking.tie[in_turn])]] = np.arange(len(table))
    # In the order of ties, which is mostly that of images: what is compared then lies together.
    unmatched = in_turn[(counts & ~hit)[in_turn]]
    asked = pred, table.row[unmatched], gt, counted, table.protocol
    for block, pairs in pairs_of_any_class(*asked, threshold=background_iou):
        rows = unmatched[block]
        same = table.gt_label[pairs.gt] == table.label[rows][pairs.det]
        kind[rows], near[rows], near_overlap[rows] = _judge(pairs, same, len(rows), least)
        _note_surest(taken, pairs, rows, ~same & (pairs.overlap >= least), table.score)
        _note_surest(beside, pairs, rows, same & (pairs.overlap < least), table.score)
    aimed = np.where(np.isin(kind[wrong], (LOCALISATION, CLASSIFICATION)), near[wrong], NO_BOX)
    target[wrong] = _first_served(aimed, table.score[wrong], found)
    usable = np.zeros(len(counted), dtype=np.bool_)
    usable[target[target != NO_BOX]] = True
    return Errors(
        protocol=table.protocol,
        label=table.label,
        tie=tie,
        score=table.score,
        overlap=overlap,
        hit=hit,
        counts=counts,
        kind=kind,
        target=target,
        near=near,
        near_overlap=near_overlap,
        taken=taken,
        beside=beside,
        gt_label=table.gt_label,
        counted=counted,
        found=found,
        missed=counted & ~found & ~usable,
        n_labels=table.n_labels,
    )


def error_types(errors: Errors, before: float) -> tuple[ErrorType, ...]:
    """Return the six types, each with what repairing it alone would add to `before`, the average precision.

    Repairing makes a detection with a target match it, at its own score, and removes the other ones; missed boxes are
    taken out of the ground truth. The mean stays that of the same classes: one that is wholly missed has 1 then, as if
    all of it were found first.
    """
    types, positives = [], errors.boxes(errors.counted)
    by_tie = np.empty_like(errors.tie)
    by_tie[errors.tie] = np.arange(len(errors.tie))
    for kind, name in enumerate(TYPES):
        chosen = errors.kind == kind
        # A repaired detection keeps its score and takes the class of its box. A type's others go, as TIDE has it.
        rows = np.flatnonzero(chosen & (errors.target != NO_BOX))
        label, hit, counts = errors.label.copy(), errors.hit.copy(), errors.counts & ~chosen
        label[rows], hit[rows], counts[rows] = errors.gt_label[errors.target[rows]], True, True
        # Rows stand in class order. With other classes equal scores have to be put in their order again, which sorting
        # by class and score keeps.
        is_renamed = (label[rows] != errors.label[rows]).any()
        kept = by_tie[counts[by_tie]] if is_renamed else np.flatnonzero(counts)
        ranking = ScoredHits(label[kept], errors.score[kept], hit[kept], positives)
        types.append(_error_type(name, ranking.mean_precision(errors.protocol) - before, errors.detections(chosen)))
    gain = _mean_without(errors, errors.missed) - before
    return (*types, _error_type("missed", gain, errors.boxes(errors.missed)))


def _mean_without(errors: Errors, boxes: BoolArray) -> float:
    """Return the average precision without some boxes (m,), a mean over all classes that have boxes with them."""
    values = replace(errors, counted=errors.counted & ~boxes).ranking.class_precisions(errors.protocol)
    had_truth = errors.boxes(errors.counted) > 0
    # tidecv takes the mean of the classes that are left, which rises where the worst ones leave it.
    return float(np.where(np.isnan(values), 1.0, values)[had_truth].mean()) if had_truth.any() else math.nan


def _judge(pairs: Pairs, same: BoolArray, n: int, iou: float) -> tuple[npt.NDArray[np.int8], IntArray, FloatArray]:
    """Return the type of each false positive, the box that decided on it, and their overlap."""
    (own_gt, own), (other_gt, other) = _nearest(pairs, same, n), _nearest(pairs, ~same, n)
    # Pairs below the background's IoU were never made, so that "above 0" means "at least that". The first test that
    # holds decides, in the order of tidecv.
    tests = [(own > 0) & (own < iou), other >= iou, own >= iou, other > 0]
    kind = np.select(tests, [LOCALISATION, CLASSIFICATION, DUPLICATE, BOTH], BACKGROUND).astype(np.int8)
    is_own = (kind == LOCALISATION) | (kind == DUPLICATE)
    # On the background both are nothing.
    return kind, np.where(is_own, own_gt, other_gt), np.where(is_own, own, other)


def _note_surest(of_box: RowArray, pairs: Pairs, rows: IntArray, chosen: BoolArray, score: FloatArray) -> None:
    """Note for each box the surest detection of its chosen pairs; of equal ones that which comes first."""
    boxes, found = pairs.gt[chosen], rows[pairs.det[chosen]]
    known = np.flatnonzero(of_box != NO_BOX)  # from blocks before
    boxes, found = np.append(boxes, known), np.append(found, of_box[known])
    surest = np.full(len(of_box), -np.inf)
    np.maximum.at(surest, boxes, score[found])
    best = score[found] == surest[boxes]
    of_box[boxes[best]] = len(score)
    np.minimum.at(of_box, boxes[best], found[best].astype(of_box.dtype))


def _nearest(pairs: Pairs, chosen: BoolArray, n: int) -> tuple[IntArray, FloatArray]:
    """Return the box with the highest overlap for each detection, and that overlap; `NO_BOX` and 0 for none."""
    gt, overlap = np.full(n, NO_BOX), np.zeros(n)
    rows = np.flatnonzero(chosen)
    np.maximum.at(overlap, pairs.det[rows], pairs.overlap[rows])
    # Pairs come by detection, then box, and the last assignment wins: backwards, that is the first such box.
    best = rows[pairs.overlap[rows] == overlap[pairs.det[rows]]][::-1]
    gt[pairs.det[best]] = pairs.gt[best]
    return gt, overlap


def _first_served(aimed: RowArray, score: FloatArray, found: BoolArray) -> RowArray:
    """Give each box that is free to the detection with the highest score that aims at it."""
    wants = np.flatnonzero(aimed != NO_BOX)
    wants = wants[~found[aimed[wants]]]
    # A box can be won back only once: two repaired detections on it would make one of them a duplicate.
    order = wants[np.lexsort((wants, -score[wants]))]
    _, first = np.unique(aimed[order], return_index=True)
    target = np.full(len(aimed), NO_BOX, dtype=np.int32)
    target[order[first]] = aimed[order[first]]
    return target


def _error_type(name: str, gain: float, by_class: IntArray) -> ErrorType:
    return ErrorType(name=name, count=int(by_class.sum()), gain=gain, by_class=tuple(by_class.tolist()))


@staged("finding errors")
def report_errors(
    metrics: DetectionMetrics,
    gt: BoxTable,
    pred: BoxTable,
    score: float | str | None,
    threshold: int | None = None,
) -> ErrorReport:
    """Find the kinds of errors of an evaluation, over all sizes, at IoU .5 or else its lowest threshold.

    The confusion matrix is that of detections with at least `score`: that which it is to reach or the best F1 of all
    classes pooled, unless it is a number.
    """
    threshold = metrics.protocol.judged_threshold if threshold is None else threshold
    iou = metrics.protocol.iou_thresholds[threshold]
    errors = find_errors(metrics, threshold, gt, pred)
    ap = errors.ranking.mean_precision(errors.protocol)
    classes, given = [], metrics.axes.score

    def asked(label: int | None) -> dict[str, Any]:
        """Return what depends on the score of the evaluation."""
        aimed = metrics.source.best_score(threshold, label, given) if isinstance(given, str) else None
        class_name = None if label is None else metrics.class_names[label]
        matched = MetricRef(name="mean_IoU", iou=iou, score=given, class_name=class_name)
        return {"aimed_score": aimed, "mean_iou": metrics.mean_overlap(matched)}

    for k, (name, positives) in enumerate(zip(metrics.class_names, errors.boxes(errors.counted).tolist(), strict=True)):
        rows = errors.rows_of(k)
        lrp = optimal_lrp(errors.score[rows], errors.hit[rows], errors.overlap[rows], positives, iou)
        classes.append(_class_errors(errors, name, rows, positives, lrp=lrp, **asked(k)))
    # The rows of the table go by class. Pooled detections are ranked over all classes, as one who sets a single
    # threshold for the detector sees them.
    rows = np.flatnonzero(errors.counts)
    rows = rows[descending_order(errors.score[rows])]
    lrp = mean_lrp([of_class.lrp for of_class in classes])
    pooled = _class_errors(errors, None, rows, int(errors.counted.sum()), lrp=lrp, **asked(None))
    types = error_types(errors, ap)
    any_class = match_any_class(metrics, threshold, gt, pred)
    # The best F1 of all classes pooled is known by now; without any true positive all detections take part.
    best = 0.0 if math.isnan(pooled.best_score) else pooled.best_score
    at = best if score in (None, BEST_F1) else chosen_score(metrics, threshold, score)
    confusion = ConfusionMatrix(names=metrics.class_names, counts=any_class.confusion(at), score=at, iou=iou)
    # All wrong detections taken away, and all unmatched boxes, as if each were one type.
    precise = replace(errors, counts=errors.hit).ranking.mean_precision(errors.protocol) - ap
    complete = _mean_without(errors, ~errors.found) - ap
    return ErrorReport(
        iou=iou,
        background_iou=BACKGROUND_IOU,
        ap=ap,
        types=types,
        false_positives=_error_type("false positives", precise, errors.detections(errors.counts & ~errors.hit)),
        false_negatives=_error_type("false negatives", complete, errors.boxes(errors.counted & ~errors.found)),
        confusion=confusion,
        any_class=any_class,
        judged=errors,
        other_curves=partial(_other_curves, metrics, threshold),
        pooled=pooled,
        classes=tuple(classes),
    )


def _other_curves(metrics: DetectionMetrics, but: int) -> Iterator[tuple[float, str | None, ConfidenceCurve]]:
    """Yield the curves of all classes pooled and of each at the thresholds of the summary but one."""
    ranking, positives = metrics.curves.ranking, metrics.curves.positives[ALL_SIZES]
    ious = metrics.protocol.iou_thresholds
    for iou in (ref.iou for ref in summary_refs(metrics.protocol) if ref.name == "AP" and ref.iou is not None):
        threshold = metrics.axes.single_threshold(MetricRef(name="recall", iou=iou))
        if threshold == but:
            continue
        hit, counts = ranking.outcomes(threshold)
        rows = np.flatnonzero(counts)
        rows = rows[descending_order(ranking.score[rows])]
        yield ious[threshold], None, confidence_curve(ranking.score[rows], hit[rows], int(positives.sum()))
        rows = rows[np.argsort(ranking.label[rows], kind="stable")]
        bounds = np.searchsorted(ranking.label[rows], np.arange(len(metrics.class_names) + 1))
        for k, name in enumerate(metrics.class_names):
            own = rows[bounds[k] : bounds[k + 1]]
            yield ious[threshold], name, confidence_curve(ranking.score[own], hit[own], int(positives[k]))


def _class_errors(
    errors: Errors,
    name: str | None,
    rows: IntArray,
    positives: int,
    *,
    lrp: LocalisationRecallPrecision,
    aimed_score: float | None,
    mean_iou: float,
) -> ClassErrors:
    """Return what depends on the choice of a score, of detections in descending order of it."""
    score, hit = errors.score[rows], errors.hit[rows]
    best_score, best_f1 = best_f1_score(score, hit, positives)
    return ClassErrors(
        name=name,
        calibration=calibration(score, hit),
        curve=confidence_curve(score, hit, positives),
        best_score=best_score,
        best_f1=best_f1,
        lrp=lrp,
        aimed_score=best_score if aimed_score is None else aimed_score,
        mean_iou=mean_iou,
        n=positives,
    )


def errors_at(
    metrics: DetectionMetrics, threshold: int, *, boxes: tuple[BoxTable, BoxTable], score: float | str | None
) -> ErrorReport:
    """Find the errors at any threshold, for whoever asks for a number of them."""
    return report_errors(metrics, *boxes, score, threshold)
