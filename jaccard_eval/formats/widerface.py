"""WIDER FACE and FDDB: blocks of an image's path, the count of its faces, and a line for each of them.

A face is left, top, width and height, in ground truth with six attributes, in results with a score. Results are a tree
of files with a block each, or one file with all. Faces marked invalid do not count, as in the
benchmark: they are read as crowds. Files of MATLAB next to the ground truth have which faces are easy, medium and hard.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import FIRST, Likeness, Peek
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="widerface",
    summary="WIDER FACE text: path of an image, number of faces, then one face per line; or a tree of results",
    source="http://shuoyang1213.me/WIDERFACE (wider_face_split/readme.txt, eval_tools)",
    example="0--Parade/0_Parade_1.jpg\n1\n10 20 100 200 0 0 0 0 0 0\n",
    carries=("images", "scores", "crowd"),
    suffixes=(".txt",),
)

FACE = "face"
SUBSETS = ("easy", "medium", "hard")  # each has a file of MATLAB, and stands nowhere else
_ATTRIBUTES = ("blur", "expression", "illumination", "invalid", "occlusion", "pose")
_NUMBERS = ("left", "top", "width", "height", "score", "invalid")
_INVALID = 5
_TRUTH = 4 + len(_ATTRIBUTES)  # numbers of a face in ground truth
_COUNTS = (4, 5, _TRUTH)
_FIX = "Write left top width height and the score, or in ground truth the six attributes."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a text, or the first texts of a folder or of the folders in it, by their first block."""
    if not peek.is_folder:
        return Likeness.STRUCTURE if _is_block(peek) else None
    # Folder by folder, and no further than the first files: each of them is opened.
    inner = (file for folder in (peek, *peek.first_folders()) for file in folder.first_files(_is_text))
    found = [file for file in islice(inner, FIRST) if not _is_block(file) or not _has_several(file)]
    return Likeness.STRUCTURE if found and sum(map(_is_block, found)) * 2 > len(found) else None


def _is_text(name: str) -> bool:
    return name.lower().endswith(".txt")


def _is_block(peek: Peek) -> bool:
    """Whether a text starts with a name, a count, and a line of so many numbers where the count is not 0."""
    if (
        len(peek.lines) < 2
        or is_numeral(peek.lines[0].strip())
        or not re.fullmatch(r"[0-9]{1,9}", peek.lines[1].strip())
    ):
        return False
    if len(peek.lines) == 2:
        return int(peek.lines[1]) == 0
    fields = peek.lines[2].split()
    if not _is_face(fields):
        return False
    _, _, width, height, *rest = map(float, fields)
    # Five points of a face are ten numbers, too.
    return width >= 0 and height >= 0 and (len(fields) < _TRUTH or all(value in (0, 1, 2) for value in rest))


def _has_several(peek: Peek) -> bool:
    """Whether a text has more than one block: it is an input by itself, and no part of a tree of results."""
    n_faces = int(peek.lines[1])
    return n_faces < FIRST - 3 and len(peek.lines) > 2 + max(n_faces, 1)


