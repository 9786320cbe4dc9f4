"""From outputs of the object-detection pipeline to the draft: a list of objects per image."""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.perimage import read_object_lists
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import Scene

_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read_outputs(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs to the draft."""
    read_object_lists(path, draft, options, _add_object)


def _add_object(scene: Scene, image: str, one: Record) -> None:
    box = one.record("box")
    coords = [box.number(corner) for corner in _CORNERS]
    score = one.number("score") if one.has("score") else math.nan
    scene.add_box(image, one.text("label"), coords, one.where, score=score)
