"""Non-maximum suppression by IoU or coverage: of whole tables, with what it gives; of arrays also soft or merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, array_of
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import Also, written_as
from jaccard_eval.data.result import Result
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import Blocks, IntArray, descending_order, stable_order
from jaccard_eval.matching.matchtable import expand
from jaccard_eval.progress import staged
from jaccard_eval.similarity.boxes import (
    Corners,
    Rivals,
    clusters,
    covering_pairs,
    decay_scores,
    keep_unrivalled,
    overlapping_pairs,
    weighted_means,
)
from jaccard_eval.similarity.encoding import edges_of, encode, four_numbers
from jaccard_eval.similarity.obb import Quads, QuadSide, covering_quads, quad_pairs
from jaccard_eval.text import did_you_mean, quoted_value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCounts:
    """Boxes of one class before and after; `below` of those that went had too low a score."""

    name: str = field(metadata=written_as("class"))
    before: int
    after: int
    below: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuppressionResult(Result):
    """The counts of one suppression."""

    version: str
    # path, output, format: what was read, where it was written, in which format
    path: str = field(metadata=written_as("inputs.pred.path"))
    output: str
    format: str = field(metadata=written_as("inputs.pred.format"))
    rule: Mapping[str, str | float | bool]  # the overlap, and whatever else the outcome depends on
    classes: tuple[ClassCounts, ...] = field(metadata=written_as("per_class"))  # in the order of the input
    findings: tuple[Finding, ...] = ()  # warnings and notes of reading and writing

    kind: ClassVar[str] = "suppression"
    reported_by: ClassVar[str] = "nms.report"
    also: ClassVar[Also] = (
        lambda result: {f"total.{name}": getattr(result.total, name) for name in ("before", "after", "below")},
    )

    def __post_init__(self) -> None:
        named = {"by", "class_agnostic"}
        numbers = [value for name, value in self.rule.items() if name not in named]
        if not named <= set(self.rule) or not all(type(value) in (int, float) for value in numbers):
            raise UsageError(f"the rule needs by and class_agnostic, and numbers; got {dict(self.rule)}")

    def _summary(self) -> str:
        total = self.total
        return f"NMS by {self.rule['by']}: {total.before:,} boxes, {total.after:,} left"

    @property
    def per_class(self) -> tuple[ClassCounts, ...]:
        """The classes, by the name that reports know them by."""
        return self.classes

    @property
    def total(self) -> ClassCounts:
        """The counts of all classes together."""
        sums = {name: sum(getattr(row, name) for row in self.classes) for name in ("before", "after", "below")}
        return ClassCounts(name="all", **sums)


OVERLAPS = {"iou": overlapping_pairs, "ioa": covering_pairs}
OVERLAPS_OF_QUADS = {"iou": quad_pairs, "ioa": covering_quads}
SOFT_METHODS = ("linear", "gaussian")
METHODS = ("hard", *SOFT_METHODS, "weighted")
SWEEP_PAIRS_PER_BOX = 200  # of one image and class, from which on sorting by left edges costs less than pairing all


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """How boxes are suppressed."""

    # In [0, 1]; boxes that overlap by more are rivals. Gaussian decay has no threshold and does without.
    iou: float = 0.5
    # What overlap is: intersection over union, or over the area of the smaller box
    by: str = "iou"
    # What a box does to its worse rivals: it removes them; it multiplies their scores by 1 - overlap, or by
    # exp(-overlap² / sigma); or it removes them and takes the mean of their coordinates and its own, weighted by
    # their scores
    method: str = "hard"
    # Of the gaussian. The default is that of Bodla et al. (2017), section 4.
    sigma: float = 0.5
    # Boxes with a decayed score below this are removed; the default is that of the code of Bodla et al
    score_min: float = 0.001

    def __post_init__(self) -> None:
        if not 0 <= self.iou <= 1:
            raise UsageError(f"iou must be between 0 and 1, got {quoted_value(self.iou)}")
        if not (self.sigma > 0 and np.isfinite(self.sigma)):
            raise UsageError(f"sigma must be a positive number, got {quoted_value(self.sigma)}")
        for name, value, known in (("by", self.by, tuple(OVERLAPS)), ("method", self.method, METHODS)):
            if value not in known:
                meant = did_you_mean(str(value), known)
                raise UsageError(f"{name} is {quoted_value(value)}; choose from {', '.join(known)}.{meant}")


@dataclass(frozen=True, slots=True, eq=False)
class RankedBoxes:
    """Boxes with their scores; only boxes of equal key (n,) can be rivals."""

    corners: Corners
    scores: FloatArray
    key: IntArray
    quads: Quads | None = None  # within the corners, which these boxes are then compared by

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Which boxes stay (n,), the scores (n,) and xyxy coordinates (n, 4) that they have then, and which moved (n,)."""

    kept: BoolArray
    scores: FloatArray
    xyxy: FloatArray
    moved: BoolArray


