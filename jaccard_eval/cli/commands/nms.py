"""``jaccard-eval nms``: read predictions, suppress, and write what is left in the format that was read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver
from jaccard_eval.cli.inputs import LABELS, InputPath, refuse_overwriting
from jaccard_eval.cli.options import (
    FINDING_OPTIONS,
    INPUT_OPTIONS,
    NUMBER,
    PATH,
    SectionedCommand,
    removed_option,
    section,
)
from jaccard_eval.cli.parse import OneOf, RunOptions
from jaccard_eval.cli.reading import read_options
from jaccard_eval.cli.run import report_findings
from jaccard_eval.findings import FindingLog
from jaccard_eval.version import __version__

EPILOG = """\b
Examples:
  jaccard-eval nms detections.json -o suppressed.json --iou 0.6
  jaccard-eval nms predictions/ -o suppressed/ --by ioa --score-min 0.05
  jaccard-eval nms detections.csv -o soft.csv --soft gaussian --sigma 0.5
  jaccard-eval nms detections.json -o suppressed.json --class-agnostic"""


def nms(
    options: RunOptions,
    *,
    pred: Path,
    output: Path,
    iou: float,
    by: str,
    soft: str | None,
    sigma: float | None,
    force: bool,
) -> None:
    """Run the command: what is wrong with the output is told before anything is read."""
    from jaccard_eval.features.nms.compute import Suppression, suppress_side

    if sigma is not None and soft != "gaussian":
        raise click.UsageError("--sigma belongs to --soft gaussian", click.get_current_context())
    rule = Suppression(iou=iou, by=by, method=soft or "hard")
    from jaccard_eval.atomic import require_free
    from jaccard_eval.evaluation import Input, read_alone
    from jaccard_eval.formats import detect_format, format_writer, write_dataset

    refuse_overwriting([("-o", output)])
    require_free(output, [pred], replace=force)
    log = FindingLog()
    _, reading = read_options(options, log)
    format_writer(options.pred_format or detect_format(pred))  # one that cannot be written is refused before it is read
    side = read_alone(Input(pred, options.pred_format, reading), "pred")
    findings = (*log.findings(), *side.findings)
    kept, result = suppress_side(
        side,
        rule if sigma is None else replace(rule, sigma=sigma),
        class_agnostic=options.class_agnostic,
        score_min=options.score_min,
        output=str(output),
        version=__version__,
    )
    # Under --strict, nothing is written when what was read has warnings.
    report_findings(findings, options)
    written = write_dataset(kept, output, inputs=[pred], replace=force)
    report_findings(written, options)
    deliver(replace(result, findings=(*findings, *written)), [], options)


_option = section("Suppression")
_show = section("Output")

COMMAND = SectionedCommand(
    "nms",
    group="Data",
    callback=nms,
    help="Suppress predictions that better ones of their image and class overlap, and write the rest.\n\n"
    "PRED is a file or folder of any format that can be written; the output is of the same format, with what an"
    " evaluation reads: other fields are not carried. Of equal scores the first in the file is the better one.",
    short_help="Suppress overlapping predictions (NMS).",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["pred"], type=InputPath(LABELS), metavar="PRED"),
        _option(
            "--iou",
            **NUMBER,
            default="0.5",
            show_default=True,
            help="Boxes that overlap by more are rivals; gaussian decay has no threshold.",
        ),
        _option(
            "--by",
            type=OneOf(("iou", "ioa")),
            default="iou",
            show_default=True,
            help="Overlap: intersection over union, or over the area of the smaller box.",
        ),
        _option(
            "--soft",
            type=OneOf(("linear", "gaussian")),
            help="Lower the scores of rivals instead of removing them (Soft-NMS).",
        ),
        _option("--sigma", **NUMBER, help="Of the gaussian; 0.5 when not given."),
        removed_option("--merge", "merge boxes with weighted_nms of the library, or leave it out to remove them."),
        _option("--class-agnostic", is_flag=True, help="Let boxes of different classes be rivals."),
        _option(
            "--score-min",
            **NUMBER,
            help="Leave out boxes with a lower score; of decayed scores, 0.001 when not given.",
        ),
        *(option for option in INPUT_OPTIONS if not str(option.name).startswith("gt_")),
        _show(
            "-o",
            "--output",
            type=PATH,
            required=True,
            metavar="PATH",
            help="What to write.",
        ),
        _show("--force", is_flag=True, help="Replace what exists; a folder only if every file in it is written anew."),
        _show("--json", "as_json", is_flag=True, help="Print the counts as one JSON document."),
        _show("--color", type=OneOf(("auto", "always", "never")), default="auto", help="Colours in the report."),
        *FINDING_OPTIONS,
    ],
)
