"""The draft that a format fills, and how it becomes a dataset: keys indexed, units converted, numbers checked.

A format adds images, classes and boxes in the *file's* keys, encoding and units, each box with its place. Everything
that is the same for all formats happens here, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, RowArray, freeze, to_xywh
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, Reading, unknown_sizes
from jaccard_eval.errors import FindingLog, Severity, UsageError, Where, shown
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.keys import Keys, distinct_keys, index_keys
from jaccard_eval.reading.raw_boxes import RawBoxes, check_areas, check_numbers, check_scores, check_sizes

__all__ = ["Draft", "RawBoxes"]


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
        check_numbers(raw, self.findings)
        if self.options.role == "pred":
            self._check_scores(raw)
        images, image_rows = self._build_images(raw)
        labels, label_rows = self._build_labels(raw)
        self.findings.raise_errors()
        reading = Reading(self.options.box or raw.encoding, self.options.units or raw.units, self._origin())
        xywh = self._from_origin(to_xywh(raw.coords, reading.encoding), reading)
        xywh, units, area = self._convert_units(raw, xywh, images, image_rows)
        check_sizes(raw, xywh, self.findings)
        check_areas(raw, self.findings)
        self._check_not_empty(raw)
        self.findings.raise_errors()
        table = _make_table(raw, _score_column(raw, self.options), xywh, area)
        boxes = freeze(replace(table, image=image_rows, label=label_rows))
        known = (image_rows >= 0) & (label_rows >= 0)
        return Dataset(
            path=self.path,
            format=self.format_name,
            role=self.options.role,
            images=images,
            labels=labels,
            boxes=boxes if known.all() else boxes.take(known),
            units=units,
            units_guessed=raw.units_guessed and self.options.units is None,
            reading=reading,
            details=tuple(self.details),
            ignored=dict(sorted(self.ignored.items())),
            findings=self.findings.findings(),
        )

    def _check_not_empty(self, raw: RawBoxes) -> None:
        """Warn where there is no box, unless the format did."""
        if not len(raw.coords) and not self.findings.has("gt-empty", "pred-empty"):
            is_gt = self.options.role == "gt"
            code, detail = ("gt-empty", "no ground truth boxes") if is_gt else ("pred-empty", "no predictions")
            self.findings.warning(code, Where(self.path), detail)

    def _origin(self) -> int:
        origin = self.options.origin
        if origin not in (0, 1):
            raise UsageError(f"origin must be 0 or 1, got {shown(origin)}")
        return origin

    def _from_origin(self, xywh: FloatArray, reading: Reading) -> FloatArray:
        """Count pixels from 0."""
        if not reading.origin or not len(xywh):
            return xywh
        if reading.units != "px":
            detail = "boxes are fractions of their image, which have no first pixel: none is moved"
            fix = f"Leave out --{self.options.role}-origin, or pass --{self.options.role}-units px if they are pixels."
            self.findings.warning("origin-unused", Where(self.path, field="box"), detail, fix=fix)
            return xywh
        self.details.append(f"pixels counted from {reading.origin}")
        return xywh - np.array([reading.origin, reading.origin, 0, 0], dtype=np.float64)

    def _check_scores(self, raw: RawBoxes) -> None:
        assumed = self.options.assume_score
        if assumed is None:
            check_scores(raw, self.findings)
        elif raw.score is None and len(raw.coords):
            where = Where(self.path, field="score")
            detail = f"none of the {len(raw.coords):,} predictions has one; all rank alike with {assumed:g}"
            self.findings.note("score-assumed", where, detail)

    def _build_images(self, raw: RawBoxes) -> tuple[ImageTable, RowArray]:
        given = self._images or _Images([], [], unknown_sizes(0), False)
        universe = self._universe(
            "image", raw.image, given.keys, raw.place, closed=self._images is not None and given.listed
        )
        at = {key: row for row, key in enumerate(given.keys)}
        sources = [at.get(key, -1) for key in universe.keys]
        names = tuple(None if source < 0 else given.file_names[source] for source in sources)
        is_given = np.array(sources, dtype=np.int64) >= 0
        sizes = unknown_sizes(len(sources))
        sizes[is_given] = given.sizes[[source for source in sources if source >= 0]]
        return ImageTable(tuple(universe.keys), names, sizes, given.listed), universe.rows

    def _build_labels(self, raw: RawBoxes) -> tuple[LabelMap, RowArray]:
        keys, names, named = self._classes or ([], [], False)
        universe = self._universe("class", raw.label, keys, raw.place, closed=self._classes is not None)
        if not named and self.options.names and all(isinstance(key, int) for key in universe.keys):
            return self._named_by_index(universe, self.options.names), universe.rows
        at = dict(zip(keys, names, strict=True))
        texts = tuple(at.get(key, str(key)) for key in universe.keys)
        return LabelMap(tuple(universe.keys), texts, named), universe.rows

    def _named_by_index(self, universe: _Universe, names: Sequence[str]) -> LabelMap:
        """Name classes that the input only numbers."""
        outside = [key for key in universe.keys if not (isinstance(key, int) and 0 <= key < len(names))]
        for key in outside:
            self.findings.error(
                "class-index",
                Where(self.path, field="class"),
                f"class {shown(key)} has no name: {len(names)} names are given, for classes 0 to {len(names) - 1}",
                fix="Give a name for every index with --gt-names or --pred-names.",
            )
        texts = (str(key) if key in outside else names[int(key)] for key in universe.keys)
        return LabelMap(tuple(universe.keys), tuple(texts), named=True)

    def _universe(
        self, kind: str, box_keys: Keys, given: list[Key], place: Callable[[int], Where], *, closed: bool
    ) -> _Universe:
        """Index the boxes' keys in the union of given and used; ground truth outside a closed list is set aside."""
        self._check_unique(kind, given)
        known, rows = index_keys(box_keys, given)
        orphans = np.flatnonzero(rows < 0)
        if not len(orphans):
            return _Universe(known, rows)
        if closed and self.options.role == "gt":
            code = "image-unlisted" if kind == "image" else "class-unlisted"
            listed = "images" if kind == "image" else "categories"
            summary = f"{len(orphans):,} boxes set aside: their {kind} is not among the file's {listed}"

            def describe(row: int) -> tuple[Where, str]:
                return place(row), f"{kind} {shown(box_keys[row])}"

            self.findings.add_rows(Severity.WARNING, code, orphans, describe, summary=summary)
            self.ignored[code] += len(orphans)
            return _Universe(known, rows)
        return _Universe(*index_keys(box_keys, [*given, *distinct_keys(box_keys, orphans)]))

    def _check_unique(self, kind: str, keys: list[Key]) -> None:
        if len(set(keys)) != len(keys):
            repeated = [key for key, count in Counter(keys).items() if count > 1]
            place = Where(self.path, record="images" if kind == "image" else "categories", field="id")
            self.findings.add_rows(
                Severity.ERROR,
                "image-duplicate" if kind == "image" else "class-duplicate",
                range(len(repeated)),
                lambda r: (place, f"duplicate {kind} id {shown(repeated[r])}"),
                fix="Ids must be unique; drop or renumber the repeated entries.",
            )
            self.findings.raise_errors()

    def _convert_units(
        self, raw: RawBoxes, xywh: FloatArray, images: ImageTable, image_rows: RowArray
    ) -> tuple[FloatArray, str, FloatArray]:
        units = self.options.units or raw.units
        used = image_rows[image_rows >= 0]
        if units == "norm" and len(images) and np.isfinite(images.sizes[used]).all():
            width, height = images.sizes[image_rows, 0], images.sizes[image_rows, 1]
            with np.errstate(over="ignore"):
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


