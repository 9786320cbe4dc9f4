"""VisDrone-DET: a folder of text files, one per image, one box a line with its score, class, truncation and occlusion.

In ground truth a score of 0 takes a box out of the evaluation, class 0 is a region that nobody labelled, and class 11
("others") is not judged. As in the benchmark's toolkit, the first two absorb every prediction that lies on them: they
are read as crowds, a region as one of each class that is marked to be ignored as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import TextBoxes, split_files
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="visdrone",
    summary="VisDrone text, one file per image: left,top,width,height,score,category,truncation,occlusion",
    source="https://github.com/VisDrone/VisDrone2018-DET-toolkit (README.md, utils)",
    example="10,20,100,200,1,4,0,0\n",
    carries=("images", "names", "scores", "crowd"),
)

# In the order of their numbers, from 0.
NAMES = (
    *("ignored regions", "pedestrian", "people", "bicycle", "car", "van", "truck"),
    *("tricycle", "awning-tricycle", "bus", "motor", "others"),
)
_REGION, _OTHERS = 0, len(NAMES) - 1
_LABELS = "annotations"  # where the benchmark has them, next to images
_NUMBERS = ("left", "top", "width", "height", "score", "category", "truncation", "occlusion")
_SCORE, _CATEGORY, _OCCLUSION = 4, 5, 7
_TRUNCATIONS, _OCCLUSIONS = (-1, 0, 1), (-1, 0, 1, 2)  # -1 in detections
_FIX = "Write left,top,width,height,score,category,truncation,occlusion."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its label files: eight numbers, the last three as VisDrone has them."""
    return peek.at(files.inner_folder(peek.path, _LABELS)).rate_label_files(_is_object)


def _is_object(line: str) -> bool:
    fields = _split(line)
    if len(fields) != len(_NUMBERS) or not all(map(is_numeral, fields)):
        return False
    _, _, width, height, score, category, truncation, occlusion = map(float, fields)
    if width <= 0 or height <= 0 or not 0 <= score <= 1:
        return False
    return category in range(len(NAMES)) and truncation in _TRUNCATIONS and occlusion in _OCCLUSIONS


def _split(line: str) -> list[str]:
    # Many of the benchmark's lines end in a comma.
    return [field.strip() for field in line.strip().removesuffix(",").split(",")] if line.strip() else []


def benchmark(peek: Peek) -> str:
    """Return the protocol where all classes that are judged occur."""
    from jaccard_eval.formats._yolo.sources import fields_below  # not needed to look for a format

    below = fields_below(files.inner_folder(peek.path, _LABELS), _split)
    found = {fields[_CATEGORY] for fields in below if len(fields) == len(_NUMBERS)}
    return "visdrone" if {str(number) for number in range(_REGION + 1, _OTHERS)} <= found else ""


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files to the draft."""
    from jaccard_eval.formats._yolo.sources import add_label_images  # not needed to look for a format

    lines = TextBoxes(_NUMBERS)
    labels_by_image = add_label_images(files.inner_folder(path, _LABELS), draft)
    for image, place, fields in split_files(labels_by_image, draft.findings, _split):
        if len(fields) == len(_NUMBERS):
            lines.add(place, image, "", fields)
        else:
            lines.refuse(place, f"expected {len(_NUMBERS)} columns, got {len(fields)}")
    table = lines.read(draft.findings, fix=_FIX)
    category = table[:, _CATEGORY]
    expected, fix = (
        f"expected a whole number from 0 to {_OTHERS}",
        "Write the numbers of VisDrone's classes, or name another format.",
    )
    lines.require_whole("category", category, range(len(NAMES)), draft.findings, expected=expected, fix=fix)
    draft.findings.raise_errors()
    judged = range(_REGION + 1, _OTHERS)
    draft.set_classes([NAMES[number] for number in judged], [NAMES[number] for number in judged])
    is_gt = options.role == "gt"
    draft.usual_protocol = "visdrone"
    counted = np.flatnonzero((category > _REGION) & (category < _OTHERS))
    regions = np.flatnonzero(category == _REGION)
    labels = [NAMES[int(number)] for number in category]
    scores = {"crowd": (table[:, _SCORE] == 0) | (category == _REGION)} if is_gt else {"score": table[:, _SCORE]}
    lines.add_to(draft, table[:, :4], rows=counted, label=labels, encoding="xywh", **scores)
    # A region stands once for each class, for a prediction is compared with its own class alone.
    for number in judged if is_gt and len(regions) else ():
        labels = [NAMES[number]] * len(lines)
        lines.add_to(
            draft, table[:, :4], rows=regions, label=labels, encoding="xywh", ignore=category == _REGION, **scores
        )
    n_others = int((category == _OTHERS).sum())
    draft.ignored["unjudged_class"] += n_others + (0 if is_gt else len(regions))
    draft.mention_uncounted(
        {
            f"unlabelled {'region' if len(regions) == 1 else 'regions'}": len(regions),
            f"of class {NAMES[_OTHERS]}": n_others,
            "with score 0": int((table[counted, _SCORE] == 0).sum()) if is_gt else 0,
        }
    )
