"""Rows that should not be there: repeated boxes on either side, and ground truth that nothing can match."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import Boxes, BoxTable, Chosen, FloatArray, Words
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.signature import RowHasher
from jaccard_eval.features.audit import MISREAD, AuditContext, unflagged
from jaccard_eval.findings import MAX_EXAMPLES, FindingLog, Severity, Where
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import class_and_score_order
from jaccard_eval.matching.matchtable import NO_PLACE, MatchTable, any_flag, ignored_objects, match_boxes
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs
from jaccard_eval.text import pluralise, quoted_value

IntArray = npt.NDArray[np.int64]

SAME_OBJECT = 0.95  # IoU from which two boxes of a class are one object: closer than people draw a box twice
RARE = 0.001  # share of the ground truth up to which two objects may well stand in one place
# IoU from which two boxes have the same numbers: Ultralytics, which mixes labels in, rounds to .001 px or six digits.
IDENTICAL = 0.9995
FEWEST_COPIES = 10  # objects with an identical prediction, and
# IoU of a box with itself in whole pixels or moved by one, and the share of objects that have such a box.
NEARLY, NEARLY_ALL = 0.9, 0.95
# Of those looked at; no detector reaches it: none of the public sets has one, made-up ones an eighth.
COPIED_SHARE = 0.5
MAX_NEIGHBOURS = 64  # boxes compared with each one, so that thousands at one place stay cheap
CANNOT_MATCH = ("box-empty", "box-negative")  # loaders report these: boxes without an area, which can match nothing
OUTSIDE = ("box-outside", "box-gigantic")  # report the same boxes: the consequence is then only a note


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Rows of one side that occur more than once."""

    rows: Sequence[int] | IntArray  # of `boxes`: those that repeat an earlier one, ascending
    times: int  # how often every row occurs, if all occur equally often or a multiple of that; else 1
    boxes: BoxTable  # what rows are of: of stored boxes, the first repeated ones alone
    single: Boxes  # all boxes without these rows

    @classmethod
    def of(cls, boxes: BoxTable, hashes: Words) -> Repeats:
        """Find the rows that equal an earlier one in image, class, box, score, area and flags, by a `RowHasher`.

        Without hashes, no two are alike.
        """
        ordered = np.sort(hashes)
        if not (ordered[1:] == ordered[:-1]).any():
            return cls(np.zeros(0, dtype=np.int64), 1, boxes, boxes)
        order = np.lexsort((boxes.label, boxes.image, hashes))  # hashes go by name, which two images may share
        columns = (hashes[order], boxes.image[order], boxes.label[order])
        same = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
        bounds = np.concatenate(([0], np.flatnonzero(~same) + 1, [len(order)]))
        rows = np.sort(order[1:][same])
        return cls(rows, int(np.gcd.reduce(np.diff(bounds))), boxes, without_rows(boxes, rows))

    @classmethod
    def of_stored(cls, boxes: Boxes, hasher: RowHasher) -> Repeats:
        """Find the repeated rows of boxes that are read table by table, each image in one of them."""
        count, times, first = 0, 0, boxes.mapped(lambda table: table.take(np.arange(0)))
        shown = first.whole()
        for table in boxes.tables():
            if not len(table):
                continue
            found = cls.of(table, hasher(table))
            count, times = count + len(found.rows), math.gcd(times, found.times)
            if len(found.rows):
                shown = BoxTable.concat([shown, table.take(np.asarray(found.rows))])
                shown = shown.take(np.argsort(shown.source, kind="stable")[:MAX_EXAMPLES])
        return cls(range(count), times or 1, shown, boxes.mapped(partial(_without_repeats, hasher=hasher)))


def _without_repeats(boxes: BoxTable, *, hasher: RowHasher) -> BoxTable:
    return Repeats.of(boxes, hasher(boxes)).single.whole()


def repeats_of(side: Dataset) -> Repeats:
    """Find the repeated rows of one side as it was read."""
    hasher = RowHasher.of(side.images.names(), side.labels.names)
    if isinstance(side.boxes, BoxTable):
        return Repeats.of(side.boxes, hasher(side.boxes))
    return Repeats.of_stored(side.boxes, hasher)


def without_rows(boxes: BoxTable, rows: IntArray) -> BoxTable:
    """Return the table without some rows."""
    kept = np.ones(len(boxes), dtype=np.bool_)
    kept[rows] = False
    return boxes.take(kept)


