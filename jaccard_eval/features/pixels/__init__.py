"""What an evaluation of label maps gives, its rules, and scores, from how many pixels of which class became which."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.document import (
    PIXELS,
    Also,
    Beside,
    Count,
    Measure,
    MetricValue,
    dig,
    each,
    value_of,
    written_as,
)
from jaccard_eval.data.metricref import MAP_CLASS_METRICS, MAP_METRICS, MetricRef
from jaccard_eval.data.result import (
    NOISE,
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
from jaccard_eval.findings import Finding
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS, ConfusionCounts, IntArray
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.text import did_you_mean, pluralise, quoted_value


@dataclass(frozen=True, slots=True, eq=False)
class PixelScores:
    """Scores of label maps: `overall` by name, and one row per class."""

    overall: dict[str, MetricValue]
    per_class: tuple[PixelClassRow, ...]


def pixel_metrics(
    counts: ConfusionCounts, names: Sequence[str], *, background: int | None = None, drop_background: str | None = None
) -> PixelScores:
    """Return the scores of counted label maps.

    With TP, FP and FN the pixels of a class that both sides have, only the prediction has and only the ground truth
    has: IoU = TP / (TP + FP + FN), the Jaccard index; precision = TP / (TP + FP); recall = TP / (TP + FN), the accuracy
    of a class; Dice = 2 TP / (2 TP + FP + FN). mIoU is the mean IoU of the present classes, those that either side has;
    fwIoU weights each IoU with the ground-truth pixels of its class; mean_accuracy is the mean recall of the classes
    with ground truth; pixel_accuracy the share of the counted pixels whose class is right.

    Parameters
    ----------
    counts : ConfusionCounts
        Of class indices 0 to ``len(names) - 1``.
    names : sequence of str
    background : int, optional
        Index of the class that the means ignore.
    drop_background : {"gt", "pred", "both"}, optional
        Whose background pixels are not counted at all; see `PixelProtocol`.

    Returns
    -------
    PixelScores
        NaN with a reason where a denominator is 0.

    References
    ----------
    .. [1] J. Long, E. Shelhamer, T. Darrell, "Fully Convolutional Networks for Semantic Segmentation", CVPR 2015,
       section 5: pixel accuracy, mean accuracy, mean IU, frequency weighted IU.

    Examples
    --------
    >>> counts = ConfusionCounts.from_maps(np.array([[0, 1, 1]]), np.array([[0, 1, 0]]))
    >>> pixel_metrics(counts, ["road", "car"]).overall["mIoU"].value
    0.5
    """
    metrics = PixelMetrics.of([("", counts)], names, background=background, drop_background=drop_background)
    values = metrics.scores()
    return PixelScores(
        {name: metrics.measured(MetricRef(name=name), values) for name in MAP_METRICS},
        tuple(
            PixelClassRow(
                name=name,
                gt_pixels=int(values.gt[k]),
                pred_pixels=int(values.pred[k]),
                values={
                    metric: metrics.measured(MetricRef(name=metric, class_name=name), values, k)
                    for metric in MAP_CLASS_METRICS
                },
            )
            for k, name in enumerate(names)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PixelSums:
    """Pixels of each class, shape (K,) each: in the ground truth, in the prediction, and on both sides at once."""

    gt: IntArray
    pred: IntArray
    hits: IntArray
    counted: int  # all that count
    in_means: BoolArray  # the classes that means are taken over

    @property
    def ratios(self) -> dict[str, FloatArray]:
        """The metrics of the classes; NaN where a denominator is 0."""
        gt, pred, hits = self.gt, self.pred, self.hits
        return {
            "IoU": _ratio(hits, gt + pred - hits),
            "precision": _ratio(hits, pred),
            "recall": _ratio(hits, gt),
            "Dice": _ratio(2 * hits, gt + pred),
        }

    @property
    def means(self) -> dict[str, float]:
        """The metrics over all classes."""
        ratios = self.ratios
        present, in_gt = self.in_means & ~np.isnan(ratios["IoU"]), self.in_means & (self.gt > 0)
        # A class on neither side is in no mean: its IoU is undefined, and 0 or 1 in its place would both be wrong.
        return {
            "mIoU": _mean(ratios["IoU"][present]),
            "fwIoU": _mean(ratios["IoU"][in_gt], self.gt[in_gt]),
            "pixel_accuracy": int(self.hits.sum()) / self.counted if self.counted else math.nan,
            "mean_accuracy": _mean(ratios["recall"][in_gt]),
        }


@dataclass(frozen=True, slots=True, eq=False)
class PixelMetrics:
    """Counts of each label map, for metrics of any of them: pixels (n,) of a pair of classes in one image."""

    class_names: tuple[str, ...]
    image_names: tuple[str, ...]
    background: int | None  # class that the means ignore
    is_dropped: bool  # whether its pixels are in no count
    image: IntArray
    counts: ConfusionCounts

    @classmethod
    def of(
        cls,
        by_image: Sequence[tuple[str, ConfusionCounts]],
        names: Sequence[str],
        *,
        background: int | None = None,
        drop_background: str | None = None,
    ) -> PixelMetrics:
        """Put the counts of images together, of class indices."""
        image = np.repeat(np.arange(len(by_image)), [len(counts.pixels) for _, counts in by_image])
        parts = (np.concatenate([_NONE, *(getattr(part, side) for _, part in by_image)]) for side in _SIDES)
        counts = ConfusionCounts(*parts)
        kept = counts.gt != NO_CLASS
        if drop_background in ("gt", "both"):
            kept &= counts.gt != background
        if drop_background in ("pred", "both"):
            kept &= counts.pred != background
        images = tuple(name for name, _ in by_image)
        return cls(tuple(names), images, background, bool(drop_background), image[kept], counts.take(kept))

    def restrict(self, images: Sequence[int]) -> PixelMetrics:
        """Return the metrics of some images alone, given as ascending rows."""
        kept = np.isin(self.image, images)
        image = np.searchsorted(images, self.image[kept])
        names = tuple(self.image_names[row] for row in images)
        return replace(self, image_names=names, image=image, counts=self.counts.take(kept))

    def scores(self, weights: IntArray | None = None) -> PixelSums:
        """Sum the pixels, for weights of the images where these are given."""
        counts, n = self.counts, len(self.class_names)
        pixels = counts.pixels if weights is None else counts.pixels * weights[self.image]
        has_class, right = counts.pred != NO_CLASS, counts.gt == counts.pred
        # Whole numbers, which are exact in float64 below 2**53.
        gt, pred, hits = (
            np.bincount(label, pixel, minlength=n).astype(np.int64)
            for label, pixel in (
                (counts.gt, pixels),
                (counts.pred[has_class], pixels[has_class]),
                (counts.gt[right], pixels[right]),
            )
        )
        in_means = np.arange(n) != (NO_CLASS if self.background is None else self.background)
        return PixelSums(gt, pred, hits, int(pixels.sum()), in_means)

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure a metric; a ValueError when there is no such class."""
        return self.measured(ref, self.scores())

    def measured(self, ref: MetricRef, values: PixelSums, k: int | None = None) -> MetricValue:
        """Return one metric, of the class `k` where there is more than one of its name."""
        if ref.class_name is not None:
            k = self.class_names.index(ref.class_name) if k is None else k
            # A class whose pixels are dropped on one side or both has no score that could be compared with others.
            dropped = self.is_dropped and k == self.background
            value = math.nan if dropped else float(values.ratios[ref.name][k])
            return _value(ref, value, int(values.gt[k]), "dropped as background" if dropped else _UNDEFINED[ref.name])
        n = values.counted if ref.name == "pixel_accuracy" else int(values.gt[values.in_means].sum())
        return _value(ref, values.means[ref.name], n, _UNDEFINED[ref.name])

    def weighing(self, refs: Sequence[MetricRef] | None) -> PixelWeighing:
        """Return what measures draws of the images."""
        return PixelWeighing(self, refs)


