"""Average precision, average recall and operating points, each answered from one source of curves."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, cast

import numpy as np

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import ClassRow, EvaluationResult, OperatingPoint
from jaccard_eval.data.sides import Sides
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import IMAGE_FOLDER
from jaccard_eval.matching.matchtable import NO_PAIR, MatchTable, match_boxes
from jaccard_eval.matching.order import IntArray, WholeArray
from jaccard_eval.matching.ranking import ALL_SIZES, Ranking
from jaccard_eval.metrics.averages import ALL_SCORES, Averages, Axes
from jaccard_eval.metrics.counts import is_met_by_none, operating_point, point_value
from jaccard_eval.metrics.curves import Curves, CurveSource
from jaccard_eval.progress import staged
from jaccard_eval.similarity import KINDS
from jaccard_eval.text import quoted_value

# What is not there where the matches of all detections do not fit into memory, and what to do.
# Asked for in Python: the command line refuses before anything is read.
NO_TABLE = (
    'this needs the match of every detection, which the disk engine does not keep. Evaluate with engine="memory".'
)
# Up to this many, the summary shows every IoU threshold, else those of COCO (.5 and .75).
FEW_THRESHOLDS = 4


# Finds the errors of metrics at one of their thresholds: an ``ErrorReport``, which lies above.
Analyse = Callable[["DetectionMetrics", int], Any]


class DetectionMetrics:
    """Answers metric references from the curves of a match table, or of any other source; see ``data.result.Measured``.

    `area_known` is whether areas are in square pixels; without image sizes, size ranges of normalised boxes are
    undefined. `frequency` is that of each class, where the ground truth has it.
    """

    def __init__(
        self,
        source: MatchTable | CurveSource,
        class_names: Sequence[str],
        image_names: Sequence[str],
        *,
        area_known: bool = True,
        frequency: Sequence[str] = (),
        score: float | str | None = ALL_SCORES,
    ) -> None:
        self._table = source if isinstance(source, MatchTable) else None
        self.protocol = source.protocol
        self.class_names = tuple(class_names)
        self.image_names = image_names
        self.area_known = area_known
        self.source: CurveSource = (
            Curves(Ranking.of(source, len(self.image_names))) if isinstance(source, MatchTable) else source
        )
        self.frequency = tuple(frequency)
        self.axes = Axes(self.protocol, self.class_names, self.frequency, score)
        self._averages = Averages(self.source, self.axes)
        self._analyse: Analyse | None = None
        self._errors: dict[int, Any] = {}

    def at(self, score: float | str | None, analyse: Analyse | None = None) -> DetectionMetrics:
        """Return the metrics with what counts where references name no score (see `Axes`), and what finds errors."""
        view = copy.copy(self)
        view.axes = replace(self.axes, score=score)
        view._analyse, view._errors = analyse, {}
        return view

    def errors_at(self, threshold: int) -> Any:
        """Return the analysis of errors at a threshold, made once."""
        if self._analyse is None:
            raise UsageError(
                "errors are analysed in memory, and over all images. Remove the slice, or the disk engine."
            )
        if threshold not in self._errors:
            self._errors[threshold] = self._analyse(self, threshold)
        return self._errors[threshold]

    @property
    def table(self) -> MatchTable:
        """Who matched whom; a UsageError where nothing but curves is kept."""
        if self._table is None:
            raise UsageError(NO_TABLE)
        return self._table

    @property
    def curves(self) -> Curves:
        """The curves of the match table; those of another source answer only what `CurveSource` names."""
        return cast("Curves", self.source)

    @property
    def tie_choice(self) -> tuple[str, ...]:
        """What a signature shows about the order of equal scores; nothing where it decides nothing."""
        names = ("",) if self.protocol.class_agnostic else self.class_names
        orders = sorted((names[label], order) for label, order in self.source.tie_orders.items())
        text = json.dumps(orders).encode()
        return (f"ties={FINGERPRINT}{sha256(text).hexdigest()[:FINGERPRINT_DIGITS]}",) if orders else ()

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure any metric reference; raise a UsageError for what is not part of this evaluation."""
        # Names are looked up before anything is computed, so that a misspelt one fails at once.
        label, ref = self.axes.label(ref), self.axes.resolved(ref)
        if METRICS[ref.name].on != "curves":
            return self._point_value(ref, label)
        area = self.axes.area(ref)
        positives = self.source.positives[area]
        classes = self.axes.classes(ref)
        if classes is not None and label is not None:
            raise UsageError(f"metric {quoted_value(str(ref))}: name a class or a frequency of classes, not both")
        n = int(positives[slice(None) if classes is None else classes].sum() if label is None else positives[label])
        return self._of_area(ref, area) or self._defined(ref, self._averages.mean(ref), n)

    def class_values(self, ref: MetricRef) -> tuple[MetricValue, ...]:
        """Measure a metric of every class, in class order; of the reference, which names no class."""
        labels, ref = range(len(self.class_names)), self.axes.resolved(ref)
        if METRICS[ref.name].on != "curves":
            return tuple(self._point_value(ref, label) for label in labels)
        area, means = self.axes.area(ref), self._averages.class_means(ref)
        unknown = self._of_area(ref, area)
        return (unknown,) * len(labels) if unknown else self._of_classes(ref, means, self.source.positives[area])

    def _of_classes(self, ref: MetricRef, means: FloatArray, positives: WholeArray) -> tuple[MetricValue, ...]:
        # One value for all classes that have nothing: there may be a million.
        nothing, is_nothing = self._defined(ref, math.nan, 0), np.isnan(means) & (positives == 0)
        rows = zip(is_nothing.tolist(), means.tolist(), positives.tolist(), strict=True)
        return tuple(nothing if is_none else self._defined(ref, value, n) for is_none, value, n in rows)

    def _of_area(self, ref: MetricRef, area: int) -> MetricValue | None:
        """Return the value of a metric that is undefined for want of areas in square pixels; None where it is not."""
        if area == ALL_SIZES or self.area_known:
            return None
        return MetricValue(ref=ref, value=np.nan, n=0, reason="image sizes are unknown")

    def _point_value(self, ref: MetricRef, label: int | None) -> MetricValue:
        if METRICS[ref.name].on != "point":
            return self._matched_value(ref, label)
        point = operating_point(self.source, self.axes, self.axes.single_threshold(ref), label, ref.score)
        value, n = point_value(point, ref.name, len(self.image_names)), point.tp + point.fn
        if n and math.isnan(value) and isinstance(ref.score, str):
            met = "has a true positive" if is_met_by_none(ref.score) else f"reaches {ref.score}"
            return MetricValue(ref=ref, value=value, n=n, reason=f"no score {met}")
        return self._defined(ref, value, n)

    def _matched_value(self, ref: MetricRef, label: int | None) -> MetricValue:
        """Return what is measured of matched pairs, or taken from the analysis of errors."""
        threshold, positives = self.axes.single_threshold(ref), self.source.positives[ALL_SIZES]
        n = int(positives.sum() if label is None else positives[label])
        if METRICS[ref.name].on == "matches":
            value, lacking = self.mean_overlap(threshold, label, ref.score), "no matches"
        elif METRICS[ref.name].on == "errors":
            found = self.errors_at(threshold).values
            value = found.get(replace(ref, iou=None), None)
            if value is None:
                raise UsageError(f"metric {quoted_value(str(ref))}: {ref.name} covers all classes; remove class=")
            is_calibration = ref.name in ("ECE", "MCE")
            lacking = "no detections, or scores outside [0, 1]" if is_calibration else "no true positives"
        else:
            raise UsageError(f"metric {quoted_value(str(ref))}: findings are those of all images; remove the slice")
        reason = None if not math.isnan(value) else lacking if n or ref.name in ("ECE", "MCE") else "no ground truth"
        return MetricValue(ref=ref, value=value, n=n, reason=reason)

    def mean_overlap(self, threshold: int, label: int | None, score: float | str | None) -> float:
        """Return the mean IoU of the true positives with at least a score, or of all; NaN without any."""
        at = self.source.best_score(threshold, label, score) if isinstance(score, str) else score
        _, labels, overlap = self.matched_overlaps(threshold, ALL_SCORES if at is None else at)
        overlap = overlap if label is None else overlap[labels == label]
        return float(overlap.mean()) if len(overlap) else math.nan

    def matched_overlaps(self, threshold: int, score: float) -> tuple[WholeArray, WholeArray, FloatArray]:
        """Return image, class and IoU of the true positives with at least a score."""
        table, ranking = self.table, self.curves.ranking
        choice, right = table.chosen_pairs(ALL_SIZES, threshold), ranking.outcomes(threshold)[0][table.candidate]
        right &= table.score[table.candidate] >= score
        rows = table.candidate[right]
        return table.image[rows], table.label[rows], table.pair_overlap[choice[right]]

    def restrict(self, images: Sequence[int]) -> DetectionMetrics:
        """Return the metrics of some images alone, given as ascending rows."""
        rows = np.asarray(images, dtype=np.int64)
        # The table, where there is one: its restriction can still be asked who matched whom.
        part = self.source.restrict(rows) if self._table is None else self._table.restrict(rows)
        names = [self.image_names[row] for row in images]
        return DetectionMetrics(
            part,
            self.class_names,
            names,
            area_known=self.area_known,
            frequency=self.frequency,
            score=self.axes.score,
        )

    def per_class(self) -> tuple[ClassRow, ...]:
        """Measure every class by the metrics of `class_refs`; one row each, in class order."""
        predictions, total = self.source.detections, self.source.objects
        positives = self.source.positives[ALL_SIZES]
        # All classes at once, and the text of each reference once: there may be thousands of classes.
        refs = class_refs(self.protocol)
        columns = [(str(ref), self._of_classes(ref, self._averages.class_means(ref), positives)) for ref in refs]
        areas = [ref for ref in summary_refs(self.protocol) if ref.area not in self.protocol.frequencies]
        known = {text for text, _ in columns}
        sizes = [(str(ref), self.class_values(ref)) for ref in areas if str(ref) not in known]
        alike: dict[tuple[int, ...], dict[str, MetricValue]] = {}  # of classes whose values are the same objects

        def values_of(k: int, columns: Sequence[tuple[str, Sequence[MetricValue]]]) -> dict[str, MetricValue]:
            key = tuple(id(found[k]) for _, found in columns)
            return alike.get(key) or alike.setdefault(key, {text: found[k] for text, found in columns})

        rows = []
        for k, name in enumerate(self.class_names):
            counts = {"gt": int(positives[k]), "ignored": int(total[k] - positives[k]), "pred": int(predictions[k])}
            frequency = self.frequency[k] if self.frequency else None
            values, others = values_of(k, columns), values_of(k, sizes)
            rows.append(ClassRow(name=name, **counts, values=values, frequency=frequency, sizes=others))
        return tuple(rows)

    def operating_points(self, score: float | str) -> tuple[OperatingPoint, ...]:
        """Count at a score (or at each one's best F1) for all classes pooled, then each class; at every IoU."""
        # With one class the pooled rows would repeat the same numbers. A best score is that of each row's own
        # threshold.
        labels: list[int | None] = [None, *range(len(self.class_names))] if len(self.class_names) > 1 else [None]
        thresholds = range(len(self.protocol.iou_thresholds))
        return tuple(operating_point(self.source, self.axes, t, k, score) for t in thresholds for k in labels)

    def _defined(self, ref: MetricRef, value: float, n: int) -> MetricValue:
        if not np.isnan(value):
            return MetricValue(ref=ref, value=value, n=n)
        reason = "no detections" if n else f"no {ref.area + ' ' if ref.area else ''}ground truth"
        if not n and self.axes.classes(ref) is not None:
            reason = f"no ground truth of a class with frequency {ref.area}"
        return MetricValue(ref=ref, value=np.nan, n=n, reason=reason)

    @cached_property
    def matches(self) -> Mapping[str, Any]:
        """Columns with one row per detection kept, in the order of the predictions; (n, T) where a threshold matters.

        ``image``, ``class``, ``score``, ``source`` (row in the predictions), ``gt`` (row of the matched ground truth,
        -1 for none), ``iou`` (NaN for none), ``tp``, ``fp``, ``ignored``. Over all sizes.
        """
        table, ranking = self.table, self.curves.ranking
        order = np.argsort(table.source, kind="stable")
        choice = table.chosen_pairs(ALL_SIZES).T  # (c, T)
        shape = len(table), choice.shape[1]
        gt, overlap, hits = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
        # What holds for detections without a candidate stands everywhere first; candidates are then written over it.
        counts = np.repeat(ranking.in_range[ALL_SIZES][:, None], shape[1], axis=1)
        c, t = np.nonzero(choice != NO_PAIR)
        gt[table.candidate[c], t] = table.gt_source[table.pair_gt[choice[c, t]]]
        overlap[table.candidate[c], t] = table.pair_overlap[choice[c, t]]
        hits[table.candidate], counts[table.candidate] = ranking.hits[ALL_SIZES].T, ranking.counts[ALL_SIZES].T
        columns = {"score": table.score, "source": table.source, "gt": gt, "iou": overlap}
        columns |= {"tp": hits, "fp": counts & ~hits, "ignored": ~counts}
        return self._named(table.image, table.label, order) | {name: column[order] for name, column in columns.items()}

    @cached_property
    def missed(self) -> Mapping[str, Any]:
        """Columns with one row per ground-truth box that counts and stays unmatched at some threshold.

        ``image``, ``class``, ``source`` (row in the ground truth), ``missed`` (m, T).
        """
        table, choice = self.table, self.table.chosen_pairs(ALL_SIZES)
        t, c = np.nonzero(choice != NO_PAIR)
        missed = np.repeat(~table.gt_ignored[ALL_SIZES][:, None], len(choice), axis=1)  # (m, T)
        missed[table.pair_gt[choice[t, c]], t] = False
        rows = np.flatnonzero(missed.any(axis=1))
        named = self._named(table.gt_image, table.gt_label, rows)
        return named | {"source": table.gt_source[rows], "missed": missed[rows]}

    def _named(self, image: WholeArray, label: WholeArray, rows: IntArray) -> dict[str, Any]:
        named = {"image": (self.image_names, image), "class": (self.class_names, label)}
        # Without rows there may be no names at all, and an array of none takes no index.
        return {
            key: np.array(names, dtype=object)[column[rows]] if len(rows) else np.array([], dtype=object)
            for key, (names, column) in named.items()
        }