def check_rows(context: AuditContext, findings: FindingLog) -> None:
    """Warn of repeated rows, with the AP without them, and of ground truth that nothing can match."""
    aligned = context.aligned
    gt, pred = (
        Repeats.of_stored(boxes, RowHasher.of(aligned.image_names, aligned.class_names))
        if hashes is None
        else Repeats.of(boxes.whole(), hashes)
        for boxes, hashes in ((aligned.gt, context.gt_hashes), (aligned.pred, context.pred_hashes))
    )
    if len(gt.rows) or len(pred.rows):
        _report_repeats(context, gt, pred, findings)
    _check_near_duplicates(context, gt, findings)
    _check_unmatchable(context, findings)


def check_repeats(side: Dataset, findings: FindingLog) -> None:
    """Warn of the repeated rows of one side alone, as it was read."""
    repeats = repeats_of(side)
    image_names = side.images.names()
    boxes = _Described(side.path, side.role, repeats.boxes, len(side.boxes), image_names, side.labels.names)
    _add_repeats(boxes, repeats, findings)


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """Boxes with the names that a message needs."""

    path: str
    role: str
    boxes: BoxTable
    n_boxes: int  # of the side, which may have more
    image_names: Sequence[str]
    class_names: Sequence[str]

    def __call__(self, row: int) -> tuple[Where, str]:
        """Name a box by image, class and place: formats do not keep the lines of their files."""
        image, label = self.image_names[self.boxes.image[row]], self.class_names[self.boxes.label[row]]
        x, y, w, h = self.boxes.xywh[row].tolist()
        box = f"{quoted_value(label)} at {x:g}, {y:g}, {w:g} wide, {h:g} high"
        return Where(self.path, record=f"image {quoted_value(image)}"), box


def _described(context: AuditContext, side: Dataset, boxes: BoxTable, n_boxes: int) -> _Described:
    aligned = context.aligned
    return _Described(side.path, side.role, boxes, n_boxes, aligned.image_names, aligned.class_names)


def _described_gt(context: AuditContext, boxes: BoxTable) -> _Described:
    return _described(context, context.gt, boxes, len(context.aligned.gt))


def _report_repeats(context: AuditContext, gt: Repeats, pred: Repeats, findings: FindingLog) -> None:
    given = context.metrics.value(MetricRef(name="AP")).value
    clean = context.measure(gt.single, pred.single, context.metrics.protocol).value(MetricRef(name="AP")).value
    effect = "" if np.isnan(given) else f"; AP {given:.4f} as given, {clean:.4f} without repeated rows"
    words = "Evaluate with {drop_duplicates}, and fix the export."
    fix = Fix.choice({"drop_duplicates": ON}, metric="AP", before=given, after=clean, words=words)
    described_pred = _described(context, context.pred, pred.boxes, len(context.aligned.pred))
    harmless = clean == given and pred.times == 1
    _add_repeats(_described_gt(context, gt.boxes), gt, findings, effect=effect, fix=fix)
    severity = Severity.NOTE if harmless else Severity.WARNING
    _add_repeats(described_pred, pred, findings, severity=severity, effect=effect, fix=fix)


def _add_repeats(
    boxes: _Described,
    repeats: Repeats,
    findings: FindingLog,
    *,
    severity: Severity = Severity.WARNING,
    effect: str = "",
    fix: Fix | str = "Fix the export.",
) -> None:
    what = "duplicate ground-truth boxes" if boxes.role == "gt" else "duplicate predictions"
    summary = f"{len(repeats.rows):,} of {boxes.n_boxes:,} rows are {what}: they repeat an earlier row in every column"
    if repeats.times > 1:
        times = "twice" if repeats.times == 2 else f"{repeats.times:,} times"
        summary += f"; every row occurs {times}, as if the file had been appended to itself"
    code = "gt-duplicate" if boxes.role == "gt" else "pred-duplicate"
    findings.add_rows(severity, code, repeats.rows, boxes, summary=f"{summary}{effect}", fix=fix)


def _check_near_duplicates(context: AuditContext, repeats: Repeats, findings: FindingLog) -> None:
    """Report ground truth drawn twice, and warn if it is not rare; exact repeats are reported already."""
    near = Chosen()
    for table in repeats.single.tables():
        single = np.flatnonzero(~table.crowd)
        near.add(table, near_duplicates(table, single))
    if not len(near):
        return
    summary = (
        f"{pluralise(len(near), 'near-duplicate ground-truth box', 'near-duplicate ground-truth boxes')}: "
        f"same image and class, and IoU {SAME_OBJECT:g} or more with another; one detection matches only one of them"
    )
    fix = "Keep one box per object: merged annotations and overlapping tiles leave two."
    severity = Severity.NOTE if len(near) <= RARE * len(context.aligned.gt) else Severity.WARNING
    describe = _described_gt(context, near.boxes)
    findings.add_rows(severity, "gt-near-duplicate", near, describe, summary=summary, fix=fix)


