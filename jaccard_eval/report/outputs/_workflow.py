"""What GitHub's runner reads of a step: workflow commands, which become annotations, and the file of outputs.

Sources: "Workflow commands for GitHub Actions" in GitHub's documentation, and ``ActionCommand.cs`` of actions/runner
for what is escaped; the runner reads both streams of a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jaccard_eval.data.verdict import Status
from jaccard_eval.errors import printable
from jaccard_eval.report import Reportable
from jaccard_eval.report.checks import GATES, Check, checks_of, overall
from jaccard_eval.report.measures import Number, measures_of

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
