"""What a run tells the CI system that it runs in; the only place that looks for one in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaccard_eval.cli import streams
from jaccard_eval.errors import JaccardEvalError, MachineError
from jaccard_eval.findings import DataError, reason_of
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions
    from jaccard_eval.report import Reportable
    from jaccard_eval.report.checks import Check

SYSTEMS = ("auto", "github", "gitlab", "off")
CODE_QUALITY = "gl-code-quality-report.json"  # the name that GitLab's documentation gives it
_ANNOUNCED = "jaccard_eval.announced"  # in the context: a failure that follows is part of what was told


def announce(result: Reportable, options: RunOptions) -> None:
    """Tell the CI system about a result; what it does not take is said, and fails no run."""
    system = _system(options)
    if system == "off":
        return
    from jaccard_eval.report.checks import checks_of

    checks = checks_of(result)
    if system == "github":
        _annotate(checks)
        _append_summary(result)
        _append_outputs(result)
    else:
        _write_code_quality(checks, options.output)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_ANNOUNCED] = True


def announce_failure(error: JaccardEvalError, options: RunOptions) -> None:
    """Tell the CI system why there is no result."""
    system, context = _system(options), click.get_current_context()
    if system == "off" or _ANNOUNCED in context.meta:
        return
    checks = _checks_of_failure(error)
    if system == "github":
        _annotate(checks)
    else:
        _write_code_quality(checks, options.output)


def _system(options: RunOptions) -> str:
    if options.ci != "auto":
        return options.ci
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return "github"
    return "gitlab" if os.environ.get("GITLAB_CI") else "off"


def _checks_of_failure(error: JaccardEvalError) -> Sequence[Check]:
    from jaccard_eval.data.verdict import Status
    from jaccard_eval.report.checks import FINDINGS, Check, of_findings

    if isinstance(error, DataError):
        return of_findings(error.findings)
    message = "\n".join(map(printable, str(error).split("\n")))
    return [Check(FINDINGS, "", type(error).__name__, Status.FAIL, message, None)]


def _annotate(checks: Iterable[Check]) -> None:
    """Write the commands to the standard error, which the runner reads too: the standard output is the result's."""
    from jaccard_eval.report.outputs.github import annotation_lines

    workspace = os.environ.get("GITHUB_WORKSPACE")
    placed = [_from_root(check, workspace) for check in checks] if workspace else checks
    for line in annotation_lines(placed):
        streams.command(line)


def _from_root(check: Check, root: str) -> Check:
    """Name the file as seen from the repository's root, where it lies below it."""
    if check.where is None:
        return check
    base, path = Path(os.path.realpath(root)), Path(os.path.realpath(check.where.path))
    if not path.is_relative_to(base):
        return check
    return replace(check, where=replace(check.where, path=path.relative_to(base).as_posix()))


def _append_summary(result: Reportable) -> None:
    from jaccard_eval.report.outputs.github import MAX_BYTES, job_summary

    path = _named_file("GITHUB_STEP_SUMMARY")
    if path is not None:
        text = job_summary(result, MAX_BYTES - _size(path))
        _append(path, text)
        if not text:
            streams.say("warning: no room for a job summary: GitHub takes 1 MiB per step")


def _append_outputs(result: Reportable) -> None:
    from jaccard_eval.report.outputs.github import output_lines

    path = _named_file("GITHUB_OUTPUT")
    if path is not None:
        _append(path, "".join(f"{line}\n" for line in output_lines(result)))


def _named_file(variable: str) -> Path | None:
    name = os.environ.get(variable)
    return Path(name) if name else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _append(path: Path, text: str) -> None:
    try:
        with path.open("ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        streams.say(f"warning: cannot write {printable(str(path))}: {reason_of(error)}")


def _write_code_quality(checks: Iterable[Check], outputs: Sequence[Path]) -> None:
    """Write the report that GitLab looks for, unless it was asked for by name."""
    from jaccard_eval.atomic import replace_file
    from jaccard_eval.report.outputs.gitlab import render_checks

    if any(path.name == CODE_QUALITY for path in outputs):
        return
    try:
        replace_file(Path(os.environ.get("CI_PROJECT_DIR", "."), CODE_QUALITY), render_checks(checks).encode())
    except MachineError as error:
        streams.say(f"warning: {error}")
