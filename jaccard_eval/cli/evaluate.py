"""``jaccard-eval evaluate``: read both sides, compute once, show and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import EXIT_CODES, _streams
from jaccard_eval.cli._options import (
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    PAIR_OPTIONS,
    PATH_OPTIONS,
    PROTOCOL_OPTIONS,
    SectionedCommand,
)
from jaccard_eval.errors import DataError, FindingLog, Severity

if TYPE_CHECKING:
    from jaccard_eval.data.protocol import AreaRange
    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.formats import ReadOptions
    from jaccard_eval.formats._images import ImageFolder
    from jaccard_eval.report import ReportOptions
    from jaccard_eval.report._write import Output

STDOUT_PATHS = (Path("-"), Path("/dev/stdout"))
ROLES = ("gt", "pred")
PASSED_ON = (
    "protocol",
    "iou",
    "max_dets",
    "class_agnostic",
    "score_min",
    "score",
    "class_map",
    "match_images",
    "extra_images",
    "gt_format",
    "pred_format",
)
EPILOG = f"""\b
Examples:
  jaccard-eval gt.json detections.json
  jaccard-eval evaluate gt.json detections.json --per-class --sort AP
  jaccard-eval evaluate labels/ predictions/ --names classes.txt --images images/
  jaccard-eval evaluate gt.csv detections.json --protocol voc2012 --iou 0.5,0.75
  jaccard-eval evaluate gt.json detections.json --score best-f1 -o report.md -o result.json
  jaccard-eval evaluate gt.json detections.json --json | jq .metrics.AP

{EXIT_CODES}"""


def evaluate(**options: Any) -> None:
    """Run the command."""
    gt, pred = _sides(options["paths"], options["gt"], options["pred"])
    outputs = _plan_outputs(options["output"], [gt, pred])
    result = _compute(gt, pred, options)
    _report_findings(result, options)
    _deliver(result, outputs, options)


def _sides(paths: Sequence[Path], gt: Sequence[Path], pred: Sequence[Path]) -> tuple[Path, Path]:
    """Take each side from its option, else from the next path."""
    rest = list(paths)
    sides = []
    for name, given in (("GT", gt), ("PRED", pred)):
        if len(given) > 1:
            raise click.UsageError(f"{name} is given {len(given)} times", click.get_current_context())
        if not given and not rest:
            raise click.UsageError(f"Missing argument '{name}'.", click.get_current_context())
        sides.append(given[0] if given else rest.pop(0))
    if rest:
        raise click.UsageError(f"Got unexpected extra argument ({rest[0]})", click.get_current_context())
    return sides[0], sides[1]


def _plan_outputs(paths: Sequence[Path], inputs: Sequence[Path]) -> list[Output]:
    """Check the outputs before anything is computed; the standard output needs no plan."""
    if not any(path not in STDOUT_PATHS for path in paths):
        return []
    from jaccard_eval.report._write import plan_outputs

    return plan_outputs([path for path in paths if path not in STDOUT_PATHS], inputs)


def _compute(gt: Path, pred: Path, options: dict[str, Any]) -> EvaluationResult:
    from jaccard_eval import api

    log = FindingLog()
    gt_options, pred_options = _read_options(options, log)
    result = api.evaluate(
        gt,
        pred,
        areas=_areas(options["areas"], options["protocol"]),
        classes=options["classes"] or (),
        exclude_classes=options["exclude_classes"] or (),
        gt_options=gt_options,
        pred_options=pred_options,
        **{name: options[name] for name in PASSED_ON},
    )
    return replace(result, findings=(*log.findings(), *result.findings))


def _areas(ranges: tuple[AreaRange, ...] | None, protocol: str) -> tuple[AreaRange, ...] | None:
    """Put the range that headline metrics use first, the protocol's own when none is given."""
    if ranges is None:
        return None
    from jaccard_eval.data.protocol import get_protocol

    everything = get_protocol(protocol).areas[0]
    own = [area for area in ranges if area.name == everything.name] or [everything]
    return (*own, *(area for area in ranges if area.name != everything.name))


