"""Poses in tables of DeepLabCut and SLEAP, lists of MPII and of transformers; masks of FiftyOne; scores of BDD100K."""

import base64
import io
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import BoxTable, DataError, ReadOptions, evaluate, load

POINTS = [(20.0, 20.0), (30.0, 40.0), (40.0, 60.0)]
NAMES = ("nose", "left", "right")
DEEPLABCUT = "scorer,me,me,me,me,me,me\nbodyparts,nose,nose,left,left,right,right\ncoords,x,y,x,y,x,y\n"
FOUND = (
    "scorer,net,net,net,net,net,net,net,net,net\nbodyparts,nose,nose,nose,left,left,left,right,right,right\n"
    "coords,x,y,likelihood,x,y,likelihood,x,y,likelihood\n"
)
# One point is off by 4: its similarity is exp(-d² / (2 s² (2 k)²)) with the area s² of the box around the points,
# 20 x 40, and k .1; the other two are 1.
OKS = (2 + math.exp(-16 / (2 * 800 * 0.2**2))) / 3


def poses(path: Path, role: str) -> Any:
    side = load(path, role=role, options=ReadOptions(iou_type="keypoints"))
    assert side.boxes.shapes is not None
    return side, side.boxes.shapes.to_arrays()["points"]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def truth(root: Path) -> Path:
    return write(root / "gt.csv", f"{DEEPLABCUT}labeled-data/video/a.png,20,20,30,40,40,60\n")


def of_deeplabcut(root: Path) -> Path:
    return write(root / "pred.csv", f"{FOUND}a.png,24,20,.9,30,40,.8,40,60,.7\n")


def of_sleap(root: Path) -> Path:
    header = "track,frame_idx,instance.score," + ",".join(
        f"{name}.{end}" for name in NAMES for end in ("x", "y", "score")
    )
    return write(root / "pred.csv", f"{header}\n,a,.9,24,20,.9,30,40,.8,40,60,.7\n")


def of_transformers(root: Path) -> Path:
    points = [[24, 20], [30, 40], [40, 60]]
    pose = {"keypoints": points, "scores": [0.9, 0.8, 0.7], "labels": [0, 1, 2], "bbox": [20, 20, 40, 60]}
    return write(root / "pred.json", json.dumps({"a.png": [pose]}))


@pytest.mark.parametrize("predict", [of_deeplabcut, of_sleap, of_transformers])
def test_poses_of_tables_and_lists_by_image_are_compared(tmp_path: Path, predict: Any) -> None:
    result = evaluate(truth(tmp_path), predict(tmp_path), sigmas=[0.1], iou=[0.9, 0.95])
    assert 0.9 < OKS < 0.95
    assert (result["AP[iou=0.9]"], result["AP[iou=0.95]"]) == (pytest.approx(1), 0)


def test_scores_are_means_of_likelihoods_and_empty_points_are_not_labelled(tmp_path: Path) -> None:
    side, points = poses(write(tmp_path / "p.csv", f"{FOUND}7,24,20,.9,nan,,,40,60,.7\n"), "pred")
    assert side.boxes.score.tolist() == [pytest.approx(0.8)]
    assert points[0].tolist() == [[24, 20, 0.9], [0, 0, 0], [40, 60, 0.7]]
    assert side.images.keys == ("7",)


def test_several_animals_and_paths_in_three_cells_are_read(tmp_path: Path) -> None:
    text = (
        "scorer,,,me,me,me,me\nindividuals,,,m1,m1,m2,m2\nbodyparts,,,nose,nose,nose,nose\ncoords,,,x,y,x,y\n"
        "labeled-data,video,a.png,1,2,3,4\nlabeled-data,video,b.png,,,5,6\n"
    )
    side, points = poses(write(tmp_path / "g.csv", text), "gt")
    assert side.images.keys == ("a.png", "b.png")
    assert points[:, 0].tolist() == [[1, 2, 2], [3, 4, 2], [5, 6, 2]]


@pytest.mark.parametrize(
    ("row", "code"),
    [("a.png,x,20,30,40,40,60", "csv-number"), ("a.png,20,20", "columns"), ("a.png,1e999,2,3,4,5,6", "")],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: str, code: str) -> None:
    with pytest.raises(DataError) as caught:
        poses(write(tmp_path / "g.csv", f"{DEEPLABCUT}{row}\n"), "gt")
    assert code in str(caught.value)


