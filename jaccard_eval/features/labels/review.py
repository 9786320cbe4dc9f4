"""What people judged of suspects: read from a file, taken out of the list, and written into a new ground truth.

Suspects are also written for the tools of annotators, each with its reason, among all objects of their images.
Sources: CVAT's XML format 1.1; Label Studio's "Import pre-annotated data"; COCO with `attributes`, as CVAT writes it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from jaccard_eval.atomic import replace_file, require_free
from jaccard_eval.data.alignment import Sides, common_sizes, only_images
from jaccard_eval.data.boxtable import FLAGS, BoxTable, freeze
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import BOXES, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.features.labels import (
    BOX,
    CLASS,
    DUPLICATE,
    MISSING,
    SIDES,
    SPURIOUS,
    SUSPICIONS,
    Gain,
    LabelsResult,
    Suspect,
)
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.formats import cvat, iou_types, labelstudio, opened, write_dataset, written_formats
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import match_sides
from jaccard_eval.reading.files import read_bytes, read_text
from jaccard_eval.similarity.keypoints import Keypoints, other_sides
from jaccard_eval.text import pluralise, quoted_value

VERDICTS = ACCEPTED, REJECTED = "accepted", "rejected"
NEEDED = ("kind", "image", "class", "suggested", "xmin", "ymin", "xmax", "ymax", "object")

Key = tuple[str, ...]


def key_of(kind: str, image: str, label: str, box: Sequence[float], obj: str) -> Key:
    """Return what a suspect is known by from one list to the next: its object, or of a missing one its place."""
    return (kind, image, obj) if obj else (kind, image, label, *(f"{edge:.1f}" for edge in box))


def suspect_key(suspect: Suspect) -> Key:
    """Return the key of a suspect."""
    corners = (suspect.xmin, suspect.ymin, suspect.xmax, suspect.ymax)
    return key_of(suspect.kind, suspect.image, suspect.class_name, corners, suspect.object)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row of a review: its verdict on a suspect."""

    word: str  # one of `VERDICTS`
    suspect: Suspect
    where: Where

    @property
    def opinion(self) -> str:
        """The verdict, and the class that was accepted."""
        has_class = self.word == ACCEPTED and self.suspect.kind == CLASS
        return f"{self.word} as {self.suspect.suggested}" if has_class else self.word


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The verdicts of all reviewers: where they agree, and where they do not."""

    verdict_of: Mapping[Key, str]
    accepted: tuple[Suspect, ...]
    findings: FindingLog


def read_reviewed(paths: Sequence[Path]) -> Reviewed:
    """Read lists with a column of verdicts, of as many reviewers; where two disagree, nothing is decided."""
    given: dict[Key, list[Verdict]] = {}
    for path in paths:
        for verdict in _verdicts(path):
            given.setdefault(suspect_key(verdict.suspect), []).append(verdict)
    agreed, findings = {}, FindingLog()
    for key, verdicts in given.items():
        opinions = {verdict.opinion: verdict for verdict in verdicts}
        first = verdicts[0]
        if len(opinions) == 1:
            agreed[key] = first
            continue
        other = next(verdict for verdict in verdicts if verdict.opinion != first.opinion)
        suspect, name = first.suspect, quoted_value(first.suspect.image)
        findings.warning(
            "labels-disputed",
            first.where,
            f"{suspect.kind} {suspect.class_name} on {name} is {first.opinion}, and {other.opinion} in {other.where}",
            fix="It stays in the list and changes nothing. Agree on one verdict, and write it in both files.",
        )
    accepted = tuple(verdict.suspect for verdict in agreed.values() if verdict.word == ACCEPTED)
    return Reviewed({key: verdict.word for key, verdict in agreed.items()}, accepted, findings)


def _listed(path: Path, more: str = "") -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a list of suspects."""
    head, *body = list(csv.reader(read_text(path).splitlines())) or [[]]
    lacks = [name for name in NEEDED if name not in head]
    if lacks:
        raise UsageError(f"{path}: expected the columns of labels.csv{more}; {', '.join(lacks)} missing")
    return head, body


def read_suspects(path: Path) -> list[Suspect]:
    """Read a list of suspects as labels.csv has them; verdicts are ignored."""
    head, body = _listed(path)
    return [_suspect(path, number, dict(zip(head, row, strict=False))) for number, row in enumerate(body, start=2)]


