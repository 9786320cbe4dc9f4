"""How the boxes of found objects are off: missing and extra area, shift and size, by class and by size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.features.scale.result import PlacementRow
from jaccard_eval.features.scale.sized_sides import Scene, in_range
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.order import IntArray, stable_order


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BoxErrors:
    """Errors of matched pairs, one entry each; y grows downward.

    The loss 1 - IoU is split twice. By area: `missing` + `extra`, the shares p / (|B| + q) and q / (|B| + q) of the
    union. By cause: `shift_loss` + `size_loss`.
    """

    # shape (n,) each: in [0, 1]
    iou: FloatArray
    missing: FloatArray
    extra: FloatArray
    # shape (n,) each: each cause's Shapley share of the loss: the mean of what it costs alone and of what it adds to
    # the other one
    shift_loss: FloatArray
    size_loss: FloatArray
    # shape (n,) each: centre of the prediction minus centre of the ground truth, in px; positive: too far right, too
    # low
    dx: FloatArray
    dy: FloatArray
    # shape (n,) each: the same in widths and heights of the ground truth
    dx_relative: FloatArray
    dy_relative: FloatArray
    # shape (n,) each: side of the prediction minus that of the ground truth, in px
    width_error: FloatArray
    height_error: FloatArray
    # shape (n,) each: side of the prediction over that of the ground truth
    width_ratio: FloatArray
    height_ratio: FloatArray
    edge_error: FloatArray  # shape (n,): largest distance in px between an edge and its counterpart

    def __len__(self) -> int:
        return len(self.iou)

    def take(self, rows: IntArray) -> BoxErrors:
        """Return the errors of some pairs."""
        return BoxErrors(**{name: getattr(self, name)[rows] for name in self.__slots__})


def box_errors(gt: FloatArray, pred: FloatArray) -> BoxErrors:
    """Measure the errors of predictions, each against the ground truth of its row.

    Ten by ten pixels, found at their place but twice as wide:

    >>> import numpy as np
    >>> one = box_errors(np.array([[0.0, 0, 10, 10]]), np.array([[-5.0, 0, 20, 10]]))
    >>> one.extra.tolist(), one.size_loss.tolist(), one.width_ratio.tolist()
    ([0.5], [0.5], [2.0])
    """
    area, union = _areas(gt, pred)
    common = (gt[:, 2] * gt[:, 3] + area) - union
    loss = 1 - common / union
    shift, size = (pred[:, :2] + pred[:, 2:] / 2) - (gt[:, :2] + gt[:, 2:] / 2), pred[:, 2:] - gt[:, 2:]  # (n, 2)
    moved = np.concatenate((gt[:, :2] + shift, gt[:, 2:]), axis=1)
    resized = np.concatenate((gt[:, :2] - size / 2, pred[:, 2:]), axis=1)
    shift_alone, size_alone = _loss(gt, moved), _loss(gt, resized)
    edges = np.concatenate((pred[:, :2] - gt[:, :2], pred[:, :2] + pred[:, 2:] - (gt[:, :2] + gt[:, 2:])), axis=1)
    relative, ratio = shift / gt[:, 2:], pred[:, 2:] / gt[:, 2:]
    return BoxErrors(
        iou=common / union,
        missing=(gt[:, 2] * gt[:, 3] - common) / union,
        extra=(area - common) / union,
        shift_loss=(shift_alone + loss - size_alone) / 2,
        size_loss=(size_alone + loss - shift_alone) / 2,
        dx=shift[:, 0],
        dy=shift[:, 1],
        dx_relative=relative[:, 0],
        dy_relative=relative[:, 1],
        width_error=size[:, 0],
        height_error=size[:, 1],
        width_ratio=ratio[:, 0],
        height_ratio=ratio[:, 1],
        edge_error=np.abs(edges).max(axis=1, initial=0.0),
    )


def _areas(gt: FloatArray, pred: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the area of the prediction and of the union."""
    near = np.maximum(gt[:, :2], pred[:, :2])
    far = np.minimum(gt[:, :2] + gt[:, 2:], pred[:, :2] + pred[:, 2:])
    common = np.prod(np.maximum(far - near, 0), axis=1)
    area = pred[:, 2] * pred[:, 3]
    return area, (gt[:, 2] * gt[:, 3] + area) - common


def _loss(gt: FloatArray, pred: FloatArray) -> FloatArray:
    area, union = _areas(gt, pred)
    return np.asarray(1 - ((gt[:, 2] * gt[:, 3] + area) - union) / union)


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
    """Return the errors of matched pairs: over all, by size, by class, and by class and size where there are any."""
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
    means = {name: float(getattr(errors, name).mean()) if len(errors) else math.nan for name in MEANS}
    medians = {name: float(np.median(getattr(errors, name))) if len(errors) else math.nan for name in MEDIANS}
    return PlacementRow(
        class_name=class_name,
        size=size,
        n=len(errors),
        **means,
        **medians,
        consistent=tuple(name for name in SIGNED if _is_consistent(getattr(errors, name))),
    )


def _is_consistent(values: FloatArray) -> bool:
    """Sign test with continuity correction: whether more errors have one sign than chance allows."""
    above, below = int((values > 0).sum()), int((values < 0).sum())
    return abs(above - below) - 1 >= SIGN_TEST_Z * math.sqrt(above + below) > 0
