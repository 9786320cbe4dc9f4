"""Reading text labels: from lines to boxes, and what is odd about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import CORNER_ORDER, BoolArray, FloatArray, from_xywh, to_xywh
from jaccard_eval.data.dataset import Key, unknown_sizes
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.formats._yolo.columns import ColumnChoice, Columns, choose_columns, named_columns, uses_names
from jaccard_eval.formats._yolo.encodings import (
    FIELDS,
    HIGH,
    LOW,
    PIXEL_LOOK,
    EncodingChoice,
    Frame,
    choose_encoding,
    is_mostly_normalised,
    is_normalised,
    spelled,
)
from jaccard_eval.formats._yolo.images import list_images
from jaccard_eval.formats._yolo.lines import IntArray, LabelLines, read_label_files, split_lines, take_difficult
from jaccard_eval.formats._yolo.sources import (
    LabelSource,
    find_description,
    folder_source,
    labels_of_folder,
    read_description,
    require_labels,
)
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import CodedKeys, Draft, RawBoxes
from jaccard_eval.reading.lines import mention_other_files
from jaccard_eval.reading.names import find_names, read_names, warn_repeated
from jaccard_eval.text import pluralise, quoted_value

_SEPARATORS = {",": "commas", ";": "semicolons", "|": "pipes"}
_UNITS = {"norm": "normalised", "px": "pixels"}


def add_label_images(path: Path, draft: Draft) -> dict[str, Path]:
    """Add the images that the label files of a folder are of to the draft; return these files by key."""
    source = folder_source(path, draft.findings)
    require_labels(source, draft.options.role, draft.findings)
    images = list_images(source, draft)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    mention_other_files(source.root, source.other_files, draft)
    return source.files


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of text labels to the draft."""
    source = _find_source(path, draft, options)
    paths = list(source.files.values())
    reporter = LineReporter(read_label_files(paths, draft.findings), paths, options.role, draft.findings)
    images = list_images(source, draft)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    known = _known_names(source, draft, options, search=not uses_names(reporter.lines))
    if len(reporter.lines):
        add_boxes(draft, reporter, list(source.files), images.sizes_of(list(source.files)), known)
    elif known.names is not None:
        draft.set_classes(range(len(known.names)), known.names)
    mention_other_files(source.root, source.other_files, draft)


def add_listed_lines(
    path: Path, images: Sequence[str], labels: Sequence[str], draft: Draft, options: ReadOptions
) -> None:
    """Add what one text says of many images: `labels` is a line for each of its lines, `images` for each not blank."""
    keys = list(dict.fromkeys(images))
    at = {key: row for row, key in enumerate(keys)}
    lines = split_lines(labels, np.array([at[image] for image in images], dtype=np.int64))
    reporter = LineReporter(lines, [path] * len(keys), options.role, draft.findings)
    sizes = unknown_sizes(len(keys))
    draft.fill_sizes(sizes, keys)
    draft.set_images(keys, file_names=keys, sizes=sizes, listed=False)
    if len(lines):
        source = LabelSource(root=path.parent, files={})
        add_boxes(draft, reporter, keys, sizes, _known_names(source, draft, options, search=not uses_names(lines)))


def _find_source(path: Path, draft: Draft, options: ReadOptions) -> LabelSource:
    """Find the labels; what was said before the search failed is said with the error."""
    try:
        description = find_description(path)  # a data.yaml or a darknet obj.data
        if description is None:
            source = labels_of_folder(path, options.split, draft.findings)
        else:
            source = read_description(description, options.split, draft.findings)
        require_labels(source, options.role, draft.findings)
    except DataError as error:
        draft.findings.extend(error.findings)
        raise DataError(draft.findings.findings()) from None
    return source


def _known_names(source: LabelSource, draft: Draft, options: ReadOptions, *, search: bool) -> KnownNames:
    """Return the names given by the user, else by the data set, else (`search`) by a names file near the labels."""
    if options.names is not None:
        warn_repeated(options.names, Where(draft.path, field="names"), draft.findings)
        return KnownNames(names=options.names, origin="the given list of names")
    if source.names is not None:
        return KnownNames(names=source.names, origin=source.names_from)
    found = find_names(source.root) if search else None
    if found is None:
        return KnownNames(names=None, origin="")
    try:
        return KnownNames(names=read_names(found, draft.findings), origin=str(found))
    except DataError as error:
        first = error.findings[0].examples[0]
        draft.findings.warning("names-unusable", first.where, f"{first.detail}; it is not used")
        return KnownNames(names=None, origin="")


