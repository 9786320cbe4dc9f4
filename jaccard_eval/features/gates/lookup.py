"""What answers the metric references of rules: a result in memory, or a saved one as far as it holds the number."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from typing import Protocol as TypingProtocol

from jaccard_eval.data.document import PANOPTIC, PIXELS, MetricValue
from jaccard_eval.data.metricref import (
    BOX_METRICS,
    EXTERNAL,
    FINDING_METRICS,
    MAP_CLASS_METRICS,
    MAP_METRICS,
    METRICS,
    SEGMENT_CLASS_METRICS,
    SEGMENT_METRICS,
    MetricRef,
    canonical,
    split_ref,
    suggest_metric,
)
from jaccard_eval.data.protocol import COCO, AreaRange
from jaccard_eval.data.result import NOT_VALUES, EvaluationResult, Measured, count_findings
from jaccard_eval.data.saved_values import described_type
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, parse_finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.averages import Axes
from jaccard_eval.metrics.slices import chosen_images, slice_digest
from jaccard_eval.options import Slice
from jaccard_eval.text import did_you_mean, printable, quoted_value

KINDS = (EvaluationResult.kind, PIXELS, PANOPTIC)
# Of the kinds that list their values: what they are of, the metrics over all classes, and those of a class.
LISTED = {
    PIXELS: ("label maps", MAP_METRICS, MAP_CLASS_METRICS),
    PANOPTIC: ("segments", SEGMENT_METRICS, SEGMENT_CLASS_METRICS),
}

Values = dict[Hashable, MetricValue]


class Answers(TypingProtocol):
    """A result that can be asked for the value of a metric reference."""

    @property
    def kind(self) -> str:
        """Kind of the result: "evaluation", "pixels" or "panoptic"."""

    @property
    def signature(self) -> str:
        """All that can change its numbers."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Its classes."""

    def value(self, ref: str) -> MetricValue:
        """Return the value of a reference."""

    def on(self, images: Slice) -> Answers:
        """Return the answers for some of the images; for the errors see `value`."""


class ListedResult(TypingProtocol):
    """A result that has the values that it lists and no others, such as a count of pixels."""

    @property
    def kind(self) -> str:
        """Kind of the result."""

    @property
    def signature(self) -> str:
        """All that can change its numbers."""

    @property
    def per_class(self) -> Sequence[Any]:
        """Rows of the classes, which have a name."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to be known of it."""

    def value(self, ref: MetricRef) -> MetricValue:
        """Return a value that is listed; a KeyError else."""


@dataclass(frozen=True, slots=True)
class ResultAnswers:
    """A result in memory: its match table answers anything, also of a slice; without one it has what it lists."""

    kind: str
    signature: str
    class_names: tuple[str, ...]
    source: Measured | ListedResult
    measured: Measured | None
    # Findings of the evaluation, which metrics count; None on a slice.
    counted: tuple[Finding, ...] | None = None

    def value(self, ref: str) -> MetricValue:
        """Measure a reference, or look it up."""
        parsed = parse_ref(ref, self.kind, self.class_names)
        if parsed.name in FINDING_METRICS and self.counted is not None:
            return count_findings(parsed, self.counted)
        return self.source.value(parsed)

    def on(self, images: Slice) -> ResultAnswers:
        """Evaluate some of the images alone; pixels are counted over all."""
        if self.measured is None:
            raise _undivided(self.kind, images)
        part = self.measured.restrict(chosen_images(images, self.measured.image_names))
        return replace(self, source=part, measured=part, counted=None)


def _undivided(kind: str, images: Slice) -> UsageError:
    of = LISTED[kind][0]
    return UsageError(f"slice {quoted_value(images.name)}: {of} have no slices here. Evaluate these images separately")


def answers_of(result: EvaluationResult | ListedResult) -> ResultAnswers:
    """Return what answers for a result in memory."""
    names = tuple(row.name for row in result.per_class)
    # The matches of segments are kept as long as the program runs.
    measured = getattr(result, "measured", None)
    source = result.measured if isinstance(result, EvaluationResult) else result
    return ResultAnswers(result.kind, result.signature, names, source, measured, counted=result.findings)


