"""Rows of docs/exactness.md on rules that shapes and VOC have, and other programs have otherwise."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

from jaccard_eval import BoxTable, evaluate
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.runs import runs_of_pixels

POSE = [value for i in range(17) for value in (10 + i, 20 + i, 2)]


def test_poses_without_classes_are_compared_where_pycocotools_finds_none() -> None:
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 40, 40], "area": 1600, "iscrowd": 0}
    truth = coco.COCO()
    truth.dataset = {
        "images": [{"id": 1, "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{**annotation, "keypoints": POSE, "num_keypoints": 17}],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        found = truth.loadRes([{"image_id": 1, "category_id": 1, "keypoints": POSE, "score": 0.9}])
        run = cocoeval.COCOeval(truth, found, "keypoints")
        run.params.useCats = 0
        run.evaluate()
        run.accumulate()
        run.summarize()
    assert run.stats[0] == 0
    shapes = Keypoints(np.array(POSE, dtype=float).reshape(1, 17, 3))
    sides = [
        BoxTable.from_arrays([0], [0], [[10, 20, 40, 40]], encoding="xywh", shapes=shapes, score=score)
        for score in (None, [0.9])
    ]
    assert evaluate(*sides, iou_type="keypoints", class_agnostic=True)["AP"] == pytest.approx(1)


@pytest.mark.parametrize("iou_type", ["segm", "boundary"])
def test_ignore_of_an_annotation_has_no_effect_on_masks(iou_type: str) -> None:
    pixels = np.zeros((2, 50, 50), dtype=bool)
    pixels[0, :20, :20] = pixels[1, 25:, 25:] = True
    masks = Masks(runs_of_pixels((mask, 0, 0, 50) for mask in pixels), np.full((2, 2), 50))
    rows: dict[str, Any] = {"image": [0, 0], "label": [0, 0], "boxes": [[0, 0, 20, 20], [25, 25, 50, 50]]}
    truth = BoxTable.from_arrays(**rows, shapes=masks, ignore=[False, True])
    found = BoxTable.from_arrays([0], [0], [[0, 0, 20, 20]], shapes=masks.take(np.array([0])), score=[0.9])
    # Both objects count: recall .5, so that 51 of 101 points have precision 1.
    assert evaluate(truth, found, iou_type=iou_type)["AP50"] == pytest.approx(51 / 101)


def test_voc_counts_an_iou_of_exactly_one_half() -> None:
    # Pixels count: 5 of 10 columns of 10 x 10.
    truth = BoxTable.from_arrays([0], [0], [[0, 0, 9, 9]])
    found = BoxTable.from_arrays([0], [0], [[0, 0, 4, 9]], score=[0.9])
    assert evaluate(truth, found, protocol="voc2012")["AP"] == 1
