"""From KITTI's label files to the draft: a box per line, regions that nobody labelled as boxes to be ignored."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.errors import Severity, Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._yolo.images import add_label_images
from jaccard_eval.reading.draft import Draft, RawBoxes
from jaccard_eval.reading.files import read_each, read_lines
from jaccard_eval.reading.text_boxes import Place, TextBoxes

UNLABELLED = "DontCare"
NUMBERS = (
    *("truncated", "occluded", "alpha", "left", "top", "right", "bottom"),
    *("height", "width", "length", "x", "y", "z", "rotation_y", "score"),
)
PLAIN = 15  # columns without a score
BOX = slice(3, 7)  # among the numbers
SCORE = 14
FIX = "Write type, truncated, occluded, alpha, four corners, seven 3D properties and perhaps a score."


def read_folder(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files to the draft.

    Raises
    ------
    DataError
        When there are no label files on the side of the ground truth.
    """
    lines = _read_lines(add_label_images(path, draft, options), draft)
    table = lines.read(draft.findings, fix=FIX)
    has_score = _have_scores(lines, draft)
    names = sorted(set(lines.labels))
    draft.set_classes(names, names)
    ignore = np.array([kind == UNLABELLED for kind in lines.labels], dtype=np.bool_)
    draft.set_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.labels,
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


def _read_lines(files: dict[str, Path], draft: Draft) -> TextBoxes:
    lines = TextBoxes(NUMBERS)
    for key, path, texts in read_each(files, partial(read_lines, empty_ok=True), draft.findings):
        for number, text in enumerate(texts, start=1):
            if fields := text.split():
                _add_line(lines, (str(path), number), key, fields)
    return lines


def _add_line(lines: TextBoxes, place: Place, image: str, fields: list[str]) -> None:
    """Add a line that is not blank."""
    if len(fields) in (PLAIN, PLAIN + 1):
        lines.add(place, image, fields[0], [*fields[1:], *([""] * (PLAIN + 1 - len(fields)))])
    else:
        lines.refuse(place, f"expected 15 columns, or 16 with a score, got {len(fields)}")


def _have_scores(lines: TextBoxes, draft: Draft) -> bool:
    """Return whether all lines end with a score; predictions of which only some do are an error."""
    without = [row for row, score in enumerate(lines.numbers[SCORE :: len(NUMBERS)]) if not score]
    if draft.options.role == "pred" and 0 < len(without) < len(lines):
        draft.findings.add_rows(
            Severity.ERROR,
            "columns",
            without,
            lambda row: (lines.where(row), "expected 16 columns with a score as in other lines, got 15"),
            fix="Write the score of every prediction.",
        )
    return not without and len(lines) > 0
