import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaccard_eval.data.metricref import (
    BOX_METRICS,
    COCO_SUMMARY,
    FINDING_METRICS,
    LVIS_SUMMARY,
    MAP_CLASS_METRICS,
    MAP_METRICS,
    METRICS,
    SEGMENT_CLASS_METRICS,
    SEGMENT_METRICS,
    Metric,
    MetricRef,
    canonical,
    metric_bounds,
    qualified,
    suggest_metric,
)
from jaccard_eval.errors import UsageError

ANY_TEXT = st.text(max_size=12)
REFS = st.builds(
    MetricRef,
    name=st.sampled_from(BOX_METRICS),
    iou=st.none() | st.floats(0.0, 1.0) | st.integers(0, 100).map(lambda n: n / 100),
    area=st.none() | st.sampled_from(["small", "all", "very small", "0-32", ""]) | ANY_TEXT,
    max_dets=st.none() | st.integers(1, 10_000),
    score=st.none()
    | st.sampled_from(["best-f1", "precision=0.9", "recall=1", "fppi=0.125"])
    | st.floats(allow_nan=False, allow_infinity=False),
    class_name=st.none() | ANY_TEXT,
)


@given(REFS)
@example(MetricRef(name="AP", iou=0.30000000000000004))
@example(MetricRef(name="AP", iou=0.5000001))
@example(MetricRef(name="AP", area="very small"))
@example(MetricRef(name="F1", iou=0.5, score="best-f1"))
@example(MetricRef(name="AP", class_name='a "b", c=[d]\\'))
@example(MetricRef(name="AP", class_name="best-f1"))
@example(MetricRef(name="AP", class_name=""))
@example(MetricRef(name="AP", class_name="\x1c\u2028\udcff "))
def test_every_reference_is_read_back_from_its_text(ref: MetricRef) -> None:
    assert MetricRef.parse(str(ref)) == ref
    assert str(MetricRef.parse(str(ref))) == str(ref)


@pytest.mark.parametrize("text", [*COCO_SUMMARY, *LVIS_SUMMARY, *BOX_METRICS])
def test_the_names_of_the_summary_are_canonical(text: str) -> None:
    assert str(MetricRef.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AP50", MetricRef(name="AP", iou=0.5)),
        ("AP05", MetricRef(name="AP", iou=0.05)),
        ("AP_small", MetricRef(name="AP", area="small")),
        ("AP75_small", MetricRef(name="AP", iou=0.75, area="small")),
        ("AR10", MetricRef(name="AR", max_dets=10)),
        ("F1[score=best-f1]", MetricRef(name="F1", score="best-f1")),
        ("recall[iou=0.5, score=0.4, class=traffic light]",
         MetricRef(name="recall", iou=0.5, score=0.4, class_name="traffic light")),
        (' TP [ class = "a,b" ] ', MetricRef(name="TP", class_name="a,b")),
        ("AP[max_dets=1]", MetricRef(name="AP", max_dets=1)),
    ],
)  # fmt: skip
def test_references_are_read(text: str, expected: MetricRef) -> None:
    assert MetricRef.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mAP", "AP"),
        ("mAP50", "AP50"),
        ("mAP75", "AP75"),
        ("mAP@0.5", "AP50"),
        ("mAP@.75", "AP75"),
        ("mAP@50", "AP50"),
        ("mAP@[.5]", "AP50"),
        ("AP@0.5", "AP50"),
        ("AP@0.575[class=dog]", "AP[iou=0.575,class=dog]"),
        ("AP85", "AP85"),
        ("mAP_small", "AP_small"),
        ("mAR100", "AR100"),
        ("sensitivity[iou=0.5, score=0.4]", "recall[iou=0.5,score=0.4]"),
        ("FP per image[iou=0.5]", "FPPI[iou=0.5]"),
        ("map", "AP"),
        ("map50", "AP50"),
        ("MAP75", "AP75"),
        ("map_small", "AP_small"),
        ("f1", "F1"),
        ("Sensitivity[iou=0.5]", "recall[iou=0.5]"),
        ("AP50[dog]", "AP50[class=dog]"),
        ('ap50["traffic light, red"]', 'AP50[class="traffic light, red"]'),
        ("AP[small]", "AP_small"),
        ("AP[class=small]", "AP[class=small]"),
        ('AP["small"]', "AP[class=small]"),
        ("AP[dog,area=small]", "AP_small[class=dog]"),
        ("best F1", "F1[score=best-f1]"),
        ("best_score[dog]", "score[score=best-f1,class=dog]"),
        ("recall[precision=0.90]", "recall[precision=0.9]"),
        ("score[iou=0.5,fppi=1]", "score[iou=0.5,fppi=1]"),
        ("olrp_fp", "oLRP_FP"),
        ("ΔAP_Cls", "dAP_Cls"),
        ("classification errors", "classification_errors"),
    ],
)
def test_other_tools_names_are_understood(text: str, expected: str) -> None:
    assert str(MetricRef.parse(text)) == expected
    assert not MetricRef.parse(text).coco_ious
    assert metric_bounds(text) == metric_bounds(expected)


