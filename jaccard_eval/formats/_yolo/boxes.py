"""From the lines of label files to boxes: columns, classes, coordinates and scores of a whole set at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import Where
from jaccard_eval.formats._yolo.checks import (
    LineBoxes,
    LineReporter,
    check_columns,
    check_finite,
    check_indices,
    check_units,
)
from jaccard_eval.formats._yolo.columns import Columns, choose_columns, named_columns, uses_names
from jaccard_eval.formats._yolo.encoding import FIELDS, choose_normalised, choose_pixels, is_mostly_normalised
from jaccard_eval.formats._yolo.lines import IntArray, LabelLines
from jaccard_eval.reading.draft import Draft, RawBoxes
from jaccard_eval.reading.keys import CodedKeys


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
    numbers: IntArray  # (n_lines,), behind the class
    by_name: bool

    @property
    def lines(self) -> LabelLines:
        return self.reporter.lines


def add_boxes(
    draft: Draft, reporter: LineReporter, keys: Sequence[str], file_sizes: FloatArray, known: KnownNames
) -> None:
    """Add the classes and boxes of label lines to the draft.

    Parameters
    ----------
    draft : Draft
    reporter : LineReporter
        Holds the lines.
    keys : sequence of str, length n_files
        Image key of each file.
    file_sizes : ndarray of float64, shape (n_files, 2)
        Width and height of each file's image in pixels, NaN where unknown.
    known : KnownNames
    """
    lines = reporter.lines
    by_name = uses_names(lines)
    numbers = np.minimum(lines.trailing_numbers(), lines.count - 1) if by_name else lines.count - 1
    columns = _settle_columns(draft, lines, numbers, by_name=by_name)
    good = check_columns(reporter, columns, numbers, by_name=by_name)
    if by_name and columns.shape == "box":
        numbers = np.minimum(numbers, columns.box_width)  # the rest ends the name
    one = _Set(draft=draft, reporter=reporter, columns=columns, numbers=numbers, by_name=by_name)
    rows = np.flatnonzero(good)
    if not by_name:
        rows = rows[check_indices(reporter, rows, known.names, known.origin)]
    rows = rows[check_finite(reporter, rows, numbers)]
    labels = _add_named_classes(one, rows, known) if by_name else _add_indexed_classes(one, rows, known)
    _add_rows(one, rows, keys, file_sizes, labels)


def _settle_columns(draft: Draft, lines: LabelLines, numbers: IntArray, *, by_name: bool) -> Columns:
    """Take the layout that the user named, else the one that the set supports; say what was assumed."""
    options = draft.options
    if options.columns is not None:
        return named_columns(options.columns)
    choice = choose_columns(lines, numbers, by_name=by_name, role=options.role)
    fix = f"Name the layout with --{options.role}-columns (box-conf, conf-box, box-track, ...)."
    if choice.is_undecided:
        draft.findings.error("columns-ambiguous", Where(draft.path), choice.assumption, fix=fix)
    elif choice.assumption:
        draft.findings.note("columns-assumed", Where(draft.path), choice.assumption, fix=fix)
    return choice.columns


def _add_indexed_classes(one: _Set, rows: IntArray, known: KnownNames) -> IntArray:
    labels = one.lines.values[one.lines.first[rows]].astype(np.int64)
    if known.names is not None:
        one.draft.set_classes(range(len(known.names)), known.names)
        one.draft.details.append(f"class names from {known.origin}")
    else:
        used = np.unique(labels).tolist()
        one.draft.set_classes(used, [str(index) for index in used], named=False)
    return labels


def _add_named_classes(one: _Set, rows: IntArray, known: KnownNames) -> list[Key]:
    labels: list[Key] = [_class_name(one, line) for line in rows.tolist()]
    given = dict.fromkeys(known.names or ())
    new = sorted({str(label) for label in labels} - given.keys())
    if given and new:
        listed = ", ".join(new[:5]) + (", ..." if len(new) > 5 else "")
        one.draft.findings.warning(
            "class-unknown", Where(one.draft.path), f"{len(new):,} classes are not among {known.origin}: {listed}"
        )
    names = [*given, *new]
    one.draft.set_classes(names, names)
    return labels


def _class_name(one: _Set, line: int) -> str:
    """Return what stands before the numbers of a line; a class called "7" was read as a number."""
    text = one.lines.text.get(line)
    numbers = int(one.numbers[line])
    if text is not None:
        return text.rsplit(" ", numbers)[0]
    start = int(one.lines.first[line])
    return " ".join(f"{value:g}" for value in one.lines.values[start : start + int(one.lines.count[line]) - numbers])


def _add_rows(
    one: _Set, rows: IntArray, keys: Sequence[str], file_sizes: FloatArray, labels: IntArray | list[Key]
) -> None:
    draft, lines = one.draft, one.lines
    numbers = one.numbers[rows]
    start = lines.first[rows] + lines.count[rows] - numbers
    offset = one.columns.score_offset(numbers)
    score = None if offset is None else lines.values[start + offset]
    coords = _coordinates(one, start + one.columns.head, numbers)
    files = lines.file[rows]
    units, encoding = _settle_encoding(one, coords, file_sizes[files])
    boxes = LineBoxes(rows=rows, coords=coords, units=units, encoding=encoding)
    check_units(one.reporter, boxes)
    _mention_unused(one, len(rows))
    draft.set_boxes(
        RawBoxes(
            image=CodedKeys(keys, files),
            label=labels,
            coords=coords,
            encoding=encoding,
            units=units,
            score=score,
            place=lambda row: one.reporter.place(int(rows[row])),
        )
    )


def _coordinates(one: _Set, start: IntArray, numbers: IntArray) -> FloatArray:
    """Boxes (n, 4) as they are written, or the corners of the box around each polygon."""
    values = one.lines.values
    if one.columns.shape == "box":
        boxes: FloatArray = values[start[:, np.newaxis] + np.arange(4)]
        return boxes
    if not len(start):
        return np.zeros((0, 4))
    n_points = (numbers - one.columns.head - one.columns.tail) // 2
    offsets = np.cumsum(n_points) - n_points
    at = np.repeat(start - 2 * offsets, n_points) + 2 * np.arange(int(n_points.sum()))
    points = np.stack((values[at], values[at + 1]), axis=1)  # (n_points of all, 2)
    return np.hstack((np.minimum.reduceat(points, offsets), np.maximum.reduceat(points, offsets)))


def _settle_encoding(one: _Set, coords: FloatArray, sizes: FloatArray) -> tuple[str, str]:
    """Units and encoding: what the user named, else what the set supports; what was assumed is said."""
    draft, options = one.draft, one.draft.options
    units = options.units or ("norm" if is_mostly_normalised(coords) else "px")
    if one.columns.shape != "box":
        _mention_outline(one, len(coords))
        draft.details.append(f"{one.columns.fields()}, {_UNITS[units]}")
        return units, "xyxy"
    choice = choose_normalised(coords) if units == "norm" else choose_pixels(coords, sizes)
    encoding = options.box or choice.encoding
    if choice.assumption and options.box is None:
        add = draft.findings.warning if choice.is_doubtful else draft.findings.note
        add("box-assumed", Where(draft.path), choice.assumption, fix=f"Settle it with --{options.role}-box.")
    draft.details.append(f"{one.columns.fields(' '.join(FIELDS[encoding]))}, {_UNITS[units]}")
    return units, encoding


_UNITS = {"norm": "normalised", "px": "pixels"}


def _mention_outline(one: _Set, n_boxes: int) -> None:
    draft = one.draft
    what = "oriented boxes" if one.columns.shape == "obb" else "polygons"
    draft.findings.note("outline", Where(draft.path), f"{n_boxes:,} {what} are read as the boxes around them")
    if draft.options.box is not None:
        fix = f"Leave out --{draft.options.role}-box."
        draft.findings.error("outline-encoding", Where(draft.path), f"{what} have no box encoding", fix=fix)


def _mention_unused(one: _Set, n_boxes: int) -> None:
    """Count the columns that nothing is computed from."""
    draft, order = one.draft, one.columns.order
    if "track" in order:
        draft.ignored["track_id"] += n_boxes
        draft.findings.note("track-ids", Where(draft.path), "the track ids are not used")
    if "conf" in order and draft.options.role == "gt":
        draft.ignored["score"] += n_boxes
        draft.findings.note("gt-scores", Where(draft.path), "the confidences of ground truth are not used")
