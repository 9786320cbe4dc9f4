"""Lines of text that hold a box each: of folders with one file per class, and of files that hold boxes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import MAX_ENTRIES, read_each, read_lines, scan_folder
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.reading.tabular.columns import parse_flags, parse_numbers
from jaccard_eval.text import pluralise, quoted_value

Place = tuple[str, int | str]  # file, and line or record
CLASS_COLUMNS = ("class", "category")
MAX_CLASS = 2**31 - 1  # more than any data set has, and exact as a float
_BOX_LIST_FIX = Fix.missing(
    "Write one box per line, such as 10,20,50,80. To read images and classes, use {options}.",
    gt="GT",
    pred="PRED",
    image="NAME",
)
_BETWEEN = pattern(r"[,;\s]+")
_NUMBER = pattern(r"[-+.]?\d")


def _where(place: Place, name: str | None = None) -> Where:
    path, at = place
    return Where(path, at, field=name) if isinstance(at, str) else Where(path, line=at, field=name)


@dataclass(slots=True)
class TextBoxes:
    """Lines or records with a box each, as text, and where each of them stands."""

    columns: tuple[str, ...]  # what the numbers of a line are
    places: list[Place] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # as many of each line as columns, an absent one as an empty text
    uneven: list[tuple[Where, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int, name: str | None = None) -> Where:
        """Return the place of a line."""
        return _where(self.places[row], name)

    def add(self, place: Place, image: str, label: str, numbers: Sequence[str]) -> None:
        """Add a line."""
        self.places.append(place)
        self.images.append(image)
        self.labels.append(label)
        self.numbers += numbers

    def refuse(self, place: Place, detail: str) -> None:
        """Record an error about a line with too few or too many fields."""
        self.uneven.append((_where(place), detail))

    def read(self, findings: FindingLog, *, needed: int = 0, fix: Fix | str = "") -> FloatArray:
        """Return the numbers, shape (n, columns), NaN where absent; report every invalid line and number.

        Every box needs the first ones.
        """
        findings.add_rows(Severity.ERROR, "columns", range(len(self.uneven)), self.uneven.__getitem__, fix=fix)
        numbers, bad = parse_numbers(np.array(self.numbers, dtype=np.object_))
        width, texts = len(self.columns), self.numbers
        missing = [at for at in bad[bad % width < needed].tolist() if not texts[at].strip()]
        findings.add_rows(
            Severity.ERROR,
            "field-missing",
            missing,
            lambda at: (self.where(at // width, self.columns[at % width]), "is missing or empty"),
            fix=fix,
        )
        findings.add_rows(
            Severity.ERROR,
            "number-invalid",
            [at for at in bad.tolist() if texts[at].strip()],
            lambda at: (
                self.where(at // width, self.columns[at % width]),
                f"{quoted_value(texts[at])} is not a plain finite number",
            ),
            fix="Write plain decimal numbers with a point.",
        )
        return numbers.reshape(-1, width)

    def flags(self, name: str, texts: Sequence[str], findings: FindingLog) -> BoolArray:
        """Return the flags that texts are, one of each box; an empty one is not set."""
        flags, bad = parse_flags(np.array(texts, dtype=np.object_))
        findings.add_rows(
            Severity.ERROR,
            "flag-value",
            bad,
            lambda row: (self.where(row, name), f"is {quoted_value(texts[row])}, expected 0 or 1"),
            fix="Write 0 or 1.",
        )
        return flags

    def scores(
        self, table: FloatArray, draft: Draft, *, detail: str, fix: Fix | str, code: str = "columns"
    ) -> FloatArray | None:
        """Return the scores in the table that was read; None where a line has none, an error in some predictions."""
        column = self.columns.index("score")
        # By the text: a score that is no number was reported, and is not missing.
        unscored = [row for row, score in enumerate(self.numbers[column :: len(self.columns)]) if not score]
        if draft.options.role == "pred" and 0 < len(unscored) < len(self):
            field = None if code == "columns" else "score"
            draft.findings.add_rows(
                Severity.ERROR, code, unscored, lambda row: (self.where(row, field), detail), fix=fix
            )
        return None if unscored else table[:, column]

    def add_to(
        self, draft: Draft, coords: FloatArray, *, rows: npt.NDArray[np.int64] | None = None, **columns: Any
    ) -> None:
        """Add the boxes of all lines, or of some rows, to a draft: numbers (n, 4), and columns of `RawBoxes`.

        They are corners in pixels, with the images and classes of the lines, unless `columns` have others. Classes that
        nothing has named are those of the lines.
        """
        if not draft.has_classes:
            names = sorted(set(self.labels))
            draft.set_classes(names, names)
        usual: dict[str, Any] = {
            "image": self.images,
            "label": self.labels,
            "encoding": "xyxy",
            "units": "px",
            "place": self.where,
        }
        boxes = RawBoxes(coords=coords, **usual | columns)
        draft.add_boxes(boxes if rows is None else boxes.take(rows))

    def add_quads(self, draft: Draft, points: FloatArray, **columns: Any) -> None:
        """Add oriented boxes by their points (n, 4, 2), or the boxes around them where others are compared."""
        from jaccard_eval.reading.oriented import quads_of  # most lines are upright boxes

        corners = np.concatenate((points.min(axis=1), points.max(axis=1)), axis=1)
        self.add_to(draft, corners, shapes=quads_of(points, corners, self.where, draft), **columns)

    def require_whole(
        self, name: str, values: FloatArray, allowed: range, findings: FindingLog, *, expected: str, fix: Fix | str
    ) -> None:
        """Report the values of a column that are missing, or not whole numbers in a range."""
        texts = self.numbers[self.columns.index(name) :: len(self.columns)]
        # A text that is no number was reported, and has no value.
        missing = np.isnan(values) & np.array([not text for text in texts], dtype=np.bool_)
        odd = (values != np.floor(values)) & ~np.isnan(values)
        findings.add_rows(
            Severity.ERROR,
            "class-index" if name in CLASS_COLUMNS else "number-invalid",
            wrong := np.flatnonzero(missing | odd | (values < allowed.start) | (values >= allowed.stop)),
            lambda row: (self.where(row, name), f"is {values[row]:g}; {expected}"),
            fix=fix,
        )
        if not findings.has_errors:  # their lines are skipped, and any number will do until then
            values[wrong] = allowed.start
            values[np.isnan(values)] = allowed.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a line of results holds."""

    columns: tuple[str, ...]  # behind the image: the score, then the numbers of the box
    all_columns: str  # as a message names them
    fix: Fix | str
    split: Callable[[str], list[str]] = str.split