def _is_face(fields: list[str]) -> bool:
    return len(fields) in _COUNTS and all(map(is_numeral, fields))


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and faces of a file with all blocks, or of a tree with a file for each, to the draft."""
    from jaccard_eval.reading.lines import TextBoxes  # not needed to look for a format

    found = {"": path}
    if files.is_folder(path):
        names = [name for name in files.list_tree(path, draft.findings) if _is_text(name)]
        found = {name.rpartition(".")[0]: path / name for name in names}
        if not found:
            raise DataError.single(
                "labels-missing", Where(str(path)), "no .txt files", fix="Pass the folder of results."
            )

    lines = TextBoxes(_NUMBERS)
    images: list[str] = []
    for key, file, texts in files.read_each(found, files.read_lines, draft.findings):
        blocks = list(_read_blocks(file, texts, draft))
        if key and len(blocks) > 1:
            detail = f"holds {len(blocks):,} images; in a folder each file holds one"
            draft.findings.error("layout", Where(str(file)), detail, fix="Pass the file instead of its folder.")
        for name, faces in blocks:
            # In a tree of results the files are named after the images; their first lines differ by writer.
            images.append(key or name)
            for number, fields in faces:
                numbers = [
                    *fields[:4],
                    fields[4] if len(fields) == 5 else "",
                    fields[7] if len(fields) == _TRUTH else "",
                ]
                lines.add((str(file), number), images[-1], FACE, numbers)
    table = lines.read(draft.findings, fix=_FIX)
    scores = lines.scores(table, draft, detail="a face has no score, though others have one", fix=_FIX)
    draft.findings.raise_errors()
    crowd = table[:, _INVALID] == 1
    draft.set_images(images, listed=True)
    draft.set_classes([FACE], [FACE])
    of_boxes = _subsets(path, lines.images, draft) if options.role == "gt" else {}
    lines.add_to(draft, table[:, :4], encoding="xywh", score=scores, crowd=crowd, of_boxes=of_boxes)
    draft.mention_uncounted({"marked invalid": int(crowd.sum())})


def _subsets(path: Path, images: Sequence[str], draft: Draft) -> dict[str, FloatArray]:
    """Return by the name of each subset that has a file next to the ground truth which faces are in it, as 1 and 0."""
    found = {}
    places: dict[str, list[int]] = {}  # of the faces of each image
    for row, image in enumerate(images):
        places.setdefault(image.removesuffix(".jpg"), []).append(row)
    for name in SUBSETS:
        file = path.parent / f"wider_{name}_val.mat"
        if not files.is_there(file):
            continue
        from jaccard_eval.reading.matlab import read_variables  # few have these files

        found[name] = np.zeros(len(images))
        try:
            variables = read_variables(file)
            columns = (variables["event_list"], variables["file_list"], variables["gt_list"])
            for event, names, lists in zip(*columns, strict=True):
                for image, faces in zip(names, lists, strict=True):
                    rows = places.get(f"{event}/{image}", [])
                    found[name][[rows[int(face) - 1] for face in faces if face >= 1]] = 1
        except (KeyError, IndexError, ValueError, TypeError):
            detail = "does not list the faces of these images: expected event_list, file_list and gt_list"
            fix = "Pass the ground truth and the files of one release."
            draft.findings.error("wrong-content", Where(str(file)), detail, fix=fix)
    draft.findings.raise_errors()
    draft.usual_protocol = "widerface" if found else ""
    return found


def _read_blocks(file: Path, texts: list[str], draft: Draft) -> Iterator[tuple[str, list[tuple[int, list[str]]]]]:
    """Yield the name of each image with the lines of its faces; a block that is damaged ends its file."""
    rows = [(number, text.split()) for number, text in enumerate(texts, start=1) if text.strip()]
    at = 0
    while at < len(rows):
        number, name = rows[at]
        count = rows[at + 1][1] if at + 1 < len(rows) else []
        if _is_face(name) or len(count) != 1 or not (count[0].isascii() and count[0].isdigit()):
            got = quoted_value(" ".join(name if _is_face(name) else count)) if count or _is_face(name) else "the end"
            expected = "the path of an image" if _is_face(name) else "the count of faces behind the path of an image"
            draft.findings.error("layout", Where(str(file), line=number), f"expected {expected}, got {got}", fix=_FIX)
            return
        first = at + 2
        n_faces = int(count[0])
        end = next((row for row in range(first, len(rows)) if not _is_face(rows[row][1])), len(rows))
        if end - first < n_faces:
            where = Where(str(file), line=rows[at + 1][0])
            detail = f"{n_faces:,} faces announced, {end - first:,} lines of faces follow"
            draft.findings.error("layout", where, detail, fix=_FIX)
            return
        yield " ".join(name), rows[first : first + n_faces]
        # In ground truth an image without faces has one line of zeros.
        at = first + n_faces + (n_faces == 0 and end > first)
