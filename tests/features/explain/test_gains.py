"""The gain of each fix is what the change that it names gives: done by hand to the arrays, and evaluated again."""

import os
from collections import Counter
from typing import Any

import numpy as np
import pytest

import jaccard_eval
from jaccard_eval import BoxTable, explain
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import get_protocol
from jaccard_eval.evaluation import load_and_align
from jaccard_eval.features.explain import ExplanationResult, Fix
from jaccard_eval.features.explain.compute import REPAIRED, Repairs, Repricing
from jaccard_eval.matching.judging import judge
from jaccard_eval.metrics.detection import match_sides, measure_aligned
from jaccard_eval.options import SideOptions
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import runs_of_pixels

Sides = tuple[BoxTable, BoxTable]
KINDS = ["bbox", "segm", "boundary", "keypoints", "obb"]
SIZE = 96  # px, of the images


def shapes_of(kind: str, xywh: Any, angle: Any) -> Any:
    """Give each box a shape of a kind; a box without width has one that nothing can find, but as a pose."""
    left, top, width, height = xywh.T
    if kind == "obb":
        return Quads.rotated(np.column_stack((left + width / 2, top + height / 2, width, height)), angle)
    if kind == "keypoints":
        way = np.linspace(0, 1, 5)
        x, y = left[:, None] + width[:, None] * way, top[:, None] + height[:, None] * way**2
        return Keypoints(np.stack((x, y, np.full(x.shape, 2.0)), axis=2))
    if kind in ("segm", "boundary"):
        rows, columns = np.mgrid[:SIZE, :SIZE] + 0.5
        pixels = [(columns > x) & (columns < x + w) & (rows > y) & (rows < y + h) for x, y, w, h in xywh]
        return Masks(runs_of_pixels((mask, 0, 0, SIZE) for mask in pixels), np.full((len(xywh), 2), SIZE))
    return None


def table(kind: str, image: Any, label: Any, xywh: Any, angle: Any, **columns: Any) -> BoxTable:
    shapes = shapes_of(kind, xywh, angle)
    return BoxTable.from_arrays(image, label, xywh, encoding="xywh", shapes=shapes, **columns)


def draw(kind: str, seed: int, *, n_images: int = 4, n_classes: int = 4) -> Sides:
    """Objects, some that nothing can find, and detections near them; half of the scenes with a few equal scores.

    All objects of the last class are missed, and no detection is of that class.
    """
    rng = np.random.default_rng(seed)
    n = 16
    image, label = rng.integers(n_images, size=n), rng.integers(n_classes, size=n)
    xywh = np.column_stack([rng.uniform(0, 50, (n, 2)), rng.uniform(12, 40, (n, 2))]).round(1)
    xywh[:2, 2] = 0
    crowd = rng.random(n) < 0.1
    gt = table(kind, image, label, xywh, rng.uniform(0, 0.5, n), crowd=crowd)
    rows = np.concatenate([np.flatnonzero((rng.random(n) < 0.8) & (label < n_classes - 1)), rng.integers(n, size=6)])
    near = xywh[rows] + rng.normal(0, 3, (len(rows), 4)) * [1, 1, 0, 0]
    near[-3:, :2] = near[-3:, :2] * 0.2 + 30
    named = np.where(rng.random(len(rows)) < 0.3, rng.integers(n_classes - 1, size=len(rows)), label[rows])
    named = named % (n_classes - 1)
    score = rng.choice([0.2, 0.5, 0.8], len(rows)) if seed % 2 else rng.random(len(rows))
    return gt, table(kind, image[rows], named, near, rng.uniform(0, 0.5, len(rows)), score=score)


