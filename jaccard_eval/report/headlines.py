"""Headlines that reports of several kinds have in common: the first metrics, how gates ended, what there is to read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from jaccard_eval.data.result import GateVerdict, Status, counted_statuses
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.report.model import Headline, Look, Span
from jaccard_eval.report.numbers import metric_text, signed_text, threshold_text, value_text
from jaccard_eval.text import pluralise

SHOWN_METRICS = 3
NON_INFERIOR = "non-inferior"
LOOKS: Mapping[Status, Look] = {
    Status.PASS: "good",
    Status.WARN: "warn",
    Status.FAIL: "bad",
    Status.INFO: "dim",
    Status.SKIP: "dim",
}
OTHERS = {Status.WARN: "warned", Status.INFO: "missed, for information", Status.SKIP: "skipped"}


def metrics_headline(
    values: Mapping[str, float], findings: Iterable[Finding], at: Mapping[str, float] | None = None
) -> Headline:
    """Return the first metrics, as in ``AP 0.3463  AP50 0.6915  AP75 0.2658  (2 warnings)``, and those `at` a score."""
    shown = dict([*values.items()][:SHOWN_METRICS]) | dict(at or {})
    texts = [f"{name} {metric_text(value)}" for name, value in shown.items()]
    spans = [Span(f"  {text}" if row else text) for row, text in enumerate(texts)]
    return Headline((*spans, *warned_spans(findings)))


def warned_spans(findings: Iterable[Finding]) -> tuple[Span, ...]:
    """Return how many warnings there are, as the end of a line; nothing without any."""
    n = sum(finding.severity is Severity.WARNING for finding in findings)
    return (Span("  "), Span(f"({pluralise(n, 'warning')})", "warn")) if n else ()


def gates_headline(gates: Sequence[GateVerdict]) -> Headline:
    """Return the first requirement that failed, as in ``FAILED  AP50 0.6915 < 0.80``, or how many passed."""
    failed = [verdict for verdict in gates if verdict.failed]
    if failed:
        more = f"  (and {len(failed) - 1:,} more)" if len(failed) > 1 else ""
        return Headline((Span("FAILED", "bad"), Span(f"  {broken_text(failed[0])}{more}")))
    counts = counted_statuses(gates)
    passed = counts.pop(Status.PASS, 0)
    others = ", ".join(f"{count:,} {OTHERS[status]}" for status, count in counts.items())
    if not passed:
        return Headline((Span(f"gates: {others or 'none'}", LOOKS[next(iter(counts), Status.SKIP)]),))
    spans = [Span(f"passed {pluralise(passed, 'gate')}", "good")]
    if counts:
        spans += [Span("  "), Span(f"({others})", LOOKS[next(iter(counts))])]
    return Headline(tuple(spans))


def broken_text(verdict: GateVerdict) -> str:
    """Return what a verdict found in place of what its rule asks, as in ``AP50 0.6915 < 0.80``."""
    from jaccard_eval.report.checks import bare_limit  # most runs have no gates

    subject = f"{verdict.metric} on {verdict.slice}" if verdict.slice else verdict.metric
    if math.isnan(verdict.margin):  # nothing was compared: a value or its interval is undefined
        return f"{subject} {value_text(verdict.value)}, required {bare_limit(verdict)}"
    if verdict.check in ("min", "max"):
        limit = threshold_text(verdict.limit) if 0 <= verdict.limit <= 1 else f"{verdict.limit:.12g}"
        sign = "<" if verdict.check == "min" else ">"
        return f"{subject} {value_text(verdict.value, verdict.limit)} {sign} {limit}"
    verb = "dropped" if verdict.check.startswith("max-drop") else "rose"
    change, allowed = value_text(abs(verdict.delta), verdict.limit), f"{verdict.limit:.12g}"
    if verdict.check.endswith("-relative"):
        change, allowed = f"{100 * abs(verdict.delta / verdict.baseline):.3g} %", f"{100 * verdict.limit:.12g} %"
    if verdict.significance == NON_INFERIOR and verdict.spread is not None:
        low, high = map(signed_text, verdict.spread.interval)
        return f"{subject} may have {verb} by more than {allowed}: {signed_text(verdict.delta)}, {low} to {high}"
    return f"{subject} {verb} by {change}, more than {allowed}"
