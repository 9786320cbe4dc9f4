"""What results are: an evaluation with its signature, inputs and findings, verdicts. Nothing is computed here."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired, Self, overload
from typing import Protocol as TypingProtocol

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.document import (
    BY_METRIC,
    CHECKS,
    EVALUATION,
    OTHERS,
    ROUNDING,
    SEVERITIES,
    SIGNIFICANCES,
    Also,
    Beside,
    Bounds,
    Count,
    DataTable,
    Form,
    Interval,
    Known,
    KnownShare,
    Measure,
    MetricValue,
    Part,
    Share,
    dig,
    each,
    fields_document,
    result_document,
    to_document,
    written_as,
)
from jaccard_eval.data.document import Status as Status  # noqa: PLC0414 - the home of what is public
from jaccard_eval.data.metricref import FINDING_METRICS, METRICS, MetricRef
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Keywords
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import Bootstrap
from jaccard_eval.registry import provided
from jaccard_eval.text import pluralise, printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Result:
    """Base of all results; what a result is in one line is its own business (`_summary`)."""

    __slots__ = ()

    kind: ClassVar[str]
    reported_by: ClassVar[str]
    # Characters that the text of a result takes at most.
    text_limit: ClassVar[int] = 1_000

    if TYPE_CHECKING:
        findings: tuple[Finding, ...]
        version: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        return result_document(self, {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a report as the command line does, in the format of the suffix: .json, .html, .csv, .md, .svg, ...

        Parameters
        ----------
        path : path
            A file that may exist; it is replaced when all is written.

        Raises
        ------
        UsageError
            When there is no such report, this result has none, or the file is one that was read.
        MachineError
            When it cannot be written, or a library is not installed.
        """
        provided("results").save(self, path)

    def to_frame(self) -> pd.DataFrame:
        """Return its rows as a pandas table; see `jaccard_eval.to_frame`."""
        frame: pd.DataFrame = provided("results").to_frame(self)
        return frame

    def plot(self) -> Figure:
        """Return its charts as one matplotlib figure.

        Raises
        ------
        UsageError
            When results of this kind have no charts.
        MachineError
            When matplotlib is not installed.
        """
        figure: Figure = provided("results").plot(self)
        return figure

    def __repr__(self) -> str:
        """Return the result in one line, and its warnings in another."""
        texts = []
        for severity in (Severity.ERROR, Severity.WARNING):
            codes = [finding.code for finding in self.findings if finding.severity is severity]
            if codes:
                texts.append(f"{pluralise(len(codes), severity)}: {', '.join(dict.fromkeys(codes))}")
        found = "".join(f"\n{text}" for text in texts)
        line = f"<{type(self).__name__} {printable(self._summary())}>"
        room = self.text_limit - len(found)
        return (line if len(line) <= room else f"{line[: room - 2]}…>") + found

    def _repr_html_(self) -> str:
        """Return the report as a piece of HTML, for a cell of a notebook."""
        html: str = provided("results").to_html(self)
        return html

    def _summary(self) -> str:
        raise NotImplementedError


def values_text(values: Mapping[str, float]) -> str:
    """Return named numbers in one line, as in ``AP=0.5046, AP50=0.7000``."""
    return ", ".join(f"{name}={value:.4f}" for name, value in values.items())


