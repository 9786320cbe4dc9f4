"""Answers that have objects, one per image: Rekognition, Google, Azure and Custom Vision, Clarifai, DL Streamer.

Each service is a row of `SERVICES`: the way from the answer to its objects, and where these have class, score and box.
A file has the answer for one image, which it is called after, or those of several by their names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, outputs

FORMAT = Format(
    name="cloud",
    summary="answers of Rekognition, Google, Azure and Custom Vision, Clarifai, DL Streamer as JSON, one per image",
    source="https://docs.aws.amazon.com/rekognition/latest/dg/API_DetectLabels.html and the APIs of the others",
    example="""{
  "Labels": [
    {
      "Name": "Dog",
      "Confidence": 99.1,
      "Instances": [{"BoundingBox": {"Left": 0.1, "Top": 0.2, "Width": 0.3, "Height": 0.4}, "Confidence": 99.1}]
    }
  ]
}
""",
    carries=("images", "sizes", "scores"),
    member=".json",
    reads={"bbox": "Instances, localizedObjectAnnotations, objects with a rectangle, regions"},
)

_SIDES = ("Left", "Top", "Width", "Height")
_PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where an answer has what: names of fields, those of inner objects behind a dot.

    Parameters
    ----------
    lists : tuple of str
        The lists from the answer down to its objects, each in an entry of the one before.
    label, score, box : str
        Of an object, or of an entry that it is in; the number of an entry is a part of them.
    sides : tuple of str
        Of the box; none where it is a list of corners.
    encoding, units : str
    most : float
        The highest score.
    size : str
        Of the answer: what has width and height of the image.
    """

    lists: tuple[str, ...]
    label: str
    score: str
    box: str
    sides: tuple[str, ...] = _SIDES
    encoding: str = "xywh"
    units: str = "norm"
    most: float = 1.0
    size: str = ""


_GOOGLE = Service(
    lists=("localizedObjectAnnotations",), label="name", score="score", box="boundingPoly.normalizedVertices", sides=(),
    encoding="xyxy",
)  # fmt: skip
_GOOGLE_SNAKE = Service(
    lists=("localized_object_annotations",), label="name", score="score", box="bounding_poly.normalized_vertices",
    sides=(), encoding="xyxy",
)  # fmt: skip
_XYWH = ("x", "y", "w", "h")
SERVICES: Mapping[str, tuple[bytes, Service]] = {  # by a key of the answer, and what its objects are known by
    "Labels": (
        b'"Instances',
        Service(lists=("Labels", "Instances"), label="Name", score="Confidence", box="BoundingBox", most=_PERCENT),
    ),
    "CustomLabels": (
        b'"Geometry',
        Service(lists=("CustomLabels",), label="Name", score="Confidence", box="Geometry.BoundingBox", most=_PERCENT),
    ),
    "localizedObjectAnnotations": (b'"normalizedVertices', _GOOGLE),
    "localized_object_annotations": (b'"normalized_vertices', _GOOGLE_SNAKE),
    "objectsResult": (
        b'"boundingBox',
        Service(
            lists=("objectsResult.values",), label="tags.0.name", score="tags.0.confidence", box="boundingBox",
            sides=_XYWH, units="px", size="metadata",
        ),
    ),
    "predictions": (  # Custom Vision
        b'"boundingBox',
        Service(
            lists=("predictions",), label="tagName", score="probability", box="boundingBox",
            sides=("left", "top", "width", "height"),
        ),
    ),
    "resolution": (  # DL Streamer, whose list of objects is called as Azure's
        b'"bounding_box',
        Service(
            lists=("objects",), label="detection.label", score="detection.confidence", box="detection.bounding_box",
            sides=("x_min", "y_min", "x_max", "y_max"), encoding="xyxy", size="resolution",
        ),
    ),
    "objects": (
        b'"rectangle',
        Service(
            lists=("objects",), label="object", score="confidence", box="rectangle", sides=_XYWH, units="px",
            size="metadata",
        ),
    ),
    "outputs": (
        b'"region_info',
        Service(
            lists=("outputs", "data.regions"), label="data.concepts.0.name", score="data.concepts.0.value",
            box="region_info.bounding_box", sides=("left_col", "top_row", "right_col", "bottom_row"), encoding="xyxy",
        ),
    ),
}  # fmt: skip
_WRAPPED = "responses"  # of Google, a list with the answer for each image of a request


