"""Which boxes a protocol judges: what is removed before anything is matched, and what may go unmatched unpunished.

Judged once, boxes are matched any number of times: a detection that is not punished where it matches nothing carries
the flag `ignore`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, freeze
from jaccard_eval.data.imagelabels import ABSENT, NOT_EXHAUSTIVE, ClassFacts, ImageLabels
from jaccard_eval.data.protocol import EVERY_CLASS, Protocol
from jaccard_eval.data.sides import Sides
from jaccard_eval.data.signature import digest_facts
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray, class_and_score_order, group_ranks
from jaccard_eval.progress import staged
from jaccard_eval.text import pluralise, quoted_value

FEDERATED = "federated"
LARGEST_TABLE = 1 << 28  # bytes: 20,000 images of 1,203 classes take a tenth


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Both sides after a rule: boxes in common rows, and predictions that it removed, for a note."""

    gt: BoxTable
    pred: BoxTable
    removed: str = ""  # what they have in common, as in "of classes that are not judged on their image"
    n_removed: int = 0
    lacks: str = ""  # what is not known of the classes, for a warning


JudgingRule = Callable[[BoxTable, BoxTable, ClassFacts, int], Judged]
"""Takes ground truth, predictions, what is known besides, and how many classes there are."""


def judge(sides: Sides, protocol: Protocol) -> Sides:
    """Return sides with the boxes that a protocol judges; those that were judged before stay as they are."""
    if sides.judged_by is not None:
        return sides
    aligned = sides.aligned
    if not (needs_memory(protocol) or protocol.frequencies):
        found = _unused_facts(sides, protocol)
        return replace(sides, aligned=replace(aligned, findings=(*aligned.findings, *found))) if found else sides
    return _judged(sides, protocol)


@staged("judging")
def _judged(sides: Sides, protocol: Protocol) -> Sides:
    aligned = sides.aligned
    gt, pred, findings = aligned.gt, aligned.pred, FindingLog()
    pred = _within_caps(sides, pred, protocol)
    if protocol.drop_empty:
        gt, pred = _with_area(gt), _with_area(pred)
    if protocol.judging in EXPANDING and not protocol.class_agnostic:  # pooled classes are none above another
        gt = expanded(sides)
    _check_facts(sides, gt, protocol, findings)
    judged = _rule(protocol.judging)(gt, pred, aligned.facts, len(aligned.class_names))
    if judged.n_removed:
        detail = f"{pluralise(judged.n_removed, 'prediction')} {judged.removed}: ignored by protocol {protocol.name}"
        findings.note("not-judged", Where(sides.pred.path, field="class"), detail)
    if judged.lacks:
        fix = "Pass --hierarchy FILE if there is one."
        findings.warning("hierarchy-missing", Where(sides.gt.path, field="class"), judged.lacks, fix=fix)
    selection = sides.selection
    if protocol.judging != EVERY_CLASS or protocol.frequencies:  # what is known besides boxes changes numbers
        digest = digest_facts(aligned.facts, aligned.image_names, aligned.class_names)
        selection = (*selection, f"class_facts=sha256:{digest}")
    kept = replace(aligned, gt=judged.gt, pred=judged.pred, findings=(*aligned.findings, *findings.findings()))
    return replace(sides, aligned=kept, selection=selection, judged_by=protocol)


def _unused_facts(sides: Sides, protocol: Protocol) -> tuple[Finding, ...]:
    """Return a warning where classes are verified by image, and a protocol judges them on all images."""
    facts, findings = sides.aligned.facts, FindingLog()
    if facts.images is not None and len(facts.images) and facts.usual_protocol:
        detail = (
            f"only some classes are verified on each image, but protocol {protocol.name} judges all of them:"
            " correct detections of other classes may count as false positives"
        )
        fix = f"Pass --protocol {facts.usual_protocol}."
        findings.warning("classes-unverified", Where(sides.gt.path, field="images"), detail, fix=fix)
    return findings.findings()


