"""Gates on a command line: their options, where they are configured, and how a run with gates ends."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.config import CONFIG, Config
from jaccard_eval.cli.options import (
    PATH,
    SectionOption,
    adjusted,
    completed_from,
    given_settings,
    is_group_file,
    metric_names,
    read_bootstrap,
    require_resamples,
    section,
)
from jaccard_eval.cli.parse import InputPath, RunOptions, input_path, note_inputs, parse_number, read_settings
from jaccard_eval.errors import ExitCode, UsageError
from jaccard_eval.findings import as_settings, is_address
from jaccard_eval.options import EXEMPT, Bootstrap
from jaccard_eval.text import printable, quoted_value

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult, GateVerdict
    from jaccard_eval.features.gates import Gates, Rule
    from jaccard_eval.features.panoptic import PanopticResult
    from jaccard_eval.features.pixels import PixelsResult
    from jaccard_eval.report.write import Output

    Judged = TypeVar("Judged", EvaluationResult, PixelsResult, PanopticResult)

RULE_OPTIONS: dict[str, tuple[str, str | None]] = {  # the limit, and the significance
    "fail_under": ("min", None),
    "fail_over": ("max", None),
    "fail_drop": ("max_drop", None),
    "fail_significant_drop": ("max_drop", "significant-drop"),
    "fail_inferior": ("max_drop", "non-inferior"),
}
SECTION = "Gates (see docs/gates.md)"
_WORDS = {"fail": "failed", "warn": "warning", "skip": "skipped"}


class Gatekeeper:
    """What gates ask of a run: read before anything is computed, so that a run does not fail on it at its end.

    `against` is whether the run is compared with other predictions, see `Gating`; `saves_runs` whether there is an .npz
    of its result.
    """

    def __init__(self, options: RunOptions, *, against: bool | None = None, saves_runs: bool = True) -> None:
        gates, found = configured_gates(options)
        if found and not options.quiet:
            streams.say(printable(f"gates from {found}"))
        named = options.baseline or (gates and gates.baseline)
        self.baseline = input_path(named) if named else None
        self._folder: int | None = None  # locked while its baseline is judged by and replaced
        self.options = options
        if gates is None:
            self._refuse_options_without_rules()
        if not (gates and gates.asks_noise):
            require_resamples(options)
        if options.update_baseline:
            self._require_replaceable()
        self.gating = None
        if gates is not None:
            from jaccard_eval.gating import Gating, read_metrics

            given = dict(options.metric)
            unused = sorted({f"external.{name}" for name in given} - {rule.metric for rule in gates.rules})
            if unused:
                name = unused[0].removeprefix("external.")
                raise UsageError(f"no rule uses --metric {name}; add --fail-over external.{name}=LIMIT")
            held = EXEMPT.get()  # by a configuration, for all runs
            asks_baseline = gates.asks_noise or any(rule.needs_baseline for rule in gates.rules)
            if options.allow_missing_baseline and "allow_missing_baseline" not in held and not asks_baseline:
                raise UsageError("--allow-missing-baseline needs a rule on a change; add --fail-drop METRIC=VALUE")
            asks_value = any(rule.is_external for rule in gates.rules)
            if options.metrics_file is not None and "metrics_file" not in held and not asks_value:
                raise UsageError("no rule uses --metrics-file; add --fail-over external.NAME=LIMIT")
            stored = {} if options.metrics_file is None else read_metrics(options.metrics_file)
            self.gating = Gating(gates, self.baseline, stored | given, against=against)
        # The files of the baseline: the document, and the run next to it where one belongs to it.
        self.files = [] if self.baseline is None else [self.baseline]
        if self.baseline is not None and saves_runs:
            self.files = self._files(self.baseline, gates)
        self.new_folders = {path.parent for path in self.files if not os.path.lexists(path.parent)}
        if not options.update_baseline:
            note_inputs(self.files, "the baseline")

    @property
    def outputs(self) -> list[Path]:
        """Files to write besides those that were asked for."""
        return self.files if self.options.update_baseline else []

    def judge(self, result: Judged) -> Judged:
        """Return the result with its verdicts."""
        if self.options.update_baseline and self.baseline is not None:
            self._take(self.baseline, result)
        if self.gating is None:
            return result
        # A run that is to become the baseline need not be comparable with the one that it replaces.
        if self.options.update_baseline and self.gating.drop_other_baseline(result):
            streams.say(
                f"baseline {quoted_value(str(self.baseline))} has different rules or ground truth; not compared"
            )
        return self.gating.apply(result)

    def outputs_to_write(self, planned: Sequence[Output], gates: Sequence[GateVerdict]) -> list[Output]:
        """Return the outputs to write: a run that fails does not become the baseline."""
        return [output for output in planned if output.path not in self.outputs or not self._fails(gates)]

    def finish(self, gates: Sequence[GateVerdict], deliver: Callable[[], None]) -> ExitCode:
        """Write and show everything, report how the gates ended, and return the exit code."""
        is_told = not self.options.as_json  # by the report, whose last line is the first requirement that failed
        try:
            deliver()
        except BrokenPipeError:  # a reader that has gone away does not turn a failed gate into a success
            streams.discard()
            is_told = False
        quiet, updates = self.options.quiet, self.options.update_baseline
        lines: list[str] = []
        if gates and not is_told:
            from jaccard_eval.report.checks import verdict_text
            from jaccard_eval.report.sections import LOOKS

            loud = [gate for gate in gates if gate.status in _WORDS and not (quiet and gate.status == "skip")]
            tags = (streams.tagged(f"gate {_WORDS[gate.status]}", LOOKS[gate.status]) for gate in loud)
            lines += [f"{tag}: {printable(verdict_text(gate))}" for tag, gate in zip(tags, loud, strict=True)]
        if self.options.exit_zero and any(verdict.failed for verdict in gates):
            lines.append("a gate failed; exit code 0 because of --exit-zero")
        if updates and self._fails(gates):
            lines.append(
                f"baseline {quoted_value(str(self.baseline))} not updated, because a gate failed; "
                "accept the run with --exit-zero"
            )
        elif updates and not quiet:
            made = "".join(f"made folder {quoted_value(str(folder))}; " for folder in self.new_folders)
            lines.append(f"{made}wrote baseline {' and '.join(quoted_value(str(path)) for path in self.files)}")
        for line in lines:
            streams.say(line)
        if self._folder is not None:
            os.close(self._folder)
        return ExitCode.GATE_FAILED if self._fails(gates) else ExitCode.OK

    def _fails(self, gates: Sequence[GateVerdict]) -> bool:
        return any(verdict.failed for verdict in gates) and not self.options.exit_zero

    def _refuse_options_without_rules(self) -> None:
        """Refuse options that only rules can use: a run that seems to be gated must not pass for want of rules."""
        names = ["allow_missing_baseline", "metric", "metrics_file", "exit_zero"]
        # The first baseline is made by a run that may have no rules yet.
        names = names if self.options.update_baseline else ["baseline", *names]
        for name in names:
            if getattr(self.options, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} needs rules; add --fail-under METRIC=VALUE, or configure gates"
                    " in pyproject.toml"
                )

    def _require_replaceable(self) -> None:
        """Refuse to write a baseline over anything but one."""
        if self.baseline is None or self.baseline.suffix.lower() != ".json":
            raise UsageError("--update-baseline needs --baseline FILE.json")
        if os.path.lexists(self.baseline):
            from jaccard_eval.gating import read_answers

            with as_settings():
                read_answers(self.baseline)

    def _take(self, baseline: Path, result: Judged) -> None:
        """Keep other runs from replacing the baseline until this one ends, and read it as it is now."""
        if fcntl is not None and baseline.parent.is_dir() and not is_address(baseline):
            self._folder = os.open(baseline.parent, os.O_RDONLY)
            fcntl.flock(self._folder, fcntl.LOCK_EX)
        if not os.path.lexists(baseline):
            return
        from jaccard_eval.gating import read_answers

        with as_settings():
            kind = read_answers(baseline).kind
            if kind != result.kind:
                raise UsageError(
                    f"baseline {quoted_value(str(baseline))} is a result of kind {kind}, and this is one of kind"
                    f" {result.kind}. Name another file."
                )
            # A better run may have become the baseline meanwhile.
            if self.gating is not None:
                self.gating.open(baseline)

    def _files(self, baseline: Path, gates: Gates | None) -> list[Path]:
        """Return the baseline, with the run next to it where it has one or rules need one: an update keeps both."""
        from jaccard_eval.runs import is_saved_run, run_beside

        table = run_beside(baseline)
        if table == baseline:
            return [baseline]
        if os.path.lexists(table):
            with as_settings():
                has_table = is_saved_run(table)
        else:
            has_table = gates is not None and gates.needs_tables
        return [baseline, table] if has_table else [baseline]


def _beside(path: Path, given: str) -> str:
    """Return a path of a configuration: relative to its folder, unless it is a URL."""
    return given if is_address(given) else str(path.parent / given)


def configured_gates(options: RunOptions) -> tuple[Gates | None, Path | None]:
    """Return the gates that are configured and given, None without any, and their file where nobody named it."""
    rules = tuple(rule for name in RULE_OPTIONS for rule in getattr(options, name))
    found = None
    config: Config | None = click.get_current_context().meta.get(CONFIG)
    if options.config is not None and options.isolated:
        raise UsageError("--config and --isolated exclude each other; remove one of them")
    gates = None if config is None else load_gates(config, further=rules)
    if gates is not None and not gates.rules:
        return None, None  # the limit of suspects is for labels
    if config is not None and gates is not None:
        path = config.path
        note_inputs([path], "the configuration")
        found = None if options.config else path
        # Paths in a configuration are relative to it, and from here on to where the command runs.
        if gates.baseline is not None:
            gates = replace(gates, baseline=_beside(path, gates.baseline))
        if gates.bootstrap and is_group_file(gates.bootstrap.group_by):
            groups = _beside(path, str(gates.bootstrap.group_by))
            note_inputs([Path(groups)])
            gates = replace(gates, bootstrap=replace(gates.bootstrap, group_by=groups))
    elif options.config and config and not config.tables:
        raise UsageError(
            f"{quoted_value(str(config.path))} has no gates; add [[gates.rules]] or [[tool.jaccard-eval.gates.rules]]"
        )
    elif not rules:
        return None, None
    else:
        from jaccard_eval.features.gates import Gates

        gates = Gates(rules=rules)
    # A baseline may be missing where that is allowed, or where this run is about to make it.
    if options.allow_missing_baseline or options.update_baseline:
        gates = replace(gates, missing_baseline="pass")
    # Options go before the configuration, which keeps what they leave open.
    drawn = read_bootstrap(options)
    if drawn is None and gates.asks_noise and given_settings(options):
        drawn = adjusted(gates.bootstrap or Bootstrap(), options)
    return (replace(gates, bootstrap=drawn) if drawn else gates), found


def most_suspects() -> int | None:
    """Return how many suspected labels the configuration of the command allows; None where it has no such limit."""
    config: Config | None = click.get_current_context().meta.get(CONFIG)
    gates = None if config is None else load_gates(config)
    if config is not None and gates is not None and gates.suspects is not None:
        note_inputs([config.path], "the configuration")
    return None if gates is None else gates.suspects


def load_gates(config: Config, *, further: Sequence[Rule] = ()) -> Gates | None:
    """Return the gates that a configuration has, with `further` rules behind its own; None when it has none."""
    from jaccard_eval.features.gates import ConfigText, parse_config

    gates = config.tables.get("gates")
    rules = gates.get("rules") if isinstance(gates, Mapping) else None
    # TOML libraries give no lines: headers are counted in the text, and trusted where there are as many as rules.
    header = r"""(?m)^\s*\[\[\s*(?:tool\s*\.\s*["']?jaccard-eval["']?\s*\.\s*)?gates\s*\.\s*rules\s*\]\]"""
    lines = [config.text.count("\n", 0, match.end()) + 1 for match in re.finditer(header, config.text)]

    def read_names(name: str) -> tuple[str, ...]:
        listed = input_path(_beside(config.path, name))
        note_inputs([listed])
        stripped = map(str.strip, read_settings(listed).splitlines())
        return tuple(line for line in stripped if line and not line.startswith("#"))

    place = ConfigText(
        path=str(config.path),
        table=config.prefix,
        typed=config.typed,
        rule_lines=lines if len(lines) == len(rules if isinstance(rules, list) else ()) else (),
        read_names=read_names,
    )
    return parse_config({} if gates is None else {"gates": gates}, place, further=further)


def _parsed_rules(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Rule, ...]:
    if not texts or ctx.resilient_parsing:  # every option comes by here, and most runs have no rules
        return ()
    from jaccard_eval.features.gates import Rule

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
        raise click.BadParameter("the same name is given twice", param=param)
    return pairs


def _named_number(text: str, expected: str) -> tuple[str, float]:
    """Split at the last equals sign: a metric reference has some of its own."""
    name, equals, value = text.rpartition("=")
    if not equals or not name.strip() or value.strip().endswith("]"):
        raise UsageError(f"expected {expected}; got {quoted_value(text)}")
    return name.strip(), parse_number(value)


_option = section(SECTION)


def _rule_option(name: str, text: str, *, basic: bool = False) -> SectionOption:
    return _option(
        name,
        metavar="METRIC=VALUE",
        multiple=True,
        basic=basic,
        callback=_parsed_rules,
        shell_complete=completed_from(lambda: [f"{metric}=" for metric in metric_names()]),
        help=text,
    )


RULE_SOURCES: list[click.Parameter] = [
    _rule_option("--fail-under", "Fail (exit code 1) if the metric is lower.", basic=True),
    _rule_option("--fail-over", "Fail if the metric is higher."),
    _rule_option("--fail-drop", "Fail if it is lower than the baseline by more.", basic=True),
    _rule_option(
        "--fail-significant-drop", "Like --fail-drop, only if the drop is statistically significant (bootstrap)."
    ),
    _rule_option("--fail-inferior", "Fail unless the drop is significantly smaller (bootstrap)."),
]
BASELINE_OPTIONS: list[click.Parameter] = [
    _option(
        "--baseline", type=PATH, metavar="FILE", basic=True, help="Result to compare with: .json, or a run (.npz)."
    ),
    _option("--allow-missing-baseline", is_flag=True, help="Skip rules on changes while there is no baseline."),
]
UPDATE_OPTION = _option(
    "--update-baseline", is_flag=True, help="Write the result to the baseline, unless a gate fails; make its folder."
)
VALUE_OPTIONS: list[click.Parameter] = [
    _option(
        "--metric",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_parsed_metrics,
        help="Value measured elsewhere, for rules on external.NAME. Repeatable.",
    ),
    _option(
        "--metrics-file", type=InputPath(), metavar="FILE", help="JSON object of such values; dots join nested names."
    ),
    _option("--exit-zero", is_flag=True, help="Exit with 0 even if a gate failed."),
]
GATE_OPTIONS = [*RULE_SOURCES, *BASELINE_OPTIONS, UPDATE_OPTION, *VALUE_OPTIONS]
