"""Label maps: the scores, from how many pixels of which class were predicted as which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MAP_CLASS_METRICS, MAP_METRICS, MetricRef
from jaccard_eval.features.pixels import PixelClassRow
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS, ConfusionCounts, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PixelScores:
    """Scores of label maps: `overall` by name, and one row per class."""

    overall: dict[str, MetricValue]
    per_class: tuple[PixelClassRow, ...]


def pixel_metrics(
    counts: ConfusionCounts, names: Sequence[str], *, background: int | None = None, drop_background: str | None = None
) -> PixelScores:
    """Return the scores of counted label maps.

    With TP, FP and FN the pixels of a class that both sides have, only the prediction has and only the ground truth
    has: IoU = TP / (TP + FP + FN), the Jaccard index; precision = TP / (TP + FP); recall = TP / (TP + FN), the accuracy
    of a class; Dice = 2 TP / (2 TP + FP + FN). mIoU is the mean IoU of the present classes, those that either side has;
    fwIoU weights each IoU with the ground-truth pixels of its class; mean_accuracy is the mean recall of the classes
    with ground truth; pixel_accuracy the share of the counted pixels whose class is right.

    Parameters
    ----------
    counts : ConfusionCounts
        Of class indices 0 to ``len(names) - 1``.
    names : sequence of str
    background : int, optional
        Index of the class that the means ignore.
    drop_background : {"gt", "pred", "both"}, optional
        Whose background pixels are not counted at all; see `PixelProtocol`.

    Returns
    -------
    PixelScores
        NaN with a reason where a denominator is 0.

    References
    ----------
    .. [1] J. Long, E. Shelhamer, T. Darrell, "Fully Convolutional Networks for Semantic Segmentation", CVPR 2015,
       section 5: pixel accuracy, mean accuracy, mean IU, frequency weighted IU.

    Examples
    --------
    >>> counts = ConfusionCounts.from_maps(np.array([[0, 1, 1]]), np.array([[0, 1, 0]]))
    >>> pixel_metrics(counts, ["road", "car"]).overall["mIoU"].value
    0.5
    """
    metrics = PixelMetrics.of([("", counts)], names, background=background, drop_background=drop_background)
    values = metrics.scores()
    return PixelScores(
        {name: metrics.measured(MetricRef(name=name), values) for name in MAP_METRICS},
        tuple(
            PixelClassRow(
                name=name,
                gt_pixels=int(values.gt[k]),
                pred_pixels=int(values.pred[k]),
                values={
                    metric: metrics.measured(MetricRef(name=metric, class_name=name), values, k)
                    for metric in MAP_CLASS_METRICS
                },
            )
            for k, name in enumerate(names)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PixelSums:
    """Pixels of each class, shape (K,) each: in the ground truth, in the prediction, and on both sides at once."""

    gt: IntArray
    pred: IntArray
    hits: IntArray
    counted: int  # all that count
    in_means: BoolArray  # the classes that means are taken over

    @property
    def ratios(self) -> dict[str, FloatArray]:
        """The metrics of the classes; NaN where a denominator is 0."""
        gt, pred, hits = self.gt, self.pred, self.hits
        return {
            "IoU": _ratio(hits, gt + pred - hits),
            "precision": _ratio(hits, pred),
            "recall": _ratio(hits, gt),
            "Dice": _ratio(2 * hits, gt + pred),
        }

    @property
    def means(self) -> dict[str, float]:
        """The metrics over all classes."""
        ratios = self.ratios
        present, in_gt = self.in_means & ~np.isnan(ratios["IoU"]), self.in_means & (self.gt > 0)
        # A class on neither side is in no mean: its IoU is undefined, and 0 or 1 in its place would both be wrong.
        return {
            "mIoU": _mean(ratios["IoU"][present]),
            "fwIoU": _mean(ratios["IoU"][in_gt], self.gt[in_gt]),
            "pixel_accuracy": int(self.hits.sum()) / self.counted if self.counted else math.nan,
            "mean_accuracy": _mean(ratios["recall"][in_gt]),
        }


@dataclass(frozen=True, slots=True, eq=False)
class PixelMetrics:
    """Counts of each label map, for metrics of any of them: pixels (n,) of a pair of classes in one image."""

    class_names: tuple[str, ...]
    image_names: tuple[str, ...]
    background: int | None  # class that the means ignore
    is_dropped: bool  # whether its pixels are in no count
    image: IntArray
    counts: ConfusionCounts

    @classmethod
    def of(
        cls,
        by_image: Sequence[tuple[str, ConfusionCounts]],
        names: Sequence[str],
        *,
        background: int | None = None,
        drop_background: str | None = None,
    ) -> PixelMetrics:
        """Put the counts of images together, of class indices."""
        image = np.repeat(np.arange(len(by_image)), [len(counts.pixels) for _, counts in by_image])
        parts = (np.concatenate([_NONE, *(getattr(part, side) for _, part in by_image)]) for side in _SIDES)
        counts = ConfusionCounts(*parts)
        kept = counts.gt != NO_CLASS
        if drop_background in ("gt", "both"):
            kept &= counts.gt != background
        if drop_background in ("pred", "both"):
            kept &= counts.pred != background
        images = tuple(name for name, _ in by_image)
        return cls(tuple(names), images, background, bool(drop_background), image[kept], counts.take(kept))

    def restrict(self, images: Sequence[int]) -> PixelMetrics:
        """Return the metrics of some images alone, given as ascending rows."""
        kept = np.isin(self.image, images)
        image = np.searchsorted(images, self.image[kept])
        names = tuple(self.image_names[row] for row in images)
        return replace(self, image_names=names, image=image, counts=self.counts.take(kept))

    def scores(self, weights: IntArray | None = None) -> PixelSums:
        """Sum the pixels, for weights of the images where these are given."""
        counts, n = self.counts, len(self.class_names)
        pixels = counts.pixels if weights is None else counts.pixels * weights[self.image]
        has_class, right = counts.pred != NO_CLASS, counts.gt == counts.pred
        # Whole numbers, which are exact in float64 below 2**53.
        gt, pred, hits = (
            np.bincount(label, pixel, minlength=n).astype(np.int64)
            for label, pixel in (
                (counts.gt, pixels),
                (counts.pred[has_class], pixels[has_class]),
                (counts.gt[right], pixels[right]),
            )
        )
        in_means = np.arange(n) != (NO_CLASS if self.background is None else self.background)
        return PixelSums(gt, pred, hits, int(pixels.sum()), in_means)

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure a metric; a ValueError when there is no such class."""
        return self.measured(ref, self.scores())

    def measured(self, ref: MetricRef, values: PixelSums, k: int | None = None) -> MetricValue:
        """Return one metric, of the class `k` where there is more than one of its name."""
        if ref.class_name is not None:
            k = self.class_names.index(ref.class_name) if k is None else k
            # A class whose pixels are dropped on one side or both has no score that could be compared with others.
            dropped = self.is_dropped and k == self.background
            value = math.nan if dropped else float(values.ratios[ref.name][k])
            return _value(ref, value, int(values.gt[k]), "dropped as background" if dropped else _UNDEFINED[ref.name])
        n = values.counted if ref.name == "pixel_accuracy" else int(values.gt[values.in_means].sum())
        return _value(ref, values.means[ref.name], n, _UNDEFINED[ref.name])

    def weighing(self, refs: Sequence[MetricRef] | None) -> PixelWeighing:
        """Return what measures draws of the images."""
        return PixelWeighing(self, refs)