def test_joints_of_mpii_that_are_not_visible_are_not_labelled(tmp_path: Path) -> None:
    record = {"joints": POINTS, "joints_vis": [1, 0, 1], "image": "a.png", "scale": 1.0, "center": [30, 40]}
    _, points = poses(write(tmp_path / "mpii.json", json.dumps([record])), "gt")
    assert points[0].tolist() == [[20, 20, 1], [30, 40, 0], [40, 60, 1]]


def packed(mask: Any) -> str:
    file = io.BytesIO()
    np.save(file, mask)
    return base64.b64encode(zlib.compress(file.getvalue())).decode()


def sample(mask: Any, *, wrapped: bool = True, **metadata: int) -> dict[str, Any]:
    text = packed(mask) if isinstance(mask, np.ndarray) else mask
    field = {"$binary": {"base64": text, "subType": "00"}} if wrapped else text
    box = [0.1, 0.2, 0.4, 0.2]  # of 100 x 50 pixels: left 10, top 10, 40 wide, 10 high
    found = {"label": "cell", "bounding_box": box, "mask": field}
    lists = {"ground_truth": {"detections": [found]}, "yolo": {"detections": [{**found, "confidence": 0.7}]}}
    return {"filepath": "data/a.jpg", "metadata": metadata, **lists}


@pytest.mark.parametrize("wrapped", [True, False])
def test_masks_of_fiftyone_begin_at_the_corner_of_their_box(tmp_path: Path, wrapped: bool) -> None:
    mask = np.zeros((10, 40), dtype=np.bool_)
    mask[2:4, 5:11] = True
    document = {"samples": [sample(mask, wrapped=wrapped, width=100, height=50)]}
    path = write(tmp_path / "samples.json", json.dumps(document))
    side = load(path, options=ReadOptions(iou_type="segm"))
    # Columns 15 to 20 of rows 12 and 13.
    assert (side.boxes.xywh.tolist(), side.boxes.area.tolist()) == ([[15, 12, 6, 2]], [12])
    assert load(path).boxes.xywh.tolist() == [[10, 10, 40, 10]]
    result = evaluate(path, path, iou_type="segm")
    assert (result["AP"], load(path, role="pred").boxes.score.tolist()) == (pytest.approx(1), [0.7])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("mask", "metadata", "found"),
    [
        (np.ones((10, 40), dtype=np.bool_), {}, "compute_metadata"),
        (np.ones((10, 20), dtype=np.bool_), {"width": 100, "height": 50}, "20 x 10 pixels, its box 40 x 10"),
        ("AAAA", {"width": 100, "height": 50}, "is not a NumPy array"),
        (np.array([{}]), {"width": 100, "height": 50}, "is not a NumPy array"),
        (np.zeros((900, 900)), {"width": 100, "height": 50}, "is not a NumPy array"),
    ],
)
def test_a_mask_that_cannot_be_placed_is_an_error(
    tmp_path: Path, mask: Any, metadata: dict[str, int], found: str
) -> None:
    path = write(tmp_path / "samples.json", json.dumps({"samples": [sample(mask, **metadata)]}))
    with pytest.raises(DataError, match=found):
        load(path, options=ReadOptions(iou_type="segm"))


def test_scores_of_bitmasks_lie_in_a_file_next_to_their_folder(tmp_path: Path) -> None:
    """Two cars, numbers 1 and 300; the second is found twice as sure."""
    channels = np.zeros((4, 8, 4), dtype=np.uint8)
    channels[:, :3], channels[:, 5:] = (3, 0, 0, 1), (3, 0, 1, 44)
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
        Image.fromarray(channels).save(tmp_path / side / "a.png")
    labels = [{"index": 1, "score": 0.4}, {"index": 300, "score": 0.8}]
    write(tmp_path / "pred.json", json.dumps([{"name": "a.png", "labels": labels}]))
    side = load(tmp_path / "pred", role="pred", options=ReadOptions(iou_type="segm"))
    assert side.boxes.score is not None
    assert dict(zip(side.boxes.xywh[:, 0].tolist(), side.boxes.score.tolist(), strict=True)) == {0: 0.4, 5: 0.8}
    assert isinstance(side.boxes, BoxTable)
    assert evaluate(tmp_path / "gt", tmp_path / "pred")["AP"] == pytest.approx(1)
