"""Numbers of CrowdHuman's evaluation on drawn crowds, and ours.

`crowdhuman.json` has what `compute_APMR` and `compute_JI` of CrowdDet at fa0b55b6 returned on drawn sets: AP, MR, best
JI. The reading of boxes and their cutting at the image are not its own for JI: they lie in another folder there.
"""

import json
import math
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_crowds

from jaccard_eval import Bootstrap, BoxTable, EvaluationResult, UsageError, evaluate, get_protocol
from jaccard_eval.metrics.curves import heaviest_assignment

RECORDED: list[dict[str, float]] = json.loads(Path(__file__).with_name("crowdhuman.json").read_text(encoding="utf-8"))
SAMPLE = Path(__file__).parents[2] / "sample_data" / "crowdhuman"
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, seed: int, **asked: Any) -> EvaluationResult:
    paths = [folder / name for name in ("gt.odgt", "pred.odgt")]
    for path, records in zip(paths, drawn_crowds(seed), strict=True):
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return evaluate(*paths, protocol="crowdhuman", **asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, seed)
    expected = RECORDED[seed]
    assert {name: result[name] for name in NAMES} == pytest.approx({name: expected[name] for name in NAMES}, abs=1e-12)


NAMES = ("AP", "LAMR", "JI")


def persons(*boxes: list[float]) -> BoxTable:
    return BoxTable.from_arrays([0] * len(boxes), [0] * len(boxes), list(boxes), encoding="xywh")


def test_area_and_miss_rate_by_hand() -> None:
    gt = persons([0, 0, 10, 10], [20, 0, 10, 10], [40, 0, 10, 10], [60, 0, 10, 10])
    pred = BoxTable.from_arrays(
        [0] * 4,
        [0] * 4,
        [[0, 0, 10, 10], [80, 0, 10, 10], [20, 0, 10, 10], [40, 0, 10, 10]],
        score=[0.9, 0.8, 0.7, 0.6],
        encoding="xywh",
    )
    result = evaluate(gt, pred, protocol="crowdhuman")
    # Points: recall 1/4 1/4 2/4 3/4, precision 1 1/2 2/3 3/4; trapezoids, nothing in front of the first one.
    assert result["AP"] == pytest.approx((1 / 2 + 2 / 3) / 2 / 4 + (2 / 3 + 3 / 4) / 2 / 4)
    # On one image, the first point with any false positive is the one for all rates: recall 1/4.
    assert result["LAMR"] == pytest.approx(3 / 4)
    # Caltech's rule takes the last point below each rate: recall 1/4, and 3/4 at 1.
    expected = math.exp((8 * math.log(3 / 4) + math.log(1 / 4)) / 9)
    assert evaluate(gt, pred, protocol="coco")["LAMR"] == pytest.approx(expected)


def test_jaccard_index_by_hand() -> None:
    gt = BoxTable.from_arrays(
        [0] * 3,
        [0] * 3,
        [[0, 0, 10, 10], [3, 0, 10, 10], [100, 0, 50, 50]],
        encoding="xywh",
        crowd=[False, False, True],
    )
    pred = BoxTable.from_arrays(
        [0] * 4,
        [0] * 4,
        # The first lies between both persons, a bit nearer to the left one; the second fits the left one alone.
        [[1, 0, 10, 10], [0, 1, 10, 10], [110, 10, 5, 5], [60, 0, 10, 10]],
        score=[0.95, 0.65, 0.55, 0.05],
        encoding="xywh",
    )
    result = evaluate(gt, pred, protocol="crowdhuman")
    # Matched by score, the second finds nothing free; assigned, both are pairs, and what the crowd covers is not there.
    assert result["recall[score=0.1]"] == 0.5
    # From a score above .1 on: k = 2, m = 2, n = 2.
    assert result["JI"] == pytest.approx(2 / (2 + 2 - 2 + 1e-6), abs=1e-12)


def test_an_object_that_an_ignored_one_covers_is_no_miss_of_the_index() -> None:
    gt = BoxTable.from_arrays(
        [0] * 3, [0] * 3, [[0, 0, 9, 9], [50, 0, 9, 9], [48, 0, 20, 20]], encoding="xywh", crowd=[False, False, True]
    )
    pred = BoxTable.from_arrays([0], [0], [[0, 0, 9, 9]], score=[0.9], encoding="xywh")
    assert evaluate(gt, pred, protocol="crowdhuman")["JI"] == pytest.approx(1 / (1 + 1e-6), abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_assignments_are_the_heaviest_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((rows := int(rng.integers(1, 6)), int(rng.integers(1, 6)))) < 0.6, 1.0, 0.0)
    weights *= rng.uniform(0.5, 1, weights.shape)
    found = heaviest_assignment(weights)
    partners = found[found >= 0]
    assert len(set(partners.tolist())) == len(partners) == min(weights.shape)
    wide = weights if rows <= weights.shape[1] else weights.T
    orders = permutations(range(wide.shape[1]), len(wide))
    most = max(sum(wide[row, column] for row, column in enumerate(order)) for order in orders)
    assert weights[found >= 0, partners].sum() == pytest.approx(most, abs=1e-12)


