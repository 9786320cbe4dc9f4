"""Judging: every kind of limit passing, failing, skipped, undefined and misspelt, on values counted by hand."""

import math
from pathlib import Path
from typing import Any

import pytest
from pictures import det, evaluate, gt

from jaccard_eval import EvaluationResult, Gates, GateVerdict, Rule, Slice, UsageError, gate
from jaccard_eval.data.result import Status
from jaccard_eval.features.gates.judging import answers_of, judge, matching_classes

# cat: found at every threshold. dog: IoU 60 / 100, found at 0.5, 0.55 and 0.6. fox: no ground truth, one false alarm.
TRUTH = [gt("cat 0 0 10 10"), gt("dog 0 50 10 10", "b")]
FOUND = [det("cat 0 0 10 10", 0.9), det("dog 0 50 10 6", 0.8, "b"), det("fox 0 0 10 10", 0.7)]
LOST = [FOUND[0], det("dog 50 50 10 10", 0.8, "b"), FOUND[2]]  # the dog is missed: AP50 of dog is 0
AP_DOG = 3 / 10  # of ten thresholds
AP = (1 + AP_DOG) / 2


@pytest.fixture(scope="module")
def run() -> EvaluationResult:
    return evaluate(TRUTH, FOUND)


def judged(result: EvaluationResult, *rules: Rule, **keys: Any) -> tuple[GateVerdict, ...]:
    baseline = keys.pop("baseline", None)
    metrics = keys.pop("metrics", None)
    return gate(result, Gates(rules=rules, **keys), baseline=baseline, metrics=metrics)


def one(result: EvaluationResult, metric: str = "AP", **keys: Any) -> GateVerdict:
    """The only verdict of one rule."""
    of_gates = {name: keys.pop(name) for name in ("slices", "baseline", "metrics", "epsilon") if name in keys}
    (verdict,) = judged(result, Rule(metric=metric, **keys), **of_gates)
    return verdict


def refused(result: EvaluationResult, *rules: Rule, **keys: Any) -> str:
    with pytest.raises(UsageError) as caught:
        judged(result, *rules, **keys)
    return str(caught.value)


def test_a_floor_passes_on_and_above_it_and_says_by_how_much(run: EvaluationResult) -> None:
    verdict = one(run, min=0.6)
    assert (verdict.status, verdict.limit, verdict.n) == (Status.PASS, 0.6, 2)
    assert verdict.value == pytest.approx(AP, abs=1e-12)
    assert verdict.margin == pytest.approx(AP - 0.6, abs=1e-12)


def test_a_precision_rests_on_detections_and_a_recall_on_objects(tmp_path: Path) -> None:
    # At 0.7: cat and dog are found, fox is a false alarm: 2 / 3 of 3 detections, and 2 / 2 objects.
    result = evaluate(TRUTH, FOUND, score=0.7)
    result.save(tmp_path / "result.json")
    for judging in (result, tmp_path / "result.json"):
        verdicts = gate(judging, ["precision[iou=0.5,score=0.7]>=0.5", "recall[iou=0.5,score=0.7]>=0.5"])
        assert [(verdict.n, round(verdict.value, 12)) for verdict in verdicts] == [(3, round(2 / 3, 12)), (2, 1.0)]
    fox = one(result, "precision[iou=0.5,score=0.7,class=fox]", min=0.5, min_support=1)
    assert (fox.value, fox.n, fox.status) == (0.0, 1, Status.FAIL)
    none = one(result, "precision[iou=0.5,score=0.95]", min=0.5, missing_metric="pass")
    assert (none.n, none.reason) == (0, "undefined: no detections")


def test_a_floor_fails_below_it(run: EvaluationResult) -> None:
    verdict = one(run, min=0.66)
    assert (verdict.status, verdict.failed) == (Status.FAIL, True)
    assert verdict.margin == pytest.approx(AP - 0.66, abs=1e-12)


def test_a_perfect_score_that_rounding_left_below_1_passes_a_floor_of_1() -> None:
    perfect = evaluate([gt("dog 0 0 10 10")], [det("dog 0 0 10 10", 0.9)])
    assert 1 - 1e-15 < perfect["AP50"] < 1  # one hit is 1 / (1 + 2^-52)
    assert one(perfect, "AP50", min=1.0).status is Status.PASS


def test_nothing_is_rounded_before_it_is_compared(run: EvaluationResult) -> None:
    # 0.65 would be "0.6500" against either limit.
    assert one(run, min=AP + 2e-9).status is Status.FAIL
    assert one(run, min=AP + 5e-10).status is Status.PASS  # within the epsilon of 1e-9
    assert one(run, min=AP + 5e-10, epsilon=0.0).status is Status.FAIL


