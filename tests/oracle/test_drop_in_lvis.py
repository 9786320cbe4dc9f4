"""`init_as_lvis`: programs for lvis-api run on ours, with its arrays, results and lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact import decode, same_bits

from jaccard_eval.compat.lvis import LVIS, LVISEval, LVISResults
from jaccard_eval.compat.pycocotools.mask import encode, frPyObjects

ARCHIVES = {"cases.tar.xz": ("cases_pub/lvis/", "bbox", 75), "cases_ext.tar.xz": ("cases_ext/lvis_segm/", "segm", 20)}
PROGRAM = """
import json, sys
from lvis import LVIS, LVISEval, LVISResults
from lvis.eval import LVISEval as Same
gt = LVIS(sys.argv[1])
evaluation = LVISEval(gt, LVISResults(gt, json.load(open(sys.argv[2])), max_dets=300), "bbox")
evaluation.run()
print(json.dumps(evaluation.get_results()), Same is LVISEval)
"""
# One image, two objects of a rare class, one of them found: AP is the 51 of 101 recall values up to .5.
TRUTH: dict[str, Any] = {
    "images": [
        {"id": 1, "width": 200, "height": 200, "neg_category_ids": [], "not_exhaustive_category_ids": []},
    ],
    "categories": [{"id": 3, "name": "cup", "frequency": "r"}],
    "annotations": [
        {"id": n, "image_id": 1, "category_id": 3, "bbox": [x, 10, 20, 20], "area": 400}
        | {"segmentation": [[x, 10, x + 20, 10, x + 20, 30, x, 30]]}
        for n, x in ((1, 10), (2, 60))
    ],
}
FOUND = [{"image_id": 1, "category_id": 3, "bbox": [10, 10, 20, 20], "score": 0.9}]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The scene by hand."""
    gt, dt = tmp_path / "gt.json", tmp_path / "dt.json"
    gt.write_text(json.dumps(TRUTH))
    dt.write_text(json.dumps(FOUND))
    return gt, dt


@pytest.mark.slow
@pytest.mark.parametrize("file", ARCHIVES)
def test_arrays_and_results_are_those_of_lvis_api(file: str, shared_oracle: Path, tmp_path: Path) -> None:
    start, kind, n = ARCHIVES[file]
    with tarfile.open(shared_oracle / file) as archive:
        archive.extractall(tmp_path, [one for one in archive if one.name.startswith(start)], filter="data")
    folders = [path.parent for path in sorted(tmp_path.glob(f"{start}*/expected.json"))]
    assert len(folders) == n
    for folder in folders:
        expected = json.loads((folder / "expected.json").read_bytes())
        gt = LVIS(str(folder / "gt.json"))
        evaluation = LVISEval(gt, LVISResults(gt, str(folder / "dt.json")), kind)
        evaluation.run()
        assert dict(evaluation.get_results()) == expected["results"], folder.name
        for name in ("precision", "recall"):
            assert same_bits(evaluation.eval[name], decode(expected["arrays"][name])), (folder.name, name)


