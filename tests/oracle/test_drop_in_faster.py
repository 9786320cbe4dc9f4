"""`init_as_faster_coco_eval` and `python -m jaccard_eval.patch`: programs for faster-coco-eval run on ours."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cocoscenes
import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pytest

from jaccard_eval.compat.faster_coco_eval import COCO, COCOeval, COCOeval_faster, rleToBoundary, segmToRle
from jaccard_eval.compat.pycocotools.mask import decode, encode, frPyObjects

SCENE = next(kind for kind in cocoscenes.KINDS if kind.name == "crowds and ties")
PROGRAM = """
import json, sys
from pathlib import Path
from faster_coco_eval import COCO, COCOeval_faster
from faster_coco_eval.core.faster_eval_api import COCOeval
from faster_coco_eval.core import mask as mask_util
import faster_coco_eval.core.mask
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO as Api
import beside

gt = COCO(json.loads(Path(sys.argv[1]).read_text()))
found = gt.loadRes(json.loads(Path(sys.argv[2]).read_text()))
evaluation = COCOeval_faster(gt, found, iouType="bbox", print_function=lambda text: None, lvis_style=False)
evaluation.run()
print(json.dumps(evaluation.stats_as_dict))
print(__name__, Path(sys.argv[0]).name, COCOeval.__base__ is COCOeval_faster, COCO.__module__, Api.__module__)
"""


def pycocotools_stats(document: dict[str, Any], detections: list[dict[str, Any]]) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        gt = pycocotools.coco.COCO()
        gt.dataset = copy.deepcopy(document)
        gt.createIndex()
        evaluation = pycocotools.cocoeval.COCOeval(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


def test_its_twelve_numbers_are_those_of_pycocotools_by_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    document, detections = cocoscenes.draw(SCENE, seed=2)
    gt = COCO(document, use_deepcopy=True)
    evaluation = COCOeval_faster(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
    evaluation.run()
    names = "AP_all AP_50 AP_75 AP_small AP_medium AP_large AR_all AR_second AR_third AR_small AR_medium AR_large"
    named = evaluation.stats_as_dict
    assert list(named) == [*names.split(), "AR_50", "AR_75"]
    assert np.array_equal(list(named.values())[:12], pycocotools_stats(document, detections))
    assert np.array_equal(evaluation.stats, evaluation.all_stats[:12])
    # Recall at the first and the sixth threshold, averaged over categories with ground truth.
    recall = evaluation.eval["recall"][:, :, 0, -1]
    assert named["AR_50"] == recall[0][recall[0] > -1].mean()
    assert named["AR_75"] == recall[5][recall[5] > -1].mean()
    assert capsys.readouterr() == ("", "")  # all goes to the print function


def test_ranges_caps_and_scores_are_taken() -> None:
    document, detections = cocoscenes.draw(SCENE, seed=2)
    gt = COCO(copy.deepcopy(document))
    least = float(np.median([record["score"] for record in detections]))
    found = gt.loadRes(copy.deepcopy(detections), min_score=least)
    assert len(found.dataset["annotations"]) == sum(record["score"] >= least for record in detections)
    evaluation = COCOeval_faster(gt, found, "bbox", ranges={"tiny": [0, 500], "rest": [500, 1e10]})
    evaluation.params.maxDets = [1, 7]
    evaluation.run()
    names = ["AP_all", "AP_50", "AP_75", "AP_tiny", "AP_rest", "AR_1", "AR_7", "AR_tiny", "AR_rest", "AR_50", "AR_75"]
    assert list(evaluation.stats_as_dict) == names


@pytest.mark.parametrize("asked", [{"extra_calc": True}, {"lvis_style": True}, {"use_area": False}])
def test_what_is_not_there_is_refused(asked: dict[str, bool]) -> None:
    with pytest.raises(NotImplementedError, match=next(iter(asked))):
        COCOeval_faster(iouType="bbox", **asked)


def test_polygons_become_rle() -> None:
    square = segmToRle([[0, 0, 0, 2, 2, 2, 2, 0]], 4, 3)
    there = pycocotools.coco.maskUtils.frPyObjects([[0, 0, 0, 2, 2, 2, 2, 0]], 3, 4)[0]
    assert square == there
    assert segmToRle(square, 4, 3) == square
    assert frPyObjects([np.array([0.0, 0, 0, 2, 2, 2, 2, 0])], 3, 4) == [there]


def test_documents_are_read_copied_and_given_back(tmp_path: Path) -> None:
    document, _ = cocoscenes.draw(SCENE, seed=2)
    (tmp_path / "gt.json").write_text(json.dumps(document))
    assert COCO.load_json(tmp_path / "gt.json") == document
    for deep in (False, True):
        copied = COCO.load_json(document, use_deepcopy=deep)
        assert copied == document and copied is not document
        assert (copied["images"] is document["images"]) is not deep
    held = dict(COCO(copy.deepcopy(document)))
    assert [held[name] for name in ("images", "annotations", "categories")] == [
        document[name] for name in ("images", "annotations", "categories")
    ]


def test_images_known_by_texts_are_found_by_numbers() -> None:
    box = {"category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
    document = {"images": [{"id": "7"}], "categories": [{"id": 1}], "annotations": [box | {"id": 1, "image_id": "7"}]}
    gt = COCO(document, use_deepcopy=True)
    assert gt.getImgIds() == [7]
    found = [box | {"image_id": 7, "score": 0.9}, box | {"image_id": 8, "score": 0.1}]
    results = gt.loadRes(found, min_score=0.5)  # what is below it may be of images that are not there
    assert [record["image_id"] for record in results.dataset["annotations"]] == [7]
    evaluation = COCOeval_faster(gt, results, "bbox", lvis_style=False)
    evaluation.run()
    assert evaluation.stats_as_dict["AP_all"] == pytest.approx(1.0)


def test_lvis_style_is_put_aside_for_keypoints_and_print_reaches_all(capsys: pytest.CaptureFixture[str]) -> None:
    gt = COCO({"images": [], "categories": [], "annotations": []})
    evaluation = COCOeval_faster(gt, gt, "keypoints", print_function=print, lvis_style=True)
    assert not evaluation.lvis_style and gt.print_function is print
    COCOeval(gt, gt, "bbox")._print("twelve numbers")
    assert capsys.readouterr().out == "twelve numbers\n"


def test_a_boundary_is_the_mask_without_what_lies_deeper() -> None:
    square = np.zeros((7, 8), dtype=np.uint8)
    square[1:6, 1:6] = 1
    edge = square.copy()
    edge[2:5, 2:5] = 0  # one pixel wide, as 0.02 of the diagonal is less
    for backend in ("mask_api", "opencv"):
        assert np.array_equal(decode(rleToBoundary(encode(square), backend=backend)), edge)


AS_PYCOCOTOOLS = """
import importlib.util
import jaccard_eval.pycocotools
jaccard_eval.pycocotools.init_as_faster_coco_eval()
import faster_coco_eval
assert importlib.util.find_spec("faster_coco_eval") is not None
faster_coco_eval.init_as_pycocotools()
import pycocotools.mask, pycocotools.cocoeval
from pycocotools.coco import COCO
assert pycocotools is faster_coco_eval and pycocotools.cocoeval.COCOeval is faster_coco_eval.COCOeval
assert COCO is faster_coco_eval.COCO and pycocotools.mask.segmToRle
print(faster_coco_eval.__version__)
"""


def test_its_own_call_puts_it_in_the_place_of_pycocotools() -> None:
    done = subprocess.run([sys.executable, "-c", AS_PYCOCOTOOLS], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "1.7.1\n")


@pytest.mark.parametrize("module", [False, True])
def test_a_program_runs_unchanged_under_patch(module: bool, tmp_path: Path) -> None:

    document, detections = cocoscenes.draw(SCENE, seed=2)
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "gt.json").write_text(json.dumps(document))
    (tmp_path / "dt.json").write_text(json.dumps(detections))
    named = ["-m", "train"] if module else ["train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "jaccard_eval.patch", *named, "gt.json", "dt.json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stats, names = done.stdout.splitlines()
    assert list(json.loads(stats).values())[:12] == pycocotools_stats(document, detections).tolist()
    home = "jaccard_eval.compat"
    assert names == f"__main__ train.py True {home}.faster_coco_eval {home}.pycocotools.coco"


@pytest.mark.parametrize("arguments", [[], ["-m"], ["--help"], ["missing.py"]])
def test_patch_without_a_program_is_a_usage_error(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jaccard_eval.patch", *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: python -m jaccard_eval.patch" in done.stderr
