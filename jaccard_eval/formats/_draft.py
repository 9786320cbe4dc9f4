"""The draft that a format fills, and how it becomes a dataset: keys indexed, units converted, numbers checked.

A format adds images, classes and boxes in the *file's* keys, encoding and units, each box with its place. Everything
that is the same for all formats happens here, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray, freeze, to_xywh
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, key_order, unknown_sizes
from jaccard_eval.errors import FindingLog, Severity, Where, shown
from jaccard_eval.formats import ReadOptions

Keys = npt.NDArray[np.int64] | Sequence[Key]

DENSE_KEY_SPAN = 4  # integer keys are indexed by a table when their span is at most this many times their count


@dataclass(slots=True, kw_only=True)
class RawBoxes:
    """Boxes as the file has them.

    Parameters
    ----------
    image, label : int64 array (n,) or sequence of keys
        File keys of the image and class of each box.
    coords : float64 array (n, 4)
        In `encoding` ("xywh", "xyxy", "cxcywh") and `units` ("px", "norm").
    score, area : float64 array (n,), optional
        NaN in `area` means: not given.
    crowd, difficult, group_of, ignore : bool array (n,), optional
    place : callable
        From a box's row to its place in the input.
    negative_size : Severity
        Whether a negative width or height is an error or, as in COCO JSON, a warning.
    """

    image: Keys
    label: Keys
    coords: FloatArray
    encoding: str
    units: str
    place: Callable[[int], Where]
    score: FloatArray | None = None
    area: FloatArray | None = None
    crowd: BoolArray | None = None
    difficult: BoolArray | None = None
    group_of: BoolArray | None = None
    ignore: BoolArray | None = None
    negative_size: Severity = Severity.ERROR


@dataclass(slots=True)
class _Universe:
    """Keys of one kind (images or classes) in their order, and the row of each box in it."""

    keys: list[Key]
    rows: RowArray


class Draft:
    """Collects what a format reads; `build` makes the dataset of it."""

    def __init__(self, path: str, format_name: str, options: ReadOptions) -> None:
        self.path = path
        self.format_name = format_name
        self.options = options
        self.findings = FindingLog()
        self.ignored: Counter[str] = Counter()
        self.details: list[str] = []
        self._images: _Images | None = None
        self._classes: tuple[list[Key], list[str], bool] | None = None
        self._boxes: RawBoxes | None = None

    def set_images(
        self,
        keys: Sequence[Key],
        *,
        file_names: Sequence[str | None] | None = None,
        sizes: FloatArray | None = None,
        listed: bool = True,
    ) -> None:
        """Name the images; `listed` when these are all of them. Keys must be unique; their order does not matter."""
        names: list[str | None] = [None] * len(keys) if file_names is None else list(file_names)
        self._images = _Images(list(keys), names, unknown_sizes(len(keys)) if sizes is None else sizes, listed)

    def set_classes(self, keys: Sequence[Key], names: Sequence[str], *, named: bool = True) -> None:
        """Name the classes, in the order that reports use; keys must be unique."""
        self._classes = (list(keys), list(names), named)

    def set_boxes(self, boxes: RawBoxes) -> None:
        """Add all boxes."""
        self._boxes = boxes

    def build(self) -> Dataset:
        """Index, convert and check what was added.

        Raises
        ------
        DataError
            With every problem of the input, in one pass.
        """
        self.findings.raise_errors()
        raw = self._boxes or _no_boxes(self.path)
        self._check_numbers(raw)
        self._check_scores(raw)
        images, image_rows = self._build_images(raw)
        labels, label_rows = self._build_labels(raw)
        self.findings.raise_errors()
        encoding = self.options.box or raw.encoding
        xywh = to_xywh(raw.coords, encoding)
        xywh, units, area = self._convert_units(raw, xywh, images, image_rows)
        self._check_sizes(raw, xywh)
        self.findings.raise_errors()
        boxes = _make_table(raw, self.options, xywh, area, image_rows, label_rows)
        known = (image_rows >= 0) & (label_rows >= 0)
        return Dataset(
            path=self.path,
            format=self.format_name,
            role=self.options.role,
            images=images,
            labels=labels,
            boxes=boxes if known.all() else boxes.take(known),
            units=units,
            details=tuple(self.details),
            ignored=dict(sorted(self.ignored.items())),
            findings=self.findings.findings(),
        )

    def _build_images(self, raw: RawBoxes) -> tuple[ImageTable, RowArray]:
        given = self._images or _Images([], [], unknown_sizes(0), False)
        universe = self._universe(
            "image", raw.image, given.keys, raw.place, closed=self._images is not None and given.listed
        )
        at = {key: row for row, key in enumerate(given.keys)}
        names: list[str | None] = []
        sizes = unknown_sizes(len(universe.keys))
        for row, key in enumerate(universe.keys):
            source = at.get(key)
            names.append(None if source is None else given.file_names[source])
            if source is not None:
                sizes[row] = given.sizes[source]
        return ImageTable(tuple(universe.keys), tuple(names), sizes, given.listed), universe.rows

    def _build_labels(self, raw: RawBoxes) -> tuple[LabelMap, RowArray]:
        keys, names, named = self._classes or ([], [], False)
        universe = self._universe("class", raw.label, keys, raw.place, closed=self._classes is not None)
        at = dict(zip(keys, names, strict=True))
        return LabelMap(
            tuple(universe.keys), tuple(at.get(key, str(key)) for key in universe.keys), named
        ), universe.rows

    def _universe(
        self, kind: str, box_keys: Keys, given: list[Key], place: Callable[[int], Where], *, closed: bool
    ) -> _Universe:
        """Index the boxes' keys in the sorted union of given and used keys; ground truth outside a closed list is set aside."""
        self._check_unique(kind, given)
        known, rows = index_keys(box_keys, given)
        orphans = np.flatnonzero(rows < 0)
        if not len(orphans):
            return _Universe(known, rows)
        if closed and self.options.role == "gt":
            code = f"{kind}-unlisted"
            listed = "images" if kind == "image" else "categories"
            summary = f"{len(orphans):,} boxes set aside: their {kind} is not among the file's {listed}"
            self.findings.add_rows(
                Severity.WARNING, code, orphans, lambda r: (place(r), shown(box_keys[r])), summary=summary
            )
            self.ignored[code] += len(orphans)
            return _Universe(known, rows)
        return _Universe(*index_keys(box_keys, [*given, *_distinct(box_keys, orphans)]))

    def _check_unique(self, kind: str, keys: list[Key]) -> None:
        if len(set(keys)) != len(keys):
            repeated = [key for key, count in Counter(keys).items() if count > 1]
            place = Where(self.path, record="images" if kind == "image" else "categories", field="id")
            self.findings.add_rows(
                Severity.ERROR,
                f"{kind}-duplicate",
                range(len(repeated)),
                lambda r: (place, f"duplicate {kind} id {shown(repeated[r])}"),
                fix="Ids must be unique; drop or renumber the repeated entries.",
            )
            self.findings.raise_errors()

    def _check_numbers(self, raw: RawBoxes) -> None:
        for column, field_name in ((raw.coords, "bbox"), (raw.score, "score"), (raw.area, "area")):
            if column is None:
                continue
            bad = np.isinf(column) if field_name == "area" else ~np.isfinite(column)
            rows = np.flatnonzero(bad.any(axis=1) if bad.ndim == 2 else bad)
            self.findings.add_rows(
                Severity.ERROR,
                f"{field_name}-not-finite",
                rows,
                lambda r, column=column, name=field_name: (
                    raw.place(r),
                    f"{name} is {shown(np.asarray(column[r]).tolist())}; numbers must be finite",
                ),
                fix="Fix the exporter or drop the record.",
            )

    def _check_scores(self, raw: RawBoxes) -> None:
        if self.options.role != "pred" or raw.score is not None or self.options.assume_score is not None:
            return
        if len(raw.coords):
            self.findings.error(
                "score-missing",
                raw.place(0),
                "predictions have no score; average precision ranks boxes by their score",
                fix="Export the scores, or pass --assume-score 1.0 to rank all alike.",
            )

    def _check_sizes(self, raw: RawBoxes, xywh: FloatArray) -> None:
        width, height = xywh[:, 2], xywh[:, 3]

        def describe(row: int) -> tuple[Where, str]:
            return raw.place(row), f"width {width[row]:g}, height {height[row]:g}"

        negative = np.flatnonzero((width < 0) | (height < 0))
        fix = "Check the order of the coordinates (--gt-box, --pred-box: xywh, xyxy or cxcywh)."
        summary = (
            ""
            if raw.negative_size is Severity.ERROR
            else f"{len(negative):,} degenerate boxes have negative width or height; scored as pycocotools does"
        )
        self.findings.add_rows(raw.negative_size, "box-negative", negative, describe, fix=fix, summary=summary)
        empty = np.flatnonzero(((width == 0) | (height == 0)) & (width >= 0) & (height >= 0))
        summary = f"{len(empty):,} degenerate boxes have zero width or height and can match nothing"
        self.findings.add_rows(Severity.WARNING, "box-empty", empty, describe, summary=summary)
        with np.errstate(over="ignore"):
            huge = np.flatnonzero(~np.isfinite(width * height))
        self.findings.add_rows(
            Severity.ERROR,
            "box-too-large",
            huge,
            lambda r: (raw.place(r), f"bbox {width[r]:g} x {height[r]:g}: the area overflows"),
        )

    def _convert_units(
        self, raw: RawBoxes, xywh: FloatArray, images: ImageTable, image_rows: RowArray
    ) -> tuple[FloatArray, str, FloatArray]:
        units = self.options.units or raw.units
        used = image_rows[image_rows >= 0]
        if units == "norm" and len(images) and np.isfinite(images.sizes[used]).all():
            width, height = images.sizes[image_rows, 0], images.sizes[image_rows, 1]
            xywh = xywh * np.stack((width, height, width, height), axis=1)
            units = "px"
        with np.errstate(over="ignore"):
            area = xywh[:, 2] * xywh[:, 3]
        if raw.area is not None and (self.options.units or raw.units) == "px":
            area = np.where(np.isnan(raw.area), area, raw.area)
        return xywh, units, area


