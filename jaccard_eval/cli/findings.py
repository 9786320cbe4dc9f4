"""How findings are said on the standard error, and what ``--strict`` and ``--allow`` make of them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from jaccard_eval.cli import streams
from jaccard_eval.errors import DataError, Finding, Severity, aligned, printable

HANGING = "    "  # below the first line of a finding


def report_findings(findings: Iterable[Finding], options: dict[str, Any], *, in_report: bool = True) -> None:
    """Say warnings and notes.

    A text report has the warnings as well (`in_report`): they are left to it where both streams end in one place.

    Raises
    ------
    DataError
        With ``--strict``, when any warning is not among those of ``--allow``.
    """
    findings = tuple(findings)
    refused = as_errors(findings, options)
    if refused:
        raise DataError(refused)
    told = in_report and not options.get("as_json") and streams.end_in_one_place()
    wanted = {Severity.WARNING: not told, Severity.NOTE: not options["quiet"]}
    say_findings(findings, [severity for severity, is_said in wanted.items() if is_said])


def as_errors(findings: Iterable[Finding], options: dict[str, Any]) -> tuple[Finding, ...]:
    """Return what ends a run: errors, with ``--strict`` also warnings; empty, or with the warnings that are allowed."""
    taken = [_taken(one, options) for one in findings if one.severity is not Severity.NOTE]
    return tuple(taken) if any(one.severity is Severity.ERROR for one in taken) else ()


def _taken(finding: Finding, options: dict[str, Any]) -> Finding:
    passes = not options["strict"] or finding.code in options["allow"]
    return finding if passes else replace(finding, severity=Severity.ERROR)


def say_findings(findings: Iterable[Finding], severities: Collection[Severity]) -> None:
    """Write findings to the standard error, wrapped where that is a terminal."""
    text = findings_text(findings, severities, width=streams.message_width())
    if text:
        streams.say(text)


def findings_text(findings: Iterable[Finding], severities: Collection[Severity], *, width: int | None = None) -> str:
    """Return the findings of some severities, errors first.

    Parameters
    ----------
    findings : iterable of Finding
    severities : collection of Severity
    width : int, optional
        Columns to wrap at; None puts each message in one line, for pipes and logs.
    """
    chosen = sorted((one for one in findings if one.severity in severities), key=_weight)
    return "\n".join(str(one) if width is None else "\n".join(_wrapped(one, width)) for one in chosen)


def _weight(finding: Finding) -> int:
    return list(Severity).index(finding.severity)


def _wrapped(finding: Finding, width: int) -> list[str]:
    """Lay out one finding: hanging indent, the fix in lines of its own, tables as they are."""
    head = f"{finding.severity}[{finding.code}]: "
    if len(head + finding.message) <= width:
        lines = [head + finding.message]
    else:
        lines = _fill(head + finding.statement, width, HANGING)
        lines += _fill(f"{HANGING}fix: {printable(finding.fix)}", width, f"{HANGING}     ") if finding.fix else []
    lines += [line for text in finding.further for line in _fill(f"  {text}", width, HANGING)]
    return lines + [f"{HANGING}{line}" for line in aligned(finding.table)]


def _fill(text: str, width: int, indent: str) -> list[str]:
    """Wrap at blanks only: paths and options stay whole, to be copied."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
