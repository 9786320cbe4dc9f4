"""One side of an evaluation from objects: tables, COCO dicts and results lists, arrays or Detections by image.

No library is imported for what it made: it is known by what it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.data.dataset import Key
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.image_boxes import ImageBoxes, Records, image_place, to_array
from jaccard_eval.reading.outlines import is_rectangle
from jaccard_eval.text import quoted_value

_FIELDS = ("xyxy", "mask", "confidence", "class_id")
_NAMES, _CORNERS = "class_name", "xyxyxyxy"  # keys of ``Detections.data``


def is_detections(source: object) -> bool:
    """Whether an object is the Detections of one image."""
    return all(hasattr(source, name) for name in _FIELDS)


def by_image(source: Any) -> tuple[list[tuple[Key | None, Any]], Sequence[str] | None] | None:
    """Return the Detections of each image with its name, if it has any, and the names of classes.

    They come as those of one image, a list of them, a dict by the name of the image, or a DetectionDataset. None of
    anything else.
    """
    if is_detections(source):
        return [(None, source)], None
    if hasattr(source, "annotations") and hasattr(source, "classes") and isinstance(source.annotations, Mapping):
        return list(source.annotations.items()), list(source.classes)
    if isinstance(source, Mapping) and source and all(map(is_detections, source.values())):
        return list(source.items()), None
    if isinstance(source, list | tuple) and source and all(map(is_detections, source)):
        return [(None, detections) for detections in source], None
    return None


def records_of(source: Any) -> list[dict[str, Any]] | None:
    """Return a dict for each image; None of what is not Detections."""
    found = by_image(source)
    if found is None:
        return None
    images, names = found
    # Where some are named, those that are not have nothing in them.
    is_named = any(_data(detections, _NAMES) is not None for _, detections in images)
    return [
        _record(key, detections, names, is_named, f"[{at if key is None else quoted_value(key)}]")
        for at, (key, detections) in enumerate(images)
    ]


def kinds_of_detections(source: Any) -> set[str]:
    """Return what of them can be compared."""
    images = [detections for _, detections in (by_image(source) or ([], None))[0]]
    kinds = {"segm": [one.mask for one in images], "obb": [_data(one, _CORNERS) for one in images]}
    return {"bbox"} | {kind for kind, given in kinds.items() if any(shapes is not None for shapes in given)}


def _data(detections: Any, name: str) -> Any:
    return (getattr(detections, "data", None) or {}).get(name)


def _record(
    key: Key | None, detections: Any, names: Sequence[str] | None, is_named: bool, place: str
) -> dict[str, Any]:
    n = len(detections.xyxy)
    labels: Any = _data(detections, _NAMES)
    if labels is not None:
        labels = [str(label) for label in to_array(labels).tolist()]
    elif detections.class_id is not None:
        labels = to_array(detections.class_id)
        if names is not None:
            unknown = [label for label in labels.tolist() if not 0 <= label < len(names)]
            if unknown:
                raise UsageError(f"{place}.class_id has {unknown[0]}, but the data set has {len(names)} classes")
            labels = [names[int(label)] for label in labels]
    if n and (labels is None or (is_named and not isinstance(labels, list))):
        what = "data['class_name'], which others have" if is_named else "class_id"
        raise UsageError(f"{place} has no {what}. Set it, with one class per detection.")
    # Of no detection at all, fields are missing or of any shape.
    record: dict[str, Any] = {
        "boxes": to_array(detections.xyxy).reshape(-1, 4) if n == 0 else detections.xyxy,
        "labels": labels if n else [],
        "masks": detections.mask if n else np.zeros((0, 0, 0), dtype=np.bool_),
        "obb": _data(detections, _CORNERS) if n else np.zeros((0, 4, 2)),
        "scores": detections.confidence if n else None,
    }
    given = {name: value for name, value in record.items() if value is not None}
    return given if key is None else {"image_id": key, **given}


_RESULT_FIELDS = {"bbox", "segmentation", "keypoints"}
# What dicts by image have, which may have keypoints as well.
_IMAGE_FIELDS = {"boxes", "labels", "masks", "obb", "scores"}
_LOOKED_AT = 20  # records, for what can be compared
_IOU_TYPES = {"bbox": BOXES, "boxes": BOXES, "segmentation": "segm", "keypoints": "keypoints", "obb": "obb"}  # by field
_LISTS = ("annotations", "results", "predictions", "detections")  # of a COCO object


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of object: what messages call it, the format whose rules it follows, and what adds it to a draft."""

    path: str
    format_name: str
    add: Callable[[Any, Draft], None]


