"""``jaccard-eval panoptic``: panoptic quality of segmentations, class by class."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import GATE_OPTIONS, Gatekeeper
from jaccard_eval.cli.options import (
    SectionedCommand,
    class_table_options,
    completed_from,
    read_bootstrap,
    read_slices,
    section,
)
from jaccard_eval.cli.parse import (
    IMAGES,
    SEGMENTS,
    InputPath,
    InputText,
    OneOf,
    RunOptions,
    is_map_file,
    note_inputs,
    parse_class_map,
    parsed_by,
)
from jaccard_eval.cli.run import report_findings
from jaccard_eval.data.metricref import SEGMENT_CLASS_METRICS
from jaccard_eval.errors import ExitCode

COLUMNS = ("name", "gt", "pred", *SEGMENT_CLASS_METRICS)
EPILOG = """\b
Examples:
  jaccard-eval panoptic panoptic_val2017.json predictions.json
  jaccard-eval panoptic gt.json pred.json --pred-masks out/png -o report.html
  jaccard-eval panoptic gtFine/val/ results/ --per-class
  jaccard-eval panoptic gt.json new.json --against old.json
  jaccard-eval panoptic gt.json pred.json --fail-under PQ=0.4
"""


def panoptic(
    options: RunOptions,
    *,
    gt: Path,
    pred: Path,
    gt_masks: Path | None,
    pred_masks: Path | None,
    class_map: dict[str, str] | None,
    against: Path | None,
    against_masks: Path | None,
) -> ExitCode:
    """Run the command: everything is shown and written before a failed gate ends it."""
    keeper = Gatekeeper(options, against=against is not None, saves_runs=False)
    from jaccard_eval.reading.segments import folder_of

    # Folders of maps that nobody named are read as well: no output may lie there.
    given = ((gt, gt_masks), (pred, pred_masks), (against, against_masks))
    found = [path for path, masks in given if path is not None and masks is None]
    note_inputs(map(folder_of, found), kind=SEGMENTS)
    # Where there is no such folder, the maps lie next to the file.
    beside = [path.parent for path in found if path.is_file() and not folder_of(path).is_dir()]
    note_inputs(beside, kind=SEGMENTS)
    outputs = plan_files(options.output, keeper.outputs, folders=True, of_pages=("images",))
    from jaccard_eval.api import files as api

    measured = api.panoptic(
        gt,
        pred,
        gt_masks=gt_masks,
        pred_masks=pred_masks,
        class_map=class_map,
        iou_type=options.iou_type or "segm",
        dilation_ratio=options.dilation_ratio,
        against=against,
        against_masks=against_masks,
        bootstrap=read_bootstrap(options),
        slices=read_slices(options),
        images=options.images,
    )
    result = keeper.judge(measured)
    report_findings(result.findings, options)
    outputs = keeper.outputs_to_write(outputs, result.gates)
    return keeper.finish(result.gates, lambda: deliver(result, outputs, options))


_read = section("Reading the segments")
_rule = section("Rules")
_compare = section("Comparison")

COMMAND = SectionedCommand(
    "panoptic",
    group="Evaluate",
    callback=panoptic,
    help="Evaluate panoptic segmentations: PQ, SQ and RQ of things, stuff and each class.\n\n"
    "GT and PRED are JSON files of COCO's panoptic format, each with a folder of PNG files next to it that is called"
    " like it, or folders of maps: Cityscapes' *_instanceIds.png, BDD100K, KITTI-STEP, Mapillary, VIPSeg.",
    short_help="Evaluate panoptic segmentations: PQ, SQ, RQ.",
    epilog=EPILOG,
    params=[
        click.Argument(["gt"], type=InputPath(SEGMENTS), metavar="GT"),
        click.Argument(["pred"], type=InputPath(SEGMENTS), metavar="PRED"),
        _read("--gt-masks", type=InputPath(SEGMENTS), metavar="DIR", basic=True, help="Folder of GT's PNG files."),
        _read("--pred-masks", type=InputPath(SEGMENTS), metavar="DIR", basic=True, help="Folder of PRED's PNG files."),
        _read(
            "--class-map",
            type=InputText(is_map_file),
            shell_complete=completed_from(tuple, or_files=True),
            callback=parsed_by(lambda text: parse_class_map(text, ())),
            metavar="MAP",
            basic=True,
            help="Prediction category id = ground-truth id or name, such as 1=7,2=8, or a .json or .yaml file.",
        ),
        _read(
            "--images",
            type=InputPath(IMAGES),
            metavar="DIR",
            basic=True,
            help="Images to draw segments over on a page.",
        ),
        _rule(
            "--iou-type",
            type=OneOf(("segm", "boundary")),
            basic=True,
            help="boundary: the smaller IoU of segments and of their boundaries.",
        ),
        _rule(
            "--dilation-ratio",
            type=float,
            metavar="SHARE",
            help="Width of boundaries, as a share of the image diagonal (default 0.02).",
        ),
        _compare(
            "--against",
            type=InputPath(SEGMENTS),
            metavar="PRED",
            basic=True,
            help="Predictions to compare with (baseline).",
        ),
        _compare("--against-masks", type=InputPath(SEGMENTS), metavar="DIR", help="Folder of their PNG files."),
        *GATE_OPTIONS,
        "bootstrap",
        "slices",
        *class_table_options(COLUMNS),
        "gallery",
        "output",
        "findings",
    ],
)
