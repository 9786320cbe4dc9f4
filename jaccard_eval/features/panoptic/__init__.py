"""What an evaluation of segments gives, and the rules that it goes by. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from jaccard_eval.data.document import (
    PANOPTIC,
    Also,
    Beside,
    Count,
    DataTable,
    Measure,
    MetricValue,
    in_order,
    value_of,
    written_as,
)
from jaccard_eval.data.metricref import SEGMENT_METRICS, MetricRef
from jaccard_eval.data.result import (
    NOISE,
    Resamples,
    SliceRow,
    WithParts,
    metrics_document,
    read_values,
    summarised,
    values_document,
    values_text,
)
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.errors import UsageError
from jaccard_eval.features.compare import Contender, Versus
from jaccard_eval.features.panoptic.compute import COUNTS, QUALITIES, UNDEFINED
from jaccard_eval.findings import Finding
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.text import did_you_mean, pluralise, quoted_value

KINDS = ("segm", "boundary")
DILATION_RATIO = 0.02  # of the image diagonal; Cityscapes' tools take .005


@dataclass(frozen=True, slots=True, kw_only=True)
class PanopticProtocol:
    """The rules by which segments are matched; those without a field are the same for all: IoU > .5, void, crowds."""

    iou_type: str = "segm"  # "boundary": the smaller one of the IoU of segments and of their boundaries
    dilation_ratio: float | None = None  # width of a boundary by the diagonal of the image; None for segments
    # Categories of predictions, and those of the ground truth that they mean, by id; others stay as they are.
    class_map: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.iou_type not in KINDS:
            hint = did_you_mean(self.iou_type, KINDS)
            raise UsageError(f"iou_type must be one of {', '.join(KINDS)}; got {quoted_value(self.iou_type)}.{hint}")
        if self.iou_type != "boundary":
            if self.dilation_ratio is not None:
                fix = Fix.missing("Pass {iou_type}, or remove it.", iou_type="boundary")
                raise UsageError("dilation_ratio is the width of boundaries.", fix=fix)
        elif self.dilation_ratio is None:
            object.__setattr__(self, "dilation_ratio", DILATION_RATIO)
        elif not 0 < self.dilation_ratio < 1:
            raise UsageError(f"dilation_ratio must be above 0 and below 1, got {self.dilation_ratio}")

    def signature_parts(self) -> list[str]:
        """Return the rules as texts such as ``iou_type=segm``."""
        width = [] if self.dilation_ratio is None else [f"dilation_ratio={self.dilation_ratio!r}"]
        meant = [f"class_map={','.join(map('='.join, self.class_map))}"] if self.class_map else []
        return ["panoptic", *meant, f"iou_type={self.iou_type}", *width, "above=0.5", "means=present"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanopticOptions:
    """What was asked for besides the rules, by the names of `panoptic`; None also for what is not a path."""

    gt_masks: str | None = None
    pred_masks: str | None = None
    against: str | None = None
    against_masks: str | None = None
    bootstrap: Bootstrap | None = None
    slices: tuple[Slice, ...] = ()


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return read_values(row, dict.fromkeys(QUALITIES, row["gt"]), class_name=row["class"], reason=UNDEFINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanopticClassRow:
    """One class: its segments on both sides without crowds and what is ignored, and its values by metric."""

    name: str = field(metadata=written_as("class"))
    is_thing: bool = field(metadata=written_as("isthing"))
    tp: Count = field(metadata=written_as("TP"))
    fp: Count = field(metadata=written_as("FP"))
    fn: Count = field(metadata=written_as("FN"))
    values: Mapping[str, MetricValue] = field(metadata=written_as(None, read=_values))

    beside: ClassVar[Beside] = {"gt": Count, "pred": Count, **NOISE, **dict.fromkeys(QUALITIES, Measure)}

    also: ClassVar[Also] = (lambda row: {"gt": row.gt, "pred": row.pred}, lambda row: values_document(row.values))

    @property
    def gt(self) -> int:
        """Segments that can be found."""
        return self.tp + self.fn

    @property
    def pred(self) -> int:
        """Segments that were judged."""
        return self.tp + self.fp

    @property
    def kind(self) -> str:
        """What a class is of."""
        return "thing" if self.is_thing else "stuff"

    def value(self, name: str) -> MetricValue:
        """Return a value or a count."""
        if name not in COUNTS:
            return self.values[name]
        count = (self.tp, self.fp, self.fn)[COUNTS.index(name)]
        return MetricValue(ref=MetricRef(name=name, class_name=self.name), value=float(count), n=self.gt)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsSummary:
    """The segments of one side as they were read."""

    path: str  # the input as the user named it
    masks: str  # the folder of its maps
    format: str  # "coco-panoptic" or "cityscapes"
    images: Count  # that were compared
    segments: Count  # in them
    crowds: Count  # among these
    classes: Count
    fingerprint: str  # digest of names, classes and maps
    # What was ignored, counted by reason
    ignored: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Against:
    """How the predictions differ from others on the same images."""

    baseline: Contender
    versus: Versus
    resamples: Resamples | None = None
    # `PanopticMetrics` of the baseline; None in a saved result
    measured: Any = field(default=None, metadata=written_as(None))

    kind: ClassVar[str] = "against"

    def tables(self) -> dict[str, DataTable]:
        """Return the differences over all classes, then of each class."""
        return self.versus.tables()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PanopticResult(WithParts):
    """The result of one evaluation of panoptic segmentations.

    ``result["PQ"]``, ``result["SQ_things"]`` and ``result["PQ[class=car]"]`` give single values as floats, NaN where
    undefined.

    Parameters
    ----------
    protocol : PanopticProtocol
    signature : str
        Everything that can change the numbers, in one line.
    gt, pred : SegmentsSummary
    metrics : mapping of str to MetricValue
        PQ, SQ and RQ: means over all classes, over those of things, and over those of stuff.
    per_class : tuple of PanopticClassRow
        In the order of the ground truth's categories, with TP, FP and FN.
    findings : tuple of Finding
        Warnings and notes.
    options : PanopticOptions
        What was asked for besides the rules.
    measured : PanopticMetrics, optional
        The matches of all images, which answer for any of them; None for a saved result.
    parts : tuple of Part
        What was asked for besides; the properties `gates`, `bootstrap`, `slices` and `against` name it.

    Examples
    --------
    >>> import numpy as np
    >>> from jaccard_eval import panoptic
    >>> segments = [{"id": 1, "category_id": 7}, {"id": 2, "category_id": 8}]
    >>> record = {"image_id": 1, "file_name": "a.png", "segments_info": segments}
    >>> categories = [{"id": 7, "name": "cat", "isthing": 1}, {"id": 8, "name": "sky", "isthing": 0}]
    >>> gt = {"annotations": [record], "categories": categories}
    >>> result = panoptic(
    ...     gt, {"annotations": [record]},
    ...     gt_masks={"a.png": np.array([[1, 1, 2, 2]])}, pred_masks={"a.png": np.array([[1, 1, 1, 2]])},
    ... )
    >>> round(result["PQ[class=cat]"], 4), result["PQ_stuff"]
    (0.6667, 0.0)
    """

    kind: ClassVar[str] = PANOPTIC
    reported_by: ClassVar[str] = "panoptic.report"
    also: ClassVar[Also] = (other_signatures, metrics_document)

    protocol: PanopticProtocol
    signature: str
    version: str
    gt: SegmentsSummary = field(metadata=written_as("inputs.gt"))
    pred: SegmentsSummary = field(metadata=written_as("inputs.pred"))
    metrics: Mapping[str, MetricValue] = field(metadata=summarised(SEGMENT_METRICS))
    per_class: tuple[PanopticClassRow, ...]
    findings: tuple[Finding, ...]
    options: PanopticOptions = field(default_factory=PanopticOptions)
    measured: Any = field(default=None, metadata=written_as(None))  # `PanopticMetrics`
    # The worst images, `WorstSegments`; None where the files are not at hand
    images: Any = field(default=None, metadata=written_as(None))

    def _summary(self) -> str:
        values = values_text({name: metric.value for name, metric in self.metrics.items()})
        return f"{values} on {pluralise(self.gt.images, 'image')}"

    def __getitem__(self, ref: str) -> float:
        """Return the value of ``PQ``, ``RQ_stuff``, ``PQ[class=car]``, ``TP[class=car]`` and the like.

        Raises
        ------
        UsageError
            When there is no such metric or class.
        """
        of_classes = [metric for row in self.per_class for metric in map(row.value, (*QUALITIES, *COUNTS))]
        return value_of(ref, (*self.metrics.values(), *of_classes), "segments")

    def value(self, ref: MetricRef) -> MetricValue:
        """Return what was measured; a KeyError when there is no such metric or class."""
        if ref.class_name is None:
            return self.metrics[ref.name]
        return {row.name: row for row in self.per_class}[ref.class_name].value(ref.name)

    @property
    def slices(self) -> tuple[SliceRow, ...]:
        """The slices that were asked for."""
        # Documents sort their keys.
        return tuple(replace(part, values=in_order(part.values, QUALITIES)) for part in self._rows("slices"))

    @property
    def against(self) -> Against | None:
        """The differences from other predictions, where these were given."""
        found: Against | None = self.part("against")
        return found
