"""From outputs of the object-detection pipeline to the draft: a list of objects per image."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._draft import Draft
from jaccard_eval.formats._json.perimage import outputs
from jaccard_eval.formats._json.record import Record
from jaccard_eval.formats._json.scene import Scene

_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read_outputs(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of outputs to the draft."""
    scene = Scene(draft)
    for image, output, where in outputs(path, draft, lambda value: isinstance(value, list)):
        _add_output(scene, image, output, where, draft)
    scene.hand_over(options, encoding="xyxy", listed=False)


def _add_output(scene: Scene, image: str, output: Any, where: Where, draft: Draft) -> None:
    scene.add_image(image)
    for one in Record.list_of(output, where, draft.findings):
        box = one.record("box")
        coords = [box.number(corner) for corner in _CORNERS]
        score = one.number("score") if one.has("score") else math.nan
        scene.add_box(image, one.text("label"), coords, one.where, score=score)
