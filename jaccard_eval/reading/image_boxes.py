"""Boxes and shapes that a program holds by image: dicts of arrays of any library, checked, joined, put into a draft."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import MAX_COORDINATE, FloatArray, array_of
from jaccard_eval.data.dataset import Key, unknown_sizes
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.outlines import OutlineDraft
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes
from jaccard_eval.similarity.encoding import encode
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import runs_of_pixels
from jaccard_eval.text import example_keys, quoted_value

ImageShapes = Masks | Keypoints | Quads
# Keys of the dicts, by what is compared.
KEYS = dict.fromkeys(MASKS, "masks") | {"keypoints": "keypoints"} | dict.fromkeys(ORIENTED, "obb")


def shapes_of(record: Mapping[str, Any], name: str, iou_type: str, array: Any) -> ImageShapes:
    """Return the shapes of one dict, which messages call `name`; `array` makes arrays of tensors."""
    key = KEYS.get(iou_type)
    if key is None:
        raise UsageError(
            "dicts by image hold boxes, masks, keypoints or oriented boxes,"
            f" and none of what iou_type {iou_type} compares"
        )
    if key not in record:
        raise UsageError(f"{name} has no {key}; it has {', '.join(map(str, record))}")
    place, values = f"{name}[{key!r}]", record[key]
    if key == "masks":
        is_rle = isinstance(values, Sequence) and len(values) > 0 and isinstance(values[0], Mapping)
        return _encoded(values, place) if is_rle else _dense(array(values), place)
    if key == "obb":
        return _oriented(array(values), place)
    points = array(values)
    if points.size == 0:
        return Keypoints(np.zeros((len(points) if points.ndim == 3 else 0, 0, 3)))
    if points.ndim != 3 or points.shape[2] not in (2, 3) or points.dtype.kind not in "biuf":
        raise UsageError(f"{place} has shape {points.shape}; expected (n, k, 3): x, y and v of k points")
    points = points.astype(np.float64)
    if not np.isfinite(points).all():
        raise UsageError(f"{place} must be finite numbers")
    # Predictions need no third number: whether a point counts is decided by the object.
    return Keypoints(np.pad(points, ((0, 0), (0, 0), (0, 3 - points.shape[2])), constant_values=1.0))


def _oriented(numbers: npt.NDArray[Any], place: str) -> Quads:
    """Return oriented boxes: four corners, or centre, sizes and angle as Ultralytics has them."""
    if numbers.size == 0:
        return Quads(np.zeros((0, 4, 2)))
    if numbers.dtype.kind not in "biuf" or numbers.shape[1:] not in ((4, 2), (8,), (5,)):
        raise UsageError(
            f"{place} has shape {numbers.shape}; expected corners (n, 4, 2) or (n, 8),"
            " or centre, width, height and angle in radians (n, 5)"
        )
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise UsageError(f"{place} must be finite numbers")
    if numbers.shape[1:] != (5,):
        return Quads(numbers.reshape(-1, 4, 2))
    (turned,) = np.nonzero(np.abs(numbers[:, 4]) > 2 * np.pi)
    (negative,) = np.nonzero((numbers[:, 2:4] < 0).any(axis=1))
    if len(turned):
        row = int(turned[0])
        raise UsageError(f"{place}[{row}] has the angle {numbers[row, 4]:g}; expected radians, clockwise")
    if len(negative):
        row = int(negative[0])
        raise UsageError(f"{place}[{row}] is {numbers[row, 2]:g} wide and {numbers[row, 3]:g} high")
    return Quads.rotated(numbers[:, :4], numbers[:, 4])


def _dense(pixels: npt.NDArray[Any], place: str) -> Masks:
    """Return masks of pixels (n, h, w): booleans, or 0 and 1."""
    if pixels.size == 0 and pixels.ndim < 3:
        pixels = np.zeros((0, 0, 0), dtype=np.bool_)
    if pixels.ndim != 3:
        raise UsageError(f"{place} has shape {pixels.shape}; expected (n, height, width), or a list of RLE")
    if pixels.dtype != np.bool_:
        is_byte = pixels.dtype == np.uint8  # of which one look is enough, and no copy
        if pixels.max(initial=0) > 1 if is_byte else not ((pixels == 0) | (pixels == 1)).all():
            raise UsageError(f"{place} must be booleans, or 0 and 1; threshold the masks first, as in masks > 0.5")
        pixels = pixels.view(np.bool_) if is_byte else pixels != 0
    _, height, width = pixels.shape
    runs = runs_of_pixels((mask, 0, 0, height) for mask in pixels)
    return Masks(runs, np.full((len(pixels), 2), (height, width)))


def _encoded(values: Sequence[Any], place: str) -> Masks:
    """Return masks of RLE, as pycocotools writes them."""
    draft = OutlineDraft()
    for row, value in enumerate(values):
        problem = draft.add(value)
        if isinstance(value, list):
            problem = "is polygons, whose image has no size here; pass RLE or arrays of pixels"
        if problem:
            raise UsageError(f"{place}[{row}] {problem}")
    outlines, problems = draft.build()
    if problems:
        row, problem = problems[0]
        raise UsageError(f"{place}[{row}] {problem}")
    return outlines.masks


def bounds_of(shapes: ImageShapes, encoding: str) -> FloatArray:
    """Return boxes around shapes (n, 4), where a dict has none, of poses around their labelled points."""
    x, y, width, height = shapes.bounds().T
    if isinstance(shapes, Keypoints) and shapes.points.size:
        labelled = shapes.points[:, :, 2:] > 0
        labelled |= ~labelled.any(axis=1, keepdims=True)
        low = np.where(labelled, shapes.points[:, :, :2], np.inf).min(axis=1)
        high = np.where(labelled, shapes.points[:, :, :2], -np.inf).max(axis=1)
        (x, y), (width, height) = low.T, (high - low).T
    return encode(x, y, x + width, y + height, encoding).astype(np.float64)


def joined_shapes(parts: Sequence[ImageShapes | None]) -> ImageShapes | None:
    """Return the shapes of all parts, those without rows aside."""
    filled: list[Any] = [part for part in parts if part is not None and len(part)]
    return filled[0].joined(filled[1:]) if filled else next((part for part in parts if part is not None), None)


def sizes_of(shapes: ImageShapes | None, boxes: npt.NDArray[np.int64]) -> FloatArray:
    """Return width and height of each image (m, 2), which has so many masks as `boxes` has (m,); NaN without one."""
    sizes = unknown_sizes(len(boxes))
    if isinstance(shapes, Masks) and len(shapes):
        (having,) = np.nonzero(boxes)
        first = (np.cumsum(boxes) - boxes)[having]
        sizes[having] = shapes.sizes[first][:, ::-1]
        owner = np.repeat(np.arange(len(boxes)), boxes)
        for row in np.flatnonzero((shapes.sizes[:, ::-1] != sizes[owner]).any(axis=1)).tolist():
            own, other = shapes.sizes[row].tolist(), sizes[owner[row]][::-1].tolist()
            raise UsageError(f"masks of one image have two sizes: {quoted_value(own)} and {quoted_value(other)}")
    return sizes


IntArray = npt.NDArray[np.int64]
AnyArray = npt.NDArray[Any]

# Columns other than boxes and labels by the names of records, with what stands where one record has none.
FILLERS: dict[str, float | bool] = {
    "scores": np.nan,
    "area": np.nan,
    "iscrowd": False,
    "difficult": False,
    "ignore": False,
}
_COLUMNS = {"scores": "score", "iscrowd": "crowd"}
_NUMBERS = "biuf"  # kinds of NumPy's types
_NARROW = (np.dtype(np.float16), np.dtype(np.float32))


def to_array(values: Any, name: str = "the list") -> AnyArray:
    """Return an array of anything with `__array__` or `__dlpack__`, a tensor on a GPU included, or of a list.

    Lists of several lengths are a UsageError, which calls them by the name.
    """
    # Most are; to ask what else it may be, by the name of its type, takes longer than all the rest.
    if type(values) is np.ndarray:
        return values
    # Found by what it has: a tensor that needs its gradient, or lies on a GPU, refuses `__array__`.
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
    # NumPy knows no bfloat16, which networks answer in; float32 holds it exactly.
    if str(getattr(values, "dtype", "")).endswith("bfloat16"):
        values = values.float()
    if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        values = np.from_dlpack(values)
    return array_of(values, name)


@dataclass(frozen=True, slots=True)
class Records:
    """Dicts by image as they were given, and what messages call the place of each: ``preds`` and ``[image 7]``."""

    dicts: Sequence[Any]
    path: str
    place: Callable[[int], str]

    def name(self, at: int) -> str:
        """Return what a record is called."""
        return f"{self.path}{self.place(at)}"


@dataclass(frozen=True, slots=True, eq=False)
class ImageBoxes:
    """Boxes of m images, n of them, one image after the other."""

    # How many boxes each image has, (m,).
    sizes: IntArray
    # In `encoding`, (n, 4); None where there is no image to have one.
    coords: FloatArray
    encoding: str | None
    # Indices from 0, or names; (n,).
    labels: AnyArray
    # By the names of `FILLERS`, (n,) each, without those that no image has.
    columns: Mapping[str, AnyArray]
    # Whether numbers came in float16 or float32.
    is_widened: bool = False
    # Masks or keypoints, n of them, where these are compared.
    shapes: ImageShapes | None = None

    @classmethod
    def of(cls, records: Records, iou_type: str = BOXES) -> ImageBoxes:
        """Check and join dicts of arrays; a UsageError names the record and what is wrong with its shape or kind."""
        dicts = records.dicts
        for at, record in enumerate(dicts):
            if not isinstance(record, Mapping):
                kind = type(record).__name__
                raise UsageError(f"{records.name(at)} is {quoted_value(kind)}; expected a dict per image")
        encodings = {str(record.get("encoding", "xyxy")) for record in dicts}
        if len(encodings) > 1:
            raise UsageError(f"{records.path}: boxes have more than one encoding: {', '.join(sorted(encodings))}")
        shapes: list[ImageShapes] = []
        encoding = next(iter(encodings), "xyxy")
        if iou_type == BOXES:
            # Around oriented boxes, as those of DOTA's files are.
            dicts = [
                {**record, "boxes": bounds_of(shapes_of(record, records.name(at), "obb", to_array), encoding)}
                if record.get("boxes") is None and record.get("obb") is not None
                else record
                for at, record in enumerate(dicts)
            ]
        else:
            shapes = [shapes_of(record, records.name(at), iou_type, to_array) for at, record in enumerate(dicts)]
            dicts = [
                record if record.get("boxes") is not None else {**record, "boxes": bounds_of(shape, encoding)}
                for record, shape in zip(dicts, shapes, strict=True)
            ]
        arrays = [_arrays(record, records, at) for at, record in enumerate(_on_host(dicts))]
        for at, (record, shape) in enumerate(zip(arrays, shapes, strict=False)):
            if len(shape) != len(record["boxes"]):
                n_boxes, key = len(record["boxes"]), KEYS[iou_type]
                raise UsageError(f"{records.name(at)} has {n_boxes} boxes and {len(shape)} {key}; expected one per box")
        sizes = np.array([len(record["boxes"]) for record in arrays], dtype=np.int64)
        # Images without boxes have columns of no type, which decide nothing.
        filled = [record for record in arrays if len(record["boxes"])]
        return cls(
            sizes=sizes,
            coords=_joined([record["boxes"].astype(np.float64) for record in filled], (0, 4)),
            encoding=encodings.pop() if encodings else None,
            labels=_labels([record["labels"] for record in filled], sizes, records),
            columns=_filled_columns(filled),
            is_widened=any(array.dtype in _NARROW for record in filled for array in record.values()),
            shapes=_joined_shapes(shapes, records),
        )

    @classmethod
    def joined(cls, parts: Sequence[ImageBoxes]) -> ImageBoxes:
        """Return the images of all parts, which are of one encoding and have labels of one kind."""
        filled = [part for part in parts if len(part.coords)]
        names = [name for name in FILLERS if any(name in part.columns for part in filled)]
        return cls(
            sizes=_joined([part.sizes for part in parts], (0,), np.int64),
            coords=_joined([part.coords for part in filled], (0, 4)),
            encoding=next((part.encoding for part in parts if part.encoding is not None), None),
            labels=_joined([part.labels for part in filled], (0,), np.int64),
            columns={name: np.concatenate([part.column(name) for part in filled]) for name in names},
            is_widened=any(part.is_widened for part in parts),
            shapes=joined_shapes([part.shapes for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        columns = [*self.columns.values(), *({} if self.shapes is None else self.shapes.to_arrays()).values()]
        return sum(array.nbytes for array in (self.sizes, self.coords, self.labels, *columns))

    @property
    def has_names(self) -> bool:
        """Whether classes are texts."""
        return self.labels.dtype.kind == "U"

    @property
    def may_be_refused(self) -> bool:
        """Whether a number is none or too large, or a size may be negative: so quick that every batch is looked at."""
        # A missing area is NaN.
        given = [self.columns[name] for name in ("scores", "area") if name in self.columns]
        if not (np.abs(self.coords) <= MAX_COORDINATE).all() or any(np.isinf(column).any() for column in given):
            return True
        if "scores" in self.columns and np.isnan(self.columns["scores"]).any():
            return True
        first, last = self.coords[:, :2], self.coords[:, 2:]
        if self.encoding in ("xyxy", "xywh", "cxcywh"):
            return bool((last < (first if self.encoding == "xyxy" else 0)).any())
        return len(self.coords) > 0

    def column(self, name: str) -> AnyArray:
        """Return a column, filled where no image has it."""
        found = self.columns.get(name)
        return np.full(len(self.coords), FILLERS[name]) if found is None else found

    def take(self, images: IntArray) -> ImageBoxes:
        """Return some of the images, in their order."""
        # In the order in which they came, as a loop without shuffling brings them.
        if len(images) == len(self.sizes) and (images == np.arange(len(images))).all():
            return self
        sizes = self.sizes[images]
        ends = np.cumsum(sizes)
        # Each box of an image taken lies as far from the image's first box as it did before.
        first = (np.cumsum(self.sizes) - self.sizes)[images] - (ends - sizes)
        rows = np.repeat(first, sizes) + np.arange(int(sizes.sum()))
        return ImageBoxes(
            sizes=sizes,
            coords=self.coords[rows],
            encoding=self.encoding,
            labels=self.labels[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
            is_widened=self.is_widened,
            shapes=None if self.shapes is None else self.shapes.take(rows),
        )

    def narrowed(self) -> ImageBoxes:
        """Return the boxes in the smallest types that hold their numbers: half of the memory for those of networks."""
        columns = {name: narrowed(column) for name, column in self.columns.items()}
        return replace(self, coords=narrowed(self.coords), labels=narrowed(self.labels), columns=columns)

    def widened(self) -> ImageBoxes:
        """Return the boxes in the types that are computed with."""
        wide = {"f": np.float64, "i": np.int64, "u": np.int64}
        columns = {
            name: column.astype(wide.get(column.dtype.kind, column.dtype), copy=False)
            for name, column in self.columns.items()
        }
        labels = self.labels.astype(wide.get(self.labels.dtype.kind, self.labels.dtype), copy=False)
        return replace(self, coords=self.coords.astype(np.float64, copy=False), labels=labels, columns=columns)

    def equals(self, other: ImageBoxes) -> bool:
        """Whether all boxes are the same, in the same order; NaN equals NaN."""
        if not np.array_equal(self.sizes, other.sizes):
            return False
        pairs = [(self.labels, other.labels), (self.coords, other.coords)]
        if self.shapes is not None and other.shapes is not None:
            pairs.append((self.shapes.hashes(), other.shapes.hashes()))
        pairs += [(self.column(name), other.column(name)) for name in {*self.columns, *other.columns}]
        return not len(self.coords) or all(
            np.array_equal(left, right, equal_nan=left.dtype.kind == "f") for left, right in pairs
        )

    def require_labels(self, names: Mapping[int, str], path: str, place: Callable[[int], str]) -> None:
        """Refuse a class that is a number and has no name."""
        if self.has_names or not len(self.labels):
            return
        known = np.fromiter(names, dtype=np.int64, count=len(names))
        outside = np.flatnonzero(~np.isin(self.labels, known))
        if len(outside):
            row, last = int(outside[0]), len(names) - 1
            span = f" (0 to {last})" if [*names] == [*range(len(names))] else f": {example_keys([*names])}"
            what = f"label is {self.labels[row]}, but there are {len(names)} class names{span}"
            raise UsageError(f"{path}: {self._box_place(row, place)}: {what}")

    def _box_place(self, row: int, place: Callable[[int], str]) -> str:
        at = int(np.searchsorted(np.cumsum(self.sizes), row, "right"))
        return f"{place(at)}.boxes[{row - int(self.sizes[:at].sum())}]"

    def add_to(
        self, draft: Draft, keys: Sequence[Key], place: Callable[[int], str], names: Mapping[int, str] | None = None
    ) -> None:
        """Add the images by their keys, and their boxes, to a draft; `names` are those of classes that are numbers."""
        draft.set_images(keys, sizes=sizes_of(self.shapes, self.sizes))
        scores = self.columns.get("scores")
        if draft.options.role == "gt" and scores is not None:
            draft.mention_scores(int(np.count_nonzero(~np.isnan(scores))))
        if self.is_widened:
            detail = "numbers are float16 or float32; widened to float64, with the digits that they have"
            draft.findings.note("precision-single", Where(draft.path), detail)
        if not self.has_names and names is not None:
            draft.set_classes(list(names), list(names.values()))
        columns: dict[str, Any] = {_COLUMNS.get(name, name): column for name, column in self.columns.items()}
        if draft.options.role == "gt":
            columns.pop("score", None)
        if self.shapes is not None:
            columns |= self._shape_columns(draft)
        draft.add_boxes(
            RawBoxes(
                image=CodedKeys(keys, np.repeat(np.arange(len(keys)), self.sizes)),
                label=[str(label) for label in self.labels] if self.has_names else self.labels,
                coords=self.coords,
                encoding=self.encoding or "xyxy",
                units="px",
                place=lambda row: Where(draft.path, record=self._box_place(row, place)),
                negative_size=Severity.ERROR,
                **columns,
            )
        )

    def _shape_columns(self, draft: Draft) -> dict[str, Any]:
        """Return the shapes as they are read, and what follows from them for areas and flags."""
        area = self.column("area")
        is_truth = draft.options.role == "gt"
        if isinstance(self.shapes, Masks):
            return {"shapes": Outlines.of_masks(self.shapes, np.isnan(area) | (not is_truth))}
        if not isinstance(self.shapes, Keypoints) or not is_truth:
            return {"shapes": self.shapes}
        labelled = (self.shapes.points[:, :, 2] > 0).any(axis=1)
        (unsized,) = np.nonzero(~(area > 0) & labelled)
        draft.findings.add_rows(
            Severity.WARNING,
            "area-missing",
            unsized,
            lambda row: (Where(draft.path, field="area"), ""),
            summary=(
                f"area is 0 or missing for {len(unsized):,} of {len(area):,} poses: OKS measures distances by it, by"
                " that of the box where it is missing"
            ),
        )
        # As in COCO, what has no labelled point is neither found nor missed.
        return {"shapes": self.shapes, "ignore": self.column("ignore") | ~labelled}


def _joined_shapes(shapes: Sequence[ImageShapes], records: Records) -> ImageShapes | None:
    counts = {
        shape.points.shape[1]: at for at, shape in enumerate(shapes) if isinstance(shape, Keypoints) and len(shape)
    }
    if len(counts) > 1:
        (few, first), (many, second) = sorted(counts.items())[:2]
        names = records.name(first), records.name(second)
        raise UsageError(f"{names[0]} has poses of {few} keypoints, {names[1]} of {many}; expected as many in all")
    return joined_shapes(shapes)


def narrowed(array: AnyArray) -> AnyArray:
    """Return numbers in the smallest type that holds them all, to the bit."""
    if array.dtype.kind in "iu" and array.size and array.min() >= 0:
        least = np.min_scalar_type(int(array.max()))
        # NumPy joins unsigned numbers of 64 bits with others as floats.
        return array if least.itemsize == array.dtype.itemsize else array.astype(least)
    if array.dtype == np.float64:
        with np.errstate(over="ignore", under="ignore"):
            narrow = array.astype(np.float32)
        # By their bits: equal numbers can be two zeros.
        if np.array_equal(narrow.astype(np.float64).view(np.uint64), array.view(np.uint64)):
            return narrow
    return array


def _on_host(dicts: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the dicts with tensors on a GPU copied to the host, all of a type at once: each copy waits for the GPU."""
    if not dicts or _library_of(dicts[0].get("boxes")) is None:
        return dicts
    copied: list[dict[str, Any]] = [dict(record) for record in dicts]
    alike: dict[tuple[Any, ...], list[tuple[int, str, Any]]] = {}
    for at, record in enumerate(dicts):
        for name in ("boxes", "labels", *FILLERS):
            values: Any = record.get(name)
            library = _library_of(values)
            if library is not None:
                kind = library, str(values.dtype), str(values.device)
                alike.setdefault(kind, []).append((at, name, values.detach()))
    for (library, *_), tensors in alike.items():
        joined = to_array(library.cat([tensor.reshape(-1) for _, _, tensor in tensors]))
        ends = np.cumsum([math.prod(tensor.shape) for _, _, tensor in tensors])
        for (at, name, tensor), flat in zip(tensors, np.split(joined, ends[:-1]), strict=True):
            copied[at][name] = flat.reshape(tuple(tensor.shape))
    return copied