@dataclass(frozen=True, slots=True)
class LineReporter:
    """Reports problems of lines with their file and number; `role` ("gt", "pred") names the flags that settle them."""

    lines: LabelLines
    paths: Sequence[Path]
    role: str
    findings: FindingLog

    def place(self, line: int) -> Where:
        """Return file and line number of a line."""
        return Where(str(self.paths[int(self.lines.file[line])]), line=int(self.lines.number[line]))

    def report(self, code: str, rows: IntArray, detail: Callable[[int], str], fix: str) -> None:
        """Record an error for each of the lines `rows`."""
        self.findings.add_rows(Severity.ERROR, code, rows, lambda line: (self.place(line), detail(line)), fix=fix)

    def warn(self, code: str, rows: IntArray, detail: Callable[[int], str], summary: str, fix: str = "") -> None:
        """Record a warning about the lines `rows`."""
        self.findings.add_rows(
            Severity.WARNING, code, rows, lambda line: (self.place(line), detail(line)), fix=fix, summary=summary
        )

    def word(self, line: int, position: int) -> str:
        """Return a field of a line as it was written, or as it was understood where only its value is known."""
        if line in self.lines.text:
            return quoted_value(self.lines.text[line].split(" ")[position])
        return f"{self.lines.values[self.lines.first[line] + position]:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBoxes:
    """Boxes (n, 4) of the lines `rows` (n,), ascending, as they are written."""

    rows: IntArray
    coords: FloatArray
    units: str
    encoding: str


def check_columns(reporter: LineReporter, columns: Columns, numbers: IntArray, *, by_name: bool) -> BoolArray:
    """Return which lines have the columns of the set; the others are errors."""
    lines = reporter.lines
    good: BoolArray = columns.accepts(_without_name_numbers(lines, columns, numbers) if by_name else numbers)
    if columns.sibling is not None and not by_name:
        good |= columns.sibling.accepts(numbers) & _are_fractions(lines)

    def detail(line: int) -> str:
        return (
            f"expected {columns.describe()}, got "
            f"{pluralise(int(lines.count[line]), 'column')}{_explain(reporter, line)}"
        )

    fix = f"Give every line the same columns; where all have others, name them with --{reporter.role}-columns."
    reporter.report("columns", np.flatnonzero(~good), detail, fix)
    return good


def _are_fractions(lines: LabelLines) -> BoolArray:
    """Return which lines have nothing but fractions behind the class, as all labels of YOLO."""
    strange = ~((lines.values >= LOW) & (lines.values <= HIGH))  # words, too
    strange[lines.first] = False
    before = np.concatenate(([0], np.cumsum(strange)))  # (n_tokens + 1,)
    return np.asarray(before[lines.first + lines.count] == before[lines.first])


def check_indices(reporter: LineReporter, rows: IntArray, names: Sequence[str] | None, names_from: str) -> BoolArray:
    """Return which of the lines `rows` start with a class index; the others are errors."""
    values = reporter.lines.values[reporter.lines.first[rows]]
    # Above 2**53 floats skip whole numbers, and two classes could become one.
    whole = np.isfinite(values) & (values >= 0) & (values == np.floor(values)) & (values < 2**53)
    reporter.report(
        "class-invalid",
        rows[~whole],
        lambda line: f"class {reporter.word(line, 0)} is not a class index (0, 1, 2, ...)",
        "Write class indices in every line, or class names in every line.",
    )
    if names is None:
        return np.asarray(whole)
    known: BoolArray = whole & (values < len(names))
    reporter.report(
        "class-unknown",
        rows[whole & ~known],
        lambda line: f"class {reporter.word(line, 0)} is outside 0 to {len(names) - 1}, the indices of {names_from}",
        "Give the names that belong to these labels (--names), or fix the class.",
    )
    return known


def check_finite(reporter: LineReporter, rows: IntArray, numbers: IntArray) -> BoolArray:
    """Return which of the lines `rows` hold finite numbers behind the class; the others are errors."""
    lines = reporter.lines
    end = lines.first[rows] + lines.count[rows]
    # Running sums tell of every span at once whether it holds a number that is not finite.
    broken_before = np.concatenate(([0], np.cumsum(~np.isfinite(lines.values))))  # (n_tokens + 1,)
    bad = broken_before[end] > broken_before[end - numbers[rows]]

    def detail(line: int) -> str:
        start, stop = int(lines.first[line]), int(lines.first[line] + lines.count[line])
        fields = lines.values[stop - int(numbers[line]) : stop]
        at = stop - len(fields) + int(np.flatnonzero(~np.isfinite(fields))[0])
        word, place = reporter.word(line, at - start), f"column {at - start + 1} is"
        if np.isinf(lines.values[at]) or word.strip("'+-").lower() in ("nan", "inf", "infinity"):
            return f"{place} {word}; numbers must be finite"
        return f"{place} {word}, not a number{' (a decimal comma?)' if ',' in word else ''}"

    reporter.report("number-invalid", rows[bad], detail, "Write plain decimal numbers with a point.")
    return np.asarray(~bad)


