"""Label maps: which classes were predicted for the pixels of which, as counts that add up, and the scores from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MAP_METRICS, MetricRef
from jaccard_eval.errors import UsageError
from jaccard_eval.features.pixels.result import PixelClassRow

IntArray = npt.NDArray[np.int64]
Pixels = npt.NDArray[Any]  # integers, any size

NO_CLASS = -1  # of a pixel that is to be ignored
TABLE_SIZE = 2**16  # values up to those of 16 bits are looked up, others sorted
BLOCK = 2**18  # pixels counted at once, so that what is made on the way stays in the cache
FEW_RUNS = 0.2  # share of the pixels; with more runs of equal pixels than that, counting every pixel is faster


@dataclass(frozen=True, slots=True, eq=False)
class ConfusionCounts:
    """Pixels of each pair of ground-truth and predicted class that occurs; counts of several maps add up.

    Only pairs that occur take memory, so the number of classes is not bounded. Sums of counts do not depend on order
    or grouping: any partition of the maps gives the same result.

    Parameters
    ----------
    gt, pred : ndarray of int64, shape (n,)
        Class, or value of the map, of each side; pairs are distinct and ascend. `NO_CLASS` for what is no class.
    pixels : ndarray of int64, shape (n,)
        How many pixels have this pair.
    """

    gt: IntArray
    pred: IntArray
    pixels: IntArray

    @classmethod
    def from_maps(cls, gt: Pixels, pred: Pixels) -> ConfusionCounts:
        """Count the pairs of two label maps.

        Parameters
        ----------
        gt, pred : ndarray of integers, same shape
            Value of each pixel.

        Returns
        -------
        ConfusionCounts

        Raises
        ------
        UsageError
            When shapes differ or a map does not hold integers.

        Examples
        --------
        >>> counts = ConfusionCounts.from_maps(np.array([[0, 1, 1]]), np.array([[0, 1, 0]]))
        >>> counts.gt.tolist(), counts.pred.tolist(), counts.pixels.tolist()
        ([0, 1, 1], [0, 0, 1], [1, 1, 1])
        """
        if gt.shape != pred.shape:
            raise UsageError(f"label maps have different shapes: {gt.shape} and {pred.shape}")
        for one in (gt, pred):
            if one.dtype.kind not in "biu":
                raise UsageError(f"label maps must hold integers, got {one.dtype}")
        gt, pred = _narrowed(gt), _narrowed(pred)
        if gt.dtype == pred.dtype == np.uint8:
            return _count_small(gt, pred)
        return cls.merge(_count_large(*block) for block in _blocks(gt, pred))

    @classmethod
    def merge(cls, parts: Iterable[ConfusionCounts]) -> ConfusionCounts:
        """Return the sum of counts; nothing counts nothing."""
        many = [_NOTHING, *parts]
        return cls.from_pairs(*(np.concatenate([getattr(one, name) for one in many]) for name in cls.__slots__))

    @classmethod
    def from_pairs(cls, gt: IntArray, pred: IntArray, pixels: IntArray) -> ConfusionCounts:
        """Make counts of pairs in any order, which may repeat."""
        order = np.lexsort((pred, gt))
        gt, pred, pixels = gt[order], pred[order], pixels[order]
        is_first = np.ones(len(gt), dtype=np.bool_)
        is_first[1:] = (gt[1:] != gt[:-1]) | (pred[1:] != pred[:-1])
        first = np.flatnonzero(is_first)
        total = np.add.reduceat(pixels, first) if len(first) else pixels
        return cls(gt[first], pred[first], total)

    def __add__(self, other: ConfusionCounts) -> ConfusionCounts:
        return ConfusionCounts.merge((self, other))

    def take(self, rows: BoolArray) -> ConfusionCounts:
        """Return the pairs that `rows` is true for."""
        return ConfusionCounts(self.gt[rows], self.pred[rows], self.pixels[rows])

    @property
    def classes(self) -> IntArray:
        """The classes that either side has, ascending."""
        found: IntArray = np.setdiff1d(np.concatenate((self.gt, self.pred)), [NO_CLASS])
        return found

    def indexed(self, classes: IntArray) -> ConfusionCounts:
        """Return the counts with each class replaced by its index in `classes`, which ascend and have them all."""
        gt, pred = (
            np.where(side == NO_CLASS, NO_CLASS, np.searchsorted(classes, side)) for side in (self.gt, self.pred)
        )
        return ConfusionCounts(gt, pred, self.pixels)

    def matrix(self, n_classes: int) -> IntArray:
        """Return the confusion matrix, shape (n_classes, n_classes + 1): rows are ground truth, columns predictions.

        The last column counts pixels whose prediction is no class. Ignored pixels are in no cell.
        """
        kept = self.take(self.gt != NO_CLASS)
        matrix = np.zeros((n_classes, n_classes + 1), dtype=np.int64)
        matrix[kept.gt, kept.pred] = kept.pixels  # NO_CLASS is the last column
        return matrix


_EMPTY = np.zeros(0, dtype=np.int64)
_NOTHING = ConfusionCounts(_EMPTY, _EMPTY, _EMPTY)


def _narrowed(values: Pixels) -> Pixels:
    """Return flat values, in 8 bits where they fit, which are counted fastest."""
    if values.dtype == np.uint8 or not values.size or values.min() < 0 or values.max() > 255:
        return values.ravel()
    return values.astype(np.uint8).ravel()


def _blocks(gt: Pixels, pred: Pixels) -> Iterator[tuple[Pixels, Pixels]]:
    for start in range(0, len(gt), BLOCK):
        yield gt[start : start + BLOCK], pred[start : start + BLOCK]


def _count_small(gt: Pixels, pred: Pixels) -> ConfusionCounts:
    """Count flat maps of 8 bits in a histogram over 256 * gt + pred."""
    histograms = [_histogram(*block) for block in _blocks(gt, pred)]
    total = np.zeros(max(map(len, histograms), default=0), dtype=np.int64)
    for counts in histograms:
        total[: len(counts)] += counts
    index = np.flatnonzero(total)
    return ConfusionCounts(index >> 8, index & 255, total[index])


def _histogram(gt: Pixels, pred: Pixels) -> IntArray:
    """Count a block by runs of equal pairs, for neighbours in label maps are mostly alike; else pixel by pixel."""
    starts_run = _run_starts(gt, pred)
    if np.count_nonzero(starts_run) > FEW_RUNS * len(gt):
        return np.bincount((gt.astype(np.uint16) << 8) | pred)
    starts, lengths = _runs(starts_run)
    index = (gt[starts].astype(np.intp) << 8) | pred[starts]
    return np.bincount(index, weights=lengths).astype(np.int64)  # float64 is exact below 2**53


def _count_large(gt: Pixels, pred: Pixels) -> ConfusionCounts:
    """Count a block of values of any size by its runs."""
    starts, lengths = _runs(_run_starts(gt, pred))
    gt_values, gt_rows = _distinct(gt[starts])
    pred_values, pred_rows = _distinct(pred[starts])
    pairs, rows = _distinct(gt_rows * len(pred_values) + pred_rows)
    pixels = np.bincount(rows, weights=lengths).astype(np.int64)
    gt_of_pair, pred_of_pair = np.divmod(pairs, len(pred_values))
    return ConfusionCounts(gt_values[gt_of_pair], pred_values[pred_of_pair], pixels)


def _distinct(values: Pixels) -> tuple[IntArray, IntArray]:
    """Return the distinct values, ascending, and the row of each value in them; by a table where it can be small."""
    if values.min() < 0 or values.max() >= TABLE_SIZE:
        distinct, rows = np.unique(values, return_inverse=True)
        return distinct.astype(np.int64), rows
    occurs = np.zeros(int(values.max()) + 1, dtype=np.bool_)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def _run_starts(gt: Pixels, pred: Pixels) -> BoolArray:
    """Return which pixels, shape (n,), differ on either side from the one before; the first does."""
    starts_run = np.empty(len(gt), dtype=np.bool_)
    starts_run[0] = True
    np.not_equal(gt[1:], gt[:-1], out=starts_run[1:])
    starts_run[1:] |= pred[1:] != pred[:-1]
    return starts_run


def _runs(starts_run: BoolArray) -> tuple[IntArray, IntArray]:
    """Return first pixel and length of each run."""
    starts = np.flatnonzero(starts_run)
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = len(starts_run) - starts[-1]
    return starts, lengths


@dataclass(frozen=True, slots=True, eq=False)
class PixelMetrics:
    """Scores of label maps: `overall` by name, and one row per class."""

    overall: dict[str, MetricValue]
    per_class: tuple[PixelClassRow, ...]


def pixel_metrics(
    counts: ConfusionCounts, names: Sequence[str], *, background: int | None = None, drop_background: str | None = None
) -> PixelMetrics:
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
        Index of the class that the means leave out.
    drop_background : {"gt", "pred", "both"}, optional
        Whose background pixels are not counted at all; see `PixelProtocol`.

    Returns
    -------
    PixelMetrics
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
    kept = _counted(counts, background, drop_background)
    tally = _Tally.of(kept, len(names))
    in_means = np.arange(len(names)) != (NO_CLASS if background is None else background)
    dropped = background if drop_background else None
    rows = tuple(_class_row(tally, k, name, is_dropped=k == dropped) for k, name in enumerate(names))
    return PixelMetrics(_overall(tally, in_means, int(kept.pixels.sum())), rows)


def _counted(counts: ConfusionCounts, background: int | None, drop: str | None) -> ConfusionCounts:
    """Leave out pixels that are ignored, and those of the background that a rule drops."""
    rows = counts.gt != NO_CLASS
    if drop in ("gt", "both"):
        rows &= counts.gt != background
    if drop in ("pred", "both"):
        rows &= counts.pred != background
    return counts.take(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Tally:
    """Pixels of each class, shape (K,) each: right, in the ground truth, in the prediction; and the ratios of these."""

    hits: IntArray
    gt: IntArray
    pred: IntArray
    ratios: dict[str, FloatArray]

    @classmethod
    def of(cls, counts: ConfusionCounts, n_classes: int) -> _Tally:
        right = counts.take(counts.gt == counts.pred)
        predicted = counts.take(counts.pred != NO_CLASS)
        hits = _sums(right.gt, right.pixels, n_classes)
        gt = _sums(counts.gt, counts.pixels, n_classes)
        pred = _sums(predicted.pred, predicted.pixels, n_classes)
        ratios = {
            "IoU": _ratio(hits, gt + pred - hits),
            "precision": _ratio(hits, pred),
            "recall": _ratio(hits, gt),
            "Dice": _ratio(2 * hits, gt + pred),
        }
        return cls(hits, gt, pred, ratios)


def _sums(rows: IntArray, pixels: IntArray, n_classes: int) -> IntArray:
    total = np.zeros(n_classes, dtype=np.int64)
    np.add.at(total, rows, pixels)
    return total


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole != 0)
    return ratio


_UNDEFINED = {
    "IoU": "on neither side",
    "precision": "never predicted",
    "recall": "no ground truth",
    "Dice": "on neither side",
}


def _class_row(tally: _Tally, k: int, name: str, *, is_dropped: bool) -> PixelClassRow:
    n = int(tally.gt[k])
    values = {}
    for metric, ratio in tally.ratios.items():
        value = math.nan if is_dropped else float(ratio[k])
        reason = "dropped as background" if is_dropped else _UNDEFINED[metric]
        ref = MetricRef(name=metric, class_name=name)
        values[metric] = _value(ref, value, n, reason)
    return PixelClassRow(name=name, gt_pixels=n, pred_pixels=int(tally.pred[k]), values=values)


def _overall(tally: _Tally, in_means: BoolArray, n_counted: int) -> dict[str, MetricValue]:
    iou, recall = tally.ratios["IoU"], tally.ratios["recall"]
    present = in_means & ~np.isnan(iou)
    in_gt = in_means & (tally.gt > 0)
    weight = tally.gt[in_gt]
    n = int(weight.sum())
    values = {
        "mIoU": (_mean(iou[present]), n, "no class is present"),
        "fwIoU": (_mean(iou[in_gt], weight), n, "no ground truth"),
        "pixel_accuracy": (int(tally.hits.sum()) / n_counted if n_counted else math.nan, n_counted, "no pixel counts"),
        "mean_accuracy": (_mean(recall[in_gt]), n, "no ground truth"),
    }
    return {name: _value(MetricRef(name=name), *values[name]) for name in MAP_METRICS}


def _mean(values: FloatArray, weights: IntArray | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else math.nan


def _value(ref: MetricRef, value: float, n: int, reason: str) -> MetricValue:
    return MetricValue(ref=ref, value=value, n=n, reason=reason if math.isnan(value) else None)
