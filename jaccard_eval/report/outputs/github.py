"""GitHub: workflow commands, step outputs and the summary of a job."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from jaccard_eval.data.result import GateVerdict, Status, counted_statuses
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.checks import FINDINGS, GATES, WORST, Check, checks_of, overall, requirement
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Table, columns
from jaccard_eval.report.numbers import Measures, measures_of, signed_text, value_text
from jaccard_eval.report.outputs.markdown import render, render_report
from jaccard_eval.text import printable

REPORTERS = ()  # what GitHub reads is not a file that -o could name: the command line hands it over

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
