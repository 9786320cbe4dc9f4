"""Random scenes with crowds, sizes and equal scores, the same with images repeated as copies; made-up differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pictures import Picture, det, evaluate, gt

from jaccard_eval.data.document import Interval
from jaccard_eval.data.result import EvaluationResult, PairedDelta

CLASSES = ("cat", "dog", "fox")
Scene = tuple[list[Picture], list[Picture]]


def draw_scene(seed: int, n_images: int = 6) -> Scene:
    """Draw ground truth and detections near it or anywhere; scores are equal between images, never within one."""
    rng = np.random.default_rng(seed)
    truth, detections = [], []
    for i in range(n_images):
        scores = iter(rng.permutation(30) / 30)
        for name in rng.choice(CLASSES, rng.integers(0, 5)):
            box = [*rng.integers(0, 200, 2), *rng.choice([20, 50, 120], 2)]
            truth.append(gt(_text(name, box), f"i{i}", crowd=bool(rng.random() < 0.15)))
            near = [box + rng.integers(-4, 5, 4) for _ in range(rng.integers(0, 3))]
            detections += [det(_text(name, one), next(scores), f"i{i}") for one in near]
        for name in rng.choice(CLASSES, rng.integers(0, 3)):
            box = [*rng.integers(0, 200, 2), *rng.choice([20, 50, 120], 2)]
            detections.append(det(_text(name, box), next(scores), f"i{i}"))
    return truth, detections


def difference(
    base: float, value: float, interval: Interval, *, ref: str = "AP", probability: float, detectable: float
) -> PairedDelta:
    """Make up what nine resamples of two runs say."""
    return PairedDelta(
        ref=ref,
        base=base,
        value=value,
        delta=round(value - base, 12),
        interval=interval,
        probability=probability,
        detectable=detectable,
        n_resamples=9,
    )


def repeat_images(scene: Scene, weights: Sequence[int], **options: Any) -> EvaluationResult:
    """Evaluate the scene with each image as often as its weight says; its copies stand next to each other."""
    truth, detections = ([copy for box in boxes for copy in _copies(box, weights)] for boxes in scene)
    images = [f"i{i}.{copy}" for i, weight in enumerate(weights) for copy in range(weight)]
    return evaluate(truth, detections, images=images, names=CLASSES, **options)


def as_drawn(scene: Scene, n_images: int = 6, **options: Any) -> EvaluationResult:
    """Evaluate the scene as it is."""
    return evaluate(*scene, images=[f"i{i}" for i in range(n_images)], names=CLASSES, **options)


def _text(name: str, box: Sequence[int]) -> str:
    return f"{name} {' '.join(map(str, box))}"


def _copies(box: Picture, weights: Sequence[int]) -> list[Picture]:
    return [replace(box, image=f"{box.image}.{copy}") for copy in range(weights[int(box.image[1:])])]
