"""Gates that know the noise: rules that ask whether a drop is real, limits below the noise, ties that decide a gate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.data.result import TARGET, Resamples
from jaccard_eval.data.verdict import GateVerdict, PairedDelta, Spread, Status
from jaccard_eval.features.bootstrap.compute import estimates, non_inferior, paired_deltas, significant_drop
from jaccard_eval.features.gates.compute import (
    WITHOUT_BASELINE,
    aggregated,
    allowed_change,
    broken_level,
    kept_refs,
    limit_of,
    margin_of,
    nearest_level,
    undefined_status,
)
from jaccard_eval.features.gates.rules import AGAINST_BASELINE, NON_INFERIOR, Gates, Rule, refuse
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.averages import WIDEST, TieBounds
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.metrics.slices import Divisible, part_of
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.text import quoted_value

NO_INTERVAL = "no interval: "  # how the reason of a verdict without one begins

Draw = Callable[..., Sequence[Resamples]]  # `resample_alike`
Drawn = tuple[Resamples | None, Resamples]  # of the baseline and of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRuns:
    """The matches of a run and of its baseline, of boxes or of segments, and how their images are drawn."""

    run: Divisible
    base: Divisible | None
    settings: Bootstrap
    draw: Draw  # measures metrics of one or several runs at the same draws of their images
    known: Resamples | None = None  # of the whole run, where it was resampled already

    def measure(self, images: Slice | None, refs: Sequence[MetricRef], *, paired: bool) -> Drawn:
        """Measure the run at draws of all images, or of a slice as if these were all; `paired`, with its baseline."""
        if paired and self.base is not None:
            parts = [part_of(self.run, images), part_of(self.base, images)]
            run, base = self.draw(parts, self.settings, refs=refs, method=None)
            return base, run
        # The run itself may have been resampled in just this way, for its own intervals.
        known = self.known if images is None else None
        if known is not None and known.settings == self.settings and {str(ref) for ref in refs} <= set(known.refs):
            return None, known
        return None, self.draw([part_of(self.run, images)], self.settings, refs=refs)[0]


def weigh_noise(verdicts: Sequence[GateVerdict], gates: Gates, runs: PairedRuns) -> tuple[GateVerdict, ...]:
    """Give verdicts the spread of what they judge, and judge those again whose rules ask for significance."""
    rules = {rule.id: rule for rule in gates.rules}
    cases = [_Case(gates, rules[verdict.rule], verdict) for verdict in verdicts]
    refuse((problem for case in cases for problem in case.problems()), None)
    by_draw: dict[tuple[str, bool], list[_Case]] = {}  # by slice ("": all images), and whether it is of a difference
    for case in cases:
        by_draw.setdefault(case.draw, []).append(case)
    drawn = {draw: _drawn(alike, runs) for draw, alike in by_draw.items()}
    weighed = [
        case.verdict if (found := drawn[case.draw]) is None or not case.refs else case.weighed(found) for case in cases
    ]
    refuse(
        (
            f"rule {quoted_value(verdict.rule)}: {verdict.metric} has {verdict.reason}"
            for verdict in weighed
            if verdict.significance and verdict.reason.startswith(NO_INTERVAL)
        ),
        None,
    )
    return tuple(weighed)


def weighed_again(gates: Gates, saved: GateVerdict, again: GateVerdict) -> GateVerdict:
    """Return a verdict of the one rule that was judged again, with the spread that was drawn for the saved one."""
    (rule,) = gates.rules
    case, spread = _Case(gates, rule, again), saved.spread
    if spread is not None and spread.paired is not None:
        moved = {name: getattr(again, name) for name in ("value", "delta")}
        return case._of_delta(replace(spread.paired, base=again.baseline, **moved), spread.drawn)
    if saved.reason.startswith(NO_INTERVAL) and saved.reason.endswith(again.reason):
        again = replace(again, reason=saved.reason)
    elif again.significance and math.isnan(saved.margin) and not math.isnan(again.margin):
        # No draw has both values, or the baseline has no matches: its reason names which.
        open_ = {undefined_status(gates, rule), WITHOUT_BASELINE.get(gates.missing_baseline)}
        status = saved.status if saved.status in open_ else undefined_status(gates, rule)
        again = replace(again, status=status, margin=math.nan, reason=saved.reason)
    return replace(again, spread=spread)


def drop_breaks(verdict: GateVerdict, delta: PairedDelta, epsilon: float) -> Callable[[float], bool]:
    """Return the test of whether a difference breaks a level of the limit of a verdict with a significance."""

    def breaks(level: float) -> bool:
        allowed = allowed_change(verdict.check, level, verdict.baseline) + epsilon
        return (
            not non_inferior(delta, allowed)
            if verdict.significance == NON_INFERIOR
            else significant_drop(delta, allowed)
        )

    return breaks


def shifted(delta: PairedDelta, by: float) -> PairedDelta:
    """Return the difference with another value of the second model; its interval is taken to move along."""
    low, high = delta.interval or (math.nan, math.nan)
    return replace(delta, value=delta.value + by, delta=delta.delta + by, interval=(low + by, high + by))


def drop_margin(significance: str, delta: PairedDelta, allowed: float) -> float:
    """Return how far a difference is from breaking a limit by its interval; negative when it does."""
    low, high = delta.interval or (delta.delta, delta.delta)
    return min(low, delta.delta) + allowed if significance == NON_INFERIOR else max(delta.delta + allowed, high)


@dataclass(frozen=True, slots=True)
class _Case:
    """A verdict, and what it takes to weigh it."""

    gates: Gates
    rule: Rule
    verdict: GateVerdict

    def problems(self) -> Iterator[str]:
        """Yield what cannot be judged as the rule asks."""
        verdict = self.verdict
        if verdict.significance and not all(map(_is_resampled, kept_refs(self.rule, verdict))):
            moving = any(isinstance(ref.score, str) for ref in kept_refs(self.rule, verdict))
            why = "it is measured over all images. Use max-drop without significance"
            why = "the best score changes with the images. Set a fixed score, such as score=0.5" if moving else why
            yield f"rule {quoted_value(verdict.rule)}: {verdict.metric} cannot be resampled, because {why}"

    @property
    def draw(self) -> tuple[str, bool]:
        """The slice, and whether a difference is judged: which draws it takes."""
        return self.verdict.slice, self.verdict.check in AGAINST_BASELINE

    @property
    def refs(self) -> tuple[MetricRef, ...]:
        """What has to be resampled; nothing where no interval is asked for, or nothing was compared."""
        asked = self.gates.bootstrap is not None or self.verdict.significance is not None
        refs = kept_refs(self.rule, self.verdict) if asked else ()
        return refs if all(map(_is_resampled, refs)) else ()

    def weighed(self, drawn: Drawn) -> GateVerdict:
        """Return the verdict with its spread, judged again where that is asked for."""
        verdict, (of_base, of_run) = self.verdict, drawn
        run = self._combined(of_run)
        if of_base is not None:
            (delta,) = paired_deltas(self._combined(of_base), run)
            return self._refused(delta.refused) if delta.refused else self._of_delta(delta, run.drawn_document())
        if verdict.significance:
            status = WITHOUT_BASELINE[self.gates.missing_baseline]
            return replace(verdict, status=status, margin=math.nan, reason="the baseline has no match table")
        found = estimates(run)[verdict.metric]
        if found.interval is None:
            return self._refused(found.refused) if found.refused else verdict
        return replace(verdict, spread=Spread(interval=found.interval, drawn=run.drawn_document() | {"target": TARGET}))

    def _refused(self, reason: str) -> GateVerdict:
        """Return the verdict with the reason why there is no interval."""
        why = f"{NO_INTERVAL}{reason}"
        return replace(self.verdict, reason="; ".join(filter(None, (why, self.verdict.reason))))

    def _combined(self, drawn: Resamples) -> Resamples:
        """Make one column of those of the cells, as the rule makes one value of them."""
        columns = [drawn.refs.index(str(ref)) for ref in self.refs]
        combined = []
        for values in (drawn.estimate[None], drawn.values):  # (1, c) and (n, c); a class may lack a value in a resample
            rows = (row[~np.isnan(row)].tolist() for row in values[:, columns])
            made = [aggregated(self.rule, row, self.gates.epsilon) if row else math.nan for row in rows]
            combined.append(np.array(made))
        shown = [drawn.shown[column] for column in columns]
        # The lowest class may be any of them; what is of all of them rests on the images of all.
        fewest, is_count = self.rule.aggregate == "min", self.rule.aggregate == "count-below"
        units = (min if fewest else max)(row.units for row in shown)
        about = replace(shown[0], units=units, top=math.inf if is_count else shown[0].top)
        return replace(
            drawn, refs=(self.verdict.metric,), estimate=combined[0], values=combined[1][:, None], shown=(about,)
        )

    def _of_delta(self, delta: PairedDelta, drawn: Mapping[str, Any]) -> GateVerdict:
        """Return the verdict on a difference, judged by its interval where that is asked for."""
        verdict = self.verdict
        if delta.interval is not None:
            with_spread = replace(verdict, spread=Spread(interval=delta.interval, drawn=drawn, paired=delta))
            return self._judged(with_spread, delta) if verdict.significance else with_spread
        if not verdict.significance:
            return verdict
        status, reason = undefined_status(self.gates, self.rule), "undefined in every resample"
        return replace(verdict, status=status, margin=math.nan, reason=reason)

    def _judged(self, verdict: GateVerdict, delta: PairedDelta) -> GateVerdict:
        limit, significance = limit_of(self.rule, verdict), str(verdict.significance)
        broken = broken_level(self.rule, limit, drop_breaks(verdict, delta, self.gates.epsilon))
        # Undefined classes that were ignored may be worth a warning, even where no level is broken.
        policy = self.gates.missing_policy(self.rule)
        gaps = any(math.isnan(cell.value) for cell in verdict.cells if cell.n >= self.rule.min_support)
        passed = Status.WARN if gaps and policy == "warn" else Status.PASS
        status, level = broken or (passed, nearest_level(limit))
        allowed = allowed_change(verdict.check, level, verdict.baseline)
        reasons = (_why(delta, allowed, is_broken=broken is not None), verdict.reason)
        return replace(
            verdict,
            status=status,
            limit=level,
            margin=drop_margin(significance, delta, allowed),
            reason="; ".join(filter(None, reasons)),
        )


def _drawn(cases: Sequence[_Case], runs: PairedRuns) -> Drawn | None:
    """Measure what the verdicts on one slice need; None where that is nothing."""
    refs = tuple(dict.fromkeys(ref for case in cases for ref in case.refs))
    if not refs:
        return None
    images = cases[0].gates.slice_of(cases[0].rule)
    return runs.measure(images, refs, paired=cases[0].draw[1])


def _is_resampled(ref: MetricRef) -> bool:
    # With other images, a score that is found would be another one.
    return not isinstance(ref.score, str) and (ref.name not in METRICS or METRICS[ref.name].on in ("curves", "point"))


def _why(delta: PairedDelta, allowed: float, *, is_broken: bool) -> str:
    """Return why the interval overruled the drop; nothing where both agree."""
    drops_more = -delta.delta > allowed
    if drops_more and not is_broken:
        return "the drop exceeds the limit but is not statistically significant (the interval includes 0)"
    if is_broken and not drops_more:
        return "the drop is within the limit, but its interval exceeds it"
    return ""


def find_ties(verdicts: Sequence[GateVerdict], gates: Gates, metrics: DetectionMetrics) -> tuple[GateVerdict, ...]:
    """Give verdicts on AP its bounds over all orders of equal scores, where these end differently."""
    if not metrics.source.n_tied:
        return tuple(verdicts)
    rules = {rule.id: rule for rule in gates.rules}
    bounds: dict[str, TieBounds] = {}  # by slice: its curves are made once, and "" means all images
    found = []
    for verdict in verdicts:
        rule = rules[verdict.rule]
        refs = kept_refs(rule, verdict)
        # There are bounds of AP alone.
        if not refs or any(ref.name != "AP" for ref in refs):
            found.append(verdict)
            continue
        if verdict.slice not in bounds:
            part = part_of(metrics, gates.slice_of(rule))
            bounds[verdict.slice] = TieBounds(part.curves, part.axes)
        ends = zip(*(bounds[verdict.slice].interval(ref) for ref in refs), strict=True)
        low, high = sorted(aggregated(rule, end, gates.epsilon) for end in ends)
        statuses = {_status_at(value, verdict, rule, gates.epsilon) for value in (low, verdict.value, high)}
        decides = high - low > WIDEST and len(statuses) > 1
        found.append(replace(verdict, ties=(low, high)) if decides else verdict)
    return tuple(found)


def _status_at(value: float, verdict: GateVerdict, rule: Rule, epsilon: float) -> Status | None:
    """Return what a verdict would be if its value were another; None where no level were broken."""
    if verdict.significance and verdict.spread and verdict.spread.paired:
        moved = shifted(verdict.spread.paired, value - verdict.value)
        breaks = drop_breaks(verdict, moved, epsilon)
    else:

        def breaks(level: float) -> bool:
            return not margin_of(verdict.check, level, value, verdict.baseline) >= -epsilon

    broken = broken_level(rule, limit_of(rule, verdict), breaks)
    return broken and broken[0]


DIGITS = 2  # of the limit that is proposed


def gate_findings(verdicts: Iterable[GateVerdict]) -> tuple[Finding, ...]:
    """Return warnings on verdicts that hang on chance."""
    findings = FindingLog()
    for verdict in verdicts:
        where = verdict.where or Where("gates", record=verdict.rule)
        if verdict.spread is not None and verdict.check in AGAINST_BASELINE:
            _check_noise(verdict, verdict.spread, where, findings)
        if verdict.ties is not None:
            low, high = verdict.ties
            findings.warning(
                "gate-crossed-by-ties",
                where,
                f"Tied scores: {verdict.metric} is between {low:.6f} and {high:.6f} depending on how ties are broken,"
                " and the verdict with it",
                fix="Export more decimals, or choose a limit that both values keep or break.",
            )
    return findings.findings()


def _check_noise(verdict: GateVerdict, spread: Spread, where: Where, findings: FindingLog) -> None:
    """Warn of a limit on changes that chance alone exceeds."""
    unit = allowed_change(verdict.check, 1.0, verdict.baseline)
    if verdict.limit * unit >= spread.half_width or unit == 0:
        return
    # Two digits, and never below what the noise supports: a limit just under it would warn again.
    supported = spread.half_width / unit
    step = 10.0 ** (math.floor(math.log10(supported)) + 1 - DIGITS)
    supported = math.ceil(round(supported / step, 6)) * step
    what = "the difference" if spread.paired else verdict.metric
    drawn = spread.drawn
    findings.warning(
        "gate-below-noise",
        where,
        f"{verdict.metric}: {verdict.check} {verdict.limit:.6g} is below the noise of this test set: with"
        f" {drawn['n_units']:,} {drawn['unit']}s {what} varies by ±{spread.half_width:.2g}"
        f" ({100 * drawn['confidence_level']:g} % CI). The smallest meaningful limit is {supported:.6g}",
        fix="Use this limit, or evaluate more images: four times as many halve the noise.",
    )
