"""``jaccard-eval sensitivity``: what the size of objects does to the score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
    PROTOCOL_OPTIONS,
    SectionedCommand,
    rule_arguments,
    section,
)
from jaccard_eval.cli.parse import RunOptions, parse_number, parse_numbers, parse_whole, parsed_by
from jaccard_eval.cli.reading import side_arguments, two_sides
from jaccard_eval.cli.run import report_findings
from jaccard_eval.findings import FindingLog

WITHOUT_EFFECT = ("areas", "score")  # sizes are binned anew, and nothing is counted at a score
EPILOG = f"""\b
Examples:
  jaccard-eval sensitivity gt.json detections.json
  jaccard-eval sensitivity gt.json detections.json --edges 16,32,96 --per-class
  jaccard-eval sensitivity labels/ predictions/ --images images/ --pixels 1,2,3 --noise 1,2 --seed 7
  jaccard-eval sensitivity gt.json detections.json -o scale.svg -o scale.csv --json

{EXIT_CODES}"""


def sensitivity(
    options: RunOptions,
    *,
    paths: tuple[Path, ...],
    bins: int,
    edges: tuple[float, ...] | None,
    pixels: tuple[float, ...],
    pair_iou: float,
    noise: tuple[float, ...],
    rounds: int,
    seed: int,
) -> None:
    """Run the command."""
    from jaccard_eval.features.scale.result import ScaleOptions

    gt, pred = two_sides(paths, options.gt, options.pred)
    scale = ScaleOptions(
        bins=bins, edges=edges or (), pixels=pixels, pair_iou=pair_iou, sigmas=noise, n_rounds=rounds, seed=seed
    )
    outputs = plan_files(options.output)
    from jaccard_eval import api
    from jaccard_eval.report import ReportOptions

    log = FindingLog()
    result = api.sensitivity(gt, pred, scale=scale, **rule_arguments(options), **side_arguments(options, log))
    result = replace(result, findings=(*log.findings(), *result.findings))
    report_findings(result.findings, options)
    deliver(result, outputs, options, ReportOptions(per_class=options.per_class))


_option = section("Scale")


def _numbers(*names: str, default: str, help: str) -> click.Parameter:  # noqa: A002 - click's own word
    return _option(
        *names, metavar="PX,...", default=default, show_default=True, callback=parsed_by(parse_numbers), help=help
    )


COMMAND = SectionedCommand(
    "sensitivity",
    callback=sensitivity,
    help="Analyse what the size of objects does to the score.\n\n"
    "The same error in pixels costs a small object more. Says what each size loses to localisation, false positives and"
    " misses, how the boxes of found objects are off, what pixels cost, and what noise in the annotations allows.",
    short_help="What the size of objects does to the score.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED"),
        *PATH_OPTIONS,
        _option(
            "--bins",
            metavar="N",
            default="4",
            show_default=True,
            callback=parsed_by(parse_whole),
            help="Size bins of equal counts.",
        ),
        _option(
            "--edges",
            metavar="PX,...",
            callback=parsed_by(parse_numbers),
            help="Edges between size bins instead: sides of the square with the area of the box.",
        ),
        _numbers("--pixels", default="1,2,4,8", help="Edge tolerances and displacements in pixels."),
        _option(
            "--pair-iou",
            metavar="IOU",
            default="0.5",
            show_default=True,
            callback=parsed_by(parse_number),
            help="IoU from which a detection stands for an object when the errors of its box are measured.",
        ),
        _numbers("--noise", default="1,2,4", help="Standard deviations of the jitter of annotations."),
        _option(
            "--rounds",
            metavar="N",
            default="10",
            show_default=True,
            callback=parsed_by(parse_whole),
            help="How often the jitter is drawn.",
        ),
        _option(
            "--seed",
            metavar="N",
            default="0",
            show_default=True,
            callback=parsed_by(parse_whole),
            help="Of the jitter.",
        ),
        *(option for option in PROTOCOL_OPTIONS if option.name not in WITHOUT_EFFECT),
        *INPUT_OPTIONS,
        *PAIR_OPTIONS,
        PER_CLASS,
        *OUTPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
