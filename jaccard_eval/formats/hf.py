"""Hugging Face: outputs of the object-detection pipeline, and rows of data sets that hold objects in lists.

Rows are JSON or JSON Lines, or the metadata.jsonl of an image folder; the four numbers of a bbox are taken for left,
top, width and height, as in COCO and the library's own examples.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.documents import Record, find_metadata, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import choose_split, is_folder, read_text
from jaccard_eval.reading.json import looks_like_json_lines, parse_json, parse_json_lines
from jaccard_eval.reading.records import Scene, read_object_lists
from jaccard_eval.reading.tabular.objects import add_object_rows

FORMAT = Format(
    name="hf",
    summary="Hugging Face JSON: outputs of the pipeline, of an image or of many; rows with objects, metadata.jsonl",
    source="https://huggingface.co/docs/transformers/main_classes/pipelines#transformers.ObjectDetectionPipeline",
    example="""[
  {"score": 0.9, "label": "dog", "box": {"xmin": 10, "ymin": 20, "xmax": 110, "ymax": 220}}
]
""",
    carries=("images", "sizes", "scores", "crowd", "area"),
    member=".json",
)

_ROWS = re.compile(rb'"objects"\s*:\s*(?:\{|\[\s*\{[^{}]*"bbox)')
_BOXES = re.compile(rb'"(?:bbox|bboxes|boxes)"\s*:')
_NOT_HERE = frozenset({"images", "annotations", "shapes", "predictions"})


def sniff(path: Path) -> bool:
    """Whether `path` holds outputs of the pipeline, or rows with objects."""
    return looks_like(path, _is_output) or _holds_rows(path)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs, or of rows, to the draft.

    Raises
    ------
    DataError
        When there are no files of either; problems of their contents are among the draft's findings.
    """
    if _holds_rows(path):
        # not needed to look for a format

        read_rows(path, draft)
    else:
        read_outputs(path, draft, options)


def _holds_rows(path: Path) -> bool:
    if not files.is_folder(path):
        return looks_like(path, _are_rows)
    from jaccard_eval.reading.documents import find_metadata

    return any(looks_like(file, _are_rows) for file in find_metadata(path).values())


def _are_rows(outer: set[str], inner: set[str], head: bytes) -> bool:
    return "objects" in outer | inner and bool(_ROWS.search(head) and _BOXES.search(head))


def _is_output(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return {"label", "box"} <= inner and "image_id" not in inner  # COCO results with other names
    return not outer & _NOT_HERE and b'"box"' in head and b'"xmin"' in head


_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read_outputs(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs to the draft."""
    read_object_lists(path, draft, options, _add_object)


def _add_object(scene: Scene, image: str, one: Record) -> None:
    box = one.record("box")
    coords = [box.number(corner) for corner in _CORNERS]
    score = one.number("score") if one.has("score") else math.nan
    scene.add_box(image, one.text("label"), coords, one.where, score=score)


def read_rows(path: Path, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft.

    Raises
    ------
    DataError
        When the file cannot be read, or there is no such split; problems of rows are among the draft's findings.
    """
    file = _file_of_split(path, draft) if is_folder(path) else path
    text = read_text(file)
    if file.suffix.lower() == ".jsonl" or looks_like_json_lines(text):
        lines = parse_json_lines(file, text, draft.findings)
        placed = [(value, Where(str(file), line=number)) for number, value in lines]
    else:
        document = parse_json(file, text)
        rows = document if isinstance(document, list) else [document]
        placed = [(value, Where(str(file), record=f"[{number}]")) for number, value in enumerate(rows)]
    records = [Record.of(value, where, draft.findings) for value, where in placed]
    draft.findings.raise_errors()
    add_object_rows([record.values for record in records], lambda row: records[row].where, draft)


def _file_of_split(folder: Path, draft: Draft) -> Path:
    files, asked = find_metadata(folder), draft.options.split
    if "" in files:
        return files[""]
    split = choose_split(asked, files, Where(str(folder)), draft.findings)
    draft.details.append(f"split {split}")
    return files[split]
