"""What is odd about images: not covered, of another split, shifted by one, numbered, named twice, sizes transposed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jaccard_eval.data.alignment import Placement, place
from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import match_by, number_text, posix, shared_suffix, without_suffix
from jaccard_eval.features.audit import (
    LOW_AGREEMENT,
    MISREAD,
    OVERLAPPED,
    Agreement,
    AuditContext,
    ImageMatchTrial,
    IntArray,
    chance_agreement,
    is_better,
    is_decisive,
    place_agreement,
    take_sample,
    unflagged,
    ways_to_match,
)
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.options import SideOptions
from jaccard_eval.text import example_keys, pluralise, quoted_value

MIN_UNCOVERED = 5  # images without predictions, before they are more than chance
UNCOVERED_SHARE = 0.2  # of the images with objects; sound predictions of the public sets miss at most 0.02

# Agreement by place is at least .63 on the public sets with sound predictions, at most .11 by chance, .04 for the one
# published set whose predictions belong to another split.
MIN_OBJECTS = 30  # and
MIN_IMAGES = 5  # from which poor agreement means that the images are different ones
FEWEST_OBJECTS = 10  # from which much better agreement means that ids name other images
NO_AGREEMENT = 0.05
CHANCE_FACTOR = 1.25  # up to which agreement above that of chance is none
STANDARD_ERRORS = 3.0  # by which few objects found must exceed chance to mean something

ALL_BOXES = 1_000_000  # predictions looked at before a run is stopped
UNKNOWN_SHARE = 0.95  # of the prediction images, from which they seem to belong to other ground truth, unless
FEWEST_MISSED = 3  # objects that may all be missed without an accident of one or two boxes
FEWEST_COMMON = 3  # objects on the common images, and `LOW_AGREEMENT` of them, are found

OUTSIDE_PIXELS = 2.0  # px and
OUTSIDE_SHARE = 0.02  # share of the side by which boxes leave images before the size is doubted

NUMBERINGS = ("id", "id+1", "id-1", "number")  # that match other images silently, where all of them exist

_NAMES_REPORTED = frozenset({"file-name-duplicate", "image-ambiguous", "image-names-alike"})


def check_images(context: AuditContext, findings: FindingLog) -> None:
    """Check that predictions cover the images, lie on their own ones, and that names and sizes are sound.

    Run after the checks of boxes: where those name a wrong reading of boxes, nothing is claimed about images.
    """
    _check_coverage(context, findings)
    _check_extra(context, findings)
    for side in (context.gt, context.pred):
        _check_names(side, findings)
    _check_sizes(context, findings)
    _check_mask(context, findings)
    is_read = not findings.has(*MISREAD, "image-size-transposed")
    if is_read and not any(finding.code == "units-mixed" for finding in context.aligned.findings):
        _check_place(context, findings)


def applied_numbers(gt: Dataset, pred: Dataset, options: SideOptions, findings: FindingLog) -> str | None:
    """Return "number" where ids are the numbers in file names, as Ultralytics writes them, and boxes leave no doubt.

    Only ids that all exist are looked at: as ids they would pair each prediction with another image in silence.
    """
    keys, images = pred.images.keys, gt.images
    if options.match_images is not None or any(pred.images.file_names) or not keys or not any(images.file_names):
        return None
    by_id = match_by("id", images, pred.images)
    row = int(by_id.rows[0])
    # One look settles most files: COCO's own names are the ids.
    if not isinstance(keys[0], int) or row < 0 or number_text(images.name(row)) in (None, str(keys[0])):
        return None
    ways = {way.name: way for way in ways_to_match(gt, pred, ("id", "number"))}
    if set(ways) != {"id", "number"} or any(way.matched < way.total for way in ways.values()):
        return None
    own, number = ways["id"].agreement, ways["number"].agreement
    if own.share >= LOW_AGREEMENT or number.found < FEWEST_OBJECTS or not is_better(number, own):
        return None
    findings.note(
        "image-number",
        Where(pred.path, field="image"),
        "image ids are the numbers in file names, as Ultralytics writes them: predictions overlap "
        f"{own.share:.1%} of the objects by id, on {number.share:.1%} by number; images are matched by number",
        fix=Fix.reading(
            {"match_images": "number"},
            metric=OVERLAPPED,
            before=own.share,
            after=number.share,
            words="To read them as ids, pass {match_images:id}.",  # the fix is the reading that was taken
        ),
    )
    return "number"


def uncovered_images(context: AuditContext) -> tuple[IntArray, int]:
    """Return the images with objects of a predicted class and without any prediction, and how many have such objects.

    If they are few, or less than a fifth, none are returned: detectors miss some images.
    """
    aligned, placed = context.aligned, context.aligned.placement
    predicted = aligned.pred.counts("label", len(aligned.class_names)) > 0  # (classes,)
    n_images = len(placed.images.table)
    with_objects = np.zeros(n_images, dtype=np.bool_)
    for gt in aligned.gt.tables():
        with_objects[gt.image[predicted[gt.label] & unflagged(gt)]] = True
    without = np.flatnonzero(with_objects & (placed.pred.counts("image", n_images) == 0))
    total = int(np.count_nonzero(with_objects))
    is_usual = len(without) < MIN_UNCOVERED or len(without) <= UNCOVERED_SHARE * total
    return (without[:0] if is_usual else without), total


def _check_coverage(context: AuditContext, findings: FindingLog) -> None:
    """Warn of images with objects of a predicted class but without any prediction."""
    aligned = context.aligned
    without, total = uncovered_images(context)
    if not len(aligned.placement.pred) or not len(without):  # the loader has reported that
        return
    names = example_keys(aligned.image_names[row] for row in without)
    findings.warning(
        "image-coverage",
        Where(context.pred.path, field="image"),
        f"{len(without):,} of {pluralise(total, 'image')} with objects of predicted classes "
        f"({len(without) / total:.0%}) have no prediction at all: {names}",
        fix="Is this a partial run, another split, a wrong folder of images, or a high score threshold? Predict every "
        f"image of {context.gt.path}.",
    )


def _check_names(side: Dataset, findings: FindingLog) -> None:
    """Note images of one side whose names differ only in the suffix."""
    images = side.images
    if not any(images.file_names) and not any(isinstance(key, str) for key in images.keys[-1:]):
        return
    names = images.names()
    if shared_suffix(names) or len({name.rpartition(".")[2] for name in names}) < 2:
        return  # one suffix: names differ in something else
    if any(finding.code in _NAMES_REPORTED for finding in side.findings):
        return
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(without_suffix(posix(name)), []).append(name)
    alike = [group for group in groups.values() if len(group) > 1]
    findings.add_rows(
        Severity.NOTE,
        "image-name-shared",
        range(len(alike)),
        lambda row: (Where(side.path, field="image"), " and ".join(map(quoted_value, alike[row]))),
        summary=f"{pluralise(len(alike), 'name is', 'names are')} shared by images that differ only in their suffix",
        fix="If they are the same image, keep one: its objects count twice.",
    )


def _check_sizes(context: AuditContext, findings: FindingLog) -> None:
    """Warn of images whose listed width and height have changed places."""
    placed, gt, pred = context.aligned.placement, context.gt, context.pred
    by_other_side = _transposed_between(placed, pred)
    # Boxes that are read wrongly leave any image.
    are_telling = context.aligned.units == "px" and not findings.has(*MISREAD, "image-size-transposed")
    by_boxes = _transposed_by_boxes(placed) if are_telling else np.zeros_like(by_other_side)
    table = placed.images.table

    def describe(row: int) -> tuple[Where, str]:
        width, height = table.sizes[row]
        proof = (
            ("the predictions have it the other way round")
            if by_other_side[row]
            else "its objects fit only the other way round"
        )
        return Where(gt.path, field="image"), f"{quoted_value(table.name(row))} is {width:g} x {height:g}, {proof}"

    rows = np.flatnonzero(by_other_side | by_boxes)
    findings.add_rows(
        Severity.WARNING,
        "image-size-transposed",
        rows,
        describe,
        summary=f"width and height of {pluralise(len(rows), 'image')} seem swapped (EXIF orientation?)",
        fix=Fix.missing(
            "Write the sizes of the images as they are displayed. For predictions in fractions, {pred_images} reads"
            " them from the images.",
            pred_images=None,
        ),
    )


def _check_mask(context: AuditContext, findings: FindingLog) -> None:
    """Warn of a mask next to boxes that is of another size than its image, which the boxes then may be, too."""
    images, pred = context.aligned.placement.images, context.pred
    if pred.first_mask is None or pred.reading.resized is not None or pred.first_mask[0] not in pred.images.keys:
        return
    fixes = (finding.fix for finding in findings.findings() if finding.code == "box-resized")
    if any(fix is not None and fix.options.get("pred_resized") for fix in fixes):
        return  # all boxes show how they were resized; by the size of a mask, borders look like stretching
    key, size = pred.first_mask
    row = int(images.pred_rows[pred.images.keys.index(key)])
    known = (math.nan, math.nan) if row < 0 else tuple(images.table.sizes[row].tolist())
    if not any(map(math.isnan, known)) and size != known:
        own, other = (f"{width:g} x {height:g}" for width, height in (size, known))
        name = quoted_value(images.table.name(row))
        detail = f"RLE of image {name} is of {own} pixels (width x height), but the image has {other}"
        words = "Check that its boxes are in pixels of the image; where they are not, pass {pred_resized}."
        fix = Fix.missing(words, pred_resized=f"stretch:{size[0]:g}x{size[1]:g}")
        if size == known[::-1]:
            fix = Fix.missing("Write size as [height, width].")
        findings.warning("mask-size", Where(pred.path, field="segmentation"), detail, fix=fix)


def _transposed_between(placed: Placement, pred: Dataset) -> BoolArray:
    """Mark common images whose width is the predictions' height and the other way round."""
    sizes = placed.images.table.sizes
    pred_sizes = np.full_like(sizes, np.nan)
    matched = placed.images.pred_rows >= 0
    pred_sizes[placed.images.pred_rows[matched]] = pred.images.sizes[matched]
    opposite = (sizes == pred_sizes[:, ::-1]).all(axis=1)
    transposed: BoolArray = np.logical_and(opposite, sizes[:, 0] != sizes[:, 1])
    return transposed


