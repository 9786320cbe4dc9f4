"""``jaccard-eval evaluate``: read both sides, compute once, show and write."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import GATE_OPTIONS, Gatekeeper
from jaccard_eval.cli.options import (
    CONF,
    THUMBNAILS,
    SectionedCommand,
    choose_engine,
    files_of_matches,
    read_bootstrap,
    read_slices,
    refuse_gates,
    refuse_outputs,
    refused_option,
    rule_arguments,
    rules_of_matches,
    run_on_sides,
    section,
    two_sides,
)
from jaccard_eval.cli.parse import LABELS, InputPath, RunOptions, WholeNumber
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import ExitCode
from jaccard_eval.options import EvaluateOptions

EPILOG = """\b
Examples:
  jaccard-eval gt.json detections.json --per-class --sort AP
  jaccard-eval evaluate labels/ preds/ --names classes.txt --score best-f1
  jaccard-eval gt.json pred.json --slice night='img/night/**' -o report.md
  jaccard-eval gt.json pred.json --fail-drop AP=0.01 --baseline main.json
"""

ERRORS = section("Output")(
    "--errors/--no-errors",
    default=None,
    basic=True,
    help="Analyse errors and thresholds (default: in pages).",
)

CONFUSION = section("Output")(
    "--confusion/--no-confusion",
    default=None,
    help="Count which classes are predicted as which (default: with --errors).",
)
WORST_IMAGES = section("Output")(
    "--worst-images",
    basic=True,
    type=WholeNumber(min=1),
    metavar="N",
    help="List the N images with the most costly errors.",
)
LISTED_IMAGES = 10  # by files of a run that writes images.csv, where no other number is given


def evaluate(
    options: RunOptions,
    *,
    paths: tuple[Path, ...],
    errors: bool | None,
    confusion: bool | None,
    worst_images: int | None,
) -> ExitCode:
    """Run the command: everything is shown and written before a failed gate ends it."""
    # What can be wrong with the command line is looked at before anything is read.
    gt, pred = two_sides(paths, options)
    keeper = Gatekeeper(options)
    bootstrap, slices = read_bootstrap(options), read_slices(options)
    outputs = plan_files(options.output, keeper.outputs, folders=True)
    gates = keeper.gating.gates if keeper.gating is not None else None

    def lacking() -> list[str]:
        from jaccard_eval.data.protocol import get_protocol
        from jaccard_eval.evaluation import lacking_on_disk
        from jaccard_eval.formats import benchmark_of, opened

        named = options.protocol or benchmark_of(opened(gt, options.gt_format), (pred,), options.pred_format) or "coco"
        asked = EvaluateOptions(bootstrap=bootstrap, errors=bool(errors), worst_images=worst_images)
        return [
            *files_of_matches(outputs, errors=errors is not False),
            *rules_of_matches(gates),
            *lacking_on_disk(asked, get_protocol(named)),
        ]

    where = choose_engine(gt, pred, options, lacking)
    on_disk = where["engine"] != "memory"
    if on_disk:
        refuse_outputs(outputs, scratch=options.scratch, errors=errors is not False)
        refuse_gates(gates)
    from jaccard_eval.api import boxes as api

    # Pages, figures and tables of errors ask for these, unless --no-errors forbids it; documents do not.
    tells_errors = any(output.reporter.errors for output in outputs) and not on_disk if errors is None else errors
    counts_confusion = any(output.reporter.confusion for output in outputs) and not tells_errors
    listed = LISTED_IMAGES if any(output.reporter.images for output in outputs) and not on_disk else None
    measured = run_on_sides(
        api.evaluate,
        gt,
        pred,
        options=options,
        score=options.score,
        errors=tells_errors,
        confusion=counts_confusion if confusion is None else confusion,
        worst_images=worst_images or listed,
        bootstrap=bootstrap,
        slices=slices,
        **where,
        **rule_arguments(options),
    )
    result = keeper.judge(measured)
    report_findings(result.findings, options)
    outputs = keeper.outputs_to_write(outputs, result.gates)
    # What only the files asked for is not on the screen.
    shown = result if errors else result.without_part("errors")
    shown = shown if confusion else shown.without_part("confusion")
    shown = shown if worst_images else shown.without_part("worst_images")
    return keeper.finish(result.gates, lambda: deliver(result, outputs, options, shown=shown))


COMMAND = SectionedCommand(
    "evaluate",
    group="Evaluate",
    callback=evaluate,
    help="Evaluate predictions against ground truth.\n\n"
    "GT and PRED are files or folders of any format. Format, box encoding, units and matching images and classes are"
    " detected and printed; what is ambiguous stops with the option that settles it.",
    short_help="Evaluate predictions against ground truth.",
    epilog=EPILOG,
    params=[
        click.Argument(["paths"], nargs=-1, type=InputPath(LABELS), metavar="GT PRED"),
        "paths",
        "rules",
        "shapes",
        CONF,
        refused_option("--name", "names the sides of compare; use --title for the page, --names for classes."),
        "input",
        "pairing",
        *GATE_OPTIONS,
        "bootstrap",
        "slices",
        "engine",
        "classes",
        ERRORS,
        CONFUSION,
        WORST_IMAGES,
        "gallery",
        "suspects",
        THUMBNAILS,
        "output",
        "findings",
    ],
)
