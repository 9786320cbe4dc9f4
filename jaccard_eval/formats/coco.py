"""COCO JSON: ground truth, and detections as a results list, as a whole COCO object, or as JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import record_keys
from jaccard_eval.reading.peek import Likeness, Peek

FORMAT = Format(
    shapes=("segm", "keypoints"),
    shapes_if_asked=("obb",),
    name="coco",
    summary="COCO JSON; detections as a results list, a COCO object with scores, or JSON Lines; plain or gzip",
    source="https://cocodataset.org/#format-data",
    example="""{
  "images": [{"id": 1, "file_name": "a.jpg", "width": 640, "height": 480}],
  "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [10, 20, 30, 40], "area": 1200, "iscrowd": 0}],
  "categories": [{"id": 3, "name": "dog"}]
}
""",
    carries=("images", "sizes", "names", "scores", "crowd", "group_of", "ignore", "area"),
    suffixes=(".json", ".jsonl", ".json.gz"),
    reads={
        "bbox": "bbox: left, top, width, height",
        "obb": "bbox of five or eight numbers, rbox, poly, segmentation of four corners",
        "segm": "segmentation: polygons or RLE",
        "keypoints": "keypoints: x, y, visibility",
    },
)

_SECTIONS = frozenset({"images", "annotations", "categories"})
_RESULT = frozenset({"image_id", "bbox"})
_CLASS = "category_id"
_IMAGE_NAMES = frozenset({"file_name", "filename", "image", "image_name", "image_path", "img", "path"})
_LISTS = ("annotations", "results", "predictions", "detections")  # where objects have their records
_LIST = pattern(rb'"(?:%s)"\s*:\s*\[' % "|".join(_LISTS).encode())
# Boxes or objects of a record that is an image: COCO's records are boxes.
_BY_IMAGE = pattern(rb'"\w*(?:boxes|objects|detections|predictions|annotations|instances)"\s*:\s*\[\s*[\[{]')
_CATEGORIES = pattern(rb'"categories"\s*:\s*\[')
_NESTED = pattern(rb"\[\s*\[\s*[{\]]")  # of a list per image
# Of what can be compared, how its names begin, and the first value: a number, a corner of a polygon, runs. Names first:
# compiling what most files have nothing of takes longer than looking.
_FIELDS = {
    "bbox": ((b'"bbox"',), pattern(rb'"bbox"\s*:\s*\[\s*[^\]\s]')),
    "segm": (
        (b'"seg', b'"polys"'),
        pattern(rb'"(?:seg(?:mentation|ments)|polys)"\s*:\s*(?:\{|\[\s*[^\]\s])'),
    ),
    "keypoints": ((b'"keypoints"',), pattern(rb'"keypoints"\s*:\s*\[[\s\[]*[-0-9.]')),
}
_ORIENTED = pattern(rb'"bbox"\s*:\s*\[(?:[^,\]]*,){4}(?:(?:[^,\]]*,){3})?[^,\]]*\]')  # of five or eight numbers
# Corners or an angle besides an upright box or in place of one; a turn of CVAT's boxes.
_TURNED = pattern(
    rb'"(?:poly|rbox|rbbox|rotated_bbox|obb)"\s*:\s*\[+(?:[^,\]]*,){4}(?:(?:[^,\]]*,){3})?[^,\]]*\]'
    rb'|"polys"\s*:\s*\[\s*(?:\[[^\]]*\]\s*,?\s*){4}\]'
    rb'|"attributes"\s*:\s*\{[^{}]*"rotation"\s*:\s*(?!0[,}\s]|0\.0+[,}\s])\d'
)
_TURNED_NAMES = (b'"poly', b'"rbox"', b'"rbbox"', b'"rotat', b'"obb"')  # how they begin
_RING = pattern(rb'"segmentation"\s*:\s*\[\s*\[([-+0-9.eE,\s]+)\]\s*\]')  # a mask of one polygon
# All names of what COCO's own files and results lists are made of: those in front of annotations, and the others.
IN_FRONT = frozenset(
    b"images info licenses description url version year contributor date_created id file_name width height license"
    b" flickr_url coco_url date_captured name".split()
)
OWN_NAMES = IN_FRONT | frozenset(
    b"annotations categories supercategory image_id category_id bbox score area iscrowd segmentation counts size"
    b" keypoints num_keypoints skeleton".split()
)
_NAME = pattern(rb'"([^"\\]*)"\s*:')
_JSON_NAME = pattern(r"\.(json|jsonl|ndjson)(\.gz)?$", re.IGNORECASE)


def is_plain(peek: Peek) -> bool:
    """Whether a file has no names but COCO's, as far as it is seen: no other format claims as much of it.

    Of large files, images alone are seen.
    """
    names, likeness = frozenset(_NAME.findall(peek.head)), looks_like(peek)
    are_images = likeness is Likeness.CONTENT and "images" in peek.top_keys and names <= IN_FRONT
    return b"\\" not in peek.head and (are_images or (likeness is Likeness.STRUCTURE and names <= OWN_NAMES))


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its keys; a JSON file without keys is claimed, as its reader has the best error messages."""
    if peek.is_folder:
        return None
    if peek.top_keys or peek.item_keys:
        sections = peek.top_keys & _SECTIONS
        keys = peek.top_keys | peek.item_keys
        fields = keys & _RESULT
        if len(sections) > 1 or (fields == _RESULT and _CLASS in keys) or _is_wrapped(peek):
            return Likeness.STRUCTURE
        # Without its class, or with its image by name alone, a box may be anybody's.
        if not sections and (fields == _RESULT or (fields == {"bbox"} and keys & _IMAGE_NAMES)):
            return Likeness.SUFFIX
        # Categories alone are COCO's where they are a list: others have an object of that name.
        is_known = fields or (_CATEGORIES.search(peek.head) if sections == {"categories"} else sections)
        is_by_image = peek.item_keys and _BY_IMAGE.search(peek.head)
        return Likeness.CONTENT if is_known and not is_by_image else None
    start = peek.head.strip()
    if start == b"[]":
        return Likeness.CONTENT
    # No COCO file is a list of lists with objects: those are outputs by image.
    is_claimed = _JSON_NAME.search(peek.path.name) is not None and not _NESTED.match(start)
    return Likeness.SUFFIX if is_claimed else None


