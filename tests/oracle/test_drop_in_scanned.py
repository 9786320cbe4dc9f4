"""Results in a file, of which the drop-in makes no records until somebody looks at them, are those of a list."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapes

from jaccard_eval.pycocotools import COCO, COCOeval

DRAW = {
    "bbox": lambda: shapes._boxes(6, n_classes=4),
    "segm": lambda: shapes.draw_masks(6),
    "keypoints": lambda: shapes.draw_poses(6),
}


@pytest.fixture(params=DRAW)
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any], Path]:
    document, detections = DRAW[request.param]()
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(detections))
    return request.param, document, path


def evaluated(kind: str, gt: dict[str, Any], dt: Any, change: Any = None, **params: Any) -> COCOeval:
    truth = COCO(copy.deepcopy(gt), verbose=False)
    found = truth.loadRes(dt)
    if change is not None:
        change(found)
    evaluation = COCOeval(truth, found, kind, verbose=False)
    for name, value in params.items():
        setattr(evaluation.params, name, value)
    for step in (evaluation.evaluate, evaluation.accumulate, evaluation.summarize):
        step()
    return evaluation


def require_equal(first: COCOeval, second: COCOeval) -> None:
    assert first.stats.tolist() == second.stats.tolist()
    for ours, theirs in zip(first.evalImgs, second.evalImgs, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert first.ious.keys() == second.ious.keys()
    assert all(np.array_equal(first.ious[key], second.ious[key]) for key in second.ious)
    assert first.cocoDt.anns.keys() == second.cocoDt.anns.keys()
    assert first.cocoDt.dataset["annotations"] == second.cocoDt.dataset["annotations"]


@pytest.mark.parametrize("params", [{}, {"imgIds": [2, 4, 5], "catIds": [1]}], ids=["all", "some"])
def test_a_file_is_evaluated_as_its_records(sides: tuple[str, dict[str, Any], Path], params: dict[str, Any]) -> None:
    kind, gt, path = sides
    require_equal(evaluated(kind, gt, path, **params), evaluated(kind, gt, json.loads(path.read_text()), **params))
    if kind != "bbox":
        require_equal(evaluated("bbox", gt, path), evaluated("bbox", gt, json.loads(path.read_text())))


def test_records_that_were_changed_count(sides: tuple[str, dict[str, Any], Path]) -> None:
    kind, gt, path = sides

    def change(found: COCO) -> None:
        for ann in found.loadAnns(found.getAnnIds()):
            ann["score"] = 1 - ann["score"]

    changed = evaluated(kind, gt, path, change)
    require_equal(changed, evaluated(kind, gt, json.loads(path.read_text()), change))
    assert changed.stats.tolist() != evaluated(kind, gt, path).stats.tolist()
    require_equal(evaluated(kind, gt, path, pickle.dumps), evaluated(kind, gt, path, copy.deepcopy))


def test_a_file_is_refused_as_its_records(tmp_path: Path) -> None:
    truth = COCO({"images": [{"id": 1}], "categories": [{"id": 1}], "annotations": []}, verbose=False)
    path = tmp_path / "dt.json"
    path.write_text(json.dumps([{"image_id": 2, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}]))
    with pytest.raises(AssertionError, match="do not correspond"):
        truth.loadRes(path)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        truth.nothing  # noqa: B018
