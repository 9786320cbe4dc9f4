"""What the sides of an evaluation hold, in counts and quantiles, and what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

import numpy as np

from jaccard_eval.data.alignment import Alignment, common_sizes, summarise
from jaccard_eval.data.boxtable import BoxTable, FloatArray, from_xywh
from jaccard_eval.data.dataset import Dataset, ImageTable, Reading
from jaccard_eval.data.protocol import COCO, Protocol
from jaccard_eval.data.signature import RowHasher, fingerprint
from jaccard_eval.features.audit import take_sample
from jaccard_eval.features.audit.boxes import leaving
from jaccard_eval.features.audit.compute import audit, audit_alone
from jaccard_eval.features.inspect import (
    BoxCounts,
    ClassCount,
    Description,
    ImageCounts,
    Inspection,
    Pairing,
    ScoreCounts,
    Spread,
)
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import distinct, stable_order, starts_of_runs
from jaccard_eval.matching.matchtable import MatchTable, match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.progress import staged

MAX_DECIMALS = 6
DECIMALS_ROWS = 10_000  # rows looked at to count decimals
ROUNDING = 1e-9  # relative; what is left of a decimal number after the arithmetic of its encoding
SHOWN_SIZES = 3  # most frequent sizes of images that are kept
FLAGS = ("crowd", "difficult", "ignore", "group_of")


@dataclass(frozen=True, slots=True, eq=False)
class BoxView:
    """Boxes in some units, with the width and height of each one's image."""

    boxes: BoxTable
    size: FloatArray  # shape (n, 2): in pixels; NaN where unknown
    units: str  # "px" or "norm"

    @classmethod
    def of(cls, side: Dataset) -> BoxView:
        """Return the boxes of one side as they were read."""
        return cls(side.table, side.images.sizes[side.table.image], side.units)


def describe(
    side: Dataset, view: BoxView, known: tuple[tuple[Sequence[str], Sequence[str]], RowHasher] | None
) -> Description:
    """Describe one side, with its boxes in the units of the view; `known` are names whose hasher is there."""
    # Its fingerprint is that of its own names: alone, nothing is known of how the other side spells them.
    names = side.images.names(), side.labels.names
    hasher = known[1] if known is not None and [*map(list, names)] == [*map(list, known[0])] else None
    _, digest = fingerprint(side.table, names, side.role, side.units, hasher)
    return Description(
        role=side.role,
        summary=summarise(side, digest),
        images=count_images(side.images, side.table),
        boxes=count_boxes(view, side.reading),
        classes=count_classes(side),
        scores=count_scores(side.table.score),
    )


def spread(values: FloatArray) -> Spread:
    """Return how a column (n,) spreads; all NaN when it is empty."""
    if len(values) == 0:
        return Spread(min=np.nan, q05=np.nan, median=np.nan, mean=np.nan, q95=np.nan, max=np.nan)
    ordered = np.sort(values)
    low, q05, median, q95, high = (_quantile(ordered, share) for share in (0, 0.05, 0.5, 0.95, 1))
    return Spread(min=low, q05=q05, median=median, mean=float(values.mean()), q95=q95, max=high)


def _quantile(ordered: FloatArray, share: float) -> float:
    """Return what `numpy.quantile` does, to the last bit, of values in order, which it would partition anew."""
    place = share * (len(ordered) - 1)
    first = int(place)
    low, high = float(ordered[first]), float(ordered[min(first + 1, len(ordered) - 1)])
    way = place - first
    return low + (high - low) * way if way < 0.5 else high - (high - low) * (1 - way)


