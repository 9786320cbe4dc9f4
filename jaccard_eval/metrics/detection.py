"""Average precision, average recall, operating points and calibration, each answered from one source of curves."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from hashlib import sha256
from itertools import pairwise
from typing import Any, Self, TypeVar, cast
from typing import Protocol as TypingProtocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.alignment import Alignment, Sides
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray, freeze
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import AT_POINTS, AVERAGED, KEYS, METRICS, MetricRef
from jaccard_eval.data.protocol import (
    COCO,
    DETECTION_HEIGHT,
    EVERY_CLASS,
    HEIGHT,
    OBJECT_HEIGHT,
    POINTS,
    USUAL_IOU,
    Protocol,
)
from jaccard_eval.data.result import ClassRow, EvaluationResult, OperatingPoint, SliceRow
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import IMAGE_FOLDER, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray, WholeArray, distinct, stable_order
from jaccard_eval.matching.judging import EXPANDING
from jaccard_eval.matching.matchtable import (
    ALL_SIZES,
    NO_PAIR,
    PAIRED,
    SLOTS,
    MatchTable,
    Ranking,
    match_boxes,
)
from jaccard_eval.metrics.curves import BETWEEN, Curves, CurveSource
from jaccard_eval.options import BEST_F1, Slice
from jaccard_eval.progress import staged, tracked
from jaccard_eval.similarity import KINDS
from jaccard_eval.text import did_you_mean, quoted_value

# Thresholds that are no further apart are one: they are written with two decimals, and computed by linspace.
SAME_IOU = 1e-9
# Of an interval over the orders of ties that is too narrow to mention.
WIDEST = 1e-6
ALL_SCORES = -math.inf
# Values of curves of which no more than one array is kept, 32 MB; and classes whose rows are made at a time.
LARGE = 4_000_000
MANY_CLASSES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The axes of an evaluation; every method raises UsageError, with a suggestion, for what is not on them."""

    protocol: Protocol
    class_names: tuple[str, ...]
    frequency: tuple[str, ...] = ()  # of each class, where the ground truth has it
    # Which detections count where a reference names no score: those with one, all, or (None) it has to name one.
    score: float | str | None = ALL_SCORES

    def resolved(self, ref: MetricRef) -> MetricRef:
        """Return a reference with the score and the spelling of the area that it leaves to the evaluation."""
        metric = METRICS[ref.name]
        # Under rules without a range of that name, AP_medium is AP[subset=medium].
        if ref.area in self._subsets and ref.area not in self._areas and ref.subset is None:
            ref = replace(ref, area=None, subset=ref.area)
        given = {"iou": ref.iou, "area": ref.area, "subset": ref.subset, "max_dets": ref.max_dets, "score": ref.score}
        if any(value is not None and key not in KEYS[metric.on] for key, value in given.items()):
            keys = " and ".join(filter(None, (", ".join(KEYS[metric.on][:-1]), KEYS[metric.on][-1])))
            raise UsageError(f"metric {quoted_value(str(ref))}: {ref.name} takes {keys} only")
        if "score" in KEYS[metric.on] and ref.score is None and self.score != ALL_SCORES:
            ref = replace(ref, score=self.score)
            if ref.score is None and metric.on in AT_POINTS:
                iou = self.protocol.iou_thresholds[self.single_threshold(ref)] if metric.on == "point" else ref.iou
                example = replace(ref, iou=iou, score=0.5)
                if ref.name == "score":
                    example = replace(example, score="precision=0.9")
                fix = Fix.missing("Or evaluate with {score}.", score="0.5")
                what = f"metric {quoted_value(str(ref))}: {ref.name} needs a score; write {example}."
                raise UsageError(what, fix=fix)
        alike = [name for name in self._areas if ref.area and name.casefold() == ref.area.casefold()]
        return replace(ref, area=alike[0]) if alike and ref.area not in alike else ref

    @property
    def _areas(self) -> list[str]:
        return [*(area.name for area in self.protocol.areas), *self.protocol.frequencies]

    @property
    def _subsets(self) -> list[str]:
        return [subset.name for subset in self.protocol.subsets]

    @property
    def own_thresholds(self) -> IntArray | None:
        """Place of the threshold of each class (K,), where they have their own; else None."""
        rules = [(rule.name.casefold(), rule.iou) for rule in self.protocol.class_rules]
        own = {name: self._nearest(iou) for name, iou in rules if iou is not None}
        return np.array([own.get(name.casefold(), 0) for name in self.class_names], dtype=np.int64) if own else None

    def _nearest(self, iou: float) -> int:
        return int(np.abs(np.asarray(self.protocol.iou_thresholds) - iou).argmin())

    def thresholds(self, ref: MetricRef) -> slice | list[int]:
        """Return which thresholds a metric is taken over."""
        if ref.iou is not None:
            return [self._threshold(ref, ref.iou)]
        known, named = self.protocol.iou_thresholds, COCO.iou_thresholds
        if ref.coco_ious and not (len(known) == len(named) and np.allclose(known, named, rtol=0, atol=SAME_IOU)):
            raise UsageError(
                f"metric {quoted_value(str(ref))}: IoU 0.5:0.95 is not evaluated; thresholds are {self._listed()}.",
                fix=Fix.missing(
                    f"Evaluate with {{iou}}, or ask for {ref.name}, the mean over these.", iou="0.5:0.95:0.05"
                ),
            )
        return slice(None)

    def single_threshold(self, ref: MetricRef) -> int:
        """Return the one threshold of a count: .5 or else the lowest, unless it is named."""
        return self.protocol.judged_threshold if ref.iou is None else self._threshold(ref, ref.iou)

    def _threshold(self, ref: MetricRef, iou: float) -> int:
        known = np.asarray(self.protocol.iou_thresholds)
        nearest = self._nearest(iou)
        # Not equality: 0.9 is 0.8999999999999999 among COCO's thresholds, which are those of linspace.
        if abs(known[nearest] - iou) > SAME_IOU:
            raise UsageError(
                f"metric {quoted_value(str(ref))}: IoU {iou:g} is not evaluated; thresholds are {self._listed()}.",
                fix=Fix.missing("Evaluate with {iou}.", iou=f"{iou:g}"),
            )
        return nearest

    def _listed(self) -> str:
        return ", ".join(f"{value:g}" for value in self.protocol.iou_thresholds)

    def area(self, ref: MetricRef) -> int:
        """Return the area range, the first by default; subsets stand behind them."""
        names = [area.name for area in self.protocol.areas]
        if ref.subset is not None:
            if ref.subset not in self._subsets or ref.area is not None:
                known = f"choose from {', '.join(self._subsets)}" if self._subsets else "there are none"
                known = "name an area or a subset" if ref.area is not None else known
                raise UsageError(
                    f"metric {quoted_value(str(ref))}: protocol {self.protocol.name} has no such subset; {known}."
                    f"{did_you_mean(ref.subset, self._subsets)}"
                )
            return len(names) + self._subsets.index(ref.subset)
        if ref.area is None or self.classes(ref) is not None:
            return 0
        if ref.area not in names:
            raise UsageError(
                f"metric {quoted_value(str(ref))}: unknown area range {quoted_value(ref.area)}; choose from "
                f"{', '.join((*self._areas, *self._subsets))}.{did_you_mean(ref.area, (*self._areas, *self._subsets))}"
            )
        return names.index(ref.area)

    def classes(self, ref: MetricRef) -> IntArray | None:
        """Return the classes of a frequency, where a metric names one in place of an area range: AP_r."""
        if ref.area not in self.protocol.frequencies or any(ref.area == area.name for area in self.protocol.areas):
            return None
        return np.flatnonzero(np.array(self.frequency, dtype=object) == ref.area)

    def cap(self, ref: MetricRef) -> int:
        """Return the cap on detections, the largest by default."""
        caps = self.protocol.max_dets
        if ref.max_dets is None:
            return max(len(caps) - 1, 0)
        if not caps:
            without = f"protocol {self.protocol.name} has no caps on detections; ask for {ref.name} without one"
            raise UsageError(f"metric {quoted_value(str(ref))}: {without}")
        if ref.max_dets not in caps:
            raise UsageError(
                f"metric {quoted_value(str(ref))}: cap {ref.max_dets} is not evaluated; caps are {list(caps)}"
            )
        return caps.index(ref.max_dets)

    def label(self, ref: MetricRef) -> int | None:
        """Return the class; None means all."""
        if ref.class_name is None:
            return None
        if ref.class_name not in self.class_names:
            raise UsageError(
                f"metric {quoted_value(str(ref))}: unknown class {quoted_value(ref.class_name)}."
                f"{did_you_mean(ref.class_name, self.class_names)}"
            )
        return self.class_names.index(ref.class_name)


