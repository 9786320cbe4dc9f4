"""Numbers of Ultralytics' validator on drawn sets, and ours by the protocol of its release.

`ultralytics.json` has what `box_iou`, `match_predictions` and `ap_per_class` of three wheels returned on drawn
sets: 8.4.36, 8.4.37 (which 8.4.175 equals) and 8.4.176 (which 8.4.190 equals).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import columns, drawn_images

from jaccard_eval import (
    Bootstrap,
    BoxTable,
    EvaluationResult,
    Slice,
    UsageError,
    evaluate,
    get_protocol,
    sensitivity,
)

RECORDED: dict[str, list[dict[str, float]]] = json.loads(
    Path(__file__).with_name("ultralytics.json").read_text(encoding="utf-8")
)
SAMPLE = Path(__file__).parents[2] / "sample_data" / "coco"
METRICS = ("AP", "AP50", "AP75", "P", "R")
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def drawn(seed: int) -> tuple[BoxTable, BoxTable]:
    """Return drawn sets as tables; scores are tensors of 32 bits there."""
    labels, detected = (columns(images) for images in drawn_images(seed))
    score = detected[3].astype(np.float32).astype(np.float64)
    return (
        BoxTable.from_arrays(*labels, encoding="xywh"),
        BoxTable.from_arrays(*detected[:3], score=score, encoding="xywh"),
    )


def evaluated(seed: int, protocol: str, **asked: Any) -> EvaluationResult:
    return evaluate(*drawn(seed), protocol=protocol, extra_images="empty", **asked)


@pytest.mark.parametrize("protocol", ["ultralytics-8.0", "ultralytics-8.4.37", "ultralytics"])
@pytest.mark.parametrize("seed", range(30))
def test_all_five_numbers_are_those_of_the_validator(seed: int, protocol: str) -> None:
    result = evaluated(seed, protocol)
    expected = RECORDED[protocol][seed]
    assert {name: result.metrics[name].value for name in METRICS} == pytest.approx(expected, abs=1e-12)


def test_the_releases_differ_as_their_rules_do() -> None:
    means = {name: np.mean([row["AP"] for row in rows]) for name, rows in RECORDED.items()}
    # The tail below the last recall went in 8.4.37; from 8.4.176 on a label that is taken leaves the next best.
    assert means["ultralytics-8.0"] > means["ultralytics"] > means["ultralytics-8.4.37"]


def test_a_line_falls_from_the_last_recall_only_by_the_early_rules() -> None:
    # One of two objects found, without a false positive: recall .5 at precision 1.
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [50, 0, 60, 10]])
    pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    # Trapezoids of .01: 50 of height 1, and from (.5, 1) a line to (1, 0), a triangle of .25.
    assert evaluate(gt, pred, protocol="ultralytics-8.0")["AP50"] == pytest.approx(0.75, abs=1e-12)
    # Without it, precision is 0 at .5 and beyond: 49 of height 1, and one that falls to 0.
    assert evaluate(gt, pred, protocol="ultralytics")["AP50"] == pytest.approx(0.495, abs=1e-12)


def test_crowds_are_no_labels_and_300_detections_of_an_image_count() -> None:
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [50, 0, 60, 10]], crowd=[False, True])
    boxes = [[50, 0, 60, 10], *[[200 + i, 0, 210 + i, 10] for i in range(299)], [0, 0, 10, 10]]
    pred = BoxTable.from_arrays([0] * 301, [0] * 301, boxes, score=np.linspace(0.9, 0.1, 301))
    result = evaluate(gt, pred, protocol="ultralytics")
    assert (result["AP50"], result["FP[score=0]"], result["TP[score=0]"]) == (0.0, 300.0, 0.0)


def test_resampled_as_each_image_once_the_numbers_stay_and_twice_they_stay_too() -> None:
    metrics = evaluated(3, "ultralytics").measured
    for weight in (1, 2):
        view = metrics.curves.weighted(np.full(len(metrics.image_names), weight))
        plain = metrics.curves.area_under_curve(0, 0)
        # A set that is there twice has each detection twice, so that the curve keeps its corners, but for its start.
        assert view.area_under_curve(0, 0) == pytest.approx(plain, abs=1e-12 if weight == 1 else 0.05, nan_ok=True)
        assert view.at_best_mean_f1(0)[1] == pytest.approx(metrics.curves.at_best_mean_f1(0)[1], nan_ok=True)


def test_they_reach_what_metrics_reach() -> None:
    # Enough images for intervals, of several sets.
    sides: list[list[BoxTable]] = [[], []]
    for seed in range(7, 13):
        for side, boxes in zip(sides, drawn(seed), strict=True):
            side.append(boxes)
    gt, pred = (
        BoxTable.from_arrays(
            np.concatenate([boxes.image + 10 * i for i, boxes in enumerate(side)]),
            np.concatenate([boxes.label for boxes in side]),
            np.concatenate([boxes.xywh for boxes in side]),
            score=None if side[0].score is None else np.concatenate([boxes.score for boxes in side]),
            encoding="xywh",
        )
        for side in sides
    )
    asked = {"bootstrap": Bootstrap(n_resamples=50), "slices": [Slice(name="first", patterns=("?",))]}
    result = evaluate(gt, pred, protocol="ultralytics", extra_images="empty", **asked)
    low, high = result.metrics["P"].interval
    assert low < result["P"] < high
    assert result["P[class=0]"] == next(row for row in result.per_class if row.name == "0").values["P"].value
    assert "metrics=P+R" in result.signature
    [part] = result.slices
    assert 0 <= part.values["AP"].value <= 1


def test_single_precision_needs_boxes_in_pixels() -> None:
    assert get_protocol("ultralytics").union_epsilon == 1e-7
    gt, pred = drawn(2)
    with pytest.raises(UsageError, match="disk"):
        evaluate(gt, pred, protocol="ultralytics", engine="disk", extra_images="empty")


@pytest.mark.parametrize("protocol", RECORDED)
def test_what_each_size_loses_adds_up_by_straight_lines_too(protocol: str) -> None:
    rows = sensitivity(SAMPLE / "gt.json", SAMPLE / "worse.json", protocol=protocol).losses
    for row in rows:
        assert min(row.localisation, row.false_positives, row.misses) >= -1e-12
        assert row.ap + row.localisation + row.false_positives + row.misses == pytest.approx(1, abs=1e-12)