def _check_facts(sides: Sides, gt: BoxTable, protocol: Protocol, findings: FindingLog) -> None:
    """Warn of what a protocol needs and the ground truth does not have, and of what contradicts the boxes."""
    facts, n_labels, path = sides.aligned.facts, len(sides.aligned.class_names), sides.gt.path
    if protocol.judging == FEDERATED and facts.images is None:
        detail = (
            f"no class is verified on any image: protocol {protocol.name} judges classes only where they have objects"
        )
        fix = "Pass the original ground truth with neg_category_ids, or --protocol coco."
        findings.warning("image-labels-missing", Where(path, field="images"), detail, fix=fix)
    if protocol.judging == FEDERATED and facts.images is not None:
        absent = image_class_keys(*facts.images.of(ABSENT), n_labels)
        clash = np.flatnonzero(np.isin(absent, image_class_keys(gt.image, gt.label, n_labels)))
        image, label = facts.images.of(ABSENT)
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
        return rules.judging, rules.drop_empty, rules.max_dets_per, caps, rules.frequencies

    return choice(first) == choice(second)


def needs_memory(protocol: Protocol) -> bool:
    """Whether a protocol chooses boxes by others of their image or class, for which all of them have to be there."""
    capped = protocol.max_dets_per != "image and class" and bool(protocol.max_dets)
    return capped or protocol.drop_empty or protocol.judging != EVERY_CLASS


def _within_caps(sides: Sides, pred: BoxTable, protocol: Protocol) -> BoxTable:
    """Remove predictions beyond a cap of their image, or of their class over all images; equal scores by the file."""
    if protocol.max_dets_per == "image and class" or not protocol.max_dets:
        return pred
    # Boxes as they were read: those of classes that are not evaluated take up room as well, as they do for lvis-api.
    read, cap = sides.pred.boxes, protocol.max_dets[-1]
    key = read.image if protocol.max_dets_per == "image" else read.label
    # Of most files no image, or few of them, reach the cap.
    full = np.flatnonzero((np.bincount(key) > cap)[key])
    some = read.take(full)
    beyond = some.source[ranks_within(some, key[full]) >= cap]
    return pred.take(~np.isin(pred.source, beyond)) if len(beyond) else pred


def ranks_within(boxes: BoxTable, key: Any) -> IntArray:
    """Return the rank of each box by score among those of equal keys, shape (n,); equal scores in their order."""
    score = np.zeros(len(boxes)) if boxes.score is None else boxes.score
    order = class_and_score_order(key, score)
    ranks = np.empty(len(boxes), dtype=np.int64)
    ranks[order] = group_ranks(key[order])
    return ranks


def _with_area(boxes: BoxTable) -> BoxTable:
    """Return the boxes with an area above 0 and below infinity, as lvis-api 0.5.3 ``lvis.py`` get_ann_ids does."""
    return boxes.take((boxes.area > 0) & (boxes.area < np.inf))


