"""What an evaluation gives: measured values with their signature, inputs and findings. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from typing import Protocol as TypingProtocol

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import MetricValue, document_head, finding_dict, plain
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.signature import signature_dict
from jaccard_eval.findings import Finding

if TYPE_CHECKING:
    from jaccard_eval.data.intervals import Resamples
    from jaccard_eval.data.verdict import GateVerdict
    from jaccard_eval.features.errors.result import ErrorReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """One class: counts and values; `gt` counts boxes that can be found, `ignored` those that are not counted."""

    name: str
    gt: int
    ignored: int
    pred: int
    values: Mapping[str, MetricValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRow:
    """What was measured on a slice of the images.

    Parameters
    ----------
    name, digest : str
        Name of the slice, and a digest of what it is made of.
    images : int
    values : mapping of str to MetricValue
        AP, and AP50 where 0.5 is a threshold.
    """

    name: str
    digest: str
    images: int
    values: Mapping[str, MetricValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Counts at a score threshold: detections with score >= `score`; `class_name` None pools all classes."""

    class_name: str | None
    iou: float
    score: float
    tp: int
    fp: int
    fn: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSummary:
    """One input as it was read."""

    path: str
    format: str
    units: str
    images: int
    boxes: int
    classes: int
    fingerprint: str
    details: tuple[str, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correspondence:
    """How the two sides were found to correspond.

    Parameters
    ----------
    image_strategy, class_strategy : str
        A strategy of `imagekeys.STRATEGIES` ("id", "name", "stem", ...); "name", "id" or "map".
    matched_images : int
        Images of the ground truth that the predictions name.
    gt_only_images, pred_only_images : tuple of str
        Names on one side only; the first few, see the counts.
    n_gt_only_images, n_pred_only_images : int
    classes : tuple of (str, str)
        Ground-truth class and prediction class that were taken to be the same.
    gt_only_classes, pred_only_classes : tuple of str
    """

    image_strategy: str
    class_strategy: str
    matched_images: int
    n_gt_only_images: int
    n_pred_only_images: int
    gt_only_images: tuple[str, ...]
    pred_only_images: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    gt_only_classes: tuple[str, ...]
    pred_only_classes: tuple[str, ...]


class Curves(TypingProtocol):
    """Whole curves; NaN where undefined."""

    @property
    def precision(self) -> FloatArray:
        """Interpolated precision, shape (T, R, K, A, M)."""

    @property
    def recall(self) -> FloatArray:
        """Recall at the end of the ranking, shape (T, K, A, M)."""

    @property
    def scores(self) -> FloatArray:
        """Score at which each recall is reached, shape (T, R, K, A, M)."""


class Measured(TypingProtocol):
    """What can be asked of an evaluation after the fact; implemented on the match table."""

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure any metric reference."""

    def restrict(self, images: Sequence[int]) -> Measured:
        """Measure some images alone, given as ascending rows."""

    @property
    def image_names(self) -> Sequence[str]:
        """Name of each image."""

    @property
    def curves(self) -> Curves:
        """Whole curves."""

    @property
    def matches(self) -> Mapping[str, Any]:
        """Columns, one row per detection."""

    @property
    def missed(self) -> Mapping[str, Any]:
        """Columns, one row per ground-truth box that nothing matched."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationResult:
    """The result of one evaluation.

    ``result["AP"]`` and ``result["AP[iou=0.5,class=dog]"]`` give single values as floats, NaN where undefined.

    Parameters
    ----------
    protocol : Protocol
    signature : str
        Everything that can change the numbers, in one line.
    gt, pred : InputSummary
    correspondence : Correspondence
    metrics : mapping of str to MetricValue
        The summary.
    per_class : tuple of ClassRow
        In the order of the ground truth's classes.
    operating_points : tuple of OperatingPoint
        When a score was asked for.
    findings : tuple of Finding
        Warnings and notes.
    measured : Measured
        For everything else.
    bootstrap : Resamples, optional
        Every metric at every resample, where intervals were asked for.
    gates : tuple of GateVerdict
        What quality gates say of it.
    options : mapping of str to plain types
        What was asked for beside the protocol, by the names of `api.evaluate`: what it takes to run it again.
    errors : ErrorReport, optional
        What kinds of errors there are, when asked for.
    slices : tuple of SliceRow
        The slices that were asked for.
    """

    protocol: Protocol
    signature: str
    version: str
    gt: InputSummary
    pred: InputSummary
    correspondence: Correspondence
    metrics: Mapping[str, MetricValue]
    per_class: tuple[ClassRow, ...]
    operating_points: tuple[OperatingPoint, ...]
    findings: tuple[Finding, ...]
    measured: Measured = field(repr=False, compare=False)
    bootstrap: Resamples | None = field(default=None, repr=False, compare=False)
    gates: tuple[GateVerdict, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    errors: ErrorReport | None = None
    slices: tuple[SliceRow, ...] = ()

    kind: ClassVar[str] = "evaluation"

    def __repr__(self) -> str:
        """Name the protocol and the summary; all that is here would fill a screen."""
        values = ", ".join(f"{name}={one.value:.4f}" for name, one in self.metrics.items())
        return f"<{type(self).__name__} {self.protocol.name}: {values}>"

    def __getitem__(self, ref: str) -> float:
        """Return the value of a metric reference; NaN when undefined.

        Raises
        ------
        UsageError
            When the reference names no metric, class or threshold of this evaluation.
        """
        return self.measured.value(MetricRef.parse(ref)).value

    @property
    def curves(self) -> Curves:
        """Arrays `precision` and `scores` (T, R, K, A, M) and `recall` (T, K, A, M), NaN where undefined.

        Axes: IoU thresholds, recall points, classes, area ranges, caps on detections.
        """
        return self.measured.curves

    @property
    def matches(self) -> Mapping[str, Any]:
        """Columns with one row per detection, over all sizes; `to_frame` makes a table of them.

        `image`, `class`, `score` and `source` (row in the predictions) of shape (n,); of shape (n, T), a column per IoU
        threshold: `gt` (row of the matched ground truth, -1 for none), `iou` (NaN for none), `tp`, `fp`, `ignored`.
        """
        return self.measured.matches

    @property
    def missed(self) -> Mapping[str, Any]:
        """Columns with one row per ground-truth box that stays unmatched at some IoU threshold.

        `image`, `class` and `source` (row in the ground truth) of shape (m,), and `missed` of shape (m, T).
        """
        return self.measured.missed

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        return {
            **document_head(self.kind, self.version),
            **signature_dict(self.signature),
            "protocol": _protocol_dict(self.protocol),
            "options": plain(self.options),
            "inputs": {
                "gt": _input_dict(self.gt) | {"unmatched_images": self.correspondence.n_gt_only_images},
                "pred": _input_dict(self.pred) | {"unmatched_images": self.correspondence.n_pred_only_images},
            },
            "correspondence": plain(asdict(self.correspondence)),
            "metrics": {name: plain(one.value) for name, one in self.metrics.items()},
            "undefined": {name: one.reason for name, one in self.metrics.items() if math.isnan(one.value)},
            "support": {name: one.n for name, one in self.metrics.items()},
            **self._bootstrap_dict(),
            "per_class": [_class_dict(row) for row in self.per_class],
            "operating_points": [_point_dict(point) for point in self.operating_points],
            "warnings": [finding_dict(finding) for finding in self.findings],
            "gates": [one.to_dict() for one in self.gates],
            **({} if self.errors is None else {"errors": self.errors.to_dict()}),
            **({"slices": [_slice_dict(one) for one in self.slices]} if self.slices else {}),
        }

    def _bootstrap_dict(self) -> dict[str, Any]:
        """How intervals were found, and those of the summary; nothing where there are none."""
        if self.bootstrap is None:
            return {}
        return {"bootstrap": self.bootstrap.to_dict(), **_intervals_dict(self.metrics)}


def _protocol_dict(protocol: Protocol) -> dict[str, Any]:
    fields: dict[str, Any] = plain(asdict(protocol))
    fields.pop("sources")
    return fields


def _input_dict(summary: InputSummary) -> dict[str, Any]:
    fields: dict[str, Any] = plain(asdict(summary))
    return fields


def _class_dict(row: ClassRow) -> dict[str, Any]:
    counts = {"class": row.name, "gt": row.gt, "ignored": row.ignored, "pred": row.pred}
    return counts | {name: plain(one.value) for name, one in row.values.items()} | _intervals_dict(row.values)


def _intervals_dict(values: Mapping[str, MetricValue]) -> dict[str, Any]:
    found = {name: list(one.interval) for name, one in values.items() if one.interval is not None}
    return {"intervals": found} if found else {}


def _slice_dict(one: SliceRow) -> dict[str, Any]:
    values = {name: plain(metric.value) for name, metric in one.values.items()}
    return (
        {"slice": one.name, "digest": one.digest, "images": one.images}
        | values
        | {"support": {name: metric.n for name, metric in one.values.items()}}
        | _intervals_dict(one.values)
    )


def _point_dict(point: OperatingPoint) -> dict[str, Any]:
    fields: dict[str, Any] = plain(asdict(point))
    return {"class": fields.pop("class_name")} | fields
