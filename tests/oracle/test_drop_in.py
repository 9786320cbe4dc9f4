"""`jaccard_eval.pycocotools` against pycocotools 2.0.11: every array, dictionary and printed line, to the last bit."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import cocoscenes
import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pytest
from exact import same_bits
from hypothesis import given
from hypothesis import strategies as st

import jaccard_eval.pycocotools as drop_in

Record = dict[str, Any]
PEERS = {"drop-in": (drop_in.COCO, drop_in.COCOeval), "peer": (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval)}
SEEDS = range(4)
KINDS = pytest.mark.parametrize("kind", cocoscenes.KINDS, ids=lambda kind: kind.name)
MIXED = [kind for kind in cocoscenes.KINDS if kind.name in ("plain", "crowds and ties", "sparse ids", "tied scores")]
TIMES = re.compile(r"t=\d+\.\d\ds")
REAL = (
    "cocoapi-bbox",
    "padilla-coco-sampled",
    "d2-medwaste",
    "faster-coco-eval-small",
    "sahi-eval",
    "yfpeng-sample",
    "yfpeng-sample3",
    "hotcoco-basic",
    "hotcoco-edge",
    "hotcoco-zero",
    "cartucho-map-derived",
)


def evaluate(peer: str, document: Record, detections: list[Record], **params: Any) -> tuple[Any, str]:
    """Evaluate copies of the records with changed parameters; return the evaluation, and what was printed."""
    coco, cocoeval = PEERS[peer]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        gt = coco()
        gt.dataset = copy.deepcopy(document)
        gt.createIndex()
        evaluation = cocoeval(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
        for name, value in params.items():
            setattr(evaluation.params, name, copy.deepcopy(value))
        evaluation.evaluate()
        evaluation.accumulate()
        with contextlib.suppress(IndexError):  # pycocotools needs three caps, and says so after the first line
            evaluation.summarize()
    return evaluation, TIMES.sub("t", printed.getvalue())


def require_equal(document: Record, detections: list[Record], *, images: bool = True, **params: Any) -> None:
    """Compare both evaluations."""
    (ours, our_text), (theirs, their_text) = (evaluate(peer, document, detections, **params) for peer in PEERS)
    assert our_text == their_text
    require_equal_tables(ours, theirs)
    assert same_bits(np.asarray(ours.stats), np.asarray(theirs.stats))
    if images:
        require_equal_images(ours, theirs)


def require_equal_tables(ours: Any, theirs: Any) -> None:
    assert ours.eval["counts"] == theirs.eval["counts"]
    assert ours.eval.keys() == theirs.eval.keys()
    for name in ("precision", "recall", "scores"):
        assert same_bits(ours.eval[name], theirs.eval[name]), name


def require_equal_images(ours: Any, theirs: Any) -> None:
    assert len(ours.evalImgs) == len(theirs.evalImgs)
    for mine, expected in zip(ours.evalImgs, theirs.evalImgs, strict=True):
        assert (mine is None) == (expected is None)
        for key in expected or ():
            if isinstance(expected[key], np.ndarray):
                assert mine[key].dtype == expected[key].dtype, key
                assert same_bits(mine[key], expected[key]), key
            else:
                assert mine[key] == expected[key], key
    assert list(ours.ious) == list(theirs.ious)
    for key, overlaps in theirs.ious.items():
        assert same_bits(np.asarray(ours.ious[key]), np.asarray(overlaps)), key


@KINDS
def test_everything_an_evaluation_leaves_behind_is_equal(kind: cocoscenes.Kind) -> None:
    for seed in SEEDS:
        require_equal(*cocoscenes.draw(kind, seed))


@given(kind=st.sampled_from(cocoscenes.KINDS), seed=st.integers(0, 2**32 - 1), use_cats=st.integers(0, 1))
def test_arrays_of_any_scene_are_equal(kind: cocoscenes.Kind, seed: int, use_cats: int) -> None:
    require_equal(*cocoscenes.draw(kind, seed), images=False, useCats=use_cats)


PARAMS: dict[str, Record] = {
    "pooled classes": {"useCats": 0},
    "IoU thresholds": {"iouThrs": np.array([0.3, 0.55, 0.8, 1.0])},
    "one IoU threshold": {"iouThrs": np.array([0.5])},
    "thresholds in no order": {"iouThrs": np.array([0.75, 0.5, 0.5])},
    "threshold of 0": {"iouThrs": np.array([0.0, 0.5])},
    "recall values": {"recThrs": np.array([0.1, 0.25, 0.25, 0.9, 1.5])},
    "recall values of float32": {"recThrs": np.linspace(0, 1, 101, dtype=np.float32)},
    "recall values in no order": {"recThrs": np.array([0.9, 0.1, 0.5])},
    "caps": {"maxDets": [7, 1, 3]},
    "four caps": {"maxDets": [1, 10, 50, 100]},
    "two caps": {"maxDets": [1, 100]},
    "one cap": {"maxDets": [300]},
    "area ranges": {"areaRng": [[0, 1e10], [0, 64], [64, 256]], "areaRngLbl": ["all", "small", "tiny"]},
    "endless area range": {"areaRng": [[0, float("inf")]], "areaRngLbl": ["all"]},
    "no images": {"imgIds": []},
    "no categories": {"catIds": []},
}


@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS)
@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_parameters_do_what_they_do_in_pycocotools(kind: cocoscenes.Kind, params: Record) -> None:
    require_equal(*cocoscenes.draw(kind, seed=3), **params)


@pytest.mark.parametrize("use_cats", [0, 1])
@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_subsets_of_images_and_categories_are_evaluated_alone(kind: cocoscenes.Kind, use_cats: int) -> None:
    document, detections = cocoscenes.draw(kind, seed=5)
    images, categories = ([record["id"] for record in document[key]] for key in ("images", "categories"))
    # Repeated, unsorted, and with a category that nothing has.
    require_equal(document, detections, useCats=use_cats, imgIds=[images[2], images[0], images[2]])
    require_equal(document, detections, useCats=use_cats, catIds=[999, categories[-1]])
    require_equal(document, detections, useCats=use_cats, catIds=categories[::-1])


def test_ignore_is_overruled_by_crowd() -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=1)
    for annotation in document["annotations"][::2]:
        annotation["ignore"] = 1
    require_equal(document, detections)


@pytest.mark.parametrize("kind", MIXED, ids=lambda kind: kind.name)
def test_odd_ids_of_annotations_are_kept_as_odd(kind: cocoscenes.Kind) -> None:
    document, detections = cocoscenes.draw(kind, seed=2)
    from_zero, repeated = copy.deepcopy(document), copy.deepcopy(document)
    for annotation in from_zero["annotations"]:
        annotation["id"] -= 1
    for annotation in repeated["annotations"]:
        annotation["id"] = 1 + annotation["id"] // 3
    require_equal(from_zero, detections)
    require_equal(repeated, detections)


def test_detections_with_ids_of_0_take_nothing() -> None:
    document, detections = cocoscenes.draw(cocoscenes.KINDS[4], seed=2)
    tables = []
    for coco, cocoeval in PEERS.values():
        with contextlib.redirect_stdout(io.StringIO()):
            gt, dt = coco(), coco()
            gt.dataset = copy.deepcopy(document)
            gt.createIndex()
            dt.dataset = gt.loadRes(copy.deepcopy(detections)).dataset
            for detection in dt.dataset["annotations"]:
                detection["id"] -= 4
            dt.createIndex()
            evaluation = cocoeval(gt, dt, "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
        tables.append(evaluation)
    require_equal_tables(*tables)
    require_equal_images(*tables)


@pytest.mark.parametrize("shift", [lambda number: number - 1, lambda number: 1, lambda number: -number])
def test_without_strict_every_annotation_counts_as_itself(shift: Any) -> None:
    document, detections = cocoscenes.draw(MIXED[1], seed=2)
    theirs, _ = evaluate("peer", document, detections)
    for annotation in document["annotations"]:
        annotation["id"] = shift(annotation["id"])
    gt = drop_in.COCO(verbose=False)
    gt.dataset = document
    gt.createIndex()
    ours = drop_in.COCOeval(gt, gt.loadRes(detections), "bbox", strict=False, verbose=False)
    ours.evaluate()
    ours.accumulate()
    require_equal_tables(ours, theirs)
    # The dictionaries say the same when they are gathered, as their ids are those of places.
    ours.evalImgs = list(ours.evalImgs)
    ours.accumulate()
    require_equal_tables(ours, theirs)


def test_files_are_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    content = {"images": [{"id": 1}], "annotations": [], "categories": [{"id": 1, "name": "Löwe"}]}
    (tmp_path / "gt.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    detection = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5, "note": "süß"}
    (tmp_path / "dt.json").write_text(json.dumps([detection], ensure_ascii=False), "utf-8")
    code = (
        "import sys; from jaccard_eval.pycocotools import COCO; gt = COCO(sys.argv[1], verbose=False);"
        "gt.loadRes(sys.argv[2]); print(ascii(gt.cats[1]['name']))"
    )
    locale = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    argv = [sys.executable, "-c", code, str(tmp_path / "gt.json"), str(tmp_path / "dt.json")]
    done = subprocess.run(argv, env=os.environ | locale, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("'L\\xf6we'\n", 0), done.stderr


def test_verbose_false_prints_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=1)
    (tmp_path / "gt.json").write_text(json.dumps(document))
    gt = drop_in.COCO(tmp_path / "gt.json", verbose=False)
    evaluation = drop_in.COCOeval(gt, gt.loadRes(detections), "bbox", verbose=False)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    assert capsys.readouterr().out == ""
    assert evaluation.stats.shape == (12,)


@pytest.mark.parametrize("params", [{}, {"useCats": 0}, {"catIds": [2]}, {"maxDets": [1, 10]}], ids=str)
def test_accumulate_takes_parameters_of_its_own(params: Record) -> None:
    document, detections = cocoscenes.draw(cocoscenes.KINDS[0], seed=4)
    both = []
    for peer in PEERS:
        evaluation, _ = evaluate(peer, document, detections)
        others = copy.deepcopy(evaluation.params)
        others.recThrs = np.array([0.0, 0.5])
        for name, value in params.items():
            setattr(others, name, value)
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.accumulate(others)
        both.append(evaluation)
    require_equal_tables(*both)


class CountedId(int):
    """The id of an image, which counts how often all of them are looked up or put into a set."""

    lookups = 0

    def __hash__(self) -> int:
        CountedId.lookups += 1
        return super().__hash__()


def test_looking_up_images_takes_as_many_steps_as_there_are_images(monkeypatch: pytest.MonkeyPatch) -> None:
    document, detections = cocoscenes.draw(cocoscenes.KINDS[0], seed=4)
    last = document["images"][-1]
    document["images"] += [last | {"id": last["id"] + 1 + i} for i in range(300)]
    evaluation, _ = evaluate("drop-in", document, detections)
    n = len(evaluation.params.imgIds)
    others = copy.deepcopy(evaluation.params)
    others.recThrs, others.catIds = np.array([0.0, 0.5]), others.catIds[:1]
    for params in (others, evaluation._paramsEval):
        params.imgIds = [CountedId(image) for image in params.imgIds]
    monkeypatch.setattr(CountedId, "lookups", 0)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.accumulate(others)
    assert 0 < CountedId.lookups < 40 * n  # a set made again for each of them: n * n


class OtherOverlaps:
    """A change that people make: overlaps of their own."""

    def computeIoU(self, *group: Any) -> Any:
        overlaps = super().computeIoU(*group)  # type: ignore[misc]
        return overlaps if len(overlaps) == 0 else np.sqrt(overlaps)


def test_methods_that_a_subclass_replaces_are_called() -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=6)
    both = []
    for coco, cocoeval in PEERS.values():
        evaluator = type("Evaluator", (OtherOverlaps, cocoeval), {})
        with contextlib.redirect_stdout(io.StringIO()):
            gt = coco()
            gt.dataset = copy.deepcopy(document)
            gt.createIndex()
            evaluation = evaluator(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
        both.append(evaluation)
    require_equal_tables(*both)
    plain, _ = evaluate("drop-in", document, detections)
    assert not same_bits(both[0].eval["precision"], plain.eval["precision"])


@pytest.mark.parametrize("in_place", [True, False])
def test_groups_that_a_caller_changed_or_replaced_are_what_is_matched(in_place: bool) -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=6)
    both = []
    for coco, cocoeval in PEERS.values():
        with contextlib.redirect_stdout(io.StringIO()):
            gt = coco()
            gt.dataset = copy.deepcopy(document)
            gt.createIndex()
            evaluation = cocoeval(gt, gt.loadRes(copy.deepcopy(detections)), "bbox")
            # Of the object, not of a class: every other group of detections is gone.
            evaluation._prepare = lambda it=evaluation, prepare=evaluation._prepare: halve(it, prepare, in_place)
            evaluation.evaluate()
            evaluation.accumulate()
        both.append(evaluation)
    require_equal_tables(*both)
    require_equal_images(*both)
    plain, _ = evaluate("drop-in", document, detections)
    assert not same_bits(both[0].eval["precision"], plain.eval["precision"])


def halve(evaluation: Any, prepare: Any, in_place: bool) -> None:
    prepare()
    kept = defaultdict(list, {key: anns for key, anns in evaluation._dts.items() if sum(key) % 2})
    if not in_place:
        evaluation._dts = kept
        return
    for key in evaluation._dts.keys() - kept.keys():
        evaluation._dts[key].clear()


def test_a_category_that_is_a_text_is_none_of_the_numbers() -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=6)
    for detection in detections[::2]:
        detection["category_id"] = str(detection["category_id"])
    # Where categories are not used none is asked for by name, so that these are selected, and then ignored.
    require_equal(document, detections, useCats=0)


def test_dictionaries_that_were_changed_are_what_counts() -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=6)
    both = []
    for peer in PEERS:
        evaluation, _ = evaluate(peer, document, detections)
        results = [copy.deepcopy(result) for result in evaluation.evalImgs]
        for result in filter(None, results):
            result["dtIgnore"] = np.zeros_like(result["dtIgnore"])
        evaluation.evalImgs = results
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.accumulate()
        both.append(evaluation)
    require_equal_tables(*both)


def test_dictionaries_are_made_as_an_array_by_numpy() -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=6)
    evaluation, _ = evaluate("drop-in", document, detections)
    shape = len(document["categories"]), 4, len(document["images"])
    array = np.asarray(evaluation.evalImgs).reshape(shape)
    assert array.dtype == object
    assert array[1, 0, 2]["image_id"] == document["images"][2]["id"]
    assert array[1, 0, 2]["aRng"] == [0, 1e10]
    assert evaluation.evalImgs[-1]["category_id"] == evaluation.evalImgs[-3:][2]["category_id"]
    with pytest.raises(IndexError):
        evaluation.evalImgs[len(evaluation.evalImgs)]


def test_annotations_of_pycocotools_itself_are_evaluated() -> None:
    document, detections = cocoscenes.draw(MIXED[0], seed=7)
    theirs, _ = evaluate("peer", document, detections)
    ours = drop_in.COCOeval(theirs.cocoGt, theirs.cocoDt, "bbox", verbose=False)
    ours.evaluate()
    ours.accumulate()
    require_equal_tables(ours, theirs)


@pytest.mark.parametrize("name", REAL)
def test_real_sets_are_equal(name: str, shared_data: Path) -> None:
    entry = json.loads((shared_data / "EXPECTED.json").read_text())[name]
    document, detections = (json.loads((shared_data / entry[side]).read_text()) for side in ("gt", "dets"))
    require_equal(document, detections["annotations"] if isinstance(detections, dict) else detections)
