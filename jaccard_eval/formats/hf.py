"""Outputs of the object-detection pipeline of Hugging Face transformers: lists of score, label and box."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jaccard_eval.errors import Where
from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.formats._draft import Draft
from jaccard_eval.formats._json.documents import looks_like
from jaccard_eval.formats._json.perimage import outputs
from jaccard_eval.formats._json.record import Record
from jaccard_eval.formats._json.scene import Scene

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

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
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
    scene = Scene(draft)
    for image, output, where in outputs(path, draft, lambda value: isinstance(value, list)):
        _add_output(scene, image, output, where, draft)
    scene.hand_over(options, encoding="xyxy", listed=False)


def _add_output(scene: Scene, image: str, output: Any, where: Where, draft: Draft) -> None:
    scene.add_image(image)
    holder = Record({"": output}, where, draft.findings)
    for one in holder.records(""):
        box = one.record("box")
        coords = [box.number(corner) for corner in _CORNERS]
        score = one.number("score") if one.has("score") else math.nan
        scene.add_box(image, one.text("label"), coords, one.where, score=score)


def _is_output(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return {"label", "box"} <= inner and "image_id" not in inner  # COCO results with other names
    return not outer & _NOT_HERE and b'"box"' in head and b'"xmin"' in head
