"""Why do two inputs not correspond? An error of alignment is given the evidence that the boxes hold, and its repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jaccard_eval.data.alignment import align_images, match_classes, place
from jaccard_eval.data.boxtable import BoxTable, FloatArray, freeze, from_xywh, to_xywh
from jaccard_eval.data.dataset import Dataset, ImageTable
from jaccard_eval.data.imagekeys import OVERLOOKED, match_by, posix, stem_of
from jaccard_eval.features.audit import (
    LOW_AGREEMENT,
    OVERLAPPED,
    ImageMatchTrial,
    is_better,
    take_sample,
    ways_to_match,
)
from jaccard_eval.features.audit.boxes import LARGEST_FRACTION
from jaccard_eval.features.audit.correspondence import COUNTINGS, Candidate, Confusion, judge, repair, rerun_with
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.options import ENCODINGS, IMAGE_WAYS, MASK_AXES, SideOptions
from jaccard_eval.text import quoted_value

MATCHED_SHARE = 0.5  # of the prediction images, from which a way is worth naming
TELLING_AGREEMENT = 0.1  # from which agreement by place separates ways; chance alone gives up to about this
FEWEST_OBJECTS = 3  # found in their place, from which a way may replace the one that was taken
FEWEST_CONFIRMED = 10  # found in their place, from which a way is named together with another encoding of boxes
NAMED_GROUPS = 2  # groups of shared names that a message shows

_DIFFERENCE = {
    "id": "ids are texts on one side and integers on the other",
    "id+1": "prediction ids are one less than those of the ground truth",
    "id-1": "prediction ids are one more than those of the ground truth",
    "path": "names differ in their folders",
    "basename": "names differ in their folders",
    "stem": "names differ in their suffixes or folders",
} | {way: f"names differ in {overlooked}" for way, overlooked in OVERLOOKED.items()}


def explain_images(finding: Finding, gt: Dataset, pred: Dataset, options: SideOptions) -> Finding:
    """Return a finding about images that do not correspond with what differs, and the option that fixes it.

    If images were matched and only some remain, another way is named only if the boxes support it: ids off
    by one match all but one image, and so do the right ids of an incomplete ground truth.
    """
    ways = ways_to_match(gt, pred, IMAGE_WAYS)
    taken = _taken_way(gt, pred, options)
    first_alike = {way.rows.tobytes(): way for way in reversed(ways)}  # of the ways that match alike, the first
    distinct = reversed(list(first_alike.values()))
    candidates = [way for way in distinct if way.name != taken and way.matched >= MATCHED_SHARE * way.total]
    # The best way matches most images and has them lie in place; where none lies in place, it matches most.
    telling = any(way.agreement.share >= TELLING_AGREEMENT for way in candidates)
    best = max(candidates, key=lambda way: way.matched * (way.agreement.share if telling else 1.0), default=None)
    present = next((way for way in ways if way.name == taken), None)
    if best is not None and _may_replace(best, present, gt, pred):
        return _with_repair(finding, best, present, gt, pred)
    # Boxes that are read wrongly confirm no way: both are named at once, or one stop would follow the other.
    found = [
        (way, options_of_boxes)
        for read_anew, options_of_boxes in _read_otherwise(gt, pred)
        for way in ways_to_match(
            read_anew if read_anew.role == "gt" else gt, read_anew if read_anew.role == "pred" else pred, IMAGE_WAYS
        )
        if way.name != taken and way.agreement.found >= FEWEST_CONFIRMED and _may_replace(way, present, gt, pred)
    ]
    if found:
        way, options_of_boxes = max(found, key=lambda pair: pair[0].matched * round(pair[0].agreement.share, 2))
        told = _with_repair(finding, way, present, gt, pred)
        fix = told.fix and replace(told.fix, options={**told.fix.options, **options_of_boxes})
        return replace(told, fix=fix)
    numbered = next((one for side in (pred, gt) for one in side.findings if one.code == "image-position"), None)
    if numbered is not None and numbered.fix is not None:
        return _extended(finding, numbered.examples[0].detail, numbered.fix)
    groups = [*_shared_names(gt), *_shared_names(pred)]
    if taken or not groups:
        return finding
    # No way separates such images: whoever wrote the files has to.
    examples = "; ".join(" and ".join(map(quoted_value, group[:2])) for group in groups[:NAMED_GROUPS])
    fix = Fix.missing("Include in the names of both sides the folders that distinguish images.")
    return _extended(finding, f"several folders hold images of the same name ({len(groups):,}): {examples}", fix)


def _read_otherwise(gt: Dataset, pred: Dataset) -> Iterator[tuple[Dataset, Mapping[str, Value]]]:
    """Yield one side after the other with its boxes read as something else that nobody named, and the options."""
    known = gt.images.sizes[~np.isnan(gt.images.sizes).any(axis=1)]
    of_images = {(height, width) for width, height in known.tolist()}
    for side in (pred, gt):
        given = side.reading
        if given.resized is not None:
            continue
        for options, boxes in _other_boxes(side, of_images):
            yield replace(side, boxes=boxes), options
            # Fractions, where both sides are read as pixels.
            within = len(boxes) and gt.units == pred.units == "px" and np.abs(boxes.xywh).max() <= LARGEST_FRACTION
            if within and "units" not in given.named:
                yield replace(side, boxes=boxes, units="norm"), options | {f"{side.role}_units": "norm"}


def _other_boxes(side: Dataset, of_images: set[tuple[float, float]]) -> Iterator[tuple[dict[str, Value], BoxTable]]:
    """Yield the boxes of a side as they are and in other encodings, or those around its masks in other axes.

    Masks of pixels that have the size of no image are read wrongly.
    """
    given, boxes = side.reading, side.boxes.whole()
    if boxes.shapes is None:
        yield {}, boxes
        for encoding in ENCODINGS if "box" not in given.named else ():
            if encoding != given.encoding:
                xywh = to_xywh(from_xywh(boxes.xywh, given.encoding), encoding)
                yield {f"{side.role}_box": encoding}, _with_boxes(boxes, xywh)
        return
    from jaccard_eval.similarity.masks import outlines_of  # most evaluations are of boxes

    outlines = outlines_of(boxes)
    if outlines is None:
        return
    for axes in MASK_AXES:
        other = outlines.with_axes(given.mask_axes, undo=True).with_axes(axes)
        sizes = other.masks.sizes[~other.has_polygons & ~other.are_unsized]
        if not of_images or of_images.issuperset(map(tuple, sizes.tolist())):
            yield (
                {f"{side.role}_mask_axes": axes} if axes != given.mask_axes else {},
                _with_boxes(boxes, other.bounds()),
            )


def _with_boxes(boxes: BoxTable, xywh: FloatArray) -> BoxTable:
    return freeze(replace(boxes, xywh=xywh, area=xywh[:, 2] * xywh[:, 3], shapes=None))


def _taken_way(gt: Dataset, pred: Dataset, options: SideOptions) -> str | None:
    """Return the strategy that matches some images, when it is the images left over that are at fault."""
    try:
        return align_images(gt, pred, replace(options, extra_images="ignore"), FindingLog()).strategy
    except DataError:
        return None


def _may_replace(best: ImageMatchTrial, present: ImageMatchTrial | None, gt: Dataset, pred: Dataset) -> bool:
    """Whether a way may be named: what numbers alone suggest must be confirmed by the boxes."""
    confirmed = best.agreement.found >= FEWEST_OBJECTS and best.agreement.share >= LOW_AGREEMENT
    if present is not None:
        return confirmed and best.matched >= present.matched and is_better(best.agreement, present.agreement)
    is_shift = best.name in ("id+1", "id-1")
    is_contradicted = best.name == "id" and bool((match_by("id", gt.images, pred.images).rows >= 0).any())
    return confirmed or not (is_shift or is_contradicted)  # equal ids are refused where file names contradict them


def _with_repair(
    finding: Finding, best: ImageMatchTrial, present: ImageMatchTrial | None, gt: Dataset, pred: Dataset
) -> Finding:
    row = int(np.flatnonzero(best.rows >= 0)[0])
    gt_name, pred_name = _called(gt.images, best.rows[row], best), _called(pred.images, row, best)
    why = _DIFFERENCE.get(best.name, "")
    if ("\\" in pred_name) != ("\\" in gt_name):
        why += " (and folders are written with backslashes, as on Windows)"
    pair = f"{pred_name} is {gt_name}"
    proof = f"{best.matched:,} of {best.total:,} prediction images"
    metric, after = "images that correspond", best.matched / best.total
    before = 0.0 if present is None else present.matched / present.total
    if best.agreement.found:
        own = 0.0 if present is None else present.agreement.share
        metric, before, after = OVERLAPPED, own, best.agreement.share
        as_given = "" if present is None else f", on {own:.0%} as matched by {present.name}"
        proof += f"; predictions then overlap {after:.0%} of the objects they could find{as_given}"
    if best.options.get("extra_images") == "empty":
        proof += "; the others count as images without objects, which this ground truth does not list"
    words = f"Rerun {{changes}}: {proof}."
    fix = Fix.reading(best.options, metric=metric, before=before, after=after, words=words)
    return _extended(finding, f"{why}: {pair}" if why else pair, fix)


def _called(images: ImageTable, row: int, way: ImageMatchTrial) -> str:
    """Show what a way compares: the id, with the name if there is one, or the name."""
    key, name = images.keys[row], images.file_names[row]
    if not way.name.startswith("id"):
        return quoted_value(images.name(row))
    return f"{quoted_value(key)} ({quoted_value(name)})" if name else quoted_value(key)


def _shared_names(side: Dataset) -> list[list[str]]:
    """Group the images of a side that share a stem in several folders."""
    groups: dict[str, list[str]] = {}
    for row in range(len(side.images)):
        name = posix(side.images.name(row))
        groups.setdefault(stem_of(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _extended(finding: Finding, detail: str, fix: Fix) -> Finding:
    first = finding.examples[0]
    told = replace(first, detail=f"{first.detail}; {detail}")
    return replace(finding, examples=(told, *finding.examples[1:]), fix=fix)


_OF_ONE_CLASS = 0.9  # share of objects in one place that must be of the class that is mapped to the only one
FEWEST_PAIRS = 3  # objects in one place from which a map is suggested where nothing else is known


def explain_failure(
    findings: Sequence[Finding], gt: Dataset, pred: Dataset, options: SideOptions
) -> tuple[Finding, ...]:
    """Return the findings of a failed alignment, those that the boxes can explain with evidence and the flag to add."""
    return tuple(
        _EXPLAINERS[finding.code](finding, gt, pred, options) if finding.code in _EXPLAINERS else finding
        for finding in findings
    )


def _explain_classes(finding: Finding, gt: Dataset, pred: Dataset, options: SideOptions) -> Finding:
    """Add the class maps that objects in one place support, if predictions have classes at all."""
    if pred.has_no_class:
        return finding
    try:
        placed = place(gt, pred, options, FindingLog())
    except DataError:  # which is reported with it
        return finding
    confusion = Confusion.of(take_sample(placed.gt, placed.pred, len(placed.images.table)))
    given = match_classes(gt.labels, pred.labels, options.class_map, Where(pred.path), FindingLog()).rows
    verdict = judge(gt.labels, pred.labels, confusion, given)
    if not verdict.candidates:
        return finding
    best = verdict.candidates[0]
    # A way to count that all objects confirm is worth naming from the first on: as given there is nothing to lose.
    is_counting = best.agreement == 1 and isinstance(best.class_map, str) and best.class_map in COUNTINGS
    if confusion.pairs < (1 if is_counting else FEWEST_PAIRS):
        return finding
    if len(gt.labels) == 1 and best.agreement < _OF_ONE_CLASS:
        # Of several classes that lie on objects of one, whichever is mapped to it, the others would be lost.
        found = [pred.labels.names[row] for row in sorted({*confusion.pred.tolist()})]
        merged = Candidate(dict.fromkeys(found, gt.labels.names[0]), given, 1.0)
        detail = f"{len(found)} of its classes lie on objects of the only one of the ground truth, and may all be that"
        return _extended(finding, detail, rerun_with(merged, verdict.given, "If they are, pass {class_map}."))
    is_clear = verdict.better is not None or best.agreement >= 1
    fix = repair(gt, pred, verdict.better or best, verdict.given) if is_clear else finding.fix
    return replace(finding, table=verdict.table(), fix=fix)


_EXPLAINERS = {"class-none": _explain_classes, "image-unknown": explain_images, "image-ambiguous": explain_images}
