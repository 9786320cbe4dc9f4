"""COCO JSON from a data set: ground truth and predictions, one record a line, every number at full precision."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import ABSENT, NOT_EXHAUSTIVE, Dataset, Key, LabelMap
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._coco.strict import LVIS, VERIFIED
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.writing import UNIVERSE, Column, json_rows, report_losses, require_pixels, rows_of
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import strings_of_runs


@dataclass(frozen=True, slots=True)
class ShapeTexts:
    """What the record of each box has of its shape, as it stands between braces, a comma before each field."""

    boxes: Sequence[Column]  # the field of the box; empty where the shape alone is written
    fields: Sequence[Column]
    areas: Sequence[Column]  # the field of the area; empty where it is unknown


def shape_texts(dataset: Dataset) -> ShapeTexts:
    """Return the fields of boxes, shapes and areas: numbers with all their digits, runs as compressed strings."""
    boxes = dataset.table
    shapes: object = boxes.shapes
    plain = shapes.corners.reshape(-1, 8) if isinstance(shapes, Quads) else boxes.xywh
    written = ShapeTexts((',"bbox":[', plain, "]"), (), (',"area":', boxes.area[:, None]))
    if isinstance(shapes, Keypoints):
        return replace(written, fields=_poses(shapes, boxes))
    if not isinstance(shapes, Outlines):
        return written
    areas = [f',"area":{area}' for area in json_rows(boxes.area[:, None])]
    sizes = dataset.images.sizes[boxes.image][:, ::-1]  # height, width
    counted = shapes.counts_pixels
    # The area of these is that of their pixels, which are known where the size of the image is.
    (known,) = np.nonzero(counted & (~np.isnan(sizes).any(axis=1) | ~shapes.has_polygons))
    own = np.where(shapes.has_polygons[known, None], sizes[known], shapes.masks.sizes[known])
    filled = shapes.take(known).in_images(own.astype(np.int64))
    for row in np.flatnonzero(counted).tolist():
        areas[row] = ""
    for row, area in zip(known.tolist(), json_rows(filled.areas()[:, None]), strict=True):
        areas[row] = f',"area":{area}'
    masks = _outlines(shapes)
    if dataset.role == "pred":
        # With a box, its area would count as that of the prediction; without one pycocotools needs runs.
        pairs = zip(counted.tolist(), json_rows(boxes.xywh), strict=True)
        known_boxes = ["" if is_counted else f',"bbox":[{box}]' for is_counted, box in pairs]
        written = replace(written, boxes=[_each(known_boxes)])
        for row, text in zip(known.tolist(), _runs(filled), strict=True):
            masks[row] = text
    return replace(written, fields=[',"segmentation":', _each(masks)], areas=[_each(areas)])


def _each(texts: Sequence[str]) -> Column:
    """Return a column of a text per row."""
    return texts, np.arange(len(texts))


def _poses(poses: Keypoints, boxes: BoxTable) -> list[Column]:
    points: list[Column] = [',"keypoints":[', poses.points.reshape(len(poses), -1), "]"]
    if boxes.score is not None:
        return points
    # What does not count has none, whatever its points are, and what counts has one at least.
    labelled = np.count_nonzero(poses.points[:, :, 2] > 0, axis=1)
    counted = np.where(boxes.ignore, 0, np.maximum(labelled, 1))
    return [*points, ',"num_keypoints":', (list(map(str, range(poses.points.shape[1] + 1))), counted)]


def _outlines(shapes: Outlines) -> list[str]:
    """Return polygons as they are, and the others as runs."""
    corners = json_rows(shapes.corners)
    rings = [f"[{','.join(corners[start:stop])}]" for start, stop in pairwise(shapes.rings.tolist())]
    texts = [f"[{','.join(rings[start:stop])}]" for start, stop in pairwise(shapes.parts.tolist())]
    (coded,) = np.nonzero(~shapes.has_polygons)
    for row, text in zip(coded.tolist(), _runs(shapes.masks.take(coded)), strict=True):
        texts[row] = text
    return texts


def _runs(masks: Masks) -> list[str]:
    if not len(masks):
        return []
    strings = strings_of_runs(masks.runs, masks.sizes.prod(axis=1))
    encode = msgspec.json.encode
    return [
        encode({"size": size, "counts": text.decode("ascii")}).decode()
        for size, text in zip(masks.sizes.tolist(), strings, strict=True)
    ]


TRUTH = ("crowd", "ignore", "group_of", "area", "shapes", *UNIVERSE)
LINE_SUFFIXES = (".jsonl", ".ndjson")


def write_file(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a data set as COCO JSON.

    Ground truth is one object. Predictions are a results list where the ids are those of the ground truth: aligned to
    it, or read as numbers; else an object, which lists the images that its ids are of; JSON Lines if the suffix
    asks for them. A suffix ``.gz`` compresses.
    """
    require_pixels(dataset, "COCO JSON")
    dataset, numbered = _with_integer_ids(dataset)
    if numbered:
        findings.note("write-ids", Where(str(path)), f"{numbered} are numbered from 1, in the order of names")
    in_lines = path.name.removesuffix(".gz").lower().endswith(LINE_SUFFIXES)
    is_list = dataset.truth is not None or not (dataset.images.listed or numbered)
    if dataset.role == "pred" and (in_lines or is_list):
        # The ground truth has the images and the names of the classes.
        report_losses(dataset, path, findings, ("shapes", *(() if dataset.truth is None else UNIVERSE)))
        if numbered and dataset.truth is None:
            detail = f"{numbered} are texts, but a list of results needs the ids of the ground truth"
            fix = Fix.missing(
                "Pass the ground truth with {gt}, or write a .json file, which lists the images.", gt=None
            )
            findings.error("write-ids", Where(str(path)), detail, fix=fix)
        findings.raise_errors()
        with_names = bool(numbered) or dataset.truth is None
        rows = _results(dataset, with_names=with_names, end="}\n" if in_lines else "},\n")
        data = rows if in_lines else _array(rows)
    else:
        lists = ("verified",) if dataset.facts.usual_protocol == LVIS else ()
        report_losses(dataset, path, findings, (*TRUTH, *lists) if dataset.role == "gt" else ("shapes", *UNIVERSE))
        findings.raise_errors()
        data = _object(dataset)
    replace_file(path, gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)