def _verdicts(path: Path) -> list[Verdict]:
    """Read one list. The column of verdicts may have any name: its cells are "accepted", "rejected" or empty."""
    head, body = _listed(path, " and one of verdicts")
    own = [k for k, name in enumerate(head) if name not in (*NEEDED, "score", "reason", "note")]
    found = list[Verdict]()
    for number, row in enumerate(body, start=2):
        cells = dict(zip(head, row, strict=False))
        words = [row[k].strip().lower() for k in own if k < len(row) and row[k].strip()]
        verdicts = [word for word in words if word in VERDICTS]
        if words and not verdicts:
            raise UsageError(f"{path}:{number}: expected accepted or rejected, got {quoted_value(words[0])}")
        if not verdicts:
            continue
        found.append(Verdict(verdicts[0], _suspect(path, number, cells), Where(str(path), line=number)))
    if not found:
        raise UsageError(f"{path}: no row is accepted or rejected. Add a column with these words.")
    return found


def _suspect(path: Path, number: int, cells: Mapping[str, str]) -> Suspect:
    kind = cells.get("kind", "")
    if kind not in SUSPICIONS:
        raise UsageError(f"{path}:{number}: kind is {quoted_value(kind)}; expected one of {', '.join(SUSPICIONS)}")
    corners, score = [math.nan] * 4, 0.0
    try:
        score = float(cells.get("score") or 0)
        corners = [float(cells[name]) for name in ("xmin", "ymin", "xmax", "ymax")]
        becomes = [float(word) for word in cells["suggested"].split()] if kind == BOX else corners
    except ValueError:
        becomes = []
    if len(becomes) != 4 or not np.isfinite([*corners, *becomes, score]).all():
        raise UsageError(f"{path}:{number}: expected four numbers for the box, and for what is suggested for it")
    return Suspect(
        kind=kind,
        image=cells["image"],
        class_name=cells["class"],
        suggested=cells["suggested"],
        score=score,
        xmin=corners[0],
        ymin=corners[1],
        xmax=corners[2],
        ymax=corners[3],
        reason=cells.get("reason", ""),
        object=cells.get("object", ""),
        becomes=tuple(becomes),
    )


def without_judged(result: LabelsResult, verdict_of: Mapping[Key, str], most: int | None) -> LabelsResult:
    """Return a list without what was judged, and at most so many of each kind."""
    kept, counts = list[Suspect](), dict.fromkeys(SUSPICIONS, 0)
    unlisted = dict(result.unlisted)
    for suspect in result.suspects:
        if suspect_key(suspect) in verdict_of:
            continue
        counts[suspect.kind] += 1
        if most is None or counts[suspect.kind] <= most:
            kept.append(suspect)
        else:
            unlisted[suspect.kind] = unlisted.get(suspect.kind, 0) + 1
    return replace(result, suspects=tuple(kept), unlisted=unlisted)


def gain_of(
    sides: Sides,
    protocol: Protocol,
    accepted: Sequence[Suspect],
    others: Iterable[Suspect],
    verdict_of: Mapping[Key, str],
) -> Gain:
    """Measure AP as labels are, with what was accepted, and with as many other changes that follow the model.

    The last is the control: AP also rises where right labels are changed to what the model predicts. It takes what was
    rejected first, then the suspects that are least probable.
    """
    require_boxes(sides, accepted)
    pool = sorted(others, key=lambda other: (verdict_of.get(suspect_key(other)) != REJECTED, other.score))
    pool = [other for other in pool if verdict_of.get(suspect_key(other)) != ACCEPTED]
    control = list[Suspect]()
    for kind in SUSPICIONS:
        n = sum(suspect.kind == kind for suspect in accepted)
        control += [other for other in pool if other.kind == kind][:n]
    values = []
    for chosen in ((), accepted, control):
        table = corrected(sides.aligned.gt_table, chosen, rows_of(sides, chosen), sides)
        metrics = match_sides(replace(sides, aligned=replace(sides.aligned, gt=table)), protocol)
        values.append(float(metrics.value(MetricRef.parse("AP")).value))
    return Gain(accepted=len(accepted), before=values[0], after=values[1], control=values[2], controls=len(control))


