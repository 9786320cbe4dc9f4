"""Detections of darknet as JSON, as ``darknet detector test ... -out result.json`` writes them."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector, listed_records

FORMAT = Format(
    name="darknet",
    summary="darknet's result.json: a list of images with their objects, boxes as centre and size in fractions",
    source="https://github.com/AlexeyAB/darknet#how-to-use-on-the-command-line",
    example="""[
  {
    "frame_id": 1,
    "filename": "data/street.jpg",
    "objects": [
      {
        "class_id": 16, "name": "dog",
        "relative_coordinates": {"center_x": 0.5, "center_y": 0.4, "width": 0.2, "height": 0.3}, "confidence": 0.9
      }
    ]
  }
]
""",
    carries=("images", "scores"),
    suffixes=(".json",),
)

_KEYS = frozenset({"filename", "objects"})
_SIDES = ("center_x", "center_y", "width", "height")


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a list of images with their objects."""
    is_marked = b'"relative_coordinates"' in peek.head or b'"frame_id"' in peek.head
    return Likeness.STRUCTURE if peek.item_keys >= _KEYS and is_marked else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    collector = RecordCollector(draft)
    for frame in listed_records(path, draft):
        image = frame.text("filename")
        collector.add_image(image)
        for entry in frame.records("objects"):
            box = entry.record("relative_coordinates")
            coords = [box.number(side) for side in _SIDES]
            collector.add_box(image, entry.text("name"), coords, entry.where, score=entry.number("confidence"))
    collector.to_draft(encoding="cxcywh", units="norm", listed=True)
