"""COCO JSON from a data set: ground truth and predictions, one record a line, every number at full precision."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.dataset import Dataset, LabelMap
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._coco.verified import LVIS, verified_lists
from jaccard_eval.formats._coco.written_shapes import ShapeTexts, shape_texts
from jaccard_eval.reading.writing import UNIVERSE, json_rows, report_losses, require_pixels
from jaccard_eval.similarity.keypoints import Keypoints

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
        lines = _results(dataset, with_names=bool(numbered) or dataset.truth is None)
        data = "".join(f"{line}\n" for line in lines).encode() if in_lines else _array(lines)
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
    verified = verified_lists(dataset)
    for row, (key, name) in enumerate(zip(images.keys, images.file_names, strict=True)):
        size = images.sizes[row].tolist()
        known = {side: value for side, value in zip(("width", "height"), size, strict=True) if not math.isnan(value)}
        # Whole numbers of pixels are written as such.
        sides = {side: int(value) if value.is_integer() else value for side, value in known.items()}
        lists = {field: lists[row] for field, lists in verified.items()}
        described.append(_encoded({"id": key} | ({} if name is None else {"file_name": name}) | sides | lists))
    sections = {"images": described, "annotations": _annotations(dataset)}
    if dataset.role == "gt" or labels.named:
        named = zip(labels.keys, labels.names, dataset.facts.frequency or labels.names, strict=True)
        sections["categories"] = [
            _encoded(
                ({"id": key, "name": name} if labels.named else {"id": key})
                | ({"frequency": frequency} if dataset.facts.frequency and frequency else {})
            )
            for key, name, frequency in named
        ]
    parts = (b'"%b": ' % name.encode() + _array(lines).rstrip() for name, lines in sections.items())
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def _annotations(dataset: Dataset) -> list[str]:
    """Return a record per box; predictions have a score, and the flags that tools expect of an annotation."""
    boxes = dataset.boxes
    texts = shape_texts(dataset)
    # Poses without labelled points are ignored by what they have.
    ignored = boxes.ignore & (not isinstance(boxes.shapes, Keypoints))
    rare = zip(ignored.tolist(), boxes.group_of.tolist(), strict=True)
    flags = [(_IGNORE if ignore else "") + (_GROUP if group else "") for ignore, group in rare]
    columns = _records(dataset, texts), texts.areas, boxes.crowd.tolist(), flags
    return [
        f'{{"id":{row},{record}{area},"iscrowd":{crowd:d}{more}}}'
        for row, (record, area, crowd, more) in enumerate(zip(*columns, strict=True), start=1)
    ]


_IGNORE, _GROUP = ',"ignore":1', ',"is_group_of":1'


def _results(dataset: Dataset, *, with_names: bool) -> list[str]:
    """Return a record per prediction, `with_names` that there are of its image and class."""
    records = _records(dataset, shape_texts(dataset))
    if not with_names:
        return [f"{{{record}}}" for record in records]
    files, labels = dataset.images.file_names, dataset.labels
    of_image = ["" if name is None else "," + _encoded({"file_name": name})[1:-1] for name in files]
    of_class = ["," + _encoded({"category_name": name})[1:-1] if labels.named else "" for name in labels.names]
    rows = zip(records, dataset.boxes.image.tolist(), dataset.boxes.label.tolist(), strict=True)
    return [f"{{{record}{of_image[image]}{of_class[label]}}}" for record, image, label in rows]


def _records(dataset: Dataset, texts: ShapeTexts) -> Iterable[str]:
    """Yield what ground truth and predictions share, as it stands between the braces."""
    boxes = dataset.boxes
    images = [_encoded({"image_id": key})[1:-1] for key in dataset.images.keys]
    labels = [_encoded({"category_id": key})[1:-1] for key in dataset.labels.keys]
    rows = boxes.image.tolist(), boxes.label.tolist(), texts.boxes, texts.fields
    if boxes.score is None:
        return (f"{images[image]},{labels[label]}{box}{shape}" for image, label, box, shape in zip(*rows, strict=True))
    return (
        f'{images[image]},{labels[label]}{box}{shape},"score":{score}'
        for image, label, box, shape, score in zip(*rows, json_rows(boxes.score[:, None]), strict=True)
    )


def _encoded(record: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(record).decode()
    except UnicodeEncodeError:
        # Lone surrogates of odd file names are not UTF-8; the slower library writes them as escapes.
        return json.dumps(record)


def _array(lines: Sequence[str]) -> bytes:
    """Return a list with a record a line."""
    return b"[\n" + ",\n".join(lines).encode() + b"\n]\n" if lines else b"[]\n"
