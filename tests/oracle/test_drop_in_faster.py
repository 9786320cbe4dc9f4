"""`init_as_faster_coco_eval` and `python -m jaccard_eval.patch`: programs for faster-coco-eval run on ours."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import subprocess
import sys
from functools import partialmethod
from pathlib import Path
from typing import Any

import cocoscenes
import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pytest

from jaccard_eval.compat.faster_coco_eval import COCO, COCOeval, COCOeval_faster, Params, rleToBoundary, segmToRle
from jaccard_eval.compat.pycocotools import cocoeval
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


def test_lvis_style_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="lvis_style"):
        COCOeval_faster(iouType="bbox", lvis_style=True)


def square(key: int, left: float, category: int = 1, side: float = 10, **more: Any) -> dict[str, Any]:
    return {"id": key, "image_id": 1, "category_id": category, "bbox": [left, 0, side, side], **more}


def ran(objects: list[dict[str, Any]], found: list[dict[str, Any]], kind: str = "bbox", **options: Any) -> Any:
    names = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    gt = COCO({"images": [{"id": 1, "height": 99, "width": 999}], "categories": names, "annotations": objects})
    evaluation = COCOeval_faster(gt, gt.loadRes(found), kind, **options)
    evaluation.run()
    return evaluation


OBJECTS = [square(1, 0), square(2, 100), square(3, 200), square(4, 300, 2)]
FOUND = [
    square(1, 0, score=0.9),
    square(2, 102.5, score=0.8),  # 75 of 125 pixels: IoU .6
    square(3, 500, score=0.7),
    square(4, 300, 2, score=0.8),
    square(5, 600, 2, score=0.2),
]


@pytest.mark.parametrize("by_image", [False, True])
def test_what_matched_is_written_into_annotations_and_averaged(by_image: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_image:  # a method that is replaced
        monkeypatch.setattr(COCOeval_faster, "computeIoU", partialmethod(cocoeval.COCOeval.computeIoU))
    evaluation = ran(copy.deepcopy(OBJECTS), copy.deepcopy(FOUND), extra_calc=True)
    assert (evaluation._match is None) is by_image
    assert evaluation.eval["matched"] == pytest.approx({"1_1": 1.0, "2_2": 0.6, "4_4": 1.0})
    found, objects = evaluation.cocoDt.anns, evaluation.cocoGt.anns
    assert [(found[key].get("tp"), found[key].get("gt_id"), found[key].get("fp")) for key in found] == [
        (True, 1, None), (True, 2, None), (None, None, True), (True, 4, None), (None, None, True),
    ]  # fmt: skip
    assert found[2]["iou"] == pytest.approx(0.6)
    assert [(ann.get("dt_id"), ann.get("fn")) for ann in objects.values()] == [
        (1, None), (2, None), (None, True), (4, None),
    ]  # fmt: skip
    named = evaluation.stats_as_dict
    assert named["mIoU"] == pytest.approx(2.6 / 3)
    # Of the values of all recalls, with those of the three caps behind each other, as many are read as there are
    # recalls: up to .33, where all caps have found one cat of three, without a false one. No other size has objects.
    assert named["mAUC_50"] == pytest.approx(1.0)
    assert len(evaluation.stats) == 12 and list(named)[-2:] == ["mIoU", "mAUC_50"]


def test_extended_metrics_are_those_at_the_best_mean_f1() -> None:
    evaluation = ran(copy.deepcopy(OBJECTS), copy.deepcopy(FOUND))
    # At .8: cats have 2 hits of 2, 2 of 3 found, F1 .8; dogs 1 of 1, F1 1. At .7 cats have F1 2/3, at .9 1/2.
    metrics = evaluation.extended_metrics
    cat, dog, every = metrics["class_map"]
    assert (cat["class"], cat["precision"], cat["recall"]) == ("cat", 1.0, pytest.approx(2 / 3))
    assert (dog["class"], dog["precision"], dog["recall"]) == ("dog", 1.0, 1.0)
    # Two in three objects, the second at .50, .55 and, as .6 is not below it, .60; then one in three.
    assert cat["map@50"] == pytest.approx(67 / 101)
    assert cat["map@50:95"] == pytest.approx((3 * 67 + 7 * 34) / 1010)
    assert every["class"] == "all" and every["precision"] == metrics["precision"] == 1.0
    assert metrics["recall"] == pytest.approx((2 / 3 + 1) / 2)
    assert metrics["map"] == every["map@50"] == evaluation.stats_as_dict["AP_50"]
    evaluation.params.iouThrs = np.array([0.55, 0.75])
    with pytest.raises(ValueError, match=r"0\.50"):
        evaluation.extended_metrics  # noqa: B018


def test_without_detections_extended_metrics_are_zero() -> None:
    evaluation = ran(copy.deepcopy(OBJECTS), [square(1, 500, 3, score=0.5)])
    assert evaluation.extended_metrics["class_map"][-1]["recall"] == 0.0


def test_absent_crowds_and_areas_are_zero() -> None:
    evaluation = ran([square(1, 0, side=50)], [square(1, 0, side=50, score=0.5)])
    named = evaluation.stats_as_dict
    assert (named["AP_all"], named["AP_small"], named["AP_medium"]) == (pytest.approx(1.0), pytest.approx(1.0), -1.0)


def test_scale_of_a_pose_may_be_a_share_of_its_box_and_images_are_sorted_by_crowding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One point with sigma .1, off by d in a box of 100 by 100: OKS is exp(-d² / .04 / 5300 / 2)."""
    distance = {"easy": 0.0, "medium": np.sqrt(0.65 * 424), "hard": np.sqrt(1.0 * 424)}  # OKS 1, .522 and .368
    images = [{"id": key, "crowdIndex": crowded} for key, crowded in enumerate((0.1, 0.2, 0.8), start=1)]
    body = {"category_id": 1, "num_keypoints": 1, "bbox": [0, 0, 100, 100]}
    objects = [body | {"id": key, "image_id": key, "keypoints": [50, 50, 2]} for key in (1, 2, 3)]
    found = [
        {"image_id": key, "category_id": 1, "keypoints": [50 + off, 50, 1], "score": 0.9}
        for key, off in enumerate(distance.values(), start=1)
    ]
    gt = COCO({"images": images, "categories": [{"id": 1, "name": "person"}], "annotations": objects})
    evaluation = COCOeval_faster(
        gt, gt.loadRes(found), "keypoints_crowd", kpt_oks_sigmas=[0.1], use_area=False, print_function=print
    )
    evaluation.run()
    named = evaluation.stats_as_dict
    assert list(named) == ["AP_all", "AP_50", "AP_75", "AR_all", "AR_50", "AR_75", "AP_easy", "AP_medium", "AP_hard"]
    assert (named["AR_50"], named["AR_75"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    # Of ten thresholds .522 reaches the first.
    assert [named[f"AP_{kind}"] for kind in distance] == [1.0, 0.1, 0.0]
    assert np.array_equal(evaluation.stats, list(named.values()))
    last = capsys.readouterr().out.splitlines()[-2]
    assert last == " Average Precision  (AP) @[ IoU=0.50:0.95 | type=medium | maxDets= 20 ] = 0.100"


def test_parameters_have_both_spellings() -> None:
    params = Params("bbox", ranges={"tiny": [0, 9]})
    params.imgIds, params.maxDets = [3], [7]
    assert (params.iou_type, params.img_ids, params.max_dets, params.use_cats) == ("bbox", [3], [7], 1)
    assert (params.area_rng_lbl, params.area_rng[1]) == (["all", "tiny"], [0, 9])
    assert Params("keypoints", kpt_sigmas=[1, 2]).kpt_oks_sigmas.tolist() == [1, 2]
    assert params.useSegm == 0
    params.useSegm = 1
    assert params.iou_type == "segm"
    with pytest.raises(TypeError, match="iouType must be one of"):
        Params("box")


def test_methods_have_both_spellings() -> None:
    gt = COCO(
        {"images": [{"id": 1}], "categories": [{"id": 1, "name": "cat"}], "annotations": [square(1, 0, area=100)]}
    )
    assert gt.get_ann_ids(img_ids=[1], area_rng=[0, 101], iscrowd=False) == [1]
    assert gt.get_cat_ids(cat_names=["cat"]) == gt.get_img_ids(cat_ids=[1]) == [1]
    assert (gt.load_anns(1), gt.load_cats(ids=[1]), gt.load_imgs(1)) == ([gt.anns[1]], [gt.cats[1]], [gt.imgs[1]])
    with pytest.raises(TypeError):
        gt.load_anns()  # type: ignore[call-arg]
    assert repr(gt).startswith("COCO(annotation_file) # __author__=")
    assert repr(COCOeval_faster(iouType="bbox")).startswith("COCOeval_faster() # __author__=")


@pytest.mark.parametrize("method", ["c++", "py"])
def test_the_area_below_a_curve_takes_what_is_right_of_each_point(method: str) -> None:
    # Widths .5, .2 and .3 with the largest precision from their right end on: .9, .9 and .4.
    area = COCOeval_faster.calc_auc([0.0, 0.5, 0.7, 1.0], [0.1, 0.5, 0.9, 0.4], method=method)
    assert area == pytest.approx(0.5 * 0.9 + 0.2 * 0.9 + 0.3 * 0.4)


def test_polygons_become_rle() -> None:
    square = segmToRle([[0, 0, 0, 2, 2, 2, 2, 0]], 4, 3)
    there = pycocotools.coco.maskUtils.frPyObjects([[0, 0, 0, 2, 2, 2, 2, 0]], 3, 4)[0]
    assert square == segmToRle([np.array([0.0, 0, 0, 2, 2, 2, 2, 0])], 4, 3) == there
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
