"""Answers that have objects, one per image: of services in the cloud, servers of models, and runtimes at the edge.

Each is a row of `SERVICES`: the way from the answer to its objects, and where these have class, score and box. A file
has the answer for one image, which it is called after, or those of several: by their names, as JSON Lines, or in order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaccard_eval.data.dataset import Key
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import looks_like_json_lines, parse_json_lines
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, documents, note_positions

FORMAT = Format(
    name="cloud",
    summary="answers of Rekognition, SageMaker, Google, Azure, Clarifai, TF Serving, Hailo, ...: JSON, one per image",
    source="the APIs of the services: each row of the table in jaccard_eval/formats/cloud.py names its page",
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
    reads={"bbox": "Instances, localizedObjectAnnotations, objects, regions, predictions, HailoROI"},
)

NO_CLASS = 0  # the class of boxes that have none
_SIDES = ("Left", "Top", "Width", "Height")
_PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where an answer has what: names of fields, those of inner objects behind a dot.

    Parameters
    ----------
    mark : str
        What its text has besides the names of the lists and the label, as a regular expression.
    lists : tuple of str
        The lists from the answer down to its objects, each in an entry of the one before.
    label, score, box : str
        Of an object, or of an entry that it is in; the number of an entry is a part of them. No label where the answer
        is about one class, which was asked for; no box where its sides are fields of the object.
    sides : tuple of str
        Of the box; none where it is a list of corners, `NUMBERS` where it is a list of four numbers.
    encoding, units : str
    most : float
        The highest score.
    size, image : str
        Of the answer: what has width and height of the image, and its name.
    count : str
        Of the innermost entry, whose fields are columns with a value for each object: how many objects there are.
        `ALL` where the columns are not filled up.
    """

    mark: str
    lists: tuple[str, ...]
    label: str
    score: str
    box: str
    sides: tuple[str, ...] = _SIDES
    encoding: str = "xywh"
    units: str = "norm"
    most: float = 1.0
    size: str = ""
    image: str = ""
    count: str = ""

    @property
    def key(self) -> str:
        """The field of the answer that has its objects."""
        return self.lists[0].partition(".")[0]

    @property
    def fields(self) -> tuple[str, ...]:
        """What the text of an answer with objects has."""
        paths = (self.label, self.score, *(() if self.box else self.sides))
        names = (self.key, *(path.rpartition(".")[2] for path in paths))
        return tuple(name for name in names if name and not name.isdecimal())


