"""Responses of Roboflow's inference: a JSON file per image; x and y are the centre of a box, in pixels."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import drawn_by, kinds_in
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector, outputs

FORMAT = Format(
    name="roboflow",
    summary="Roboflow inference JSON: a response per image, or a folder of them; points and keypoints too",
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
    reads={"bbox": "x, y, width, height", "segm": "points, rle", "keypoints": "keypoints"},
)

_SIDES = ("x", "y", "width", "height")
_KINDS = {
    "segm": pattern(rb'"(?:points"\s*:\s*\[\s*\{|rle"\s*:\s*\{)'),
    "keypoints": pattern(rb'"keypoints"\s*:\s*\[\s*\{'),
}
_SIZE = pattern(rb'"image"\s*:\s*\{')
_CENTRE = pattern(rb'"predictions"\s*:\s*\[\s*(\]|\{[^{}]*"x"\s*:)')


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a response by its keys, and a folder by its files."""
    return peek.rate_documents(_rate)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of responses, each of the image that its file is called after."""
    collector = RecordCollector(draft)
    for key, value, where in outputs(path, draft, lambda value: isinstance(value, dict) and "predictions" in value):
        response = Record.of(value, where, draft.findings)
        collector.add_image(key, size=response.record("image").size())  # null for some models
        for box in response.records("predictions"):
            coords = [box.number(side) for side in _SIDES]
            label, score = box.text("class"), box.number("confidence")
            if collector.reads_boxes:
                collector.add_box(key, label, coords, box.where, score=score)
            else:
                collector.add_drawn(key, label, drawn_by(box, box=coords), box.where, score=score)
    collector.to_draft(encoding="cxcywh", listed=False)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first responses have: boxes, and perhaps outlines or the points of poses."""
    return {"bbox"} | kinds_in(peek.documents() if peek.is_folder else [peek], _KINDS)


def _rate(document: Peek) -> Likeness | None:
    keys = {"image", "predictions"}
    is_centred = _CENTRE.search(document.head)
    if document.top_keys >= keys:
        return Likeness.STRUCTURE if is_centred else Likeness.CONTENT
    # In a list, or by the names of images, the image is its size; records of scripts have its name there.
    has_several = document.item_keys >= keys or document.maps_images
    return Likeness.STRUCTURE if has_several and is_centred and _SIZE.search(document.head) else None
