"""Numbers of cityscapesScripts on drawn streets, and ours, from folders as the benchmark has them.

`cityscapes.json` has what `evaluateMatches` and `computeAverages` of `evalInstanceLevelSemanticLabeling.py` at 0bcc4a72
gave on drawn sets; null is undefined there, and null in the place of a set is one on which it failed.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from drawn_boxes import InstanceMaps, drawn_instances
from PIL import Image

from jaccard_eval import Bootstrap, EvaluationResult, evaluate, load_result

RECORDED: list[dict[str, float | None] | None] = json.loads(
    Path(__file__).with_name("cityscapes.json").read_text(encoding="utf-8")
)
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, streets: InstanceMaps, **asked: Any) -> EvaluationResult:
    for side in ("gt", "pred"):
        (folder / side).mkdir(exist_ok=True)
    for n, (ids, found) in enumerate(streets):
        name = f"city_000000_{n:06d}"
        Image.fromarray(ids.astype(np.uint16)).save(folder / "gt" / f"{name}_gtFine_instanceIds.png")
        lines = []
        for k, (mask, label, score) in enumerate(found):
            Image.fromarray((mask * 255).astype(np.uint8)).save(folder / "pred" / f"m_{n}_{k}.png")
            lines.append(f"m_{n}_{k}.png {label} {score}\n")
        (folder / "pred" / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    return evaluate(folder / "gt", folder / "pred", **{"protocol": "cityscapes"} | asked)


@pytest.mark.parametrize("seed", [seed for seed, row in enumerate(RECORDED) if row])
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, drawn_instances(seed))
    expected = {name: math.nan if value is None else value for name, value in (RECORDED[seed] or {}).items()}
    named = {row.name for row in result.per_class}
    # Classes that occur on neither side are not listed here.
    found = {
        name: result[name] if "class" not in name or name[:-1].split("=")[1] in named else math.nan for name in expected
    }
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def street(*objects: tuple[int, int, int, int, int]) -> npt.NDArray[np.int64]:
    """Draw a map of ids with boxes x, y, width and height, on road."""
    ids = np.full((60, 90), 7)
    for number, x, y, w, h in objects:
        ids[y : y + h, x : x + w] = number
    return ids


def detected(label: int, x: int, y: int, w: int, h: int, score: float) -> tuple[npt.NDArray[np.bool_], int, float]:
    return street((1, x, y, w, h)) == 1, label, score


def test_the_curve_begins_at_1_and_ties_are_one_point(tmp_path: Path) -> None:
    ids = street((26001, 0, 0, 20, 20), (26002, 40, 0, 20, 20))
    hits = detected(26, 0, 0, 20, 20, 0.5), detected(26, 40, 0, 20, 20, 0.2)
    result = evaluated(tmp_path, [(ids, [detected(26, 0, 40, 20, 20, 0.5), *hits])])
    # Points: (0, 1), (1/2, 1/2) of both with 0.5, (1, 2/3); the area below the lines between them.
    assert result["AP50"] == pytest.approx((1 + 1 / 2) / 2 / 2 + (1 / 2 + 2 / 3) / 2 / 2)


def test_an_object_needs_100_pixels_and_a_group_is_none(tmp_path: Path) -> None:
    ids = street((26001, 0, 0, 20, 20), (26002, 40, 0, 9, 11), (26, 60, 0, 20, 20))
    found = [detected(26, *box, 0.9) for box in ((0, 0, 20, 20), (40, 0, 9, 11), (60, 0, 20, 20))]
    result = evaluated(tmp_path, [(ids, found)])
    (row,) = [row for row in result.per_class if row.name == "car"]
    assert (row.gt, result["AP"]) == (1, 1.0)
    # By COCO's rules the small one counts, and the group is a crowd.
    assert evaluated(tmp_path, [(ids, found)], protocol="coco", iou_type="segm").per_class[0].gt == 2


def test_what_void_covers_is_spared_at_thresholds_below_the_share(tmp_path: Path) -> None:
    ids = street((26001, 0, 0, 20, 20), (0, 40, 0, 13, 20))
    found = [detected(26, 40, 0, 20, 20, 0.9), detected(26, 0, 0, 20, 20, 0.5)]
    result = evaluated(tmp_path, [(ids, found)])
    # 13 of 20 columns are void: no false positive at .5, .55 and .6, but from .65 on, where the area is (1 + 0) / 2 of
    # nothing, then from precision 0 to 1/2.
    assert result["AP50"] == 1.0
    assert result["AP"] == pytest.approx((3 * 1 + 7 * 0.25) / 10)


def test_a_class_whose_detections_are_all_ignored_has_0_where_the_script_fails(tmp_path: Path) -> None:
    ids = street((26001, 0, 0, 20, 20), (0, 40, 0, 20, 20))
    assert evaluated(tmp_path, [(ids, [detected(26, 40, 0, 20, 20, 0.9)])])["AP50"] == 0.0


def test_runs_intervals_and_documents_have_the_same_numbers(tmp_path: Path) -> None:
    result = evaluated(tmp_path, drawn_instances(2), bootstrap=Bootstrap(n_resamples=20))
    for name in ("run.npz", "result.json"):
        result.save(tmp_path / name)
        assert load_result(tmp_path / name)["AP"] == result["AP"]


def test_regions_are_read_for_these_rules_alone(tmp_path: Path) -> None:
    maps = [(street((26001, 0, 0, 20, 20), (0, 40, 0, 20, 20)), [detected(26, 0, 0, 20, 20, 0.9)])]
    result = evaluated(tmp_path, maps, protocol="coco", iou_type="segm")
    assert [row.name for row in result.per_class] == ["car"]
    assert "protocol-unusual" in {finding.code for finding in result.findings}