NUMBERS = ("0", "1", "2", "3")
ALL = "*"
_XYWH = ("x", "y", "w", "h")
SERVICES = (
    # https://docs.aws.amazon.com/rekognition/latest/dg/API_DetectLabels.html
    Service(
        mark=r'"Instances"\s*:\s*\[', lists=("Labels", "Instances"), label="Name", score="Confidence",
        box="BoundingBox", most=_PERCENT,
    ),
    # https://docs.aws.amazon.com/rekognition/latest/APIReference/API_DetectCustomLabels.html
    Service(
        mark=r'"Geometry"\s*:\s*\{', lists=("CustomLabels",), label="Name", score="Confidence",
        box="Geometry.BoundingBox", most=_PERCENT,
    ),
    # https://googleapis.github.io/google-api-python-client/docs/dyn/vision_v1.images.html, over HTTP and in Python
    Service(
        mark=r'"normalizedVertices"\s*:\s*\[', lists=("localizedObjectAnnotations",), label="name", score="score",
        box="boundingPoly.normalizedVertices", sides=(), encoding="xyxy",
    ),
    Service(
        mark=r'"normalized_vertices"\s*:\s*\[', lists=("localized_object_annotations",), label="name", score="score",
        box="bounding_poly.normalized_vertices", sides=(), encoding="xyxy",
    ),
    # https://cloud.google.com/vertex-ai/docs/image-data/object-detection/interpret-results, online and in batches
    Service(
        mark=r'"bboxes"\s*:\s*\[', lists=("predictions",), label="displayNames", score="confidences", box="bboxes",
        sides=NUMBERS, encoding="xxyy", count=ALL,
    ),
    Service(
        mark=r'"bboxes"\s*:\s*\[', lists=("prediction",), label="displayNames", score="confidences", box="bboxes",
        sides=NUMBERS, encoding="xxyy", count=ALL, image="instance.content",
    ),
    # https://learn.microsoft.com/en-us/rest/api/computervision/analyze/image, 4.0
    Service(
        mark=r'"boundingBox"\s*:\s*\{', lists=("objectsResult.values",), label="tags.0.name",
        score="tags.0.confidence", box="boundingBox", sides=_XYWH, units="px", size="metadata",
    ),
    # https://learn.microsoft.com/en-us/azure/cognitive-services/computer-vision/how-to/call-analyze-image, 3.2
    Service(
        mark=r'"rectangle"\s*:\s*\{', lists=("objects",), label="object", score="confidence", box="rectangle",
        sides=_XYWH, units="px", size="metadata",
    ),
    # https://learn.microsoft.com/en-us/rest/api/customvision/predictions/query
    Service(
        mark=r'"boundingBox"\s*:\s*\{', lists=("predictions",), label="tagName", score="probability",
        box="boundingBox", sides=("left", "top", "width", "height"),
    ),
    # https://docs.clarifai.com/api-guide/predict/images, visual detection
    Service(
        mark=r'"region_info"\s*:\s*\{', lists=("outputs", "data.regions"), label="data.concepts.0.name",
        score="data.concepts.0.value", box="region_info.bounding_box",
        sides=("left_col", "top_row", "right_col", "bottom_row"), encoding="xyxy",
    ),
    # https://dlstreamer.github.io/dev_guide/metadata.html
    Service(
        mark=r'"bounding_box"\s*:\s*\{', lists=("objects",), label="detection.label", score="detection.confidence",
        box="detection.bounding_box", sides=("x_min", "y_min", "x_max", "y_max"), encoding="xyxy", size="resolution",
    ),
    # https://docs.aws.amazon.com/sagemaker/latest/dg/object-detection-in-formats.html: lists of six numbers
    Service(
        mark=r'"prediction"\s*:\s*\[\s*\[', lists=("prediction",), label="0", score="1", box="",
        sides=("2", "3", "4", "5"), encoding="xyxy",
    ),
    # TensorFlow Serving of a model that TensorFlow's object detection API exported: the names of its outputs
    Service(
        mark=r'"detection_boxes"\s*:\s*\[', lists=("predictions",), label="detection_classes",
        score="detection_scores", box="detection_boxes", sides=NUMBERS, encoding="yxyx", count="num_detections",
    ),
    # https://github.com/hailo-ai/tappas, core/hailo/plugins/export/encode_json.hpp
    Service(
        mark=r'"HailoBBox"\s*:\s*\{', lists=("HailoROI.SubObjects",), label="HailoDetection.label",
        score="HailoDetection.confidence", box="HailoDetection.HailoBBox", sides=("xmin", "ymin", "width", "height"),
    ),
    # https://moondream.ai/c/docs/advanced/api/detect: what was asked for is not in the answer, and there is no score
    Service(
        mark=r'"objects"\s*:\s*\[\s*\{(?:\s*"[xy]_m(?:in|ax)"\s*:\s*[-+.\deE]+\s*,?){4}\s*\}', lists=("objects",),
        label="", score="", box="", sides=("x_min", "y_min", "x_max", "y_max"), encoding="xyxy",
    ),
)  # fmt: skip
_SUFFIXES = (".json", ".out")  # the second of SageMaker's batches, behind the name of the image
_WRAPPED = "responses"  # of Google, a list with the answer for each image of a request


def looks_like(peek: Peek) -> Likeness | None:
    """Rate an answer by its keys and what its objects have, and a folder by its files."""
    return peek.rate_documents(_rate, suffixes=_SUFFIXES)


def reads_name(name: str) -> bool:
    """Whether a file in a folder may be the answer for an image."""
    return name.lower().endswith(_SUFFIXES)


