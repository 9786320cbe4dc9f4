"""Were masks written in another order, such as y before x? Other readings of a sample are compared with the objects.

Evidence is the average precision of both readings; of masks that do not fit their images, the share of the objects that
predictions then overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from jaccard_eval.data.alignment import Alignment, common_sizes
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO
from jaccard_eval.features.audit.agreement import (
    OVERLAPPED,
    Agreement,
    Sample,
    is_better,
    is_decisive,
    pair_by_place,
    place_agreement,
    take_sample,
)
from jaccard_eval.features.audit.box_encoding import DOUBTED, FEWEST_GAINED, TRIAL_BOXES
from jaccard_eval.features.audit.context import AuditContext
from jaccard_eval.features.audit.shape_readings import clear_gain
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.fixes import IMAGES_OF, Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import measure_aligned
from jaccard_eval.options import AS_WRITTEN, MASK_AXES
from jaccard_eval.similarity.boundary import boundaries, boundary_width
from jaccard_eval.similarity.masks import Outlines, filled, masks_of, on_canvases, outlines_of

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
    given = {"gt": context.aligned.gt, "pred": context.aligned.pred}
    given = {role: _sampled(given[role], whole.tables[role]) for role in given}
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


def _sampled(boxes: BoxTable, sample: BoxTable) -> BoxTable:
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
            fix = Fix.reading({option: best}, metric=OVERLAPPED, before=0.0, after=trials[best].share)
            explained.append(replace(error, examples=examples, fix=fix))
        else:
            words = (
                f"Rerun with {{{option}:wh}}, or with {{{option}:transposed}} if rows and columns are exchanged, too."
            )
            explained.append(replace(error, fix=Fix.missing(words, **{option: ("wh", "transposed")})))
    return tuple(explained)
