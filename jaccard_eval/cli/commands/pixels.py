"""``jaccard-eval pixels``: the IoU of label maps, class by class."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import GATE_OPTIONS, Gatekeeper
from jaccard_eval.cli.options import (
    NAMES,
    SectionedCommand,
    class_table_options,
    completed_from,
    read_bootstrap,
    read_slices,
    section,
    with_findings,
)
from jaccard_eval.cli.parse import (
    MAPS,
    InputPath,
    InputText,
    OneOf,
    RunOptions,
    WholeNumber,
    is_map_file,
    parse_class_map,
    parsed_by,
)
from jaccard_eval.cli.run import report_findings
from jaccard_eval.data.metricref import MAP_CLASS_METRICS
from jaccard_eval.errors import ExitCode
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import COLOR_TABLES

COLUMNS = ("name", "gt", "pred", *MAP_CLASS_METRICS)
EPILOG = """\b
Examples:
  jaccard-eval pixels labels/ predictions/ --classes classes.txt --ignore 255
  jaccard-eval pixels SegmentationClass/ results/ --list val.txt
  jaccard-eval pixels gt.npy pred.npy --background 0 --drop-background gt
  jaccard-eval pixels camvid/gt/ camvid/out/ --colors colors.txt -o report.md
  jaccard-eval pixels labels/ predictions/ --fail-under mIoU=0.7
"""


def pixels(
    options: RunOptions,
    *,
    gt: Path,
    pred: Path,
    classes: str | None,
    colors: str | None,
    class_map: dict[str, str] | str | None,
    gt_class_map: dict[str, str] | str | None,
    list_file: Path | None,
    ignore: tuple[int, ...],
    reduce_zero: bool,
    reduce_zero_gt: bool,
    background: int | None,
    drop_background: str | None,
) -> ExitCode:
    """Run the command: everything is shown and written before a failed gate ends it."""
    keeper = Gatekeeper(options, saves_runs=False)
    outputs = plan_files(options.output, keeper.outputs, folders=True)
    from jaccard_eval.api import files as api
    from jaccard_eval.reading.names import load_names

    log = FindingLog()
    counted = api.pixels(
        gt,
        pred,
        classes=None if classes is None else load_names(classes, log),
        colors=colors,
        class_map=class_map,
        gt_class_map=gt_class_map,
        ignore=ignore,
        reduce_zero="both" if reduce_zero else "gt" if reduce_zero_gt else None,
        background=background,
        drop_background=drop_background,
        list_file=list_file,
        bootstrap=read_bootstrap(options),
        slices=read_slices(options),
    )
    result = keeper.judge(with_findings(log, counted))
    report_findings(result.findings, options)
    outputs = keeper.outputs_to_write(outputs, result.gates)
    return keeper.finish(result.gates, lambda: deliver(result, outputs, options))


def _value_rules(*also: str) -> tuple[str, ...]:
    from jaccard_eval.features.pixels.counting import RULES  # brings NumPy along

    return (*also, *RULES)


_read = section("Reading the label maps")
_rule = section("Rules")

COMMAND = SectionedCommand(
    "pixels",
    group="Evaluate",
    callback=pixels,
    help="Evaluate label maps: IoU (Jaccard index), precision, recall and Dice per class.\n\n"
    "GT and PRED are folders of PNG, TIFF, BMP, GIF or .npy files with the same names, or single files. A pixel value"
    " is a class: grey of 8 or 16 bits, a palette index, or a colour with --colors.",
    short_help="Evaluate label maps: IoU per class.",
    epilog=EPILOG,
    params=[
        click.Argument(["gt"], type=InputPath(MAPS), metavar="GT"),
        click.Argument(["pred"], type=InputPath(MAPS), metavar="PRED"),
        _read(
            "--classes",
            "--names",
            **NAMES,
            basic=True,
            help="Class names by value, from 0; other values are errors.",
        ),
        _read(
            "--colors",
            type=InputText(lambda text: text not in COLOR_TABLES),
            metavar="FILE|NAME",
            basic=True,
            help="Colours of the classes, one per line, such as '128 64 128 road'; or cityscapes, voc.",
        ),
        _read(
            "--class-map",
            type=InputText(is_map_file),
            shell_complete=completed_from(lambda: _value_rules("auto", "id"), or_files=True),
            callback=parsed_by(lambda text: parse_class_map(text, _value_rules("auto", "id"))),
            metavar="MAP",
            basic=True,
            help="Prediction value = ground-truth value: 11=2,7=0, a .json or .yaml file, id+1, trainIds-labelIds"
            " (Cityscapes), auto (from shared pixels), id (keep).",
        ),
        _read(
            "--gt-class-map",
            type=InputText(is_map_file),
            shell_complete=completed_from(_value_rules, or_files=True),
            callback=parsed_by(lambda text: parse_class_map(text, _value_rules())),
            metavar="MAP",
            basic=True,
            help="The same of GT: labelIds-trainIds.",
        ),
        _read(
            "--list",
            "list_file",
            type=InputPath(),
            metavar="FILE",
            basic=True,
            help="Compare only these files: a name, or a path below GT and one below PRED, per line.",
        ),
        _rule(
            "--ignore",
            type=WholeNumber(),
            multiple=True,
            metavar="VALUE",
            basic=True,
            help="Ignore ground-truth pixels with this value, such as 255. Repeatable.",
        ),
        _rule("--reduce-zero", is_flag=True, basic=True, help="Ignore 0 and subtract 1 from all other values."),
        _rule("--reduce-zero-gt", is_flag=True, help="Like --reduce-zero, for the ground truth only."),
        _rule(
            "--background",
            type=WholeNumber(),
            metavar="CLASS",
            basic=True,
            help="Class to exclude from means, such as 0.",
        ),
        _rule(
            "--drop-background",
            type=OneOf(("gt", "pred", "both")),
            help="Ignore pixels that are background in the ground truth, in the prediction, or in either.",
        ),
        *GATE_OPTIONS,
        "bootstrap",
        "slices",
        *class_table_options(COLUMNS),
        "gallery",
        "output",
        "findings",
    ],
)
