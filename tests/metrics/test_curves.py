"""Curves: drawn by hand, undefined where there is no ground truth, and exact at the edges of the recall grid."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from pictures import curves, det, gt

from jaccard_eval import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO, VOC2007, VOC2012
from jaccard_eval.matching.matchtable import Ranking, match_boxes
from jaccard_eval.metrics.curves import Curves, required_hits
from jaccard_eval.metrics.detection import Averages, Axes

ALL_SIZES, LARGEST_CAP = 0, -1
ONE_HIT = 0.9999999999999998  # 1 / (1 + 2^-52): pycocotools adds an epsilon to the number of detections
AT_50 = COCO.with_options(iou_thresholds=(0.5,), areas=COCO.areas[:1], max_dets=(100,))


def hit(i: int, score: float) -> tuple:
    """Ground truth number `i` of a row of boxes, and a detection that is its copy."""
    return gt(f"dog {20 * i} 0 10 10"), det(f"dog {20 * i} 0 10 10", score)


def miss(i: int) -> tuple:
    """Ground truth number `i`, without a detection."""
    return (gt(f"dog {20 * i} 0 10 10"),)


def stray(score: float) -> tuple:
    """A detection far from everything."""
    return (det("dog 0 500 10 10", score),)


def drawn(*parts: tuple, protocol: object = AT_50) -> Curves:
    boxes = [box for part in parts for box in part]
    # Detections carry a score; in these pictures no ground truth does.
    return curves([box for box in boxes if not box.score], [box for box in boxes if box.score], protocol)  # type: ignore[arg-type]


def precision(one: Curves) -> list[float]:
    return one.precision[0, :, 0, ALL_SIZES, LARGEST_CAP].tolist()


def scores(one: Curves) -> list[float]:
    return one.scores[0, :, 0, ALL_SIZES, LARGEST_CAP].tolist()


def test_one_hit_has_the_precision_of_pycocotools_arithmetic() -> None:
    assert precision(drawn(hit(0, 0.9))) == [ONE_HIT] * 101


def test_precision_is_the_best_at_or_beyond_a_recall() -> None:
    # Ranks: stray, hit, hit: precision 0, 1/2, 2/3; the envelope lifts the first half to 2/3.
    one = drawn(stray(0.9), hit(0, 0.8), hit(1, 0.7))
    assert precision(one) == [2 / (3 + 2**-52)] * 101


def test_precision_is_zero_beyond_the_recall_that_is_reached() -> None:
    # 1 of 2 found: recall values 0, 0.01 .. 0.50 are reached: 51 of 101.
    assert precision(drawn(hit(0, 0.9), miss(1))) == [ONE_HIT] * 51 + [0.0] * 50


def test_the_recall_grid_lies_one_ulp_above_seven_tenths() -> None:
    # 7 of 10: 7 / 10 < linspace(0, 1, 101)[70] = 0.7000000000000001, so 70 values are reached, not 71.
    one = drawn(*(hit(i, 0.9 - i / 100) for i in range(7)), *(miss(i) for i in range(7, 10)))
    assert precision(one) == [1.0] * 70 + [0.0] * 31


def test_scores_are_those_at_which_each_recall_is_reached() -> None:
    one = drawn(hit(0, 0.9), stray(0.8), hit(1, 0.7))
    assert scores(one) == [0.9] * 51 + [0.7] * 50


def test_the_score_at_recall_zero_is_that_of_the_first_detection_even_if_it_misses() -> None:
    assert scores(drawn(stray(0.9), hit(0, 0.8))) == [0.9] + [0.8] * 100


def test_scores_are_zero_beyond_the_recall_that_is_reached() -> None:
    assert scores(drawn(stray(0.9), miss(0))) == [0.9] + [0.0] * 100


def test_a_class_with_ground_truth_and_no_detections_scores_zero() -> None:
    one = drawn(miss(0))
    assert (precision(one), scores(one), one.recall.ravel().tolist()) == ([0.0] * 101, [0.0] * 101, [0.0])


def test_a_class_without_ground_truth_is_undefined() -> None:
    one = drawn(stray(0.9))
    assert all(np.isnan(values).all() for values in (one.precision, one.recall, one.scores))


def test_no_classes_give_empty_axes() -> None:
    one = curves([], [])
    assert [values.shape for values in (one.precision, one.recall, one.scores)] == [
        (10, 101, 0, 4, 3),
        (10, 0, 4, 3),
        (10, 101, 0, 4, 3),
    ]


def test_recall_counts_hits_within_the_cap() -> None:
    one = drawn(hit(0, 0.9), hit(1, 0.8), hit(2, 0.7), miss(3), protocol=COCO.with_options(max_dets=(1, 2, 100)))
    assert one.recall[0, 0, ALL_SIZES].tolist() == [1 / 4, 2 / 4, 3 / 4]


def test_detections_outside_the_size_range_that_match_nothing_do_not_count() -> None:
    # The stray is 10 x 10; the medium range knows only the 50 x 50 box and its copy.
    one = curves([gt("dog 0 0 50 50")], [det("dog 0 0 50 50", 0.5), det("dog 300 0 10 10", 0.9)])
    by_area = one.precision[0, 0, 0, :, LARGEST_CAP]
    assert by_area.tolist()[0] == 1 / (2 + 2**-52)
    assert by_area.tolist()[2] == ONE_HIT
    assert np.isnan(by_area[[1, 3]]).all()


def test_detections_outside_the_size_range_that_match_do_count() -> None:
    # The detection, 40 x 30 = 1200 px², is medium; it matches a small box, 1000 px², with IoU 1000 / 1200.
    one = curves([gt("dog 0 0 40 25")], [det("dog 0 0 40 30", 0.9)])
    assert one.precision[0, 0, 0, 1, LARGEST_CAP] == ONE_HIT


def test_the_area_below_the_envelope_weighs_each_step_of_recall() -> None:
    # Ranks hit, stray, hit, of 4: precision 1, 1/2, 2/3; recall steps of 1/4: (1 + 2/3) / 4.
    one = drawn(hit(0, 0.9), stray(0.8), hit(1, 0.7), miss(2), miss(3), protocol=VOC2012)
    assert one.area_under_curve(0, 0).tolist() == [[pytest.approx(float(Fraction(5, 12)), abs=1e-15)]]


def test_the_area_below_the_envelope_is_zero_without_hits_and_undefined_without_ground_truth() -> None:
    truth, detections = [gt("cat 0 0 10 10")], [det("dog 0 0 10 10", 0.9)]
    area = curves(truth, detections, VOC2012).area_under_curve(0, 0)
    assert area[0, 0] == 0.0
    assert math.isnan(area[0, 1])


def test_eleven_points_are_reached_as_numpy_counts_them() -> None:
    # 3 of 10: 0.3 < linspace(0, 1, 11)[3] = 0.30000000000000004: three values are reached.
    one = drawn(*(hit(i, 0.9 - i / 100) for i in range(3)), *(miss(i) for i in range(3, 10)), protocol=VOC2007)
    assert precision(one) == [1.0] * 3 + [0.0] * 8


@pytest.mark.parametrize("n_points", [101, 11, 2, 1001])
def test_required_hits_are_what_a_search_among_all_recalls_finds(n_points: int) -> None:
    grid = np.linspace(0.0, 1.0, n_points)
    positives = np.arange(1, 2001)
    expected = np.stack([np.searchsorted(np.arange(n + 1) / n, grid, "left") for n in positives])
    assert (required_hits(positives, grid) == expected).all()


def test_no_count_of_hits_is_enough_without_ground_truth() -> None:
    assert required_hits(np.array([0]), np.array([0.0, 1.0])).min() == np.iinfo(np.int32).max


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("drawn", [None, [1, 0, 2, 0], [0, 3, 1, 1]])
def test_curves_are_made_of_classes_with_objects_alone(
    compiled: bool, drawn: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of 40 classes 5 have objects. With weights of 0, a class can have hits and no objects.
    rng = np.random.default_rng(7)
    n, n_pred = 30, 120
    truth, label = rng.uniform(0, 60, (n, 2)), rng.choice([2, 9, 10, 25, 39], n)
    image, of = rng.integers(0, 4, n), rng.integers(0, n, n_pred)
    boxes = np.hstack((truth, np.full((n, 2), 20.0)))
    found = boxes[of] + rng.normal(0, 2, (n_pred, 4))
    stray = np.where(rng.uniform(size=n_pred) < 0.7, label[of], rng.integers(0, 40, n_pred))
    gt = BoxTable.from_arrays(image, label, boxes, encoding="xywh")
    pred = BoxTable.from_arrays(image[of], stray, found, score=rng.uniform(size=n_pred), encoding="xywh")
    if not compiled:
        monkeypatch.setattr("jaccard_eval.native.calls.load_core", lambda: None)
    made = Curves(Ranking.of(match_boxes(gt, pred, COCO, n_images=4, n_labels=40), 4))
    made = made if drawn is None else made.weighted(np.array(drawn))
    whole = made.interpolated_precision(0, 2)
    values, kept = made.defined_precision(0, 2)
    assert values.shape == (10, 101, len(kept))
    assert 3 <= len(kept) <= 5
    assert np.array_equal(values, whole[..., kept])
    assert np.isnan(np.delete(whole, kept, axis=2)).all()
    averages = Averages(made, Axes(COCO, tuple(map(str, range(40)))))
    assert averages.mean(MetricRef(name="AP")) == np.mean(whole[~np.isnan(whole)])
    means = np.ascontiguousarray(whole.reshape(1010, 40).T).mean(axis=1)
    assert np.array_equal(averages.class_means(MetricRef(name="AP")), means, equal_nan=True)
    monkeypatch.setattr("jaccard_eval.metrics.detection.LARGE", 10)
    ref = MetricRef.parse("AP[area=small,class=9]")
    means = averages.class_means(replace(ref, class_name=None))
    assert np.array_equal(averages.mean(ref), means[9], equal_nan=True)
    assert len(averages._precision) == 1