def _is_wrapped(peek: Peek) -> bool:
    """Whether it is an object whose list has records with an image and a class of their own."""
    opened = _LIST.search(peek.head) if peek.top_keys.intersection(_LISTS) else None
    keys = frozenset() if opened is None else record_keys(peek.head[opened.end() - 1 :])[1]
    return keys.issuperset(("image_id", _CLASS)) and not keys.isdisjoint(("bbox", "segmentation", "keypoints"))


def iou_types(peek: Peek) -> set[str]:
    """Return what the first records have that is not empty: exporters write `[]` for masks and boxes that are none.

    Masks that are all rectangles are boxes once more, as others write them.
    """
    text = peek.head
    if peek.top_keys & _SECTIONS:
        from jaccard_eval.reading.blocks import part_from  # only of ground truth

        # All images may be listed first.
        text = part_from(peek.path, _LIST, len(text)) or text
    text = text[: text.rfind(b"]") + 1]  # the last value may be cut
    found = {name for name, (names, field) in _FIELDS.items() if _has(text, names) and field.search(text)}
    masks = _RING.findall(text) if "segm" in found else []
    rings = [ring.translate(None, b" \t\r\n").split(b",") for ring in masks]
    if "bbox" in found and _ORIENTED.search(text):
        found = found - {"bbox"} | {"obb"}
    elif _has(text, _TURNED_NAMES) and _TURNED.search(text):
        found.add("obb")
    if "bbox" in found and rings and len(rings) == len(_FIELDS["segm"][1].findall(text)):
        from jaccard_eval.reading.outlines import is_rectangle  # all about masks, which most inputs have none of

        if all(map(is_rectangle, rings)):
            found.discard("segm")
        elif all(len(ring) in (8, 10) for ring in rings):
            found.add("obb")
    return found


def _has(text: bytes, names: tuple[bytes, ...]) -> bool:
    return any(name in text for name in names)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, categories and boxes of a COCO JSON file."""
    from jaccard_eval.formats._coco.dataset import read_file  # not needed to look for a format

    read_file(path, draft, options)


def read_parts(path: Path, draft: Draft, options: ReadOptions, rows: int) -> Iterator[Draft]:
    """Yield drafts of about so many detections each; of ground truth one."""
    from jaccard_eval.formats._coco.parts import read_in_parts

    return read_in_parts(path, draft, rows)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write COCO JSON: an object, or a results list for predictions that do not list all images."""
    from jaccard_eval.formats._coco.writer import write_file

    write_file(dataset, path, findings)
