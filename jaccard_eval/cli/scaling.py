"""The options of the engines, and what the one on the disk cannot give, refused before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.inputs import AnyPath
from jaccard_eval.cli.options import WHOLE, section
from jaccard_eval.cli.parse import OneOf, RunOptions
from jaccard_eval.errors import UsageError
from jaccard_eval.options import ENGINES, EngineOptions

if TYPE_CHECKING:
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
    _engine("--scratch", type=AnyPath(), metavar="DIR", help="Folder for files of the disk engine."),
]


def choose_engine(pred: Path, options: RunOptions) -> dict[str, Any]:
    """Return the engine that evaluates predictions, and its options, as `evaluate` takes them."""
    from jaccard_eval.engine.choice import takes_disk

    given = {name: getattr(options, name) for name in ("memory_limit", "workers", "scratch")}
    on_disk = takes_disk(pred, EngineOptions(engine=options.engine, **given))
    if on_disk:
        from jaccard_eval.engine.scratch import left_behind

        left = left_behind(options.scratch)
        if left and not options.quiet:
            streams.say(f"{streams.tagged('note[scratch-left]', 'plain')}: {left}")
    return {"engine": "disk" if on_disk else "memory", **given}


def refuse_outputs(outputs: Sequence[Output]) -> None:
    """Raise a UsageError for files that need the match of every detection."""
    refused = [
        str(output.path) for output in outputs if output.reporter.images or output.path.suffix.lower() == ARCHIVE
    ]
    if refused:
        raise UsageError(f"{', '.join(refused)}: not available with the disk engine. Pass --engine memory.")
