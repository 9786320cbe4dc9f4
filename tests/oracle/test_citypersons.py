"""Numbers of CityPersons' evaluation on drawn pedestrians, and ours; what heavy means, and how curves are read.

`citypersons.json` has what `COCOeval` of `eval_MR_multisetup.py` at 839c22fb gave on drawn sets of more than 100 images
for its four set-ups, and for a fifth with what CSP and Pedestron call heavy. Its reader was replaced by a list.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_pedestrians

from jaccard_eval import Bootstrap, EvaluationResult, evaluate, load_result

RECORDED: list[dict[str, float]] = json.loads(Path(__file__).with_name("citypersons.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, gt: dict[str, Any], pred: list[dict[str, Any]], **asked: Any) -> EvaluationResult:
    for name, content in (("gt", gt), ("pred", pred)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return evaluate(folder / "gt.json", folder / "pred.json", **{"protocol": "citypersons"} | asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, *drawn_pedestrians(seed))
    found = {name: result[f"LAMR[subset={name}]"] for name in RECORDED[seed]}
    assert found == pytest.approx(RECORDED[seed], abs=1e-12)


def set_of(*persons: dict[str, Any], n_images: int = 1) -> dict[str, Any]:
    rows = [
        {"id": place, "image_id": 1, "category_id": 1, "iscrowd": 0, "ignore": 0, "vis_ratio": 1.0} | person
        for place, person in enumerate(persons, 1)
    ]
    images = [{"id": number, "width": 640, "height": 480} for number in range(1, n_images + 1)]
    return {"images": images, "annotations": rows, "categories": [{"id": 1, "name": "pedestrian"}]}


def found_at(*boxes: list[float]) -> list[dict[str, Any]]:
    scores = np.linspace(0.9, 0.1, len(boxes)).tolist()
    return [{"image_id": 1, "category_id": 1, "bbox": box, "score": s} for box, s in zip(boxes, scores, strict=True)]


def test_heavy_has_two_definitions(tmp_path: Path) -> None:
    gt = set_of(
        {"bbox": [0, 0, 40, 100], "vis_ratio": 0.3},
        {"bbox": [100, 0, 40, 100], "vis_ratio": 0.1},
    )
    result = evaluated(tmp_path, gt, found_at([0, 0, 40, 100]))
    # Of what CityPersons calls heavy, all is found: a miss rate of 0 is 1e-10. CSP's has both, one of them missed.
    assert result["LAMR[subset=heavy]"] == pytest.approx(1e-10)
    assert result["LAMR[subset=heavy-csp]"] == pytest.approx(0.5)
    assert math.isnan(result["LAMR[subset=reasonable]"])


def test_what_is_outside_of_a_subset_absorbs_any_number_of_detections_there_alone(tmp_path: Path) -> None:
    gt = set_of(
        {"bbox": [0, 0, 40, 100]},
        {"bbox": [200, 0, 60, 120], "vis_ratio": 0.3},
        n_images=2,
    )
    # The second and third lie in the hidden person by their whole area: IoU .5 and .28.
    result = evaluated(tmp_path, gt, found_at([0, 0, 40, 100], [200, 0, 60, 60], [200, 0, 40, 50]))
    assert result["LAMR[subset=reasonable]"] == pytest.approx(1e-10)
    # In the subset of all, the second finds that person, and the third is half a false positive per image.
    assert result["LAMR[subset=all]"] == pytest.approx(1e-10)
    # Among the heavy ones the first is in the visible person, the second a hit, the third a false positive behind it.
    assert result["LAMR[subset=heavy]"] == pytest.approx(1e-10)
    assert result["FP[score=0]"] == 1


def test_detections_of_other_heights_are_not_there(tmp_path: Path) -> None:
    gt = set_of({"bbox": [0, 0, 40, 75]})
    # 93.75 px is a quarter above the largest height of the subset of small ones, which ends before it.
    for height, expected in ((93.7, 1e-10), (93.8, 1.0)):
        result = evaluated(tmp_path, gt, found_at([0, 0, 40, height]))
        assert result["LAMR[subset=small]"] == pytest.approx(expected)
        assert result["LAMR[subset=reasonable]"] == pytest.approx(1e-10)


def test_the_curve_is_read_at_the_last_point_within_a_rate_and_by_crowdhuman_at_the_first_beyond(
    tmp_path: Path,
) -> None:
    gt = set_of({"bbox": [0, 0, 40, 100]}, {"bbox": [100, 0, 40, 100]}, n_images=10)
    pred = found_at([0, 0, 40, 100], [300, 0, 40, 100], [100, 0, 40, 100])
    # Recall 1/2 until one false positive on ten images, 1 behind it: five rates of nine are at least 0.1.
    own = {name: evaluated(tmp_path, gt, pred, protocol=name) for name in ("citypersons", "caltech", "crowdhuman")}
    expected = math.exp((4 * math.log(0.5) + 5 * math.log(1e-10)) / 9)
    assert own["citypersons"]["LAMR[subset=reasonable]"] == pytest.approx(expected)
    # 10 to the power of -2, -1.75, ..., 0 in place of four decimals: the same point here.
    assert own["caltech"]["LAMR[subset=reasonable]"] == pytest.approx(expected)
    # CrowdHuman takes the first point with as many false positives, up to .1 the one with recall 1/2, else the last.
    assert own["crowdhuman"]["LAMR"] == 0.0


def test_rates_of_four_decimals_and_exact_ones_may_differ(tmp_path: Path) -> None:
    # 89 false positives on 5,000 images are .0178, above 10 to the power of -1.75, .01778.
    gt = set_of({"bbox": [0, 0, 40, 100]}, n_images=5000)
    pred = found_at(*([300, 0, 40, 100] for _ in range(89)), [0, 0, 40, 100])
    own = {name: evaluated(tmp_path, gt, pred, protocol=name) for name in ("citypersons", "caltech")}
    values = [own[name]["LAMR[subset=reasonable]"] for name in own]
    assert values == pytest.approx([1e-10 ** (8 / 9), 1e-10 ** (7 / 9)])


def test_subsets_reach_saved_results_gates_intervals_and_the_disk(tmp_path: Path) -> None:
    gt, pred = drawn_pedestrians(3)
    result = evaluated(tmp_path, gt, pred, bootstrap=Bootstrap(n_resamples=20))
    name = "LAMR[subset=heavy]"
    low, high = result.metrics[name].interval
    assert low <= result[name] <= high
    for file in ("run.npz", "result.json"):
        result.save(tmp_path / file)
        assert load_result(tmp_path / file)[name] == result[name]
    assert evaluated(tmp_path, gt, pred, iou=0.5)[name] == result[name]


def test_a_visible_share_that_is_no_number_is_named(tmp_path: Path) -> None:
    gt = set_of({"bbox": [0, 0, 40, 100]}, {"bbox": [100, 0, 40, 100], "vis_ratio": "half"})
    result = evaluated(tmp_path, gt, found_at([0, 0, 40, 100]))
    (finding,) = [finding for finding in result.findings if finding.code == "subset-unknown"]
    assert "annotations[1]" in str(finding) and "vis_ratio" in str(finding)
    assert result["LAMR[subset=reasonable]"] == pytest.approx(1e-10)


def test_files_of_the_benchmark_lead_to_its_rules(tmp_path: Path) -> None:
    gt, pred = drawn_pedestrians(5)
    result = evaluated(tmp_path, gt, pred, protocol="coco")
    (note,) = [finding for finding in result.findings if finding.code == "protocol-unusual"]
    assert "the benchmark citypersons" in note.message
    # Without visible shares there is nothing to choose subsets by.
    for row in gt["annotations"]:  # type: ignore[attr-defined]
        del row["vis_ratio"]
    missing = evaluated(tmp_path, gt, pred)
    assert "subset-unknown" in {finding.code for finding in missing.findings}
