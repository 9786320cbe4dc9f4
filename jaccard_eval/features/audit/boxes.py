"""Were the four numbers of boxes read correctly, and where do they lie? Other readings are tried where it is odd."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.alignment import common_sizes
from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, Chosen, FloatArray, freeze, from_xywh, to_xywh
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Dataset, Reading
from jaccard_eval.features.audit import (
    MISREAD,
    Agreement,
    AuditContext,
    IntArray,
    Sample,
    advised,
    average_precision,
    is_better,
    is_decisive,
    pair_by_place,
    place_agreement,
    take_sample,
)
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ENCODINGS
from jaccard_eval.text import pluralise

SLACK_PIXELS = 1.0  # px by which a box may leave its image: rounding, or coordinates counted from 1
SLACK_SHARE = 0.01  # of the image's side by which it may, whichever is more
MANY = 0.2  # share of boxes outside from which they are not an accident
LARGER = 1.1  # times the image's area from which a box is larger than the image
FIX = "Check the encoding and units of the boxes, and that the sizes belong to these images."
EDGES = ("left", "top", "right", "bottom")


def check_outside(context: AuditContext, findings: FindingLog) -> None:
    """Count the boxes that leave their image; warn of many, and of ground truth whose centre lies outside."""
    sizes = image_sizes(context)
    if findings.has(*MISREAD, "image-size-transposed"):
        return
    sizes = np.where(np.isnan(sizes), MAX_IMAGE_SIDE, sizes)  # whatever their size, no images are larger
    placed, sample = context.aligned.placement, context.sample
    for side, boxes in ((context.gt, placed.gt), (context.pred, sample.pred)):  # all objects, some predictions
        is_sample = boxes is sample.pred and sample.share < 1
        images = _Images(side, sizes, context.aligned.image_names, placed.units, is_sample)
        outside = _Outside()
        for table in boxes.tables():
            outside.add(table, images)
        if len(outside.rows):
            _report_outside(images, outside, len(boxes), findings)
            _report_large(images, outside.large, len(boxes), findings)


def image_sizes(context: AuditContext) -> FloatArray:
    """Return width and height of the common images (n, 2) in the units of the boxes; NaN where they are not known."""
    placed = context.aligned.placement
    if placed.units == "norm":
        return np.ones((len(placed.images.table), 2))
    sizes = common_sizes(context.pred, placed.images)
    return np.where(sizes > 0, sizes, np.nan)  # exporters write 0 for a size they do not know


def leaving(xywh: FloatArray, size: FloatArray, units: str) -> BoolArray:
    """Return whether boxes (n, 4) leave their image at the left, top, right and bottom, shape (n, 4).

    No box leaves an image of unknown size (NaN). Pixels may leave by one, and all by a hundredth of the side.
    """
    # Column by column: along rows of two or four numbers it takes three times as long.
    (left, top, width, height), sides = xywh.T, size.T
    least = SLACK_PIXELS if units == "px" else 0.0
    (across, down), (beside, above) = sides, (np.maximum(SLACK_SHARE * side, least) for side in sides)
    return np.stack((left < -beside, top < -above, left + width > across + beside, top + height > down + above)).T


@dataclass(frozen=True, slots=True, eq=False)
class _Images:
    """One side, with the sizes (n, 2) and names of the common images."""

    side: Dataset
    sizes: FloatArray
    names: Sequence[str]
    units: str
    is_sample: bool

    def count(self, n_boxes: int) -> str:
        """Describe how many boxes there are, or were checked."""
        return f"{n_boxes:,} boxes{' checked' if self.is_sample else ''}"

    def describe(self, boxes: BoxTable, row: int) -> tuple[Where, str]:
        """Name a box by its image and numbers."""
        image = boxes.image[row]
        numbers = ", ".join(f"{value:.6g}" for value in boxes.xywh[row])
        width, height = self.sizes[image]
        where = Where(self.side.path, record=f"image {self.names[image]}")
        size = "any image" if MAX_IMAGE_SIDE in (width, height) else f"{width:g} x {height:g}"
        return where, f"x y w h {numbers} in {size}"


@dataclass(slots=True)
class _Outside:
    """Boxes that leave their image."""

    rows: Chosen = field(default_factory=Chosen)
    at_edges: IntArray = field(default_factory=lambda: np.zeros(4, dtype=np.int64))
    far: int = 0  # those whose centre lies outside
    large: Chosen = field(default_factory=Chosen)  # those that are larger than their image

    def add(self, boxes: BoxTable, images: _Images) -> None:
        """Look at the boxes of a table."""
        left, top, right, bottom = leaving(boxes.xywh, images.sizes[boxes.image], images.units).T
        rows = np.flatnonzero(left | top | right | bottom)
        self.rows.add(boxes, rows)
        self.at_edges += [np.count_nonzero(edge[rows]) for edge in (left, top, right, bottom)]
        xywh, size = boxes.xywh[rows], images.sizes[boxes.image[rows]]
        centre = xywh[:, :2] + xywh[:, 2:] / 2
        self.far += int(np.count_nonzero(((centre < 0) | (centre > size)).any(axis=1)))
        self.large.add(boxes, rows[xywh[:, 2] * xywh[:, 3] > LARGER * size[:, 0] * size[:, 1]])


def _report_outside(images: _Images, outside: _Outside, n_boxes: int, findings: FindingLog) -> None:
    rows, far = outside.rows, outside.far
    edges = ", ".join(f"{count:,} at the {edge}" for edge, count in zip(EDGES, outside.at_edges, strict=True) if count)
    beyond = f"; the centre of {far:,} lies outside" if far else ""
    leave = "leaves its image" if len(rows) == 1 else "leave their image"
    is_wrong = len(rows) > MANY * n_boxes or (images.side.role == "gt" and far > 0)
    findings.add_rows(
        Severity.WARNING if is_wrong else Severity.NOTE,
        "box-outside",
        rows,
        lambda row: images.describe(rows.boxes, row),
        summary=f"{len(rows):,} of {images.count(n_boxes)} {leave} ({edges}){beyond}",
        fix=FIX if is_wrong else "",
    )


def _report_large(images: _Images, large: Chosen, n_boxes: int, findings: FindingLog) -> None:
    larger = "is larger than its image" if len(large) == 1 else "are larger than their image"
    is_wrong = images.side.role == "gt" or len(large) > MANY * n_boxes
    findings.add_rows(
        Severity.WARNING if is_wrong else Severity.NOTE,
        "box-gigantic",
        large,
        lambda row: images.describe(large.boxes, row),
        summary=f"{len(large):,} of {images.count(n_boxes)} {larger}",
        fix=FIX if is_wrong else "",
    )


FEWEST_OBJECTS = 20  # objects found, from which a median is reliable
TOLERANCE, FARTHEST = 0.15, 0.2  # px between a median and the offset that explains it, with its error at most
LARGEST_ERROR = 0.25  # px, standard error of a median up to which it is believed: half the smallest offset
NORMAL_SPREAD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
MEDIAN_ERROR = 1.2533  # standard error of a median over that of a mean: √(π/2)
STRICT_IOU = 0.75
NOTICEABLE = 0.01  # AP that the offset must cost to be more than a note


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Which edges are off (left and top, right and bottom), what does that, and how it is undone."""

    near: int
    far: int
    cause: str


