"""VGG Image Annotator 2 and 3: annotations as JSON or CSV, or a whole project; the class is an attribute of regions."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="via",
    summary="VGG Image Annotator 2: JSON, CSV or project; 3: project; rectangles count, other shapes are set aside",
    source="https://gitlab.com/vgg/via/-/blob/via-2.x.y/via-2.x.y/CodeDoc.md",
    example="""{
  "street.jpg4222": {
    "filename": "street.jpg",
    "size": 4222,
    "regions": [
      {
        "shape_attributes": {"name": "rect", "x": 10, "y": 20, "width": 100, "height": 200},
        "region_attributes": {"class": "dog"}
      }
    ],
    "file_attributes": {}
  }
}
""",
    carries=("images",),
    suffixes=(".json", ".csv"),
)

_CSV_COLUMN = b"region_shape_attributes"
_PROJECT = "_via_img_metadata"
_SECTIONS = frozenset({"project", "file", "view", "metadata"})  # of version 3


def sniff(path: Path) -> bool:
    """Whether the file is what the annotator exports or saves."""
    if files.is_folder(path):
        return False
    return _CSV_COLUMN in files.head(path).partition(b"\n")[0] or looks_like(path, _is_export)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of an export to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its regions are among the draft's findings.
    """
    from jaccard_eval.formats._via.reader import read_csv, read_json  # not needed to look for a format

    text = files.read_text(path)
    is_table = not text.lstrip().startswith(("{", "["))
    (read_csv if is_table else read_json)(path, text, draft, options)


def _is_export(outer: set[str], inner: set[str], head: bytes) -> bool:
    if _PROJECT in outer or "_via_settings" in outer or outer >= _SECTIONS:
        return True
    marked = b'"shape_attributes"' in head or b'"file_attributes"' in head
    return not inner and marked and b'"filename"' in head
