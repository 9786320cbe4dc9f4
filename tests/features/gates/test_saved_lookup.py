"""A saved result answers what it holds as the evaluation itself does, and refuses the rest."""

import json
from typing import Any

import numpy as np
import pytest
from pictures import det, evaluate, gt

from jaccard_eval import EvaluationResult, Gates, Rule, Slice, UsageError, gate
from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.features.gates.judging import SavedAnswers, answers_of
from jaccard_eval.features.pixels import PixelProtocol, PixelsResult
from jaccard_eval.features.pixels.counting import CountedMaps, pixels_result
from jaccard_eval.metrics.pixel_counts import ConfusionCounts

TRUTH = [gt("cat 0 0 10 10"), gt("dog 0 50 10 10", "b")]
FOUND = [det("cat 0 0 10 10", 0.9), det("dog 0 50 10 6", 0.8, "b"), det("fox 0 0 10 10", 0.7)]


def saved(result: EvaluationResult | PixelsResult) -> SavedAnswers:
    """What is left of a result on its way through a file."""
    return SavedAnswers(json.loads(json.dumps(result.to_dict())), "result.json")


def refused(answers: Any, ref: str) -> str:
    with pytest.raises(UsageError) as caught:
        answers.value(ref)
    return str(caught.value)


def label_maps() -> PixelsResult:
    """Two classes: 2 of 3 road pixels right, 1 of 1 car; IoU 2/3 and 1/2."""
    left = ConfusionCounts.from_maps(np.array([[0, 0]]), np.array([[0, 0]]))
    right = ConfusionCounts.from_maps(np.array([[0, 1]]), np.array([[1, 1]]))
    maps = CountedMaps(
        counts=ConfusionCounts.merge([left, right]),
        paths=("gt", "pred"),
        formats=("png", "png"),
        fingerprints=("sha256:1", "sha256:2"),
        n_pairs=2,
        strategy="name",
        by_image=(("left", left), ("right", right)),
    )
    return pixels_result(maps, PixelProtocol(classes=("road", "car, red")), "0.1.0")


@pytest.mark.parametrize(
    "ref",
    [
        *COCO_SUMMARY,
        "AP[iou=0.5]",
        "AP[area=all,max_dets=100]",
        "AR",
        "AR[area=all]",
        "AP50[class=dog]",
        "AR100[class=cat]",
        "AR[class=fox]",
        "recall[iou=0.5,score=0.75]",
        "precision[iou=0.75,score=0.75,class=dog]",
        "F1[iou=0.5,score=0.75]",
        "TP[iou=0.5,score=0.75,class=cat]",
        "FN[iou=0.9,score=0.75]",
    ],
)
def test_what_the_file_holds_is_answered_to_the_last_bit(ref: str) -> None:
    result = evaluate(TRUTH, FOUND, score=0.75)
    live, again = answers_of(result).value(ref), saved(result).value(ref)
    assert np.array_equal([again.value, again.n], [live.value, live.n], equal_nan=True)
    assert (again.reason is None) == (live.reason is None)


def test_under_one_threshold_the_threshold_may_be_left_out_or_written() -> None:
    result = evaluate(TRUTH, FOUND, protocol="voc2012", score=0.75)
    answers = saved(result)
    assert answers.value("AP").value == answers.value("AP50").value == result["AP50"]
    assert answers.value("recall[score=0.75]").value == result["recall[iou=0.5,score=0.75]"]


@pytest.mark.parametrize(
    ("ref", "part"),
    [
        ("AP85", "result.json has no AP85. Re-run evaluate with this rule, or use the saved run (.npz)."),
        ("recall[iou=0.5,score=0.4]", "result.json has no recall[iou=0.5,score=0.4]"),
        ("recall[iou=0.5,score=best-f1]", "result.json has no recall[iou=0.5,score=best-f1]"),
        ("AP_small[class=dog]", "result.json has no AP_small[class=dog]"),
        ("AP[class=dgo]", "Did you mean 'dog'?"),
        ("AP_smal", "unknown area range"),
        ("AP33", "IoU 0.33 is not evaluated"),
        ("mAP@.85", "has no AP85"),
        ("maps", "Did you mean 'AP'?"),
        ("external.latency_ms", "has no external.latency_ms"),
    ],
)
def test_what_the_file_does_not_hold_is_refused(ref: str, part: str) -> None:
    assert part in refused(saved(evaluate(TRUTH, FOUND, score=0.75)), ref)


