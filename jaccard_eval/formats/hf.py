"""Hugging Face: outputs of the object-detection pipeline, and rows of data sets that hold objects in lists.

Rows are JSON or JSON Lines, or the metadata.jsonl of an image folder; the four numbers of a bbox are taken for left,
top, width and height, as in COCO and the library's own examples.
"""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

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
        from jaccard_eval.formats._hf.rows import read_rows  # not needed to look for a format

        read_rows(path, draft)
    else:
        from jaccard_eval.formats._hf.outputs import read_outputs

        read_outputs(path, draft, options)


def _holds_rows(path: Path) -> bool:
    if not files.is_folder(path):
        return looks_like(path, _are_rows)
    from jaccard_eval.reading.json.metadata import find_metadata

    return any(looks_like(file, _are_rows) for file in find_metadata(path).values())


def _are_rows(outer: set[str], inner: set[str], head: bytes) -> bool:
    return "objects" in outer | inner and bool(_ROWS.search(head) and _BOXES.search(head))


def _is_output(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return {"label", "box"} <= inner and "image_id" not in inner  # COCO results with other names
    return not outer & _NOT_HERE and b'"box"' in head and b'"xmin"' in head
