"""Suspects for the tools of annotators: all objects of the images that have any, each suspect with its reason.

Sources: CVAT's XML format 1.1; Label Studio's "Import pre-annotated data"; COCO with `attributes`, as CVAT writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from jaccard_eval.atomic import replace_file, require_free
from jaccard_eval.data.alignment import common_sizes, only_images
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.sides import Sides
from jaccard_eval.errors import UsageError
from jaccard_eval.features.labels import MISSING, Suspect
from jaccard_eval.features.labels.review import corrected, rows_of, truth_of
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.formats import cvat, labelstudio, write_dataset
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise, quoted_value

ATTRIBUTE = "suspect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A box for an annotator, in px and within its image; a suspect has a text and a score."""

    label: str
    corners: tuple[float, ...]
    text: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image with suspects, and all of its objects."""

    name: str
    width: int
    height: int
    shapes: tuple[Shape, ...]


def annotate(asked: Sequence[str], sides: Sides, suspects: Sequence[Suspect], *, image_root: str) -> FindingLog:
    """Write suspects to files, each asked for as FORMAT=PATH; return what was ignored."""
    findings = FindingLog()
    targets = [target_of(text) for text in asked]
    for _, path in targets:
        require_free(path, [Path(sides.gt.path)], replace=False)
    pictures, n_outside = _pictures(sides, suspects)
    if n_outside:
        detail = f"{pluralise(n_outside, 'box', 'boxes')} outside of its image ignored in the annotators' files"
        findings.warning("write-loss", Where(sides.gt.path, field="box"), detail)
    if sides.aligned.gt_table.shapes is not None:
        detail = "masks, keypoints and rotated boxes are written as their upright bounding boxes"
        findings.warning("write-loss", Where(sides.gt.path, field="box"), detail)
    for name, path in targets:
        if name == "yolo":
            findings.extend(_write_yolo(sides, suspects, path))
            continue
        for place, data in WRITERS[name](path, pictures, sides.aligned.class_names, image_root).items():
            replace_file(place, data)
    return findings


def target_of(text: str) -> tuple[str, Path]:
    """Read FORMAT=PATH."""
    name, equals, path = text.partition("=")
    if not equals or not path or name not in FORMATS:
        raise UsageError(
            f"annotate: expected FORMAT=PATH with a format of {', '.join(FORMATS)}; got {quoted_value(text)}"
        )
    return name, Path(path)


def _pictures(sides: Sides, suspects: Sequence[Suspect]) -> tuple[list[Picture], int]:
    """Return the images with suspects, those with the surest first, and how many boxes lie outside of their image."""
    aligned = sides.aligned
    rows = {name: row for row, name in reversed([*enumerate(aligned.image_names)])}
    sizes = common_sizes(sides.pred, aligned.placement.images)
    of_row = {suspect.row: suspect for suspect in suspects if suspect.kind != MISSING}
    pictures, n_outside = [], 0
    for name in dict.fromkeys(suspect.image for suspect in suspects):
        row = rows[name]
        if aligned.units != "px" or not np.isfinite(sizes[row]).all():
            raise UsageError(f"annotators' files need the sizes of images, and that of {quoted_value(name)} is unknown")
        shapes = [
            _shape(
                aligned.class_names[aligned.gt_table.label[at]],
                _corners(aligned.gt_table, at),
                of_row.get(at),
                sizes[row],
            )
            for at in np.flatnonzero(aligned.gt_table.image == row).tolist()
        ]
        shapes += [
            _shape(suspect.class_name, (suspect.xmin, suspect.ymin, suspect.xmax, suspect.ymax), suspect, sizes[row])
            for suspect in suspects
            if suspect.kind == MISSING and suspect.image == name
        ]
        kept = tuple(shape for shape in shapes if _has_area(shape))
        n_outside += len(shapes) - len(kept)
        width, height = (round(float(side)) for side in sizes[row])
        pictures.append(Picture(name=name, width=width, height=height, shapes=kept))
    return pictures, n_outside


def _corners(boxes: BoxTable, row: int) -> tuple[float, ...]:
    left, top, width, height = boxes.xywh[row].tolist()
    return left, top, left + width, top + height


def _shape(label: str, corners: tuple[float, ...], suspect: Suspect | None, size: Any) -> Shape:
    clipped = tuple(np.clip(corners, 0.0, [*size, *size]).tolist())
    if suspect is None:
        return Shape(label=label, corners=clipped)
    text = f"{suspect.kind}: {suspect.reason}"
    return Shape(label=label, corners=clipped, text=text, score=suspect.score)


def _has_area(shape: Shape) -> bool:
    left, top, right, bottom = shape.corners
    return right > left and bottom > top


def _cvat(path: Path, pictures: Sequence[Picture], names: Sequence[str], _: str) -> dict[Path, bytes]:
    """Return CVAT XML 1.1, and the labels next to it: an attribute that these lack is dropped in silence."""

    def marked(shape: Shape) -> cvat.Marked:
        place = dict(zip(("xtl", "ytl", "xbr", "ybr"), (f"{edge:.2f}" for edge in shape.corners), strict=True))
        return cvat.Marked(label=shape.label, place=place, remark=shape.text)

    images = ((one.name, (one.width, one.height), [*map(marked, one.shapes)]) for one in pictures)
    attribute = {"name": ATTRIBUTE, "mutable": False, "input_type": "text", "default_value": "", "values": [""]}
    constructor = [{"name": name, "type": "rectangle", "attributes": [attribute]} for name in names]
    labels = json.dumps(constructor, indent=1, ensure_ascii=False) + "\n"
    return {path: _bytes(cvat.to_xml(images, names, ATTRIBUTE)), path.with_suffix(".labels.json"): _bytes(labels)}


def _label_studio(path: Path, pictures: Sequence[Picture], names: Sequence[str], image_root: str) -> dict[Path, bytes]:
    """Return Label Studio's tasks with predictions, in per cent of the image, and the configuration next to it."""
    drawn = (
        (f"{image_root}{one.name}", [_region(one, shape, number) for number, shape in enumerate(one.shapes, start=1)])
        for one in pictures
    )
    tasks = labelstudio.to_tasks(drawn, kind="predictions", model="jaccard-eval labels")
    view = ET.Element("View")
    ET.SubElement(view, "Image", {"name": "image", "value": "$image"})
    labels = ET.SubElement(view, "RectangleLabels", {"name": "label", "toName": "image"})
    for name in names:
        ET.SubElement(labels, "Label", {"value": cvat.in_xml(name)})
    ET.indent(view)
    return {path: tasks, path.with_suffix(".config.xml"): _bytes(ET.tostring(view, encoding="unicode") + "\n")}