def _read_options(options: dict[str, Any], log: FindingLog) -> tuple[ReadOptions, ReadOptions]:
    """How to read either side; what both share is loaded once."""
    from jaccard_eval.formats import ReadOptions

    names = {role: options[f"{role}_names"] or options["names"] for role in ROLES}
    folders = {role: options[f"{role}_images"] or options["images"] for role in ROLES}
    loaded = {spec: _load_names(spec, log) for spec in names.values()}
    indexed = {folder: _index_images(folder) for folder in folders.values()}
    gt, pred = (
        ReadOptions(
            role=role,
            box=options[f"{role}_box"],
            units=options[f"{role}_units"],
            names=loaded[names[role]],
            images=indexed[folders[role]],
            columns=options[f"{role}_columns"],
            split=options["split"],
            assume_score=options["assume_score"] if role == "pred" else None,
        )
        for role in ROLES
    )
    return gt, pred


def _load_names(spec: str | None, log: FindingLog) -> tuple[str, ...] | None:
    if spec is None:
        return None
    from jaccard_eval.formats._names import load_names

    return load_names(spec, log)


def _index_images(folder: Path | None) -> ImageFolder | None:
    if folder is None:
        return None
    from jaccard_eval.formats._images import ImageFolder

    return ImageFolder(folder)


def _report_findings(result: EvaluationResult, options: dict[str, Any]) -> None:
    """Say warnings and notes; with --strict, warnings end the run before anything is written."""
    warned = any(finding.severity is Severity.WARNING for finding in result.findings)
    if options["strict"] and warned:
        errors = (f for f in result.findings if f.severity is Severity.WARNING)
        raise DataError([replace(finding, severity=Severity.ERROR) for finding in errors])
    severities = (Severity.WARNING,) if options["quiet"] else (Severity.WARNING, Severity.NOTE)
    text = _streams.findings_text(result.findings, severities)
    if text:
        _streams.say(text)


def _deliver(result: EvaluationResult, outputs: Sequence[Output], options: dict[str, Any]) -> None:
    """Write all files, then the standard output: a closed pipe costs no file."""
    if outputs:
        from jaccard_eval.report._write import write_outputs

        file_options = _report_options(options)
        write_outputs([(output, output.reporter.render(result, file_options)) for output in outputs])
    _streams.write_result(_stdout_text(result, options))


def _stdout_text(result: EvaluationResult, options: dict[str, Any]) -> str:
    from jaccard_eval.report import reporter_for

    suffix = ".json" if options["as_json"] else ".txt"
    return reporter_for(suffix).render(result, _stream_options(_report_options(options), options["color"]))


def _report_options(options: dict[str, Any]) -> ReportOptions:
    from jaccard_eval.report import ReportOptions

    return ReportOptions(per_class=options["per_class"] or options["sort"] is not None, sort=options["sort"])


def _stream_options(options: ReportOptions, color: str) -> ReportOptions:
    import sys

    return replace(
        options,
        color=_streams.wants_color(color, sys.stdout),
        width=_streams.result_width(),
        encoding=sys.stdout.encoding or "utf-8",
    )


COMMAND = SectionedCommand(
    "evaluate",
    callback=evaluate,
    help="Evaluate predictions against ground truth.\n\n"
    "GT and PRED are files or folders of any format; format, box encoding, units, and how images and classes of the"
    " two sides correspond are found by looking, and printed. What is ambiguous stops with the option that settles it.",
    short_help="Evaluate predictions against ground truth.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["paths"], nargs=-1, type=click.Path(path_type=Path), metavar="GT PRED"),
        *PATH_OPTIONS,
        *PROTOCOL_OPTIONS,
        *INPUT_OPTIONS,
        *PAIR_OPTIONS,
        *OUTPUT_OPTIONS,
    ],
)
