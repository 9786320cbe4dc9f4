"""Subsets of objects: CrowdPose's by how crowded an image is, and a toy benchmark of rules as data alone.

`crowdpose.json` has what `COCOeval` of CrowdPose at 86fe5e11 gave on drawn sets: AP, AP50 and AR over all images, and
AP over those of its `split`, by evaluating these alone; `summarize` rounds to four decimals. Null is an empty subset.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_poses

from jaccard_eval import (
    Bootstrap,
    BoxTable,
    EvaluationResult,
    UsageError,
    compare,
    evaluate,
    get_protocol,
    load_result,
)
from jaccard_eval.data.metricref import as_subset
from jaccard_eval.plugins import Limit, Subset

RECORDED: list[dict[str, float | None]] = json.loads(
    Path(__file__).with_name("crowdpose.json").read_text(encoding="utf-8")
)
SAMPLE = Path(__file__).parents[2] / "sample_data" / "coco"
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, seed: int, change: Any = None, **asked: Any) -> EvaluationResult:
    gt, pred = drawn_poses(seed)
    if change is not None:
        change(gt)
    for name, content in (("gt", gt), ("pred", pred)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return evaluate(folder / "gt.json", folder / "pred.json", **{"protocol": "crowdpose"} | asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_crowdpose(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, seed)
    expected = {name: math.nan if value is None else value for name, value in RECORDED[seed].items()}
    assert {name: result[name] for name in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_short_names_mean_subsets_where_no_size_has_the_name(tmp_path: Path) -> None:
    result = evaluated(tmp_path, 3)
    assert result["AP_hard"] == result["AP[subset=hard]"] != result["AP"]
    assert result["AR_hard"] == result["AR[subset=hard]"]
    assert as_subset("AP50_medium") == "AP50[subset=medium]"
    # Under COCO's rules a name of a size means the size, and there are no subsets.
    coco = evaluated(tmp_path, 3, protocol="coco", iou_type="keypoints", sigmas="crowdpose")
    assert str(coco.metrics["AP_medium"].ref) == "AP_medium"
    with pytest.raises(UsageError, match="no such subset"):
        coco["AP[subset=easy]"]
    with pytest.raises(UsageError, match="Did you mean 'medium'"):
        result["AP[subset=medum]"]
    with pytest.raises(UsageError, match="AP takes iou, area, subset"):
        result["AP[subset=medium,score=0.5]"]


def test_saved_results_runs_gates_and_intervals_know_subsets(tmp_path: Path) -> None:
    result = evaluated(tmp_path, 7, bootstrap=Bootstrap(n_resamples=20))
    for name in ("run.npz", "result.json"):
        result.save(tmp_path / name)
        again = load_result(tmp_path / name)
        assert again["AP_hard"] == result["AP_hard"]
        assert again.signature == result.signature
    assert "AP[subset=hard]" in (tmp_path / "result.json").read_text(encoding="utf-8")
    both = compare(None, tmp_path / "run.npz", result)
    assert "AP[subset=hard]" in str(both.to_dict())


def test_the_disk_engine_has_the_same_numbers() -> None:
    rules = get_protocol("coco").with_options(subsets=(Subset("tall", (Limit("height", 50),)),))
    sides = [SAMPLE / name for name in ("gt.json", "better.json")]
    memory, disk = (evaluate(*sides, protocol=rules, engine=engine) for engine in ("memory", "disk"))
    assert {name: disk[name] for name in memory.metrics} == {name: memory[name] for name in memory.metrics}
    assert disk.signature == memory.signature
    assert memory["AP_tall"] != memory["AP"]


def test_what_chooses_subsets_is_signed_and_its_lack_is_named(tmp_path: Path) -> None:
    def move(gt: dict[str, Any]) -> None:
        gt["images"][0]["crowdIndex"] = 0.05 if gt["images"][0]["crowdIndex"] > 0.5 else 0.95

    def lose(gt: dict[str, Any]) -> None:
        for image in gt["images"]:
            del image["crowdIndex"]

    given, moved, lost = (evaluated(tmp_path, 4, change) for change in (None, move, lose))
    assert given.signature != moved.signature
    assert given["AP"] == moved["AP"] == lost["AP"]
    assert math.isnan(lost["AP_easy"])
    assert {finding.code for finding in lost.findings} >= {"subset-unknown"}
    assert "subset-unknown" not in {finding.code for finding in given.findings}


def test_a_benchmark_is_rules_alone() -> None:
    # A toy benchmark: trapezoids between points, centres, near and far objects by their height, means by images.
    toy = get_protocol("coco").with_options(
        name="toy",
        iou_thresholds=(0.5,),
        max_dets=(1, 3),
        max_dets_per="image",
        interpolation="points",
        recall_points=0,
        precision_epsilon=0.0,
        overlap="centre",
        above_threshold=True,
        counts_ignored=True,
        miss_rate_at=(0.5, 1.0),
        metrics=("wAP", "LAMR"),
        subsets=(Subset("near", (Limit("height", low=20),)), Subset("far", (Limit("height", high=19),))),
    )
    gt = BoxTable.from_arrays(
        [0, 0, 1, 1],
        ["dog", "cat", "dog", "dog"],
        [[0, 0, 20, 20], [50, 0, 10, 10], [0, 0, 40, 40], [50, 0, 10, 10]],
        encoding="xywh",
        ignore=[False, False, False, True],
    )
    pred = BoxTable.from_arrays(
        [0, 0, 0, 0, 1, 1],
        ["dog", "cat", "cat", "dog", "dog", "dog"],
        [[5, 5, 20, 20], [51, 0, 10, 10], [50, 40, 10, 10], [1, 1, 20, 20], [90, 0, 9, 9], [0, 5, 40, 40]],
        score=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
        encoding="xywh",
    )
    result = evaluate(gt, pred, protocol=toy)
    # Dogs, of three (one is ignored and has the flag that COCO reads as none): hit .9; .6 is beyond the cap of its
    # image; .5 misses, .4 hits. Points: (1/3, 1), (1/3, 1/2), (2/3, 2/3).
    dogs = (1 / 2 + 2 / 3) / 2 / 3
    # Cats: one of one, first; its miss .7 adds no area. Trapezoids begin at the first point.
    assert result["AP[class=dog]"] == pytest.approx(dogs)
    assert result["AP[class=cat]"] == 0.0
    assert result["wAP"] == pytest.approx(2 * dogs / 3)
    # Far objects are one cat and one dog; both dogs that were hit are near.
    assert result["recall[score=0,class=dog]"] == pytest.approx(2 / 3)
    assert result["AR[subset=far,class=dog]"] == 0.0
    assert result["AR[subset=near,class=dog]"] == 1.0
    assert result["AR1[class=dog]"] == pytest.approx(1 / 3)
    assert "subsets=near: height 20 to inf" in result.signature


def test_bits_of_subsets_follow_boxes_through_resamples(tmp_path: Path) -> None:
    metrics = evaluated(tmp_path, 11).measured
    n = len(metrics.image_names)
    part = metrics.restrict([0, 1])
    weights = np.array([1, 1, *[0] * (n - 2)])
    weighted = metrics.curves.weighted(weights)
    assert weighted.positives.tolist() == part.curves.positives.tolist()
