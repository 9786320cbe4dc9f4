"""BDD100K and Scalabel: a JSON list of frames with their labels, or the list of boxes of BDD's first benchmark.

The corners of a box are its first and last pixel: as in Scalabel's own conversion to COCO, one is added to the latter.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, documents

FORMAT = Format(
    name="bdd100k",
    summary="BDD100K and Scalabel JSON: frames with labels that have a box2d, in one file or one file per image",
    source="https://doc.bdd100k.com/format.html and scalabel/label of https://github.com/scalabel/scalabel",
    example="""[
  {
    "name": "b1c66a42.jpg",
    "timestamp": 1000,
    "labels": [{"id": "0", "category": "car", "box2d": {"x1": 10, "y1": 20, "x2": 109, "y2": 219}}]
  }
]
""",
    carries=("images", "sizes", "scores", "crowd"),
    suffixes=(".json",),
)

_CORNERS = ("x1", "y1", "x2", "y2")
_FLAT = frozenset({"name", "timestamp", "category", "bbox", "score"})  # of a box in the first benchmark
_OTHER_SHAPES = ("box3d", "poly2d", "rle", "graph")


def looks_like(peek: Peek) -> Likeness | None:
    """Return how sure it is that documents hold frames with labels."""
    return peek.rate_documents(_rate)


def _rate(peek: Peek) -> Likeness | None:
    if peek.item_keys >= _FLAT:
        return Likeness.STRUCTURE
    keys = peek.item_keys or peek.top_keys
    is_frames = {"name", "labels"} <= keys or "frames" in keys
    if not is_frames:
        return None
    return Likeness.STRUCTURE if b'"box2d"' in peek.head else Likeness.CONTENT


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of frames to the draft."""
    collector = RecordCollector(draft)
    seen: set[str] = set()  # images of the first benchmark's boxes, which name theirs each
    listed = True
    for _, file, value in documents(path, draft):
        where = Where(str(file))
        if not isinstance(value, list):
            _add_document(collector, Record.of(value, where, draft.findings))
            continue
        for entry in Record.list_of(value, where, draft.findings):
            if not entry.has("bbox"):
                _add_frame(collector, entry, entry.text("name"), UNKNOWN_SIZE, "labels")
                continue
            listed = False
            image = entry.text("name")
            if image not in seen:
                seen.add(image)
                collector.add_image(image)
            coords = _with_last_pixel(entry.numbers("bbox", 4))
            collector.add_box(image, entry.text("category"), coords, entry.where, score=entry.optional("score"))
    collector.to_draft(encoding="xyxy", listed=listed)


def _add_document(collector: RecordCollector, outer: Record) -> None:
    """Add the frames of a data set with its configuration, or the one image of an early label file."""
    config = outer.record("config") if outer.has("config") else None
    size = config.record("imageSize").size() if config is not None and config.has("imageSize") else UNKNOWN_SIZE
    for frame in outer.records("frames"):
        if outer.has("name"):
            _add_frame(collector, frame, outer.text("name"), size, "objects")
        else:
            _add_frame(collector, frame, frame.text("name"), size, "labels")


def _add_frame(collector: RecordCollector, frame: Record, image: str, size: tuple[float, float], field: str) -> None:
    collector.add_image(image, size=frame.record("size").size() if frame.has("size") else size)
    # Frames without objects have null, or no labels at all.
    for label in frame.records(field) if frame.has(field) else ():
        if not label.has("box2d"):
            collector.count_shape(next((shape for shape in _OTHER_SHAPES if label.has(shape)), "label without a shape"))
            continue
        box = label.record("box2d")
        coords = _with_last_pixel([box.number(corner) for corner in _CORNERS])
        attributes = label.values.get("attributes")
        flags = attributes if isinstance(attributes, dict) else {}
        is_crowd = bool(flags.get("crowd") or flags.get("ignored"))  # as Scalabel's evaluation has both
        score = label.optional("score")
        collector.add_box(image, label.text("category"), coords, label.where, score=score, crowd=is_crowd)


def _with_last_pixel(corners: list[float]) -> list[float]:
    left, top, right, bottom = corners
    return [left, top, right + 1, bottom + 1]
