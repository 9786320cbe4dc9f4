"""What may lie between a printed number and this one besides rules: causes that the boxes themselves give evidence of.

A cause changes what is evaluated, or a rule that neither protocol differs in. It is tried where the files show that it
could have changed anything: a cut of scores only where some scores are below it, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from jaccard_eval.data.alignment import common_sizes
from jaccard_eval.data.boxtable import FLAGS, BoolArray, BoxTable, FloatArray, freeze
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import BOXES, COCO, Protocol
from jaccard_eval.data.sides import Sides
from jaccard_eval.data.signature import RowHasher
from jaccard_eval.features.audit.duplicates import Repeats
from jaccard_eval.features.nms import Suppression, suppress
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import group_ranks

# Where tools cut by default, or where users do.
SCORE_CUTS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5)
CAPS = (1, 10, 100, 300, 500, 1000)
NMS_OVERLAPS = (0.3, 0.45, 0.5, 0.6, 0.65, 0.7)
MOST_CLASSES = 20  # of more classes, none is removed alone
WHOLE_PIXELS: tuple[tuple[str, Callable[[FloatArray], FloatArray]], ...] = (("rounded", np.round), ("cut", np.trunc))


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Something that may have been otherwise where the number was printed; of one subject one cause holds at a time."""

    subject: str
    name: str
    change: Callable[[BoxTable, BoxTable], tuple[BoxTable, BoxTable]] | None = None
    rules: dict[str, Any] = field(default_factory=dict)
    every_iou: bool = False  # the metric is then the mean over the thresholds of its rules
    limits: tuple[str, ...] = ()  # that do the same, where it is one of a row of such

    @property
    def text(self) -> str:
        """What it is, in words."""
        return f"{self.name} {' or '.join(self.limits)}".strip()

    def of(self, sides: Sides) -> Sides:
        """Return the sides as they were there."""
        if self.change is None:
            return sides
        aligned = sides.aligned
        gt, pred = self.change(aligned.gt_table, aligned.pred_table)
        # Caps over all classes look at what was placed, which has classes that are not evaluated as well.
        placed = aligned.placement.pred.whole()
        gone = np.setdiff1d(aligned.pred_table.source, pred.source)
        placed = placed.take(~np.isin(placed.source, gone))
        placement = replace(aligned.placement, pred=placed)
        return replace(sides, aligned=replace(aligned, gt=gt, pred=pred, placement=placement))

    def metric(self, ref: MetricRef) -> MetricRef:
        """Return the metric as it was there."""
        return replace(ref, iou=None) if self.every_iou else ref


def causes(sides: Sides, rules: Protocol, goal: Protocol, ref: MetricRef) -> Iterator[Cause]:
    """Yield the causes that two sides give evidence of, besides the rules that two protocols differ in."""
    gt, pred = sides.aligned.gt_table, sides.aligned.pred_table
    if not len(gt) or not len(pred):
        return
    yield from _of_scores(pred)
    yield from _of_caps(pred, rules, goal, ref)
    yield from _of_flags(gt)
    yield from _of_images(gt, pred)
    yield from _of_rows(sides, gt, pred)
    if ref.class_name is None:
        yield from _of_classes(sides, gt, pred)
    if sides.aligned.units == "px" and rules.iou_type == BOXES:
        yield from _of_pixels(sides, gt, pred, rules, goal)
    if ref.name in ("AP", "AR"):
        yield from _of_metric(gt, rules, ref)


def _where(
    gt: BoxTable, pred: BoxTable, *, side: str, kept: Callable[[BoxTable], BoolArray]
) -> tuple[BoxTable, BoxTable]:
    """Remove rows of a side, whatever was removed before."""
    return (gt.take(kept(gt)), pred) if side == "gt" else (gt, pred.take(kept(pred)))


def _except(rows: BoxTable) -> Callable[[BoxTable], BoolArray]:
    return lambda boxes: ~np.isin(boxes.source, rows.source)


def _of_scores(pred: BoxTable) -> Iterator[Cause]:
    last = len(pred)
    for cut in SCORE_CUTS:
        low = pred.take(np.zeros(len(pred)) > 0 if pred.score is None else pred.score < cut)
        # Each removes more than the one before, and something is left.
        if len(pred) - last < len(low) < len(pred):
            change = partial(_where, side="pred", kept=_except(low))
            yield Cause("scores", "without scores below", change, limits=(f"{cut:g}",))
            last = len(pred) - len(low)


