"""What a build asks of a result: verdicts of gates and findings as checks, in one shape for every CI system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jaccard_eval.data.verdict import GateVerdict, Status
from jaccard_eval.findings import Finding, Severity, Where
from jaccard_eval.report import Reportable
from jaccard_eval.report.verdicts import limit_text, verdict_text
from jaccard_eval.text import printable

GATES, FINDINGS = "gates", "findings"
WORST = (Status.FAIL, Status.WARN)  # what makes a build red, and what makes it yellow
_OF_FINDING = {Severity.ERROR: Status.FAIL, Severity.WARNING: Status.WARN, Severity.NOTE: Status.INFO}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that holds or does not.

    Parameters
    ----------
    group : {"gates", "findings"}
    key : str
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
    key: str
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


def requirement(verdict: GateVerdict) -> str:
    """Return what a rule asks, such as "AP50[class=dog] >= 0.45 on night"."""
    return printable(f"{verdict.metric} {limit_text(verdict)}{_scope(verdict)}")


def _of_verdict(verdict: GateVerdict) -> Check:
    # Without the limit: of a rule that fails at one and warns at another, the value says which one decides.
    name = printable(f"{verdict.rule}: {verdict.metric} {verdict.check}{_scope(verdict)}")
    message = printable(verdict_text(verdict))
    return Check(GATES, printable(verdict.rule), name, verdict.status, message, verdict.where)


def _scope(verdict: GateVerdict) -> str:
    return f" on {verdict.slice}" if verdict.slice else ""


def _of_finding(finding: Finding) -> Check:
    where = finding.examples[0].where
    field = (where.field or "").partition("[")[0]
    name = printable(": ".join(part for part in (finding.code, where.path, field) if part))
    message = "\n".join((finding.message, *finding.further))
    return Check(FINDINGS, finding.code, name, _OF_FINDING[finding.severity], message, where)
