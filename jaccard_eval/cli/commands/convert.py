"""``jaccard-eval convert``: read one input of any format, and write it in another."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaccard_eval.atomic import require_free
from jaccard_eval.cli import GIVEN, PROGRAM, streams
from jaccard_eval.cli.options import (
    INPUT,
    PAIR_OPTIONS,
    PATH,
    ROLES,
    SectionedCommand,
    completed_from,
    known_formats,
    read_options,
    section,
    side_arguments,
)
from jaccard_eval.cli.parse import LABELS, InputPath, OneOf, RunOptions, refuse_overwriting
from jaccard_eval.cli.run import report_findings, say_findings
from jaccard_eval.data.document import to_document
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity
from jaccard_eval.fixes import FLAGS, Fix, Value
from jaccard_eval.formats import format_module
from jaccard_eval.options import EXEMPT, SideOptions, given_reading
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from jaccard_eval.features.convert import Conversion

EPILOG = """\b
Examples:
  jaccard-eval convert gt.json labels --to yolo
  jaccard-eval convert labels/ gt.json --images images/ --names classes.txt
  jaccard-eval convert predictions/ detections.csv --role pred
  jaccard-eval convert detections.json predictions --to yolo --gt data.yaml
  jaccard-eval convert gt.json Annotations --to voc --lossy
  jaccard-eval convert gt.json merged.json --class-map car=auto,bus=auto
  jaccard-eval convert corrected.xml gt2.json --ids-from gt.json