def _rate(document: Peek) -> Likeness | None:
    head = document.text
    named = {
        service.key
        for service in SERVICES
        if all(f'"{field}"' in head for field in service.fields) and re.search(service.mark, head)
    }
    return Likeness.STRUCTURE if named & document.top_keys or (named and _is_nested(document)) else None


def _is_nested(document: Peek) -> bool:
    """Whether an answer lies in that of a request, or in an object of answers by the names of their images."""
    return _WRAPPED in document.top_keys or (document.maps_images and b'"' in document.head[:2])


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of answers to the draft."""
    collector, found = RecordCollector(draft), dict[Service, None]()
    for image, value, where in _answers(path, draft):
        service = _service_of(value)
        if service is None:
            detail = "has no objects of a known service"
            draft.findings.error("layout", where, detail, fix="Write the answers of one service, one per image.")
            continue
        record = Record.of(value, where, draft.findings)
        size = record.record(service.size).size() if service.size and record.has(service.size) else UNKNOWN_SIZE
        collector.add_image(image, size=size)
        for chain in _objects(record, service):
            found[service] = None
            if not _is_detection(chain[0], service):
                collector.count_shape(f"object without {service.label}")
                continue
            _add_object(collector, image, (*chain, record), service)
    if len({(service.encoding, service.units, service.label) for service in found}) > 1:
        raise DataError.single("layout", Where(str(path)), "answers of several services", fix="Pass those of one.")
    about = next(iter(found), SERVICES[0])
    if not about.label and not options.names:
        draft.has_no_class = True
        detail = "answers hold no classes: all boxes are of the class that was asked for"
        fix = Fix.of_side(options.role, "Pass {names} to name it.", names=None)
        draft.findings.note("csv-one-class", Where(str(path)), detail, fix=fix)
    collector.to_draft(encoding=about.encoding, units=about.units, listed=True)


def _answers(path: Path, draft: Draft) -> Iterator[tuple[str, Any, Where]]:
    """Yield the image, the answer and its place, for every image of a file or folder."""
    if not files.is_folder(path) and looks_like_json_lines(text := files.read_text(path)):
        lines = parse_json_lines(path, text, draft.findings)
        yield from _listed([(value, Where(str(path), line=line)) for line, value in lines], draft)
        return
    for key, file, value in documents(path, draft, suffixes=_SUFFIXES):
        where, inner = Where(str(file)), _unwrapped(value)
        if len(inner) == 1 and (_service_of(inner[0]) or (isinstance(inner[0], dict) and _WRAPPED in value)):
            yield key, inner[0], where
        elif len(inner) > 1:
            yield from _listed([(one, replace(where, record=f"[{at}]")) for at, one in enumerate(inner)], draft)
        else:
            for image, answer in Record.of(value, where, draft.findings).values.items():
                yield image, next(iter(_unwrapped(answer)), None), replace(where, record=image)


def _unwrapped(value: Any) -> list[Any]:
    """Return the answers that a value is or holds in order; none of an object by the names of images.

    Google has a list with the answer for each image of a request, as servers of models have of each instance.
    """
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and isinstance(inner := value.get(_WRAPPED), list):
        # Of an image without objects, the answer is empty.
        return [one or {"localizedObjectAnnotations": []} for one in inner]
    service = _service_of(value)
    if service is not None and service.count and isinstance(inner := value[service.key], list) and inner:
        return [{**value, service.key: [one]} for one in inner]
    return [value] if service is not None else []


def _listed(found: Sequence[tuple[Any, Where]], draft: Draft) -> Iterator[tuple[str, Any, Where]]:
    """Yield answers with the names that they have, else numbered in their order."""
    names = [_image_of(value) for value, _ in found]
    if not all(names):
        note_positions(len(found), found[0][1].path, draft)
    for at, ((value, where), name) in enumerate(zip(found, names, strict=True)):
        yield name or str(at), value, where


def _image_of(value: Any) -> str:
    """Return the image that an answer names; empty where it names none."""
    service = _service_of(value)
    for part in service.image.split(".") if service is not None and service.image else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value if service is not None and service.image and isinstance(value, str) else ""


def _service_of(value: Any) -> Service | None:
    """Return the service that an answer is of: of several with the same list, the one whose label its objects have."""
    if not isinstance(value, dict):
        return None
    having = [service for service in SERVICES if isinstance(value.get(service.key), list | dict)]
    fitting = [service for service in having if _names(value, service) >= {*service.fields}]
    # An answer without objects, or whose first has no label, is of the service whose size it has.
    return next(iter([*fitting, *(service for service in having if service.size in value), *having]), None)


def _names(value: Any, service: Service) -> set[str]:
    """Return the names of fields in an answer, of the first entry of each list: all are alike."""
    found, stack = set[str](), [{service.key: value[service.key], service.size: value.get(service.size)}]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            found.update(one)
            stack += one.values()
        elif isinstance(one, list) and one:
            stack.append(one[0])
    return found


def _objects(record: Record, service: Service) -> Iterator[tuple[Record, ...]]:
    """Yield each object, with the entries that it is in, the innermost first."""
    return _entries(record, service.lists, service, ())


def _entries(
    record: Record, lists: tuple[str, ...], service: Service, outer: tuple[Record, ...]
) -> Iterator[tuple[Record, ...]]:
    if not lists:
        yield from _rows(record, service, outer) if service.count else (outer,)
        return
    holder, name = _holder(record, lists[0])
    value = holder.values.get(name)
    if isinstance(value, dict) and service.count:
        yield from _rows(holder.record(name), service, outer)
    elif isinstance(value, list) and value and isinstance(value[0], list):
        entries = holder.entries(name)
        for field in entries.values:
            row = dict(enumerate(entries.array(field)))
            yield Record({str(at): number for at, number in row.items()}, holder.at(field), holder.findings), *outer
    elif holder.has(name):
        for entry in holder.records(name):
            yield from _entries(entry, lists[1:], service, (entry, *outer))
    elif outer and "." not in service.label:
        record.text(service.label)  # what has neither is of something else, such as the labels of a video


def _is_detection(entry: Record, service: Service) -> bool:
    """Whether an entry is a detection: other lists of a runtime hold zones, classes of the image and tiles as well."""
    if "." not in service.label or len(service.lists) > 1:
        return True
    holders = (_holder(entry, field) for field in (service.label, service.score))
    return any(holder.has(name) for holder, name in holders)


def _rows(columns: Record, service: Service, outer: tuple[Record, ...]) -> Iterator[tuple[Record, ...]]:
    """Yield the objects of an entry whose fields are columns with a value for each."""
    names = (service.label, service.score, service.box)
    arrays = {name: columns.array(name) for name in names}
    sizes = {name: len(array) for name, array in arrays.items()}
    count = int(columns.optional(service.count, math.inf)) if columns.has(service.count) else max(sizes.values())
    if len({*sizes.values()}) > 1 or not 0 <= count <= max(sizes.values()):
        shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
        columns.error("layout", service.box, f"columns of {count} objects have other lengths: {shown}")
        return
    for at in range(count):
        values = {name: array[at] for name, array in arrays.items()}
        yield Record(values, columns.at(f"[{at}]"), columns.findings), *outer


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
    if service.sides is NUMBERS:
        coords = boxes.numbers(box, len(NUMBERS))
    elif service.sides:
        sides = boxes.record(box) if box else chain[0]
        coords = [sides.number(side) for side in service.sides]
    else:
        # A coordinate of zero is not written.
        points = [(point.optional("x", 0.0), point.optional("y", 0.0)) for point in boxes.records(box)]
        xs, ys = zip(*points, strict=True) if points else ((math.nan,), (math.nan,))
        coords = [min(xs), min(ys), max(xs), max(ys)]
    value = scores.optional(score) / service.most
    collector.add_box(image, _class_of(labels, label) if label else NO_CLASS, coords, chain[0].where, score=value)


def _class_of(record: Record, field: str) -> Key:
    """Return the class of an object; servers of models write its number as a float."""
    value = record.values.get(field)
    return int(value) if isinstance(value, float) and value.is_integer() else record.key(field)
