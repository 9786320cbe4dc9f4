"""The bootstrap: what is drawn, what intervals and paired differences are made of, and how often they are right."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from pictures import det, gt, metrics
from resampled import as_drawn, difference, draw_scene, repeat_images

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import Resamples, Shown
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap import (
    HALVES,
    REPEATS,
    draw_weights,
    estimates,
    half_weights,
    non_inferior,
    paired_deltas,
    percentile_interval,
    resample,
    significant_drop,
    subset_weights,
    t_probability,
    t_quantile,
)
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

FEW = Bootstrap(n_resamples=20, rng=7)
N = 24
SHOWN = Shown(20, 0, 1)
DROP = difference(0.5, 0.47, (-0.05, -0.01), probability=0.99, detectable=0.03)


def made_up(
    values: list[float], *, seed: int = 0, method: str = REPEATS, n_units: int = 20, shown: Shown = SHOWN, **keys: Any
) -> Resamples:
    column = np.array(values)[:, None]
    settings = Bootstrap(n_resamples=len(values), rng=seed)
    return Resamples(
        settings=settings,
        method=method,
        unit="image",
        n_units=n_units,
        refs=("AP",),
        shown=(shown,),
        values=column,
        **{"estimate": column.mean(axis=0), **keys},
    )


def three_images(found: str, close: str, missed: str) -> DetectionMetrics:
    truth = [gt("dog 0 0 10 10", image) for image in (found, close, missed)]
    boxes = zip(("0 0 10 10", "0 0 10 6", "50 0 10 10"), (0.9, 0.8, 0.7), (found, close, missed), strict=True)
    return metrics(truth, [det(f"dog {box}", score, image) for box, score, image in boxes])


def test_each_resample_is_the_evaluation_of_the_images_that_were_drawn() -> None:
    scene = draw_scene(3)
    drawn = resample(as_drawn(scene).measured, FEW, method=REPEATS, least=2)
    for i, row in enumerate(drawn.values):
        copied = repeat_images(scene, draw_weights(np.arange(6), 6, (7, i)))
        assert row == pytest.approx([copied[ref] for ref in drawn.refs], abs=1e-12, nan_ok=True)


def test_each_half_is_the_evaluation_of_its_images() -> None:
    scene, names = draw_scene(3, N), sorted(f"i{i}" for i in range(N))
    drawn = resample(as_drawn(scene, N).measured, FEW)
    for i, row in enumerate(drawn.values):
        weights = dict(zip(names, half_weights(np.arange(N), N, (7, i // 2))[i % 2].tolist(), strict=True))
        half = repeat_images(scene, [weights[f"i{i}"] for i in range(N)])
        assert row == pytest.approx([half[ref] for ref in drawn.refs], abs=1e-12, nan_ok=True)


def test_counts_of_a_half_are_scaled_to_the_whole_set() -> None:
    # Of 25 images, the halves have 12 and 13; both together have every hit once.
    drawn = resample(as_drawn(draw_scene(3, 25), 25).measured, FEW, refs=[MetricRef.parse("TP[iou=0.5,score=0]")])
    sizes = np.array([12, 13] * 10)
    hits = drawn.values[:, 0] * sizes / 25
    assert (hits[::2] + hits[1::2]).tolist() == pytest.approx([drawn.estimate[0]] * 10, abs=1e-9)


def test_halves_have_each_image_once_and_subsets_as_many_as_they_are_asked_for() -> None:
    for i in range(20):
        first, second = half_weights(np.arange(9), 9, (0, i))
        assert (first.sum(), (first + second).tolist()) == (4, [1] * 9)
        assert subset_weights(np.arange(9), 9, 3, (0, i)).sum() == 3


def test_halves_of_too_few_images_are_not_measured() -> None:
    drawn = resample(as_drawn(draw_scene(3)).measured, FEW)
    assert drawn.values.shape == (0, len(drawn.refs))
    found = estimates(drawn)["AP"]
    assert (found.interval, found.refused) == (None, "6 images; an interval needs 20")


def test_an_interval_by_hand() -> None:
    # The halves 0.4 and 0.6, twice each: their deviation is 0.1 * sqrt(4 / 3). With 4 // 2 = 2 degrees of freedom the
    # expansion gives t = 3.92 (a table 4.30); on the scale of log-odds 0.5 is 0, with a slope of 1 / (0.5 * 0.5).
    found = estimates(made_up([0.4, 0.6, 0.4, 0.6], method=HALVES))["AP"]
    odds = t_quantile(0.975, 2) * 0.1 * math.sqrt(4 / 3) / 0.25
    assert found.interval == pytest.approx((1 / (1 + math.exp(odds)), 1 / (1 + math.exp(-odds))), abs=1e-12)
    assert (found.halves, found.biased) == (pytest.approx(0.5), False)
    assert found.population == pytest.approx((0.5 - odds / 4, 0.5 + odds / 4), abs=1e-12)


def test_halves_that_are_higher_say_that_the_metric_depends_on_the_size_of_the_set() -> None:
    # 0.2 and halves of 0.25 on average: a step of 0.05.
    drawn = made_up([0.24, 0.26] * 10, method=HALVES, estimate=np.array([0.2]))
    found = estimates(drawn)["AP"]
    wide = t_quantile(0.975, 10) * 0.01 * math.sqrt(20 / 19)
    assert found.biased
    assert found.population == pytest.approx((0.2 - 0.05 / (math.sqrt(2) - 1) - wide, 0.15 + wide), abs=1e-12)
    sparse = estimates(replace(drawn, shown=(Shown(20, 3, 6),)))["AP"]
    assert (sparse.population, sparse.unknown) == (None, "3 of 6 classes are shown by fewer than 10 images")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"n_units": 19}, "19 images; an interval needs 20"),
        ({"shown": Shown(4, 1, 1)}, "objects in 4 images; an interval needs 5"),
        ({"estimate": np.array([0.0])}, "the value is 0"),
        ({"estimate": np.array([1.0])}, "the value is 1"),
        ({"values": np.full((9, 1), 0.5), "estimate": np.array([0.5])}, "the value is the same in all halves"),
        ({"values": np.array([[0.4, math.nan, 0.6, math.nan]]).T}, "undefined in 2 of 4 draws"),
    ],
)
def test_an_interval_is_refused_with_the_reason(keys: dict[str, Any], reason: str) -> None:
    drawn = replace(made_up([0.4, 0.6], method=HALVES), **{k: (v,) if k == "shown" else v for k, v in keys.items()})
    assert estimates(drawn)["AP"].refused == reason


def test_a_count_has_no_upper_bound() -> None:
    # On a scale of logarithms: 100 * exp(-w / 100) to 100 * exp(w / 100).
    drawn = made_up([90.0, 110.0] * 10, method=HALVES, shown=Shown(20, 0, 1, top=math.inf))
    wide = t_quantile(0.975, 10) * 10 * math.sqrt(20 / 19)
    assert estimates(drawn)["AP"].interval == pytest.approx(
        (100 * math.exp(-wide / 100), 100 * math.exp(wide / 100)), abs=1e-9
    )


@pytest.mark.parametrize(("freedom", "quantile"), [(5, 2.571), (10, 2.228), (19, 2.093), (30, 2.042), (100, 1.984)])
def test_quantiles_of_t_are_those_of_its_tables(freedom: int, quantile: float) -> None:
    # Abramowitz and Stegun 1964, table 26.10.
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, rel=0.01)
    assert t_probability(quantile, freedom) == pytest.approx(0.95, abs=0.003 if freedom > 5 else 0.01)


def test_a_paired_difference_over_halves_by_hand() -> None:
    # Differences 0.1 and 0.3, ten times each: 0.2, with a standard error of 0.1 * sqrt(20 / 19).
    base = made_up([0.4] * 20, method=HALVES)
    one = paired_deltas(base, made_up([0.5, 0.7] * 10, method=HALVES))[0]
    error = 0.1 * math.sqrt(20 / 19)
    wide = t_quantile(0.975, 10) * error
    assert one.interval == pytest.approx((0.2 - wide, 0.2 + wide), abs=1e-12)
    assert one.probability == pytest.approx(t_probability(0.2 / error, 10), abs=1e-12)
    assert one.detectable == pytest.approx(error * (t_quantile(0.975, 10) + 0.841621), abs=1e-6)


def test_differences_are_drawn_by_halves_where_half_of_the_classes_are_rare() -> None:
    few, many = (resample(as_drawn(draw_scene(3, n), n).measured, FEW, method=None, least=2) for n in (6, 60))
    assert (few.method, many.method) == (HALVES, REPEATS)


def test_the_estimate_is_the_metric_itself() -> None:
    result = as_drawn(draw_scene(3))
    drawn = resample(result.measured, FEW)
    np.testing.assert_array_equal(drawn.estimate, [result[ref] for ref in drawn.refs])


def test_any_number_of_workers_gives_the_same_resamples() -> None:
    measured = as_drawn(draw_scene(4, N), N).measured
    alone = resample(measured, FEW)
    together = resample(measured, FEW, run=partial(map_in_order, workers=3))
    np.testing.assert_array_equal(alone.values, together.values)


def test_more_resamples_begin_with_the_same_ones() -> None:
    measured = as_drawn(draw_scene(4, N), N).measured
    more = resample(measured, replace(FEW, n_resamples=25))
    np.testing.assert_array_equal(resample(measured, FEW).values, more.values[:20])


def test_as_many_units_are_drawn_as_there_are() -> None:
    assert [draw_weights(np.arange(9), 9, (0, i)).sum() for i in range(50)] == [9] * 50


def test_named_metrics_are_resampled_as_the_summary_is() -> None:
    measured = as_drawn(draw_scene(3, N), N).measured
    every = resample(measured, FEW)
    named = resample(measured, FEW, refs=[MetricRef.parse("AP50"), MetricRef.parse("AP")])
    assert named.refs == ("AP50", "AP")
    np.testing.assert_array_equal(named.values, every.values[:, [every.refs.index("AP50"), 0]])


def test_images_listed_in_another_order_are_drawn_alike_when_that_order_is_given() -> None:
    listed, swapped = (three_images(*names) for names in ("abc", "cba"))
    turned = DetectionMetrics(swapped.table, swapped.class_names, ("c", "b", "a"))
    drawn, again = (resample(side, FEW, order=listed.image_names, least=2) for side in (listed, turned))
    np.testing.assert_array_equal(again.values, drawn.values)


def test_images_of_a_group_are_drawn_together() -> None:
    weights = draw_weights(np.array([0, 1, 0, 1, 1]), 2, (0, 0))
    assert weights[0] == weights[2]
    assert weights[1] == weights[3] == weights[4]
    assert weights[0] + weights[1] == 2


def test_one_group_alone_cannot_be_resampled() -> None:
    drawn = resample(as_drawn(draw_scene(3)).measured, FEW, groups=["a"] * 6, unit="folder")
    assert estimates(drawn)["AP"].refused == "1 folder; an interval needs 20"


def test_an_interval_cuts_off_half_of_the_rest_at_either_end() -> None:
    # 0, 1, ..., 100: 95% leave 2.5 at either end.
    assert percentile_interval(np.arange(101.0), 0.95) == pytest.approx((2.5, 97.5), abs=1e-12)


def test_undefined_resamples_are_left_out_of_an_interval() -> None:
    assert percentile_interval(np.array([math.nan, 1.0, 1.0]), 0.95) == (1.0, 1.0)
    assert percentile_interval(np.array([math.nan]), 0.95) is None


def test_a_model_does_not_differ_from_itself() -> None:
    drawn = resample(as_drawn(draw_scene(3)).measured, FEW, method=REPEATS, least=2)
    one = paired_deltas(drawn, drawn)[0]
    assert (one.delta, one.interval, one.probability, one.detectable) == (0.0, (0.0, 0.0), 0.0, 0.0)


def test_a_paired_difference_by_hand() -> None:
    # Differences -.1, -.2, -.3: all below 0, so p = 2 * (0 + 1) / (3 + 1); their deviation is .1.
    one = paired_deltas(made_up([0.1, 0.2, 0.3]), made_up([0.0, 0.0, 0.0]))[0]
    assert one.delta == pytest.approx(-0.2)
    assert one.interval == pytest.approx((-0.295, -0.105), abs=1e-12)
    assert one.probability == pytest.approx(0.5, abs=1e-12)
    assert one.detectable == pytest.approx(0.1 * (1.959964 + 0.841621), abs=1e-6)  # quantiles .975 and .8 of the normal


def test_a_difference_is_at_most_as_large_as_the_bounds_of_the_metric_are_apart() -> None:
    one = paired_deltas(made_up([1.0, 0.9] * 10, method=HALVES), made_up([0.0, 0.9] * 10, method=HALVES))[0]
    assert one.interval is not None
    assert one.interval[0] == -1.0


def test_resamples_that_were_drawn_differently_are_not_compared() -> None:
    with pytest.raises(UsageError, match=r"not paired: rng 0 and 1"):
        paired_deltas(made_up([1.0, 2.0]), made_up([1.0, 2.0], seed=1))


def test_a_drop_is_significant_beyond_the_limit_and_away_from_0() -> None:
    assert significant_drop(DROP, 0.02)
    assert not significant_drop(DROP, 0.03)
    assert not significant_drop(replace(DROP, interval=(-0.05, 0.01)), 0.02)
    assert not significant_drop(replace(DROP, interval=None), 0.02)


def test_non_inferior_is_what_loses_less_than_the_margin_for_sure() -> None:
    assert non_inferior(DROP, 0.06)
    assert not non_inferior(DROP, 0.05)
    assert not non_inferior(replace(DROP, interval=None), 0.06)
    assert not non_inferior(replace(DROP, interval=(-0.01, 0.0)), 0.02)  # though the interval is above -0.02


@pytest.mark.parametrize("wrong", [{"n_resamples": 1}, {"n_resamples": 9.5}, {"confidence_level": 1.0}, {"rng": -1}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Bootstrap(**wrong)


def test_every_metric_has_its_interval() -> None:
    drawn = resample(as_drawn(draw_scene(3, N), N).measured, FEW)
    found = estimates(drawn)
    assert tuple(found) == drawn.refs
    low, high = found["AP"].interval or (1.0, 0.0)
    assert low < drawn.estimate[0] < high