# Where curves of recall over false positives per image are read.
MISS_RATE_AT: FloatArray = np.power(10.0, np.linspace(-2, 0, 9))
CPM_AT: FloatArray = np.power(2.0, np.arange(-3, 4))
# What the least miss rate is, before its logarithm: that of a class without a miss has one.
LEAST_MISS_RATE = 1e-10


def log_average_miss_rate(curves: CurveSource, threshold: int, area: int) -> FloatArray:
    """Return the geometric mean of the miss rates of each class at some rates of false positives, shape (K,).

    Source: Dollar et al. (2012), "Pedestrian Detection: An Evaluation of the State of the Art", section 4.2, with the
    rates and the least miss rate of its code (``bbGt.m``, ``compRoc`` and ``acfTest.m``), unless the protocol has
    others.
    """
    rules = curves.protocol
    rates = np.array(rules.miss_rate_at) if rules.miss_rate_at else MISS_RATE_AT
    if rules.miss_rate_reading == "first reaching":
        misses = 1 - curves.recall_at(threshold, rates, area=area, reaching=True)
        with np.errstate(divide="ignore"):  # without a miss the mean is 0
            return np.asarray(np.exp(np.log(misses).mean(axis=1)))
    misses = 1 - curves.recall_at(threshold, rates, area=area)
    return np.asarray(np.exp(np.log(np.maximum(misses, LEAST_MISS_RATE)).mean(axis=1)))


def competition_metric(curves: CurveSource, threshold: int, area: int) -> FloatArray:
    """Return the mean recall of each class at seven rates of false positives, shape (K,).

    Source: Setio et al. (2017), "Validation, comparison, and combination of algorithms for automatic detection of
    pulmonary nodules in computed tomography images: the LUNA16 challenge", section 2.4.
    """
    return np.asarray(curves.recall_at(threshold, CPM_AT, area=area).mean(axis=1))


WEIGHTED = ("wAP", "wAR")  # by images
FPPI = "fppi="  # begins a score that is chosen by false positives per image
MISS_RATES = {"LAMR": log_average_miss_rate, "CPM": competition_metric}


class Averages:
    """Averages of curves."""

    def __init__(self, curves: CurveSource, axes: Axes) -> None:
        self.curves = curves
        self.axes = axes
        # AP, AP50, AP75 and the table of classes are averages of the same arrays: (T, R, k) and the k classes.
        self._precision: dict[tuple[int, int], tuple[FloatArray, IntArray]] = {}
        self._class_means: dict[MetricRef, FloatArray] = {}
        self._mean_f1: dict[int, tuple[FloatArray, FloatArray]] = {}  # by threshold

    def mean(self, ref: MetricRef) -> float:
        """Average of an AP or AR; classes without ground truth do not count, NaN if none has any."""
        label, classes = self.axes.label(ref), self.axes.classes(ref)
        values, kept = self._values(ref)
        if label is not None and values.size > LARGE:
            return float(self.class_means(replace(ref, class_name=None))[label])
        if classes is not None:
            values, kept = values[..., np.isin(kept, classes)], kept[np.isin(kept, classes)]
        if label is None and ref.name in WEIGHTED:
            return self._weighted(values.reshape(-1, len(kept)).mean(axis=0), kept)
        chosen = np.ravel(values if label is None else values[..., kept == label])
        # One flat mean in the order (T, R, K), as pycocotools takes it: a mean of means would end in another last bit.
        # The least of numbers with NaN among them is NaN: asked at once, as a thousand resamples do.
        defined = chosen[~np.isnan(chosen)] if math.isnan(chosen.min(initial=0.0)) else chosen
        return float(np.mean(defined)) if len(defined) else math.nan

    def _weighted(self, means: FloatArray, kept: IntArray) -> float:
        """Return the mean of classes `kept` (k,) weighted by how many images hold each, as VisDrone's toolkit does."""
        if not isinstance(self.curves, Curves):
            raise UsageError(NO_TABLE)
        weights = np.where(np.isnan(means), 0, self.curves.images_of_classes[kept])
        return float(np.nansum(means * weights) / weights.sum()) if weights.any() else math.nan

    def class_means(self, ref: MetricRef) -> FloatArray:
        """Average of each class alone, shape (K,); NaN without ground truth."""
        if ref not in self._class_means:
            values, kept = self._values(ref)
            rows, means = values.reshape(math.prod(values.shape[:-1]), len(kept)), np.full(len(self._objects), np.nan)
            for start in range(0, len(kept), MANY_CLASSES):
                # Each class gets a row of its own in memory, so that its sum adds up as if it were alone.
                by_class = np.ascontiguousarray(rows[:, start : start + MANY_CLASSES].T)
                means[kept[start : start + MANY_CLASSES]] = by_class.mean(axis=1)
            self._class_means[ref] = means
        return self._class_means[ref].copy()

    def _of_curve(self, name: str, threshold: int, area: int) -> FloatArray:
        """Return what is read off the curve of each class at one threshold, shape (K,)."""
        if name in MISS_RATES:
            return MISS_RATES[name](self.curves, threshold, area)
        if not isinstance(self.curves, Curves):
            raise UsageError(NO_TABLE)
        if name == PAIRED:
            return self.curves.pairing_share(threshold)
        if threshold not in self._mean_f1:
            self._mean_f1[threshold] = self.curves.at_best_mean_f1(threshold)
        return self._mean_f1[threshold][("P", "R").index(name)]

    @property
    def _objects(self) -> IntArray:
        positives: IntArray = self.curves.positives[0]
        return positives

    def _values(self, ref: MetricRef) -> tuple[FloatArray, IntArray]:
        """Values that an average is taken over, (T, R, k) or (T, k), one threshold or all, and their classes (k,)."""
        area, cap, chosen = self.axes.area(ref), self.axes.cap(ref), self.axes.thresholds(ref)
        own = self.axes.own_thresholds if ref.iou is None and METRICS[ref.name].on == "curves" else None
        if own is not None and not ref.coco_ious:
            values, kept = self._values(replace(ref, iou=self.axes.protocol.iou_thresholds[0]))
            by_threshold = np.stack(
                [self._values(replace(ref, iou=iou))[0] for iou in self.axes.protocol.iou_thresholds], axis=-1
            )
            return by_threshold[..., np.arange(len(kept)), own[kept]], kept
        if ref.name == "AP_R11":
            if self.axes.protocol.interpolation != SLOTS or not isinstance(self.curves, Curves):
                raise UsageError("AP_R11 is read off KITTI's slots: evaluate by protocol kitti")
            return self.curves.slot_precision(area)[chosen, :, ::4].mean(axis=-1), np.arange(len(self._objects))
        if METRICS[ref.name].number == "max_dets":
            return self.curves.final_recall(area, cap)[chosen], np.arange(len(self._objects))
        if METRICS[ref.name].on != "curves":
            return self._of_curve(ref.name, self.axes.single_threshold(ref), area)[None], np.arange(len(self._objects))
        if self.axes.protocol.interpolation != "grid":
            return self.curves.area_under_curve(area, cap)[chosen], np.arange(len(self._objects))
        if (area, cap) not in self._precision:
            if any(values.size > LARGE for values, _ in self._precision.values()):
                self._precision.clear()  # before others are made: of thousands of classes one is kept
            if isinstance(self.curves, Curves):
                self._precision[area, cap] = self.curves.defined_precision(area, cap)
            else:
                precision = self.curves.interpolated_precision(area, cap)
                self._precision[area, cap] = precision, np.arange(precision.shape[-1])
        values, kept = self._precision[area, cap]
        return values[chosen], kept


