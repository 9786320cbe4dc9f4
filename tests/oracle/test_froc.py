"""Free-response curves of boxes by `--protocol froc`: by hand, and as a short walk along the marks gives them.

No program of a benchmark ran for these: LUNA16 has spheres, of which there are numbers of its script.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import columns, drawn_images

from jaccard_eval import Bootstrap, BoxTable, DataError, evaluate, get_protocol

RATES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def boxes(rows: list[list[float]], **columns: Any) -> BoxTable:
    """Boxes of one class: image, then left, top, width and height."""
    return BoxTable.from_arrays(
        [int(row[0]) for row in rows], [0] * len(rows), [row[1:] for row in rows], encoding="xywh", **columns
    )


def test_a_centre_in_the_box_hits_once_and_the_edge_is_in() -> None:
    gt = boxes([[0, 0, 0, 20, 20], [1, 0, 0, 20, 20], [2, 0, 0, 20, 20], [3, 0, 0, 20, 20]])
    # Centres of image 0: (10, 10), then (2, 2) on the same object, which vanishes. Of 1: (20, 10), on the edge. Of 2:
    # (21, 10), beside it; of 3 none.
    pred = boxes([[0, 8, 8, 4, 4], [0, 0, 0, 4, 4], [1, 18, 8, 4, 4], [2, 19, 8, 4, 4]], score=[0.9, 0.8, 0.6, 0.7])
    result = evaluate(gt, pred, protocol="froc")
    assert [result[f"{name}[score=0.1]"] for name in ("TP", "FP", "FN")] == [2, 1, 2]
    # One false positive on four images: up to a rate of 1/8 one hit of four, from 1/4 on two.
    assert result["CPM"] == pytest.approx((1 / 4 + 6 * 2 / 4) / 7, abs=1e-12)
    shown = {name: metric.value for name, metric in result.metrics.items() if name.startswith("recall")}
    assert list(shown) == [f"recall[fppi={rate:g}]" for rate in RATES]
    assert list(shown.values()) == [1 / 4, *[2 / 4] * 6]


def test_marks_on_what_is_excluded_vanish_and_scores_may_be_below_zero() -> None:
    gt = boxes([[0, 0, 0, 20, 20], [0, 50, 0, 20, 20]], ignore=[False, True])
    pred = boxes([[0, 55, 5, 4, 4], [0, 60, 5, 4, 4], [0, 8, 8, 4, 4]], score=[-1.0, -2.0, -3.0])
    assert evaluate(gt, pred, protocol="froc")["CPM"] == 1.0


def test_a_hundred_marks_of_an_image_count() -> None:
    gt = boxes([[0, 0, 0, 20, 20], [1, 0, 0, 20, 20]])
    far = [[0, 100 + 10 * k, 0, 4, 4] for k in range(100)]
    pred = boxes([*far, [0, 8, 8, 4, 4]], score=[*np.linspace(0.9, 0.5, 100), 0.4])
    result = evaluate(gt, pred, protocol="froc")
    assert [result[f"{name}[score=0.1]"] for name in ("TP", "FP")] == [0, 100]


def test_a_radius_is_a_circle_in_the_box() -> None:
    gt = boxes([[0, 0, 0, 20, 20], [1, 0, 0, 20, 20]])
    # 8 px off in x and y are in the box, and 11.3 px from its centre; 6 px off in both are 8.5 px away.
    pred = boxes([[0, 16, 16, 4, 4], [1, 14, 14, 4, 4]], score=[0.9, 0.8])
    assert evaluate(gt, pred, protocol="froc")["recall[score=0.1]"] == 1.0
    circles = get_protocol("froc").with_options(overlap="radius")
    assert evaluate(gt, pred, protocol=circles)["recall[score=0.1]"] == 0.5
    assert "overlap=radius" in evaluate(gt, pred, protocol=circles).signature


def walked(seed: int, label: int, overlap: str) -> float:
    """Walk along the marks of a class by score: the mean recall at the seven rates, between the points of scores."""
    labels, detected = (columns(images) for images in drawn_images(seed))
    n_images = 1 + max(*labels[0], *detected[0])  # arrays name the images up to the last one with a box
    objects = [(i, box) for i, k, box in zip(*labels, strict=True) if k == label]
    marks = sorted(
        ((s, i, box) for i, k, box, s in zip(*detected, strict=True) if k == label), key=lambda mark: -mark[0]
    )
    hit: set[int] = set()
    misses, points = 0, {math.inf: (0, 0)}
    for score, image, (x, y, w, h) in marks:
        found = set()
        for row, (i, (left, top, width, height)) in enumerate(objects):
            dx, dy = abs(x + w / 2 - left - width / 2), abs(y + h / 2 - top - height / 2)
            distance = (
                max(dx / width, dy / height) if overlap == "centre" else (dx**2 + dy**2) ** 0.5 * 2 / (width + height)
            )
            if i == image and distance <= 0.5:
                found.add(row)
        misses, hit = misses + (not found), hit | found
        points[score] = misses, len(hit)
    fp, tp = zip(*points.values(), strict=True)
    return float(np.mean(np.interp(np.array(RATES) * n_images, fp, tp))) / len(objects)


@pytest.mark.parametrize("overlap", ["centre", "radius"])
@pytest.mark.parametrize("seed", range(100))
def test_the_score_is_what_a_walk_along_the_marks_gives(seed: int, overlap: str) -> None:
    labels, detected = (columns(images) for images in drawn_images(seed))
    gt = BoxTable.from_arrays(*labels, encoding="xywh")
    pred = BoxTable.from_arrays(*detected[:3], score=detected[3], encoding="xywh")
    rules = get_protocol("froc").with_options(overlap=overlap)
    result = evaluate(gt, pred, protocol=rules, extra_images="empty")
    for label in sorted(set(labels[1].tolist())):
        assert result[f"CPM[class={label}]"] == pytest.approx(walked(seed, label, overlap), abs=1e-9)


def test_a_circle_needs_pixels(tmp_path: Path) -> None:
    for name, line in (("gt", "0 0.5 0.5 0.2 0.2"), ("pred", "0 0.5 0.5 0.2 0.2 0.9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(line + "\n", encoding="utf-8")
    paths = tmp_path / "gt", tmp_path / "pred"
    assert evaluate(*paths, protocol="froc")["CPM"] == 1.0
    with pytest.raises(DataError, match="size-unknown"):
        evaluate(*paths, protocol=get_protocol("froc").with_options(overlap="radius"))


def test_it_has_intervals_and_parts() -> None:
    rows = [[i, 0, 0, 20, 20] for i in range(40)]
    gt = boxes(rows)
    pred = boxes([[i, 8 if i % 3 else 60, 8, 4, 4] for i in range(40)], score=[1 - i / 100 for i in range(40)])
    result = evaluate(gt, pred, protocol="froc", bootstrap=Bootstrap(n_resamples=50))
    for name in ("CPM", "recall[fppi=1]"):
        low, high = result.metrics[name].interval
        assert low <= result[name] <= high
    assert 0 < result.measured.restrict(range(10)).curves.recall_at(0, np.array([1.0]))[0, 0] < 1