@pytest.mark.parametrize(
    "text",
    ["mAP50-95", "mAP50:95", "mAP@[.5:.95]", "mAP@.5:.95", "mAP@0.5:0.95", "AP@[IoU=0.50:0.95]", "mAP@[.5:.05:.95]"],
)
def test_the_mean_over_thresholds_of_coco_is_understood_and_remembered(text: str) -> None:
    ref = MetricRef.parse(f"{text}[class=dog]")
    assert (str(ref), ref.coco_ious) == ("AP[class=dog]", True)


@given(REFS.filter(lambda ref: ref.class_name is None), ANY_TEXT)
def test_a_reference_can_be_qualified_by_a_class_of_any_name(ref: MetricRef, name: str) -> None:
    assert MetricRef.parse(qualified(str(ref), {"class": name, "iou": None})) == replace(ref, class_name=name)


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (MetricRef(name="AP", iou=0.5, area="small"), "AP50[area=small]"),
        (MetricRef(name="AP", iou=0.05), "AP05"),
        (MetricRef(name="AP", iou=1.0), "AP[iou=1]"),
        (MetricRef(name="AP", iou=0.575), "AP[iou=0.575]"),
        (MetricRef(name="AR", max_dets=100, area="small"), "AR100[area=small]"),
        (MetricRef(name="AR", iou=0.5), "AR[iou=0.5]"),
        (MetricRef(name="precision", score=0.25, class_name="a]b"), 'precision[score=0.25,class="a]b"]'),
    ],
)
def test_the_canonical_text_is_the_shortest_form(ref: MetricRef, text: str) -> None:
    assert str(ref) == text


