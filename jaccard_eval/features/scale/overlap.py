"""How two boxes overlap, and which two of an image are meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.sides import Sides
from jaccard_eval.errors import UsageError
from jaccard_eval.features.scale import Measure, OverlapMatrix, OverlapResult
from jaccard_eval.features.scale.compute import exchange_rate, require_pixels
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray
from jaccard_eval.similarity.encoding import Floats, clip, edges_of
from jaccard_eval.similarity.iou import box_giou, box_ioa, box_iou
from jaccard_eval.text import did_you_mean, quoted_value


def measure_overlap(
    pred: Sequence[float], gt: Sequence[float], encoding: str = "xyxy", window: Sequence[float] | None = None
) -> dict[str, Any]:
    """Measure how a prediction overlaps a ground truth; the fields of `OverlapResult` that are numbers.

    Both are clipped first to a window, its left, top, right and bottom.
    """
    if window is not None:
        pred, gt = clip([pred, gt], window, encoding=encoding).tolist()
    sides = [edges_of([box], encoding, name=name) for box, name in ((pred, "prediction"), (gt, "ground truth"))]
    corners = [(float(s.left[0]), float(s.top[0]), float(s.right[0]), float(s.bottom[0])) for s in sides]
    areas = [float(side.area[0]) for side in sides]
    (left, top, right, bottom), (gt_left, gt_top, gt_right, gt_bottom) = corners
    width, height = min(right, gt_right) - max(left, gt_left), min(bottom, gt_bottom) - max(top, gt_top)
    # Rounding may put the product above the area of a box that lies in the other.
    common = min(max(width, 0.0) * max(height, 0.0), *areas)
    iou = float(box_iou([pred], [gt], encoding=encoding)[0, 0])
    return {
        "pred": corners[0],
        "gt": corners[1],
        "tp": common,
        "fp": areas[0] - common,
        "fn": areas[1] - common,
        "iou": iou,
        "giou": float(box_giou([pred], [gt], encoding=encoding)[0, 0]),
        "distance": max(1 - iou, 0.0),
        "ioa_pred": float(box_ioa([pred], [gt], over="first", encoding=encoding)[0, 0]),
        "ioa_gt": float(box_ioa([pred], [gt], over="second", encoding=encoding)[0, 0]),
        "exchange_rate": float(exchange_rate(areas[1], areas[1] - common, areas[0] - common)),
        "centre_distance": math.hypot(left + right - gt_left - gt_right, top + bottom - gt_top - gt_bottom) / 2,
        "edge_error": max(abs(a - b) for a, b in zip(*corners, strict=True)),
    }


MEASURES: Mapping[str, Callable[..., Floats]] = {
    "iou": box_iou,
    "ioa": box_ioa,
    "ioa-pred": partial(box_ioa, over="first"),
    "giou": box_giou,
}


def overlap_matrix(
    pred: FloatArray,
    gt: FloatArray,
    by: Measure,
    *,
    encoding: str = "xyxy",
    window: Sequence[float] | None = None,
    version: str,
) -> OverlapMatrix:
    """Measure each prediction (rows) against each ground truth (columns), both clipped to a window first."""
    sides: tuple[Floats, ...] = (pred, gt)
    if window is not None:
        sides = tuple(clip(boxes, window, encoding=encoding) for boxes in sides)
    values = MEASURES[by](*sides, encoding=encoding)
    return OverlapMatrix(version=version, by=by, matrix=tuple(map(tuple, values.tolist())))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two boxes of an image, by their rows in the aligned tables."""

    image: str
    pred: int
    gt: int


def choose_pair(aligned: Alignment, image: str, *, pred_index: int | None = None, gt_index: int | None = None) -> Pair:
    """Return the boxes of an image that are meant: by their index, else those that overlap most, of any class."""
    row = _find_image(aligned.image_names, image)
    preds = _candidates(aligned.pred_table, row, pred_index, "predictions", image)
    gts = _candidates(aligned.gt_table, row, gt_index, "ground-truth boxes", image)
    overlap = box_iou(aligned.pred_table.xywh[preds], aligned.gt_table.xywh[gts], encoding="xywh")
    best = np.unravel_index(int(overlap.argmax()), overlap.shape)
    return Pair(aligned.image_names[row], int(preds[best[0]]), int(gts[best[1]]))


def _find_image(names: Sequence[str], wanted: str) -> int:
    spellings = [(name, PurePosixPath(name).name, PurePosixPath(name).stem) for name in names]
    # The whole name wins over its last part, and that over the part without its suffix.
    for place in range(3):
        found = [row for row, spelling in enumerate(spellings) if spelling[place] == wanted]
        if len(found) == 1:
            return found[0]
    known = [name for name, *parts in spellings if wanted in parts]
    if known:
        listed = ", ".join(map(quoted_value, known[:5]))
        raise UsageError(f"{len(known)} images are named {quoted_value(wanted)}: {listed}. Use the full name")
    raise UsageError(f"no image is named {quoted_value(wanted)}.{did_you_mean(wanted, names)}")


def _candidates(boxes: BoxTable, image: int, index: int | None, what: str, name: str) -> IntArray:
    rows = np.flatnonzero(boxes.image == image)
    if not len(rows):
        raise UsageError(f"image {quoted_value(name)} has no {what}")
    if index is None:
        return rows
    if not 0 <= index < len(rows):
        raise UsageError(f"image {quoted_value(name)} has {len(rows):,} {what}, 0 to {len(rows) - 1}; got {index}")
    return rows[index : index + 1]


def overlap_in_image(
    sides: Sides, image: str, *, pred_index: int | None = None, gt_index: int | None = None, version: str
) -> OverlapResult:
    """Measure two boxes of an image; see `choose_pair` for which, and for the errors."""
    require_pixels(sides)
    aligned = sides.aligned
    pair = choose_pair(aligned, image, pred_index=pred_index, gt_index=gt_index)
    pred, gt = aligned.pred_table, aligned.gt_table
    measured = measure_overlap(pred.xywh[pair.pred].tolist(), gt.xywh[pair.gt].tolist(), "xywh")
    score = "" if pred.score is None else f", score {pred.score[pair.pred]:.4g}"
    return OverlapResult(
        version=version,
        image=pair.image,
        pred_name=f"{aligned.class_names[pred.label[pair.pred]]}{score}",
        gt_name=aligned.class_names[gt.label[pair.gt]],
        findings=sides.findings,
        **measured,
    )
