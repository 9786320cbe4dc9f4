"""What is wrong with lines of text labels: each check reports its lines, and returns which are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.findings import Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.columns import MIN_POINTS, Columns
from jaccard_eval.formats._yolo.encodings import FIELDS, HIGH, LOW, PIXEL_LOOK, is_normalised, outside_image
from jaccard_eval.formats._yolo.lines import IntArray, LabelLines
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.draft import Draft
from jaccard_eval.text import pluralise, quoted_value

_SEPARATORS = {",": "commas", ";": "semicolons", "|": "pipes"}


@dataclass(frozen=True, slots=True)
class LineReporter:
    """Reports problems of lines in a draft, with their file and number."""

    lines: LabelLines
    paths: Sequence[Path]
    draft: Draft

    def place(self, line: int) -> Where:
        """Return file and line number of a line."""
        return Where(str(self.paths[int(self.lines.file[line])]), line=int(self.lines.number[line]))

    def report(
        self,
        code: str,
        rows: IntArray,
        detail: Callable[[int], str],
        fix: Fix | str,
        *,
        severity: Severity = Severity.ERROR,
        summary: str | Callable[[int], str] = "",
    ) -> None:
        """Record one finding about the lines `rows`."""
        self.draft.findings.add_rows(
            severity, code, rows, lambda line: (self.place(line), detail(line)), fix=fix, summary=summary
        )

    def word(self, line: int, position: int) -> str:
        """Return a field of a line as it was written, or as it was understood where only its value is known."""
        if line in self.lines.text:
            return quoted_value(self.lines.text[line].split(" ")[position])
        return f"{self.lines.values[self.lines.first[line] + position]:g}"


def check_columns(reporter: LineReporter, columns: Columns, numbers: IntArray, *, by_name: bool) -> BoolArray:
    """Return which lines have the columns of the set; the others are errors."""
    lines = reporter.lines
    if by_name and columns.shape == "box":
        # Whole numbers that end a class name do not count: "Boeing 737".
        spare = np.flatnonzero(numbers > columns.box_width)
        end = (lines.first + lines.count)[spare]
        spans = zip((end - numbers[spare]).tolist(), (end - columns.box_width).tolist(), strict=True)
        in_name = [all(map(float.is_integer, lines.values[start:stop].tolist())) for start, stop in spans]
        numbers = numbers.copy()
        numbers[spare[np.array(in_name, dtype=np.bool_)]] = columns.box_width
    good: BoolArray = columns.accepts(numbers)
    if columns.sibling is not None and not by_name:
        # As many numbers in pixels are rather a damaged line than a polygon: no tool is known to write those in text.
        good |= columns.sibling.accepts(numbers) & _are_fractions(lines)

    def detail(line: int) -> str:
        text = lines.text.get(line, "")
        separator = next((name for mark, name in _SEPARATORS.items() if mark in text), "")
        why = f": {quoted_value(text)}" if text else ""
        if text.startswith(("#", "//")):
            why += "; comments are not part of the format"
        elif separator:
            why += f"; fields are separated by spaces, not by {separator}"
        elif not text and lines.count[line] >= MIN_POINTS + 1:
            why = " (a polygon among boxes needs pairs of fractions)"
        return f"expected {columns.describe()}, got {pluralise(int(lines.count[line]), 'column')}{why}"

    words = "Give every line the same columns, or name other columns with {columns}."
    fix = Fix.of_side(reporter.draft.options.role, words, columns=None)
    reporter.report("columns", np.flatnonzero(~good), detail, fix)
    return good


def _are_fractions(lines: LabelLines) -> BoolArray:
    """Return which lines have nothing but fractions behind the class, as all labels of YOLO."""
    strange = ~((lines.values >= LOW) & (lines.values <= HIGH))  # words, too
    strange[lines.first] = False
    before = np.concatenate(([0], np.cumsum(strange)))  # (n_tokens + 1,)
    return np.asarray(before[lines.first + lines.count] == before[lines.first])


def check_indices(
    reporter: LineReporter, rows: IntArray, names: Sequence[str] | None, names_from: str, least: int = 0
) -> BoolArray:
    """Return which of the lines `rows` start with a class index, from the `least` on; the others are errors."""
    values = reporter.lines.values[reporter.lines.first[rows]]
    # Above 2**53 floats skip whole numbers, and two classes could become one.
    whole = np.isfinite(values) & (values >= least) & (values == np.floor(values)) & (values < 2**53)
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
        Fix.missing("Give the names that belong to these labels ({names}), or fix the class.", names=None),
    )
    return known


def check_finite(reporter: LineReporter, rows: IntArray, numbers: IntArray) -> BoolArray:
    """Return which of the lines `rows` hold finite numbers behind the class; the others are errors."""
    lines = reporter.lines
    end = lines.first[rows] + lines.count[rows]
    # Running sums show of every span at once whether it holds a number that is not finite.
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


def check_units(reporter: LineReporter, rows: IntArray, coords: FloatArray, units: str, encoding: str) -> None:
    """Report coordinates (n, 4) of the lines `rows` beyond 0..1 where normalised, and normalised boxes among pixels."""

    def box(line: int) -> FloatArray:
        return np.asarray(coords[np.searchsorted(rows, line)])

    if units == "px":
        # Whole numbers prove nothing: a box from 0 to 1 pixel lies in 0..1 as well.
        mixed = rows[is_normalised(coords) & (coords != np.floor(coords)).any(axis=1)]
        detail = "the box {} looks normalised, but the dataset is in pixels"
        alike = "Use the same units in all files."
        reporter.report("units-mixed", mixed, lambda line: detail.format(quoted_value(box(line).tolist())), alike)
        return
    outside, far = outside_image(coords, encoding, reporter.draft.options.role)

    def describe(line: int) -> str:
        numbers = box(line)
        worst = next(i for i in range(4) if not LOW <= numbers[i] <= HIGH)
        name, value = FIELDS[encoding][worst], numbers[worst]
        if name in ("w", "h") and value < 0:
            return f"{'width' if name == 'w' else 'height'} is {value:g}; it cannot be negative"
        return f"{name} is {value:g}, outside 0..1" + (" (looks like pixels)" if value > PIXEL_LOOK else "")

    words = "Fix the line, or pass {units} if the whole dataset is in pixels."
    fix = Fix.of_side(reporter.draft.options.role, words, units="px")
    reporter.report("coordinate-range", rows[far], describe, fix)
    near = rows[outside & ~far]

    def summary(count: int) -> str:
        return f"{pluralise(count, 'box leaves its image', 'boxes leave their images')}; kept as written"

    reporter.report("coordinate-range", near, describe, "", severity=Severity.WARNING, summary=summary)