def _transposed_by_boxes(placed: Placement) -> BoolArray:
    """Mark images that objects leave, all of which fit into the transposed image."""
    sizes = placed.images.table.sizes
    leaves, leaves_transposed = (np.zeros(len(sizes), dtype=np.bool_) for _ in range(2))
    for gt in placed.gt.tables():
        ends, size = gt.xywh[:, :2] + gt.xywh[:, 2:], sizes[gt.image]  # (n, 2): right and bottom; width and height
        leaves[gt.image[_beyond(ends, size)]] = True
        leaves_transposed[gt.image[_beyond(ends, size[:, ::-1])]] = True
    return np.asarray(leaves & ~leaves_transposed)


def _beyond(ends: FloatArray, sizes: FloatArray) -> BoolArray:
    """Whether boxes (n, 2) end clearly outside of images; false if the size is unknown."""
    limits = sizes + np.maximum(OUTSIDE_PIXELS, OUTSIDE_SHARE * sizes)
    outside: BoolArray = np.any(ends > limits, axis=1)
    return outside


def _check_place(context: AuditContext, findings: FindingLog) -> None:
    """Warn when predictions lie on their images no better than on others: name the right images, or doubt the split."""
    own = place_agreement(context.sample)
    if own.share >= LOW_AGREEMENT:
        return
    used = context.aligned.correspondence.image_strategy
    ways = ways_to_match(context.gt, context.pred, (name for name in NUMBERINGS if name != used))
    better = [way for way in ways if way.agreement.found >= FEWEST_OBJECTS and is_better(way.agreement, own)]
    if better:
        _report_numbering(context, own, max(better, key=lambda way: way.agreement.share), findings)
    elif own.possible >= MIN_OBJECTS and own.images >= MIN_IMAGES:
        _warn_mismatch(context, own, findings)
    elif own.possible >= FEWEST_MISSED and not own.found:
        # An AP of 0 is not left without a word, though so few objects do not show whether anything is wrong.
        findings.warning(
            "image-mismatch",
            Where(context.pred.path, field="image"),
            f"no prediction overlaps any of {pluralise(own.possible, 'object')} by half, even ignoring class. So few do"
            " not show why",
            fix=Fix.missing("To see the boxes of both sides, write {output}.", output="report.html"),
        )


