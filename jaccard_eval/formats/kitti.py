"""KITTI: a folder of text files, one per image, one object a line: type, state, box, 3D properties, perhaps a score.

The box is columns 5 to 8, corners in pixels. ``DontCare`` marks regions that nobody labelled.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.formats._yolo.reader import add_label_images
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft, RawBoxes
from jaccard_eval.reading.files import read_each, read_lines
from jaccard_eval.reading.lines import Place, TextBoxes
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="kitti",
    summary="KITTI text, a file per image: type truncated occluded alpha left top right bottom h w l x y z ry [score]",
    source="https://www.cvlibs.net/datasets/kitti/eval_object.php (devkit, readme.txt)",
    example="Car 0.00 0 1.57 10.00 20.00 110.00 220.00 1.5 1.6 3.9 2.0 1.5 20.0 1.6\n",
    carries=("images", "scores", "ignore"),
)

SNIFFED_FILES = 20
COLUMNS = (15, 16)  # without and with a score

_LABELS = "label_2"


def sniff(path: Path) -> bool:
    """Whether the first lines of label files in a folder are a word and 14 or 15 numbers."""
    names: list[str] = []
    folder = label_folder(path)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.lower().endswith(".txt"))
    heads = (files.head(folder / name) for name in names[:SNIFFED_FILES])
    lines = [line for head in heads if (line := head.decode("utf-8", "replace").strip().partition("\n")[0])]
    return bool(lines) and sum(map(_is_object, lines)) * 2 > len(lines)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files to the draft.

    Raises
    ------
    DataError
        When there are no label files; problems of their lines are among the draft's findings.
    """
    # not needed to look for a format

    read_folder(label_folder(path), draft, options)


def label_folder(path: Path) -> Path:
    """Return the folder of label files: label_2, where the benchmark has them beside image_2, else the path itself."""
    inner = path / _LABELS
    return inner if files.is_folder(inner) else path


def _is_object(line: str) -> bool:
    kind, *numbers = line.split()
    return 1 + len(numbers) in COLUMNS and not is_numeral(kind) and all(map(is_numeral, numbers))


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
