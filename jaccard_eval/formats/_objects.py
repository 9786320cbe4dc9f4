"""One side of an evaluation from objects: pandas tables, COCO dicts and results lists, arrays or Detections by image.

Tables and COCO objects are read as the files that they would be written to, so that both give the same to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaccard_eval.data.dataset import Key
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.errors import UsageError
from jaccard_eval.formats import _detections
from jaccard_eval.formats._detections import by_image, records_of
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.image_boxes import ImageBoxes, Records, image_place, to_array
from jaccard_eval.reading.outlines import is_rectangle
from jaccard_eval.text import quoted_value

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
        return _detections.iou_types(source)
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
    from jaccard_eval.reading.tabular.data_frames import add_frame  # which loads pandas

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
