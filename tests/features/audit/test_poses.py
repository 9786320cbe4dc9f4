"""What is said of poses: areas that are 0 everywhere, scores that are sums."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, EvaluationResult, ReadOptions, UsageError, evaluate
from jaccard_eval.data.protocol import named_sigmas
from jaccard_eval.similarity.keypoints import COCO_SIGMAS

SIGMAS = [0.1, 0.1, 0.1]


def pose(image: int, left: float, **fields: Any) -> dict[str, Any]:
    """A person of 40 by 100 px whose three points lie on its axis."""
    points = [value for y in (10, 50, 90) for value in (left + 20, y, 2)]
    return {"image_id": image, "category_id": 1, "bbox": [left, 0, 40, 100], "keypoints": points, **fields}


def scene(folder: Path, areas: list[float | None], scores: list[float] | None = None) -> EvaluationResult:
    """Evaluate as many images with one person each, found 2 px beside."""
    objects = [pose(n, 50.0, id=n, iscrowd=0, num_keypoints=3) for n in range(1, len(areas) + 1)]
    for record, area in zip(objects, areas, strict=True):
        record.update({} if area is None else {"area": area})
    scores = scores or [0.9 - n / 100 for n in range(len(areas))]
    found = [pose(n, 52.0, score=score) for n, score in enumerate(scores, start=1)]
    gt = {
        "images": [{"id": record["image_id"], "width": 640, "height": 480} for record in objects],
        "annotations": objects,
        "categories": [{"id": 1, "name": "person"}],
    }
    (folder / "gt.json").write_text(json.dumps(gt))
    (folder / "pred.json").write_text(json.dumps(found))
    return evaluate(folder / "gt.json", folder / "pred.json", iou_type="keypoints", sigmas=SIGMAS)


def test_an_area_of_0_in_all_records_with_keypoints_is_none(tmp_path: Path) -> None:
    """Each point is 2 px off: OKS = exp(-2² / ((2 * .1)² * 40 * 100 * 2)) = exp(-1 / 80) = .988 with the box's area."""
    zero, missing = scene(tmp_path, [0.0, 0.0]), scene(tmp_path, [None, None])
    assert zero["AP"] == missing["AP"] == 1.0
    assert "no record has one" in next(f.message for f in zero.findings if f.code == "area-missing")
    # Where some have an area, 0 is what the file says: exp(-huge) = 0, as in pycocotools: one of two.
    assert scene(tmp_path, [4000.0, 0.0])["AP"] == pytest.approx(51 / 101, abs=1e-12)


@pytest.mark.parametrize("given", [{"area": 0, "bbox": [0, 0, 0, 0]}, {"area": None}], ids=str)
def test_what_no_record_gives_is_taken_from_the_points(given: dict[str, Any], tmp_path: Path) -> None:
    """The points reach over the whole box, whose area then is the 4,000 px of the first test."""
    corners = [50, 0, 2, 90, 100, 2, 70, 50, 2]
    objects = [{**pose(n, 50.0, id=n), "num_keypoints": 3, "keypoints": corners, **given} for n in (1, 2)]
    found = [{**pose(n, 50.0, score=n / 4), "keypoints": [*corners[:8], 2]} for n in (1, 2)]
    images, categories = [{"id": n, "width": 640, "height": 480} for n in (1, 2)], [{"id": 1, "name": "person"}]
    (tmp_path / "gt.json").write_text(json.dumps({"images": images, "annotations": objects, "categories": categories}))
    (tmp_path / "pred.json").write_text(json.dumps(found))
    result = evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="keypoints", sigmas=SIGMAS)
    assert result["AP"] == result["AP_medium"] == 1.0
    assert {finding.code for finding in result.findings} == {"area-missing"}


