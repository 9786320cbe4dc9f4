"""Gates whose status depends on the order of equal scores, which reruns and other tools choose otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.verdict import GateVerdict, Status
from jaccard_eval.features.audit.tie_bounds import WIDEST
from jaccard_eval.features.gates.limits import aggregated, broken_level, kept_refs, limit_of, margin_of
from jaccard_eval.features.gates.rules import Gates, Rule, Slice
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.metrics.slices import part_of
from jaccard_eval.metrics.ties import TieBounds, has_ties

Bounds = tuple[float, float]


def find_ties(verdicts: Sequence[GateVerdict], gates: Gates, metrics: DetectionMetrics) -> tuple[GateVerdict, ...]:
    """Give verdicts on AP its bounds over all orders of equal scores, where these end differently.

    Parameters
    ----------
    verdicts : sequence of GateVerdict
    gates : Gates
        That they are of.
    metrics : DetectionMetrics
        Of the run. The baseline is taken as it is.
    """
    if not has_ties(metrics.table):
        return tuple(verdicts)
    finder = _Finder(gates, metrics)
    return tuple(map(finder.look, verdicts))


class _Finder:
    """Finds bounds; the curves of each slice are made once."""

    def __init__(self, gates: Gates, metrics: DetectionMetrics) -> None:
        self._gates = gates
        self._metrics = metrics
        self._rules = {rule.id: rule for rule in gates.rules}
        self._bounds: dict[str, TieBounds] = {}

    def look(self, one: GateVerdict) -> GateVerdict:
        """Return a verdict with the bounds that its status depends on, else as it is."""
        rule = self._rules[one.rule]
        refs = kept_refs(rule, one)
        if not refs or any(ref.name != "AP" for ref in refs):
            return one
        low, high = self._interval(rule, refs)
        statuses = {self._status(rule, one, value) for value in (low, one.value, high)}
        return replace(one, ties=(low, high)) if high - low > WIDEST and len(statuses) > 1 else one

    def _interval(self, rule: Rule, refs: Sequence[MetricRef]) -> Bounds:
        bounds = self._bounds_on(self._gates.slice_of(rule))
        ends = zip(*(bounds.interval(ref) for ref in refs), strict=True)
        low, high = sorted(aggregated(rule, end, self._gates.epsilon) for end in ends)
        return low, high

    def _bounds_on(self, images: Slice | None) -> TieBounds:
        name = "" if images is None else images.name
        if name not in self._bounds:
            part = part_of(self._metrics, images)
            self._bounds[name] = TieBounds(part.curves, part.axes)
        return self._bounds[name]

    def _status(self, rule: Rule, one: GateVerdict, value: float) -> Status | None:
        """Return what a verdict would be if its value were another; None where no level were broken."""
        limit, epsilon = limit_of(rule, one), self._gates.epsilon
        if one.significance and one.spread and one.spread.paired:
            from jaccard_eval.features.gates.noise import drop_breaks, shifted  # few rules ask for it

            broken = broken_level(rule, limit, drop_breaks(one, shifted(one.spread.paired, value - one.value), epsilon))
        else:
            broken = broken_level(
                rule, limit, lambda level: not margin_of(one.check, level, value, one.baseline) >= -epsilon
            )
        return broken and broken[0]
