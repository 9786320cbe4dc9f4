"""``jaccard-eval compare``: predictions against a baseline, in metrics and box by box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import RULE_SOURCES
from jaccard_eval.cli.options import (
    CONF,
    FIELDS,
    NUMBER,
    SCORE,
    THUMBNAILS,
    WHOLE,
    SectionedCommand,
    adjusted,
    given_settings,
    read_slices,
    refuse_options_of_sides,
    refused_option,
    rule_arguments,
    run_on_sides,
    section,
)
from jaccard_eval.cli.parse import LABELS, InputPath, RunOptions, note_inputs, note_inputs_of
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import UsageError
from jaccard_eval.options import Bootstrap
from jaccard_eval.reading.files import require_readable
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from jaccard_eval.options import Bootstrap

EPILOG = """\b
Examples:
  jaccard-eval compare gt.json before.json after.json -o comment.md
  jaccard-eval compare gt.json a.json b.json --name A=yolo11n --name B=yolo11s
  jaccard-eval compare gt.json a.json b.json --slice night='img/night/**'
  jaccard-eval compare before.npz after.npz
"""


def compare(
    options: RunOptions,
    *,
    paths: tuple[Path, ...],
    score: float | str | None,
    box_iou: float | None,
    moved_iou: float | None,
    name: Mapping[str, str],
) -> None:
    """Run the command."""
    from jaccard_eval.api import boxes as api
    from jaccard_eval.features.compare.comparison import CompareOptions
    from jaccard_eval.runs import is_saved_run, run_beside, saved_document

    gt, preds = _many_sides(paths, options)
    if gt is None:
        refuse_options_of_sides()
        # A document means the run next to it.
        runs = [*map(run_beside, preds)]
        note_inputs(runs)
        for path in filter(is_saved_run, runs if options.output else ()):
            note_inputs_of(saved_document(path))
    given = {"score": score, "box_iou": box_iou, "moved_iou": moved_iou}
    boxes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    how = CompareOptions(**boxes, slices=read_slices(options), bootstrap=_resampling(options))
    outputs = plan_files(options.output, folders=True)
    if gt is None:
        result = api.compare(None, *preds, options=how, names=name, images=options.images)
    else:
        # `options` is what both are called: those of the command line, and those of the comparison.
        verb = partial(api.compare, options=how, names=name)
        result = run_on_sides(verb, gt, *preds, options=options, **rule_arguments(options))
    report_findings(result.findings, options)
    deliver(result, outputs, options)


def _many_sides(paths: Sequence[Path], options: RunOptions) -> tuple[Path | None, list[Path]]:
    """Take the ground truth from its option, else from the first path unless that is a saved run; compare the rest."""
    from jaccard_eval.runs import saved_run_of

    context = click.get_current_context()
    if len(options.gt) > 1:
        raise click.UsageError(f"GT is given {len(options.gt)} times", context)
    if not options.gt and not paths:
        raise click.UsageError("Missing argument 'GT'.", context)
    truth, *rest = [*options.gt, *paths]
    saved = not options.gt and saved_run_of(truth) is not None
    preds = [*options.pred, truth, *rest] if saved else [*options.pred, *rest]
    if len(preds) < 2:
        taken = ""
        if not saved:
            if preds:
                require_readable(truth)  # what cannot be read was perhaps meant as a saved run
            taken = f"; {quoted_value(str(truth))} is not a saved run, so it was read as the ground truth"
        raise click.UsageError(f"a comparison needs two or more predictions, got {len(preds)}{taken}", context)
    return None if saved else truth, preds


def _resampling(options: RunOptions) -> Bootstrap | str | None:
    """Return how to resample for intervals: as asked, not at all for 0, and as the library does by default."""
    from jaccard_eval.features.compare.comparison import AUTO

    settings = given_settings(options)
    if options.bootstrap == 0:
        idle = [name for name in FIELDS if name != "bootstrap" and FIELDS[name] in settings]
        if idle:
            raise UsageError(f"--{idle[0].replace('_', '-')} has no effect with --bootstrap 0. Remove one of them.")
        return None
    # An option on how to resample asks for it.
    return adjusted(Bootstrap(), options) if settings else AUTO


def _parse_names(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in texts:
        letter, equals, name = (part.strip() for part in text.partition("="))
        if not equals:  # those without a side are of the sides in their order
            letter, name = next(side for side in ascii_uppercase if side not in names), letter
        if letter in names:
            raise click.BadParameter(f"side {quoted_value(letter)} is named twice", ctx, param)
        names[letter] = name
    return names


_option = section("Box by box")
_GATED = (
    "is a gate, and compare has none. Run 'jaccard-eval evaluate GT A -o a.npz', then 'jaccard-eval evaluate GT B"
    " --baseline a.npz' with this rule."
)

COMMAND = SectionedCommand(
    "compare",
    group="Evaluate",
    callback=compare,
    without=("areas", "score", "bootstrap"),
    help="Compare predictions with a baseline on the same ground truth, and report whether they are better.\n\n"
    "GT and predictions A, B, ... are files or folders of any format; A is the baseline. Runs saved by 'evaluate'"
    " (.npz, or .json next to it) need no GT.",
    short_help="Compare predictions: metrics, significance, and box by box.",
    epilog=EPILOG,
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT A B [C...]"),
        "paths",
        section("Output")(
            "--name",
            metavar="NAME",
            multiple=True,
            basic=True,
            callback=_parse_names,
            help="Name of the next side, or of one: B=yolo11s. Repeatable.",
        ),
        _option(
            "--score",
            **SCORE,
            basic=True,
            help="Score: 0.4, best-f1 (default), precision=0.9, recall=0.8, fppi=1.",
        ),
        _option(
            "--box-iou",
            **NUMBER,
            basic=True,
            help="IoU threshold for a match (default 0.5, or the protocol's lowest).",
        ),
        _option(
            "--moved-iou",
            **NUMBER,
            basic=True,
            help="Report a box as moved if its IoU changed by at least this (default 0.05).",
        ),
        CONF,
        *(refused_option(rule.opts[0], _GATED) for rule in RULE_SOURCES),
        "rules",
        "shapes",
        "input",
        "pairing",
        section("Intervals and slices")(
            "--bootstrap",
            **WHOLE,
            basic=True,
            help="Confidence intervals from N resamples of the images; 0 for none (default: 1000 or 200 if quick).",
        ),
        "bootstrap",
        "slices",
        "listed-classes",
        "gallery",
        THUMBNAILS,
        "output",
        "findings",
    ],
)
