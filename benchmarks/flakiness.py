"""How often gates are wrong: a fixed tolerance against `significant-drop`, on sets of 50, 200 and 1,000 images.

    python benchmarks/flakiness.py [--pairs 200] [--resamples 500] [--images 50 200 1000]
    python benchmarks/flakiness.py --coverage [--pairs 400] [--resamples 500] [--images 5 10 20 30 50 100]

Each pair is a new set of images and two models on it. Objects differ in how hard they are, for both models alike; apart
from that the models err independently. Under "equal" both are equally good, under "worse" the second finds fewer
objects. For each size it prints how far AP of the two lies apart, how often each gate fails, and how often the interval
of the first model holds its true AP, that of one large set; with --coverage, that alone. AP is over IoU 0.5 and 0.75.
Everything is seeded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.result import Resamples
from jaccard_eval.features.bootstrap.compute import paired_deltas, percentile_interval, resample, significant_drop
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

CLASSES = ("a", "b", "c")
PROTOCOL = COCO.with_options(iou_thresholds=(0.5, 0.75), areas=COCO.areas[:1], max_dets=(100,))
TOLERANCE = 0.01
OBJECTS_PER_IMAGE, CLUTTER_PER_IMAGE = 5, 2
EASE, WORSE_EASE = 0.7, 0.68  # mean share of the objects that a model finds
SIDE = 100.0  # px; objects lie in a row, so that no two overlap
LARGE = 20_000  # images of the set that gives the true values


@dataclass(frozen=True, slots=True)
class Truth:
    """Objects of a set of images, and how easy each is to find."""

    n_images: int
    image: np.ndarray
    label: np.ndarray
    left: np.ndarray
    luck: np.ndarray  # uniform; what both models share


def draw_truth(n_images: int, rng: np.random.Generator) -> Truth:
    per_image = rng.poisson(OBJECTS_PER_IMAGE, n_images)
    image = np.repeat(np.arange(n_images), per_image)
    left = (np.arange(len(image)) - np.repeat(np.cumsum(per_image) - per_image, per_image)) * 2 * SIDE
    scene = rng.normal(0, 0.15, n_images)[image]  # some images are hard as a whole
    return Truth(n_images, image, rng.integers(0, 3, len(image)), left, rng.random(len(image)) * 0.5 + scene)


def evaluate_model(truth: Truth, ease: float, rng: np.random.Generator) -> DetectionMetrics:
    n = len(truth.image)
    found = truth.luck + rng.random(n) * 0.5 < ease
    n_clutter = rng.poisson(CLUTTER_PER_IMAGE * truth.n_images)
    image = np.concatenate([truth.image[found], rng.integers(0, truth.n_images, n_clutter)])
    label = np.concatenate([truth.label[found], rng.integers(0, 3, n_clutter)])
    left = np.concatenate([truth.left[found] + rng.normal(0, 10, found.sum()), np.full(n_clutter, -10 * SIDE)])
    score = np.concatenate([rng.beta(4, 2, found.sum()), rng.beta(2, 4, n_clutter)])
    gt, pred = _boxes(truth.image, truth.label, truth.left), _boxes(image, label, left, score)
    table = match_boxes(gt, pred, PROTOCOL, n_images=truth.n_images, n_labels=len(CLASSES))
    return DetectionMetrics(table, CLASSES, [str(i) for i in range(truth.n_images)])


def _boxes(image: np.ndarray, label: np.ndarray, left: np.ndarray, score: np.ndarray | None = None) -> BoxTable:
    xywh = np.stack([left, np.zeros_like(left), np.full_like(left, SIDE), np.full_like(left, SIDE)], axis=1)
    return BoxTable.from_arrays(image, label, xywh, score=score, encoding="xywh")


def true_ap(ease: float) -> float:
    rng = np.random.default_rng(1)
    return float(resample(evaluate_model(draw_truth(LARGE, rng), ease, rng), Bootstrap(n_resamples=2)).estimate[0])


def run(n_images: int, second_ease: float, expected: float, options: argparse.Namespace) -> str:
    settings = Bootstrap(n_resamples=options.resamples)
    gaps, fixed, significant, covered = [], 0, 0, 0
    for pair in range(options.pairs):
        rng = np.random.default_rng([n_images, pair])
        truth = draw_truth(n_images, rng)
        first, second = (resample(evaluate_model(truth, ease, rng), settings) for ease in (EASE, second_ease))
        delta = paired_deltas(first, second)[0]
        gaps.append(abs(delta.delta))
        fixed += -delta.delta > TOLERANCE
        significant += significant_drop(delta, TOLERANCE)
        covered += holds(first, expected)
    shares = " ".join(f"{100 * count / options.pairs:10.1f}" for count in (fixed, significant, covered))
    return f"{n_images:6d} {np.quantile(gaps, 0.95):10.3f} {shares}"


def holds(drawn: Resamples, expected: float) -> bool:
    low, high = percentile_interval(drawn.values[:, 0], drawn.settings.confidence_level) or (np.nan, np.nan)
    return bool(low <= expected <= high)


def coverage(n_images: int, expected: float, options: argparse.Namespace) -> str:
    settings = Bootstrap(n_resamples=options.resamples)
    covered = 0
    for one in range(options.pairs):
        rng = np.random.default_rng([n_images, one])
        covered += holds(resample(evaluate_model(draw_truth(n_images, rng), EASE, rng), settings), expected)
    return f"{n_images:6d} {100 * covered / options.pairs:10.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--images", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args()
    expected = true_ap(EASE)
    if options.coverage:
        print("images  coverage %")
        for n_images in options.images:
            print(coverage(n_images, expected, options), flush=True)
        return
    for name, ease in (("equal", EASE), ("worse", WORSE_EASE)):
        print(f"{name}: true AP {expected:.4f} and {true_ap(ease):.4f}")
        print("images   95% of |d|   fixed %   signif. %   coverage %")
        for n_images in options.images:
            print(run(n_images, ease, expected, options), flush=True)


if __name__ == "__main__":
    main()
