"""AP over all orders of equal scores, against every order tried one by one."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import Picture, det, evaluate, gt, metrics

import jaccard_eval
from jaccard_eval import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO, VOC2012
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.findings import Severity
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, TieBounds

AP = MetricRef(name="AP")
AT_ONE = COCO.with_options(iou_thresholds=(0.5,))
HIT, MISS = "cat 0 0 10 10", "cat 50 50 10 10"
BOXES = {HIT: [0, 0, 10, 10], MISS: [50, 50, 60, 60]}


def draw(seed: int) -> tuple[list[Picture], list[Picture]]:
    """Seven images with an object each, and a hit or a miss on each; three scores only."""
    rng = np.random.default_rng(seed)
    boxes = [det(HIT if rng.random() < 0.5 else MISS, float(rng.integers(1, 4)) / 4, f"i{i}") for i in range(7)]
    return [gt(HIT, f"i{i}") for i in range(7)], boxes


def every_order(truth: list[Picture], boxes: list[Picture], protocol: object) -> list[float]:
    """AP of each ranking in which no score is lower than the next; scores are made different to fix the order."""
    found = []
    for order in permutations(boxes):
        scores = [box.score for box in order]
        if scores == sorted(scores, reverse=True):
            ranked = [det(HIT if box.xywh[0] == 0 else MISS, 1 - 0.1 * i, box.image) for i, box in enumerate(order)]
            found.append(metrics(truth, ranked, protocol).value(AP).value)
    return found


@pytest.mark.parametrize("protocol", [AT_ONE, VOC2012], ids=["coco", "voc"])
@pytest.mark.parametrize("seed", range(3))
def test_the_bounds_are_the_extremes_of_every_order(seed: int, protocol: object) -> None:
    truth, boxes = draw(seed)
    measured = metrics(truth, boxes, protocol)
    found = every_order(truth, boxes, protocol)
    assert TieBounds(measured.curves, measured.axes).interval(AP) == pytest.approx((min(found), max(found)), abs=1e-12)


def test_without_equal_scores_both_bounds_are_the_metric() -> None:
    measured = metrics([gt(HIT), gt("cat 50 0 9 9")], [det(HIT, 0.9), det(MISS, 0.8), det("cat 50 0 9 9", 0.7)])
    assert measured.source.n_tied == 0
    assert TieBounds(measured.curves, measured.axes).interval(AP) == (measured.value(AP).value,) * 2


def test_equal_scores_of_different_classes_are_no_tie() -> None:
    assert metrics([gt(HIT)], [det(HIT, 0.5), det("dog 0 0 10 10", 0.5)]).source.n_tied == 0


def test_ignored_detections_of_a_tie_do_not_count() -> None:
    # The detection inside the crowd is ignored; the miss comes before or after the only hit: precision 1/2 or 1.
    truth = [gt(HIT), gt("cat 100 0 40 40", crowd=True)]
    boxes = [det(HIT, 0.5), det(MISS, 0.5), det("cat 100 0 40 40", 0.5)]
    measured = metrics(truth, boxes)
    assert TieBounds(measured.curves, measured.axes).interval(AP) == pytest.approx((0.5, 1.0), abs=1e-12)


def test_no_detections_and_no_ground_truth_are_no_trouble() -> None:
    measured = evaluate([gt(HIT)], [], names=["cat", "dog"]).measured
    assert TieBounds(measured.curves, measured.axes).interval(AP) == (0.0, 0.0)


def test_the_order_of_a_tie_that_spans_a_hit_and_a_miss_is_signed() -> None:
    # One object; with the hit first AP is 1, with it behind the miss the precision at recall 1 is 1/2.
    found = {}
    for name, order in {"hit": (HIT, MISS), "miss": (MISS, HIT), "both hit": (HIT, HIT)}.items():
        pred = BoxTable.from_arrays([0, 0], [0, 0], [BOXES[text] for text in order], score=[0.5, 0.5])
        found[name] = jaccard_eval.evaluate(BoxTable.from_arrays([0], [0], [BOXES[HIT]]), pred)
    ties = {name: signature_fields(result.signature)["ties"] for name, result in found.items()}
    assert [round(found[name]["AP"], 9) for name in ("hit", "miss")] == [1.0, 0.5]
    assert ties["hit"] != ties["miss"]
    assert found["hit"].pred.fingerprint == found["miss"].pred.fingerprint
    assert [finding.code for finding in found["miss"].findings] == ["score-ties-interval"]
    assert found["miss"].findings[0].severity is Severity.WARNING


def test_without_such_a_tie_no_order_is_signed() -> None:
    gt_box, far = BOXES[HIT], BOXES[MISS]
    truth = BoxTable.from_arrays([0, 1], [0, 0], [gt_box, gt_box])
    for image, boxes, score in (
        ([0, 0], [gt_box, far], [0.5, 0.4]),  # no tie
        ([0, 1], [gt_box, gt_box], [0.5, 0.5]),  # two hits
        ([0, 1], [far, far], [0.5, 0.5]),  # two misses
    ):
        pred = BoxTable.from_arrays(image, [0, 0], boxes, score=score)
        assert "ties" not in signature_fields(jaccard_eval.evaluate(truth, pred).signature)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_equal_orders_have_one_digest_and_equal_metrics(seed: int) -> None:
    """Over shuffles of one file: where the signature is the same, every metric is."""
    rng = np.random.default_rng(seed)
    n = 12
    truth = BoxTable.from_arrays(
        rng.integers(0, 2, 4), [0] * 4, rng.integers(0, 3, (4, 4)) * 5 + [0, 0, 9, 9], encoding="xywh"
    )
    image, boxes = rng.integers(0, 2, n), rng.integers(0, 3, (n, 4)) * 5 + [0, 0, 9, 9]
    score = rng.choice([0.2, 0.4, 0.6], n)
    known: dict[str, dict[str, float]] = {}
    for _ in range(6):
        order = rng.permutation(n)
        pred = BoxTable.from_arrays(image[order], [0] * n, boxes[order], score=score[order], encoding="xywh")
        result = jaccard_eval.evaluate(truth, pred)
        values = {name: metric.value for name, metric in result.metrics.items()}
        np.testing.assert_equal(known.setdefault(result.signature, values), values)


def test_detections_that_compete_for_one_object_can_be_in_any_order() -> None:
    # Whichever comes first takes the object: AP is 1 in both orders, though one of the two is a false positive.
    truth = BoxTable.from_arrays([0], [0], [BOXES[HIT]])
    for order in ((0, 1), (1, 0)):
        boxes = np.array([BOXES[HIT], [0, 0, 10, 9.9]])[[*order]]
        result = jaccard_eval.evaluate(truth, BoxTable.from_arrays([0, 0], [0, 0], boxes, score=[0.5, 0.5]))
        assert result["AP50"] == pytest.approx(1)
        assert not [finding for finding in result.findings if finding.code == "score-ties-interval"]


@pytest.mark.parametrize("seed", range(6))
def test_both_bounds_are_reached_by_files_in_some_order(seed: int) -> None:
    """Four detections, most of them in one image and tied: no bound is beyond what 24 files give."""
    rng = np.random.default_rng(seed)
    shift = rng.integers(0, 3, (3, 4)) * 4 + [0, 0, 9, 9]
    truth = BoxTable.from_arrays([0, 0, 1], [0] * 3, shift, encoding="xywh")
    image, boxes = rng.choice([0, 0, 1], 4), rng.integers(0, 4, (4, 4)) * 4 + [0, 0, 9, 9]
    score, rules, found = rng.choice([0.2, 0.4], 4), AT_ONE.with_options(score_ties="file"), []
    for order in map(list, permutations(range(4))):
        pred = BoxTable.from_arrays(image[order], [0] * 4, boxes[order], score=score[order], encoding="xywh")
        table = match_boxes(truth, pred, rules, n_images=2, n_labels=1)
        measured = DetectionMetrics(table, ["cat"], ["a", "b"])
        found.append((measured.value(AP).value, *TieBounds(measured.curves, measured.axes).interval(AP)))
    values, low, high = np.array(found).T
    assert (low <= values + 1e-12).all()
    assert (high >= values - 1e-12).all()
    assert low.min() >= values.min() - 1e-12
    assert high.max() <= values.max() + 1e-12
