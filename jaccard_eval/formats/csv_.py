"""CSV and other delimited text: one row per box, columns found by the names in the header.

Reads corners, left-top-size, centre-size and packed boxes, in pixels or normalised, the headerless layout of
keras-retinanet, and Kaggle's PredictionString, which holds all boxes of an image. Rows without a box name images
without objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.tabular.columns import is_header, is_keras_row, is_oriented

FORMAT = Format(
    name="csv",
    summary="delimited text, one row per box, columns identified by name",
    source="TensorFlow Object Detection, VoTT, DeepForest and Kaggle tables; keras-retinanet's CSV",
    example="image,class,xmin,ymin,xmax,ymax\nstreet.jpg,dog,10,20,110,220\n",
    carries=("names", "sizes", "scores", "crowd", "difficult", "group_of", "ignore", "area"),
    suffixes=(".csv", ".tsv"),
    reads={"bbox": "", "obb": "x1, y1, ..., x4, y4; cx, cy, w, h, angle"},
)


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a table by its first line: a header with an image and a box, or data without header; else by its suffix."""
    if peek.kind not in (Kind.TEXT, Kind.BINARY):
        return None
    from jaccard_eval.reading.tabular.columns import first_line, split_first_line

    _, line = first_line(peek.text)
    _, fields = split_first_line(line)
    # The names of columns are common ones, so that a format that prescribes its columns goes before.
    if is_header(fields) or is_keras_row(fields):
        return Likeness.CONTENT
    return Likeness.SUFFIX if peek.suffix in FORMAT.suffixes else None


def iou_types(peek: Peek) -> set[str]:
    """Return what there is, by the first line: upright boxes are only those around oriented ones."""
    from jaccard_eval.reading.tabular.columns import first_line, split_first_line

    _, line = first_line(peek.text)
    return {"obb"} if is_oriented(split_first_line(line)[1]) else {"bbox"}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a delimited file to the draft."""
    from jaccard_eval.reading.tabular.delimited import add_delimited  # not needed to look for a format

    add_delimited(path, draft)


def read_parts(path: Path, draft: Draft, options: ReadOptions, rows: int) -> Iterator[Draft]:
    """Yield drafts of about so many rows each."""
    from jaccard_eval.reading.tabular.delimited import delimited_in_parts  # not needed to look for a format

    return delimited_in_parts(path, draft, rows)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write delimited text: tabs for the suffix ``.tsv``, commas for all others."""
    from jaccard_eval.reading.tabular.writer import write_file

    write_file(dataset, path, findings)
