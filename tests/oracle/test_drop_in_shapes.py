"""`jaccard_eval.pycocotools` for masks, keypoints and boundaries: what pycocotools 2.0.11 computes, to the last bit."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pycocotools.mask
import pytest
from exact import decode, same_bits

import jaccard_eval
import jaccard_eval.pycocotools as drop_in

PEERS = ((drop_in.COCO, drop_in.COCOeval), (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval))
TABLES = ("precision", "recall", "scores")
SETS = "faster-coco-eval/tests"
REAL = {
    "segm": (
        f"{SETS}/dataset/cocoapi/instances_val2014_100.json",
        "cocoapi/results/instances_val2014_fakesegm100_results.json",
    ),
    "keypoints": (f"{SETS}/keypoints_dataset/gt_dataset.json", f"{SETS}/keypoints_dataset/dt_dataset.json"),
}


def evaluate(peer: int, gt: Path, dt: Path, kind: str, **params: Any) -> tuple[Any, str]:
    coco, cocoeval = PEERS[peer]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        truth = coco(str(gt))
        evaluation = cocoeval(truth, truth.loadRes(str(dt)), kind)
        for name, value in params.items():
            setattr(evaluation.params, name, copy.deepcopy(value))
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation, re.sub(r"t=\d+\.\d\ds", "t", printed.getvalue())


def require_equal(gt: Path, dt: Path, kind: str, *, images: bool, **params: Any) -> None:
    (ours, our_text), (theirs, their_text) = (evaluate(peer, gt, dt, kind, **params) for peer in range(2))
    assert our_text == their_text
    assert all(same_bits(ours.eval[name], theirs.eval[name]) for name in TABLES)
    assert same_bits(ours.stats, theirs.stats)
    for key, ann in theirs.cocoGt.anns.items():
        assert ours.cocoGt.anns[key] == ann  # masks replaced by RLE, and all flags
    if not images:
        return
    for key, overlaps in theirs.ious.items():
        assert same_bits(np.asarray(ours.ious[key]), np.asarray(overlaps)), key
    for mine, expected in zip(ours.evalImgs, theirs.evalImgs, strict=True):
        assert (mine is None) == (expected is None)
        for name, value in (expected or {}).items():
            assert np.array_equal(mine[name], value), name


@pytest.fixture(scope="module")
def folders(shared_oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Generated cases by kind, ten of each."""
    root = tmp_path_factory.mktemp("cases")
    with tarfile.open(shared_oracle / "cases_ext.tar.xz") as archive:
        members = [one for one in archive if one.name.split("/")[1:2] in (["segm"], ["keypoints"], ["boundary"])]
        archive.extractall(root, members, filter="data")
    return {kind.name: sorted(kind.iterdir())[:10] for kind in (root / "cases_ext").iterdir()}


@pytest.mark.parametrize("kind", REAL)
def test_generated_cases_are_equal(kind: str, folders: dict[str, list[Path]]) -> None:
    assert len(folders[kind]) == 10
    for number, folder in enumerate(folders[kind]):
        require_equal(folder / "gt.json", folder / "dt.json", kind, images=number < 3, useCats=int(number != 4))


@pytest.mark.parametrize("kind", REAL)
def test_real_sets_are_equal(kind: str, shared_data: Path) -> None:
    gt, dt = REAL[kind]
    require_equal(shared_data / gt, shared_data / dt, kind, images=False)


def test_boundaries_are_those_of_their_authors(folders: dict[str, list[Path]]) -> None:
    for folder in folders["boundary"]:
        expected = json.loads((folder / "expected.json").read_bytes())
        found, _ = evaluate(0, folder / "gt.json", folder / "dt.json", "boundary")
        assert all(same_bits(found.eval[name], decode(expected["arrays"][name])) for name in TABLES)
        assert same_bits(found.stats, np.array(expected["stats"]))


SQUARE = [[2.0, 1.0, 8.0, 1.0, 8.0, 6.5, 2.0, 6.5]]
LISTED = {"size": [9, 12], "counts": [0, 5, 40, 7, 56]}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools under NumPy 2
@pytest.mark.parametrize("mask", [SQUARE, [*SQUARE, [6, 3, 11, 3, 11, 8]], LISTED], ids=["polygon", "union", "runs"])
def test_masks_are_encoded_and_decoded_as_by_pycocotools(mask: Any) -> None:
    document = {"images": [{"id": 1, "height": 9, "width": 12}], "categories": [], "annotations": []}
    ann = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": mask}
    ours, theirs = (coco for coco, _ in PEERS)
    sides = []
    with contextlib.redirect_stdout(io.StringIO()):
        for coco in (ours(), theirs()):
            coco.dataset = copy.deepcopy(document)
            coco.createIndex()
            sides.append((coco.annToRLE(copy.deepcopy(ann)), coco.annToMask(copy.deepcopy(ann))))
    (rle, pixels), (their_rle, their_pixels) = sides
    assert rle == their_rle
    assert same_bits(pixels, their_pixels)
    assert pixels.flags.f_contiguous == their_pixels.flags.f_contiguous


def test_results_of_masks_alone_get_boxes_and_areas_of_their_pixels() -> None:
    rle = pycocotools.mask.frPyObjects([*SQUARE], 9, 12)[0]
    sides = []
    with contextlib.redirect_stdout(io.StringIO()):
        for coco, _ in PEERS:
            truth = coco()
            truth.dataset = {"images": [{"id": 1, "height": 9, "width": 12}], "categories": []}
            truth.createIndex()
            result = {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": dict(rle)}
            sides.append(truth.loadRes([result]).anns[1])
    ours, theirs = sides
    assert ours.keys() == theirs.keys()
    assert (ours["area"], list(ours["bbox"])) == (theirs["area"], list(theirs["bbox"]))


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        ({"size": [9, 12], "counts": [2, 3]}, "sum to 5, but 9 x 12 are 108 pixels"),  # pycocotools never returns
        ({"size": [9, 13], "counts": [117]}, r"has size \[9, 13\], but another one there has \[9, 12\]"),
        ([[1, 2, 3]], "a polygon has 3 numbers"),
        (None, "is missing"),
    ],
)
def test_masks_that_are_none_are_errors_with_their_annotation(mask: Any, problem: str) -> None:
    truth = drop_in.COCO(verbose=False)
    ann = {"id": 7, "image_id": 1, "category_id": 1, "area": 30, "iscrowd": 0, "segmentation": mask}
    truth.dataset = {
        "images": [{"id": 1, "height": 9, "width": 12}], "categories": [{"id": 1, "name": "a"}], "annotations": [ann],
    }  # fmt: skip
    truth.createIndex()
    found = truth.loadRes([{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": SQUARE}])
    evaluation = drop_in.COCOeval(truth, found, "segm", verbose=False)
    with pytest.raises(
        jaccard_eval.errors.UsageError, match=f"annotation 7 on image 1 {'.*' if mask else ''}{problem}"
    ):
        evaluation.evaluate()


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(jaccard_eval.errors.UsageError, match="one of segm, bbox, keypoints, boundary, got 'panoptic'"):
        drop_in.COCOeval(iouType="panoptic")
