"""DOTA: text files of oriented boxes, one per image (x1 y1 ... x4 y4 category difficult); results one per class.

Oriented boxes are read as the upright boxes around them.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.formats._yolo.reader import add_label_images
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading import files as _files
from jaccard_eval.reading.draft import Draft, RawBoxes
from jaccard_eval.reading.files import files_by_class, read_each, read_lines, scan_folder
from jaccard_eval.reading.lines import Layout, Place, TextBoxes, read_class_files
from jaccard_eval.text import counted, is_numeral

FORMAT = Format(
    name="dota",
    summary="DOTA text, a file per image: x1 y1 ... x4 y4 category difficult; results a file per class (Task1_dog.txt)",
    source="https://captain-whu.github.io/DOTA/tasks.html",
    example="imagesource:GoogleEarth\ngsd:0.15\n10 20 110 20 110 220 10 220 plane 0\n",
    carries=("images", "scores", "difficult"),
)


def sniff(path: Path) -> bool:
    """Whether `path` is a folder of label files with oriented boxes, or of results."""
    if not files.is_folder(path):
        return False

    if result_files(path):
        return True
    lines = first_lines(label_folder(path))
    return bool(lines) and sum(map(is_object, lines)) * 2 > len(lines)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files, or of results, to the draft.

    Raises
    ------
    DataError
        When there are no such files; problems of their lines are among the draft's findings.
    """
    # not needed to look for a format

    if result_files(path):
        read_results(path, draft)
    else:
        read_labels(label_folder(path), draft, options)


HEADERS = ("imagesource:", "gsd:")  # of a picture: where it is from, metres per pixel
SIDES = 8  # numbers of four points

_SNIFFED_FILES = 20
_LABELS = "labelTxt"
_RESULT = re.compile(r"Task1_(?P<label>.+)\.txt", re.IGNORECASE)
_MARKS = re.compile(r"[,\s]+")


def label_folder(path: Path) -> Path:
    """Return the folder of label files: labelTxt, where it lies beside the pictures, else the path itself."""
    inner = path / _LABELS
    return inner if _files.is_folder(inner) else path


def result_files(folder: Path) -> dict[str, list[Path]]:
    """Return the result files of a folder by class; none where it has none. Never raises."""
    return files_by_class(folder, _RESULT)


def first_lines(folder: Path) -> list[str]:
    """Return the first line about an object of a few files. Never raises."""
    files, _ = scan_folder(folder, lambda name: name.lower().endswith(".txt"), _SNIFFED_FILES)
    heads = (_files.head(file).decode("utf-8", "replace").splitlines() for file in files)
    firsts = (next((line for line in head if split_line(line)), "") for head in heads)
    return [line for line in firsts if line]


def split_line(line: str) -> list[str]:
    """Return the fields of a line, which blanks or commas separate; none of a header."""
    return [] if line.strip().lower().startswith(HEADERS) else [field for field in _MARKS.split(line) if field]


def is_object(line: str) -> bool:
    """Whether a line is eight numbers and a category."""
    fields = split_line(line)
    return len(fields) > SIDES and all(map(is_numeral, fields[:SIDES])) and not is_numeral(fields[SIDES])


NAMES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
LABELS_FIX = "Write x1 y1 x2 y2 x3 y3 x4 y4 category difficult."
RESULTS = Layout(
    columns=("score", *NAMES),
    all_columns="image score x1 y1 ... x4 y4",
    fix="Write image, score and eight numbers.",
    split=split_line,
)
DIFFICULT = frozenset({"0", "1", "2"})  # 2: newer releases mark the hardest so
UPRIGHT = 1e-9  # share of the box around it by which an upright box may be smaller: rounding


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of label files to the draft.

    Raises
    ------
    DataError
        When there are no label files on the side of the ground truth.
    """
    files = add_label_images(path, draft, options)
    lines, difficult = TextBoxes(NAMES), list[bool]()
    for image, file, texts in read_each(files, partial(read_lines, empty_ok=True), draft.findings):
        for number, text in enumerate(texts, start=1):
            if fields := split_line(text):
                _add_object(lines, difficult, (str(file), number), image, fields)
    names = sorted(set(lines.labels))
    draft.set_classes(names, names)
    numbers = lines.read(draft.findings, fix=LABELS_FIX)
    _set_boxes(lines, numbers, draft, difficult=np.array(difficult, dtype=np.bool_))


def read_results(path: Path, draft: Draft) -> None:
    """Add the images, classes and boxes of the result files in a folder to the draft."""
    lines, numbers = read_class_files(path, result_files(path), RESULTS, draft)
    _set_boxes(lines, numbers[:, 1:], draft, score=numbers[:, 0])


def _add_object(lines: TextBoxes, difficult: list[bool], place: Place, image: str, fields: list[str]) -> None:
    """Add a line of a label file, the category of which may have blanks, and whether it is difficult."""
    flag = fields[-1] if len(fields) > SIDES + 1 and fields[-1] in DIFFICULT else ""
    category = " ".join(fields[SIDES : len(fields) - bool(flag)])
    if not category:
        lines.refuse(place, f"expected 9 or 10 columns, got {len(fields)}")
        return
    lines.add(place, image, category, fields[:SIDES])
    difficult.append(flag not in ("", "0"))


def _set_boxes(
    lines: TextBoxes,
    numbers: FloatArray,
    draft: Draft,
    *,
    score: FloatArray | None = None,
    difficult: BoolArray | None = None,
) -> None:
    """Add the boxes around four points each (n, 8)."""
    points = numbers.reshape(-1, 4, 2)  # (n, points, x and y)
    corners = np.concatenate((points.min(axis=1), points.max(axis=1)), axis=1)
    _note_oriented(points, corners, draft)
    draft.set_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.labels,
            coords=corners,
            score=score,
            difficult=difficult,
            encoding="xyxy",
            units="px",
            place=lines.where,
        )
    )


def _note_oriented(points: FloatArray, corners: FloatArray, draft: Draft) -> None:
    """Say how many boxes are smaller than the upright box around them."""
    following = np.roll(points, -1, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        cross = points[..., 0] * following[..., 1] - following[..., 0] * points[..., 1]
        area = np.abs(cross.sum(axis=1)) / 2  # of a polygon, by its corners
        hull = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        n_oriented = int(np.count_nonzero(area < hull * (1 - UPRIGHT)))
    if n_oriented:
        detail = f"read as the boxes around them: {counted(n_oriented, 'oriented box', 'oriented boxes')}"
        draft.findings.note("outline", Where(draft.path), detail)