@staged("suppressing")
def suppress(boxes: BoxTable, rule: Suppression, *, class_agnostic: bool = False) -> BoxTable:
    """Return the boxes that suppression leaves, in the order of the table."""
    if boxes.score is None:
        raise UsageError("NMS needs scores, and these boxes have none")
    # Rivals have one key: the image, or image and class in one whole number.
    key = boxes.image.astype(np.int64)
    if not class_agnostic:
        key = key * (int(boxes.label.max(initial=0)) + 1) + boxes.label
    shapes: object = boxes.shapes
    # Masks and poses are suppressed by the boxes around them, as most detectors do it.
    quads = shapes if isinstance(shapes, Quads) else None
    xywh = boxes.xywh if quads is None else quads.bounds()
    return boxes.take(resolve(RankedBoxes(Corners.of(xywh), boxes.score, key, quads), rule).kept)


def resolve(ranked: RankedBoxes, rule: Suppression) -> Outcome:
    """Suppress."""
    corners, scores = ranked.corners, ranked.scores
    xyxy = np.stack((corners.left, corners.top, corners.right, corners.bottom), axis=1)
    if rule.method != "hard" and len(scores) and scores.min() < 0:
        raise UsageError(f"{rule.method} NMS needs scores of at least 0; the lowest is {scores.min():g}")
    rivals = _find_rivals(ranked, rule)
    unmoved = np.zeros(len(ranked), dtype=np.bool_)
    if rule.method in SOFT_METHODS:
        # Bodla et al. (2017), section 3. Rounding may put an overlap just above 1: no factor is below 0.
        linear = rule.method == "linear"
        decay = np.maximum(1 - rivals.overlap, 0) if linear else np.exp(-(rivals.overlap**2) / rule.sigma)
        scores = decay_scores(rivals, scores, decay)
        return Outcome(scores >= rule.score_min, scores, xyxy, unmoved)
    kept = keep_unrivalled(rivals, len(ranked))
    if rule.method == "hard":
        return Outcome(kept, scores, xyxy, unmoved)
    merged = weighted_means(xyxy, scores, clusters(rivals, kept))
    return Outcome(kept, scores, merged, (merged != xyxy).any(axis=1))


def _find_rivals(ranked: RankedBoxes, rule: Suppression) -> Rivals:
    """Pair the boxes of equal key that overlap by more than the threshold, by the rank of the better box."""
    order, blocks = _blocks(ranked)
    find: Callable[..., tuple[IntArray, IntArray, FloatArray]]
    if ranked.quads is None:
        sides = ("left", "top", "right", "bottom", "area")
        ordered = Corners(*(getattr(ranked.corners, name)[order] for name in sides))
        find = partial(OVERLAPS[rule.by], ordered, ordered)
    else:
        turned = QuadSide.of(ranked.quads.take(order))
        find = partial(OVERLAPS_OF_QUADS[rule.by], turned, turned)
    # More than, not at least, as torchvision has it. Gaussian decay has no threshold: any overlap counts.
    threshold = float(np.nextafter(0.0 if rule.method == "gaussian" else rule.iou, np.inf))
    chunks = [find(i, j, threshold=threshold) for i, j in expand(blocks)]
    i, j, overlaps = (np.concatenate(column) for column in zip(*chunks, strict=True))
    by_score = descending_order(ranked.scores)
    rank = np.empty(len(ranked), dtype=np.int64)
    rank[by_score] = np.arange(len(ranked))
    first, second = rank[order[i]], rank[order[j]]
    better, worse = np.minimum(first, second), np.maximum(first, second)
    served = np.lexsort((worse, better))
    return Rivals(by_score[better[served]], by_score[worse[served]], overlaps[served])


