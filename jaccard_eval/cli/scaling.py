"""The options of the engines, and what the one on the disk cannot give, refused before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.inputs import AnyPath, InputPath
from jaccard_eval.cli.options import NUMBER, WHOLE, section
from jaccard_eval.cli.parse import OneOf, RunOptions
from jaccard_eval.errors import UsageError
from jaccard_eval.options import ENGINES, EngineOptions

if TYPE_CHECKING:
    from jaccard_eval.features.gates.rules import Gates
    from jaccard_eval.report.write import Output

ARCHIVE = ".npz"  # of saved runs, which list every detection

_engine = section("Large inputs")
ENGINE_OPTIONS: list[click.Parameter] = [
    _engine(
        "--engine",
        type=OneOf(ENGINES),
        default="auto",
        help="Where predictions are kept; auto: on disk if they would not fit into memory.",
    ),
    _engine("--memory-limit", metavar="SIZE", help="Memory to use, such as 2GiB (default: 60 % of the machine's)."),
    _engine("--workers", **WHOLE, help="Threads of the disk engine (default: one per processor)."),
    _engine(
        "--scratch",
        type=AnyPath(),
        metavar="DIR|URL",
        help="Folder for files of the engine; of a cluster, also URL.",
    ),
    _engine("--keep-scratch", is_flag=True, help="Leave these files, and print where."),
    _engine("--scheduler", metavar="ADDRESS|FILE", help="Dask scheduler: tcp://HOST:PORT, tls://... or its file."),
    _engine("--tls-ca", type=InputPath(), metavar="FILE", help="Certificate authority of a tls:// scheduler."),
    _engine("--tls-cert", type=InputPath(), metavar="FILE", help="Certificate for a tls:// scheduler."),
    _engine("--tls-key", type=InputPath(), metavar="FILE", help="Key for a tls:// scheduler."),
    _engine("--retries", **WHOLE, help="Repeat a task of a cluster N times after an error (default 3)."),
    _engine(
        "--no-worker-timeout",
        **{**NUMBER, "metavar": "SECONDS"},
        help="Stop after this long without a Dask worker (default 120).",
    ),
]


def choose_engine(gt: Path, pred: Path, options: RunOptions, lacking: Callable[[], list[str]]) -> dict[str, Any]:
    """Return the engine that evaluates two inputs, and its options, as `evaluate` takes them.

    What is `lacking` on the disk keeps in memory what nobody sends there.
    """
    from jaccard_eval.data.protocol import BOXES
    from jaccard_eval.engine import is_automatic, takes_disk

    names = {field.name for field in fields(EngineOptions)} - {"engine", "client"}
    given = {name: value for name in sorted(names) if (value := getattr(options, name)) is not None}
    engine = EngineOptions(engine=options.engine, **given)
    iou_type = options.iou_type or BOXES  # another one may be found in the files
    on_disk = takes_disk(gt, pred, engine, iou_type)
    if on_disk and is_automatic(engine) and (asked := lacking()):
        on_disk = False
        if not options.quiet:
            from jaccard_eval.engine.choice import in_spite_of_memory

            note = in_spite_of_memory(gt, pred, engine, asked, iou_type)
            streams.say(f"{streams.tagged('note[engine]', 'plain')}: {note}")
    if options.engine == "dask":
        _report_cluster()
    if on_disk:
        from jaccard_eval.engine.scratch import KEPT, left_behind

        def report_kept() -> None:
            for folder in KEPT:
                streams.say(f"{streams.tagged('note[scratch-kept]', 'plain')}: {folder}")

        if not options.quiet:
            click.get_current_context().call_on_close(report_kept)  # after a failure, too

        left = left_behind(options.scratch)
        if left and not options.quiet:
            streams.say(f"{streams.tagged('note[scratch-left]', 'plain')}: {left}")
    found = "disk" if on_disk else "memory"
    return {"engine": "dask" if options.engine == "dask" else found, **given}


def _report_cluster() -> None:
    """Print what happens to a cluster, a line each."""
    import logging  # slow to load

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            streams.say(f"{streams.tagged('note[cluster]', 'plain')}: {record.getMessage()}")

    logging.getLogger("jaccard_eval").addHandler(Lines())


def refuse_outputs(outputs: Sequence[Output], *, scratch: object, errors: bool = True) -> None:
    """Raise a UsageError for files that need the match of every detection."""
    from jaccard_eval.engine.choice import not_on_disk

    if refused := files_of_matches(outputs, errors=errors):
        raise not_on_disk(refused, scratch)


def files_of_matches(outputs: Sequence[Output], *, errors: bool = True) -> list[str]:
    """Return the names of those files that need the match of every detection; pages can do without `errors`."""
    return [str(output.path) for output in outputs if _needs_matches(output, errors=errors)]


def _needs_matches(output: Output, *, errors: bool) -> bool:
    reporter = output.reporter
    # Tables of confusions need no more than these.
    is_of_errors = reporter.errors and (errors or bool(reporter.names)) and not reporter.confusion
    return reporter.images or is_of_errors or output.path.suffix.lower() == ARCHIVE


def refuse_gates(gates: Gates | None) -> None:
    """Raise a UsageError for rules that resample the images."""
    if names := rules_of_matches(gates):
        detail = f"{', '.join(names)}: significance is not available with the disk engine"
        raise UsageError(f"{detail}. Pass --engine memory, or gate on the drop alone: --fail-drop.")


def rules_of_matches(gates: Gates | None) -> list[str]:
    """Return the rules that resample the images."""
    return [rule.id for rule in gates.rules if rule.significance] if gates is not None else []
