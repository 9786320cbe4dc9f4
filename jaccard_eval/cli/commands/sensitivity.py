"""``jaccard-eval sensitivity``: what the size of objects does to the score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import (
    WHOLE,
    SectionedCommand,
    rule_arguments,
    run_on_sides,
    section,
    two_sides,
)
from jaccard_eval.cli.parse import LABELS, InputPath, RunOptions, parse_number, parse_numbers, parsed_by
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import UsageError
from jaccard_eval.text import quoted_value
from jaccard_eval.version import __version__

EPILOG = """\b
Examples:
  jaccard-eval sensitivity gt.json detections.json
  jaccard-eval sensitivity gt.json pred.json --edges 16,32,96 --per-class
  jaccard-eval sensitivity gt.json pred.json -o scale.svg -o scale.csv
  jaccard-eval sensitivity --exchange 441,1,9760 --exchange 441,1,88
"""


def sensitivity(
    options: RunOptions,
    *,
    paths: tuple[Path, ...],
    bins: int,
    edges: tuple[float, ...] | None,
    pixels: tuple[float, ...],
    pair_iou: float,
    exchange: tuple[tuple[float, float, float], ...],
) -> None:
    """Run the command."""
    from jaccard_eval.features.scale import ExchangeResult, ScaleOptions

    if exchange:
        if paths or options.gt or options.pred:
            raise UsageError("--exchange computes from areas alone: give either GT and PRED, or --exchange")
        outputs = plan_files(options.output)
        from jaccard_eval.features.scale.compute import exchange_rows

        deliver(ExchangeResult(version=__version__, rows=exchange_rows(exchange)), outputs, options)
        return
    gt, pred = two_sides(paths, options)
    scale = ScaleOptions(bins=bins, edges=edges or (), pixels=pixels, pair_iou=pair_iou)
    outputs = plan_files(options.output)
    from jaccard_eval.api import boxes as api

    result = run_on_sides(api.sensitivity, gt, pred, options=options, scale=scale, **rule_arguments(options))
    report_findings(result.findings, options)
    deliver(result, outputs, options)


def _parse_exchanges(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    parse = parsed_by(_parse_exchange)
    return tuple(parse(ctx, param, text) for text in texts)


def _parse_exchange(text: str) -> tuple[float, ...]:
    numbers = parse_numbers(text)
    if len(numbers) != 3:
        raise UsageError(
            f"expected three areas B,P,Q with commas between them, such as 441,1,88; got {quoted_value(text)}"
        )
    return numbers


_option = section("Scale")
_LENGTHS: dict[str, Any] = {"metavar": "PX,...", "callback": parsed_by(parse_numbers)}

COMMAND = SectionedCommand(
    "sensitivity",
    group="Understand",
    callback=sensitivity,
    without=("areas", "score"),  # sizes are binned anew, and nothing is counted at a score
    help="Show how the size of objects affects the score.\n\n"
    "An error of one pixel costs a small object more. Shows what each size loses to localisation, false positives and"
    " misses, and how found boxes are off.",
    short_help="Show how the size of objects affects the score.",
    epilog=EPILOG,
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED"),
        "paths",
        _option(
            "--bins",
            **WHOLE,
            default="4",
            show_default=True,
            basic=True,
            help="Number of size bins with equal counts.",
        ),
        _option(
            "--edges",
            **_LENGTHS,
            basic=True,
            help="Edges of the size bins instead (square root of the area).",
        ),
        _option(
            "--pixels",
            **_LENGTHS,
            default="1,2,4,8",
            show_default=True,
            basic=True,
            help="Edge tolerances.",
        ),
        _option(
            "--pair-iou",
            metavar="IOU",
            default="0.5",
            show_default=True,
            callback=parsed_by(parse_number),
            basic=True,
            help="IoU to pair a detection with an object for box errors.",
        ),
        _option(
            "--exchange",
            metavar="B,P,Q",
            multiple=True,
            callback=_parse_exchanges,
            help="Without GT and PRED: J and the exchange rate of an object of area B with P missing and Q extra, such"
            " as 441,1,88. Repeatable.",
        ),
        "rules",
        "input",
        "pairing",
        "listed-classes",
        "output",
        "findings",
    ],
)
