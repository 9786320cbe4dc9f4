"""From responses of the inference API to the draft: an image per file, boxes by their centres."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import documents
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import UNKNOWN_SIZE, Scene

_SIDES = ("x", "y", "width", "height")


def read_responses(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of responses, each of the image that its file is called after."""
    scene = Scene(draft)
    for key, file, value in documents(path, draft):
        _add_response(scene, key, Record.of(value, Where(str(file)), draft.findings))
    scene.hand_over(options, encoding="cxcywh", listed=False)


def _add_response(scene: Scene, key: str, response: Record) -> None:
    image = response.record("image")
    sized = image.has("width") and image.has("height")  # null for some models
    scene.add_image(key, size=(image.side("width"), image.side("height")) if sized else UNKNOWN_SIZE)
    for box in response.records("predictions"):
        coords = [box.number(side) for side in _SIDES]
        scene.add_box(key, box.text("class"), coords, box.where, score=box.number("confidence"))