PATTERNS = (
    _Pattern(1, 1, "pixels counted from 1 on one side and from 0 on the other, or pixel centres used as edges"),
    _Pattern(0, 1, "the last pixel used as the edge (width = x2 - x1 + 1) on one side only"),
    _Pattern(1, 0, "pixels counted from 1 with their last one as the edge (PASCAL VOC) on one side only"),
)
STEPS = (1.0, 0.5)  # px


def check_offsets(context: AuditContext, findings: FindingLog) -> None:
    """Report if the boxes of the predictions are all shifted by the same half or whole pixel."""
    if context.aligned.units != "px" or findings.has(*MISREAD):
        return
    found = _edge_medians(context)
    if found is None:
        return
    medians, error = found
    for pattern in PATTERNS:
        step = _step_of(medians, np.minimum(TOLERANCE + error, FARTHEST), pattern)
        if step:
            _report_offset(context, pattern, step, medians, findings)
            return


def _edge_medians(context: AuditContext) -> tuple[FloatArray, FloatArray] | None:
    """Return medians of prediction minus ground truth at left, top, right, bottom, and errors; None if unreliable."""
    pred_row, gt_row = context.sample.objects()
    if len(pred_row) < FEWEST_OBJECTS:
        return None
    pred_edges, gt_edges = (
        np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)
        for xywh in (context.sample.pred.xywh[pred_row], context.sample.gt.xywh[gt_row])
    )
    difference = pred_edges - gt_edges  # (n, 4)
    medians = medians_of(difference)
    spread = medians_of(np.abs(difference - medians))
    error = MEDIAN_ERROR * NORMAL_SPREAD * spread / math.sqrt(len(difference))
    return (medians, error) if (error <= LARGEST_ERROR).all() else None


def medians_of(columns: FloatArray) -> FloatArray:
    """Return the median of each column, as ``np.median`` does, which loads NumPy's masked arrays: every run is here."""
    if not len(columns):
        return np.full(columns.shape[1:], np.nan)
    ordered, middle = np.sort(columns, axis=0), len(columns) // 2
    found = ordered[middle] if len(columns) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return np.where(np.isnan(ordered[-1]), np.nan, found)


def _step_of(medians: FloatArray, within: FloatArray, pattern: _Pattern) -> float:
    """Return the signed offset in pixels that the medians have by the pattern, each within some px; 0 for none."""
    shape = np.array([pattern.near, pattern.near, pattern.far, pattern.far])
    for step in STEPS:
        for signed in (step, -step):
            if (np.abs(medians - signed * shape) <= within).all():
                return signed
    return 0.0