def test_all_that_gates_asked_for_is_in_the_file() -> None:
    result = evaluate(TRUTH, FOUND)
    slices = (Slice(name="dogs", patterns=("b",)),)
    rules = (
        Rule(metric="recall[iou=0.5,score=0.4,class=dog]", min=0.5),
        Rule(metric="AP60", classes=("cat", "dog"), aggregate="min", min=0.5),
        Rule(metric="FPPI[iou=0.5,score=0]", slice="dogs", max=1.0),
        Rule(metric="external.fps", min=30.0),
    )
    gates = Gates(rules=rules, slices=slices)
    first = gate(result, gates, metrics={"fps": 31.5})
    with_gates = evaluate(TRUTH, FOUND).to_dict() | {"gates": [one.to_dict() for one in first]}
    again = SavedAnswers(json.loads(json.dumps(with_gates)), "result.json")
    assert again.value("AP60[class=dog]").value == result["AP60[class=dog]"]
    assert again.value("external.fps").value == 31.5
    assert again.on(slices[0]).value("FPPI[iou=0.5,score=0]").value == 0.0
    assert "has no FPPI[iou=0.5,score=0]" in refused(again, "FPPI[iou=0.5,score=0]")  # only on the slice


def test_slices_of_an_evaluation_are_answered_without_gates() -> None:
    slices = (Slice(name="cats", patterns=("a",)), Slice(name="none", patterns=("c",)))
    result = evaluate(TRUTH, FOUND, images=["c"], slices=slices)
    again = saved(result)
    for one in slices:
        for ref in ("AP", "AP50", "AP[iou=0.5]"):
            assert repr(again.on(one).value(ref)) == repr(answers_of(result).on(one).value(ref))  # NaN is no NaN
    assert again.on(slices[1]).value("AP").reason == "no ground truth"


def test_a_slice_that_was_made_otherwise_is_another() -> None:
    with pytest.raises(UsageError, match=r"result\.json has no slice 'dogs'"):
        saved(evaluate(TRUTH, FOUND)).on(Slice(name="dogs", patterns=("c*",)))


@pytest.mark.parametrize("make", [answers_of, saved])
def test_label_maps_answer_their_metrics(make: Any) -> None:
    answers = make(label_maps())
    assert answers.class_names == ("road", "car, red")
    assert answers.value("IoU[class=road]").value == 2 / 3
    assert answers.value('IoU[class="car, red"]').value == 1 / 2
    assert answers.value("mIoU").value == (2 / 3 + 1 / 2) / 2
    assert (answers.value("mIoU").n, answers.value("IoU[class=road]").n) == (4, 3)


@pytest.mark.parametrize(
    ("ref", "part"),
    [
        ("AP", "unknown metric 'AP' for label maps"),
        ("miuo", "Did you mean 'mIoU'?"),
        ("IoU", "IoU needs a class"),
        ("mIoU[class=road]", "mIoU covers all classes"),
        ("IoU[class=raod]", "unknown class 'raod'. Did you mean 'road'?"),
        ("IoU[iou=0.5,class=road]", "label maps have no iou"),
    ],
)
@pytest.mark.parametrize("make", [answers_of, saved])
def test_label_maps_refuse_what_they_do_not_have(make: Any, ref: str, part: str) -> None:
    assert part in refused(make(label_maps()), ref)


def test_label_maps_are_gated_by_the_same_rules() -> None:
    rules = (Rule(metric="mIoU", min=0.5), Rule(metric="IoU", classes=("*",), min=0.6, min_support=2))
    verdicts = gate(label_maps(), Gates(rules=rules))
    assert [(one.class_name, str(one.status)) for one in verdicts] == [
        (None, "pass"), ("road", "pass"), ("car, red", "skip"),
    ]  # fmt: skip


def test_label_maps_have_slices_and_saved_ones_those_that_were_measured() -> None:
    right = Slice(name="s", patterns=("right",))
    judged = gate(label_maps(), Gates(rules=(Rule(metric="mIoU", min=0.5, slice="s"),), slices=(right,)))
    # Of the right image: road has no pixel right, and car one of the two that are either side's.
    assert [(one.value, str(one.status)) for one in judged] == [(0.25, "fail")]
    with pytest.raises(UsageError, match=r"result\.json has no slice 's'\. Re-run pixels with this rule"):
        saved(label_maps()).on(right)


def test_a_baseline_of_another_kind_is_refused() -> None:
    gates = Gates(rules=(Rule(metric="mIoU", min=0.5),))
    with pytest.raises(UsageError, match="the baseline is of kind evaluation, the run of kind pixels"):
        gate(label_maps(), gates, baseline=evaluate(TRUTH, FOUND))
