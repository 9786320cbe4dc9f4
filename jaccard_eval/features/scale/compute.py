"""What scale does to the score: errors, losses, tolerances and the ceiling of a scene, by size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.features.scale.ap_lost import FOUND_IOU, loss_rows
from jaccard_eval.features.scale.ceiling import noise_ceiling
from jaccard_eval.features.scale.displacement import MOVES, SURVIVABLE, displaced_box_iou, displaced_iou, smallest_side
from jaccard_eval.features.scale.placement import placement_rows
from jaccard_eval.features.scale.result import LossRow, PlacementRow, ScaleOptions, SurvivorRow, ToleranceRow
from jaccard_eval.features.scale.sized_sides import Scene, in_range


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleAnalysis:
    """The tables of an analysis of scale; see `data.sensitivity`."""

    losses: tuple[LossRow, ...]
    placement: tuple[PlacementRow, ...]
    tolerance: tuple[ToleranceRow, ...]
    survivors: tuple[SurvivorRow, ...]


def analyse_scale(scene: Scene, options: ScaleOptions) -> ScaleAnalysis:
    """Measure what scale does to the score of a scene.

    Parameters
    ----------
    scene : Scene
    options : ScaleOptions
    """
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
            side = _median_side(boxes.area[inside])
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


def _median_side(areas: FloatArray) -> float:
    return float(np.median(np.sqrt(areas))) if len(areas) else math.nan


def _share(left: FloatArray, iou: float) -> float:
    return float((left >= iou).mean()) if len(left) else math.nan
