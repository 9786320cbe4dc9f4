"""``jaccard-eval nms``: read predictions, suppress, and write what is left in the format that was read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from jaccard_eval.atomic import require_free
from jaccard_eval.cli.delivery import deliver
from jaccard_eval.cli.options import (
    NUMBER,
    PATH,
    SectionedCommand,
    read_options,
    section,
)
from jaccard_eval.cli.parse import LABELS, InputPath, OneOf, RunOptions, refuse_overwriting
from jaccard_eval.cli.run import report_findings
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import detect_format, format_module, format_writer, write_dataset
from jaccard_eval.options import SideOptions, given_reading
from jaccard_eval.version import __version__

EPILOG = """\b
Examples:
  jaccard-eval nms detections.json -o suppressed.json --iou 0.6
  jaccard-eval nms predictions/ -o suppressed/ --by ioa --score-min 0.05
"""


def nms(
    options: RunOptions,
    *,
    pred: Path,
    output: Path,
    iou: float,
    by: str,
    force: bool,
) -> None:
    """Run the command: what is wrong with the output is reported before anything is read."""
    from jaccard_eval.features.nms import Suppression, suppress_side
    from jaccard_eval.inputs import Input, needing_boxes, read_alone, read_to_write, with_shapes

    refuse_overwriting([("-o", output)])
    require_free(output, [pred], replace=force)
    log = FindingLog()
    other, reading = read_options(options, log)
    name = options.pred_format or detect_format(pred)
    format_writer(name)  # one that cannot be written is refused before it is read
    about = format_module(name).FORMAT
    given = Input(pred, options.pred_format, reading)
    asked = given_reading(SideOptions(gt_options=other, pred_options=reading))
    with needing_boxes("nms", given):
        side, unwritten = read_to_write(
            given,
            output,
            lambda kind: read_alone(replace(given, options=with_shapes(reading, kind)), "pred", asked=asked),
            # Whatever the input has, a file of its format holds.
            target_format=replace(about, shapes=(*about.shapes, *about.shapes_if_asked)),
        )
    findings = (*log.findings(), *side.findings, *unwritten)
    kept, result = suppress_side(
        side,
        Suppression(iou=iou, by=by),
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
    help="Apply NMS to predictions and write the result.\n\n"
    "PRED is a file or folder of any format that can be written; the output has the same format, with the fields that"
    " an evaluation reads. Of equal scores, the first in the file wins.",
    short_help="Apply NMS to predictions and write the result.",
    epilog=EPILOG,
    params=[
        click.Argument(["pred"], type=InputPath(LABELS), metavar="PRED"),
        _option(
            "--iou",
            **NUMBER,
            default="0.5",
            show_default=True,
            basic=True,
            help="Suppress boxes that overlap a better one by more.",
        ),
        _option(
            "--by",
            type=OneOf(("iou", "ioa")),
            default="iou",
            show_default=True,
            basic=True,
            help="Overlap: intersection over union, or over the smaller area.",
        ),
        _option("--class-agnostic", is_flag=True, basic=True, help="Suppress across classes."),
        _option(
            "--score-min",
            **NUMBER,
            basic=True,
            help="Remove boxes with a lower score.",
        ),
        "input-of-pred",
        _show(
            "-o",
            "--output",
            type=PATH,
            required=True,
            metavar="PATH",
            basic=True,
            help="File or folder to write.",
        ),
        _show("--force", is_flag=True, basic=True, help="Overwrite; a folder only if all its files are rewritten."),
        _show("--json", "as_json", is_flag=True, basic=True, help="Print only the JSON document."),
        _show("--color", type=OneOf(("auto", "always", "never")), default="auto", help="Colour the report."),
        "quiet",
        "findings",
    ],
)