def require_boxes(sides: Sides, accepted: Iterable[Suspect]) -> None:
    """Refuse to correct by a box what is compared by another shape, which a box does not replace."""
    odd = next((suspect for suspect in accepted if suspect.kind in (BOX, MISSING)), None)
    if odd is not None and sides.aligned.gt_table.shapes is not None:
        raise UsageError(
            f"a suspect of kind {odd.kind} on image {quoted_value(odd.image)} is accepted, and what is suggested is a"
            " box: masks, keypoints and rotated boxes have to be drawn. Reject it here and correct it in a tool of"
            " annotators, or compare boxes (iou_type bbox)."
        )


def rows_of(sides: Sides, suspects: Iterable[Suspect]) -> list[int]:
    """Return the row of each annotation among those aligned, -1 of what is missing."""
    source, ids = sides.aligned.gt_table.source, sides.gt.annotation_ids
    row_of = {str(ids[at] if len(ids) else at): row for row, at in enumerate(source.tolist())}
    rows = []
    for suspect in suspects:
        if suspect.kind != MISSING and suspect.object not in row_of:
            raise UsageError(f"{sides.gt.path} has no annotation {quoted_value(suspect.object)} ({suspect.kind})")
        rows.append(-1 if suspect.kind == MISSING else row_of[suspect.object])
    return rows


def corrected(gt: BoxTable, suspects: Sequence[Suspect], rows: Sequence[int], sides: Sides) -> BoxTable:
    """Return annotations with each suspicion treated as true."""
    images = {name: row for row, name in reversed([*enumerate(sides.aligned.image_names)])}
    classes = {name: row for row, name in enumerate(sides.aligned.class_names)}
    label, xywh, area, kept = gt.label.copy(), gt.xywh.copy(), gt.area.copy(), np.ones(len(gt), dtype=np.bool_)
    added, turned = list[tuple[int, int, tuple[float, ...]]](), list[int]()
    for suspect, row in zip(suspects, rows, strict=True):
        if suspect.kind in (CLASS, MISSING) and suspect.suggested not in classes:
            raise UsageError(f"{sides.gt.path} has no class {quoted_value(suspect.suggested)}")
        box = _xywh(suspect.becomes)
        if suspect.kind == CLASS:
            label[row] = classes[suspect.suggested]
        elif suspect.kind == BOX:
            xywh[row], area[row] = box, box[2] * box[3]
        elif suspect.kind == MISSING:
            if suspect.image not in images:
                raise UsageError(f"{sides.gt.path} has no image {quoted_value(suspect.image)}")
            added.append((images[suspect.image], classes[suspect.suggested], box))
        elif suspect.kind == SIDES:
            turned.append(row)
        else:
            kept[row] = False
    shapes = gt.shapes
    if turned and isinstance(shapes, Keypoints):
        points = shapes.points.copy()
        points[turned] = shapes.take(np.array(turned)).ordered(_order(sides)).points
        shapes = Keypoints(points)
    changed = freeze(replace(gt, label=label, xywh=xywh, area=area, shapes=shapes)).take(kept)
    if not added or changed.shapes is not None:
        return changed
    image, of_class, boxes = zip(*added, strict=True)
    more = BoxTable.from_arrays(image, of_class, boxes, encoding="xywh")
    plain: Any = {name: getattr(changed, name) for name in ("image_names", "class_names")}
    flags: Any = {name: np.zeros(len(more), dtype=np.bool_) for name in FLAGS}
    source = np.arange(len(more)) + int(gt.source.max(initial=-1)) + 1
    return BoxTable.concat([changed, replace(more, source=source, **flags, **plain)])


def _order(sides: Sides) -> tuple[int, ...]:
    """Return the points of the poses with left and right exchanged."""
    shapes = sides.aligned.gt_table.shapes
    n = shapes.points.shape[1] if isinstance(shapes, Keypoints) else 0
    order = other_sides(sides.gt.point_names, n)
    if order is None:
        raise UsageError(f"{sides.gt.path} has no poses with points of a left and a right side (kind {SIDES})")
    return order


def _xywh(corners: Sequence[float]) -> tuple[float, ...]:
    left, top, right, bottom = corners
    return left, top, right - left, bottom - top