def _report_offset(
    context: AuditContext, pattern: _Pattern, step: float, medians: FloatArray, findings: FindingLog
) -> None:
    aligned = context.aligned
    near, far = -step * pattern.near, -step * pattern.far

    moved = aligned.pred.mapped(partial(_shifted, by=np.array([near, near, far - near, far - near])))
    given, undone = (average_precision(context, aligned.gt, pred, iou=STRICT_IOU) for pred in (aligned.pred, moved))
    edges = {(1, 1): "in x and y", (0, 1): "at the right and bottom", (1, 0): "at the left and top"}
    listed = ", ".join(f"{value:+.2f}" for value in medians)
    detail = (
        f"boxes are shifted by {step:+g} px {edges[pattern.near, pattern.far]} against the ground truth (medians "
        f"left, top, right, bottom: {listed}): {pattern.cause}; AP75 {given:.3f} as given, {undone:.3f} without"
    )
    where, rerun = Where(context.pred.path, field="box"), _rerun(context, pattern, step)
    fix = Fix.missing(_repair(pattern, step))
    if rerun is not None and undone > given:
        option, value, effect = rerun
        words = f"Rerun {{changes}}. {effect}"
        fix = Fix.reading({option: value}, metric="AP75", before=given, after=undone, words=words)
    if undone - given >= NOTICEABLE:
        findings.warning("box-offset", where, detail, fix=fix)
    else:
        findings.note("box-offset", where, detail, fix=fix)


def _shifted(table: BoxTable, *, by: FloatArray) -> BoxTable:
    xywh = table.xywh + by
    return freeze(replace(table, xywh=xywh, area=xywh[:, 2] * xywh[:, 3]))


def _rerun(context: AuditContext, pattern: _Pattern, step: float) -> tuple[str, str, str] | None:
    """Return the option that counts pixels of one side as the other does, its value and its effect, if any does."""
    if (pattern.near, pattern.far, abs(step)) != (1, 1, 1.0):
        return None
    moved, still = (context.pred, context.gt) if step > 0 else (context.gt, context.pred)
    if still.reading.origin:
        return f"{still.role}_origin", "0", f"It keeps x and y of {_SIDES[still.role]} unchanged."
    if moved.reading.origin or moved.reading.units != "px" or moved.format == "arrays":
        return None
    return f"{moved.role}_origin", "1", f"It subtracts 1 from x and y of {_SIDES[moved.role]}."


_SIDES = {"gt": "the ground truth", "pred": "the predictions"}


def _repair(pattern: _Pattern, step: float) -> str:
    """Describe how to correct the predictions, as left, top, width and height."""
    less, more = f"subtract {abs(step):g} from", f"add {abs(step):g} to"
    undo, redo = (less, more) if step > 0 else (more, less)
    todo = {
        (1, 1): f"{undo} x and y of the predictions",
        (0, 1): f"{undo} width and height of the predictions",
        (1, 0): f"{undo} x and y of the predictions and {redo} their width and height",
    }
    return f"Export with the same convention on both sides: {todo[pattern.near, pattern.far]}."


FEWEST = 20  # boxes from which coordinates that are all multiples of a step are not an accident
FIRST = 200  # boxes that are looked at before all are
MAX_DECIMALS = {"px": 1, "norm": 4}  # decimals looked for; finer steps move no box by a tenth of a pixel
NEARLY = 0.01  # of a step: fractions with six decimals come back as pixels that are whole to within it
FINER = 2.0  # how many times coarser one side must be than the other
NOTED, WARNED = 0.01, 0.1  # IoU lost at the smallest tenth of the objects from which a note, a warning is printed
THRESHOLDS = (0.95, 0.75, 0.5)


@dataclass(frozen=True, slots=True)
class Step:
    """The decimal step of which all coordinates of a file are multiples, and how long it is in the common units."""

    decimals: int
    units: str
    length: tuple[float, float]

    def __str__(self) -> str:
        if self.decimals == 0:
            return "whole pixels"
        what = "pixels" if self.units == "px" else "fractions"
        steps = f", in steps of {self.length[0]:.2g} x {self.length[1]:.2g}" if self.units == "norm" else ""
        return f"{what} with {pluralise(self.decimals, 'decimal')}{steps}"


def check_rounding(context: AuditContext, findings: FindingLog) -> None:
    """Report boxes of one side that are rounded while those of the other are not."""
    placed = context.aligned.placement
    if min(len(placed.gt), len(placed.pred)) < FEWEST:
        return
    gt, pred = _decimal_step_of(context, context.gt, placed.gt), _decimal_step_of(context, context.pred, placed.pred)
    if pred is not None and _is_coarser(pred, gt):
        _report_rounding(context, context.pred, pred, findings)
    elif gt is not None and _is_coarser(gt, pred):
        _report_rounding(context, context.gt, gt, findings)