def count_images(images: ImageTable, boxes: BoxTable) -> ImageCounts:
    """Count images, their sizes, and the boxes in each."""
    per_image = np.bincount(boxes.image, minlength=len(images))
    known = np.isfinite(images.sizes).all(axis=1)
    sizes = Counter(map(tuple, images.sizes[known].tolist()))
    return ImageCounts(
        total=len(images),
        listed=images.listed,
        with_boxes=int(np.count_nonzero(per_image)),
        with_size=int(np.count_nonzero(known)),
        sizes=tuple((f"{width:g} x {height:g}", n) for (width, height), n in sizes.most_common(SHOWN_SIZES)),
        per_image=spread(per_image.astype(np.float64)),
        most_crowded=images.name(int(per_image.argmax())) if len(boxes) else "",
    )


def count_boxes(view: BoxView, reading: Reading) -> BoxCounts:
    """Count boxes by size and flag, with the ranges of their numbers; `reading` holds what those of the file mean."""
    boxes, in_pixels = view.boxes, view.units == "px"
    left, top, width, height = boxes.xywh.T
    solid = (width > 0) & (height > 0)
    image = view.size if in_pixels else np.ones_like(view.size)
    with np.errstate(over="ignore"):  # a height that is rounded to nothing
        ratios = width[solid] / height[solid]
    # Decimals are those of the numbers in the file, not of what was made of them.
    written = boxes.xywh[:DECIMALS_ROWS]
    if reading.units == "norm" and in_pixels:
        written = written / np.tile(view.size[:DECIMALS_ROWS], 2)
    written = from_xywh(written, reading.encoding)
    # An area that lies on the shared end of two ranges counts in both, as COCO's evaluation has it.
    ranges = COCO.areas[1:] if in_pixels else ()
    buckets = {
        area.name: int(np.count_nonzero((boxes.area >= area.low) & (boxes.area <= area.high))) for area in ranges
    }
    return BoxCounts(
        total=len(boxes),
        units="px" if in_pixels else "norm",
        encoding=reading.encoding,
        file_units=reading.units,
        x=_reach(left, left + width),
        y=_reach(top, top + height),
        width=spread(width),
        height=spread(height),
        area=spread(boxes.area),
        aspect=spread(ratios[np.isfinite(ratios)]),
        buckets=buckets,
        decimals=decimals(written.ravel()),
        # Column by column: along rows of two or four flags it takes ten times as long.
        sized=int(np.count_nonzero(reduce(np.logical_and, np.isfinite(image).T))),
        outside=int(np.count_nonzero(reduce(np.logical_or, leaving(boxes.xywh, image, view.units).T))),
        flags={name: int(np.count_nonzero(getattr(boxes, name))) for name in FLAGS},
    )


