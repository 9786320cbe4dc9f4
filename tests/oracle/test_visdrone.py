"""Numbers of VisDrone's toolkit on drawn images, and ours.

`visdrone.json` has what `calcAccuracy` of VisDrone2018-DET-toolkit at 00544578 returned under GNU Octave on drawn sets,
in percent. Of the toolkit, `imread` was replaced by the size of an image, and `mean2` by a mean.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_aerial
from PIL import Image

from jaccard_eval import Bootstrap, EvaluationResult, UsageError, evaluate

RECORDED: list[dict[str, float]] = json.loads(Path(__file__).with_name("visdrone.json").read_text(encoding="utf-8"))
SAMPLE = Path(__file__).parents[2] / "sample_data" / "visdrone"
Rows = Sequence[Sequence[float]]
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, *scenes: tuple[tuple[int, int], Rows, Rows], **asked: Any) -> EvaluationResult:
    for place, (size, *sides) in enumerate(scenes):
        for name, rows in zip(("gt", "pred"), sides, strict=True):
            (folder / name).mkdir(exist_ok=True)
            text = "".join(",".join(map(str, row)) + "\n" for row in rows)
            (folder / name / f"{place:04d}.txt").write_text(text, encoding="utf-8")
        (folder / "images").mkdir(exist_ok=True)
        Image.new("1", size).save(folder / "images" / f"{place:04d}.png")
    asked = {"protocol": "visdrone", "images": folder / "images"} | asked
    return evaluate(folder / "gt", folder / "pred", gt_format="visdrone", pred_format="visdrone", **asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_toolkit(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, *drawn_aerial(seed))
    expected = RECORDED[seed]
    assert {name: 100 * result[name] for name in expected} == pytest.approx(expected, abs=1e-9)


CAR, BUS = 4, 9


def test_means_by_hand(tmp_path: Path) -> None:
    def line(x: int, category: int, score: float = 1) -> list[float]:
        return [x, 10, 20, 20, score, category, 0, 0]

    size = 300, 100
    result = evaluated(
        tmp_path,
        (size, [line(0, CAR)], [line(0, CAR, 0.9)]),
        (size, [line(0, CAR)], [line(0, CAR, 0.8)]),
        (
            size,
            [line(0, CAR), line(50, BUS), line(100, BUS), line(150, BUS, 0)],
            [line(0, CAR, 0.9), line(50, BUS, 0.8)],
        ),
    )
    # Cars: all found. Buses: one of three, as the one with score 0 counts among them; classes on 3 images and on 1.
    assert result["AP"] == pytest.approx((1 + 1 / 3) / 2)
    assert result["wAP50"] == pytest.approx((3 * 1 + 1 * 1 / 3) / 4)
    # Of the last image, the first detection is the car.
    assert result["AR1"] == pytest.approx((1 + 0) / 2)
    assert result["wAR1"] == pytest.approx(3 / 4)
    assert result["AR10[class=bus]"] == pytest.approx(1 / 3)


def test_what_regions_cover_by_half_is_not_there(tmp_path: Path) -> None:
    # The region has the pixels 100 to 150 across, one more than its width; boxes those behind their x.
    region = [100, 1, 50, 80, 0, 0, 0, 0]
    half, less = [140, 10, 20, 20, 1, CAR, 0, 0], [141, 40, 20, 20, 1, CAR, 0, 0]
    # 141 to 150 are 10 columns of 20; 142 to 150 are 9.
    result = evaluated(tmp_path, ((300, 100), [region, half, less], []))
    assert result["FN[score=0,class=car]"] == 1
    # Two that lie on each other are one.
    result = evaluated(tmp_path, ((300, 100), [region, region, less], []))
    assert result["FN[score=0,class=car]"] == 1


def test_without_sizes_regions_end_where_they_say_with_a_warning(tmp_path: Path) -> None:
    lines = [[100, 1, 50, 80, 0, 0, 0, 0], [120, 10, 20, 20, 1, CAR, 0, 0], [10, 10, 20, 20, 1, CAR, 0, 0]]
    result = evaluated(tmp_path, ((300, 100), lines, [[10, 10, 20, 20, 0.9, CAR, -1, -1]]), images=None)
    assert "size-unknown" in {finding.code for finding in result.findings}
    assert result["AP"] == 1.0


def test_the_files_name_their_protocol_under_other_rules(tmp_path: Path) -> None:
    codes = [{finding.code for finding in evaluated(tmp_path, *drawn_aerial(1), **rules).findings} for rules in RULES]
    assert ["protocol-unusual" in found for found in codes] == [True, False]


RULES: tuple[dict[str, str], ...] = ({"protocol": "coco"}, {})


def test_weighted_means_have_intervals_and_need_matches_in_memory(tmp_path: Path) -> None:
    scenes = [scene for seed in range(10) for scene in drawn_aerial(seed)]
    result = evaluated(tmp_path, *scenes, bootstrap=Bootstrap(n_resamples=40))
    low, high = result.metrics["wAP"].interval
    assert low < result["wAP"] < high
    with pytest.raises(UsageError, match="protocol visdrone"):
        evaluated(tmp_path, engine="disk")


def test_resamples_weigh_classes_as_parts_of_the_images_do(tmp_path: Path) -> None:
    result = evaluated(tmp_path, *drawn_aerial(3))
    metrics = result.measured
    part = metrics.restrict([0, 2])
    n = len(metrics.image_names)
    weights = [1 if row in (0, 2) else 0 for row in range(n)]
    weighted = metrics.curves.weighted(np.array(weights))
    assert weighted.images_of_classes.tolist() == part.curves.images_of_classes.tolist()