def least_iou(sides: FloatArray, step: npt.ArrayLike) -> FloatArray:
    """Return the lowest IoU that a box of these sides (n, 2) can have with itself rounded to multiples of a step.

    Rounding moves each edge by at most half a step s. Along one axis the edges that move inward take p off the side w,
    those that move outward add q, with p + q <= s; an edge does one of both. With ``o = w - p`` in common per axis,

        1 / IoU = w h / (o_x o_y) + (1 + q_x / o_x) (1 + q_y / o_y) - 1.

    This is linear in each ``1 / o``, so the extremes are at p = 0 and p = s; of the four combinations all edges inward
    is the lowest: ``IoU >= (1 - s / w) (1 - s / h)``, or 0 where a side is no longer than a step. Cutting off instead
    of rounding moves edges by up to a whole step: pass twice the step for it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(sides > 0, 1 - np.asarray(step) / sides, 0.0)
    return np.asarray(np.clip(kept, 0, None).prod(axis=-1))


def fewest_decimals(tables: Iterable[FloatArray], max_decimals: int) -> int | None:
    """Return the fewest decimals that the coordinates (n, 4) of all tables have; None when more than `max_decimals`."""
    possible = list(range(max_decimals + 1))
    for coords in tables:
        # The first boxes settle most files.
        for part in (coords[:FIRST], coords):
            possible = [decimals for decimals in possible if _has_decimals(part, decimals)]
        if not possible:
            return None
    return possible[0]


def _has_decimals(coords: FloatArray, decimals: int) -> bool:
    scaled = coords * 10**decimals
    return bool((np.abs(scaled - np.rint(scaled)) < NEARLY).all())


def _decimal_step_of(context: AuditContext, side: Dataset, boxes: Boxes) -> Step | None:
    """Find the step of one side in the fractions of its file, else in pixels."""
    placed = context.aligned.placement
    in_pixels = placed.units == "px"
    if side.reading.units == "norm":
        n_images = len(placed.images.table)
        sizes = common_sizes(context.pred, placed.images) if in_pixels else np.ones((n_images, 2))
        fractions = (
            from_xywh(table.xywh / np.tile(sizes[table.image], 2), side.reading.encoding) for table in boxes.tables()
        )
        decimals = fewest_decimals(fractions, MAX_DECIMALS["norm"])
        if decimals is not None:
            counts = boxes.counts("image", n_images)
            width, height = (_median(side, counts) / 10**decimals for side in sizes.T)
            return Step(decimals, "norm", (width, height))
    if not in_pixels:
        return None
    decimals = fewest_decimals((table.xywh for table in boxes.tables()), MAX_DECIMALS["px"])
    return None if decimals is None else Step(decimals, "px", (0.1**decimals, 0.1**decimals))


def _median(values: FloatArray, counts: IntArray) -> float:
    """Return the median of values that each occur so many times."""
    order = np.argsort(values)
    total = np.cumsum(counts[order])
    middle = np.searchsorted(total, [(total[-1] - 1) // 2, total[-1] // 2], "right")
    return float(np.mean(values[order][middle]))


def _is_coarser(step: Step, other: Step | None) -> bool:
    return other is None or max(step.length) > FINER * max(other.length)


def _report_rounding(context: AuditContext, side: Dataset, step: Step, findings: FindingLog) -> None:
    """Report what the rounding of one side can cost at the sizes of the objects present."""
    gt = context.aligned.gt

    def overlaps() -> Iterator[FloatArray]:
        return (least_iou(sides, step.length) for sides in _sides_of_objects(gt))

    def lengths() -> Iterator[FloatArray]:
        return (np.sqrt(sides.prod(axis=1)) for sides in _sides_of_objects(gt))

    n = sum(map(len, overlaps()))
    if not n:
        return
    median, smallest = (1 - value for value in quantiles(overlaps, n, (0.5, 0.1)))
    # Ground truth is drawn in whole pixels as a rule, predictions are not: for those, whole pixels matter at any size.
    if smallest < WARNED and (side.role == "gt" or (smallest < NOTED and step.decimals > 0)):
        return
    what, other = (
        ("ground truth is", "predictions are") if side.role == "gt" else ("predictions are", "the ground truth is")
    )
    usual, short = quantiles(lengths, n, (0.5, 0.1))
    text = (
        f"{what} rounded to {step}, {other} not: this can cost up to {median:.3f} IoU at the median object "
        f"(side {usual:.3g}) and {smallest:.3f} or more at the smallest tenth (side {short:.3g}), about "
        "twice that if digits were cut off"
    )
    below = (sum(int(np.count_nonzero(part < t)) for part in overlaps()) for t in THRESHOLDS)
    evidence_rows = tuple((f"{t:g}", f"{count / n:.1%}") for t, count in zip(THRESHOLDS, below, strict=True))
    table = (("IoU threshold", "objects that rounding alone can push below it"), *evidence_rows)
    severity = Severity.WARNING if side.role == "pred" and smallest >= WARNED else Severity.NOTE
    fix = "Export coordinates with all their digits."
    findings.add_one(severity, "box-rounded", Where(side.path), text, fix=fix, table=table)


def _sides_of_objects(gt: Boxes) -> Iterator[FloatArray]:
    """Yield width and height (n, 2) of the objects that have an area, table by table."""
    for table in gt.tables():
        sides = table.xywh[~table.crowd, 2:]
        yield sides[(sides > 0).all(axis=1)]


DIGIT = 16  # bits of a number that one pass decides


def quantiles(parts: Callable[[], Iterable[FloatArray]], n: int, shares: Sequence[float]) -> list[float]:
    """Return quantiles of n numbers, none negative, that come in parts and need not fit into memory.

    The same to the last bit as ``np.quantile``, which loads NumPy's masked arrays. The numbers next to each quantile
    are those of a single part in order; of several they are found digit by digit, as the bits of floats that are not
    negative have the order of the floats.
    """
    places = [share * (n - 1) for share in shares]
    ranks = np.array([min(math.floor(place) + step, n - 1) for place in places for step in (0, 1)])
    first = list(itertools.islice(parts(), 2))
    found = _ranked(parts, ranks) if len(first) > 1 else np.sort(first[0])[ranks]
    low, high = found.reshape(-1, 2).T
    after = np.array(places) % 1
    # As NumPy does it, from the nearer of the two.
    between = np.where(after < 0.5, low + (high - low) * after, high - (high - low) * (1 - after))
    return [float(value) for value in between]


def _ranked(parts: Callable[[], Iterable[FloatArray]], ranks: npt.NDArray[np.int64]) -> FloatArray:
    """Return the numbers of these ranks among those of all parts."""
    ranks, found = ranks.copy(), np.zeros(len(ranks), dtype=np.uint64)
    for shift in range(64 - DIGIT, -1, -DIGIT):
        counts = np.zeros((len(ranks), 1 << DIGIT), dtype=np.int64)
        for part in parts():
            bits = (part + 0.0).view(np.uint64) >> np.uint64(shift)
            for row, start in enumerate(found):
                digits = bits[bits >> np.uint64(DIGIT) == start] & np.uint64((1 << DIGIT) - 1)
                counts[row] += np.bincount(digits.astype(np.int64), minlength=1 << DIGIT)
        before = np.cumsum(counts, axis=1)
        for row, rank in enumerate(ranks.tolist()):
            digit = int(np.searchsorted(before[row], rank, "right"))
            ranks[row] -= before[row, digit - 1] if digit else 0
            found[row] = found[row] << np.uint64(DIGIT) | np.uint64(digit)
    return found.view(np.float64)


DOUBTED = 0.5  # share of objects in the place of a prediction below which readings are tried; sound sets reach .63
TRIAL_BOXES = 4_000  # boxes of either side that a trial looks at, at most about
FEWEST_GAINED = 4  # objects that another reading must find beyond those found as given
CLEAR_GAIN = 0.1  # AP50 by which another reading must be better
LEAVING, STAYING = 0.2, 0.02  # share of boxes outside from which a reading is doubted, to which another one is believed
FEWEST_BOXES = 3  # from which numbers alone are evidence
LARGEST_FRACTION = 1.01  # exporters of fractions overshoot a little
SMALLEST_IMAGE = 16.0  # px; boxes of a smaller image may well be a pixel wide
IOU = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """How the numbers of a file became the boxes of one side: nothing but this goes to another process."""

    given: Reading
    sizes: FloatArray
    units: str

    def of(self, boxes: BoxTable) -> FloatArray:
        """Return the four numbers of each box as the file has them, up to rounding; NaN where that needs a size."""
        given = self.given
        if given.resized is not None:
            return from_xywh(given.resized.apply(boxes.xywh, self.sizes[boxes.image]), given.encoding)
        scaled = self.units == "px" and given.units == "norm"
        return from_xywh(boxes.xywh / self._scale(boxes) if scaled else boxes.xywh, given.encoding)

    def read_anew(self, boxes: BoxTable, *, reading: Reading) -> BoxTable:
        """Read the numbers as something else."""
        if boxes.shapes is not None and reading.resized is not None and self.given.resized is None:
            return reading.resized.mapped_back(boxes, self.sizes)
        xywh = to_xywh(self.of(boxes), reading.encoding)
        if self.units == "px" and reading.units == "norm":
            xywh = xywh * self._scale(boxes)
        if reading.resized is not None:
            xywh = reading.resized.undo(xywh, self.sizes[boxes.image])
        with np.errstate(over="ignore"):  # of numbers that no reading makes boxes of
            area = xywh[:, 2] * xywh[:, 3]
        return freeze(replace(boxes, xywh=xywh, area=area))

    def _scale(self, boxes: BoxTable) -> FloatArray:
        size = self.sizes[boxes.image]
        return np.concatenate((size, size), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The boxes of both sides as they are, with what is needed to read them anew."""

    gt: Boxes
    pred: Boxes
    readings: dict[str, Reading]
    sizes: FloatArray
    units: str

    @classmethod
    def of(cls, context: AuditContext, gt: Boxes, pred: Boxes) -> View:
        """Return boxes in the rows of the alignment with how both sides were read."""
        readings = {side.role: side.reading for side in (context.gt, context.pred)}
        return cls(gt, pred, readings, image_sizes(context), context.aligned.units)

    def numbers(self, role: str) -> FloatArray:
        """Return the four numbers of each box as the file has them, up to rounding; NaN where that needs a size."""
        return _Numbers(self.readings[role], self.sizes, self.units).of(self.table(role))

    def reread(self, role: str, reading: Reading) -> View:
        """Take the numbers of one side for something else."""
        given = _Numbers(self.readings[role], self.sizes, self.units)
        changed = self.boxes(role).mapped(partial(given.read_anew, reading=reading))
        readings = {**self.readings, role: reading}
        if role == "gt":
            return replace(self, gt=changed, readings=readings)
        return replace(self, pred=changed, readings=readings)

    def boxes(self, role: str) -> Boxes:
        """Return the boxes of one side."""
        return self.gt if role == "gt" else self.pred

    def table(self, role: str) -> BoxTable:
        """Return the boxes of one side as one table, which those of a sample are."""
        return self.boxes(role).whole()

    def leaving(self, role: str) -> float:
        """Share of the boxes that leave their image or are turned inside out."""
        boxes = self.table(role)
        size = self.sizes[boxes.image]
        wrong = np.concatenate((leaving(boxes.xywh, size, self.units), boxes.xywh[:, 2:] < 0), axis=1)
        known = np.flatnonzero(~np.isnan(size).any(axis=1))
        return np.count_nonzero(wrong[known].any(axis=1)) / len(known) if len(known) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """One side read anew, and how well both sides then agree by place."""

    role: str
    view: View
    agreement: Agreement
    is_decisive: bool = False

    @property
    def reading(self) -> Reading:
        return self.view.readings[self.role]