def count_classes(side: Dataset) -> tuple[ClassCount, ...]:
    """Count boxes and images of each class, in the order of the classes; classes without boxes included."""
    labels, boxes = side.labels, side.table
    n_boxes = np.bincount(boxes.label, minlength=len(labels))
    # An image and a class in one whole number, so that each pair counts once.
    places = boxes.label.astype(np.int64) * max(len(side.images), 1) + boxes.image
    places = places[stable_order(places)]
    n_images = np.bincount(places[starts_of_runs(places)] // max(len(side.images), 1), minlength=len(labels))
    return tuple(
        ClassCount(name=name, key=str(key), boxes=int(n_boxes[row]), images=int(n_images[row]))
        for row, (key, name) in enumerate(zip(labels.keys, labels.names, strict=True))
    )


def count_scores(scores: FloatArray | None) -> ScoreCounts | None:
    """Give the spread of scores, how many differ, and their decimals; None for ground truth."""
    if scores is None:
        return None
    return ScoreCounts(spread=spread(scores), distinct=len(distinct(scores)), decimals=decimals(scores[:DECIMALS_ROWS]))


def decimals(values: FloatArray) -> int | None:
    """Return the fewest decimals that write all values; None when `MAX_DECIMALS` do not.

    >>> decimals(np.array([0.5, 0.25])), decimals(np.array([10.0, 3.0])), decimals(np.array([1 / 3]))
    (2, 0, None)
    """
    slack = ROUNDING * np.maximum(np.abs(values), 1)
    return next((d for d in range(MAX_DECIMALS + 1) if (np.abs(np.round(values, d) - values) <= slack).all()), None)


def _reach(low: FloatArray, high: FloatArray) -> tuple[float, float]:
    both = np.concatenate((low, high))
    return (float(both.min()), float(both.max())) if len(both) else (np.nan, np.nan)


def describe_pair(aligned: Alignment, table: MatchTable) -> Pairing:
    """Count what two aligned sides have in common; their match table lacks what is beyond the cap of its protocol."""
    placed = aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    cap = table.protocol.max_dets[-1] if table.protocol.max_dets else None
    beyond = in_images = 0
    if cap is not None and len(table) < len(aligned.pred):
        # The cap is one per image and class.
        n_labels = max(len(aligned.class_names), 1)
        cells = aligned.pred_table.image.astype(np.int64) * n_labels + aligned.pred_table.label
        cell, count = np.unique(cells, return_counts=True)
        over = count > cap
        beyond, in_images = int((count[over] - cap).sum()), len(np.unique(cell[over] // n_labels))
    located, objects = sample.located()
    # Objects with a prediction in their place: of how many has that prediction their class?
    pred_row, gt_row = sample.objects()
    same = aligned.classes.rows[sample.pred.label[pred_row]] == sample.gt.label[gt_row]
    return Pairing(
        correspondence=aligned.correspondence,
        cap=cap,
        beyond_cap=beyond,
        images_beyond_cap=in_images,
        objects=objects,
        located=located,
        compared=len(same),
        same_class=int(np.count_nonzero(same)),
        sampled=sample.share,
    )


@staged("inspecting")
def inspect_sides(
    gt: Dataset | None,
    pred: Dataset | None,
    aligned: Alignment | None,
    findings: Sequence[Finding],
    *,
    version: str,
    rules: Protocol = COCO,
) -> Inspection:
    """Describe what could be read and aligned; `findings` explain why a side or the alignment is None.

    Checks look at what the `rules` compare.
    """
    sides, pairing, known = [side for side in (gt, pred) if side is not None], None, None
    found = [*findings, *(finding for side in sides for finding in side.findings)]
    if gt is not None and pred is not None and aligned is not None:
        names = aligned.image_names, aligned.class_names
        table = match_boxes(aligned.gt_table, aligned.pred_table, rules, n_images=len(names[0]), n_labels=len(names[1]))
        metrics = DetectionMetrics(table, names[1], names[0], area_known=aligned.units == "px")
        hasher = RowHasher.of(*names)
        known = names, hasher
        hashes = hasher(aligned.gt_table), hasher(aligned.pred_table)
        found += [*aligned.findings, *audit(gt, pred, aligned, metrics, hashes)]
        pairing = describe_pair(aligned, table)
    else:
        found += [finding for side in sides for finding in audit_alone(side)]
    return Inspection(
        version=version,
        gt=None if gt is None else describe(gt, _view(gt, pred, aligned), known),
        pred=None if pred is None else describe(pred, _view(pred, pred, aligned), known),
        pairing=pairing,
        findings=tuple(sorted(found, key=lambda finding: list(Severity).index(finding.severity))),
    )


def _view(side: Dataset, pred: Dataset | None, aligned: Alignment | None) -> BoxView:
    """Return the boxes of one side as read, with all sizes that either side knows, or in common units if converted."""
    if aligned is None or pred is None:
        return BoxView.of(side)
    placed = aligned.placement
    sizes = common_sizes(pred, placed.images)
    boxes, rows = (placed.gt, placed.images.gt_rows) if side.role == "gt" else (placed.pred, placed.images.pred_rows)
    if placed.units != side.units:
        table = boxes.whole()
        return BoxView(table, sizes[table.image], placed.units)
    own = rows[side.table.image]  # -1: the image is on this side only
    return BoxView(side.table, np.where(own[:, np.newaxis] >= 0, sizes[own], np.nan), side.units)
