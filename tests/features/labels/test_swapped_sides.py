"""Poses whose left and right points are exchanged: planted, found, told from the model's own exchanges, corrected."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here

from jaccard_eval import labels
from jaccard_eval.similarity.keypoints import COCO_FLIPPED, other_sides

# A person seen from the front, in parts of its height, from nose to ankles as COCO lists the points.
LEFT = [(0.03, 0.03), (0.06, 0.05), (0.13, 0.2), (0.18, 0.35), (0.2, 0.5), (0.09, 0.5), (0.1, 0.72), (0.1, 0.95)]
FRONT = np.array([(0, 0.05), *((sign * x, y) for x, y in LEFT for sign in (1, -1))])
SWAPPED = (4, 17, 33, 52, 71)


def flat(points: Any, seen: int) -> list[float]:
    return [number for x, y in points.round(2).tolist() for number in (x, y, seen)]


def scene(folder: Path, *, names: list[str] | None = None, by_model: tuple[int, ...] = ()) -> None:
    """Eighty persons, one an image; some are labelled with their sides exchanged, others predicted so."""
    rng = np.random.default_rng(5)
    images, annotations, found = [], [], []
    for k in range(80):
        height = float(rng.uniform(100, 300))
        points = FRONT * height + (250, 40) + rng.normal(0, 0.01 * height, FRONT.shape)
        box = [250 - 0.25 * height, 40.0, 0.5 * height, height]
        labelled = points[list(COCO_FLIPPED)] if k in SWAPPED else points
        seen = points + rng.normal(0, 0.01 * height, FRONT.shape)
        seen = seen[list(COCO_FLIPPED)] if k in by_model else seen
        images.append({"id": k, "file_name": f"{k}.jpg", "width": 500, "height": 500})
        annotations.append(
            {"id": 100 + k, "image_id": k, "category_id": 1, "bbox": box, "area": 0.3 * height**2, "iscrowd": 0}
            | {"keypoints": flat(labelled, 2), "num_keypoints": 17}
        )
        score = float(rng.uniform(0.6, 0.99))
        found.append({"image_id": k, "category_id": 1, "bbox": box, "keypoints": flat(seen, 1), "score": score})
        # A faint one on nothing, so that there is something to learn from.
        away = flat(points * 0.5 + (150, 200), 1)
        found.append({"image_id": k, "category_id": 1, "keypoints": away, "score": 0.05})
    category: dict[str, Any] = {"id": 1, "name": "person"} | ({} if names is None else {"keypoints": names})
    gt = {"images": images, "annotations": annotations, "categories": [category]}
    (folder / "gt.json").write_text(json.dumps(gt))
    (folder / "pred.json").write_text(json.dumps(found))


def sides_of(folder: Path) -> list[Any]:
    found = labels(folder / "gt.json", folder / "pred.json", iou_type="keypoints")
    return [suspect for suspect in found.suspects if suspect.kind == "sides"]


def test_planted_exchanges_are_found_and_nothing_else(tmp_path: Path) -> None:
    scene(tmp_path)
    found = sides_of(tmp_path)
    assert {suspect.object for suspect in found} == {f"{100 + k}" for k in SWAPPED}
    assert all(suspect.score > 0.9 and suspect.suggested == "swap" for suspect in found)
    # The detection of such a pose is not one of a missing object as well, nor the pose a spurious or a bad one.
    every = labels(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="keypoints").suspects
    names = {f"{k}.jpg" for k in SWAPPED}
    assert {suspect.kind for suspect in every if suspect.image in names and suspect.score > 0.2} == {"sides"}


def test_a_model_that_exchanges_sides_itself_proves_less(tmp_path: Path) -> None:
    scene(tmp_path)
    sure = {suspect.object: suspect.score for suspect in sides_of(tmp_path)}
    scene(tmp_path, by_model=tuple(range(1, 80, 3)))
    unsure = {suspect.object: suspect.score for suspect in sides_of(tmp_path)}
    common = sure.keys() & unsure.keys()
    assert common and all(unsure[key] < sure[key] for key in common)


def test_what_was_accepted_is_exchanged_in_the_file_and_in_ap(tmp_path: Path) -> None:
    scene(tmp_path)
    words = ("labels", "gt.json", "pred.json", "--iou-type", "keypoints")
    assert run_here(*words, "-o", "labels.csv", cwd=tmp_path).returncode == 0
    head, *rows = (tmp_path / "labels.csv").read_text().splitlines()
    judged = [f"{row},accepted" if row.startswith("sides,") else f"{row}," for row in rows]
    (tmp_path / "reviewed.csv").write_text("\n".join([f"{head},verdict", *judged]) + "\n")
    done = run_here(*words, "--reviewed", "reviewed.csv", "--apply", "fixed.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = (json.loads((tmp_path / name).read_text())["annotations"] for name in ("gt.json", "fixed.json"))
    for old, new in zip(before, after, strict=True):
        points = np.reshape(old["keypoints"], (17, 3))
        turned = points[list(COCO_FLIPPED)] if old["id"] - 100 in SWAPPED else points
        assert new == old | {"keypoints": turned.ravel().tolist()}
    gain = json.loads(done.stdout)["gain"]
    assert gain["accepted"] == len(SWAPPED) and gain["after"] > gain["before"] + 0.01


@pytest.mark.parametrize(
    ("names", "n", "order"),
    [
        ((), 17, COCO_FLIPPED),
        ((), 14, None),
        (("nose", "left_eye", "right_eye"), 3, (0, 2, 1)),
        (("LElbow", "head", "tail"), 3, None),
        # OpenPose, Halpe; AP-10K; mediapipe; MPII; DeepLabCut; Blender; short ones in use.
        (("Nose", "RShoulder", "RWrist", "LShoulder", "LWrist", "MidHip", "REar", "LEar"), 8, (0, 3, 4, 1, 2, 5, 7, 6)),
        (("L_Eye", "R_Eye", "Root of tail", "L_F_Paw", "R_F_Paw"), 5, (1, 0, 2, 4, 3)),
        (("mouth_left", "mouth_right", "left_eye_inner", "right_eye_inner"), 4, (1, 0, 3, 2)),
        (("Left Shoulder", "Right Shoulder", "r-knee", "l-knee"), 4, (1, 0, 3, 2)),
        (("forepawR1", "forepawL1", "leftear", "rightear", "tailtip"), 5, (1, 0, 3, 2, 4)),
        (("hand.L", "hand.R", "LeftUpLeg", "RightUpLeg", "spine"), 5, (1, 0, 3, 2, 4)),
        (("lsho", "rsho", "neck", "LANK", "RANK"), 5, (1, 0, 2, 4, 3)),
        (("lEar", "rEar", "wristL", "wristR"), 4, (1, 0, 3, 2)),
        (("nose", "tail", "ear", "leg", "rear"), 5, None),
        (("左眼", "右眼"), 2, None),
        (("R hip", "L hip", "root"), 3, (1, 0, 2)),
        (("bright", "blight"), 2, None),
        (("left_paw", "tail"), 2, None),
    ],
)
def test_the_other_side_is_known_by_names(names: tuple[str, ...], n: int, order: tuple[int, ...] | None) -> None:
    assert other_sides(names, n) == order


def test_without_sides_none_are_suspected(tmp_path: Path) -> None:
    scene(tmp_path, names=[f"p{k}" for k in range(17)])
    found = labels(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="keypoints")
    assert "sides" not in {suspect.kind for suspect in found.suspects} | found.counts.keys()
    assert "names such as 'p0', 'p1', 'p2' have no known left and right" in found.refused["sides"]
    done = run_here("labels", "gt.json", "pred.json", "--iou-type", "keypoints", cwd=tmp_path)
    assert "Not looked for: points with names such as" in done.stdout


def test_sides_are_found_by_the_names_of_openpose(tmp_path: Path) -> None:
    parts = ("Eye", "Ear", "Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle")
    scene(tmp_path, names=["Nose", *(f"{side}{part}" for part in parts for side in "LR")])
    assert {suspect.object for suspect in sides_of(tmp_path)} == {f"{100 + k}" for k in SWAPPED}


def test_of_real_poses_those_that_were_exchanged_are_found(shared_data: Path, tmp_path: Path) -> None:
    real = shared_data / "mmpose"
    gt = json.loads((real / "tests/data/coco/test_coco.json").read_text())
    poses = [one for one in gt["annotations"] if one.get("num_keypoints", 0) >= 10]
    chosen = [one["id"] for one in poses[::3]]
    for one in poses:
        if one["id"] in chosen:
            one["keypoints"] = np.reshape(one["keypoints"], (17, 3))[list(COCO_FLIPPED)].ravel().tolist()
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    pred = json.loads((real / "derived_keypoint_dets.json").read_text())
    (tmp_path / "pred.json").write_text(json.dumps(pred))
    clean = labels(real / "tests/data/coco/test_coco.json", real / "derived_keypoint_dets.json", iou_type="keypoints")
    assert [one for one in clean.suspects if one.kind == "sides"] == []
    found = {one.object for one in sides_of(tmp_path)}
    assert found and found <= set(map(str, chosen))
