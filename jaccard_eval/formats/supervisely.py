"""Supervisely: a JSON file per picture in folders called ann; rectangles are two opposite corners."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

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
    from jaccard_eval.formats._supervisely.reader import read_files  # not needed to look for a format

    read_files(path, draft, options)
