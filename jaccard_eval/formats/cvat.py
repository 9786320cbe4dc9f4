"""CVAT for images and for video, XML 1.1: boxes of images, and tracks of boxes by frame."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Dataset
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, kinds_in
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector, numbers_of
from jaccard_eval.reading.xml import mention_unused, parse_xml, text_of
from jaccard_eval.text import pluralise, quoted_value

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from jaccard_eval.similarity.runs import IntArray

FORMAT = Format(
    name="cvat",
    summary="CVAT XML 1.1, of images or of tracks in a video; the file, or the folder that holds annotations.xml",
    source="https://docs.cvat.ai/docs/dataset_management/formats/format-cvat/",
    example="""<annotations>
  <version>1.1</version>
  <meta><task><labels><label><name>dog</name></label></labels></task></meta>
  <image id="0" name="street.jpg" width="640" height="480">
    <box label="dog" occluded="0" xtl="10.00" ytl="20.00" xbr="110.00" ybr="220.00" z_order="0"></box>
  </image>
</annotations>
""",
    carries=("images", "sizes", "names"),
    suffixes=(".xml",),
    shapes=("segm", "obb"),
    reads={"bbox": "box", "obb": "box with rotation", "segm": "polygon, mask", "keypoints": "skeleton"},
)

_ROOT = "annotations"
_FILE = "annotations.xml"  # as CVAT calls it in its archives
_CORNERS = ("xtl", "ytl", "xbr", "ybr")
_SIDES = ("width", "height")
_POLYGON, _MASK, _SKELETON = "polygon", "mask", "skeleton"
_LABELLED = 2.0  # how well a point is seen that annotators have placed
_KINDS = {
    "bbox": pattern(rb"<box"),
    "segm": pattern(rb"<(?:polygon|mask)"),
    "obb": pattern(rb'\srotation="(?!0+(?:\.0+)?")'),
    "keypoints": pattern(rb"<skeleton"),
}
_CROP = ("left", "top", "width", "height")
_SHAPES = (_POLYGON, _MASK, "polyline", "points", "ellipse", "cuboid", _SKELETON, "tag")
_FRAME_NAME = "frame_{:06d}"  # as CVAT names the images of a video
_FRAME_DIGITS = 18
NOT_XML = pattern("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # of XML 1.0
_WHOLE = pattern(r"-?\d{1,18}(\.0{1,18})?", re.ASCII)

Size = tuple[int, int]  # height and width of an image


def looks_like(peek: Peek) -> Likeness | None:
    """Rate the file, or annotations.xml in the folder, by its outermost element."""
    file = peek.at(peek.path / _FILE) if peek.is_folder else peek
    return Likeness.STRUCTURE if file.root == _ROOT else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a CVAT file to the draft."""
    file = path / _FILE if files.is_folder(path) else path
    root = parse_xml(file, _ROOT)
    reader = _Reader(file, draft)
    images = root.findall("image")
    # Tasks of a project have images of the same names, which lie in the folders of their subsets.
    repeated = {name for name, count in Counter(image.get("name", "") for image in images).items() if count > 1}
    for number, element in enumerate(images):
        subset = element.get("subset", "") if element.get("name", "") in repeated else ""
        reader.add_image(number, element, subset)
    # A video lists no frames but those with boxes, and one size for all of them.
    video = _size(*(text_of(root, f"meta//original_size/{side}") for side in _SIDES))
    tracks = root.findall("track")
    tasks = {track.get("task_id", "") for track in tracks}
    for number, track in enumerate(tracks):
        reader.add_track(number, track, video, f"{track.get('task_id', '')}/" if len(tasks) > 1 else "")
    for frame in sorted(reader.frames):
        reader.add_frame(frame, video)
    labels = root.iterfind("meta//labels/label")
    classes = [text_of(label, "name") for label in labels if not text_of(label, "parent")]  # points of skeletons have
    reader.collector.to_draft(encoding="xyxy", listed=not reader.frames, classes=classes, fields=_CORNERS)
    where = Where(draft.path)
    if reader.n_around:
        detail = f"read as the boxes around them: {pluralise(reader.n_around, 'shape', 'shapes')}"
        draft.findings.note("outline", where, detail)
    mention_unused([("occluded", reader.n_occluded)], where, draft.findings)
    if reader.n_outside:
        draft.ignored["outside"] += reader.n_outside
        detail = f"ignored {reader.n_outside:,} boxes of tracks: outside=1, the object is out of sight"
        draft.findings.note("track-outside", where, detail)


