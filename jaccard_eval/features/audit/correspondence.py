"""Have both sides the same images and classes? What is odd about images, and which map of classes boxes show.

Images may be uncovered, of another split, shifted by one, numbered, named twice, or of transposed sizes. Class maps are
judged by objects that lie in one place: where a prediction and a ground-truth box share their place, they are one
object, even if their classes differ. The share of such pairs whose classes agree under a map measures how well it fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jaccard_eval.data.alignment import (
    NAMED_MAPS,
    NOWHERE,
    Placement,
    match_classes,
    place,
    rows_of_named,
    rows_of_pairs,
)
from jaccard_eval.data.boxtable import BoolArray, FloatArray, RowArray
from jaccard_eval.data.dataset import Dataset, LabelMap
from jaccard_eval.data.imagekeys import match_by, number_text, posix, shared_suffix, without_suffix
from jaccard_eval.features.audit import (
    LOW_AGREEMENT,
    MISREAD,
    OVERLAPPED,
    STOP_GIVEN,
    STOP_OTHER,
    STOP_SURPRISE,
    Agreement,
    AuditContext,
    ImageMatchTrial,
    IntArray,
    Sample,
    chance_agreement,
    divergence,
    is_better,
    is_decisive,
    place_agreement,
    take_sample,
    unflagged,
    ways_to_match,
)
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import lengths_of_runs, starts_of_runs
from jaccard_eval.options import SideOptions
from jaccard_eval.patterns import pattern
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

# A detector that works agrees with its own classes on most of the objects that it locates, and no renumbering of them
# fits better by chance; the margins leave room for poor detectors and for small sets.
CLEAR_GAIN = 0.25  # share of pairs by which another map must agree better
CLEAR_PAIRS = 5  # pairs by which it must agree better
CONVINCING = 0.5  # share of pairs that it must agree with at least
FREE_GAIN = 0.1  # share of pairs by which pairs chosen freely must fit better than a map that has a rule
SWAP_PAIRS = 10  # pairs of a class from which it is judged alone
SWAP_OWN, SWAP_OTHER = 0.2, 0.8  # a class that agrees with its own at most, and with one other at least, is mistaken
LISTED = 5  # candidates shown
PASTED = 20  # pairs of classes that a suggested flag spells out
NAMED_PAIRS = 3  # pairs of classes that evidence spells out

ClassMap = str | Mapping[str, str]
_PLAIN_NAME = pattern(r"[\w.+/()-]+( [\w.+/()-]+)*")


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


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """How often a prediction of one class lies on an object of another; cells that are not empty, shape (c,)."""

    pred: IntArray
    gt: IntArray
    count: IntArray

    @classmethod
    def of(cls, sample: Sample) -> Confusion:
        """Count the pairs of a sample."""
        pred_row, gt_row = sample.objects()
        pred, gt = sample.pred.label[pred_row].astype(np.int64), sample.gt.label[gt_row].astype(np.int64)
        width = int(gt.max(initial=0)) + 1
        cells = np.sort(pred * width + gt)
        first, count = lengths_of_runs(starts_of_runs(cells))
        return cls(cells[first] // width, cells[first] % width, count)

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.count.sum())

    def agreement(self, rows: RowArray) -> float:
        """Share of the pairs whose prediction class has the object's class under a map; 0 without pairs."""
        return int(self.count[rows[self.pred] == self.gt].sum()) / max(self.pairs, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A map of classes and the share of pairs that agree with it."""

    class_map: ClassMap
    rows: RowArray
    agreement: float


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """How the candidates fare; `better` is the one that fits clearly better than the map as given, if any."""

    pairs: int
    given: float
    candidates: tuple[Candidate, ...]
    better: Candidate | None

    def evidence(self) -> str:
        """Report how many of the pairs agree as given, and under the candidate that fits better."""
        text = f"of {self.pairs:,} overlapping pairs, {self.given:.1%} have the same class as given"
        return (
            text
            if self.better is None
            else f"{text}, {self.better.agreement:.1%} by {_short_text(self.better.class_map)}"
        )

    def table(self) -> tuple[tuple[str, ...], ...]:
        """Candidates with their agreement, the best first."""
        rows = [(_short_text(candidate.class_map), f"{candidate.agreement:.3f}") for candidate in self.candidates]
        return (("class map", "classes agree"), ("as given", f"{self.given:.3f}"), *rows)


def check_classes(context: AuditContext, findings: FindingLog) -> None:
    """Warn if the classes of objects in one place support a different map than the one in use."""
    if context.metrics.protocol.class_agnostic or findings.has(*MISREAD):
        return
    gt, pred = context.gt.labels, context.pred.labels
    verdict = judge(gt, pred, Confusion.of(context.sample), context.aligned.classes.rows)
    if verdict.better is None:
        _report_none(context, verdict, findings)
        return
    detail = f"classes differ between the sides: {verdict.evidence()}"
    fix = repair(context.gt, context.pred, verdict.better, verdict.given)
    where, table, options = Where(context.pred.path, field="class"), verdict.table(), context.options
    # Names of files are statements about the data; those of an option may be of other data, or in another order.
    by_option = _named_by_option(options)
    if by_option:
        detail += f"; the names given for the {' and '.join(by_option)} contradict the boxes"
    named = (
        options is None or options.class_map is not None or not (by_option or context.aligned.classes.strategy == "id")
    )
    if context.stops("class-mapping", named=named) and _is_beyond_doubt(verdict, context):
        findings.error("class-mapping", where, detail, fix=replace(fix, allow="class-mapping"), table=table)
    else:
        findings.warning("class-mapping", where, detail, fix=fix, table=table)


def _report_none(context: AuditContext, verdict: Verdict, findings: FindingLog) -> None:
    """Report few pairs of which none has one class: an AP of 0 is not left without a word."""
    if verdict.given or not verdict.pairs:
        return
    pairs = pluralise(verdict.pairs, "overlapping pair has", "overlapping pairs have")
    detail = f"none of {pairs} the same class on both sides"
    best = max(verdict.candidates, key=lambda candidate: candidate.agreement, default=None)
    fix = Fix.missing("Check that classes count and mean the same on both sides.")
    # A way to count that several classes confirm, without an exception.
    used = 0 if best is None else len(np.unique(Confusion.of(context.sample).pred))
    if best is not None and best.agreement == 1 and used > 1 and isinstance(best.class_map, str):
        detail += f", all have by {best.class_map}"
        fix = rerun_with(best, 0.0)
    where = Where(context.pred.path, field="class")
    findings.warning("class-mapping", where, detail, fix=fix, table=verdict.table() if verdict.candidates else ())


def _named_by_option(options: SideOptions | None) -> list[str]:
    """Return whose classes an option names: "ground truth", "predictions"."""
    given = () if options is None else ((options.gt_options, "ground truth"), (options.pred_options, "predictions"))
    return [side for reading, side in given if reading is not None and reading.names]


def _is_beyond_doubt(verdict: Verdict, context: AuditContext) -> bool:
    """Whether next to no object has its class as given, and most of those that can be found have by a map with a rule.

    Classes that both give alike are evidence for neither. Pairs that were chosen to fit, and classes that changed
    places, may be weaknesses of the detector. So may a class that lies on another one: many classes must fit, more
    often than if they had nothing to do with each other.
    """
    better, confusion, given = verdict.better, Confusion.of(context.sample), context.aligned.classes.rows
    if better is None or not isinstance(better.class_map, str):
        return False
    if better.agreement * verdict.pairs < STOP_OTHER * place_agreement(context.sample).possible:
        return False
    differ = better.rows[confusion.pred] != given[confusion.pred]
    confusion = Confusion(confusion.pred[differ], confusion.gt[differ], confusion.count[differ])
    share = confusion.agreement(better.rows)
    if confusion.agreement(given) > (CONFUSED if share >= 1 - CONFUSED else STOP_GIVEN):
        return False
    in_pred = np.bincount(confusion.pred, weights=confusion.count, minlength=len(better.rows)) / confusion.pairs
    in_gt = np.append(np.bincount(confusion.gt, weights=confusion.count) / confusion.pairs, 0.0)  # -1: no class
    goal = np.where(better.rows < len(in_gt) - 1, better.rows, -1)
    by_chance = float(in_pred @ in_gt[goal])
    return share > by_chance and confusion.pairs * divergence(share, by_chance) >= STOP_SURPRISE


def best_class_map(gt: Dataset, pred: Dataset, placed: Placement, findings: FindingLog) -> ClassMap | None:
    """Return the map that the boxes support, with a note of it; None to leave the classes as given."""
    where = Where(pred.path, field="class")
    given = match_classes(gt.labels, pred.labels, None, where, FindingLog()).rows
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    verdict = judge(gt.labels, pred.labels, Confusion.of(sample), given)
    chosen = None if verdict.better is None else verdict.better.class_map
    decided = "as given" if chosen is None else f"by {_short_text(chosen)}"
    findings.note("class-map-auto", where, f"classes are read {decided}: {verdict.evidence()}", table=verdict.table())
    return chosen


CONFUSED = 0.05  # share of the pairs that a detector gives another class, which as given may be right by that
COUNTINGS = {  # rules under which one side counts classes from 0 and the other from 1
    "id+1": "are one less than those of the ground truth",
    "id-1": "are one more than those of the ground truth",
    "contiguous": "count the classes of the ground truth from 0",
    "contiguous-from-1": "count the classes of the ground truth from 1, as Ultralytics does (class index + 1)",
}
FEWEST_LOCATED = 10  # objects in one place, from which a rule is applied unasked, and
GIVEN_AT_MOST = 0.25  # share of those that the rule gives another class whose classes may agree as given
ONE_CLASS = 0.75  # share whose classes must agree if only one class of the predictions is evidence


def applied_counting(gt: Dataset, pred: Dataset, options: SideOptions, findings: FindingLog) -> str | None:
    """Return the rule by which class ids without names count, with a note of it; None unless boxes leave no doubt.

    Nothing is looked at where a rule would know fewer of the predicted classes than the ids as they are: a shift of ids
    that are all used drops one at an end.
    """
    if options.class_map is not None or (gt.labels.named and pred.labels.named) or "arrays" in (gt.format, pred.format):
        return None
    if pred.has_no_class:  # then its id means nothing
        return None
    given = match_classes(gt.labels, pred.labels, None, Where(pred.path), FindingLog()).rows
    used = np.flatnonzero(pred.boxes.counts("label", len(pred.labels)))
    known = max(1, int((given[used] >= 0).sum()))
    rules = {name: rows_of_named(name, gt.labels, pred.labels) for name in COUNTINGS}
    # One that changes no class needs no evidence.
    rules = {
        name: rows
        for name, rows in rules.items()
        if int((rows[used] >= 0).sum()) >= known and (rows[used] != given[used]).any()
    }
    if not rules:
        return None
    placed = place(gt, pred, options, FindingLog())
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    confusion = Confusion.of(sample)
    name = max(rules, key=lambda name: confusion.agreement(rules[name]))
    is_located = confusion.pairs >= FEWEST_LOCATED and place_agreement(sample).share >= LOW_AGREEMENT
    if not is_located or not _is_told_apart(confusion, given, rules[name]):
        return None
    chosen = Candidate(name, rules[name], confusion.agreement(rules[name]))
    if _loses_classes(chosen, _free_candidate(gt.labels, pred.labels, confusion), confusion):
        return None
    verdict = Verdict(confusion.pairs, confusion.agreement(given), (), chosen)
    where, detail = (
        Where(pred.path, field="class"),
        f"class ids {COUNTINGS[name]}: {verdict.evidence()}; read by {name}",
    )
    words = "To keep them unchanged, pass {class_map:id}."  # the fix is the reading that was taken
    findings.note("class-counting", where, detail, fix=rerun_with(chosen, verdict.given, words))
    return name


def _is_told_apart(confusion: Confusion, given: RowArray, rule: RowArray) -> bool:
    """Whether objects agree with a rule and not with the classes as given, where the two differ.

    Index plus one is the id of COCO's first eleven classes: those are evidence for neither.
    """
    differ = rule[confusion.pred] != given[confusion.pred]
    pairs = confusion.count[differ].sum()
    as_given, fits = (differ & (rows[confusion.pred] == confusion.gt) for rows in (given, rule))
    by_rule = confusion.count[fits].sum()
    if pairs < CLEAR_PAIRS or confusion.count[as_given].sum() > GIVEN_AT_MOST * pairs or by_rule < CONVINCING * pairs:
        return False
    # A single class that lies on another one may be a weakness of the detector, or a detector of anything.
    return len(np.unique(confusion.pred[fits & (confusion.count > 1)])) > 1 or by_rule >= ONE_CLASS * pairs


def judge(gt: LabelMap, pred: LabelMap, confusion: Confusion, given: RowArray) -> Verdict:
    """Score all candidates against the map in use: the ground-truth row `given` to each prediction class, or -1."""
    as_given = confusion.agreement(given)
    renumbered = Verdict(confusion.pairs, as_given, (), None)
    if as_given <= 1 - CLEAR_GAIN:
        renumbered = _renumbered(gt, pred, confusion, given)
    if renumbered.better is not None:
        return renumbered
    swapped = _swapped(confusion, given, gt, pred)
    candidates = tuple(sorted((*renumbered.candidates, *swapped), key=lambda candidate: -candidate.agreement))
    return replace(renumbered, candidates=candidates, better=swapped[0] if swapped else None)


def _renumbered(gt: LabelMap, pred: LabelMap, confusion: Confusion, given: RowArray) -> Verdict:
    """Compare maps that change all classes: those that have a rule, and one that has none."""
    as_given = confusion.agreement(given)
    named = _named_candidates(gt, pred, confusion, given)
    free = _free_candidate(gt, pred, confusion)
    is_ruled = named and not _loses_classes(named[0], free, confusion)
    best = named[0] if is_ruled and named[0].agreement >= _supported(confusion, free) - FREE_GAIN else free
    gain = (_supported(confusion, best) if best is free else best.agreement) - as_given
    clear = gain >= CLEAR_GAIN and gain * confusion.pairs >= CLEAR_PAIRS and best.agreement >= CONVINCING
    shown = [*named[: LISTED - 1], *([free] if clear and best is free else [])]
    ranked = sorted(shown, key=lambda candidate: -candidate.agreement)
    return Verdict(confusion.pairs, as_given, tuple(ranked), best if clear else None)


def _loses_classes(named: Candidate, free: Candidate, confusion: Confusion) -> bool:
    """Whether a map by rule has no class for some objects that others fit: ids may count names of another order.

    Names without ids have one of their own, such as that of the alphabet, which few classes fit by chance.
    """
    is_lost = bool((named.rows[confusion.pred] < 0).any())
    return is_lost and free.agreement > named.agreement + FREE_GAIN


def _named_candidates(gt: LabelMap, pred: LabelMap, confusion: Confusion, given: RowArray) -> list[Candidate]:
    """Named maps that differ from each other and from the given one, the best first.

    Of maps that fit alike, the one that knows more classes comes first: ids from 0 to 79 shifted by one fall into the
    gaps of COCO's ids.
    """
    known = {given.tobytes()}
    candidates = []
    for name in NAMED_MAPS:
        rows = rows_of_named(name, gt, pred)
        if (rows >= 0).any() and rows.tobytes() not in known:
            known.add(rows.tobytes())
            candidates.append(Candidate(name, rows, confusion.agreement(rows)))
    return sorted(candidates, key=lambda named: (-named.agreement, -int((named.rows >= 0).sum())))


def _free_candidate(gt: LabelMap, pred: LabelMap, confusion: Confusion) -> Candidate:
    """Pair classes one to one, the most frequent cells first; a cell of a single pair proves nothing."""
    rows = np.full(len(pred), NOWHERE, dtype=np.int32)
    taken: set[int] = set()
    order = np.argsort(-confusion.count, kind="stable")
    cells = zip(confusion.pred[order].tolist(), confusion.gt[order].tolist(), confusion.count[order], strict=True)
    for pred_label, gt_label, count in cells:
        if count > 1 and rows[pred_label] == NOWHERE and gt_label not in taken:
            rows[pred_label] = gt_label
            taken.add(gt_label)
    pairs = _pairs_of(rows, gt, pred)
    rows = rows_of_pairs(gt, pred, pairs)
    return Candidate(pairs, rows, confusion.agreement(rows))


def _supported(confusion: Confusion, free: Candidate) -> float:
    """Agreement of a free map without the first pair of each class, which it was made to fit."""
    fitting = free.rows[confusion.pred] == confusion.gt
    return int((confusion.count[fitting] - 1).sum()) / max(confusion.pairs, 1)


def _pairs_of(rows: RowArray, gt: LabelMap, pred: LabelMap) -> dict[str, str]:
    """Write a map as texts, without the classes that keep their name."""
    default = rows_of_pairs(gt, pred, {})
    changed = np.flatnonzero((rows >= 0) & (rows != default)).tolist()
    return {_class_text(pred, row): _class_text(gt, int(rows[row])) for row in changed}


def _class_text(labels: LabelMap, row: int) -> str:
    """Return the name of a class, or its key where several classes share the name."""
    name = labels.names[row]
    return name if labels.names.count(name) == 1 else str(labels.keys[row])


def _swapped(confusion: Confusion, given: RowArray, gt: LabelMap, pred: LabelMap) -> list[Candidate]:
    """Find classes that have changed places among themselves in an otherwise fitting map; one candidate or none.

    They must be a permutation: a class that is merely confused with another one is a weakness of the detector.
    """
    total = np.bincount(confusion.pred, weights=confusion.count, minlength=len(given))[confusion.pred]
    share = confusion.count / np.maximum(total, 1)  # (c,): of the pairs of the cell's prediction class
    is_own = given[confusion.pred] == confusion.gt
    own = np.bincount(confusion.pred[is_own], weights=share[is_own], minlength=len(given))
    mistaken = (total >= SWAP_PAIRS) & ~is_own & (share >= SWAP_OTHER) & (own[confusion.pred] <= SWAP_OWN)
    pred_rows, gt_rows = confusion.pred[mistaken], confusion.gt[mistaken]
    if len(pred_rows) < 2 or sorted(given[pred_rows].tolist()) != sorted(gt_rows.tolist()):
        return []
    rows = given.copy()
    rows[pred_rows] = gt_rows
    return [Candidate(_pairs_of(rows, gt, pred), rows, confusion.agreement(rows))]


def rerun_with(better: Candidate, given: float, words: str = "Rerun {changes}.") -> Fix:
    """Return the fix of a map that agrees better: a name, pairs, or "auto" for many pairs."""
    text, class_map = "auto", better.class_map
    if isinstance(class_map, str):
        text = class_map
    elif len(class_map) <= PASTED and all(_PLAIN_NAME.fullmatch(name) for pair in class_map.items() for name in pair):
        text = ",".join(f"{pred}={gt}" for pred, gt in class_map.items())
    metric = "overlapping pairs of one class"
    return Fix.reading({"class_map": text}, metric=metric, before=given, after=better.agreement, words=words)


def repair(gt: Dataset, pred: Dataset, better: Candidate, given: float) -> Fix:
    """Return the fix of a map that agrees better; pairs that leave classes of both sides over need the user's names."""
    fix = rerun_with(better, given)
    n_pred, n_gt = (side.boxes.counts("label", len(side.labels)) for side in (pred, gt))
    left = np.flatnonzero((better.rows < 0) & (n_pred > 0))
    open_classes = np.setdiff1d(np.flatnonzero(n_gt), better.rows)
    if isinstance(better.class_map, str) or not len(left) or not len(open_classes):
        return fix
    spelt = fix.options["class_map"]
    names = example_keys(pred.labels.names[row] for row in left.tolist()) + ", ..." * (len(left) > 3)
    of_left = f"{pluralise(int(n_pred[left].sum()), 'prediction')} of {pluralise(len(left), 'class', 'classes')}"
    words = (
        f"Name all classes by index with {{pred_names}}, or add to {{class_map}}: the boxes do not show what {names}"
        f" mean{'s' if len(left) == 1 else ''}, and {of_left} would be ignored."
    )
    return Fix.missing(words, pred_names=None, class_map=None if spelt == "auto" else spelt)


def _short_text(class_map: ClassMap) -> str:
    if isinstance(class_map, str):
        return class_map
    if len(class_map) <= NAMED_PAIRS:
        return ", ".join(f"{pred} = {gt}" for pred, gt in class_map.items())
    return f"{len(class_map):,} pairs"
