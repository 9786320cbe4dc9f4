"""What the JSON sink of supervision writes: one object per box, the image in a field of the user's.

Its CSV sink writes the same as a table, which the csv format reads.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="supervision",
    summary="JSON of supervision's sink: an object per box, with the image in custom data",
    source="https://supervision.roboflow.com/latest/detection/tools/save_detections/",
    example="""[
  {
    "x_min": 10.0, "y_min": 20.0, "x_max": 110.0, "y_max": 220.0,
    "class_id": 0, "confidence": 0.9, "tracker_id": "", "class_name": "dog", "file_name": "street.jpg"
  }
]
""",
    carries=("scores",),
    suffixes=(".json",),
)

_CORNERS = {"x_min", "y_min", "x_max", "y_max"}


def sniff(path: Path) -> bool:
    """Whether the file is a list of objects with the corners that the sink writes."""
    return not files.is_folder(path) and looks_like(path, lambda _outer, inner, _head: inner >= _CORNERS)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its objects are among the draft's findings.
    """
    from jaccard_eval.formats._supervision.reader import read_rows  # not needed to look for a format

    read_rows(path, draft, options)
