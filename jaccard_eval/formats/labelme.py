"""LabelMe: a JSON file beside each picture, with a list of shapes; rectangles are two opposite corners."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, RecordCollector, document_records

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


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its keys, and a folder by its files."""
    return peek.rate_documents(_rate)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a folder of them."""
    collector = RecordCollector(draft)
    for key, record in document_records(path, draft):
        is_sized = record.has("imageWidth") and record.has("imageHeight")
        size = (record.number("imageWidth"), record.number("imageHeight")) if is_sized else UNKNOWN_SIZE
        name = record.text("imagePath") if record.has("imagePath") else ""
        # LabelMe writes paths relative to the file, on Windows with backslashes.
        collector.add_image(key, file_name=name.replace("\\", "/").rpartition("/")[2] or None, size=size)
        for shape in record.records("shapes"):
            # Files before 3.0 name no type, and mean polygons.
            kind = shape.text("shape_type") if shape.has("shape_type") else "polygon"
            if kind == "rectangle":
                collector.add_box(key, shape.text("label"), shape.corners("points"), shape.where)
            else:
                collector.count_shape(kind)
    collector.to_draft(encoding="xyxy", listed=False)


def _rate(document: Peek) -> Likeness | None:
    keys = document.top_keys
    has_image = not keys.isdisjoint(("imagePath", "imageData", "imageHeight"))
    is_labelme = has_image or keys >= {"shapes", "version"} or keys >= {"shapes", "flags"}
    return Likeness.STRUCTURE if is_labelme else None
