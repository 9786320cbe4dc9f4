"""Metric values: averages drawn by hand, undefined values with their reasons, the summary of each protocol."""

import math

import pytest
from pictures import det, evaluate, gt, match

from jaccard_eval import MetricRef
from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.data.protocol import COCO, VOC2007, VOC2012, AreaRange
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs

# cat: found at every threshold. dog: IoU 60 / 100, found at 0.5, 0.55 and 0.6. fox: no ground truth.
TRUTH = [gt("cat 0 0 10 10"), gt("dog 0 50 10 10")]
DETECTIONS = [det("cat 0 0 10 10", 0.9), det("dog 0 50 10 6", 0.8), det("fox 0 0 10 10", 0.7)]


def test_average_precision_is_the_mean_over_thresholds_and_classes_with_ground_truth() -> None:
    assert evaluate(TRUTH, DETECTIONS)["AP"] == pytest.approx((1 + 0.3) / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("AP50", 1.0),
        ("AP75", 0.5),
        ("AP[iou=0.6,class=dog]", 1.0),
        ("AP[iou=0.65,class=dog]", 0.0),
        ("AP[class=dog]", 0.3),
        ("AR1", 0.65),
        ("AR_small", 0.65),
        ("precision[iou=0.5,score=0]", 2 / 3),
        ("precision[iou=0.5,score=0.75]", 1.0),
        ("recall[iou=0.75,score=0]", 1 / 2),
        ("recall[iou=0.75,score=0.4,class=dog]", 0.0),
        ("F1[iou=0.5,score=0]", 4 / 5),
        ("F1[iou=0.5,score=best-f1]", 1.0),
        ("TP[iou=0.5,score=0]", 2.0),
        ("FP[iou=0.75,score=0]", 2.0),
        ("FN[iou=0.75,score=0]", 1.0),
        ("FPPI[iou=0.75,score=0]", 2.0),
    ],
)
def test_any_reference_can_be_measured(metric: str, expected: float) -> None:
    assert evaluate(TRUTH, DETECTIONS)[metric] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("AP_large", "no large ground truth"),
        ("AP[class=fox]", "no ground truth"),
        ("recall[iou=0.5,score=0,class=fox]", "no ground truth"),
        ("precision[iou=0.5,score=0.95]", "no detections"),
    ],
)
def test_an_undefined_value_is_nan_and_says_why(metric: str, reason: str) -> None:
    one = evaluate(TRUTH, DETECTIONS).measured.value(MetricRef.parse(metric))
    assert (math.isnan(one.value), one.reason) == (True, reason)


def test_a_defined_value_has_no_reason_and_counts_the_ground_truth_it_rests_on() -> None:
    measured = evaluate(TRUTH, DETECTIONS).measured
    values = [measured.value(MetricRef.parse(text)) for text in ("AP", "AP[class=dog]", "AP_small")]
    assert [(one.n, one.reason) for one in values] == [(2, None), (1, None), (2, None)]


def test_sizes_of_boxes_in_unknown_units_are_undefined() -> None:
    metrics = DetectionMetrics(match(TRUTH, DETECTIONS), ("cat", "dog", "fox"), ("a",), area_known=False)
    small, everything = (metrics.value(MetricRef.parse(text)) for text in ("AP_small", "AP"))
    assert (math.isnan(small.value), small.reason) == (True, "image sizes are unknown")
    assert small.n == 0  # in fractions of an image all boxes are below 32²: no count of small ones
    assert everything.reason is None


def test_per_class_rows_count_boxes_and_detections() -> None:
    rows = evaluate([*TRUTH, gt("dog 0 90 50 50", crowd=True)], DETECTIONS).per_class
    assert [(row.name, row.gt, row.ignored, row.pred) for row in rows] == [
        ("cat", 1, 0, 1),
        ("dog", 1, 1, 1),
        ("fox", 0, 0, 1),
    ]


def test_per_class_values_are_those_of_the_references() -> None:
    result = evaluate(TRUTH, DETECTIONS)
    for row in result.per_class:
        for metric, one in row.values.items():
            head, bracket, tail = metric.partition("[")
            named = f"{head}[{tail.removesuffix(']')}{',' if bracket else ''}class={row.name}]"
            assert one.value == result[named] or (math.isnan(one.value) and math.isnan(result[named]))


def test_empty_predictions_score_zero() -> None:
    result = evaluate(TRUTH, [])
    assert [result[name] for name in ("AP", "AP50", "AR100")] == [0.0, 0.0, 0.0]


def test_everything_is_undefined_without_ground_truth() -> None:
    result = evaluate([], DETECTIONS)
    assert all(math.isnan(one.value) and one.reason for one in result.metrics.values())


def test_the_summary_of_coco_has_its_twelve_numbers_in_its_order() -> None:
    assert tuple(map(str, summary_refs(COCO))) == COCO_SUMMARY


@pytest.mark.parametrize("protocol", [VOC2007, VOC2012], ids=lambda one: one.name)
def test_the_summary_of_voc_has_neither_sizes_nor_caps(protocol: object) -> None:
    assert [str(one) for one in summary_refs(protocol)] == ["AP", "AP50", "AR"]  # type: ignore[arg-type]


def test_the_summary_shows_custom_thresholds_caps_and_areas() -> None:
    protocol = COCO.with_options(
        iou_thresholds=(0.3, 0.6), max_dets=(5,), areas=(AreaRange("all", 0, 1e10), AreaRange("tiny", 0, 64))
    )
    assert [str(one) for one in summary_refs(protocol)] == ["AP", "AP30", "AP60", "AP_tiny", "AR5", "AR_tiny"]
    assert [str(one) for one in class_refs(protocol)] == ["AP", "AP30", "AP60", "AR5"]


def test_the_metrics_of_some_images_are_those_of_an_evaluation_of_these_alone() -> None:
    truth = [gt("dog 0 0 10 10", "a"), gt("dog 0 0 10 10", "b"), gt("dog 0 0 10 10", "c")]
    detections = [det("dog 0 0 10 10", 0.9, "a"), det("dog 50 0 10 10", 0.8, "b"), det("dog 0 0 10 10", 0.7, "c")]
    later = evaluate(truth, detections).measured.restrict([1, 2])
    alone = evaluate(truth[1:], detections[1:])
    assert list(later.image_names) == ["b", "c"]
    assert later.value(MetricRef.parse("FPPI[iou=0.5,score=0]")).value == 1 / 2  # one false positive on two images
    assert [later.value(MetricRef.parse(ref)).value for ref in COCO_SUMMARY[:3]] == [
        alone[ref] for ref in COCO_SUMMARY[:3]
    ]
    assert alone["AP50"] == pytest.approx(51 / 101 / 2, abs=1e-12)  # one of two is found, second in rank
