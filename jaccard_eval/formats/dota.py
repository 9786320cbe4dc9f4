"""DOTA: text files of oriented boxes, one per image (x1 y1 ... x4 y4 category difficult); results one per class.

Oriented boxes are read as the upright boxes around them, unless they are what is compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import Layout, TextBoxes, read_class_files, split_files
from jaccard_eval.reading.peek import IMAGE_FACTS, Likeness, Peek
from jaccard_eval.text import is_numeral, pluralise, quoted_value

FORMAT = Format(
    name="dota",
    summary="DOTA text, one file per image: x1 y1 ... x4 y4 category difficult; results: one per class (Task1_dog.txt)",
    source="https://captain-whu.github.io/DOTA/tasks.html",
    example="imagesource:GoogleEarth\ngsd:0.15\n10 20 110 20 110 220 10 220 plane 0\n",
    carries=("images", "scores", "difficult"),
    shapes=("obb",),
    reads={"bbox": "bounds of the corners", "obb": "x1 y1 ... x4 y4"},
)

_LABELS = "labelTxt"  # next to the images
_RESULT = pattern(r"Task1_(?P<label>.+)\.txt", re.IGNORECASE)
_UPRIGHT_RESULT = pattern(r"Task2_(?P<label>.+)\.txt", re.IGNORECASE)
_PATCH = pattern(r".+__[\d.]+__\d+___\d+")  # as the kit calls what it cuts out of an image: P0001__1__0___824
_MARKS = pattern(r"[,\s]+")
_SIDES = 8  # numbers of four points
_NAMES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
_BLANK = " (a blank in the category? write large-vehicle, or commas between columns)"
_DIFFICULT = frozenset({"0", "1", "2"})  # 2: newer releases mark the hardest so


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its label files, or by the names of result files."""

    def is_object(line: str) -> bool:
        fields = _label_fields(line)
        return len(fields) > _SIDES and all(map(is_numeral, fields[:_SIDES])) and not is_numeral(fields[_SIDES])

    if results := peek.rate_class_files(_RESULT) or peek.rate_class_files(_UPRIGHT_RESULT):
        return results
    folder = peek.at(files.inner_folder(peek.path, _LABELS))
    found = folder.first_files(lambda name: name.lower().endswith(".txt"))
    # Of each file the first line about an object; what the image is from stands before it.
    lines = [line for file in found if (line := next(filter(_split, file.lines), ""))]
    # Half are enough: the reader names what is damaged, or something else.
    return Likeness.STRUCTURE if lines and sum(map(is_object, lines)) * 2 >= len(lines) else None


def iou_types(peek: Peek) -> set[str]:
    """Return what there is: upright boxes are only those around oriented ones."""
    return {"obb"}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files, or of results, to the draft."""
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
        _note_patches(lines, draft)
    elif upright := files.files_by_class(path, _UPRIGHT_RESULT):
        (first, *_), *_ = upright.values()
        detail = "results of Task 2 have upright boxes, four numbers each; those of Task 1 are oriented"
        raise DataError.single("layout", Where(str(first)), detail, fix="Pass the folder with the Task1_*.txt files.")
    else:
        lines, difficult = _read_labels(files.inner_folder(path, _LABELS), draft)
        numbers = lines.read(draft.findings, fix="Write x1 y1 x2 y2 x3 y3 x4 y4 category difficult.")
    lines.add_quads(
        draft,
        (numbers[:, -_SIDES:] if results else numbers[:, :_SIDES]).reshape(-1, 4, 2),
        score=numbers[:, 0] if results else _scores(numbers),
        difficult=None if difficult is None else np.array(difficult, dtype=np.bool_),
    )


def _scores(numbers: FloatArray) -> FloatArray | None:
    return numbers[:, -1] if len(numbers) and not np.isnan(numbers[:, -1]).any() else None


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a label file per image, or a result file per class; upright boxes by their four corners."""
    from jaccard_eval.reading import writing
    from jaccard_eval.similarity.obb import Quads

    writing.require_pixels(dataset, "DOTA")
    writing.require_names(dataset, "DOTA", findings)
    boxes, names = dataset.table, dataset.labels.names
    carried = ("shapes", "difficult", "images") if dataset.role == "gt" else ("shapes", "names")
    writing.report_losses(dataset, path, findings, carried)
    stems = [without_suffix(dataset.images.name(row)).replace("\\", "/") for row in range(len(dataset.images))]
    files = writing.below_shared_place(stems, path, findings)
    _require_words(names if dataset.role == "gt" else files, dataset, findings)
    if dataset.role == "gt":
        writing.require_file_names(dataset, files, findings)
    else:
        writing.require_file_names(dataset, [f"Task1_{name}" for name in names], findings)
    findings.raise_errors()
    shapes: object = boxes.shapes
    if isinstance(shapes, Quads):
        corners = shapes.corners.reshape(-1, _SIDES)
    else:
        upright, exact = writing.exact_coords(boxes.xywh, "xyxy")
        corners = upright[:, [0, 1, 2, 1, 2, 3, 0, 3]]
        writing.report_rounded(exact, path, findings)
    if boxes.score is None:
        outputs = [f"{file}.txt" for file in files]
        columns = corners, " ", (names, boxes.label), ((" 0\n", " 1\n"), boxes.difficult)
        texts = writing.rows_by_owner(columns, boxes.image, len(files))
    else:
        outputs = [f"Task1_{name}.txt" for name in names]
        scored = np.column_stack((boxes.score, corners))
        texts = writing.rows_by_owner([(files, boxes.image), " ", scored, "\n"], boxes.label, len(names))
    replace_folder(path, dict(zip(outputs, texts, strict=True)))


