"""Create ML and Turi Create: a JSON list of images, each with its boxes by their centres, in pixels."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector, listed_records

FORMAT = Format(
    name="createml",
    summary="Create ML JSON: a list of images, each with its boxes (centre and size in pixels)",
    source="https://developer.apple.com/documentation/createml/building-an-object-detector-data-source",
    example="""[
  {
    "image": "street.jpg",
    "annotations": [{"label": "dog", "coordinates": {"x": 60, "y": 120, "width": 100, "height": 200}}]
  }
]
""",
    carries=("images", "scores"),
    suffixes=(".json",),
)

# Today's names first, then those of Apple's first examples.
_IMAGE = ("image", "imagefilename")
_ANNOTATIONS = ("annotations", "annotation")
_SIDES = ("x", "y", "width", "height")


def looks_like(peek: Peek) -> Likeness | None:
    """Return how sure it is that a file lists images with boxes that have coordinates."""
    keys = peek.item_keys
    if keys.isdisjoint(_IMAGE) or keys.isdisjoint(_ANNOTATIONS):
        return None
    # No other tool calls a box its coordinates; without any box the two names might be anybody's.
    return Likeness.STRUCTURE if b'"coordinates"' in peek.head else Likeness.CONTENT


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    collector = RecordCollector(draft)
    for entry in listed_records(path, draft):
        image = entry.text(next((name for name in _IMAGE if entry.has(name)), _IMAGE[0]))
        collector.add_image(image)
        for box in entry.records(next((name for name in _ANNOTATIONS if entry.has(name)), _ANNOTATIONS[0])):
            coordinates = box.record("coordinates")
            coords = [coordinates.number(side) for side in _SIDES]
            collector.add_box(image, box.text("label"), coords, box.where, score=box.optional("confidence"))
    collector.to_draft(encoding="cxcywh", listed=True)
