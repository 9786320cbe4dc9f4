"""``jaccard-eval overlap``: how two boxes overlap, with a picture."""

from __future__ import annotations

import click

from jaccard_eval.cli import EXIT_CODES
from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import (
    FINDING_OPTIONS,
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    PAIR_OPTIONS,
    PATH_OPTIONS,
    WHOLE,
    SectionedCommand,
    section,
)
from jaccard_eval.cli.parse import OneOf, RunOptions, parse_numbers
from jaccard_eval.cli.reading import side_arguments, two_sides, with_findings
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import SideOptions
from jaccard_eval.text import quoted_value
from jaccard_eval.version import __version__

ENCODINGS = ("xyxy", "xywh", "cxcywh")  # those of the kernels, in pixels
EPILOG = f"""\b
Examples:
  jaccard-eval overlap 30,20,50,40 20,20,40,40
  jaccard-eval overlap 10,20,40,60 20,30,40,60 --box xywh -o pair.svg
  jaccard-eval overlap -- -5,0,10,10 0,0,10,10
  jaccard-eval overlap --gt gt.json --pred detections.json --image 000001.jpg
  jaccard-eval overlap --gt gt.json --pred detections.json --image 000001.jpg --gt-index 0 --pred-index 2

{EXIT_CODES}"""


def overlap(
    options: RunOptions,
    *,
    boxes: tuple[str, ...],
    box: str,
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
        if len(boxes) != 2:
            raise click.UsageError("give two boxes A and B as four numbers each, or --gt, --pred and --image", context)
        from jaccard_eval.features.scale.overlap import measure_overlap
        from jaccard_eval.features.scale.result import OverlapResult

        numbers = []
        for text in boxes:
            numbers.append(parse_numbers(text))
            if len(numbers[-1]) != 4:
                raise UsageError(
                    f"a box is four numbers with commas between them, such as 10,20,50,80; got {quoted_value(text)}"
                )
        # As in a matrix of overlaps, the prediction comes first.
        pred, gt = numbers
        measured = measure_overlap(pred, gt, box)
        result = OverlapResult(version=__version__, image=None, pred_name="A", gt_name="B", **measured)
    elif boxes or image is None:
        raise click.UsageError("with --gt and --pred, name the image with --image", context)
    else:
        from jaccard_eval.evaluation import load_and_align
        from jaccard_eval.features.scale.overlap import overlap_in_image

        log = FindingLog()
        sides = load_and_align(*inputs, SideOptions(**side_arguments(options, log)))
        found = overlap_in_image(sides, image, gt_index=gt_index, pred_index=pred_index, version=__version__)
        result = with_findings(log, found)
    report_findings(result.findings, options)
    deliver(result, outputs, options)


_option = section("Boxes")

COMMAND = SectionedCommand(
    "overlap",
    callback=overlap,
    help="Show how two boxes overlap: IoU, coverage, distances, and a picture with the areas labelled.\n\n"
    "A is the prediction, B the ground truth: four numbers each, or boxes of an image of two inputs.",
    short_help="How two boxes overlap, with a picture.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["boxes"], nargs=-1, metavar="A B"),
        _option("--box", type=OneOf(ENCODINGS), default="xyxy", show_default=True, help="What the four numbers are."),
        _option("--image", metavar="NAME", help="Image of the inputs that --gt and --pred name."),
        _option("--gt-index", **WHOLE, help="Which of the image's ground truth, from 0; else what overlaps most."),
        _option("--pred-index", **WHOLE, help="Which of the image's predictions, from 0; else what overlaps most."),
        *PATH_OPTIONS,
        *INPUT_OPTIONS,
        *PAIR_OPTIONS,
        *OUTPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