def near_duplicates(boxes: BoxTable, rows: IntArray | None = None) -> IntArray:
    """Return the rows that nearly coincide with another box of their image and class, one row of each pair, ascending.

    All boxes are looked at, or some `rows`. They are sorted by image, class and left edge and compared with their next
    neighbours. That finds every pair with IoU t or more: as the intersection is no higher than either box, it is at
    least t times as wide as the wider one, so that the left edges lie at most (1 - t) times a width apart. Where more
    than `MAX_NEIGHBOURS` boxes begin so close to each other, pairs can be missed.
    """
    rows = np.arange(len(boxes)) if rows is None else rows
    key = boxes.image[rows].astype(np.int64) * (int(boxes.label.max(initial=0)) + 1) + boxes.label[rows]
    order = class_and_score_order(key, -boxes.xywh[rows, 0])  # which one of two is named depends on no other image
    key, order = key[order], rows[order]
    left = boxes.xywh[order, 0]
    reach = left + (1 - SAME_OBJECT) * (left + boxes.xywh[order, 2] - left)
    doubled = np.zeros(len(boxes), dtype=np.bool_)
    step, first = 1, np.flatnonzero((key[1:] == key[:-1]) & (left[1:] <= reach[:-1]))
    while len(first) and step <= MAX_NEIGHBOURS:
        pairs = np.arange(len(first))
        one, other = (Corners.of(boxes.xywh[order[places]]) for places in (first, first + step))
        near = overlapping_pairs(one, other, pairs, pairs, threshold=SAME_OBJECT)[1]
        doubled[order[first[near] + step]] = True
        step += 1
        first = first[first + step < len(order)]
        first = first[(key[first + step] == key[first]) & (left[first + step] <= reach[first])]
    return np.flatnonzero(doubled)


def check_copies(context: AuditContext, findings: FindingLog) -> None:
    """Warn of predictions that hold the ground truth itself: then AP measures how well it agrees with itself."""
    sample = context.sample
    counted = unflagged(sample.gt)
    same = (sample.overlap > IDENTICAL) & counted[sample.gt_row]
    copied, total = _count_distinct(sample.gt_row[same]), int(np.count_nonzero(counted))
    if sample.pred.score is not None and len(sample.pred) and copied < total:
        # Labels have one score, the highest: no detector is then so exact about all of them.
        best = (sample.pred.score == sample.pred.score.max()) & (np.ptp(sample.pred.score) > 0)
        near = (sample.overlap >= NEARLY) & counted[sample.gt_row] & best[sample.pred_row]
        n_near = _count_distinct(sample.gt_row[near])
        same, copied = (near, n_near) if n_near >= NEARLY_ALL * total else (same, copied)
    if copied < FEWEST_COPIES or copied < COPIED_SHARE * total:
        return
    looked = " checked" if sample.share < 1 else ""
    others = len(sample.pred) - _count_distinct(sample.pred_row[same])
    why = f"{others:,} others: labels were probably mixed in (save_hybrid)" if others else "nothing else"
    findings.warning(
        "pred-copies-gt",
        Where(context.pred.path, field="box"),
        f"predictions hold {copied:,} of the {total:,} ground-truth boxes{looked} up to rounding, and {why}",
        fix="Predict without labels; until then AP does not measure the model.",
    )


def _count_distinct(rows: IntArray) -> int:
    return int(np.count_nonzero(np.bincount(rows)))  # every run comes by here, and `unique` is slow to load


def check_difficult(context: AuditContext, findings: FindingLog) -> None:
    """Note objects that are marked as difficult, or to be ignored, where the protocol takes no notice of it."""
    gt, protocol = context.aligned.gt, context.metrics.protocol
    flags = [flag for flag in ("difficult", "ignore") if flag not in protocol.ignored_flags]
    marked = [flag for flag in flags if any(getattr(table, flag).any() for table in gt.tables())]
    n = sum(int(np.count_nonzero(any_flag(table, marked))) for table in gt.tables()) if marked else 0
    if n:
        other = context.measure(gt, context.aligned.pred, protocol.with_difficult("ignore"))
        given, ignored = (metrics.value(MetricRef(name="AP")).value for metrics in (context.metrics, other))
        findings.note(
            "difficult-counted",
            Where(context.gt.path, field=marked[0]),
            f"{n:,} of {len(gt):,} objects are marked {' or '.join(marked)}, but protocol {protocol.name} counts them"
            f" like all others; AP {given:.4f} with them, {ignored:.4f} without",
            fix=Fix.choice(
                {"difficult": "ignore"},
                metric="AP",
                before=given,
                after=ignored,
                words="To count them neither as found nor as missed, add {difficult}.",
            ),
        )


