"""What can be wrong with lines of label files; each check reports all its lines at once and returns the good ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import CORNER_ORDER, BoolArray, FloatArray
from jaccard_eval.errors import FindingLog, Severity, Where, counted, shown
from jaccard_eval.formats._yolo.columns import Columns
from jaccard_eval.formats._yolo.encoding import FIELDS, HIGH, LOW, PIXEL_LOOK, is_normalised
from jaccard_eval.formats._yolo.lines import IntArray, LabelLines

_SEPARATORS = {",": "commas", ";": "semicolons", "|": "pipes"}


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
            return shown(self.lines.text[line].split(" ")[position])
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

    def detail(line: int) -> str:
        return (
            f"expected {columns.describe()}, got {counted(int(lines.count[line]), 'column')}{_explain(reporter, line)}"
        )

    fix = f"Give every line the same columns; where all have others, name them with --{reporter.role}-columns."
    reporter.report("columns", np.flatnonzero(~good), detail, fix)
    return good


def check_indices(reporter: LineReporter, rows: IntArray, names: Sequence[str] | None, names_from: str) -> BoolArray:
    """Return which of the lines `rows` start with a class index; the others are errors."""
    values = reporter.lines.values[reporter.lines.first[rows]]
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
    broken_before = np.concatenate(([0], np.cumsum(~np.isfinite(lines.values))))  # (n_tokens + 1,)
    bad = broken_before[end] > broken_before[end - numbers[rows]]

    def detail(line: int) -> str:
        start, stop = int(lines.first[line]), int(lines.first[line] + lines.count[line])
        fields = lines.values[stop - int(numbers[line]) : stop]
        at = stop - len(fields) + int(np.flatnonzero(~np.isfinite(fields))[0])
        return _describe_broken(reporter.word(line, at - start), at - start + 1, float(lines.values[at]))

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
        mixed = rows[is_normalised(coords) & (coords != np.floor(coords)).any(axis=1)]
        detail = "the box {} looks normalised, but the set is in pixels"
        fix = "Use the same units in all files."
        reporter.report("units-mixed", mixed, lambda line: detail.format(shown(box(line).tolist())), fix)
        return
    outside = ((coords < LOW) | (coords > HIGH)).any(axis=1)
    negative = (coords[:, 2:] < LOW).any(axis=1) & (boxes.encoding not in CORNER_ORDER)
    far = outside & ((reporter.role == "gt") | negative | (np.abs(coords) > PIXEL_LOOK).any(axis=1))

    def describe(line: int) -> str:
        return _describe_range(box(line), boxes.encoding)

    fix = f"Mend the line, or pass --{reporter.role}-units px if the whole set is in pixels."
    reporter.report("coordinate-range", rows[far], describe, fix)
    near = rows[outside & ~far]
    summary = f"{counted(len(near), 'box leaves its image', 'boxes leave their images')}; kept as written"
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
        return f": {shown(text)}; comments are not part of the format"
    if separator:
        return f": {shown(text)}; fields are separated by blanks, not by {separator}"
    if text:
        return f": {shown(text)}"
    return " (a polygon? a set has one layout)" if reporter.lines.count[line] >= 7 else ""


def _describe_broken(word: str, column: int, value: float) -> str:
    if np.isinf(value) or word.strip("'+-").lower() in ("nan", "inf", "infinity"):
        return f"column {column} is {word}; numbers must be finite"
    return f"column {column} is {word}, not a number{' (a decimal comma?)' if ',' in word else ''}"


def _describe_range(box: FloatArray, encoding: str) -> str:
    worst = next(i for i in range(4) if not LOW <= box[i] <= HIGH)
    name, value = FIELDS[encoding][worst], box[worst]
    if name in ("w", "h") and value < 0:
        return f"{'width' if name == 'w' else 'height'} is {value:g}; it cannot be negative"
    return f"{name} is {value:g}, outside 0..1" + (" (looks like pixels)" if value > PIXEL_LOOK else "")