def form_of(source: object, role: str) -> Form | None:
    """Return the form of an object, None of one that cannot be read."""
    # By what it has, as asking for the class would load pandas.
    if hasattr(source, "to_csv") and hasattr(source, "columns"):
        return Form("<DataFrame>", "csv", _add_frame)
    if by_image(source) is not None:
        return Form("<Detections>", "arrays by image", _add_detections)
    if isinstance(source, Mapping):
        return Form("<dict>", "coco", _add_coco) if source.keys() & {"images", "categories", *_LISTS} else None
    if not isinstance(source, list | tuple):
        return None
    # An empty list has no records that differ: no predictions, or no image with ground truth.
    is_results = role == "pred"
    if source:
        if not isinstance(source[0], Mapping):
            return None
        is_results = bool(_RESULT_FIELDS & source[0].keys()) and not _IMAGE_FIELDS & source[0].keys()
    return Form("<list>", "coco", _add_coco) if is_results else Form("<list>", "arrays by image", _add_images)


def iou_types(source: object) -> set[str]:
    """Return what of an object can be compared, as far as its first records show."""
    found = {BOXES}
    if by_image(source) is not None:
        return kinds_of_detections(source)
    records = source
    if isinstance(source, Mapping):
        records = next((source[name] for name in _LISTS if name in source), ())
    if isinstance(records, list | tuple):
        first = [record for record in records[:_LOOKED_AT] if isinstance(record, Mapping)]
        given = {name for record in first for name in record if _is_given(record[name])}
        found = {kind for field, kind in _IOU_TYPES.items() if field in given} or found
        sides = [record["bbox"] for record in first if isinstance(record.get("bbox"), list | tuple)]
        if BOXES in found and any(len(box) in (5, 8) for box in sides):
            found = found - {BOXES} | {"obb"}
        masks = [record.get("segmentation") for record in first if _is_given(record.get("segmentation"))]
        # Boxes once more, as some tools write them.
        if BOXES in found and all(
            isinstance(mask, list) and len(mask) == 1 and isinstance(mask[0], list) and is_rectangle(mask[0])
            for mask in masks
        ):
            found.discard("segm")
    return found


def _is_given(value: object) -> bool:
    return value is not None and (not isinstance(value, list | tuple | str) or len(value) > 0)


def _add_frame(source: Any, draft: Draft) -> None:
    from jaccard_eval.reading.tabular.delimited import add_frame  # which loads pandas

    add_frame(source, draft)


def _add_coco(source: Any, draft: Draft) -> None:
    from jaccard_eval.formats._coco.dataset import read_content

    try:
        # Not msgspec, which writes NaN as null: the reader names what it finds.
        content = json.dumps(source, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{draft.path}: cannot be read as COCO JSON: {error}") from None
    read_content(Path(draft.path), content.encode(), draft, draft.options)


def _plain(value: object) -> Any:
    """Return numbers and arrays of NumPy and PyTorch as Python has them, runs of bytes as text, the rest in words.

    What has no business in a record, a path or a date, is not read from any; in place of a number its words are
    refused.
    """
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1")
    if isinstance(value, set | frozenset):
        return list(value)
    array = to_array(value)
    return array.tolist() if array.dtype.kind in "biufU" else str(value)


def _add_detections(source: Any, draft: Draft) -> None:
    """Add the Detections of supervision as the dicts by image that they amount to."""
    _, names = by_image(source) or ([], None)
    draft.listed_names = tuple(names or ())
    _add_images(records_of(source) or [], draft)


def _add_images(source: Sequence[Any], draft: Draft) -> None:
    """Add boxes by image, as torchvision and torchmetrics have them."""
    boxes = ImageBoxes.of(Records(source, draft.path, "[{}]".format), draft.options.iou_type)
    keys = [_image_key(record, at, draft) for at, record in enumerate(source)]
    first: dict[Key, int] = {}
    for at, key in enumerate(keys):
        if first.setdefault(key, at) != at:
            raise UsageError(f"{draft.path}[{at}]: image_id {quoted_value(key)} is also that of [{first[key]}]")
    if len({type(key) for key in keys}) > 1:
        raise UsageError(f"{draft.path}: image_id must be numbers in all dicts or texts in all")
    if draft.options.role == "pred" and "scores" in boxes.columns:
        lacking = [at for at, record in enumerate(source) if boxes.sizes[at] and record.get("scores") is None]
        if lacking:
            raise UsageError(f"{draft.path}: some dicts have scores and {len(lacking):,} have none")
    names = None if draft.options.names is None else dict(enumerate(draft.options.names))

    def place(at: int) -> str:
        return f"[{at}]" if source[at].get("image_id") is None else image_place(keys[at])

    if names is not None:
        boxes.require_labels(names, draft.path, place)
    boxes.add_to(draft, keys, place, names)


def _image_key(record: Mapping[str, Any], at: int, draft: Draft) -> Key:
    """Return the key of an image: its id, as number or text, else its place in the list."""
    if record.get("image_id") is None:
        return at
    key = to_array(record["image_id"]).reshape(-1)  # torchvision has a tensor of one number
    if len(key) == 1 and key.dtype.kind in "iuU":
        found: Key = key[0].item()
        return found
    raise UsageError(f"{draft.path}[{at}]['image_id'] must be a whole number or a text")
