"""Bootstrap over images: every metric at every resample, exactly, by weights on the match table; nothing is rescored.

Images (or groups of them, such as the frames of a video) are drawn with replacement; how often one was drawn is its
weight. Two models on the same images are resampled with the same weights, so that what is hard for both cancels out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any
from typing import Protocol as TypingProtocol

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import Interval
from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.data.result import Resamples
from jaccard_eval.data.signature import FINGERPRINT_DIGITS
from jaccard_eval.data.verdict import PairedDelta
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.averages import Averages
from jaccard_eval.metrics.counts import point_of, point_value
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs
from jaccard_eval.options import Bootstrap
from jaccard_eval.text import quoted_value

Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Weighing(TypingProtocol):
    """Measures metrics at one resample after the other."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of `measure`."""

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""


class Resampled(TypingProtocol):
    """What has images that can be drawn, besides the match table of an evaluation."""

    @property
    def image_names(self) -> Sequence[str]:
        """Name of each image."""

    def weighing(self, refs: Sequence[MetricRef] | None) -> Weighing:
        """Return what measures the summary and every class, or some metrics."""


POWER = 0.8  # of the smallest difference that a set can show: Cohen's convention, four times in five


def resample(
    metrics: DetectionMetrics | Resampled,
    settings: Bootstrap,
    *,
    refs: Sequence[MetricRef] | None = None,
    groups: Sequence[str] | None = None,
    order: Sequence[str] | None = None,
    unit: str = "image",
    run: Run = map,
) -> Resamples:
    """Measure the summary and every class, or some metrics, at each resample of the images, or of their `groups`.

    `order` has the names of the same images in the order that they are drawn in: two runs are paired by it, however
    each of them lists its images. `run` maps, in any number of threads; the result is the same.
    """
    names, grouping = metrics.image_names, None
    if groups is not None:
        units = np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1].ravel()
        # Sorted, so that the order of the images in a file makes no other signature.
        rows = sorted(f"{name}\t{group}" for name, group in zip(names, groups, strict=True))
        digest = hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass"))
        grouping = digest.hexdigest()[:FINGERPRINT_DIGITS]
    else:
        place = {name: i for i, name in enumerate(order or names)}
        units = np.array([place[name] for name in names], dtype=np.int64)
    n_units = int(units.max(initial=-1)) + 1
    if n_units < 2:
        raise UsageError(f"the bootstrap needs at least 2 {unit}s, got {n_units}")
    task = _Task(metrics, refs) if isinstance(metrics, DetectionMetrics) else metrics.weighing(refs)
    # First, and in this thread: it prepares what all resamples share.
    estimate = task.measure(np.ones(len(units), dtype=np.int64))
    # Every resample has a seed of its own, so that any number of threads draws the same.
    weights = (draw_weights(units, n_units, (settings.rng, i)) for i in range(settings.n_resamples))
    values = np.stack(list(run(task.measure, weights)))
    return Resamples(
        settings=settings,
        unit=unit,
        n_units=n_units,
        refs=task.names,
        estimate=estimate,
        values=values,
        grouping=grouping,
    )


def draw_weights(units: IntArray, n_units: int, seed: tuple[int, int]) -> IntArray:
    """Draw as many units as there are, with replacement; return how often that of each image (n,) was drawn."""
    drawn = np.random.default_rng(seed).integers(0, n_units, n_units)
    return np.bincount(drawn, minlength=n_units)[units]


def intervals(resamples: Resamples) -> dict[str, Interval | None]:
    """Return the percentile interval of each metric over the resamples that define it; None where none does."""
    level, columns = resamples.settings.confidence_level, resamples.values.T
    return {ref: percentile_interval(column, level) for ref, column in zip(resamples.refs, columns, strict=True)}