def _require_words(names: Sequence[str], dataset: Dataset, findings: FindingLog) -> None:
    """Record an error where a name has a blank or a comma, which separate the columns."""
    # A category behind eight numbers must not be another one.
    is_category = dataset.role == "gt"
    broken = [name for name in names if _MARKS.search(name) or not name or (is_category and is_numeral(name))]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (Where(dataset.path), f"{quoted_value(broken[row])} cannot stand in a line of DOTA"),
        fix="Rename it: no blanks or commas, as in large-vehicle, and not a number.",
    )


def _split(line: str) -> list[str]:
    """Return the fields of a line, which commas or else blanks separate; none of a header."""
    if line.strip().lower().startswith(IMAGE_FACTS):
        return []
    if line.count(",") >= _SIDES:
        return [field.strip() for field in line.strip().rstrip(",").split(",")]
    return [field for field in _MARKS.split(line) if field]


def _label_fields(line: str) -> list[str]:
    """Return the fields of a label: corners, category and the rest, where the category may have been the first."""
    fields = _split(line)
    if len(fields) not in (_SIDES + 1, _SIDES + 2) or is_numeral(fields[0]) or not all(map(is_numeral, fields[1:])):
        return fields
    category, *numbers = fields
    if any(mark.isdigit() for mark in category):
        return fields  # an image
    if len(numbers) > _SIDES and 0 <= float(numbers[0]) <= 1 and not 0 <= float(numbers[-1]) <= 1:
        numbers = [*numbers[1:], numbers[0]]
    return [*numbers[:_SIDES], category, *numbers[_SIDES:]]


def _score_in(fields: Sequence[str]) -> str:
    """Return the score that ends the line of a prediction, behind the category or the flag; empty where none does."""
    is_scored = len(fields) in (_SIDES + 2, _SIDES + 3) and is_numeral(fields[-1]) and 0 <= float(fields[-1]) <= 1
    return fields[-1] if is_scored and not is_numeral(fields[_SIDES]) else ""


def _read_labels(folder: Path, draft: Draft) -> tuple[TextBoxes, list[bool]]:
    """Return the lines of label files, and which objects are difficult."""
    from jaccard_eval.formats._yolo.sources import add_label_images

    lines, difficult = TextBoxes((*_NAMES, "score")), list[bool]()
    found = [*split_files(add_label_images(folder, draft), draft.findings, _label_fields)]
    scores = [_score_in(fields) for _, _, fields in found] if draft.options.role == "pred" else []
    # Flags of ground truth are whole numbers.
    are_scored = all(scores) and any(float(score) % 1 for score in scores)
    for row, (image, place, line) in enumerate(found):
        score, fields = (scores[row], line[:-1]) if are_scored else ("", line)
        flag = fields[_SIDES + 1] if len(fields) > _SIDES + 1 else "0"
        if len(fields) > _SIDES and (is_numeral(fields[_SIDES]) > fields[_SIDES].isdecimal() or not fields[_SIDES]):
            lines.refuse(
                place, f"category is {quoted_value(fields[_SIDES])} (YOLO labels, which begin with the class?)"
            )
        elif len(fields) in (_SIDES + 1, _SIDES + 2) and flag in _DIFFICULT:
            lines.add(place, image, fields[_SIDES], [*fields[:_SIDES], score])
            difficult.append(flag != "0")
        elif sum(map(is_numeral, fields[_SIDES:])) >= _SIDES - 1:
            # Without a break the flag of the first object, or its category, runs into a number of the second.
            lines.refuse(place, f"expected 9 or 10 columns, got {len(fields)}: two objects on one line?")
        elif len(fields) == _SIDES + 2:
            lines.refuse(place, f"difficult is {quoted_value(flag)}; expected 0, 1 or 2{_BLANK}")
        else:
            lines.refuse(place, f"expected 9 or 10 columns, got {len(fields)}{_BLANK * (len(fields) > _SIDES)}")
    return lines, difficult


def _note_patches(lines: TextBoxes, draft: Draft) -> None:
    """Report results of patches, which the kit merges before it evaluates them."""
    patches = sorted({image for image in lines.images if _PATCH.fullmatch(image)})
    if patches:
        detail = (
            f"results of {pluralise(len(patches), 'patch', 'patches')} of images, such as {quoted_value(patches[0])}"
        )
        fix = "Where the ground truth is of whole images, merge them first, as DOTA_devkit's ResultMerge does."
        draft.findings.note("dota-patches", Where(draft.path, field="image"), detail, fix=fix)