def _library_of(values: Any) -> Any:
    """Return the library of a tensor on a GPU that can join such; None for all else."""
    if not hasattr(values, "detach") or getattr(getattr(values, "device", None), "type", "cpu") == "cpu":
        return None
    library = sys.modules.get(type(values).__module__.partition(".")[0])
    return library if hasattr(library, "cat") else None


def _arrays(record: Mapping[str, Any], records: Records, at: int) -> dict[str, AnyArray]:
    """Return the arrays of one dict, their shapes checked."""
    # Its place is made where it is needed: millions of dicts are sound.
    for needed in ("boxes", "labels"):
        if needed not in record:
            raise UsageError(f"{records.name(at)} has no {needed}; it has {', '.join(map(str, record))}")
    boxes = _array(record, "boxes", records, at)
    # No box at all comes in any shape: [], (0,), (0, 4).
    if boxes.size == 0:
        boxes = boxes.reshape(0, 4)
    if boxes.dtype.kind in _NUMBERS and (boxes.ndim != 2 or boxes.shape[1] != 4):
        name = f"{records.name(at)}['boxes']"
        raise UsageError(f"{name} has shape {boxes.shape}; expected (n, 4), four numbers per box")
    arrays = {"boxes": boxes}
    for column in ("labels", *FILLERS):
        values = record.get(column)
        if values is None and column != "labels":
            continue
        array = _array(record, column, records, at)
        if array.shape != (len(boxes),) and not (array.size == len(boxes) == 0):
            expected = f"({len(boxes)},), one value per box"
            raise UsageError(f"{records.name(at)}[{column!r}] has shape {array.shape}; expected {expected}")
        arrays[column] = array
    for column, array in arrays.items():
        if array.dtype.kind not in _NUMBERS and array.size and column != "labels":
            value = quoted_value(array.reshape(-1)[:1].tolist()[0])
            raise UsageError(f"{records.name(at)}[{column!r}] must hold numbers, got {value}")
    return arrays


