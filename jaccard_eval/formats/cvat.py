"""CVAT for images and for video, XML 1.1: boxes of images, and tracks of boxes by frame."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.reading.xml import mention_unused, parse_xml, text_of
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from jaccard_eval.similarity.masks import Outlines
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
)

_ROOT = "annotations"
_FILE = "annotations.xml"  # as CVAT calls it in its archives
_CORNERS = ("xtl", "ytl", "xbr", "ybr")
_SIDES = ("width", "height")
_POLYGON, _MASK = "polygon", "mask"
_CROP = ("left", "top", "width", "height")
_SHAPES = (_POLYGON, _MASK, "polyline", "points", "ellipse", "cuboid", "skeleton", "tag")
_FRAME_NAME = "frame_{:06d}"  # as CVAT names the images of a video
_FRAME_DIGITS = 18
_WHOLE = re.compile(r"-?\d{1,18}(\.0{1,18})?", re.ASCII)

Size = tuple[int, int]  # height and width of an image


def looks_like(peek: Peek) -> Likeness | None:
    """Rate the file, or annotations.xml in the folder, by its outermost element."""
    file = peek.at(peek.path / _FILE) if peek.is_folder else peek
    return Likeness.STRUCTURE if file.root == _ROOT else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a CVAT file to the draft."""
    file = path / _FILE if files.is_folder(path) else path
    root = parse_xml(file, _ROOT)
    tree = _Tree(file, draft.options.iou_type in MASKS)
    for element in root.iterfind("image"):
        tree.add_image(element)
    video = _size(*(text_of(root, f"meta//original_size/{side}") for side in _SIDES))
    for number, track in enumerate(root.iterfind("track")):
        tree.add_track(number, track, video)
    _check_names(tree, draft)
    _set_images(tree, root, draft)
    declared = [text_of(label, "name") for label in root.iterfind("meta//labels/label")]
    names = [name for name in dict.fromkeys((*declared, *sorted(set(tree.labels)))) if name]
    draft.set_classes(names, names)
    corners = _numbers(tree, tree.corners, _CORNERS, draft).reshape(-1, 4)
    draft.add_boxes(
        RawBoxes(
            image=tree.image,
            label=tree.labels,
            coords=_upright(tree, corners, draft),
            encoding="xyxy",
            units="px",
            shapes=_outlines(tree, corners, draft) if tree.reads_masks and not draft.findings.has_errors else None,
            place=tree.where,
        )
    )
    where = Where(draft.path)
    mention_unused([("occluded", tree.occluded)], where, draft.findings)
    if tree.outside:
        draft.ignored["outside"] += tree.outside
        detail = f"ignored {tree.outside:,} boxes of tracks: outside=1, the object is out of sight"
        draft.findings.note("track-outside", where, detail)
    if tree.shapes:
        draft.ignored["shape"] += tree.shapes.total()
        draft.n_shapeless += tree.shapes["tag"]
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tree.shapes.items()))
        fix = "Draw boxes, or export in a format that includes bounding boxes."
        read = "boxes"
        if tree.reads_masks:
            read, fix = "boxes, polygons and masks", "Draw polygons or masks."
        draft.findings.warning("shape-unused", where, f"ignored shapes other than {read}: {kinds}", fix=fix)


def iou_types(peek: Peek) -> set[str]:
    """Return what the file begins with: boxes, masks or both."""
    head = (peek.at(peek.path / _FILE) if peek.is_folder else peek).head
    kinds = ((b"<box", "bbox"), (b"<polygon", "segm"), (b"<mask", "segm"))
    found = {iou_type for tag, iou_type in kinds if tag in head}
    return found or {"bbox"}


