"""How the boxes of found objects are off, by class and by size."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.features.scale.box_errors import BoxErrors, box_errors
from jaccard_eval.features.scale.result import PlacementRow
from jaccard_eval.features.scale.sized_sides import Scene, in_range
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray, stable_order

MEANS = ("iou", "missing", "extra", "shift_loss", "size_loss")
MEDIANS = (
    "dx",
    "dy",
    "dx_relative",
    "dy_relative",
    "width_error",
    "height_error",
    "width_ratio",
    "height_ratio",
    "edge_error",
)
SIGNED = ("dx", "dy", "width_error", "height_error")
SIGN_TEST_Z = 2.576  # two-sided 1 %: many classes are looked at


def placement_rows(scene: Scene, table: MatchTable, threshold: int) -> tuple[PlacementRow, ...]:
    """Return the errors of matched pairs: over all, by size, by class, and by class and size where there are any.

    Parameters
    ----------
    scene : Scene
    table : MatchTable
        Of the scene.
    threshold : int
        Place of the threshold at which the pairs are taken, over all sizes.
    """
    pred, gt = matched_pairs(table, threshold)
    errors = box_errors(scene.gt.xywh[gt], scene.pred.xywh[pred])
    truth = scene.gt.take(gt)
    sizes = {area.name: in_range(truth, area) for area in scene.bins}
    everything = np.arange(len(gt))
    rows = [_row(errors, None, None)]
    rows += [_row(errors.take(everything[inside]), None, size) for size, inside in sizes.items()]
    by_class = list(_by_class(truth.label.astype(np.int64), scene.class_names))
    rows += [_row(errors.take(pairs), name, None) for name, pairs in by_class]
    for name, pairs in by_class:
        chosen = {size: pairs[inside[pairs]] for size, inside in sizes.items()}
        rows += [_row(errors.take(some), name, size) for size, some in chosen.items() if len(some)]
    return tuple(rows)


def matched_pairs(table: MatchTable, threshold: int) -> tuple[IntArray, IntArray]:
    """Return the source rows of true positives and the rows of the ground truth they match, over all sizes."""
    choice = table.choice[0, threshold]
    taken = choice[(choice >= 0) & ~table.ignored_match(0)[threshold]]
    return table.source[table.pair_detection[taken]], table.pair_gt[taken]


def _by_class(label: IntArray, names: tuple[str, ...]) -> Iterator[tuple[str, IntArray]]:
    order = stable_order(label)
    bounds = np.searchsorted(label[order], np.arange(len(names) + 1))
    for k, name in enumerate(names):
        yield name, order[bounds[k] : bounds[k + 1]]


def _row(errors: BoxErrors, class_name: str | None, size: str | None) -> PlacementRow:
    return PlacementRow(
        class_name=class_name,
        size=size,
        n=len(errors),
        **{name: _mean(getattr(errors, name)) for name in MEANS},
        **{name: _median(getattr(errors, name)) for name in MEDIANS},
        consistent=tuple(name for name in SIGNED if _is_consistent(getattr(errors, name))),
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _is_consistent(values: FloatArray) -> bool:
    """Sign test with continuity correction: whether more errors have one sign than chance allows."""
    above, below = int((values > 0).sum()), int((values < 0).sum())
    return abs(above - below) - 1 >= SIGN_TEST_Z * math.sqrt(above + below) > 0
