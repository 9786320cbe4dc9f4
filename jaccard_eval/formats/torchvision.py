"""Dictionaries of boxes, labels and scores, as torchvision's detectors return them, written as JSON.

MMDetection writes its predictions alike, with bboxes in place of boxes. Never pickles: those run code when loaded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import Record, RecordCollector, looks_like, outputs

FORMAT = Format(
    name="torchvision",
    summary="torchvision's dictionaries as JSON: boxes, labels, scores; of an image, a list, or an object by image",
    source="https://docs.pytorch.org/vision/stable/models/generated/torchvision.models.detection.fasterrcnn_resnet50_fpn.html",
    example='{\n  "street": {"boxes": [[10, 20, 110, 220]], "labels": [18], "scores": [0.9]}\n}\n',
    carries=("images", "scores"),
    member=".json",
)

_BOXES = ("boxes", "bboxes")  # of torchvision, of MMDetection
_ARRAYS = (re.compile(rb'"b?boxes"\s*:\s*\['), re.compile(rb'"labels"\s*:\s*\['))


def sniff(path: Path) -> bool:
    """Whether `path` holds such dictionaries."""

    def is_output(outer: frozenset[str], inner: frozenset[str], head: bytes) -> bool:
        if not outer.isdisjoint(_BOXES):
            return "labels" in outer
        if not inner.isdisjoint(_BOXES):
            return "labels" in inner and "image_id" not in inner
        return not inner and not outer & {"images", "annotations"} and all(array.search(head) for array in _ARRAYS)

    return looks_like(path, is_output)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of dictionaries to the draft."""

    def has_boxes(value: Any) -> bool:
        return isinstance(value, dict) and not value.keys().isdisjoint(_BOXES)

    collector = RecordCollector(draft)
    for image, output, where in outputs(path, draft, has_boxes):
        collector.add_image(image)
        _add_boxes(collector, image, Record.of(output, where, draft.findings))
    collector.to_draft(encoding="xyxy", listed=False)


def _add_boxes(collector: RecordCollector, image: str, output: Record) -> None:
    name = _BOXES[1] if _BOXES[1] in output.values else _BOXES[0]
    rows, labels = output.array(name), output.array("labels")
    scores = output.array("scores") if output.has("scores") else [None] * len(rows)
    for other, values in (("labels", labels), ("scores", scores)):
        if len(values) != len(rows) and isinstance(output.values.get(other), list):
            output.error("section-type", other, f"has {len(values):,} values for {len(rows):,} boxes")
    for at, (row, label, score) in enumerate(zip(rows, labels, scores, strict=False)):
        place, key, rank = f"{name}[{at}]", f"labels[{at}]", f"scores[{at}]"
        box = Record({place: row, key: label, rank: score}, output.where, output.findings)
        coords = box.numbers(place, 4)
        rating = box.optional(rank)
        collector.add_box(image, box.key(key), coords, box.at(place), score=rating)
