"""What the JSON sink of supervision writes: one object per box, the image in a field of the user's.

Its CSV sink writes the same as a table, which the csv format reads.
"""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.data.dataset import Key
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.documents import Record, listed_records, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import is_number
from jaccard_eval.reading.records import Scene
from jaccard_eval.reading.tabular.columns import IMAGE

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
    # not needed to look for a format

    read_rows(path, draft, options)


_CORNERS_of_reader = ("x_min", "y_min", "x_max", "y_max")
_NAME, _NUMBER = "class_name", "class_id"


def read_rows(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    scene = Scene(draft)
    for row in listed_records(path, draft):
        coords = [row.number(corner) for corner in _CORNERS_of_reader]
        scored = row.values.get("confidence") not in (None, "")  # empty where the detections have none
        score = row.number("confidence") if scored else math.nan
        scene.add_box(_image(row), _label(row), coords, row.where, score=score)
    scene.hand_over(encoding="xyxy", listed=False)


def _image(row: Record) -> Key:
    """Return the image of a box, which is there only if the user told the sink to write it."""
    given = {_fold(name): name for name in row.values if row.has(name)}
    name = next((given[_fold(name)] for name in IMAGE if _fold(name) in given), None)
    if name is None:
        fix = 'Append detections with custom_data={"file_name": ...}.'
        row.error("field-missing", "file_name", "no field names the image", fix)
        return ""
    value = row.values[name]
    return int(value) if is_number(value) and value == value // 1 else row.text(name)


def _label(row: Record) -> Key:
    """Return the class by its name, else by its number."""
    if row.has(_NAME):
        return row.text(_NAME)
    value = row.values.get(_NUMBER)
    return value if isinstance(value, int) and not isinstance(value, bool) else row.text(_NUMBER)


def _fold(name: str) -> str:
    return name.casefold().replace("_", "")