def test_a_scene_by_hand_and_its_lines(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    evaluation = LVISEval(str(files[0]), str(files[1]), "bbox")
    evaluation.run()
    results = evaluation.get_results()
    assert " ".join(results) == "AP AP50 AP75 APs APm APl APr APc APf AR@300 ARs@300 ARm@300 ARl@300"
    assert results["AP"] == results["APr"] == pytest.approx(51 / 101)
    assert (results["APc"], results["AR@300"]) == (-1, 0.5)
    evaluation.print_results()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(results)
    line = r" Average Precision  \(AP\) @\[ IoU=0\.50      \| area=   all \| maxDets=300 catIds=all\] = 0\.505"
    assert re.fullmatch(line, lines[1])
    assert "catIds=  r]" in lines[6]
    assert "area=     s" in lines[3]


def test_the_index_and_its_filters(files: tuple[Path, Path]) -> None:
    gt = LVIS(str(files[0]))
    assert (gt.get_img_ids(), gt.get_cat_ids(), gt.get_ann_ids(img_ids=[1])) == ([1], [3], [1, 2])
    assert gt.get_ann_ids(cat_ids=[4]) == gt.get_ann_ids(area_rng=[400, 500]) == []
    assert [ann["id"] for ann in gt.load_anns([2])] == [2]
    assert (gt.load_cats([3])[0]["name"], gt.load_imgs(None)[0]["id"]) == ("cup", 1)
    assert gt.ann_to_mask(gt.anns[1]).sum() == 400
    many = [{**FOUND[0], "score": score / 10} for score in range(5)]
    found = LVISResults(gt, many, max_dets=2)
    assert [ann["score"] for ann in found.get_top_results(1, 0.0)] == [0.4, 0.3]
    assert [ann["area"] for ann in found.load_anns()] == [400, 400]


def test_what_is_no_result_is_refused_as_there(files: tuple[Path, Path]) -> None:
    gt = LVIS(str(files[0]))
    with pytest.raises(AssertionError, match="not a list"):
        LVISResults(gt, {"annotations": []})
    with pytest.raises(AssertionError, match="do not correspond"):
        LVISResults(gt, [{**FOUND[0], "image_id": 9}])
    with pytest.raises(ValueError, match="keypoints"):
        LVISEval(gt, LVISResults(gt, list(FOUND)), "keypoints")
    with pytest.raises(RuntimeError, match="accumulate"):
        LVISEval(gt, list(FOUND)).summarize()


def test_no_detection_is_a_result(files: tuple[Path, Path]) -> None:
    evaluation = LVISEval(str(files[0]), LVISResults(str(files[0]), []), "bbox")
    evaluation.run()
    assert (evaluation.get_results()["AP"], evaluation.get_results()["AR@300"]) == (0.0, 0.0)


@pytest.mark.slow
def test_a_program_runs_without_a_change_of_its_lines(files: tuple[Path, Path], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "jaccard_eval.patch", str(program), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results, same = done.stdout.rsplit(" ", 1)
    assert json.loads(results)["AP50"] == pytest.approx(51 / 101)
    assert same.strip() == "True"


def test_masks_of_another_size_than_their_image_are_compared_with_each_other() -> None:
    """As MMDetection's own test has them, of 10 by 10 pixels in an image of 200 by 200."""
    square = {"size": [10, 10], "counts": [0, 50, 50]}
    document = TRUTH | {"annotations": [TRUTH["annotations"][0] | {"segmentation": square}]}
    found = [{"image_id": 1, "category_id": 3, "segmentation": encode(np.eye(10) + np.tri(10)), "score": 0.5}]
    found.append(found[0] | {"segmentation": {"size": [10, 10], "counts": b"0b1b1"}, "score": 0.9})
    evaluation = LVISEval(LVIS(document), found, "segm")
    evaluation.run()
    assert evaluation.get_results()["AP"] == pytest.approx(1.0)


@pytest.mark.parametrize(("has_boxes", "medium"), [(True, 0.5), (False, 1.0)])
def test_the_size_of_a_mask_is_that_of_the_box_it_came_with(has_boxes: bool, medium: float) -> None:
    """A false alarm of 700 pixels in a box of 40 by 40: medium with its box (above 1,024), and alone small."""
    square = [[60, 60, 110, 60, 110, 110, 60, 110]]
    truth = TRUTH["annotations"][0] | {"segmentation": square, "bbox": [60, 60, 50, 50], "area": 2500}
    shapes = ([[10, 10, 50, 10, 50, 20, 20, 20, 20, 50, 10, 50]], [10, 10, 40, 40], 0.9), (square, truth["bbox"], 0.5)
    found = []
    for outline, box, score in shapes:
        mask = frPyObjects(outline, 200, 200)[0]
        found.append(
            {"image_id": 1, "category_id": 3, "score": score, "segmentation": mask}
            | ({"bbox": box} if has_boxes else {})
        )
    evaluation = LVISEval(LVIS(TRUTH | {"annotations": [truth]}), found, "segm")
    assert evaluation.lvis_dt.anns[1]["area"] == (1600 if has_boxes else 700)
    evaluation.run()
    assert (evaluation.get_results()["APm"], evaluation.get_results()["AP"]) == (
        pytest.approx(medium),
        pytest.approx(0.5),
    )
