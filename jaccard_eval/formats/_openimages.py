"""What is known of the classes of Open Images besides boxes, in files next to it: hierarchy, image-level labels."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.dataset import ABSENT, PRESENT, Key
from jaccard_eval.engine import path_of
from jaccard_eval.findings import FindingLog, Severity, Where, as_fix
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import RepeatedKeys, described_json, parse_json
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.text import example_keys, is_numeral, pluralise, quoted_value

MID_STARTS = ("/m/", "/g/", "/t/")  # machine-generated ids of the knowledge graph
IMAGE, CLASS, CONFIDENCE = COLUMNS = ("ImageID", "LabelName", "Confidence")
_FACTS = {0.0: ABSENT, 1.0: PRESENT}
_SPELLED = {"0": ABSENT, "1": PRESENT}  # as nearly all cells are, and in a third of the time
_LABELS_FIX = f"Pass labels as Open Images has them: columns {', '.join(COLUMNS)}, with 1 or 0 for verified labels."


@dataclass(frozen=True, slots=True, eq=False)
class LabelFile:
    """Verified labels of a file, a row each: the image, the class, whether it is there, and the line."""

    path: str
    images: CodedKeys
    classes: CodedKeys
    facts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.facts)


def is_label_file(first_line: str) -> bool:
    """Whether a table holds labels of images, by its first line: those columns, and none of boxes."""
    header = {name.strip().strip('"').lower() for name in first_line.split(",")}
    return {name.lower() for name in COLUMNS} <= header and "xmin" not in header


def read_image_labels(path: Path, findings: FindingLog) -> LabelFile:
    """Return the verified labels of a file; those that a program gave are skipped, with a warning."""
    from jaccard_eval.reading.tabular.columns import fields_up_to

    text = files.read_text(path)
    images: dict[Key, int] = {}
    classes: dict[Key, int] = {}
    rows: list[tuple[int, int, int, int]] = []  # image, class, fact, line
    guessed: list[int] = []
    with fields_up_to(len(text)):
        import csv  # looks for formats do without it

        table = csv.reader(io.StringIO(text, newline=""))
        header = [name.strip().lower() for name in next(table, [])]
        lacks = [name for name in COLUMNS if name.lower() not in header]
        if lacks:
            detail = f"the header has no {' and no '.join(lacks)}: it has {', '.join(header) or 'no columns'}"
            findings.error("image-labels-invalid", Where(str(path), line=1), detail, fix=_LABELS_FIX)
        at = [header.index(name.lower()) for name in COLUMNS if not lacks]
        for cells in table if at else ():
            if not cells:
                continue
            if len(cells) <= max(at):
                where, detail = (
                    Where(str(path), line=table.line_num),
                    f"expected {len(header)} fields, got {len(cells)}",
                )
                findings.error("image-labels-invalid", where, detail, fix=_LABELS_FIX)
                continue
            image, label, value = cells[at[0]].strip(), cells[at[1]].strip(), cells[at[2]].strip()
            fact = _SPELLED.get(value)
            if fact is None and is_numeral(value):
                fact = _FACTS.get(float(value))
            if not image or not label:
                where = Where(str(path), line=table.line_num, field=CLASS if image else IMAGE)
                findings.error("image-labels-invalid", where, "the cell is empty", fix=_LABELS_FIX)
            elif fact is not None:
                known = images.setdefault(image, len(images)), classes.setdefault(label, len(classes))
                rows.append((*known, fact, table.line_num))
            elif is_numeral(value) and 0 < float(value) < 1:
                guessed.append(table.line_num)
            else:
                where = Where(str(path), line=table.line_num, field=CONFIDENCE)
                findings.error("image-labels-invalid", where, f"{quoted_value(value)} is not 0 or 1", fix=_LABELS_FIX)
    findings.add_rows(
        Severity.WARNING,
        "image-labels-unverified",
        guessed,
        lambda line: (Where(str(path), line=line, field=CONFIDENCE), "between 0 and 1"),
        summary=f"ignored {pluralise(len(guessed), 'label')} that a program gave: nobody verified them",
        fix="Pass the labels that people verified, such as validation-annotations-human-imagelabels-boxable.csv.",
    )
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return LabelFile(
        path=str(path),
        images=CodedKeys(list(images), columns[0]),
        classes=CodedKeys(list(classes), columns[1]),
        facts=columns[2],
        lines=columns[3],
    )


NAME, BELOW = "LabelName", "Subcategory"
_HIERARCHY_FIX = "Pass the hierarchy as Open Images has it, such as bbox_labels_600_hierarchy.json."

Parents = dict[str, tuple[str, ...]]  # of each class those directly above it, none below the root alone


def read_hierarchy(path: Path, findings: FindingLog) -> Parents:
    """Return every class with those directly above it, in the order of the file; empty where anything is wrong.

    A class may stand in several places. What "Part" lists is not read: a part is not a kind of its class.

    Source: TensorFlow Object Detection API, ``oid_hierarchical_labels_expansion.py``.
    """
    found = FindingLog()
    root = parse_json(path, files.read_text(path))
    above: dict[str, dict[str, None]] = {}
    if not isinstance(root, dict) or BELOW not in root:
        detail = f"not a hierarchy of classes: expected an object with {NAME} and {BELOW}, got {described_json(root)}"
        found.error("hierarchy-invalid", Where(str(path)), detail, fix=_HIERARCHY_FIX)
    else:
        for place, name, parent in _nodes(path, root, found):
            _join(above, place, name, parent, found)
        if not above and not found.has_errors:
            found.error(
                "hierarchy-invalid",
                Where(str(path), record=BELOW),
                "there is no class below the root",
                fix=_HIERARCHY_FIX,
            )
    findings.extend(found.findings())
    return {} if found.has_errors else {name: tuple(parents) for name, parents in above.items()}


def _nodes(path: Path, root: Mapping[str, Any], found: FindingLog) -> Iterator[tuple[Where, str, str | None]]:
    """Yield place, name and parent of each node below the root, parents first."""
    # Not by recursion: hostile files are deep.
    waiting: list[tuple[str, Any, str | None]] = [("", root, None)]
    while waiting:
        place, node, name = waiting.pop()
        children = node.get(BELOW, [])
        if not isinstance(children, list):
            where = Where(str(path), record=place or None, field=BELOW)
            found.error(
                "hierarchy-invalid",
                where,
                f"expected a list of classes, got {described_json(children)}",
                fix=_HIERARCHY_FIX,
            )
            continue
        below = []
        for number, child in enumerate(children):
            record = f"{place}.{BELOW}[{number}]".removeprefix(".")
            where = Where(str(path), record=record, field=NAME)
            if not isinstance(child, dict):
                where = Where(str(path), record=record)
                found.error(
                    "hierarchy-invalid", where, f"expected a class, got {described_json(child)}", fix=_HIERARCHY_FIX
                )
            elif isinstance(child, RepeatedKeys) and child.repeated:
                detail = f"duplicate key {quoted_value(child.repeated[0])}"
                found.error("key-duplicate", where, detail, fix="Keep one of them.")
            elif not isinstance(child.get(NAME), str) or not child[NAME].strip():
                detail = f"expected the id of a class, got {described_json(child.get(NAME))}"
                found.error("hierarchy-invalid", where, detail, fix=_HIERARCHY_FIX)
            else:
                yield where, child[NAME], name
                below.append((record, child, child[NAME]))
        waiting += reversed(below)


def _join(above: dict[str, dict[str, None]], where: Where, name: str, parent: str | None, found: FindingLog) -> None:
    """Put a class below another one; an error if it is above that one already."""
    above.setdefault(name, {})
    if parent is None:
        return
    way = _way_up(above, parent, name)
    if way:
        detail = f"{name} is above itself: {' below '.join([name, *way])}"
        found.error("hierarchy-circle", where, detail, fix="Remove the class from one of the two places.")
    else:
        above[name][parent] = None


def _way_up(above: Mapping[str, Mapping[str, None]], start: str, goal: str) -> list[str]:
    """Return the classes from one up to another that is above it, both included; empty where it is not."""
    before: dict[str, str] = {start: ""}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name == goal:
            way = [name]
            while before[way[-1]]:
                way.append(before[way[-1]])
            return way[::-1]
        for parent in above[name]:
            if parent not in before:
                before[parent] = name
                waiting.append(parent)
    return []


# The files of each option, as Open Images names them and as people do.
DESCRIPTIONS = ("*class-descriptions*.csv", "*class_descriptions*.csv")
HIERARCHIES = ("*hierarchy*.json",)
LABELS = ("*imagelabels*.csv", "*image-labels*.csv", "*image_labels*.csv", "labels.csv")
MACHINE = "*machine*"  # labels that a program gave; people verified those of the other files
BOXABLE = "*boxable*"  # labels of the classes that have boxes


def descriptions_of(path: Path, options: ReadOptions) -> list[Path]:
    """Return the files that name the classes of a table."""
    return [path_of(options.class_descriptions)] if options.class_descriptions else _next_to(path, DESCRIPTIONS)


def hierarchy_of(path: Path, options: ReadOptions, findings: FindingLog) -> Path | None:
    """Return the file with the hierarchy of the classes of a table, None where there is none."""
    if options.hierarchy:
        return path_of(options.hierarchy)
    return _only(path, _next_to(path, HIERARCHIES), "hierarchy", findings)


def image_labels_of(path: Path, options: ReadOptions, findings: FindingLog) -> Path | None:
    """Return the file with the image-level labels of a table, None where there is none."""
    if options.image_labels:
        return path_of(options.image_labels)
    found = [file for file in _next_to(path, LABELS) if not fnmatchcase(file.name.lower(), MACHINE)]
    found = [file for file in found if is_label_file(files.first_line(file))]
    # Those of the same split are named alike: validation-annotations-bbox.csv, validation-annotations-human-....csv.
    alike = [sum(takewhile(bool, map(eq, path.name, file.name))) for file in found]
    found = [file for file, length in zip(found, alike, strict=True) if length == max(alike)]
    boxable = [file for file in found if fnmatchcase(file.name.lower(), BOXABLE)]
    return _only(path, boxable or found, "image_labels", findings)


def read_descriptions(described: Iterable[Path]) -> dict[str, str]:
    """Return the names of classes by their MIDs."""
    import csv  # looks for formats do without it

    from jaccard_eval.reading.tabular.columns import fields_up_to

    names: dict[str, str] = {}
    for file in described:
        text = files.read_text(file)
        with fields_up_to(len(text)):
            for row in csv.reader(io.StringIO(text, newline="")):
                # The first field of a header is not a MID.
                if len(row) > 1 and row[0].startswith(MID_STARTS) and row[1].strip():
                    names[row[0]] = row[1].strip()
    return names


def may_lie_beside(path: Path) -> list[Path]:
    """Return the files next to a table that may be read with it."""
    return [] if files.is_folder(path) else _next_to(path, (*DESCRIPTIONS, *HIERARCHIES, *LABELS))


def _next_to(path: Path, patterns: Sequence[str]) -> list[Path]:
    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)

    return [file for file in files.scan_folder(path.parent, is_wanted, files.MAX_ENTRIES)[0] if file != path]


def _only(path: Path, found: Sequence[Path], option: str, findings: FindingLog) -> Path | None:
    """Return the one file there is; several leave the choice to the user, with a warning."""
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        detail = f"{pluralise(len(found), 'file')} next to it may belong to it ({names}): none is read"
        fix = Fix.missing("Pass {options}.", **{option: None})
        findings.warning("companion-ambiguous", Where(str(path), field=option), detail, fix=fix)
    return found[0] if len(found) == 1 else None


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
