"""Explanations keep their promises: the fixes are replayed through the public interface, and steps add up."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import jaccard_eval
from jaccard_eval import AreaRange, BoxTable, explain
from jaccard_eval.data.protocol import COCO, PROTOCOLS
from jaccard_eval.errors import UsageError
from jaccard_eval.features.explain import ExplanationResult, Fix
from jaccard_eval.features.explain.compute import protocol_steps

Sides = tuple[BoxTable, BoxTable]


def draw(seed: int, *, n_images: int = 8, n_classes: int = 3) -> Sides:
    """Boxes, and detections near them with other classes, shifts and inventions."""
    rng = np.random.default_rng(seed)
    n = 40
    image, label = rng.integers(n_images, size=n), rng.integers(n_classes, size=n)
    xywh = np.column_stack([rng.uniform(0, 200, (n, 2)), rng.uniform(10, 40, (n, 2))])
    crowd = rng.random(n) < 0.1
    rows = np.concatenate([np.flatnonzero(rng.random(n) < 0.8), rng.integers(n, size=15)])
    near = xywh[rows] + rng.normal(0, 4, (len(rows), 4)) * [1, 1, 0, 0]
    near[-5:, :2] += 300
    named = np.where(rng.random(len(rows)) < 0.2, rng.integers(n_classes, size=len(rows)), label[rows])
    gt = BoxTable.from_arrays(image, label, xywh, encoding="xywh", crowd=crowd, difficult=crowd)
    return gt, BoxTable.from_arrays(image[rows], named, near, encoding="xywh", score=rng.random(len(rows)))


def replay(sides: Sides, fixes: tuple[Fix, ...]) -> BoxTable:
    """Do to the arrays what the fixes say, one after another."""
    gt, pred = sides
    assert pred.score is not None
    rows = [[*one] for one in zip(pred.image, pred.label, pred.xywh, pred.score, strict=True)]
    for one in fixes:
        if one.kind == "missed":
            rows.append([gt.image[one.source], int(one.becomes), one.xywh, 2.0])
        elif one.becomes:
            rows[one.source][1:3] = int(one.becomes), one.xywh
        else:
            rows[one.source] = []
    image, label, xywh, score = zip(*(row for row in rows if row), strict=True)
    return BoxTable.from_arrays(image, label, np.array(xywh), encoding="xywh", score=score)


def explained(sides: Sides, metric: str, **options: object) -> ExplanationResult:
    return explain(*sides, metric, **options)


COUNTED = ["AR", "AR1", "AR10[class=2]", "F1[score=best-f1]", "precision[iou=0.5,score=0.3]", "recall[score=0.99]"]


@pytest.mark.parametrize("metric", ["AP50", "AP", "AP75[class=1]", *COUNTED])
@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
@pytest.mark.parametrize("seed", range(3))
def test_fixing_the_boxes_it_names_gives_what_it_said(seed: int, protocol: str, metric: str) -> None:
    if protocol == "voc2012":  # which has one threshold, and no caps
        metric = metric.replace("75", "50").replace("AR10", "AR").replace("AR1", "AR")
    sides = draw(seed)
    found = explained(sides, metric, protocol=protocol)
    again = jaccard_eval.evaluate(sides[0], replay(sides, found.fixes), protocol=protocol)
    assert found.metric.value == jaccard_eval.evaluate(*sides, protocol=protocol)[str(found.metric.ref)]
    assert found.fixes
    assert again[str(found.metric.ref)] == pytest.approx(found.fixed, abs=1e-12)
    assert found.fixed > found.metric.value


@pytest.mark.parametrize("metric", ["AP", "AP[class=1]", "AP50", "AP75", "AP50[class=2]", *COUNTED])
@pytest.mark.parametrize("seed", range(3))
def test_the_gain_of_each_box_is_what_fixing_it_alone_gives(seed: int, metric: str) -> None:
    sides = draw(seed)
    found = explained(sides, metric)
    for one in found.fixes:
        before, after = (jaccard_eval.evaluate(sides[0], pred) for pred in (sides[1], replay(sides, (one,))))
        assert after[str(found.metric.ref)] - before[str(found.metric.ref)] == pytest.approx(one.gain, abs=1e-12), one


@pytest.mark.parametrize(
    "rules",
    [
        {"class_agnostic": True},
        {"iou": (0.3, 0.6)},
        {"areas": (AreaRange("large", 400, 1e5), AreaRange("small", 0, 400))},
        {"max_dets": (1, 3)},
        {"protocol": replace(COCO, score_ties="file")},
        {"protocol": replace(COCO, interpolation="area", recall_points=0)},
    ],
    ids=lambda rules: " ".join(map(str, rules.items()))[:40],
)
def test_rules_of_ones_own_keep_the_promises(rules: dict[str, object]) -> None:
    sides = draw(1)
    found = explained(sides, "AP", **rules)
    before = jaccard_eval.evaluate(*sides, **rules)
    assert found.metric.value == before["AP"]
    assert jaccard_eval.evaluate(sides[0], replay(sides, found.fixes), **rules)["AP"] == pytest.approx(found.fixed)
    for one in found.fixes:
        alone = jaccard_eval.evaluate(sides[0], replay(sides, (one,)), **rules)["AP"]
        assert alone - before["AP"] == pytest.approx(one.gain, abs=1e-12), one
    gains = [one.gain for one in found.fixes]
    assert gains == sorted(gains, reverse=True)


def test_the_gain_in_a_mean_over_thresholds_is_that_of_hand_arithmetic() -> None:
    # The first box is found at IoU 1, the second by 8 of 10 columns: a hit at IoU 0.50 to 0.80, at seven thresholds of
    # ten, so that AP is (7 * 1 + 3 * 51/101) / 10. The third image has a box of another class, which is missed: AP 0.
    gt = BoxTable.from_arrays([0, 1, 2], [0, 0, 1], [[0, 0, 10, 10]] * 3)
    pred = BoxTable.from_arrays(
        [0, 1, 0], [0, 0, 0], [[0, 0, 10, 10], [0, 0, 8, 10], [50, 50, 60, 60]], score=[0.9, 0.8, 0.85]
    )
    found = explain(gt, pred, "AP")
    # With the false positive between both, the second hit has precision 2/3: (51 + 50 * 2/3) / 101 where it is one.
    low, high = 51 / 101, (51 + 50 * 2 / 3) / 101
    assert found.metric.value == pytest.approx((0.7 * high + 0.3 * low) / 2)
    gains = {one.kind: one.gain for one in found.fixes}
    # Found, the missed box gives its class 1, half of the mean; without the false positive the first class has 1 at
    # the seven thresholds, and what it had at the others.
    assert gains == {"missed": pytest.approx(1 / 2), "background": pytest.approx(0.7 * (1 - high) / 2)}


def test_no_other_box_costs_more_than_the_first() -> None:
    found = explained(draw(5), "AP50", boxes=1000)
    gains = [one.gain for one in found.fixes]
    assert gains == sorted(gains, reverse=True)
    assert explained(draw(5), "AP50", boxes=2).fixes == found.fixes[:2]


def test_a_perfect_result_has_no_box_to_fix() -> None:
    gt, _ = draw(0)
    gt = gt.take(~gt.crowd)
    found = explained((gt, replace(gt, score=np.linspace(1, 0.5, len(gt)))), "AP")
    assert found.fixes == ()
    assert found.fixed == found.metric.value


@pytest.mark.parametrize("metric", ["AP", "AP50", "recall[iou=0.5,score=0.5]"])
def test_without_predictions_every_object_is_missed(metric: str) -> None:
    gt, pred = draw(0)
    found = explained((gt, pred.take(np.arange(0))), metric, boxes=len(gt))
    assert {one.kind for one in found.fixes} == {"missed"}
    assert len(found.fixes) == (~gt.crowd).sum()
    assert found.metric.value == 0 and found.fixed == pytest.approx(1)


@pytest.mark.parametrize("against", ["voc2007", "voc2012", "coco"])
@pytest.mark.parametrize("metric", ["AP", "AP50", "AP50[class=1]", "AR", "F1[score=0.3]"])
def test_the_steps_lead_to_the_other_protocol_and_add_up_to_the_gap(metric: str, against: str) -> None:
    sides = draw(1)
    start = "voc2012" if against == "coco" else "coco"
    found = explained(sides, metric, protocol=start, against=against)
    values = [found.metric.value, *(step.value for step in found.steps)]
    assert [step.delta for step in found.steps] == [b - a for a, b in itertools.pairwise(values)]
    assert values[-1] == jaccard_eval.evaluate(*sides, protocol=against)[str(found.metric.ref)]
    assert math.fsum(step.delta for step in found.steps) == pytest.approx(values[-1] - values[0], abs=1e-15)


@pytest.mark.parametrize("against", ["voc2007", "voc2012"])
def test_a_cap_that_the_metric_names_stays(against: str) -> None:
    sides = draw(7)
    found = explained(sides, "AR10", against=against)
    assert "caps on detections" not in [step.rule for step in found.steps]
    other = jaccard_eval.evaluate(*sides, protocol=against, max_dets=(1, 10, 100))
    assert found.steps[-1].value == other["AR10"]


def test_every_step_changes_one_rule_and_the_last_one_is_the_other_protocol() -> None:
    goal = PROTOCOLS["voc2007"]
    steps = list(protocol_steps(COCO, goal))
    assert len({rule for rule, _, _ in steps}) == len(steps)
    kept = {"name": COCO.name, "sources": COCO.sources}
    assert steps[-1][2] == replace(goal, **kept)
    assert list(protocol_steps(COCO, COCO)) == []


def test_the_curve_has_the_precision_of_the_evaluation() -> None:
    sides = draw(2)
    found = explained(sides, "AP50[class=0]")
    precision = jaccard_eval.evaluate(*sides).curves.precision[0, :, 0, 0, -1]
    assert [one.recall for one in found.curve] == np.linspace(0, 1, 101)[::10].tolist()
    assert [one.precision for one in found.curve] == precision[::10].tolist()
    assert not math.isnan(found.curve[0].score)


def test_what_a_number_is_made_of_is_told() -> None:
    # Two boxes, the first found, one more detection: TP 1, FP 1, FN 1.
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    pred = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [70, 70, 90, 90]], score=[0.9, 0.8])
    parts = {str(one.ref): one.value for one in explain(gt, pred, "F1").parts}
    assert list(parts.values()) == [0.5, 0.5, 1, 1, 1]
    assert list(parts) == [f"{name}[iou=0.5]" for name in ("precision", "recall", "TP", "FP", "FN")]
    by_threshold = explain(gt, pred, "AP").parts
    assert [str(one.ref) for one in by_threshold] == [f"AP{iou}" for iou in range(50, 100, 5)]
    assert explain(gt, pred, "AP50").parts == ()


def test_the_fixes_of_counts_are_those_that_hand_arithmetic_gives() -> None:
    # As above: without the false positive F1 is 2/3, with the missed box found 4/5; both, 1.
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    pred = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [70, 70, 90, 90]], score=[0.9, 0.8])
    found = explain(gt, pred, "F1")
    assert [one.kind for one in found.fixes] == ["missed", "background"]
    assert [one.gain for one in found.fixes] == pytest.approx([4 / 5 - 1 / 2, 2 / 3 - 1 / 2])
    assert (found.metric.value, found.fixed) == (0.5, 1.0)


def test_a_detection_below_the_score_does_not_keep_its_box_from_being_missed() -> None:
    gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.2])
    assert explain(gt, pred, "recall[score=0.1]").fixes == ()
    found = explain(gt, pred, "recall[score=0.5]")
    assert [(one.kind, one.gain) for one in found.fixes] == [("missed", 1.0)]
    assert (found.metric.value, found.fixed) == (0.0, 1.0)


@pytest.mark.parametrize("metric", ["AP_small", "AP[max_dets=10]", "TP[score=0.5]", "FPPI", "recall[area=small]"])
def test_areas_counts_and_caps_on_ap_are_not_explained(metric: str) -> None:
    with pytest.raises(UsageError, match="cannot be explained"):
        explained(draw(0), metric)


def test_unknown_classes_and_thresholds_are_refused() -> None:
    for metric in ("AP50[class=9]", "AP42"):
        with pytest.raises(UsageError):
            explained(draw(0), metric)


def test_without_ground_truth_there_is_nothing_to_explain() -> None:
    gt, pred = draw(0)
    crowd = np.ones(len(gt), dtype=bool)
    found = explained((replace(gt, crowd=crowd), pred), "AP50")
    assert math.isnan(found.metric.value) and math.isnan(found.fixed)
    assert (found.fixes, found.curve) == ((), ())