def check_transposed(context: AuditContext, findings: FindingLog) -> None:
    """Warn of fractions of images whose listed width and height changed places: in pixels they lie elsewhere."""
    view = View.of(context, context.sample.gt, context.sample.pred)
    roles = [role for role, given in view.readings.items() if given.units == "norm" and given.resized is None]
    present = place_agreement(context.sample)
    if view.units != "px" or len(roles) != 1 or present.share >= DOUBTED or np.isnan(view.sizes).any():
        return
    (role,) = roles

    def transposed(boxes: BoxTable) -> BoxTable:
        factor = (view.sizes[:, ::-1] / view.sizes)[boxes.image]
        return freeze(replace(boxes, xywh=boxes.xywh * np.tile(factor, 2)))

    other = {side: view.table(side) for side in view.readings}
    other[role] = transposed(other[role])
    agreement = place_agreement(pair_by_place(other["gt"], other["pred"]))
    if agreement.found - present.found < FEWEST_GAINED or not is_better(agreement, present):
        return
    whole = {"gt": context.aligned.gt, "pred": context.aligned.pred}
    given = average_precision(context, whole["gt"], whole["pred"], iou=IOU, pooled=True)
    whole[role] = whole[role].mapped(transposed)
    right = average_precision(context, whole["gt"], whole["pred"], iou=IOU, pooled=True)
    if right - given < CLEAR_GAIN:
        return
    detail = (
        "width and height of the images seem swapped: fractions are multiplied by the wrong side; AP50 (classes pooled)"
        f" {given:.3f} as listed, {right:.3f} with them exchanged"
    )
    words = "Write the sizes of the images as they are displayed, or pass {images}, which reads them from the images."
    where, fix = Where(context.gt.path, field="image"), Fix.of_side(role, words, images=None)
    findings.warning("image-size-transposed", where, detail, fix=fix)