def test_a_ceiling_fails_above_it(run: EvaluationResult) -> None:
    # One false alarm (fox) on two images.
    assert one(run, "FPPI[iou=0.5,score=0]", max=0.5).status is Status.PASS
    assert one(run, "FPPI[iou=0.5,score=0]", max=0.49).margin == pytest.approx(-0.01, abs=1e-12)
    assert one(run, "FP[iou=0.5,score=0]", max=0.0).status is Status.FAIL


def test_between_two_levels_is_a_warning(run: EvaluationResult) -> None:
    levels = [one(run, min=low, warn_min=high).status for low, high in ((0.5, 0.6), (0.5, 0.7), (0.66, 0.7))]
    assert levels == [Status.PASS, Status.WARN, Status.FAIL]
    assert one(run, warn_min=0.7).status is Status.WARN


def test_a_warning_names_the_limit_that_was_missed(run: EvaluationResult) -> None:
    assert one(run, min=0.5, warn_min=0.7).limit == 0.7


@pytest.mark.parametrize(
    ("severity", "status"), [("error", Status.FAIL), ("warning", Status.WARN), ("info", Status.INFO)]
)
def test_the_severity_says_what_a_broken_limit_is(run: EvaluationResult, severity: str, status: Status) -> None:
    assert one(run, min=0.9, severity=severity).status is status
    assert one(run, min=0.1, severity=severity).status is Status.PASS


def test_every_limit_of_a_rule_is_judged(run: EvaluationResult) -> None:
    verdicts = judged(run, Rule(metric="AP", min=0.6, max=0.64))
    assert [(v.check, v.status) for v in verdicts] == [("min", Status.PASS), ("max", Status.FAIL)]


def test_keys_of_a_rule_qualify_its_metric(run: EvaluationResult) -> None:
    verdict = one(run, "recall", iou=0.75, score=0.4, classes=("dog",), min=0.5)
    assert (verdict.metric, verdict.value) == ("recall[iou=0.75,score=0.4,class=dog]", 0.0)
    assert one(run, "AP", area="small", min=0.5).metric == "AP_small"


def test_classes_by_name_or_glob_are_judged_one_by_one(run: EvaluationResult) -> None:
    verdicts = judged(run, Rule(metric="AP", classes=("d*", "cat"), min=0.5))
    assert [(v.class_name, v.status) for v in verdicts] == [("cat", Status.PASS), ("dog", Status.FAIL)]


def test_a_name_with_glob_characters_is_taken_as_a_name_first() -> None:
    assert matching_classes(["[ab]"], ["[ab]", "a"]) == ("[ab]",)
    assert matching_classes(["[ab]"], ["a", "b", "c"]) == ("a", "b")


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        ({"aggregate": "min"}, AP_DOG, "lowest: 'dog'"),
        ({"aggregate": "mean"}, AP, ""),
        ({"aggregate": "median"}, AP, ""),
        ({"aggregate": "count-below", "below": 0.5}, 1.0, "below: 'dog'"),
        ({"aggregate": "count-below", "below": 0.3}, 0.0, ""),  # 0.3 is not below 0.3, whatever rounding did
    ],
)
def test_classes_are_aggregated(run: EvaluationResult, keys: dict[str, Any], value: float, reason: str) -> None:
    verdict = one(run, classes=("cat", "dog"), max=1.0, **keys)
    assert verdict.value == pytest.approx(value, abs=1e-12)
    assert (verdict.reason, verdict.n, verdict.class_name) == (reason, 2, None)
    assert [str(cell.ref) for cell in verdict.cells] == ["AP[class=cat]", "AP[class=dog]"]


def test_too_little_ground_truth_is_skipped_and_reported(run: EvaluationResult) -> None:
    verdict = one(run, "AP[class=dog]", min=0.9, min_support=2)
    assert (verdict.status, verdict.n) == (Status.SKIP, 1)
    assert verdict.reason == "support 1 is below min-support 2"


def test_an_aggregate_leaves_out_what_has_too_little_support() -> None:
    result = evaluate([*TRUTH, gt("cat 50 0 10 10")], FOUND)
    verdict = one(result, classes=("cat", "dog"), aggregate="min", min=0.4, min_support=2)
    assert (verdict.status, verdict.n) == (Status.PASS, 2)
    assert verdict.reason == "lowest: 'cat'; 1 of 2 classes skipped: support below 2"


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        ({}, Status.FAIL),
        ({"missing_metric": "warn"}, Status.WARN),
        ({"missing_metric": "pass"}, Status.SKIP),
        ({"severity": "warning"}, Status.WARN),
    ],
)
def test_an_undefined_value_fails_unless_told_otherwise(
    run: EvaluationResult, keys: dict[str, Any], status: Status
) -> None:
    verdict = one(run, "AP_large", min=0.0, **keys)
    assert (verdict.status, verdict.reason) == (status, "undefined: no large ground truth")
    assert math.isnan(verdict.value)
    assert math.isnan(verdict.margin)