"""


@contextlib.contextmanager
def naming_the_command() -> Iterator[None]:
    """Report what stops a command for want of options with the whole command."""
    try:
        yield
    except DataError as error:
        raise _with_command(error) from None


def _with_command(error: DataError) -> DataError:
    """Add the command with the options that all errors ask for, where these are all that is missing."""
    stops = [finding for finding in error.findings if finding.severity is Severity.ERROR]
    fixes = [finding.fix for finding in stops if isinstance(finding.fix, Fix) and finding.fix.options]
    if len(fixes) < len(stops):
        return error
    added = dict[str, Value]()
    for fix in sorted(fixes, key=lambda fix: len(fix.options)):  # one of several alternatives may be there already
        if not added.keys() & fix.options:
            name = next(iter(fix.options))
            added[name] = fix.options[name]
    if any(isinstance(value, tuple) for value in added.values()):
        return error
    given = click.get_current_context().meta[GIVEN]
    flags = [FLAGS.phrase({name: value}) for name, value in added.items()]
    # Of a value that the user knows, its place is named as in the help.
    flags = [
        flag if " " in flag or added[name] else f"{flag} {name.upper()}"
        for name, flag in zip(added, flags, strict=True)
    ]
    command = " ".join([shlex.join((PROGRAM, *given)), *flags])
    last = replace(fixes[-1], words=f"{fixes[-1].words} The whole command: {command}")
    return DataError([replace(found, fix=last) if found is stops[-1] else found for found in error.findings])


@naming_the_command()
def convert(
    options: RunOptions,
    *,
    source: Path,
    target: Path,
    to: str | None,
    gt: Path | None,
    role: str | None,
    ids_from: Path | None,
    lossy: bool,
    force: bool,
) -> None:
    """Run the command: what is wrong with the target is reported before anything is read."""
    from jaccard_eval.evaluation import load_as_in_ground_truth
    from jaccard_eval.features.convert import convert_input, require_ground_truth, target_format, with_ids_of
    from jaccard_eval.inputs import Input, load, needing_boxes, read_alone, read_to_write, with_shapes

    _require_ground_truth(options, gt, role)
    name = target_format(target, to)
    about = format_module(name).FORMAT
    refuse_overwriting([("OUT", target)])
    require_free(target, [source, *(path for path in (gt, ids_from) if path is not None)], replace=force)
    log = FindingLog()
    if gt is not None:
        given, pairing = Input(source, options.pred_format), SideOptions(**side_arguments(options, log))
        with needing_boxes("convert", given, Input(gt, options.gt_format)):
            dataset, unwritten = read_to_write(
                given,
                target,
                lambda kind: load_as_in_ground_truth(gt, source, pairing, lossy=lossy, iou_type=kind),
                target_format=about,
                asked=options.iou_type,
            )
    else:
        readings = dict(zip(ROLES, read_options(options, log), strict=True))
        # An option on how predictions are read means predictions: RunOptions hold as their own what was given.
        if role is None and (options.pred_format or any(given.startswith("pred_") for given in vars(options))):
            role = "pred"
        side = role or "gt"
        given = Input(source, getattr(options, f"{side}_format"), readings[side])
        other = "gt" if side == "pred" else "pred"
        both = SideOptions(gt_options=readings["gt"], pred_options=readings["pred"])
        asked = [name for name in given_reading(both) if not name.startswith(f"{other}_")]
        with needing_boxes("convert", given):
            dataset, unwritten = read_to_write(
                given,
                target,
                lambda kind: read_alone(
                    replace(given, options=with_shapes(given.options, kind)), role, options.class_map, asked
                ),
                target_format=about,
                asked=options.iou_type,
            )
    if ids_from is not None:
        require_ground_truth(dataset)
        dataset = with_ids_of(dataset, load(ids_from))
    report_findings((*log.findings(), *dataset.findings, *unwritten), options, in_report=False)
    done = convert_input(dataset, target, name, lossy=lossy, replace=force)
    # A loss was asked for with --lossy: it is reported, but does not fail under --strict.
    say_findings(done.findings, [Severity.WARNING, *([] if options.quiet else [Severity.NOTE])])
    counts = {"images": len(dataset.images), "boxes": len(dataset.boxes), "classes": len(dataset.labels)}
    streams.write_result(_described(done, counts, (*unwritten, *done.findings), as_json=options.as_json))


def _described(done: Conversion, counts: dict[str, int], findings: Sequence[Finding], *, as_json: bool) -> str:
    """Return what was written, as a line or as a document."""
    dataset = done.dataset
    if as_json:
        document = {
            "input": {"path": dataset.path, "format": dataset.format, "role": dataset.role},
            "output": {"path": str(done.path), "format": done.format},
            **counts,
            "findings": [
                {
                    "code": finding.code,
                    "severity": str(finding.severity),
                    "count": finding.count,
                    "message": finding.message,
                    "fix": to_document(finding.fix),
                }
                for finding in findings
            ],
        }
        return json.dumps(document, indent=2, sort_keys=True) + "\n"
    held = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    kind = "predictions" if dataset.role == "pred" else "ground truth"
    return printable(f"{done.path}: {done.format}, from {dataset.format}: {kind}, {held}") + "\n"


def _require_ground_truth(options: RunOptions, gt: Path | None, role: str | None) -> None:
    """Raise a usage error for options on how predictions go with ground truth where there is only one of them."""
    context, usual = click.get_current_context(), SideOptions()
    if gt is not None and role == "gt":
        raise click.UsageError("--gt is for predictions; remove --role gt", context)
    # What a configuration holds is for all runs.
    checked = [option for option in PAIR_OPTIONS if option.name not in ("class_map", *EXEMPT.get())]
    given = [option for option in checked if getattr(options, str(option.name)) != getattr(usual, str(option.name))]
    if gt is None and given:
        raise click.UsageError(
            f"{', '.join(option.opts[0] for option in given)}: pass the ground truth with --gt", context
        )


_option = section("Output")

COMMAND = SectionedCommand(
    "convert",
    group="Data",
    callback=convert,
    help="Convert ground truth or predictions to another format.\n\n"
    "The suffix of OUT or --to sets the format. Boxes, classes and scores keep full precision. What OUT cannot hold,"
    " such as crowd flags in YOLO labels, stops the run without --lossy. An existing OUT is kept without --force.",
    short_help="Convert an input to another format.",
    epilog=EPILOG,
    params=[
        click.Argument(["source"], type=InputPath(LABELS), metavar="IN"),
        click.Argument(["target"], type=PATH, metavar="OUT"),
        _option(
            "--to",
            metavar="FORMAT",
            shell_complete=completed_from(known_formats),
            basic=True,
            help="Format of OUT (default: by its suffix).",
        ),
        _option(
            "--gt",
            type=InputPath(LABELS),
            metavar="PATH",
            basic=True,
            help="Ground truth of IN: take its image names, image sizes, ids and classes.",
        ),
        _option(
            "--iou-type",
            type=OneOf(("bbox", "segm", "keypoints", "obb")),
            metavar="KIND",
            basic=True,
            help="Shapes to write: bbox (none), segm, keypoints, obb. Default: those of IN.",
        ),
        _option(
            "--ids-from",
            type=InputPath(LABELS),
            metavar="PATH",
            basic=True,
            help="COCO ground truth that IN was converted from: keep the ids of its images, classes and objects.",
        ),
        _option("--lossy", is_flag=True, basic=True, help="Write what OUT can hold, and report what is lost."),
        _option("--force", is_flag=True, basic=True, help="Overwrite; a folder only if all its files are rewritten."),
        _option("--json", "as_json", is_flag=True, basic=True, help="Print only the JSON document."),
        "quiet",
        section(INPUT)(
            "--role",
            type=OneOf(ROLES),
            basic=True,
            help="Read IN as ground truth or as predictions (those have scores).",
        ),
        "input",
        "pairing",
        "findings",
    ],
)
