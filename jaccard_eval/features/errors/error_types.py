"""Types of errors as TIDE has them, and what repairing each would give back. Nothing is matched again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.features.errors.result import ErrorType
from jaccard_eval.matching.anyclass import detection_rows, pairs_of_any_class
from jaccard_eval.matching.candidates import Pairs
from jaccard_eval.matching.order import IntArray
from jaccard_eval.matching.ranking import Ranking, mean_precision
from jaccard_eval.metrics.counts import ALL_SIZES, detection_outcomes
from jaccard_eval.metrics.curves import MatchCurves

TYPES = ("classification", "localisation", "both", "duplicate", "background")
CLASSIFICATION, LOCALISATION, BOTH, DUPLICATE, BACKGROUND = range(5)
NO_ERROR = -1
BACKGROUND_IOU = 0.1  # TIDE's t_b: below, a detection has nothing to do with a box
NO_BOX = -1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Errors:
    """Every detection and every box of an evaluation at one threshold, and what is wrong with it.

    Parameters
    ----------
    protocol : Protocol
    label : ndarray of int64, shape (n,)
    score, overlap : ndarray of float64, shape (n,)
        Overlap with the matched box, NaN for none.
    hit, counts : ndarray of bool, shape (n,)
        True positives, and those that are true or false positives.
    kind : ndarray of int8, shape (n,)
        Place in `TYPES` of each false positive, `NO_ERROR` for the others.
    target : ndarray of int64, shape (n,)
        The box that a repaired detection would match, of errors of classification and localisation; `NO_BOX` where
        that is matched already or a better detection is repaired to match it.
    gt_label : ndarray of int64, shape (m,)
    counted, found, missed : ndarray of bool, shape (m,)
        Boxes that can be found, those that are, and those that no repaired detection would match either.
    n_labels : int
    """

    protocol: Protocol
    label: IntArray
    score: FloatArray
    overlap: FloatArray
    hit: BoolArray
    counts: BoolArray
    kind: npt.NDArray[np.int8]
    target: IntArray
    gt_label: IntArray
    counted: BoolArray
    found: BoolArray
    missed: BoolArray
    n_labels: int

    @property
    def ranking(self) -> Ranking:
        """The detections that count, as they are."""
        kept = self.counts
        return Ranking(self.label[kept], self.score[kept], self.hit[kept], self.boxes(self.counted))

    def boxes(self, chosen: BoolArray) -> IntArray:
        """Count boxes by class, shape (K,)."""
        return np.bincount(self.gt_label[chosen], minlength=self.n_labels)

    def detections(self, chosen: BoolArray) -> IntArray:
        """Count detections by class, shape (K,)."""
        return np.bincount(self.label[chosen], minlength=self.n_labels)


def find_errors(
    curves: MatchCurves,
    threshold: int,
    gt: BoxTable,
    pred: BoxTable,
    *,
    n_images: int,
    background_iou: float = BACKGROUND_IOU,
) -> Errors:
    """Say of each false positive and each missed box what is wrong with it, over all sizes.

    In this order, with the IoU t of the threshold and b of the background, over boxes that count: *localisation*, the
    nearest box of its class has b <= IoU < t; *classification*, a box of another class has IoU >= t; *duplicate*, a box
    of its class has IoU >= t and was matched by another; *both*, a box of another class has b <= IoU < t; *background*,
    none of these. A box is missed when it is unmatched and no repaired detection would match it.

    Parameters
    ----------
    curves : MatchCurves
    threshold : int
        Place on the axis T.
    gt, pred : BoxTable
        What was matched.
    n_images : int
    background_iou : float

    Notes
    -----
    Source: Bolya et al. (2020), "TIDE: a general toolbox for identifying object detection errors", and its
    implementation tidecv 1.0.1. There, IoU = t of a box of its class is a localisation error even where that box is
    taken, and IoU = b with a box of another class is background.
    """
    table = curves.table
    hit, counts = detection_outcomes(curves, threshold)
    matched, overlap = _matches(curves, threshold, hit)
    counted, found = ~table.gt_ignored[ALL_SIZES], np.zeros(len(table.gt_label), dtype=np.bool_)
    found[matched[hit]] = True
    wrong = np.flatnonzero(counts & ~hit)
    boxes = pred.take(detection_rows(pred, table.protocol, n_images)[wrong])
    offset = table.protocol.pixel_offset
    pairs = pairs_of_any_class(boxes, gt, counted, threshold=background_iou, pixel_offset=offset)
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
    before = mean_precision(errors.ranking, errors.protocol)
    types = []
    for kind, name in enumerate(TYPES):
        chosen = errors.kind == kind
        gain = mean_precision(repaired(errors, chosen), errors.protocol) - before
        types.append(_error_type(name, gain, errors.detections(chosen)))
    without = replace(errors, counted=errors.counted & ~errors.missed).ranking
    gain = mean_precision(without, errors.protocol) - before
    return (*types, _error_type("missed", gain, errors.boxes(errors.missed)))


def all_errors(errors: Errors) -> tuple[ErrorType, ErrorType]:
    """Return all false positives and all unmatched boxes, as if each were one type: both are taken away."""
    before = mean_precision(errors.ranking, errors.protocol)
    wrong, unmatched = errors.counts & ~errors.hit, errors.counted & ~errors.found
    precise = mean_precision(replace(errors, counts=errors.hit).ranking, errors.protocol) - before
    complete = mean_precision(replace(errors, counted=errors.found).ranking, errors.protocol) - before
    return (
        _error_type("false positives", precise, errors.detections(wrong)),
        _error_type("false negatives", complete, errors.boxes(unmatched)),
    )


def repaired(errors: Errors, chosen: BoolArray) -> Ranking:
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


def _matches(curves: MatchCurves, threshold: int, hit: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return the box that each true positive matches and how much they overlap, shape (n,) each."""
    table = curves.table
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
