"""Dictionaries of boxes, labels and scores, as torchvision's detectors return them, written as JSON.

MMDetection writes its predictions alike, with bboxes in place of boxes; both may have masks or keypoints. Never
pickles: those run code when loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import drawn_by, kinds_in
from jaccard_eval.reading.peek import Kind, Likeness, Peek, rate_keys
from jaccard_eval.reading.records import Record, RecordCollector, outputs

FORMAT = Format(
    name="torchvision",
    summary="torchvision's dictionaries as JSON: boxes, labels, scores; of one image, a list, or keyed by image",
    source="https://docs.pytorch.org/vision/stable/models/generated/torchvision.models.detection.fasterrcnn_resnet50_fpn.html",
    example='{\n  "street": {"boxes": [[10, 20, 110, 220]], "labels": [18], "scores": [0.9]}\n}\n',
    carries=("images", "scores"),
    member=".json",
    reads={
        "bbox": "boxes, bboxes",
        "obb": "bboxes of five or eight numbers, as MMRotate has them",
        "segm": "masks: RLE or polygons",
        "keypoints": "keypoints",
    },
)

_BOXES = ("boxes", "bboxes")  # of torchvision, of MMDetection
_IMAGE = ("image", "image_id", "image_name", "image_path", "file", "file_name", "filename", "img_path")
_BESIDES = (*_BOXES, "scores", "masks", "keypoints", "keypoints_scores")
_OF_ONE = {"masks": "mask", "keypoints": "keypoints"}  # arrays of shapes, and what one of them is called
_KINDS = {
    "obb": pattern(rb'"b?boxes"\s*:\s*\[\s*\[(?:[^,\]]*,){4}(?:(?:[^,\]]*,){3})?[^,\]]*\]'),
    "segm": pattern(rb'"masks"\s*:\s*\[\s*[\[{]'),
    "keypoints": pattern(rb'"keypoints"\s*:\s*\[\s*\['),
}
_ARRAYS = (pattern(rb'"b?boxes"\s*:\s*\['), pattern(rb'"labels"\s*:\s*\['))


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by the keys of its dictionaries, and a folder by its files."""
    return peek.rate_documents(_rate)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of dictionaries to the draft."""

    def has_boxes(value: Any) -> bool:
        return isinstance(value, dict) and not value.keys().isdisjoint(_BOXES)

    collector = RecordCollector(draft, usual_angle="rad-cw")
    for image, output, where in outputs(path, draft, has_boxes):
        collector.add_image(image)
        _add_boxes(collector, image, Record.of(output, where, draft.findings))
    collector.to_draft(encoding="xyxy", listed=False)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first dictionaries have: boxes, and perhaps masks or keypoints."""
    return {"bbox"} | kinds_in(peek.documents() if peek.is_folder else [peek], _KINDS)


def _add_boxes(collector: RecordCollector, image: str, output: Record) -> None:
    name = _BOXES[1] if _BOXES[1] in output.values else _BOXES[0]
    rows, labels = output.array(name), output.array("labels")
    scores = output.array("scores") if output.has("scores") else [None] * len(rows)
    shapes = {name: output.array(name) for name in _OF_ONE if output.has(name)}
    for other, values in (("labels", labels), ("scores", scores), *shapes.items()):
        if len(values) != len(rows) and isinstance(output.values.get(other), list):
            output.error("section-type", other, f"has {len(values):,} values for {len(rows):,} boxes")
    # A record for each box, so that every error is reported with the place of that box in its array.
    for at, (row, label, score) in enumerate(zip(rows, labels, scores, strict=False)):
        place, key, rank = f"{name}[{at}]", f"labels[{at}]", f"scores[{at}]"
        box = Record({place: row, key: label, rank: score}, output.where, output.findings)
        rating = box.optional(rank)
        # Five numbers are a turned box, unless the last repeats the score.
        is_turned = isinstance(row, list) and (len(row) == 8 or (len(row) == 5 and row[4] != score))
        coords = None if is_turned else box.numbers(place, 4)
        if collector.reads_boxes and coords is not None:
            collector.add_box(image, box.key(key), coords, box.at(place), score=rating)
            continue
        # As one object has them: a mask and keypoints.
        drawn = {_OF_ONE[name]: of[at] for name, of in shapes.items() if at < len(of)}
        drawn |= {"bbox": row} if is_turned else {}
        shape = drawn_by(Record(drawn, box.at(place), output.findings), box=coords, kind="box without a shape")
        collector.add_drawn(image, box.key(key), shape, box.at(place), score=rating)


def _rate(document: Peek) -> Likeness | None:
    # Dictionaries that name their image are records of a script's own, and so are JSON Lines.
    if document.kind is Kind.JSON_LINES or not document.item_keys.isdisjoint(_IMAGE):
        return None
    keys = document.top_keys if not document.top_keys.isdisjoint(_BOXES) else document.item_keys
    if not keys.isdisjoint(_BOXES):
        return rate_keys(keys, ("labels",), _BESIDES)
    has_arrays = all(array.search(document.head) for array in _ARRAYS)
    return Likeness.CONTENT if document.maps_images and has_arrays else None
