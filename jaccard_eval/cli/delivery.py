"""Bringing a result to its readers: files first, checked before anything is computed, then the standard output."""

from __future__ import annotations

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
from jaccard_eval.cli.ci import announce
from jaccard_eval.cli.config import configured
from jaccard_eval.cli.parse import note_inputs, refuse_overwriting
from jaccard_eval.cli.run import say_findings
from jaccard_eval.findings import Severity
from jaccard_eval.options import require_effect
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import Stage
from jaccard_eval.text import without_secrets

if TYPE_CHECKING:
    from jaccard_eval.cli.parse import RunOptions
    from jaccard_eval.findings import Finding
    from jaccard_eval.report import Reportable
    from jaccard_eval.report.write import Output

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
