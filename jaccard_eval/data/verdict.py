"""Verdicts of quality gates: what was asked of a result, what it has, and whether that will do. Nothing is judged."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from jaccard_eval.data.document import MetricValue, document_head, plain
from jaccard_eval.errors import Where


class Status(enum.StrEnum):
    """How a check ended; only `FAIL` fails a run. `INFO` is a broken limit of a rule that only informs."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"
    INFO = "info"
    SKIP = "skip"


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
        Why it was skipped, is undefined, or what else there is to say.
    slice, slice_digest : str
        Name and digest of the slice of the images; empty for all.
    cells : tuple of MetricValue
        The measured values that `value` is made of; from a saved result they can be judged again.
    where : Where, optional
        Where the rule stands.
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
    class_name: str | None = None
    baseline: float = math.nan
    delta: float = math.nan
    reason: str = ""
    slice: str = ""
    slice_digest: str = ""
    cells: tuple[MetricValue, ...] = ()
    where: Where | None = None

    @property
    def failed(self) -> bool:
        """Whether this fails the run."""
        return self.status is Status.FAIL

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, None where undefined; without the place of the rule, which is one machine's."""
        names = ("rule", "metric", "check", "severity", "value", "limit", "n", "margin", "baseline", "delta", "reason")
        fields: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        fields |= {
            "status": str(self.status),
            "class": self.class_name,
            "slice": self.slice,
            "slice_digest": self.slice_digest,
        }
        return fields | {"cells": [_cell(one) for one in self.cells]}


def _cell(one: MetricValue) -> dict[str, Any]:
    fields: dict[str, Any] = plain({"metric": one.ref, "value": one.value, "n": one.n, "reason": one.reason})
    return fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateResult:
    """The verdicts on a saved result.

    Parameters
    ----------
    path : str
        The saved result, as the user named it.
    signature : str
        That of the saved result.
    baseline : str, optional
        What it was compared with, as the user named it.
    gates : tuple of GateVerdict
    """

    version: str
    path: str
    signature: str
    baseline: str | None
    gates: tuple[GateVerdict, ...]

    kind: ClassVar[str] = "gate"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        return {
            **document_head(self.kind, self.version),
            "signature": self.signature,
            "result": self.path,
            "baseline": self.baseline,
            "gates": [one.to_dict() for one in self.gates],
        }


def counted_statuses(gates: Iterable[GateVerdict]) -> dict[Status, int]:
    """Count the verdicts by status, in the order of `Status`; those that occur."""
    statuses = [one.status for one in gates]
    return {status: statuses.count(status) for status in Status if status in statuses}
