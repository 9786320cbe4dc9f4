"""Hugging Face: outputs of the object-detection pipeline, and rows of data sets that hold objects in lists.

Rows are JSON or JSON Lines, or the metadata.jsonl of an image folder; the four numbers of a bbox are taken for left,
top, width and height, as in COCO and the library's own examples.
"""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import looks_like_json_lines, parse_json
from jaccard_eval.reading.records import Record, RecordCollector, line_records, looks_like, read_object_lists

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

METADATA = "metadata.jsonl"
_ROWS = re.compile(rb'"objects"\s*:\s*(?:\{|\[\s*\{[^{}]*"bbox)')
_BOXES = re.compile(rb'"(?:bbox|bboxes|boxes)"\s*:')
_OTHER_KEYS = frozenset({"images", "annotations", "shapes", "predictions"})  # of other formats
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def sniff(path: Path) -> bool:
    """Whether `path` holds outputs of the pipeline, or rows with objects."""

    def is_output(outer: frozenset[str], inner: frozenset[str], head: bytes) -> bool:
        if inner:
            return {"label", "box"} <= inner and "image_id" not in inner  # COCO results with other names
        return not outer & _OTHER_KEYS and b'"box"' in head and b'"xmin"' in head

    return looks_like(path, is_output) or _holds_rows(path)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs, or of rows, to the draft."""
    if _holds_rows(path):
        _read_rows(path, draft)
    else:
        read_object_lists(path, draft, _add_object)


def _holds_rows(path: Path) -> bool:
    def are_rows(outer: frozenset[str], inner: frozenset[str], head: bytes) -> bool:
        return "objects" in outer | inner and bool(_ROWS.search(head) and _BOXES.search(head))

    found = _find_metadata(path).values() if files.is_folder(path) else [path]
    return any(looks_like(file, are_rows) for file in found)


def _find_metadata(folder: Path) -> dict[str, Path]:
    """Return the files of rows in an image folder by split, "" where it has one for all."""
    if (folder / METADATA).is_file():
        return {"": folder / METADATA}
    found = {name: folder / name / METADATA for name in files.SPLIT_NAMES}
    return {files.split_of(name): file for name, file in found.items() if file.is_file()}


def _add_object(collector: RecordCollector, image: str, entry: Record) -> None:
    box = entry.record("box")
    coords = [box.number(corner) for corner in _CORNERS]
    score = entry.optional("score")
    collector.add_box(image, entry.text("label"), coords, entry.where, score=score)


def _read_rows(path: Path, draft: Draft) -> None:
    from jaccard_eval.reading.tabular.objects import add_object_rows  # not needed to look for a format

    file = path
    if files.is_folder(path):
        found = _find_metadata(path)
        split = "" if "" in found else files.choose_split(draft.options.split, found, Where(str(path)), draft.findings)
        file = found[split]
        if split:
            draft.details.append(f"split {split}")
    text = files.read_text(file)
    if file.suffix.lower() == ".jsonl" or looks_like_json_lines(text):
        records = list(line_records(file, text, draft))
    else:
        document = parse_json(file, text)
        rows = document if isinstance(document, list) else [document]
        places = (Where(str(file), record=f"[{number}]") for number in range(len(rows)))
        records = [Record.of(row, where, draft.findings) for row, where in zip(rows, places, strict=True)]
    draft.findings.raise_errors()
    add_object_rows([record.values for record in records], lambda row: records[row].where, draft)
