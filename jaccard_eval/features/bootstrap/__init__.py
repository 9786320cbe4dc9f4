"""Resampling of images: every metric at every draw, exactly, by weights on the match table; nothing is rescored."""

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
from jaccard_eval.data.metricref import METRICS, MetricRef, metric_bounds
from jaccard_eval.data.result import Estimate, PairedDelta, Resamples, Shown
from jaccard_eval.data.signature import FINGERPRINT_DIGITS
from jaccard_eval.errors import UsageError
from jaccard_eval.matching import IntArray
from jaccard_eval.matching.matchtable import ALL_SIZES
from jaccard_eval.metrics.detection import Averages, DetectionMetrics, class_refs, counted_value, point_of, summary_refs
from jaccard_eval.options import Bootstrap
from jaccard_eval.text import pluralise, quoted_value

Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Weighing(TypingProtocol):
    """Measures metrics at one draw after the other."""

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """The metrics, in the order of `measure`."""

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""

    def objects(self, ref: MetricRef | None) -> tuple[IntArray, IntArray]:
        """Return image and class of each object that a metric rests on, or of all."""


class Resampled(TypingProtocol):
    """What has images that can be drawn, besides the match table of an evaluation."""

    @property
    def image_names(self) -> Sequence[str]:
        """Name of each image."""

    def weighing(self, refs: Sequence[MetricRef] | None) -> Weighing:
        """Return what measures the summary and every class, or some metrics."""


POWER = 0.8  # of the smallest difference that a set can show: Cohen's convention, four times in five
# Of fewer images or groups, intervals of halves were not measured; of classes that fewer show, they hold the expected
# value less often than they name (docs/noise.md).
MIN_UNITS, MIN_SHOWING = 20, 5
FEW_SHOWING = 10  # images; where half of the classes are in fewer, halves do not show how AP depends on the set's size
BIASED = 0.1  # widths of the interval that the mean of halves is higher by: the value is then some 0.2 too high
HALVES, REPEATS = "halves", "percentile"  # methods, as documents name them