class TieBounds:
    """The bounds of any number of averages of precision over all orders of equal scores; curves are made once.

    Who matches whom is kept; what moves is where detections with one score stand in the ranking of their class. The
    precision at each hit is highest when the hits of a tie come first, lowest when they come last, and that for all
    hits at once: so each class attains both bounds at each IoU threshold. Of candidates of one image the later one may
    miss only what the earlier one found; it stays behind the hits (`late_misses`), so that further orders may give
    less. The mean over thresholds attains both bounds where whoever hits at a higher threshold hits at the lower ones;
    else it lies between them.
    """

    def __init__(self, curves: Curves, axes: Axes, own: Averages | None = None) -> None:
        self._own = own or Averages(curves, axes)
        self._low, self._high = (Averages(curves.ties(best=best), axes) for best in (False, True))

    def interval(self, ref: MetricRef) -> tuple[float, float]:
        """Return the lowest and the highest value of an AP; NaN where undefined."""
        own = self._own.mean(ref)
        return min(own, self._low.mean(ref)), max(own, self._high.mean(ref))


def operating_point(
    source: CurveSource, axes: Axes, threshold: int, label: int | None, score: float | str | None
) -> OperatingPoint:
    """Count detections with at least `score`, or the best one's, of one class or (`label` None) of all classes pooled.

    Precision is undefined without detections, recall without ground truth, F1 without either, and all three where no
    score reaches the precision or recall that it is to reach.
    """
    # Without a score every detection counts, and there may be negative scores (logits).
    given = -math.inf if score is None else score
    at = source.best_score(threshold, label, given) if isinstance(given, str) else float(given)
    # Exact numbers, counted at the score itself: nothing is read off interpolated curves.
    tp, fp, fn = source.counts_at(threshold, label, at)
    if math.isnan(at) and not is_met_by_none(score):
        precision = recall = f1 = math.nan
    else:
        precision, recall, f1 = _ratio(tp, tp + fp), _ratio(tp, tp + fn), _ratio(2 * tp, 2 * tp + fp + fn)
    return OperatingPoint(
        class_name=None if label is None else axes.class_names[label],
        iou=axes.protocol.iou_thresholds[threshold],
        score=at,
        tp=tp,
        fp=fp,
        fn=fn,
        precision=precision,
        recall=recall,
        f1=f1,
    )


def point_of(source: CurveSource, axes: Axes, ref: MetricRef) -> OperatingPoint:
    """Return the operating point of a metric that is a count."""
    ref = axes.resolved(ref)
    return operating_point(source, axes, axes.single_threshold(ref), axes.label(ref), ref.score)


def point_value(point: OperatingPoint, name: str, n_images: int) -> float:
    """Return the value of a metric at an operating point; false positives per image are those of `n_images`."""
    # The one rate that is not one of classes: images without any object count as well.
    if name == "FPPI":
        return point.fp / n_images if n_images else math.nan
    measure = METRICS[name].measure
    return float(getattr(point, name.lower()) if measure is None else measure(point, n_images))


def counted_value(source: CurveSource, axes: Axes, ref: MetricRef, point: OperatingPoint) -> float:
    """Return the value of a metric at its operating point, or of those of the same detections at all thresholds."""
    ref = axes.resolved(ref)
    label = None if point.class_name is None else axes.class_names.index(point.class_name)
    is_read_between = axes.protocol.miss_rate_reading == BETWEEN and (label is not None or len(axes.class_names) == 1)
    if ref.name == "recall" and str(ref.score).startswith(FPPI) and is_read_between:
        rate = np.array([float(str(ref.score).removeprefix(FPPI))])
        return float(source.recall_at(axes.single_threshold(ref), rate)[label or 0, 0])
    if METRICS[ref.name].on == "point":
        return point_value(point, ref.name, source.n_images)
    if METRICS[ref.name].on == "images":
        if not isinstance(source, Curves):
            raise UsageError(NO_TABLE)
        _, *counts = source.counts_of_images(axes.single_threshold(ref), axes.label(ref), point.score)
        return count_error(ref.name, *counts)
    ious = axes.protocol.iou_thresholds
    chosen = np.arange(len(ious))[axes.thresholds(ref)].tolist()
    points = [operating_point(source, axes, t, label, ref.score) for t in chosen]
    if ref.name == "wF1":
        return weighted_f1(ious, [each.f1 for each in points])
    if ref.name == "accuracy":
        return mean_accuracy([(each.tp, each.fp, each.fn) for each in points])
    if not isinstance(source, Curves):
        raise UsageError(NO_TABLE)
    return image_accuracy(
        [source.counts_of_images(t, label, each.score) for t, each in zip(chosen, points, strict=True)]
    )


def count_error(name: str, found: IntArray, objects: IntArray, weights: IntArray) -> float:
    """Return how far the detections of images (n,) are from the objects in number; NaN where no image counts.

    Source: Wang et al. (2020), "NWPU-Crowd: A Large-Scale Benchmark for Crowd Counting and Localization", section 5.1,
    whose MSE is the root.
    """
    off = np.abs(found - objects)
    if name == "count_NAE":
        off, objects, weights = (column[objects > 0] for column in (off, objects, weights))
        off = off / objects
    each = {"count_RMSE": off**2, "count_exact": off == 0}.get(name, off)
    mean = float(weights @ each / weights.sum()) if weights.any() else math.nan
    return math.sqrt(mean) if name == "count_RMSE" else mean


def mean_accuracy(counts: Sequence[tuple[int, int, int]]) -> float:
    """Return TP / (TP + FP + FN), the mean over thresholds; NaN without objects and detections.

    Source: Schmidt et al. (2018), "Cell Detection with Star-Convex Polygons", section 3.3, over all images, as
    ``matching_dataset`` of StarDist has it.
    """
    return float(np.mean([_ratio(tp, tp + fp + fn) for tp, fp, fn in counts]))