def parse_ref(text: str, kind: str, class_names: Sequence[str]) -> MetricRef:
    """Return the reference that a text is to a result of a kind; of maps only what there is a value of."""
    if kind == EvaluationResult.kind:
        return MetricRef.parse(text)
    head, items = split_ref(text)
    of, overall, of_class = LISTED[kind]
    known = tuple(dict.fromkeys([*overall, *of_class, *FINDING_METRICS]))
    if head not in known:
        raise UsageError(
            f"unknown metric {quoted_value(text)} for {of}; choose from "
            f"{', '.join(known)}.{suggest_metric(head, known)}"
        )
    other = sorted(set(items) - {"class"})
    if other:
        raise UsageError(f"metric {quoted_value(text)}: {of} have no {' or '.join(other)}")
    if "class" not in items and head in (*overall, *FINDING_METRICS):
        return MetricRef(name=head)
    if "class" not in items or head not in of_class:
        fix = "covers all classes; remove class=" if "class" in items else f"needs a class, as in {head}[class=NAME]"
        raise UsageError(f"metric {quoted_value(text)}: {head} {fix}")
    name = str(items["class"])
    if name not in class_names:
        raise UsageError(
            f"metric {quoted_value(text)}: unknown class {quoted_value(name)}.{did_you_mean(name, class_names)}"
        )
    return MetricRef(name=head, class_name=name)


class SavedAnswers:
    """The summary, classes, operating points, slices and cells of the gates that a JSON document holds."""

    def __init__(self, document: Mapping[str, Any], path: str) -> None:
        self.path = path
        self.kind: str = document["kind"]
        self.signature: str = document["signature"]
        self.class_names = tuple(str(row["class"]) for row in document["per_class"])
        self._table: Answers | None = None
        self._axes = _axes(document, self.class_names) if self.kind == EvaluationResult.kind else None
        summary = (
            _measured(self._parsed(name), value, document["support"][name], document["undefined"].get(name))
            for name, value in document["metrics"].items()
        )
        held = (*summary, *_VALUES[self.kind](document), *_finding_values(document))
        self._values: Values = {self._key(metric.ref): metric for metric in held}
        self._slices: dict[str, Values] = {}
        for gate in document["gates"]:
            of_slice = self._slices.setdefault(gate["slice_digest"], {})
            self._remember(gate["cells"], of_slice if gate["slice"] else self._values)
        for row in document.get("slices", ()):
            cells = (
                {"metric": name, "value": row[name], "n": n, "reason": "no detections" if n else "no ground truth"}
                for name, n in row["support"].items()
            )
            self._remember(cells, self._slices.setdefault(row["digest"], {}))

    def with_table(self, table: Answers) -> SavedAnswers:
        """Return the answers of the match table, and of the document what was measured elsewhere."""
        # Copies: the document is read once, and its values are shared.
        both = copy.copy(self)
        both.class_names, both._table = table.class_names, table
        return both

    def value(self, ref: str) -> MetricValue:
        """Look a reference up; see ``Answers.value`` for the errors."""
        # A match table has no findings of its own.
        own = ref.startswith(EXTERNAL) or split_ref(ref)[0] in FINDING_METRICS
        if self._table is not None and not own:
            return self._table.value(ref)
        value = self._values.get(self._key(self._parsed(ref)))
        if value is None:
            name = ref if ref.startswith(EXTERNAL) else canonical(ref)
            raise UsageError(f"{printable(self.path)} has no {printable(name)}. {self._remedy}")
        return value

    def on(self, images: Slice) -> Answers:
        """Return what the saved run and its gates measured on a slice."""
        if self._table is not None:
            return self._table.on(images)
        if self.kind == PIXELS:
            raise _undivided(self.kind, images)
        values = self._slices.get(slice_digest(images))
        if values is None:
            raise UsageError(f"{printable(self.path)} has no slice {quoted_value(images.name)}. {self._remedy}")
        part = copy.copy(self)
        part._values = values
        return part

    @property
    def _remedy(self) -> str:
        if self.kind == EvaluationResult.kind:
            return "Re-run evaluate with this rule, or use the saved run (.npz)."
        return f"Re-run {self.kind} with this rule."

    def _remember(self, cells: Iterable[Mapping[str, Any]], values: Values) -> None:
        """Add what was measured beyond the summary."""
        for cell in cells:
            metric = _measured(self._parsed(cell["metric"]), cell["value"], cell["n"], cell["reason"])
            # The summary and the classes come first; a cell repeats them at most.
            values.setdefault(self._key(metric.ref), metric)

    def _parsed(self, ref: str) -> MetricRef:
        """Read a reference; of what is measured elsewhere, the cells of the gates have the value."""
        return MetricRef(name=ref) if ref.startswith(EXTERNAL) else parse_ref(ref, self.kind, self.class_names)

    def _key(self, ref: MetricRef) -> Hashable:
        """Return what equals for references that mean the same under the protocol of the document."""
        if self._axes is None or ref.name not in METRICS:
            return ref
        ref, averaged = self._axes.resolved(ref), METRICS[ref.name].on == "curves"
        thresholds = self._axes.thresholds(ref) if averaged else [self._axes.single_threshold(ref)]
        # AP is AP50 where 0.5 is the one threshold; AR and AR100 are one number where the largest cap is 100.
        if isinstance(thresholds, list):
            threshold: int | None = thresholds[0]
        else:
            threshold = 0 if len(self._axes.protocol.iou_thresholds) == 1 else None
        # A frequency of classes stands where an area range does.
        area = self._axes.area(ref) if self._axes.classes(ref) is None else ref.area
        return ref.name, threshold, area, self._axes.cap(ref), ref.score, self._axes.label(ref)