def iou_types(peek: Peek) -> set[str]:
    """Return what the file begins with: boxes, masks or both."""
    return kinds_in([peek.at(peek.path / _FILE) if peek.is_folder else peek], _KINDS)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write images with boxes, polygons and masks; oriented boxes as polygons of four corners."""
    from jaccard_eval.reading import writing
    from jaccard_eval.similarity.masks import Outlines
    from jaccard_eval.similarity.obb import Quads

    writing.require_pixels(dataset, "CVAT")
    writing.require_names(dataset, "CVAT", findings)
    writing.report_losses(dataset, path, findings, ("shapes", "sizes", "images", "names"))
    boxes, images, names = dataset.table, dataset.images, dataset.labels.names
    files = [images.name(row) for row in range(len(images))]
    broken = [name for name in (*files, *names) if NOT_XML.search(name) or name != name.strip() or not name]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (Where(dataset.path), f"{quoted_value(broken[row])} cannot stand in XML as it is"),
        fix="Rename it: no control characters, no spaces at the ends.",
    )
    shapes: object = boxes.shapes
    masks = writing.masks_in_images(dataset, path, "CVAT", findings) if isinstance(shapes, Outlines) else None
    findings.raise_errors()
    corners, exact = writing.exact_coords(boxes.xywh, "xyxy")
    drawn: list[Marked] = []
    for row, label in enumerate(boxes.label.tolist()):
        ring = shapes.corners[row] if isinstance(shapes, Quads) else None
        ring = writing.polygon_of(shapes, row) if isinstance(shapes, Outlines) else ring
        if ring is not None:
            points = ";".join(f"{x!r},{y!r}" for x, y in ring.tolist())
            drawn.append(Marked(label=names[label], tag=_POLYGON, place={"points": points}))
        elif masks is not None:
            drawn.append(Marked(label=names[label], tag=_MASK, place=_crop(writing.pixels_of(masks, row))))
        else:
            edges = dict(zip(_CORNERS, map(repr, corners[row].tolist()), strict=True))
            drawn.append(Marked(label=names[label], tag="box", place=edges))
    if shapes is None:
        writing.report_rounded(exact, path, findings)
    of_image: list[list[Marked]] = [[] for _ in files]
    for image, marked in zip(boxes.image.tolist(), drawn, strict=True):
        of_image[image].append(marked)
    pictures = zip(files, images.sizes.tolist(), of_image, strict=True)
    replace_file(path, to_xml(pictures, names).encode())


@dataclass(slots=True, kw_only=True)
class Marked:
    """What an annotator sees of an object: where it is, as attributes of its element, and a remark."""

    label: str
    tag: str = "box"
    place: Mapping[str, str]
    remark: str = ""


def to_xml(
    pictures: Iterable[tuple[str, Sequence[float], Sequence[Marked]]], names: Sequence[str], attribute: str = ""
) -> str:
    """Return images by name, size and objects as CVAT XML 1.1; each object has its remark as an attribute, if named.

    An attribute that the labels of the task lack is dropped by CVAT in silence.
    """
    from xml.etree import ElementTree as ET

    root = ET.Element(_ROOT)
    ET.SubElement(root, "version").text = "1.1"
    labels = ET.SubElement(ET.SubElement(ET.SubElement(root, "meta"), "task"), "labels")
    described = {"name": attribute, "mutable": "False", "input_type": "text", "default_value": "", "values": ""}
    for name in names:
        label = ET.SubElement(labels, "label")
        ET.SubElement(label, "name").text = in_xml(name)
        inner = ET.SubElement(label, "attributes")
        one = ET.SubElement(inner, "attribute") if attribute else inner
        for key, value in described.items() if attribute else ():
            ET.SubElement(one, key).text = value
    for number, (name, size, drawn) in enumerate(pictures):
        known = zip(_SIDES, size, strict=True)
        sides = {side: str(int(value)) for side, value in known if not math.isnan(value)}
        image = ET.SubElement(root, "image", {"id": str(number), "name": in_xml(name), **sides})
        for marked in drawn:
            about = {"label": in_xml(marked.label), "source": "file", "occluded": "0", **marked.place, "z_order": "0"}
            element = ET.SubElement(image, marked.tag, about)
            if attribute:
                ET.SubElement(element, "attribute", {"name": attribute}).text = in_xml(marked.remark)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def in_xml(text: str) -> str:
    """Return a text without the characters that XML 1.0 cannot hold."""
    return NOT_XML.sub("\ufffd", text)


def _crop(pixels: BoolArray) -> dict[str, str]:
    """Return the runs of a mask along the rows of the part that it is in."""
    from jaccard_eval.reading.writing import row_runs

    rows, columns = (np.flatnonzero(pixels.any(axis=axis)) for axis in (1, 0))
    top, left = (int(found[0]) if len(found) else 0 for found in (rows, columns))
    part = pixels[top : rows[-1] + 1, left : columns[-1] + 1] if len(rows) else pixels[:1, :1]
    sides = zip(_CROP, (left, top, part.shape[1], part.shape[0]), strict=True)
    return {"rle": ", ".join(map(str, row_runs(part))), **{name: str(side) for name, side in sides}}


class _Reader:
    """Takes the objects of images and tracks one by one."""

    def __init__(self, path: Path, draft: Draft) -> None:
        self.collector = RecordCollector(draft)
        self.frames: set[str] = set()
        self.n_occluded = self.n_outside = self.n_around = 0
        self._path, self._findings = str(path), draft.findings
        self._tags = ("box", _POLYGON, _MASK, *(() if self.collector.reads_masks else (_SKELETON,)))

    def add_image(self, number: int, element: Element, subset: str) -> None:
        """Add an image and its objects; the subset is a part of its name, if it is given."""
        name = "/".join(filter(None, (subset, element.get("name", ""))))
        size = _size(*(element.get(side, "") for side in _SIDES))
        if not element.get("name"):
            self._refuse(Where(self._path, f"image[{number}]"), "name", "is missing or empty", "field-missing")
        self.add_frame(name, size)
        place = f"image {quoted_value(name)}"
        for tag in self._tags:
            for at, box in enumerate(element.iterfind(tag)):
                self._add_object(name, box.get("label", ""), box, Where(self._path, f"{place}.{tag}[{at}]"), size)
        self._count_others(element)

    def add_frame(self, name: str, size: Size) -> None:
        """Add an image by its name."""
        self.collector.add_image(name, size=(size[1] or math.nan, size[0] or math.nan))

    def add_track(self, number: int, track: Element, size: Size, task: str) -> None:
        """Add the objects of a track, except in the frames in which they are out of sight; each task has its own."""
        for at, box in enumerate(box for tag in self._tags for box in track.iterfind(tag)):
            where, frame = Where(self._path, f"track[{number}].{box.tag}[{at}]"), box.get("frame", "")
            if box.get("outside") == "1":
                self.n_outside += 1
            elif frame.isascii() and frame.isdigit() and len(frame) <= _FRAME_DIGITS:
                self.frames.add(name := f"{task}{_FRAME_NAME.format(int(frame))}")
                self._add_object(name, track.get("label", ""), box, where, size)
            else:
                self._refuse(where, "frame", f"is {quoted_value(frame)}, expected a whole number")
        self._count_others(track)

    def _count_others(self, parent: Element) -> None:
        for child in parent:
            if child.tag in _SHAPES and child.tag not in self._tags:
                self.collector.count_shape(child.tag)

    def _refuse(self, where: Where, field: str, detail: str, code: str = "number-invalid") -> None:
        self._findings.error(code, replace(where, field=field), detail, fix="Export the file again.")

    def _add_object(self, image: str, label: str, box: Element, where: Where, size: Size) -> None:
        label = label.strip()
        if not label:
            self._refuse(where, "label", "is missing or empty", "field-missing")
        self.n_occluded += box.get("occluded") == "1"
        if box.tag == _MASK:
            edges = self._edges(box, where, size)
            if edges is not None and self.collector.reads_masks:
                self.collector.add_pixels(image, label, edges, size, where)
            elif edges is not None:
                left, top, width, height = (int(float(box.get(name, "0"))) for name in _CROP)
                self._add_around(image, label, Drawn(kind=_MASK), (left, top, left + width, top + height), where)
            return
        if box.tag == _SKELETON:
            found = {point.get("label", ""): self._polygon(point, where, least=1) for point in box.iterfind("points")}
            absent = {point.get("label", "") for point in box.iterfind("points") if point.get("outside") == "1"}
            points = {
                name: (*ring[:2], _LABELLED * (name not in absent)) for name, ring in found.items() if len(ring) == 2
            }
            placed = [point for point in points.values() if point[2]] or [*points.values()]
            if placed:
                xs, ys, _ = zip(*placed, strict=True)
                around = min(xs), min(ys), max(xs), max(ys)
                self._add_around(image, label, Drawn(points=points, kind=_SKELETON), around, where)
            return
        if box.tag == "box" and self.collector.reads_boxes and "rotation" not in box.attrib:
            self.collector.add_box(image, label, [box.get(corner, "") for corner in _CORNERS], where)
            return
        ring = self._polygon(box, where) if box.tag == _POLYGON else self._turned(box, where)
        if self.collector.reads_masks and ring:
            self.collector.add_polygons(image, label, [ring], replace(where, field="points"))
        elif ring:
            around = min(ring[::2]), min(ring[1::2]), max(ring[::2]), max(ring[1::2])
            is_other = box.tag == _POLYGON and len(ring) != 8 and not self.collector.reads_boxes
            drawn = Drawn(rings=[ring], kind=box.tag)
            if is_other:
                self.collector.add_drawn(image, label, drawn, where)  # no oriented box
            else:
                self._add_around(image, label, drawn, around, where, is_shape=box.tag == _POLYGON)

    def _add_around(
        self, image: str, label: str, drawn: Drawn, around: Sequence[float], where: Where, *, is_shape: bool = True
    ) -> None:
        """Add a shape with the box around it."""
        self.n_around += is_shape and self.collector.reads_boxes
        drawn.box = [*map(repr, around)]  # type: ignore[list-item]  # as the others, which are texts
        self.collector.add_drawn(image, label, drawn, where)

    def _polygon(self, box: Element, where: Where, least: int = 3) -> list[float]:
        """Return the corners of a polygon, which are written as ``x,y;x,y``; nothing where they cannot be used."""
        pairs = [pair.split(",") for pair in box.get("points", "").split(";")]
        texts = [number.strip() for pair in pairs for number in pair]
        numbers, bad = numbers_of(texts)
        problem = f"{quoted_value(texts[bad[0]])} is not a plain finite number" if len(bad) else ""
        if not problem and (any(len(pair) != 2 for pair in pairs) or len(pairs) < least):
            problem = f"has {len(pairs)} points; expected at least {least}, each x,y"
        if problem:
            self._refuse(where, "points", problem)
        ring: list[float] = [] if problem else numbers.tolist()
        return ring

    def _turned(self, box: Element, where: Where) -> list[float]:
        """Return the corners of a box after a turn about its centre, by degrees, clockwise."""
        texts = {name: box.get(name, "") for name in _CORNERS} | {"rotation": box.get("rotation") or "0"}
        numbers, bad = numbers_of([*texts.values()])
        for name in [*map([*texts].__getitem__, bad)]:
            told = f"{quoted_value(texts[name])} is not a plain finite number" if texts[name] else "is missing or empty"
            self._refuse(where, name, told)
        if len(bad):
            return []
        left, top, right, bottom, degrees = numbers.tolist()
        ring = np.array([[left, top], [left, bottom], [right, bottom], [right, top]])
        if degrees % 360:
            if self.collector.reads_boxes:
                self.collector.count_rotated()
            cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
            centre = np.array([left + right, top + bottom]) / 2
            ring = (ring - centre) @ np.array([[cos, sin], [-sin, cos]]) + centre
        corners: list[float] = ring.ravel().tolist()
        return corners

    def _edges(self, mask: Element, where: Where, size: Size) -> IntArray | None:
        """Return the runs of a mask, which are written along the rows of a crop; None where they cannot be used."""
        from jaccard_eval.reading.labelmaps import edges_of_rows

        crop, runs = [mask.get(name, "") for name in _CROP], [text.strip() for text in mask.get("rle", "").split(",")]
        wrong = next((name for name, text in zip(_CROP, crop, strict=True) if not _WHOLE.fullmatch(text)), "rle")
        odd = next((text for text in runs if not _WHOLE.fullmatch(text)), None)
        found: IntArray | str
        if wrong != "rle":
            found = f"{quoted_value(mask.get(wrong))} is not a whole number"
        elif odd is not None:
            found = f"{quoted_value(odd)} is not a whole number; expected lengths of runs: 3, 5, 12, ..."
        elif not all(size):
            wrong, found = "width", "the image has no width and height, which its masks need"
        else:
            found = edges_of_rows([*map(int, runs)], [int(float(text)) for text in crop], size)
        if isinstance(found, str):
            self._refuse(where, wrong, found)
            return None
        return found


def _size(width: str, height: str) -> Size:
    """Return the height and width of an image, zeros where they are not known."""
    texts = (height.strip(), width.strip())
    if not all(_WHOLE.fullmatch(text) and 0 < float(text) <= MAX_IMAGE_SIDE for text in texts):
        return 0, 0
    return int(float(texts[0])), int(float(texts[1]))