def replay(sides: Sides, fix: Fix) -> BoxTable:
    """Do to the arrays what a fix says, and nothing else."""
    gt, pred = sides
    assert pred.score is not None
    n = len(pred)
    rows, label, score = np.arange(n), pred.label.copy(), pred.score.copy()
    if not fix.becomes:
        rows = np.delete(rows, fix.source)
    elif fix.kind == "missed":
        rows, label, score = np.append(rows, n + fix.source), np.append(label, int(fix.becomes)), np.append(score, 2.0)
    else:
        label[fix.source] = int(fix.becomes)
        if fix.xywh != tuple(pred.xywh[fix.source].tolist()):
            alike = (gt.image == pred.image[fix.source]) & (gt.xywh == fix.xywh).all(axis=1)
            rows[fix.source] = n + np.flatnonzero(alike)[0]
    image, xywh = np.concatenate((pred.image, gt.image)), np.concatenate((pred.xywh, gt.xywh))
    shapes = None if pred.shapes is None or gt.shapes is None else pred.shapes.joined([gt.shapes]).take(rows)
    if not fix.becomes:
        label, score = label[rows], score[rows]
    return BoxTable.from_arrays(image[rows], label, xywh[rows], encoding="xywh", score=score, shapes=shapes)


def options_of(kind: str) -> dict[str, Any]:
    return {"iou_type": kind, **({"sigmas": (0.1,) * 5} if kind == "keypoints" else {})}


def check(sides: Sides, metric: str, found: ExplanationResult, **options: Any) -> None:
    """Evaluate every fix alone, and all of them."""
    before = jaccard_eval.evaluate(*sides, **options)[metric]
    for fix in found.fixes:
        assert len(fix.xywh) == 4
        after = jaccard_eval.evaluate(sides[0], replay(sides, fix), **options)[metric]
        assert after - before == pytest.approx(fix.gain, abs=1e-12), fix
    gains = [fix.gain for fix in found.fixes]
    assert gains == sorted(gains, reverse=True) and all(gain > 0 for gain in gains)


FIXES = int(os.environ.get("JACCARD_EVAL_FIXES", "80"))  # of each kind of shape; 400 before a release
METRICS = ["AP", "AP50", "AP[class=1]", "AR", "F1[iou=0.5,score=0.4]"]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_gain_is_that_of_the_change_that_is_named(kind: str, metric: str) -> None:
    for seed in range(2):
        sides, options = draw(kind, seed), options_of(kind)
        found = explain(*sides, metric, boxes=5, **options)
        assert found.fixes
        check(sides, metric, found, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_gains_of_all_kinds_are_those_of_brute_force(kind: str) -> None:
    seen: Counter[str] = Counter()
    seed = 0
    while seen.total() < FIXES:
        sides, options = draw(kind, seed), options_of(kind)
        metric = METRICS[seed % len(METRICS)]
        found = explain(*sides, metric, boxes=1000, **options)
        check(sides, metric, found, **options)
        seen.update(fix.kind for fix in found.fixes)
        seed += 1
    assert {"missed", "classification", "localisation", "background"} <= {*seen}


def test_a_class_that_is_put_right_moves_no_box() -> None:
    # The detection covers 52 of 100 columns of a cat: relabelled, a hit at IoU 0.50 alone, one threshold of ten.
    gt = BoxTable.from_arrays([0], [0], [[0, 0, 100, 10]], names=["cat", "dog"])
    pred = BoxTable.from_arrays([0], [1], [[0, 0, 52, 10]], score=[0.9], names=["cat", "dog"])
    (fix,) = explain(gt, pred, "AP").fixes
    assert (fix.kind, fix.class_name, fix.becomes) == ("classification", "dog", "cat")
    assert (fix.xywh, fix.gain) == ((0, 0, 52, 10), pytest.approx(0.1))


def test_equal_scores_stand_in_the_order_of_their_images() -> None:
    # All scores are equal, so that images decide: the dog on the first image, relabelled as the cat that it lies on,
    # comes before the false cat on the second one. AP of cats is 1 then, not 1/2.
    gt = BoxTable.from_arrays([0, 0], [0, 1], [[0, 0, 10, 10], [50, 50, 60, 60]])
    pred = BoxTable.from_arrays([0, 1], [1, 0], [[0, 0, 10, 10], [50, 0, 60, 10]], score=[0.5, 0.5])
    fixes = {fix.kind: fix for fix in explain(gt, pred, "AP50").fixes}
    assert fixes["classification"].gain == pytest.approx(1 / 2)  # half of the mean of two classes


def test_an_object_that_nothing_can_find_takes_no_place_among_the_fixes() -> None:
    # The first object has no width: no box overlaps it, its own copy included. Both count, so that AP is 0 or 1/2.
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 0, 10], [50, 50, 60, 60]])
    pred = BoxTable.from_arrays([0], [0], [[80, 0, 90, 10]], score=[0.5])
    for metric in ("AP50", "recall[iou=0.5]"):
        assert [fix.xywh for fix in explain(gt, pred, metric, boxes=1).fixes] == [(50, 50, 10, 10)]