def check_readings(context: AuditContext, findings: FindingLog) -> None:
    """Warn of boxes that look like another encoding or other units than they were read as."""
    if findings.has("box-resized", "image-size-transposed"):
        return
    view = View.of(context, context.sample.gt, context.sample.pred)
    if place_agreement(context.sample).share >= DOUBTED:
        if all(view.leaving(role) > LEAVING or are_fractions(view, role) for role in ("gt", "pred")):
            _check_alone(context, view, findings)  # both sides are wrong alike
        return
    best = _best_trial(context)
    if best is None or not _confirm(context, best, findings):
        _check_alone(context, view, findings)


def _best_trial(context: AuditContext) -> _Trial | None:
    """Return the reading of one side under which predictions lie on far more objects; None where there is none.

    Two readings can agree alike, as mirrored boxes agree with mirrored objects: then fewer boxes outside the images
    decide, then that predictions are more often exported wrongly.
    """
    placed = context.aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table), limit=TRIAL_BOXES)
    present = place_agreement(sample)
    view = View.of(context, sample.gt, sample.pred)
    trials: list[tuple[_Trial, Sample]] = []
    for role in ("pred", "gt"):
        for reading in _readings(view, role):
            reread = view.reread(role, reading)
            with np.errstate(over="ignore", invalid="ignore"):  # boxes read wrongly can have any size
                paired = pair_by_place(reread.gt, reread.pred)
            agreement = place_agreement(paired)
            trials.append((_Trial(role, reread, agreement), paired))
    if not trials:
        return None
    best, paired = max(trials, key=lambda trial: _weight(trial[0]))
    gained = best.agreement.found - present.found
    if gained < FEWEST_GAINED or not is_better(best.agreement, present):
        return None
    return replace(best, is_decisive=is_decisive(sample, paired))


