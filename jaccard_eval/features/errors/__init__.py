"""What kinds of errors an evaluation has: types with what they cost, confusion, calibration, scores to choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import Also, Beside, DataTable, Form, Measure, dig, each, fields_document, written_as
from jaccard_eval.data.metricref import ERROR_TYPES, MetricRef
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import AnyClassMatches, Calibration
from jaccard_eval.options import BEST_F1

BACKGROUND = "background"
ALL_CLASSES = "all"
FEW_OBJECTS = 20  # of a class: with fewer, its best score is that of chance


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorType:
    """One type of error, and the average precision gained by fixing it and nothing else."""

    name: str
    count: int  # detections, or ground-truth boxes for what is missed
    gain: float  # average precision afterwards minus that before; NaN without ground truth
    by_class: tuple[int, ...]  # length K: the counts of each class: of the detection, or of the box that is missed


def _classes(document: Any) -> Any:
    """Return the names of the classes, which documents list with the background."""
    names = dig(document, "classes")
    return names[:-1] if isinstance(names, list) else names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfusionMatrix:
    """Detections above a score against ground truth, matched whatever their classes.

    A part of a result by itself, and of the analysis of errors.
    """

    # Length K
    names: tuple[str, ...] = field(
        metadata=written_as("classes", write=lambda names: [*names, BACKGROUND], read=_classes)
    )
    # Shape (K + 1, K + 1): rows are ground truth, columns predictions; the last of each is the background: what was
    # missed, and what is not there
    counts: npt.NDArray[np.int64]
    # score, iou: detections with a lower score are ignored; pairs match from this IoU on
    score: float
    iou: float

    kind: ClassVar[str] = "confusion"
    also: ClassVar[Also] = (lambda _: {"rows": "ground truth", "columns": "predictions"},)

    def __post_init__(self) -> None:
        n = len(self.names)
        if self.counts.shape != (n + 1, n + 1):
            raise UsageError("classes and the confusion matrix do not belong together")

    @property
    def normalised(self) -> FloatArray:
        """The counts as shares of their row, the ground truth; NaN in rows without any."""
        whole = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(self.counts, whole, out=np.full(self.counts.shape, np.nan), where=whole > 0))

    def tables(self) -> dict[str, DataTable]:
        """Return the whole matrix, and the shares of its rows."""
        names, kinds = (*self.names, BACKGROUND), {"confusion": self.counts, "confusion_normalised": self.normalised}
        return {
            kind: DataTable(
                ("ground truth", *names),
                tuple((name, *row) for name, row in zip(names, matrix.tolist(), strict=True)),
            )
            for kind, matrix in kinds.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfidenceCurve:
    """Precision, recall and F1 of the detections with at least a score; shape (S,) each, NaN where undefined."""

    score: FloatArray
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalisationRecallPrecision:
    """Optimal LRP error: the smallest over all scores, in [0, 1], 0 at best; NaN without ground truth."""

    olrp: float
    localisation: float  # mean 1 - IoU of the true positives; NaN without any
    false_positive: float  # 1 - precision; NaN without detections
    false_negative: float  # 1 - recall
    score: float  # the score it is reached at; NaN when no detection improves it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassErrors:
    """One class, or (`name` None) all pooled; `lrp` is then the mean of the classes."""

    name: str | None = field(metadata=written_as("class"))
    calibration: Calibration
    curve: ConfidenceCurve
    best_score: float
    best_f1: float
    lrp: LocalisationRecallPrecision = field(metadata=written_as("olrp"))
    aimed_score: float = math.nan  # that reaches what the evaluation asked for, or else the best one
    mean_iou: float = math.nan  # of the true positives with the score of the evaluation, where it has one
    n: int = 0  # objects that can be found


def _with_names(kind: ErrorType, report: ErrorReport) -> dict[str, Any]:
    by_class = {name: count for name, count in zip(report.confusion.names, kind.by_class, strict=True) if count}
    return {"type": kind.name, "count": kind.count, "gain": kind.gain, "by_class": by_class}


def _counted_by_name(key: str) -> dict[str, Form]:
    """Return the metadata of types of errors, of which documents have the counts by the names of the classes."""

    def read(document: Mapping[str, Any]) -> Any:
        names, kinds = _classes(dig(document, "confusion")), dig(document, key)

        def counts(kind: Any) -> Any:
            found = kind.get("by_class")
            if isinstance(found, Mapping) and isinstance(names, list):
                # Of two classes with one name, documents have the counts of one.
                found = [found.get(name, 0) for name in map(str, names)]
            return {**kind, "name": kind.get("type"), "by_class": found}

        return counts(kinds) if isinstance(kinds, Mapping) else each(kinds, counts)

    return written_as(key, written=False, read=read)


@dataclass(frozen=True, kw_only=True, eq=False)
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
    any_class : AnyClassMatches, optional
        What the confusion matrix is counted from, at any score; documents do without.
    other_curves : callable, optional
        What makes the confidence curves at the other IoU thresholds of the summary; documents do without.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> {kind.name: kind.count for kind in evaluate(gt, pred, errors=True).errors.types if kind.count}
    {'missed': 1}
    """

    iou: float
    background_iou: float
    ap: float = field(metadata=written_as("AP"))
    types: tuple[ErrorType, ...] = field(metadata=_counted_by_name("types"))
    false_positives: ErrorType = field(metadata=_counted_by_name("false_positives"))
    false_negatives: ErrorType = field(metadata=_counted_by_name("false_negatives"))
    confusion: ConfusionMatrix
    pooled: ClassErrors = field(metadata=written_as("all"))
    classes: tuple[ClassErrors, ...] = field(metadata=written_as("per_class"))
    any_class: AnyClassMatches | None = field(default=None, metadata=written_as(None))
    # Every detection and box with what is wrong with it: `features.errors.compute.Errors`.
    judged: Any = field(default=None, metadata=written_as(None), repr=False)
    # Curves at the other thresholds that the summary shows: IoU, class (None for all pooled), curve.
    other_curves: Callable[[], Iterator[tuple[float, str | None, ConfidenceCurve]]] | None = field(
        default=None, metadata=written_as(None)
    )

    kind: ClassVar[str] = "errors"
    beside: ClassVar[Beside] = {"metrics": Mapping[str, Measure]}
    also: ClassVar[Also] = (
        lambda report: {
            "types": [_with_names(kind, report) for kind in report.types],
            "false_positives": _with_names(report.false_positives, report),
            "false_negatives": _with_names(report.false_negatives, report),
            "thresholds": report.thresholds,
            "metrics": {str(ref): value for ref, value in report.values.items()},
        },
    )

    @cached_property
    def values(self) -> Mapping[MetricRef, float]:
        """Every number of the analysis by the metric that names it, at its IoU threshold."""
        found: dict[MetricRef, float] = {}
        for row in (self.pooled, *self.classes):
            numbers = {"ECE": row.calibration.ece, "MCE": row.calibration.mce, "mean_IoU": row.mean_iou}
            numbers |= {"oLRP": row.lrp.olrp, "oLRP_Loc": row.lrp.localisation}
            numbers |= {"oLRP_FP": row.lrp.false_positive, "oLRP_FN": row.lrp.false_negative}
            best = {"F1": row.best_f1, "score": row.best_score}
            # Of two classes with one name, the first.
            for name, value in numbers.items():
                found.setdefault(MetricRef(name=name, class_name=row.name), value)
            for name, value in best.items():
                found.setdefault(MetricRef(name=name, score=BEST_F1, class_name=row.name), value)
        kinds = (*self.types, self.false_positives, self.false_negatives)
        for (short, name), kind in zip(ERROR_TYPES.items(), kinds, strict=True):
            counted = f"{name.replace(' ', '_')}_errors"
            found[MetricRef(name=counted)], found[MetricRef(name=f"dAP_{short}")] = float(kind.count), kind.gain
            for class_name, count in zip(self.confusion.names, kind.by_class, strict=True):
                found.setdefault(MetricRef(name=counted, class_name=class_name), float(count))
        return found

    @property
    def thresholds(self) -> Mapping[str, float]:
        """The score with the best F1 of each class that has a detection and ground truth."""
        return {str(row.name): row.best_score for row in self.classes if not math.isnan(row.best_score)}

    def _thresholds(self) -> Iterator[tuple[str | int | float, ...]]:
        """Yield the score to use of all classes together and of each, how many objects it rests on, whether few.

        A class with few objects takes the score of all classes.
        """
        yield ALL_CLASSES, self.pooled.aimed_score, self.pooled.n, ""
        for row in self.classes:
            few = row.n < FEW_OBJECTS
            yield str(row.name), (self.pooled if few else row).aimed_score, row.n, "true" if few else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, None where undefined."""
        return fields_document(self)

    def __post_init__(self) -> None:
        n = len(self.confusion.names)
        shapes = {(row.curve.score.shape, row.curve.precision.shape) for row in (self.pooled, *self.classes)}
        if len(self.classes) != n or any(a != b for a, b in shapes):
            raise UsageError("classes, curves and the confusion matrix do not belong together")

    def tables(self) -> dict[str, DataTable]:
        """Return the types, the whole confusion matrix, the curves, the bins of scores, and the score with the best F1.

        Curves and bins are those of all classes pooled and of each; bins that are empty have no means.
        """
        curves: list[tuple[str | float, ...]] = []
        bins: list[tuple[str | float, ...]] = []
        for row in (self.pooled, *self.classes):
            name = ALL_CLASSES if row.name is None else row.name
            curve, bars = row.curve, row.calibration
            points = zip(curve.score, curve.precision, curve.recall, curve.f1, strict=True)
            curves += [(name, *map(float, point), self.iou) for point in points]
            n = len(bars.count)  # bins are of equal width, so that their places give their ends
            for i, (count, score, precision) in enumerate(zip(bars.count, bars.score, bars.precision, strict=True)):
                bins.append((name, i / n, (i + 1) / n, int(count), float(score), float(precision)))
        for iou, class_name, curve in self.other_curves() if self.other_curves is not None else ():
            points = zip(curve.score, curve.precision, curve.recall, curve.f1, strict=True)
            curves += [(class_name or ALL_CLASSES, *map(float, point), iou) for point in points]
        kinds = (*self.types, self.false_positives, self.false_negatives)
        return {
            "errors": DataTable(("type", "count", "gain"), tuple((kind.name, kind.count, kind.gain) for kind in kinds)),
            **self.confusion.tables(),
            "curves": DataTable(("class", "score", "precision", "recall", "F1", "iou"), tuple(curves)),
            "calibration": DataTable(("class", "from", "to", "detections", "mean score", "precision"), tuple(bins)),
            "thresholds": DataTable(("class", "score", "n", "few"), tuple(self._thresholds())),
        }
