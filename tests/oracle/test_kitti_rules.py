"""Numbers of KITTI's development kit on drawn streets, and ours.

`kitti.json` has the means of slots 1 to 40 and of 0, 4 to 40 that `eval_class` of kitti_eval at 955c04c4 (the kit with
labels at hand) fills for 2D boxes: its functions were compiled, its reading of folders and plots were not.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_streets

from jaccard_eval import Bootstrap, EvaluationResult, UsageError, evaluate, load_result

RECORDED: list[dict[str, float]] = json.loads(Path(__file__).with_name("kitti.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, texts: list[tuple[str, str]], **asked: Any) -> EvaluationResult:
    for place, sides in enumerate(texts):
        for name, text in zip(("gt", "pred"), sides, strict=True):
            (folder / name).mkdir(exist_ok=True)
            (folder / name / f"{place:06d}.txt").write_text(text, encoding="utf-8")
    given = {"gt_format": "kitti", "pred_format": "kitti", "protocol": "kitti"} | asked
    return evaluate(folder / "gt", folder / "pred", **given)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_kit(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, drawn_streets(seed))
    expected = RECORDED[seed]
    assert len(expected) == 18
    for name, value in expected.items():
        if name.rpartition("=")[2].rstrip("]") in {row.name for row in result.per_class}:
            # Without an object of a class and difficulty, the kit prints 0.
            found = result[name]
            assert found == pytest.approx(value, abs=1e-9) or (math.isnan(found) and value == 0)


def label(kind: str, x: float, *, height: float = 50, hidden: int = 0, cut: float = 0) -> str:
    return f"{kind} {cut} {hidden} 0 {x} 0 {x + 50} {height} 1 1 1 1 1 1 1\n"


def found(kind: str, x: float, score: float, *, height: float = 50) -> str:
    return f"{kind} -1 -1 -10 {x} 0 {x + 50} {height} -1 -1 -1 -1000 -1000 -1000 -10 {score}\n"


def test_ten_objects_that_are_all_found_have_nine_slots(tmp_path: Path) -> None:
    sides = [(label("Car", 0), found("Car", 0, (k + 1) / 20)) for k in range(10)]
    result = evaluated(tmp_path, sides)
    assert result["AP_easy"] == pytest.approx(9 / 40)
    assert result["AP_R11[subset=easy]"] == pytest.approx(3 / 11)
    few = [finding for finding in result.findings if finding.code == "objects-few"]
    assert few and few[0].count == 3  # easy, moderate and hard
    (tmp_path / "many").mkdir()
    many = evaluated(tmp_path / "many", sides * 5)
    assert "objects-few" not in {finding.code for finding in many.findings}
    assert many["AP_easy"] == 1.0


def test_what_takes_part_beside_cars(tmp_path: Path) -> None:
    truth = label("Car", 0) + label("Van", 100) + label("DontCare", 200, height=100) + label("Truck", 300)
    truth += label("Car", 400, height=30)
    dets = [
        found("Car", 0, 0.9),
        found("Car", 100, 0.8),  # on a neighbour
        found("Car", 200, 0.7),  # in a region
        found("Car", 300, 0.6),  # on what is absent: the one false positive
        found("Pedestrian", 400, 0.5, height=30),  # takes the small car of moderate, as it is too small itself of easy
    ]
    result = evaluated(tmp_path, [(truth, "".join(dets))] * 41)
    assert "kitti-dontcare" not in {finding.code for finding in result.findings}
    assert result["AP_R11[subset=easy,class=Car]"] == 1.0
    assert result["recall[score=0,iou=0.7,class=Car]"] == 0.5
    assert result["FP[score=0,iou=0.7,class=Car]"] == 41
    # The other half of the slots is empty: of moderate, cars of 30 px count, and pedestrians of 30 px are absent.
    assert result["AP[subset=moderate,class=Car]"] == pytest.approx(1 / 2, abs=0.02)
    assert [row.pred for row in result.per_class if row.name == "Car"] == [164]


def test_cars_are_judged_at_their_own_threshold(tmp_path: Path) -> None:
    # IoU .6: a hit of a pedestrian, none of a car.
    sides = [(label(kind, 0), found(kind, 12.5, 0.9)) for kind in ("Car", "Pedestrian") for _ in range(41)]
    result = evaluated(tmp_path, sides)
    assert (result["AP[subset=easy,class=Car]"], result["AP[subset=easy,class=Pedestrian]"]) == (0.0, 1.0)
    assert result["AP_easy"] == 0.5
    assert result["AP50[subset=easy]"] == 1.0
    assert result["AP70[subset=easy]"] == 0.0


def test_saved_runs_parts_and_resamples_match_as_the_whole_does(tmp_path: Path) -> None:
    result = evaluated(tmp_path, drawn_streets(5), bootstrap=Bootstrap(n_resamples=20))
    result.save(tmp_path / "run.npz")
    again = load_result(tmp_path / "run.npz")
    assert {name: again[name] for name in result.metrics} == pytest.approx(
        {name: result[name] for name in result.metrics}, nan_ok=True
    )
    metrics = result.measured
    n = len(metrics.image_names)
    part = metrics.restrict(list(range(n // 2)))
    weighted = metrics.curves.weighted(np.array([1] * (n // 2) + [0] * (n - n // 2)))
    assert np.allclose(weighted.slot_precision(2), part.curves.slot_precision(2), equal_nan=True)
    with pytest.raises(UsageError, match="protocol kitti"):
        evaluated(tmp_path, [], engine="disk")
    with pytest.raises(UsageError, match="evaluate by protocol kitti"):
        evaluated(tmp_path, [], protocol="coco")["AP_R11"]


def test_errors_are_priced_by_one_matching(tmp_path: Path) -> None:
    sides = [(label("Car", 0), found("Car", 0, 0.9)), (label("Car", 0), found("Car", 300, 0.8))]
    result = evaluated(tmp_path, sides * 41, errors=True)
    assert result["dAP_Miss"] >= 0


def unusual(result: EvaluationResult) -> list[str]:
    return [finding.examples[0].detail for finding in result.findings if finding.code == "protocol-unusual"]


def test_files_of_the_benchmark_name_its_protocol_and_exports_of_other_data_do_not(tmp_path: Path) -> None:
    (detail,) = unusual(evaluated(tmp_path, [(label("Car", 0), found("Car", 0, 0.9))], protocol="coco"))
    assert "marked as the benchmark kitti, evaluated by protocol coco" in detail
    sides = [(label("car", 0), found("car", 0, 0.9))]
    assert unusual(evaluated(tmp_path, sides, protocol="coco")) == []
    sides = [(label("Car", 0, hidden=-1), found("Car", 0, 0.9))]
    assert unusual(evaluated(tmp_path, sides, protocol="coco")) == []
    assert unusual(evaluated(tmp_path, sides)) == []
