"""``jaccard-eval inspect``: what inputs hold, how they correspond and what is odd about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import (
    ROLES,
    SectionedCommand,
    side_arguments,
    with_findings,
)
from jaccard_eval.cli.parse import LABELS, InputPath, RunOptions
from jaccard_eval.cli.run import as_errors, is_said, say_findings
from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.options import EXEMPT

PAIRED = ("class_map", "gt_class_map", "match_images", "extra_images", "images_in_common")
READ = ("gt_format", "pred_format", "gt_options", "pred_options")
EPILOG = """\b
Examples:
  jaccard-eval inspect gt.json
  jaccard-eval inspect gt.json detections.json
  jaccard-eval inspect gt.json masks.json --iou-type segm
  jaccard-eval inspect --pred predictions/ --names classes.txt
  jaccard-eval inspect gt.json detections.json -o report.md -o classes.csv
  jaccard-eval inspect gt.json detections.json --json | jq '.warnings[].code'
"""


def inspect(options: RunOptions, *, paths: tuple[Path, ...]) -> None:
    """Run the command: show everything that could be read, then end with the errors."""
    # One path alone may be either side; with two, or an option, each has its role.
    named = [("gt", path) for path in options.gt] + [("pred", path) for path in options.pred]
    free = [role for role in ROLES if role not in dict(named)]
    if len(dict(named)) < len(named) or len(paths) > len(free):
        raise click.UsageError("inspect takes one input, or ground truth and predictions", click.get_current_context())
    named += zip(free, paths, strict=False)
    if not named:
        raise click.UsageError("Missing argument 'PATH'.", click.get_current_context())
    outputs = plan_files(options.output)
    from jaccard_eval.api import boxes as api

    log = FindingLog()
    sides = side_arguments(options, log)
    (role, first), *others = sorted(named)
    is_alone = len(paths) == len(named) == 1
    # Of one path alone, an option on how predictions are read means predictions, if it was typed.
    typed = {name.partition("_")[0] for name in {*vars(options)} - {*EXEMPT.get()} if "_" in name}
    is_pred = is_alone and "pred" in typed and "gt" not in typed
    result = api.inspect(
        first,
        *(path for _, path in others),
        role="pred" if is_pred else None if is_alone else role,
        iou_type=options.iou_type,
        sigmas=options.sigmas,
        dilation_ratio=options.dilation_ratio,
        **{name: sides[name] for name in (*PAIRED, *READ)},
    )
    result = with_findings(log, result)
    # A report of an inspection has its notes in it, so that these are dropped here rather than when they are printed.
    if options.quiet:
        say_findings([finding for finding in result.findings if is_said(finding, options)], [Severity.NOTE])
        kept = tuple(finding for finding in result.findings if finding.severity is not Severity.NOTE)
        result = replace(result, findings=kept)
    deliver(result, outputs, options)
    errors = as_errors(result.findings, options)
    if errors:
        raise DataError(errors)


COMMAND = SectionedCommand(
    "inspect",
    group="Understand",
    callback=inspect,
    help="Show what inputs hold, how they correspond and what is wrong, without evaluating.\n\n"
    "Shows format, images, boxes, classes, scores, how the two sides correspond, and every problem with its fix. PATH"
    " alone may be either side.",
    short_help="Show what inputs hold and what is wrong with them.",
    epilog=EPILOG,
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="PATH [PRED]"),
        "paths",
        "input",
        "pairing",
        "listed-classes",
        "shapes",
        "output",
        "findings",
    ],
)