def _weight(trial: _Trial) -> tuple[float, float]:
    return round(trial.agreement.share, 2), -round(trial.view.leaving(trial.role), 2)


def _readings(view: View, role: str) -> Iterator[Reading]:
    """Yield the readings of one side that its numbers allow, other than the present one."""
    present = view.readings[role]
    for units in possible_units(view, role):
        for encoding in ENCODINGS:
            reading = replace(present, encoding=encoding, units=units)
            # Fractions are the same on images of any size.
            reading = replace(reading, resized=None) if units == "norm" else reading
            if reading != present:
                yield reading
    if present.resized is not None:
        yield replace(present, resized=None)


def possible_units(view: View, role: str) -> list[str]:
    """Return the present units, and the others where the numbers and sizes allow them."""
    present = view.readings[role].units
    numbers = view.numbers(role)
    if not len(numbers) or np.isnan(numbers).any():
        return []
    largest = np.abs(numbers).max(axis=1)  # (n,)
    others = largest > LARGEST_FRACTION if present == "norm" else largest <= LARGEST_FRACTION
    sized = not np.isnan(view.sizes[view.table(role).image]).any()
    plausible = view.units == "px" and sized and others.mean() > DOUBTED
    return [present, "px" if present == "norm" else "norm"] if plausible else [present]


def _confirm(context: AuditContext, trial: _Trial, findings: FindingLog) -> bool:
    """Match all boxes as given and as the trial reads them, and report a clear gain."""
    aligned = context.aligned
    view = View.of(context, aligned.gt, aligned.pred)
    other = view.reread(trial.role, trial.reading)
    for pooled in (False, True):  # if classes do not correspond either, only places are evidence
        given, reread = (
            average_precision(context, boxes.gt, boxes.pred, iou=IOU, pooled=pooled) for boxes in (view, other)
        )
        if reread - given >= CLEAR_GAIN:
            is_units = trial.reading.encoding == view.readings[trial.role].encoding
            name = f"as {UNITS[trial.reading.units] if is_units else trial.reading.encoding}"
            if trial.reading.resized != view.readings[trial.role].resized:
                name = "read without it"
            classes = " (classes pooled)" if pooled else ""
            text = f"AP50{classes} {given:.3f} as given, {reread:.3f} {name}"
            fix = _fix(side_of(context, trial.role), trial.reading, "AP50", given, reread)
            fix = advised(fix, pair_by_place(trial.view.gt, trial.view.pred))
            _report(context, trial.role, trial.reading, text, findings, fix=fix, is_decisive=trial.is_decisive)
            return True
    return False


def _check_alone(context: AuditContext, view: View, findings: FindingLog) -> None:
    """Look at each side for itself: numbers that can only be fractions, and boxes that leave their images."""
    doubts: dict[str, tuple[Reading, str]] = {}
    exchanged = replace(view, sizes=view.sizes[:, ::-1])
    in_pixels = [role for role, given in view.readings.items() if given.units == "px"]  # fractions fit anywhere
    are_transposed = bool(in_pixels) and all(
        exchanged.leaving(role) <= STAYING < view.leaving(role) for role in in_pixels
    )
    for role in ("gt", "pred"):
        side, n = side_of(context, role), len(view.boxes(role))
        # Few boxes may be of single pixels, but hardly of parts of one.
        is_enough = n >= FEWEST_BOXES or bool((view.numbers(role) % 1).any(axis=1).all())
        if n and is_enough and are_fractions(view, role):
            reading = replace(side.reading, units="norm")
            boxes = pluralise(n, "box", "boxes")
            doubts[role] = reading, f"no number of {boxes} exceeds 1, but they are read as pixels"
            continue
        if n < FEWEST_BOXES:
            continue
        share = view.leaving(role)
        # Boxes of both sides that fit into images of exchanged sides show how these were listed.
        inside = _reading_inside(view, role) if share > LEAVING and not are_transposed else None
        if inside is not None:
            text = f"{share:.0%} of the boxes leave their images as {side.reading.encoding}, {inside[1]:.0%} as"
            doubts[role] = inside[0], f"{text} {inside[0].encoding}"
    if not doubts:
        return
    # Sides that were written alike are read anew together: one of them alone would not fit the other.
    other, whole = view, View.of(context, context.aligned.gt, context.aligned.pred)
    reread_whole = whole
    for role, (reading, _) in doubts.items():
        other, reread_whole = other.reread(role, reading), reread_whole.reread(role, reading)
    with np.errstate(over="ignore", invalid="ignore"):
        given, reread = (
            average_precision(context, boxes.gt, boxes.pred, iou=IOU, pooled=True) for boxes in (whole, reread_whole)
        )
    # Boxes of both sides that are too large alike overlap more than they do when read rightly.
    is_worse = len(doubts) < len(view.readings) and reread < given - CLEAR_GAIN
    inside_given, inside_reread = (1 - max(boxes.leaving(role) for role in doubts) for boxes in (view, other))
    for role, (reading, text) in doubts.items():
        fix = None
        if reread > given:
            fix = _fix(side_of(context, role), reading, "AP50", given, reread)
        elif inside_reread > inside_given and not is_worse:
            fix = _fix(side_of(context, role), reading, "boxes inside their images", inside_given, inside_reread)
        elif side_of(context, role).format != "arrays" and not is_worse:
            changed = changed_options(side_of(context, role).reading, reading)
            fix = Fix.of_side(role, "If they are, pass {options}.", **changed)
        _report(context, role, reading, text, findings, fix=fix)


