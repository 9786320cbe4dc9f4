"""What scale does to the score: what AP is lost to by size, tolerances, and the ceiling of annotation noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.alignment import Sides
from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.features.scale.identities import MOVES, SURVIVABLE, displaced_box_iou, displaced_iou, smallest_side
from jaccard_eval.features.scale.placement import placement_rows
from jaccard_eval.features.scale.result import (
    LossRow,
    PlacementRow,
    ScaleOptions,
    SensitivityResult,
    SurvivorRow,
    ToleranceRow,
)
from jaccard_eval.features.scale.sized_sides import Scene, in_range, make_scene
from jaccard_eval.findings import DataError, Where
from jaccard_eval.metrics.curves import required_hits
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.similarity.boxes import CLOSENESS, closeness


def noise_ceiling(scene: Scene, sigmas: Sequence[float], n_rounds: int, rng: np.random.Generator) -> FloatArray:
    """Return the average precision of the ground truth against itself after its edges were jittered.

    A detector that finds every object exactly where it is reaches no more than this against annotations whose edges
    are off by a normal error of standard deviation sigma; above it, detectors cannot be told apart. Scores are drawn
    at random, for such a detector cannot know which annotation is off.
    """
    # Sorted by image, class and place, so that each object draws the same error however the file is ordered.
    rows = np.flatnonzero(scene.counted)
    x, y, w, h = scene.gt.xywh[rows].T
    truth = scene.gt.take(rows[np.lexsort((h, w, y, x, scene.gt.label[rows], scene.gt.image[rows]))])
    ceiling = np.full((len(sigmas), n_rounds, len(scene.protocol.areas)), np.nan)
    for round_ in range(n_rounds):
        error, score = rng.standard_normal((len(truth), 4)), rng.random(len(truth))
        for s, sigma in enumerate(sigmas):
            found = scene.measure(_jittered(truth, sigma * error, score))
            ceiling[s, round_] = [
                found.value(MetricRef(name="AP", area=area.name)).value for area in scene.protocol.areas
            ]
    return ceiling


def _jittered(truth: BoxTable, error: FloatArray, score: FloatArray) -> BoxTable:
    """Move the edges (left, top, right, bottom); a box that is turned inside out has no area."""
    near = truth.xywh[:, :2] + error[:, :2]
    far = truth.xywh[:, :2] + truth.xywh[:, 2:] + error[:, 2:]
    xywh = np.concatenate((near, np.maximum(far - near, 0)), axis=1)
    return freeze(replace(truth, xywh=xywh, area=xywh[:, 2] * xywh[:, 3], score=score))


FOUND_IOU = 0.1  # IoU from which an object counts as found; the background threshold t_b of TIDE (Bolya et al. 2020)
EXPLAINING_SHARE = 0.5  # of the loss to localisation, that a tolerance must win back to explain it


def loss_rows(
    scene: Scene, found: DetectionMetrics, pixels: Sequence[float], sigmas: Sequence[float], ceiling: FloatArray
) -> tuple[LossRow, ...]:
    """Split what each size lacks to an average precision of 1; all sizes first."""
    plain = scene.measure()
    within = edge_tolerance(scene, pixels)
    lowest = found.protocol.iou_thresholds[0]
    rows = []
    for a, area in enumerate(scene.protocol.areas):
        ap = _ap(plain, area.name)
        localised, reach = _ap(found, area.name, lowest), _reach(found, a)
        tolerant = {k: values[a] for k, values in within.items()}
        # The least tolerance that wins back enough of what is lost to localisation explains the loss.
        wanted = ap + EXPLAINING_SHARE * (localised - ap)
        explaining = next((k for k in sorted(tolerant) if localised > ap and tolerant[k] >= wanted), None)
        sides = np.sqrt(scene.gt.area[scene.counted & in_range(scene.gt, area)])
        rows.append(
            LossRow(
                size=area.name,
                gt=len(sides),
                side=float(np.median(sides)) if len(sides) else math.nan,
                ap=ap,
                localisation=localised - ap,
                false_positives=reach - localised,
                misses=1 - reach,
                within=tolerant,
                explained_by=explaining,
                ceiling=dict(zip(sigmas, ceiling[:, :, a].mean(axis=1).tolist(), strict=True)),
                ceiling_sd=dict(zip(sigmas, ceiling[:, :, a].std(axis=1).tolist(), strict=True)),
            )
        )
    return tuple(rows)


def edge_tolerance(scene: Scene, pixels: Sequence[float]) -> dict[float, list[float]]:
    """Return the average precision by area range, with matches accepted at an edge error of at most k px, by k.

    Detections are matched as ever, but by the largest distance between an edge and its counterpart in place of IoU:
    the closest free ground truth within k px is taken. An object of any size is so allowed the same error.
    """
    if not pixels:
        return {}
    thresholds = {k: closeness(k) for k in pixels}
    metrics = scene.measure(thresholds=sorted(thresholds.values()), similarity=CLOSENESS)
    return {k: [_ap(metrics, area.name, at) for area in scene.protocol.areas] for k, at in thresholds.items()}


def _ap(metrics: DetectionMetrics, area: str, threshold: float | None = None) -> float:
    return metrics.value(MetricRef(name="AP", iou=threshold, area=area)).value


def _reach(found: DetectionMetrics, area: int) -> float:
    """Average precision that what is found at the lowest threshold would have without any false positive."""
    curves, grid = found.curves, found.protocol.recall_grid
    positives = curves.positives[area]  # (K,)
    hits = curves.hit_counts(area, len(curves.caps) - 1)[0]  # (K,)
    if found.protocol.interpolation == "area":
        reached = hits / np.maximum(positives, 1)
    else:
        reached = (required_hits(positives, grid) <= hits[:, None]).mean(axis=1)
    return float(reached[positives > 0].mean()) if positives.any() else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleAnalysis:
    """The tables of an analysis of scale; see `data.sensitivity`."""

    losses: tuple[LossRow, ...]
    placement: tuple[PlacementRow, ...]
    tolerance: tuple[ToleranceRow, ...]
    survivors: tuple[SurvivorRow, ...]


def analyse_scale(scene: Scene, options: ScaleOptions) -> ScaleAnalysis:
    """Measure what scale does to the score of a scene."""
    thresholds = sorted({FOUND_IOU, options.pair_iou})
    found = scene.measure(thresholds=thresholds)
    rng = np.random.default_rng(options.seed)
    ceiling = noise_ceiling(scene, options.sigmas, options.n_rounds, rng)
    return ScaleAnalysis(
        losses=loss_rows(scene, found, options.pixels, options.sigmas, ceiling),
        placement=placement_rows(scene, found.table, thresholds.index(options.pair_iou)),
        tolerance=tolerance_rows(scene, options.pixels, options.ious),
        survivors=survivor_rows(options.pixels, options.ious),
    )


def tolerance_rows(scene: Scene, pixels: Sequence[float], ious: Sequence[float]) -> tuple[ToleranceRow, ...]:
    """Return what displacements leave of the ground truth that counts, by size; all sizes first."""
    boxes = scene.gt.take(scene.counted)
    chosen = [in_range(boxes, area) for area in scene.protocol.areas]
    rows = []
    for displacement, k in itertools.product(MOVES, pixels):
        left = displaced_box_iou(boxes.xywh, k, displacement)
        for area, inside in zip(scene.protocol.areas, chosen, strict=True):
            # The typical object of a size is the square that has the median side.
            side = float(np.median(np.sqrt(boxes.area[inside]))) if inside.any() else math.nan
            rows.append(
                ToleranceRow(
                    size=area.name,
                    displacement=displacement,
                    pixels=k,
                    typical=float(displaced_iou(side, side, k, displacement)),
                    mean=float(left[inside].mean()) if inside.any() else math.nan,
                    surviving={iou: _share(left[inside], iou) for iou in ious},
                )
            )
    return tuple(rows)


def survivor_rows(pixels: Sequence[float], ious: Sequence[float]) -> tuple[SurvivorRow, ...]:
    """Return the smallest squares that survive each distance at each threshold."""
    return tuple(
        SurvivorRow(pixels=k, iou=iou, side={name: smallest_side(k, iou, name) for name in SURVIVABLE})
        for k, iou in itertools.product(pixels, ious)
    )


def _share(left: FloatArray, iou: float) -> float:
    return float((left >= iou).mean()) if len(left) else math.nan


def analyse_sides(sides: Sides, protocol: Protocol, options: ScaleOptions, *, version: str) -> SensitivityResult:
    """Analyse what the size of objects does to the score; `version` is that of the tool."""
    require_pixels(sides)
    aligned = sides.aligned
    scene = make_scene(
        aligned.gt,
        aligned.pred,
        protocol,
        n_images=len(aligned.image_names),
        class_names=aligned.class_names,
        n_bins=options.bins,
        edges=options.edges,
    )
    found = analyse_scale(scene, options)
    choices = ("kind=sensitivity", f"found={FOUND_IOU:g}", *options.chosen())
    gt, pred = sides.summaries()
    return SensitivityResult(
        protocol=scene.protocol,
        options=options,
        signature=sides.sign(scene.protocol, *choices, version=version),
        version=version,
        gt=gt,
        pred=pred,
        correspondence=aligned.correspondence,
        losses=found.losses,
        placement=found.placement,
        tolerance=found.tolerance,
        survivors=found.survivors,
        findings=sides.findings,
    )


def require_pixels(sides: Sides) -> None:
    """Raise a DataError when boxes are fractions of images whose size is unknown."""
    if sides.aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            "errors are measured in pixels, but boxes are normalised and image sizes unknown",
            fix="Give the pictures with --images DIR.",
        )
