"""The columns of COCO JSON, as whatever reads it fills them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, index
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import Where
from jaccard_eval.reading.draft import Keys

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NOT_GIVEN = -1  # of a flag; files can only say 0 or 1

Id = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)] | str
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)] | bool
Box = tuple[float, float, float, float]  # left, top, width, height in pixels


class ImageRecord(msgspec.Struct, gc=False):
    """One entry of ``images``."""

    id: Id
    file_name: str | UnsetType | None = UNSET
    width: float | UnsetType | None = UNSET
    height: float | UnsetType | None = UNSET


class CategoryRecord(msgspec.Struct, gc=False):
    """One entry of ``categories``."""

    id: Id
    name: str | UnsetType | None = UNSET
    supercategory: Any = None


class TruthRecord(msgspec.Struct, gc=False):
    """One entry of ``annotations`` in ground truth; `area` NaN and flags -1 mean: not given. `score` is not used."""

    image_id: Id
    category_id: Id
    bbox: Box
    area: float = float("nan")
    iscrowd: Flag = NOT_GIVEN
    ignore: Flag = NOT_GIVEN
    id: int | float | str | UnsetType | None = UNSET
    score: Any = UNSET


class ResultRecord(msgspec.Struct, gc=False):
    """One detection; `score` NaN means: not given. Ultralytics adds `file_name`, SAHI `category_name`."""

    image_id: Id
    category_id: Id
    bbox: Box
    score: float = float("nan")
    file_name: str | UnsetType | None = UNSET
    category_name: str | UnsetType | None = UNSET
    id: Any = UNSET


class PlainRecord(msgspec.Struct, gc=False):
    """One detection as almost every tool writes it: these four fields, numbers throughout."""

    image_id: int
    category_id: int
    bbox: Box
    score: float


class Layout(enum.StrEnum):
    """How a file arranges its records; the text is what reports say."""

    OBJECT = "one object with annotations"
    ARRAY = "results list"
    LINES = "JSON Lines of results"


Record = TypeVar("Record", TruthRecord, ResultRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content(Generic[Record]):
    """Everything a file holds, as records in the order of the file.

    Parameters
    ----------
    layout : Layout
    boxes : list of TruthRecord, or of ResultRecord
    images, categories : list, optional
        None where the file has no such section.
    lines : sequence of int, optional
        Line of each box, for JSON Lines.
    """

    layout: Layout
    boxes: list[Record]
    images: list[ImageRecord] | None = None
    categories: list[CategoryRecord] | None = None
    lines: Sequence[int] = ()

    def places(self, path: str) -> Callable[[int], Where]:
        """Return the function from a box's row to its place in the file."""
        if self.layout is Layout.LINES:
            return lambda row: Where(path, line=self.lines[row])
        section = "annotations" if self.layout is Layout.OBJECT else ""
        return lambda row: Where(path, record=f"{section}[{row}]")


Texts = list[str | UnsetType | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxColumns:
    """What ground truth and detections share: file keys (n,) and coordinates (n, 4)."""

    image: Keys
    category: Keys
    coords: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthColumns(BoxColumns):
    """Ground truth; `area` NaN and flags -1 mean: not given. `ids` are those of the annotations, `scores` not used."""

    area: FloatArray
    iscrowd: npt.NDArray[np.int8]
    ignore: npt.NDArray[np.int8]
    ids: list[object]
    scores: list[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumns(BoxColumns):
    """Detections; `score` NaN means: not given. Texts are empty lists where no record has the key."""

    score: FloatArray
    file_names: Texts
    category_names: Texts


def truth_columns(records: list[TruthRecord]) -> TruthColumns:
    """Make columns of ground truth."""
    n = len(records)
    return TruthColumns(
        image=_keys("image_id", records),
        category=_keys("category_id", records),
        coords=_coords(map(attrgetter("bbox"), records), n),
        area=np.fromiter(map(attrgetter("area"), records), np.float64, n),
        iscrowd=np.fromiter(map(attrgetter("iscrowd"), records), np.int8, n),
        ignore=np.fromiter(map(attrgetter("ignore"), records), np.int8, n),
        ids=list(map(attrgetter("id"), records)),
        scores=list(map(attrgetter("score"), records)),
    )


def result_columns(records: list[ResultRecord]) -> ResultColumns:
    """Make columns of detections."""
    n = len(records)
    return ResultColumns(
        image=_keys("image_id", records),
        category=_keys("category_id", records),
        coords=_coords(map(attrgetter("bbox"), records), n),
        score=np.fromiter(map(attrgetter("score"), records), np.float64, n),
        file_names=_texts("file_name", records),
        category_names=_texts("category_name", records),
    )


def plain_columns(pieces: Iterable[list[PlainRecord]]) -> ResultColumns:
    """Make columns of detections that come a piece at a time.

    Raises
    ------
    OverflowError
        When an id does not fit 64 bits.
    ValueError
        When there is no piece, or one without records.
    """
    columns = [_plain_piece(records) for records in pieces]
    image, category, coords, score = (np.concatenate(column) for column in zip(*columns, strict=True))
    return ResultColumns(
        image=image, category=category, coords=coords.reshape(-1, 4), score=score, file_names=[], category_names=[]
    )


def _plain_piece(records: list[PlainRecord]) -> tuple[npt.NDArray[np.generic], ...]:
    n = len(records)
    if n == 0:
        raise ValueError("a piece without records")
    return (
        np.fromiter(map(attrgetter("image_id"), records), np.int64, n),
        np.fromiter(map(attrgetter("category_id"), records), np.int64, n),
        np.fromiter(chain.from_iterable(map(attrgetter("bbox"), records)), np.float64, 4 * n),
        np.fromiter(map(attrgetter("score"), records), np.float64, n),
    )


def count_given(values: Sequence[object]) -> int:
    """How many records have an optional key, null included."""
    return len(values) - values.count(UNSET)


def count_texts(values: Keys | Texts) -> int:
    """How many of the values are texts."""
    return 0 if isinstance(values, np.ndarray) else sum(isinstance(value, str) for value in values)


def _texts(field: str, records: list[ResultRecord]) -> Texts:
    texts = list(map(attrgetter(field), records))
    return texts if count_given(texts) else []


def _coords(boxes: Iterable[tuple[float, float, float, float]], n: int) -> FloatArray:
    return np.fromiter(chain.from_iterable(boxes), np.float64, 4 * n).reshape(n, 4)


def _keys(field: str, records: Sequence[TruthRecord | ResultRecord]) -> Keys:
    """Return integers as an array; a list when any key is a text."""
    values = attrgetter(field)
    try:
        return np.fromiter(map(index, map(values, records)), np.int64, len(records))
    except TypeError:
        return list(map(values, records))
