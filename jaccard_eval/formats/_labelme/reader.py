"""From LabelMe files to the draft: an image per file, a box per rectangle."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import documents
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import UNKNOWN_SIZE, Scene


def read_files(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of LabelMe files to the draft."""
    scene = Scene(draft)
    for key, file, value in documents(path, draft):
        _add_file(scene, key, Record.of(value, Where(str(file)), draft.findings))
    scene.hand_over(options, encoding="xyxy", listed=False)


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
