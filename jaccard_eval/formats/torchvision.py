"""Dictionaries of boxes, labels and scores, as torchvision's detectors return them, written as JSON.

MMDetection writes its predictions alike, with bboxes in place of boxes. Never pickles: those run code when loaded.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from jaccard_eval.data.dataset import Key
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.documents import Record, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import Scene, outputs

FORMAT = Format(
    name="torchvision",
    summary="torchvision's dictionaries as JSON: boxes, labels, scores; of an image, a list, or an object by image",
    source="https://docs.pytorch.org/vision/stable/models/generated/torchvision.models.detection.fasterrcnn_resnet50_fpn.html",
    example='{\n  "street": {"boxes": [[10, 20, 110, 220]], "labels": [18], "scores": [0.9]}\n}\n',
    carries=("images", "scores"),
    member=".json",
)

_BOXES = {"boxes", "bboxes"}  # of torchvision, of MMDetection
_ARRAYS = (re.compile(rb'"b?boxes"\s*:\s*\['), re.compile(rb'"labels"\s*:\s*\['))


def sniff(path: Path) -> bool:
    """Whether `path` holds such dictionaries."""
    return looks_like(path, _is_output)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of dictionaries to the draft.

    Raises
    ------
    DataError
        When there are no files of outputs; problems of their contents are among the draft's findings.
    """
    # not needed to look for a format

    read_outputs(path, draft, options)


def _is_output(outer: set[str], inner: set[str], head: bytes) -> bool:
    if outer & _BOXES:
        return "labels" in outer
    if inner & _BOXES:
        return "labels" in inner and "image_id" not in inner
    return not inner and not outer & {"images", "annotations"} and all(array.search(head) for array in _ARRAYS)


_BOXES_of_reader = ("boxes", "bboxes")  # of torchvision, of MMDetection
_CORNERS = 4


def read_outputs(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of dictionaries to the draft."""
    scene = Scene(draft)
    for image, output, where in outputs(path, draft, _has_boxes):
        scene.add_image(image)
        _add_boxes(scene, image, Record.of(output, where, draft.findings))
    scene.hand_over(encoding="xyxy", listed=False)


def _has_boxes(value: Any) -> bool:
    return isinstance(value, dict) and any(name in value for name in _BOXES_of_reader)


def _add_boxes(scene: Scene, image: str, output: Record) -> None:
    name = _BOXES_of_reader[1] if _BOXES_of_reader[1] in output.values else _BOXES_of_reader[0]
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