@dataclass(slots=True)
class _Images:
    keys: list[Key]
    file_names: list[str | None]
    sizes: FloatArray
    listed: bool


def index_keys(box_keys: Keys, given: Sequence[Key]) -> tuple[list[Key], RowArray]:
    """Sort the given keys and return them with each box's row among them, -1 where a box's key is not given."""
    if isinstance(box_keys, np.ndarray) and all(type(key) is int for key in given):
        if not given:
            return [], np.full(len(box_keys), -1, dtype=np.int32)
        universe = np.unique(np.array(given, dtype=np.int64))
        return universe.tolist(), _index_integers(box_keys, universe)
    order = sorted(set(given), key=key_order)
    at = {key: row for row, key in enumerate(order)}
    keys = box_keys.tolist() if isinstance(box_keys, np.ndarray) else box_keys
    return order, np.fromiter((at.get(key, -1) for key in keys), dtype=np.int32, count=len(keys))


def _index_integers(keys: npt.NDArray[np.int64], universe: npt.NDArray[np.int64]) -> RowArray:
    low, high = int(universe[0]), int(universe[-1])
    if high - low > DENSE_KEY_SPAN * (len(universe) + len(keys)) + 1000:
        rows = np.searchsorted(universe, keys)
        rows[rows == len(universe)] = 0
        return np.where(universe[rows] == keys, rows, -1).astype(np.int32)
    table = np.full(high - low + 2, -1, dtype=np.int32)  # the last cell stays -1: keys out of range
    table[universe - low] = np.arange(len(universe), dtype=np.int32)
    inside = (keys >= low) & (keys <= high)
    return table[np.where(inside, keys - low, high - low + 1)]