class PixelWeighing:
    """Measures the means and every class, or some metrics, for weights of the images."""

    def __init__(self, metrics: PixelMetrics, refs: Sequence[MetricRef] | None) -> None:
        self._metrics = metrics
        labels = metrics.class_names
        of_classes = [MetricRef(name=name, class_name=label) for name in MAP_CLASS_METRICS for label in labels]
        self._refs = [*(MetricRef(name=name) for name in MAP_METRICS), *of_classes] if refs is None else refs
        index = {name: k for k, name in enumerate(labels)}
        self._places = [(ref.name, None if ref.class_name is None else index[ref.class_name]) for ref in self._refs]

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """The metrics, in the order of `measure`."""
        return tuple(self._refs)

    def objects(self, ref: MetricRef | None) -> tuple[IntArray, IntArray]:
        """Return image and class of the ground truth that a metric rests on, or of all."""
        metrics = self._metrics
        label, kept = metrics.counts.gt, np.ones(len(metrics.image), dtype=np.bool_)
        if ref is not None and ref.class_name is not None:
            kept = label == metrics.class_names.index(ref.class_name)
        return metrics.image[kept], label[kept]

    def measure(self, weights: IntArray) -> FloatArray:
        """Return all metrics for weights of the images."""
        values = self._metrics.scores(weights)
        found: dict[str, Any] = {**values.means, **values.ratios}
        return np.array([found[name] if k is None else found[name][k] for name, k in self._places])


