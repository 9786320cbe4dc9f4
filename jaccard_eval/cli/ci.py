"""What a run reports to the CI system that it runs in; the only place that looks for one in the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.parse import find_clashes
from jaccard_eval.errors import JaccardEvalError
from jaccard_eval.findings import DataError, reason_of
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions
    from jaccard_eval.report import Reportable
    from jaccard_eval.report.checks import Check

SYSTEMS = ("auto", "github", "gitlab", "off")
CODE_QUALITY = "gl-code-quality-report.json"  # the name that GitLab's documentation gives it
_ANNOUNCED = "jaccard_eval.announced"  # in the context: a failure that follows is part of what was reported


def announce(result: Reportable, options: RunOptions) -> None:
    """Report a result to the CI system; what it does not take is a warning, and fails no run."""
    system = _system(options)
    if system == "off":
        return
    from jaccard_eval.report.checks import checks_of

    _tell_checks(checks_of(result), system, options)
    if system == "github":
        from jaccard_eval.report.outputs.ci import MAX_BYTES, job_summary, output_lines

        summary, outputs = os.environ.get("GITHUB_STEP_SUMMARY"), os.environ.get("GITHUB_OUTPUT")
        if summary:
            # Earlier commands of the step may have written to it: the limit is on the whole file.
            size = os.path.getsize(summary) if os.path.exists(summary) else 0  # noqa: PTH110, PTH202 - paths as given
            text = job_summary(result, MAX_BYTES - size)
            _append(Path(summary), text)
            if not text:
                streams.say("warning: no room for a job summary: GitHub accepts 1 MiB per step")
        if outputs:
            _append(Path(outputs), "".join(f"{line}\n" for line in output_lines(result)))
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_ANNOUNCED] = True


def announce_failure(error: JaccardEvalError, options: RunOptions) -> None:
    """Report to the CI system why there is no result."""
    system = _system(options)
    if system == "off" or _ANNOUNCED in click.get_current_context().meta:
        return
    from jaccard_eval.data.result import Status
    from jaccard_eval.report.checks import FINDINGS, Check, of_findings

    if isinstance(error, DataError):
        checks = of_findings(error.findings)
    else:
        message = "\n".join(map(printable, str(error).split("\n")))
        checks = (Check(FINDINGS, "", type(error).__name__, Status.FAIL, message, None),)
    _tell_checks(checks, system, options)


def _system(options: RunOptions) -> str:
    if options.ci != "auto":
        return options.ci
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return "github"
    return "gitlab" if os.environ.get("GITLAB_CI") else "off"


def _tell_checks(checks: Sequence[Check], system: str, options: RunOptions) -> None:
    """Annotate the change on GitHub; for GitLab, write the report that it looks for."""
    if system == "github":
        from jaccard_eval.report.outputs.ci import annotation_lines

        workspace = os.environ.get("GITHUB_WORKSPACE")
        # On the standard error, which the runner reads too: the standard output is the result's.
        for line in annotation_lines([_from_root(check, workspace) for check in checks] if workspace else checks):
            streams.command(line)
    elif not any(path.name == CODE_QUALITY for path in options.output):  # else it was asked for by name
        from jaccard_eval.atomic import replace_file
        from jaccard_eval.report.outputs.ci import render_checks

        path = Path(os.environ.get("CI_PROJECT_DIR", "."), CODE_QUALITY)
        try:
            # Nobody asked for this file: it must not cost an input, nor be read as one by the next run.
            clash = find_clashes([path]).get(path)
            if clash is None:
                replace_file(path, render_checks(checks).encode())
            else:
                streams.say(
                    f"warning: skipped {CODE_QUALITY}, because it {clash}; "
                    f"name another folder with -o FOLDER/{CODE_QUALITY}"
                )
        except JaccardEvalError as error:
            streams.say(f"warning: {error}")


def _from_root(check: Check, root: str) -> Check:
    """Name the file as seen from the repository's root, where it lies below it: GitHub knows no other names."""
    if check.where is None:
        return check
    base, path = Path(os.path.realpath(root)), Path(os.path.realpath(check.where.path))
    if not path.is_relative_to(base):
        return check
    return replace(check, where=replace(check.where, path=path.relative_to(base).as_posix()))


def _append(path: Path, text: str) -> None:
    try:
        with path.open("ab") as file:
            # A file name of the user may hold bytes that are not UTF-8, and a lone surrogate in Python.
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        streams.say(f"warning: cannot write {printable(str(path))}: {reason_of(error)}")
