"""What an inspection shows of one input or two: counts, ranges, how they correspond, findings. Nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Literal

from jaccard_eval.data.boxtable import FLAGS
from jaccard_eval.data.document import ABSENT, Also, dig, written_as
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.result import Correspondence, InputSummary, Result
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a column of numbers spreads; all NaN when there are none."""

    # min, q05, median, mean, q95, max: `q05` and `q95` are the 5 % and 95 % quantiles
    min: float
    q05: float
    median: float
    mean: float
    q95: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCounts:
    """Images of one side."""

    total: int
    listed: bool  # whether the input lists its images, those without boxes included
    with_boxes: int
    with_size: int  # images whose width and height are known
    sizes: tuple[tuple[str, int], ...]  # the most frequent sizes, as "640 x 480", with their number of images
    # Boxes per image, images without boxes included
    per_image: Spread
    most_crowded: str  # name of the image with most boxes; empty without boxes


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCounts:
    """Boxes of one side."""

    total: int
    units: Literal["px", "norm"]  # of the ranges and sizes that follow: those of both sides, where two correspond
    # encoding, file_units: what the four numbers of the file's boxes were read as
    encoding: str
    file_units: str
    # x, y: lowest and highest coordinate that a side of a box has
    x: tuple[float, float]
    y: tuple[float, float]
    # width, height, area, aspect: `aspect` is width by height, of boxes that have an area
    width: Spread
    height: Spread
    area: Spread
    aspect: Spread
    # Boxes per size range of COCO; empty where areas are not in square pixels
    buckets: Mapping[str, int] = field(metadata=written_as("buckets", order=[area.name for area in COCO.areas]))
    decimals: int | None  # decimals that the numbers of the file have; None for more than six
    # sized, outside: boxes of images of known size (all, where units are fractions), and those of them that leave
    # their image
    sized: int
    outside: int
    # Boxes that are crowd, difficult, ignore or group_of
    flags: Mapping[str, int] = field(metadata=written_as("flags", order=FLAGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """Boxes of one class, and the images that they are in."""

    name: str
    key: str
    boxes: int
    images: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCounts:
    """Scores of predictions: their spread, how many values differ, and their decimals, None for more than six."""

    spread: Spread
    distinct: int
    decimals: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One side as it was read; `scores` is None for ground truth."""

    role: str = field(metadata=written_as("role", written=False))
    summary: InputSummary = field(metadata=written_as("summary", written=False))
    images: ImageCounts
    boxes: BoxCounts
    classes: tuple[ClassCount, ...]
    scores: ScoreCounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Both sides together."""

    correspondence: Correspondence
    cap: int | None  # detections per image and class that take part; None without a cap
    # beyond_cap, images_beyond_cap: detections that do not, and the images that they are in
    beyond_cap: int
    images_beyond_cap: int
    # objects, located: objects of the sampled images that a prediction could be for, and those in whose place (IoU >=
    # 0.5) there is one, whatever its class
    objects: int
    located: int
    # compared, same_class: objects that a prediction was taken to be for, and those of which it has the class
    compared: int
    same_class: int
    sampled: float  # share of the images that was looked at


def _side(role: str, document: Mapping[str, Any]) -> Any:
    """Return a side, of which documents have the input and the contents apart."""
    summary, contents = dig(document, f"inputs.{role}"), dig(document, f"contents.{role}")
    known = {"role": role, "summary": summary, **contents} if isinstance(contents, Mapping) else contents
    return None if contents is ABSENT else known


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Inspection(Result):
    """What an inspection found.

    Parameters
    ----------
    version : str
    gt, pred : Description, optional
        None for a side that was not given or could not be read.
    pairing : Pairing, optional
        None where there are no two sides, or they do not correspond.
    findings : tuple of Finding
        Errors included: an inspection shows what it can.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, inspect
    >>> found = inspect(BoxTable.from_arrays([0, 0], ["dog", "cat"], [[0, 0, 10, 10], [20, 20, 40, 40]]))
    >>> found.gt.boxes.total, found.gt.boxes.width.max
    (2, 20.0)
    """

    version: str
    gt: Description | None = field(metadata=written_as(None, read=partial(_side, "gt")))
    pred: Description | None = field(metadata=written_as(None, read=partial(_side, "pred")))
    pairing: Pairing | None
    findings: tuple[Finding, ...]

    kind: ClassVar[str] = "inspection"
    reported_by: ClassVar[str] = "inspect.report"
    also: ClassVar[Also] = (
        lambda found: {
            "inputs": {side.role: side.summary for side in found.sides},
            "contents": {side.role: side for side in found.sides},
        },
    )

    def _summary(self) -> str:
        def described(side: Description) -> str:
            boxes, images = pluralise(side.boxes.total, "box", "boxes"), pluralise(side.images.total, "image")
            classes = pluralise(len(side.classes), "class", "classes")
            return f"{side.role}: {boxes} of {classes} on {images} ({side.summary.format})"

        return "; ".join(map(described, self.sides))

    @property
    def sides(self) -> tuple[Description, ...]:
        """The sides that were read, ground truth first."""
        return tuple(side for side in (self.gt, self.pred) if side is not None)
