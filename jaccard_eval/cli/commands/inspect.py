"""``jaccard-eval inspect``: what inputs hold, how they correspond and what is odd about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaccard_eval.cli import EXIT_CODES
from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.inputs import LABELS, InputPath
from jaccard_eval.cli.options import (
    FINDING_OPTIONS,
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    PAIR_OPTIONS,
    PATH_OPTIONS,
    PER_CLASS,
    SectionedCommand,
)
from jaccard_eval.cli.parse import RunOptions
from jaccard_eval.cli.reading import side_arguments
from jaccard_eval.cli.run import as_errors
from jaccard_eval.findings import DataError, FindingLog, Severity

if TYPE_CHECKING:
    from jaccard_eval.features.inspect.result import Inspection

PAIRED = ("class_map", "match_images", "extra_images", "gt_format", "pred_format", "gt_options", "pred_options")
EPILOG = f"""\b
Examples:
  jaccard-eval inspect gt.json
  jaccard-eval inspect gt.json detections.json
  jaccard-eval inspect --pred predictions/ --names classes.txt
  jaccard-eval inspect gt.json detections.json -o report.md -o classes.csv
  jaccard-eval inspect gt.json detections.json --json | jq '.warnings[].code'

{EXIT_CODES}"""


def inspect(options: RunOptions, *, paths: tuple[Path, ...]) -> None:
    """Run the command: show everything that could be read, then end with the errors."""
    from jaccard_eval.report import ReportOptions

    inputs = _paths(paths, options.gt, options.pred)
    outputs = plan_files(options.output)
    result = _look(inputs, options)
    deliver(result, outputs, options, ReportOptions(per_class=options.per_class))
    errors = as_errors(result.findings, options)
    if errors:
        raise DataError(errors)


def _paths(paths: Sequence[Path], gt: Sequence[Path], pred: Sequence[Path]) -> dict[str, Path]:
    """Return the inputs by role; "path" where one of unknown role is alone."""
    given = [("gt", path) for path in gt] + [("pred", path) for path in pred]
    free = [role for role in ("gt", "pred") if role not in dict(given)]
    if len(dict(given)) < len(given) or len(paths) > len(free):
        raise click.UsageError("inspect takes one input, or ground truth and predictions", click.get_current_context())
    named = given + list(zip(free, paths, strict=False))
    if not named:
        raise click.UsageError("Missing argument 'PATH'.", click.get_current_context())
    return {"path": paths[0]} if len(paths) == len(named) == 1 else dict(named)


def _look(paths: dict[str, Path], options: RunOptions) -> Inspection:
    from jaccard_eval import api

    log = FindingLog()
    (role, first), *others = sorted(paths.items())
    sides = side_arguments(options, log)
    result = api.inspect(
        first,
        others[0][1] if others else None,
        role=None if role == "path" else role,
        **{name: sides[name] for name in PAIRED},
    )
    kept = [
        one for one in (*log.findings(), *result.findings) if one.severity is not Severity.NOTE or not options.quiet
    ]
    return replace(result, findings=tuple(kept))


COMMAND = SectionedCommand(
    "inspect",
    callback=inspect,
    help="Look at one input, or at ground truth and predictions together, and evaluate nothing.\n\n"
    "Shows format, images, boxes, classes, scores, how the two sides correspond, and everything odd with its repair."
    " One PATH alone may be either side.",
    short_help="Show what inputs hold and what is odd about them.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="PATH [PRED]"),
        *PATH_OPTIONS,
        *INPUT_OPTIONS,
        *PAIR_OPTIONS,
        PER_CLASS,
        *OUTPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
