"""BDD100K and Scalabel: a JSON list of frames with their labels, or the list of boxes of BDD's first benchmark.

Labels have boxes, polygons, masks (RLE) or the points of a pose; lines that are not closed have no area.

The corners of a box are its first and last pixel: as in Scalabel's own conversion to COCO, one is added to the latter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, kinds_in, rings_of
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, documents

FORMAT = Format(
    name="bdd100k",
    summary="BDD100K and Scalabel JSON: frames with labels: box2d, poly2d, rle, graph; one file, or one per image",
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
    reads={"bbox": "box2d", "segm": "rle, poly2d", "keypoints": "graph"},
)

_CORNERS = ("x1", "y1", "x2", "y2")
_FLAT = frozenset({"name", "timestamp", "category", "bbox", "score"})  # of a box in the first benchmark
_OTHER_SHAPES = ("box3d", "poly2d", "rle", "graph")
_KINDS = {
    "bbox": pattern(rb'"(?:box2d|bbox)"\s*:\s*[{\[]'),
    "segm": pattern(rb'"(?:rle"\s*:\s*\{|poly2d"\s*:\s*\[\s*[{\[])'),
    "keypoints": pattern(rb'"graph"\s*:\s*\{'),
}
_LABELLED = 2.0  # how well a point is seen that annotators have placed


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


def iou_types(peek: Peek) -> set[str]:
    """Return what the first labels have."""
    return kinds_in(peek.documents() if peek.is_folder else [peek], _KINDS)


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
        attributes = label.values.get("attributes")
        flags = attributes if isinstance(attributes, dict) else {}
        is_crowd = bool(flags.get("crowd") or flags.get("ignored"))  # as Scalabel's evaluation has both
        score = label.optional("score")
        if collector.reads_boxes and label.has("box2d"):
            box = _box(label)
            collector.add_box(image, label.text("category"), box, label.where, score=score, crowd=is_crowd)
            continue
        collector.add_drawn(image, label.text("category"), _drawn(label), label.where, score=score, crowd=is_crowd)


def _box(label: Record) -> list[float]:
    box = label.record("box2d")
    return _with_last_pixel([box.number(corner) for corner in _CORNERS])


def _drawn(label: Record) -> Drawn:
    """Return what a label draws."""
    kind = next((shape for shape in _OTHER_SHAPES if label.has(shape)), "label without a shape")
    drawn = Drawn(kind=kind, rle=label.values.get("rle"))
    if label.has("box2d"):
        drawn.box = _box(label)
    lines: Any = label.values.get("poly2d")
    if isinstance(lines, list) and lines and not isinstance(lines[0], dict):
        drawn.rings = rings_of(lines)  # of the first releases
    elif isinstance(lines, list):
        closed = [line for line in lines if isinstance(line, dict) and line.get("closed", True)]
        drawn.rings = [ring for line in closed for ring in rings_of(line.get("vertices"))]
    if label.has("graph"):
        nodes = list(label.record("graph").records("nodes"))
        names = [node.values.get("category") for node in nodes]
        keys = names if None not in names and len({*names}) == len(names) else range(len(nodes))
        seen = [node.optional("score", _LABELLED) for node in nodes]
        drawn.points = {
            key: (*node.numbers("location", 2), sight) for key, node, sight in zip(keys, nodes, seen, strict=True)
        }
    return drawn


def _with_last_pixel(corners: list[float]) -> list[float]:
    left, top, right, bottom = corners
    return [left, top, right + 1, bottom + 1]
