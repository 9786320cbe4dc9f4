"""Lists of images with their boxes, as keras-yolo3 and its many descendants read them (train.txt, 2007_val.txt).

A line is the path of an image and its boxes: ``x1,y1,x2,y2,class`` without blanks, with a score behind where a model
wrote them. An image without boxes is a path alone. Classes are indices, or names, which may have blanks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import MAX_CLASS, TextBoxes
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="kerasyolo",
    summary="keras-yolo3 lists (2007_val.txt): path x1,y1,x2,y2,class ..., one image per line, in pixels",
    source="https://github.com/qqwweee/keras-yolo3 (README.md, voc_annotation.py)",
    example="images/street.jpg 10,20,110,220,1 30,50,200,120,0\n",
    carries=("images", "scores"),
    suffixes=(".txt",),
)

_NUMBERS = ("x1", "y1", "x2", "y2", "class", "score")
_CLASS = 4
_COUNTS = (len(_NUMBERS) - 1, len(_NUMBERS))  # of numbers, without and with a score
_N = r"-?[0-9.]+(?:e-?[0-9]+)?"
_NAME = r"[^\W\d][^,]*"
_BOX = pattern(rf"{_N}(?:,{_N}){{3}},(?:{_N}|{_NAME})(?:,{_N})?", re.IGNORECASE)
_REST_OF_NAME = pattern(rf"[^\W\d][^,]*(?:,{_N})?", re.IGNORECASE)  # behind a blank
_PACKED = pattern(r"[^,/\\]*(?:,[^,/\\]*)+")  # a box, whole or damaged, rather than a part of a path
_FIX = "Write the path of the image, then each box as x1,y1,x2,y2,class without blanks."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a text by its first lines: paths, and behind them boxes of five or six numbers."""
    if peek.is_folder or peek.is_json or not peek.lines:
        return None
    split = [_split(line) for line in peek.lines]
    # A table has commas before the blank in "a.jpg,class 13,10,20,40,60" as well; of paths hardly all have.
    if all("," in path for path, _ in split):
        return None
    boxes = [field for _, inner in split for field in inner]
    # The look may end in the middle of the last box.
    is_list = any(map(_BOX.fullmatch, boxes)) and all(map(_BOX.fullmatch, boxes[:-1]))
    return Likeness.STRUCTURE if is_list and not any(_BOX.match(line.lstrip()) for line in peek.lines) else None


def _split(line: str) -> tuple[str, list[str]]:
    """Split a line into the path, which may hold blanks, and the boxes behind it."""
    fields = line.split()
    start = next((at for at, field in enumerate(fields) if at and _PACKED.fullmatch(field)), len(fields))
    path, boxes = " ".join(fields[:start]), list[str]()
    behind = line[len(path) :]
    if behind.isascii() and behind.upper() == behind.lower():  # no letters: no names, which may have blanks
        return path, fields[start:]
    for field in fields[start:]:
        if boxes and field[0].isalpha() and _REST_OF_NAME.fullmatch(field):
            boxes[-1] += f" {field}"
        else:
            boxes.append(field)
    return path, boxes


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    lines = TextBoxes(_NUMBERS)
    images: list[str] = []
    for number, text in enumerate(files.read_lines(path), start=1):
        place = (str(path), number)
        image, boxes = _split(text)
        if image:
            images.append(image)
        for field in boxes:
            numbers = field.split(",")
            if len(numbers) in _COUNTS:
                lines.add(place, image, "", [*numbers, *([""] * (len(_NUMBERS) - len(numbers)))])
            else:
                lines.refuse(
                    place, f"box {quoted_value(field)} has {len(numbers)} numbers; expected 5, or 6 with a score"
                )
    names = lines.numbers[_CLASS :: len(_NUMBERS)]
    # A single one is damage.
    words = {name for name in {*names} if not is_numeral(name)}
    has_names = bool(words) and sum(map(words.__contains__, names)) * 2 > len(lines)
    if has_names:
        lines.labels, lines.numbers[_CLASS :: len(_NUMBERS)] = names, [""] * len(lines)
    table = lines.read(draft.findings, fix=_FIX)
    detail = "a box has no score, though others have one"
    scores = lines.scores(table, draft, detail=detail, fix="Write the score of every prediction.")
    label, columns = table[:, _CLASS], dict[str, Any]()
    if not has_names:
        classes, expected = range(MAX_CLASS + 1), "expected a whole number from 0"
        lines.require_whole("class", label, classes, draft.findings, expected=expected, fix=_FIX)
    draft.findings.raise_errors()
    if not has_names:
        columns["label"] = label.astype(np.int64)
        keys = sorted({*columns["label"].tolist()})
        draft.set_classes(keys, [str(key) for key in keys], named=False)
    # A line for each box repeats its image.
    is_one_each = len(lines) <= len(images)
    draft.set_images(list(dict.fromkeys(images)) if is_one_each else images, listed=True)
    lines.add_to(draft, table[:, :_CLASS], score=scores, **columns)