def _blocks(ranked: RankedBoxes) -> tuple[IntArray, Blocks]:
    """Return an order of the boxes, and for each place in it those of the same key that come later and may overlap."""
    order = stable_order(ranked.key)
    key = ranked.key[order]
    later = np.arange(1, len(order) + 1)
    stop = Blocks.of(key, key).stop
    if int((stop - later).sum()) <= SWEEP_PAIRS_PER_BOX * len(order):
        return order, Blocks(later, stop)
    # Crowded images are swept from left to right: in the order by key, then left edge, a box meets only those that
    # start before it ends. Edges are replaced by their ranks, so that a key and an edge make one whole number.
    corners, n = ranked.corners, len(order)
    by_left = np.argsort(corners.left, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[by_left] = np.arange(n)
    base = np.unique(ranked.key, return_inverse=True)[1] * (n + 1)  # n + 1 places per key
    starts, ends = base + place, base + np.searchsorted(corners.left[by_left], corners.right)
    order = stable_order(starts)
    return order, Blocks(later, np.maximum(np.searchsorted(starts[order], ends[order]), later))


def nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    iou: float = 0.5,
    by: str = "iou",
    encoding: str = "xyxy",
) -> IntArray:
    """Return the boxes that stay when each, the best first, removes the worse ones it overlaps by more than `iou`.

    Parameters
    ----------
    boxes : array_like, shape (n, 4)
    scores : array_like, shape (n,)
        Of equal scores, the earlier row is the better one.
    labels, images : array_like, shape (n,), optional
        Numbers or texts; boxes of different classes or images never touch each other. None: all are of one.
    iou : float
        In [0, 1]; at exactly this overlap both boxes stay.
    by : {"iou", "ioa"}
        What overlap is: intersection over union, or over the area of the smaller box.
    encoding : {"xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm"}

    Returns
    -------
    ndarray of int64, shape (k,)
        Rows that stay, by descending score, ties by row.

    Raises
    ------
    UsageError
        When shapes differ, a number is not finite, a box ends before it starts, or an option is unknown.

    Notes
    -----
    Source: Felzenszwalb et al. (2010), "Object Detection with Discriminatively Trained Part-Based Models", section
    4.2; more than the threshold, not at least, as in torchvision.

    Examples
    --------
    >>> nms([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10]], [0.8, 0.9, 0.7], iou=0.6).tolist()
    [1, 2]
    """
    ranked = _rank(boxes, scores, labels, images, encoding)
    kept = resolve(ranked, Suppression(iou=iou, by=by)).kept
    return _served(ranked.scores, np.flatnonzero(kept))


def soft_nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    method: str = "gaussian",
    sigma: float = 0.5,
    iou: float = 0.5,
    by: str = "iou",
    score_min: float = 0.001,
    encoding: str = "xyxy",
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the boxes whose scores outlast decay: each, the best of the rest first, lowers those that it overlaps.

    Parameters
    ----------
    boxes, scores, labels, images, by, encoding
        As in `nms`; scores must not be negative.
    method : {"gaussian", "linear"}
        Multiply by exp(-overlap² / sigma), for any overlap; or by 1 - overlap where it exceeds `iou`.
    sigma : float
        Of the gaussian.
    iou : float
        Threshold of the linear decay.
    score_min : float
        Boxes with a decayed score below this are removed.

    Returns
    -------
    rows : ndarray of int64, shape (k,)
        Rows that stay, by descending decayed score, ties by row.
    scores : ndarray of float64, shape (k,)
        Their decayed scores.

    Raises
    ------
    UsageError
        As in `nms`, and when a score is negative.

    Notes
    -----
    Source: Bodla et al. (2017), "Soft-NMS: Improving Object Detection With One Line of Code", equations in section 3.

    Examples
    --------
    >>> rows, scores = soft_nms([[0, 0, 10, 10], [0, 0, 10, 5]], [0.9, 0.8], method="linear", iou=0.4)
    >>> rows.tolist(), scores.tolist()
    ([0, 1], [0.9, 0.4])
    """
    if method not in ("gaussian", "linear"):
        raise UsageError(f"method is {quoted_value(method)}; choose from gaussian, linear")
    ranked = _rank(boxes, scores, labels, images, encoding)
    outcome = resolve(ranked, Suppression(iou=iou, by=by, method=method, sigma=sigma, score_min=score_min))
    rows = _served(outcome.scores, np.flatnonzero(outcome.kept))
    return rows, outcome.scores[rows]


def weighted_nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    iou: float = 0.5,
    by: str = "iou",
    encoding: str = "xyxy",
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the boxes that `nms` keeps, each moved to the mean of itself and the boxes it removed, by their scores.

    A removed box belongs to the best of the boxes that removed it. The score stays that of the best box. A box that
    removed nothing, or a cluster whose scores are all 0, stays where it is.

    Parameters
    ----------
    boxes, scores, labels, images, iou, by, encoding
        As in `nms`; scores must not be negative.

    Returns
    -------
    rows : ndarray of int64, shape (k,)
        Rows that stay, by descending score, ties by row.
    boxes : ndarray of float64, shape (k, 4)
        Their merged coordinates, in `encoding`.

    Raises
    ------
    UsageError
        As in `nms`, and when a score is negative.

    Notes
    -----
    Source: the mean is that of Solovyev, Wang and Gabruseva (2021), "Weighted boxes fusion", section 3, equations 2
    and 3. Unlike there, clusters are those of suppression (they do not drift with the mean), all boxes come from one
    model, and the score is not rescaled.

    Examples
    --------
    >>> rows, boxes = weighted_nms([[0, 0, 10, 10], [0, 0, 10, 6]], [0.6, 0.2])
    >>> rows.tolist(), boxes.tolist()
    ([0], [[0.0, 0.0, 10.0, 9.0]])
    """
    ranked = _rank(boxes, scores, labels, images, encoding)
    outcome = resolve(ranked, Suppression(iou=iou, by=by, method="weighted"))
    rows = _served(ranked.scores, np.flatnonzero(outcome.kept))
    left, top, right, bottom = outcome.xyxy[rows].T
    merged = encode(left, top, right, bottom, encoding)
    # A box that did not move has its own four numbers again: encoding them once more could cost the last bit.
    return rows, np.where(outcome.moved[rows, None], merged, four_numbers(boxes)[rows])


