"""COCO JSON: ground truth, and detections as a results list, as a whole COCO object, or as JSON Lines."""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import record_keys

FORMAT = Format(
    name="coco",
    summary="COCO JSON; detections as a results list, a COCO object with scores, or JSON Lines; plain or gzip",
    source="https://cocodataset.org/#format-data",
    example="""{
  "images": [{"id": 1, "file_name": "a.jpg", "width": 640, "height": 480}],
  "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [10, 20, 30, 40], "area": 1200, "iscrowd": 0}],
  "categories": [{"id": 3, "name": "dog"}]
}
""",
    carries=("images", "sizes", "names", "scores", "crowd", "ignore", "area"),
    suffixes=(".json", ".jsonl", ".json.gz"),
)

_OUTER_KEYS = frozenset({"images", "annotations", "categories", "image_id", "bbox"})
_RESULT_KEYS = frozenset({"image_id", "bbox"})
_WRAPPER_KEYS = frozenset({"results", "predictions"})  # refused by the reader, which says what to pass instead
_OTHER_KEYS = frozenset({"items", "class_names"})  # of Datumaro, of Ultralytics' data sets
_ROWS_KEY = "objects"  # of images in rows that hold their boxes as lists
_CORNER_KEY = "x_min"  # of rows of supervision, which may have an image_id
_NESTED = re.compile(rb"\[\s*\[\s*[{\]]")  # of a list per image
_JSON_NAME = re.compile(r"\.(json|jsonl|ndjson)(\.gz)?$", re.IGNORECASE)


def sniff(path: Path) -> bool:
    """Whether the file looks like COCO JSON, or is called JSON and holds nothing that another layout could read."""
    if files.is_folder(path):
        return False
    head = files.head(path).lstrip()
    outer, inner = record_keys(head) if head[:1] in (b"{", b"[") else (frozenset[str](), frozenset[str]())
    if outer or inner:
        wrapped = outer & _WRAPPER_KEYS and b'"image_id"' in head
        is_other = outer & _OTHER_KEYS or _ROWS_KEY in outer | inner or _CORNER_KEY in inner
        return bool(outer & _OUTER_KEYS or inner & _RESULT_KEYS or wrapped) and not is_other
    return head.strip() == b"[]" or (_JSON_NAME.search(path.name) is not None and not _NESTED.match(head))


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, categories and boxes of a COCO JSON file."""
    from jaccard_eval.formats._coco.dataset import read_file  # not needed to look for a format

    read_file(path, draft, options)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write COCO JSON: an object, or a results list for predictions that do not list all images."""
    from jaccard_eval.formats._coco.writer import write_file

    write_file(dataset, path, findings)
