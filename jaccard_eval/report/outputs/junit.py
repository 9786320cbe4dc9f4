"""The JUnit report, for whatever shows test results: one test case per limit of a gate and per finding.

The layout is the one that Jenkins' schema allows (junit-10.xsd of its xUnit plugin) and GitLab, Azure, Buildkite and
CircleCI read. A case passes, fails or is skipped; a warning is a case that passes and says so in its output. The first
case stands for the result itself, since Jenkins takes a report without cases for a mistake.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaccard_eval.data.verdict import Status
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.checks import FINDINGS, GATES, Check, checks_of
from jaccard_eval.report.measures import Measures, fixed, measures_of
from jaccard_eval.report.outputs._xml import xml_attributes, xml_text

SUFFIXES = (".xml",)
PROGRAM = "jaccard-eval"
_FAILURE_TYPES = {GATES: "GateFailed", FINDINGS: "DataError"}


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document; `options` change nothing, and no time is in it."""
    checks = checks_of(result)
    computed = _case("result", result.kind, _output(_headline(measures_of(result))))
    suites = [_suite(result.kind, (), [computed])]
    for group in (GATES, FINDINGS):
        chosen = [one for one in checks if one.group == group]
        suites += [_suite(group, chosen, [_of_check(one) for one in chosen])] if chosen else []
    failures = sum(one.status is Status.FAIL for one in checks)
    counts = xml_attributes(name=PROGRAM, tests=len(checks) + 1, failures=failures, errors=0)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{counts}>", *suites, "</testsuites>"]
    return "\n".join(lines) + "\n"


def _suite(name: str, checks: Sequence[Check], cases: Sequence[str]) -> str:
    failures = sum(one.status is Status.FAIL for one in checks)
    skipped = sum(one.status is Status.SKIP for one in checks)
    counts = xml_attributes(name=name, tests=len(cases), failures=failures, errors=0, skipped=skipped)
    return "\n".join([f"  <testsuite{counts}>", *cases, "  </testsuite>"])


def _of_check(check: Check) -> str:
    first = check.message.partition("\n")[0]
    if check.status is Status.FAIL:
        attributes = xml_attributes(message=first, type_=_FAILURE_TYPES[check.group])
        return _case(check.group, check.name, f"<failure{attributes}>{xml_text(check.message)}</failure>")
    if check.status is Status.SKIP:
        return _case(check.group, check.name, f"<skipped{xml_attributes(message=first)}/>")
    prefix = "" if check.status is Status.PASS else f"{check.status}: "
    return _case(check.group, check.name, _output(prefix + check.message))


def _case(group: str, name: str, content: str) -> str:
    attributes = xml_attributes(classname=f"jaccard_eval.{group}", name=name)
    return f"    <testcase{attributes}>{content}</testcase>"


def _output(text: str) -> str:
    return f"<system-out>{xml_text(text)}</system-out>" if text else ""


def _headline(measures: Measures) -> str:
    signature = [f"signature {measures.signature}"] if measures.signature else []
    return "\n".join([*(f"{name} {fixed(value)}" for name, value in measures.overall.items()), *signature])