def summary_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics of a protocol's summary: COCO's twelve, as far as thresholds, areas and caps allow."""
    # The order is that of ``COCOeval.stats``: AP by threshold, AP by size, AR by cap, AR by size.
    areas = [area.name for area in protocol.areas[1:]]
    by_area = [MetricRef(name=name, area=area) for name in ("AP", "AR") for area in areas]
    by_cap = [MetricRef(name="AR", max_dets=cap) for cap in protocol.max_dets] or [MetricRef(name="AR")]
    if protocol.iou_type == "keypoints":  # the ten of poses: one cap, and recall by threshold as well
        by_cap = [replace(ref, name="AR") for ref in _threshold_refs(protocol)]
    by_frequency = [MetricRef(name="AP", area=name) for name in protocol.frequencies]
    return (*_threshold_refs(protocol), *by_area[: len(areas)], *by_frequency, *by_cap, *by_area[len(areas) :])


def class_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics of the per-class table."""
    cap = protocol.max_dets[-1] if protocol.max_dets else None
    return (*_threshold_refs(protocol), MetricRef(name="AR", max_dets=cap))


def _threshold_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    shown = protocol.iou_thresholds
    if len(shown) > FEW_THRESHOLDS:
        # By equality: both are exact in binary, and among the values of linspace.
        shown = tuple(iou for iou in shown if iou in (0.5, 0.75))
    return (MetricRef(name="AP"), *(MetricRef(name="AP", iou=iou) for iou in shown))