def test_where_single_boxes_give_little_kinds_and_classes_come_first(tmp_path: Any) -> None:
    # 1,000 objects of each class, of which dogs miss 300 and cats 100: one dog gives 1/2000 of recall 0.8.
    n, boxes, names = 1000, [[0, 0, 10, 10]], ["dog", "cat"]
    image, label = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    gt = BoxTable.from_arrays(image, label, boxes * 2 * n, names=names)
    found = (label == 0) & (image >= 300) | (label == 1) & (image >= 100)
    pred = gt.take(found)
    pred = BoxTable.from_arrays(
        pred.image, pred.label, boxes * len(pred), score=[0.5] * len(pred), names=["dog", "cat"]
    )
    result = explain(gt, pred, "AR[iou=0.5]")
    assert result.fixes[0].gain == pytest.approx(1 / 2000)
    kind, dog, cat = result.groups
    assert (kind.by, kind.name, kind.count, kind.gain) == ("kind", "missed", 400, pytest.approx(0.2))
    assert (dog.by, dog.name, dog.count, dog.gain) == ("class", "dog", 300, pytest.approx(0.15))
    assert (cat.name, cat.gain) == ("cat", pytest.approx(0.05))
    result.save(tmp_path / "why.txt")
    text = (tmp_path / "why.txt").read_text()
    order = ["Number", "Kinds of errors that cost most", "Classes that cost most", "Boxes that cost most"]
    assert [text.index(title) for title in order] == sorted(text.index(title) for title in order)
    assert text.splitlines()[-1].endswith("Fixing all 400 missed objects: AR[iou=0.5] +0.2000")


RULES: list[tuple[str, dict[str, Any]]] = [
    ("coco", {}),
    ("coco", {"max_dets": (1, 3)}),
    ("coco", {"max_dets": (2,)}),
    ("coco", {"class_agnostic": True}),
    ("coco", {"class_agnostic": True, "score_ties": "file"}),
    ("coco", {"max_dets": (2, 4), "max_dets_per": "image"}),
    *((name, {}) for name in ("voc2007", "voc2012", "lvis", "openimages", "ultralytics")),
]


@pytest.mark.parametrize("metric", ["AP", "AP50", "AR"])
@pytest.mark.parametrize(("name", "options"), RULES, ids=str)
def test_repairs_give_what_matching_everything_again_gives_to_the_last_bit(
    name: str, options: dict[str, Any], metric: str
) -> None:
    rules = get_protocol(name).with_options(**options).comparing("bbox")
    ref = MetricRef.parse(metric if 0.5 in rules.iou_thresholds or metric != "AP50" else "AP")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sides = judge(load_and_align(*draw("bbox", seed, n_images=3), SideOptions()), rules)
        gt, pred = sides.aligned.gt_table, sides.aligned.pred_table
        metrics = match_sides(sides, rules)
        prices = Repricing(sides.aligned, metrics, ref)
        for share in (0.1, 0.5, 1.0):
            rows, missed = (np.flatnonzero(rng.random(n) < share) for n in (len(pred), len(gt)))
            kind = np.append(rng.integers(len(REPAIRED) - 1, size=len(rows)), np.full(len(missed), len(REPAIRED) - 1))
            # What is moved goes to an object of its image and class, what is named gets the class of one of its image.
            fits = (pred.image[rows, None] == gt.image) & (
                (pred.label[rows, None] == gt.label) | (kind[: len(rows), None] != REPAIRED.index("localisation"))
            )
            target = np.where(fits.any(axis=1), fits.argmax(axis=1), -1)
            repairs = Repairs(kind, np.append(rows, missed), np.append(target, np.full(len(missed), -1)))
            expected = measure_aligned(sides.aligned, gt, repairs.apply(pred, gt), rules).value(ref).value
            assert prices.value(repairs) == pytest.approx(expected, abs=0, rel=0, nan_ok=True)
