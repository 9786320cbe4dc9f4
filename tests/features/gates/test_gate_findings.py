"""What is said of doubtful verdicts: limits below the noise, and statuses that hang on the order of equal scores."""

import math
from dataclasses import replace
from typing import Any

import pytest
from pictures import det, evaluate, gt
from resampled import difference

from jaccard_eval import EvaluationResult, Gates, GateVerdict, Rule, Slice, gate
from jaccard_eval.data.result import Spread, Status
from jaccard_eval.features.gates.judging import gate_findings
from jaccard_eval.options import Bootstrap

DRAWN = {"confidence_level": 0.95, "n_units": 40, "unit": "image"}
DELTA = difference(0.5, 0.49, (-0.03, 0.02), probability=0.3, detectable=0.04)
NOISY = GateVerdict(
    rule="drop",
    metric="AP",
    check="max-drop",
    status=Status.PASS,
    severity="error",
    value=0.49,
    limit=0.01,
    n=100,
    baseline=0.5,
    delta=-0.01,
    spread=Spread(interval=(-0.03, 0.02), drawn=DRAWN, paired=DELTA),
)

# One dog, and two detections of one score of which one hits it: AP50 is 1 or 1/2, as they are ordered.
TIED = [det("dog 0 0 10 10", 0.5), det("dog 50 50 10 10", 0.5)]
DOG = [gt("dog 0 0 10 10")]


def messages(*verdicts: GateVerdict) -> list[str]:
    return [f"{one.code}: {one.message}" for one in gate_findings(verdicts)]


def judged(run: EvaluationResult, *rules: Rule, **keys: Any) -> tuple[GateVerdict, ...]:
    baseline = keys.pop("baseline", None)
    return gate(run, Gates(rules=rules, **keys), baseline=baseline)


def test_a_limit_below_half_the_interval_is_told_with_the_one_that_is_supported() -> None:
    # Half of 0.05 is 0.025; with two digits that is the limit which is no longer below it.
    (text,) = messages(NOISY)
    assert text.startswith("gate-below-noise: gates: drop: AP: max-drop 0.01 is below the noise of this test set: with")
    assert "with 40 images the difference varies by ±0.025 (95 % CI)" in text
    assert "smallest meaningful limit is 0.025." in text


def test_the_supported_limit_is_rounded_up() -> None:
    (text,) = messages(replace(NOISY, spread=Spread(interval=(-0.0312, 0.02), drawn=DRAWN, paired=DELTA)))
    assert "smallest meaningful limit is 0.026." in text  # half of 0.0512 is 0.0256


def test_a_relative_limit_is_compared_as_a_share_of_the_baseline() -> None:
    # 2 % of 0.5 is 0.01; 0.025 is 5 %.
    (text,) = messages(replace(NOISY, check="max-drop-relative", limit=0.02))
    assert "smallest meaningful limit is 0.05." in text
    assert not messages(replace(NOISY, check="max-drop-relative", limit=0.05))
    assert not messages(replace(NOISY, check="max-drop-relative", limit=0.02, baseline=0.0))


def test_without_a_match_table_of_the_baseline_the_noise_is_that_of_the_value() -> None:
    (text,) = messages(replace(NOISY, spread=Spread(interval=(0.46, 0.52), drawn=DRAWN)))
    assert "images AP varies by ±0.03" in text


@pytest.mark.parametrize("changes", [{"limit": 0.025}, {"check": "min"}, {"check": "max"}, {"spread": None}])
def test_wider_limits_and_those_on_values_are_not_told_of(changes: dict[str, Any]) -> None:
    assert not messages(replace(NOISY, **changes))


def test_one_finding_counts_all_verdicts_of_a_rule() -> None:
    (finding,) = gate_findings([NOISY, replace(NOISY, metric="AP50")])
    assert (finding.count, len(finding.further)) == (2, 1)


def test_a_limit_between_the_bounds_over_equal_scores_is_told_of() -> None:
    run = evaluate(DOG, TIED)
    (verdict,) = judged(run, Rule(metric="AP50", min=0.7))
    assert verdict.ties == pytest.approx((0.5, 1.0), abs=1e-12)
    (text,) = messages(verdict)
    assert text.startswith("gate-crossed-by-ties: gates: AP50 min: Tied scores: AP50 is between 0.500000 and 1.000000")


