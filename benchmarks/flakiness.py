"""How often gates are wrong: a fixed tolerance against `significant-drop`, on sets of 50, 200 and 1,000 images.

    python benchmarks/flakiness.py [--classes 3 300] [--images 50 200 1000] [--pairs 200] [--resamples 500]
    python benchmarks/flakiness.py --slices [--classes 3 80 300] [--images 250 1000] [--pairs 200] [--resamples 200]

Each pair is a new set of images and two models on it. Objects differ in how hard they are, for both models alike; apart
from that the models err independently, and classes fall like 1 / rank in frequency. Under "equal" both are equally
good, under "worse" the second finds fewer objects. For each size it prints how far AP of the two lies apart, and how
often each gate fails: a drop of more than 0.01, one whose interval of percentiles excludes 0 besides, and one whose
interval is drawn as gates draw it now, by halves where half of the classes are rare. AP is over IoU 0.5 and 0.75.
--slices asks how often a fifth of the images is called better or worse than the rest, though both are of one
population: by the difference of their APs as they are, and at equal size. Everything is seeded.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO
from jaccard_eval.features.bootstrap import REPEATS, paired_deltas, resample, significant_drop
from jaccard_eval.features.bootstrap.intervals import beside_rest, resample_alike, with_verdicts
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, measure_slices
from jaccard_eval.options import Bootstrap, Slice

AP = (MetricRef.parse("AP"),)
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
    frequency: np.ndarray  # of each class
    image: np.ndarray
    label: np.ndarray
    left: np.ndarray
    luck: np.ndarray  # uniform; what both models share


def draw_truth(n_images: int, n_classes: int, rng: np.random.Generator) -> Truth:
    frequency = 1 / np.arange(1, n_classes + 1)
    frequency /= frequency.sum()
    per_image = rng.poisson(OBJECTS_PER_IMAGE, n_images)
    image = np.repeat(np.arange(n_images), per_image)
    left = (np.arange(len(image)) - np.repeat(np.cumsum(per_image) - per_image, per_image)) * 2 * SIDE
    scene = rng.normal(0, 0.15, n_images)[image]  # some images are hard as a whole
    label = rng.choice(n_classes, len(image), p=frequency)
    return Truth(n_images, frequency, image, label, left, rng.random(len(image)) * 0.5 + scene)


def evaluate_model(truth: Truth, ease: float, rng: np.random.Generator) -> DetectionMetrics:
    n, n_classes = len(truth.image), len(truth.frequency)
    found = truth.luck + rng.random(n) * 0.5 < ease
    n_clutter = rng.poisson(CLUTTER_PER_IMAGE * truth.n_images)
    image = np.concatenate([truth.image[found], rng.integers(0, truth.n_images, n_clutter)])
    label = np.concatenate([truth.label[found], rng.choice(n_classes, n_clutter, p=truth.frequency)])
    left = np.concatenate([truth.left[found] + rng.normal(0, 10, found.sum()), np.full(n_clutter, -10 * SIDE)])
    score = np.concatenate([rng.beta(4, 2, found.sum()), rng.beta(2, 4, n_clutter)])
    gt, pred = _boxes(truth.image, truth.label, truth.left), _boxes(image, label, left, score)
    table = match_boxes(gt, pred, PROTOCOL, n_images=truth.n_images, n_labels=n_classes)
    return DetectionMetrics(table, [str(k) for k in range(n_classes)], [str(i) for i in range(truth.n_images)])


def _boxes(image: np.ndarray, label: np.ndarray, left: np.ndarray, score: np.ndarray | None = None) -> BoxTable:
    xywh = np.stack([left, np.zeros_like(left), np.full_like(left, SIDE), np.full_like(left, SIDE)], axis=1)
    return BoxTable.from_arrays(image, label, xywh, score=score, encoding="xywh")


def true_ap(n_classes: int, ease: float) -> float:
    rng = np.random.default_rng(1)
    return float(evaluate_model(draw_truth(LARGE, n_classes, rng), ease, rng).value(AP[0]).value)


def run(n_classes: int, n_images: int, second_ease: float, n_pairs: int, n_resamples: int) -> str:
    settings = Bootstrap(n_resamples=n_resamples)
    gaps, fixed, before, now, methods = [], 0, 0, 0, set()
    for pair in range(n_pairs):
        rng = np.random.default_rng([n_classes, n_images, pair])
        truth = draw_truth(n_images, n_classes, rng)
        models = [evaluate_model(truth, ease, rng) for ease in (EASE, second_ease)]
        drawn = [resample(model, settings, refs=AP, method=None) for model in models]
        (delta,) = paired_deltas(*drawn)
        gaps.append(abs(delta.delta))
        fixed += -delta.delta > TOLERANCE
        now += significant_drop(delta, TOLERANCE)
        methods.add(drawn[0].method)
        if drawn[0].method != REPEATS:
            (delta,) = paired_deltas(*(resample(model, settings, refs=AP, method=REPEATS) for model in models))
        before += significant_drop(delta, TOLERANCE)
    shares = " | ".join(f"{100 * count / n_pairs:.1f} %" for count in (fixed, before, now))
    return f"| {n_classes}, {n_images:,} | {np.quantile(gaps, 0.95):.3f} | {shares} | {' '.join(sorted(methods))} |"


def run_slices(n_classes: int, n_images: int, n_sets: int, n_resamples: int) -> str:
    settings = Bootstrap(n_resamples=n_resamples)
    fifth = Slice(name="fifth", patterns=tuple(map(str, range(n_images // 5))), exact=True)
    draw = partial(resample_alike, refs=AP)
    raw, equal = 0, 0
    for one in range(n_sets):
        rng = np.random.default_rng([n_classes, n_images, one])
        metrics = evaluate_model(draw_truth(n_images, n_classes, rng), EASE, rng)
        (row,) = measure_slices(metrics, [fifth], AP)
        (row,) = with_verdicts([beside_rest(row, metrics, range(n_images // 5), settings, draw)], settings)
        rest = row.rest["AP"]
        others = metrics.restrict(range(n_images // 5, n_images)).value(AP[0]).value
        low, high = rest.interval or (np.nan, np.nan)
        raw += abs(row.values["AP"].value - others) > (high - low) / 2
        equal += rest.verdict in {"better", "worse"}
    shares = " | ".join(f"{100 * count / n_sets:.1f} %" for count in (raw, equal))
    return f"| {n_classes}, {n_images:,} | {shares} |"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[3, 300])
    parser.add_argument("--images", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--slices", action="store_true", help="of slices of one population in place of gates")
    options = parser.parse_args(argv)
    if options.slices:
        print("| classes, images | as they are | at equal size |")
        print("|---|--:|--:|")
        for n_classes in options.classes:
            for n_images in options.images:
                print(run_slices(n_classes, n_images, options.pairs, options.resamples), flush=True)
        return
    for name, ease in (("equal", EASE), ("worse", WORSE_EASE)):
        true = [f"{true_ap(n, EASE):.4f} and {true_ap(n, ease):.4f}" for n in options.classes]
        print(f"{name}: true AP {', '.join(true)}")
        print("| classes, images | 95 % of differences below | fixed | percentiles | now | drawn |")
        print("|---|--:|--:|--:|--:|---|")
        for n_classes in options.classes:
            for n_images in options.images:
                print(run(n_classes, n_images, ease, options.pairs, options.resamples), flush=True)


if __name__ == "__main__":
    main()
