"""Intervals hold the truth as often as they say: many sets are drawn from a population whose AP is known by hand."""

import runpy
from collections.abc import Iterator
from math import comb
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import VOC2012
from jaccard_eval.features.bootstrap import estimates, resample
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

pytestmark = pytest.mark.slow

N_SETS = 100
SETTINGS = Bootstrap(n_resamples=120)
N_IMAGES, BOXES_PER_IMAGE = 60, 4
FOUND = 0.6  # share of the objects
FRAMES = 5  # of a video
AP = MetricRef(name="AP")


def one_set(found: np.ndarray) -> DetectionMetrics:
    """Images (n,), in each of which all objects are found at their place, or none; and nothing else is detected.

    Every hit has precision 1, so that AP as an area is the recall: over all such sets it is the share that is found.
    """
    n = len(found)
    image = np.repeat(np.arange(n), BOXES_PER_IMAGE)
    left = np.tile(np.arange(BOXES_PER_IMAGE) * 20.0, n)
    xywh = np.stack([left, np.zeros_like(left), np.full_like(left, 10), np.full_like(left, 10)], axis=1)
    label, hit = np.zeros_like(image), found[image]
    gt = BoxTable.from_arrays(image, label, xywh, encoding="xywh")
    pred = BoxTable.from_arrays(image[hit], label[hit], xywh[hit], score=np.ones(hit.sum()), encoding="xywh")
    table = match_boxes(gt, pred, VOC2012, n_images=n, n_labels=1)
    return DetectionMetrics(table, ("cat",), [f"{i}" for i in range(n)])


def shares_found(n_units: int) -> Iterator[np.ndarray]:
    for i in range(N_SETS):
        yield np.random.default_rng([5, i]).random(n_units) < FOUND


def covers(metrics: DetectionMetrics, groups: list[str] | None = None) -> bool:
    drawn = resample(metrics, SETTINGS, refs=[AP], groups=groups)
    low, high = estimates(drawn)["AP"].interval or (1.0, 0.0)
    return low <= FOUND <= high


def fewest(share: float, n: int, risk: float = 0.001) -> int:
    """The count that a binomial share of n falls short of with less than the risk."""
    tail = np.cumsum([comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)])
    return int(np.searchsorted(tail, risk))


def test_the_population_has_the_ap_that_is_said() -> None:
    found = np.arange(10) < 6
    assert one_set(found).value(AP).value == pytest.approx(FOUND, abs=1e-12)


def test_a_95_percent_interval_holds_the_true_ap_in_95_of_100_sets() -> None:
    held = sum(covers(one_set(found)) for found in shares_found(N_IMAGES))
    assert fewest(0.95, N_SETS) <= held


def test_frames_that_are_alike_hold_it_by_groups_and_not_by_images() -> None:
    # Five frames of a video are one observation: intervals of images are narrower by the root of five.
    groups = [f"{i // FRAMES}" for i in range(N_IMAGES * FRAMES)]
    videos = [one_set(np.repeat(found, FRAMES)) for found in shares_found(N_IMAGES)]
    by_groups, by_images = (sum(covers(one, of) for one in videos) for of in (groups, None))
    assert by_images < fewest(0.95, N_SETS) <= by_groups


@pytest.mark.parametrize(("n_classes", "n_images"), [(3, 100), (20, 100)])
def test_intervals_hold_the_expected_value_of_sets_of_their_size(n_classes: int, n_images: int) -> None:
    # A small version of benchmarks/coverage.py, which has the table of docs/noise.md.
    path = Path(__file__).parents[3] / "benchmarks" / "coverage.py"
    coverage = runpy.run_path(str(path), run_name="coverage")
    cell = coverage["measure"](n_classes, n_images, coverage["KINDS"]["hard"], N_SETS, 60)
    assert (cell.given, cell.own) == (1.0, 1.0)
    assert min(cell.covered) >= fewest(0.93, N_SETS) / N_SETS
    assert cell.population >= fewest(0.93, N_SETS) / N_SETS
