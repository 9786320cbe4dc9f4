"""LabelMe: a JSON file next to each image, with a list of shapes; rectangles are two opposite corners."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.imagekeys import is_image_name, without_suffix
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import IMAGE_FOLDER
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn
from jaccard_eval.reading.json import is_finite_number
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, document_records
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from jaccard_eval.similarity.runs import IntArray

FORMAT = Format(
    name="labelme",
    summary="LabelMe JSON: a file per image, or a folder: rectangles, polygons, masks, rotations, points of a group",
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
    reads={
        "bbox": "rectangle",
        "obb": "rotation",
        "segm": "polygon, mask",
        "keypoints": "point, with the group_id of its object",
    },
)


_POLYGON = "polygon"
_LABELLED = 2.0  # how well a point is seen that annotators have placed
_COMPARED = {
    b"rectangle": "bbox", b"polygon": "segm", b"mask": "segm", b"rotation": "obb", b"point": "keypoints",
}  # fmt: skip
_KIND = pattern(rb'"shape_type"\s*:\s*"(\w+)"')


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its keys, and a folder by its files."""
    return peek.rate_documents(_rate)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and rectangles of one file or a folder of them."""
    collector = RecordCollector(draft)
    claims: dict[str, list[tuple[Path, str]]] = {}  # documents by the image that they name
    for key, record in document_records(path, draft):
        is_sized = record.has("imageWidth") and record.has("imageHeight")
        size = (record.number("imageWidth"), record.number("imageHeight")) if is_sized else UNKNOWN_SIZE
        name = record.text("imagePath") if record.has("imagePath") else ""
        # LabelMe writes paths relative to the file, on Windows with backslashes.
        file_name = name.replace("\\", "/").rpartition("/")[2]
        document = Path(record.where.path)
        if file_name:
            claims.setdefault(str(document.parent / without_suffix(file_name)), []).append((document, name))
        collector.add_image(key, file_name=file_name or None, size=size)
        if collector.reads_masks:
            sized = np.array([size])
            draft.fill_sizes(sized, [key])
            _add_masks(collector, key, record, sized[0])
            continue
        _add_shapes(collector, key, record, size)
    for image, documents in claims.items():
        _refuse_copies(image, documents, draft)
    collector.to_draft(encoding="xyxy", listed=False)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first documents have: boxes, masks or both."""
    kinds = {kind for document in peek.documents() for kind in _KIND.findall(document.head)}
    found = {iou_type for kind, iou_type in _COMPARED.items() if kind in kinds}
    # Points that belong to no object have no class.
    return found - {"keypoints"} if "bbox" not in found else found


@dataclass(slots=True)
class _Parts:
    """What one object is made of: polygons, and the runs of masks."""

    where: Where
    rings: list[list[float]] = field(default_factory=list)
    edges: list[IntArray] = field(default_factory=list)
    score: float = math.nan


def _add_shapes(collector: RecordCollector, key: str, record: Record, size: tuple[float, float]) -> None:
    """Add objects as boxes, oriented boxes or poses: points of the group of a rectangle are its pose."""
    objects: dict[tuple[str, str], Drawn] = {}
    places: dict[tuple[str, str], Where] = {}
    scores: dict[tuple[str, str], float] = {}
    points: dict[str, dict[str, tuple[float, float, float]]] = {}
    used = set[str]()
    for at, shape in enumerate(record.records("shapes")):
        # Files before 3.0 name no type, and mean polygons.
        kind = shape.text("shape_type") if shape.has("shape_type") else _POLYGON
        group = str(shape.values["group_id"]) if shape.has("group_id") else ""
        if kind == "point" and group:
            spots = shape.entries("points")
            for name in [*spots.values][:1]:
                x, y = spots.numbers(name, 2)
                points.setdefault(group, {})[shape.text("label")] = (x, y, _LABELLED)
            continue
        if kind == "rectangle" and collector.reads_boxes:
            collector.add_box(key, shape.text("label"), shape.corners("points"), shape.where, score=_score(shape))
            used.add(group)
            continue
        own = (shape.text("label"), group if group and kind == _POLYGON else f"shapes[{at}]")
        drawn = objects.setdefault(own, Drawn(kind=kind))
        places.setdefault(own, shape.where)
        scores.setdefault(own, _score(shape))
        if kind == "rectangle":
            drawn.box = shape.corners("points")
            drawn.kind = group or kind
        elif kind in (_POLYGON, "rotation"):
            corners = shape.entries("points")
            ring = shape.ring([corners.numbers(name, 2) for name in corners.values])
            drawn.rings = [*drawn.rings, *([ring] if ring else [])]
        elif kind == "mask":
            drawn.box = shape.corners("points")
    for (label, _), drawn in objects.items():
        if drawn.box is not None and drawn.kind in points:
            used.add(drawn.kind)
            drawn.points = points[drawn.kind]
        collector.add_drawn(key, label, drawn, places[label, _], score=scores[label, _])
    for group in points.keys() - used:
        for _ in points[group]:
            collector.count_shape("point")