@staged("matching")
def match_sides(
    sides: Sides, protocol: Protocol, measure: Callable[..., DetectionMetrics] | None = None
) -> DetectionMetrics:
    """Match two sides, and return the metrics; refuse data without the sizes or shapes that the protocol needs.

    What matches them is `measure_aligned`, unless given.
    """
    aligned, findings = sides.aligned, FindingLog()
    # A pixel has no size in fractions of an image: the +1 of VOC cannot be added to them.
    if protocol.pixel_offset and aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            f"protocol {protocol.name} adds a pixel to every side, but boxes are normalised and image sizes unknown",
            fix=IMAGE_FOLDER,
        )
    # These know more than shares of areas, which are the same in fractions: distances, widths, angles.
    if protocol.iou_type in ("keypoints", "probiou") and aligned.units == "norm" and len(aligned.gt):
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            f"{protocol.iou_type} measures distances, but coordinates are fractions of images whose sizes are unknown",
            fix=IMAGE_FOLDER,
        )
    kind = KINDS[protocol.iou_type]
    for side, boxes in ((sides.gt, aligned.gt), (sides.pred, aligned.pred)):
        if kind.shapes is None or not len(boxes):
            continue
        # Tables of one side have shapes alike.
        shapes = next(table.shapes for table in boxes.tables() if len(table))
        if not isinstance(shapes, kind.shapes):
            detail = (
                f"{side.format} was read without the shapes that iou_type {quoted_value(protocol.iou_type)} compares"
            )
            fix = "Pass a file that has them, or evaluate boxes: iou_type 'bbox'."
            findings.error("shapes-missing", Where(side.path), detail, fix=fix)
        elif kind.refuses is not None and (problem := kind.refuses(shapes, protocol)):
            findings.error("shapes-unfit", Where(side.path), problem, fix=kind.remedy and kind.remedy(shapes))
    findings.raise_errors()
    return (measure or partial(measure_aligned, aligned))(aligned.gt, aligned.pred, protocol)