class SavedValues:
    """The measured values of an evaluation that was read back from its document: those that this lists."""

    def __init__(self, answers: SavedAnswers) -> None:
        self._answers = answers
        self.image_names: Sequence[str] = ()

    def value(self, ref: MetricRef) -> MetricValue:
        """Look a reference up; a UsageError where the document does not have it."""
        return self._answers.value(str(ref))

    def class_values(self, ref: MetricRef) -> Sequence[MetricValue]:
        """Look a metric of each class up."""
        return [self.value(replace(ref, class_name=name)) for name in self._answers.class_names]

    def restrict(self, images: Sequence[int]) -> Measured:
        """Raise the error of all that needs a match table."""
        raise UsageError(f"{printable(self._answers.path)} has no match table. Use the saved run (.npz).")

    @property
    def curves(self) -> Any:
        """See `restrict`."""
        return self.restrict(())

    @property
    def matches(self) -> Mapping[str, Any]:
        """See `restrict`."""
        return self.restrict(()).matches

    @property
    def missed(self) -> Mapping[str, Any]:
        """See `restrict`."""
        return self.restrict(()).missed


def _box_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    """Yield the values of the classes and of the operating points."""
    for row in document["per_class"]:
        reason = "no detections" if row["gt"] else "no ground truth"
        for name in (name for name in row if name not in NOT_VALUES):
            yield _measured(replace(MetricRef.parse(name), class_name=row["class"]), row[name], row["gt"], reason)
    gt = {row["class"]: row["gt"] for row in reversed(document["per_class"])} | {None: 0}
    for text, value in document.get("errors", {}).get("metrics", {}).items():
        ref = MetricRef.parse(text)
        n = gt.get(ref.class_name, 0) if ref.class_name else sum(gt.values())
        yield _measured(replace(ref, iou=document["errors"]["iou"]), value, n, "see the analysis of errors")
    asked, n_images = document["options"].get("score"), int(signature_fields(document["signature"])["images"])
    for point in document["operating_points"]:
        n, named = point["tp"] + point["fn"], {name: point.get(name.lower()) for name in BOX_METRICS}
        named["FPPI"] = point["fp"] / n_images if n_images else None
        # At the score that was asked for, and where that was to be found, at the one that was.
        for score in {asked, point["score"]} - {None}:
            for name in (name for name in named if name == "FPPI" or name.lower() in point):
                ref = MetricRef(name=name, iou=point["iou"], score=score, class_name=point["class"])
                yield _measured(ref, named[name], n, "no detections or no ground truth")


def _finding_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    findings = tuple(map(parse_finding, document["warnings"]))
    return (count_findings(MetricRef(name=name), findings) for name in FINDING_METRICS)


def _map_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    for row in document["per_class"]:
        for name in MAP_CLASS_METRICS:
            ref = MetricRef(name=name, class_name=row["class"])
            yield _measured(ref, row[name], row["gt_pixels"], "neither predicted nor in the ground truth")


def _segment_values(document: Mapping[str, Any]) -> Iterator[MetricValue]:
    for row in document["per_class"]:
        for name in SEGMENT_CLASS_METRICS:
            yield _measured(MetricRef(name=name, class_name=row["class"]), row[name], row["gt"], "no segments")


_VALUES = {EvaluationResult.kind: _box_values, PIXELS: _map_values, PANOPTIC: _segment_values}


def _measured(ref: MetricRef, value: float | None, n: int, reason: str | None) -> MetricValue:
    if value is None:
        return MetricValue(ref=ref, value=math.nan, n=int(n), reason=reason or "reason unknown")
    if not isinstance(value, int | float):
        raise UsageError(f"expected a number for {ref}, got {described_type(value)}")
    return MetricValue(ref=ref, value=float(value), n=int(n))


def _axes(document: Mapping[str, Any], class_names: tuple[str, ...]) -> Axes:
    """Return the axes of the saved evaluation; JSON has no infinities."""
    protocol = document["protocol"]
    areas = (
        AreaRange(
            area["name"],
            -math.inf if area["low"] is None else area["low"],
            math.inf if area["high"] is None else area["high"],
        )
        for area in protocol["areas"]
    )
    rules = COCO.with_options(
        iou_thresholds=tuple(protocol["iou_thresholds"]),
        areas=tuple(areas),
        max_dets=tuple(protocol["max_dets"]),
        frequencies=tuple(protocol.get("frequencies", ())),
    )
    return Axes(rules, class_names, score=document["options"].get("score"))
