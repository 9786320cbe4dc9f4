"""From the list that darknet writes to the draft: an object per picture, with its objects."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import listed_records
from jaccard_eval.reading.json.scene import Scene

_SIDES = ("center_x", "center_y", "width", "height")


def read_list(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    scene = Scene(draft)
    for frame in listed_records(path, draft):
        image = frame.text("filename")
        scene.add_image(image)
        for one in frame.records("objects"):
            box = one.record("relative_coordinates")
            coords = [box.number(side) for side in _SIDES]
            scene.add_box(image, one.text("name"), coords, one.where, score=one.number("confidence"))
    scene.hand_over(options, encoding="cxcywh", units="norm", listed=True)