def every_class(gt: BoxTable, pred: BoxTable, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge every class on every image."""
    return Judged(gt, pred)


def federated(gt: BoxTable, pred: BoxTable, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge on each image the classes that it has objects of, or is verified to have none of.

    Of those whose objects are not all annotated there, detections that match nothing are not punished.

    Source: lvis 0.5.3 ``eval.py``, ``LVISEval._prepare`` and ``evaluate_img``.
    """
    labels = facts.images or ImageLabels.none()
    own = image_class_keys(pred.image, pred.label, n_labels)
    judged = are_among(own, image_class_keys(gt.image, gt.label, n_labels))
    judged |= are_among(own, image_class_keys(*labels.of(ABSENT), n_labels))
    spared = are_among(own, image_class_keys(*labels.of(NOT_EXHAUSTIVE), n_labels))
    kept = freeze(replace(pred, ignore=spared)).take(judged)
    removed = "of classes that are not judged on their image"
    return Judged(gt, kept, removed, int(np.count_nonzero(~judged)))


def with_ancestors(gt: BoxTable, pred: BoxTable, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge every class on every image; detections without an area are not punished.

    An object counts for all classes above its own as well, of which it has copies by now (see `expanded`).

    Source: TensorFlow Object Detection API, ``oid_hierarchical_labels_expansion.py`` and ``per_image_evaluation.py``,
    ``_remove_invalid_boxes``.
    """
    lacks = "" if facts.ancestors else "classes have no hierarchy: objects count for their own class alone"
    empty = (pred.xywh[:, 2] <= 0) | (pred.xywh[:, 3] <= 0)
    return Judged(gt, freeze(replace(pred, ignore=empty)), lacks=lacks)


def verified(gt: BoxTable, pred: BoxTable, facts: ClassFacts, n_labels: int) -> Judged:
    """Judge on each image the classes that were verified there, or have objects; otherwise as `with_ancestors` does.

    Source: TensorFlow Object Detection API, ``object_detection_evaluation.py``, ``OpenImagesChallengeEvaluator``.
    """
    if facts.images is None:
        raise UsageError(
            "this protocol judges only classes that were verified on an image, and the ground truth has no image-level"
            " labels. Pass --image-labels FILE, or evaluate with --protocol openimages."
        )
    judged = with_ancestors(gt, pred, facts, n_labels)
    own = image_class_keys(pred.image, pred.label, n_labels)
    kept = are_among(own, image_class_keys(gt.image, gt.label, n_labels))
    kept |= are_among(own, image_class_keys(facts.images.image, facts.images.label, n_labels))
    removed = "of classes that were not verified on their image"
    return replace(judged, pred=judged.pred.take(kept), removed=removed, n_removed=int(np.count_nonzero(~kept)))


def expanded(sides: Sides) -> BoxTable:
    """Return ground truth with a copy of each box for every class above its own, behind it."""
    aligned, ancestors = sides.aligned, sides.gt.facts.ancestors
    if not ancestors:
        return aligned.gt
    # Boxes of all classes, in these of the ground truth: what is not evaluated itself counts for a class above it.
    placed = aligned.placement.gt.whole()
    lists = [(label, *above) for label, above in enumerate(ancestors)]
    sizes = np.array([len(labels) for labels in lists])[placed.label]
    rows = np.repeat(np.arange(len(placed)), sizes)
    labels = np.array([label for row in placed.label.tolist() for label in lists[row]], dtype=np.int64)
    at = {name: row for row, name in enumerate(aligned.class_names)}
    chosen = np.array([at.get(name, -1) for name in sides.gt.labels.names], dtype=np.int32)[labels]
    return freeze(replace(placed.take(rows[chosen >= 0]), label=chosen[chosen >= 0]))


def image_class_keys(image: Any, label: Any, n_labels: int) -> IntArray:
    """Return one number for each pair of an image and a class, (n,)."""
    return np.asarray(image.astype(np.int64) * n_labels + label)


def are_among(keys: IntArray, others: IntArray) -> BoolArray:
    """Return which keys are among others, (n,); by a table of all keys where it is small enough."""
    span = int(max(keys.max(initial=0), others.max(initial=0))) + 1
    # NumPy itself sorts long before a table of bytes is as large as the boxes are.
    return np.isin(keys, others, kind="table" if span <= LARGEST_TABLE else "sort")


# By the names that protocols have for them.
RULES: dict[str, JudgingRule] = {
    EVERY_CLASS: every_class,
    FEDERATED: federated,
    "with ancestors": with_ancestors,
    "verified": verified,
}
EXPANDING = ("with ancestors", "verified")  # rules of classes that are kinds of each other


def _rule(name: str) -> JudgingRule:
    if name not in RULES:
        raise UsageError(f"unknown judging {quoted_value(name)}; choose from {', '.join(RULES)}")
    return RULES[name]
