"""Supervisely: a JSON file per picture in folders called ann; rectangles are two opposite corners."""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.documents import Record, documents, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import Scene

FORMAT = Format(
    name="supervisely",
    summary="Supervisely JSON: a project's folder, or files per image (street.jpg.json); scores are tags",
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


def sniff(path: Path) -> bool:
    """Whether `path` is an annotation file, or a project of them."""
    return looks_like(path, lambda outer, _inner, _head: {"size", "objects"} <= outer)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a project.

    Raises
    ------
    DataError
        When there are no such files; problems of their contents are among the draft's findings.
    """
    # not needed to look for a format

    read_files(path, draft, options)


_META = frozenset({"meta.json", "obj_class_to_machine_color.json", "img_info/", "meta/"})  # of project and pictures
_FOLDER = "ann"
_SCORE_TAGS = ("confidence", "conf", "score")


def read_files(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a project."""
    scene = Scene(draft)
    for name, file, value in documents(path, draft, besides=_META):
        key = "/".join(part for part in name.split("/") if part != _FOLDER)
        _add_file(scene, key, Record.of(value, Where(str(file)), draft.findings))
    scene.hand_over(encoding="xyxy", listed=True)


def _add_file(scene: Scene, key: str, record: Record) -> None:
    size = record.record("size")
    scene.add_image(key, file_name=key, size=(size.side("width"), size.side("height")))
    for entry in record.records("objects"):
        kind = entry.text("geometryType")
        if kind == "rectangle":
            points = entry.record("points")
            scene.add_box(key, entry.text("classTitle"), points.corners("exterior"), entry.where, score=_score(entry))
        elif kind:
            scene.count_shape(kind)


def _score(entry: Record) -> float:
    """Return the number of the tag that is called a confidence."""
    tags = entry.records("tags") if entry.has("tags") else ()
    found = [tag.number("value") for tag in tags if tag.values.get("name") in _SCORE_TAGS]
    return found[0] if found else math.nan
