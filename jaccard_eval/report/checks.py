"""Verdicts of gates and findings as checks, in one shape for every CI system; and the words for a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jaccard_eval.data.metricref import EXTERNAL
from jaccard_eval.data.result import GateVerdict, Status, counted_statuses
from jaccard_eval.findings import Finding, Severity, Where, in_text_report
from jaccard_eval.frozen import dataclass
from jaccard_eval.report import Reportable
from jaccard_eval.report.numbers import p_text, signed_text, value_text
from jaccard_eval.text import printable

GATES, FINDINGS = "gates", "findings"
WORST = (Status.FAIL, Status.WARN)  # what makes a build red, and what makes it yellow
WORDS = {
    Status.PASS: "passed",
    Status.WARN: "warned",
    Status.FAIL: "failed",
    Status.INFO: "failed (info only)",
    Status.SKIP: "skipped",
}
_SIGNS = {"min": ">=", "max": "<="}  # all other kinds of limits bound a change
_OF_FINDING = {Severity.ERROR: Status.FAIL, Severity.WARNING: Status.WARN, Severity.NOTE: Status.INFO}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that holds or does not."""

    group: str  # {"gates", "findings"}
    key: str  # id of the rule, or code of the finding
    name: str  # what is asked, without anything measured: the same in every run
    status: Status
    message: str  # what was found, escaped; may have several lines
    where: Where | None  # the line of the rule, or the first place of the finding


def checks_of(result: Reportable) -> tuple[Check, ...]:
    """Return the verdicts and findings that a result has; notes are decisions, and no checks."""
    gates: Iterable[GateVerdict] = getattr(result, "gates", ())
    checks = []
    for verdict in gates:
        # Without the limit: of a rule that fails at one and warns at another, the value shows which one decides.
        name = printable(f"{verdict.rule}: {verdict.metric} {verdict.check}{_scope(verdict)}")
        message = printable(verdict_text(verdict))
        checks.append(Check(GATES, printable(verdict.rule), name, verdict.status, message, verdict.where))
    return (*checks, *of_findings(getattr(result, "findings", ())))


def of_findings(findings: Iterable[Finding]) -> tuple[Check, ...]:
    """Return findings as checks; of notes only those on what a protocol does not count."""
    checks = []
    for finding in findings:
        if finding.severity is Severity.NOTE and not in_text_report(finding):
            continue
        where = finding.examples[0].where
        # A field without its index, a name without its line: edits elsewhere in a file make no other check of it.
        field = (where.field or "").partition("[")[0]
        name = printable(": ".join(part for part in (finding.code, where.path, field) if part))
        message = "\n".join((finding.message, *finding.further))
        checks.append(Check(FINDINGS, finding.code, name, _OF_FINDING[finding.severity], message, where))
    return tuple(checks)


def overall(checks: Iterable[Check]) -> Status:
    """Return the worst of some checks: `FAIL`, `WARN` or `PASS`."""
    found = {check.status for check in checks}
    return next((status for status in WORST if status in found), Status.PASS)


def requirement(verdict: GateVerdict) -> str:
    """Return what a rule asks, such as "AP50[class=dog] >= 0.45 on night"."""
    return printable(f"{verdict.metric} {limit_text(verdict)}{_scope(verdict)}")


def _scope(verdict: GateVerdict) -> str:
    return f" on {verdict.slice}" if verdict.slice else ""


def count_text(gates: Iterable[GateVerdict]) -> str:
    """Return how the checks ended, such as "2 passed, 1 failed"."""
    return ", ".join(f"{count:,} {WORDS[status]}" for status, count in counted_statuses(gates).items())


def verdict_text(verdict: GateVerdict) -> str:
    """Return a verdict in one line: the rule, the value, the limit, and what explains it."""
    value = value_text(verdict.value, verdict.limit)
    text = f"{verdict.rule}: {verdict.metric} = {value}, required {limit_text(verdict)}"
    facts = [] if math.isnan(verdict.margin) else [f"margin {signed_text(verdict.margin)}"]
    facts += [] if math.isnan(verdict.baseline) else [f"baseline {value_text(verdict.baseline)}"]
    support = support_text(verdict)
    facts += [f"n {support}"] if support else []
    return "; ".join(filter(None, [text, *facts, *spread_texts(verdict), verdict.reason]))


def limit_text(verdict: GateVerdict) -> str:
    """Return what was asked of the value: ">= 0.45", "drop <= 0.01", or "drop <= 2 %" of the baseline.

    A significance stands behind: "drop <= 0.01 (non-inferior)".
    """
    return f"{bare_limit(verdict)}{f' ({verdict.significance})' if verdict.significance else ''}"


def bare_limit(verdict: GateVerdict) -> str:
    """Return the limit alone, which is all that a table has room for."""
    if verdict.check in _SIGNS:
        return f"{_SIGNS[verdict.check]} {verdict.limit:.12g}"
    change = "drop" if verdict.check.startswith("max-drop") else "rise"
    share = f"{100 * verdict.limit:.12g} %" if verdict.check.endswith("-relative") else f"{verdict.limit:.12g}"
    return f"{change} <= {share}"


def spread_texts(verdict: GateVerdict) -> list[str]:
    """Return the interval of a value or of its difference from the baseline, and the test on it."""
    spread = verdict.spread
    if spread is None:
        return []
    level = f"{100 * spread.drawn['confidence_level']:g} %"
    if spread.paired is None:
        n_units, unit = spread.drawn["n_units"], spread.drawn["unit"]
        return [
            f"{level} interval {' to '.join(map(value_text, spread.interval))} for sets of {n_units:,} such {unit}s"
        ]
    bounds = " to ".join(map(signed_text, spread.interval))
    detectable = spread.paired.detectable  # 0 for equal predictions, which measure no noise
    return [
        f"delta {signed_text(verdict.delta)}, {level} interval {bounds}",
        f"p {p_text(1 - spread.paired.probability)}",
        *([f"smallest detectable difference {detectable:.2g}"] if detectable > 0 else []),
    ]


def support_text(verdict: GateVerdict) -> str:
    """Return how much ground truth a value rests on; nothing for one that is measured elsewhere."""
    return "" if verdict.metric.startswith(EXTERNAL) else f"{verdict.n:,}"
