"""Outputs of the object-detection pipeline of Hugging Face transformers: lists of score, label and box."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.formats._draft import Draft
from jaccard_eval.formats._json.documents import looks_like

FORMAT = Format(
    name="hf",
    summary="Hugging Face pipeline JSON: the list of an image, a folder of them, or an object from images to lists",
    source="https://huggingface.co/docs/transformers/main_classes/pipelines#transformers.ObjectDetectionPipeline",
    example="""[
  {"score": 0.9, "label": "dog", "box": {"xmin": 10, "ymin": 20, "xmax": 110, "ymax": 220}}
]
""",
    carries=("images", "scores"),
    member=".json",
)

_NOT_HERE = frozenset({"images", "annotations", "shapes", "predictions"})


def sniff(path: Path) -> bool:
    """Whether `path` holds outputs of the pipeline."""
    return looks_like(path, _is_output)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs to the draft.

    Raises
    ------
    DataError
        When there are no files of outputs; problems of their contents are among the draft's findings.
    """
    from jaccard_eval.formats._json.hf import read_outputs  # not needed to look for a format

    read_outputs(path, draft, options)


def _is_output(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return {"label", "box"} <= inner and "image_id" not in inner  # COCO results with other names
    return not outer & _NOT_HERE and b'"box"' in head and b'"xmin"' in head
