"""Gates that know the noise: intervals by brute force, both kinds of significance, and what cannot be asked."""

import functools
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
from jaccard_eval.data.document import SIGNIFICANCES
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import Resamples, Shown, Status
from jaccard_eval.features.bootstrap import HALVES, REPEATS, draw_weights, half_weights, percentile_interval, t_quantile
from jaccard_eval.features.bootstrap.intervals import with_intervals
from jaccard_eval.features.gates.judging import PairedRuns, answers_of, drop_breaks, drop_margin, judge, weigh_noise
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

FEW = Bootstrap(n_resamples=20, rng=7)
N = 40
NAMES = sorted(f"i{i}" for i in range(N))  # as images are drawn

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
MANY_DOGS = [gt("dog 0 0 10 10", f"i{i}") for i in range(20)]
FOUND = [det("dog 0 0 10 10", 0.9 - i / 100, f"i{i}") for i in range(20)]
ALL_DRAWS = tuple(product(range(2), repeat=2))
LOW = -1 + 0.075 * (1 - LOST)  # quantile .025 of -1, -LOST, -LOST, 0 lies at 3 * .025 of the way from the first
HIGH = -LOST + 0.925 * LOST  # quantile .975 lies at 3 * .975 - 2 of the way to the last


def draw_all(
    runs: Sequence[DetectionMetrics], settings: Bootstrap, *, refs: Sequence[MetricRef], method: str | None
) -> list[Resamples]:
    """Enumerate the resamples of two images; copies of images that are found count as often as they are drawn."""
    return [_enumerated(one, settings, refs) for one in runs]