def are_fractions(view: View, role: str) -> bool:
    """Whether boxes in pixels have the numbers of fractions, although images, or other boxes, are larger."""
    if view.units != "px" or view.readings[role].units != "px":
        return False
    if not (np.abs(view.numbers(role)) <= LARGEST_FRACTION).all():
        return False
    size = view.sizes[view.table(role).image]
    other = view.table("pred" if role == "gt" else "gt").xywh
    reach = size if not np.isnan(size).any() else other[:, :2] + other[:, 2:]
    return bool(len(reach)) and float(np.median(reach)) >= SMALLEST_IMAGE


def _reading_inside(view: View, role: str) -> tuple[Reading, float] | None:
    """Return the first encoding under which the boxes stay in their images, with the share that does not."""
    present = view.readings[role]
    for encoding in ENCODINGS:
        reading = replace(present, encoding=encoding)
        share = view.reread(role, reading).leaving(role)
        if reading != present and share <= STAYING:
            return reading, share
    return None


def side_of(context: AuditContext, role: str) -> Dataset:
    """Return one side as it was read."""
    return context.gt if role == "gt" else context.pred


def _report(
    context: AuditContext,
    role: str,
    reading: Reading,
    text: str,
    findings: FindingLog,
    *,
    fix: Fix | None,
    is_decisive: bool = False,
) -> None:
    side = side_of(context, role)
    given = side.reading
    changed = changed_options(given, reading)
    named = any(name in changed for name in given.named)
    code = (
        "box-resized"
        if "resized" in changed
        else "box-units"
        if "units" in changed
        else "box-axes"
        if reading.encoding in AXES
        else "box-encoding"
    )
    detail = f"boxes look like {_name(reading, given)}: {text}"
    where = Where(side.path, field="box")
    if is_decisive and fix is not None and context.stops(code, named=named):
        findings.error(code, where, detail, fix=replace(fix, allow=code))
    else:
        findings.warning(code, where, detail, fix=fix)


AXES = {"xxyy": "x1, x2, y1, y2", "yxyx": "y1, x1, y2, x2"}
UNITS = {"px": "pixels", "norm": "fractions"}
UNITS_EXPLAINED = {"px": "pixels", "norm": "fractions of the image (normalised)"}


def _name(reading: Reading, given: Reading) -> str:
    """Name what is different about a reading."""
    encoding = reading.encoding if reading.encoding != given.encoding else ""
    if encoding in AXES:
        encoding = f"{encoding} ({AXES[encoding]})"
    units = UNITS_EXPLAINED[reading.units] if reading.units != given.units else ""
    if reading.resized != given.resized:
        units = "pixels of the images"
    return " in ".join(part for part in (encoding, units) if part)


def _fix(side: Dataset, reading: Reading, metric: str, before: float, after: float) -> Fix:
    words = "Rerun {changes}."
    # What was not done is expressed by omitting the option.
    options: dict[str, Value] = {
        f"{side.role}_{name}": value for name, value in changed_options(side.reading, reading).items()
    }
    if side.format == "arrays":
        words = f'Pass encoding="{reading.encoding}" to BoxTable.from_arrays.'
        options = {}
    return Fix.reading(options, metric=metric, before=before, after=after, words=words)


def changed_options(given: Reading, reading: Reading) -> dict[str, str]:
    """Return the options of a side that make another reading of it, empty where one is to be skipped."""
    stated = [
        {
            "box": one.encoding,
            "units": one.units,
            "mask_axes": one.mask_axes,
            "resized": "" if one.resized is None else str(one.resized),
        }
        for one in (given, reading)
    ]
    return {name: value for name, value in stated[1].items() if value != stated[0][name]}
