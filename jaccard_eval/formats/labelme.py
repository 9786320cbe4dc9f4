"""LabelMe: a JSON file beside each picture, with a list of shapes; rectangles are two opposite corners."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.documents import Record, documents, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.records import UNKNOWN_SIZE, Scene

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
    # not needed to look for a format

    read_files(path, draft, options)


def _is_labelme(outer: set[str], inner: set[str], head: bytes) -> bool:
    has_picture = bool(outer & {"imagePath", "imageData", "imageHeight"})
    return has_picture or {"shapes", "version"} <= outer or {"shapes", "flags"} <= outer


def read_files(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of LabelMe files to the draft."""
    scene = Scene(draft)
    for key, file, value in documents(path, draft):
        _add_file(scene, key, Record.of(value, Where(str(file)), draft.findings))
    scene.hand_over(encoding="xyxy", listed=False)


def _add_file(scene: Scene, key: str, record: Record) -> None:
    sized = record.has("imageWidth") and record.has("imageHeight")
    size = (record.number("imageWidth"), record.number("imageHeight")) if sized else UNKNOWN_SIZE
    name = record.text("imagePath") if record.has("imagePath") else ""
    # LabelMe writes paths relative to the file, on Windows with backslashes.
    scene.add_image(key, file_name=name.replace("\\", "/").rpartition("/")[2] or None, size=size)
    for shape in record.records("shapes"):
        kind = shape.text("shape_type") if shape.has("shape_type") else "polygon"  # which files before 3.0 mean
        if kind == "rectangle":
            scene.add_box(key, shape.text("label"), shape.corners("points"), shape.where)
        else:
            scene.count_shape(kind)
