"""Which level of a limit is broken, by how much, and what status that is: shared by all that judges."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.verdict import GateVerdict, Status
from jaccard_eval.features.gates.rules import DROPS, Gates, Limit, Rule

BROKEN = {"error": Status.FAIL, "warning": Status.WARN, "info": Status.INFO}
WITHOUT_BASELINE = {"warn": Status.WARN, "pass": Status.SKIP}

IsBroken = Callable[[float], bool]


def broken_level(rule: Rule, limit: Limit, is_broken: IsBroken) -> tuple[Status, float] | None:
    """Return the status of the first level that is broken, and that level; None when none is."""
    for level, status in ((limit.error, BROKEN[rule.severity]), (limit.warn, Status.WARN)):
        if level is not None and is_broken(level):
            return (Status.INFO if rule.severity == "info" else status), level
    return None


def nearest_level(limit: Limit) -> float:
    """Return the level that a value on the right side of all is told with."""
    levels = (level for level in (limit.error, limit.warn) if level is not None)
    return next(levels)


def undefined_status(gates: Gates, rule: Rule) -> Status:
    """Return what becomes of an undefined value."""
    policy = rule.missing_metric or gates.missing_metric
    return {"error": BROKEN[rule.severity], "warn": Status.WARN, "pass": Status.SKIP}[policy]


def margin_of(check: str, level: float, value: float, baseline: float) -> float:
    """Return how far a value is on the right side of a limit, in units of the metric; negative when broken."""
    if check in ("min", "max"):
        return value - level if check == "min" else level - value
    allowed, change = allowed_change(check, level, baseline), value - baseline
    return allowed + change if check in DROPS else allowed - change


def allowed_change(check: str, level: float, baseline: float) -> float:
    """Return the change that a limit allows, in units of the metric."""
    return level * abs(baseline) if check.endswith("-relative") else level


def aggregated(rule: Rule, values: Sequence[float], epsilon: float) -> float:
    """Return the one value of some classes, one or more; the lowest where there is nothing to aggregate."""
    if rule.aggregate == "mean":
        return math.fsum(values) / len(values)
    if rule.aggregate == "median":
        return statistics.median(values)
    if rule.aggregate == "count-below":
        return float(sum(is_below(rule, value, epsilon) for value in values))
    return min(values)


def is_below(rule: Rule, value: float, epsilon: float) -> bool:
    """Whether an aggregate that counts low values counts this one."""
    return value < (rule.below or 0.0) - epsilon


def limit_of(rule: Rule, verdict: GateVerdict) -> Limit:
    """Return the limit of a rule that a verdict is about."""
    return next(limit for limit in rule.limits if limit.check == verdict.check)


def kept_refs(rule: Rule, verdict: GateVerdict) -> tuple[MetricRef, ...]:
    """Return the metrics that a value was made of; none where it is measured elsewhere, or nothing was compared."""
    if rule.is_external or verdict.status is Status.SKIP or math.isnan(verdict.margin):
        return ()
    kept = (cell for cell in verdict.cells if cell.n >= rule.min_support and not math.isnan(cell.value))
    return tuple(MetricRef.parse(cell.ref) for cell in kept)
