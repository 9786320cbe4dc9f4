"""Were keypoints and oriented boxes read correctly? Other readings are tried on what lies in one place.

A trial compares pairs of a sample. What looks better there is matched once more as a whole, so that the average
precisions of both readings are the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes, freeze
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.known_protocols import ORIENTED
from jaccard_eval.data.resizing import MIRROR, Resizing
from jaccard_eval.features.audit.agreement import IntArray, Sample, is_better, pair_by_place, place_agreement
from jaccard_eval.features.audit.box_encoding import CLEAR_GAIN, DOUBTED, FEWEST_GAINED, IOU
from jaccard_eval.features.audit.box_places import image_sizes
from jaccard_eval.features.audit.context import AuditContext, average_precision
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ANGLES, spelled_angle
from jaccard_eval.similarity.keypoints import Keypoints, PoseSide
from jaccard_eval.similarity.obb import QuadSide, quad_pairs
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.text import quoted_value

TRIAL_PAIRS = 2_000  # that a trial compares, at most about
TRIAL_DISTANCES = 2_000_000  # between points of poses, at most about: those of a whole body are many
# From nose to ankles: what is left is right.
COCO_FLIPPED = (0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15)

AnyShapes = TypeVar("AnyShapes", Keypoints, Quads)


def _shapes(boxes: BoxTable, kind: type[AnyShapes]) -> AnyShapes | None:
    """Return the shapes of a table if they are of a kind, as those of a table without rows may not be."""
    shapes: object = boxes.shapes
    return shapes if isinstance(shapes, kind) and len(shapes) else None


def _with_shapes(boxes: BoxTable, shapes: Shapes) -> BoxTable:
    return freeze(replace(boxes, shapes=shapes, xywh=shapes.bounds()))


def clear_gain(
    context: AuditContext, given: tuple[BoxTable, BoxTable], changed: tuple[BoxTable, BoxTable]
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
    if is_animal:
        fix = Fix.missing("Pass {sigmas}.", sigmas="ap10k")
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
    changed = _mirrored(pred, image_sizes(context)) if best.is_mirrored else pred
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
        return
    side, tables = sides[best.role], {"gt": context.aligned.gt, "pred": context.aligned.pred}
    tables[best.role] = tables[best.role].mapped(partial(_turned, turn=best, given=side.reading.angle))
    gain = clear_gain(context, (context.aligned.gt, context.aligned.pred), (tables["gt"], tables["pred"]))
    if gain is not None:
        as_given, right, pooled = gain
        detail = f"angles look wrong: AP50{pooled} {as_given:.3f} as given, {right:.3f} {best.name}"
        findings.warning("angle-convention", Where(side.path, field="angle"), detail, fix=best.fix(as_given, right))


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


def _mean_overlap(pred: Quads, gt: Quads) -> float:
    rows = np.arange(len(gt))
    return float(quad_pairs(QuadSide.of(pred), QuadSide.of(gt), rows, rows)[2].sum()) / len(gt)