def resample(
    metrics: DetectionMetrics | Resampled,
    settings: Bootstrap,
    *,
    refs: Sequence[MetricRef] | None = None,
    groups: Sequence[str] | None = None,
    order: Sequence[str] | None = None,
    unit: str = "image",
    run: Run = map,
    method: str | None = HALVES,
    size: int | None = None,
    least: int | None = None,
    also: Sequence[MetricRef] = (),
) -> Resamples:
    """Measure the summary and every class, or some metrics, at each draw of the images, or of their `groups`.

    `order` has the names of the same images in the order that they are drawn in: two runs are paired by it, however
    each of them lists its images. `run` maps, in any number of threads; the result is the same. A `method` of None is
    that for differences: halves where half of the classes are rare, else draws with repeats. With a `size`, so many
    images or groups are drawn without repeats. Of fewer than `least` nothing is drawn. What is `also` measured comes
    before the summary, unless it is part of it.
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
    task = _Task(metrics, refs, also) if isinstance(metrics, DetectionMetrics) else metrics.weighing(refs)
    if method is None:
        method = HALVES if _shown(task, None, units, n_units).is_sparse else REPEATS
    # First, and in this thread: it prepares what all draws share.
    estimate = task.measure(np.ones(len(units), dtype=np.int64))

    # Every draw has a seed of its own, or shares it with the other half, so that any number of threads draws the same.
    def weights_of(i: int) -> IntArray:
        if size is not None:
            return subset_weights(units, n_units, size, (settings.rng, i))
        if method == REPEATS:
            return draw_weights(units, n_units, (settings.rng, i))
        return half_weights(units, n_units, (settings.rng, i // 2))[i % 2]

    n_draws = settings.n_resamples if n_units >= (MIN_UNITS if least is None else least) else 0
    values = np.array(list(run(task.measure, map(weights_of, range(n_draws))))).reshape(n_draws, len(estimate))
    if method == HALVES and size is None:
        # Half of the images have half of the counts.
        counted = [METRICS[ref.name].kind == "count" for ref in task.refs]
        sizes = np.array([n_units // 2, n_units - n_units // 2])[np.arange(n_draws) % 2]
        values[:, counted] *= (n_units / sizes)[:, None]
    return Resamples(
        settings=settings,
        method=method,
        unit=unit,
        n_units=n_units,
        refs=tuple(map(str, task.refs)),
        estimate=estimate,
        values=values,
        grouping=grouping,
        shown=tuple(_shown(task, ref, units, n_units) for ref in task.refs),
    )


def draw_weights(units: IntArray, n_units: int, seed: tuple[int, int]) -> IntArray:
    """Draw as many units as there are, with replacement; return how often that of each image (n,) was drawn."""
    drawn = np.random.default_rng(seed).integers(0, n_units, n_units)
    return np.bincount(drawn, minlength=n_units)[units]


def subset_weights(units: IntArray, n_units: int, size: int, seed: tuple[int, int]) -> IntArray:
    """Draw some units without repeats; return whether that of each image (n,) was drawn."""
    drawn = np.zeros(n_units, dtype=np.int64)
    drawn[np.random.default_rng(seed).permutation(n_units)[:size]] = 1
    return drawn[units]


def half_weights(units: IntArray, n_units: int, seed: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """Split the units into halves; return for either whether the unit of each image (n,) is in it."""
    # Without repeats no hit counts itself twice, and classes vanish as they do in other sets. A mean over images varies
    # among halves as much as it does among sets.
    first = subset_weights(units, n_units, n_units // 2, seed)
    return first, 1 - first


def _shown(task: Weighing, ref: MetricRef | None, units: IntArray, n_units: int) -> Shown:
    """Count the units that show what a metric rests on, its classes, and those of them that few units show."""
    image, label = task.objects(ref)
    unit = units[image]
    # A class once for each unit that shows it.
    count = np.bincount(np.unique(label.astype(np.int64) * n_units + unit) // max(n_units, 1))
    top = 1.0 if ref is None else METRICS[ref.name].bounds[1]
    return Shown(len(np.unique(unit)), int(((count > 0) & (count < FEW_SHOWING)).sum()), int((count > 0).sum()), top)


def estimates(resamples: Resamples) -> dict[str, Estimate]:
    """Return what the halves show of each metric."""
    values = resamples.values
    defined = ~np.isnan(values)
    n = defined.sum(axis=0)
    mean = np.where(defined, values, 0).sum(axis=0) / np.maximum(n, 1)
    # About the mean of the halves, not about the value: halves of AP are higher.
    error = np.sqrt((np.where(defined, values - mean, 0) ** 2).sum(axis=0) / np.maximum(n - 1, 1))
    moments = zip(n.tolist(), mean.tolist(), error.tolist(), strict=True)
    columns = zip(resamples.refs, resamples.estimate.tolist(), resamples.shown, moments, strict=True)
    return {ref: _estimate(resamples, value, shown, *found) for ref, value, shown, found in columns}


def _estimate(  # noqa: PLR0917 - count, mean and standard error of the halves
    resamples: Resamples, value: float, shown: Shown, n: int, mean: float, error: float
) -> Estimate:
    if math.isnan(value):
        return Estimate()
    reason = refusal(resamples, n, shown)
    if reason is None and value in (0.0, shown.top):
        reason = f"the value is {value:g}"
    if reason is None and error == 0:
        reason = "the value is the same in all halves"
    if reason is not None:
        return Estimate(refused=reason)
    level = resamples.settings.confidence_level
    wide = error * t_quantile((1 + level) / 2, degrees(resamples, n))
    # On the scale of log-odds, and of counts on that of logarithms: the ends stay within the bounds, around the value.
    if math.isinf(shown.top):
        interval = value * math.exp(-wide / value), value * math.exp(wide / value)
    else:
        odds, by = math.log(value / (1 - value)), wide / (value * (1 - value))
        interval = _expit(odds - by), _expit(odds + by)
    # What the metric gains where the set is halved. It falls with n between 1 / root n (step / (root 2 - 1)) and 1 / n.
    step = max(mean - value, 0.0)
    sparse, population = None, None
    if shown.is_sparse:
        sparse = f"{shown.rare:,} of {shown.classes:,} classes are shown by fewer than {FEW_SHOWING} {resamples.unit}s"
    else:
        low, high = value - step / (math.sqrt(2) - 1) - wide, value - step + wide
        population = max(low, 0.0), min(high, shown.top)
    biased = step > BIASED * (interval[1] - interval[0])
    return Estimate(interval=interval, halves=mean, error=error, population=population, unknown=sparse, biased=biased)


def refusal(resamples: Resamples, n: int, shown: Shown) -> str | None:
    """Return why there is no interval, where the images do not support one; `n` draws define the metric."""
    unit = resamples.unit
    if resamples.n_units < MIN_UNITS:
        return f"{pluralise(resamples.n_units, unit)}; an interval needs {MIN_UNITS}"
    if shown.units < MIN_SHOWING:
        return f"objects in {pluralise(shown.units, unit)}; an interval needs {MIN_SHOWING}"
    if n < 0.9 * len(resamples.values):
        return f"undefined in {len(resamples.values) - n:,} of {len(resamples.values):,} draws"
    return None


def degrees(resamples: Resamples, n: int) -> int:
    """Return the degrees of freedom of a standard error that n halves give."""
    return max(min(resamples.n_units - 1, n // 2), 1)


def t_quantile(share: float, freedom: int) -> float:
    """Return a quantile of Student's t (Abramowitz and Stegun 1964, 26.7.5), within 1 % from 5 degrees of freedom."""
    z = NormalDist().inv_cdf(share)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def t_probability(t: float, freedom: int) -> float:
    """Return the two-sided probability of a smaller Student's t (Abramowitz and Stegun 1964, 26.7.8)."""
    z = abs(t) * (1 - 1 / (4 * freedom)) / math.sqrt(1 + t**2 / (2 * freedom))
    return 2 * NormalDist().cdf(z) - 1