def check_units(reporter: LineReporter, boxes: LineBoxes) -> None:
    """Report normalised coordinates outside 0..1, and normalised boxes in a set in pixels.

    A detector may draw a box beyond the image: up to its own size that is a warning. Ground truth is not drawn so;
    Ultralytics refuses it.
    """
    rows, coords = boxes.rows, boxes.coords

    def box(line: int) -> FloatArray:
        return np.asarray(coords[np.searchsorted(rows, line)])

    if boxes.units == "px":
        # Whole numbers say nothing: a box from 0 to 1 pixel lies in 0..1 as well.
        mixed = rows[is_normalised(coords) & (coords != np.floor(coords)).any(axis=1)]
        detail = "the box {} looks normalised, but the set is in pixels"
        fix = "Use the same units in all files."
        reporter.report("units-mixed", mixed, lambda line: detail.format(quoted_value(box(line).tolist())), fix)
        return
    outside = ((coords < LOW) | (coords > HIGH)).any(axis=1)
    negative = (coords[:, 2:] < LOW).any(axis=1) & (boxes.encoding not in CORNER_ORDER)
    far = outside & ((reporter.role == "gt") | negative | (np.abs(coords) > PIXEL_LOOK).any(axis=1))

    def describe(line: int) -> str:
        numbers = box(line)
        worst = next(i for i in range(4) if not LOW <= numbers[i] <= HIGH)
        name, value = FIELDS[boxes.encoding][worst], numbers[worst]
        if name in ("w", "h") and value < 0:
            return f"{'width' if name == 'w' else 'height'} is {value:g}; it cannot be negative"
        return f"{name} is {value:g}, outside 0..1" + (" (looks like pixels)" if value > PIXEL_LOOK else "")

    fix = f"Mend the line, or pass --{reporter.role}-units px if the whole set is in pixels."
    reporter.report("coordinate-range", rows[far], describe, fix)
    near = rows[outside & ~far]
    summary = f"{pluralise(len(near), 'box leaves its image', 'boxes leave their images')}; kept as written"
    reporter.warn("coordinate-range", near, describe, summary)


def _without_name_numbers(lines: LabelLines, columns: Columns, numbers: IntArray) -> IntArray:
    """Numbers per line, whole numbers that end a class name ("Boeing 737") not counted."""
    expected = columns.box_width
    spare = np.flatnonzero((numbers > expected) & (columns.shape == "box"))
    end = lines.first + lines.count
    names = {line: lines.values[end[line] - numbers[line] : end[line] - expected] for line in spare.tolist()}
    belongs = [line for line, part in names.items() if (np.isfinite(part) & (part == np.floor(part))).all()]
    return np.where(np.isin(np.arange(len(numbers)), belongs), expected, numbers)


def _explain(reporter: LineReporter, line: int) -> str:
    """Say what a line with other columns may be."""
    text = reporter.lines.text.get(line, "")
    separator = next((name for mark, name in _SEPARATORS.items() if mark in text), "")
    if text.startswith(("#", "//")):
        return f": {quoted_value(text)}; comments are not part of the format"
    if separator:
        return f": {quoted_value(text)}; fields are separated by blanks, not by {separator}"
    if text:
        return f": {quoted_value(text)}"
    return " (a polygon beside boxes needs pairs of fractions)" if reporter.lines.count[line] >= 7 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """Class names by index, None where nobody gave any, and where they come from."""

    names: tuple[str, ...] | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """All that the steps below share: the lines, how they are read, and where findings go."""

    draft: Draft
    reporter: LineReporter
    columns: Columns
    encoding: str  # empty: still to be found
    numbers: IntArray  # (n_lines,), behind the class
    by_name: bool
    difficult: BoolArray  # (n_lines,)

    @property
    def lines(self) -> LabelLines:
        return self.reporter.lines