def test_what_the_gates_say_of_undefined_values_holds_where_a_rule_says_nothing(run: EvaluationResult) -> None:
    rules = (Rule(metric="AP_large", min=0.5), Rule(metric="AP_medium", min=0.5, missing_metric="error"))
    assert [v.status for v in judged(run, *rules, missing_metric="pass")] == [Status.SKIP, Status.FAIL]


def test_an_undefined_class_makes_an_aggregate_undefined_unless_told_otherwise(run: EvaluationResult) -> None:
    keys = {"classes": ("*",), "aggregate": "min", "min": 0.2}
    verdict = one(run, **keys)
    assert (verdict.status, verdict.reason) == (Status.FAIL, "undefined for 'fox': no ground truth")
    told = one(run, **keys, missing_metric="pass")
    assert (told.status, told.reason) == (Status.PASS, "lowest: 'dog'; ignored: undefined for 'fox': no ground truth")
    assert one(run, **keys, missing_metric="warn").status is Status.WARN
    assert one(run, **keys, min_support=1).status is Status.PASS


def test_a_drop_is_a_difference_to_the_baseline(run: EvaluationResult) -> None:
    lost = evaluate(TRUTH, LOST)  # AP 0.5 against 0.65
    verdict = one(lost, max_drop=0.1, baseline=run)
    assert (verdict.status, verdict.check) == (Status.FAIL, "max-drop")
    assert (verdict.baseline, verdict.delta) == (pytest.approx(AP, abs=1e-12), pytest.approx(-0.15, abs=1e-12))
    assert verdict.margin == pytest.approx(-0.05, abs=1e-12)
    assert one(lost, max_drop=0.15, baseline=run).status is Status.PASS  # .65 - .5 is .15000000000000002
    assert one(run, max_drop=0.0, baseline=lost).status is Status.PASS  # a gain is no drop


def test_a_relative_drop_is_a_share_of_the_baseline(run: EvaluationResult) -> None:
    lost = evaluate(TRUTH, LOST)
    share = 0.15 / AP  # 23 %
    assert one(lost, max_drop_relative=share, baseline=run).status is Status.PASS
    assert one(lost, max_drop_relative=share - 0.01, baseline=run).status is Status.FAIL


def test_a_rise_is_bad_where_lower_is_better(run: EvaluationResult) -> None:
    lost = evaluate(TRUTH, LOST)  # two false alarms against one
    assert one(lost, "FP[iou=0.5,score=0]", max_rise=0.0, baseline=run).status is Status.FAIL
    assert one(lost, "FP[iou=0.5,score=0]", max_rise_relative=1.0, baseline=run).status is Status.PASS
    assert one(run, "FP[iou=0.5,score=0]", max_rise=0.0, baseline=lost).status is Status.PASS


def test_a_floor_shows_the_change_as_well_when_there_is_a_baseline(run: EvaluationResult) -> None:
    assert one(evaluate(TRUTH, LOST), min=0.4, baseline=run).delta == pytest.approx(-0.15, abs=1e-12)


def test_a_drop_from_an_undefined_value_is_undefined(run: EvaluationResult) -> None:
    nothing = evaluate(TRUTH, [])
    verdict = one(run, "precision[iou=0.5,score=0]", max_drop=0.1, baseline=nothing)
    assert (verdict.status, verdict.reason) == (Status.FAIL, "the baseline is undefined: no detections")


def test_without_a_baseline_a_limit_on_changes_is_refused_unless_that_is_allowed(run: EvaluationResult) -> None:
    rule = Rule(metric="AP", min=0.1, max_drop=0.1)
    assert "needs a baseline" in refused(run, rule)
    with pytest.raises(UsageError, match="no baseline to compare with"):
        judge(Gates(rules=(rule,)), answers_of(run))
    for policy, status in (("warn", Status.WARN), ("pass", Status.SKIP)):
        floor, drop = judge(Gates(rules=(rule,), missing_baseline=policy), answers_of(run))
        assert (floor.status, drop.status, drop.reason) == (Status.PASS, status, "no baseline")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"protocol": "voc2012"}, "protocol was 'voc2012', now 'coco'"),
        ({"max_dets": [10]}, "max_dets was '10', now '1,10,100'"),
        ({"classes": ("cat", "dog")}, "classes was 'cat,dog', now not set"),
        ({"score_min": 0.1}, "score_min was '0.1', now not set"),
    ],
)
def test_a_baseline_of_other_rules_is_refused(run: EvaluationResult, options: dict[str, Any], part: str) -> None:
    message = refused(run, Rule(metric="AP", min=0.1), baseline=evaluate(TRUTH, FOUND, **options))
    assert "cannot compare this run with the baseline" in message
    assert part in message