def image_accuracy(counts: Sequence[tuple[IntArray, ...]]) -> float:
    """Return the mean over images of TP / (TP + FP + FN), the mean over thresholds.

    Of each threshold true positives, detections, objects and weights of the images (n,). Those with neither objects nor
    detections do not count; NaN where none does.

    Source: Caicedo et al. (2019), "Nucleus segmentation across imaging experiments: the 2018 Data Science Bowl".
    """
    either = np.stack([found + objects - hits for hits, found, objects, _ in counts])  # (T, n)
    weights = np.where(either[0] > 0, counts[0][3], 0)
    of_images = np.mean([hits / np.maximum(row, 1) for (hits, *_), row in zip(counts, either, strict=True)], axis=0)
    return float(weights @ of_images / weights.sum()) if weights.any() else math.nan


def weighted_f1(ious: Sequence[float], f1: Sequence[float]) -> float:
    """Return the mean F1 of thresholds, each weighted by itself; NaN where one is undefined.

    Source: Gao et al. (2019), "ICDAR 2019 Competition on Table Detection and Recognition (cTDaR)", its weighted average
    F1.
    """
    # Exactly rounded: a dot product by BLAS differs by processor, and where every F1 is 1, its mean was above.
    return math.fsum(np.multiply(ious, f1).tolist()) / math.fsum(ious)


def is_met_by_none(score: float | str | None) -> bool:
    """Whether a set without a single detection does what a score is chosen for; it has no precision, and recall 0."""
    return not isinstance(score, str) or score == BEST_F1 or score.startswith(FPPI)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


# What is not there where the matches of all detections do not fit into memory, and what to do.
# Asked for in Python: the command line refuses before anything is read.
NO_TABLE = (
    'this needs the match of every detection, which the disk engine does not keep. Evaluate with engine="memory".'
)
# Up to this many, the summary shows every IoU threshold, else those of COCO (.5 and .75).
FEW_THRESHOLDS = 4


# Finds the errors of metrics at one of their thresholds: an ``ErrorReport``, which lies above.
Analyse = Callable[["DetectionMetrics", int], Any]


