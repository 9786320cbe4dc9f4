"""What an evaluation of segments gives, its rules, and panoptic quality from the matches of all images.

Segments of two maps are matched by the pixels that they share. Source: cocodataset/panopticapi at 7bb46555,
``evaluation.py``; https://arxiv.org/abs/1801.00868. Boundary PQ: boundary-iou-api at 37d25586,
``coco_panoptic_api/evaluation.py``; https://arxiv.org/abs/2103.16562.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
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
from jaccard_eval.data.metricref import SEGMENT_CLASS_METRICS, SEGMENT_METRICS, MetricRef
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
from jaccard_eval.findings import Finding
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import ConfusionCounts
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.similarity.boundary import map_boundaries
from jaccard_eval.text import did_you_mean, pluralise, quoted_value

IntArray = npt.NDArray[np.int64]

VOID, CORE = -1, -2  # rows of a pixel that no segment has, and of one in the core of a segment
UNDEFINED = "no segments"
QUALITIES = ("PQ", "SQ", "RQ")
COUNTS = ("TP", "FP", "FN")


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The segments of one image on one side, shape (n,) each."""

    ids: IntArray  # in the map, distinct
    label: IntArray  # row of the class
    crowd: BoolArray

    @property
    def absorbing(self) -> list[int]:
        """The rows of the crowds that predictions may lie on: the last one listed of each class, as in panopticapi."""
        rows = np.flatnonzero(self.crowd)
        return list(dict(zip(self.label[rows].tolist(), rows.tolist(), strict=True)).values())

    def rows_of(self, values: IntArray) -> IntArray:
        """Return the row of the segment that each value means, `VOID` where none does."""
        if not len(self.ids):
            return np.full(len(values), VOID, dtype=np.int64)
        order = np.argsort(self.ids)
        place = np.minimum(np.searchsorted(self.ids, values, sorter=order), len(order) - 1)
        row = order[place]
        return np.where(self.ids[row] == values, row, VOID)


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """Pixels that each pair of segments shares, `VOID` included on either side, shape (n,) each; pairs are distinct."""

    gt: IntArray
    pred: IntArray
    pixels: IntArray

    @classmethod
    def of(cls, gt: IntArray, pred: IntArray, pixels: IntArray) -> Overlaps:
        """Add up the pixels of equal pairs."""
        merged = ConfusionCounts.from_pairs(gt, pred, pixels)
        return cls(merged.gt, merged.pred, merged.pixels)

    def areas(self, n_gt: int, n_pred: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return the pixels of each segment of either side, and those of each prediction where there is no segment."""
        return (
            _summed(self.gt, self.pixels, n_gt),
            _summed(self.pred, self.pixels, n_pred),
            _summed(self.pred[self.gt == VOID], self.pixels[self.gt == VOID], n_pred),
        )


def _summed(rows: IntArray, pixels: IntArray, n: int) -> IntArray:
    # float64 is exact below 2**53; row VOID is counted in the first place and dropped.
    return np.bincount(rows + 1, weights=pixels, minlength=n + 1)[1:].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentMatches:
    """What became of the segments of an image, by their rows; crowds and `ignored` predictions are in no count."""

    tp_gt: IntArray
    iou: FloatArray  # of the matches
    fn: IntArray
    fp: IntArray
    ignored: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class MapCounts:
    """Pixels by pair of ids; with boundaries, by pair of twice the id, plus 1 in the core of a segment."""

    pairs: ConfusionCounts
    has_cores: bool = False

    @classmethod
    def of(cls, gt: npt.NDArray[Any], pred: npt.NDArray[Any], dilation_ratio: float | None = None) -> MapCounts:
        """Count two maps of ids (h, w), with their boundaries where these have a width."""
        if dilation_ratio is None:
            return cls(ConfusionCounts.from_maps(gt, pred))
        cored = (2 * values.astype(np.int64) + ~map_boundaries(values, dilation_ratio) for values in (gt, pred))
        return cls(ConfusionCounts.from_maps(*cored), has_cores=True)

    @property
    def ids(self) -> ConfusionCounts:
        """Pixels by pair of ids."""
        pairs = self.pairs
        return ConfusionCounts.from_pairs(pairs.gt >> 1, pairs.pred >> 1, pairs.pixels) if self.has_cores else pairs

    def overlaps(self, gt: Segments, pred: Segments) -> Overlaps:
        """Return the pixels that segments share."""
        ids = self.ids
        return Overlaps.of(gt.rows_of(ids.gt), pred.rows_of(ids.pred), ids.pixels)

    def boundaries(self, gt: Segments, pred: Segments) -> Overlaps | None:
        """Return the pixels that boundaries share: `VOID` where there is none, `CORE` in the core of a segment."""
        if not self.has_cores:
            return None

        def rows_of(known: Segments, values: IntArray) -> IntArray:
            row = known.rows_of(values >> 1)
            return np.where((row != VOID) & (values & 1 == 1), CORE, row)

        return Overlaps.of(rows_of(gt, self.pairs.gt), rows_of(pred, self.pairs.pred), self.pairs.pixels)


def match_segments(
    gt: Segments, pred: Segments, overlaps: Overlaps, *, boundaries: Overlaps | None = None
) -> SegmentMatches:
    """Match the segments of an image.

    A prediction matches the segment of its class, no crowd, whose IoU with it is above .5; pixels without a ground
    truth are in no union. There is one such segment at most. A prediction of which more than half lies on void or on
    the crowd of its class is ignored. All comparisons are those of whole numbers.

    With `boundaries`, the IoU is the smaller one of segments and of their boundaries.
    """
    n_gt, n_pred = len(gt.ids), len(pred.ids)
    gt_area, pred_area, on_void = overlaps.areas(n_gt, n_pred)
    i, j, shared = overlaps.gt, overlaps.pred, overlaps.pixels
    on_crowd = (i != VOID) & (j != VOID)
    alike = on_crowd.copy()
    alike[on_crowd] = gt.label[i[on_crowd]] == pred.label[j[on_crowd]]
    is_crowd = np.zeros(len(i), dtype=np.bool_)
    is_crowd[alike] = gt.crowd[i[alike]]
    absorbs = is_crowd & np.isin(i, gt.absorbing)
    absorbed = on_void + _summed(j[absorbs], shared[absorbs], n_pred)
    plain = alike & ~is_crowd
    i, j, shared = i[plain], j[plain], shared[plain]
    union = gt_area[i] + pred_area[j] - shared - on_void[j]
    iou, is_match = shared / union, 2 * shared > union
    if boundaries is not None:
        edge_shared, edge_union = _edges(boundaries, i, j, n_gt, n_pred)
        is_match &= 2 * edge_shared > edge_union
        iou = np.minimum(iou, edge_shared / edge_union)
    i, j, iou = i[is_match], j[is_match], iou[is_match]
    missed, unmatched = ~gt.crowd, np.ones(n_pred, dtype=np.bool_)
    missed[i], unmatched[j] = False, False
    is_ignored = unmatched & (2 * absorbed > pred_area)
    return SegmentMatches(
        tp_gt=i,
        iou=iou,
        fn=np.flatnonzero(missed),
        fp=np.flatnonzero(unmatched & ~is_ignored),
        ignored=np.flatnonzero(is_ignored),
    )


def _edges(boundaries: Overlaps, i: IntArray, j: IntArray, n_gt: int, n_pred: int) -> tuple[IntArray, IntArray]:
    """Return the pixels that the boundaries of the pairs (i, j) share, and those that either has, without void."""
    in_gt, in_pred = boundaries.gt != CORE, boundaries.pred != CORE
    gt_area = _summed(boundaries.gt[in_gt], boundaries.pixels[in_gt], n_gt)
    pred_area = _summed(boundaries.pred[in_pred], boundaries.pixels[in_pred], n_pred)
    void = in_pred & (boundaries.gt == VOID)
    on_void = _summed(boundaries.pred[void], boundaries.pixels[void], n_pred)
    both = in_pred & (boundaries.gt >= 0) & (boundaries.pred >= 0)
    known = boundaries.gt[both] * n_pred + boundaries.pred[both]  # ascends, as pairs do
    wanted = i * n_pred + j
    place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    found = known[place] == wanted if len(known) else np.zeros(len(wanted), dtype=np.bool_)
    shared = np.zeros(len(wanted), dtype=np.int64)
    shared[found] = boundaries.pixels[both][place[found]]
    return shared, gt_area[i] + pred_area[j] - shared - on_void[j]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What one image adds: the class and IoU of its matches, and the classes of what is unmatched."""

    tp: IntArray
    iou: FloatArray
    fp: IntArray
    fn: IntArray

    @classmethod
    def of(cls, matches: SegmentMatches, gt: Segments, pred: Segments) -> Counted:
        """Take the classes of segments."""
        return cls(gt.label[matches.tp_gt], matches.iou, pred.label[matches.fp], gt.label[matches.fn])


@dataclass(frozen=True, slots=True, eq=False)
class PanopticMetrics:
    """The matches of all images: rows of matches, of false positives and of misses, by image and class."""

    class_names: tuple[str, ...]
    is_thing: BoolArray  # (K,)
    image_names: tuple[str, ...]
    tp: tuple[IntArray, IntArray]  # image and class, (n,) each
    iou: FloatArray  # (n,)
    fp: tuple[IntArray, IntArray]
    fn: tuple[IntArray, IntArray]

    @classmethod
    def of(
        cls, class_names: Sequence[str], is_thing: Sequence[bool], images: Sequence[str], counted: Iterable[Counted]
    ) -> PanopticMetrics:
        """Put the images together, in the order of their names: sums do not depend on the order of files."""
        order = sorted(range(len(images)), key=images.__getitem__)
        rows = list(counted)
        parts = [rows[row] for row in order]

        def joined(name: str) -> tuple[IntArray, IntArray]:
            labels = [getattr(part, name) for part in parts]
            image = np.repeat(np.arange(len(parts)), [len(label) for label in labels])
            return image, np.concatenate([_NONE, *labels])

        return cls(
            tuple(class_names),
            np.array(is_thing, dtype=np.bool_),
            tuple(images[row] for row in order),
            joined("tp"),
            np.concatenate([np.zeros(0), *(part.iou for part in parts)]),
            joined("fp"),
            joined("fn"),
        )

    def restrict(self, images: Sequence[int]) -> PanopticMetrics:
        """Return the metrics of some images alone, given as ascending rows."""
        row = np.full(len(self.image_names), VOID, dtype=np.int64)
        row[list(images)] = np.arange(len(images))

        def kept(pair: tuple[IntArray, IntArray]) -> tuple[tuple[IntArray, IntArray], BoolArray]:
            image, label = pair
            there = row[image] != VOID
            return (row[image[there]], label[there]), there

        tp, there = kept(self.tp)
        names = tuple(self.image_names[image] for image in images)
        return replace(self, image_names=names, tp=tp, iou=self.iou[there], fp=kept(self.fp)[0], fn=kept(self.fn)[0])

    @property
    def counts(self) -> tuple[IntArray, IntArray, IntArray]:
        """TP, FP and FN of each class, (K,) each."""
        n = len(self.class_names)
        tp, fp, fn = (np.bincount(label, minlength=n) for _, label in (self.tp, self.fp, self.fn))
        return tp, fp, fn

    @property
    def qualities(self) -> FloatArray:
        """PQ, SQ and RQ of each class, shape (3, K); NaN where a class has no segments."""
        label = self.tp[1]
        # Rounded once: the sum does not depend on any order.
        sums = [math.fsum(self.iou[label == k]) for k in range(len(self.class_names))]
        return _qualities(np.array(sums, dtype=np.float64), *self.counts)

    def subsets(self) -> dict[str, BoolArray]:
        """Return the classes that means are taken over, by the end of their names."""
        return {"": np.ones_like(self.is_thing), "_things": self.is_thing, "_stuff": ~self.is_thing}

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure a metric; a KeyError when there is no such metric or class."""
        if ref.class_name is not None:
            if ref.name not in SEGMENT_CLASS_METRICS:
                raise KeyError(ref.name)
            return self.class_values(ref.name)[self.class_names.index(ref.class_name)]
        name, _, subset = ref.name.partition("_")
        is_in = self.subsets()[f"_{subset}" if subset else ""]
        tp, _, fn = self.counts
        values = self.qualities[QUALITIES.index(name)][is_in]
        return _value(ref, _mean(values), int((tp + fn)[is_in].sum()))

    def class_values(self, name: str) -> list[MetricValue]:
        """Measure a metric of each class."""
        counts = self.counts
        support = (counts[0] + counts[2]).tolist()
        if name in COUNTS:
            values = counts[COUNTS.index(name)].astype(np.float64)
        else:
            values = self.qualities[QUALITIES.index(name)]
        rows = zip(self.class_names, values.tolist(), support, strict=True)
        return [_value(MetricRef(name=name, class_name=label), value, n) for label, value, n in rows]

    def weighing(self, refs: Sequence[MetricRef] | None) -> PanopticWeighing:
        """Return what measures resamples of the images."""
        return PanopticWeighing(self, refs)


class PanopticWeighing:
    """Measures the summary and PQ, SQ and RQ of every class, or some metrics, for weights of the images."""

    def __init__(self, metrics: PanopticMetrics, refs: Sequence[MetricRef] | None) -> None:
        self._metrics = metrics
        of_classes = [MetricRef(name=name, class_name=label) for name in QUALITIES for label in metrics.class_names]
        self._refs = [*(MetricRef(name=name) for name in SEGMENT_METRICS), *of_classes] if refs is None else refs
        self._of_class = [
            None if ref.class_name is None else (QUALITIES.index(ref.name), metrics.class_names.index(ref.class_name))
            for ref in self._refs
        ]

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """The metrics, in the order of `measure`."""
        return tuple(self._refs)

    def objects(self, ref: MetricRef | None) -> tuple[IntArray, IntArray]:
        """Return image and class of each segment of the ground truth that a metric rests on, or of all."""
        metrics = self._metrics
        image, label = (np.concatenate(pair) for pair in zip(metrics.tp, metrics.fn, strict=True))
        is_in = np.ones(len(metrics.class_names), dtype=np.bool_)
        if ref is not None and ref.class_name is not None:
            is_in = np.arange(len(is_in)) == metrics.class_names.index(ref.class_name)
        elif ref is not None:
            _, end, subset = ref.name.partition("_")
            is_in = metrics.subsets()[f"{end}{subset}"]
        return image[is_in[label]], label[is_in[label]]

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""
        metrics, n = self._metrics, len(self._metrics.class_names)
        tp, fp, fn = (
            np.bincount(label, weights=weights[image], minlength=n)
            for image, label in (metrics.tp, metrics.fp, metrics.fn)
        )
        sums = np.bincount(metrics.tp[1], weights=weights[metrics.tp[0]] * metrics.iou, minlength=n)
        qualities = _qualities(sums, tp, fp, fn)
        means = {
            f"{name}{subset}": _mean(values[is_in])
            for name, values in zip(QUALITIES, qualities, strict=True)
            for subset, is_in in metrics.subsets().items()
        }
        return np.array(
            [
                means[ref.name] if place is None else qualities[place]
                for ref, place in zip(self._refs, self._of_class, strict=True)
            ]
        )


_NONE = np.zeros(0, dtype=np.int64)


def _qualities(sums: npt.NDArray[Any], tp: npt.NDArray[Any], fp: npt.NDArray[Any], fn: npt.NDArray[Any]) -> FloatArray:
    whole = tp + fp / 2 + fn / 2
    present = whole > 0
    undefined = np.full(len(sums), np.nan)
    pq, rq = (np.divide(part, whole, out=undefined.copy(), where=present) for part in (sums, tp))
    # SQ of a class that is there and never matched is 0, as panopticapi has it.
    sq = np.divide(sums, tp, out=np.where(present, 0.0, np.nan), where=tp > 0)
    return np.stack([pq, sq, rq])


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return math.fsum(defined) / len(defined) if len(defined) else math.nan


def _value(ref: MetricRef, value: float, n: int) -> MetricValue:
    return MetricValue(ref=ref, value=value, n=n, reason=UNDEFINED if math.isnan(value) else None)


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
