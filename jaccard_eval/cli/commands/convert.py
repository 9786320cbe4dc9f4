"""``jaccard-eval convert``: read one input of any format, and write it in another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaccard_eval.cli import EXIT_CODES, streams
from jaccard_eval.cli.inputs import LABELS, InputPath, refuse_overwriting
from jaccard_eval.cli.options import FINDING_OPTIONS, INPUT_OPTIONS, PATH, SectionedCommand, section
from jaccard_eval.cli.parse import OneOf, RunOptions
from jaccard_eval.cli.reading import ROLES, read_options
from jaccard_eval.cli.run import report_findings
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import changed
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from jaccard_eval.data.dataset import Dataset
    from jaccard_eval.features.convert.write import Conversion

EPILOG = f"""\b
Examples:
  jaccard-eval convert gt.json labels --to yolo
  jaccard-eval convert labels/ gt.json --images pictures/ --names classes.txt
  jaccard-eval convert predictions/ detections.csv --role pred
  jaccard-eval convert gt.json Annotations --to voc --lossy

{EXIT_CODES}"""


def convert(
    options: RunOptions, *, source: Path, target: Path, to: str | None, role: str | None, lossy: bool, force: bool
) -> None:
    """Run the command: what is wrong with the target is told before anything is read."""
    from jaccard_eval.atomic import require_free
    from jaccard_eval.features.convert.write import convert_input, target_format

    name = target_format(target, to)
    refuse_overwriting([("OUT", target)])
    require_free(target, [source], replace=force)
    dataset, log = _read(source, role, options)
    report_findings((*log.findings(), *dataset.findings), options, in_report=False)
    done = convert_input(dataset, target, name, lossy=lossy, replace=force)
    # A loss was asked for: it is said, and no reason to fail.
    report_findings(done.findings, replace(options, strict=False), in_report=False)
    streams.write_result(_document(done) if options.as_json else _sentence(done))


def _read(path: Path, role: str | None, options: RunOptions) -> tuple[Dataset, FindingLog]:
    """Read the input as what it is said to be, else as what it looks like."""
    from jaccard_eval.evaluation import Input, read_alone

    log = FindingLog()
    readings = dict(zip(ROLES, read_options(options, log), strict=True))
    for_pred = any(name.startswith("pred_") for name in changed(options))
    role = role or ("pred" if for_pred else None)
    side = role or "gt"
    return read_alone(Input(path, getattr(options, f"{side}_format"), readings[side]), role), log


def _sentence(done: Conversion) -> str:
    counts = _counts(done.dataset)
    held = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    kind = "predictions" if done.dataset.role == "pred" else "ground truth"
    return printable(f"{done.path}: {done.format}, from {done.dataset.format}: {kind}, {held}") + "\n"


def _document(done: Conversion) -> str:
    document = {
        "input": {"path": done.dataset.path, "format": done.dataset.format, "role": done.dataset.role},
        "output": {"path": str(done.path), "format": done.format},
        **_counts(done.dataset),
        "findings": [
            {
                "code": finding.code,
                "severity": str(finding.severity),
                "count": finding.count,
                "message": finding.message,
            }
            for finding in done.findings
        ],
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _counts(dataset: Dataset) -> dict[str, int]:
    return {"images": len(dataset.images), "boxes": len(dataset.boxes), "classes": len(dataset.labels)}


_option = section("Output")

COMMAND = SectionedCommand(
    "convert",
    callback=convert,
    help="Read ground truth or predictions of any format, and write them in another.\n\n"
    "OUT is of the format that its suffix tells, or --to. Boxes, classes and scores are written at full precision; what"
    " OUT cannot carry of them, such as crowd flags in YOLO labels, ends the run unless --lossy is given. An existing"
    " OUT is kept unless --force is given.",
    short_help="Write an input in another format.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["source"], type=InputPath(LABELS), metavar="IN"),
        click.Argument(["target"], type=PATH, metavar="OUT"),
        _option("--to", metavar="FORMAT", help="Format of OUT; by its suffix when not given."),
        _option("--lossy", is_flag=True, help="Write what OUT can carry, and say what is left out."),
        _option(
            "--force", is_flag=True, help="Replace what exists; a folder only if every file in it is written anew."
        ),
        _option("--json", "as_json", is_flag=True, help="Print what was written as one JSON document."),
        section("Reading both sides")(
            "--role",
            type=OneOf(ROLES),
            help="What IN is: ground truth, or predictions; by its scores when not given.",
        ),
        *INPUT_OPTIONS,
        *FINDING_OPTIONS,
    ],
)