def test_the_index_needs_rules_that_pair_anew() -> None:
    gt = persons([0, 0, 10, 10])
    pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9], encoding="xywh")
    with pytest.raises(UsageError, match="crowdhuman"):
        evaluate(gt, pred)["JI"]


def test_without_a_miss_the_rate_is_0_and_half_an_overlap_is_none() -> None:
    gt = persons([0, 0, 10, 10])
    whole = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9], encoding="xywh")
    half = BoxTable.from_arrays([0], [0], [[0, 0, 10, 5]], score=[0.9], encoding="xywh")
    assert evaluate(gt, whole, protocol="crowdhuman")["LAMR"] == 0.0
    assert evaluate(gt, half, protocol="crowdhuman")["LAMR"] == 1.0


def test_boxes_are_cut_at_the_image(tmp_path: Path) -> None:
    gt, pred = tmp_path / "gt.odgt", tmp_path / "pred.odgt"
    head = '{"ID": "a", "width": 100, "height": 100, '
    gt.write_text(head + '"gtboxes": [{"tag": "person", "fbox": [-50, 0, 100, 40]}]}\n', encoding="utf-8")
    pred.write_text(head + '"dtboxes": [{"box": [0, 0, 50, 40], "score": 0.9}]}\n', encoding="utf-8")
    # Of the person's box, 50 x 40 px are in the image: IoU 1 instead of exactly 1/2, which is no match.
    assert evaluate(gt, pred, protocol="crowdhuman")["recall[score=0.5]"] == 1.0
    uncut = get_protocol("crowdhuman").with_options(clipped=False)
    assert evaluate(gt, pred, protocol=uncut)["recall[score=0.5]"] == 0.0


def test_an_image_without_a_size_stays_uncut_and_is_named(tmp_path: Path) -> None:
    gt, pred = tmp_path / "gt.odgt", tmp_path / "pred.odgt"
    gt.write_text('{"ID": "a", "gtboxes": [{"tag": "person", "fbox": [-50, 0, 100, 40]}]}\n', encoding="utf-8")
    pred.write_text('{"ID": "a", "dtboxes": [{"box": [0, 0, 50, 40], "score": 0.9}]}\n', encoding="utf-8")
    result = evaluate(gt, pred, protocol="crowdhuman")
    assert "size-unknown" in {finding.code for finding in result.findings}
    assert result["recall[score=0.5]"] == 0.0


def test_where_the_devkit_fails_there_are_numbers(tmp_path: Path) -> None:
    gt, pred = tmp_path / "gt.odgt", tmp_path / "pred.odgt"
    box = '{"tag": "person", "fbox": [0, 0, 10, 10]}'
    size = '"width": 100, "height": 100'
    gt.write_text(
        f'{{"ID": "a", {size}, "gtboxes": [{box}]}}\n{{"ID": "b", {size}, "gtboxes": []}}\n'
        f'{{"ID": "c", {size}, "gtboxes": [{box}]}}\n',
        encoding="utf-8",
    )
    lines = [f'{{"ID": "{image}", {size}, "dtboxes": [{{"box": [0, 0, 10, 10], "score": 0.9}}]}}\n' for image in "ab"]
    pred.write_text("".join(lines), encoding="utf-8")
    result = evaluate(gt, pred, protocol="crowdhuman")
    # A hit, then a false positive on the empty image b; c has no line, and its person is missed.
    assert (result["TP[score=0.5]"], result["FP[score=0.5]"], result["FN[score=0.5]"]) == (1, 1, 1)
    assert result["LAMR"] == pytest.approx(1 / 2)


def test_resamples_weigh_points_as_copies_of_images_do() -> None:
    rng = np.random.default_rng(5)
    image = np.repeat(np.arange(40), 5)
    boxes = np.concatenate([rng.uniform(0, 60, (200, 2)), rng.uniform(10, 40, (200, 2))], 1)
    gt = BoxTable.from_arrays(image, [0] * 200, boxes, encoding="xywh")
    moved = boxes + rng.normal(0, 4, boxes.shape)
    pred = BoxTable.from_arrays(image, [0] * 200, moved, score=rng.permutation(200) / 200, encoding="xywh")
    once = evaluate(gt, pred, protocol="crowdhuman", bootstrap=Bootstrap(n_resamples=50))
    for name in NAMES:
        low, high = once.metrics[name].interval
        assert low <= once[name] <= high
    curves = once.measured.curves
    ones = curves.weighted(np.ones(40, dtype=np.int64))
    assert ones.area_under_curve(0, 0) == pytest.approx(curves.area_under_curve(0, 0), abs=1e-12)
    part = once.measured.restrict(range(20)).curves
    half = curves.weighted(np.repeat([1, 0], 20))
    assert half.area_under_curve(0, 0) == pytest.approx(part.area_under_curve(0, 0), abs=1e-12)
    assert half.pairing_share(0) == pytest.approx(part.pairing_share(0), abs=1e-12)
    assert curves.restrict(np.arange(20)).pairing_share(0) == part.pairing_share(0)


def test_the_sample_has_heads_as_the_devkit_wants_them() -> None:
    boxes = [box for line in (SAMPLE / "gt.odgt").read_text().splitlines() for box in json.loads(line)["gtboxes"]]
    assert boxes
    assert all(len(box["hbox"]) == len(box["vbox"]) == 4 for box in boxes)
