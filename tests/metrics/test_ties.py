"""AP over all orders of equal scores, against every order tried one by one."""

from itertools import permutations

import numpy as np
import pytest
from pictures import Picture, det, evaluate, gt, metrics

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO, VOC2012
from jaccard_eval.metrics.averages import TieBounds

AP = MetricRef(name="AP")
AT_ONE = COCO.with_options(iou_thresholds=(0.5,))
HIT, MISS = "cat 0 0 10 10", "cat 50 50 10 10"


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
