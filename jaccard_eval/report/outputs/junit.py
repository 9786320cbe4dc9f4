"""Text for XML 1.0: what the standard forbids, even escaped, is spelt out; the rest is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from jaccard_eval.data.result import Status
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.checks import FINDINGS, GATES, Check, checks_of
from jaccard_eval.report.numbers import fixed, measures_of

# All but the characters of production [2] of XML 1.0, fifth edition: most control characters, and lone surrogates.
_FORBIDDEN = pattern("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# By hand: the standard library's escapes load network modules, too.
_CONTENT = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_ATTRIBUTE = {**_CONTENT, ord('"'): "&quot;", ord("\t"): "&#9;", ord("\n"): "&#10;", ord("\r"): "&#13;"}


def xml_text(text: str) -> str:
    """Return the content of an element."""
    return _allowed(text).translate(_CONTENT)


def xml_attributes(**attributes: str | int) -> str:
    """Return attributes, each after a blank; underscores at the end of names are left off."""
    pairs = ((name.rstrip("_"), _allowed(str(value)).translate(_ATTRIBUTE)) for name, value in attributes.items())
    return "".join(f' {name}="{value}"' for name, value in pairs)


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


PROGRAM = "jaccard-eval"
_FAILURE_TYPES = {GATES: "GateFailed", FINDINGS: "DataError"}


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document; `options` change nothing, and no time is in it."""
    checks = checks_of(result)
    measures = measures_of(result)
    lines = [f"{name} {fixed(value)}" for name, value in measures.overall.items()]
    # What was measured is a case of its own, so that a run without gates is not an empty suite.
    lines += [f"signature {measures.signature}"] if measures.signature else []
    computed = _case("result", result.kind, _output("\n".join(lines)))
    suites = [_suite(result.kind, (), [computed])]
    for group in (GATES, FINDINGS):
        chosen = [check for check in checks if check.group == group]
        suites += [_suite(group, chosen, [_of_check(check) for check in chosen])] if chosen else []
    failures = sum(check.status is Status.FAIL for check in checks)
    counts = xml_attributes(name=PROGRAM, tests=len(checks) + 1, failures=failures, errors=0)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{counts}>", *suites, "</testsuites>"]
    return "\n".join(lines) + "\n"


def _suite(name: str, checks: Sequence[Check], cases: Sequence[str]) -> str:
    failures = sum(check.status is Status.FAIL for check in checks)
    skipped = sum(check.status is Status.SKIP for check in checks)
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


REPORTERS = (Reporter(suffixes=(".xml",), about="JUnit test report: gates and findings", render=render),)