def add_boxes(
    draft: Draft, reporter: LineReporter, keys: Sequence[str], file_sizes: FloatArray, known: KnownNames
) -> None:
    """Add the classes and boxes of label lines to the draft.

    `keys` are the image of each file, `file_sizes` (n_files, 2) its width and height in pixels, NaN where unknown.
    """
    lines, difficult = reporter.lines, np.zeros(len(reporter.lines), dtype=np.bool_)
    if draft.options.role == "gt":
        lines, difficult = take_difficult(lines)
        reporter = replace(reporter, lines=lines)
    by_name = uses_names(lines)
    numbers = np.minimum(lines.trailing_numbers(), lines.count - 1) if by_name else lines.count - 1
    choice = _settle_columns(draft, lines, numbers, file_sizes[lines.file], by_name=by_name)
    columns = choice.columns
    good = check_columns(reporter, columns, numbers, by_name=by_name)
    if by_name and columns.shape == "box":
        numbers = np.minimum(numbers, columns.box_width)  # the rest ends the name
    rows = np.flatnonzero(good)
    if columns.shape == "polygon" and columns.sibling is not None and not columns.accepts(numbers[rows]).all():
        columns = columns.sibling  # boxes among polygons are polygons among boxes: the former have an encoding
    label_set = _Set(
        draft=draft,
        reporter=reporter,
        columns=columns,
        encoding=draft.options.box or choice.encoding,
        numbers=numbers,
        by_name=by_name,
        difficult=difficult,
    )
    if not by_name:
        rows = rows[check_indices(reporter, rows, known.names, known.origin)]
    # Each check sees what the ones before it left, so that a line is told once.
    rows = rows[check_finite(reporter, rows, numbers)]
    labels = _add_named_classes(label_set, rows, known) if by_name else _add_indexed_classes(label_set, rows, known)
    _add_rows(label_set, rows, keys, file_sizes, labels)


def _settle_columns(
    draft: Draft, lines: LabelLines, numbers: IntArray, sizes: FloatArray, *, by_name: bool
) -> ColumnChoice:
    """Take the layout that the user named, else the one that the set supports; say what was assumed."""
    options = draft.options
    if options.columns is not None:
        return ColumnChoice(named_columns(options.columns))
    choice = choose_columns(lines, numbers, sizes, by_name=by_name, options=options)
    fix = choice.fix or f"Name the layout with --{options.role}-columns (box-conf, conf-box, box-track, ...)."
    if choice.is_undecided:
        draft.findings.error("columns-ambiguous", Where(draft.path), choice.assumption, fix=fix)
    elif choice.assumption:
        draft.findings.note("columns-assumed", Where(draft.path), choice.assumption, fix=fix)
    return choice


def _add_indexed_classes(label_set: _Set, rows: IntArray, known: KnownNames) -> IntArray:
    labels = label_set.lines.values[label_set.lines.first[rows]].astype(np.int64)
    if known.names is not None:
        label_set.draft.set_classes(range(len(known.names)), known.names)
        label_set.draft.details.append(f"class names from {known.origin}")
    else:
        used = np.unique(labels).tolist()
        label_set.draft.set_classes(used, [str(index) for index in used], named=False)
    return labels


def _add_named_classes(label_set: _Set, rows: IntArray, known: KnownNames) -> list[Key]:
    labels: list[Key] = [_class_name(label_set, line) for line in rows.tolist()]
    given = dict.fromkeys(known.names or ())
    new = sorted({str(label) for label in labels} - given.keys())
    if given and new:
        listed = ", ".join(new[:5]) + (", ..." if len(new) > 5 else "")
        label_set.draft.findings.warning(
            "class-unknown", Where(label_set.draft.path), f"{len(new):,} classes are not among {known.origin}: {listed}"
        )
    names = [*given, *new]
    label_set.draft.set_classes(names, names)
    return labels


def _class_name(label_set: _Set, line: int) -> str:
    """Return what stands before the numbers of a line; a class called "7" was read as a number."""
    text = label_set.lines.text.get(line)
    numbers = int(label_set.numbers[line])
    if text is not None:
        return text.rsplit(" ", numbers)[0]
    start, stop = int(label_set.lines.first[line]), int(label_set.lines.count[line]) - numbers
    return " ".join(f"{value:g}" for value in label_set.lines.values[start : start + stop])


