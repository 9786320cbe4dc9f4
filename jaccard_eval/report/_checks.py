"""What a build asks of a result: verdicts of gates and findings as checks, in one shape for every CI system."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from jaccard_eval.data.verdict import GateVerdict, Status
from jaccard_eval.errors import Finding, Severity, Where, printable
from jaccard_eval.report import Reportable
from jaccard_eval.report._numbers import UNDEFINED, metric_text

GATES, FINDINGS = "gates", "findings"
WORST = (Status.FAIL, Status.WARN)  # what makes a build red, and what makes it yellow
_SIGNS = {"min": ">=", "max": "<="}  # all other kinds of limits bound a change
_OF_FINDING = {Severity.ERROR: Status.FAIL, Severity.WARNING: Status.WARN, Severity.NOTE: Status.INFO}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that holds or does not.

    Parameters
    ----------
    group : {"gates", "findings"}
    code : str
        Id of the rule, or code of the finding.
    name : str
        What is asked, without anything measured: the same in every run.
    status : Status
    message : str
        What was found, escaped; may have several lines.
    where : Where, optional
        The line of the rule, or the first place of the finding.
    """

    group: str
    code: str
    name: str
    status: Status
    message: str
    where: Where | None


def checks_of(result: Reportable) -> tuple[Check, ...]:
    """Return the verdicts and findings that a result has; notes are decisions, and no checks."""
    gates: Iterable[GateVerdict] = getattr(result, "gates", ())
    findings: Iterable[Finding] = getattr(result, "findings", ())
    return (*map(_of_verdict, gates), *of_findings(findings))


def of_findings(findings: Iterable[Finding]) -> tuple[Check, ...]:
    """Return findings as checks, without notes."""
    return tuple(_of_finding(one) for one in findings if one.severity is not Severity.NOTE)


def overall(checks: Iterable[Check]) -> Status:
    """Return the worst of some checks: `FAIL`, `WARN` or `PASS`."""
    found = {one.status for one in checks}
    return next((status for status in WORST if status in found), Status.PASS)


def value_text(value: float) -> str:
    """Return a number as a message has it: four decimals in [0, 1], else what it takes.

    Examples
    --------
    >>> value_text(0.45), value_text(12.3), value_text(-0.01), value_text(float("nan"))
    ('0.4500', '12.3', '-0.0100', 'n/a')
    """
    if math.isnan(value) or 0 <= value <= 1:
        return metric_text(value)
    return f"-{metric_text(-value)}" if -1 <= value < 0 else f"{value:.6g}"


def requirement(verdict: GateVerdict) -> str:
    """Return what a rule asks, such as "AP50[class=dog] >= 0.45 on night"."""
    change = "" if verdict.check in _SIGNS else f" {verdict.check.removeprefix('max-')}"
    limit = UNDEFINED if math.isnan(verdict.limit) else f"{verdict.limit:.12g}"
    scope = f" on {verdict.slice}" if verdict.slice else ""
    return printable(f"{verdict.metric}{change} {_SIGNS.get(verdict.check, '<=')} {limit}{scope}")


def _of_verdict(verdict: GateVerdict) -> Check:
    name = f"{printable(verdict.rule)}: {requirement(verdict)}"
    return Check(GATES, printable(verdict.rule), name, verdict.status, _outcome(verdict), verdict.where)


def _outcome(verdict: GateVerdict) -> str:
    """Say what was measured, and all that explains the verdict."""
    facts = [f"{verdict.metric} = {value_text(verdict.value)}, required {requirement(verdict)}"]
    facts += [f"margin {value_text(verdict.margin)}"] if not math.isnan(verdict.margin) else []
    facts += [f"baseline {value_text(verdict.baseline)}"] if not math.isnan(verdict.baseline) else []
    facts += [f"delta {value_text(verdict.delta)}"] if not math.isnan(verdict.delta) else []
    facts += [f"n {verdict.n:,}", *([verdict.reason] if verdict.reason else [])]
    return printable("; ".join(facts))


def _of_finding(finding: Finding) -> Check:
    where = finding.examples[0].where
    field = (where.field or "").partition("[")[0]
    name = printable(": ".join(part for part in (finding.code, where.path, field) if part))
    message = "\n".join((finding.message, *finding.further))
    return Check(FINDINGS, finding.code, name, _OF_FINDING[finding.severity], message, where)
