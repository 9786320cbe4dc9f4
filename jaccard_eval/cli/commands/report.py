"""``jaccard-eval report``: write a saved result, of any command, again, or follow several evaluations."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import THUMBNAILS, WHOLE, SectionedCommand, section
from jaccard_eval.cli.parse import IMAGES, InputPath, RunOptions, note_inputs, note_inputs_of
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.text import quoted_value

EPILOG = """\b
Examples:
  jaccard-eval report result.json
  jaccard-eval report run.npz -o report.md --per-class --sort AP
  jaccard-eval report run.npz --images photos/ -o report.html
  jaccard-eval report comparison.json -o comparison.csv
  jaccard-eval report runs/*.npz -o history/

Nothing is computed again. A document (.json) has what its command wrote; a saved
run (.npz) answers anything about its boxes. Gates are shown as they were judged,
and do not change the exit code. Several evaluations are followed from run to run:
see docs/history.md.
"""
OF_ONE = ("images", "gallery", "suspects", "sort", "top", "worst")  # options without a use for several


def report(options: RunOptions, *, results: tuple[Path, ...]) -> None:
    """Run the command."""
    note_inputs(results)
    if len(results) > 1:
        _follow(results, options)
        return
    if options.bootstrap is not None:
        raise UsageError("--bootstrap is for several results: of one, evaluate computes intervals. Remove it.")
    from jaccard_eval.runs import load_result, with_images

    saved = load_result(results[0])
    note_inputs_of(saved.to_dict())
    outputs = plan_files(options.output, folders=True)
    if options.suspects is not None and saved.kind != "evaluation":
        raise UsageError(f"--suspects is for evaluations; {quoted_value(str(results[0]))} is of the kind {saved.kind}")
    if options.images is not None:
        saved = with_images(saved, options.images)
    # Its errors are part of what is reported: an inspection or a verification saved them.
    report_findings((finding for finding in saved.findings if finding.severity != Severity.ERROR), options)
    deliver(saved, outputs, options)


def _follow(results: tuple[Path, ...], options: RunOptions) -> None:
    idle = [name for name in OF_ONE if getattr(options, name) is not None]
    if idle:
        raise UsageError(f"--{idle[0]} is for a single result, and these are {len(results)}. Remove it.")
    from jaccard_eval.api.suites import follow
    from jaccard_eval.features.compare.comparison import AUTO
    from jaccard_eval.report.write import is_folder_output
    from jaccard_eval.runs import read_document

    for path in results if options.output else ():
        with contextlib.suppress(DataError):  # which is reported where it is read, with those of the others
            document = read_document(path)
            note_inputs_of(document if isinstance(document, dict) else {})
    outputs = plan_files(options.output, folders=True)
    bootstrap = AUTO if options.bootstrap is None else options.bootstrap
    found = follow(results, bootstrap, pages=any(map(is_folder_output, options.output)))
    report_findings(found.findings, options)
    deliver(found, outputs, options)


COMMAND = SectionedCommand(
    "report",
    group="Understand",
    callback=report,
    help="Report a saved result again, in any output format.\n\n"
    "RESULT is the JSON document of any command, or a saved run (.npz). Several evaluations make a history. What was"
    " edited after it was written is refused (exit code 3).",
    short_help="Report a saved result again, or several as a history.",
    epilog=EPILOG,
    params=[
        click.Argument(["results"], type=InputPath(), metavar="RESULT...", nargs=-1, required=True),
        section("Output")(
            "--images",
            type=InputPath(IMAGES),
            metavar="DIR",
            basic=True,
            help="Image folder, to show the boxes of a saved run on its images.",
        ),
        section("Several results (see docs/history.md)")(
            "--bootstrap",
            **WHOLE,
            basic=True,
            help="Intervals from N resamples of the images; 0 for none (default: 1000 or 200 if quick).",
        ),
        "classes",
        "gallery",
        "suspects",
        THUMBNAILS,
        "output",
        "findings",
    ],
)
