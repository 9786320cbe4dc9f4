"""Were keypoints, oriented boxes and masks read correctly? Other readings of a sample are compared with the objects."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from jaccard_eval.data.alignment import Alignment, common_sizes
from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, FloatArray, Shapes, freeze
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.resizing import MIRROR, Resizing
from jaccard_eval.features.audit import (
    OVERLAPPED,
    Agreement,
    AuditContext,
    IntArray,
    Sample,
    average_precision,
    is_better,
    is_decisive,
    pair_by_place,
    place_agreement,
    take_sample,
)
from jaccard_eval.features.audit.boxes import CLEAR_GAIN, DOUBTED, FEWEST_GAINED, IOU, TRIAL_BOXES, image_sizes
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.fixes import IMAGES_OF, Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import measure_aligned
from jaccard_eval.options import ANGLES, AS_WRITTEN, MASK_AXES, spelled_angle
from jaccard_eval.similarity.boundary import boundaries, boundary_width
from jaccard_eval.similarity.keypoints import COCO_FLIPPED, Keypoints, PoseSide
from jaccard_eval.similarity.masks import Outlines, filled, masks_of, on_canvases, outlines_of
from jaccard_eval.similarity.obb import Quads, QuadSide, quad_pairs
from jaccard_eval.text import quoted_value

TRIAL_PAIRS = 2_000  # that a trial compares, at most about
TRIAL_DISTANCES = 2_000_000  # between points of poses, at most about: those of a whole body are many

AnyShapes = TypeVar("AnyShapes", Keypoints, Quads)


def _shapes(boxes: BoxTable, kind: type[AnyShapes]) -> AnyShapes | None:
    """Return the shapes of a table if they are of a kind, as those of a table without rows may not be."""
    shapes: object = boxes.shapes
    return shapes if isinstance(shapes, kind) and len(shapes) else None


def _with_shapes(boxes: BoxTable, shapes: Shapes) -> BoxTable:
    return freeze(replace(boxes, shapes=shapes, xywh=shapes.bounds()))


def clear_gain(
    context: AuditContext, given: tuple[Boxes, Boxes], changed: tuple[Boxes, Boxes]
) -> tuple[float, float, str] | None:
    """Return AP50 of boxes as given and as changed, where it is clearly better; if classes are pooled, a remark."""
    for pooled in (False, True):  # if classes do not correspond either, only places are evidence
        before = average_precision(context, *given, iou=IOU, pooled=pooled)
        after = average_precision(context, *changed, iou=IOU, pooled=pooled)
        if after - before >= CLEAR_GAIN:
            return before, after, " (classes pooled)" if pooled else ""
    return None


# Keypoints


@dataclass(frozen=True, slots=True, eq=False)
class _Poses:
    """Predicted poses next to those of the objects in their place."""

    found: FloatArray  # (n, k, 3)
    truth: PoseSide  # n of k points

    @classmethod
    def of(cls, sample: Sample, context: AuditContext) -> _Poses | None:
        """Take pairs of a sample; None where they are too few, or have not as many points."""
        pred_rows, gt_rows = sample.objects()
        gt, pred = _shapes(sample.gt, Keypoints), _shapes(sample.pred, Keypoints)
        if gt is None or pred is None or gt.points.shape[1] != pred.points.shape[1]:
            return None
        (labelled,) = np.nonzero((gt.points[gt_rows, :, 2] > 0).any(axis=1))
        most = min(TRIAL_PAIRS, TRIAL_DISTANCES // gt.points.shape[1] ** 2)
        chosen = labelled[:: 1 + len(labelled) // max(most, FEWEST_GAINED)]
        if len(chosen) < FEWEST_GAINED:
            return None
        objects = sample.gt.take(gt_rows[chosen])
        return cls(pred.points[pred_rows[chosen]], PoseSide.prepare(objects, context.metrics.protocol))

    def likeness(self) -> FloatArray:
        """Return how near point i of predictions is to point j of objects, (k, k); NaN where no object has one."""
        found = []
        for j, variance in enumerate(self.truth.variances.tolist()):
            (rows,) = np.nonzero(self.truth.points[:, j, 2] > 0)
            away = self.found[rows, :, :2] - self.truth.points[rows, j, None, :2]
            error = (away**2).sum(axis=2) / (2 * variance * (self.truth.area[rows, None] + np.spacing(1)))
            found.append(np.exp(-error).mean(axis=0) if len(rows) else np.full(self.found.shape[1], np.nan))
        return np.stack(found, axis=1)


@dataclass(frozen=True, slots=True)
class _PoseTrial:
    """Predicted points in another order, or mirrored, and how near they then are to the points of objects."""

    order: tuple[int, ...]
    is_mirrored: bool
    likeness: float

    @property
    def is_ordered(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    @property
    def order_text(self) -> str:
        return ",".join(map(str, self.order))


# Parts of what COCO's points are called, from the nose to the ankles; and of those of AP-10K alone.
_COCO_PARTS = ("nose", *("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle"))
_ANIMAL_PARTS = ("paw", "tail")


def _doubt_sigmas(context: AuditContext, findings: FindingLog) -> None:
    """Warn of 17 points that the file calls otherwise than COCO's, if they have the sigmas of these."""
    names = [name.lower() for name in context.gt.point_names]
    # Points that differ in their number alone (p1, p2) have no names.
    is_named = len({re.sub(r"[\W\d_]", "", name) for name in names}) > 1
    if context.metrics.protocol.sigmas or len(names) != len(COCO_FLIPPED) or not is_named:
        return
    parts = [_COCO_PARTS[(at + 1) // 2] for at in range(len(names))]
    other = next((at for at, part in enumerate(parts) if part not in names[at]), None)
    if other is None:
        return
    is_animal = all(any(part in name for name in names) for part in _ANIMAL_PARTS)
    given, usual = quoted_value(context.gt.point_names[other]), parts[other]
    detail = f"point {other + 1} is {given}, where COCO has {usual}: its sigmas are not those of these points"
    fix = Fix.missing("Pass {sigmas}, one per keypoint, or a name.", sigmas=None)
    if is_animal or "head_bottom" in names:
        fix = Fix.missing("Pass {sigmas}.", sigmas="ap10k" if is_animal else "posetrack18")
    findings.warning("keypoints-sigmas", Where(context.gt.path, field="keypoints"), detail, fix=fix)


def check_keypoints(context: AuditContext, findings: FindingLog) -> None:
    """Warn of poses whose points look exchanged, such as left and right, or mirrored in their images."""
    if context.metrics.protocol.iou_type != "keypoints":
        return
    _doubt_sigmas(context, findings)
    given = _paired_poses(context.sample.gt, context.sample.pred)
    present, poses = place_agreement(given), _Poses.of(given, context)
    trials = [] if poses is None else [*_orders(poses, is_mirrored=False)]
    mirrored = _mirrored(context.sample.pred, image_sizes(context))
    if mirrored is not None and present.share < DOUBTED:
        paired = _paired_poses(context.sample.gt, mirrored)
        poses = _Poses.of(paired, context) if is_better(place_agreement(paired), present) else None
        trials += [] if poses is None else [*_orders(poses, is_mirrored=True)]
    best = max(trials, key=lambda trial: trial.likeness, default=None)
    if best is None:
        return
    pred = context.aligned.pred.mapped(partial(_in_order, order=best.order))
    changed = _mirrored(pred.whole(), image_sizes(context)) if best.is_mirrored else pred
    gt = context.aligned.gt
    gain = None if changed is None else clear_gain(context, (gt, context.aligned.pred), (gt, changed))
    if gain is None:
        return
    as_given, right, pooled = gain
    evidence = f"AP50{pooled} {as_given:.3f} as given, {right:.3f}"
    where = Where(context.pred.path, field="keypoints")
    exchanged = "left and right exchanged" if best.order == COCO_FLIPPED else "points in the order " + best.order_text
    options: dict[str, Value] = {"pred_resized": MIRROR} if best.is_mirrored else {}
    options |= {} if best.is_ordered else {"pred_keypoint_order": best.order_text}
    fix = Fix.reading(options, metric="AP50", before=as_given, after=right)
    if best.is_mirrored:
        with_order = "" if best.is_ordered else f" and {exchanged}"
        detail = f"poses look mirrored in their images: {evidence} with x from the other side{with_order}"
        if context.pred.reading.resized is not None:  # which the option names already
            fix = Fix.missing("Map predictions on mirrored images back: x becomes width - x.")
        findings.warning("keypoints-mirrored", where, detail, fix=fix)
    else:
        findings.warning("keypoints-order", where, f"points look exchanged: {evidence} with {exchanged}", fix=fix)


def _in_order(boxes: BoxTable, *, order: tuple[int, ...]) -> BoxTable:
    """Return poses with their points in another order."""
    poses = _shapes(boxes, Keypoints)
    return boxes if poses is None else _with_shapes(boxes, Keypoints(poses.points[:, list(order)]))


def _paired_poses(gt: BoxTable, pred: BoxTable) -> Sample:
    """Pair poses that have about one centre and one extent, however near their points are."""
    return pair_by_place(_around_points(gt), _around_points(pred))


def _around_points(boxes: BoxTable) -> BoxTable:
    """Return squares around the middle of the points that are there, as large as these are spread.

    The boxes of files may be of more than the points, and differ from the bounds of these by far.
    """
    poses = _shapes(boxes, Keypoints)
    if poses is None:
        return boxes
    is_there = poses.points[:, :, 2] > 0
    is_there |= ~is_there.any(axis=1, keepdims=True)
    # Medians: points that were not found are written as zeros by some, and moved by far where the rest is right.
    xy = poses.points[:, :, :2]
    centre = _medians(xy, is_there)
    spread = np.hypot(*_medians(np.abs(xy - centre[:, None]), is_there).T)[:, None]
    return freeze(replace(boxes, xywh=np.concatenate((centre - spread, 2 * spread, 2 * spread), axis=1)))


def _medians(values: FloatArray, counts: BoolArray) -> FloatArray:
    """Return the upper medians of the values (n, k, 2) that count (n, k), at least one in each row."""
    in_order = np.sort(np.where(counts[:, :, None], values, np.inf), axis=1)
    return np.asarray(np.take_along_axis(in_order, (counts.sum(axis=1) // 2)[:, None, None], axis=1)[:, 0])


def _orders(poses: _Poses, *, is_mirrored: bool) -> Iterator[_PoseTrial]:
    """Yield the order in which each point of a prediction is nearest to one point of the objects."""
    likeness = poses.likeness()
    n = len(likeness)
    known = np.flatnonzero(~np.isnan(likeness).any(axis=0))
    given = float(likeness[known, known].mean())
    nearest = likeness[:, known].argmax(axis=0)
    if is_mirrored:
        yield _PoseTrial(tuple(range(n)), is_mirrored, given)
    if len(np.unique(nearest)) < len(nearest):
        return
    # Points that no object has cannot be compared: they stay, or take what is free.
    order = np.full(n, -1)
    order[known] = nearest
    free = [point for point in range(n) if point not in order]
    for point in np.flatnonzero(order < 0).tolist():
        order[point] = free.pop(free.index(point)) if point in free else -1
    order[order < 0] = free
    trial = _PoseTrial(tuple(order.tolist()), is_mirrored, float(likeness[nearest, known].mean()))
    if not trial.is_ordered and trial.likeness - given >= CLEAR_GAIN:
        yield trial


def _mirrored(pred: BoxTable, sizes: FloatArray) -> BoxTable | None:
    """Return poses with x counted from the right side of their images, None where sizes are not known."""
    has_boxes = pred.counts("image", len(sizes)) > 0
    if np.isnan(sizes[has_boxes, 0]).any():
        return None
    return pred.mapped(partial(Resizing.parse(MIRROR).mapped_back, sizes=sizes))


# Oriented boxes

_CERTAIN = 3.0  # standard errors by which the mean IoU of pairs must gain
_LEAST_MEAN_GAIN = 0.005
FEWEST_BEYOND = 3  # centres outside of their images, from which it is not an accident


@dataclass(frozen=True, slots=True)
class _Turn:
    """Another reading of the angles of one side."""

    role: str
    angle: str = ""  # one of `ANGLES` that angles may have been meant as; empty where the file has corners
    swaps_sides: bool = False  # width and height are exchanged, which is a turn by a right angle
    overlap: float = 0.0  # of pairs, on average

    def apply(self, quads: Quads, given: str) -> Quads:
        """Read anew what was read as `given`; corners of a file, read as nothing, turn the other way."""
        centre = quads.corners.mean(axis=1, keepdims=True)
        arms = quads.corners - centre
        if self.swaps_sides:
            return Quads(centre + np.stack((-arms[..., 1], arms[..., 0]), axis=-1))
        if not self.angle:
            return Quads(centre + arms * np.array([1.0, -1.0]))
        along, across = quads.corners[:, 1] - quads.corners[:, 0], quads.corners[:, 2] - quads.corners[:, 1]
        turned = np.arctan2(along[:, 1], along[:, 0])
        number = _sign(given) * (np.degrees(turned) if given.startswith("deg") else turned)
        radians = _sign(self.angle) * (np.radians(number) if self.angle.startswith("deg") else number)
        sides = np.stack((np.hypot(*along.T), np.hypot(*across.T)), axis=1)
        return Quads.rotated(np.concatenate((centre[:, 0], sides), axis=1), radians)

    @property
    def name(self) -> str:
        """What boxes are called that are read so."""
        if self.swaps_sides:
            return "with width and height exchanged"
        return f"as {spelled_angle(self.angle)}" if self.angle else "turned the other way"

    def fix(self, before: float, after: float) -> Fix:
        """How to read them so, or to write them."""
        words, options = "Rerun {changes}.", dict[str, Value]()
        if self.swaps_sides:
            words = "Exchange width and height, or turn the angles by 90 degrees, and export again."
        elif self.angle:
            options = {f"{self.role}_angle": self.angle}
        else:
            words = "Negate the angles that the corners are computed from, and export again."
        return Fix.reading(options, metric="AP50", before=before, after=after, words=words)


def _sign(angle: str) -> int:
    return -1 if angle.endswith("-ccw") else 1


def check_angles(context: AuditContext, findings: FindingLog) -> None:
    """Warn of oriented boxes that look turned the other way, in another unit, or by a right angle."""
    if context.metrics.protocol.iou_type not in ORIENTED:
        return
    _check_upright(context, findings)
    _check_centres(context, findings)
    pairs = _pairs_of_centres(context.sample)
    if pairs is None:
        return
    sides: dict[str, Dataset] = {"pred": context.pred, "gt": context.gt}
    given = _mean_overlap(pairs["pred"], pairs["gt"])
    trials = []
    for turn in (turn for role, side in sides.items() for turn in _turns(side, context.aligned.units)):
        reread = {**pairs, turn.role: turn.apply(pairs[turn.role], sides[turn.role].reading.angle)}
        trials.append(replace(turn, overlap=_mean_overlap(reread["pred"], reread["gt"])))
    # Turning either side may do: rather the one whose angles nobody named and an option changes.
    best = max(
        trials,
        key=lambda turn: (
            round(turn.overlap, 2),
            bool(turn.angle) and "angle" not in sides[turn.role].reading.named,
            bool(turn.angle),
        ),
    )
    if best.overlap - given < CLEAR_GAIN:
        _check_both_directions(context, pairs, findings)
        return
    side, tables = sides[best.role], {"gt": context.aligned.gt, "pred": context.aligned.pred}
    tables[best.role] = tables[best.role].mapped(partial(_turned, turn=best, given=side.reading.angle))
    gain = clear_gain(context, (context.aligned.gt, context.aligned.pred), (tables["gt"], tables["pred"]))
    if gain is not None:
        as_given, right, pooled = gain
        detail = f"angles look wrong: AP50{pooled} {as_given:.3f} as given, {right:.3f} {best.name}"
        findings.warning("angle-convention", Where(side.path, field="angle"), detail, fix=best.fix(as_given, right))


def _check_centres(context: AuditContext, findings: FindingLog) -> None:
    """Stop at boxes whose centres leave their images as x and y, and none as y and x: rows and columns are such."""
    sizes = image_sizes(context)
    for side, boxes in ((context.gt, context.sample.gt), (context.pred, context.sample.pred)):
        quads = _shapes(boxes, Quads)
        if quads is None or not side.reading.angle:
            continue
        centres, within = quads.corners.mean(axis=1), sizes[boxes.image]
        n_beyond = int((centres > within).any(axis=1).sum())
        if n_beyond < FEWEST_BEYOND or not (centres[:, ::-1] <= within).all():
            continue
        detail = f"{n_beyond:,} of {len(boxes):,} centres lie outside of their images as x, y, and none as y, x"
        fix = Fix.missing("Exchange the first two numbers of each box of such a side: x is the column, y the row.")
        is_doubtless = context.stops("box-axes", named=False)
        fix = replace(fix, allow="box-axes") if is_doubtless else fix
        report = findings.error if is_doubtless else findings.warning
        report("box-axes", Where(side.path, field="box"), detail, fix=fix)


def _check_both_directions(context: AuditContext, pairs: Mapping[str, Quads], findings: FindingLog) -> None:
    """Warn where angles of both sides, which nobody named, overlap clearly more when both turn the other way.

    Of two sides in one convention a wrong direction mirrors each box on its own: most overlaps change a little.
    """
    sides: dict[str, Dataset] = {"gt": context.gt, "pred": context.pred}
    if any(not side.reading.angle or "angle" in side.reading.named for side in sides.values()):
        return
    units = {role: side.reading.angle.partition("-")[0] for role, side in sides.items()}
    turns = {
        role: _Turn(role, f"{units[role]}-{'ccw' if _sign(side.reading.angle) > 0 else 'cw'}")
        for role, side in sides.items()
    }
    reread = {role: turn.apply(pairs[role], sides[role].reading.angle) for role, turn in turns.items()}
    gains = _overlaps(reread["pred"], reread["gt"]) - _overlaps(pairs["pred"], pairs["gt"])
    if gains.mean() < max(_LEAST_MEAN_GAIN, _CERTAIN * float(gains.std()) / math.sqrt(len(gains))):
        return
    tables = {"gt": context.aligned.gt, "pred": context.aligned.pred}
    for role, turn in turns.items():
        tables[role] = tables[role].mapped(partial(_turned, turn=turn, given=sides[role].reading.angle))
    before = average_precision(context, context.aligned.gt, context.aligned.pred, iou=IOU)
    after = average_precision(context, tables["gt"], tables["pred"], iou=IOU)
    if after > before:
        detail = f"angles may be wrong on both sides: AP50 {before:.3f} as given, {after:.3f} {turns['pred'].name}"
        options = {f"{role}_angle": turn.angle for role, turn in turns.items()}
        fix = Fix.reading(options, metric="AP50", before=before, after=after, words="Rerun {changes}.")
        findings.warning("angle-convention", Where(context.gt.path, field="angle"), detail, fix=fix)


def _check_upright(context: AuditContext, findings: FindingLog) -> None:
    """Stop where oriented boxes were asked for by name, and a file has upright ones in their place."""
    usual = Fix.missing("Export oriented boxes, or compare upright ones {changes}.", iou_type="bbox")
    found = (finding for side in (context.gt, context.pred) for finding in side.findings)
    for finding in found if context.stops("quad-upright", named=False) else ():
        if finding.code == "quad-upright":
            first, fix = finding.examples[0], finding.fix or usual
            findings.error("quad-upright", first.where, first.detail, fix=replace(fix, allow="quad-upright"))


def _turned(boxes: BoxTable, *, turn: _Turn, given: str) -> BoxTable:
    quads = _shapes(boxes, Quads)
    return boxes if quads is None else _with_shapes(boxes, turn.apply(quads, given))


def _turns(side: Dataset, units: str) -> Iterator[_Turn]:
    """Yield the other readings of a side's angles."""
    if side.reading.angle:
        yield from (_Turn(side.role, angle) for angle in ANGLES if angle != side.reading.angle)
    else:
        yield _Turn(side.role)
    # In fractions of images right angles are not right.
    if units == "px":
        yield _Turn(side.role, swaps_sides=True)


def _pairs_of_centres(sample: Sample) -> dict[str, Quads] | None:
    """Return oriented boxes of both sides that have about one centre and one area, whatever their angles."""
    gt, pred = _shapes(sample.gt, Quads), _shapes(sample.pred, Quads)
    if gt is None or pred is None:
        return None
    paired = pair_by_place(_squared(sample.gt, gt), _squared(sample.pred, pred))
    pred_rows, gt_rows = paired.objects()
    chosen: IntArray = np.arange(0, len(gt_rows), 1 + len(gt_rows) // TRIAL_PAIRS)
    if len(chosen) < FEWEST_GAINED:
        return None
    return {"gt": gt.take(gt_rows[chosen]), "pred": pred.take(pred_rows[chosen])}


def _squared(boxes: BoxTable, quads: Quads) -> BoxTable:
    """Return squares around the centres, as large as the oriented boxes."""
    side = np.sqrt(quads.areas())[:, None]
    return freeze(replace(boxes, xywh=np.concatenate((quads.corners.mean(axis=1) - side / 2, side, side), axis=1)))


def _overlaps(pred: Quads, gt: Quads) -> FloatArray:
    """Return the IoU of each pair, (n,)."""
    rows = np.arange(len(gt))
    first, _, iou = quad_pairs(QuadSide.of(pred), QuadSide.of(gt), rows, rows)
    overlaps = np.zeros(len(gt))
    overlaps[first] = iou
    return overlaps


def _mean_overlap(pred: Quads, gt: Quads) -> float:
    return float(_overlaps(pred, gt).mean())


THIN_AT_ONCE = 256  # objects whose boundaries are made at once
FEWEST_FOUND = 3  # objects that one reading of sizes must find for its option to be named


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Masks of a sample of both sides as they were read, before they are pixels of their images."""

    sides: dict[str, Dataset]
    tables: dict[str, BoxTable]
    sizes: FloatArray  # width and height of the common images

    @classmethod
    def of(cls, gt: Dataset, pred: Dataset, aligned: Alignment, sample: Sample) -> _Drawn:
        sizes = on_canvases(common_sizes(pred, aligned.placement.images), (sample.gt, sample.pred))
        return cls({"gt": gt, "pred": pred}, {"gt": sample.gt, "pred": sample.pred}, sizes)

    def outlines(self, role: str) -> Outlines | None:
        """Return the masks of a side that can be read anew: those of resized images were moved since."""
        outlines = outlines_of(self.tables[role])
        if not outlines or self.sides[role].reading.resized is not None or outlines.are_unsized.any():
            return None
        return outlines

    def read_anew(self, role: str, axes: str) -> _Drawn:
        """Return the same masks as if the file had written them in these `axes` of `MASK_AXES`."""
        outlines = self.outlines(role)
        assert outlines is not None  # of a side that can be read anew
        given = self.sides[role].reading.mask_axes
        table = replace(self.tables[role], shapes=outlines.with_axes(given, undo=True).with_axes(axes))
        return replace(self, tables={**self.tables, role: table})

    def fit(self, role: str) -> BoolArray:
        """Return which masks of pixels have the size of their image, (n,); polygons have none of their own."""
        outlines, table = self.outlines(role), self.tables[role]
        if outlines is None:
            return np.ones(len(table), dtype=np.bool_)
        of_image = self.sizes[table.image, ::-1]
        is_scaled = self.sides[role].reading.units == "norm"
        fits: BoolArray = outlines.has_polygons | (outlines.masks.sizes == of_image).all(axis=1) | is_scaled
        return fits

    def beyond(self, role: str) -> float:
        """Return the share of the masks that leave their images."""
        outlines, table = self.outlines(role), self.tables[role]
        if outlines is None:
            return 0.0
        bounds = outlines.bounds()
        return float((bounds[:, :2] + bounds[:, 2:] > self.sizes[table.image] + 1).any(axis=1).mean())

    def filled(self, role: str) -> BoxTable:
        """Return a side with the pixels of its masks."""
        return filled(self.tables[role], sizes=self.sizes, scales=self.sides[role].reading.units == "norm")

    def paired(self) -> Sample:
        """Pair the masks that are about the same."""
        return pair_by_place(self.filled("gt"), self.filled("pred"), protocol=COCO.comparing("segm"))


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """One side read anew, and how well both sides then agree."""

    role: str
    axes: str
    drawn: _Drawn
    paired: Sample

    @property
    def agreement(self) -> Agreement:
        """How many objects have a prediction whose mask is about theirs."""
        return place_agreement(self.paired)

    @property
    def weight(self) -> tuple[float, float]:
        """How well it explains the masks; where either side may be wrong, the one that then stays in its images."""
        return round(self.agreement.share, 2), -round(self.drawn.beyond(self.role), 2)

    @property
    def option(self) -> dict[str, Value]:
        """The option that reads them so, or that is to be removed."""
        return {f"{self.role}_mask_axes": "" if self.axes == AS_WRITTEN else self.axes}


def check_sizes(side: Dataset, findings: FindingLog) -> None:
    """Warn of runs in images whose size is not known: the boxes around them are not those in the image."""
    found = [outlines for table in side.boxes.tables() if (outlines := outlines_of(table)) is not None]
    n = sum(int(np.count_nonzero(outlines.are_unsized)) for outlines in found)
    if n:
        detail = f"the sizes of the images of {n:,} masks are not known: their boxes are those of runs in one row"
        findings.warning("size-assumed", Where(side.path, field="segmentation"), detail, fix=IMAGES_OF[side.role])


def check_masks(context: AuditContext, findings: FindingLog) -> None:
    """Warn of masks that look written in another order, such as polygons with y before x."""
    rules = context.metrics.protocol
    if rules.iou_type not in MASKS:
        return
    _check_boxes(context, findings)
    loosest = MetricRef(name="AP", iou=min(rules.iou_thresholds))
    if context.metrics.value(loosest).value >= DOUBTED:
        return
    placed = context.aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table), limit=TRIAL_BOXES)
    drawn = _Drawn.of(context.gt, context.pred, context.aligned, sample)
    paired = drawn.paired()
    present = place_agreement(paired)
    if present.share >= DOUBTED:
        return
    best = max(_trials(drawn), key=lambda trial: trial.weight, default=None)
    if best is None or best.agreement.found - present.found < FEWEST_GAINED or not is_better(best.agreement, present):
        return
    whole = _Drawn.of(context.gt, context.pred, context.aligned, context.sample).read_anew(best.role, best.axes)
    boxes = {"gt": context.aligned.gt, "pred": context.aligned.pred}
    given = {role: _sampled(boxes[role], whole.tables[role]) for role in boxes}
    changed = {**given, best.role: _with_shapes_of(given[best.role], whole.filled(best.role))}
    in_memory = replace(context, measure=partial(measure_aligned, context.aligned))
    gain = clear_gain(in_memory, (given["gt"], given["pred"]), (changed["gt"], changed["pred"]))
    if gain is not None:
        as_given, right, pooled = gain
        of_sample = " of a sample" if context.sample.share < 1 else ""
        detail = f"AP50{of_sample}{pooled} {as_given:.3f} as given, {right:.3f} {MASK_AXES[best.axes]}"
        where = Where(drawn.sides[best.role].path, field="segmentation")
        fix = Fix.reading(best.option, metric="AP50", before=as_given, after=right)
        detail = f"masks look written in another order: {detail}"
        is_named = drawn.sides[best.role].reading.mask_axes != AS_WRITTEN
        if is_decisive(paired, best.paired) and context.stops("mask-axes", named=is_named):
            findings.error("mask-axes", where, detail, fix=replace(fix, allow="mask-axes"))
        else:
            findings.warning("mask-axes", where, detail, fix=fix)


def _check_boxes(context: AuditContext, findings: FindingLog) -> None:
    """Stop where masks were asked for by name, and no prediction has one: rectangles are in their place."""
    for finding in context.pred.findings if context.stops("mask-of-box", named=False) else ():
        if finding.code == "mask-of-box" and finding.count == len(context.pred.boxes):
            where = Where(context.pred.path, field="segmentation")
            fix = Fix.missing("Export the masks, or compare boxes {changes}.", iou_type="bbox")
            findings.error("mask-of-box", where, finding.summary, fix=replace(fix, allow="mask-of-box"))


def check_boundaries(context: AuditContext, findings: FindingLog) -> None:
    """Note that every object is thinner than the boundary, which then is the whole mask."""
    rules = context.metrics.protocol
    if rules.iou_type != "boundary":
        return
    n_objects, widths = 0, set[int]()
    for table in context.aligned.gt.tables():
        masks = masks_of(table.take(np.flatnonzero(~table.crowd)))
        areas = masks.areas()
        for start in range(0, len(areas), THIN_AT_ONCE):  # data with one thick object ends here, as most do
            rows = np.arange(start, min(start + THIN_AT_ONCE, len(areas)))
            if (boundaries(masks.take(rows), rules.dilation_ratio).areas() < areas[rows]).any():
                return
        n_objects += int(np.count_nonzero(areas))
        sizes = np.unique(masks.sizes[areas > 0], axis=0).tolist()
        widths.update(boundary_width(height, width, rules.dilation_ratio) for height, width in sizes)
    if n_objects:
        span = " to ".join(f"{width}" for width in sorted({min(widths), max(widths)}))
        them = "the object is" if n_objects == 1 else f"all {n_objects:,} objects are"
        detail = f"{them} thinner than the boundary ({span} px on each side), so it is the whole mask"
        words = "Pass a smaller {dilation_ratio}, or compare masks with {iou_type}."
        fix = Fix.missing(words, dilation_ratio=None, iou_type="segm")
        findings.note("boundary-whole", Where(context.gt.path, field="segmentation"), detail, fix=fix)


def _trials(drawn: _Drawn) -> Iterator[_Trial]:
    """Yield the other readings of one side that change something, and fit the images."""
    for role in ("pred", "gt"):
        outlines, given = drawn.outlines(role), drawn.sides[role].reading.mask_axes
        if outlines is None:
            continue
        for axes in MASK_AXES:
            is_of_polygons = "yx" in (axes, given)
            concerned = outlines.has_polygons if is_of_polygons else ~outlines.has_polygons
            if axes == given or not concerned.any():
                continue
            other = drawn.read_anew(role, axes)
            if other.fit(role).all():
                yield _Trial(role, axes, other, other.paired())


def _sampled(boxes: Boxes, sample: BoxTable) -> BoxTable:
    """Return the rows of a table that a sample has, too."""
    return boxes.mapped(lambda table: table.take(np.isin(table.source, sample.source))).whole()


def _with_shapes_of(boxes: BoxTable, sample: BoxTable) -> BoxTable:
    """Return rows of a sample with the shapes that it has."""
    order = np.argsort(sample.source, kind="stable")
    rows = order[np.searchsorted(sample.source[order], boxes.source)]
    return replace(boxes, shapes=None if sample.shapes is None else sample.shapes.take(rows), area=sample.area[rows])


def explain_sizes(errors: Sequence[Finding], gt: Dataset, pred: Dataset, aligned: Alignment) -> tuple[Finding, ...]:
    """Return the errors about masks with the option that reads those whose height and width are exchanged."""
    wrong = {error.examples[0].where.path for error in errors if error.code == "mask-size"}
    placed = aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table), limit=TRIAL_BOXES)
    drawn = _Drawn.of(gt, pred, aligned, sample)
    roles = [role for role, side in drawn.sides.items() if side.path in wrong and not drawn.fit(role).all()]
    # What the polygons of the other side showed of themselves is read as it was advised: else nothing may overlap.
    settled: dict[str, Value] = {}
    for role, side in drawn.sides.items():
        for error in errors if role not in roles else ():
            if error.code == "mask-axes" and error.fix is not None and error.examples[0].where.path == side.path:
                settled |= error.fix.options
                drawn = drawn.read_anew(role, str(error.fix.options[f"{role}_mask_axes"]) or AS_WRITTEN)
    trials = {}
    for axes in ("wh", "transposed"):
        other = drawn
        for role in roles:
            other = other.read_anew(role, axes)
        if np.isnan(other.sizes[np.concatenate([table.image for table in other.tables.values()])]).any():
            return tuple(errors)
        if roles and all(other.fit(role).all() for role in drawn.sides):
            trials[axes] = place_agreement(other.paired())
    if len(trials) < 2:
        return tuple(errors)
    best, second = sorted(trials, key=lambda axes: trials[axes].share, reverse=True)
    is_clear = trials[best].found >= FEWEST_FOUND and is_better(trials[best], trials[second])
    proof = (
        f"; predictions overlap {trials[best].share:.0%} of the objects they could find {MASK_AXES[best]},"
        f" {trials[second].share:.0%} {MASK_AXES[second]}"
    )
    options = {drawn.sides[role].path: f"{role}_mask_axes" for role in roles}
    explained = []
    for error in errors:
        first = error.examples[0]
        option = options.get(first.where.path) if error.code == "mask-size" else None
        if option is None:
            explained.append(error)
        elif is_clear:
            examples = (replace(first, detail=first.detail + proof), *error.examples[1:])
            # As given, masks and images do not fit: nothing overlaps.
            fix = Fix.reading({**settled, option: best}, metric=OVERLAPPED, before=0.0, after=trials[best].share)
            explained.append(replace(error, examples=examples, fix=fix))
        else:
            words = (
                f"Rerun with {{{option}:wh}}, or with {{{option}:transposed}} if rows and columns are exchanged, too."
            )
            explained.append(replace(error, fix=Fix.missing(words, **{option: ("wh", "transposed")})))
    return tuple(explained)