def _array(record: Mapping[str, Any], column: str, records: Records, at: int) -> AnyArray:
    try:
        return to_array(record[column], "")
    except UsageError as error:
        raise UsageError(f"{records.name(at)}[{column!r}]{error}") from None


def _joined(parts: Sequence[AnyArray], empty: tuple[int, ...], dtype: Any = np.float64) -> AnyArray:
    return np.concatenate(parts) if parts else np.zeros(empty, dtype=dtype)


def _filled_columns(filled: Sequence[Mapping[str, AnyArray]]) -> dict[str, AnyArray]:
    """Return the columns that any of the records has; records without one have its filler."""
    columns = {}
    for name, filler in FILLERS.items():
        if any(name in record for record in filled):
            parts = [record[name] if name in record else np.full(len(record["boxes"]), filler) for record in filled]
            columns[name] = np.concatenate(parts).astype(np.bool_ if isinstance(filler, bool) else np.float64)
    return columns


def _labels(parts: Sequence[AnyArray], sizes: IntArray, records: Records) -> AnyArray:
    """Return the class of each box: indices from 0, or names."""
    labels = _joined(parts, (0,), np.int64)
    kinds = {part.dtype.kind for part in parts}
    if parts and kinds <= {"U", "O"} and all(isinstance(label, str) for label in labels):
        return labels.astype(np.str_)
    # Whole numbers in one look; what else there is, one by one: floats, and numbers among other objects.
    if kinds <= {"i", "u"} and not (len(labels) and (labels.min() < 0 or labels.max() > np.iinfo(np.int64).max)):
        return labels.astype(np.int64)
    for row, label in enumerate(labels.tolist()):
        if not _is_whole(label):
            at = int(np.searchsorted(np.cumsum(sizes), row, "right"))
            place = f"{records.path}: {records.place(at)}.boxes[{row - int(sizes[:at].sum())}]"
            expected = "expected whole numbers of at least 0, or names in all dicts"
            raise UsageError(f"{place}: label is {quoted_value(label)}; {expected}")
    return labels.astype(np.int64)


def image_place(key: Key) -> str:
    """Return what messages call the place of an image that has a key."""
    return f"[image {quoted_value(key)}]"


def _is_whole(label: object) -> bool:
    # NaN and infinity compare False; what does not fit into 64 bits is not a class.
    return isinstance(label, int | float) and not isinstance(label, bool) and 0 <= label < 2**63 and label % 1 == 0
