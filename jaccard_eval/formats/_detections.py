"""Detections of supervision in memory, as dicts by image: known by what they have, as supervision is not imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import UsageError
from jaccard_eval.reading.image_boxes import to_array
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


def iou_types(source: Any) -> set[str]:
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