def check_zero_id(context: AuditContext, findings: FindingLog) -> None:
    """Note what pycocotools prints where an annotation has the id 0, if that is another AP."""
    protocol, row = context.metrics.protocol, context.gt.zero_id
    if row is None or protocol.name != COCO.name:
        return
    change = partial(_lose_matches, source=row)
    # Matching never looks beyond an image: nothing changes unless something does in that of the object.
    aligned = context.aligned
    image = aligned.gt.mapped(lambda table: table.take(table.source == row)).whole().image.astype(np.int64)
    gt, pred = (boxes.mapped(partial(_of_images, images=image)).whole() for boxes in (aligned.gt, aligned.pred))
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(gt, pred, protocol, n_images=n_images, n_labels=n_labels)
    if change(table) is table:
        return
    metrics = context.measure(aligned.gt, aligned.pred, protocol, change=change)
    # Many exporters count from 0: of a thousand objects, one more or less is nothing that anybody would see.
    printed, given = (f"{measured.value(MetricRef(name='AP')).value:.4f}" for measured in (metrics, context.metrics))
    if printed != given:
        findings.note(
            "annotation-id-zero",
            Where(context.gt.path, record=f"annotations[{row}]", field="id"),
            f"is 0, which pycocotools treats as unmatched: it prints AP {printed} instead of {given}",
            fix="Number the annotations from 1 if other tools read the file.",
        )


def _of_images(boxes: BoxTable, *, images: IntArray) -> BoxTable:
    return boxes.take(np.isin(boxes.image, images))


def _lose_matches(table: MatchTable, *, source: int) -> MatchTable:
    """Count what matched the annotation with the id 0 as pycocotools does; the table itself if nothing did."""
    # It keeps the id of what a detection matched, and asks whether that is true: who matched 0 has matched nothing.
    # What is ignored is known before, and stays ignored.
    # A closing False is what `NO_PAIR`, -1, finds.
    matched = np.append((table.gt_source == source)[table.pair_gt], False)
    areas = range(len(table.choice))
    lost = np.stack([matched[table.chosen_pairs(area)] & ~table.ignored_match(area) for area in areas])
    kept = np.where(lost, NO_PLACE, table.choice).astype(table.choice.dtype)
    return replace(table, choice=kept) if lost.any() else table


def _check_unmatchable(context: AuditContext, findings: FindingLog) -> None:
    """Report which ground truth no detection can match, and which counts nowhere."""
    protocol = context.metrics.protocol
    threshold = protocol.iou_thresholds[0]
    reported = any(finding.code in CANNOT_MATCH for finding in context.gt.findings)
    lost, nowhere = Chosen(), Chosen()
    for table in context.aligned.gt.tables():
        ignored = ignored_objects(table, protocol)
        counts = ~ignored[0]
        beyond = counts & (inside_share(context, table) < threshold) & (not findings.has(*MISREAD))
        if not reported:
            beyond |= counts & (table.xywh[:, 2:] <= 0).any(axis=1)
        lost.add(table, np.flatnonzero(beyond))
        nowhere.add(table, np.flatnonzero(ignored.all(axis=0) & ~any_flag(table, protocol.ignored_flags)))
    if len(lost):
        summary = (
            f"{pluralise(len(lost), 'ground-truth box', 'ground-truth boxes')} cannot be matched, as they have no area "
            f"or lie so far outside the image that no box within it reaches IoU {threshold:g}; each lowers recall"
        )
        fix = "Clip boxes to the image, and check its width and height in the ground truth."
        severity = Severity.NOTE if findings.has(*OUTSIDE) else Severity.WARNING
        describe = _described_gt(context, lost.boxes)
        findings.add_rows(severity, "gt-unmatchable", lost, describe, summary=summary, fix=fix)
    if len(nowhere):
        what = pluralise(len(nowhere), "ground-truth box", "ground-truth boxes")
        summary = f"{what} outside every area range: not counted"
        describe = _described_gt(context, nowhere.boxes)
        findings.add_rows(Severity.NOTE, "gt-uncounted", nowhere, describe, summary=summary)


def inside_share(context: AuditContext, gt: BoxTable) -> FloatArray:
    """Return the share of each ground-truth box that lies in its image, shape (m,): the IoU that a box within reaches.

    1 where the size of the image is not known, or the box has no area.
    """
    placed = context.aligned.placement
    size = np.ones(2) if placed.units == "norm" else placed.images.table.sizes[gt.image]
    low = gt.xywh[:, :2]
    high = low + gt.xywh[:, 2:]
    inside = np.clip(np.minimum(high, size) - np.maximum(low, 0), 0, None)
    known = (size > 0).all(axis=-1) & (gt.xywh[:, 2:] > 0).all(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (inside / gt.xywh[:, 2:]).prod(axis=1)
    return np.where(known, shares, 1.0)
