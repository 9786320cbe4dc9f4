"""``jaccard-eval pixels``: the IoU of label maps, class by class."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import GATE_OPTIONS, Gatekeeper
from jaccard_eval.cli.inputs import MAPS, InputPath
from jaccard_eval.cli.options import CHOSEN_CLASSES, FINDING_OPTIONS, NAMES, OUTPUT_OPTIONS, SectionedCommand, section
from jaccard_eval.cli.parse import OneOf, RunOptions
from jaccard_eval.cli.reading import with_findings
from jaccard_eval.cli.run import report_findings
from jaccard_eval.data.metricref import MAP_CLASS_METRICS
from jaccard_eval.errors import ExitCode
from jaccard_eval.findings import FindingLog

COLUMNS = ("name", "gt", "pred", *MAP_CLASS_METRICS)
EPILOG = """\b
Examples:
  jaccard-eval pixels labels/ predictions/ --classes classes.txt --ignore 255
  jaccard-eval pixels SegmentationClass/ results/ --list val.txt --background 0
  jaccard-eval pixels gt.npy pred.npy --background 0 --drop-background gt
  jaccard-eval pixels camvid/labels/ camvid/out/ --colors label_colors.txt -o report.md
  jaccard-eval pixels ade20k/annotations/ out/ --reduce-zero --json | jq .metrics.mIoU
  jaccard-eval pixels labels/ predictions/ --fail-under mIoU=0.7 --fail-under 'IoU[class=3]=0.5'"""


def pixels(
    options: RunOptions,
    *,
    gt: Path,
    pred: Path,
    classes: str | None,
    colors: Path | None,
    list_file: Path | None,
    ignore: tuple[int, ...],
    reduce_zero: bool,
    reduce_zero_gt: bool,
    background: int | None,
    drop_background: str | None,
) -> ExitCode:
    """Run the command: everything is shown and written before a failed gate ends it."""
    keeper = Gatekeeper(options)
    outputs = plan_files(options.output, keeper.outputs)
    from jaccard_eval.api import files as api
    from jaccard_eval.reading.names import load_names

    log = FindingLog()
    counted = api.pixels(
        gt,
        pred,
        classes=None if classes is None else load_names(classes, log),
        colors=colors,
        ignore=ignore,
        reduce_zero="both" if reduce_zero else "gt" if reduce_zero_gt else None,
        background=background,
        drop_background=drop_background,
        list_file=list_file,
    )
    result = keeper.judge(with_findings(log, counted))
    report_findings(result.findings, options)
    outputs = keeper.outputs_to_write(outputs, result.gates)
    return keeper.finish(result.gates, lambda: deliver(result, outputs, options))


_read = section("Reading the label maps")
_rule = section("Rules")
_show = section("Output")

COMMAND = SectionedCommand(
    "pixels",
    group="Evaluate",
    callback=pixels,
    help="Evaluate label maps: per-class IoU (Jaccard index), precision, recall and Dice of pixels.\n\n"
    "GT and PRED are folders of PNG or .npy files, matched by name, or single files. A pixel's value is its class:"
    " grey of 8 or 16 bits, the index of a palette, or a colour with --colors.",
    short_help="Evaluate label maps: IoU per class of pixels.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["gt"], type=InputPath(MAPS), metavar="GT"),
        click.Argument(["pred"], type=InputPath(MAPS), metavar="PRED"),
        _read(
            "--classes",
            "--names",
            **NAMES,
            help="Class names by value, from 0. Any other value is then an error.",
        ),
        _read(
            "--colors",
            type=InputPath(),
            metavar="FILE",
            help="Table of colours, one class a line: '128 64 128 road', 'road,128,64,128' or '#804080 road'.",
        ),
        _read(
            "--list",
            "list_file",
            type=InputPath(),
            metavar="FILE",
            help="Compare these only: a name a line that both sides know, or two paths below GT and PRED.",
        ),
        _rule(
            "--ignore",
            type=int,
            multiple=True,
            metavar="VALUE",
            help="A value that is no class, such as 255: pixels of the ground truth with it are left out. Repeatable.",
        ),
        _rule("--reduce-zero", is_flag=True, help="Values count from 1: ignore 0, take one from all others."),
        _rule("--reduce-zero-gt", is_flag=True, help="The same for the ground truth only."),
        _rule("--background", type=int, metavar="CLASS", help="Class that the means leave out, such as 0."),
        _rule(
            "--drop-background",
            type=OneOf(("gt", "pred", "both")),
            help="Count no pixel that is background in the ground truth, in the prediction, or in either.",
        ),
        *GATE_OPTIONS,
        _show("--per-class", is_flag=True, help="List every class; up to 30 are listed anyway."),
        *CHOSEN_CLASSES,
        _show(
            "--sort",
            type=OneOf(COLUMNS),
            help="Order of the classes; implies --per-class unless --top or --worst is given.",
        ),
        *OUTPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
