"""Where a metric reference points to on the axes of an evaluation, averages over them, and what ties do to those."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.metricref import KEYS, METRICS, MetricRef
from jaccard_eval.data.protocol import COCO, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.curves import Curves, CurveSource
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
        given = {"iou": ref.iou, "area": ref.area, "max_dets": ref.max_dets, "score": ref.score}
        if any(value is not None and key not in KEYS[metric.on] for key, value in given.items()):
            keys = " and ".join(filter(None, (", ".join(KEYS[metric.on][:-1]), KEYS[metric.on][-1])))
            raise UsageError(f"metric {quoted_value(str(ref))}: {ref.name} takes {keys} only")
        if "score" in KEYS[metric.on] and ref.score is None and self.score != ALL_SCORES:
            ref = replace(ref, score=self.score)
            if ref.score is None and metric.on == "point":
                example = replace(ref, iou=self.protocol.iou_thresholds[self.single_threshold(ref)], score=0.5)
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
        nearest = int(np.abs(known - iou).argmin())
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
        """Return the area range, the first by default."""
        names = [area.name for area in self.protocol.areas]
        if ref.area is None or self.classes(ref) is not None:
            return 0
        if ref.area not in names:
            raise UsageError(
                f"metric {quoted_value(str(ref))}: unknown area range {quoted_value(ref.area)}; choose from "
                f"{', '.join(self._areas)}.{did_you_mean(ref.area, self._areas)}"
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


class Averages:
    """Averages of curves."""

    def __init__(self, curves: CurveSource, axes: Axes) -> None:
        self.curves = curves
        self.axes = axes
        # AP, AP50, AP75 and the table of classes are averages of the same arrays: (T, R, k) and the k classes.
        self._precision: dict[tuple[int, int], tuple[FloatArray, IntArray]] = {}
        self._class_means: dict[MetricRef, FloatArray] = {}

    def mean(self, ref: MetricRef) -> float:
        """Average of an AP or AR; classes without ground truth do not count, NaN if none has any."""
        label, classes = self.axes.label(ref), self.axes.classes(ref)
        values, kept = self._values(ref)
        if label is not None and values.size > LARGE:
            return float(self.class_means(replace(ref, class_name=None))[label])
        if classes is not None:
            values, kept = values[..., np.isin(kept, classes)], kept[np.isin(kept, classes)]
        chosen = np.ravel(values if label is None else values[..., kept == label])
        # One flat mean in the order (T, R, K), as pycocotools takes it: a mean of means would end in another last bit.
        undefined = np.isnan(chosen)
        defined = chosen[~undefined] if undefined.any() else chosen
        return float(np.mean(defined)) if len(defined) else math.nan

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

    @property
    def _objects(self) -> IntArray:
        positives: IntArray = self.curves.positives[0]
        return positives

    def _values(self, ref: MetricRef) -> tuple[FloatArray, IntArray]:
        """Values that an average is taken over, (T, R, k) or (T, k), one threshold or all, and their classes (k,)."""
        area, cap, chosen = self.axes.area(ref), self.axes.cap(ref), self.axes.thresholds(ref)
        if ref.name == "AR":
            return self.curves.final_recall(area, cap)[chosen], np.arange(len(self._objects))
        if self.axes.protocol.interpolation == "area":
            return self.curves.area_under_envelope(area, cap)[chosen], np.arange(len(self._objects))
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

    def __init__(self, curves: Curves, axes: Axes) -> None:
        self._own = Averages(curves, axes)
        self._low, self._high = (Averages(curves.ties(best=best), axes) for best in (False, True))

    def interval(self, ref: MetricRef) -> tuple[float, float]:
        """Return the lowest and the highest value of an AP; NaN where undefined."""
        own = self._own.mean(ref)
        return min(own, self._low.mean(ref)), max(own, self._high.mean(ref))