def split_files(
    files: Mapping[str, Path], findings: FindingLog, split: Callable[[str], list[str]] = str.split
) -> Iterator[tuple[str, Place, list[str]]]:
    """Yield the key of the file, the place and the fields of each line that has any."""
    for key, path, texts in read_each(files, partial(read_lines, empty_ok=True), findings):
        for number, text in enumerate(texts, start=1):
            if fields := split(text):
                yield key, (str(path), number), fields


def read_class_files(
    folder: Path, files: Mapping[str, Sequence[Path]], layout: Layout, draft: Draft
) -> tuple[TextBoxes, FloatArray]:
    """Add the images and classes of result files, by class, to the draft; return their lines and the numbers in them.

    An empty file is a class without boxes. The numbers are of shape (n, columns).
    """
    for label, (_, *more) in files.items():
        # Results of two runs in one folder, such as comp3 and comp4, would count every object twice.
        for path in more:
            detail = f"{quoted_value(label)} has {1 + len(more)} result files"
            draft.findings.error("label-twice", Where(str(path)), detail, fix="Pass the folder of one run.")
    lines = TextBoxes(layout.columns)
    n_behind = len(layout.columns)
    first = {label: paths[0] for label, paths in files.items()}
    for label, place, fields in split_files(first, draft.findings, layout.split):
        # The name of an image may have blanks, so that numbers are counted from the end of the line.
        if len(fields) > n_behind:
            lines.add(place, " ".join(fields[:-n_behind]), label, fields[-n_behind:])
        else:
            lines.refuse(place, f"expected {1 + n_behind} columns ({layout.all_columns}), got {len(fields)}")
    images = sorted(set(lines.images))
    sizes = unknown_sizes(len(images))
    draft.fill_sizes(sizes, images)
    draft.set_images(images, sizes=sizes, listed=False)
    draft.set_classes(list(files), list(files))
    known = {path.name for paths in files.values() for path in paths}
    others, _ = scan_folder(folder, lambda name: name not in known and not name.startswith("."), MAX_ENTRIES)
    mention_other_files(folder, [path.name for path in others], draft)
    return lines, lines.read(draft.findings, fix=layout.fix)


def mention_other_files(folder: Path, others: Sequence[str], draft: Draft) -> None:
    """Count the files of a folder that are not labels, and report which they are."""
    if others:
        draft.ignored["other_file"] += len(others)
    draft.findings.add_rows(
        Severity.NOTE,
        "other-files",
        range(len(others)),
        lambda row: (Where(str(folder / others[row])), "is not one of the labels"),
        summary=f"ignored {pluralise(len(others), 'file')} other than labels",
    )


def read_box_list(path: Path, encoding: str) -> FloatArray:
    """Return boxes, shape (n, 4), below a header if there is one; a DataError names every line that is not a box."""
    findings = FindingLog()
    is_corners = encoding == "xyxy"
    lines = TextBoxes(("x1", "y1", "x2", "y2") if is_corners else ("x", "y", "width", "height"))
    for number, text in enumerate(read_lines(path, empty_ok=True), start=1):
        fields = [part for part in _BETWEEN.split(text.partition("#")[0]) if part]
        if len(fields) == 4 and (number > 1 or any(map(_NUMBER.match, fields))):
            lines.add((str(path), number), "", "", fields)
        elif fields and (number > 1 or len(fields) != 4):
            lines.refuse((str(path), number), f"expected 4 numbers, got {len(fields)}")
    boxes = lines.read(findings, fix=_BOX_LIST_FIX)
    negative = {"xyxy": boxes[:, 2:] < boxes[:, :2], "xywh": boxes[:, 2:] < 0.0}  # either reading, shape (n, 2)
    wrong = np.flatnonzero(negative[encoding].any(axis=1))
    other = "xywh" if is_corners else "xyxy"
    share = {name: 1 - float(sides.any(axis=1).mean()) if len(boxes) else 1.0 for name, sides in negative.items()}
    findings.add_rows(
        Severity.ERROR,
        "box-negative",
        wrong,
        lambda row: (lines.where(row), f"{boxes[row].tolist()} read as {encoding} has a negative width or height"),
        fix=Fix.choice(
            {"box": other},
            metric="lines that are boxes",
            before=share[encoding],
            after=share[other],
            words="Name what the numbers are: {box}.",
        ),
    )
    if findings.findings():
        raise DataError(findings.findings())
    return boxes