@dataclass(slots=True)
class _Tree:
    """The content of a tree, as text: a row per image, and a row per box."""

    path: Path
    reads_masks: bool
    images: list[str] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)  # width and height of each image
    image: list[str] = field(default_factory=list)  # of each box
    labels: list[str] = field(default_factory=list)
    corners: list[str] = field(default_factory=list)  # four of each box
    rotation: list[str] = field(default_factory=list)
    record: list[str] = field(default_factory=list)  # place of each box
    rings: list[list[float]] = field(default_factory=list)  # corners of each polygon; of others none
    edges: list[IntArray | None] = field(default_factory=list)  # of each mask; of others none
    mask_sizes: list[Size] = field(default_factory=list)  # height and width of the image of each box
    occluded: int = 0
    outside: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    bad_values: list[tuple[Where, str]] = field(default_factory=list)

    def add_image(self, element: Element) -> None:
        """Add an image and its boxes."""
        name = element.get("name", "")
        self.images.append(name)
        self.sizes += [element.get(side, "") for side in _SIDES]
        size = _size(*self.sizes[-2:])
        for tag in self._tags:
            for number, box in enumerate(element.iterfind(tag)):
                self._add_box(name, box.get("label", ""), box, f"image {quoted_value(name)}.{tag}[{number}]", size)
        self._count_others(element)

    def add_track(self, number: int, track: Element, size: Size) -> None:
        """Add the boxes of a track, except in the frames in which its object is out of sight."""
        for place, box in enumerate(box for tag in self._tags for box in track.iterfind(tag)):
            record, frame = f"track[{number}].{box.tag}[{place}]", box.get("frame", "")
            if box.get("outside") == "1":
                self.outside += 1
            elif not (frame.isascii() and frame.isdigit() and len(frame) <= _FRAME_DIGITS):
                where = Where(str(self.path), record=record, field="frame")
                self.bad_values.append((where, f"is {quoted_value(frame)}, expected a whole number"))
            else:
                self._add_box(_FRAME_NAME.format(int(frame)), track.get("label", ""), box, record, size)
        self._count_others(track)

    def where(self, row: int, name: str | None = None) -> Where:
        """Return the place of a box."""
        return Where(str(self.path), record=self.record[row], field=name)

    @property
    def _tags(self) -> tuple[str, ...]:
        return ("box", _POLYGON, _MASK) if self.reads_masks else ("box",)

    def _count_others(self, parent: Element) -> None:
        self.shapes.update(child.tag for child in parent if child.tag in _SHAPES and child.tag not in self._tags)

    def _add_box(self, image: str, label: str, box: Element, record: str, size: Size) -> None:
        ring = self._ring(box.get("points", ""), record) if box.tag == _POLYGON else []
        edges = self._edges(box, record, size) if box.tag == _MASK else None
        if (box.tag == _POLYGON and not ring) or (box.tag == _MASK and edges is None):
            return
        self.edges.append(edges)
        self.mask_sizes.append(size)
        self.image.append(image)
        self.labels.append(label.strip())
        self.rings.append(ring)
        ends = (min(ring[::2]), min(ring[1::2]), max(ring[::2]), max(ring[1::2])) if ring else ()
        if edges is not None:
            from jaccard_eval.similarity.runs import Runs, offsets_of

            x, y, width, height = Runs(edges, offsets_of([len(edges)])).bounds(np.array([size]))[0].tolist()
            ends = (x, y, x + width, y + height)
        self.corners += map(repr, ends) if ends else [box.get(corner, "") for corner in _CORNERS]
        self.rotation.append(box.get("rotation") or "0")
        self.record.append(record)
        self.occluded += box.get("occluded") == "1"

    def _ring(self, text: str, record: str) -> list[float]:
        """Return the corners of a polygon, which are written as ``x,y;x,y``; nothing where they cannot be used."""
        from jaccard_eval.reading.tabular.columns import parse_numbers

        pairs = [pair.split(",") for pair in text.split(";")]
        texts = [number.strip() for pair in pairs for number in pair]
        numbers, bad = parse_numbers(np.array(texts, dtype=np.object_))
        problem = ""
        if len(bad):
            problem = f"{quoted_value(texts[bad[0]])} is not a plain finite number"
        elif any(len(pair) != 2 for pair in pairs) or len(pairs) < 3:
            problem = f"has {len(pairs)} points; expected at least 3, each x,y"
        if problem:
            self.bad_values.append((Where(str(self.path), record=record, field="points"), problem))
        ring: list[float] = [] if problem else numbers.tolist()
        return ring

    def _edges(self, mask: Element, record: str, size: Size) -> IntArray | None:
        """Return the runs of a mask, which are written along the rows of a crop; None where they cannot be used."""
        from jaccard_eval.reading.mask_pixels import edges_of_rows

        crop = [mask.get(name, "") for name in _CROP]
        runs = [text.strip() for text in mask.get("rle", "").split(",")]
        wrong = next((name for name, text in zip(_CROP, crop, strict=True) if not _WHOLE.fullmatch(text)), None)
        if wrong:
            problem = (wrong, f"{quoted_value(mask.get(wrong))} is not a whole number")
        elif not all(map(_WHOLE.fullmatch, runs)):
            odd = next(text for text in runs if not _WHOLE.fullmatch(text))
            problem = ("rle", f"{quoted_value(odd)} is not a whole number; expected lengths of runs: 3, 5, 12, ...")
        elif not all(size):
            problem = ("width", "the image has no width and height, which its masks need")
        else:
            edges = edges_of_rows([int(run) for run in runs], [int(float(text)) for text in crop], size)
            if not isinstance(edges, str):
                return edges
            problem = ("rle", edges)
        self.bad_values.append((Where(str(self.path), record=record, field=problem[0]), problem[1]))
        return None


def _size(width: str, height: str) -> Size:
    """Return the height and width of an image, zeros where they are not known."""
    texts = (height.strip(), width.strip())
    if not all(_WHOLE.fullmatch(text) and float(text) <= MAX_IMAGE_SIDE for text in texts):
        return 0, 0
    return int(float(texts[0])), int(float(texts[1]))


