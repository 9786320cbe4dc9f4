"""Numbers of NWPU-Crowd's evaluation for heads as points, and the most pairs that SciPy finds, on drawn images; ours.

`nwpu.json` has what `compute_metrics` of the benchmark's ``eval.py`` (at acf44568) and the formulas of its `main` gave
within half the shorter side (s) and half the diagonal (l) of each head, null where these divide by 0; the errors of the
counts, MAE, its "MSE", which is the root, and NAE; and how many pairs `scipy.optimize.linear_sum_assignment` (1.16)
found within 4 and 8 pixels.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import Heads, drawn_heads

from jaccard_eval import (
    Bootstrap,
    BoxTable,
    EvaluationResult,
    Gates,
    Rule,
    Slice,
    UsageError,
    compare,
    evaluate,
    gate,
    get_protocol,
    labels,
    load_result,
)
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.bootstrap import half_weights

RECORDED: list[dict[str, list[Any]]] = json.loads(Path(__file__).with_name("nwpu.json").read_text(encoding="utf-8"))
COUNTS = ("count_MAE", "count_RMSE", "count_NAE")
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def written(folder: Path, images: Heads) -> tuple[Path, Path]:
    sides = folder / "gt.txt", folder / "pred.txt"
    for path, at in zip(sides, (0, 1), strict=True):
        lines = (
            " ".join(map(str, (3110 + n, len(image[at]), *(number for head in image[at] for number in head))))
            for n, image in enumerate(images)
        )
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sides


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize(("protocol", "sigma"), [("nwpu-small", "s"), ("nwpu", "l")])
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int, protocol: str, sigma: str) -> None:
    sides = written(tmp_path, drawn_heads(seed))
    result = evaluate(*sides, protocol=protocol, gt_format="nwpu", pred_format="nwpu")
    tp, fp, fn, precision, recall, f1 = RECORDED[seed][sigma]
    assert [result[name] for name in ("TP", "FP", "FN")] == [tp, fp, fn]
    # Where the denominator is 0 the benchmark adds 1e-20 to it, and the value is undefined here.
    for name, value, whole in (("precision", precision, tp + fp), ("recall", recall, tp + fn)):
        assert result[name] == pytest.approx(value if whole else math.nan, abs=1e-9, nan_ok=True)
    assert result["F1"] == pytest.approx(f1 if f1 is not None else 0.0 if fp + fn else math.nan, abs=1e-9, nan_ok=True)
    counts = [math.nan if value is None else value for value in RECORDED[seed]["counts"]]
    assert [result[name] for name in COUNTS] == pytest.approx(counts, abs=1e-9, nan_ok=True)


def table(points: list[list[tuple[float, ...]]], score: list[float] | None = None) -> BoxTable:
    image = [row for row, some in enumerate(points) for _ in some]
    boxes = np.array([[*point[:2], *point[:2]] for some in points for point in some], dtype=float).reshape(-1, 4)
    return BoxTable.from_arrays(image, [0] * len(image), boxes, score=score)


@pytest.mark.parametrize("seed", range(100))
def test_as_many_pairs_are_found_as_can_be(seed: int) -> None:
    heads, points = zip(*drawn_heads(seed), strict=True)
    gt, pred = table([*heads]), table([*points], [1.0] * sum(map(len, points)))
    result = evaluate(gt, pred, protocol="points=4,8", score=0.5)
    assert [result["TP[iou=0.75]"], result["TP"]] == RECORDED[seed]["pixels"]


# Points of one line, at 0, 8 and 16: the first detection reaches two, the second the middle one alone.
LINE = table([[(0, 0), (8, 0), (16, 0)]])
CHAIN = table([[(4.5, 0), (8, 3), (40, 0)]], [0.9, 0.8, 0.3])


def test_a_detection_gives_up_its_object_for_one_more_pair() -> None:
    result = evaluate(LINE, CHAIN, protocol="points=5", score=0.5)
    # The first is nearer to 8 than to 0, and takes that; the second reaches nothing else.
    assert (result["TP"], result["FP"], result["FN"]) == (2, 0, 1)
    assert result.matches["gt"][:2, 0].tolist() == [0, 1]
    assert (result["precision"], result["recall"], result["F1"]) == (1.0, 2 / 3, 0.8)
    assert result["AP"] == pytest.approx(2 / 3)
    greedy = get_protocol("points=5").with_options(assignment="best_free")
    assert evaluate(LINE, CHAIN, protocol=greedy, score=0.5)["TP"] == 1


def test_an_equal_distance_is_within() -> None:
    gt = table([[(0, 0), (100, 100)]])
    for reach in (3.0, 7.0, 5.1):
        pred = table([[(reach, 0), (100, 100 + reach + 1e-6)]], [0.9, 0.8])
        result = evaluate(gt, pred, protocol=f"points={reach},30", score=0.5)
        assert [result[f"TP[iou={iou}]"] for iou in result.protocol.iou_thresholds] == [2, 1]


@pytest.mark.parametrize("seed", range(8))
def test_every_score_has_the_most_pairs_of_its_detections(seed: int) -> None:
    heads, points = zip(*drawn_heads(seed), strict=True)
    rng = np.random.default_rng(seed)
    n = sum(map(len, points))
    score = (rng.permutation(n) / max(n, 1)).tolist()
    whole = evaluate(table([*heads]), table([*points], score), protocol="points=6", score=0.5)
    for least in (0.2, 0.6):
        rest, kept = iter(score), list[float]()
        some = [[(point, value) for point, value in zip(image, rest, strict=False)] for image in points]
        left = [[point for point, value in image if value >= least] for image in some]
        kept = [value for image in some for _, value in image if value >= least]
        alone = evaluate(table([*heads]), table(left, kept), protocol="points=6", score=least)
        names = ("TP", "FP", "FN", *COUNTS, "count_exact")
        assert [whole[f"{name}[score={least}]"] for name in names] == pytest.approx(
            [alone[name] for name in names], nan_ok=True
        )


def test_errors_of_counts_by_hand() -> None:
    # Objects 3, 2, 0 and detections 3, 0, 1: off by 0, 2 and 1.
    gt = BoxTable.from_arrays(["a", "a", "a", "b", "b"], [0] * 5, [[x, 0, x, 0] for x in (0, 50, 99, 0, 50)])
    pred = BoxTable.from_arrays(
        ["a", "a", "a", "c"], [0] * 4, [[x, 0, x, 0] for x in (0, 50, 60, 5)], score=[0.9, 0.8, 0.7, 0.6]
    )
    result = evaluate(gt, pred, protocol="points", extra_images="empty")
    assert [result[name] for name in (*COUNTS, "count_exact")] == [1.0, math.sqrt(5 / 3), 0.5, 1 / 3]
    assert result["MAE"] == result["mean absolute error"] == result["count_MAE[score=0.6]"] == 1.0
    assert result["count_MAE[score=0.75]"] == 1.0  # off by 1, 2 and 0
    assert (result["precision"], result["recall"]) == (0.5, 0.4)


def many(folder: Path) -> EvaluationResult:
    images = [image for seed in range(12) for image in drawn_heads(seed)][:40]
    return evaluate(
        *written(folder, images),
        protocol="nwpu",
        bootstrap=Bootstrap(n_resamples=60),
        slices=[Slice(name="few", patterns=("311*",))],
    )


def test_gates_slices_intervals_and_documents_have_them(tmp_path: Path) -> None:
    result = many(tmp_path)
    for name in ("F1", "count_MAE", "count_NAE"):
        interval = result.metrics[name].interval
        assert interval is not None
        assert interval[0] < result[name] < interval[1]
    for name in ("run.npz", "result.json"):
        result.save(tmp_path / name)
        assert [load_result(tmp_path / name)[metric] for metric in COUNTS] == [result[metric] for metric in COUNTS]
    for most, passes in ((1e3, True), (0.01, False)):
        assert gate(result, gates=Gates(rules=(Rule(metric="MAE", max=most),))).passed is passes
    assert [part.name for part in result.slices] == ["few"]
    assert {"F1", "count_MAE"} <= {*result.slices[0].values}
    assert "mean_IoU" not in result.metrics  # which points do not have
    deltas = compare(result, result, bootstrap=Bootstrap(n_resamples=20)).to_dict()
    assert "count_MAE" in str(deltas)


def test_intervals_are_a_plain_resampling_of_the_images(tmp_path: Path) -> None:
    result = many(tmp_path)
    drawn = result.bootstrap
    assert drawn is not None
    off = np.array([abs(len(heads) - len(points)) for seed in range(12) for heads, points in drawn_heads(seed)][:40])
    for row in range(4):
        half = off[half_weights(np.arange(40), 40, (0, row // 2))[row % 2] > 0]
        assert drawn.values[row, drawn.refs.index("count_MAE")] == pytest.approx(half.mean())
        assert drawn.values[row, drawn.refs.index("count_RMSE")] == pytest.approx(math.sqrt((half**2).mean()))


@pytest.mark.parametrize("wrong", ["points=", "points=x", "points=0", "points=4,-8", "points=4px", "points=nan"])
def test_distances_that_are_none_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"protocol points: expected distances in pixels, such as points=4,8"):
        get_protocol(wrong)


def test_no_other_protocol_takes_distances() -> None:
    with pytest.raises(UsageError, match="unknown protocol 'nwpu=4'"):
        get_protocol("nwpu=4")
    with pytest.raises(UsageError, match="reach must be finite, and above 0 where distances are pixels, got 0"):
        get_protocol("coco").with_options(overlap="pixels")


@pytest.mark.parametrize("protocol", ["points=4,8", "nwpu"])
def test_distances_are_those_of_boxes_alone(protocol: str) -> None:
    message = r"measures distances of centres, not iou_type 'segm'; evaluate boxes: iou_type 'bbox'"
    with pytest.raises(UsageError, match=message):
        evaluate(LINE, CHAIN, protocol=protocol, iou_type="segm")


def test_labels_find_no_bad_box_among_points(tmp_path: Path) -> None:
    for name, text in (("gt", "a,10,10,\na,50,50,\nb,30,30,"), ("pred", "a,11,11,.9\na,57,50,.8\nb,80,80,.6")):
        rows = [line.split(",") for line in text.split("\n")]
        lines = [",".join([image, "head", x, y, *filter(None, [score])]) for image, x, y, score in rows]
        head = "image,class,x,y" + ",score" * (name == "pred")
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    found = labels(tmp_path / "gt.csv", tmp_path / "pred.csv", protocol="points")
    assert found.refused["box"] == "points have no edges that could be off"
    assert "box" not in {suspect.kind for suspect in found.suspects}
    assert "missing" in {suspect.kind for suspect in found.suspects}  # the one at 80, 80


@pytest.mark.parametrize("side", [0.0, 1e-9])
def test_bad_boxes_are_found_next_to_detections_of_no_size(side: float) -> None:
    # By free-response rules a detection is its centre: 0.9 is in the first object, 0.8 in the second.
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [40, 40, 60, 60]])
    boxes = [[4, 4, 4 + side, 4 + side], [52, 50, 52 + side, 50 + side]]
    pred = BoxTable.from_arrays([0, 0], [0, 0], boxes, score=[0.9, 0.8])
    kinds = [suspect.kind for suspect in labels(gt, pred, protocol="froc").suspects]
    assert ("box" in kinds) is (side > 0)


@pytest.mark.parametrize(
    ("signature", "measure"),
    [
        ("points|score=0.3|images=2", "nearness"),
        ("points|overlap=area|images=2", "IoU"),
        ("coco|overlap=pixels|reach=8.0|images=2", "nearness"),
        ("froc|images=2", "nearness"),
        ("froc|iou_type=segm|images=2", "IoU"),
        ("coco|iou_type=spheres|images=2", "nearness"),
        ("crowdpose|iou_type=keypoints|images=2", "OKS"),
        ("coco|images=2", "IoU"),
    ],
)
def test_signatures_name_what_thresholds_are_compared_with(signature: str, measure: str) -> None:
    assert overlap_name(signature) == measure
