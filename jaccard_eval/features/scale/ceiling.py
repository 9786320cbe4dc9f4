"""The annotation-noise ceiling: what average precision the ground truth itself reaches under jitter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.scale.sized_sides import Scene


def noise_ceiling(scene: Scene, sigmas: Sequence[float], n_rounds: int, rng: np.random.Generator) -> FloatArray:
    """Return the average precision of the ground truth against itself after its edges were jittered.

    A detector that finds every object exactly where it is reaches no more than this against annotations whose edges
    are off by a normal error of standard deviation sigma; above it, detectors cannot be told apart. Scores are drawn
    at random, for such a detector cannot know which annotation is off.

    Parameters
    ----------
    scene : Scene
        Its predictions are not used.
    sigmas : sequence of float, length S
        In px, for every edge independently.
    n_rounds : int
    rng : numpy.random.Generator
        Drawn from once per round, whatever the sigmas, so that they share their draws. The order of rows in a file
        changes nothing.

    Returns
    -------
    ndarray of float64, shape (S, n_rounds, A)
        By area range of the scene, the first one holding all sizes; NaN where there is no ground truth.
    """
    truth = scene.gt.take(_canonical_order(scene))
    ceiling = np.full((len(sigmas), n_rounds, len(scene.protocol.areas)), np.nan)
    for round_ in range(n_rounds):
        error, score = rng.standard_normal((len(truth), 4)), rng.random(len(truth))
        for s, sigma in enumerate(sigmas):
            found = scene.measure(_jittered(truth, sigma * error, score))
            ceiling[s, round_] = [
                found.value(MetricRef(name="AP", area=area.name)).value for area in scene.protocol.areas
            ]
    return ceiling


def _canonical_order(scene: Scene) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the ground truth that counts, sorted by image, class and place."""
    rows = np.flatnonzero(scene.counted)
    x, y, w, h = scene.gt.xywh[rows].T
    return rows[np.lexsort((h, w, y, x, scene.gt.label[rows], scene.gt.image[rows]))]


def _jittered(truth: BoxTable, error: FloatArray, score: FloatArray) -> BoxTable:
    """Move the edges (left, top, right, bottom); a box that is turned inside out has no area."""
    near = truth.xywh[:, :2] + error[:, :2]
    far = truth.xywh[:, :2] + truth.xywh[:, 2:] + error[:, 2:]
    xywh = np.concatenate((near, np.maximum(far - near, 0)), axis=1)
    return freeze(replace(truth, xywh=xywh, area=xywh[:, 2] * xywh[:, 3], score=score))