class PixelWeighing:
    """Measures the means and every class, or some metrics, for weights of the images."""

    def __init__(self, metrics: PixelMetrics, refs: Sequence[MetricRef] | None) -> None:
        self._metrics = metrics
        labels = metrics.class_names
        of_classes = [MetricRef(name=name, class_name=label) for name in MAP_CLASS_METRICS for label in labels]
        self._refs = [*(MetricRef(name=name) for name in MAP_METRICS), *of_classes] if refs is None else refs
        index = {name: k for k, name in enumerate(labels)}
        self._places = [(ref.name, None if ref.class_name is None else index[ref.class_name]) for ref in self._refs]

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """The metrics, in the order of `measure`."""
        return tuple(self._refs)

    def objects(self, ref: MetricRef | None) -> tuple[IntArray, IntArray]:
        """Return image and class of the ground truth that a metric rests on, or of all."""
        metrics = self._metrics
        label, kept = metrics.counts.gt, np.ones(len(metrics.image), dtype=np.bool_)
        if ref is not None and ref.class_name is not None:
            kept = label == metrics.class_names.index(ref.class_name)
        return metrics.image[kept], label[kept]

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""
        values = self._metrics.scores(weights)
        found: dict[str, Any] = {**values.means, **values.ratios}
        return np.array([found[name] if k is None else found[name][k] for name, k in self._places])


_NONE = np.zeros(0, dtype=np.int64)
_SIDES = ("gt", "pred", "pixels")


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole != 0)
    return ratio


_UNDEFINED = {
    "mIoU": "no class is present",
    "fwIoU": "no ground truth",
    "pixel_accuracy": "no pixel counts",
    "mean_accuracy": "no ground truth",
    "IoU": "on neither side",
    "precision": "never predicted",
    "recall": "no ground truth",
    "Dice": "on neither side",
}


def _mean(values: FloatArray, weights: IntArray | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else math.nan


def _value(ref: MetricRef, value: float, n: int, reason: str) -> MetricValue:
    return MetricValue(ref=ref, value=value, n=n, reason=reason if math.isnan(value) else None)