def _bytes(text: str) -> bytes:
    return text.encode(errors="backslashreplace")  # half of a surrogate pair is escaped as JSON escapes it


def _region(picture: Picture, shape: Shape, number: int) -> dict[str, Any]:
    left, top, right, bottom = shape.corners
    across, down = 100 / picture.width, 100 / picture.height
    place = {"x": left * across, "y": top * down, "width": (right - left) * across, "height": (bottom - top) * down}
    value = {key: round(share, 4) for key, share in place.items()} | {"rotation": 0}
    size = (picture.width, picture.height)
    told = {"meta": {"text": [shape.text]}, "score": shape.score} if shape.text else {}
    return {**labelstudio.region(f"s{number}", "rectanglelabels", value, shape.label, size), **told}


def _coco(path: Path, pictures: Sequence[Picture], names: Sequence[str], _: str) -> dict[Path, bytes]:
    """Return COCO JSON whose suspects have an attribute."""
    number_of = {name: number for number, name in enumerate(names, start=1)}
    annotations: list[dict[str, Any]] = []
    for image, picture in enumerate(pictures, start=1):
        for shape in picture.shapes:
            left, top, right, bottom = shape.corners
            box = [round(edge, 4) for edge in (left, top, right - left, bottom - top)]
            about = {"image_id": image, "category_id": number_of[shape.label], "area": round(box[2] * box[3], 4)}
            told = {"iscrowd": 0, "attributes": {ATTRIBUTE: shape.text}}
            annotations.append({"id": len(annotations) + 1, **about, "bbox": box, **told})
    document = {
        "images": [
            {"id": image, "file_name": picture.name, "width": picture.width, "height": picture.height}
            for image, picture in enumerate(pictures, start=1)
        ],
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for name, number in number_of.items()],
    }
    return {path: _bytes(json.dumps(document, ensure_ascii=False) + "\n")}


WRITERS: dict[str, Callable[[Path, Sequence[Picture], Sequence[str], str], dict[Path, bytes]]] = {
    "cvat": _cvat,
    "label-studio": _label_studio,
    "coco": _coco,
}


FORMATS = (*WRITERS, "yolo")


def _write_yolo(sides: Sides, suspects: Sequence[Suspect], path: Path) -> Any:
    """Write the labels of the images with suspects, with what is missing: YOLO has no place for reasons."""
    aligned = sides.aligned
    missing = [suspect for suspect in suspects if suspect.kind == MISSING]
    boxes = corrected(aligned.gt_table, missing, rows_of(sides, missing), sides)
    named = {suspect.image for suspect in suspects}
    kept = np.array([name in named for name in aligned.image_names], dtype=np.bool_)
    return write_dataset(only_images(truth_of(sides, boxes), kept), path, format_name="yolo")
