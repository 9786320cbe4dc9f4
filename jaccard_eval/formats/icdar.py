"""ICDAR: text files of words, one per image: the four corners of each, and its transcription or its score.

``x1,y1,x2,y2,x3,y3,x4,y4`` and, in ground truth, the word, where ``###`` is one that nobody can read: a crowd, which
does not count; in results the score, if there is one. Blanks between the numbers occur as well. There is one class.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.claims import is_quad, most, read_rows
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="icdar",
    summary="ICDAR text, one file per image: x1,y1,x2,y2,x3,y3,x4,y4 and the word, or a score",
    source="https://rrc.cvc.uab.es/?ch=4&com=tasks",
    example="10,20,110,20,110,60,10,60,EXIT\n200,30,280,36,278,60,198,54,TAXI\n300,20,360,24,358,50,298,46,###\n",
    carries=("images", "scores", "crowd"),
)

TEXT = "text"
_NAMES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
_SIDES = len(_NAMES)
_UNREADABLE = "###"
_PREFIX = re.compile(r"(?:gt|res)_(?=.)", re.IGNORECASE)  # before the name of the image
_FIX = "Write x1,y1,x2,y2,x3,y3,x4,y4 and perhaps the word, or in predictions the score."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its files: the corners of quadrilaterals, and one field more or none."""
    found = peek.first_files(lambda name: name.lower().endswith(".txt"))
    lines = [fields for file in found for line in file.lines if (fields := _split(line))]
    rows = read_rows((",".join(fields[:_SIDES]) for fields in lines), lambda text: text.split(","))
    rows = [row for row in rows if len(row) == _SIDES]
    # The class of a box and three corners of it are such numbers as well.
    if len(rows) * 2 <= len(lines) or not most(rows, lambda row: is_quad(row) and max(row) > 1):
        return None
    words = [word for fields in lines for word in fields[_SIDES:] if not is_numeral(word)]
    if _UNREADABLE in words or all(_PREFIX.match(file.path.name) for file in found):
        return Likeness.NAMED
    # Categories repeat, as in DOTA; words do less, and stand behind a comma.
    is_text = len(set(words)) * 2 > len(words) > 1 and all("," in file.text for file in found)
    return Likeness.STRUCTURE if is_text or not words else Likeness.CONTENT


def iou_types(peek: Peek) -> set[str]:
    """Return what there is: upright boxes are only those around oriented ones."""
    return {"obb"}


def _split(line: str) -> list[str]:
    """Return the eight numbers and what follows them, which may have commas; no fields of a blank line."""
    text = line.strip().lstrip("\ufeff").rstrip(",")
    if text.count(",") >= _SIDES - 1:
        return [field.strip() for field in text.split(",", _SIDES)]
    return text.split()


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and words of a folder of files to the draft."""
    from jaccard_eval.formats._yolo.images import add_images  # not needed to look for a format
    from jaccard_eval.formats._yolo.sources import folder_source, require_labels
    from jaccard_eval.reading.lines import TextBoxes, mention_other_files, split_files

    source = folder_source(path, draft.findings)
    require_labels(source, options.role, draft.findings)
    bare = {_PREFIX.sub("", key): file for key, file in source.files.items()}
    if len(bare) == len(source.files) and all(map(_PREFIX.match, source.files)):
        source = replace(source, files=bare)
    add_images(source, draft)
    mention_other_files(source.root, source.other_files, draft)
    lines = TextBoxes((*_NAMES, "score"))
    words: list[str] = []
    is_gt = options.role == "gt"
    for image, place, fields in split_files(source.files, draft.findings, _split):
        rest = fields[_SIDES:]
        if len(fields) >= _SIDES and (is_gt or not rest or is_numeral(rest[0])):
            lines.add(place, image, TEXT, [*fields[:_SIDES], "" if is_gt else "".join(rest)])
            words.append("".join(rest))
        else:
            wanted = "8 numbers and the word" if is_gt else "8 numbers and perhaps a score"
            lines.refuse(place, f"expected {wanted}, got {len(fields)} fields")
    table = lines.read(draft.findings, fix=_FIX)
    scores = lines.scores(table, draft, detail="expected a score as in other lines", fix="Write every score.")
    # As in the benchmark, a detection that lies on one of these is not a mistake.
    crowd = np.array([word == _UNREADABLE for word in words], dtype=np.bool_)
    draft.mention_uncounted({"unreadable": int(crowd.sum())})
    draft.set_classes([TEXT], [TEXT])
    corners = table[:, :_SIDES].reshape(-1, 4, 2)  # (n, points, x and y)
    lines.add_quads(draft, corners, score=scores if len(lines) else None, crowd=crowd)
