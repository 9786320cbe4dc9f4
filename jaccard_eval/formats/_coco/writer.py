"""COCO JSON from a data set: ground truth and predictions, one record a line, every number at full precision."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog
from jaccard_eval.reading.writing import report_losses, require_pixels

TRUTH = ("crowd", "ignore", "area", "sizes", "images", "names")
OBJECT_RESULTS = ("sizes", "images", "names")
LINE_SUFFIXES = (".jsonl", ".ndjson")

Record = dict[str, Any]


def write_file(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a data set as COCO JSON.

    Ground truth is one object. Predictions are a results list; an object where the data set lists all of its images;
    JSON Lines where the suffix says so. A suffix ``.gz`` compresses.
    """
    require_pixels(dataset, "COCO JSON")
    in_lines = path.name.removesuffix(".gz").lower().endswith(LINE_SUFFIXES)
    if dataset.role == "pred" and (in_lines or not dataset.images.listed):
        report_losses(dataset, path, findings, ())
        findings.raise_errors()
        data = _joined(_results(dataset), in_lines=in_lines)
    else:
        report_losses(dataset, path, findings, TRUTH if dataset.role == "gt" else OBJECT_RESULTS)
        findings.raise_errors()
        data = _object(dataset)
    replace_file(path, gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)


def _object(dataset: Dataset) -> bytes:
    images, labels = dataset.images, dataset.labels
    described: list[Record] = []
    for key, name, size in zip(images.keys, images.file_names, images.sizes.tolist(), strict=True):
        known = {side: value for side, value in zip(("width", "height"), size, strict=True) if not math.isnan(value)}
        # Whole numbers of pixels are written as such.
        sides = {side: int(value) if value.is_integer() else value for side, value in known.items()}
        described.append({"id": key} | ({} if name is None else {"file_name": name}) | sides)
    sections: dict[str, Iterable[Record]] = {"images": described, "annotations": _annotations(dataset)}
    if dataset.role == "gt" or labels.named:
        named = ({"id": key, "name": name} for key, name in zip(labels.keys, labels.names, strict=True))
        sections["categories"] = named if labels.named else [{"id": key} for key in labels.keys]
    parts = (b'"%b": ' % name.encode() + _joined(records).rstrip() for name, records in sections.items())
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def _annotations(dataset: Dataset) -> Iterable[Record]:
    """Yield one record per box; predictions have a score, and the flags that tools expect of an annotation."""
    boxes = dataset.boxes
    columns = zip(_records(dataset), boxes.area.tolist(), boxes.crowd.tolist(), boxes.ignore.tolist(), strict=True)
    for row, (record, area, crowd, ignore) in enumerate(columns, start=1):
        flags = {"ignore": 1} if ignore else {}
        yield {"id": row} | record | {"area": area, "iscrowd": int(crowd)} | flags


def _results(dataset: Dataset) -> Iterable[Record]:
    """Yield one record per prediction, with the names that the data set has beside ids."""
    files, names = dataset.images.file_names, dataset.labels.names
    rows = zip(_records(dataset), dataset.boxes.image.tolist(), dataset.boxes.label.tolist(), strict=True)
    for record, image, label in rows:
        file = {} if files[image] is None else {"file_name": files[image]}
        name = {"category_name": names[label]} if dataset.labels.named else {}
        yield record | file | name


def _records(dataset: Dataset) -> Iterable[Record]:
    """Yield what ground truth and predictions share."""
    boxes = dataset.boxes
    images, labels = dataset.images.keys, dataset.labels.keys
    scores: Sequence[Record] | Iterable[Record]
    scores = ({} for _ in range(len(boxes))) if boxes.score is None else ({"score": s} for s in boxes.score.tolist())
    rows = zip(boxes.image.tolist(), boxes.label.tolist(), boxes.xywh.tolist(), scores, strict=True)
    for image, label, xywh, score in rows:
        yield {"image_id": images[image], "category_id": labels[label], "bbox": xywh, **score}


def _joined(records: Iterable[Record], *, in_lines: bool = False) -> bytes:
    """Write a list with a record a line, or just the lines."""
    encoder, lines = msgspec.json.Encoder(), []
    for record in records:
        try:
            lines.append(encoder.encode(record))
        except UnicodeEncodeError:
            # Lone surrogates of odd file names are no UTF-8; the slower library writes them as escapes.
            lines.append(json.dumps(record).encode())
    if in_lines:
        return b"".join(line + b"\n" for line in lines)
    return b"[\n" + b",\n".join(lines) + b"\n]\n" if lines else b"[]\n"