def _of_caps(pred: BoxTable, rules: Protocol, goal: Protocol, ref: MetricRef) -> Iterator[Cause]:
    if ref.max_dets is not None:
        return
    of_image = int(np.bincount(pred.image).max())
    n_labels = int(pred.label.max()) + 1
    of_class = int(group_ranks(pred.image.astype(np.int64) * n_labels + pred.label).max()) + 1
    known = {(each.max_dets_per, each.max_dets[-1:]) for each in (rules, goal)}
    if any(each.max_dets and each.max_dets[-1] < of_image for each in (rules, goal)):
        yield Cause("caps per image", "no cap on detections", rules={"max_dets": (), "max_dets_per": "image and class"})
    for per, most in (("image and class", of_class), ("image", of_image)):
        for cap in CAPS:
            if cap < most and (per, (cap,)) not in known:
                rule = {"max_dets": (cap,), "max_dets_per": per}
                yield Cause(f"caps per {per}", f"cap on detections of an {per}:", rules=rule, limits=(f"{cap:,}",))


def _of_flags(gt: BoxTable) -> Iterator[Cause]:
    alike: dict[bytes, list[str]] = {}
    for flag in FLAGS:
        if (marked := getattr(gt, flag)).any():
            alike.setdefault(marked.tobytes(), []).append(flag)

    def counted(gt: BoxTable, pred: BoxTable, *, flags: list[str]) -> tuple[BoxTable, BoxTable]:
        unset: dict[str, Any] = {flag: np.zeros(len(gt), dtype=np.bool_) for flag in flags}
        return freeze(replace(gt, **unset)), pred

    for flags in alike.values():
        named = f"objects marked {' and '.join(flags)}"
        yield Cause("marked objects", f"{named} counted", partial(counted, flags=flags))
        left_out = partial(_where, side="gt", kept=_except(gt.take(getattr(gt, flags[0]))))
        yield Cause("marked objects", f"{named} removed", left_out)


def _of_images(gt: BoxTable, pred: BoxTable) -> Iterator[Cause]:
    def shared(gt: BoxTable, pred: BoxTable, *, side: str) -> tuple[BoxTable, BoxTable]:
        other = pred if side == "gt" else gt
        return _where(gt, pred, side=side, kept=lambda boxes: np.isin(boxes.image, other.image))

    for side, lacking in (("gt", "predictions"), ("pred", "objects")):
        is_shared = np.isin(gt.image, pred.image) if side == "gt" else np.isin(pred.image, gt.image)
        if is_shared.any() and not is_shared.all():
            yield Cause("images", f"images without {lacking} removed", partial(shared, side=side))


def _of_rows(sides: Sides, gt: BoxTable, pred: BoxTable) -> Iterator[Cause]:
    hasher = RowHasher.of(sides.aligned.image_names, sides.aligned.class_names)
    for side, name, boxes in (("gt", "objects", gt), ("pred", "predictions", pred)):
        if len(repeated := Repeats.of(boxes, hasher(boxes)).rows):
            change = partial(_where, side=side, kept=_except(boxes.take(np.asarray(repeated))))
            yield Cause(f"repeated {name}", f"repeated {name} removed", change)
    last = len(pred)
    # From the loosest on, each removes more.
    for overlap in NMS_OVERLAPS[::-1] if pred.score is not None else ():
        left = suppress(pred, Suppression(iou=overlap))
        if len(left) < last:
            change = partial(_where, side="pred", kept=_except(pred.take(_except(left)(pred))))
            yield Cause("NMS", "NMS at IoU", change, limits=(f"{overlap:g}",))
            last = len(left)