@pytest.mark.parametrize("keys", [{"min": 0.4}, {"max": 1.0}, {"min": 0.5}, {"warn_min": 0.45}])
def test_a_limit_outside_of_the_bounds_is_no_news(keys: dict[str, float]) -> None:
    assert judged(evaluate(DOG, TIED), Rule(metric="AP50", **keys))[0].ties is None


def test_a_limit_that_warns_between_the_bounds_is_told_of() -> None:
    (verdict,) = judged(evaluate(DOG, TIED), Rule(metric="AP50", min=0.4, warn_min=0.7))
    assert verdict.ties is not None


def test_a_drop_is_crossed_where_the_order_decides_how_large_it_is() -> None:
    # The baseline has AP50 = 1; the run 1/2 or 1, so it drops by 1/2 or not at all.
    run, base = evaluate(DOG, TIED), evaluate(DOG, TIED[:1])
    assert judged(run, Rule(metric="AP50", max_drop=0.3), baseline=base)[0].ties is not None
    assert judged(run, Rule(metric="AP50", max_drop=0.5), baseline=base)[0].ties is None


def test_the_interval_of_a_difference_moves_along() -> None:
    # On all images the difference is one of 0 and -1/2 for every resample: no spread but that of the order.
    images = "abcdefghijklmnopqrst"  # of fewer than 20 there is no interval
    truth = [gt("dog 0 0 10 10", image) for image in images]
    run = evaluate(truth, [det(f"dog {place} 10 10", 0.5, image) for image in images for place in ("0 0", "50 50")])
    base = evaluate(truth, [det("dog 0 0 10 10", 0.9, image) for image in images])
    few = Bootstrap(n_resamples=20)
    (verdict,) = judged(
        run, Rule(metric="AP50", max_drop=0.3, significance="non-inferior"), baseline=base, bootstrap=few
    )
    assert verdict.ties == pytest.approx((0.5, 1.0), abs=1e-12)


def test_aggregates_are_bounded_by_their_classes() -> None:
    # dog is 1/2 or 1, cat 1: their mean 3/4 or 1.
    run = evaluate([*DOG, gt("cat 0 50 10 10")], [*TIED, det("cat 0 50 10 10", 0.9)])
    rule = {"metric": "AP50", "classes": ("dog", "cat"), "aggregate": "mean"}
    (verdict,) = judged(run, Rule(min=0.8, **rule))  # type: ignore[arg-type]
    assert verdict.ties == pytest.approx((0.75, 1.0), abs=1e-12)
    counted = Rule(metric="AP50", classes=("dog", "cat"), aggregate="count-below", below=0.9, max=0.0)
    assert judged(run, counted)[0].ties == (0.0, 1.0)


def test_a_slice_is_looked_at_alone() -> None:
    run = evaluate([*DOG, gt("dog 0 0 10 10", "b")], [*TIED, det("dog 0 0 10 10", 0.9, "b")])
    slices = tuple(Slice(name=name, patterns=(name,)) for name in "ab")
    tied, clear = judged(run, *(Rule(metric="AP50", min=0.7, slice=name) for name in "ab"), slices=slices)
    assert tied.ties == pytest.approx((0.5, 1.0), abs=1e-12)
    assert clear.ties is None


@pytest.mark.parametrize(
    "rule",
    [
        Rule(metric="recall[iou=0.5,score=0.4]", min=0.7),
        Rule(metric="AR100", min=0.7),
        Rule(metric="AP50", min=0.7, min_support=9),
    ],
    ids=lambda rule: rule.id,
)
def test_what_has_no_order_or_was_skipped_is_left_alone(rule: Rule) -> None:
    assert judged(evaluate(DOG, TIED), rule)[0].ties is None


def test_repeated_boxes_tie_by_nature() -> None:
    (verdict,) = judged(evaluate(DOG, [TIED[0], TIED[0]]), Rule(metric="AP50", min=0.7))
    assert verdict.ties is None


def test_scores_that_differ_have_no_bounds() -> None:
    apart = [TIED[0], replace(TIED[1], score=0.4)]
    assert judged(evaluate(DOG, apart), Rule(metric="AP50", min=0.7))[0].ties is None


def test_undefined_values_are_left_alone() -> None:
    run = evaluate(DOG, TIED, names=["cat", "dog"])
    (verdict,) = judged(run, Rule(metric="AP50[class=cat]", min=0.7, missing_metric="pass"))
    assert math.isnan(verdict.value)
    assert verdict.ties is None