def _with_integer_ids(dataset: Dataset) -> tuple[Dataset, str]:
    """Return a data set whose images and classes are known by numbers, as other tools refuse texts; and what is new.

    The ids that a COCO file had are left alone.
    """
    images, labels, numbered = dataset.images, dataset.labels, []
    if dataset.key_format == "coco":
        return dataset, ""
    if any(isinstance(key, str) for key in images.keys):
        keys, names = tuple(range(1, len(images) + 1)), tuple(images.name(row) for row in range(len(images)))
        images = replace(images, keys=keys, file_names=names)
        numbered.append("image ids")
    if any(isinstance(key, str) for key in labels.keys):
        labels = LabelMap(tuple(range(1, len(labels) + 1)), labels.names, named=True)
        numbered.append("class ids")
    return replace(dataset, images=images, labels=labels), " and ".join(numbered)


def _object(dataset: Dataset) -> bytes:
    images, labels = dataset.images, dataset.labels
    described = []
    verified = _verified_lists(dataset)
    for row, (key, name) in enumerate(zip(images.keys, images.file_names, strict=True)):
        size = images.sizes[row].tolist()
        known = {side: value for side, value in zip(("width", "height"), size, strict=True) if not math.isnan(value)}
        # Whole numbers of pixels are written as such.
        sides = {side: int(value) if value.is_integer() else value for side, value in known.items()}
        lists = {field: lists[row] for field, lists in verified.items()}
        described.append(_encoded({"id": key} | ({} if name is None else {"file_name": name}) | sides | lists))
    sections = {"images": _lines(described), "annotations": _annotations(dataset)}
    if dataset.role == "gt" or labels.named:
        named = zip(labels.keys, labels.names, dataset.facts.frequency or labels.names, strict=True)
        sections["categories"] = _lines(
            _encoded(
                ({"id": key, "name": name} if labels.named else {"id": key})
                | ({"frequency": frequency} if dataset.facts.frequency and frequency else {})
            )
            for key, name, frequency in named
        )
    parts = (b'"%b": %b' % (name.encode(), _array(rows)[:-1]) for name, rows in sections.items())
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def _annotations(dataset: Dataset) -> bytes:
    """Return a record per box; predictions have a score, and the flags that tools expect of an annotation."""
    boxes = dataset.table
    texts = shape_texts(dataset)
    # Poses without labelled points are ignored by what they have.
    ignored = boxes.ignore & (not isinstance(boxes.shapes, Keypoints))
    flags = ((',"iscrowd":0', ',"iscrowd":1'), boxes.crowd), (("", _IGNORE), ignored), (("", _GROUP), boxes.group_of)
    numbers = range(1, len(boxes) + 1)
    has_ids = dataset.truth is not None and len(dataset.annotation_ids) == len(boxes)
    ids = map(_plain, dataset.annotation_ids) if has_ids else map(str, numbers)
    columns = '{"id":', _each(list(ids)), ",", *_records(dataset, texts), *texts.areas, *flags, "},\n"
    return rows_of(columns, len(boxes), json=True)[0]


