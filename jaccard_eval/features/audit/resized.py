"""Are the boxes of one side those of resized, cropped or turned images? What was done is named exactly, or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.data.dataset import Reading
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.features.audit.agreement import advised, is_decisive, pair_by_place, unflagged
from jaccard_eval.features.audit.box_encoding import View, changed_options, possible_units, side_of
from jaccard_eval.features.audit.box_places import STEPS
from jaccard_eval.features.audit.context import AuditContext
from jaccard_eval.features.audit.fit_resizing import RAW_ENCODINGS, Found, Side, find_resizing, lie_well
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import IMAGES_OF, Fix
from jaccard_eval.options import AS_WRITTEN, MASK_AXES

HALF, STRICT = MetricRef(name="AP", iou=0.5), MetricRef(name="AP", iou=0.75)
# How far boxes reach into their images, as logarithms: of a side that was resized, and of one that was not.
FAR, NEAR = 0.4, 0.15
BULK = 0.99  # share of the boxes that end before a side
AS_GOOD = 0.9  # of the AP50 of a resizing
MOST = 0.35  # of the objects, as of predictions that lie well


def check_resized(context: AuditContext, findings: FindingLog) -> None:
    """Warn of boxes in coordinates of other images than those of the other side: resized, padded, cropped or turned."""
    if findings.has("keypoints-mirrored", "mask-axes") or not len(context.sample.gt) or not len(context.sample.pred):
        return
    view = View.of(context, context.sample.gt, context.sample.pred)
    of_boxes = context.metrics.protocol.iou_type == BOXES
    numbers = {role: view.numbers(role) if of_boxes else view.boxes(role).xywh for role in ("gt", "pred")}
    sides = {role: _side(context, view.boxes(role), numbers[role]) for role in ("gt", "pred")}
    counted = unflagged(view.gt)
    sides["gt"] = sides["gt"].take(counted)
    if not counted.any() or lie_well(sides["gt"], sides["pred"], view.sizes, view.readings["pred"].encoding):
        return
    reach = {role: _reach(side, view.sizes) for role, side in sides.items()}
    first = "gt" if reach["gt"] > FAR and reach["pred"] < NEAR else "pred"
    # What the user named for one side explains nothing of the other one.
    roles = [role for role, reading in view.readings.items() if reading.resized is not None]
    # Objects that end where their images do are not those of other images.
    for role in roles or dict.fromkeys((first, "pred") if reach["gt"] < NEAR else (first, "pred", "gt")):
        given = view.readings[role]
        known, resized = (sides[other] for other in (("gt", "pred") if role == "pred" else ("pred", "gt")))
        if role == "gt":
            known = _best_scored(known, resized)
        encodings = tuple(dict.fromkeys((given.encoding, *RAW_ENCODINGS))) if of_boxes else ("xywh",)
        encoding = given.encoding if of_boxes else "xywh"
        found = find_resizing(known, resized, view.sizes, encoding, encodings)
        if found is not None and found.resizing is None:
            _report_unsized(context, role, findings, found)
            return
        if found is None or found.resizing is None:
            continue
        if _onto_exchanged(found.resizing, view.sizes[np.unique(resized.image)]):
            return  # no image was resized: its listed width and height changed places, which the check of images shows
        if _is_origin(found.resizing):
            return  # pixels are counted otherwise, which the check of offsets shows
        reading = _reading(found, found.resizing, given, shapes=None if of_boxes else view.boxes(role).shapes)
        if reading is not None and reading.resized != given.resized:
            _report(context, view, role, findings, reading=reading, found=found)
            return


def _is_origin(resizing: Resizing) -> bool:
    """Whether all that was done is what another origin of pixels does."""
    (step, *others) = resizing.steps
    return not others and step.kind == "offset" and step.x == step.y and abs(step.x) in STEPS


def _onto_exchanged(resizing: Resizing, sizes: FloatArray) -> bool:
    """Whether most images of these sizes (n, 2), not turned, get the height as width and the width as height."""
    factor, offset, swapped = resizing.geometry(sizes)
    oblong = sizes[:, 0] != sizes[:, 1]
    exchanged: BoolArray = np.asarray(np.isclose(sizes * factor, sizes[:, ::-1], rtol=1e-3).all(axis=1))
    return not swapped and not offset.any() and bool(exchanged[oblong].sum() > oblong.sum() / 2)


def _side(context: AuditContext, boxes: BoxTable, numbers: FloatArray) -> Side:
    """Return boxes with their classes in those of the ground truth, -1 for others."""
    label = boxes.label.astype(np.int64)
    if context.metrics.protocol.class_agnostic:
        label = np.zeros_like(label)
    elif boxes is not context.sample.gt:
        label = np.append(context.aligned.classes.rows, -1)[label].astype(np.int64)
    score = np.zeros(len(boxes)) if boxes.score is None else boxes.score
    return Side(boxes.image.astype(np.int64), label, boxes.xywh, score, numbers)


def _reach(side: Side, sizes: FloatArray) -> float:
    """Return how far boxes end from the far sides of their images, the farther of both, as a logarithm."""
    with np.errstate(all="ignore"):
        ends = (side.xywh[:, :2] + side.xywh[:, 2:]) / sizes[side.image]
        return float(np.nan_to_num(np.abs(np.log(np.quantile(ends, BULK, axis=0)))).max()) if len(ends) else 0.0


def _best_scored(pred: Side, gt: Side) -> Side:
    """Return as many predictions of each image as it has objects, those with the best scores."""
    objects = np.bincount(gt.image, minlength=1 + int(pred.image.max(initial=0)))
    order = np.lexsort((-pred.score, pred.image))
    rank = np.arange(len(order)) - np.searchsorted(pred.image[order], pred.image[order])
    return pred.take(order[rank < objects[pred.image[order]]])


def _report_unsized(context: AuditContext, role: str, findings: FindingLog, found: Found) -> None:
    """Report that boxes are those of resized images, whose form only the sizes of the images can show."""
    findings.warning(
        "box-resized",
        Where(side_of(context, role).path, field="box"),
        f"boxes look like coordinates of resized images: with a scale and an offset of its own for each image they fit"
        f" {found.matched:,} of {found.objects:,} sampled objects, and far fewer as given or with one map for all. The"
        " sizes of the images are not known, so that how they were resized is unknown",
        fix=IMAGES_OF[role],
    )


def _reading(found: Found, resizing: Resizing, given: Reading, *, shapes: Shapes | None) -> Reading | None:
    """Return how the options name what was found; None where shapes, if any are read, cannot be read so."""
    encoding = found.encoding if shapes is None else given.encoding
    axes, steps = given.mask_axes, list(resizing.steps)
    are_polygons = bool(np.all(getattr(shapes, "has_polygons", False)))  # of masks, which boxes do without
    if steps[0].kind == "swap" and (encoding == "xyxy" if shapes is None else are_polygons and axes == AS_WRITTEN):
        # Rather y before x than images on their sides.
        steps = [replace(step, x=step.y, y=step.x) if step.kind != "short" else step for step in steps[1:]]
        encoding, axes = ("yxyx", axes) if shapes is None else (encoding, "yx")
    if shapes is not None and (given.resized is not None or (steps and Resizing(tuple(steps)).swaps)):
        return None
    units = "px"
    if steps and str(steps[-1]) == "stretch:1":
        steps, units = steps[:-1], "norm"  # fractions of the image as it was turned
    elif steps and str(steps[-1]) == "scale:1":
        steps = steps[:-1]
    # What results in fractions is a reading of pixels for the reader, which asks for no units then.
    resized = Resizing(tuple(steps)) if steps else None
    return replace(given, encoding=encoding, units=units, mask_axes=axes, resized=resized)


def _in_other_units(view: View, role: str, encoding: str) -> Iterator[tuple[str, Reading]]:
    """Yield each side with its readings in units other than the present ones, those of one in this encoding as well."""
    for side, present in view.readings.items():
        encodings = {present.encoding, encoding if side == role else present.encoding}
        for units in possible_units(view, side):
            if units != present.units:
                yield from ((side, replace(present, encoding=one, units=units, resized=None)) for one in encodings)


def _report(
    context: AuditContext, view: View, role: str, findings: FindingLog, *, reading: Reading, found: Found
) -> None:
    """Match all boxes as given and as mapped back, and report it where both AP50 and AP75 rise."""
    side = side_of(context, role)
    whole = View.of(context, context.aligned.gt, context.aligned.pred)
    rules = context.metrics.protocol
    any_class = found.any_class
    if rules.iou_type in ("segm", "boundary"):
        # The masks of an alignment are pixels, which end where their images do: the boxes of a sample are the evidence.
        view = whole = replace(view, gt=replace(view.gt, shapes=None), pred=replace(view.pred, shapes=None))
        rules, any_class = rules.comparing(BOXES), True
    rules = rules.with_options(
        iou_thresholds=(0.5, 0.75),
        areas=rules.areas[:1],
        max_dets=rules.max_dets[-1:],
        class_agnostic=any_class or rules.class_agnostic,
    )

    def measured(boxes: View) -> list[float]:
        metrics = context.measure(boxes.gt, boxes.pred, rules)
        return [metrics.value(ref).value for ref in (HALF, STRICT)]

    # Of boxes around masks whose x and y are exchanged, these are exchanged with the images.
    anew = replace(reading, resized=found.resizing) if reading.mask_axes != side.reading.mask_axes else reading
    (given, strict_given), (right, strict_right) = map(measured, (whole, whole.reread(role, anew)))
    # What explains few of the objects leaves room for another reading, which is then the better explanation.
    if not right > given or strict_right < strict_given or found.matched < MOST * found.objects:
        return
    # Other units have no number to fit: they are right where they explain as much, and nearly as much as one in doubt.
    plain = _in_other_units(view, role, reading.encoding)
    if any(measured(whole.reread(other, one))[0] >= (AS_GOOD if found.unsure else 1) * right for other, one in plain):
        return
    classes = " (classes pooled)" if any_class else ""
    how = "read without it" if reading.resized is None else f"mapped back from {reading.resized}"
    text = f"AP50{classes} {given:.3f} as given, {right:.3f} {how}; AP75 {strict_given:.3f} and {strict_right:.3f}"
    text += f" (fits {found.matched:,} of {found.objects:,} sampled objects{_remark(found)})"
    is_fraction = reading.resized is not None and reading.resized.is_fraction
    options = changed_options(side.reading, replace(reading, units=side.reading.units) if is_fraction else reading)
    named = any(name in options for name in side.reading.named)
    encoding = f"{reading.encoding} in " if "box" in options else ""
    encoding += f"masks {MASK_AXES[reading.mask_axes]} in " if "mask_axes" in options else ""
    kind = "pixels of the images" if reading.resized is None else "coordinates of resized images"
    if reading.resized is not None and reading.resized.is_turn:
        kind = "coordinates of turned images"
    detail = f"boxes look like {encoding}{kind}: {text}"
    prefixed = {f"{role}_{name}": value for name, value in options.items()}
    other = view.reread(role, anew)
    with np.errstate(over="ignore", invalid="ignore"):
        paired = pair_by_place(other.gt, other.pred)
    if side.format == "arrays":
        fix = Fix.missing("Map the boxes back to image pixels before evaluating.")
    elif found.unsure:
        detail += f"; the boxes are too few or too loose {found.unsure}"
        more = {name: value for name, value in prefixed.items() if name != f"{role}_resized"}
        also = "".join(f" and {{{name}}}" for name in more)
        words = f"Map the boxes back in the export, or pass {{{role}_resized}} with the exact numbers{also}."
        fix = Fix.missing(words, **{f"{role}_resized": None}, **more)
    else:
        fix = advised(Fix.reading(prefixed, metric="AP50", before=given, after=right), paired)
    where = Where(side.path, field="box")
    certain = is_decisive(context.sample, paired, fitted=2)
    if certain and context.stops("box-resized", named=named):
        findings.error("box-resized", where, detail, fix=replace(fix, allow="box-resized"))
    else:
        findings.warning("box-resized", where, detail, fix=fix)


def _remark(found: Found) -> str:
    if found.unseen:
        return f"; no image shows the {found.unseen}"
    return f"; equal on these images: {', '.join(found.others[:2])}" if found.others else ""
