"""Supervisely: a JSON file per image in folders called ann; rectangles are two opposite corners."""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector, document_records

FORMAT = Format(
    name="supervisely",
    summary="Supervisely JSON: a project folder, or one file per image (street.jpg.json); scores are tags",
    source="https://docs.supervisely.com/data-organization/00_ann_format_navi/04_supervisely_format_annotation",
    example="""{
  "description": "",
  "size": {"height": 480, "width": 640},
  "tags": [],
  "objects": [
    {"classTitle": "dog", "geometryType": "rectangle", "points": {"exterior": [[10, 20], [110, 220]], "interior": []}}
  ]
}
""",
    carries=("images", "sizes", "scores"),
    member=".json",
)

_META = frozenset({"meta.json", "obj_class_to_machine_color.json", "img_info/", "meta/"})  # of project and images
_FOLDER = "ann"
_SCORE_TAGS = ("confidence", "conf", "score")


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its keys, and a project by its files."""
    return peek.rate_documents(
        lambda document: Likeness.STRUCTURE if document.top_keys >= {"size", "objects"} else None, besides=_META
    )


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a project."""
    collector = RecordCollector(draft)
    for name, record in document_records(path, draft, besides=_META):
        # Annotations lie in ds/ann, their images in ds/img, so "ann" does not belong to an image's name.
        key = "/".join(part for part in name.split("/") if part != _FOLDER)
        size = record.record("size")
        collector.add_image(key, file_name=key, size=(size.side("width"), size.side("height")))
        for entry in record.records("objects"):
            kind = entry.text("geometryType")
            if kind == "rectangle":
                points = entry.record("points")
                label, corners = entry.text("classTitle"), points.corners("exterior")
                tags = entry.records("tags") if entry.has("tags") else ()
                scores = [tag.number("value") for tag in tags if tag.values.get("name") in _SCORE_TAGS]
                score = scores[0] if scores else math.nan
                collector.add_box(key, label, corners, entry.where, score=score)
            elif kind:
                collector.count_shape(kind)
    collector.to_draft(encoding="xyxy", listed=True)
