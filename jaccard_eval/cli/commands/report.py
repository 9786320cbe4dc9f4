"""``jaccard-eval report``: write a saved result, of any command, again: in another format, or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.inputs import IMAGES, InputPath, note_inputs, note_inputs_of
from jaccard_eval.cli.options import SectionedCommand, section
from jaccard_eval.cli.parse import RunOptions
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Severity
from jaccard_eval.text import quoted_value

EPILOG = """\b
Examples:
  jaccard-eval report result.json
  jaccard-eval report run.npz -o report.md --per-class --sort AP
  jaccard-eval report run.npz --images photos/ -o report.html
  jaccard-eval report comparison.json -o comparison.csv

Nothing is computed again. A document (.json) has what its command wrote; a saved
run (.npz) answers anything about its boxes. Gates are shown as they were judged,
and do not change the exit code.
"""


def report(options: RunOptions, *, result: Path) -> None:
    """Run the command."""
    note_inputs([result])
    from jaccard_eval.runs import load_result, with_images

    saved = load_result(result)
    note_inputs_of(saved.to_dict())
    outputs = plan_files(options.output, folders=True)
    if options.suspects is not None and saved.kind != "evaluation":
        raise UsageError(f"--suspects is for evaluations; {quoted_value(str(result))} is a saved {saved.kind}")
    if options.images is not None:
        saved = with_images(saved, options.images)
    # Its errors are part of what is reported: an inspection or a verification saved them.
    report_findings((finding for finding in saved.findings if finding.severity != Severity.ERROR), options)
    deliver(saved, outputs, options)


COMMAND = SectionedCommand(
    "report",
    group="Understand",
    callback=report,
    help="Report a saved result again, in any output format.\n\n"
    "RESULT is the JSON document of any command, or a saved run (.npz). What was edited after it was written is refused"
    " (exit code 3).",
    short_help="Report a saved result again, in any output format.",
    epilog=EPILOG,
    params=[
        click.Argument(["result"], type=InputPath(), metavar="RESULT"),
        section("Output")(
            "--images",
            type=InputPath(IMAGES),
            metavar="DIR",
            basic=True,
            help="Image folder, to show the boxes of a saved run on its images.",
        ),
        "classes",
        "gallery",
        "suspects",
        "output",
        "findings",
    ],
)
