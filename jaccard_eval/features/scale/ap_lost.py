"""What average precision is lost to, by size: to boxes that are off, to false positives, to objects not found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.scale.result import LossRow
from jaccard_eval.features.scale.sized_sides import Scene, in_range
from jaccard_eval.metrics.curves import required_hits
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.similarity.edges import close_pairs, closeness

FOUND_IOU = 0.1  # IoU from which an object counts as found; the background threshold t_b of TIDE (Bolya et al. 2020)
EXPLAINING_SHARE = 0.5  # of the loss to localisation, that a tolerance must win back to explain it


def loss_rows(
    scene: Scene, found: DetectionMetrics, pixels: Sequence[float], sigmas: Sequence[float], ceiling: FloatArray
) -> tuple[LossRow, ...]:
    """Split what each size lacks to an average precision of 1; all sizes first.

    Parameters
    ----------
    scene : Scene
    found : DetectionMetrics
        Of the scene, matched at `FOUND_IOU` as its lowest threshold.
    pixels : sequence of float
        Tolerances in px.
    sigmas : sequence of float, length S
    ceiling : ndarray of float64, shape (S, n_rounds, A)
        From `ceiling.noise_ceiling`.

    Notes
    -----
    With AP the average precision of the protocol, F that of the lowest threshold alone, and R what the objects found
    there reach when nothing else is detected: 1 = AP + (F - AP) + (R - F) + (1 - R), the parts being localisation,
    false positives and misses. All are means over the classes that have objects of the size. The threshold is TIDE's,
    the split is not: TIDE repairs one kind of error at a time, and its parts do not add up.
    """
    plain = scene.measure()
    within = edge_tolerance(scene, pixels)
    lowest = found.protocol.iou_thresholds[0]
    rows = []
    for a, area in enumerate(scene.protocol.areas):
        ap = _ap(plain, area.name)
        localised, reach = _ap(found, area.name, lowest), _reach(found, a)
        tolerant = {k: values[a] for k, values in within.items()}
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
                explained_by=_explaining(tolerant, ap, localised),
                ceiling=dict(zip(sigmas, ceiling[:, :, a].mean(axis=1).tolist(), strict=True)),
                ceiling_sd=dict(zip(sigmas, ceiling[:, :, a].std(axis=1).tolist(), strict=True)),
            )
        )
    return tuple(rows)


def edge_tolerance(scene: Scene, pixels: Sequence[float]) -> dict[float, list[float]]:
    """Return the average precision by area range, with matches accepted at an edge error of at most k px, by k.

    Detections are matched as ever, but by the largest distance between an edge and its counterpart in place of IoU:
    the closest free ground truth within k px is taken. An object of any size is so allowed the same error.

    Parameters
    ----------
    scene : Scene
    pixels : sequence of float
        Distinct distances k in px.
    """
    if not pixels:
        return {}
    thresholds = {k: closeness(k) for k in pixels}
    metrics = scene.measure(thresholds=sorted(thresholds.values()), measure=close_pairs)
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


def _explaining(within: Mapping[float, float], ap: float, localised: float) -> float | None:
    wanted = ap + EXPLAINING_SHARE * (localised - ap)
    return next((k for k in sorted(within) if localised > ap and within[k] >= wanted), None)