def _of_classes(sides: Sides, gt: BoxTable, pred: BoxTable) -> Iterator[Cause]:
    names, found = sides.aligned.class_names, np.unique(gt.label)
    if len(names) < 2:
        return

    def chosen(gt: BoxTable, pred: BoxTable, *, labels: list[int], kept: bool) -> tuple[BoxTable, BoxTable]:
        return gt.take(np.isin(gt.label, labels) == kept), pred.take(np.isin(pred.label, labels) == kept)

    def shifted(gt: BoxTable, pred: BoxTable, *, by: int) -> tuple[BoxTable, BoxTable]:
        inside = pred.take((pred.label + by >= 0) & (pred.label + by < len(names)))
        return gt, freeze(replace(inside, label=(inside.label + by).astype(np.int32)))

    yield Cause("classes", "all classes as one", rules={"class_agnostic": True})
    if not (sides.gt.labels.named and sides.pred.labels.named):
        # Numbers may have been read from 0 or from 1 there.
        for by, way in ((1, "up"), (-1, "down")):
            yield Cause("classes", f"class numbers of predictions one {way}", partial(shifted, by=by))
    lacking = np.setdiff1d(found, pred.label).tolist()
    if 0 < len(lacking) < len(found):
        yield Cause("classes", "classes without predictions removed", partial(chosen, labels=lacking, kept=False))
    for k in found.tolist() if 1 < len(found) <= MOST_CLASSES else ():
        yield Cause("classes", f"class {names[k]} alone", partial(chosen, labels=[k], kept=True))
        if [k] != lacking and len(found) > 2:
            yield Cause("classes", f"class {names[k]} removed", partial(chosen, labels=[k], kept=False))


def _of_pixels(sides: Sides, gt: BoxTable, pred: BoxTable, rules: Protocol, goal: Protocol) -> Iterator[Cause]:
    def moved(gt: BoxTable, pred: BoxTable, *, by: float) -> tuple[BoxTable, BoxTable]:
        return gt, freeze(replace(pred, xywh=pred.xywh + np.array([by, by, 0, 0])))

    def whole(
        gt: BoxTable, pred: BoxTable, *, how: Callable[[FloatArray], FloatArray], both: bool
    ) -> tuple[BoxTable, BoxTable]:
        return _in_whole_pixels(gt, how) if both else gt, _in_whole_pixels(pred, how)

    are_whole = [not np.any(boxes.xywh % 1) for boxes in (gt, pred)]
    sizes = common_sizes(sides.pred, sides.aligned.placement.images)
    if not (rules.clipped or goal.clipped) and any(
        (boxes.xywh[:, :2] + boxes.xywh[:, 2:] > sizes[boxes.image]).any() or (boxes.xywh[:, :2] < 0).any()
        for boxes in (gt, pred)
    ):
        yield Cause("boxes beyond the image", "boxes cut at the image", rules={"clipped": True})
    if not are_whole[1]:
        for name, how in WHOLE_PIXELS:
            yield Cause("whole pixels", f"predictions {name} to whole pixels", partial(whole, how=how, both=False))
            if not are_whole[0]:
                yield Cause("whole pixels", f"boxes {name} to whole pixels", partial(whole, how=how, both=True))
    if any(are_whole):
        # Only whole numbers are pixels, of which the first may be 0 or 1, and the last inside or outside.
        if rules.pixel_offset == goal.pixel_offset:
            other = 1.0 - rules.pixel_offset
            name = "a pixel added to sides" if other else "no pixel added to sides"
            yield Cause("first and last pixel", name, rules={"pixel_offset": other})
        for by in (1.0, -1.0):
            name = f"predictions moved by {by:+g} pixel in x and y"
            yield Cause("first and last pixel", name, partial(moved, by=by))


def _in_whole_pixels(boxes: BoxTable, how: Callable[[FloatArray], FloatArray]) -> BoxTable:
    """Return boxes with corners of whole pixels; areas of files, which may be those of masks, stay."""
    near, far = how(boxes.xywh[:, :2]), how(boxes.xywh[:, :2] + boxes.xywh[:, 2:])
    xywh = np.concatenate((near, far - near), axis=1)
    is_box = boxes.area == boxes.xywh[:, 2] * boxes.xywh[:, 3]
    return freeze(replace(boxes, xywh=xywh, area=np.where(is_box, xywh[:, 2] * xywh[:, 3], boxes.area)))


def _of_metric(gt: BoxTable, rules: Protocol, ref: MetricRef) -> Iterator[Cause]:
    now = rules.iou_thresholds if ref.iou is None else (ref.iou,)
    for name, thresholds in (
        ("IoU .5 alone", (0.5,)),
        ("IoU .75 alone", (0.75,)),
        ("IoU .5 to .95", COCO.iou_thresholds),
    ):
        if now != thresholds:
            yield Cause("IoU", name, rules={"iou_thresholds": thresholds}, every_iou=True)
    for area in (rules.areas[1:] or COCO.areas[1:]) if ref.subset is None else ():
        inside = (rules.object_areas(gt) >= area.low) & (rules.object_areas(gt) <= area.high)
        if inside.any() and not inside.all():
            yield Cause("sizes", f"{area.name} objects alone", rules={"areas": (area,)})
