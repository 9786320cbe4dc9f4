"""The log-average miss rate and the competition metric, by hand and by counting along each class's detections."""

import math
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import Bootstrap, BoxTable, evaluate

SAMPLE = Path(__file__).parents[2] / "sample_data" / "coco"
REFERENCES = [10 ** (-2 + k / 4) for k in range(9)]
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def on_ten_images() -> tuple[BoxTable, BoxTable]:
    """Two objects on the first two of ten images; a hit, a false positive, a hit, in this order of scores."""
    gt = BoxTable.from_arrays([*range(2), *range(2, 10)], [0] * 2 + [1] * 8, [[0, 0, 10, 10]] * 10)
    pred = BoxTable.from_arrays(
        [0, 2, 1], [0, 0, 0], [[0, 0, 10, 10], [50, 50, 60, 60], [0, 0, 10, 10]], score=[0.9, 0.8, 0.7]
    )
    return gt, pred


def test_by_hand() -> None:
    result = evaluate(*on_ten_images())
    # One false positive on ten images: up to a rate of .1 the first hit alone, from there on both.
    # References .01, .0178, .0316, .0562: miss rate 1/2; .1 and the four above: none, of which 1e-10 is taken.
    expected = math.exp((4 * math.log(0.5) + 5 * math.log(1e-10)) / 9)
    assert result["LAMR[class=0]"] == pytest.approx(expected, rel=1e-12)
    # All seven rates of the other are at least 1/8 > .1.
    assert result["CPM[class=0]"] == 1.0
    # Nothing of the second class is found.
    assert (result["LAMR[class=1]"], result["CPM[class=1]"]) == (1.0, 0.0)
    assert result["LAMR"] == pytest.approx((expected + 1) / 2, rel=1e-12)


def counted(iou: int, name: str) -> tuple[float, float]:
    """Walk along the detections of a class, and read both off the points that they make."""
    result = evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json")
    matches, n_images = result.matches, 12
    rows = [i for i in np.argsort(-matches["score"], kind="stable") if matches["class"][i] == name]
    n = next(row.gt for row in result.per_class if row.name == name)
    points, hits, misses = [(0.0, 0.0)], 0, 0
    for row in rows:
        hits += bool(matches["tp"][row, iou])
        misses += bool(matches["fp"][row, iou])
        points.append((misses / n_images, hits / n))
    read = [max(recall for rate, recall in points if rate <= at + 1e-12) for at in REFERENCES]
    cpm = [max(recall for rate, recall in points if rate <= at) for at in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)]
    return math.exp(sum(math.log(max(1e-10, 1 - recall)) for recall in read) / 9), sum(cpm) / 7


@pytest.mark.parametrize("name", ["person", "car", "dog", "bicycle"])
@pytest.mark.parametrize(("iou", "place"), [(0.5, 0), (0.75, 5)])
def test_they_are_what_counting_along_the_detections_gives(name: str, iou: float, place: int) -> None:
    result = evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json")
    expected = counted(place, name)
    found = tuple(result[f"{metric}[iou={iou},class={name}]"] for metric in ("LAMR", "CPM"))
    assert found == pytest.approx(expected, abs=1e-12)


def test_resamples_weigh_false_positives_and_images() -> None:
    metrics = evaluate(*on_ten_images()).measured
    rates = np.array([0.1, 0.2])
    twice = metrics.curves.weighted(np.full(10, 2))
    assert twice.recall_at(0, rates)[0].tolist() == metrics.curves.recall_at(0, rates)[0].tolist() == [1.0, 1.0]
    # Of the image with the false positive three more: 3 on 12 images, a rate of .25.
    often = metrics.curves.weighted(np.array([1, 1, 3, *[1] * 7]))
    assert often.recall_at(0, np.array([0.2, 0.25]))[0].tolist() == [0.5, 1.0]


def test_a_class_without_objects_has_none_and_the_mean_leaves_it_out() -> None:
    gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    pred = BoxTable.from_arrays([0, 0], [0, 1], [[0, 0, 10, 10]] * 2, score=[0.9, 0.8])
    result = evaluate(gt, pred)
    assert result["CPM"] == 1.0
    assert result["LAMR"] == pytest.approx(1e-10)


def test_they_have_intervals_and_gates() -> None:
    gt = BoxTable.from_arrays(range(40), [0] * 40, [[0, 0, 10, 10]] * 40)
    boxes = [[0, 0, 10, 9.5] if i % 2 else [30, 0, 40, 10] for i in range(40)]
    pred = BoxTable.from_arrays(range(40), [0] * 40, boxes, score=[1 - i / 100 for i in range(40)])
    from jaccard_eval import get_protocol

    rules = get_protocol("coco").with_options(metrics=("LAMR",))
    result = evaluate(gt, pred, protocol=rules, bootstrap=Bootstrap(n_resamples=50))
    low, high = result.metrics["LAMR"].interval
    assert low <= result["LAMR"] <= high
    assert "metrics=LAMR" in result.signature
