"""What the JSON sink of supervision writes: one object per box, the image in a field of the user's.

Its CSV sink writes the same as a table, which the csv format reads.
"""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.data.dataset import Key
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import is_number
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector, listed_records

FORMAT = Format(
    name="supervision",
    summary="JSON of supervision's sink: one object per box, with the image in custom data",
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

_CORNERS = ("x_min", "y_min", "x_max", "y_max")
_BESIDES = ("class_id", "confidence", "tracker_id")  # which the sink writes even where they are empty


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a list of objects by the fields that the sink writes, all of them or the corners."""
    if not peek.item_keys.issuperset(_CORNERS):
        return None
    return Likeness.NAMED if peek.item_keys.issuperset(_BESIDES) else Likeness.STRUCTURE


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a list to the draft."""
    collector = RecordCollector(draft)
    for row in listed_records(path, draft):
        coords = [row.number(corner) for corner in _CORNERS]
        # The sink writes an empty text where detections have no confidence.
        is_scored = row.values.get("confidence") not in (None, "")
        score = row.number("confidence") if is_scored else math.nan
        image = _image(row)
        label = row.text("class_name") if row.has("class_name") else row.key("class_id")
        collector.add_box(image, label, coords, row.where, score=score)
    collector.to_draft(encoding="xyxy", listed=False)


def _image(row: Record) -> Key:
    """Return the image of a box, which is there only if the user asked the sink to write it."""
    from jaccard_eval.reading.tabular.columns import IMAGE  # not needed to look for a format

    def fold(name: str) -> str:
        return name.casefold().replace("_", "")

    given = {fold(name): name for name in row.values if row.has(name)}
    name = next((given[fold(alias)] for alias in IMAGE if fold(alias) in given), None)
    if name is None:
        fix = 'Append detections with custom_data={"file_name": ...}.'
        row.error("field-missing", "file_name", "no field names the image", fix)
        return ""
    value = row.values[name]
    return int(value) if is_number(value) and value == value // 1 else row.text(name)