def percentile_interval(values: FloatArray, confidence_level: float) -> Interval | None:
    """Return the quantiles that cut off half of what the confidence level leaves, at either end; NaN is ignored."""
    # Efron's percentile interval. BCa would correct for bias and skew, at the price of a jackknife over all images, and
    # its ends hang on fewer resamples the further it corrects.
    defined = values[~np.isnan(values)]
    if len(defined) == 0:
        return None
    low, high = np.quantile(defined, [(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    return float(low), float(high)


def paired_deltas(base: Resamples, other: Resamples) -> tuple[PairedDelta, ...]:
    """Compare two models, metric by metric, over the same resamples of the same images.

    Metrics that `other` lacks are skipped; a UsageError when they were not drawn alike.
    """
    other_settings, base_settings = other.to_document(), base.to_document()
    differing = [name for name in base_settings if other_settings[name] != base_settings[name]]
    if differing:
        listed = ", ".join(
            f"{name} {quoted_value(base_settings[name])} and {quoted_value(other_settings[name])}" for name in differing
        )
        raise UsageError(f"resamples are not paired: {listed}")
    level, normal = base.settings.confidence_level, NormalDist()
    # A two-sided test finds a difference of so many standard errors with the power stated, as far as it is normal.
    errors = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(POWER)
    column = {ref: j for j, ref in enumerate(other.refs)}
    deltas = []
    for i, ref in enumerate(base.refs):
        if ref not in column:
            continue
        j = column[ref]
        # Resample by resample, not interval by interval: images that are hard for both models cancel out.
        delta = other.values[:, j] - base.values[:, i]
        delta = delta[~np.isnan(delta)]
        smaller_tail = min(int((delta <= 0).sum()), int((delta >= 0).sum()))
        # 1 minus the two-sided p-value. The sample itself counts as one more resample, so that nothing is ever certain
        # (Davison and Hinkley 1997, section 4.2).
        probability = max(0.0, 1 - 2 * (smaller_tail + 1) / (len(delta) + 1))
        deltas.append(
            PairedDelta(
                ref=ref,
                base=float(base.estimate[i]),
                value=float(other.estimate[j]),
                delta=float(other.estimate[j] - base.estimate[i]),
                interval=percentile_interval(delta, level),
                probability=probability if len(delta) else math.nan,
                detectable=float(np.std(delta, ddof=1)) * errors if len(delta) > 1 else math.nan,
                n_resamples=len(delta),
            )
        )
    return tuple(deltas)


def significant_drop(delta: PairedDelta, limit: float) -> bool:
    """Whether a metric fell by more than `limit` and the interval of the difference excludes 0."""
    return -delta.delta > limit and delta.interval is not None and delta.interval[1] < 0


def non_inferior(delta: PairedDelta, margin: float) -> bool:
    """Whether a metric fell by less than `margin`, and so it did at the confidence of the interval."""
    # A percentile interval need not hold the difference itself.
    return delta.interval is not None and min(delta.delta, delta.interval[0]) > -margin


class _Task:
    """Measures one resample; what all of them share is prepared by the first, which has to end before the others."""

    def __init__(self, metrics: DetectionMetrics, refs: Sequence[MetricRef] | None) -> None:
        self._axes = metrics.axes
        self._curves = metrics.curves
        # Areas that are unknown stay so in every resample.
        known = [ref for ref in summary_refs(metrics.protocol) if metrics.area_known or ref.area is None]
        self._single = known if refs is None else refs
        self._of_class = class_refs(metrics.protocol) if refs is None else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of `measure`."""
        of_classes = (replace(ref, class_name=name) for ref in self._of_class for name in self._axes.class_names)
        return tuple(str(ref) for ref in (*self._single, *of_classes))

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""
        curves = self._curves.weighted(weights)
        averages = Averages(curves, self._axes)
        of_classes = [averages.class_means(ref) for ref in self._of_class]
        single = [
            averages.mean(ref)
            if METRICS[ref.name].kind == "average"
            else point_value(point_of(curves, self._axes, ref), ref.name, curves.n_images)
            for ref in self._single
        ]
        return np.concatenate([single, *of_classes])
