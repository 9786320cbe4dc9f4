"""``jaccard-eval partition``: read both sides of any format, and write them in parts that any machine can evaluate."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.options import (
    PATH,
    SectionedCommand,
    section,
    side_arguments,
    two_sides,
)
from jaccard_eval.cli.parse import LABELS, InputPath, OneOf, RunOptions, parse_whole, parsed_by, refuse_overwriting
from jaccard_eval.cli.run import report_findings
from jaccard_eval.data.known_protocols import IOU_TYPES
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog
from jaccard_eval.formats import in_parts
from jaccard_eval.options import EngineOptions, SideOptions, given_reading
from jaccard_eval.text import pluralise, printable
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    from jaccard_eval.inputs import Input

EPILOG = """\b
Examples:
  jaccard-eval partition gt.json predictions/ -o parts
  jaccard-eval partition gt.json detections.json -o parts --partitions 64
  jaccard-eval partition gt.json masks.json -o parts --iou-type segm
  jaccard-eval parts -o result.json
"""


def partition(
    options: RunOptions, *, paths: tuple[Path, ...], target: Path, partitions: int | None, force: bool, as_json: bool
) -> None:
    """Run the command: what is wrong with the target is reported before anything is read."""
    gt, pred = two_sides(paths, options)
    refuse_overwriting([("-o", target)])
    from jaccard_eval.data.protocol import BOXES
    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.engine.scratch import explained
    from jaccard_eval.features.partition import partition_sides, require_target
    from jaccard_eval.inputs import (
        Input,
        needing_boxes,
        read_both,
        require_readings_used,
        unwritten_shapes,
        with_shapes,
    )
    from jaccard_eval.pairing import pair_images
    from jaccard_eval.reading.partitions import KINDS

    for path in (gt, pred):
        if in_parts(path):
            raise click.UsageError(f"{path} is already in parts", click.get_current_context())
    require_target(target, [gt, pred], partitions, force=force)
    log = FindingLog()
    sides = SideOptions(**side_arguments(options, log))
    given: dict[str, Any] = {name: vars(options).get(name) for name in ("memory_limit", "workers", "scratch")}
    iou_type, chosen = _choose(options.iou_type, Input(gt, sides.gt_format), Input(pred, sides.pred_format))
    store = DiskEngine.open(EngineOptions(engine="disk", **given), iou_type)
    with explained(store.scratch):
        both = (
            Input(gt, sides.gt_format, with_shapes(sides.gt_options, iou_type), store),
            Input(pred, sides.pred_format, with_shapes(sides.pred_options, iou_type), store),
        )
        with needing_boxes("partition", *both) if iou_type == BOXES else contextlib.nullcontext():
            read = read_both(*both)
            if read.gt is None or read.pred is None or read.errors:
                raise DataError(read.errors)
            require_readings_used(given_reading(sides), (read.gt, read.pred), iou_type)
        # Boxes that are asked for are meant.
        asked = both if options.iou_type != BOXES else ()
        shapes = [finding for given in asked for finding in unwritten_shapes(given, target, iou_type, KINDS)]
        shapes += chosen if iou_type != BOXES and options.iou_type is None else ()
        report_findings((*log.findings(), *read.gt.findings, *read.pred.findings, *shapes), options, in_report=False)
        notes = FindingLog()
        common = pair_images(read.gt, read.pred, sides, notes)
        report_findings(notes.findings(), options, in_report=False)
        manifest = partition_sides(
            read.gt,
            read.pred,
            target,
            common,
            sides,
            iou_type=iou_type,
            chosen=chosen,
            partitions=partitions,
            findings=log.findings(),
            version=__version__,
            store=store.scratch,
        )
    counts = {"images": manifest.images, "objects": manifest.gt.boxes, "predictions": manifest.pred.boxes}
    if as_json:
        document = {"output": str(target), "partitions": manifest.partitions, **counts}
        streams.write_result(json.dumps(document, indent=2, sort_keys=True) + "\n")
        return
    held = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    streams.write_result(f"{printable(str(target))}: {pluralise(manifest.partitions, 'partition')}, {held}\n")


def _choose(asked: str | None, gt: Input, pred: Input) -> tuple[str, tuple[Finding, ...]]:
    """Return what is written, and the note of an evaluation that compares it unasked."""
    from jaccard_eval.inputs import settle_iou_type
    from jaccard_eval.reading.partitions import kind_of

    try:
        usual, noted = settle_iou_type(gt, [pred])
    except UsageError:  # nothing is compared unasked
        if asked is None:
            raise
        return kind_of(asked), ()
    wanted = kind_of(asked or usual)
    return wanted, noted if wanted == usual else ()


def _parse_partitions(text: str) -> int | None:
    """Return how many partitions to write; None for as many as fit the input."""
    n = None if text == "auto" else parse_whole(text)
    if n == 0:
        raise UsageError("expected auto or a whole number of at least 1, got 0")
    return n


_option = section("Output")

COMMAND = SectionedCommand(
    "partition",
    group="Data",
    callback=partition,
    without=("class_map", "gt_class_map", "images_in_common", "engine"),
    help="Write ground truth and predictions in parts by image, to evaluate many times.\n\n"
    "GT and PRED are files or folders of any format. 'jaccard-eval DIR' evaluates the folder: the result is the same,"
    " byte for byte. Options on how files are read belong here. Needs pyarrow.",
    short_help="Write both sides in parts, for large inputs.",
    epilog=EPILOG,
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED"),
        _option(
            "-o", "--output", "target", type=PATH, metavar="DIR|URL", required=True, basic=True, help="Folder to write."
        ),
        _option(
            "--partitions",
            metavar="auto|N",
            default="auto",
            basic=True,
            callback=parsed_by(_parse_partitions),
            help="Number of parts; auto: about a million boxes in each.",
        ),
        _option(
            "--iou-type",
            type=OneOf(IOU_TYPES),
            metavar="KIND",
            basic=True,
            help="Shapes to write with the boxes, as in evaluate; bbox: none. Default: what evaluate compares.",
        ),
        _option("--force", is_flag=True, basic=True, help="Replace a folder of partitions."),
        _option("--json", "as_json", is_flag=True, basic=True, help="Print only the JSON document."),
        "quiet",
        "paths",
        "input",
        "pairing",
        "engine",
        "findings",
    ],
)