def listed(texts: Iterable[str], shown: int = 5) -> str:
    """Return the first few of some texts in one line, and how many more there are."""
    known = tuple(texts)
    more = [f"and {len(known) - shown:,} more"] if len(known) > shown else []
    return "; ".join([*known[:shown], *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDelta:
    """How one metric differs between two models on the same images; NaN where undefined."""

    ref: str
    # Of the first model and of the second; the difference is that of the second.
    base: float
    value: float
    delta: float
    # Of the difference; None where no draw has both values.
    interval: Interval | None
    # Confidence that the difference is not zero: 1 minus the two-sided bootstrap p-value.
    probability: float
    # Smallest true difference that this set shows four times in five (power 0.8) at this confidence.
    detectable: float
    # Draws in which both are defined.
    n_resamples: int
    # Why gates do not judge by the interval.
    refused: str | None = None


# How images were drawn.
RESAMPLING: Beside = {
    "n_resamples": Annotated[int, Bounds(1)],
    "confidence_level": KnownShare,
    "rng": Count,
    "unit": str,
    "n_units": Count,
}
# Of measured values: intervals, and why some have none.
NOISE: Beside = {
    "intervals": NotRequired[Mapping[str, Annotated[Interval, BY_METRIC]]],
    "refused": NotRequired[Mapping[str, str]],
}


def _ends(spread: Mapping[str, Any]) -> list[Any]:
    return [spread.get("low"), spread.get("high")]


def require_ascending(ends: Sequence[float]) -> None:
    """Raise a UsageError where an interval ends below its start."""
    low, high = ends
    if low > high + ROUNDING:
        raise UsageError(f"the interval ends at {high}, below its start {low}")


def _drawn(spread: Mapping[str, Any]) -> dict[str, Any]:
    known = ("of", "low", "high", "probability", "detectable", "paired")
    return {name: value for name, value in spread.items() if name not in known}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far chance moves what was judged: with other images of the same kind it would be another number."""

    # Of the difference from the baseline, over the same resamples of the images; of the value, where it has none.
    interval: Interval = field(metadata=written_as(None, read=_ends))
    # How images were resampled, as `Resamples.to_document` has it.
    drawn: Mapping[str, Any] = field(metadata=written_as(None, read=_drawn))
    # The difference from the baseline, where that is what the interval is of.
    paired: PairedDelta | None = field(
        default=None, metadata=written_as(None, read=lambda spread: dig(spread, "paired"))
    )

    beside: ClassVar[Beside] = {
        **RESAMPLING,
        **{"low": float, "high": float},
        **{"probability": NotRequired[Share], "detectable": NotRequired[float]},
        "of": NotRequired[Annotated[str, ("value", "delta")]],
    }

    def __post_init__(self) -> None:
        require_ascending(self.interval)

    @property
    def half_width(self) -> float:
        """Half of the interval: smaller changes are noise."""
        return (self.interval[1] - self.interval[0]) / 2

    def to_document(self) -> dict[str, Any]:
        """Return plain types, None where undefined."""
        fields: dict[str, Any] = {
            **self.drawn,
            "of": "value" if self.paired is None else "delta",
            "low": self.interval[0],
            "high": self.interval[1],
            "probability": self.paired.probability if self.paired else None,
            "detectable": self.paired.detectable if self.paired else None,
        }
        return {name: to_document(value) for name, value in fields.items()}


def _paired_spread(verdict: Mapping[str, Any]) -> Any:
    """Return the spread of a verdict with the difference that it is of: either document has a half of that."""
    spread = verdict.get("spread")
    if not isinstance(spread, Mapping) or spread.get("of") != "delta":
        return spread
    names = {"ref": "metric", "base": "baseline", "value": "value", "delta": "delta"}
    paired = {name: dig(verdict, key) for name, key in names.items()} | {"interval": _ends(spread)}
    return {**spread, "paired": {**spread, **paired}}


def _cells_document(cells: Iterable[MetricValue]) -> list[dict[str, Any]]:
    return [{"metric": cell.ref, "value": cell.value, "n": cell.n, "reason": cell.reason} for cell in cells]


def _cell_values(verdict: Mapping[str, Any]) -> Any:
    return each(dig(verdict, "cells"), lambda cell: {**cell, "ref": cell.get("metric")})


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """One limit of one rule, judged on one value.

    Parameters
    ----------
    rule : str
        Id of the rule.
    metric : str
        Text of what was judged: a metric reference, or an aggregate such as ``min(AP50[class=*])``.
    check : str
        Kind of the limit: "min", "max", "max-drop", "max-drop-relative", "max-rise" or "max-rise-relative".
    status : Status
    severity : {"error", "warning", "info"}
        Of the rule: what breaking it is.
    value : float
        NaN when undefined.
    limit, margin : float
        The limit that decided, and how far the value is on its right side; negative when broken, NaN when nothing was
        compared.
    n : int
        Support: ground-truth boxes, or pixels, that the value rests on; of a precision detections.
    class_name : str, optional
        The class, of a rule that judges classes one by one.
    baseline, delta : float
        The value of the baseline and how much higher the run's is; NaN without one.
    reason : str
        Why it was skipped or is undefined, or a remark.
    slice, slice_digest : str
        Name and digest of the slice of the images; empty for all.
    cells : tuple of MetricValue
        The measured values that `value` is made of; from a saved result they can be judged again.
    where : Where, optional
        Where the rule stands.
    significance : {"significant-drop", "non-inferior"}, optional
        What was asked of the interval of the difference; the margin is then how far the nearer of drop and interval is
        from breaking the rule.
    spread : Spread, optional
        How far chance moves it, where images were resampled.
    ties : (float, float), optional
        The lowest and the highest value over all orders of equal scores, where the status depends on that order.
    asked : mapping
        The rule, as far as it is not the default one, its slice, and what of the gates decides about it: by this it is
        judged again when it is verified.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate, gate
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> [verdict] = gate(evaluate(gt, pred), ["AP50>=0.75"])
    >>> verdict.check, verdict.limit, round(verdict.margin, 4), str(verdict.status)
    ('min', 0.75, 0.25, 'pass')
    """

    rule: str
    metric: str
    check: Annotated[str, CHECKS]
    status: Status
    severity: Annotated[str, SEVERITIES]
    value: float
    limit: float
    n: Count
    margin: float = math.nan
    class_name: str | None = field(default=None, metadata=written_as("class"))
    baseline: float = math.nan
    delta: float = math.nan
    reason: str = ""
    slice: str = ""
    slice_digest: str = ""
    cells: tuple[MetricValue, ...] = field(
        default=(), metadata=written_as("cells", write=_cells_document, read=_cell_values)
    )
    where: Where | None = field(default=None, metadata=written_as(None))
    significance: Annotated[str, SIGNIFICANCES] | None = None
    spread: Spread | None = field(default=None, metadata=written_as("spread", read=_paired_spread))
    ties: Interval | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)

    beside: ClassVar[Beside] = {
        "cells": [{"metric": MetricRef, "value": Measure, "n": Count, "reason": str | None}],
        "spread": NotRequired[Spread | None],
    }
    required: ClassVar[tuple[str, ...]] = ("margin", "baseline", "delta", "reason", "slice", "slice_digest")

    @property
    def failed(self) -> bool:
        """Whether this fails the run."""
        return self.status is Status.FAIL

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, None where undefined; without the place of the rule, which is one machine's."""
        return fields_document(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GateResult(Result, Sequence[GateVerdict]):
    """The verdicts on a result: a sequence of them, in the order of the rules; `passed` unless one has failed.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate, gate
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> answer = gate(evaluate(gt, pred), ["AP50>=0.5", "AP50<=0.4"])
    >>> answer.passed, len(answer), [verdict.metric for verdict in answer.failed]
    (False, 2, ['AP50'])
    """

    version: str
    # What was judged and what it was compared with, as the user named them, and the signature of the former. Results
    # in memory are named by their kind.
    path: str = field(metadata=written_as("result"))
    signature: str
    baseline: str | None
    gates: tuple[GateVerdict, ...]
    # What makes verdicts doubtful.
    findings: tuple[Finding, ...] = ()

    kind: ClassVar[str] = "gate"
    reported_by: ClassVar[str] = "gates.report"

    @overload
    def __getitem__(self, index: int) -> GateVerdict: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[GateVerdict, ...]: ...

    def __getitem__(self, index: int | slice) -> GateVerdict | tuple[GateVerdict, ...]:
        """Return a verdict by its place, or some of them."""
        return self.gates[index]

    def __len__(self) -> int:
        return len(self.gates)

    @property
    def passed(self) -> bool:
        """Whether no verdict is a failure; warnings and skipped rules are none."""
        return not self.failed

    @property
    def failed(self) -> tuple[GateVerdict, ...]:
        """The verdicts that are failures."""
        return tuple(verdict for verdict in self.gates if verdict.failed)

    def _summary(self) -> str:
        counts = ", ".join(f"{count:,} {status}" for status, count in counted_statuses(self.gates).items())
        failed = (f"{verdict.metric}={verdict.value:.4f}, {verdict.check} {verdict.limit:g}" for verdict in self.failed)
        return "; ".join(filter(None, [f"{'passed' if self.passed else 'FAILED'}: {counts}", listed(failed)]))


def counted_statuses(gates: Iterable[GateVerdict]) -> dict[Status, int]:
    """Count the verdicts by status, in the order of `Status`; those that occur."""
    statuses = [verdict.status for verdict in gates]
    return {status: statuses.count(status) for status in Status if status in statuses}


# Keys of a class in documents that are not metrics of it.
NOT_VALUES = ("class", "gt", "ignored", "pred", "frequency", "intervals", "refused", "sizes")
TARGET = "expected value on sets of this size"  # what an interval of halves holds


def read_values(
    row: Mapping[str, Any], support: Mapping[str, int], *, class_name: str | None = None, reason: str | None = None
) -> dict[str, Any]:
    """Return the values that stand in a row, by their support; `reason`: why some are undefined, else by support."""
    intervals, refused = row.get("intervals", {}), row.get("refused", {})
    return {
        name: {
            "ref": name if class_name is None else str(MetricRef(name=name, class_name=class_name)),
            "value": row[name],
            "n": n,
            "reason": None if row[name] is not None else reason or ("no detections" if n else "no ground truth"),
            "interval": intervals.get(name),
            "refused": refused.get(name),
        }
        for name, n in support.items()
    }


def _values_of_class(row: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return read_values(values, dict.fromkeys((name for name in values if name not in NOT_VALUES), row["gt"]))


def _summary_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of a document as the values that it was made of."""
    metrics, support = document["metrics"], document["support"]
    found = read_values({**document, **metrics}, {name: support[name] for name in metrics})
    return {name: value | {"reason": document["undefined"].get(name)} for name, value in found.items()}


def summarised(order: Iterable[str] = ()) -> dict[str, Form]:
    """Return the metadata of the summary of a result, which `metrics_document` writes."""
    return written_as(None, read=_summary_values, order=order)


def metrics_document(result: Any) -> dict[str, Any]:
    """Return the summary of a result as documents have it: values, why some are undefined, what they rest on."""
    metrics: Mapping[str, MetricValue] = result.metrics
    return {
        "metrics": {name: metric.value for name, metric in metrics.items()},
        "undefined": {name: metric.reason for name, metric in metrics.items() if math.isnan(metric.value)},
        "support": {name: metric.n for name, metric in metrics.items()},
        **intervals_document(metrics),
    }


def values_document(values: Mapping[str, MetricValue]) -> dict[str, Any]:
    """Return measured values as a row has them, next to what else it holds."""
    return {name: metric.value for name, metric in values.items()} | intervals_document(values)


def intervals_document(values: Mapping[str, MetricValue]) -> dict[str, Any]:
    """Return the intervals of measured values, and why some have none, as documents have them."""
    found = {name: list(metric.interval) for name, metric in values.items() if metric.interval is not None}
    refused = {name: metric.refused for name, metric in values.items() if metric.refused is not None}
    return ({"intervals": found} if found else {}) | ({"refused": refused} if refused else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """One class: counts and values; `gt` counts boxes that can be found, `ignored` those that are not counted."""

    # Not unique: there are files that give two classes one name.
    name: str = field(metadata=written_as("class"))
    gt: Count
    ignored: Count
    pred: Count
    values: Mapping[str, MetricValue] = field(metadata=written_as(None, read=lambda row: _values_of_class(row, row)))
    # The rest of the summary, such as AP by size, which only files for machines have of a class.
    sizes: Mapping[str, MetricValue] = field(
        default_factory=dict, metadata=written_as(None, read=lambda row: _values_of_class(row, row.get("sizes", {})))
    )
    # How frequent it is among the images, where the ground truth has that and it counts.
    frequency: str | None = field(default=None, metadata=written_as("frequency", written=False))

    beside: ClassVar[Beside] = {**NOISE, "sizes": NotRequired[Mapping[str, Measure]], OTHERS: Measure}
    also: ClassVar[Also] = (
        lambda row: {} if row.frequency is None else {"frequency": row.frequency},
        lambda row: values_document(row.values),
        lambda row: {"sizes": values_document(row.sizes)} if row.sizes else {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestDifference:
    """How a slice differs from the rest of the images in one metric, both at as many images as the smaller part has."""

    n_units: Count  # images, or groups, of either part
    # value, rest: of the slice and the rest on so many images; the mean of draws without repeats where a part has more
    value: float
    rest: float
    interval: Interval | None = None  # of the difference
    p_value: float = math.nan  # two-sided, by Holm over the slices; NaN without an interval
    verdict: str | None = None  # "better", "worse" or "no different" than the rest; None without an interval
    refused: str | None = None  # why there is none

    @property
    def delta(self) -> float:
        """How much higher the metric is on the slice."""
        return self.value - self.rest

    beside: ClassVar[Beside] = {"delta": float}
    required: ClassVar[tuple[str, ...]] = ("interval", "p_value", "verdict", "refused")
    also: ClassVar[Also] = (lambda row: {"delta": row.delta},)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRow:
    """AP, and AP50 where 0.5 is a threshold, on a slice of the images; `digest` is that of what it is made of."""

    name: str = field(metadata=written_as("slice"))
    digest: str
    images: Count
    values: Mapping[str, MetricValue] = field(
        metadata=written_as(None, read=lambda row: read_values(row, row["support"]))
    )
    # unit, n_units: what was drawn for intervals, and how many of these there are
    unit: str = field(default="image", metadata=written_as("unit", written=False))
    n_units: Count = field(default=0, metadata=written_as("n_units", written=False))
    # By metric, where there are intervals
    rest: Mapping[str, RestDifference] = field(
        default_factory=dict, metadata=written_as("rest", written=False, order=METRICS)
    )

    # Its images in the result; those that were read back from a document have none.
    rows: tuple[int, ...] = field(default=(), metadata=written_as(None), repr=False)

    beside: ClassVar[Beside] = {"support": Mapping[str, Count], **NOISE, OTHERS: Measure}
    also: ClassVar[Also] = (
        lambda row: {"support": {name: value.n for name, value in row.values.items()}},
        lambda row: values_document(row.values),
        lambda row: {"unit": row.unit, "n_units": row.n_units, "rest": row.rest} if row.rest else {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Counts at a score threshold: detections with score >= `score`; `class_name` None pools all classes."""

    class_name: str | None = field(metadata=written_as("class"))
    iou: KnownShare
    score: float
    tp: Count
    fp: Count
    fn: Count
    precision: Share
    recall: Share
    f1: Share


@dataclass(frozen=True, slots=True)
class Shown:
    """What a metric rests on: images (or groups) with an object of it, its classes, and those in few of them."""

    units: int
    rare: int
    classes: int
    top: float = 1.0  # its largest value, infinite for counts

    @property
    def is_sparse(self) -> bool:
        """Whether half of the classes or more are rare."""
        return 0 < self.classes <= 2 * self.rare


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What halves of the images show of a metric; NaN and None where they show nothing."""

    interval: Interval | None = field(default=None, metadata=written_as(None))
    # Why there is no interval of a value that is defined.
    refused: str | None = field(default=None, metadata=written_as(None))
    halves: Known = math.nan  # mean of the halves
    error: float = field(default=math.nan, metadata=written_as(None))  # standard error
    population: Interval | None = None  # where the value for all such images may lie
    unknown: str | None = field(default=None, metadata=written_as("reason"))  # why that cannot be known
    biased: bool = False  # whether it depends on the number of images

    required: ClassVar[tuple[str, ...]] = ("halves", "population", "reason", "biased")


TARGET_COLUMN = "intervals_for"  # of tables for machines: what the bounds of a row are for


def sets_text(n_units: int, unit: str) -> str:
    """Return the sets that an interval is for."""
    return f"sets of {n_units:,} such {unit}s"


_NOT_KEPT = written_as(None, read=lambda _: [])  # documents have no resamples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resamples:
    """Every metric (F of them) at every draw of the images."""

    settings: Bootstrap = field(metadata=written_as(None, read=lambda document: document))
    method: str  # "halves", or "percentile" of draws with repeats, for differences
    # What is drawn, "image" or what images are grouped by, and how many of those there are.
    unit: str
    n_units: Count
    refs: tuple[str, ...] = field(metadata=_NOT_KEPT)
    # On the images as they are, (F,), and at each draw, (n_resamples, F), none of too few units: NaN where undefined,
    # such as for a class none of whose images was drawn.
    estimate: FloatArray = field(metadata=_NOT_KEPT)
    values: FloatArray = field(metadata=_NOT_KEPT)
    # Digest of the groups of all images, where groups are drawn.
    grouping: str | None = None
    shown: tuple[Shown, ...] = field(default=(), metadata=_NOT_KEPT)  # (F,)
    # By metric, where these were asked for
    estimates: Mapping[str, Estimate] = field(default_factory=dict, metadata=written_as("metrics"))

    kind: ClassVar[str] = "bootstrap"
    beside: ClassVar[Beside] = {**RESAMPLING, "group_by": NotRequired[str | None], "target": NotRequired[str]}

    @property
    def sets(self) -> str:
        """What an interval is for, in words."""
        return sets_text(self.n_units, self.unit)

    @property
    def choice(self) -> str:
        """All that decides what is drawn, as a signature names it."""
        settings = self.settings
        drawn = (self.method, settings.n_resamples, settings.confidence_level, settings.rng, self.grouping)
        return f"bootstrap={','.join(str(setting) for setting in drawn if setting is not None)}"

    def drawn_document(self) -> dict[str, Any]:
        """Return how images were drawn."""
        return {
            "method": self.method,
            "n_resamples": self.settings.n_resamples,
            "confidence_level": self.settings.confidence_level,
            "rng": self.settings.rng,
            "unit": self.unit,
            "n_units": self.n_units,
            **({} if self.grouping is None else {"group_by": self.settings.group_by, "grouping": self.grouping}),
        }

    def to_document(self) -> dict[str, Any]:
        """Return how it was done, and what an interval is for; the intervals are stored with the metrics."""
        found = {
            ref: to_document(row)
            for ref, row in self.estimates.items()
            if "class=" not in ref and not math.isnan(row.halves)
        }
        target = {"target": TARGET} if self.method == "halves" else {}
        return self.drawn_document() | target | ({"metrics": found} if found else {})

    def tables(self) -> dict[str, DataTable]:
        """Return none: a table of resamples would serve nobody."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSummary:
    """One input as it was read."""

    path: str
    format: str
    units: str
    images: Count
    boxes: Count
    classes: Count
    fingerprint: str
    details: tuple[str, ...] = ()
    ignored: Mapping[str, Count] = field(default_factory=dict)

    beside: ClassVar[Beside] = {"unmatched_images": NotRequired[Count]}  # which evaluations write


@dataclass(frozen=True, slots=True, kw_only=True)
class Correspondence:
    """How the two sides were found to correspond."""

    # One of `imagekeys.STRATEGIES` ("id", "name", "stem", ...), and "name", "id" or "map".
    image_strategy: str
    class_strategy: str
    matched_images: Count
    # Images on one side only are counted, and named up to a few.
    n_gt_only_images: Count
    n_pred_only_images: Count
    gt_only_images: tuple[str, ...]
    pred_only_images: tuple[str, ...]
    # A class of the ground truth, and that of the predictions which was taken to be the same.
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

    @property
    def recall_grid(self) -> FloatArray:
        """Recall values, shape (R,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedCurves:
    """Whole curves with what their axes are: thresholds T, recall values R, classes K, area ranges A, caps M."""

    source: Curves
    protocol: Protocol
    class_names: tuple[str, ...]

    @property
    def precision(self) -> FloatArray:
        """Interpolated precision, shape (T, R, K, A, M); NaN where undefined."""
        return self.source.precision

    @property
    def recall(self) -> FloatArray:
        """Recall at the end of the ranking, shape (T, K, A, M); NaN where undefined."""
        return self.source.recall

    @property
    def scores(self) -> FloatArray:
        """Score at which each recall is reached, shape (T, R, K, A, M); NaN where undefined."""
        return self.source.scores

    @property
    def recall_grid(self) -> FloatArray:
        """Recall values of the curves, shape (R,)."""
        return self.source.recall_grid


@dataclass(frozen=True, slots=True, eq=False)
class ByThreshold(Mapping[str, Any]):
    """Columns of detections or objects, (n,) or one per IoU threshold of the protocol, (n, T)."""

    columns: Mapping[str, Any]
    protocol: Protocol

    def __repr__(self) -> str:
        """Return how many rows there are, and the names of the columns."""
        n = len(next(iter(self.columns.values()), ()))
        return f"<ByThreshold: {pluralise(n, 'row')} of {', '.join(self.columns)}>"

    def __getitem__(self, name: str) -> Any:
        """Return a column."""
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Count the columns."""
        return len(self.columns)


class ImageSource(TypingProtocol):
    """The images of an evaluation, opened one by one when they are to be shown; see ``reading.thumbnails``."""

    @property
    def findings(self) -> FindingLog:
        """Notes on what could not be shown so far."""

    @property
    def sizes(self) -> FloatArray:
        """Width and height in pixels, shape (n_images, 2), as the boxes are of; NaN where unknown."""

    @property
    def given(self) -> bool:
        """Whether there is any folder to look in."""

    def mention_missing(self, rows: Sequence[int]) -> None:
        """Note how many of some images have no file."""

    def addresses(self, start: Path) -> list[str]:
        """Return the file of each image as a page in a folder calls it, quoted; empty where there is none on disk."""

    def upright(self, row: int, *, side: int | None = None) -> Any:
        """Return an image of Pillow, its longer side at most `side`, and its own size; None where none can be shown."""

    def thumbnail(self, row: int, *, side: int, quality: int) -> Any:
        """Return a small JPEG, its bytes in `data`, and the image's own `size`; None where none can be shown."""


class Measured(TypingProtocol):
    """What can be asked of an evaluation after the fact; implemented on the match table."""

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure any metric reference."""

    def class_values(self, ref: MetricRef) -> Sequence[MetricValue]:
        """Measure a metric of each class, in the order of the classes; the reference names none."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class WithParts(Result):
    """A result that parts can be added to."""

    parts: tuple[Part, ...] = field(default=(), metadata=written_as(None))

    always: ClassVar[tuple[str, ...]] = ("gates",)  # lists that are there without being asked for
    beside: ClassVar[Beside] = {
        **{"signature_fields": Mapping[str, str], "signature_short": NotRequired[str]},
        **{"metrics": Mapping[str, Measure], "undefined": Mapping[str, str | None], "support": Mapping[str, Count]},
        **NOISE,
        "gates": tuple[GateVerdict, ...],
        "slices": NotRequired[tuple[SliceRow, ...]],
    }

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        return result_document(self, dict.fromkeys(self.always, ()) | {part.kind: part for part in self.parts})

    def part(self, kind: str) -> Any:
        """Return a part by its kind; None where it was not asked for."""
        return next((part for part in self.parts if part.kind == kind), None)

    def with_part(self, part: Part, **changes: Any) -> Self:
        """Return the result with a part more, or another of its kind; `changes` are fields that change with it."""
        return replace(self, parts=(*self.without_part(part.kind).parts, part), **changes)

    def without_part(self, kind: str) -> Self:
        """Return the result without a part."""
        return replace(self, parts=tuple(part for part in self.parts if part.kind != kind))

    @property
    def gates(self) -> tuple[GateVerdict, ...]:
        """The verdicts of the quality gates."""
        return self._rows("gates")

    @property
    def bootstrap(self) -> Resamples | None:
        """Every metric at every draw of the images, where intervals were asked for."""
        found: Resamples | None = self.part("bootstrap")
        return found

    def _rows(self, kind: str) -> tuple[Any, ...]:
        part = self.part(kind)
        return () if part is None else part.rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EvaluationResult(WithParts):
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
    findings : tuple of Finding
        Warnings and notes.
    measured : Measured
        For everything else.
    options : mapping of str to plain types
        The options besides the protocol, by the names of `evaluate`: what it takes to run it again.
    boxes : tuple of BoxTable, optional
        The ground truth and the predictions that were matched, with common image and class rows.
    images : ImageSource, optional
        Their sizes, and where they lie.
    ties : tuple of float, optional
        The lowest and highest AP over all orders of the predictions, where these have no scores and rank equally.
    parts : tuple of Part
        Analyses in addition to the metrics; the properties `errors`, `worst_images`, `slices`, `bootstrap`, `gates`
        and `operating_points` name them.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0, 0], ["dog", "cat"], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], ["dog"], [[0, 0, 10, 10]], score=[0.9])
    >>> result = evaluate(gt, pred, score=0.5)
    >>> round(result["AP50[class=dog]"], 4), result["precision"], result["recall"]
    (1.0, 1.0, 0.5)
    >>> result.to_frame()[["class", "gt", "pred"]].to_dict("records")
    [{'class': 'cat', 'gt': 1, 'pred': 0}, {'class': 'dog', 'gt': 1, 'pred': 1}]
    """

    protocol: Protocol
    signature: str
    version: str
    gt: InputSummary = field(metadata=written_as("inputs.gt"))
    pred: InputSummary = field(metadata=written_as("inputs.pred"))
    correspondence: Correspondence
    metrics: Mapping[str, MetricValue] = field(metadata=summarised())
    per_class: tuple[ClassRow, ...]
    findings: tuple[Finding, ...]
    measured: Measured = field(metadata=written_as(None))
    options: Mapping[str, Any] = field(default_factory=dict)
    boxes: tuple[BoxTable, BoxTable] | None = field(default=None, metadata=written_as(None))
    images: ImageSource | None = field(default=None, metadata=written_as(None))
    ties: Interval | None = None

    kind: ClassVar[str] = EVALUATION
    reported_by: ClassVar[str] = "evaluate.report"
    # Readers of the first schema rely on both lists.
    always: ClassVar[tuple[str, ...]] = ("operating_points", "gates")
    beside: ClassVar[Beside] = {**WithParts.beside, "operating_points": tuple[OperatingPoint, ...]}
    required: ClassVar[tuple[str, ...]] = ("options",)
    also: ClassVar[Also] = (
        other_signatures,
        metrics_document,
        lambda result: {
            "inputs.gt.unmatched_images": result.correspondence.n_gt_only_images,
            "inputs.pred.unmatched_images": result.correspondence.n_pred_only_images,
        },
    )

    def _summary(self) -> str:
        values = values_text({name: metric.value for name, metric in self.metrics.items()})
        low, high = self.ties or (math.nan, math.nan)
        more = f"; without scores AP is between {low:.4f} and {high:.4f}" if self.ties else ""
        return f"{self.protocol.name}: {values}{more}"

    def __getitem__(self, ref: str) -> float:
        """Return the value of a metric reference; NaN when undefined.

        "precision", "recall", "F1", "TP", "FP", "FN" and "FPPI" are those of the score of the evaluation, unless they
        name another, pooled over all classes, unless they name one, at IoU .5 or else the lowest threshold.

        Raises
        ------
        UsageError
            When the reference names no metric, class or threshold of this evaluation.
        """
        try:
            return self.value(MetricRef.parse(ref)).value
        except UsageError as error:
            raise UsageError(error.told(Keywords(frozenset()))) from None

    def value(self, ref: MetricRef) -> MetricValue:
        """Return what a reference means; see ``Measured.value`` for the errors."""
        return count_findings(ref, self.findings) if ref.name in FINDING_METRICS else self.measured.value(ref)

    @property
    def curves(self) -> NamedCurves:
        """Arrays `precision` and `scores` (T, R, K, A, M) and `recall` (T, K, A, M), NaN where undefined.

        Axes: IoU thresholds, recall points, classes, area ranges, caps on detections. `to_frame` gives a row per value.
        """
        names = tuple(row.name for row in self.per_class)
        return NamedCurves(source=self.measured.curves, protocol=self.protocol, class_names=names)

    @property
    def matches(self) -> Mapping[str, Any]:
        """Columns with one row per detection, over all sizes; `to_frame` makes a table of those at one IoU threshold.

        `image`, `class`, `score` and `source` (row in the predictions) of shape (n,); of shape (n, T), a column per IoU
        threshold: `gt` (row of the matched ground truth, -1 for none), `iou` (NaN for none), `tp`, `fp`, `ignored`.
        """
        return ByThreshold(self.measured.matches, self.protocol)

    @property
    def missed(self) -> Mapping[str, Any]:
        """Columns with one row per ground-truth box that stays unmatched at some IoU threshold.

        `image`, `class` and `source` (row in the ground truth) of shape (m,), and `missed` of shape (m, T).
        """
        return ByThreshold(self.measured.missed, self.protocol)

    @property
    def errors(self) -> Any:
        """What kinds of errors there are, an `ErrorReport`; found now where it was not asked for.

        None where neither matches nor boxes are at hand, as in a JSON document, or on the disk.
        """
        return self.part("errors") or provided("results").found_now(self, "errors")

    @property
    def confusion(self) -> Any:
        """Which classes are predicted as which, a `ConfusionMatrix`: as asked for, else that of the errors."""
        found = self.part("confusion")
        errors = None if found else self.errors
        return found if errors is None else errors.confusion

    @property
    def worst_images(self) -> Any:
        """Counts of every image, `WorstImages`; found now where they were not asked for, None without matches."""
        return self.part("worst_images") or provided("results").found_now(self, "worst_images")

    def show_images(self, *, class_: str | None = None, n: int = 6) -> Any:
        """Return its worst images with their boxes, as a cell of a notebook shows them.

        Parameters
        ----------
        class_ : str, optional
            Only what is missed or wrong in this class counts; boxes of other classes are faint.
        n : int
            How many images at most; those without a miss or a false positive are none.

        Raises
        ------
        UsageError
            When there is no such class, or no boxes are at hand, as in a JSON document.
        """
        return provided("results").show_images(self, class_, n)

    @property
    def slices(self) -> tuple[SliceRow, ...]:
        """The slices that were asked for."""
        return self._rows("slices")

    @property
    def operating_points(self) -> tuple[OperatingPoint, ...]:
        """Precision, recall, F1 and counts, when a score was asked for."""
        return self._rows("operating_points")

    @property
    def further(self) -> Mapping[int | None, Mapping[str, int | float]]:
        """What operating points and errors have next to the summary, by row of the class; None is all classes."""
        found: dict[int | None, dict[str, int | float]] = {}
        judged = self.protocol.iou_thresholds[self.protocol.judged_threshold]
        # The first point is that of all classes, the others are theirs, in their order.
        for place, point in enumerate(point for point in self.operating_points if point.iou == judged):
            numbers = {"precision": point.precision, "recall": point.recall, "F1": point.f1, "score": point.score}
            counts = {"TP": point.tp, "FP": point.fp, "FN": point.fn}
            found[None if point.class_name is None else place - 1] = numbers | counts
        rows: dict[str | None, int | None] = {row.name: k for k, row in reversed([*enumerate(self.per_class)])}
        errors = self.part("errors")
        for ref, value in ({} if errors is None else errors.values).items():
            name = ref.name if ref.score is None else f"best_{ref.name}"
            counted = METRICS[ref.name].kind == "count"
            found.setdefault(rows.get(ref.class_name), {})[name] = int(value) if counted else value
        return found


def count_findings(ref: MetricRef, findings: Sequence[Finding]) -> MetricValue:
    """Count the findings that warn, or that inform; what the gates themselves remark on is not one of the result."""
    severity = {"warnings": Severity.WARNING, "notes": Severity.NOTE}[ref.name]
    own = [finding for finding in findings if finding.examples[0].where.path != "gates" and "gate" not in finding.code]
    return MetricValue(ref=ref, value=float(sum(finding.severity is severity for finding in own)), n=len(own))
