"""Object keypoint similarity is that of pycocotools, bit for bit."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import BoxTable, DataError, UsageError, evaluate
from jaccard_eval.data.protocol import get_protocol
from jaccard_eval.similarity.keypoints import Keypoints, PoseSide, pose_pairs

pytestmark = pytest.mark.usefixtures("with_core")

POSES = get_protocol("coco").comparing("keypoints")


def table(poses: np.ndarray, score: np.ndarray | None = None) -> BoxTable:
    shapes = Keypoints(poses)
    rows = np.zeros(len(poses), dtype=int)
    area = shapes.bounds()[:, 2:].prod(axis=1) * 0.7
    return BoxTable.from_arrays(rows, rows, shapes.bounds(), encoding="xywh", score=score, area=area, shapes=shapes)


@given(st.integers(0, 2**32 - 1).map(np.random.default_rng))
def test_similarity_is_that_of_the_reference(rng: np.random.Generator) -> None:
    truth = rng.uniform(0, 100, (6, 17, 3))
    truth[..., 2] = rng.integers(0, 3, (6, 17)) * (rng.random((6, 1)) < 0.8)  # some poses without a label
    found = np.repeat(truth, 3, axis=0) + rng.normal(0, 6, (18, 17, 3))
    score = 1 - np.arange(18) / 100
    gt, pred = table(truth), table(found, score)
    shared = {"image_id": 1, "category_id": 1}
    records = [
        {**shared, "id": row + 1, "iscrowd": 0, "keypoints": pose.ravel().tolist(), "bbox": box, "area": area}
        for row, (pose, box, area) in enumerate(zip(truth, gt.xywh.tolist(), gt.area.tolist(), strict=True))
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        api = COCO()
        api.dataset = {
            "images": [{"id": 1, "width": 99, "height": 99}],
            "categories": [{"id": 1, "name": "person"}],
            "annotations": [{**record, "num_keypoints": 1} for record in records],
        }
        api.createIndex()
        results = [
            {**shared, "keypoints": pose.ravel().tolist(), "score": s} for pose, s in zip(found, score, strict=True)
        ]
        evaluation = COCOeval(api, api.loadRes(results), "keypoints")
        evaluation._prepare()
        expected = evaluation.computeOks(1, 1)
    i, j = (rows.ravel() for rows in np.mgrid[:18, :6])
    i, j, value = pose_pairs(PoseSide.prepare(pred, POSES), PoseSide.prepare(gt, POSES), i, j)
    oks = np.zeros((18, 6))
    oks[i, j] = value
    assert oks.tolist() == expected.tolist()
    # From a threshold on, pairs that are out of reach are not compared to the end.
    i, j = (rows.ravel() for rows in np.mgrid[:18, :6])
    i, j, value = pose_pairs(PoseSide.prepare(pred, POSES), PoseSide.prepare(gt, POSES), i, j, threshold=0.5)
    oks[:] = 0
    oks[i, j] = value
    assert oks.tolist() == np.where(expected >= 0.5, expected, 0).tolist()


def test_sigmas_are_never_guessed() -> None:
    poses = table(np.ones((1, 5, 3)), score=np.ones(1))
    with pytest.raises(DataError, match="poses have 5 keypoints, but there are 17 sigmas of COCO"):
        evaluate(poses, poses, protocol=POSES)
    assert evaluate(poses, poses, iou_type="keypoints", sigmas=[0.1] * 5)["AP"] == pytest.approx(1)
    assert PoseSide.prepare(poses, POSES.with_options(sigmas=(0.1,) * 5)).variances.tolist() == [0.2**2] * 5


def test_poses_are_moved_joined_and_saved() -> None:
    poses = Keypoints(np.array([[[1.0, 2, 2], [3, 6, 1]], [[0.0, 0, 0], [5, 5, 2]]]))
    assert poses.bounds().tolist() == [[1, 2, 2, 4], [0, 0, 5, 5]]
    assert poses.scaled(np.array([[2.0, 3], [1, 1]])).points[0].tolist() == [[2, 6, 2], [6, 18, 1]]
    assert poses.shifted(np.full((2, 2), -1.0)).points[1].tolist() == [[-1, -1, 0], [4, 4, 2]]
    assert poses.joined([poses]).take(np.array([3])).points.tolist() == poses.points[1:].tolist()
    assert Keypoints.from_arrays(poses.to_arrays()).hashes().tolist() == poses.hashes().tolist()
    assert len(set(map(tuple, poses.hashes().tolist()))) == 2
    with pytest.raises(UsageError, match="poses of 2 and 3 points cannot be joined"):
        poses.joined([Keypoints(np.zeros((1, 3, 3)))])
    for forged in (
        {},
        {"points": np.zeros((1, 2))},
        {"points": np.full((1, 1, 3), np.nan)},
        {"points": np.zeros((1, 2, 2))},
    ):
        with pytest.raises(UsageError, match="keypoints"):
            Keypoints.from_arrays(forged)


def test_rules_of_poses_are_in_documents_and_signatures_of_poses_alone() -> None:
    boxes = get_protocol("coco")
    assert boxes.to_document().keys() & {"iou_type", "sigmas", "oks_box_share", "dilation_ratio"} == set()
    assert POSES.to_document().keys() & {"iou_type", "sigmas", "dilation_ratio"} == {"iou_type", "sigmas"}
    assert [area.name for area in POSES.areas] == ["all", "medium", "large"]
    assert POSES.max_dets == (20,)
    assert boxes.with_options(max_dets=(5,)).comparing("keypoints").max_dets == (5,)