_NONE = np.zeros(0, dtype=np.int64)
_SIDES = ("gt", "pred", "pixels")


def _ratio(part: IntArray, whole: IntArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole != 0)
    return ratio


_UNDEFINED = {
    "mIoU": "no class is present",
    "fwIoU": "no ground truth",
    "pixel_accuracy": "no pixel counts",
    "mean_accuracy": "no ground truth",
    "IoU": "on neither side",
    "precision": "never predicted",
    "recall": "no ground truth",
    "Dice": "on neither side",
}


def _mean(values: FloatArray, weights: IntArray | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else math.nan


def _value(ref: MetricRef, value: float, n: int, reason: str) -> MetricValue:
    return MetricValue(ref=ref, value=value, n=n, reason=reason if math.isnan(value) else None)


DROPS = ("gt", "pred", "both")  # whose background pixels are ignored
REDUCTIONS = ("gt", "both")  # whose values count from 1, with 0 for pixels to ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelProtocol:
    """The rules by which pixels are counted."""

    # Name of each class, by its value; with None, every value that occurs is a class
    classes: tuple[str, ...] | None = None
    colors: str | None = None  # digest of the table that gives colours their classes, where there is one
    # Values, as the files have them, that are not classes: a pixel of the ground truth with one is ignored; a
    # prediction of one is a miss of the true class and a false alarm of none. Cityscapes' scripts and MMSegmentation
    # count so.
    ignore: tuple[int, ...] = ()
    # Whose values count from 1: there 0 is ignored and all others are taken minus one, as ADE20K's are. "gt" is
    # MMSegmentation's ``reduce_zero_label``.
    reduce_zero: str | None = None
    background: int | None = None  # class that the means ignore; a class as reported, after `reduce_zero`
    # Whose background pixels are in no count: those where the ground truth is background, those where the
    # prediction is, or all of these. None counts them, so that a false alarm on background costs IoU.
    drop_background: str | None = None

    # What values of a side mean, as the files have them: the name of a rule (`numbering.RULES`), or pairs, ascending;
    # before all other rules. Those of predictions mean values of the ground truth as they are then.
    class_map: str | tuple[tuple[int, int], ...] = ()
    gt_class_map: str | tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _require_one_of("drop_background", self.drop_background, DROPS)
        _require_one_of("reduce_zero", self.reduce_zero, REDUCTIONS)
        if self.drop_background and self.background is None:
            fix = Fix.missing("Pass {background}.", background=None)
            raise UsageError("drop_background needs a background class.", fix=fix)
        n_classes = math.inf if self.classes is None else len(self.classes)
        if self.background is not None and not 0 <= self.background < n_classes:
            raise UsageError(f"background {self.background} is not a class; classes are {self.known_classes}")

    @property
    def known_classes(self) -> str:
        """The values that are classes, for messages."""
        return "0 and above" if self.classes is None else f"0 to {len(self.classes) - 1}"

    @property
    def background_rule(self) -> str:
        """What is done about background, in words."""
        # Documents hold these texts, and programs may compare them.
        if self.background is None:
            return "every class counts alike; none is background"
        name = quoted_value(self.background if self.classes is None else self.classes[self.background])
        left_out = f"background is {name} and excluded from the means"
        if self.drop_background is None:
            return f"{left_out}; its pixels count, so a false alarm on background lowers IoU"
        sides = {"gt": "ground truth is", "pred": "prediction is", "both": "ground truth or prediction is"}
        return f"{left_out}; pixels whose {sides[self.drop_background]} background are not counted"

    def signature_parts(self) -> list[str]:
        """Return the rules as texts such as ``background=0``."""
        return [
            "pixels",
            f"classes={'values' if self.classes is None else len(self.classes)}",
            *(f"{name}={map_text(by)}" for name in ("class_map", "gt_class_map") if (by := getattr(self, name))),
            f"colors={self.colors or 'none'}",
            f"ignore={','.join(map(str, self.ignore)) or 'none'}",
            f"reduce_zero={self.reduce_zero or 'none'}",
            f"background={'none' if self.background is None else self.background}",
            f"drop_background={self.drop_background or 'none'}",
            "means=present",
        ]


def map_text(by: str | tuple[tuple[int, int], ...]) -> str:
    """Return a map of values as the command line takes it."""
    return by if isinstance(by, str) else ",".join(f"{value}={goal}" for value, goal in by)


def _require_one_of(name: str, given: str | None, known: tuple[str, ...]) -> None:
    if given is not None and given not in known:
        raise UsageError(
            f"{name} must be one of {', '.join(known)}; got {quoted_value(given)}.{did_you_mean(given, known)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelOptions:
    """What was asked for besides the rules, by the names of `pixels`: with them, what it takes to run it again."""

    class_map: Mapping[str, int] | str | None = None
    colors: str | None = None
    list_file: str | None = None
    bootstrap: Bootstrap | None = None
    slices: tuple[Slice, ...] = ()


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    support, reason = dict.fromkeys(MAP_CLASS_METRICS, row["gt_pixels"]), "neither predicted nor in the ground truth"
    return read_values(row, support, class_name=row["class"], reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelClassRow:
    """One class: its pixels on both sides and its values by metric."""

    name: str = field(metadata=written_as("class"))
    gt_pixels: Count
    pred_pixels: Count
    values: Mapping[str, MetricValue] = field(metadata=written_as(None, read=_values))

    beside: ClassVar[Beside] = {**NOISE, **dict.fromkeys(MAP_CLASS_METRICS, Measure)}

    also: ClassVar[Also] = (lambda row: values_document(row.values),)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapsSummary:
    """The label maps of one side as they were read."""

    path: str  # the input as the user named it
    format: str  # "png", "npy", or both
    images: Count  # label maps that were counted
    pixels: Count  # pixels in them
    classes: Count  # classes that occur
    fingerprint: str  # digest of the names and bytes of the files
    # What was ignored, counted by reason
    ignored: Mapping[str, Count] = field(default_factory=dict)


def _cells_document(cells: tuple[tuple[str, str | None, int], ...]) -> list[dict[str, Any]]:
    return [{"gt": gt, "pred": pred, "pixels": pixels} for gt, pred, pixels in cells]


def _cells(document: Mapping[str, Any]) -> Any:
    return each(dig(document, "confusion"), lambda cell: [cell["gt"], cell["pred"], cell["pixels"]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PixelsResult(WithParts):
    """The result of one evaluation of label maps.

    ``result["mIoU"]`` and ``result["IoU[class=road]"]`` give single values as floats, NaN where undefined.

    Parameters
    ----------
    protocol : PixelProtocol
    signature : str
        Everything that can change the numbers, in one line.
    gt, pred : MapsSummary
    image_strategy : str
        What the maps of the two sides have in common: "name", "path", "basename", "stem", "list" or "single files".
    metrics : mapping of str to MetricValue
        The means over all classes.
    per_class : tuple of PixelClassRow
    confusion : tuple of (str, str or None, int)
        Class of the ground truth, class of the prediction (None: no class) and pixels, where there are any.
    findings : tuple of Finding
        Warnings and notes.
    options : PixelOptions
        What was asked for besides the rules.
    parts : tuple of Part
        Its results; the properties `gates`, `bootstrap` and `slices` name them.

    Examples
    --------
    >>> from jaccard_eval import pixels
    >>> result = pixels([[[0, 0], [1, 1]]], [[[0, 1], [1, 1]]], classes=["road", "car"])
    >>> result["IoU[class=road]"], result.confusion[0]
    (0.5, ('road', 'road', 1))
    """

    kind: ClassVar[str] = PIXELS
    reported_by: ClassVar[str] = "pixels.report"
    beside: ClassVar[Beside] = {
        **WithParts.beside,
        "confusion": [{"gt": str, "pred": str | None, "pixels": Count}],
    }
    also: ClassVar[Also] = (
        other_signatures,
        metrics_document,
        lambda result: {
            "protocol.background_rule": result.protocol.background_rule,
            "correspondence.matched_images": result.gt.images,
        },
    )

    protocol: PixelProtocol
    signature: str
    version: str
    gt: MapsSummary = field(metadata=written_as("inputs.gt"))
    pred: MapsSummary = field(metadata=written_as("inputs.pred"))
    image_strategy: str = field(metadata=written_as("correspondence.image_strategy"))
    metrics: Mapping[str, MetricValue] = field(metadata=summarised(MAP_METRICS))
    per_class: tuple[PixelClassRow, ...]
    confusion: tuple[tuple[str, str | None, int], ...] = field(
        metadata=written_as("confusion", write=_cells_document, read=_cells)
    )
    findings: tuple[Finding, ...]
    options: PixelOptions = field(default_factory=PixelOptions)
    # `PixelMetrics`; None in a saved result
    measured: Any = field(default=None, metadata=written_as(None))
    # The worst maps, `WorstMaps`; None where the files are not at hand
    images: Any = field(default=None, metadata=written_as(None))

    def _summary(self) -> str:
        values = values_text({name: metric.value for name, metric in self.metrics.items()})
        return f"{values} on {pluralise(self.gt.images, 'label map')}"

    def __getitem__(self, ref: str) -> float:
        """Return the value of ``mIoU``, ``IoU[class=road]`` and their like; NaN when undefined.

        Raises
        ------
        UsageError
            When there is no such metric or class.
        """
        of_classes = (metric for row in self.per_class for metric in row.values.values())
        return value_of(ref, (*self.metrics.values(), *of_classes), "label maps")

    def value(self, ref: MetricRef) -> MetricValue:
        """Return what was measured; a KeyError when there is no such metric or class."""
        if ref.class_name is None:
            return self.metrics[ref.name]
        values = {row.name: row.values for row in self.per_class}
        return values[ref.class_name][ref.name]

    @property
    def slices(self) -> tuple[SliceRow, ...]:
        """The slices that were asked for."""
        return self._rows("slices")
