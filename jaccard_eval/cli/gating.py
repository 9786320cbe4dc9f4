"""Gates on a command line: their options, what is read before anything is computed, and how a run with gates ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from jaccard_eval.cli import config, streams
from jaccard_eval.cli.inputs import InputPath, note_inputs
from jaccard_eval.cli.options import (
    PATH,
    SectionOption,
    adjusted,
    given_settings,
    is_group_file,
    read_bootstrap,
    require_resamples,
    section,
)
from jaccard_eval.cli.parse import RunOptions, parse_number
from jaccard_eval.errors import ExitCode, UsageError
from jaccard_eval.findings import as_settings
from jaccard_eval.text import printable, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.data.verdict import GateVerdict
    from jaccard_eval.features.gates.rules import Gates, Rule
    from jaccard_eval.features.pixels.result import PixelsResult
    from jaccard_eval.gating import Gating
    from jaccard_eval.options import Bootstrap
    from jaccard_eval.report.write import Output

    Judged = TypeVar("Judged", EvaluationResult, PixelsResult)

RULE_OPTIONS: dict[str, tuple[str, str | None]] = {  # the limit, and the significance
    "fail_under": ("min", None),
    "fail_over": ("max", None),
    "fail_drop": ("max_drop", None),
    "fail_significant_drop": ("max_drop", "significant-drop"),
    "fail_inferior": ("max_drop", "non-inferior"),
}
SECTION = "Gates (see docs/gates.md)"
_WORDS = {"fail": "failed", "warn": "warning", "skip": "skipped"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatekeeper:
    """What gates ask of a run.

    Parameters
    ----------
    gating : Gating, optional
        None where nothing is to be judged.
    source : str
        Where the rules come from.
    baseline : Path, optional
    updates : bool
        Whether the baseline is to be written.
    with_table : bool
        Whether a match table belongs to the baseline, in an archive beside it.
    exit_zero : bool
        Whether a failed gate is no failure of the run.
    quiet : bool
    """

    gating: Gating | None
    source: str
    baseline: Path | None
    updates: bool
    with_table: bool
    exit_zero: bool
    quiet: bool

    @property
    def outputs(self) -> list[Path]:
        """Files to write beside those that were asked for."""
        return self.files if self.updates else []

    @property
    def files(self) -> list[Path]:
        """The baseline, and the run beside it where one belongs to it."""
        if self.baseline is None:
            return []
        if not self.with_table:
            return [self.baseline]
        from jaccard_eval.runs import run_beside

        return [self.baseline, run_beside(self.baseline)]

    def judge(self, result: Judged) -> Judged:
        """Return the result with its verdicts."""
        if self.gating is None:
            return result
        gating = self.gating.without_other_baseline(result) if self.updates else self.gating
        if gating is not self.gating:
            streams.say(
                f"baseline {quoted_value(str(self.baseline))} is of other rules or ground truth: not compared with"
            )
        return gating.apply(result)

    def outputs_to_write(self, planned: Sequence[Output], gates: Sequence[GateVerdict]) -> list[Output]:
        """Return the outputs to write: a run that fails does not become the baseline."""
        return [output for output in planned if output.path not in self.outputs or not self._fails(gates)]

    def finish(self, gates: Sequence[GateVerdict], deliver: Callable[[], None]) -> ExitCode:
        """Write and show everything, say how the gates ended, and return the exit code.

        A reader of the standard output that has gone away does not turn a failed gate into a success.
        """
        try:
            deliver()
        except BrokenPipeError:
            streams.discard()
        for line in self._lines(gates):
            streams.say(printable(line))
        return ExitCode.GATE_FAILED if self._fails(gates) else ExitCode.OK

    def _fails(self, gates: Sequence[GateVerdict]) -> bool:
        return any(verdict.failed for verdict in gates) and not self.exit_zero

    def _lines(self, gates: Sequence[GateVerdict]) -> Iterator[str]:
        if gates:
            from jaccard_eval.report.checks import count_text, verdict_text

            loud = ("fail", "warn") if self.quiet else ("fail", "warn", "skip")
            yield from (f"gate {_WORDS[gate.status]}: {verdict_text(gate)}" for gate in gates if gate.status in loud)
            yield from [] if self.quiet else [f"gates of {self.source}: {count_text(gates)}"]
        if self.exit_zero and any(verdict.failed for verdict in gates):
            yield "a gate failed; the exit code is 0 because of --exit-zero"
        if self.updates and self._fails(gates):
            yield (
                f"baseline {quoted_value(str(self.baseline))} stays as it was: a gate failed; "
                "--exit-zero accepts the run"
            )
        elif self.updates and not self.quiet:
            yield f"baseline {' and '.join(quoted_value(str(path)) for path in self.files)} written"


def prepare(options: RunOptions) -> Gatekeeper:
    """Read rules, baseline and values from elsewhere, so that a run does not fail on them at its end.

    Raises
    ------
    UsageError
        When a rule, a file of rules or an option is wrong, or the baseline does not exist.
    SettingsError
        When the baseline or the file of values is not what it should be.
    """
    gates, source = configured_gates(options)
    baseline = named_baseline(gates, options)
    updates = options.update_baseline
    if gates is None:
        _refuse_options_without_rules(options, allowed=("baseline", "update_baseline") if updates else ())
    if not (gates and gates.asks_noise):
        require_resamples(options)
    if updates:
        _require_replaceable(baseline)
    keeper = Gatekeeper(
        gating=None if gates is None else make_gating(gates, baseline, options),
        source=source,
        baseline=baseline,
        updates=updates,
        with_table=baseline is not None and _has_table(gates, baseline),
        exit_zero=options.exit_zero,
        quiet=options.quiet,
    )
    if not updates:
        note_inputs(keeper.files, "the baseline")
    return keeper


def configured_gates(options: RunOptions) -> tuple[Gates | None, str]:
    """Return the gates of the configuration and of the options, None when neither has any; and where they are from."""
    rules = tuple(rule for name in RULE_OPTIONS for rule in getattr(options, name))
    named = options.config
    if named is not None and options.isolated:
        raise UsageError("--config names a configuration and --isolated uses none; give one of them")
    path = named if named is not None or options.isolated else config.find_config()
    gates = None if path is None else config.load_gates(path, further=rules)
    if path is not None and gates is not None:
        note_inputs([path], "the configuration")
        return _adapted(_relative_to(path.parent, gates), options), str(path)
    if named is not None:
        raise UsageError(
            f"{quoted_value(str(named))} has no gates: no [[gates.rules]] or [[tool.jaccard-eval.gates.rules]]"
        )
    if not rules:
        return None, ""
    from jaccard_eval.features.gates.rules import Gates

    return _adapted(Gates(rules=rules), options), "the command line"


def _relative_to(folder: Path, gates: Gates) -> Gates:
    """Return the gates with the paths of a configuration as they are from here."""
    baseline = None if gates.baseline is None else str(folder / gates.baseline)
    return replace(gates, baseline=baseline, bootstrap=gates.bootstrap and _grouped(folder, gates.bootstrap))


def _grouped(folder: Path, drawn: Bootstrap) -> Bootstrap:
    if not is_group_file(drawn.group_by):
        return drawn
    path = folder / str(drawn.group_by)
    note_inputs([path])
    return replace(drawn, group_by=str(path))


def _adapted(gates: Gates, options: RunOptions) -> Gates:
    """Let the baseline be missing where that is allowed or it is about to be made; resample as options say."""
    lenient = options.allow_missing_baseline or options.update_baseline
    return replace(
        gates,
        bootstrap=_drawn(gates, options),
        missing_baseline="pass" if lenient else gates.missing_baseline,
    )


def _drawn(gates: Gates, options: RunOptions) -> Bootstrap | None:
    """Return how to resample: as options say, what they leave open as configured; None where nothing asks for it."""
    asked = read_bootstrap(options)
    if asked or not gates.asks_noise or not given_settings(options):
        return asked or gates.bootstrap
    from jaccard_eval.options import Bootstrap

    return adjusted(gates.bootstrap or Bootstrap(), options)


def _has_table(gates: Gates | None, baseline: Path) -> bool:
    """Whether the baseline has a match table, or rules need one; an update keeps the two together."""
    from jaccard_eval.runs import is_saved_run, run_beside

    table = run_beside(baseline)
    if table == baseline or not os.path.lexists(table):
        return table != baseline and gates is not None and gates.needs_tables
    with as_settings():
        return is_saved_run(table)


def named_baseline(gates: Gates | None, options: RunOptions) -> Path | None:
    """Return the baseline: of the options, else of the configuration."""
    if options.baseline is not None:
        return Path(options.baseline)
    return None if gates is None or gates.baseline is None else Path(gates.baseline)


def _require_replaceable(baseline: Path | None) -> None:
    """Refuse to write a baseline over anything but one."""
    if baseline is None or baseline.suffix.lower() != ".json":
        raise UsageError("--update-baseline writes the file of --baseline, whose name ends in .json")
    if os.path.lexists(baseline):
        from jaccard_eval.gating import read_answers

        with as_settings():
            read_answers(baseline)


def make_gating(gates: Gates, baseline: Path | None, options: RunOptions) -> Gating:
    """Read what the rules need beyond the result."""
    from jaccard_eval.gating import Gating, open_baseline, read_metrics

    given = dict(options.metric)
    unused = sorted(name for name in given if f"external.{name}" not in {rule.metric for rule in gates.rules})
    if unused:
        raise UsageError(f'no rule uses --metric {unused[0]}: a rule on it has metric = "external.{unused[0]}"')
    stored = {} if options.metrics_file is None else read_metrics(options.metrics_file)
    answers, table = open_baseline(gates, baseline)
    return Gating(gates=gates, baseline=answers, external=stored | given, base=table)


def _refuse_options_without_rules(options: RunOptions, *, allowed: Sequence[str]) -> None:
    """Refuse options that only rules can use: a run that seems to be gated must not pass for want of rules."""
    names = ("baseline", "update_baseline", "allow_missing_baseline", "metric", "metrics_file", "exit_zero")
    idle = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) and name not in allowed]
    if idle:
        raise UsageError(f"{idle[0]} needs rules: --fail-under METRIC=VALUE and its like, or a configuration of gates")


def _parsed_rules(_: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Rule, ...]:
    if not texts:  # every option comes by here, and most runs have no rules
        return ()
    from jaccard_eval.features.gates.rules import Rule

    limit, significance = RULE_OPTIONS[str(param.name)]
    rules = []
    for text in texts:
        try:
            metric, value = _named_number(text, "METRIC=VALUE, such as AP50=0.5")
            name = f"{param.opts[0]} {text}"
            rules.append(Rule(metric=metric, id=name, significance=significance, **{limit: value}))  # type: ignore[arg-type]
        except UsageError as error:
            raise click.BadParameter(str(error), param=param) from None
    return tuple(rules)


def _parsed_metrics(_: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    try:
        pairs = tuple(_named_number(text, "NAME=VALUE, such as latency_ms=12.3") for text in texts)
    except UsageError as error:
        raise click.BadParameter(str(error), param=param) from None
    if len(dict(pairs)) < len(pairs):
        raise click.BadParameter("a name is given twice", param=param)
    return pairs


def _named_number(text: str, expected: str) -> tuple[str, float]:
    """Split at the last equals sign: a metric reference has some of its own."""
    name, equals, value = text.rpartition("=")
    if not equals or not name.strip() or value.strip().endswith("]"):
        raise UsageError(f"expected {expected}; got {quoted_value(text)}")
    return name.strip(), parse_number(value)


_option = section(SECTION)


def _rule_option(name: str, what: str) -> SectionOption:
    return _option(
        name, metavar="METRIC=VALUE", multiple=True, callback=_parsed_rules, help=f"{what} Repeatable. Exit code 1."
    )


RULE_SOURCES: list[click.Parameter] = [
    _rule_option("--fail-under", "Fail when a metric is lower: 'AP50=0.5', 'recall[iou=0.5,score=0.4,class=dog]=0.9'."),
    _rule_option("--fail-over", "Fail when a metric is higher."),
    _rule_option("--fail-drop", "Fail when a metric has dropped by more since the baseline."),
    _rule_option("--fail-significant-drop", "The same, but only when resampling says that the drop is no chance."),
    _rule_option("--fail-inferior", "Fail unless resampling says that a metric has dropped by less."),
    _option(
        "--config",
        type=InputPath(),
        metavar="FILE",
        help="Rules: a TOML or YAML file. When not given: jaccard-eval.toml, .yaml, or pyproject.toml with"
        " [tool.jaccard-eval], in the nearest folder upward.",
    ),
    _option("--isolated", is_flag=True, help="Look for no configuration."),
]
BASELINE_OPTIONS: list[click.Parameter] = [
    _option(
        "--baseline", type=PATH, metavar="FILE", help="Result to compare with: a JSON document or saved run (.npz)."
    ),
    _option(
        "--allow-missing-baseline", is_flag=True, help="Skip rules on changes, and say so, while no baseline exists."
    ),
]
UPDATE_OPTION = _option(
    "--update-baseline", is_flag=True, help="Write the result to the baseline, unless a gate fails; never done unasked."
)
VALUE_OPTIONS: list[click.Parameter] = [
    _option(
        "--metric",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_parsed_metrics,
        help="A value measured elsewhere, for rules on external.NAME. Repeatable.",
    ),
    _option(
        "--metrics-file", type=InputPath(), metavar="FILE", help="Such values as a JSON object; nested names have dots."
    ),
    _option("--exit-zero", is_flag=True, help="End with 0 even when a gate failed."),
]
GATE_OPTIONS = [*RULE_SOURCES, *BASELINE_OPTIONS, UPDATE_OPTION, *VALUE_OPTIONS]
