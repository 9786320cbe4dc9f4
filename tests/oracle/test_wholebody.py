"""Whole bodies: numbers of xtcocotools 1.14.3 on drawn persons with its sigmas and lists of points, and ours.

`wholebody.json` has the ten numbers of its `COCOeval` for ``keypoints_wholebody``, with areas.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from drawn_boxes import BODY_LISTS, drawn_bodies

from jaccard_eval import DataError, EvaluationResult, compare, evaluate, explain

RECORDED: list[list[float]] = json.loads(Path(__file__).with_name("wholebody.json").read_text(encoding="utf-8"))
NAMES = ("AP", "AP50", "AP75", "AP_medium", "AP_large", "AR", "AR[iou=0.5]", "AR[iou=0.75]", "AR_medium", "AR_large")
WHOLE: dict[str, Any] = {"iou_type": "keypoints", "sigmas": "wholebody"}
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def written(folder: Path, gt: dict[str, Any], found: list[dict[str, Any]]) -> tuple[Path, Path]:
    sides = folder / "gt.json", folder / "pred.json"
    for path, content in zip(sides, (gt, found), strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    return sides


def evaluated(folder: Path, seed: int, **asked: Any) -> EvaluationResult:
    return evaluate(*written(folder, *drawn_bodies(seed)), **WHOLE | asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, seed)
    # What is undefined is -1 there.
    found = [-1.0 if math.isnan(result[name]) else result[name] for name in NAMES]
    assert found == pytest.approx(RECORDED[seed], abs=1e-9)


def joined(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left = [{key: value for key, value in record.items() if key not in BODY_LISTS} for record in records]
    points = [[number for name in BODY_LISTS for number in record[name]] for record in records]
    return [record | {"keypoints": pose} for record, pose in zip(left, points, strict=True)]


def test_lists_that_the_user_joined_are_the_same(tmp_path: Path) -> None:
    gt, found = drawn_bodies(3)
    whole = evaluated(tmp_path, 3)
    counted = [
        record | {"num_keypoints": sum(seen > 0 for seen in record["keypoints"][2::3])}
        for record in joined(gt["annotations"])
    ]
    result = evaluate(*written(tmp_path, gt | {"annotations": counted}, joined(found)), **WHOLE)
    assert [result[name] for name in NAMES] == pytest.approx([whole[name] for name in NAMES], nan_ok=True)


def test_without_their_sigmas_bodies_alone_are_compared_with_a_warning(tmp_path: Path) -> None:
    sides = written(tmp_path, *drawn_bodies(3))
    result = evaluate(*sides, iou_type="keypoints")
    (warning,) = (finding for finding in result.findings if finding.code == "shape-unused")
    assert "only keypoints are compared, not foot_kpts, face_kpts, lefthand_kpts, righthand_kpts" in str(warning)
    assert "Pass --sigmas wholebody to compare whole bodies." in str(warning)


def test_other_commands_join_them_too(tmp_path: Path) -> None:
    sides = written(tmp_path, *drawn_bodies(3))
    whole = evaluate(*sides, **WHOLE)["AP"]
    assert f"{whole:.9f}"[:9] in json.dumps(explain(*sides, metric="AP", **WHOLE).to_dict())
    both = compare(sides[0], sides[1], sides[1], **WHOLE).to_dict()
    assert f"{whole:.9f}"[:9] in json.dumps(both)


@pytest.mark.parametrize("missing", BODY_LISTS)
def test_a_body_without_one_of_its_lists_is_refused(tmp_path: Path, missing: str) -> None:
    gt, found = drawn_bodies(3)
    del found[0][missing]
    with pytest.raises(DataError, match=r"pred\.json.*\[0\].*keypoints"):
        evaluate(*written(tmp_path, gt, found), **WHOLE)