def _enumerated(run: DetectionMetrics, settings: Bootstrap, refs: Sequence[MetricRef]) -> Resamples:
    found = [name for name in run.image_names if run.restrict([run.image_names.index(name)]).table.candidate.size]
    drawn = [sum(run.image_names[i] in found for i in draw) / 2 for draw in ALL_DRAWS]  # recall of each draw
    values = np.array([[math.floor(100 * recall + 1) / 101 if recall else 0.0] for recall in drawn])
    estimate = np.array([run.value(ref).value for ref in refs])
    return Resamples(
        settings=settings,
        method=REPEATS,
        unit="image",
        n_units=20,  # as if there were enough
        shown=(Shown(20, 0, 1),) * len(refs),
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
    """A scene of 40 images, and the same without the detections of those from i3 on."""
    truth, found = draw_scene(seed, N)
    return as_drawn((truth, found), N), as_drawn(_less(seed), N)


def drawn_weights(i: int, method: str, images: Sequence[int] = range(N)) -> list[int]:
    """How often each of the images i0, i1, ... is in draw `i` of some rows; images are in the order of their names."""
    rows, n = np.arange(len(images)), len(images)
    weights = np.zeros(N, dtype=np.int64)
    weights[list(images)] = (
        draw_weights(rows, n, (FEW.rng, i)) if method == REPEATS else half_weights(rows, n, (FEW.rng, i // 2))[i % 2]
    )
    by_name = dict(zip(NAMES, weights.tolist(), strict=True))
    return [by_name[f"i{i}"] for i in range(N)]


def paired_interval(deltas: Sequence[float], verdict: GateVerdict) -> tuple[float, float] | None:
    """Percentiles of draws with repeats; of halves the difference with t of their deviation."""
    assert verdict.spread is not None
    if verdict.spread.drawn["method"] == REPEATS:
        return percentile_interval(np.array(deltas), FEW.confidence_level)
    wide = t_quantile(0.975, 10) * float(np.std(deltas, ddof=1))
    return verdict.delta - wide, verdict.delta + wide


def value_interval(values: Sequence[float], value: float, *, is_share: bool, freedom: int = 10) -> tuple[float, float]:
    """Of halves: on the scale of log-odds, of a mean count on that of logarithms."""
    wide = t_quantile(0.975, freedom) * float(np.std(values, ddof=1))
    if not is_share:
        return value * math.exp(-wide / value), value * math.exp(wide / value)
    odds, by = math.log(value / (1 - value)), wide / value / (1 - value)
    return 1 / (1 + math.exp(by - odds)), 1 / (1 + math.exp(-by - odds))


def judged(run: EvaluationResult, base: EvaluationResult, *rules: Rule, **keys: Any) -> tuple[GateVerdict, ...]:
    return gate(run, Gates(rules=rules, bootstrap=FEW, **keys), baseline=base)


def brute_force(seed: int, ref: str, method: str, images: Sequence[int] = range(N)) -> list[float]:
    """Evaluate the images of every draw as plain pictures, for both models, and subtract."""
    deltas = []
    for i in range(FEW.n_resamples):
        base, run = drawn_results(seed, method, tuple(images), i)
        deltas.append(run[ref] - base[ref])
    return deltas


@functools.cache
def drawn_results(seed: int, method: str, images: tuple[int, ...], i: int) -> list[EvaluationResult]:
    """One draw of both models, which all metrics are looked up in."""
    weights = drawn_weights(i, method, images)
    return [repeat_images(scene, weights) for scene in (draw_scene(seed, N), _less(seed))]


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
    expected = paired_interval(brute_force(5, ref, verdict.spread.drawn["method"]), verdict)
    assert verdict.spread.interval == pytest.approx(expected, abs=1e-12)


def test_a_slice_is_drawn_as_if_its_images_were_all() -> None:
    base, run = pair_of(5)
    rule = Rule(metric="AP", max_drop=0.9, significance="significant-drop", slice="some")
    (verdict,) = judged(run, base, rule, slices=(Slice(name="some", patterns=("i[12]*",)),))
    assert verdict.spread is not None
    images = [row for row, name in enumerate(NAMES) if name[1] in "12"]
    expected = paired_interval(brute_force(5, "AP", verdict.spread.drawn["method"], images), verdict)
    assert verdict.spread.interval == pytest.approx(expected, abs=1e-12)
    assert verdict.spread.drawn["n_units"] == 22


@pytest.mark.parametrize(("aggregate", "summary"), [("mean", np.mean), ("min", np.min), ("median", np.median)])
def test_an_aggregate_is_made_of_the_classes_at_each_resample(aggregate: str, summary: Any) -> None:
    base, run = pair_of(5)
    rule = Rule(
        metric="AP", classes=("cat", "dog", "fox"), aggregate=aggregate, max_drop=0.9, significance="non-inferior"
    )
    (verdict,) = judged(run, base, rule)
    assert verdict.spread is not None
    deltas = []
    for i in range(FEW.n_resamples):
        sides = drawn_results(5, verdict.spread.drawn["method"], tuple(range(N)), i)
        values = [[side[f"AP[class={name}]"] for name in ("cat", "dog", "fox")] for side in sides]
        defined = [[value for value in side if not math.isnan(value)] for side in values]
        deltas.append(summary(defined[1]) - summary(defined[0]))
    expected = paired_interval(deltas, verdict)
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
    # Each model finds some of what the other one misses: drawing others turns the difference around.
    truth = [gt("dog 0 0 10 10", image) for image in "abcdefghijklmnopqrstuvwx"]
    found = [det("dog 0 0 10 10", 0.9 - i / 100, box.image) for i, box in enumerate(truth)]
    (verdict,) = judged(
        evaluate(truth, found[9:]),
        evaluate(truth, found[:18]),
        Rule(metric="AP50", max_drop=0.1, significance="significant-drop"),
    )
    assert verdict.delta < -0.1  # 15 of 24 dogs instead of 18
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
    floor, drop = gate(evaluate(MANY_DOGS, FOUND[:19]), gates, baseline=evaluate(MANY_DOGS, FOUND))
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
    values = [drawn_results(5, HALVES, tuple(range(N)), i)[1]["AP"] for i in range(20)]
    assert floor.spread.interval == pytest.approx(value_interval(values, floor.value, is_share=True), abs=1e-12)
    assert recall.spread is None


def _less(seed: int) -> tuple[Any, Any]:
    truth, found = draw_scene(seed, N)
    return truth, [box for box in found if box.image < "i3"]


def test_values_below_the_least_support_are_not_resampled() -> None:
    base, run = pair_of(5)
    (verdict,) = judged(run, base, Rule(metric="AP", max_drop=0.1, significance="non-inferior", min_support=1000))
    assert (verdict.status, verdict.spread) == (Status.SKIP, None)


def test_false_positives_per_image_are_those_of_as_many_images_as_there_are() -> None:
    _, run = pair_of(5)
    (verdict,) = judged(run, run, Rule(metric="FPPI", iou=0.5, score=0.4, max=9.0))
    values = [drawn_results(5, HALVES, tuple(range(N)), i)[1]["FPPI[iou=0.5,score=0.4]"] for i in range(20)]
    assert verdict.spread is not None
    assert verdict.spread.interval == pytest.approx(value_interval(values, verdict.value, is_share=False), abs=1e-12)


def test_a_weighted_f1_is_resampled_over_all_thresholds() -> None:
    _, run = pair_of(5)
    (verdict,) = judged(run, run, Rule(metric="wF1", score=0.4, min=0.01))
    values = [drawn_results(5, HALVES, tuple(range(N)), i)[1]["wF1[score=0.4]"] for i in range(20)]
    assert verdict.spread is not None
    assert verdict.spread.interval == pytest.approx(value_interval(values, verdict.value, is_share=True), abs=1e-12)


def test_groups_of_different_sizes_change_how_many_images_are_drawn() -> None:
    # 20 groups: one of 21 images, and 19 of one each. A half has 10 to 30 images.
    groups = [max(i - 20, 0) for i in range(N)]
    names = [f"g{group:02d}/i{i:02d}" for i, group in enumerate(groups)]
    boxes = [[replace(box, image=names[int(box.image[1:])]) for box in side] for side in _less(5)]
    run = evaluate(*boxes, images=names, names=("cat", "dog", "fox"))
    gates = Gates(
        rules=(Rule(metric="FPPI", iou=0.5, score=0, max=9.0),),
        bootstrap=Bootstrap(n_resamples=20, rng=7, group_by="folder"),
    )
    (verdict,) = gate(run, gates)
    drawn = [half_weights(np.array(groups), 20, (7, i // 2))[i % 2].tolist() for i in range(20)]
    assert {sum(weights) for weights in drawn} == {10, 30}
    values = [repeat_images(_less(5), weights)["FPPI[iou=0.5,score=0]"] for weights in drawn]
    assert verdict.spread is not None
    assert verdict.spread.interval == pytest.approx(value_interval(values, verdict.value, is_share=False), abs=1e-12)


def test_resamples_that_are_there_are_used_only_when_they_were_drawn_as_asked() -> None:
    _, run = pair_of(5)
    resampled = with_intervals(run, FEW)
    rule, on_some = Rule(metric="AP", min=0.0), Rule(metric="AP", min=0.0, id="some", slice="some")
    slices = (Slice(name="some", patterns=("i[12]*",)),)
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
    run = evaluate(MANY_DOGS, FOUND, names=("cat", "dog"))  # no cat anywhere
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


def test_rules_that_need_a_refused_interval_are_named_with_the_reason_all_at_once() -> None:
    alone = evaluate(DOGS[:1], BOTH[:1])
    rules = [Rule(metric=metric, max_drop=0.1, significance="significant-drop") for metric in ("AP", "AP50")]
    with pytest.raises(UsageError) as caught:
        judged(alone, alone, *rules)
    assert str(caught.value).splitlines() == [
        f"rule '{metric} max-drop significant-drop': {metric} has no interval: 1 image; an interval needs 20"
        for metric in ("AP", "AP50")
    ]


def test_a_class_on_few_images_has_no_significance_and_its_value_is_judged_as_ever() -> None:
    cats = [gt("cat 0 0 10 10", f"i{i}") for i in range(4)]
    run = evaluate([*MANY_DOGS, *cats], [*FOUND, det("cat 0 0 10 10", 0.9, "i0")])
    with pytest.raises(UsageError, match=r"AP50\[class=cat\] has no interval: objects in 4 images"):
        judged(run, run, Rule(metric="AP50[class=cat]", max_drop=0.1, significance="non-inferior"))
    floor, lowest = judged(
        run,
        run,
        Rule(metric="AP50[class=cat]", min=0.2),
        Rule(metric="AP50", classes=("*",), aggregate="min", min=0.2, id="lowest"),
    )
    for verdict in (floor, lowest):
        assert (verdict.status, verdict.spread) == (Status.PASS, None)
        assert verdict.reason.startswith("no interval: objects in 4 images; an interval needs 5")


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
