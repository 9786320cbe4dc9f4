"""What systems for CI read: GitHub's workflow commands, GitLab's Code Quality report, JUnit's XML, and a badge.

A badge is an endpoint of shields.io, which draws the headline metric in the colour of the gates.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

from jaccard_eval.data.result import GateVerdict, Status, counted_statuses
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.checks import FINDINGS, GATES, WORST, Check, checks_of, overall, requirement
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Table, columns
from jaccard_eval.report.numbers import Measures, fixed, measures_of, signed_text, value_text
from jaccard_eval.report.outputs.text import render_markdown as render
from jaccard_eval.report.outputs.text import render_report
from jaccard_eval.text import pluralise, printable

LEVELS = {Status.FAIL: "error", Status.WARN: "warning", Status.INFO: "notice"}
MAX_PER_LEVEL = 10  # of a step; GitHub shows no more
VERDICTS = {Status.FAIL: "failed", Status.WARN: "warned", Status.PASS: "passed"}
UNJUDGED = "none"


def annotation_lines(checks: Iterable[Check]) -> list[str]:
    """Return one command per check that complains; the last one that GitHub would show counts those beyond it."""
    # Failures first: of what GitHub cuts off, warnings are missed least.
    by_status: dict[Status, list[Check]] = {status: [] for status in LEVELS}
    for check in checks:
        by_status.get(check.status, []).append(check)
    lines = []
    for status, complaining in by_status.items():
        n_shown = len(complaining) if len(complaining) <= MAX_PER_LEVEL else MAX_PER_LEVEL - 1
        for check in complaining[:n_shown]:
            place: dict[str, str | int] = {}
            if check.where and check.where.path:
                place["file"] = check.where.path
            if check.where and check.where.line:
                place["line"] = check.where.line
            title = f"jaccard-eval {check.key}".rstrip()
            lines.append(workflow_command(LEVELS[status], check.message, **place, title=title))
        if rest := complaining[n_shown:]:
            text = "\n".join([f"+{len(rest):,} more", *(check.name for check in rest)])
            lines.append(workflow_command(LEVELS[status], text, title="jaccard-eval"))
    return lines


def workflow_command(name: str, message: str, **properties: str | int) -> str:
    r"""Return the line of a command, escaped so that nothing in it ends it or starts another.

    >>> workflow_command("error", "50 % of\nit", file="a,b.toml", line=3)
    '::error file=a%2Cb.toml,line=3::50 %25 of%0Ait'
    """
    values = {key: _escape(str(value)).replace(":", "%3A").replace(",", "%2C") for key, value in properties.items()}
    pairs = ",".join(f"{key}={value}" for key, value in values.items())
    return f"::{name}{f' {pairs}' if pairs else ''}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def output_lines(result: Reportable) -> list[str]:
    """Return ``name=value`` for the metrics at full precision, all in one too, the verdict and the signature."""
    measures = measures_of(result)
    gates = [check for check in checks_of(result) if check.group == GATES]
    numbers = {
        name: None if math.isnan(value) else value if isinstance(value, int) else float(value)
        for name, value in measures.overall.items()
    }
    # Of a number all digits: a later step computes with it.
    values = {name: "" if number is None else repr(number) for name, number in numbers.items()}
    # All of them once more under one name: an action has to list its outputs, and metrics depend on the protocol.
    values["metrics"] = json.dumps(numbers)
    values["verdict"] = VERDICTS[overall(gates)] if gates else UNJUDGED
    values["failed"] = str(sum(check.status is Status.FAIL for check in gates))
    values["signature"] = measures.signature
    return [f"{printable(name)}={printable(value)}" for name, value in values.items()]


MAX_BYTES = 1024 * 1024  # of all summaries of a step; GitHub refuses a larger upload as a whole
SHOWN_RULES = 50
SHOWN_CLASSES = 5
SHOWN_FINDINGS = 10
ICONS = {Status.FAIL: "❌", Status.WARN: "⚠️", Status.INFO: "🔹", Status.SKIP: "⏭️", Status.PASS: "✅"}
WORDS = {
    Status.PASS: "passed",
    Status.WARN: "warned",
    Status.FAIL: "failed",
    Status.INFO: "informed",
    Status.SKIP: "skipped",
}
LEFT_OUT = "The full report is omitted: GitHub shows at most 1 MiB of summary. Write it with -o report.md."


def job_summary(result: Reportable, room: int = MAX_BYTES) -> str:
    """Return Markdown of at most `room` bytes; empty when not even its shortest form fits."""
    gates: Sequence[GateVerdict] = getattr(result, "gates", ())
    title, counts = f"jaccard-eval, {result.kind}", counted_statuses(gates)
    if counts:
        # The verdict in one line, with its sign: in a list of jobs no more of a summary is read.
        worst = next((status for status in WORST if status in counts), Status.PASS)
        words = ", ".join(f"{count:,} {WORDS[status]}" for status, count in counts.items())
        title = f"{ICONS[worst]} {title}: {words}"
    measures = measures_of(result)
    sections = [*_rules(gates), *_metrics(measures)]
    found = [check for check in checks_of(result) if check.group == FINDINGS]
    if found:
        pairs = tuple((check.key, check.message.partition("\n")[0]) for check in found[:SHOWN_FINDINGS])
        more = _more(len(found) - SHOWN_FINDINGS, "findings")
        sections.append(Section("Findings", (KeyValues(pairs), *more)))
    brief = render_report(Report(title, tuple(sections), measures.signature))
    full = render(result, ReportOptions(per_class=True))
    folded = f"<details><summary>Full report</summary>\n\n{full}\n</details>\n"
    shortest = render_report(Report(title, ()))
    # What does not fit is cut from the end: GitHub refuses a summary that is too long as a whole.
    forms = (f"{brief}\n{folded}\n", f"{brief}\n{LEFT_OUT}\n\n", f"{shortest}\n{LEFT_OUT}\n\n")
    return next((form for form in forms if len(form.encode("utf-8", "backslashreplace")) <= room), "")


def _rules(gates: Sequence[GateVerdict]) -> list[Section]:
    """Return the table of rules: those that complain first."""
    if not gates:
        return []
    table_columns = columns("text", "", "rule", "required") + columns("metric", "value", "margin", "Δ baseline")
    rows: list[tuple[Cell, ...]] = []
    for verdict in sorted(gates, key=lambda verdict: list(ICONS).index(verdict.status))[:SHOWN_RULES]:
        # As many decimals as distinguish a value from its limit: no kind of column has these.
        numbers = (value_text(verdict.value, verdict.limit), signed_text(verdict.margin), signed_text(verdict.delta))
        status = f"{ICONS[verdict.status]} {WORDS[verdict.status]}"
        rows.append((status, verdict.rule, requirement(verdict), *numbers, verdict.n))
    table = Table((*table_columns, Column("n", "count")), tuple(rows))
    return [Section("Gates", (table, *_more(len(gates) - SHOWN_RULES, "rules")))]


def _metrics(measures: Measures) -> list[Section]:
    """Return the numbers of all classes, and the classes with the lowest headline."""
    if not measures.overall:
        return []
    table = Table(columns("metric", *measures.overall), (tuple(measures.overall.values()),))
    sections = [Section("Metrics", (table,))]
    headline = next(iter(measures.overall))
    values = [(name, row[headline]) for name, row in measures.per_class if headline in row]
    # An undefined value is not a bad one.
    worst = sorted((row for row in values if not math.isnan(row[1])), key=lambda row: row[1])[:SHOWN_CLASSES]
    if worst:
        sections.append(Section("Worst classes", (Table((Column("class"), Column(headline, "metric")), tuple(worst)),)))
    return sections


def _more(hidden: int, what: str) -> tuple[Note, ...]:
    return (Note(f"+{hidden:,} more {what}"),) if hidden > 0 else ()


# GitLab knows info, minor, major, critical and blocker.
SEVERITIES = {
    (GATES, Status.FAIL): "critical",
    ("findings", Status.FAIL): "major",
    (GATES, Status.WARN): "minor",
    ("findings", Status.WARN): "minor",
    (GATES, Status.INFO): "info",
    ("findings", Status.INFO): "info",
}
UNPLACED = "jaccard-eval"


def render_code_quality(result: Reportable, options: ReportOptions) -> str:
    """Return the array of issues; what passes or is skipped has none, `options` change nothing."""
    return render_checks(checks_of(result))


def render_checks(checks: Iterable[Check]) -> str:
    """Return the array of issues of some checks."""
    issues = list(_issues(check for check in checks if (check.group, check.status) in SEVERITIES))
    return json.dumps(issues, indent=2, ensure_ascii=True) + "\n"


def _issues(checks: Iterable[Check]) -> Iterator[dict[str, Any]]:
    """Make one issue per check; of several with one name each has a fingerprint of its own, or one would be shown."""
    seen: dict[str, int] = {}
    for check in checks:
        seen[check.name] = seen.get(check.name, 0) + 1
        # Of what is asked, never of what was measured: another value would be another issue to GitLab.
        identity = "\0".join((check.group, check.name, str(seen[check.name])))
        # As GitLab wants a path: with slashes, without a dot in front. It drops an issue without a path or a line.
        path = PurePath(check.where.path).as_posix() if check.where and check.where.path else UNPLACED
        line = check.where.line if check.where and check.where.line else 1
        yield {
            "description": check.message,
            "check_name": f"jaccard-eval/{check.key}",
            "fingerprint": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
            "severity": SEVERITIES[check.group, check.status],
            "location": {"path": path, "lines": {"begin": line}},
        }


# By the name that GitLab's documentation gives it.
R1 = (Reporter(names=("gl-code-quality-report.json",), about="GitLab code quality report", render=render_code_quality),)


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


def render_junit(result: Reportable, options: ReportOptions) -> str:
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


UNJUDGED_COLOR = "blue"  # a number is neither good nor bad without a gate
COLORS = {Status.PASS: "brightgreen", Status.WARN: "yellow", Status.FAIL: "red"}
BADGE_WORDS = {Status.PASS: "passed", Status.WARN: "passed with warnings", Status.FAIL: "failed"}


def render_badge(result: Reportable, options: ReportOptions) -> str:
    """Return the document of shields' endpoint schema 1; `options` change nothing."""
    checks = checks_of(result)
    verdicts = [check for check in checks if check.group == GATES]
    verdict = overall(verdicts) if verdicts else None
    # The headline metric; where there is none the verdict, else how many findings there are.
    label, message = result.kind, pluralise(len(checks), "finding")
    if verdict is not None:
        label, message = "quality gates", BADGE_WORDS[verdict]
    for name, value in itertools.islice(measures_of(result).overall.items(), 1):
        label, message = printable(name), fixed(value)
    color = UNJUDGED_COLOR if verdict is None else COLORS[verdict]
    badge = {"schemaVersion": 1, "label": label, "message": message, "color": color}
    return json.dumps(badge, indent=2, ensure_ascii=True) + "\n"


# What GitHub reads cannot be named by -o: the command line hands it over.
REPORTERS = (
    Reporter(names=("gl-code-quality-report.json",), about="GitLab code quality report", render=render_code_quality),
    Reporter(suffixes=(".xml",), about="JUnit test report: gates and findings", render=render_junit),
    Reporter(names=("badge.json",), about="badge for shields.io", render=render_badge),
)
