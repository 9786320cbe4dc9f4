"""KITTI: a folder of text files, one per image, one object a line: type, state, box, 3D properties, perhaps a score.

The box is columns 5 to 8, corners in pixels. ``DontCare`` marks regions that nobody labelled.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.findings import Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import TextBoxes, split_files
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="kitti",
    summary="KITTI text, one per image: type truncated occluded alpha left top right bottom h w l x y z ry [score]",
    source="https://www.cvlibs.net/datasets/kitti/eval_object.php (devkit, readme.txt)",
    example="Car 0.00 0 1.57 10.00 20.00 110.00 220.00 1.5 1.6 3.9 2.0 1.5 20.0 1.6\n",
    carries=("images", "scores", "ignore"),
)

_LABELS = "label_2"  # where the benchmark has them, next to image_2
_NUMBERS = (
    *("truncated", "occluded", "alpha", "left", "top", "right", "bottom"),
    *("height", "width", "length", "x", "y", "z", "rotation_y", "score"),
)
_COLUMNS = (15, 16)  # without and with a score
_BOX = slice(3, 7)  # among the numbers
_MOST_TRUNCATED = 2  # a share, or in tracking one of three levels
_OCCLUSIONS = (-1, 0, 1, 2, 3)  # -1 where it is not known
_UNLABELLED = "DontCare"
OF_BOTH_SIDES = True  # results of the benchmark have the columns, too
_CLASSES = {"Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc", _UNLABELLED}
_FIX = "Write type, truncated, occluded, alpha, four corners, seven 3D properties and perhaps a score."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its label files: a word and 14 or 15 numbers."""

    def is_object(line: str) -> bool:
        kind, *numbers = line.split()
        if 1 + len(numbers) not in _COLUMNS or is_numeral(kind) or not all(map(is_numeral, numbers)):
            return False
        # As many numbers follow the name of a class in poses and polygons.
        truncated, occluded, _, left, top, right, bottom = map(float, numbers[: _BOX.stop])
        return -1 <= truncated <= _MOST_TRUNCATED and occluded in _OCCLUSIONS and left <= right and top <= bottom

    return peek.at(files.inner_folder(peek.path, _LABELS)).rate_label_files(is_object)


def benchmark(peek: Peek) -> str:
    """Return the protocol where all objects are of KITTI's classes, and how hidden some are is known."""
    from jaccard_eval.formats._yolo.sources import fields_below  # not needed to look for a format

    rows = [fields for fields in fields_below(files.inner_folder(peek.path, _LABELS)) if len(fields) in _COLUMNS]
    occluded = {fields[2] for fields in rows} - {"-1"}
    # Exports of other data have the columns, with fillers, and other classes.
    return "kitti" if occluded and {fields[0] for fields in rows} <= _CLASSES else ""


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files to the draft."""
    from jaccard_eval.formats._yolo.sources import add_label_images  # not needed to look for a format

    lines = TextBoxes(_NUMBERS)
    labels = add_label_images(files.inner_folder(path, _LABELS), draft)
    for image, place, fields in split_files(labels, draft.findings):
        if len(fields) in _COLUMNS:
            lines.add(place, image, fields[0], [*fields[1:], *([""] * (max(_COLUMNS) - len(fields)))])
        else:
            lines.refuse(place, f"expected 15 columns, or 16 with a score, got {len(fields)}")
    table = lines.read(draft.findings, fix=_FIX)
    detail = "expected 16 columns with a score as in other lines, got 15"
    scores = lines.scores(table, draft, detail=detail, fix="Write the score of every prediction.")
    ignore = np.array([kind == _UNLABELLED for kind in lines.labels], dtype=np.bool_)
    hidden = {name: table[:, _NUMBERS.index(name)] for name in ("truncated", "occluded")}
    of_boxes = hidden if options.role == "gt" else {}
    # Exports of other data have the columns, with fillers, and other classes.
    if {*lines.labels} <= _CLASSES and (hidden["occluded"] >= 0).any():
        draft.usual_protocol = "kitti"
    lines.add_to(draft, table[:, _BOX], score=scores if len(lines) else None, ignore=ignore, of_boxes=of_boxes)
    if ignore.any():
        detail = f"{int(ignore.sum()):,} regions of {_UNLABELLED} are boxes of a class of that name, marked ignore"
        fix = Fix.missing("Exclude the class with {exclude_classes}.", exclude_classes=_UNLABELLED)
        draft.findings.warning("kitti-dontcare", Where(draft.path), detail, fix=fix)
