"""LabelMe: a JSON file beside each picture, with a list of shapes; rectangles are two opposite corners."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="labelme",
    summary="LabelMe JSON: a file per image, or a folder of them; rectangles count, other shapes are set aside",
    source="https://github.com/wkentaro/labelme/blob/main/labelme/label_file.py",
    example="""{
  "version": "5.4.1",
  "flags": {},
  "shapes": [{"label": "dog", "points": [[10, 20], [110, 220]], "group_id": null, "shape_type": "rectangle"}],
  "imagePath": "street.jpg",
  "imageData": null,
  "imageHeight": 480,
  "imageWidth": 640
}
""",
    carries=("images", "sizes"),
    member=".json",
)


def sniff(path: Path) -> bool:
    """Whether `path` is a LabelMe file, or a folder of them."""
    return looks_like(path, _is_labelme)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a folder of them.

    Raises
    ------
    DataError
        When there are no such files; problems of their contents are among the draft's findings.
    """
    from jaccard_eval.formats._labelme.reader import read_files  # not needed to look for a format

    read_files(path, draft, options)


def _is_labelme(outer: set[str], inner: set[str], head: bytes) -> bool:
    has_picture = bool(outer & {"imagePath", "imageData", "imageHeight"})
    return has_picture or {"shapes", "version"} <= outer or {"shapes", "flags"} <= outer
