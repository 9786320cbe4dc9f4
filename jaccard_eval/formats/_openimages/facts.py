"""What is known of the classes of Open Images besides boxes: hierarchy and image-level labels, checked with boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.dataset import Key
from jaccard_eval.data.imagelabels import ABSENT, PRESENT
from jaccard_eval.findings import FindingLog, Severity, Where, as_fix
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._openimages.beside import hierarchy_of, image_labels_of
from jaccard_eval.formats._openimages.hierarchy import Parents, read_hierarchy
from jaccard_eval.formats._openimages.labels import LabelFile, read_image_labels
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.text import example_keys, pluralise, quoted_value

RowIndices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BoxKeys:
    """Image and class of each box of a table, and its place."""

    images: CodedKeys
    classes: CodedKeys
    place: Callable[[int], Where]


def add_facts(path: Path, boxes: BoxKeys, names: dict[str, str], draft: Draft) -> list[str]:
    """Add the hierarchy and the image-level labels of ground truth to a draft; return the classes of the hierarchy.

    `names` are those of the class descriptions, empty without any.
    """
    options, log = draft.options, draft.findings
    tree: Parents = {}
    file = hierarchy_of(path, options, log)
    if file is not None:
        found = FindingLog()
        tree = read_hierarchy(file, found)
        _report(found, draft, is_given=options.hierarchy is not None)
        tree = _fitting(tree, file, boxes, names, draft) if tree else {}
    if file is not None and tree:
        draft.class_parents = dict(tree.items())
        draft.details.append(f"hierarchy of {len(tree):,} classes from {file.name}")
    file = image_labels_of(path, options, log)
    if file is not None:
        found = FindingLog()
        labels = read_image_labels(file, found)
        _report(found, draft, is_given=options.image_labels is not None)
        if not found.has_errors and _fits(labels, boxes, tree, draft):
            _add_labels(labels, boxes, tree, draft)
    return list(tree)


def _report(found: FindingLog, draft: Draft, *, is_given: bool) -> None:
    """Report what is wrong with a file: errors if it was named; else it may be of something else, and is not used."""
    for finding in found.findings():
        is_doubtful = finding.severity is Severity.ERROR and not is_given
        fix = "The file is not used." if is_doubtful else finding.fix
        severity = Severity.WARNING if is_doubtful else finding.severity
        draft.findings.extend([replace(finding, severity=severity, fix=as_fix(fix))])


def _fitting(tree: Parents, file: Path, boxes: BoxKeys, names: dict[str, str], draft: Draft) -> Parents:
    """Return the hierarchy if it is one of these classes; report classes that only one of the files knows."""
    used = [str(label) for label in boxes.classes.distinct]
    unknown = {label for label in used if label not in tree}
    if used and len(unknown) == len(used):
        detail = (
            f"has none of the {len(used):,} classes that have boxes in {draft.path}: {example_keys(sorted(unknown))}"
        )
        given = draft.options.hierarchy is not None
        words = "Pass {hierarchy} of the same release, or without descriptions if classes have names."
        fix = Fix.missing(words, hierarchy=None)
        draft.findings.add_one(
            Severity.ERROR if given else Severity.WARNING,
            "hierarchy-other",
            Where(str(file), field="LabelName"),
            detail if given else f"{detail}. It is not used",
            fix=fix,
        )
        return {}
    rows = [row for row, label in enumerate(boxes.classes) if str(label) in unknown]
    draft.findings.add_rows(
        Severity.WARNING,
        "hierarchy-class",
        rows,
        lambda row: (boxes.place(row), f"class {quoted_value(boxes.classes[row])}"),
        summary=f"{pluralise(len(rows), 'box', 'boxes')} of {pluralise(len(unknown), 'class', 'classes')} that the"
        f" hierarchy {file.name} does not have: they count for no other class",
        fix=Fix.missing("Pass {hierarchy} of the same release.", hierarchy=None),
    )
    undescribed = [label for label in tree if label not in names] if names else []
    if undescribed:
        detail = (
            f"{len(undescribed):,} of {len(tree):,} classes are not in the class descriptions:"
            f" {example_keys(undescribed)}"
        )
        where = Where(str(file), field="LabelName")
        release = "Check that both files are of the same release."
        draft.findings.warning("hierarchy-undescribed", where, detail, fix=release)
    return tree


def _fits(labels: LabelFile, boxes: BoxKeys, tree: Parents, draft: Draft) -> bool:
    """Whether labels are of images and classes of the boxes; a file of others is refused if it was named, or unused."""
    for field, what, known, of_labels, of_boxes in (
        ("ImageID", "images", {*boxes.images.distinct}, labels.images.distinct, boxes.images.distinct),
        ("LabelName", "classes", {*boxes.classes.distinct, *tree}, labels.classes.distinct, boxes.classes.distinct),
    ):
        if len(labels) and of_boxes and known.isdisjoint(of_labels):
            detail = (
                f"none of the {len(of_boxes):,} {what} with boxes in {draft.path} has a label:"
                f" labels are of {example_keys(of_labels)}, boxes of {example_keys(of_boxes)}"
            )
            _refuse_labels(labels, field, detail, draft)
            return False
    return True


def _refuse_labels(labels: LabelFile, field: str, detail: str, draft: Draft) -> None:
    given = draft.options.image_labels is not None
    draft.findings.add_one(
        Severity.ERROR if given else Severity.WARNING,
        "image-labels-other",
        Where(labels.path, field=field),
        detail if given else f"{detail}. It is not used",
        fix=Fix.missing("Pass {image_labels} of the same split and year.", image_labels=None),
    )


def _add_labels(labels: LabelFile, boxes: BoxKeys, tree: Parents, draft: Draft) -> None:
    """Add labels of the classes that have boxes or are in the hierarchy, and the images that only labels name.

    What is there holds for all classes above it, what is not there for all below: these are added as well.
    """
    judged = {*boxes.classes.distinct, *tree}
    others = [label for label in labels.classes.distinct if label not in judged]
    is_other = np.isin(labels.classes.codes, [labels.classes.distinct.index(label) for label in others])
    if others:
        detail = (
            f"{pluralise(int(is_other.sum()), 'label')} of {pluralise(len(others), 'class', 'classes')} without boxes"
            f" and outside of the hierarchy: not used. First: {example_keys(others)}"
        )
        draft.findings.note("image-labels-unused", Where(labels.path, field="LabelName"), detail)
    above = {str(label): _all_above(str(label), tree) for label in judged}
    below: dict[str, list[str]] = {}
    for label, names in above.items():
        for name in names:
            below.setdefault(name, []).append(label)
    for fact, related in ((PRESENT, above), (ABSENT, below)):
        rows = np.flatnonzero((labels.facts == fact) & ~is_other)
        places, classes = _each_with(labels.classes.take(rows), related)
        lines = labels.lines[rows[places]]
        draft.add_image_labels(
            fact,
            CodedKeys(labels.images.distinct, labels.images.codes[rows[places]]),
            classes,
            lambda row, lines=lines: Where(labels.path, line=int(lines[row])),  # type: ignore[misc]
        )
        if fact == PRESENT:
            _compare_with_boxes(labels, labels.images.codes[rows[places]], classes, boxes, draft)
    draft.add_images(labels.images.distinct)
    draft.usual_protocol = "openimages-challenge"
    draft.details.append(f"{len(labels):,} image-level labels from {Path(labels.path).name}")


def _each_with(classes: CodedKeys, related: Mapping[str, Sequence[str]]) -> tuple[RowIndices, CodedKeys]:
    """Return each class, then those related to it: the row of the class, and itself or what is related."""
    at: dict[Key, int] = {}
    lists = [[at.setdefault(name, len(at)) for name in (key, *related.get(str(key), ()))] for key in classes.distinct]
    sizes = np.array([len(codes) for codes in lists], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    flat = np.array([code for codes in lists for code in codes], dtype=np.int64)
    rows = np.repeat(np.arange(len(classes)), sizes[classes.codes])
    first = np.cumsum(sizes[classes.codes]) - sizes[classes.codes]
    return rows, CodedKeys(list(at), flat[starts[classes.codes[rows]] + np.arange(len(rows)) - first[rows]])


def _compare_with_boxes(
    labels: LabelFile, image_codes: RowIndices, classes: CodedKeys, boxes: BoxKeys, draft: Draft
) -> None:
    """Warn of boxes whose class nobody verified on their image: Open Images draws boxes of verified classes alone."""
    names = {key: row for row, key in enumerate(dict.fromkeys((*classes.distinct, *boxes.classes.distinct)))}
    images = {key: row for row, key in enumerate(dict.fromkeys((*labels.images.distinct, *boxes.images.distinct)))}

    def pairs(image_keys: CodedKeys, class_keys: CodedKeys) -> RowIndices:
        image, label = (
            np.array([rows[key] for key in keys.distinct], dtype=np.int64)[keys.codes]
            for rows, keys in ((images, image_keys), (names, class_keys))
        )
        return np.asarray(image * len(names) + label)

    known, given = pairs(CodedKeys(labels.images.distinct, image_codes), classes), pairs(boxes.images, boxes.classes)
    lacking, first = np.unique(given, return_index=True)
    rows = np.sort(first[~np.isin(lacking, known)])
    draft.findings.add_rows(
        Severity.WARNING,
        "image-labels-differ",
        rows,
        lambda row: (boxes.place(row), f"{quoted_value(boxes.classes[row])} on {quoted_value(boxes.images[row])}"),
        summary=f"{len(rows):,} of {len(lacking):,} classes with boxes on an image are not verified there by"
        f" {Path(labels.path).name}",
        fix="Check that boxes and labels are of the same release.",
    )


def _all_above(name: str, tree: Parents) -> list[str]:
    found: dict[str, None] = {}
    waiting = list(tree.get(name, ()))
    while waiting:
        parent = waiting.pop()
        if parent not in found:
            found[parent] = None
            waiting += tree[parent]
    return list(found)
