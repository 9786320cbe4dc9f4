"""Results for experiment trackers: names that each takes, and no number lost, renamed or undefined."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_builder import make_result

from jaccard_eval import BoxTable, EvaluationResult, UsageError, compare, evaluate, inspect, log_metrics, pixels
from jaccard_eval.api.results import STYLES
from jaccard_eval.data.result import OperatingPoint

NAN = math.nan
# Overlaps of whole pixels: .5 of the dog's box, all of the cat's, and a bird where there is none.
GT = BoxTable.from_arrays(["a", "a"], ["dog", "cat"], [[0, 0, 10, 10], [50, 50, 60, 60]])
PRED = BoxTable.from_arrays(
    ["a", "a", "b"],
    ["dog", "cat", "cat"],
    [[0, 0, 10, 5], [50, 50, 60, 60], [0, 0, 5, 5]],
    score=[0.9, 0.8, 0.3],
)


def classes(*names: str, ap: float = 0.5) -> Mapping[str, Mapping[str, float]]:
    return {name: {"AP": ap} for name in names}


def test_numbers_of_an_evaluation_by_hand() -> None:
    logged = log_metrics(evaluate(GT, PRED))
    # The dog is found at IoU .5 alone, of ten thresholds: AP .1. The cat at all: AP 1, its false alarm comes later.
    assert logged["val/AP/dog"] == pytest.approx(0.1)
    assert logged["val/AP/cat"] == pytest.approx(1.0)
    assert logged["val/AP"] == pytest.approx(0.55)
    assert logged["val/AP50"] == pytest.approx(1.0)
    assert logged["val/AP75"] == pytest.approx(0.5)


def test_undefined_values_are_omitted_and_all_others_are_floats() -> None:
    result = make_result(classes={"dog": {"AP": NAN, "AP50": 1.0}})
    assert log_metrics(result) == {"val/AP": 0.5, "val/AP50": 0.75, "val/AP50/dog": 1.0}
    assert all(type(value) is float for value in log_metrics(evaluate(GT, PRED, score=0.5)).values())


def test_classes_can_be_omitted() -> None:
    assert log_metrics(make_result(), classes=False, prefix="") == {"AP": 0.5, "AP50": 0.75}


@pytest.mark.parametrize(
    ("style", "names"),
    [
        ("plain", "AP AP50 AP_small AR100 precision F1 AP/dog"),
        (
            "ultralytics",
            "metrics/mAP50-95(B) metrics/mAP50(B) metrics/mAP_small(B) metrics/mAR100(B) metrics/precision(B) F1"
            " metrics/mAP50-95(B)/dog",
        ),
        ("torchmetrics", "map map_50 map_small mar_100 precision F1 map_per_class/dog"),
        ("lightning", "map map_50 map_small mar_100 precision F1 map_per_class_dog"),
    ],
)
def test_each_style_has_the_names_of_its_library(style: str, names: str) -> None:
    metrics = {"AP": 0.1, "AP50": 0.2, "AP_small": 0.3, "AR100": 0.4}
    result = make_result(metrics=metrics, classes=classes("dog"), points=(point(None, f1=0.5, precision=0.6),))
    logged = log_metrics(result, style=style, prefix="")
    values = (0.1, 0.2, 0.3, 0.4, 0.6, 0.5, 0.5)
    assert {name: logged[name] for name in names.split()} == dict(zip(names.split(), values, strict=True))


def test_the_range_of_thresholds_is_named_only_where_it_is_that() -> None:
    logged = log_metrics(evaluate(GT, PRED, iou=[0.5, 0.6]), style="ultralytics", prefix="")
    # Two thresholds: the dog is found at one of them.
    assert "metrics/mAP50-95(B)" not in logged
    assert logged["metrics/mAP(B)"] == pytest.approx(0.75)
    assert logged["metrics/mAP60(B)"] == pytest.approx(0.5)


def test_an_operating_point_has_its_counts_and_its_score() -> None:
    logged = log_metrics(evaluate(GT, PRED, score=0.85), prefix="")
    # Only the dog's detection has that score: found at IoU .5, and the cat is missed.
    assert {name: logged[name] for name in ("TP", "FP", "FN", "precision", "recall", "score")} == {
        "TP": 1.0,
        "FP": 0.0,
        "FN": 1.0,
        "precision": 1.0,
        "recall": 0.5,
        "score": 0.85,
    }
    assert (logged["TP/dog"], logged["FN/dog"], logged["TP/cat"], logged["FN/cat"]) == (1.0, 0.0, 0.0, 1.0)


def test_the_operating_point_is_at_iou_one_half_or_the_lowest_threshold() -> None:
    # At .4 and .5 the dog is found, at .6 it is not.
    assert log_metrics(evaluate(GT, PRED, score=0.5, iou=[0.4, 0.5, 0.6]))["val/TP"] == 2
    assert log_metrics(evaluate(GT, PRED, score=0.5, iou=[0.6, 0.7]))["val/TP"] == 1


def test_of_more_than_a_hundred_classes_the_ten_worst_are_logged() -> None:
    aps = {f"class {number:03}": {"AP": (number * 37 % 101) / 101} for number in range(101)}
    # Class 0 is undefined, and so not the worst.
    aps["class 000"] = {"AP": NAN}
    logged = log_metrics(make_result(classes=aps), prefix="")
    found = {name: value for name, value in logged.items() if "/" in name}
    assert sorted(found.values()) == [number / 101 for number in range(1, 11)]
    assert all(aps[name.removeprefix("AP/")]["AP"] == value for name, value in found.items())
    few = dict(list(aps.items())[:100])
    assert len(log_metrics(make_result(classes=few), prefix="")) == 2 + 99


def test_classes_whose_names_clean_to_one_are_numbered_and_an_unchanged_name_stays() -> None:
    result = make_result(classes={"a:b": {"AP": 0.1}, "a_b": {"AP": 0.2}, "a/b": {"AP": 0.3}, "a_b-2": {"AP": 0.4}})
    logged = {name: value for name, value in log_metrics(result, prefix="").items() if "/" in name}
    assert logged == {"AP/a_b-3": 0.1, "AP/a_b": 0.2, "AP/a_b-4": 0.3, "AP/a_b-2": 0.4}


def test_a_class_keeps_its_name_when_another_becomes_undefined() -> None:
    before, after = (
        log_metrics(make_result(classes={"a:b": {"AP": first}, "a/b": {"AP": 0.3}}), prefix="") for first in (0.1, NAN)
    )
    assert before["AP/a_b-2"] == after["AP/a_b-2"] == 0.3
    assert "AP/a_b" not in after


def test_a_name_in_another_script_becomes_the_number_of_the_class() -> None:
    logged = log_metrics(make_result(classes=classes("собака", "..", "traffic light")), prefix="")
    assert {name for name in logged if "/" in name} == {"AP/class-0", "AP/class-1", "AP/traffic light"}


@pytest.mark.parametrize("style", STYLES)
@given(
    names=st.lists(st.text(max_size=120), max_size=12, unique=True),
    prefix=st.sampled_from(["val/", "", "val_", "épreuve: "]),
)
def test_no_number_is_lost_and_every_name_is_one_that_mlflow_takes(style: str, names: list[str], prefix: str) -> None:
    aps = {name: {"AP": row / 16, "AP50": row / 32} for row, name in enumerate(names)}
    result = make_result(classes=aps, metrics={"AP": 0.25}, points=(point(None), *map(point, names)))
    logged = log_metrics(result, style=style, prefix=prefix)
    assert len(logged) == 1 + 2 * len(names) + 7 * (1 + len(names))
    averages = [value for row in aps.values() for value in row.values()]
    points = [0.5, 0.5, 0.5, 0.5, 2.0, 2.0, 2.0] * (1 + len(names))
    assert sorted(logged.values()) == sorted([0.25, *averages, *points])
    for name in logged:
        assert re.fullmatch(r"[A-Za-z0-9_\-. /]{1,250}", name.replace("(B)", ""))
        # MLflow refuses what as a path leads elsewhere, and "a/ " is none on Windows.
        assert not re.search(r"//|(^|/)\.+(/|$)|[ .]$", name)


def point(class_name: str | None, *, f1: float = 0.5, precision: float = 0.5) -> OperatingPoint:
    counts = {"tp": 2, "fp": 2, "fn": 2}
    return OperatingPoint(class_name=class_name, iou=0.5, score=0.5, precision=precision, recall=0.5, f1=f1, **counts)


def test_a_comparison_gives_both_sides_and_what_changed() -> None:
    # Without the dog, and with the cats.
    worse = BoxTable.from_arrays(["a", "b"], ["cat", "cat"], [[50, 50, 60, 60], [0, 0, 5, 5]], score=[0.8, 0.3])
    logged = log_metrics(compare(GT, [PRED, worse], names={"B": "new: 2"}), prefix="")
    # The dog is no longer found: AP .1 is lost, and of the mean half of that.
    assert logged["A/AP"] == pytest.approx(0.55)
    assert logged["new_ 2/AP"] == pytest.approx(0.5)
    assert logged["new_ 2/delta/AP"] == pytest.approx(-0.05)
    assert logged["new_ 2/delta/AP/dog"] == pytest.approx(-0.1)
    assert logged["new_ 2/delta/AP/cat"] == pytest.approx(0.0)
    assert log_metrics(compare(GT, [PRED, worse]), style="lightning", prefix="val_")["val_B_delta_map"] < 0


def test_of_many_classes_those_that_lost_most_are_logged() -> None:
    n = 101
    images, names = ["a"] * n, [f"c{row:03}" for row in range(n)]
    boxes = np.array([[20 * row, 0, 20 * row + 10, 10] for row in range(n)])
    gt = BoxTable.from_arrays(images, names, boxes)
    every = BoxTable.from_arrays(images, names, boxes, score=[0.5] * n)
    but_ten = BoxTable.from_arrays(images[:-10], names[:-10], boxes[:-10], score=[0.5] * (n - 10))
    logged = log_metrics(compare(gt, [every, but_ten]), prefix="")
    assert {name for name in logged if name.startswith("B/delta/AP/")} == {f"B/delta/AP/{name}" for name in names[-10:]}


def test_label_maps_have_their_own_metrics_in_every_style(tmp_path: Path) -> None:
    for side, values in {"gt": [[0, 0, 1, 1]], "pred": [[0, 1, 1, 1]]}.items():
        np.save(tmp_path / f"{side}.npy", np.array(values, dtype=np.uint8))
    result = pixels(tmp_path / "gt.npy", tmp_path / "pred.npy")
    for style in ("plain", "ultralytics", "torchmetrics"):
        logged = log_metrics(result, style=style)
        # Class 0: 1 of 2 pixels; class 1: 2 of 3.
        assert logged["val/IoU/0"] == pytest.approx(1 / 2)
        assert logged["val/IoU/1"] == pytest.approx(2 / 3)
        assert logged["val/mIoU"] == pytest.approx(7 / 12)


def test_what_is_not_a_result_and_unknown_styles_are_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown style 'torchmetric'.*Did you mean 'torchmetrics'"):
        log_metrics(make_result(), style="torchmetric")
    with pytest.raises(
        UsageError, match=r"cannot read Inspection\. Pass the result of evaluate, compare, pixels or panoptic"
    ):
        log_metrics(inspect(GT))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="prefix must be a str, got NoneType"):
        log_metrics(make_result(), prefix=None)  # type: ignore[arg-type]


def test_the_result_is_not_changed() -> None:
    result: EvaluationResult = evaluate(GT, PRED)
    before = result.to_dict()
    log_metrics(result)
    assert result.to_dict() == before