COCO_POINTS = [
    "nose",
    *(
        f"{side}_{part}"
        for part in ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
        for side in ("left", "right")
    ),
]
ANIMAL = [
    "left_eye",
    "right_eye",
    "nose",
    "neck",
    "root_of_tail",
    *(f"{side}_{part}" for side in ("left", "right") for part in ("shoulder", "elbow", "front_paw")),
    *(f"{side}_{part}" for side in ("left", "right") for part in ("hip", "knee", "back_paw")),
]


@pytest.mark.parametrize(
    ("names", "sigmas", "words"),
    [
        (COCO_POINTS, None, ""),
        ([name.upper().replace("_", " ") for name in COCO_POINTS], None, ""),
        (ANIMAL, None, "Pass --sigmas ap10k"),
        (ANIMAL, "ap10k", ""),
        (["tip", *COCO_POINTS[1:]], None, "point 1 is 'tip', where COCO has nose"),
        (["tip", *COCO_POINTS[1:]], "coco", ""),
        ([f"p{at}" for at in range(17)], None, ""),  # numbers, and no names
    ],
)
def test_the_sigmas_of_coco_on_other_points_are_doubted(
    names: list[str], sigmas: str | None, words: str, tmp_path: Path
) -> None:
    points = [value for at in range(17) for value in (50 + 3 * at, 40 + 5 * at, 2)]
    record = {"image_id": 1, "category_id": 1, "keypoints": points}
    gt = {
        "images": [{"id": 1, "width": 640, "height": 480}],
        "annotations": [{**record, "id": 1, "bbox": [50, 40, 48, 80], "area": 3000, "iscrowd": 0, "num_keypoints": 17}],
        "categories": [{"id": 1, "name": "animal", "keypoints": names}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    (tmp_path / "pred.json").write_text(json.dumps([{**record, "keypoints": [n + 1 for n in points], "score": 0.5}]))
    result = evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="keypoints", sigmas=sigmas)
    found = [str(finding) for finding in result.findings if finding.code == "keypoints-sigmas"]
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_sigmas_have_names() -> None:
    assert [len(named_sigmas(name)) for name in ("ap10k", "coco", "crowdpose", "humanart", "wholebody")] == [
        17,
        17,
        14,
        17,
        133,
    ]
    counts = {
        name: len(named_sigmas(name)) for name in ("aic", "animalpose", "atrw", "halpe", "halpe26", "jhmdb", "mhp")
    }
    assert list(counts.values()) == [14, 20, 15, 136, 26, 15, 16]
    assert named_sigmas("coco") == COCO_SIGMAS == named_sigmas("humanart") == named_sigmas("wholebody")[:17]
    assert named_sigmas("wholebody")[-21:] == named_sigmas("wholebody")[-42:-21]  # two hands
    with pytest.raises(UsageError, match="Did you mean 'ap10k'"):
        named_sigmas("ap10")


def test_scores_of_poses_above_one_are_no_percent_and_no_fault(tmp_path: Path) -> None:
    result = scene(tmp_path, [4000.0] * 6, scores=[9.5, 8.5, 7.0, 6.0, 3.0, 2.0])
    said = {finding.code: finding for finding in result.findings}
    assert "score-percent" not in said
    assert str(said["score-range"].severity) == "note"
    assert "sums over keypoints" in said["score-range"].message


def named(
    folder: Path, gt_names: list[str], pred_names: list[str], values: list[Any], **rules: Any
) -> EvaluationResult:
    """Evaluate three points of two objects, which predictions have under other names or in another order."""
    objects = [pose(n, 50.0, id=n, area=4000, iscrowd=0, num_keypoints=3) for n in (1, 2)]
    found = [{**record, "keypoints": values, "score": n / 4} for n, record in enumerate(objects, start=1)]
    images = [{"id": n, "width": 640, "height": 480} for n in (1, 2)]
    for name, names, records in (("gt", gt_names, objects), ("pred", pred_names, found)):
        categories = [{"id": 1, "name": "person", "keypoints": names}]
        content = {"images": images, "annotations": records, "categories": categories}
        (folder / f"{name}.json").write_text(json.dumps(content))
    return evaluate(folder / "gt.json", folder / "pred.json", iou_type="keypoints", sigmas=SIGMAS, **rules)


def test_points_that_both_sides_name_are_compared_by_name(tmp_path: Path) -> None:
    names = ["head", "Left Hand", "left-foot"]
    turned = [70, 50, 2, 70, 90, 2, 70, 10, 2]
    result = named(tmp_path, names, ["left_hand", "left_foot", "head"], turned)
    assert result["AP"] == 1.0
    (note,) = [finding.message for finding in result.findings if finding.code == "keypoints-order"]
    assert "by name: head, Left Hand, left-foot" in note
    # A point of one side alone: two of three are found exactly, the other at (0, 0) is far: OKS 2 / 3.
    lacking = named(tmp_path, names, ["left_hand", "left_foot", "tail"], turned)
    assert lacking["AP50"] == 1.0
    assert lacking["AP75"] == 0.0
    assert "1 other is not compared" in "".join(finding.message for finding in lacking.findings)
    # What is named by an option decides, and where no name is shared, places do.
    order = ReadOptions(role="pred", keypoint_order=(2, 0, 1))
    assert named(tmp_path, names, ["left_hand", "left_foot", "head"], turned, pred_options=order)["AP"] == 1.0
    other = named(tmp_path, names, ["a", "b", "c"], turned)
    assert other["AP"] == 0.0
    assert [str(finding.severity) for finding in other.findings if finding.code == "keypoints-order"] == ["warning"]


def test_poses_with_a_list_for_each_point_and_confidences_in_place_of_visibility_are_read(tmp_path: Path) -> None:
    nested = [[70, 10, 0.03], [70, 50, 1], [0, 0, 0]]
    record = {"image_id": 1, "category_id": 1, "keypoints": nested, "num_keypoints": 2}
    gt = {
        "images": [{"id": 1, "width": 640, "height": 480}],
        "annotations": [{**record, "id": 1, "bbox": [50, 0, 40, 100], "area": 4000, "iscrowd": 0, "face_kpts": []}],
        "categories": [{"id": 1, "name": "person"}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    found = {**record, "keypoints": [[70, 10, 1], [0, 0, 1], [9, 9, 1]], "score": 1}
    (tmp_path / "pred.json").write_text(json.dumps([found]))
    # As in pycocotools, every point above 0 counts: one of two is found.
    result = evaluate(tmp_path / "gt.json", tmp_path / "pred.json", sigmas=[0.1])
    assert result.protocol.iou_type == "keypoints"
    assert (round(result["AP50"], 12), result["AP75"]) == (1.0, 0.0)
    assert "not face_kpts" in "".join(finding.message for finding in result.findings if finding.code == "shape-unused")


@pytest.mark.parametrize(
    ("n", "words"), [(14, "pass --protocol crowdpose"), (133, "pass --sigmas wholebody"), (5, "or one number for all.")]
)
def test_other_skeletons_lead_to_their_sigmas(n: int, words: str, tmp_path: Path) -> None:
    points = [value for at in range(n) for value in (50 + 3 * at, 40 + 5 * at, 2)]
    record = {"image_id": 1, "category_id": 1, "keypoints": points}
    gt = {
        "images": [{"id": 1, "width": 640, "height": 900}],
        "annotations": [{**record, "id": 1, "bbox": [50, 40, 48, 80], "area": 3000, "iscrowd": 0, "num_keypoints": n}],
        "categories": [{"id": 1, "name": "animal"}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    (tmp_path / "pred.json").write_text(json.dumps([{**record, "keypoints": [n + 1 for n in points], "score": 0.5}]))
    with pytest.raises(DataError) as caught:
        evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="keypoints")
    first = caught.value.findings[0]
    assert str(first.fix).endswith(words.removesuffix(".") + ".")
    results = [
        evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="keypoints", sigmas=sigmas)
        for sigmas in ([0.05], [0.05] * n)
    ]
    assert len({result["AP"] for result in results}) == 1
