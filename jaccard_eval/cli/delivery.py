"""Bringing a result to its readers: files first, checked before anything is computed, then the standard output.

What the CI system of a run picks up by itself is written here too; nothing else looks for one in the environment.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.atomic import FolderPath
from jaccard_eval.cli import GIVEN, PROGRAM, streams
from jaccard_eval.cli.config import configured
from jaccard_eval.cli.parse import find_clashes, note_inputs, refuse_overwriting
from jaccard_eval.cli.run import say_findings
from jaccard_eval.errors import JaccardEvalError
from jaccard_eval.findings import DataError, Severity, reason_of
from jaccard_eval.options import require_effect
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import Stage
from jaccard_eval.text import printable, without_secrets

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions
    from jaccard_eval.findings import Finding
    from jaccard_eval.report import Reportable
    from jaccard_eval.report.checks import Check
    from jaccard_eval.report.write import Output


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


# How an output is asked for: ``-o PATH``, ``-oPATH``, ``-vo PATH``, ``--output PATH``, ``--output=PATH``.
OUTPUT_ARGUMENT = pattern(r"-(?P<flags>[vq]*)o(?P<path>.*)|--output(=.*)?", re.DOTALL)
STDOUT_PATHS = (Path("-"), Path("/dev/stdout"))


def plan_files(
    paths: Sequence[Path], baseline: Sequence[Path] = (), *, folders: bool = False, of_pages: Sequence[str] = ()
) -> list[Output]:
    """Check the outputs, and the files of a baseline to update, before anything is computed.

    Where `folders` is true, an output that ends with a slash, or is a folder, becomes a folder of images. Options of
    pages, with those that are `of_pages` in this command, are refused where none is written.
    """
    context = click.get_current_context()
    pages = ("gallery", "thumbnails", "title", "suspects", *of_pages)
    shown = [name for name in pages if context.params.get(name) is not None]
    kinds = {"/" if folders and isinstance(path, FolderPath) else path.suffix.lower() for path in paths}
    require_effect(shown, "outputs", {"": frozenset(kinds)})
    _read_suspects(context.params.get("suspects"))  # a slip is reported before anything is computed
    # The standard output needs no plan: it is written in any case, and what it is shows when it is.
    files = [("-o", path) for path in paths if path not in STDOUT_PATHS]
    files += [("--update-baseline", path) for path in baseline]
    if not files:
        return []
    from jaccard_eval.report.write import is_folder_output, plan_outputs

    refuse_overwriting(files, [path for path in paths if folders and is_folder_output(path)])
    return plan_outputs([path for _, path in files], folders=folders)


def _read_suspects(path: Path | None) -> Sequence[Any]:
    if path is None:
        return ()
    from jaccard_eval.features.labels.review import read_suspects

    note_inputs([path], "the suspects")
    return read_suspects(path)


def deliver(
    result: Reportable, outputs: Sequence[Output], options: RunOptions, *, shown: Reportable | None = None
) -> None:
    """Write all files, report to the CI system, then write the standard output: a closed pipe costs no file.

    `shown` is the result without what only the files have.
    """
    from jaccard_eval.report import ReportOptions

    chosen = options.top is not None or options.worst is not None
    notes = configured(click.get_current_context(silent=True))
    result, shown = _with_notes(result, notes), shown and _with_notes(shown, notes)
    shape = ReportOptions(
        # Whoever asks for a few classes does not ask for the other tables that list them all.
        per_class=not chosen and (options.per_class or options.sort is not None),
        sort=options.sort,
        top=options.top,
        worst=options.worst,
        verbose=options.verbose,
        gallery=options.gallery,
        title=options.title or "",
        suspects=_read_suspects(options.suspects),
        thumbnails=bool(options.thumbnails),
        command=_given_command(),
    )
    if outputs:
        from jaccard_eval.report.write import options_for, write_outputs

        # All are rendered before the first is written: what cannot be rendered leaves every file as it was.
        with Stage("writing"):
            # What only some files need is not in the others: next to a page a document is what it is alone.
            rendered = [
                (output, output.reporter.render(of_output, options_for(output, shape)))
                for output in outputs
                for of_output in [result if _needs_more(output) else shown or result]
            ]
            with streams.line_erased():  # an output may be the terminal itself
                write_outputs(rendered)
        # What could not be shown is known once it was to be; of a comparison, each of its results may have images.
        for shown_result in (result, *getattr(result, "results", ())):
            images = getattr(shown_result, "images", None)
            if images is not None and not options.quiet:
                say_findings(images.findings.findings(), [Severity.NOTE])
    announce(shown or result, options)
    width = streams.result_width()
    if options.as_json:
        from jaccard_eval.report.outputs.json_ import render
    elif width is not None:
        from jaccard_eval.report.terminal import render
    else:
        from jaccard_eval.report.outputs.text import render_text as render
    # Files must not depend on the terminal that the command happens to run in.
    shape = replace(
        shape,
        quiet=options.quiet,
        is_file=False,
        color=streams.wants_color(options.color, sys.stdout),
        width=width,
        encoding=sys.stdout.encoding or "utf-8",
    )
    streams.write_result(render(shown or result, shape))


def _needs_more(output: Output) -> bool:
    reporter = output.reporter
    return reporter.errors or reporter.confusion or reporter.images


def _given_command() -> str:
    """Return the command as it was given except for its files: the same page, whatever it is called."""
    context = click.get_current_context(silent=True)
    given = iter(() if context is None else context.meta.get(GIVEN, ()))
    kept = []
    for argument in given:
        named = OUTPUT_ARGUMENT.fullmatch(argument)
        if named is None:
            kept.append(without_secrets(argument))
            continue
        kept += [f"-{named['flags']}"] if named["flags"] else []
        if not named["path"] and "=" not in argument:
            next(given, None)
    return shlex.join([PROGRAM, *kept]) if kept else ""


def _with_notes(result: Any, notes: tuple[Finding, ...]) -> Any:
    """Return a result with some notes before its own findings."""
    return replace(result, findings=(*notes, *result.findings)) if notes else result