def _outlines(tree: _Tree, corners: FloatArray, draft: Draft) -> Outlines:
    """Return the masks of all objects, whose areas are those of their pixels; boxes are turned as they are drawn."""
    from jaccard_eval.reading.outlines import OutlineDraft  # most files are read for their boxes

    masks = OutlineDraft()
    rows = zip(tree.rings, tree.edges, tree.mask_sizes, corners, tree.rotation, strict=True)
    for ring, edges, size, box, degrees in rows:
        if edges is None:
            masks.add_polygons([ring or _turned(box, float(degrees))])
        else:
            masks.add_pixels(edges, *size)
    outlines, problems = masks.build()
    for row, problem in problems:
        draft.findings.error("segmentation-invalid", tree.where(row, "points"), problem)
    return replace(outlines, counts_pixels=np.ones(len(outlines), dtype=np.bool_))


def _turned(box: FloatArray, degrees: float) -> list[float]:
    """Return the corners of a box (4,) after a turn about its centre, clockwise."""
    left, top, right, bottom = box
    ring = np.array([[left, top], [left, bottom], [right, bottom], [right, top]])
    if degrees % 360:
        cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        centre = (box[:2] + box[2:]) / 2
        ring = (ring - centre) @ np.array([[cos, sin], [-sin, cos]]) + centre
    corners: list[float] = ring.ravel().tolist()
    return corners


def _set_images(tree: _Tree, root: Element, draft: Draft) -> None:
    """Name the images; a video lists no frames but those with boxes, and one size for all of them."""
    from jaccard_eval.reading.tabular.columns import parse_numbers  # not needed to look for a format

    frames = sorted(set(tree.image) - set(tree.images))
    sizes = [*tree.sizes, *([text_of(root, f"meta//original_size/{side}") for side in _SIDES] * len(frames))]
    keys = [*tree.images, *frames]
    numbers = parse_numbers(np.array([text or "0" for text in sizes], dtype=np.object_))[0].reshape(-1, 2)
    known = ((numbers > 0) & (numbers <= MAX_IMAGE_SIDE)).all(axis=1, keepdims=True)
    table = np.where(known, numbers, np.nan)
    draft.fill_sizes(table, keys)
    draft.set_images(keys, sizes=table, listed=not frames)


def _check_names(tree: _Tree, draft: Draft) -> None:
    unnamed = [row for row, label in enumerate(tree.labels) if not label]
    fix = "Export the file again."
    draft.findings.add_rows(
        Severity.ERROR, "field-missing", unnamed, lambda row: (tree.where(row, "label"), "is missing or empty"), fix=fix
    )
    n_nameless = tree.images.count("")
    if n_nameless:
        detail = f"is missing or empty in {n_nameless:,} images"
        draft.findings.error("field-missing", Where(str(tree.path), record="image", field="name"), detail, fix=fix)
    rows = range(len(tree.bad_values))
    draft.findings.add_rows(Severity.ERROR, "number-invalid", rows, tree.bad_values.__getitem__, fix=fix)


def _numbers(tree: _Tree, texts: list[str], names: tuple[str, ...], draft: Draft) -> FloatArray:
    """Return the numbers of attributes, which stand in `texts` box by box."""
    from jaccard_eval.reading.tabular.columns import parse_numbers

    numbers, bad = parse_numbers(np.array(texts, dtype=np.object_))

    def describe(index: int) -> tuple[Where, str]:
        where = tree.where(index // len(names), names[index % len(names)])
        return where, f"{quoted_value(texts[index])} is not a plain finite number" if texts[
            index
        ] else "is missing or empty"

    fix = "Write plain decimal numbers with a point."
    draft.findings.add_rows(Severity.ERROR, "number-invalid", bad, describe, fix=fix)
    return numbers


def _upright(tree: _Tree, corners: FloatArray, draft: Draft) -> FloatArray:
    """Return the boxes (n, 4) around boxes that are turned about their centre, by degrees."""
    degrees = _numbers(tree, tree.rotation, ("rotation",), draft)
    turned = np.flatnonzero(degrees % 360 != 0)
    if not len(turned):
        return corners
    if not tree.reads_masks:
        detail = f"{len(turned):,} rotated boxes are read as their bounding boxes"
        draft.findings.note("outline", Where(draft.path), detail)
    angle = np.radians(degrees[turned])
    cos, sin = np.abs(np.cos(angle)), np.abs(np.sin(angle))
    centre = (corners[turned, :2] + corners[turned, 2:]) / 2  # (n_turned, 2)
    width, height = (corners[turned, 2:] - corners[turned, :2]).T
    half = np.stack((width * cos + height * sin, width * sin + height * cos), axis=1) / 2
    hull = corners.copy()
    hull[turned] = np.concatenate((centre - half, centre + half), axis=1)
    return hull