def _warn_mismatch(context: AuditContext, own: Agreement, findings: FindingLog) -> None:
    chance = chance_agreement(context.sample)
    # Few objects found must exceed chance by several standard errors, many by a share of it.
    excess = own.found - chance.share * own.possible
    few = own.share < NO_AGREEMENT and excess <= STANDARD_ERRORS * math.sqrt(own.found + 1)
    if few or own.share <= CHANCE_FACTOR * chance.share:
        overlap = f"no prediction overlaps any of the {own.possible:,} objects, even ignoring class"
        if own.found:
            overlap = (
                f"predictions overlap {own.found:,} of {own.possible:,} objects ({own.share:.1%}), ignoring class, "
                f"and {chance.share:.1%} with images shuffled"
            )
        findings.warning(
            "image-mismatch",
            Where(context.pred.path, field="image"),
            f"{overlap}. The predictions are probably for a different set of images",
            fix=f"Check that they belong to the images of {context.gt.path}: splits may share ids or names.",
        )


def _report_numbering(context: AuditContext, own: Agreement, way: ImageMatchTrial, findings: FindingLog) -> None:
    used = context.aligned.correspondence.image_strategy
    code = "image-shifted" if way.name in ("id+1", "id-1") else "image-number"
    what = "image ids are off by one"
    if code == "image-number":
        what = "image ids are mixed up with the numbers in file names"
    detail = (
        f"{what}: predictions overlap {own.share:.1%} of the objects by {used} (as matched), "
        f"{way.agreement.share:.1%} by {way.name}"
    )
    where = Where(context.pred.path, field="image")
    fix = Fix.reading(way.options, metric=OVERLAPPED, before=own.share, after=way.agreement.share)
    named = context.options is not None and context.options.match_images is not None
    if context.stops(code, named=named) and _is_decisive(context, way):
        findings.error(code, where, detail, fix=replace(fix, allow=code))
    else:
        findings.warning(code, where, detail, fix=fix)