def looks_like(peek: Peek) -> Likeness | None:
    """Rate an answer by its keys and what its objects have, and a folder by its files."""
    return peek.rate_documents(_rate)


def _rate(document: Peek) -> Likeness | None:
    named = {
        key
        for key, (mark, _) in SERVICES.items()
        if mark in document.head and re.search(rb'%b"\s*:\s*[\[{]' % mark, document.head)
    }
    fields = {key: (key, service.label.rpartition(".")[2]) for key, (_, service) in SERVICES.items()}
    named = {key for key in named if all(f'"{field}"'.encode() in document.head for field in fields[key])}
    return Likeness.STRUCTURE if named & document.top_keys or (named and _is_nested(document)) else None


def _is_nested(document: Peek) -> bool:
    """Whether an answer lies in that of a request, or in an object of answers by the names of their images."""
    return _WRAPPED in document.top_keys or (document.maps_images and b'"' in document.head[:2])


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of answers to the draft."""
    collector, found = RecordCollector(draft), list[Service]()
    for image, value, where in outputs(path, draft, lambda value: _service_of(value) is not None):
        answer, service = _service_of(value) or ({}, None)
        if service is None:
            detail = "has no objects of a known service"
            draft.findings.error("layout", where, detail, fix="Write the answers of one service, one per image.")
            continue
        record = Record.of(answer, where, draft.findings)
        found.append(service)
        size = record.record(service.size).size() if service.size and record.has(service.size) else UNKNOWN_SIZE
        collector.add_image(image, size=size)
        for chain in _objects(record, service.lists, service.label):
            _add_object(collector, image, chain, service)
    if len({(service.encoding, service.units) for service in found}) > 1:
        raise DataError.single("layout", Where(str(path)), "answers of several services", fix="Pass those of one.")
    about = found[0] if found else _GOOGLE
    collector.to_draft(encoding=about.encoding, units=about.units, listed=True)


def _service_of(value: Any) -> tuple[dict[str, Any], Service] | None:
    """Return an answer without what is around it, and the service that it is of."""
    if isinstance(value, dict) and isinstance(inner := value.get(_WRAPPED), list) and len(inner) == 1:
        return _service_of(inner[0]) or ({"localizedObjectAnnotations": []}, _GOOGLE)
    keys = [key for key in SERVICES if isinstance(value, dict) and isinstance(value.get(key), list | dict)]
    return (value, SERVICES[keys[0]][1]) if keys else None


def _objects(
    record: Record, lists: tuple[str, ...], label: str, outer: tuple[Record, ...] = ()
) -> Iterator[tuple[Record, ...]]:
    """Yield each object, with the entries that it is in, the innermost first."""
    if not lists:
        yield outer
        return
    holder, name = _holder(record, lists[0])
    if holder.has(name):
        for entry in holder.records(name):
            yield from _objects(entry, lists[1:], label, (entry, *outer))
    elif outer and "." not in label:
        record.text(label)  # what has neither is of something else, such as the labels of a video


def _holder(record: Record, field: str) -> tuple[Record, str]:
    """Return the record that has the last part of a field, and this part; missing parts hold nothing."""
    *above, name = field.split(".")
    for part in above:
        if part.isdecimal():
            continue  # the first entry of a list, which was taken with its name
        value = record.values.get(part)
        inner = value[0] if isinstance(value, list) and value else value
        record = Record(inner if isinstance(inner, dict) else {}, record.at(part), record.findings)
    return record, name


def _add_object(collector: RecordCollector, image: str, chain: tuple[Record, ...], service: Service) -> None:
    def holder_of(field: str) -> tuple[Record, str]:
        places = [_holder(record, field) for record in chain]
        return next((place for place in places if place[0].has(place[1])), places[0])

    (labels, label), (scores, score), (boxes, box) = map(holder_of, (service.label, service.score, service.box))
    if service.sides:
        sides = boxes.record(box)
        coords = [sides.number(side) for side in service.sides]
    else:
        # A coordinate of zero is not written.
        points = [(point.optional("x", 0.0), point.optional("y", 0.0)) for point in boxes.records(box)]
        xs, ys = zip(*points, strict=True) if points else ((math.nan,), (math.nan,))
        coords = [min(xs), min(ys), max(xs), max(ys)]
    value = scores.optional(score) / service.most
    collector.add_box(image, labels.text(label), coords, chain[0].where, score=value)
