"""A saved result that answers metric references as far as its document holds them; see ``analysis.answers.Answers``."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import BOX_METRICS, EXTERNAL, MAP_CLASS_METRICS, METRICS, MetricRef
from jaccard_eval.data.protocol import COCO, AreaRange
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.features.pixels.result import PixelsResult
from jaccard_eval.metrics.averages import Axes
from jaccard_eval.metrics.metric_lookup import Answers, pixel_key, slice_digest
from jaccard_eval.options import Slice
from jaccard_eval.text import shown

KINDS = (EvaluationResult.kind, PixelsResult.kind)
_NO_METRICS = ("class", "gt", "ignored", "pred", "intervals")  # of the rows of classes

Values = dict[Hashable, MetricValue]


class SavedAnswers:
    """The summary, the classes, the operating points, the slices and the cells of the gates that a JSON document holds.

    Parameters
    ----------
    document : mapping
        As ``EvaluationResult.to_dict`` and ``PixelsResult.to_dict`` give it.
    path : str
        For messages.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError, UsageError
        When the document is not of that form.
    """

    def __init__(self, document: Mapping[str, Any], path: str) -> None:
        self.path = path
        self.kind: str = document["kind"]
        self.signature: str = document["signature"]
        self.class_names = tuple(str(row["class"]) for row in document["per_class"])
        self._axes = _axes(document, self.class_names) if self.kind == EvaluationResult.kind else None
        held = self._of_detections(document) if self._axes else self._of_pixels(document)
        self._values = {self._key(one.ref): one for one in held}
        self._slices: dict[str, Values] = {}
        for gate in document["gates"]:
            of_slice = self._slices.setdefault(gate["slice_digest"], {})
            self._remember(gate["cells"], of_slice if gate["slice"] else self._values)
        for row in document.get("slices", ()):
            self._remember(_slice_cells(row), self._slices.setdefault(row["digest"], {}))

    def value(self, ref: str) -> MetricValue:
        """Look a reference up; see ``Answers.value`` for the errors."""
        value = self._values.get(self._key(ref))
        if value is None:
            hint = "evaluate again with the same rules, and the new file will"
            raise UsageError(f"{shown(self.path)} does not hold {shown(ref)}; {hint}")
        return value

    def on(self, images: Slice) -> SavedAnswers:
        """Return what the saved run and its gates measured on a slice."""
        values = self._slices.get(slice_digest(images))
        if values is None:
            raise UsageError(
                f"{shown(self.path)} holds nothing of slice {shown(images.name)}; evaluate again with the same rules"
            )
        part = copy.copy(self)
        part._values = values
        return part

    def _remember(self, cells: Iterable[Mapping[str, Any]], values: Values) -> None:
        """Add what was measured beyond the summary."""
        for cell in cells:
            one = _value(cell["metric"], cell["value"], cell["n"], cell["reason"])
            values.setdefault(self._key(one.ref), one)

    def _key(self, ref: str) -> Hashable:
        """Return what equals for references that mean the same under the protocol of the document."""
        if ref.startswith(EXTERNAL):
            return ref
        return _detection_key(MetricRef.parse(ref), self._axes) if self._axes else pixel_key(ref, self.class_names)

    def _of_detections(self, document: Mapping[str, Any]) -> Iterator[MetricValue]:
        yield from _summary(document)
        for row in document["per_class"]:
            reason = "no detections" if row["gt"] else "no ground truth"
            for name in (name for name in row if name not in _NO_METRICS):
                ref = replace(MetricRef.parse(name), class_name=row["class"])
                yield _value(str(ref), row[name], row["gt"], reason)
        for point in (one for one in document["operating_points"] if one["score"] is not None):
            for name in (name for name in BOX_METRICS if name.lower() in point):
                ref = MetricRef(name=name, iou=point["iou"], score=point["score"], class_name=point["class"])
                yield _value(
                    str(ref), point[name.lower()], point["tp"] + point["fn"], "no detections or no ground truth"
                )

    def _of_pixels(self, document: Mapping[str, Any]) -> Iterator[MetricValue]:
        yield from _summary(document)
        for row in document["per_class"]:
            for name in MAP_CLASS_METRICS:
                ref = str(MetricRef(name=name, class_name=row["class"]))
                yield _value(ref, row[name], row["gt_pixels"], "neither predicted nor in the ground truth")


class RunAnswers:
    """A saved result with its match table: that answers anything but what was measured elsewhere.

    Parameters
    ----------
    document : SavedAnswers
    table : Answers
    """

    def __init__(self, document: SavedAnswers, table: Answers) -> None:
        self.kind = document.kind
        self.signature = document.signature
        self.class_names = table.class_names
        self._document = document
        self._table = table

    def value(self, ref: str) -> MetricValue:
        """Measure a reference, or look it up; see ``Answers.value`` for the errors."""
        return (self._document if ref.startswith(EXTERNAL) else self._table).value(ref)

    def on(self, images: Slice) -> Answers:
        """Evaluate some of the images alone."""
        return self._table.on(images)


def _slice_cells(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what was measured on a slice, as the cells of gates have it."""
    for name, n in row["support"].items():
        yield {"metric": name, "value": row[name], "n": n, "reason": "no detections" if n else "no ground truth"}


def _summary(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    for name, value in document["metrics"].items():
        yield _value(name, value, document["support"][name], document["undefined"].get(name))


def _value(ref: str, value: float | None, n: int, reason: str | None) -> MetricValue:
    if value is None:
        return MetricValue(ref=ref, value=math.nan, n=int(n), reason=reason or "the saved result gives no reason")
    return MetricValue(ref=ref, value=float(value), n=int(n))


def _axes(document: Mapping[str, Any], class_names: tuple[str, ...]) -> Axes:
    """Return the axes of the saved evaluation; JSON has no infinities."""
    protocol = document["protocol"]
    areas = (
        AreaRange(
            one["name"],
            -math.inf if one["low"] is None else one["low"],
            math.inf if one["high"] is None else one["high"],
        )
        for one in protocol["areas"]
    )
    rules = COCO.with_options(
        iou_thresholds=tuple(protocol["iou_thresholds"]), areas=tuple(areas), max_dets=tuple(protocol["max_dets"])
    )
    return Axes(rules, class_names)


def _detection_key(ref: MetricRef, axes: Axes) -> Hashable:
    """Place a reference on the axes: ``AR`` and ``AR100`` are one number where the largest cap is 100."""
    averaged = METRICS[ref.name].kind == "average"
    thresholds = axes.thresholds(ref) if averaged else [axes.single_threshold(ref)]
    one_threshold = (
        thresholds[0] if isinstance(thresholds, list) else 0 if len(axes.protocol.iou_thresholds) == 1 else None
    )
    return ref.name, one_threshold, axes.area(ref), axes.cap(ref), ref.score, axes.label(ref)
