"""Gates that know the noise: intervals by brute force, both kinds of significance, and what cannot be asked."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import det, evaluate, gt
from resampled import as_drawn, difference, draw_scene, repeat_images

from jaccard_eval import EvaluationResult, Gates, GateVerdict, Rule, Slice, UsageError, gate
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import Resamples
from jaccard_eval.data.verdict import Status
from jaccard_eval.features.bootstrap.compute import draw_weights, percentile_interval
from jaccard_eval.features.bootstrap.intervals import with_intervals
from jaccard_eval.features.gates.compute import judge
from jaccard_eval.features.gates.lookup import answers_of
from jaccard_eval.features.gates.noise import PairedRuns, drop_breaks, drop_margin, weigh_noise
from jaccard_eval.features.gates.rules import SIGNIFICANCES
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

FEW = Bootstrap(n_resamples=20, rng=7)

PAIR = difference(1.0, 1.0, (0.0, 0.0), probability=0.0, detectable=0.0)
DROP = GateVerdict(
    rule="drop",
    metric="AP",
    check="max-drop",
    status=Status.PASS,
    severity="error",
    value=1.0,
    limit=0.0,
    n=1,
)

# A dog on each of two images; the baseline finds both, the run the first alone: its recall of 1/2 covers 51 of 101
# recall values. Of the four ways to draw two images, aa leaves AP50 as it is, ab and ba lose 50/101, bb loses all.
LOST = 50 / 101
DOGS = [gt("dog 0 0 10 10", "a"), gt("dog 0 0 10 10", "b")]
BOTH = [det("dog 0 0 10 10", 0.9, "a"), det("dog 0 0 10 10", 0.8, "b")]
ALL_DRAWS = tuple(product(range(2), repeat=2))
LOW = -1 + 0.075 * (1 - LOST)  # quantile .025 of -1, -LOST, -LOST, 0 lies at 3 * .025 of the way from the first
HIGH = -LOST + 0.925 * LOST  # quantile .975 lies at 3 * .975 - 2 of the way to the last


def draw_all(runs: Sequence[DetectionMetrics], settings: Bootstrap, refs: Sequence[MetricRef]) -> list[Resamples]:
    """Enumerate the resamples of two images; copies of images that are found count as often as they are drawn."""
    return [_enumerated(one, settings, refs) for one in runs]


def _enumerated(run: DetectionMetrics, settings: Bootstrap, refs: Sequence[MetricRef]) -> Resamples:
    found = [name for name in run.image_names if run.restrict([run.image_names.index(name)]).table.candidate.size]
    drawn = [sum(run.image_names[i] in found for i in draw) / 2 for draw in ALL_DRAWS]  # recall of each draw
    values = np.array([[math.floor(100 * recall + 1) / 101 if recall else 0.0] for recall in drawn])
    estimate = np.array([run.value(ref).value for ref in refs])
    return Resamples(
        settings=settings,
        unit="image",
        n_units=2,
        refs=tuple(map(str, refs)),
        estimate=estimate,
        values=np.repeat(values, len(refs), axis=1),
    )


def enumerated(**keys: Any) -> GateVerdict:
    """Judge the run that lost a dog by a rule on AP50, over all resamples there are."""
    gates = Gates(rules=(Rule(metric="AP50", **keys),))
    run, base = evaluate(DOGS, BOTH[:1]), evaluate(DOGS, BOTH)
    verdicts = judge(gates, answers_of(run), baseline=answers_of(base))
    pair = PairedRuns(run=run.measured, base=base.measured, settings=Bootstrap(), draw=draw_all)  # type: ignore[arg-type]
    return weigh_noise(verdicts, gates, pair)[0]


def pair_of(seed: int) -> tuple[EvaluationResult, EvaluationResult]:
    """A scene of six images, and the same without the detections of the fourth image on."""
    truth, found = draw_scene(seed)
    return as_drawn((truth, found)), as_drawn((truth, [box for box in found if box.image < "i3"]))


def judged(run: EvaluationResult, base: EvaluationResult, *rules: Rule, **keys: Any) -> tuple[GateVerdict, ...]:
    return gate(run, Gates(rules=rules, bootstrap=FEW, **keys), baseline=base)


def brute_force(seed: int, ref: str, images: Sequence[int] = range(6)) -> list[float]:
    """Evaluate the images of every resample as plain pictures, for both models, and subtract."""
    truth, found = draw_scene(seed)
    less = [box for box in found if box.image < "i3"]
    deltas = []
    for i in range(FEW.n_resamples):
        weights = np.zeros(6, dtype=np.int64)
        weights[list(images)] = draw_weights(np.arange(len(images)), len(images), (FEW.rng, i))
        base, run = (repeat_images((truth, boxes), weights.tolist())[ref] for boxes in (found, less))
        deltas.append(run - base)
    return deltas


AT_SCORE = "iou=0.5,score=0.4"
RESAMPLED = ["AP", "AP50", "AR100", "AP_small", "AP[class=dog]", "AP75[class=fox]", f"recall[{AT_SCORE}]"]
RESAMPLED += [
    f"recall[{AT_SCORE},class=dog]",
    f"precision[{AT_SCORE},class=cat]",
    "F1[iou=0.75,score=0]",
    "TP[score=0]",
]


@pytest.mark.parametrize("ref", RESAMPLED)
def test_the_interval_is_that_of_plain_evaluations_of_the_images_drawn(ref: str) -> None:
    base, run = pair_of(5)
    (verdict,) = judged(run, base, Rule(metric=ref, max_drop=0.9, significance="non-inferior"))
    assert verdict.spread is not None
    expected = percentile_interval(np.array(brute_force(5, ref)), FEW.confidence_level)
    assert verdict.spread.interval == pytest.approx(expected, abs=1e-12)


def test_a_slice_is_drawn_as_if_its_images_were_all() -> None:
    base, run = pair_of(5)
    rule = Rule(metric="AP", max_drop=0.9, significance="significant-drop", slice="some")
    (verdict,) = judged(run, base, rule, slices=(Slice(name="some", patterns=("i[1245]",)),))
    assert verdict.spread is not None
    expected = percentile_interval(np.array(brute_force(5, "AP", (1, 2, 4, 5))), FEW.confidence_level)
    assert verdict.spread.interval == pytest.approx(expected, abs=1e-12)
    assert verdict.spread.drawn["n_units"] == 4


@pytest.mark.parametrize(("aggregate", "summary"), [("mean", np.mean), ("min", np.min), ("median", np.median)])
def test_an_aggregate_is_made_of_the_classes_at_each_resample(aggregate: str, summary: Any) -> None:
    base, run = pair_of(5)
    rule = Rule(
        metric="AP", classes=("cat", "dog", "fox"), aggregate=aggregate, max_drop=0.9, significance="non-inferior"
    )
    (verdict,) = judged(run, base, rule)
    truth, found = draw_scene(5)
    less = [box for box in found if box.image < "i3"]
    deltas = []
    for i in range(FEW.n_resamples):
        weights = draw_weights(np.arange(6), 6, (FEW.rng, i)).tolist()
        sides = [repeat_images((truth, boxes), weights) for boxes in (found, less)]
        values = [[side[f"AP[class={name}]"] for name in ("cat", "dog", "fox")] for side in sides]
        defined = [[value for value in side if not math.isnan(value)] for side in values]
        deltas.append(summary(defined[1]) - summary(defined[0]))
    assert verdict.spread is not None
    expected = percentile_interval(np.array(deltas), FEW.confidence_level)
    assert verdict.spread.interval == pytest.approx(expected, abs=1e-12)


def test_a_drop_beyond_the_limit_whose_interval_excludes_0_fails() -> None:
    verdict = enumerated(max_drop=0.4, significance="significant-drop")
    assert (verdict.status, verdict.significance) == (Status.FAIL, "significant-drop")
    assert verdict.spread is not None
    assert verdict.spread.interval == pytest.approx((LOW, HIGH), abs=1e-12)
    assert verdict.margin == pytest.approx(HIGH, abs=1e-12)  # nearer than 0.4 - LOST
    assert verdict.delta == pytest.approx(-LOST, abs=1e-12)


def test_a_drop_within_the_limit_passes_however_sure_it_is() -> None:
    verdict = enumerated(max_drop=0.5, significance="significant-drop")
    assert verdict.status is Status.PASS
    assert verdict.margin == pytest.approx(0.5 - LOST, abs=1e-12)


def test_a_drop_beyond_the_limit_that_may_be_chance_passes_and_says_why() -> None:
    # Each model finds what the other one misses, one of four dogs: drawing another four turns the difference around.
    truth = [gt("dog 0 0 10 10", image) for image in "abcdefgh"]
    found = [det("dog 0 0 10 10", 0.9 - i / 100, image) for i, image in enumerate("abcdefgh")]
    (verdict,) = judged(
        evaluate(truth, found[3:]),
        evaluate(truth, found[:6]),
        Rule(metric="AP50", max_drop=0.1, significance="significant-drop"),
    )
    assert verdict.delta < -0.1  # 5 of 8 dogs instead of 6
    assert verdict.status is Status.PASS
    assert verdict.reason == "the drop exceeds the limit but is not statistically significant (the interval includes 0)"


def test_what_may_have_lost_more_than_the_limit_is_not_non_inferior() -> None:
    # The lower bound is -0.962: a limit of 0.96 is within the interval, 0.97 beyond.
    close, wide = (enumerated(max_drop=limit, significance="non-inferior") for limit in (0.96, 0.97))
    assert (close.status, wide.status) == (Status.FAIL, Status.PASS)
    assert close.margin == pytest.approx(LOW + 0.96, abs=1e-12)
    assert close.reason == "the drop is within the limit, but its interval exceeds it"


def test_a_model_is_not_inferior_to_itself_even_without_any_leeway() -> None:
    base, _ = pair_of(5)
    (verdict,) = judged(base, base, Rule(metric="AP", max_drop=0.0, significance="non-inferior"))
    assert (verdict.status, verdict.margin) == (Status.PASS, 0.0)


def test_a_relative_limit_is_a_share_of_the_baseline() -> None:
    # The baseline has AP50 = 1.
    assert enumerated(max_drop_relative=0.96, significance="non-inferior").status is Status.FAIL
    assert enumerated(max_drop_relative=0.97, significance="non-inferior").status is Status.PASS


@pytest.mark.parametrize(
    ("keys", "status", "limit"),
    [
        ({"max_drop": 0.97, "warn_max_drop": 0.9}, Status.WARN, 0.9),
        ({"warn_max_drop": 0.9}, Status.WARN, 0.9),
        ({"max_drop": 0.9, "severity": "warning"}, Status.WARN, 0.9),
        ({"max_drop": 0.9, "severity": "info"}, Status.INFO, 0.9),
        ({"max_drop": 0.99, "warn_max_drop": 0.98}, Status.PASS, 0.99),
    ],
)
def test_levels_and_severities_are_those_of_any_rule(keys: dict[str, Any], status: Status, limit: float) -> None:
    verdict = enumerated(significance="non-inferior", **keys)
    assert (verdict.status, verdict.limit) == (status, limit)


def test_other_limits_of_the_rule_are_judged_by_the_value() -> None:
    rule = Rule(metric="AP50", min=0.5, max_drop=0.9, significance="significant-drop")
    gates = Gates(rules=(rule,), bootstrap=FEW)
    floor, drop = gate(evaluate(DOGS, BOTH[:1]), gates, baseline=evaluate(DOGS, BOTH))
    assert (floor.check, floor.status, floor.significance) == ("min", Status.PASS, None)
    assert drop.significance == "significant-drop"


def test_the_defaults_are_those_of_the_bootstrap() -> None:
    base, run = pair_of(5)
    gates = Gates(
        rules=(Rule(metric="AP", max_drop=0.9, significance="significant-drop"), Rule(metric="AP50", min=0.0))
    )
    drop, floor = gate(run, gates, baseline=base)
    assert drop.spread is not None
    assert {name: drop.spread.drawn[name] for name in ("n_resamples", "confidence_level", "rng")} == {
        "n_resamples": 1000,
        "confidence_level": 0.95,
        "rng": 0,
    }
    assert floor.spread is None  # nobody asked


def test_when_resamples_are_asked_for_every_rule_is_told_with_its_interval() -> None:
    base, run = pair_of(5)
    best = Rule(metric="recall[iou=0.5,score=best-f1]", min=0.0)
    rules = (Rule(metric="AP", max_drop=0.9), Rule(metric="AP", min=0.0), best)
    drop, floor, recall = judged(run, base, *rules)
    assert drop.spread is not None
    assert floor.spread is not None
    assert drop.spread.paired is not None
    assert floor.spread.paired is None
    values = [repeat_images(_less(5), draw_weights(np.arange(6), 6, (7, i)).tolist())["AP"] for i in range(20)]
    assert floor.spread.interval == pytest.approx(percentile_interval(np.array(values), 0.95), abs=1e-12)
    assert recall.spread is None


def _less(seed: int) -> tuple[Any, Any]:
    truth, found = draw_scene(seed)
    return truth, [box for box in found if box.image < "i3"]


def test_values_below_the_least_support_are_not_resampled() -> None:
    base, run = pair_of(5)
    (verdict,) = judged(run, base, Rule(metric="AP", max_drop=0.1, significance="non-inferior", min_support=1000))
    assert (verdict.status, verdict.spread) == (Status.SKIP, None)


def test_false_positives_per_image_are_those_of_as_many_images_as_there_are() -> None:
    _, run = pair_of(5)
    (verdict,) = judged(run, run, Rule(metric="FPPI", iou=0.5, score=0.4, max=9.0))
    drawn = (draw_weights(np.arange(6), 6, (7, i)).tolist() for i in range(20))
    values = [repeat_images(_less(5), weights)["FPPI[iou=0.5,score=0.4]"] for weights in drawn]
    assert verdict.spread is not None
    assert verdict.spread.interval == pytest.approx(percentile_interval(np.array(values), 0.95), abs=1e-12)


def test_groups_of_different_sizes_change_how_many_images_are_drawn() -> None:
    # Groups i0 i1 i2 i3 and i4 i5: a resample has 8, 6 or 4 images.
    names = [f"g{int(i > 3)}/i{i}" for i in range(6)]
    boxes = [[replace(box, image=names[int(box.image[1:])]) for box in side] for side in _less(5)]
    run = evaluate(*boxes, images=names, names=("cat", "dog", "fox"))
    gates = Gates(
        rules=(Rule(metric="FPPI", iou=0.5, score=0, max=9.0),),
        bootstrap=Bootstrap(n_resamples=20, rng=7, group_by="folder"),
    )
    (verdict,) = gate(run, gates)
    drawn = [draw_weights(np.array([0, 0, 0, 0, 1, 1]), 2, (7, i)).tolist() for i in range(20)]
    assert {sum(weights) for weights in drawn} == {8, 6, 4}
    values = [repeat_images(_less(5), weights)["FPPI[iou=0.5,score=0]"] for weights in drawn]
    assert verdict.spread is not None
    assert verdict.spread.interval == pytest.approx(percentile_interval(np.array(values), 0.95), abs=1e-12)


def test_resamples_that_are_there_are_used_only_when_they_were_drawn_as_asked() -> None:
    _, run = pair_of(5)
    resampled = with_intervals(run, FEW)
    rule, on_some = Rule(metric="AP", min=0.0), Rule(metric="AP", min=0.0, id="some", slice="some")
    slices = (Slice(name="some", patterns=("i[1245]",)),)
    for settings in (FEW, replace(FEW, rng=8)):
        fresh, known = (
            gate(one, Gates(rules=(rule, on_some), slices=slices, bootstrap=settings)) for one in (run, resampled)
        )
        assert [one.spread for one in known] == [one.spread for one in fresh]


def test_support_on_the_limit_is_enough() -> None:
    base, run = pair_of(5)
    n = {name: run.measured.value(MetricRef.parse(f"AP[class={name}]")).n for name in ("cat", "dog", "fox")}
    rule = Rule(
        metric="AP",
        classes=("*",),
        aggregate="mean",
        min_support=max(n.values()),
        max_drop=0.9,
        significance="non-inferior",
    )
    assert judged(run, base, rule)[0].spread is not None


@pytest.mark.parametrize(("policy", "status"), [("warn", Status.WARN), ("pass", Status.PASS)])
def test_undefined_classes_that_are_left_out_warn_where_that_is_asked_for(policy: str, status: Status) -> None:
    run = evaluate(DOGS, BOTH, names=("cat", "dog"))  # no cat anywhere
    rule = Rule(
        metric="AP50",
        classes=("*",),
        aggregate="mean",
        max_drop=0.1,
        significance="non-inferior",
        missing_metric=policy,
    )
    assert judged(run, run, rule)[0].status is status


@pytest.mark.parametrize("metric", ["recall[iou=0.5,score=best-f1]", "F1[iou=0.5,score=best-f1,class=dog]"])
def test_a_score_that_other_images_would_move_is_refused(metric: str) -> None:
    base, run = pair_of(5)
    with pytest.raises(UsageError, match=r"because the best score changes with the images\. Set a fixed score"):
        judged(run, base, Rule(metric=metric, max_drop=0.1, significance="significant-drop"))


def test_one_image_cannot_be_resampled() -> None:
    alone = evaluate(DOGS[:1], BOTH[:1])
    with pytest.raises(UsageError, match="needs at least 2 images, got 1"):
        judged(alone, alone, Rule(metric="AP", max_drop=0.1, significance="significant-drop"))


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"metric": "AP", "min": 0.5}, "significance works with drops only; set max-drop or max-drop-relative"),
        ({"metric": "AP", "max_rise": 0.5}, "significance works with drops only"),
        ({"metric": "external.ms", "max_drop": 1.0}, "remove significance"),
        ({"metric": "FPPI[iou=0.5,score=0]", "max_drop": 1.0}, "lower is better"),
    ],
)
def test_a_significance_of_anything_but_a_drop_is_refused(keys: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        Rule(significance="significant-drop", **keys)


def test_a_misspelt_significance_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'non-inferior'"):
        Rule(metric="AP", max_drop=0.1, significance="noninferior")


@given(bounds=st.tuples(*[st.floats(-1, 1)] * 2), delta=st.floats(-1, 1), limit=st.floats(0, 1))
def test_significance_is_milder_than_the_drop_alone_and_non_inferiority_stricter(
    bounds: tuple[float, float], delta: float, limit: float
) -> None:
    # Even where the interval does not hold the difference, which percentiles do not promise.
    low, high = sorted(bounds)
    pair = replace(PAIR, delta=delta, interval=(low, high))
    plain = -delta > limit
    broken = {name: drop_breaks(replace(DROP, significance=name), pair, 0.0)(limit) for name in SIGNIFICANCES}
    assert broken["significant-drop"] <= plain <= (broken["non-inferior"] or -delta == limit)
    margins = {name: drop_margin(name, pair, limit) for name in SIGNIFICANCES}
    assert margins["significant-drop"] >= limit + delta >= margins["non-inferior"]
    assert all((margins[name] < 0) <= broken[name] for name in SIGNIFICANCES)
