"""Responses of Roboflow's inference: a JSON file per picture; x and y are the centre of a box, in pixels."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.documents import Record, documents, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import UNKNOWN_SIZE, Scene

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
    # not needed to look for a format

    read_responses(path, draft, options)


def _is_response(outer: set[str], _inner: set[str], head: bytes) -> bool:
    return {"image", "predictions"} <= outer and b'"image_id"' not in head


_SIDES = ("x", "y", "width", "height")


def read_responses(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of responses, each of the image that its file is called after."""
    scene = Scene(draft)
    for key, file, value in documents(path, draft):
        _add_response(scene, key, Record.of(value, Where(str(file)), draft.findings))
    scene.hand_over(encoding="cxcywh", listed=False)


def _add_response(scene: Scene, key: str, response: Record) -> None:
    image = response.record("image")
    sized = image.has("width") and image.has("height")  # null for some models
    scene.add_image(key, size=(image.side("width"), image.side("height")) if sized else UNKNOWN_SIZE)
    for box in response.records("predictions"):
        coords = [box.number(side) for side in _SIDES]
        scene.add_box(key, box.text("class"), coords, box.where, score=box.number("confidence"))
