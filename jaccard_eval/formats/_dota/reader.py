"""From text files of DOTA to the draft: the upright box around each oriented one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.errors import Where, counted
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._dota.sources import SIDES, result_files, split_line
from jaccard_eval.formats._yolo.images import add_label_images
from jaccard_eval.reading.class_files import Layout, read_class_files
from jaccard_eval.reading.draft import Draft, RawBoxes
from jaccard_eval.reading.files import read_each, read_lines
from jaccard_eval.reading.text_boxes import Place, TextBoxes

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


def read_results(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of the result files in a folder to the draft."""
    lines, numbers = read_class_files(path, result_files(path), RESULTS, draft, options)
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
