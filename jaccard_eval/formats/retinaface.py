"""RetinaFace's ``label.txt``: the path of an image behind a hash, then a face a line, with five landmarks or without.

A face is left, top, width and height in pixels; landmarks and further columns are ignored.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import TextBoxes
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="retinaface",
    summary="RetinaFace label.txt: # and the path of an image, then one face per line: x y w h and five landmarks",
    source="https://github.com/biubug6/Pytorch_Retinaface (data/wider_face.py)",
    example="# 0--Parade/0_Parade_1.jpg\n10 20 100 200 31 80 0 70 82 0 50 110 0 35 150 0 68 152 0 0.82\n",
    carries=("images",),
    suffixes=(".txt",),
)

FACE = "face"
_HASH = "#"
_LANDMARKS = 5 * 3  # x, y and visibility of the eyes, the nose and the corners of the mouth
# A box alone, as validation sets have it, with landmarks, and with how blurred the face is.
_COUNTS = (4, 4 + _LANDMARKS, 4 + _LANDMARKS + 1)
_FIX = "Write left top width height, and the fifteen numbers of five landmarks or none."


def looks_like(peek: Peek) -> Likeness | None:
    """Return how sure it is that a text starts with an image behind a hash, and holds faces or further images."""
    if peek.is_folder or not peek.lines or not _is_image(peek.lines[0]):
        return None
    is_wanted = all(_is_image(line) or _is_face(line.split()) for line in peek.lines[:-1])
    return Likeness.STRUCTURE if is_wanted else None


def _is_image(line: str) -> bool:
    return line.startswith(_HASH) and is_image_name(line[len(_HASH) :].strip())


def _is_face(fields: list[str]) -> bool:
    return len(fields) in _COUNTS and all(map(is_numeral, fields))


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and faces of a file to the draft."""
    lines = TextBoxes(("left", "top", "width", "height"))
    images: dict[str, int] = {}
    image = ""
    for number, text in enumerate(files.read_lines(path), start=1):
        fields = text.split()
        if text.startswith(_HASH):
            image = text[len(_HASH) :].strip()
            if image in images:
                detail = f"the image already began in line {images[image]:,}"
                draft.findings.error("image-duplicate", Where(str(path), line=number), detail, fix="Keep one of them.")
            images[image] = number
        elif fields and not image:
            lines.refuse((str(path), number), "expected '# ' and the path of an image before its faces")
        elif fields and len(fields) in _COUNTS:
            lines.add((str(path), number), image, FACE, fields[:4])
        elif fields:
            expected = ", ".join(map(str, _COUNTS[:-1])) + f" or {_COUNTS[-1]}"
            lines.refuse((str(path), number), f"expected {expected} numbers, got {len(fields)}")
    coords = lines.read(draft.findings, fix=_FIX)
    draft.findings.raise_errors()
    draft.set_images([*images], listed=True)
    draft.set_classes([FACE], [FACE])
    lines.add_to(draft, coords, encoding="xywh")