def test_a_baseline_of_other_ground_truth_is_refused(run: EvaluationResult) -> None:
    moved = evaluate([TRUTH[0], gt("dog 0 51 10 10", "b")], FOUND)
    assert "gt was 'sha-256-128:" in refused(run, Rule(metric="AP", min=0.1), baseline=moved)


def test_another_operating_point_in_the_report_makes_no_other_baseline(run: EvaluationResult) -> None:
    assert one(run, max_drop=0.0, baseline=evaluate(TRUTH, LOST, score=0.5)).status is Status.PASS


def test_a_slice_is_an_evaluation_of_its_images_alone(run: EvaluationResult) -> None:
    slices = (Slice(name="dogs", patterns=("b*",)),)
    verdict = one(run, "AP", slice="dogs", min=0.5, slices=slices)
    assert verdict.value == pytest.approx(evaluate(TRUTH[1:], FOUND[1:2])["AP"], abs=1e-15)
    assert (verdict.status, verdict.slice, verdict.n) == (Status.FAIL, "dogs", 1)


def test_a_slice_is_compared_with_the_same_slice_of_the_baseline(run: EvaluationResult) -> None:
    slices = (Slice(name="cats", patterns=("a",), exact=True),)
    assert one(evaluate(TRUTH, LOST), max_drop=0.0, slice="cats", slices=slices, baseline=run).delta == 0.0


@pytest.mark.parametrize("patterns", [("c*",), ("a", "zebra.png")])
def test_a_slice_with_a_name_or_glob_of_no_image_is_refused(run: EvaluationResult, patterns: tuple[str, ...]) -> None:
    slices = (Slice(name="night", patterns=patterns),)
    message = refused(run, Rule(metric="AP", slice="night", min=0.5), slices=slices)
    assert f"slice 'night': no image is matched by {patterns[-1]!r}; image names look like 'a'." in message


def test_names_of_a_file_are_no_globs(run: EvaluationResult) -> None:
    slices = (Slice(name="night", patterns=("*",), exact=True),)
    assert "no image is matched by '*'" in refused(run, Rule(metric="AP", slice="night", min=0.5), slices=slices)


def test_a_value_from_elsewhere_is_judged_like_any_other(run: EvaluationResult) -> None:
    assert one(run, "external.latency_ms", max=15.0, metrics={"latency_ms": 12.3}).margin == pytest.approx(2.7)
    assert one(run, "external.latency_ms", max=15.0, metrics={"latency_ms": 15.1}).failed
    assert one(run, "external.latency_ms", max=15.0, metrics={"latency_ms": math.nan}).failed


def test_a_value_that_was_not_given_is_refused_with_a_suggestion(run: EvaluationResult) -> None:
    rule = Rule(metric="external.latency_ms", max=15.0)
    message = refused(run, rule, metrics={"latencyms": 12.3})
    assert "no value for 'external.latency_ms'. Add --metric latency_ms=VALUE." in message
    assert "Did you mean 'latencyms'?" in message


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"metric": "mapp50"}, "unknown metric 'mapp50'"),
        ({"metric": "mapp50"}, "Did you mean 'AP50'?"),
        ({"metric": "AP[class=dgo]"}, "unknown class 'dgo'. Did you mean 'dog'?"),
        ({"metric": "AP", "classes": ("cat", "dgo")}, "no class matches 'dgo'. Did you mean 'dog'?"),
        ({"metric": "AP", "classes": ("z*",)}, "no class matches 'z*'"),
        ({"metric": "AP", "area": "smal"}, "unknown area range 'smal'; choose from all, small, medium, large."),
        ({"metric": "AP33"}, "IoU 0.33 is not evaluated"),
        ({"metric": "AR", "max_dets": 7}, "cap 7 is not evaluated"),
        ({"metric": "recall", "iou": 0.75}, "recall needs a score; write recall[iou=0.75,score=0.5]"),
        ({"metric": "AP50", "iou": 0.75}, "iou is given twice"),
        ({"metric": "mIoU"}, "unknown metric 'mIoU'"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_was_meant(
    run: EvaluationResult, keys: dict[str, Any], part: str
) -> None:
    assert part in refused(run, Rule(**keys, min=0.5))


def test_all_rules_that_name_what_does_not_exist_are_said_at_once(run: EvaluationResult) -> None:
    rules = (Rule(metric="maps", min=0.5), Rule(metric="AP", min=0.5), Rule(metric="AP50", classes=("x",), min=0.5))
    lines = refused(run, *rules).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["rule 'maps min'", "rule 'AP50 of x min'"]
