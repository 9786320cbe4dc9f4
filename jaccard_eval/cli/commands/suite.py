"""``jaccard-eval suite``: many models on many sets, in one table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.config import Config, texts_of
from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import (
    ListedCommand,
    SectionedCommand,
    read_bootstrap,
    rule_arguments,
    section,
    side_arguments,
)
from jaccard_eval.cli.parse import InputPath, RunOptions, WholeNumber, note_inputs, parse_toml, read_settings
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import ExitCode, UsageError
from jaccard_eval.findings import FindingLog
from jaccard_eval.text import pluralise, shown_json

EPILOG = """\b
Examples:
  jaccard-eval suite suite.toml
  jaccard-eval suite suite.toml --fail 'mean[model=yolo]>=0.5' -o suite.csv
  jaccard-eval suite experiments/ -o report/

\b
suite.toml:
  gt = "data/{set}/valid/_annotations.coco.json"
  pred = "runs/{model}/{set}.json"
  models = ["baseline", "yolo"]     # the first is compared with
  metric = "AP50"
  [options]                         # of evaluate, for all sets
  protocol = "coco"
  [set.boats]                       # and for one
  pred-box = "xyxy"
  [groups]
  aerial = ["dota*", "visdrone"]
"""
FILE = "suite.toml"
# Of a folder without a file.
LAYOUT = {"gt": "gt/{set}", "pred": "pred/{model}/{set}"}
READING = ("rules", "shapes", "input", "pairing")
_READING = ListedCommand("suite", group="Evaluate", params=[*READING])


def suite(
    options: RunOptions,
    *,
    plan: Path,
    fail: tuple[str, ...],
    processes: int | None,
    scheduler: str | None,
    cache: bool,
) -> ExitCode:
    """Run the command: everything is shown and written before what failed ends it."""
    from jaccard_eval.api.suites import SuitePlan, run_suite
    from jaccard_eval.report.write import is_folder_output

    given, folder = _read(plan)
    asked = SuitePlan.of({**given, "gates": [*given.get("gates", ()), *fail]})
    outputs = plan_files(options.output, folders=True)
    bootstrap = read_bootstrap(options)
    pages = any(map(is_folder_output, options.output))
    result = run_suite(asked, folder, bootstrap, workers=processes, scheduler=scheduler, cache=cache, pages=pages)
    report_findings(result.findings, options)
    deliver(result, outputs, options)
    if result.failed:
        n = pluralise(len(result.failed), "pair")
        streams.say(f"{streams.tagged('error', 'bad')}: {n} could not be evaluated, see the warnings")
        return ExitCode.DATA
    return ExitCode.GATE_FAILED if any(verdict.failed for verdict in result.gates) else ExitCode.OK


def _read(path: Path) -> tuple[dict[str, Any], Path]:
    """Return a plan whose options are keywords of `evaluate`, and the folder that its paths start from."""
    from jaccard_eval.api.suites import SuitePlan

    if path.is_dir():
        if not (path / FILE).exists():
            if all((path / pattern.partition("/")[0]).is_dir() for pattern in LAYOUT.values()):
                return dict(LAYOUT), path
            raise UsageError(f"{path}: expected {FILE} in it, or gt/SET and pred/MODEL/SET")
        path /= FILE
    note_inputs([path], "the suite")
    text = read_settings(path)
    content = dict(parse_toml(path, text))
    config = Config(path, text, content, "", typed=True)
    problems: list[str] = []
    with _collected(problems):
        SuitePlan.of({name: value for name, value in content.items() if name not in ("options", "set")})
    shared: dict[str, Any] = {}
    with _collected(problems):
        shared = _texts(config, "options", content.get("options", {}))
        content["options"] = _keywords(config, "options", shared)
    sets = content.get("set", {})
    for name, table in sets.items() if isinstance(sets, Mapping) else ():
        own = dict(table) if isinstance(table, Mapping) else table
        paths = {side: own.pop(side) for side in ("gt", "pred") if side in own} if isinstance(own, dict) else {}
        with _collected(problems):
            texts = _texts(config, f"set.{name}", own)
            # What a set has of its own is read with what all have: class names of one need the format of the other.
            keywords = _keywords(config, f"set.{name}", shared | texts) if texts else {}
            content["set"] = content["set"] | {name: keywords | paths}
    if problems:
        raise UsageError("\n".join(problems))
    return content, path.parent


@contextlib.contextmanager
def _collected(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        problems.append(str(error))


def _texts(config: Config, table: str, options: Any) -> dict[str, Any]:
    if not isinstance(options, Mapping):
        raise UsageError(f"{config.path}: {table}: expected a table of options, got {shown_json(options)}")
    return {str(param.name): text for param, text in texts_of(_READING, config, table, options)}


def _keywords(config: Config, table: str, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of `evaluate` that options mean, written as in a configuration."""
    try:
        context = _READING.make_context("suite", [], default_map=dict(texts))
    except click.UsageError as error:
        raise UsageError(f"{config.path}: {table}: {error.format_message()}") from None
    options = RunOptions(**{name: value for name, value in context.params.items() if value is not None})
    findings = FindingLog()
    every = rule_arguments(options) | side_arguments(options, findings)
    if found := findings.findings():
        streams.say("\n".join(map(str, found)))
    # How a side is read stands together in one keyword.
    wanted = {*texts, "gt_options", "pred_options"} if texts else set()
    return {name: value for name, value in every.items() if name in wanted}


COMMAND = SectionedCommand(
    "suite",
    group="Evaluate",
    callback=suite,
    help="Evaluate many models on many sets: one table, one page, one gate.\n\n"
    "PLAN is a file with the paths of ground truth and predictions, or a folder with suite.toml, or with gt/SET and"
    " pred/MODEL/SET. A pair that cannot be evaluated is reported and does not end the others. What is unchanged is not"
    " computed again.",
    short_help="Evaluate many models on many sets.",
    epilog=EPILOG,
    params=[
        click.Argument(["plan"], type=InputPath(), metavar="PLAN"),
        section("Gates (see docs/gates.md)")(
            "--fail",
            metavar="RULE",
            multiple=True,
            basic=True,
            help="Fail unless it holds: mean[model=M]>=0.5, rank[model=M]<=2, cell[model=M,set=S]>=0.4; also weighted,"
            " wins, mPC and rPC. Repeatable.",
        ),
        "bootstrap",
        section("Engine")(
            "--processes",
            type=WholeNumber(min=1),
            metavar="N",
            basic=True,
            help="Processes (default: one per processor).",
        ),
        section("Engine")("--scheduler", metavar="ADDRESS", basic=True, help="Evaluate on a Dask cluster."),
        section("Engine")(
            "--cache/--no-cache",
            default=True,
            basic=True,
            help="Keep results in .jaccard-eval-suite, and use those of unchanged files (default).",
        ),
        "output",
        "findings",
    ],
)
