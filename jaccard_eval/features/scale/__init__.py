"""What an analysis of scale gives, and what two boxes have in common. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Literal

from jaccard_eval.data.document import Also, written_as
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import Correspondence, InputSummary, Result, values_text
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOptions:
    """What an analysis of scale looks at.

    Parameters
    ----------
    bins : int
        Size bins of equal counts.
    edges : tuple of float
        Edges between size bins instead: sides in px of the square with the area of the box.
    pixels : tuple of float
        Distances k in px: tolerances at the edges.
    pair_iou : float
        IoU from which a prediction is paired with an object when the errors of its box are measured.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, ScaleOptions, sensitivity
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[1, 1, 11, 11]], score=[0.9])
    >>> [row.size for row in sensitivity(gt, pred, scale=ScaleOptions(edges=(20.0,))).losses]
    ['all', '<20', '>=20']
    """

    bins: int = 4
    edges: tuple[float, ...] = ()
    pixels: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    pair_iou: float = 0.5

    def __post_init__(self) -> None:
        checks = (
            (self.bins >= 1, "bins", "a whole number >= 1", self.bins),
            (ascends(self.edges), "edges", "positive and ascending sides in pixels", self.edges),
            (ascends(self.pixels), "pixels", "positive and ascending distances in pixels", self.pixels),
            (0 < self.pair_iou < 1, "pair_iou", "above 0 and below 1", self.pair_iou),
        )
        for holds, name, meaning, got in checks:
            if not holds:
                raise UsageError(f"{name} must be {meaning}, got {got}")

    def chosen(self) -> tuple[str, ...]:
        """Return what can change a number, as a signature names it; the bins are area ranges of the protocol."""
        pixels = ",".join(f"{value:g}" for value in self.pixels) or "none"
        return f"pair={self.pair_iou:g}", f"pixels={pixels}"


def ascends(values: Sequence[float]) -> bool:
    """Whether finite lengths ascend from above 0."""
    return all(low < high for low, high in zip((0.0, *values), (*values, math.inf), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRow:
    """How the boxes of found objects are off, over the pairs of a class and size; None means all."""

    class_name: str | None = field(metadata=written_as("class"))
    size: str | None
    n: int  # matched pairs
    # iou, missing, extra, shift_loss, size_loss: means; ``missing + extra`` and ``shift_loss + size_loss`` are both 1
    # - `iou`
    iou: float
    missing: float
    extra: float
    shift_loss: float
    size_loss: float
    # dx, dy, dx_relative, dy_relative, width_error, height_error, width_ratio, height_ratio, edge_error: medians of
    # the errors, in px, except the relative ones (in sides of the ground truth) and ratios; prediction minus object
    dx: float
    dy: float
    dx_relative: float
    dy_relative: float
    width_error: float
    height_error: float
    width_ratio: float
    height_ratio: float
    edge_error: float
    # Those of dx, dy, width_error and height_error whose sign is not a matter of chance
    consistent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """What average precision a size loses to what: ``ap + localisation + false_positives + misses`` is 1."""

    size: str  # name of the bin, in px, or "all"
    gt: int  # objects that count
    side: float  # their median side in px
    ap: float  # average precision under the protocol
    localisation: float  # what perfect boxes for all that is found would add
    false_positives: float  # what removing all other detections would add after that
    misses: float  # what is not found at all
    within: Mapping[float, float]  # average precision with matches accepted at an edge error of at most k px, by k
    # The smallest k that wins back half of what is lost to localisation; None when none does
    explained_by: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SensitivityResult(Result):
    """The result of an analysis of scale."""

    kind: ClassVar[str] = "sensitivity"
    reported_by: ClassVar[str] = "scale.report"
    also: ClassVar[Also] = (
        other_signatures,
        lambda result: {
            "metrics": result.metrics,
            "undefined": {name: "no ground truth" for name, value in result.metrics.items() if math.isnan(value)},
            "gates": (),
        },
    )

    # Its area ranges are the size bins, the first one holds all
    protocol: Protocol
    options: ScaleOptions
    signature: str
    version: str
    gt: InputSummary = field(metadata=written_as("inputs.gt"))
    pred: InputSummary = field(metadata=written_as("inputs.pred"))
    correspondence: Correspondence
    losses: tuple[LossRow, ...] = field(metadata=written_as("sizes"))  # all sizes, then each bin
    placement: tuple[PlacementRow, ...]  # all pairs, then by size, by class, and by both
    findings: tuple[Finding, ...] = field(default=())

    def __post_init__(self) -> None:
        sizes = {row.size for row in self.losses}
        if ALL not in sizes or any(row.size not in sizes for row in self.placement if row.size is not None):
            raise UsageError("sizes and placement do not belong together")

    @property
    def metrics(self) -> dict[str, float]:
        """Numbers over all sizes by name: AP, what it loses to what, and AP within k px; NaN: undefined.

        ``AP``, ``AP_within_2px``, ``lost_to_localisation``, ``lost_to_false_positives``, ``lost_to_misses``.
        """
        row = self.losses[0]
        lost = {name: getattr(row, name) for name in ("localisation", "false_positives", "misses")}
        within = {f"AP_within_{k:g}px": ap for k, ap in row.within.items()}
        return {"AP": row.ap} | {f"lost_to_{name}": value for name, value in lost.items()} | within

    def _summary(self) -> str:
        return f"{self.protocol.name}: {values_text(self.metrics)}"


Box = tuple[float, float, float, float]  # left, top, right, bottom
Measure = Literal["iou", "ioa", "ioa-pred", "giou"]
_MEASURES = ("iou", "giou", "distance", "ioa_pred", "ioa_gt", "exchange_rate", "centre_distance", "edge_error")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OverlapResult(Result):
    """Two boxes, and how they overlap."""

    kind: ClassVar[str] = "overlap"
    reported_by: ClassVar[str] = "scale.report"

    version: str
    # pred, gt: left, top, right and bottom of the prediction and of the ground truth
    pred: Box
    gt: Box
    # pred_name, gt_name: what they are: class and score, where they come from files
    pred_name: str
    gt_name: str
    image: str | None  # the image that they are on
    # tp, fp, fn: areas in px²: of the intersection, of the prediction alone (q, extra), of the ground truth alone (p,
    # missing)
    tp: float = field(metadata=written_as("areas.TP"))
    fp: float = field(metadata=written_as("areas.FP"))
    fn: float = field(metadata=written_as("areas.FN"))
    # iou, giou, distance: Jaccard index, generalised IoU, and 1 - IoU
    iou: float = field(metadata=written_as("metrics.iou"))
    giou: float = field(metadata=written_as("metrics.giou"))
    distance: float = field(metadata=written_as("metrics.distance"))
    # ioa_pred, ioa_gt: intersection over the area of the prediction, and over that of the ground truth
    ioa_pred: float = field(metadata=written_as("metrics.ioa_pred"))
    ioa_gt: float = field(metadata=written_as("metrics.ioa_gt"))
    # how much fp must shrink to equal one px² of fn; NaN where less than that is missing
    exchange_rate: float = field(metadata=written_as("metrics.exchange_rate"))
    # centre_distance, edge_error: in px: between the centres; the largest one between an edge and its counterpart
    centre_distance: float = field(metadata=written_as("metrics.centre_distance"))
    edge_error: float = field(metadata=written_as("metrics.edge_error"))
    # Of the files they come from
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if any(math.isnan(edge) for edge in (*self.pred, *self.gt)):
            raise UsageError("pred and gt: expected four numbers each")

    @property
    def metrics(self) -> Mapping[str, float]:
        """The measures by name."""
        return {name: getattr(self, name) for name in _MEASURES}

    def _summary(self) -> str:
        return values_text(self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OverlapMatrix(Result):
    """The overlap of every prediction (rows) with every ground truth (columns)."""

    kind: ClassVar[str] = "overlap-matrix"
    reported_by: ClassVar[str] = "scale.report"

    version: str
    by: Measure
    matrix: tuple[tuple[float, ...], ...]
    findings: tuple[Finding, ...] = ()

    def _summary(self) -> str:
        return f"{self.by} of {len(self.matrix):,} predictions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """What an error costs an object, in areas of px² or counts of points."""

    gt_area: float
    missing: float  # p, of the ground truth
    extra: float  # q, of the prediction
    jaccard: float  # (|B| - p) / (|B| + q)
    exchange_rate: float  # NaN where less than one point is missing

    also: ClassVar[Also] = (lambda row: {"points": row.points},)

    @property
    def points(self) -> float:
        """Whole points by which `extra` must shrink to equal one point of `missing`."""
        return math.nan if math.isnan(self.exchange_rate) else math.ceil(self.exchange_rate)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExchangeResult(Result):
    """What errors cost objects of given sizes."""

    kind: ClassVar[str] = "exchange"
    reported_by: ClassVar[str] = "scale.report"

    version: str
    rows: tuple[ExchangeRow, ...]
    findings: tuple[Finding, ...] = ()

    def _summary(self) -> str:
        return f"{len(self.rows):,} rows"