def test_thresholds_that_differ_by_rounding_alone_are_one_reference() -> None:
    ninth = np.linspace(0.5, 0.95, 10)[8]  # 0.8999999999999999, the ninth threshold of COCO
    assert MetricRef(name="AP", iou=ninth) == MetricRef.parse("AP90")
    assert str(MetricRef(name="AP", iou=ninth)) == "AP90"


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    assert str(MetricRef(name="F1", iou=np.float64(0.5), score=np.float64(0.25))) == "F1[iou=0.5,score=0.25]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown metric ''"),
        ("map_50", "Did you mean 'AP50'"),
        ("recall_small", "unknown metric"),
        ("mAP@", "Did you mean 'AP'"),
        ("mAP@[.5:.75]", "cannot read '@[.5:.75]'"),
        ("mAP@100", "cannot read '@100'"),
        ("recall@0.5", "cannot read '@0.5'"),
        ("mAP@0.5[iou=0.5]", "iou is given twice"),
        ("ar_100", "Did you mean 'AR100'"),
        ("class.recall", "Did you mean 'recall'"),
        ("fp_per_image", "Did you mean 'FPPI'"),
        ("mean average precision 50", "Did you mean 'AP50'"),
        ("AP_", "unknown metric"),
        ("TP50", "unknown metric"),
        ("recal[iou=0.5]", "Did you mean 'recall'"),
        ("AP[iou=0.5", "the bracket is not closed"),
        ("AP[iou=0.5]x", "the bracket is not closed"),
        ("AP[iou=high]", "iou must be a number, got 'high'"),
        ("AP[iou=nan]", "iou must be a finite number"),
        ("AP[max_dets=1.5]", "max_dets must be a number"),
        ("AP[score=best]", "score must be a number, got 'best'"),
        ("AP[iou]", "cannot read 'iou'"),
        ("AP[iou=]", "cannot read 'iou='"),
        ("AP[klass=dog]", "Did you mean 'class'"),
        ("AP[class=a,class=b]", "class is given twice"),
        ("AP50[iou=0.5]", "iou is given twice"),
        (r'AP[class="\q"]', "cannot read"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        MetricRef.parse(text)
    assert message in str(caught.value)


@given(st.text(max_size=30) | st.text('AP50[]=,"\\ iouclass.', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        ref = MetricRef.parse(text)
    except UsageError:
        return
    assert MetricRef.parse(str(ref)) == ref


def test_the_catalogue_has_the_metrics_of_all_features_in_the_order_of_their_tables() -> None:
    assert BOX_METRICS[:26] == (
        *(
            "AP",
            "AR",
            "AP_R11",
            "wAP",
            "wAR",
            "P",
            "R",
            "LAMR",
            "CPM",
            "JI",
            "precision",
            "recall",
            "F1",
            "wF1",
            "accuracy",
            "image_accuracy",
            "TP",
            "FP",
            "FN",
            "FPPI",
            "count_MAE",
            "count_RMSE",
            "count_NAE",
            "count_exact",
            "score",
            "mean_IoU",
        ),
    )
    assert BOX_METRICS[26:32] == ("ECE", "MCE", "oLRP", "oLRP_Loc", "oLRP_FP", "oLRP_FN")
    assert BOX_METRICS[32:36] == ("classification_errors", "dAP_Cls", "localisation_errors", "dAP_Loc")
    assert FINDING_METRICS == ("warnings", "notes")
    assert MAP_METRICS == ("mIoU", "fwIoU", "pixel_accuracy", "mean_accuracy")
    assert MAP_CLASS_METRICS == ("IoU", "precision", "recall", "Dice")
    assert SEGMENT_METRICS == (
        "PQ",
        "SQ",
        "RQ",
        "PQ_things",
        "SQ_things",
        "RQ_things",
        "PQ_stuff",
        "SQ_stuff",
        "RQ_stuff",
    )
    assert SEGMENT_CLASS_METRICS == ("PQ", "SQ", "RQ", "TP", "FP", "FN")
    listed = {*BOX_METRICS, *MAP_METRICS, *MAP_CLASS_METRICS, *SEGMENT_METRICS, *SEGMENT_CLASS_METRICS}
    listed |= {*FINDING_METRICS}
    assert listed == set(METRICS)


def test_shares_end_at_one_and_counts_nowhere() -> None:
    assert [metric_bounds(text) for text in ("AP50", "recall[iou=0.5]", "mIoU", "IoU[class=road]")] == [(0, 1)] * 4
    assert [metric_bounds(text) for text in ("TP[iou=0.5]", "FPPI")] == [(0, math.inf)] * 2
    assert metric_bounds("external.fps") == (-math.inf, math.inf)


def test_what_counts_errors_is_better_when_lower() -> None:
    lower = {name for name, metric in METRICS.items() if not metric.higher_is_better}
    of_errors = {name for name in BOX_METRICS if METRICS[name].on == "errors"}
    assert lower == {"FP", "FN", "FPPI", "LAMR", "count_MAE", "count_RMSE", "count_NAE", *of_errors, *FINDING_METRICS}


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_alias_leads_to_its_metric(metric: Metric) -> None:
    for alias in metric.aliases:
        assert suggest_metric(alias, tuple(METRICS)) == f" Did you mean {metric.name!r}?"
        assert canonical(alias) == metric.name
