"""Label maps: the scores, from how many pixels of which class were predicted as which."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MAP_METRICS, MetricRef
from jaccard_eval.features.pixels.result import PixelClassRow
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS, ConfusionCounts, IntArray


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
        Index of the class that the means ignore.
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
    kept = counts.gt != NO_CLASS
    if drop_background in ("gt", "both"):
        kept &= counts.gt != background
    if drop_background in ("pred", "both"):
        kept &= counts.pred != background
    counts = counts.take(kept)
    predicted = counts.take(counts.pred != NO_CLASS)
    right = predicted.take(predicted.gt == predicted.pred)
    # Pixels of each class, shape (K,) each: in the ground truth, in the prediction, and on both sides at once.
    gt, pred, hits = np.zeros((3, len(names)), dtype=np.int64)
    np.add.at(gt, counts.gt, counts.pixels)
    np.add.at(pred, predicted.pred, predicted.pixels)
    np.add.at(hits, right.gt, right.pixels)
    ratios = {
        "IoU": _ratio(hits, gt + pred - hits),
        "precision": _ratio(hits, pred),
        "recall": _ratio(hits, gt),
        "Dice": _ratio(2 * hits, gt + pred),
    }
    rows = []
    for k, name in enumerate(names):
        # A class whose pixels are dropped on one side or both has no score that could be compared with others.
        is_dropped = bool(drop_background) and k == background
        values = {}
        for metric, ratio in ratios.items():
            value = math.nan if is_dropped else float(ratio[k])
            reason = "dropped as background" if is_dropped else _UNDEFINED[metric]
            values[metric] = _value(MetricRef(name=metric, class_name=name), value, int(gt[k]), reason)
        rows.append(PixelClassRow(name=name, gt_pixels=int(gt[k]), pred_pixels=int(pred[k]), values=values))
    in_means = np.arange(len(names)) != (NO_CLASS if background is None else background)
    present, in_gt = in_means & ~np.isnan(ratios["IoU"]), in_means & (gt > 0)
    n, n_counted = int(gt[in_gt].sum()), int(counts.pixels.sum())
    # A class on neither side is in no mean: its IoU is undefined, and 0 or 1 in its place would both be wrong.
    overall = {
        "mIoU": (_mean(ratios["IoU"][present]), n, "no class is present"),
        "fwIoU": (_mean(ratios["IoU"][in_gt], gt[in_gt]), n, "no ground truth"),
        "pixel_accuracy": (int(hits.sum()) / n_counted if n_counted else math.nan, n_counted, "no pixel counts"),
        "mean_accuracy": (_mean(ratios["recall"][in_gt]), n, "no ground truth"),
    }
    return PixelMetrics({name: _value(MetricRef(name=name), *overall[name]) for name in MAP_METRICS}, tuple(rows))


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole != 0)
    return ratio


_UNDEFINED = {
    "IoU": "on neither side",
    "precision": "never predicted",
    "recall": "no ground truth",
    "Dice": "on neither side",
}


def _mean(values: FloatArray, weights: IntArray | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else math.nan


def _value(ref: MetricRef, value: float, n: int, reason: str) -> MetricValue:
    return MetricValue(ref=ref, value=value, n=n, reason=reason if math.isnan(value) else None)
