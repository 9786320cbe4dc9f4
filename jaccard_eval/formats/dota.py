"""DOTA: text files of oriented boxes, one per image (x1 y1 ... x4 y4 category difficult); results one per class.

Oriented boxes are read as the upright boxes around them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.text import is_numeral, pluralise

if TYPE_CHECKING:
    from jaccard_eval.reading.lines import TextBoxes

FORMAT = Format(
    name="dota",
    summary="DOTA text, one file per image: x1 y1 ... x4 y4 category difficult; results: one per class (Task1_dog.txt)",
    source="https://captain-whu.github.io/DOTA/tasks.html",
    example="imagesource:GoogleEarth\ngsd:0.15\n10 20 110 20 110 220 10 220 plane 0\n",
    carries=("images", "scores", "difficult"),
)

_LABELS = "labelTxt"  # next to the images
_RESULT = re.compile(r"Task1_(?P<label>.+)\.txt", re.IGNORECASE)
_HEADERS = ("imagesource:", "gsd:")  # of an image: where it is from, metres per pixel
_MARKS = re.compile(r"[,\s]+")
_SIDES = 8  # numbers of four points
_NAMES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
_DIFFICULT = frozenset({"0", "1", "2"})  # 2: newer releases mark the hardest so
_UPRIGHT = 1e-9  # share of the box around it by which an upright box may be smaller: rounding


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its label files, or by the names of result files."""

    def is_object(line: str) -> bool:
        fields = _split(line)
        return len(fields) > _SIDES and all(map(is_numeral, fields[:_SIDES])) and not is_numeral(fields[_SIDES])

    if results := peek.rate_class_files(_RESULT):
        return results
    folder = peek.at(files.inner_folder(peek.path, _LABELS))
    found = folder.first_files(lambda name: name.lower().endswith(".txt"))
    # Of each file the first line about an object; what the image is from stands before it.
    lines = [line for file in found if (line := next(filter(_split, file.lines), ""))]
    return Likeness.STRUCTURE if lines and sum(map(is_object, lines)) * 2 > len(lines) else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files, or of results, to the draft."""
    from jaccard_eval.reading.lines import Layout, read_class_files  # not needed to look for a format

    results = files.files_by_class(path, _RESULT)
    difficult: list[bool] | None = None
    if results:
        layout = Layout(
            columns=("score", *_NAMES),
            all_columns="image score x1 y1 ... x4 y4",
            fix="Write image, score and eight numbers.",
            split=_split,
        )
        lines, numbers = read_class_files(path, results, layout, draft)
    else:
        lines, difficult = _read_labels(files.inner_folder(path, _LABELS), draft)
        names = sorted(set(lines.labels))
        draft.set_classes(names, names)
        numbers = lines.read(draft.findings, fix="Write x1 y1 x2 y2 x3 y3 x4 y4 category difficult.")
    points = numbers[:, -_SIDES:].reshape(-1, 4, 2)  # (n, points, x and y)
    corners = np.concatenate((points.min(axis=1), points.max(axis=1)), axis=1)
    _note_oriented(points, corners, draft)
    draft.add_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.labels,
            coords=corners,
            score=numbers[:, 0] if results else None,
            difficult=None if difficult is None else np.array(difficult, dtype=np.bool_),
            encoding="xyxy",
            units="px",
            place=lines.where,
        )
    )


def _split(line: str) -> list[str]:
    """Return the fields of a line, which blanks or commas separate; none of a header."""
    return [] if line.strip().lower().startswith(_HEADERS) else [field for field in _MARKS.split(line) if field]


def _read_labels(folder: Path, draft: Draft) -> tuple[TextBoxes, list[bool]]:
    """Return the lines of label files, and which objects are difficult."""
    from jaccard_eval.formats._yolo.images import add_label_images
    from jaccard_eval.reading.lines import TextBoxes, split_files

    lines, difficult = TextBoxes(_NAMES), list[bool]()
    for image, place, fields in split_files(add_label_images(folder, draft), draft.findings, _split):
        flag = fields[-1] if len(fields) > _SIDES + 1 and fields[-1] in _DIFFICULT else ""
        category = " ".join(fields[_SIDES : len(fields) - bool(flag)])  # which may have blanks
        if sum(map(is_numeral, fields[_SIDES:])) >= _SIDES - 1:
            # Without a break the flag of the first object, or its category, runs into a number of the second.
            lines.refuse(place, f"expected 9 or 10 columns, got {len(fields)}: two objects on one line?")
        elif category:
            lines.add(place, image, category, fields[:_SIDES])
            difficult.append(flag not in ("", "0"))
        else:
            lines.refuse(place, f"expected 9 or 10 columns, got {len(fields)}")
    return lines, difficult


def _note_oriented(points: FloatArray, corners: FloatArray, draft: Draft) -> None:
    """Report how many boxes are smaller than the upright box around them."""
    following = np.roll(points, -1, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        cross = points[..., 0] * following[..., 1] - following[..., 0] * points[..., 1]
        area = np.abs(cross.sum(axis=1)) / 2  # of a polygon, by its corners
        hull = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        n_oriented = int(np.count_nonzero(area < hull * (1 - _UPRIGHT)))
    if n_oriented:
        detail = f"read as the boxes around them: {pluralise(n_oriented, 'oriented box', 'oriented boxes')}"
        draft.findings.note("outline", Where(draft.path), detail)
