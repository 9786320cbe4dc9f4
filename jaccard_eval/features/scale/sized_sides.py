"""Both sides in pixels under a protocol whose area ranges are size bins, and matching by any measure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, freeze
from jaccard_eval.data.protocol import AreaRange, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.matchtable import any_flag, match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.similarity import Similarity


def equal_count_edges(sides: FloatArray, n_bins: int) -> tuple[float, ...]:
    """Return the edges between bins that hold as equal counts as ties allow.

    >>> equal_count_edges(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    (2.5,)
    """
    if n_bins < 1:
        raise UsageError(f"size bins are counted from 1, got {n_bins}")
    ordered = np.sort(sides)
    cuts = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1  # places with a smaller object before them
    if not len(cuts):
        return ()
    wanted = np.arange(1, n_bins) * len(ordered) / n_bins
    nearest = np.unique([cuts[np.abs(cuts - place).argmin()] for place in wanted.tolist()]).astype(np.int64)
    return tuple(_between(float(ordered[cut - 1]), float(ordered[cut])) for cut in nearest)


def _between(low: float, high: float) -> float:
    """Return the middle of two sides, with as few decimals as keep it between them."""
    middle = (low + high) / 2
    short = (round(middle, decimals) for decimals in range(4))
    return next((edge for edge in short if low < edge < high), middle)


def size_bins(edges: Sequence[float]) -> tuple[AreaRange, ...]:
    """Return the bins between edges as area ranges: below the first edge, between, and from the last one on.

    A bin holds its lower edge and not its upper one, so that every object is in one bin.

    >>> [one.name for one in size_bins([32, 96])]
    ['<32', '32-96', '>=96']
    """
    if not all(low < high for low, high in zip((0.0, *edges), (*edges, math.inf), strict=True)):
        raise UsageError(f"edges of size bins are sides in pixels that ascend from above 0, got {list(edges)}")
    if not edges:
        return (AreaRange(">0", 0.0, math.inf),)
    names = [f"<{edges[0]:g}"]
    names += [f"{low:g}-{high:g}" for low, high in itertools.pairwise(edges)]
    names += [f">={edges[-1]:g}"]
    lows = [0.0, *(edge**2 for edge in edges)]
    highs = [*(float(np.nextafter(edge**2, 0)) for edge in edges), math.inf]
    return tuple(map(AreaRange, names, lows, highs))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scene:
    """Both sides with sizes measured on the boxes themselves."""

    # gt, pred: with common rows, in pixels; `area` is width times height, whatever the file says, for errors of a box
    # have the scale of the box. Where the protocol adds a pixel to each side, the boxes have it. `source` is the row
    # itself.
    gt: BoxTable
    pred: BoxTable
    # Its first area range holds all, the others are the size bins; its boxes need no further pixel
    protocol: Protocol
    n_images: int
    class_names: tuple[str, ...]

    @property
    def bins(self) -> tuple[AreaRange, ...]:
        """The size bins."""
        return self.protocol.areas[1:]

    @property
    def counted(self) -> BoolArray:
        """Mark the ground truth that counts, shape (n,)."""
        return counted(self.gt, self.protocol)

    def measure(
        self, pred: BoxTable | None = None, *, thresholds: Sequence[float] = (), similarity: Similarity | None = None
    ) -> DetectionMetrics:
        """Match, and return the metrics."""
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


def make_scene(
    gt: BoxTable,
    pred: BoxTable,
    protocol: Protocol,
    *,
    n_images: int,
    class_names: Sequence[str],
    n_bins: int,
    edges: Sequence[float] = (),
) -> Scene:
    """Make a scene with size bins between given edges, or else of equal counts."""
    longer = np.array([0.0, 0.0, protocol.pixel_offset, protocol.pixel_offset])

    def sized(boxes: BoxTable) -> BoxTable:
        # Sizes are measured on the boxes themselves, whatever the file says of their areas.
        xywh: FloatArray = boxes.xywh + longer
        return freeze(replace(boxes, xywh=xywh, area=xywh[:, 2] * xywh[:, 3], source=np.arange(len(boxes))))

    gt, pred = sized(gt), sized(pred)
    sides = np.sqrt(np.maximum(gt.area[counted(gt, protocol)], 0))  # COCO JSON may have a negative width
    bins = size_bins(edges or equal_count_edges(sides, n_bins))
    rules = protocol.with_options(pixel_offset=0.0, areas=(protocol.areas[0], *bins))
    return Scene(gt=gt, pred=pred, protocol=rules, n_images=n_images, class_names=tuple(class_names))


def counted(gt: BoxTable, protocol: Protocol) -> BoolArray:
    """Mark the ground truth that no flag excludes, shape (n,)."""
    return ~any_flag(gt, protocol.ignored_flags)


def in_range(boxes: BoxTable, area: AreaRange) -> BoolArray:
    """Mark the boxes of a size, shape (n,)."""
    return np.asarray((boxes.area >= area.low) & (boxes.area <= area.high))
