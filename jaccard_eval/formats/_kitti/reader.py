"""From KITTI's label files to the draft: a box per line, regions that nobody labelled as boxes to be ignored."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.errors import Severity, Where, shown
from jaccard_eval.formats import ReadOptions, _files
from jaccard_eval.formats._csv.numbers import parse_numbers
from jaccard_eval.formats._draft import Draft, RawBoxes
from jaccard_eval.formats._yolo.images import list_images
from jaccard_eval.formats._yolo.sources import folder_source, require_labels

UNLABELLED = "DontCare"
NUMBERS = (
    *("truncated", "occluded", "alpha", "left", "top", "right", "bottom"),
    *("height", "width", "length", "x", "y", "z", "rotation_y", "score"),
)
PLAIN = 15  # columns without a score
BOX = slice(3, 7)  # among the numbers
SCORE = 14


@dataclass(slots=True)
class _Lines:
    """The lines of all files: type and numbers as text, and where each stands."""

    images: list[str] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # 15 of each line, an absent score as an empty text
    uneven: list[tuple[Where, str]] = field(default_factory=list)

    def add(self, image: str, path: Path, number: int, fields: list[str]) -> None:
        """Add a line that is not blank."""
        if len(fields) not in (PLAIN, PLAIN + 1):
            detail = f"expected 15 columns, or 16 with a score, got {len(fields)}"
            self.uneven.append((Where(str(path), line=number), detail))
            return
        self.images.append(image)
        self.places.append((str(path), number))
        self.kinds.append(fields[0])
        self.numbers += [*fields[1:], *([""] * (PLAIN + 1 - len(fields)))]

    def where(self, row: int, name: str | None = None) -> Where:
        """Return the place of a line."""
        path, line = self.places[row]
        return Where(path, line=line, field=name)


def read_folder(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files to the draft.

    Raises
    ------
    DataError
        When there are no label files on the side of the ground truth.
    """
    source = folder_source(path, draft.findings)
    require_labels(source, options.role, draft.findings)
    images = list_images(source, options, draft.findings)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    lines = _read_lines(source.files, draft)
    table, has_score = _numbers(lines, draft)
    names = sorted(set(lines.kinds))
    draft.set_classes(names, names)
    ignore = np.array([kind == UNLABELLED for kind in lines.kinds], dtype=np.bool_)
    draft.set_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.kinds,
            coords=table[:, BOX],
            score=table[:, SCORE] if has_score else None,
            ignore=ignore,
            encoding="xyxy",
            units="px",
            place=lines.where,
        )
    )
    if ignore.any():
        detail = f"{int(ignore.sum()):,} regions of {UNLABELLED} are boxes of a class of that name, marked ignore"
        fix = f"Leave the class out with --exclude-classes {UNLABELLED}."
        draft.findings.warning("kitti-dontcare", Where(draft.path), detail, fix=fix)


def _read_lines(files: dict[str, Path], draft: Draft) -> _Lines:
    lines = _Lines()
    for key, path, texts in _files.read_each(files, partial(_files.read_lines, empty_ok=True), draft.findings):
        for number, line in enumerate(texts, start=1):
            if fields := line.split():
                lines.add(key, path, number, fields)
    fix = "Write type, truncated, occluded, alpha, four corners, seven 3D properties and perhaps a score."
    draft.findings.add_rows(Severity.ERROR, "columns", range(len(lines.uneven)), lines.uneven.__getitem__, fix=fix)
    return lines


def _numbers(lines: _Lines, draft: Draft) -> tuple[FloatArray, bool]:
    """Return the numbers (n, 15) and whether all lines end with a score; a set in which only some do is an error."""
    numbers, bad = parse_numbers(np.array(lines.numbers, dtype=np.object_))
    width = len(NUMBERS)
    without = [row for row in range(len(lines.kinds)) if not lines.numbers[row * width + SCORE]]
    broken = [index for index in bad if lines.numbers[index]]
    draft.findings.add_rows(
        Severity.ERROR,
        "number-invalid",
        broken,
        lambda index: (
            lines.where(index // width, NUMBERS[index % width]),
            f"{shown(lines.numbers[index])} is not a plain finite number",
        ),
        fix="Write plain decimal numbers with a point.",
    )
    if draft.options.role == "pred" and 0 < len(without) < len(lines.kinds):
        draft.findings.add_rows(
            Severity.ERROR,
            "columns",
            without,
            lambda row: (lines.where(row), "expected 16 columns with a score as in other lines, got 15"),
            fix="Write the score of every prediction.",
        )
    return numbers.reshape(-1, width), not without and bool(lines.kinds)
