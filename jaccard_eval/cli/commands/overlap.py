"""``jaccard-eval overlap``: how two boxes overlap, with a drawing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import (
    WHOLE,
    SectionedCommand,
    section,
    side_arguments,
    two_sides,
    typed_options,
    with_findings,
)
from jaccard_eval.cli.parse import InputText, OneOf, RunOptions, input_path, parse_numbers, parsed_by
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import SideOptions
from jaccard_eval.text import quoted_value
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    from jaccard_eval.features.scale import Measure, OverlapMatrix, OverlapResult

ENCODINGS = ("xyxy", "xywh", "cxcywh")  # those of the kernels, in pixels
MEASURES = ("iou", "ioa", "ioa-pred", "giou")  # those of `scale.overlap`, which loads NumPy
EPILOG = """\b
Examples:
  jaccard-eval overlap 30,20,50,40 20,20,40,40
  jaccard-eval overlap 0,5,6,6 2,6,8,8 --box cxcywh --clip 0,0,12,12
  jaccard-eval overlap -- -5,0,10,10 0,0,10,10
  jaccard-eval overlap predictions.txt objects.txt --by ioa
  jaccard-eval overlap --gt gt.json --pred pred.json --image 000001.jpg
"""


def overlap(
    options: RunOptions,
    *,
    boxes: tuple[str, ...],
    box: str,
    clip: tuple[float, ...] | None,
    by: Measure | None,
    image: str | None,
    gt_index: int | None,
    pred_index: int | None,
) -> None:
    """Run the command."""
    context = click.get_current_context()
    from_files = bool(options.gt or options.pred or image)
    inputs = two_sides([], options) if from_files else None
    outputs = plan_files(options.output)
    if inputs is None:
        # Numbers have nothing to be read by; config keys hold for all runs.
        indices = [f"--{name}-index" for name, at in (("gt", gt_index), ("pred", pred_index)) if at is not None]
        if typed := [*indices, *typed_options("input", "pairing")]:
            words = f"{', '.join(typed)} cannot have an effect on boxes that are given as numbers or in files of boxes"
            raise click.UsageError(f"{words}; remove it, or name inputs with --gt and --pred", context)
        # One file makes two: that the other is missing is then an error of its own.
        are_files = len(boxes) == 2 and any(map(_is_file, boxes))
        result = _of_lists(boxes, by or "iou", box, clip) if are_files else _of_two(boxes, box, clip)
        if by and result.kind == "overlap":
            raise UsageError("--by picks the measure of a matrix: give two files of boxes; two boxes show all measures")
    elif clip or by:
        raise click.UsageError("--clip and --by are for boxes that are given as numbers or in files of boxes", context)
    elif boxes or image is None:
        raise click.UsageError("with --gt and --pred, name the image with --image", context)
    else:
        from jaccard_eval.evaluation import load_and_align
        from jaccard_eval.features.scale.compute import overlap_in_image

        log = FindingLog()
        sides = load_and_align(*inputs, SideOptions(**side_arguments(options, log)))
        found = overlap_in_image(sides, image, gt_index=gt_index, pred_index=pred_index, version=__version__)
        result = with_findings(log, found)
    report_findings(result.findings, options)
    deliver(result, outputs, options)


def _is_file(text: str) -> bool:
    return os.path.isfile(input_path(text))  # noqa: PTH113 - Path.is_file raises for long texts


def _of_lists(paths: Sequence[str], by: Measure, encoding: str, window: Sequence[float] | None) -> OverlapMatrix:
    from jaccard_eval.features.scale.compute import overlap_matrix
    from jaccard_eval.reading.lines import read_box_list

    pred, gt = (read_box_list(input_path(path), encoding) for path in paths)
    return overlap_matrix(pred, gt, by, encoding=encoding, window=window, version=__version__)


def _of_two(boxes: Sequence[str], encoding: str, window: Sequence[float] | None) -> OverlapResult:
    from jaccard_eval.features.scale import OverlapResult
    from jaccard_eval.features.scale.compute import measure_overlap

    if len(boxes) != 2:
        raise click.UsageError(
            "give two boxes A and B as four numbers each, or two files of boxes, or --gt, --pred and --image",
            click.get_current_context(),
        )
    # As in a matrix of overlaps, the prediction comes first.
    pred, gt = map(_parse_box, boxes)
    measured = measure_overlap(pred, gt, encoding, window)
    return OverlapResult(version=__version__, image=None, pred_name="A", gt_name="B", **measured)


def _parse_box(text: str) -> tuple[float, ...]:
    numbers = parse_numbers(text)
    if len(numbers) != 4:
        raise UsageError(
            f"a box is four numbers with commas between them, such as 10,20,50,80; got {quoted_value(text)}"
        )
    return numbers


_option = section("Boxes")

COMMAND = SectionedCommand(
    "overlap",
    group="Understand",
    callback=overlap,
    help="Show how two boxes overlap: IoU, coverage, distances and a drawing.\n\n"
    "A is the prediction, B the ground truth: four numbers each, or files with a box per line (prints a matrix). With"
    " --gt, --pred and --image, boxes of an image.",
    short_help="Show how two boxes overlap, with a drawing.",
    epilog=EPILOG,
    params=[
        click.Argument(["boxes"], nargs=-1, type=InputText(_is_file), metavar="A B"),
        _option(
            "--box", type=OneOf(ENCODINGS), default="xyxy", show_default=True, basic=True, help="Encoding of A and B."
        ),
        _option(
            "--clip",
            metavar="X1,Y1,X2,Y2",
            basic=True,
            callback=parsed_by(_parse_box),
            help="Clip both boxes to this window first, such as the image.",
        ),
        _option("--by", type=OneOf(MEASURES), basic=True, help="Measure of a matrix (default iou)."),
        _option("--image", metavar="NAME", basic=True, help="Image of --gt and --pred."),
        _option("--gt-index", **WHOLE, basic=True, help="Object of the image, from 0 (default: the best overlap)."),
        _option(
            "--pred-index", **WHOLE, basic=True, help="Prediction of the image, from 0 (default: the best overlap)."
        ),
        "paths",
        "input",
        "pairing",
        "output",
        "findings",
    ],
)
