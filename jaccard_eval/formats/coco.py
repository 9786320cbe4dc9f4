"""COCO JSON: ground truth, and detections as a results list, as a whole COCO object, or as JSON Lines."""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek

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

_SECTIONS = frozenset({"images", "annotations", "categories"})
_RESULT = frozenset({"image_id", "bbox"})
_WRAPPERS = frozenset({"results", "predictions"})  # refused by the reader, which names what to pass instead
_CATEGORIES = re.compile(rb'"categories"\s*:\s*\[')
_NESTED = re.compile(rb"\[\s*\[\s*[{\]]")  # of a list per image
_JSON_NAME = re.compile(r"\.(json|jsonl|ndjson)(\.gz)?$", re.IGNORECASE)


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its keys; a JSON file without keys is claimed, as its reader has the best error messages."""
    if peek.is_folder:
        return None
    if peek.top_keys or peek.item_keys:
        sections = peek.top_keys & _SECTIONS
        fields = (peek.top_keys | peek.item_keys) & _RESULT
        is_wrapped = peek.top_keys & _WRAPPERS and b'"image_id"' in peek.head
        if len(sections) > 1 or fields == _RESULT or is_wrapped:
            return Likeness.STRUCTURE
        # Categories alone are COCO's where they are a list: others have an object of that name.
        is_known = fields or (_CATEGORIES.search(peek.head) if sections == {"categories"} else sections)
        return Likeness.CONTENT if is_known else None
    start = peek.head.strip()
    if start == b"[]":
        return Likeness.CONTENT
    # No COCO file is a list of lists with objects: those are outputs by image.
    is_claimed = _JSON_NAME.search(peek.path.name) is not None and not _NESTED.match(start)
    return Likeness.SUFFIX if is_claimed else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, categories and boxes of a COCO JSON file."""
    from jaccard_eval.formats._coco.dataset import read_file  # not needed to look for a format

    read_file(path, draft, options)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write COCO JSON: an object, or a results list for predictions that do not list all images."""
    from jaccard_eval.formats._coco.writer import write_file

    write_file(dataset, path, findings)