def _no_boxes(path: str) -> RawBoxes:
    return RawBoxes(
        image=[], label=[], coords=np.zeros((0, 4)), encoding="xywh", units="px", place=lambda _: Where(path)
    )


def _score_column(raw: RawBoxes, options: ReadOptions) -> FloatArray | None:
    """Scores of predictions; None for ground truth, whatever the file carries."""
    if options.role == "gt" or raw.score is not None:
        return raw.score if options.role == "pred" else None
    return np.full(len(raw.coords), options.assume_score or 0.0)


def _make_table(raw: RawBoxes, score: FloatArray | None, xywh: FloatArray, area: FloatArray) -> BoxTable:
    """Make the table but for the rows of image and class, which the caller fills in."""
    n = len(xywh)
    nowhere = np.full(n, -1, dtype=np.int32)
    return BoxTable(
        image=nowhere,
        label=nowhere,
        xywh=np.ascontiguousarray(xywh),
        score=score,
        area=area,
        crowd=_flag(raw.crowd, n),
        difficult=_flag(raw.difficult, n),
        group_of=_flag(raw.group_of, n),
        ignore=_flag(raw.ignore, n),
        source=np.arange(n),
    )


def _flag(values: BoolArray | None, n: int) -> BoolArray:
    return np.zeros(n, dtype=np.bool_) if values is None else values
