"""Which boxes a protocol judges: what is removed before anything is matched, and what may go unmatched unpunished.

Judged once, boxes are matched any number of times: a detection that is not punished where it matches nothing carries
the flag `ignore`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from jaccard_eval.data.alignment import Sides, common_sizes
from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, FloatArray, RowArray, freeze
from jaccard_eval.data.dataset import ABSENT, NOT_EXHAUSTIVE, ClassFacts, ImageLabels
from jaccard_eval.data.protocol import BYSTANDER, DETECTION_HEIGHT, EVERY_CLASS, HEIGHT, OBJECT_HEIGHT, Protocol
from jaccard_eval.data.signature import FINGERPRINT, digest_facts, fingerprint
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import IMAGE_FOLDER, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import (
    IntArray,
    class_and_score_order,
    distinct,
    group_ranks,
    lengths_of_runs,
    rank_detections,
    stable_order,
    starts_of_runs,
)
from jaccard_eval.matching.matchtable import SLOT_COUNT, SLOTS, ignored_objects
from jaccard_eval.progress import staged
from jaccard_eval.text import pluralise, quoted_value

FEDERATED = "federated"
OPEN_IMAGES = "openimages"  # the format that a hierarchy belongs to
HALF = 0.5  # share of its pixels from which a box that regions cover is removed
LARGEST_TABLE = 1 << 28  # bytes: 20,000 images of 1,203 classes take a tenth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """What a rule judges of predictions; called with a table of them, it removes the others.

    Keys are those of `image_class_keys`, ascending: 8 bytes for each class that is known of an image are all that is in
    memory of boxes on the disk.
    """

    n_labels: int
    keys: IntArray | None = None  # of what is judged; None: everything
    spared: IntArray | None = None  # of what is not punished where it matches nothing
    judged: IntArray | None = None  # of what alone is punished
    spares_empty: bool = False  # and so are boxes without an area
    removed: str = ""  # what the others have in common, as in "of classes that are not judged on their image"
    lacks: str = ""  # what is not known of the classes, for a warning

    def __call__(self, pred: BoxTable) -> BoxTable:
        """Return the predictions that are judged; `ignore` marks those that go unpunished."""
        if self.keys is not None:
            pred = pred.take(are_among(image_class_keys(pred.image, pred.label, self.n_labels), self.keys))
        if self.spared is not None:
            spared = are_among(image_class_keys(pred.image, pred.label, self.n_labels), self.spared)
            pred = freeze(replace(pred, ignore=spared))
        if self.judged is not None:
            spared = ~are_among(image_class_keys(pred.image, pred.label, self.n_labels), self.judged)
            pred = freeze(replace(pred, ignore=spared))
        if self.spares_empty:
            pred = freeze(replace(pred, ignore=(pred.xywh[:, 2] <= 0) | (pred.xywh[:, 3] <= 0)))
        return pred


JudgingRule = Callable[[IntArray, ClassFacts, int], Judged]
"""Takes on which images which classes have objects, what is known besides, and how many classes there are."""


def judge(sides: Sides, protocol: Protocol) -> Sides:
    """Return sides with the boxes that a protocol judges; those that were judged before stay as they are."""
    if sides.judged_by is not None:
        return sides
    aligned = sides.aligned
    if chooses(protocol) or protocol.frequencies:
        return _judged(sides, protocol)
    if found := _unused_facts(sides, protocol):
        sides = replace(sides, aligned=replace(aligned, findings=(*aligned.findings, *found)))
    order = _order_at_cap(sides, protocol, aligned.pred)
    return replace(sides, selection=(*sides.selection, *order), judged_by=protocol) if order else sides


@staged("judging")
def _judged(sides: Sides, protocol: Protocol) -> Sides:
    aligned, findings = sides.aligned, FindingLog()
    gt, pred, n_labels = aligned.gt, aligned.pred, len(aligned.class_names)
    placed = aligned.placement.pred
    if protocol.region_flags:
        drop = _region_rule(sides, protocol, findings)
        gt, pred, placed = (boxes.mapped(drop) for boxes in (gt, pred, placed))
    if protocol.least_area or protocol.dropped_flags:
        gt = gt.mapped(partial(_chosen_objects, flags=protocol.dropped_flags, least=protocol.least_area))
    if protocol.class_rules and not protocol.class_agnostic:
        gt, pred = _by_class_rules(sides, protocol, gt, pred)
    cap = _cap(sides, protocol, pred, placed)
    pred = pred if cap is None else pred.mapped(cap)
    if protocol.clipped:
        gt, pred = _clipped_sides(sides, gt, pred, findings)
    if protocol.drop_empty:
        gt, pred = gt.mapped(_with_area), pred.mapped(_with_area)
    if protocol.judging in EXPANDING and not protocol.class_agnostic:  # pooled classes are none above another
        gt = expanded(sides)
    objects = object_keys(gt, n_labels) if protocol.judging != EVERY_CLASS else np.zeros(0, dtype=np.int64)
    _check_facts(sides, objects, protocol, findings)
    rule = _rule(protocol.judging)(objects, aligned.facts, n_labels)
    judged = pred.mapped(rule)
    if rule.removed and (n_removed := len(pred) - len(judged)):
        detail = f"{pluralise(n_removed, 'prediction')} {rule.removed}: ignored by protocol {protocol.name}"
        findings.note("not-judged", Where(sides.pred.path, field="class"), detail)
    if rule.lacks:
        fix = Fix.missing("Pass {hierarchy} if there is one.", hierarchy=None)
        if sides.gt.format != OPEN_IMAGES:
            fix = Fix.missing("Pass the tables of Open Images as ground truth: a hierarchy is read with these.")
        findings.warning("hierarchy-missing", Where(sides.gt.path, field="class"), rule.lacks, fix=fix)
    selection = sides.selection
    if (
        protocol.judging not in (EVERY_CLASS, "present") or protocol.frequencies
    ):  # what is known besides boxes changes numbers
        digest = digest_facts(aligned.facts, aligned.image_names, aligned.class_names)
        selection = (*selection, f"class_facts={FINGERPRINT}{digest}")
    if protocol.subsets:
        gt, judged = (_in_subsets(boxes, sides, protocol, findings, is_pred=boxes is judged) for boxes in (gt, judged))
        names = aligned.image_names, aligned.class_names
        # Bits in the place of scores: whatever was known of boxes and images, these decide.
        parts = [
            fingerprint(boxes.mapped(_bits_as_scores), names, role, aligned.units)[1]
            for role, boxes in (("gt", gt), ("pred", judged))
        ]
        selection = (*selection, f"subsets={'+'.join(parts)}")
    if protocol.interpolation == SLOTS:
        _warn_of_few(gt, sides, protocol, findings)
    selection = (*selection, *_order_at_cap(sides, protocol, judged, cap))
    kept = replace(aligned, gt=gt, pred=judged, findings=(*aligned.findings, *findings.findings()))
    return replace(sides, aligned=kept, selection=selection, judged_by=protocol)


def _unused_facts(sides: Sides, protocol: Protocol) -> tuple[Finding, ...]:
    """Return what the ground truth has for its usual protocol, which is another: image-level labels, or just marks."""
    facts, findings = sides.aligned.facts, FindingLog()
    if facts.images is None and facts.usual_protocol not in ("", "points", protocol.name):
        detail = f"marked as the benchmark {facts.usual_protocol}, evaluated by protocol {protocol.name}"
        fix = Fix.missing("Pass {protocol} for the benchmark's own metrics.", protocol=facts.usual_protocol)
        findings.note("protocol-unusual", Where(sides.gt.path), detail, fix=fix)
    if facts.images is not None and len(facts.images) and facts.usual_protocol:
        detail = (
            f"only some classes are verified on each image, but protocol {protocol.name} judges all of them:"
            " correct detections of other classes may count as false positives"
        )
        fix = Fix.missing("Pass {protocol}.", protocol=facts.usual_protocol)
        findings.warning("classes-unverified", Where(sides.gt.path, field="images"), detail, fix=fix)
    return findings.findings()


def _check_facts(sides: Sides, objects: IntArray, protocol: Protocol, findings: FindingLog) -> None:
    """Warn of what a protocol needs and the ground truth does not have, and of what contradicts the boxes."""
    facts, n_labels, path = sides.aligned.facts, len(sides.aligned.class_names), sides.gt.path
    if protocol.judging == FEDERATED and facts.images is None:
        detail = (
            f"no class is verified on any image: protocol {protocol.name} judges classes only where they have objects"
        )
        words = "Pass the original ground truth with neg_category_ids, or {protocol}."
        fix = Fix.missing(words, protocol="coco")
        findings.warning("image-labels-missing", Where(path, field="images"), detail, fix=fix)
    if protocol.judging == FEDERATED and facts.images is not None:
        image, label = facts.images.of(ABSENT)
        clash = np.flatnonzero(are_among(image_class_keys(image, label, n_labels), objects))
        names = sides.aligned.image_names, sides.aligned.class_names
        findings.add_rows(
            Severity.WARNING,
            "image-label-contradiction",
            clash,
            lambda row: (
                Where(path, record=f"image {quoted_value(names[0][image[row]])}"),
                f"class {quoted_value(names[1][label[row]])} is verified to be absent, but has objects there",
            ),
            fix="Remove either; the class is judged on the image in any case.",
        )
    if protocol.frequencies:
        given = facts.frequency or ("",) * n_labels
        odd = [k for k, value in enumerate(given) if value not in protocol.frequencies]
        expected = ", ".join(protocol.frequencies)
        findings.add_rows(
            Severity.WARNING,
            "frequency-unknown",
            odd,
            lambda k: (
                Where(path, record=f"class {quoted_value(sides.aligned.class_names[k])}", field="frequency"),
                f"is {quoted_value(given[k])}" if given[k] else "is missing",
            ),
            summary=f"frequency of {len(odd):,} of {n_labels:,} classes is not one of {expected}:"
            f" they are in none of the means of a frequency (AP_{protocol.frequencies[0]})",
            fix="Take 'frequency' of each category from the original ground truth.",
        )


def choose_alike(first: Protocol, second: Protocol) -> bool:
    """Whether two protocols judge the same boxes of any sides."""

    def choice(rules: Protocol) -> tuple[object, ...]:
        caps = rules.max_dets[-1:] if rules.max_dets_per != "image and class" else ()
        removed = rules.drop_empty, rules.dropped_flags, rules.region_flags, rules.clipped, rules.least_area
        return (
            rules.judging,
            rules.max_dets_per,
            rules.drops_ties,
            caps,
            *removed,
            rules.frequencies,
            rules.subsets,
            rules.class_rules,
        )

    return choice(first) == choice(second)


def chooses(protocol: Protocol) -> bool:
    """Whether a protocol chooses boxes by what else is on their image, or of their class."""
    capped = protocol.max_dets_per != "image and class" and bool(protocol.max_dets)
    removes = protocol.drop_empty or protocol.dropped_flags or protocol.region_flags or protocol.clipped
    removes = removes or bool(protocol.least_area)
    return bool(capped or removes or protocol.subsets or protocol.class_rules or protocol.judging != EVERY_CLASS)


def _order_at_cap(sides: Sides, protocol: Protocol, judged: Boxes, cap: Cap | None = None) -> tuple[str, ...]:
    """Return what a signature shows of the predictions that count and have the score of others beyond a cap."""
    aligned, n_images = sides.aligned, len(sides.aligned.image_names)
    tied = None if cap is None else aligned.pred.mapped(cap.tied)
    capped = protocol.max_dets_per == "image and class" and bool(protocol.max_dets)
    if capped and (judged.counts("image", n_images) > protocol.max_dets[-1]).any():
        tied = judged.mapped(partial(_tied_at_cap, protocol=protocol, n_images=n_images))
    if tied is None or not len(tied):
        return ()
    names = aligned.image_names, aligned.class_names
    return (f"ties_at_cap={fingerprint(tied, names, 'pred', aligned.units)[1]}",)


def _tied_at_cap(pred: BoxTable, *, protocol: Protocol, n_images: int) -> BoxTable:
    """Return the predictions within the cap of their image and class that have the score of others beyond it."""
    cap = protocol.max_dets[-1]
    (full,) = np.nonzero(np.bincount(pred.image)[pred.image] > cap)
    bare = replace(pred, shapes=None).take(full)  # shapes are large, and few are tied
    order, key, rank = rank_detections(bare, protocol.with_options(max_dets=()), n_images)
    by_key = stable_order(key)  # which keeps the ranks of each key in their turn
    rank, rows = rank[by_key], order[by_key]
    score = _scores(bare)[rows]
    _, sizes = lengths_of_runs(rank == 0)
    beyond = np.full(len(sizes), np.nan)  # the best score beyond the cap of each key; equal to none where none is
    beyond[np.cumsum(rank == 0)[rank == cap] - 1] = score[rank == cap]
    tied = (rank < cap) & (score == np.repeat(beyond, sizes))
    return pred.take(full[np.sort(rows[tied])])


@dataclass(frozen=True, slots=True, eq=False)
class Cap:
    """The last prediction within a cap, of each image or class that has more; called with a table, it removes the rest.

    Equal scores stand in the order of the file.
    """

    per: Literal["image", "label"]
    score: FloatArray  # (n,); -inf where there is room for all
    source: IntArray  # (n,)
    cuts_tie: BoolArray  # (n,); whether others beyond the cap have the score of the last one

    def __call__(self, pred: BoxTable) -> BoxTable:
        """Return the predictions within the cap."""
        return pred.take((_scores(pred) > self.score[getattr(pred, self.per)]) | self._last(pred))

    def tied(self, pred: BoxTable) -> BoxTable:
        """Return the predictions within the cap that have the score of others beyond it."""
        return pred.take(self._last(pred) & self.cuts_tie[getattr(pred, self.per)])

    def _last(self, pred: BoxTable) -> BoolArray:
        key = getattr(pred, self.per)
        return np.asarray((_scores(pred) == self.score[key]) & (pred.source <= self.source[key]))


def _cap(sides: Sides, protocol: Protocol, pred: Boxes, placed: Boxes) -> Cap | None:
    """Return the cap of predictions by their image, or by their class over all images; None where it cuts nothing."""
    aligned = sides.aligned
    if protocol.max_dets_per == "image and class" or not protocol.max_dets:
        return None
    if protocol.max_dets_per == "image":
        # Boxes of classes that are not evaluated take up room as well, as they do for lvis-api.
        cap = find_cap(placed, "image", len(aligned.image_names), protocol.max_dets[-1])
        if cap is not None and protocol.drops_ties:
            cap.source[cap.cuts_tie] = -1  # which no row of a file has
        return cap
    return find_cap(pred, "label", len(aligned.class_names), protocol.max_dets[-1])


def find_cap(boxes: Boxes, per: Literal["image", "label"], n: int, most: int) -> Cap | None:
    """Return where the predictions of each image or class are cut; None where there is room for all."""
    full = boxes.counts(per, n) > most
    if not full.any():  # of most files no image reaches the cap
        return None
    n = len(full)
    cap = Cap(per, np.full(n, -np.inf), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_))
    best: tuple[Any, ...] = ()  # keys, scores and sources of the best so far, `most` of a key
    for table in boxes.tables():
        key, score = getattr(table, per), _scores(table)
        rows = np.flatnonzero(full[key] & (score >= cap.score[key]))
        best = tuple(
            np.concatenate(columns)
            for columns in zip(*filter(None, (best, (key[rows], score[rows], table.source[rows]))), strict=True)
        )
        by_source = np.argsort(best[2], kind="stable")
        key, score, source = (column[by_source] for column in best)
        rank = ranks_within(key, score)
        last, kept = rank == most - 1, rank < most
        cap.score[key[last]], cap.source[key[last]] = score[last], source[last]
        # All boxes of an image are in one table; those of a class may be in any.
        best = () if per == "image" else (key[kept], score[kept], source[kept])
    for table in boxes.tables():
        key = getattr(table, per)
        cap.cuts_tie[key[(_scores(table) == cap.score[key]) & (table.source > cap.source[key])]] = True
    return cap


def ranks_within(key: RowArray, score: FloatArray) -> IntArray:
    """Return the rank of each box by score among those of equal keys, shape (n,); equal scores in their order."""
    order = class_and_score_order(key, score)
    ranks = np.empty(len(key), dtype=np.int64)
    ranks[order] = group_ranks(key[order])
    return ranks


def _scores(boxes: BoxTable) -> FloatArray:
    return np.zeros(len(boxes)) if boxes.score is None else boxes.score


def _chosen_objects(boxes: BoxTable, *, flags: Sequence[str], least: float) -> BoxTable:
    """Return the objects without any of the flags; those of a smaller area are ignored."""
    marked = [marks for flag in flags if (marks := getattr(boxes, flag)) is not None]
    boxes = boxes.take(~np.logical_or.reduce(marked)) if marked else boxes
    return freeze(replace(boxes, ignore=np.asarray(boxes.ignore) | (boxes.area < least))) if least else boxes


def _in_subsets(boxes: Boxes, sides: Sides, protocol: Protocol, findings: FindingLog, *, is_pred: bool) -> Boxes:
    """Return boxes with the bits of the subsets outside of which they are; warn of what the ground truth lacks."""
    facts, n_images = sides.aligned.facts, len(sides.aligned.image_names)
    of_images = {name: np.full(n_images, np.nan) for name in facts.of_images}
    for name, values in facts.of_images.items():
        of_images[name][: len(values)] = values
    lacking = {limit.of for subset in protocol.subsets for limit in subset.limits}
    lacking -= {HEIGHT, OBJECT_HEIGHT, DETECTION_HEIGHT, *facts.of_images, *facts.of_boxes}
    if lacking and not findings.has("subset-unknown"):
        lacks = ", ".join(sorted(lacking))
        detail = f"ground truth has no {lacks}, by which protocol {protocol.name} chooses its subsets"
        fix = "Pass the original ground truth of the benchmark."
        findings.warning("subset-unknown", Where(sides.gt.path), detail, fix=fix)

    def marked(table: BoxTable) -> BoxTable:
        outside = np.zeros(len(table), dtype=np.uint16) if table.outside is None else table.outside.copy()
        for place, subset in enumerate(protocol.subsets):
            for limit in subset.limits:
                others = OBJECT_HEIGHT if is_pred else DETECTION_HEIGHT
                if limit.of in (HEIGHT, OBJECT_HEIGHT, DETECTION_HEIGHT) and limit.of != others:
                    values = table.xywh[:, 3]
                elif limit.of in of_images:
                    values = of_images[limit.of][table.image]
                elif is_pred or limit.of == others:
                    continue  # what is known of the other side alone
                else:
                    values = facts.of_boxes.get(limit.of, np.full(len(sides.gt.boxes), np.nan))[table.source]
                # What is not known is within no limits.
                outside |= (~((values >= limit.low) & (values <= limit.high))).astype(np.uint16) << place
        return freeze(replace(table, outside=outside))

    return boxes.mapped(marked)


def _by_class_rules(sides: Sides, protocol: Protocol, gt: Boxes, pred: Boxes) -> tuple[Boxes, Boxes]:
    """Return the boxes of the classes that are judged, with copies of what else takes part in each.

    Objects of neighbours are ignored, regions are crowds, and detections of other classes are bystanders, where limits
    of a subset may exclude them: those that are too small to count.

    Source: the rules of KITTI's development kit, ``cleanData``.
    """
    names = [name.casefold() for name in sides.aligned.class_names]
    heights = [limit.low for subset in protocol.subsets for limit in subset.limits if limit.of == HEIGHT]
    rows = [(rule, names.index(rule.name.casefold())) for rule in protocol.class_rules if rule.name.casefold() in names]

    def labels(listed: Sequence[str]) -> list[int]:
        return [names.index(name.casefold()) for name in listed if name.casefold() in names]

    def chosen(boxes: BoxTable, kept: BoolArray, label: int, **flags: Any) -> BoxTable:
        part = boxes.take(kept)
        marks: dict[str, Any] = {name: np.full(len(part), value) for name, value in flags.items()}
        return freeze(replace(part, label=np.full(len(part), label, dtype=np.int32), **marks))

    def objects(boxes: BoxTable) -> BoxTable:
        parts = [boxes.take(np.zeros(0, dtype=np.int64))]
        for rule, label in rows:
            parts.append(boxes.take(boxes.label == label))
            parts.append(chosen(boxes, np.isin(boxes.label, labels(rule.neighbours)), label, ignore=True))
            parts.append(chosen(boxes, np.isin(boxes.label, labels(rule.regions)), label, ignore=True, crowd=True))
        return _in_file_order(BoxTable.concat(parts))

    def detections(boxes: BoxTable) -> BoxTable:
        boxes = freeze(replace(boxes, outside=np.zeros(len(boxes), dtype=np.uint16)))
        is_small = boxes.xywh[:, 3] < max(heights, default=-np.inf)
        parts = [boxes.take(np.zeros(0, dtype=np.int64))]
        for _, label in rows:
            parts.append(boxes.take(boxes.label == label))
            parts.append(chosen(boxes, is_small & (boxes.label != label), label, outside=np.uint16(BYSTANDER)))
        return _in_file_order(BoxTable.concat(parts))

    return gt.mapped(objects), pred.mapped(detections)


def _in_file_order(boxes: BoxTable) -> BoxTable:
    return boxes.take(np.argsort(boxes.source, kind="stable"))


def _warn_of_few(gt: Boxes, sides: Sides, protocol: Protocol, findings: FindingLog) -> None:
    """Warn of classes and subsets with some objects, and fewer than there are slots."""
    names, parts = sides.aligned.class_names, protocol.range_names[len(protocol.areas) :] or protocol.range_names
    counts = np.zeros((len(protocol.range_names), len(names)), dtype=np.int64)
    for boxes in gt.tables():
        for place, ignored in enumerate(ignored_objects(boxes, protocol)):
            counts[place] += np.bincount(boxes.label[~ignored], minlength=len(names))
    few = [
        (k, part, int(n[k])) for part, n in zip(parts, counts[-len(parts) :], strict=True) for k in range(len(names))
    ]
    few = sorted((k, part, n) for k, part, n in few if 0 < n < SLOT_COUNT)

    def told(row: int) -> tuple[Where, str]:
        k, part, n = few[row]
        detail = f"{pluralise(n, 'object')} ({part}): below {SLOT_COUNT} objects, AP cannot exceed"
        return Where(
            sides.gt.path, record=f"class {quoted_value(names[k])}"
        ), f"{detail} {(n - 1) / (SLOT_COUNT - 1):g}"

    fix = Fix.missing("Evaluate more images, or by {protocol}.", protocol="coco")
    findings.add_rows(Severity.WARNING, "objects-few", range(len(few)), told, fix=fix)


def _bits_as_scores(boxes: BoxTable) -> BoxTable:
    return freeze(replace(boxes, score=None if boxes.outside is None else boxes.outside.astype(np.float64)))


def _region_rule(sides: Sides, protocol: Protocol, findings: FindingLog) -> Callable[[BoxTable], BoxTable]:
    """Return what removes the regions of the ground truth, and what they cover."""
    sizes = common_sizes(sides.pred, sides.aligned.placement.images)
    regions: dict[int, FloatArray] = {}
    for boxes in sides.aligned.gt.tables():
        marked = boxes.take(np.logical_and.reduce([getattr(boxes, flag) for flag in protocol.region_flags]))
        rows = stable_order(marked.image)
        first, n = lengths_of_runs(starts_of_runs(marked.image[rows]))
        for at, size in zip(first.tolist(), n.tolist(), strict=True):
            # Each stands there once for every class.
            regions[int(marked.image[rows[at]])] = np.unique(marked.xywh[rows[at : at + size]], axis=0)
    holds = np.isin(np.arange(len(sizes)), [*regions])
    _warn_of_sizes(sides, holds & ~np.all(sizes > 0, axis=1), "regions and boxes are cut at their images", findings)
    return partial(_beside_regions, regions=regions, sizes=sizes, flags=protocol.region_flags)


def _beside_regions(
    boxes: BoxTable, *, regions: Mapping[int, FloatArray], sizes: FloatArray, flags: Sequence[str]
) -> BoxTable:
    """Return the boxes that are not regions, and that these cover by less than half.

    Pixels are counted from 1. A region has one more of them than its width and height.

    Source: the rules of VisDrone2018-DET-toolkit, ``utils/dropObjectsInIgr.m``.
    """
    kept = np.ones(len(boxes), dtype=np.bool_)
    if boxes.score is None:
        kept = ~np.logical_and.reduce([getattr(boxes, flag) for flag in flags])
    for row in np.flatnonzero(np.bincount(boxes.image, minlength=1)).tolist():
        if row not in regions:
            continue
        rows = np.flatnonzero(boxes.image == row)
        size = np.where(sizes[row] > 0, sizes[row], np.inf)
        marked, found = np.maximum(regions[row], 1), np.maximum(np.floor(boxes.xywh[rows] + 0.5), 1)
        begin, end = marked[:, :2] - 1, np.minimum(marked[:, :2] + marked[:, 2:], size)
        near = np.minimum(found[:, :2], size)
        far = np.minimum(near + found[:, 2:], size)
        # Between neighbouring edges, pixels of a strip are covered or not all at once.
        edges = [np.unique(np.concatenate((begin[:, axis], end[:, axis]))) for axis in (0, 1)]
        is_covered = np.zeros([len(edge) - 1 for edge in edges])
        for x, y, right, bottom in np.concatenate((begin, end), axis=1).tolist():
            across, down = (edge[:-1] >= low for edge, low in zip(edges, (x, y), strict=True))
            is_covered[np.ix_(across & (edges[0][1:] <= right), down & (edges[1][1:] <= bottom))] = 1
        across, down = (
            np.maximum(np.minimum(far[:, [axis]], edge[1:]) - np.maximum(near[:, [axis]], edge[:-1]), 0)
            for axis, edge in enumerate(edges)
        )
        covered = ((across @ is_covered) * down).sum(axis=1)
        kept[rows] &= covered / (found[:, 2] * found[:, 3]) < HALF
    return boxes.take(kept)


def _warn_of_sizes(sides: Sides, unknown: BoolArray, what: str, findings: FindingLog) -> None:
    if n_unknown := int(unknown.sum()):
        detail = f"{what}, but the size of {pluralise(n_unknown, 'image')} is unknown"
        findings.warning("size-unknown", Where(sides.gt.path), detail, fix=IMAGE_FOLDER)


def _clipped_sides(sides: Sides, gt: Boxes, pred: Boxes, findings: FindingLog) -> tuple[Any, Any]:
    """Return both sides cut at their images; those of unknown sizes stay as they are, with a warning."""
    sizes = common_sizes(sides.pred, sides.aligned.placement.images)
    used = (gt.counts("image", len(sizes)) > 0) | (pred.counts("image", len(sizes)) > 0)
    _warn_of_sizes(sides, used & ~np.all(sizes > 0, axis=1), "boxes are cut at their images", findings)
    return gt.mapped(partial(_clipped, sizes=sizes)), pred.mapped(partial(_clipped, sizes=sizes))


def _clipped(boxes: BoxTable, *, sizes: FloatArray) -> BoxTable:
    """Return boxes cut at their images: left and top edges at the last pixel, right and bottom edges at the size.

    Source: the rules of CrowdDet's ``lib/evaluate``.
    """
    size = sizes[boxes.image]
    size = np.where(np.all(size > 0, axis=1)[:, None], size, np.inf)
    least = np.where(np.isfinite(size), 0.0, -np.inf)
    near, far = boxes.xywh[:, :2], boxes.xywh[:, :2] + boxes.xywh[:, 2:]
    # Where nothing is cut, sides keep their last bit.
    is_cut = np.any((near < least) | (near > size - 1) | (far < least) | (far > size), axis=1)
    near, far = np.clip(near, least, size - 1), np.clip(far, least, size)
    xywh = np.where(is_cut[:, None], np.concatenate((near, far - near), axis=1), boxes.xywh)
    return freeze(replace(boxes, xywh=xywh, area=np.where(is_cut, xywh[:, 2] * xywh[:, 3], boxes.area)))


def _with_area(boxes: BoxTable) -> BoxTable:
    """Return the boxes with an area above 0 and below infinity, as lvis-api 0.5.3 ``lvis.py`` get_ann_ids does."""
    return boxes.take((boxes.area > 0) & (boxes.area < np.inf))


def every_class(objects: IntArray, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge every class on every image."""
    return Judged(n_labels=n_labels)


