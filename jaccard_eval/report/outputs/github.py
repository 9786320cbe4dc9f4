"""GitHub: workflow commands, step outputs and the summary of a job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jaccard_eval.data.verdict import GateVerdict, Status, counted_statuses
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.checks import FINDINGS, GATES, Check, checks_of, overall, requirement
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Table
from jaccard_eval.report.numbers import Measures, Number, measures_of, signed_text, value_text
from jaccard_eval.report.outputs.markdown import render, render_report
from jaccard_eval.text import printable

LEVELS = {Status.FAIL: "error", Status.WARN: "warning", Status.INFO: "notice"}
MAX_PER_LEVEL = 10  # of a step; GitHub shows no more
VERDICTS = {Status.FAIL: "failed", Status.WARN: "warned", Status.PASS: "passed"}
UNJUDGED = "none"


def annotation_lines(checks: Iterable[Check]) -> list[str]:
    """Return one command per check that complains; the last one that GitHub would show counts those beyond it."""
    complaining = [one for one in checks if one.status in LEVELS]
    lines = []
    for status, level in LEVELS.items():
        lines += _of_level(level, [one for one in complaining if one.status is status])
    return lines


def workflow_command(name: str, message: str, **properties: str | int) -> str:
    r"""Return the line of a command, escaped so that nothing in it ends it or starts another.

    Examples
    --------
    >>> workflow_command("error", "50 % of\nit", file="a,b.toml", line=3)
    '::error file=a%2Cb.toml,line=3::50 %25 of%0Ait'
    """
    pairs = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name}{f' {pairs}' if pairs else ''}::{_data(message)}"


def output_lines(result: Reportable) -> list[str]:
    """Return ``name=value`` for the metrics at full precision, the verdict and the signature; empty where undefined."""
    measures = measures_of(result)
    gates = [one for one in checks_of(result) if one.group == GATES]
    values = {name: _exact(value) for name, value in measures.overall.items()}
    values["verdict"] = VERDICTS[overall(gates)] if gates else UNJUDGED
    values["failed"] = str(sum(one.status is Status.FAIL for one in gates))
    values["signature"] = measures.signature
    return [f"{printable(name)}={printable(value)}" for name, value in values.items()]


def _of_level(level: str, checks: Sequence[Check]) -> list[str]:
    if len(checks) <= MAX_PER_LEVEL:
        return [_annotation(level, one) for one in checks]
    first = [_annotation(level, one) for one in checks[: MAX_PER_LEVEL - 1]]
    rest = checks[MAX_PER_LEVEL - 1 :]
    names = "\n".join(one.name for one in rest)
    return [*first, workflow_command(level, f"+{len(rest):,} more\n{names}", title="jaccard-eval")]


def _annotation(level: str, check: Check) -> str:
    place: dict[str, str | int] = {}
    if check.where and check.where.path:
        place["file"] = check.where.path
    if check.where and check.where.line:
        place["line"] = check.where.line
    return workflow_command(level, check.message, **place, title=f"jaccard-eval {check.key}".rstrip())


def _exact(number: Number) -> str:
    return "" if math.isnan(number) else repr(number) if isinstance(number, int) else repr(float(number))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


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
LEFT_OUT = "The full report is left out here: GitHub shows at most 1 MiB of summary. -o report.md writes it to a file."


def job_summary(result: Reportable, room: int = MAX_BYTES) -> str:
    """Return Markdown of at most `room` bytes; empty when not even its shortest form fits."""
    brief = render_report(_brief(result))
    full = render(result, ReportOptions(per_class=True))
    folded = f"<details><summary>Full report</summary>\n\n{full}\n</details>\n"
    shortest = render_report(Report(_title(result), ()))
    forms = (f"{brief}\n{folded}\n", f"{brief}\n{LEFT_OUT}\n\n", f"{shortest}\n{LEFT_OUT}\n\n")
    return next((form for form in forms if len(form.encode("utf-8", "backslashreplace")) <= room), "")


def _title(result: Reportable) -> str:
    """Return the verdict in one line."""
    counts = counted_statuses(_gates(result))
    title = f"jaccard-eval, {result.kind}"
    if not counts:
        return title
    worst = next((status for status in (Status.FAIL, Status.WARN) if status in counts), Status.PASS)
    words = ", ".join(f"{count:,} {WORDS[status]}" for status, count in counts.items())
    return f"{ICONS[worst]} {title}: {words}"


def _brief(result: Reportable) -> Report:
    measures = measures_of(result)
    sections = [*_rules(_gates(result)), *_metrics(measures), *_worst(measures), *_findings(result)]
    return Report(_title(result), tuple(sections), measures.signature)


def _gates(result: Reportable) -> Sequence[GateVerdict]:
    gates: Sequence[GateVerdict] = getattr(result, "gates", ())
    return gates


def _rules(gates: Sequence[GateVerdict]) -> list[Section]:
    """Return the table of rules: those that complain first."""
    if not gates:
        return []
    texts = tuple(Column(title, free_text=True) for title in ("", "rule", "required"))
    columns = (*texts, *map(Column, ("value", "margin", "Δ baseline", "n")))
    ranked = sorted(gates, key=lambda one: list(ICONS).index(one.status))
    rows = tuple(_rule(one) for one in ranked[:SHOWN_RULES])
    return [Section("Gates", (Table(columns, rows), *_more(len(gates) - SHOWN_RULES, "rules")))]


def _rule(one: GateVerdict) -> tuple[Cell, ...]:
    numbers = (value_text(one.value, one.limit), signed_text(one.margin), signed_text(one.delta))
    return f"{ICONS[one.status]} {WORDS[one.status]}", one.rule, requirement(one), *numbers, one.n


def _metrics(measures: Measures) -> list[Section]:
    if not measures.overall:
        return []
    columns = tuple(Column(name) for name in measures.overall)
    return [Section("Metrics", (Table(columns, (tuple(measures.overall.values()),)),))]


def _worst(measures: Measures) -> list[Section]:
    headline = next(iter(measures.overall), "")
    values = [(name, row[headline]) for name, row in measures.per_class if headline in row]
    # An undefined value is not a bad one.
    worst = sorted((row for row in values if not math.isnan(row[1])), key=lambda row: row[1])[:SHOWN_CLASSES]
    if not worst:
        return []
    return [Section("Worst classes", (Table((Column("class", free_text=True), Column(headline)), tuple(worst)),))]


def _findings(result: Reportable) -> list[Section]:
    found = [one for one in checks_of(result) if one.group == FINDINGS]
    if not found:
        return []
    pairs = tuple((one.key, one.message.partition("\n")[0]) for one in found[:SHOWN_FINDINGS])
    return [Section("Findings", (KeyValues(pairs), *_more(len(found) - SHOWN_FINDINGS, "findings")))]


def _more(hidden: int, what: str) -> tuple[Note, ...]:
    return (Note(f"+{hidden:,} more {what}"),) if hidden > 0 else ()
