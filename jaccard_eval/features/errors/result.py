"""What kinds of errors an evaluation has: types with what they cost, confusion, calibration, scores to choose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import plain
from jaccard_eval.metrics.calibration import Calibration

BACKGROUND = "background"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorType:
    """One type of error, and the average precision that repairing it, and nothing else, would give back.

    Parameters
    ----------
    name : str
    count : int
        Detections, or ground-truth boxes for what is missed.
    gain : float
        Average precision afterwards minus that before; NaN without ground truth.
    by_class : tuple of int, length K
        The counts of each class: of the detection, or of the box that is missed.
    """

    name: str
    count: int
    gain: float
    by_class: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfusionMatrix:
    """Detections above a score against ground truth, matched whatever their classes.

    Parameters
    ----------
    names : tuple of str, length K
    counts : ndarray of int64, shape (K + 1, K + 1)
        Rows are ground truth, columns predictions; the last of each is the background: what was missed, and what is
        not there.
    score, iou : float
        Detections with a lower score are left out; pairs match from this IoU on.
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    score: float
    iou: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfidenceCurve:
    """Precision, recall and F1 of the detections with at least a score; shape (S,) each, NaN where undefined."""

    score: FloatArray
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalisationRecallPrecision:
    """Optimal LRP error: the smallest over all scores, in [0, 1], 0 at best; NaN without ground truth.

    Parameters
    ----------
    olrp : float
    localisation : float
        Mean 1 - IoU of the true positives; NaN without any.
    false_positive : float
        1 - precision; NaN without detections.
    false_negative : float
        1 - recall.
    score : float
        The score it is reached at; NaN when no detection improves it.
    """

    olrp: float
    localisation: float
    false_positive: float
    false_negative: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassErrors:
    """What is told about one class, or (`name` None) about all pooled; `lrp` is then the mean of the classes."""

    name: str | None
    calibration: Calibration
    curve: ConfidenceCurve
    best_score: float
    best_f1: float
    lrp: LocalisationRecallPrecision


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorReport:
    """The errors of an evaluation at one IoU threshold, over all sizes.

    Parameters
    ----------
    iou, background_iou : float
        Where a pair matches, and below what a detection is on the background.
    ap : float
        Average precision at `iou`, which the gains of the types are relative to.
    types : tuple of ErrorType
        Classification, localisation, both, duplicate, background, missed.
    false_positives, false_negatives : ErrorType
        All wrong detections, and all unmatched boxes.
    confusion : ConfusionMatrix
    pooled : ClassErrors
    classes : tuple of ClassErrors
    """

    iou: float
    background_iou: float
    ap: float
    types: tuple[ErrorType, ...]
    false_positives: ErrorType
    false_negatives: ErrorType
    confusion: ConfusionMatrix
    pooled: ClassErrors
    classes: tuple[ClassErrors, ...]

    @property
    def thresholds(self) -> Mapping[str, float]:
        """The score with the best F1 of each class that has a detection and ground truth."""
        return {str(one.name): one.best_score for one in self.classes if not math.isnan(one.best_score)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, None where undefined."""
        names = self.confusion.names
        fields: dict[str, Any] = plain(
            {
                "iou": self.iou,
                "background_iou": self.background_iou,
                "AP": self.ap,
                "types": [_type_dict(one, names) for one in self.types],
                "false_positives": _type_dict(self.false_positives, names),
                "false_negatives": _type_dict(self.false_negatives, names),
                "confusion": {
                    "classes": [*names, BACKGROUND],
                    "rows": "ground truth",
                    "columns": "predictions",
                    "score": self.confusion.score,
                    "iou": self.confusion.iou,
                    "counts": self.confusion.counts.tolist(),
                },
                "thresholds": self.thresholds,
                "all": _class_dict(self.pooled),
                "per_class": [_class_dict(one) for one in self.classes],
            }
        )
        return fields


def _type_dict(one: ErrorType, names: tuple[str, ...]) -> dict[str, Any]:
    by_class = {name: count for name, count in zip(names, one.by_class, strict=True) if count}
    return {"type": one.name, "count": one.count, "gain": one.gain, "by_class": by_class}


def _class_dict(one: ClassErrors) -> dict[str, Any]:
    calibration = {
        "ece": one.calibration.ece,
        "mce": one.calibration.mce,
        "reason": one.calibration.reason,
        **{name: getattr(one.calibration, name).tolist() for name in ("count", "score", "precision")},
    }
    curve = {name: getattr(one.curve, name).tolist() for name in ConfidenceCurve.__slots__}
    return {
        "class": one.name,
        "best_score": one.best_score,
        "best_f1": one.best_f1,
        "olrp": {
            "olrp": one.lrp.olrp,
            "localisation": one.lrp.localisation,
            "false_positive": one.lrp.false_positive,
            "false_negative": one.lrp.false_negative,
            "score": one.lrp.score,
        },
        "calibration": calibration,
        "curve": curve,
    }