def write_corrected(path: Path, sides: Sides, accepted: Sequence[Suspect], *, force: bool = False) -> str:
    """Write the ground truth with what was accepted and nothing else changed; return what was done."""
    source = Path(sides.gt.path)
    if sides.gt.format != "coco" and sides.gt.format in written_formats():
        require_boxes(sides, accepted)
        if iou_types(opened(sides.gt.path, sides.gt.format)) != {BOXES}:
            raise UsageError(f"{sides.gt.path} has shapes besides boxes, which would not be written again")
        boxes = corrected(sides.aligned.gt_table, accepted, rows_of(sides, accepted), sides)
        write_dataset(truth_of(sides, boxes), path, inputs=[source], replace=force, lossy=False)
        return _told(accepted)
    if sides.gt.format != "coco" or not len(sides.gt.annotation_ids) or source.is_dir():
        raise UsageError(
            f"corrections are written to COCO files whose annotations have ids, or to {', '.join(written_formats())};"
            f" {sides.gt.path} is {sides.gt.format}. Convert it first: jaccard-eval convert {sides.gt.path} gt.json"
        )
    require_free(path, [source], replace=force)
    rows_of(sides, accepted)  # whatever names no annotation is reported before anything is written
    document: dict[str, Any] = json.loads(read_bytes(source))
    categories = {str(item.get("name")): item["id"] for item in document["categories"]}
    images = {str(item.get("file_name", item["id"])): item["id"] for item in document["images"]}
    by_object = {suspect.object: suspect for suspect in accepted if suspect.object}
    annotations = list[dict[str, Any]]()
    for annotation in document["annotations"]:
        suspect = by_object.get(str(annotation["id"]))
        if suspect is None:
            annotations.append(annotation)
        elif suspect.kind == CLASS:
            annotations.append(annotation | {"category_id": _known(categories, suspect.suggested, "class", source)})
        elif suspect.kind == BOX:
            box = [round(edge, 4) for edge in _xywh(suspect.becomes)]
            # A polygon of the former box would contradict it.
            kept = {key: value for key, value in annotation.items() if key != "segmentation"}
            annotations.append(kept | {"bbox": box, "area": round(box[2] * box[3], 4)})
        elif suspect.kind == SIDES:
            points = annotation["keypoints"]
            annotations.append(
                annotation | {"keypoints": [points[3 * at + k] for at in _order(sides) for k in range(3)]}
            )
    last = max((item["id"] for item in document["annotations"] if isinstance(item["id"], int)), default=0)
    missing = [suspect for suspect in accepted if suspect.kind == MISSING]
    for number, suspect in enumerate(missing, start=last + 1):
        box = [round(edge, 4) for edge in _xywh(suspect.becomes)]
        named = {
            "image_id": _known(images, suspect.image, "image", source),
            "category_id": _known(categories, suspect.suggested, "class", source),
        }
        annotations.append({"id": number, **named, "bbox": box, "area": round(box[2] * box[3], 4), "iscrowd": 0})
    document["annotations"] = annotations
    # Half of a surrogate pair is escaped as JSON escapes it.
    replace_file(path, json.dumps(document, ensure_ascii=False).encode(errors="backslashreplace"))
    return _told(accepted)


def truth_of(sides: Sides, boxes: BoxTable) -> Dataset:
    """Return the ground truth with other boxes, to be written in its own format."""
    aligned = sides.aligned
    if aligned.class_names != sides.gt.labels.names:
        raise UsageError("labels can be written again with all classes alone. Remove classes and maps of classes.")
    table = replace(aligned.placement.images.table, sizes=common_sizes(sides.pred, aligned.placement.images))
    return replace(sides.gt, images=table, boxes=boxes, units=aligned.units)


def _told(accepted: Sequence[Suspect]) -> str:
    added = sum(suspect.kind == MISSING for suspect in accepted)
    gone = sum(suspect.kind in (DUPLICATE, SPURIOUS) for suspect in accepted)
    return f"{pluralise(len(accepted), 'correction')}, of which {added} added and {gone} removed"


def _known(known: Mapping[str, Any], name: str, what: str, source: Path) -> Any:
    if name not in known:
        raise UsageError(f"{source} has no {what} {quoted_value(name)}")
    return known[name]


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
