"""One side of an evaluation from objects: pandas tables, COCO dicts and results lists, arrays by image.

Tables and COCO objects are read as the files that they would be written to, so that both give the same to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Key
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Severity, Where
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import CodedKeys, Keys, RawBoxes
from jaccard_eval.text import quoted_value

_SECTIONS = frozenset({"images", "annotations", "categories"})


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
    if isinstance(source, Mapping):
        return Form("<dict>", "coco", _add_coco) if _SECTIONS & source.keys() else None
    if not isinstance(source, list | tuple):
        return None
    # An empty list has no records that differ: no predictions, or no image with ground truth.
    is_results = role == "pred"
    if source:
        if not isinstance(source[0], Mapping):
            return None
        is_results = "bbox" in source[0] and "boxes" not in source[0]
    return Form("<list>", "coco", _add_coco) if is_results else Form("<list>", "arrays by image", _add_images)


def _add_frame(source: Any, draft: Draft) -> None:
    from jaccard_eval.reading.tabular.delimited import add_frame  # which loads pandas

    add_frame(source, draft)


def _add_coco(source: Any, draft: Draft) -> None:
    from jaccard_eval.formats._coco.dataset import read_content

    try:
        # Not msgspec, which writes NaN as null: the reader names what it finds.
        content = json.dumps(source, default=_plain)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{draft.path}: cannot be written as COCO JSON: {error}") from None
    read_content(Path(draft.path), content.encode(), draft, draft.options)


def _plain(value: object) -> Any:
    """Return numbers and arrays of NumPy and PyTorch as Python has them."""
    array = to_array(value)
    if array.dtype == object:
        raise TypeError(f"{type(value).__name__} is not a number, a text, a list or a dict")
    return array.tolist()


def to_array(values: Any) -> npt.NDArray[Any]:
    """Return an array of anything with `__array__` or `__dlpack__`, a tensor on a GPU included, or of a list."""
    # Found by what it has: a tensor that needs its gradient, or lies on a GPU, refuses `__array__`.
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
    # NumPy knows no bfloat16, which networks answer in; float32 holds it exactly.
    if str(getattr(values, "dtype", "")).endswith("bfloat16"):
        values = values.float()
    if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        values = np.from_dlpack(values)
    return np.asarray(values)


def _add_images(source: Sequence[Any], draft: Draft) -> None:
    """Add boxes by image, as torchvision and torchmetrics have them."""
    for at, record in enumerate(source):
        if not isinstance(record, Mapping):
            kind = type(record).__name__
            raise UsageError(f"{draft.path}[{at}] is {quoted_value(kind)}; expected a dict per image")
    keys = [_image_key(record, at, draft) for at, record in enumerate(source)]
    first: dict[Key, int] = {}
    for at, key in enumerate(keys):
        if first.setdefault(key, at) != at:
            raise UsageError(f"{draft.path}[{at}]: image_id {quoted_value(key)} is also that of [{first[key]}]")
    if len({type(key) for key in keys}) > 1:
        raise UsageError(f"{draft.path}: image_id must be numbers in all dicts or texts in all")
    draft.set_images(keys)
    if draft.options.role == "gt" and any("scores" in record for record in source):
        draft.mention_scores(sum(len(record["scores"]) for record in source if "scores" in record))
    encodings = {str(record.get("encoding", "xyxy")) for record in source} or {"xyxy"}
    if len(encodings) > 1:
        raise UsageError(f"{draft.path}: boxes have more than one encoding: {', '.join(sorted(encodings))}")
    records = [_Record.of(record, at, draft) for at, record in enumerate(source)]
    sizes = [len(record.boxes) for record in records]
    starts = np.cumsum([0, *sizes])

    def place(row: int) -> Where:
        at = int(np.searchsorted(starts, row, "right")) - 1
        return Where(draft.path, record=f"[{at}].boxes[{row - int(starts[at])}]")

    # Images without boxes have columns of no type, which decide nothing.
    filled = [record for record in records if len(record.boxes)]
    label = _labels([record.labels for record in filled], draft, place)
    if isinstance(label, np.ndarray) and draft.options.names is not None:
        draft.set_classes(range(len(draft.options.names)), draft.options.names)
    columns: dict[str, Any] = {
        _COLUMNS.get(name, name): _joined(filled, name, filler, draft) for name, filler in _FILLERS.items()
    }
    draft.add_boxes(
        RawBoxes(
            image=_spread(keys, sizes),
            label=label,
            coords=np.concatenate([record.boxes for record in filled]) if filled else np.zeros((0, 4)),
            encoding=encodings.pop(),
            units="px",
            place=place,
            negative_size=Severity.ERROR,
            **columns,
        )
    )


# Columns other than boxes and labels by the names of records, with what stands where one record has none.
_FILLERS: dict[str, float | bool] = {
    "scores": np.nan,
    "area": np.nan,
    "iscrowd": False,
    "difficult": False,
    "ignore": False,
}
_COLUMNS = {"scores": "score", "iscrowd": "crowd"}


@dataclass(frozen=True, slots=True)
class _Record:
    """The arrays of one image."""

    boxes: FloatArray
    labels: npt.NDArray[Any]
    others: dict[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, record: Mapping[str, Any], at: int, draft: Draft) -> _Record:
        """Check the shapes of one dict."""
        where = f"{draft.path}[{at}]"
        for name in ("boxes", "labels"):
            if name not in record:
                raise UsageError(f"{where} has no {name}; it has {', '.join(map(str, record))}")
        boxes = _numbers(record["boxes"], f"{where}['boxes']")
        # No box at all comes in any shape: [], (0,), (0, 4).
        if boxes.size == 0:
            boxes = boxes.reshape(0, 4)
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise UsageError(f"{where}['boxes'] has shape {boxes.shape}; expected (n, 4), four numbers per box")
        others = {}
        for name in ("labels", *_FILLERS):
            if name not in record or record[name] is None:
                continue
            column = to_array(record[name]) if name == "labels" else _numbers(record[name], f"{where}[{name!r}]")
            if column.shape != (len(boxes),) and not (column.size == len(boxes) == 0):
                expected = f"({len(boxes)},), one value per box"
                raise UsageError(f"{where}[{name!r}] has shape {column.shape}; expected {expected}")
            others[name] = column
        return cls(boxes, others.pop("labels"), others)


def _numbers(values: Any, name: str) -> FloatArray:
    array = to_array(values)
    if array.size and array.dtype.kind not in "biuf":
        raise UsageError(f"{name} must hold numbers, got {quoted_value(array.reshape(-1)[:1].tolist()[0])}")
    return array.astype(np.float64)


def _joined(records: Sequence[_Record], name: str, filler: float | bool, draft: Draft) -> npt.NDArray[Any] | None:
    """Return a column of all boxes; None where no record has it."""
    given = [record.others.get(name) for record in records]
    if all(values is None for values in given):
        return None
    if name == "scores" and draft.options.role == "pred":
        lacking = [at for at, values in enumerate(given) if values is None]
        if lacking:
            raise UsageError(f"{draft.path}: some dicts have scores and {len(lacking):,} have none")
    parts = zip(records, given, strict=True)
    column = np.concatenate([np.full(len(record.boxes), filler) if part is None else part for record, part in parts])
    return column.astype(np.bool_) if isinstance(filler, bool) else column


def _spread(keys: Sequence[Key], sizes: Sequence[int]) -> Keys:
    """Return the key of each box, given one for each image and how many boxes it has."""
    return CodedKeys(keys, np.repeat(np.arange(len(keys)), sizes))


def _labels(parts: Sequence[npt.NDArray[Any]], draft: Draft, place: Callable[[int], Where]) -> Keys:
    """Return the class of each box: indices from 0, or names."""
    labels = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    if {part.dtype.kind for part in parts} <= {"U", "O"} and all(isinstance(label, str) for label in labels):
        return [str(label) for label in labels]
    whole = np.array([_is_whole(label) for label in labels.tolist()], dtype=np.bool_)
    limit = len(draft.options.names) if draft.options.names is not None else None
    if not whole.all():
        row = int(np.flatnonzero(~whole)[0])
        expected = "expected whole numbers from 0 on, or names in all dicts"
        raise UsageError(f"{place(row)}: label is {quoted_value(labels[row].item())}; {expected}")
    indices: npt.NDArray[np.int64] = labels.astype(np.int64)
    if limit is not None and len(indices) and int(indices.max()) >= limit:
        row = int(np.flatnonzero(indices >= limit)[0])
        raise UsageError(f"{place(row)}: label is {indices[row]}, but there are {limit} class names (0 to {limit - 1})")
    return indices


def _is_whole(label: object) -> bool:
    return isinstance(label, int | float) and not isinstance(label, bool) and label >= 0 and label == int(label)


def _image_key(record: Mapping[str, Any], at: int, draft: Draft) -> Key:
    """Return the key of an image: its id, as number or text, else its place in the list."""
    if record.get("image_id") is None:
        return at
    key = to_array(record["image_id"]).reshape(-1)  # torchvision has a tensor of one number
    if len(key) == 1 and key.dtype.kind in "iuU":
        found: Key = key[0].item()
        return found
    raise UsageError(f"{draft.path}[{at}]['image_id'] must be a whole number or a text")
