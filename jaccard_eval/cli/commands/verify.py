"""``jaccard-eval verify``: run a saved evaluation again, show what is not the same, and fail if anything is."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import SectionedCommand
from jaccard_eval.cli.parse import LABELS, InputPath, RunOptions
from jaccard_eval.cli.run import as_errors, say_findings
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.formats import in_parts

EPILOG = """\b
Examples:
  jaccard-eval evaluate gt.json detections.json -o result.json
  jaccard-eval verify result.json gt.json detections.json --json
  jaccard-eval verify comparison.json gt.json before.json after.json
  jaccard-eval verify verdicts.json result.json main.json

Equal means to the last bit: inputs (but the order of their rows), rules and
numbers. Another version of this program is a warning, a difference exit code 3.
"""


def verify(options: RunOptions, *, result: Path, paths: tuple[Path, ...]) -> None:
    """Run the command: everything is shown and written before a difference ends it."""
    # How many there must be, the result knows.
    n_first = 0 if options.gt or not options.pred else 1
    given = [*options.gt, *paths[:n_first], *options.pred, *paths[n_first:]]
    if not given:
        raise click.UsageError("Missing argument 'GT'.", click.get_current_context())
    if len(given) == 1 and in_parts(given[0]):
        given *= 2  # partitions have both sides
    outputs = plan_files(options.output)
    from jaccard_eval.api import files as api

    again = api.verify(result, *given)
    deliver(again, outputs, options)
    errors = as_errors(again.findings, options)
    if errors:
        raise DataError(errors)
    say_findings(again.findings, (Severity.WARNING,))


COMMAND = SectionedCommand(
    "verify",
    group="CI",
    callback=verify,
    help="Make a saved result again and report what differs.\n\n"
    "RESULT is the JSON document of 'evaluate', 'pixels', 'panoptic', 'compare' or 'gate'; its rules and options are"
    " used. GT and PRED are its inputs, wherever they are now: all predictions of 'compare'; the result that 'gate'"
    " judged, and its baseline. Image folders, and what options named, are read where they were.",
    short_help="Make a saved result again and report what differs.",
    epilog=EPILOG,
    params=[
        click.Argument(["result"], type=InputPath(), metavar="RESULT"),
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED..."),
        "paths",
        "output",
        "findings",
    ],
)