def _add_masks(collector: RecordCollector, key: str, record: Record, size: FloatArray) -> None:
    """Add polygons, rectangles and masks as masks; those of one label and group are parts of one object."""
    from jaccard_eval.similarity.runs import Runs, combined, offsets_of, runs_of_polygons

    objects: dict[tuple[str, str], _Parts] = {}
    for at, shape in enumerate(record.records("shapes")):
        kind = shape.text("shape_type") if shape.has("shape_type") else "polygon"
        if kind not in (_POLYGON, "rectangle", "mask", "rotation"):
            collector.count_shape(kind)
            continue
        label = shape.text("label")
        group = str(shape.values["group_id"]) if shape.has("group_id") else f"shapes[{at}]"
        ring: list[float] = []
        edges = None
        if kind == "mask":
            edges = _edges(shape, size)
        elif kind == "rectangle":
            left, top, right, bottom = shape.corners("points")
            ring = [left, top, left, bottom, right, bottom, right, top]
        else:
            points = shape.entries("points")
            ring = shape.ring([points.numbers(name, 2) for name in points.values])
        if edges is not None or (ring and all(map(math.isfinite, ring))):
            parts = objects.setdefault((label, group), _Parts(shape.where, score=_score(shape)))
            parts.rings += [ring] if ring else []
            parts.edges += [] if edges is None else [edges]
    for (label, _), parts in objects.items():
        if not parts.edges:
            collector.add_polygons(key, label, parts.rings, parts.where, score=parts.score)
            continue
        width, height = map(int, size.tolist())
        every = parts.edges
        if parts.rings:
            corners = np.array([value for ring in parts.rings for value in ring]).reshape(-1, 2)
            rings = offsets_of([len(ring) // 2 for ring in parts.rings])
            drawn = runs_of_polygons(corners, rings, np.array([0, len(parts.rings)]), np.array([[height, width]]))
            every = [*every, drawn.edges]
        masks = Runs(np.concatenate(every), offsets_of([len(edges) for edges in every]))
        union = combined(masks, np.zeros(len(masks), dtype=np.int64), 1)
        collector.add_pixels(key, label, union.edges, (height, width), parts.where, score=parts.score)


def _score(shape: Record) -> float:
    """Return the score that X-AnyLabeling writes for what a model found; NaN where there is none."""
    score: Any = shape.values.get("score")
    return float(score) if is_finite_number(score) else math.nan


def _edges(shape: Record, size: FloatArray) -> IntArray | None:
    """Return the runs of a mask: a PNG image in base64 of the pixels from the first point to the second one."""
    from jaccard_eval.reading.labelmaps import edges_of_crop, pixels_of_base64

    (left, top, right, bottom), text = shape.corners("points"), shape.text("mask")
    if not text or not math.isfinite(left + top + right + bottom):
        return None
    if not np.isfinite(size).all():
        fix = IMAGE_FOLDER
        shape.error("size-unknown", "mask", "the width and height of the image are unknown, which masks lie in", fix)
        return None
    try:
        pixels = pixels_of_base64(text, replace(shape.where, field="mask"))
    except DataError as error:
        shape.findings.extend(error.findings)
        return None
    # As in LabelMe, points are cut to whole pixels, and the last one belongs to the mask.
    x, y = int(left), int(top)
    wanted = int(right) - x + 1, int(bottom) - y + 1
    if pixels.shape[::-1] != wanted:
        found = "{} x {}".format(*pixels.shape[::-1])
        detail = f"has {found} pixels, but its points span {wanted[0]} x {wanted[1]} (width x height)"
        shape.error("segmentation-invalid", "mask", detail)
        return None
    edges = edges_of_crop(pixels, x, y, (int(size[1]), int(size[0])))
    if isinstance(edges, str):
        shape.error("segmentation-invalid", "points", edges)
        return None
    return edges


def _refuse_copies(image: str, documents: list[tuple[Path, str]], draft: Draft) -> None:
    """Report documents of an image that has one of its own name: copies would count its objects once more.

    A document whose own image is there was made from the other as a template, and still names that image.
    """
    strangers = [(document, name) for document, name in documents if str(document.with_suffix("")) != image]
    if len(strangers) == len(documents):
        return
    for document, name in strangers:
        places = {document.parent, (document.parent / name.replace("\\", "/")).parent}
        names = (
            path.name for place in places for path in files.scan_folder(place, is_image_name, files.MAX_ENTRIES)[0]
        )
        if document.stem not in map(without_suffix, names):
            detail = f"the image of {quoted_value(f'{Path(image).name}.json')}: a copy?"
            fix = "Delete the copy, or name its own image."
            draft.findings.error("label-twice", Where(str(document), field="imagePath"), detail, fix=fix)


def _rate(document: Peek) -> Likeness | None:
    keys = document.top_keys
    has_image = not keys.isdisjoint(("imagePath", "imageData", "imageHeight"))
    is_labelme = has_image or keys >= {"shapes", "version"} or keys >= {"shapes", "flags"}
    return Likeness.STRUCTURE if is_labelme else None
