"""Responses of Roboflow's inference: a JSON file per picture; x and y are the centre of a box, in pixels."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="roboflow",
    summary="Roboflow inference JSON: a response per image, or a folder of them, called as the images",
    source="https://inference.roboflow.com/reference/inference/core/entities/responses/inference/",
    example="""{
  "time": 0.05,
  "image": {"width": 640, "height": 480},
  "predictions": [
    {"x": 60.0, "y": 120.0, "width": 100.0, "height": 200.0, "confidence": 0.9, "class": "dog", "class_id": 0}
  ]
}
""",
    carries=("images", "sizes", "scores"),
    member=".json",
)


def sniff(path: Path) -> bool:
    """Whether `path` is a response, or a folder of them."""
    return looks_like(path, _is_response)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of responses, each of the image that its file is called after.

    Raises
    ------
    DataError
        When there are no such files; problems of their contents are among the draft's findings.
    """
    from jaccard_eval.formats._roboflow.reader import read_responses  # not needed to look for a format

    read_responses(path, draft, options)


def _is_response(outer: set[str], _inner: set[str], head: bytes) -> bool:
    return {"image", "predictions"} <= outer and b'"image_id"' not in head