class DetectionMetrics:
    """Answers metric references from the curves of a match table, or of any other source; see ``data.result.Measured``.

    `area_known` is whether areas are in square pixels; without image sizes, size ranges of normalised boxes are
    undefined. `frequency` is that of each class, where the ground truth has it.
    """

    def __init__(
        self,
        source: MatchTable | CurveSource,
        class_names: Sequence[str],
        image_names: Sequence[str],
        *,
        area_known: bool = True,
        frequency: Sequence[str] = (),
        score: float | str | None = ALL_SCORES,
    ) -> None:
        self._table = source if isinstance(source, MatchTable) else None
        self.protocol = source.protocol
        self.class_names = tuple(class_names)
        self.image_names = image_names
        self.area_known = area_known
        self.source: CurveSource = (
            Curves(Ranking.of(source, len(self.image_names))) if isinstance(source, MatchTable) else source
        )
        self.frequency = tuple(frequency)
        self.axes = Axes(self.protocol, self.class_names, self.frequency, score)
        self._averages = Averages(self.source, self.axes)
        self._analyse: Analyse | None = None
        self._errors: dict[int, Any] = {}
        # Image, class, overlap and score of the true positives by threshold: every class asks for its own.
        self._matched: dict[int, tuple[RowArray, RowArray, FloatArray, FloatArray]] = {}

    def at(self, score: float | str | None, analyse: Analyse | None = None) -> DetectionMetrics:
        """Return the metrics with what counts where references name no score (see `Axes`), and what finds errors."""
        view = copy.copy(self)
        view.axes = replace(self.axes, score=score)
        view._analyse, view._errors = analyse, {}
        return view

    def errors_at(self, threshold: int) -> Any:
        """Return the analysis of errors at a threshold, made once."""
        if self._analyse is None:
            raise UsageError(
                "errors are analysed in memory, and over all images. Remove the slice, or the disk engine."
            )
        if threshold not in self._errors:
            self._errors[threshold] = self._analyse(self, threshold)
        return self._errors[threshold]

    @property
    def table(self) -> MatchTable:
        """Who matched whom; a UsageError where nothing but curves is kept."""
        if self._table is None:
            raise UsageError(NO_TABLE)
        return self._table

    @property
    def curves(self) -> Curves:
        """The curves of the match table; those of another source answer only what `CurveSource` names."""
        return cast("Curves", self.source)

    @property
    def tie_choice(self) -> tuple[str, ...]:
        """What a signature shows about the order of equal scores; nothing where it decides nothing."""
        names = ("",) if self.protocol.class_agnostic else self.class_names
        orders = sorted((names[label], order) for label, order in self.source.tie_orders.items())
        text = json.dumps(orders).encode()
        return (f"ties={FINGERPRINT}{sha256(text).hexdigest()[:FINGERPRINT_DIGITS]}",) if orders else ()

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure any metric reference; raise a UsageError for what is not part of this evaluation."""
        # Names are looked up before anything is computed, so that a misspelt one fails at once.
        label, ref = self.axes.label(ref), self.axes.resolved(ref)
        if METRICS[ref.name].on not in AVERAGED:
            return self._point_value(ref, label)
        area = self.axes.area(ref)
        positives = self.source.positives[area]
        classes = self.axes.classes(ref)
        if classes is not None and label is not None:
            raise UsageError(f"metric {quoted_value(str(ref))}: name a class or a frequency of classes, not both")
        n = int(positives[slice(None) if classes is None else classes].sum() if label is None else positives[label])
        return self._of_area(ref, area) or self._defined(ref, self._averages.mean(ref), n)

    def class_values(self, ref: MetricRef) -> tuple[MetricValue, ...]:
        """Measure a metric of every class, in class order; of the reference, which names no class."""
        labels, ref = range(len(self.class_names)), self.axes.resolved(ref)
        if METRICS[ref.name].on not in AVERAGED:
            return tuple(self._point_value(ref, label) for label in labels)
        area, means = self.axes.area(ref), self._averages.class_means(ref)
        unknown = self._of_area(ref, area)
        return (unknown,) * len(labels) if unknown else self._of_classes(ref, means, self.source.positives[area])

    def _of_classes(self, ref: MetricRef, means: FloatArray, positives: WholeArray) -> tuple[MetricValue, ...]:
        # One value for all classes that have nothing: there may be a million.
        nothing, is_nothing = self._defined(ref, math.nan, 0), np.isnan(means) & (positives == 0)
        rows = zip(is_nothing.tolist(), means.tolist(), positives.tolist(), strict=True)
        return tuple(nothing if is_none else self._defined(ref, value, n) for is_none, value, n in rows)

    def _of_area(self, ref: MetricRef, area: int) -> MetricValue | None:
        """Return the value of a metric that is undefined for want of areas in square pixels; None where it is not."""
        if area == ALL_SIZES or self.area_known or not self._is_by_size(ref):
            return None
        return MetricValue(ref=ref, value=np.nan, n=0, reason="image sizes are unknown")

    def _is_by_size(self, ref: MetricRef) -> bool:
        of = [limit.of for subset in self.protocol.subsets if subset.name == ref.subset for limit in subset.limits]
        return ref.subset is None or not {HEIGHT, OBJECT_HEIGHT, DETECTION_HEIGHT}.isdisjoint(of)

    def _point_value(self, ref: MetricRef, label: int | None) -> MetricValue:
        if METRICS[ref.name].on not in AT_POINTS:
            return self._matched_value(ref, label)
        point = operating_point(self.source, self.axes, self.axes.single_threshold(ref), label, ref.score)
        value, objects = counted_value(self.source, self.axes, ref, point), point.tp + point.fn
        # A precision is a share of detections: it rests on them, and not on objects.
        n = point.tp + point.fp if ref.name == "precision" else objects
        if objects and math.isnan(value) and isinstance(ref.score, str):
            met = "has a true positive" if is_met_by_none(ref.score) else f"reaches {ref.score}"
            return MetricValue(ref=ref, value=value, n=n, reason=f"no score {met}")
        return replace(self._defined(ref, value, objects), n=n)

    def _matched_value(self, ref: MetricRef, label: int | None) -> MetricValue:
        """Return what is measured of matched pairs, or taken from the analysis of errors."""
        threshold, positives = self.axes.single_threshold(ref), self.source.positives[ALL_SIZES]
        n = int(positives.sum() if label is None else positives[label])
        if METRICS[ref.name].on == "matches":
            value, lacking = self.mean_overlap(ref), "no matches"
        elif METRICS[ref.name].on == "errors":
            found = self.errors_at(threshold).values
            value = found.get(replace(ref, iou=None), None)
            if value is None:
                raise UsageError(f"metric {quoted_value(str(ref))}: {ref.name} covers all classes; remove class=")
            is_calibration = ref.name in ("ECE", "MCE")
            lacking = "no detections, or scores outside [0, 1]" if is_calibration else "no true positives"
        else:
            raise UsageError(f"metric {quoted_value(str(ref))}: findings are those of all images; remove the slice")
        reason = None if not math.isnan(value) else lacking if n or ref.name in ("ECE", "MCE") else "no ground truth"
        return MetricValue(ref=ref, value=value, n=n, reason=reason)

    def tie_interval(self) -> tuple[float, float] | None:
        """Return the lowest and the highest AP over all orders of equal scores; None where it is undefined."""
        low, high = TieBounds(self.curves, self.axes, self._averages).interval(MetricRef(name="AP"))
        return None if math.isnan(low) else (low, high)

    def mean_overlap(self, ref: MetricRef, weights: IntArray | None = None) -> float:
        """Return the mean IoU of the true positives with at least a score, or of all; NaN without any.

        Images count by their `weights` (n_images,), once unless given.
        """
        threshold, label = self.axes.single_threshold(ref), self.axes.label(ref)
        at = self.source.best_score(threshold, label, ref.score) if isinstance(ref.score, str) else ref.score
        images, labels, overlap = self.matched_overlaps(threshold, ALL_SCORES if at is None else at)
        # They stand by class, of which there may be a thousand that ask.
        bounds = np.array([label or 0, (label or 0) + 1], dtype=labels.dtype)
        chosen = slice(None) if label is None else slice(*np.searchsorted(labels, bounds).tolist())
        if weights is None:
            return float(overlap[chosen].mean()) if len(overlap[chosen]) else math.nan
        total = weights[images[chosen]].sum()
        return float(weights[images[chosen]] @ overlap[chosen] / total) if total else math.nan

    def matched_overlaps(self, threshold: int, score: float) -> tuple[WholeArray, WholeArray, FloatArray]:
        """Return image, class and IoU of the true positives with at least a score."""
        table = self.table
        if threshold not in self._matched:
            choice = table.chosen_pairs(ALL_SIZES, threshold)
            right = self.curves.ranking.outcomes(threshold)[0][table.candidate]
            rows = table.candidate[right]
            columns = table.image[rows], table.label[rows], table.pair_overlap[choice[right]], table.score[rows]
            self._matched[threshold] = columns
        image, label, overlap, scores = self._matched[threshold]
        kept = slice(None) if score == ALL_SCORES else scores >= score
        return image[kept], label[kept], overlap[kept]

    def restrict(self, images: Sequence[int]) -> DetectionMetrics:
        """Return the metrics of some images alone, given as ascending rows."""
        rows = np.asarray(images, dtype=np.int64)
        # The table, where there is one: its restriction can still be asked who matched whom.
        part = self.source.restrict(rows) if self._table is None else self._table.restrict(rows)
        names = [self.image_names[row] for row in images]
        return DetectionMetrics(
            part,
            self.class_names,
            names,
            area_known=self.area_known,
            frequency=self.frequency,
            score=self.axes.score,
        )

    def per_class(self) -> tuple[ClassRow, ...]:
        """Measure every class by the metrics of `class_refs`; one row each, in class order."""
        predictions, total = self.source.detections, self.source.objects
        positives = self.source.positives[ALL_SIZES]
        # All classes at once, and the text of each reference once: there may be thousands of classes.
        refs = class_refs(self.protocol)
        columns = [
            (
                str(ref),
                self._of_classes(ref, self._averages.class_means(ref), positives)
                if METRICS[ref.name].on in AVERAGED
                else self.class_values(ref),
            )
            for ref in refs
        ]
        areas = [ref for ref in summary_refs(self.protocol) if ref.area not in self.protocol.frequencies]
        known = {text for text, _ in columns}
        sizes = [(str(ref), self.class_values(ref)) for ref in areas if str(ref) not in known]
        alike: dict[tuple[int, ...], dict[str, MetricValue]] = {}  # of classes whose values are the same objects

        def values_of(k: int, columns: Sequence[tuple[str, Sequence[MetricValue]]]) -> dict[str, MetricValue]:
            key = tuple(id(found[k]) for _, found in columns)
            return alike.get(key) or alike.setdefault(key, {text: found[k] for text, found in columns})

        rows = []
        for k, name in enumerate(self.class_names):
            counts = {"gt": int(positives[k]), "ignored": int(total[k] - positives[k]), "pred": int(predictions[k])}
            frequency = self.frequency[k] if self.frequency else None
            values, others = values_of(k, columns), values_of(k, sizes)
            rows.append(ClassRow(name=name, **counts, values=values, frequency=frequency, sizes=others))
        return tuple(rows)

    def operating_points(self, score: float | str) -> tuple[OperatingPoint, ...]:
        """Count at a score (or at each one's best F1) for all classes pooled, then each class; at every IoU."""
        # With one class the pooled rows would repeat the same numbers. A best score is that of each row's own
        # threshold.
        labels: list[int | None] = [None, *range(len(self.class_names))] if len(self.class_names) > 1 else [None]
        thresholds = range(len(self.protocol.iou_thresholds))
        return tuple(operating_point(self.source, self.axes, t, k, score) for t in thresholds for k in labels)

    def _defined(self, ref: MetricRef, value: float, n: int) -> MetricValue:
        if not np.isnan(value):
            return MetricValue(ref=ref, value=value, n=n)
        named = ref.area or ref.subset
        reason = "no detections" if n else f"no {named + ' ' if named else ''}ground truth"
        if not n and self.axes.classes(ref) is not None:
            reason = f"no ground truth of a class with frequency {ref.area}"
        return MetricValue(ref=ref, value=np.nan, n=n, reason=reason)

    @cached_property
    def matches(self) -> Mapping[str, Any]:
        """Columns with one row per detection kept, in the order of the predictions; (n, T) where a threshold matters.

        ``image``, ``class``, ``score``, ``source`` (row in the predictions), ``gt`` (row of the matched ground truth,
        -1 for none), ``iou`` (NaN for none), ``tp``, ``fp``, ``ignored``. Over all sizes.
        """
        table, ranking = self.table, self.curves.ranking
        order = np.argsort(table.source, kind="stable")
        choice = table.chosen_pairs(ALL_SIZES).T  # (c, T)
        shape = len(table), choice.shape[1]
        gt, overlap, hits = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
        # What holds for detections without a candidate stands everywhere first; candidates are then written over it.
        counts = np.repeat(ranking.in_range[ALL_SIZES][:, None], shape[1], axis=1)
        c, t = np.nonzero(choice != NO_PAIR)
        gt[table.candidate[c], t] = table.gt_source[table.pair_gt[choice[c, t]]]
        overlap[table.candidate[c], t] = table.pair_overlap[choice[c, t]]
        hits[table.candidate], counts[table.candidate] = ranking.hits[ALL_SIZES].T, ranking.counts[ALL_SIZES].T
        columns = {"score": table.score, "source": table.source, "gt": gt, "iou": overlap}
        columns |= {"tp": hits, "fp": counts & ~hits, "ignored": ~counts}
        return self._named(table.image, table.label, order) | {name: column[order] for name, column in columns.items()}

    @cached_property
    def missed(self) -> Mapping[str, Any]:
        """Columns with one row per ground-truth box that counts and stays unmatched at some threshold.

        ``image``, ``class``, ``source`` (row in the ground truth), ``missed`` (m, T).
        """
        table, choice = self.table, self.table.chosen_pairs(ALL_SIZES)
        t, c = np.nonzero(choice != NO_PAIR)
        missed = np.repeat(~table.gt_ignored[ALL_SIZES][:, None], len(choice), axis=1)  # (m, T)
        missed[table.pair_gt[choice[t, c]], t] = False
        rows = np.flatnonzero(missed.any(axis=1))
        named = self._named(table.gt_image, table.gt_label, rows)
        return named | {"source": table.gt_source[rows], "missed": missed[rows]}

    def _named(self, image: WholeArray, label: WholeArray, rows: IntArray) -> dict[str, Any]:
        named = {"image": (self.image_names, image), "class": (self.class_names, label)}
        # Without rows there may be no names at all, and an array of none takes no index.
        return {
            key: np.array(names, dtype=object)[column[rows]] if len(rows) else np.array([], dtype=object)
            for key, (names, column) in named.items()
        }


UNRANKED = ("precision", "recall", "F1", "mean_IoU")  # at IoU .5: what the order of predictions hardly moves


def summary_refs(protocol: Protocol, *, ranked: bool = True) -> tuple[MetricRef, ...]:
    """Return the metrics of a protocol's summary: COCO's twelve, as far as thresholds, areas and caps allow.

    Of predictions that have no scores, and so no ranking, `UNRANKED` come first.
    """
    if protocol.is_swept:
        return _own_refs(protocol)
    # Points have no IoU.
    shown = UNRANKED[:-1] if protocol.overlap in POINTS else UNRANKED
    unranked = () if ranked else tuple(MetricRef(name=name) for name in shown)
    # The order is that of ``COCOeval.stats``: AP by threshold, AP by size, AR by cap, AR by size.
    areas = [area.name for area in protocol.areas[1:]]
    by_area = [MetricRef(name=name, area=area) for name in ("AP", "AR") for area in areas]
    by_cap = [MetricRef(name="AR", max_dets=cap) for cap in protocol.max_dets] or [MetricRef(name="AR")]
    if protocol.iou_type == "keypoints":  # the ten of poses: one cap, and recall by threshold as well
        by_cap = [replace(ref, name="AR") for ref in _threshold_refs(protocol)]
    by_frequency = [MetricRef(name="AP", area=name) for name in protocol.frequencies]
    also = [*_own_refs(protocol)]
    by_subset = [MetricRef(name="AP", subset=subset.name) for subset in protocol.subsets]
    also += [ref for ref in by_subset if ref not in also]
    refs = (*_threshold_refs(protocol), *also, *by_area[: len(areas)], *by_frequency, *by_cap, *by_area[len(areas) :])
    return (*unranked, *refs)


def _own_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics that a protocol names, at those of its thresholds that are evaluated."""
    refs = map(MetricRef.parse, protocol.metrics)
    return tuple(ref for ref in refs if ref.iou is None or ref.iou in protocol.iou_thresholds)


def needs_table(protocol: Protocol) -> bool:
    """Whether a metric of a protocol's summary needs the match of every detection, and not only where recall rises."""
    names = {MetricRef.parse(metric).name for metric in protocol.metrics}
    return protocol.interpolation not in ("grid", "area") or any(
        name not in MISS_RATES and METRICS[name].on not in ("point", "points") for name in names
    )


def class_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics of the per-class table."""
    if protocol.is_swept:
        return _own_refs(protocol)
    cap = protocol.max_dets[-1] if protocol.max_dets else None
    also = [ref for ref in map(MetricRef.parse, protocol.metrics) if METRICS[ref.name].on in AVERAGED]
    return (*_threshold_refs(protocol), *also, MetricRef(name="AR", max_dets=cap))


def _threshold_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    shown = protocol.iou_thresholds
    if len(shown) > FEW_THRESHOLDS:
        # By equality: both are exact in binary, and among the values of linspace.
        shown = tuple(iou for iou in shown if iou in (0.5, 0.75))
    return (MetricRef(name="AP"), *(MetricRef(name="AP", iou=iou) for iou in shown))


@staged("matching")
def match_sides(
    sides: Sides, protocol: Protocol, measure: Callable[..., DetectionMetrics] | None = None
) -> DetectionMetrics:
    """Match two sides, and return the metrics; refuse data without the sizes or shapes that the protocol needs.

    What matches them is `measure_aligned`, unless given.
    """
    aligned = sides.aligned
    # A pixel has no size in fractions of an image: the +1 of VOC cannot be added to them.
    if (protocol.pixel_offset or protocol.union_epsilon) and aligned.units == "norm":
        added = "a pixel to every side" if protocol.pixel_offset else f"{protocol.union_epsilon:g} px² to every union"
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            f"protocol {protocol.name} adds {added}, but boxes are normalised and image sizes unknown",
            fix=IMAGE_FOLDER,
        )
    if sides.aligned.facts.usual_protocol == "points" and protocol.overlap != "pixels":
        lacking = "size" if protocol.overlap in POINTS else "area"
        detail = f"holds points, which have no {lacking} for protocol {protocol.name} to compare"
        fix = Fix.missing("Pass {protocol}: distances in pixels.", protocol="points=4,8")
        raise DataError.single("shapes-unfit", Where(sides.gt.path), detail, fix=fix)
    # These know more than shares of areas, which are the same in fractions: distances, widths, angles.
    by_distance = protocol.iou_type in ("keypoints", "probiou", "spheres") or protocol.overlap not in ("area", "centre")
    if by_distance and aligned.units == "norm" and len(aligned.gt):
        measured_by = protocol.iou_type if protocol.overlap == "area" else f"overlap {protocol.overlap}"
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            f"{measured_by} measures distances, but coordinates are fractions of images whose sizes are unknown",
            fix=IMAGE_FOLDER,
        )
    require_shapes(sides.gt, sides.pred, aligned, protocol)
    return (measure or partial(measure_aligned, aligned))(aligned.gt, aligned.pred, protocol)


def require_shapes(gt: Dataset, pred: Dataset, aligned: Alignment, protocol: Protocol) -> None:
    """Raise a DataError where a side has boxes without the shapes that a protocol compares, or others."""
    kind, findings = KINDS[protocol.iou_type], FindingLog()
    for side, boxes in ((gt, aligned.gt), (pred, aligned.pred)):
        if kind.shapes is None or not len(boxes):
            continue
        # Tables of one side have shapes alike.
        shapes = next(table.shapes for table in boxes.tables() if len(table))
        if not isinstance(shapes, kind.shapes):
            detail = (
                f"{side.format} was read without the shapes that iou_type {quoted_value(protocol.iou_type)} compares"
            )
            fix = "Pass a file that has them, or evaluate boxes: iou_type 'bbox'."
            findings.error("shapes-missing", Where(side.path), detail, fix=fix)
        elif kind.refuses is not None and (problem := kind.refuses(shapes, protocol)):
            findings.error("shapes-unfit", Where(side.path), problem, fix=kind.remedy and kind.remedy(shapes))
    findings.raise_errors()


def measure_aligned(
    aligned: Alignment,
    gt: BoxTable,
    pred: BoxTable,
    protocol: Protocol,
    *,
    change: Callable[[MatchTable], MatchTable] | None = None,
    capped: MatchTable | None = None,
) -> DetectionMetrics:
    """Match boxes in the rows of an alignment, and return the metrics of the table, after a `change` of it.

    Of a table of the same under a cap, see `match_boxes`.
    """
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(gt, pred, protocol, n_images=n_images, n_labels=n_labels, capped=capped)
    return metrics_of(aligned, table if change is None else change(table))


def metrics_of(aligned: Alignment, source: MatchTable | CurveSource) -> DetectionMetrics:
    """Return the metrics of what was matched in the rows of an alignment."""
    pooled, area_known = source.protocol.class_agnostic, aligned.units == "px"
    names = ("all classes",) if pooled else aligned.class_names
    # Only protocols that ask for it show how frequent a class is: what others write stays as it is.
    frequency = aligned.facts.frequency if source.protocol.frequencies and not pooled else ()
    return DetectionMetrics(source, names, aligned.image_names, area_known=area_known, frequency=frequency)


def detection_metrics(result: EvaluationResult) -> DetectionMetrics:
    """Return the metrics of a result with their match table; results that were put together by hand have none."""
    if not isinstance(result.measured, DetectionMetrics):
        raise UsageError(f"the result of {quoted_value(result.pred.path)} has no match table to compare")
    return result.measured


PART_ROWS = 1 << 17  # of detections that are matched at once, about
_COLUMNS = ("score", "label", "matched_label", "row", "matched_row")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnyClassMatches:
    """Detections that count when all are matched as if there were one class; rows are detections, (n,).

    A better detection never looks at a worse one. So those with at least some score are matched among themselves as
    they are here, and one matching is that of every score.
    """

    iou: float
    score: FloatArray
    label: RowArray
    matched_label: RowArray  # class of the object that each one matches, K for the background
    row: IntArray  # in the table of detections
    matched_row: IntArray  # of that object in the ground truth, -1 for the background
    positives: IntArray  # (K,), objects that count

    @classmethod
    def joined(cls, parts: Sequence[AnyClassMatches]) -> AnyClassMatches:
        """Return the matches of all parts, which have no image in common."""
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
        positives = np.sum([part.positives for part in parts], axis=0)
        return cls(iou=parts[0].iou, positives=positives, **columns)

    def with_rows(self, rows: npt.NDArray[Any], objects: IntArray) -> AnyClassMatches:
        """Return the matches with rows of larger tables, of which a part had these."""
        return replace(self, row=rows[self.row], matched_row=np.append(objects, -1)[self.matched_row])

    @property
    def cell(self) -> IntArray:
        """Place of each detection in the matrix of classes and the background, row by row."""
        return self.matched_label.astype(np.int64) * (len(self.positives) + 1) + self.label

    def confusion(self, score: float) -> npt.NDArray[np.int64]:
        """Count the detections with at least a score, (K + 1, K + 1); rows are ground truth, the background last."""
        n = len(self.positives) + 1
        cells = np.bincount(self.cell[self.score >= score], minlength=n * n).reshape(n, n)
        cells[:-1, -1] = self.positives - cells[:-1].sum(axis=1)
        return cells


def match_any_class(metrics: DetectionMetrics, threshold: int, gt: BoxTable, pred: BoxTable) -> AnyClassMatches:
    """Match the detections of an evaluation at one of its IoU thresholds, whatever the classes, by its other rules.

    Ground truth that is ignored, and what matches it, is ignored.
    """
    table, n_images = metrics.table, len(metrics.image_names)
    # The caps were applied before, by class: once more, over all classes, they would drop detections that count.
    sides = ((table.image, stable_order(table.image)), (gt.image, stable_order(gt.image)))
    # Where the rows of each image begin, and the end, (n_images + 1,).
    starts, gt_starts = (np.append(0, np.cumsum(np.bincount(image, minlength=n_images))) for image, _ in sides)
    cuts = distinct(np.searchsorted(starts, np.arange(PART_ROWS, len(table), PART_ROWS)))
    parts = []
    for first, last in pairwise([0, *cuts[(cuts > 0) & (cuts < n_images)].tolist(), n_images]):
        # An image is matched without the others, so that a copy of a few of them at a time will do.
        rows = table.row[sides[0][1][starts[first] : starts[last]]]
        objects = sides[1][1][gt_starts[first] : gt_starts[last]]
        gt_part, pred_part = (
            replace(side, image=side.image - np.int32(first)) for side in (gt.take(objects), pred.take(rows))
        )
        shape = {"n_images": last - first, "n_labels": table.n_labels}
        part = match_part(gt_part, pred_part, metrics.protocol, threshold, **shape)
        parts.append(part.with_rows(rows, objects))
    return AnyClassMatches.joined(parts)


def match_part(
    gt: BoxTable, kept: BoxTable, protocol: Protocol, threshold: int, *, n_images: int, n_labels: int
) -> AnyClassMatches:
    """Match detections of some images, those within the caps of their classes, in the order of these and of scores."""
    if protocol.judging in EXPANDING and not protocol.class_agnostic:
        return _match_own_class_first(gt, kept, protocol, threshold, n_images=n_images, n_labels=n_labels)
    iou, n = protocol.iou_thresholds[threshold], 1 if protocol.class_agnostic else n_labels
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=(), class_agnostic=True)
    # A class-agnostic table forgets the labels. Numbered sources lead from its rows back to them.
    numbered = freeze(replace(kept, source=np.arange(len(kept))))
    table = match_boxes(gt, numbered, rules, n_images=n_images, n_labels=n)
    # Under a protocol that knows no classes, all boxes are of the one class that there is a name for.
    labels = (gt.label, kept.label[table.source])
    gt_label, label = (column * np.int32(not protocol.class_agnostic) for column in labels)
    hit, counts = Ranking.of(table, n_images).outcomes(0)
    found = hit[table.candidate]
    matched_label, matched_row = np.full(len(table), n, dtype=np.int32), np.full(len(table), -1)
    matched_row[table.candidate[found]] = table.pair_gt[table.chosen_pairs(ALL_SIZES, 0)[found]]
    matched_label[table.candidate[found]] = gt_label[matched_row[table.candidate[found]]]
    return AnyClassMatches(
        iou=iou,
        score=table.score[counts],
        label=label[counts],
        matched_label=matched_label[counts],
        row=table.source[counts],
        matched_row=matched_row[counts],
        positives=np.bincount(gt_label[~table.gt_ignored[ALL_SIZES]], minlength=n),
    )


def _match_own_class_first(
    gt: BoxTable, kept: BoxTable, protocol: Protocol, threshold: int, *, n_images: int, n_labels: int
) -> AnyClassMatches:
    """Match within classes, then what is left whatever the classes.

    An object has a copy for each class above its own. Of boxes that are alike, a detection means that of its class.
    """
    iou = protocol.iou_thresholds[threshold]
    rules = protocol.with_options(iou_thresholds=(iou,), areas=protocol.areas[:1], max_dets=())
    table = match_boxes(gt, kept, rules, n_images=n_images, n_labels=n_labels)
    hit, counts = Ranking.of(table, n_images).outcomes(0)
    pairs = table.chosen_pairs(ALL_SIZES, 0)[hit[table.candidate]]
    is_left = np.ones(len(gt), dtype=np.bool_)
    is_left[table.pair_gt[pairs]] = False
    # What is ignored within its class stays out.
    wrong = np.sort(table.row[counts & ~hit])
    pooled = rules.with_options(judging=EVERY_CLASS)
    rest = match_part(gt.take(is_left), kept.take(wrong), pooled, 0, n_images=n_images, n_labels=n_labels)
    rest = rest.with_rows(wrong, np.flatnonzero(is_left))
    return AnyClassMatches(
        iou=iou,
        score=np.concatenate((table.score[hit], rest.score)),
        label=np.concatenate((table.label[hit], rest.label)),
        matched_label=np.concatenate((table.label[hit], rest.matched_label)),
        row=np.concatenate((table.row[hit], rest.row)),
        # Candidates ascend, as hits do.
        matched_row=np.concatenate((table.pair_gt[pairs], rest.matched_row)),
        positives=np.bincount(gt.label[~table.gt_ignored[ALL_SIZES]], minlength=n_labels),
    )


SHOWN_NAMES = 3
Metrics = TypeVar("Metrics", bound="Divisible")


class Divisible(TypingProtocol):
    """What can be measured on some of its images alone."""

    @property
    def image_names(self) -> Sequence[str]:
        """Name of each image."""

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure a metric reference."""

    def restrict(self, images: Sequence[int]) -> Self:
        """Measure some images alone, given as ascending rows."""


def measure_slices(measured: Divisible, slices: Sequence[Slice], refs: Sequence[MetricRef]) -> tuple[SliceRow, ...]:
    """Measure every slice; slices may overlap."""
    # The command line asks this before it reads anything; here it is asked of calls from Python.
    require_names(slices)
    rows = []
    for images in tracked(slices, "measuring slices"):
        chosen = chosen_images(images, measured.image_names)
        part = measured.restrict(chosen)
        values = {str(ref): part.value(ref) for ref in refs}
        made = SliceRow(
            name=images.name, digest=slice_digest(images), images=len(chosen), values=values, rows=tuple(chosen)
        )
        rows.append(made)
    return tuple(rows)


def part_of(metrics: Metrics, images: Slice | None) -> Metrics:
    """Return the metrics of a slice alone, of all images where there is none."""
    return metrics if images is None else metrics.restrict(chosen_images(images, metrics.image_names))


def slice_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics that slices have."""
    if protocol.is_swept:
        return _own_refs(protocol)
    usual = (MetricRef(name="AP", iou=USUAL_IOU),) if USUAL_IOU in protocol.iou_thresholds else ()
    # Where all detections are one operating point, what is counted there is what the benchmark is about.
    at_point = protocol.metrics if protocol.is_one_point else ()
    return (MetricRef(name="AP"), *usual, *map(MetricRef.parse, at_point))


def require_names(slices: Sequence[Slice]) -> None:
    """Raise a UsageError when two slices have one name."""
    names = [images.name for images in slices]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"slice {quoted_value(twice[0])} is given twice")


def chosen_images(images: Slice, names: Sequence[str]) -> list[int]:
    """Return the rows of the images of a slice, ascending; raise a UsageError for a pattern that matches none."""
    # A set, as one image may match several patterns; ascending rows keep the order of ties in the part.
    rows: set[int] = set()
    row_of = {name: row for row, name in enumerate(names)}
    unmatched = []
    for pattern in images.patterns:
        # A name wins over the glob that it also is: brackets are usual in file names.
        if pattern in row_of:
            found = [row_of[pattern]]
        else:
            found = [] if images.exact else [row for row, name in enumerate(names) if fnmatchcase(name, pattern)]
        rows.update(found)
        unmatched += [] if found else [pattern]
    if unmatched:
        listed = ", ".join(map(quoted_value, unmatched[:SHOWN_NAMES]))
        more = f" and {len(unmatched) - SHOWN_NAMES:,} more" if len(unmatched) > SHOWN_NAMES else ""
        example = f"; image names look like {quoted_value(names[0])}" if names else ""
        meant = did_you_mean(unmatched[0], names)
        raise UsageError(f"slice {quoted_value(images.name)}: no image is matched by {listed}{more}{example}.{meant}")
    return sorted(rows)


def slice_digest(images: Slice) -> str:
    """Return a digest of what a slice is made of, by which a saved value is known to be of the same slice."""
    text = "\n".join([str(images.exact), *images.patterns])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Guo et al. 2017 use 15 for images; detections of a class are fewer.
N_BINS = 10


def calibration(score: FloatArray, hit: BoolArray, n_bins: int = N_BINS) -> Calibration:
    """Compare scores (n,) with the share of true positives, in bins of equal width.

    The expected calibration error is the mean distance of the two, weighted by detections; the largest one is that of
    the worst bin that is not empty. Both are undefined without detections, and where scores outside [0, 1] cannot be
    probabilities.

    Source: Guo et al. (2017), "On calibration of modern neural networks", equations 3 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> round(calibration(np.array([0.75, 0.75, 0.25]), np.array([True, False, False])).ece, 4)
    0.25
    """
    unfit = np.any((score < 0) | (score > 1))
    reason = "no detections" if len(score) == 0 else "scores outside [0, 1]" if unfit else ""
    # Undefined, but still with a table of bins, all of them empty: reports lay out the same rows.
    chosen = slice(0, 0) if reason else slice(None)
    score, hit = score[chosen], hit[chosen]
    # The score 1 would open a bin of its own; it belongs to the last one.
    bins = np.minimum((score * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    # 0 / 0 in empty bins.
    with np.errstate(invalid="ignore"):
        mean = np.bincount(bins, weights=score, minlength=n_bins) / count
        precision = np.bincount(bins, weights=hit, minlength=n_bins) / count
    gap = np.abs(precision - mean)[count > 0]
    weight = count[count > 0] / max(len(score), 1)
    return Calibration(
        ece=float("nan") if reason else float((weight * gap).sum()),
        mce=float("nan") if reason else float(gap.max()),
        count=count,
        score=mean,
        precision=precision,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """Whether scores are probabilities: by bin of equal width, how many detections are true positives."""

    # Expected and largest calibration error; NaN, with a reason, where undefined.
    ece: float
    mce: float
    # Detections, mean score and share of true positives by bin, (B,). A bin holds scores in [low, high), the last one
    # 1 as well; empty ones have NaN.
    count: npt.NDArray[np.int64]
    score: FloatArray
    precision: FloatArray
    reason: str = ""
