"""The bootstrap: what is drawn, what intervals and paired differences are made of, and how often they are right."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from pictures import det, gt, metrics
from resampled import as_drawn, difference, draw_scene, repeat_images

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import Resamples
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.compute import (
    draw_weights,
    intervals,
    non_inferior,
    paired_deltas,
    percentile_interval,
    resample,
    significant_drop,
)
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

FEW = Bootstrap(n_resamples=20, rng=7)
DROP = difference(0.5, 0.47, (-0.05, -0.01), probability=0.99, detectable=0.03)


def made_up(values: list[float], *, seed: int = 0) -> Resamples:
    column = np.array(values)[:, None]
    settings = Bootstrap(n_resamples=len(values), rng=seed)
    return Resamples(
        settings=settings, unit="image", n_units=5, refs=("AP",), estimate=column.mean(axis=0), values=column
    )


def three_images(found: str, close: str, missed: str) -> DetectionMetrics:
    truth = [gt("dog 0 0 10 10", image) for image in (found, close, missed)]
    boxes = zip(("0 0 10 10", "0 0 10 6", "50 0 10 10"), (0.9, 0.8, 0.7), (found, close, missed), strict=True)
    return metrics(truth, [det(f"dog {box}", score, image) for box, score, image in boxes])


def test_each_resample_is_the_evaluation_of_the_images_that_were_drawn() -> None:
    scene = draw_scene(3)
    drawn = resample(as_drawn(scene).measured, FEW)
    for i, row in enumerate(drawn.values):
        copied = repeat_images(scene, draw_weights(np.arange(6), 6, (7, i)))
        assert row == pytest.approx([copied[ref] for ref in drawn.refs], abs=1e-12, nan_ok=True)


def test_the_estimate_is_the_metric_itself() -> None:
    result = as_drawn(draw_scene(3))
    drawn = resample(result.measured, FEW)
    np.testing.assert_array_equal(drawn.estimate, [result[ref] for ref in drawn.refs])


def test_any_number_of_workers_gives_the_same_resamples() -> None:
    measured = as_drawn(draw_scene(4)).measured
    alone = resample(measured, FEW)
    together = resample(measured, FEW, run=partial(map_in_order, workers=3))
    np.testing.assert_array_equal(alone.values, together.values)


def test_more_resamples_begin_with_the_same_ones() -> None:
    measured = as_drawn(draw_scene(4)).measured
    more = resample(measured, replace(FEW, n_resamples=25))
    np.testing.assert_array_equal(resample(measured, FEW).values, more.values[:20])


def test_as_many_units_are_drawn_as_there_are() -> None:
    assert [draw_weights(np.arange(9), 9, (0, i)).sum() for i in range(50)] == [9] * 50


def test_named_metrics_are_resampled_as_the_summary_is() -> None:
    measured = as_drawn(draw_scene(3)).measured
    every = resample(measured, FEW)
    named = resample(measured, FEW, refs=[MetricRef.parse("AP50"), MetricRef.parse("AP")])
    assert named.refs == ("AP50", "AP")
    np.testing.assert_array_equal(named.values, every.values[:, [every.refs.index("AP50"), 0]])


def test_images_listed_in_another_order_are_drawn_alike_when_that_order_is_given() -> None:
    listed, swapped = (three_images(*names) for names in ("abc", "cba"))
    turned = DetectionMetrics(swapped.table, swapped.class_names, ("c", "b", "a"))
    drawn, again = resample(listed, FEW), resample(turned, FEW, order=listed.image_names)
    np.testing.assert_array_equal(again.values, drawn.values)


def test_images_of_a_group_are_drawn_together() -> None:
    weights = draw_weights(np.array([0, 1, 0, 1, 1]), 2, (0, 0))
    assert weights[0] == weights[2]
    assert weights[1] == weights[3] == weights[4]
    assert weights[0] + weights[1] == 2


def test_one_group_alone_cannot_be_resampled() -> None:
    with pytest.raises(UsageError, match="needs at least 2 folders, got 1"):
        resample(as_drawn(draw_scene(3)).measured, FEW, groups=["a"] * 6, unit="folder")


def test_an_interval_cuts_off_half_of_the_rest_at_either_end() -> None:
    # 0, 1, ..., 100: 95% leave 2.5 at either end.
    assert percentile_interval(np.arange(101.0), 0.95) == pytest.approx((2.5, 97.5), abs=1e-12)


def test_undefined_resamples_are_left_out_of_an_interval() -> None:
    assert percentile_interval(np.array([math.nan, 1.0, 1.0]), 0.95) == (1.0, 1.0)
    assert percentile_interval(np.array([math.nan]), 0.95) is None


def test_a_model_does_not_differ_from_itself() -> None:
    drawn = resample(as_drawn(draw_scene(3)).measured, FEW)
    one = paired_deltas(drawn, drawn)[0]
    assert (one.delta, one.interval, one.probability, one.detectable) == (0.0, (0.0, 0.0), 0.0, 0.0)


def test_a_paired_difference_by_hand() -> None:
    # Differences -1, -2, -3: all below 0, so p = 2 * (0 + 1) / (3 + 1); their deviation is 1.
    one = paired_deltas(made_up([1.0, 2.0, 3.0]), made_up([0.0, 0.0, 0.0]))[0]
    assert one.delta == -2.0
    assert one.interval == pytest.approx((-2.95, -1.05), abs=1e-12)
    assert one.probability == pytest.approx(0.5, abs=1e-12)
    assert one.detectable == pytest.approx(1.959964 + 0.841621, abs=1e-5)  # quantiles .975 and .8 of the normal


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
    drawn = resample(as_drawn(draw_scene(3)).measured, FEW)
    found = intervals(drawn)
    assert tuple(found) == drawn.refs
    assert found["AP"] is not None
    assert found["AP"][0] <= drawn.estimate[0] <= found["AP"][1]
