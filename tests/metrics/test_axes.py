"""Where a metric reference points to, and what is said about one that points nowhere."""

import pytest
from pictures import det, evaluate, gt

from jaccard_eval import MetricRef, UsageError
from jaccard_eval.data.protocol import COCO, VOC2012
from jaccard_eval.metrics.detection import Axes

AXES = Axes(COCO, ("cat", "dog"))


def ref(text: str) -> MetricRef:
    return MetricRef.parse(text)


def test_nothing_named_means_all_thresholds_the_first_area_the_largest_cap_and_all_classes() -> None:
    plain = ref("AP")
    assert (AXES.thresholds(plain), AXES.area(plain), AXES.cap(plain), AXES.label(plain)) == (slice(None), 0, 2, None)


def test_names_are_found_on_their_axes() -> None:
    named = ref("AP[iou=0.75,area=large,max_dets=10,class=dog]")
    assert (AXES.thresholds(named), AXES.area(named), AXES.cap(named), AXES.label(named)) == ([5], 3, 1, 1)


def test_a_threshold_is_found_whatever_its_last_bit() -> None:
    assert COCO.iou_thresholds[8] != 0.9  # linspace gives 0.8999999999999999
    assert AXES.thresholds(ref("AP90")) == [8]


def test_without_caps_there_is_one_place_on_their_axis() -> None:
    assert Axes(VOC2012, ("dog",)).cap(ref("AR")) == 0
    with pytest.raises(UsageError, match="protocol voc2012 has no caps on detections; ask for AR without one"):
        Axes(VOC2012, ("dog",)).cap(ref("AR100"))


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("AP[class=dgo]", r"unknown class 'dgo'\. Did you mean 'dog'\?"),
        ("AP[area=smal]", r"unknown area range 'smal'; choose from all, small, medium, large\. Did you mean 'small'\?"),
        ("AP51", r"IoU 0\.51 is not evaluated; thresholds are 0\.5, 0\.55, .*0\.95"),
        ("AR7", r"cap 7 is not evaluated; caps are \[1, 10, 100\]"),
        ("recall", r"recall needs a score; write recall\[iou=0\.5,score=0\.5\]\. Or evaluate with score=0\.5"),
        ("F1[class=dog]", r"F1 needs a score; write F1\[iou=0\.5,score=0\.5,class=dog\]\. Or"),
        ("AP[score=0.5]", r"AP takes iou, area, subset, max_dets and class only"),
        ("recall[iou=0.5,area=small]", r"recall takes iou, score and class only"),
        ("maps", r"unknown metric 'maps'.* Did you mean 'AP"),
    ],
)
def test_a_reference_that_points_nowhere_is_a_usage_error_with_a_way_out(metric: str, said: str) -> None:
    result = evaluate([gt("dog 0 0 9 9")], [det("dog 0 0 9 9", 0.9)])
    with pytest.raises(UsageError, match=said):
        result[metric]
