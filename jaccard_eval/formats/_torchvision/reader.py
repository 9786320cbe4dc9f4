"""From dictionaries of arrays to the draft: one of each image."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jaccard_eval.data.dataset import Key
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.perimage import outputs
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import Scene

_BOXES = ("boxes", "bboxes")  # of torchvision, of MMDetection
_CORNERS = 4


def read_outputs(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of dictionaries to the draft."""
    scene = Scene(draft)
    for image, output, where in outputs(path, draft, _has_boxes):
        scene.add_image(image)
        _add_boxes(scene, image, Record.of(output, where, draft.findings))
    scene.hand_over(options, encoding="xyxy", listed=False)


def _has_boxes(value: Any) -> bool:
    return isinstance(value, dict) and any(name in value for name in _BOXES)


def _add_boxes(scene: Scene, image: str, output: Record) -> None:
    name = _BOXES[1] if _BOXES[1] in output.values else _BOXES[0]
    rows, labels = output.array(name), output.array("labels")
    scores = output.array("scores") if output.has("scores") else [None] * len(rows)
    for other, values in (("labels", labels), ("scores", scores)):
        if len(values) != len(rows) and isinstance(output.values.get(other), list):
            output.error("section-type", other, f"has {len(values):,} values for {len(rows):,} boxes")
    for at, (row, label, score) in enumerate(zip(rows, labels, scores, strict=False)):
        cells = {f"{name}[{at}]": row, f"labels[{at}]": label, f"scores[{at}]": score}
        box = Record(cells, output.where, output.findings)
        place, key, rank = cells
        coords = box.numbers(place, _CORNERS)
        scored = box.number(rank) if box.has(rank) else math.nan
        scene.add_box(image, _label(box, key), coords, box.at(place), score=scored)


def _label(box: Record, field: str) -> Key:
    """Return a class: a number as it is, else a name."""
    value = box.values[field]
    return value if isinstance(value, int) and not isinstance(value, bool) else box.text(field)
