"""Verdicts of quality gates: what was asked of a result, what it has, and whether that will do. Nothing is judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, overload

from jaccard_eval.data.document import Interval, MetricValue, dig, each, fields_document, to_document, written_as
from jaccard_eval.data.document import Status as Status  # noqa: PLC0414 - the home of what is public
from jaccard_eval.data.result_base import Result, listed
from jaccard_eval.findings import Finding, Where
from jaccard_eval.frozen import dataclass


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


def _ends(spread: Mapping[str, Any]) -> list[Any]:
    return [spread.get("low"), spread.get("high")]


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
    paired: PairedDelta | None = None

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
        Support: ground-truth boxes, or pixels, that the value rests on.
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
    check: str
    status: Status
    severity: str
    value: float
    limit: float
    n: int
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
    significance: str | None = None
    spread: Spread | None = field(default=None, metadata=written_as("spread", read=_paired_spread))
    ties: Interval | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)

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
