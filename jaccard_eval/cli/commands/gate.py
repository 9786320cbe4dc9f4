"""``jaccard-eval gate``: judge a saved result by rules, without computing it again."""

from __future__ import annotations

from pathlib import Path

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.config import config_schema
from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.gating import BASELINE_OPTIONS, RULE_SOURCES, SECTION, VALUE_OPTIONS, Gatekeeper
from jaccard_eval.cli.options import SectionedCommand, section
from jaccard_eval.cli.parse import InputPath, RunOptions, note_inputs
from jaccard_eval.cli.run import report_findings
from jaccard_eval.errors import ExitCode, UsageError
from jaccard_eval.version import __version__

EPILOG = """\b
Examples:
  jaccard-eval gate result.json --fail-under AP50=0.5
  jaccard-eval gate result.json --fail-drop AP=0.01 --baseline main.json
  jaccard-eval gate result.json --config gates.toml -o report.md
  jaccard-eval gate result.json --metric ms=12.3 --fail-over external.ms=15
  jaccard-eval gate --schema > jaccard-eval.schema.json

A saved result has the summary, the classes, the operating points and all that
the gates of its run measured. For other rules, use the saved run (.npz) or
evaluate again. Significance rules need the .npz next to both documents.
"""


def gate(options: RunOptions, *, result: Path | None, schema: bool) -> ExitCode:
    """Run the command: everything is shown and written before a failed gate ends it."""
    if schema:
        import json

        streams.write_result(json.dumps(config_schema(), indent=2) + "\n")
        return ExitCode.OK
    if result is None:
        raise click.UsageError("Missing argument 'RESULT'.", click.get_current_context())
    keeper = Gatekeeper(options)
    if keeper.gating is None:
        raise UsageError("no rules: add a limit, such as --fail-under AP=0.5, or configure gates in pyproject.toml")
    from jaccard_eval.gating import judge_result
    from jaccard_eval.runs import run_beside

    note_inputs([run_beside(result)])
    outputs = plan_files(options.output)
    # A baseline that may be missing, and is, is not named in the report.
    baseline = None if keeper.gating.baseline is None else keeper.baseline
    judged = judge_result(result, keeper.gating, baseline=baseline, version=__version__)
    report_findings(judged.findings, options)
    return keeper.finish(judged.gates, lambda: deliver(judged, outputs, options))


COMMAND = SectionedCommand(
    "gate",
    group="CI",
    callback=gate,
    help="Check a saved result against rules, without evaluating again.\n\n"
    "RESULT is the JSON document of 'evaluate' or 'pixels', or a saved run (.npz). Exits with 1 if a rule of severity"
    " error fails.",
    short_help="Check a saved result against rules.",
    epilog=EPILOG,
    params=[
        click.Argument(["result"], type=InputPath(), metavar="RESULT", required=False),
        *RULE_SOURCES,
        *BASELINE_OPTIONS,
        *VALUE_OPTIONS,
        "bootstrap",
        section(SECTION)(
            "--schema", is_flag=True, basic=True, help="Print the JSON Schema of the configuration, and exit."
        ),
        "output",
        "findings",
    ],
)
