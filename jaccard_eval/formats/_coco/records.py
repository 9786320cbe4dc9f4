"""The records of COCO JSON, and what a file of any of its layouts holds."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from jaccard_eval.errors import Where

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