def _distinct(keys: Keys, rows: npt.NDArray[np.int64]) -> list[Key]:
    """Distinct keys of the boxes in `rows`, in any order."""
    if not isinstance(keys, np.ndarray):
        return list({keys[row] for row in rows})
    chosen = keys[rows]
    low, high = int(chosen.min()), int(chosen.max())
    if high - low > DENSE_KEY_SPAN * len(chosen) + 1000:
        return list(np.unique(chosen).tolist())
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[chosen - low] = True
    return list((np.flatnonzero(present) + low).tolist())


def _no_boxes(path: str) -> RawBoxes:
    return RawBoxes(
        image=[], label=[], coords=np.zeros((0, 4)), encoding="xywh", units="px", place=lambda _: Where(path)
    )


def _make_table(
    raw: RawBoxes, options: ReadOptions, xywh: FloatArray, area: FloatArray, image: RowArray, label: RowArray
) -> BoxTable:
    n = len(xywh)
    score = raw.score
    if options.role == "gt":
        score = None
    elif score is None:
        score = np.full(n, options.assume_score if options.assume_score is not None else 0.0)
    flags = {name: _flag(getattr(raw, name), n) for name in ("crowd", "difficult", "group_of", "ignore")}
    table = BoxTable(
        image=image, label=label, xywh=np.ascontiguousarray(xywh), score=score, area=area, source=np.arange(n), **flags
    )
    return freeze(table)


def _flag(values: BoolArray | None, n: int) -> BoolArray:
    return np.zeros(n, dtype=np.bool_) if values is None else values
