"""``jaccard-eval verify``: run a saved evaluation again, show what is not the same, and fail if anything is."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.inputs import LABELS, InputPath
from jaccard_eval.cli.options import FINDING_OPTIONS, OUTPUT_OPTIONS, PATH_OPTIONS, SectionedCommand
from jaccard_eval.cli.parse import RunOptions
from jaccard_eval.cli.reading import two_sides
from jaccard_eval.cli.run import as_errors, say_findings
from jaccard_eval.findings import DataError, Severity

EPILOG = """\b
Examples:
  jaccard-eval evaluate gt.json detections.json -o result.json
  jaccard-eval verify result.json gt.json detections.json --json

Equal means to the last bit: inputs (but the order of their rows), rules and
numbers. Another version of this program is a warning, a difference exit code 3.
"""


def verify(options: RunOptions, *, result: Path, paths: tuple[Path, ...]) -> None:
    """Run the command: everything is shown and written before a difference ends it."""
    gt, pred = two_sides(paths, options)
    outputs = plan_files(options.output)
    from jaccard_eval.api import files as api

    again = api.verify(result, gt, pred)
    deliver(again, outputs, options)
    errors = as_errors(again.findings, options)
    if errors:
        raise DataError(errors)
    say_findings(again.findings, (Severity.WARNING,))


COMMAND = SectionedCommand(
    "verify",
    group="CI",
    callback=verify,
    help="Run a saved evaluation again and report what differs.\n\n"
    "RESULT is the JSON document of 'evaluate'; its rules and options are used. GT and PRED are its inputs, wherever"
    " they are now; image folders are read where they were.",
    short_help="Run a saved evaluation again and report what differs.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["result"], type=InputPath(), metavar="RESULT"),
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED"),
        *PATH_OPTIONS,
        *OUTPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