def federated(objects: IntArray, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge on each image the classes that it has objects of, or is verified to have none of.

    Of those whose objects are not all annotated there, detections that match nothing are not punished.

    Source: lvis 0.5.3 ``eval.py``, ``LVISEval._prepare`` and ``evaluate_img``.
    """
    labels = facts.images or ImageLabels.none()
    absent, not_exhaustive = (image_class_keys(*labels.of(fact), n_labels) for fact in (ABSENT, NOT_EXHAUSTIVE))
    return Judged(
        n_labels=n_labels,
        keys=distinct(np.concatenate((objects, absent))),
        spared=distinct(not_exhaustive),
        removed="of classes that are not judged on their image",
    )


def present(objects: IntArray, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge on each image the classes that it has objects of; detections elsewhere are not punished.

    Source: the rules of WIDER FACE's ``eval_tools``, whose loop over images leaves those without a face.
    """
    return Judged(n_labels=n_labels, judged=objects)


def with_ancestors(objects: IntArray, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge every class on every image; detections without an area are not punished.

    An object counts for all classes above its own as well, of which it has copies by now (see `expanded`).

    Source: TensorFlow Object Detection API, ``oid_hierarchical_labels_expansion.py`` and ``per_image_evaluation.py``,
    ``_remove_invalid_boxes``.
    """
    lacks = "" if facts.ancestors else "classes have no hierarchy: objects count for their own class alone"
    return Judged(n_labels=n_labels, spares_empty=True, lacks=lacks)


def verified(objects: IntArray, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge on each image the classes that were verified there, or have objects; otherwise as `with_ancestors` does.

    Source: TensorFlow Object Detection API, ``object_detection_evaluation.py``, ``OpenImagesChallengeEvaluator``.
    """
    if facts.images is None:
        raise UsageError(
            "this protocol judges only classes that were verified on an image, and the ground truth has no image-level"
            " labels.",
            fix=Fix.missing(
                "Pass {image_labels}, or evaluate with {protocol}.", image_labels=None, protocol="openimages"
            ),
        )
    return replace(
        with_ancestors(objects, facts, n_labels),
        keys=distinct(np.concatenate((objects, image_class_keys(facts.images.image, facts.images.label, n_labels)))),
        removed="of classes that were not verified on their image",
    )


def expanded(sides: Sides) -> Boxes:
    """Return ground truth with a copy of each box for every class above its own, behind it."""
    aligned, ancestors = sides.aligned, sides.gt.facts.ancestors
    if not ancestors:
        return aligned.gt
    chosen = aligned.class_rows(sides.gt.labels)
    # What is not evaluated itself counts for a class above it.
    lists = [chosen[[label, *above]] for label, above in enumerate(ancestors)]
    return aligned.placement.gt.mapped(partial(_copied, lists=[labels[labels >= 0] for labels in lists]))


def _copied(boxes: BoxTable, *, lists: Sequence[RowArray]) -> BoxTable:
    """Return a copy of each box for every one of a list of classes, by its class."""
    sizes, of_class = np.array([len(labels) for labels in lists]), np.concatenate(lists)
    n = sizes[boxes.label]
    first = (np.cumsum(sizes) - sizes)[boxes.label] - (np.cumsum(n) - n)
    rows = np.repeat(np.arange(len(boxes)), n)
    return freeze(replace(boxes.take(rows), label=of_class[np.arange(len(rows)) + first[rows]]))


def object_keys(gt: Boxes, n_labels: int) -> IntArray:
    """Return on which images which classes have objects, ascending."""
    keys = [distinct(image_class_keys(table.image, table.label, n_labels)) for table in gt.tables()]
    return keys[0] if len(keys) == 1 else distinct(np.concatenate(keys))


def image_class_keys(image: RowArray, label: RowArray, n_labels: int) -> IntArray:
    """Return one number for each pair of an image and a class, (n,)."""
    return np.asarray(image.astype(np.int64) * n_labels + label)


def are_among(keys: IntArray, others: IntArray) -> BoolArray:
    """Return which keys are among others, which ascend; (n,)."""
    if not len(keys):
        return np.zeros(0, dtype=np.bool_)
    lowest, end = int(keys.min()), int(keys.max()) + 1
    first, last = np.searchsorted(others, [lowest, end])
    # By a table of all keys where it is small enough; NumPy itself sorts long before.
    if end - lowest > LARGEST_TABLE:
        return np.isin(keys, others[first:last], kind="sort")
    table = np.zeros(end - lowest, dtype=np.bool_)
    table[others[first:last] - lowest] = True
    return table[keys - lowest]


# By the names that protocols have for them.
RULES: dict[str, JudgingRule] = {
    EVERY_CLASS: every_class,
    FEDERATED: federated,
    "present": present,
    "with ancestors": with_ancestors,
    "verified": verified,
}
EXPANDING = ("with ancestors", "verified")  # rules of classes that are kinds of each other


def _rule(name: str) -> JudgingRule:
    if name not in RULES:
        raise UsageError(f"unknown judging {quoted_value(name)}; choose from {', '.join(RULES)}")
    return RULES[name]