def _plain(key: object) -> str:
    return json.dumps(key if isinstance(key, str) else int(str(key)))


_IGNORE, _GROUP = ',"ignore":1', ',"is_group_of":1'


def _results(dataset: Dataset, *, with_names: bool, end: str) -> bytes:
    """Return a record per prediction, `with_names` that there are of its image and class."""
    files, labels, boxes = dataset.images.file_names, dataset.labels, dataset.table
    columns: list[Column] = ["{", *_records(dataset, shape_texts(dataset))]
    if with_names:
        of_image = ["" if name is None else "," + _encoded({"file_name": name})[1:-1] for name in files]
        of_class = ["," + _encoded({"category_name": name})[1:-1] if labels.named else "" for name in labels.names]
        columns += [(of_image, boxes.image), (of_class, boxes.label)]
    return rows_of([*columns, end], len(boxes), json=True)[0]


def _records(dataset: Dataset, texts: ShapeTexts) -> list[Column]:
    """Return what ground truth and predictions share, as it stands between the braces."""
    boxes = dataset.table
    images = [_encoded({"image_id": key})[1:-1] for key in dataset.images.keys]
    labels = [_encoded({"category_id": key})[1:-1] for key in dataset.labels.keys]
    score: list[Column] = [] if boxes.score is None else [',"score":', boxes.score[:, None]]
    return [(images, boxes.image), ",", (labels, boxes.label), *texts.boxes, *texts.fields, *score]


def _encoded(record: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(record).decode()
    except UnicodeEncodeError:
        # Lone surrogates of odd file names are not UTF-8; the slower library writes them as escapes.
        return json.dumps(record)


def _lines(records: Iterable[str]) -> bytes:
    return "".join(f"{record},\n" for record in records).encode()


def _array(rows: bytes) -> bytes:
    """Return a list of records, of which each has a line with a comma at its end."""
    return b"[\n%b\n]\n" % rows[:-2] if rows else b"[]\n"


def _verified_lists(dataset: Dataset) -> dict[str, list[list[Key]]]:
    """Return the lists of classes of each image, as a file has them; nothing where none were read."""
    rows, keys = dataset.facts.images, dataset.labels.keys
    if rows is None or dataset.facts.usual_protocol != LVIS:
        return {}
    found: dict[str, list[list[Key]]] = {}
    for field, fact in zip(VERIFIED, (ABSENT, NOT_EXHAUSTIVE), strict=True):
        found[field] = [[] for _ in range(len(dataset.images))]
        for image, label in zip(*(column.tolist() for column in rows.of(fact)), strict=True):
            found[field][image].append(keys[label])
    return found