def _rank(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None,
    images: npt.ArrayLike | None,
    encoding: str,
) -> RankedBoxes:
    edges = edges_of(boxes, encoding)
    n = len(edges)
    column = array_of(scores, "scores")
    if column.dtype.kind not in "biuf" or column.shape != (n,) or not np.isfinite(column).all():
        raise UsageError(f"scores must be {n} finite numbers, one per box; got shape {column.shape}, {column.dtype}")
    key = _codes(images, n, "images")
    classes = _codes(labels, n, "labels")
    sides = (edges.left, edges.top, edges.right, edges.bottom, edges.area)
    corners = Corners(*(side.astype(np.float64) for side in sides))
    return RankedBoxes(corners, column.astype(np.float64), key * (int(classes.max(initial=0)) + 1) + classes)


def _codes(values: npt.ArrayLike | None, n: int, name: str) -> IntArray:
    """Return a number from 0 for each distinct value of a column."""
    if values is None:
        return np.zeros(n, dtype=np.int64)
    column = array_of(values, name)
    if column.shape != (n,):
        raise UsageError(f"{name} has shape {column.shape}; expected ({n},), one per box")
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


def _served(scores: npt.NDArray[np.float64], rows: IntArray) -> IntArray:
    """Return rows by descending score, ties by row."""
    return rows[descending_order(scores[rows])]


def suppress_side(
    pred: Dataset,
    rule: Suppression,
    *,
    class_agnostic: bool = False,
    score_min: float | None = None,
    output: str = "",
    version: str,
) -> tuple[Dataset, SuppressionResult]:
    """Suppress predictions, and count what happened to each class."""
    boxes = pred.table
    scored = boxes
    # No box is suppressed by one that does not count.
    if score_min is not None and boxes.score is not None:
        scored = boxes.take(boxes.score >= score_min)
    left = suppress(scored, rule, class_agnostic=class_agnostic)
    n_classes = len(pred.labels)
    before, kept, after = (np.bincount(table.label, minlength=n_classes) for table in (boxes, scored, left))
    counts = zip(pred.labels.names, before.tolist(), after.tolist(), (before - kept).tolist(), strict=True)
    result = SuppressionResult(
        version=version,
        path=pred.path,
        output=output,
        format=pred.format,
        rule=describe_rule(rule, class_agnostic=class_agnostic, score_min=score_min),
        classes=tuple(ClassCounts(name=name, before=b, after=a, below=low) for name, b, a, low in counts),
    )
    return replace(pred, boxes=left), result


def describe_rule(rule: Suppression, *, class_agnostic: bool, score_min: float | None) -> dict[str, str | float | bool]:
    """Return what the outcome depends on, and nothing else."""
    description: dict[str, str | float | bool] = {"by": rule.by, "iou": rule.iou}
    if score_min is not None:
        description["score_min"] = score_min
    return description | {"class_agnostic": class_agnostic}
