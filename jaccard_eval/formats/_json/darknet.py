"""From the list that darknet writes to the draft: an object per picture, with its objects."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions, _files
from jaccard_eval.formats._draft import Draft
from jaccard_eval.formats._json.record import Record
from jaccard_eval.formats._json.scene import Scene
from jaccard_eval.formats._json.values import parse_json

_SIDES = ("center_x", "center_y", "width", "height")


def read_list(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    scene = Scene(draft)
    document = Record({"": parse_json(path, _files.read_text(path))}, Where(str(path)), draft.findings)
    for frame in document.records(""):
        image = frame.text("filename")
        scene.add_image(image)
        for one in frame.records("objects"):
            box = one.record("relative_coordinates")
            coords = [box.number(side) for side in _SIDES]
            scene.add_box(image, one.text("name"), coords, one.where, score=one.number("confidence"))
    scene.hand_over(options, encoding="cxcywh", units="norm", listed=True)
