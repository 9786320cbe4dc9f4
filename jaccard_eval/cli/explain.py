"""``jaccard-eval explain``: why a number is what it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import EXIT_CODES
from jaccard_eval.cli._delivery import deliver, plan_files
from jaccard_eval.cli._findings import report_findings
from jaccard_eval.cli._options import (
    FINDING_OPTIONS,
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    PAIR_OPTIONS,
    PATH_OPTIONS,
    PROTOCOL_OPTIONS,
    SectionedCommand,
    SectionOption,
)
from jaccard_eval.cli._reading import read_options, two_sides
from jaccard_eval.errors import FindingLog

if TYPE_CHECKING:
    from jaccard_eval.data.explanation import ExplanationResult

PASSED_ON = (
    "protocol",
    "against",
    "boxes",
    "score_min",
    "nms",
    "drop_duplicates",
    "class_map",
    "match_images",
    "extra_images",
    "gt_format",
    "pred_format",
)
OF_THE_METRIC = ("iou", "areas", "max_dets", "class_agnostic", "score")  # the metric and the protocols say all of it
DEFAULT_METRIC = "AP"
EPILOG = f"""\b
Examples:
  jaccard-eval explain gt.json detections.json
  jaccard-eval explain gt.json detections.json "AP50[class=dog]" --boxes 5
  jaccard-eval explain gt.json detections.json AP50 --against voc2012 -o boxes.csv

{EXIT_CODES}"""


def explain(**options: Any) -> None:
    """Run the command."""
    words = options["paths"]
    n_paths = 2 - len(options["gt"][:1]) - len(options["pred"][:1])
    metric = words[n_paths] if len(words) == n_paths + 1 else DEFAULT_METRIC
    rest = words[:n_paths] if len(words) == n_paths + 1 else words
    gt, pred = two_sides([Path(word) for word in rest], options["gt"], options["pred"])
    outputs = plan_files(options["output"], [gt, pred])
    result = _compute(gt, pred, metric, options)
    report_findings(result.findings, options)
    from jaccard_eval.report import ReportOptions

    deliver(result, outputs, options, ReportOptions())


def _compute(gt: Path, pred: Path, metric: str, options: dict[str, Any]) -> ExplanationResult:
    from jaccard_eval import explaining

    log = FindingLog()
    gt_options, pred_options = read_options(options, log)
    result = explaining.explain(
        gt,
        pred,
        metric,
        classes=options["classes"] or (),
        exclude_classes=options["exclude_classes"] or (),
        gt_options=gt_options,
        pred_options=pred_options,
        **{name: options[name] for name in PASSED_ON},
    )
    return replace(result, findings=(*log.findings(), *result.findings))


def _option(*names: str, help: str, **settings: Any) -> click.Parameter:  # noqa: A002 - click's own word
    return SectionOption(names, section="Explanation", help=help, **settings)


COMMAND = SectionedCommand(
    "explain",
    callback=explain,
    help="Explain an average precision: from the number to the points of its curve, to the boxes that cost most.\n\n"
    "METRIC is AP, AP50 and the like, or AP50[class=NAME]. What fixing the boxes would give is measured: the changed"
    " predictions are matched again.",
    short_help="Why a number is what it is.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["paths"], nargs=-1, metavar="GT PRED [METRIC]"),
        *PATH_OPTIONS,
        _option(
            "--boxes",
            type=click.IntRange(min=1),
            default=12,
            show_default=True,
            metavar="N",
            help="How many boxes are named at most.",
        ),
        _option(
            "--against",
            metavar="coco|voc2007|voc2012",
            help="Also say which rule of this protocol makes how much of the difference.",
        ),
        *(option for option in PROTOCOL_OPTIONS if option.name not in OF_THE_METRIC),
        *INPUT_OPTIONS,
        *PAIR_OPTIONS,
        *OUTPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
