"""What scale does to the score: what AP is lost to by size, how boxes are off, what errors cost, how boxes overlap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.alignment import Alignment, Sides
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, freeze
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import AreaRange, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.features.scale import (
    ExchangeRow,
    LossRow,
    Measure,
    OverlapMatrix,
    OverlapResult,
    PlacementRow,
    ScaleOptions,
    SensitivityResult,
    ascends,
)
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import IMAGE_FOLDER
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray
from jaccard_eval.matching.judging import judge
from jaccard_eval.matching.matchtable import MatchTable, any_flag, match_boxes
from jaccard_eval.metrics.curves import ScoredHits, required_hits
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.progress import staged
from jaccard_eval.similarity import Similarity
from jaccard_eval.similarity.boxes import CLOSENESS, closeness
from jaccard_eval.similarity.encoding import Floats, clip, edges_of
from jaccard_eval.similarity.iou import box_giou, box_ioa, box_iou
from jaccard_eval.text import did_you_mean, quoted_value


def jaccard_from_error(gt_area: npt.ArrayLike, missing: npt.ArrayLike, extra: npt.ArrayLike) -> FloatArray:
    """Return the Jaccard index of a ground truth of which `missing` is not covered while `extra` is covered besides.

    The intersection is what is left of the ground truth, ``gt_area - missing``; the union is all of it and the rest of
    the prediction, ``gt_area + extra``. So J = 1 - (missing + extra) / (gt_area + extra): a missing point lowers the
    intersection, a point too many raises the union, and the same error costs a small object more.

    Parameters
    ----------
    gt_area, missing, extra : array_like of float
        Areas in px², or counts of points; they broadcast. ``0 <= missing <= gt_area`` and ``0 <= extra``.

    Returns
    -------
    ndarray of float64
        In [0, 1]; NaN where both sides are empty.

    Raises
    ------
    UsageError
        When an area is not finite or is negative, or more is missing than there is.

    Examples
    --------
    >>> float(jaccard_from_error(100, 10, 25))
    0.72
    """
    area, p, q = _areas(gt_area, missing, extra)
    with np.errstate(invalid="ignore"):
        return np.asarray((area - p) / (area + q))


def exchange_rate(gt_area: npt.ArrayLike, missing: npt.ArrayLike, extra: npt.ArrayLike) -> FloatArray:
    """Return by how much `extra` must shrink to raise the Jaccard index as much as one more point of the ground truth.

    One missing point less gives (B - p + 1) / (B + q); q - d instead of q gives (B - p) / (B + q - d). They are
    equal for d = (B + q) / (B - (p - 1)). Where d exceeds q, no shrinking makes up for the point.

    Parameters
    ----------
    gt_area, missing, extra : array_like of float
        As for `jaccard_from_error`.

    Returns
    -------
    ndarray of float64
        At least 1; NaN where less than one point is missing, for then there is no point to win.

    Raises
    ------
    UsageError
        As for `jaccard_from_error`.

    Examples
    --------
    An image of 101 x 101 points, an object of 21 x 21, and a prediction of all points but one of the object's:

    >>> round(float(exchange_rate(21**2, 1, 101**2 - 21**2)), 2)
    23.13
    """
    area, p, q = _areas(gt_area, missing, extra)
    rate = np.full(area.shape, np.nan)
    return np.asarray(np.divide(area + q, area - (p - 1), out=rate, where=p >= 1))


def _areas(gt_area: npt.ArrayLike, missing: npt.ArrayLike, extra: npt.ArrayLike) -> tuple[FloatArray, ...]:
    area, p, q = np.broadcast_arrays(*(np.asarray(size, dtype=np.float64) for size in (gt_area, missing, extra)))
    if not (np.isfinite(area) & np.isfinite(q) & (p >= 0) & (p <= area) & (q >= 0)).all():
        raise UsageError("areas must be finite, with 0 <= missing <= gt_area and 0 <= extra")
    return area, p, q


FOUND_IOU = 0.1  # IoU from which an object counts as found; the background threshold t_b of TIDE (Bolya et al. 2020)
EXPLAINING_SHARE = 0.5  # of the loss to localisation, that a tolerance must win back to explain it
MEANS = ("iou", "missing", "extra", "shift_loss", "size_loss")
SIGNED = ("dx", "dy", "width_error", "height_error")
MEDIANS = ("dx_relative", "dy_relative", "width_ratio", "height_ratio", "edge_error", *SIGNED)
SIGN_TEST_Z = 2.576  # two-sided 1 %: many classes are looked at


def analyse_sides(sides: Sides, protocol: Protocol, options: ScaleOptions, *, version: str) -> SensitivityResult:
    """Analyse what the size of objects does to the score; `version` is that of the tool."""
    require_pixels(sides)
    sides = judge(sides, protocol)
    sized = SizedSides.of(sides.aligned, protocol, options)
    thresholds = sorted({FOUND_IOU, options.pair_iou})
    found = sized.measure(thresholds=thresholds)
    choices = ("kind=sensitivity", f"found={FOUND_IOU:g}", *options.chosen())
    gt, pred = sides.summaries()
    return SensitivityResult(
        protocol=sized.protocol,
        options=options,
        signature=sides.sign(sized.protocol, *choices, version=version),
        version=version,
        gt=gt,
        pred=pred,
        correspondence=sides.aligned.correspondence,
        losses=loss_rows(sized, found, options),
        placement=placement_rows(sized, found.table, thresholds.index(options.pair_iou)),
        findings=sides.findings,
    )


def exchange_rows(errors: Sequence[tuple[float, float, float]]) -> tuple[ExchangeRow, ...]:
    """Return what errors cost; each is the area of an object, how much of it is missing, and how much is extra."""
    gt_area, missing, extra = np.array(errors, dtype=np.float64).T
    index, rate = jaccard_from_error(gt_area, missing, extra), exchange_rate(gt_area, missing, extra)
    return tuple(
        ExchangeRow(gt_area=b, missing=p, extra=q, jaccard=j, exchange_rate=d)
        for b, p, q, j, d in np.stack((gt_area, missing, extra, index, rate), axis=1).tolist()
    )


def require_pixels(sides: Sides) -> None:
    """Raise a DataError when boxes are fractions of images whose size is unknown."""
    if sides.aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            "errors are measured in pixels, but boxes are normalised and image sizes unknown",
            fix=IMAGE_FOLDER,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SizedSides:
    """Both sides in pixels, under a protocol whose area ranges are size bins, to be matched by any measure."""

    gt: BoxTable
    pred: BoxTable
    counted: BoolArray  # shape (n,): the ground truth that no flag excludes
    protocol: Protocol  # its first area range holds all, the others are the size bins
    n_images: int
    class_names: tuple[str, ...]

    @classmethod
    def of(cls, aligned: Alignment, protocol: Protocol, options: ScaleOptions) -> SizedSides:
        """Take sizes from the boxes, and bins between the edges that are given, or else of equal counts."""
        # Where the protocol adds a pixel to each side, the boxes get it here, once for matching and displacing alike.
        longer = np.array([0.0, 0.0, protocol.pixel_offset, protocol.pixel_offset])

        def sized(boxes: BoxTable) -> BoxTable:
            # The file's area may be that of a mask; errors of a box have the scale of the box. Numbered sources lead
            # from a match table back to the rows.
            xywh: FloatArray = boxes.xywh + longer
            return freeze(replace(boxes, xywh=xywh, area=xywh[:, 2] * xywh[:, 3], source=np.arange(len(boxes))))

        gt = sized(aligned.gt_table)
        counted = ~any_flag(gt, protocol.ignored_flags)
        sides = np.sqrt(np.maximum(gt.area[counted], 0))  # COCO JSON may have a negative width
        bins = size_bins(options.edges or equal_count_edges(sides, options.bins))
        return cls(
            gt=gt,
            pred=sized(aligned.pred_table),
            counted=counted,
            protocol=protocol.with_options(pixel_offset=0.0, areas=(protocol.areas[0], *bins)),
            n_images=len(aligned.image_names),
            class_names=tuple(aligned.class_names),
        )

    @staged("matching")
    def measure(
        self, pred: BoxTable | None = None, *, thresholds: Sequence[float] = (), similarity: Similarity | None = None
    ) -> DetectionMetrics:
        """Match other predictions, at other thresholds, or by another similarity, and return the metrics."""
        rules = self.protocol.with_options(iou_thresholds=tuple(thresholds)) if thresholds else self.protocol
        table = match_boxes(
            self.gt,
            self.pred if pred is None else pred,
            rules,
            n_images=self.n_images,
            n_labels=len(self.class_names),
            similarity=similarity,
        )
        names = ("all classes",) if rules.class_agnostic else self.class_names
        return DetectionMetrics(table, names, ())


def equal_count_edges(sides: FloatArray, n_bins: int) -> tuple[float, ...]:
    """Return the edges between bins that hold as equal counts as ties allow, at most ``n_bins - 1``, ascending.

    >>> equal_count_edges(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    (2.5,)
    """
    if n_bins < 1:
        raise UsageError(f"the number of size bins must be at least 1, got {n_bins}")
    ordered = np.sort(sides)
    # Objects of equal size stay in one bin, so that few distinct sizes make fewer bins.
    cuts = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1  # places with a smaller object before them
    if not len(cuts):
        return ()
    wanted = np.arange(1, n_bins) * len(ordered) / n_bins
    edges = []
    for cut in np.unique([cuts[np.abs(cuts - place).argmin()] for place in wanted.tolist()]).astype(np.int64):
        low, high = float(ordered[cut - 1]), float(ordered[cut])
        # Between two neighbouring floats there is none: a bin holds its lower edge, so that the larger side will do.
        middle = (low + high) / 2 if low < (low + high) / 2 else high
        # People read the edges: as few decimals as keep them between the two sides.
        short = (round(middle, decimals) for decimals in range(4))
        edges.append(next((edge for edge in short if low < edge < high), middle))
    return tuple(edges)


def size_bins(edges: Sequence[float]) -> tuple[AreaRange, ...]:
    """Return the bins between edges as area ranges: below the first edge, between, and from the last one on.

    >>> [area.name for area in size_bins([32, 96])]
    ['<32', '32-96', '>=96']
    """
    if not ascends(edges):
        raise UsageError(f"bin edges must be positive and ascending, got {list(edges)}")
    if not edges:
        return (AreaRange(">0", 0.0, math.inf),)
    names = [f"<{edges[0]:g}"]
    names += [f"{low:g}-{high:g}" for low, high in itertools.pairwise(edges)]
    names += [f">={edges[-1]:g}"]
    # Area ranges hold both ends, as COCO's do. Bins stop one float short, so that every object is in one bin only.
    lows = [0.0, *(edge**2 for edge in edges)]
    highs = [*(float(np.nextafter(edge**2, 0)) for edge in edges), math.inf]
    return tuple(map(AreaRange, names, lows, highs))


def in_range(boxes: BoxTable, area: AreaRange) -> BoolArray:
    """Mark the boxes of a size, shape (n,)."""
    return np.asarray((boxes.area >= area.low) & (boxes.area <= area.high))


@staged("measuring")
def loss_rows(sized: SizedSides, found: DetectionMetrics, options: ScaleOptions) -> tuple[LossRow, ...]:
    """Split what each size lacks to an average precision of 1; all sizes first.

    `found` is matched at `FOUND_IOU` as its lowest threshold.
    """
    # With AP the average precision of the protocol, F that of the lowest threshold alone, and R what the objects found
    # there reach when nothing else is detected: 1 = AP + (F - AP) + (R - F) + (1 - R), the parts being localisation,
    # false positives and misses. All are means over the classes that have objects of the size. The threshold is TIDE's,
    # the split is not: TIDE repairs one kind of error at a time, and its parts do not add up.
    plain = sized.measure()
    within: dict[float, list[float]] = {}
    if options.pixels:
        # Matched as ever, but by the largest distance between an edge and its counterpart in place of IoU: an object of
        # any size is so allowed the same error.
        thresholds = {k: closeness(k) for k in options.pixels}
        close = sized.measure(thresholds=sorted(thresholds.values()), similarity=CLOSENESS)
        within = {k: [_ap(close, area.name, at) for area in sized.protocol.areas] for k, at in thresholds.items()}
    rows = []
    for a, area in enumerate(sized.protocol.areas):
        ap = _ap(plain, area.name)
        localised, reach = _ap(found, area.name, found.protocol.iou_thresholds[0]), _reach(found, a)
        tolerant = {k: values[a] for k, values in within.items()}
        # The least tolerance that wins back enough of what is lost to localisation explains the loss.
        wanted = ap + EXPLAINING_SHARE * (localised - ap)
        explaining = next((k for k in sorted(tolerant) if localised > ap and tolerant[k] >= wanted), None)
        sides = np.sqrt(sized.gt.area[sized.counted & in_range(sized.gt, area)])
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
            )
        )
    return tuple(rows)


def _ap(metrics: DetectionMetrics, area: str, threshold: float | None = None) -> float:
    return metrics.value(MetricRef(name="AP", iou=threshold, area=area)).value


def _reach(found: DetectionMetrics, area: int) -> float:
    """Average precision that what is found at the lowest threshold would have without any false positive."""
    curves, grid = found.curves, found.protocol.recall_grid
    positives = curves.positives[area]  # (K,)
    hits = curves.hit_counts(area, len(curves.caps) - 1)[0]  # (K,)
    if found.protocol.interpolation == "area":
        reached = hits / np.maximum(positives, 1)
    elif found.protocol.interpolation != "grid":
        label = np.repeat(np.arange(len(hits)), hits)
        alone = ScoredHits(label, np.zeros(len(label)), np.ones(len(label), dtype=np.bool_), positives)
        reached = alone.class_precisions(found.protocol)
    else:
        # Precision is 1 up to the recall that is reached, and 0 beyond: AP is the share of grid points up to there.
        reached = (required_hits(positives, grid) <= hits[:, None]).mean(axis=1)
    return float(reached[positives > 0].mean()) if positives.any() else math.nan


@staged("measuring")
def placement_rows(sized: SizedSides, table: MatchTable, threshold: int) -> tuple[PlacementRow, ...]:
    """Return the errors of matched pairs: over all, by size, by class, and by class and size where there are any."""
    # True positives over all sizes; matches of ignored objects mean nothing for boxes that count.
    choice = table.chosen_pairs(0, threshold)
    taken = choice[(choice >= 0) & ~table.ignored_match(0)[threshold]]
    truth = sized.gt.take(table.pair_gt[taken])
    errors = box_errors(truth.xywh, sized.pred.xywh[table.source[table.pair_detection[taken]]])
    sizes = {area.name: in_range(truth, area) for area in sized.protocol.areas[1:]}
    classes = [(name, np.asarray(truth.label == k)) for k, name in enumerate(sized.class_names)]
    rows = [_placement_row(errors, None, None, np.ones(len(truth), dtype=np.bool_))]
    rows += [_placement_row(errors, None, size, inside) for size, inside in sizes.items()]
    rows += [_placement_row(errors, name, None, own) for name, own in classes]
    for (name, own), (size, inside) in itertools.product(classes, sizes.items()):
        if (own & inside).any():
            rows.append(_placement_row(errors, name, size, own & inside))
    return tuple(rows)


def box_errors(gt: FloatArray, pred: FloatArray) -> dict[str, FloatArray]:
    """Measure the errors of predictions by name, each against the ground truth of its row; xywh in px, y downward.

    Ten by ten pixels, found at their place but twice as wide:

    >>> found = box_errors(np.array([[0.0, 0, 10, 10]]), np.array([[-5.0, 0, 20, 10]]))
    >>> found["extra"].tolist(), found["size_loss"].tolist(), found["width_ratio"].tolist()
    ([0.5], [0.5], [2.0])
    """
    common, union = _common_and_union(gt, pred)
    loss = 1 - common / union
    shift, size = (pred[:, :2] + pred[:, 2:] / 2) - (gt[:, :2] + gt[:, 2:] / 2), pred[:, 2:] - gt[:, 2:]  # (n, 2)
    moved = _common_and_union(gt, np.concatenate((gt[:, :2] + shift, gt[:, 2:]), axis=1))
    resized = _common_and_union(gt, np.concatenate((gt[:, :2] - size / 2, pred[:, 2:]), axis=1))
    shift_alone, size_alone = 1 - moved[0] / moved[1], 1 - resized[0] / resized[1]
    edges = np.concatenate((pred[:, :2] - gt[:, :2], pred[:, :2] + pred[:, 2:] - (gt[:, :2] + gt[:, 2:])), axis=1)
    relative, ratio = shift / gt[:, 2:], pred[:, 2:] / gt[:, 2:]
    return {
        "iou": common / union,
        # The loss split by area: the shares p / (|B| + q) and q / (|B| + q) of the union.
        "missing": (gt[:, 2] * gt[:, 3] - common) / union,
        "extra": (pred[:, 2] * pred[:, 3] - common) / union,
        # The loss split by cause: each cause's Shapley share, the mean of what it costs alone and of what it adds to
        # the other one (Shapley 1953, "A value for n-person games", for two players). The two sum up to the loss.
        "shift_loss": (shift_alone + loss - size_alone) / 2,
        "size_loss": (size_alone + loss - shift_alone) / 2,
        "dx": shift[:, 0],
        "dy": shift[:, 1],
        "dx_relative": relative[:, 0],
        "dy_relative": relative[:, 1],
        "width_error": size[:, 0],
        "height_error": size[:, 1],
        "width_ratio": ratio[:, 0],
        "height_ratio": ratio[:, 1],
        "edge_error": np.abs(edges).max(axis=1, initial=0.0),
    }


def _common_and_union(gt: FloatArray, pred: FloatArray) -> tuple[FloatArray, FloatArray]:
    near = np.maximum(gt[:, :2], pred[:, :2])
    far = np.minimum(gt[:, :2] + gt[:, 2:], pred[:, :2] + pred[:, 2:])
    both = gt[:, 2] * gt[:, 3] + pred[:, 2] * pred[:, 3]
    union = both - np.prod(np.maximum(far - near, 0), axis=1)
    # The intersection is taken back from the union, so that all shares of the union have one rounding.
    return both - union, union


def _placement_row(
    errors: dict[str, FloatArray], class_name: str | None, size: str | None, pairs: BoolArray
) -> PlacementRow:
    chosen = {name: values[pairs] for name, values in errors.items()}
    n = len(chosen["iou"])
    means = {name: float(chosen[name].mean()) if n else math.nan for name in MEANS}
    # A few boxes that are far off would move the mean of an error in pixels.
    medians = {name: float(np.median(chosen[name])) if n else math.nan for name in MEDIANS}
    consistent = []
    for name in SIGNED:
        above, below = int((chosen[name] > 0).sum()), int((chosen[name] < 0).sum())
        # Sign test with continuity correction: whether more errors have one sign than chance allows.
        if abs(above - below) - 1 >= SIGN_TEST_Z * math.sqrt(above + below) > 0:
            consistent.append(name)
    return PlacementRow(class_name=class_name, size=size, n=n, **means, **medians, consistent=tuple(consistent))


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
