"""How often 95 % intervals hold what they are for, on synthetic sets whose expected values are known.

    python benchmarks/coverage.py [--classes 3 20 80 1203] [--images 100 500 2000] [--kinds easy hard]
        [--sets 200] [--sets-many 60] [--resamples 80] [--workers 1]

Images differ in difficulty, objects of a class come in clusters, and classes fall like 1 / rank in frequency. Each set
is drawn anew; the expected value is the mean over these sets and as many more. A row for each cell: AP on average, how
far that lies above AP of a large set (in widths), the share of intervals of AP, AP50, AR100 and F1 at a score that hold
the expected value, their mean width by that of the ideal one (3.92 standard deviations), how many were given, the share
that holds its own value, and the share of population ranges that hold AP of the large set. Seeded.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO
from jaccard_eval.features.bootstrap import estimates, resample
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

PROTOCOL = COCO.with_options(areas=COCO.areas[:1], max_dets=(100,))
REFS = tuple(MetricRef.parse(text) for text in ("AP", "AP50", "AR100", "F1[iou=0.5,score=0.5]"))
MANY = 1_000  # classes, of which fewer sets are drawn
CLUSTERS = 3.5  # of objects of one class, in an image
SIDE = 100.0  # px; objects lie in a row, so that no two overlap
LARGE = 20_000  # images of the set that stands for the population


@dataclass(frozen=True, slots=True)
class Kind:
    """How good the model is."""

    ease: float  # of an object; 0 is found half of the time
    overlap: float  # of a hit, from -1 to 1
    clutter: float  # false positives of an image
    clutter_score: float


KINDS = {"easy": Kind(2.1, 0.3, 1.2, -0.8), "hard": Kind(0.6, -0.25, 4.0, -0.3)}


def draw(n_images: int, n_classes: int, kind: Kind, rng: np.random.Generator) -> DetectionMetrics:
    """Draw a set of images and a model's detections on it."""
    frequency = 1 / np.arange(1, n_classes + 1)
    frequency /= frequency.sum()
    scene = rng.normal(0, 0.6, n_images)  # some images are easy as a whole
    n_clusters = rng.poisson(CLUSTERS, n_images)
    cluster_image = np.repeat(np.arange(n_images), n_clusters)
    cluster_label = rng.choice(n_classes, len(cluster_image), p=frequency)
    cluster_ease = rng.normal(0, 0.5, len(cluster_image)) + scene[cluster_image]
    cluster = np.repeat(np.arange(len(cluster_image)), 1 + rng.poisson(1.0, len(cluster_image)))
    image, label, n = cluster_image[cluster], cluster_label[cluster], len(cluster)
    left = np.arange(n) * 3 * SIDE
    quality = kind.ease + cluster_ease[cluster] + rng.normal(0, 1, n)
    found = quality > 0
    overlap = 0.75 + 0.25 * np.tanh(kind.overlap + 0.4 * cluster_ease[cluster] + rng.normal(0, 0.6, n))
    shift = SIDE * (1 - overlap) / (1 + overlap)  # of a box of the same size: IoU is (side - shift) / (side + shift)
    n_clutter = rng.poisson(kind.clutter * n_images)
    clutter = np.arange(n_clutter)
    score = np.concatenate(
        [quality[found] - 1 + rng.normal(0, 0.8, found.sum()), rng.normal(kind.clutter_score, 1, n_clutter)]
    )
    gt = _boxes(image, label, left)
    pred = _boxes(
        np.concatenate([image[found], rng.integers(0, n_images, n_clutter)]),
        np.concatenate([label[found], rng.choice(n_classes, n_clutter, p=frequency)]),
        np.concatenate([(left + shift)[found], -3 * SIDE * (1 + clutter)]),
        1 / (1 + np.exp(-score)),
    )
    table = match_boxes(gt, pred, PROTOCOL, n_images=n_images, n_labels=n_classes)
    return DetectionMetrics(table, [str(k) for k in range(n_classes)], [str(i) for i in range(n_images)])