def _add_rows(
    label_set: _Set, rows: IntArray, keys: Sequence[str], file_sizes: FloatArray, labels: IntArray | list[Key]
) -> None:
    draft, lines = label_set.draft, label_set.lines
    numbers = label_set.numbers[rows]
    start = lines.first[rows] + lines.count[rows] - numbers
    offset = label_set.columns.score_offset(numbers)
    score = None if offset is None else lines.values[start + offset]
    coords = _coordinates(label_set, start + label_set.columns.head, numbers)
    files = lines.file[rows]
    outlined = (numbers > label_set.columns.box_width) & (label_set.columns.shape == "box")
    units, encoding = _settle_encoding(label_set, coords[~outlined], file_sizes[files[~outlined]])
    if outlined.any():  # the box around a polygon is written as the boxes beside it are
        coords[outlined] = from_xywh(to_xywh(coords[outlined], "xyxy"), encoding)
        what = pluralise(int(outlined.sum()), "polygon among the boxes is", "polygons among the boxes are")
        draft.findings.note("outline", Where(draft.path), f"{what} read as the box around it")
    boxes = LineBoxes(rows=rows, coords=coords, units=units, encoding=encoding)
    check_units(label_set.reporter, boxes)
    order = label_set.columns.order  # nothing is computed from some of its columns
    if "track" in order:
        draft.ignored["track_id"] += len(rows)
        draft.findings.note("track-ids", Where(draft.path), "the track ids are not used")
    if "conf" in order and draft.options.role == "gt":
        draft.ignored["score"] += len(rows)
        draft.findings.note("gt-scores", Where(draft.path), "the confidences of ground truth are not used")
    draft.add_boxes(
        RawBoxes(
            image=CodedKeys(keys, files),
            label=labels,
            coords=coords,
            encoding=encoding,
            units=units,
            score=score,
            difficult=label_set.difficult[rows] if label_set.difficult.any() else None,
            place=lambda row: label_set.reporter.place(int(rows[row])),
        )
    )


def _coordinates(label_set: _Set, start: IntArray, numbers: IntArray) -> FloatArray:
    """Boxes (n, 4) as they are written; of each polygon, the corners of the box around it."""
    values, columns = label_set.lines.values, label_set.columns
    coords = np.zeros((len(start), 4))
    outlined = numbers > columns.box_width if columns.shape == "box" else np.ones(len(start), dtype=np.bool_)
    coords[~outlined] = values[start[~outlined, np.newaxis] + np.arange(4)]
    if outlined.any():
        n_points = (numbers[outlined] - columns.head - columns.tail) // 2
        offsets = np.cumsum(n_points) - n_points
        at = np.repeat(start[outlined] - 2 * offsets, n_points) + 2 * np.arange(int(n_points.sum()))
        points = np.stack((values[at], values[at + 1]), axis=1)  # (n_points of all, 2)
        coords[outlined] = np.hstack((np.minimum.reduceat(points, offsets), np.maximum.reduceat(points, offsets)))
    return coords


def _settle_encoding(label_set: _Set, coords: FloatArray, sizes: FloatArray) -> tuple[str, str]:
    """Units and encoding: what the user named, else what the set supports; what was assumed is said."""
    draft, options = label_set.draft, label_set.draft.options
    units = options.units or ("norm" if is_mostly_normalised(coords) else "px")
    if label_set.columns.shape != "box":
        what = "oriented boxes" if label_set.columns.shape == "obb" else "polygons"
        draft.findings.note("outline", Where(draft.path), f"{len(coords):,} {what} are read as the boxes around them")
        if options.box is not None:
            fix = f"Leave out --{options.role}-box."
            draft.findings.error("outline-encoding", Where(draft.path), f"{what} have no box encoding", fix=fix)
        draft.details.append(f"{label_set.columns.fields()}, {_UNITS[units]}")
        return units, "xyxy"
    encoding = label_set.encoding
    if not encoding:
        choice = choose_encoding(coords, Frame.of(coords, units, sizes), is_scored="conf" in label_set.columns.order)
        encoding = choice.encoding
        _mention_encoding(label_set, choice, len(coords))
    draft.details.append(f"{label_set.columns.fields(spelled(encoding))}, {_UNITS[units]}")
    return units, encoding


def _mention_encoding(label_set: _Set, choice: EncodingChoice, n: int) -> None:
    """Say what was assumed of an encoding; where that would be a guess, ask for it."""
    findings, role = label_set.draft.findings, label_set.draft.options.role
    where = Where(label_set.draft.path)
    if choice.severity is not Severity.ERROR:
        if choice.assumption:
            fix = f"Settle it with --{role}-box."
            findings.add_one(choice.severity, "box-assumed", where, choice.assumption, fix=fix)
    elif not findings.has("columns-ambiguous"):  # which names the encodings as well
        readings = (choice.encoding, *choice.rivals)
        looks = " and as ".join(map(spelled, readings))
        flags = " or ".join(f"--{role}-box {encoding}" for encoding in readings)
        detail = f"{pluralise(n, 'box fits', 'boxes fit')} as {looks}"
        findings.error("columns-ambiguous", where, detail, fix=f"Pass {flags}.")
