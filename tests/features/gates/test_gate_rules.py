"""Rules that cannot mean what they say are refused when they are made, with what was meant where that can be told."""

import math
from typing import Any

import pytest

from jaccard_eval import Gates, Rule, Slice, UsageError


def refused(**keys: Any) -> str:
    with pytest.raises(UsageError) as caught:
        Rule(**{"metric": "AP50", **keys})
    return str(caught.value)


def refused_together(*rules: Rule, **keys: Any) -> str:
    with pytest.raises(UsageError) as caught:
        Gates(rules=rules, **keys)
    return str(caught.value)


FLOOR = Rule(metric="AP50", min=0.5)


@pytest.mark.parametrize("key", ["min", "max", "warn_min", "max_drop", "warn_max_drop", "max_drop_relative"])
def test_a_percentage_is_asked_for_as_a_fraction(key: str) -> None:
    message = refused(**{key: 45.0})
    assert key.replace("_", "-") in message
    assert "Did you mean 0.45?" in message


@pytest.mark.parametrize("metric", ["mIoU", "IoU[class=road]", "recall[iou=0.5]", "F1"])
def test_every_metric_but_counts_lies_between_0_and_1(metric: str) -> None:
    assert "Did you mean 0.9?" in refused(metric=metric, min=90.0)


@pytest.mark.parametrize("metric", ["TP[iou=0.5]", "FPPI[iou=0.5]", "external.latency_ms"])
def test_counts_and_values_from_elsewhere_have_any_size(metric: str) -> None:
    assert Rule(metric=metric, max=45.0).max == 45.0


def test_a_limit_far_above_1_is_refused_without_a_guess() -> None:
    message = refused(min=4500.0)
    assert "is between 0 and 1" in message
    assert "Did you mean" not in message


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({}, "no limit; set one of min, max, max-drop"),
        ({"min": math.nan}, "min must be a finite number"),
        ({"min": -0.1}, "min cannot be negative"),
        ({"max_drop": -0.01}, "max-drop cannot be negative"),
        ({"min": 0.5, "max": 0.4}, "no value can pass: min = 0.5 is above max = 0.4"),
        ({"min": 0.5, "warn_min": 0.4}, "warn-min = 0.4 never applies; set it above min = 0.5"),
        ({"max": 0.5, "warn_max": 0.6}, "warn-max = 0.6 never applies; set it below max = 0.5"),
        ({"max_drop": 0.01, "warn_max_drop": 0.02}, "set it below max-drop = 0.01"),
        ({"min": 0.5, "severity": "eror"}, "Did you mean 'error'?"),
        ({"min": 0.5, "missing_metric": "warning"}, "Did you mean 'warn'?"),
        ({"min": 0.5, "classes": ("*",), "aggregate": "minimum"}, "Did you mean 'min'?"),
        ({"min": 0.5, "aggregate": "min"}, "aggregate needs classes"),
        ({"max": 2.0, "classes": ("*",), "aggregate": "count-below"}, "go together"),
        ({"min": 0.5, "below": 0.5}, "go together"),
        ({"min": 0.5, "min_support": -1}, "min-support cannot be negative"),
        ({"metric": "AP[class=dog]", "classes": ("cat",), "min": 0.5}, "keep one"),
        ({"metric": "AP[klass=dog]", "min": 0.5}, "Did you mean 'class'?"),
        ({"metric": "FP[iou=0.5]", "max_drop": 1.0}, "lower is better for FP; use max-rise"),
        ({"metric": "external.fps", "classes": ("dog",), "min": 1.0}, "remove classes"),
        ({"metric": "external.fps", "min_support": 3, "min": 1.0}, "remove min-support"),
        ({"metric": "external.", "min": 1.0}, "lacks a name"),
    ],
)
def test_what_a_rule_cannot_mean_is_refused(keys: dict[str, Any], part: str) -> None:
    assert part in refused(**keys)


def test_all_that_is_wrong_with_a_rule_is_said_at_once() -> None:
    assert len(refused(min=45.0, severity="fatal", aggregate="min").splitlines()) == 3


def test_a_count_of_classes_is_no_fraction_but_what_it_counts_below_is() -> None:
    counting = {"classes": ("*",), "aggregate": "count-below"}
    assert Rule(metric="AP50", max=3.0, below=0.5, **counting).limits[0].error == 3.0
    assert "Did you mean 0.5?" in refused(max=3.0, below=50.0, **counting)
    assert "use max-rise instead" in refused(max_drop=1.0, below=0.5, **counting)


def test_a_value_may_more_than_double() -> None:
    assert Rule(metric="external.latency_ms", max_rise_relative=1.5).limits[0].error == 1.5


def test_a_rule_is_named_after_what_it_judges() -> None:
    assert Rule(metric="AP50", min=0.5, max_drop=0.01).id == "AP50 min+max-drop"
    rule = Rule(metric="recall", iou=0.5, score=0.4, classes=("person", "cy*"), slice="night", min=0.9)
    assert rule.id == "recall[iou=0.5,score=0.4] of person, cy* on night min"


def test_gates_without_rules_are_refused() -> None:
    assert "no rules" in refused_together()


def test_two_rules_of_one_id_are_refused() -> None:
    assert "2 rules have the id 'AP50 min'" in refused_together(FLOOR, Rule(metric="AP50", min=0.6))


def test_an_unknown_slice_is_refused_with_a_suggestion() -> None:
    rule = Rule(metric="AP50", min=0.5, slice="nihgt")
    slices = (Slice(name="night", patterns=("n*",)),)
    assert "unknown slice 'nihgt'. Did you mean 'night'?" in refused_together(rule, slices=slices)


def test_a_slice_of_nothing_is_refused() -> None:
    assert "slice 'none' is empty" in refused_together(FLOOR, slices=(Slice(name="none", patterns=()),))


@pytest.mark.parametrize("epsilon", [-1e-9, 0.01, math.nan])
def test_the_epsilon_is_no_hidden_tolerance(epsilon: float) -> None:
    assert "epsilon must be between 0 and" in refused_together(FLOOR, epsilon=epsilon)


def test_policies_are_known_words() -> None:
    message = refused_together(FLOOR, missing_metric="fail", missing_baseline="skip")
    assert "missing-metric must be one of error, warn, pass; got 'fail'" in message
    assert "missing-baseline must be one of error, warn, pass; got 'skip'" in message