def _is_decisive(context: AuditContext, way: ImageMatchTrial) -> bool:
    """Whether one way to match images is beyond doubt, from the boxes of all of them: samples hold different ones."""
    other = place(context.gt, context.pred, SideOptions(match_images=way.name, extra_images="ignore"), FindingLog())
    given, paired = (
        take_sample(placed.gt, placed.pred, len(placed.images.table), limit=ALL_BOXES)
        for placed in (context.aligned.placement, other)
    )
    return is_decisive(given, paired)


def _check_extra(context: AuditContext, findings: FindingLog) -> None:
    """Stop where next to no image of the predictions is one of the ground truth, which does not list its images.

    Boxes that lie in place on the few common images show that the others are images without objects.
    """
    own = place_agreement(context.sample)
    if own.found >= FEWEST_COMMON and own.share >= LOW_AGREEMENT:
        return
    images, pred = context.aligned.placement.images, context.pred
    used = np.flatnonzero(pred.boxes.counts("image", len(pred.images)))
    unknown = used[~np.isin(images.pred_rows[used], images.gt_rows)]
    named = context.options is not None and context.options.extra_images != "error"
    if not context.stops("image-extra", named=named) or not len(used) or len(unknown) < UNKNOWN_SHARE * len(used):
        return
    names = example_keys(pred.images.name(row) for row in unknown.tolist())
    findings.error(
        "image-extra",
        Where(pred.path, field="image"),
        f"{len(unknown):,} of {len(used):,} prediction images are not in the ground truth {context.gt.path} ({names}), "
        f"and predictions overlap {own.found:,} of the {own.possible:,} objects of the others",
        fix=Fix.missing(
            "Check that both are of the same split. If so, rerun with {extra_images}.", extra_images="empty"
        ),
    )