def _boxes(image: np.ndarray, label: np.ndarray, left: np.ndarray, score: np.ndarray | None = None) -> BoxTable:
    xywh = np.stack([left, np.zeros_like(left), np.full_like(left, SIDE), np.full_like(left, SIDE)], axis=1)
    return BoxTable.from_arrays(image, label, xywh, score=score, encoding="xywh")


@dataclass(frozen=True, slots=True)
class Cell:
    """What the intervals of many sets hold."""

    value: float  # AP, on average
    bias: float  # how far that lies above AP of the population, in ideal widths
    covered: tuple[float, ...]  # share of the intervals that hold the expected value, by metric
    width: float  # of the intervals of AP, by the ideal
    given: float  # share of the sets with intervals of all metrics
    own: float  # share of the intervals that hold their own value
    population: float  # share of the ranges that hold AP of the population; NaN where none were given


def measure(n_classes: int, n_images: int, kind: Kind, n_sets: int, n_resamples: int) -> Cell:
    """Draw sets, and count."""
    values, lows, highs, ranges = [], [], [], []
    for i in range(2 * n_sets):
        metrics = draw(n_images, n_classes, kind, np.random.default_rng([n_classes, n_images, i]))
        if i >= n_sets:
            values.append([metrics.value(ref).value for ref in REFS])
            continue
        drawn = resample(metrics, Bootstrap(n_resamples=n_resamples, rng=i), refs=REFS)
        values.append(drawn.estimate.tolist())
        found = [estimates(drawn)[ref] for ref in drawn.refs]
        bounds = [row.interval or (np.nan, np.nan) for row in found]
        lows.append([low for low, _ in bounds])
        highs.append([high for _, high in bounds])
        ranges.append(found[0].population or (np.nan, np.nan))
    value, low, high, around = (np.array(rows) for rows in (values, lows, highs, ranges))
    expected, given = value.mean(axis=0), ~np.isnan(low)
    held = ((low <= expected) & (expected <= high)).sum(axis=0) / given.sum(axis=0)
    own = ((low <= value[:n_sets]) & (value[:n_sets] <= high)).sum() / given.sum()
    ideal = 3.92 * value[:, 0].std(ddof=1)
    truth = draw(LARGE, n_classes, kind, np.random.default_rng([n_classes, LARGE])).value(REFS[0]).value
    n_ranges = int((~np.isnan(around[:, 0])).sum())
    in_range = float(((around[:, 0] <= truth) & (truth <= around[:, 1])).sum()) / n_ranges if n_ranges else np.nan
    width = float(np.nanmean(high[:, 0] - low[:, 0])) / ideal
    bias = (expected[0] - truth) / ideal
    return Cell(expected[0], bias, tuple(held), width, float(given.all(axis=1).mean()), float(own), in_range)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[3, 20, 80, 1203])
    parser.add_argument("--images", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--sets-many", type=int, default=60, help=f"of {MANY:,} classes and more")
    parser.add_argument("--resamples", type=int, default=80)
    options = parser.parse_args(argv)
    print("| classes, images | AP | bias | AP, % | AP50 | AR100 | F1 | width | given, % | own value | range, % |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for n_classes in options.classes:
        for n_images in options.images:
            for name in options.kinds:
                n_sets = options.sets_many if n_classes >= MANY else options.sets
                cell = measure(n_classes, n_images, KINDS[name], n_sets, options.resamples)
                shares = [f"{100 * share:.1f}" for share in cell.covered]
                ends = [
                    "-" if np.isnan(share) else f"{100 * share:.1f}"
                    for share in (cell.given, cell.own, cell.population)
                ]
                row = [f"{n_classes:,}, {n_images:,}, {name}", f"{cell.value:.3f}", f"{cell.bias:.2f}", *shares]
                row += [f"{cell.width:.2f}", *ends]
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