def _expit(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def percentile_interval(values: FloatArray, confidence_level: float) -> Interval | None:
    """Return the quantiles that cut off half of what the confidence level leaves, at either end; NaN is ignored."""
    # For differences of models alone, whose bias is small where they are alike: docs/noise.md has what they hold.
    defined = values[~np.isnan(values)]
    if len(defined) == 0:
        return None
    low, high = np.quantile(defined, [(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    return float(low), float(high)


def paired_deltas(base: Resamples, other: Resamples) -> tuple[PairedDelta, ...]:
    """Compare two models, metric by metric, over the same draws of the same images.

    Metrics that `other` lacks are skipped; a UsageError when they were not drawn alike.
    """
    other_settings, base_settings = other.drawn_document(), base.drawn_document()
    differing = [name for name in base_settings if other_settings[name] != base_settings[name]]
    if differing:
        listed = ", ".join(
            f"{name} {quoted_value(base_settings[name])} and {quoted_value(other_settings[name])}" for name in differing
        )
        raise UsageError(f"resamples are not paired: {listed}")
    column = {ref: j for j, ref in enumerate(other.refs)}
    deltas = []
    for i, ref in enumerate(base.refs):
        if ref not in column:
            continue
        j = column[ref]
        # Draw by draw, not interval by interval: images that are hard for both models cancel out.
        delta = other.values[:, j] - base.values[:, i]
        delta = delta[~np.isnan(delta)]
        value, before = float(other.estimate[j]), float(base.estimate[i])
        interval, probability, quantile = _tested(base, value - before, delta)
        if interval is not None:
            # A difference of values within bounds is at most as large as these are apart.
            least, most = metric_bounds(ref)
            interval = max(interval[0], least - most), min(interval[1], most - least)
        # A two-sided test finds a difference of so many standard errors with the power stated, as far as it is normal.
        errors = quantile + NormalDist().inv_cdf(POWER)
        deltas.append(
            PairedDelta(
                ref=ref,
                base=before,
                value=value,
                delta=value - before,
                interval=interval,
                probability=probability if len(delta) else math.nan,
                detectable=float(np.std(delta, ddof=1)) * errors if len(delta) > 1 else math.nan,
                n_resamples=len(delta),
                refused=refusal(base, len(delta), base.shown[i]) if base.shown else None,
            )
        )
    return tuple(deltas)


def _tested(drawn: Resamples, delta: float, draws: FloatArray) -> tuple[Interval | None, float, float]:
    """Return the interval of a difference, 1 minus its two-sided p-value, and the quantile of a standard error."""
    level, n = drawn.settings.confidence_level, len(draws)
    if drawn.method == REPEATS:
        smaller_tail = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
        # The sample itself counts as one more resample, so that nothing is ever certain (Davison and Hinkley 1997,
        # section 4.2).
        probability = max(0.0, 1 - 2 * (smaller_tail + 1) / (n + 1))
        return percentile_interval(draws, level), probability, NormalDist().inv_cdf((1 + level) / 2)
    freedom = degrees(drawn, n)
    quantile = t_quantile((1 + level) / 2, freedom)
    error = float(np.std(draws, ddof=1)) if n > 1 else math.nan
    if math.isnan(error) or math.isnan(delta):
        return None, math.nan, quantile
    # Where all halves differ alike, nothing is certain either: it is as if one more did not.
    certain = 1 - 2 / (n + 1) if delta else 0.0
    probability = t_probability(delta / error, freedom) if error else certain
    return (delta - quantile * error, delta + quantile * error), probability, quantile


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that allow for how many there are (Holm 1979); NaN stays."""
    order = sorted((row for row, p in enumerate(p_values) if not math.isnan(p)), key=p_values.__getitem__)
    adjusted, highest = [*p_values], 0.0
    for place, row in enumerate(order):
        adjusted[row] = highest = max(highest, min((len(order) - place) * p_values[row], 1.0))
    return adjusted


def significant_drop(delta: PairedDelta, limit: float) -> bool:
    """Whether a metric fell by more than `limit` and the interval of the difference excludes 0."""
    return -delta.delta > limit and delta.interval is not None and delta.interval[1] < 0


def non_inferior(delta: PairedDelta, margin: float) -> bool:
    """Whether a metric fell by less than `margin`, and so it did at the confidence of the interval."""
    # A percentile interval need not hold the difference itself.
    return delta.interval is not None and min(delta.delta, delta.interval[0]) > -margin


class _Task:
    """Measures one draw; what all of them share is prepared by the first, which has to end before the others."""

    def __init__(
        self, metrics: DetectionMetrics, refs: Sequence[MetricRef] | None, also: Sequence[MetricRef] = ()
    ) -> None:
        self._metrics, self._axes = metrics, metrics.axes
        self._curves = metrics.curves
        # Areas that are unknown stay so in every draw.
        known = [ref for ref in summary_refs(metrics.protocol) if metrics.area_known or ref.area is None]
        self._single = [*(ref for ref in also if ref not in known), *known] if refs is None else refs
        self._of_class = class_refs(metrics.protocol) if refs is None else ()

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """The metrics, in the order of `measure`."""
        of_classes = (replace(ref, class_name=name) for ref in self._of_class for name in self._axes.class_names)
        return (*self._single, *of_classes)

    def objects(self, ref: MetricRef | None) -> tuple[IntArray, IntArray]:
        """Return image and class of each object that a metric rests on, or of all."""
        ranking = self._curves.ranking
        kept = ranking.gt_counts[ALL_SIZES if ref is None else self._axes.area(ref)]
        of_frequency = None if ref is None else self._axes.classes(ref)
        if of_frequency is not None:
            kept = kept & np.isin(ranking.gt_label, of_frequency)
        elif ref is not None and ref.class_name is not None:
            kept = kept & (ranking.gt_label == self._axes.label(ref))
        return ranking.gt_image[kept], ranking.gt_label[kept]

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""
        curves = self._curves.weighted(weights)
        averages = Averages(curves, self._axes)

        def value(ref: MetricRef) -> float:
            if METRICS[ref.name].kind == "average":
                return averages.mean(ref)
            if METRICS[ref.name].on == "matches":
                return self._metrics.mean_overlap(self._axes.resolved(ref), weights)
            return counted_value(curves, self._axes, ref, point_of(curves, self._axes, ref))

        of_classes = [
            averages.class_means(ref)
            if METRICS[ref.name].kind == "average"
            else np.array([value(replace(ref, class_name=name)) for name in self._axes.class_names])
            for ref in self._of_class
        ]
        single = [value(ref) for ref in self._single]
        return np.concatenate([single, *of_classes])