def measure_aligned(
    aligned: Alignment,
    gt: BoxTable,
    pred: BoxTable,
    protocol: Protocol,
    *,
    change: Callable[[MatchTable], MatchTable] | None = None,
) -> DetectionMetrics:
    """Match boxes in the rows of an alignment, and return the metrics of the table, after a `change` of it."""
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(gt, pred, protocol, n_images=n_images, n_labels=n_labels)
    return metrics_of(aligned, table if change is None else change(table))


def metrics_of(aligned: Alignment, source: MatchTable | CurveSource) -> DetectionMetrics:
    """Return the metrics of what was matched in the rows of an alignment."""
    pooled, area_known = source.protocol.class_agnostic, aligned.units == "px"
    names = ("all classes",) if pooled else aligned.class_names
    # Only protocols that ask for it show how frequent a class is: what others write stays as it is.
    frequency = aligned.facts.frequency if source.protocol.frequencies and not pooled else ()
    return DetectionMetrics(source, names, aligned.image_names, area_known=area_known, frequency=frequency)


def detection_metrics(result: EvaluationResult) -> DetectionMetrics:
    """Return the metrics of a result with their match table; results that were put together by hand have none."""
    if not isinstance(result.measured, DetectionMetrics):
        raise UsageError(f"the result of {quoted_value(result.pred.path)} has no match table to compare")
    return result.measured
