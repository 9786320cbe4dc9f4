"""Detections of darknet as JSON, as ``darknet detector test ... -out result.json`` writes them."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.documents import listed_records, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import Scene

FORMAT = Format(
    name="darknet",
    summary="darknet's result.json: a list of pictures with their objects, boxes as centre and size in fractions",
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


def sniff(path: Path) -> bool:
    """Whether the file is a list of pictures with their objects."""
    return not files.is_folder(path) and looks_like(path, _is_list)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its objects are among the draft's findings.
    """
    # not needed to look for a format

    read_list(path, draft, options)


def _is_list(_outer: set[str], inner: set[str], head: bytes) -> bool:
    return inner >= _KEYS and (b'"relative_coordinates"' in head or b'"frame_id"' in head)


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
    scene.hand_over(encoding="cxcywh", units="norm", listed=True)
