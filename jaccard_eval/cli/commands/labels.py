"""``jaccard-eval labels``: which annotations are probably wrong, by the predictions."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import most_suspects
from jaccard_eval.cli.options import SectionedCommand, rule_arguments, run_on_sides, section
from jaccard_eval.cli.parse import LABELS, InputPath, OutputPath, RunOptions, refuse_overwriting
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import ExitCode, UsageError

EPILOG = """\b
Examples:
  jaccard-eval labels gt.json detections.json
  jaccard-eval labels gt.json detections.json -o labels.csv
  jaccard-eval labels gt.json pred.json --reviewed labels.csv --apply new.json
  jaccard-eval labels labels/ yolo/ detr/ --names classes.txt -o labels.json
"""


def labels(
    options: RunOptions,
    *,
    paths: tuple[Path, ...],
    every: bool,
    reviewed: tuple[Path, ...],
    apply: Path | None,
    annotate: tuple[str, ...],
    image_root: str | None,
    fail_suspects: int | None,
) -> ExitCode:
    """Run the command."""
    from jaccard_eval.features.labels.review import target_of

    context = click.get_current_context()
    if len(options.gt) > 1:
        raise click.UsageError(f"GT is given {len(options.gt)} times", context)
    if not options.gt and not paths:
        raise click.UsageError("Missing argument 'GT'.", context)
    gt, *preds = [*options.gt, *paths, *options.pred]
    if not preds:
        raise click.UsageError("Missing argument 'PRED'.", context)
    if apply is not None and not reviewed:
        raise UsageError("--apply writes what a review accepted: pass --reviewed labels.csv with a column of verdicts")
    if apply is not None:
        refuse_overwriting([("--apply", apply)])
    for text in annotate:
        refuse_overwriting([("--annotate", target_of(text)[1])])
    outputs = plan_files(options.output, folders=True)
    from jaccard_eval.api import boxes as api

    review = {
        "every": every,
        "reviewed": reviewed,
        "apply": apply,
        "annotate": annotate,
        "image_root": image_root or "",
        "suspects": most_suspects() if fail_suspects is None else fail_suspects,
    }
    result = run_on_sides(api.labels, gt, *preds, options=options, **review, **_rules(options))
    report_findings(result.findings, options)
    deliver(result, outputs, options)
    return ExitCode.GATE_FAILED if any(verdict.failed for verdict in result.gates) else ExitCode.OK


def _rules(options: RunOptions) -> dict[str, object]:
    """Return the rules without those that have no meaning here: labels are judged at thresholds of their own."""
    return {name: value for name, value in rule_arguments(options).items() if name not in ("iou", "max_dets", "areas")}


COMMAND = SectionedCommand(
    "labels",
    group="Understand",
    callback=labels,
    without=("iou", "max_dets", "areas", "score"),  # has thresholds of its own, and counts nothing at a score
    help="Find wrong labels: missing objects, wrong classes, bad boxes, spurious objects and duplicates.\n\n"
    "PRED are predictions of a model that was not trained on these images, with low scores kept; several of independent"
    " models are surer. The best suspects come first, each with its reason.",
    short_help="Find annotations that are probably wrong.",
    epilog=EPILOG,
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED [PRED...]"),
        "paths",
        section("Suspects")(
            "--all",
            "every",
            is_flag=True,
            basic=True,
            help="List all suspects, not only the first 200 of each kind.",
        ),
        section("Suspects")(
            "--fail-suspects",
            type=click.IntRange(min=0),
            metavar="N",
            basic=True,
            help="Fail (exit code 1) if more of the listed suspects are rather wrong than right.",
        ),
        section("Review")(
            "--reviewed",
            type=InputPath(),
            metavar="FILE",
            multiple=True,
            basic=True,
            help="labels.csv with verdicts (accepted, rejected) in a column: hide these, and measure AP after them."
            " Several reviewers: repeat it.",
        ),
        section("Review")(
            "--apply",
            type=OutputPath(),
            metavar="FILE",
            basic=True,
            help="Write new ground truth, COCO or as GT is, with what was accepted, and nothing else changed.",
        ),
        section("Review")(
            "--annotate",
            metavar="FORMAT=PATH",
            multiple=True,
            basic=True,
            help="Also write for annotators' tools: cvat=FILE.xml, label-studio=FILE.json, coco=FILE.json or yolo=DIR.",
        ),
        section("Review")(
            "--image-root",
            metavar="URL",
            help="What stands before the names of images in Label Studio's tasks.",
        ),
        "rules",
        "shapes",
        "input",
        "pairing",
        "output",
        "findings",
    ],
)
