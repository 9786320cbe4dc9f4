"""Quality gates around their judging: saved results, the baseline, match tables, values from elsewhere."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jaccard_eval.data.document import Rows
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import BESIDE_METRICS, without_fields
from jaccard_eval.data.verdict import GateResult, GateVerdict
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.intervals import count_units, resample_alike, warn_if_few
from jaccard_eval.features.gates.compute import judge, require_comparable
from jaccard_eval.features.gates.lookup import KINDS, Answers, SavedAnswers, answers_of
from jaccard_eval.features.gates.noise import PairedRuns, find_ties, gate_findings, weigh_noise
from jaccard_eval.features.gates.rules import Gates
from jaccard_eval.features.pixels.result import PixelsResult
from jaccard_eval.findings import DataError, Finding, FindingLog, Where, as_settings, is_address
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.options import Bootstrap
from jaccard_eval.reading.files import is_there
from jaccard_eval.runs import (
    invalid_document,
    is_saved_run,
    load_run,
    read_document,
    read_result,
    run_beside,
    saved_protocol,
)
from jaccard_eval.text import quoted_value, shown_json

DUPLICATES = "pred-duplicate"

Judged = TypeVar("Judged", EvaluationResult, PixelsResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gating:
    """Gates with all that it takes to judge by them.

    Parameters
    ----------
    gates : Gates
    baseline : Answers, optional
    external : mapping of str to float
        Values that are measured elsewhere, by name.
    base : EvaluationResult, optional
        The baseline with its match table, where rules ask for it.
    """

    gates: Gates
    baseline: Answers | None = None
    external: Mapping[str, float] = field(default_factory=dict)
    base: EvaluationResult | None = None

    def without_other_baseline(self, result: EvaluationResult | PixelsResult) -> Gating:
        """Leave out a baseline of other rules or other ground truth, for a run that is to take its place."""
        try:
            if self.baseline is not None:
                require_comparable(answers_of(result), self.baseline)
        except UsageError:
            return replace(self, baseline=None, base=None, gates=replace(self.gates, missing_baseline="pass"))
        return self

    def judge(self, run: Answers, table: EvaluationResult | None) -> tuple[GateVerdict, ...]:
        """Judge anything that answers references, with its match table where there is one.

        For the errors see `judge` and `weigh`.
        """
        verdicts = judge(self.gates, run, baseline=self.baseline, external=self.external)
        if self.gates.asks_noise:
            verdicts = weigh(verdicts, self.gates, table, self.base)
        return verdicts if table is None else _with_ties(verdicts, self.gates, table)

    def apply(self, result: Judged) -> Judged:
        """Return a result with its verdicts, and what makes these doubtful among its findings."""
        table = result if isinstance(result, EvaluationResult) else None
        verdicts: tuple[GateVerdict, ...] = self.judge(answers_of(result), table)
        known: bool = any(finding.code == "bootstrap-few" for finding in result.findings)
        return result.with_part(Rows("gates", verdicts), findings=(*result.findings, *_remarks(verdicts, told=known)))


def judge_result(
    result: EvaluationResult | PixelsResult | str | os.PathLike[str],
    gates: Gates,
    baseline: EvaluationResult | PixelsResult | str | os.PathLike[str] | None,
    metrics: Mapping[str, float],
) -> tuple[GateVerdict, ...]:
    """Judge a result by rules; see `api.gate`."""
    compared, base = open_baseline(gates, baseline)
    run, table = _opened(result, gates)
    return Gating(gates=gates, baseline=compared, external=metrics, base=base).judge(run, table)


def gate_saved(path: Path, gating: Gating, *, baseline: str | None, version: str) -> GateResult:
    """Judge a saved result again; `baseline` is its name for the report."""
    run, table = _opened(path, gating.gates)
    verdicts = gating.judge(run, table)
    return GateResult(
        version=version,
        path=str(path),
        signature=run.signature,
        baseline=baseline,
        gates=verdicts,
        findings=_remarks(verdicts),
    )


def open_baseline(
    gates: Gates, source: EvaluationResult | PixelsResult | str | os.PathLike[str] | None
) -> tuple[Answers | None, EvaluationResult | None]:
    """Return what a baseline answers and, where rules ask for it, its match table; None where that may be missing.

    Raises
    ------
    UsageError
        When a rule needs a baseline and none is named, or the file or its match table does not exist and
        ``gates.missing_baseline`` says that this is an error.
    SettingsError
        When the file is no result: it belongs to the rules.
    """
    needing = [rule.id for rule in gates.rules if rule.needs_baseline]
    if source is None and needing:
        raise UsageError(f"rule {quoted_value(needing[0])} compares with a baseline; name one with --baseline FILE")
    if source is None:
        return None, None
    if isinstance(source, EvaluationResult | PixelsResult):
        return _opened(source, gates)
    with as_settings():
        if is_there(Path(source)) or is_address(source):
            return _opened(source, gates)
    if gates.missing_baseline == "error":
        way_out = (
            "make it with --update-baseline, or let the rules that need it be skipped with --allow-missing-baseline"
        )
        raise UsageError(f"baseline {quoted_value(str(source))} does not exist; {way_out}")
    return None, None


def read_answers(path: Path) -> SavedAnswers:
    """Return what a saved result answers.

    Raises
    ------
    DataError
        When it is no result of an evaluation, or lacks what gates need.
    """
    document = read_result(path, KINDS)
    try:
        if document["kind"] == EvaluationResult.kind:
            saved_protocol(document["protocol"])
        return SavedAnswers(document, str(path))
    except UsageError as error:
        raise invalid_document(path, f"cannot be judged: {error}") from None


@as_settings()
def read_metrics(path: Path) -> dict[str, float]:
    """Return the numbers of a JSON document by name; those in nested objects as ``outer.inner``, null as NaN.

    Raises
    ------
    SettingsError
        When it cannot be read or is no JSON object.
    """
    document = read_document(path)
    if not isinstance(document, dict):
        detail = f"is {shown_json(document)}; expected an object of numbers by name"
        raise DataError.single("record-type", Where(str(path)), detail, fix='Write {"latency_ms": 12.3} and the like.')
    return dict(_numbers(document, ""))


def _numbers(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}.")
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield f"{prefix}{name}", math.nan if value is None else float(value)


def _remarks(verdicts: Sequence[GateVerdict], *, told: bool = False) -> tuple[Finding, ...]:
    """Return what makes verdicts doubtful; that there are few images may be told already."""
    findings = gate_findings(verdicts)
    if told or all(verdict.spread is None for verdict in verdicts):
        return findings
    return (*findings, *few_units(verdicts))


def _with_ties(verdicts: tuple[GateVerdict, ...], gates: Gates, run: EvaluationResult) -> tuple[GateVerdict, ...]:
    """Say where the order of equal scores decides; repeated boxes tie by nature."""
    repeated = any(finding.code == DUPLICATES for finding in run.findings)
    if repeated or not isinstance(run.measured, DetectionMetrics):
        return verdicts
    return find_ties(verdicts, gates, run.measured)


def _opened(
    source: EvaluationResult | PixelsResult | str | os.PathLike[str], gates: Gates
) -> tuple[Answers, EvaluationResult | None]:
    """Return what a result answers, and itself with its match table as far as it has one and rules ask for it."""
    if isinstance(source, EvaluationResult):
        return answers_of(source), source
    if isinstance(source, PixelsResult):
        return answers_of(source), None
    path = Path(source)
    if path == run_beside(path):
        run = load_run(path)
        return read_answers(path).with_table(answers_of(run)), run
    answers = read_answers(path)
    if not gates.asks_noise:
        return answers, None
    table = open_table(path, answers.signature, gates)
    return (answers, None) if table is None else (answers.with_table(answers_of(table)), table)


def open_table(path: Path, signature: str, gates: Gates) -> EvaluationResult | None:
    """Return the saved run beside a document, None where there is none and no rule has to have it.

    Parameters
    ----------
    path : Path
        The document, or the saved run itself.
    signature : str
        That of the document: the run has to be the same.
    gates : Gates

    Raises
    ------
    UsageError
        When a rule asks for significance, and there is no such run.
    DataError
        When the run cannot be read.
    """
    beside = run_beside(path)
    run = load_run(beside) if is_saved_run(beside) else None
    if run is not None and _run_of(run.signature) == _run_of(signature):
        return run
    asking = [rule.id for rule in gates.rules if rule.significance]
    if not asking or gates.missing_baseline != "error":
        return None
    what = "is of another run" if run else "is no saved run" if is_there(beside) else "does not exist"
    document = quoted_value(str(path))
    raise UsageError(
        f"rule {quoted_value(asking[0])} has a significance, for which it takes the match table of "
        f"{document}: the saved run"
        f" beside it, {quoted_value(str(beside))}, {what}. Write both at once: evaluate ... -o {document} -o"
        f" {quoted_value(str(beside))}"
    )


def _run_of(signature: str) -> str:
    """Return what a signature says of the run, whatever was measured beside its metrics."""
    return without_fields(signature, BESIDE_METRICS)


def weigh(
    verdicts: Sequence[GateVerdict], gates: Gates, run: EvaluationResult | None, base: EvaluationResult | None
) -> tuple[GateVerdict, ...]:
    """Return verdicts with what resampling says of them, judged again where a rule asks for it.

    Parameters
    ----------
    verdicts : sequence of GateVerdict
        As if no rule asked for significance.
    gates : Gates
    run, base : EvaluationResult, optional
        What is judged and the baseline, as far as there are match tables.

    Raises
    ------
    UsageError
        When a rule asks for the significance of what is not resampled, or there are fewer than two images.
    DataError
        When a file of groups lacks images.
    """
    if run is None:
        for rule in gates.rules:
            if rule.significance:
                raise UsageError(
                    f"rule {quoted_value(rule.id)} has a significance, and what is judged has no match table"
                )
        return tuple(verdicts)
    settings = gates.bootstrap or Bootstrap()
    runs = PairedRuns(
        run=detection_metrics(run),
        base=None if base is None else detection_metrics(base),
        settings=settings,
        draw=lambda runs, settings, refs: resample_alike(runs, settings, refs=refs, run=map_in_order),
        count=partial(count_units, settings=settings),
        known=run.bootstrap,
    )
    return weigh_noise(verdicts, gates, runs)


def few_units(verdicts: Sequence[GateVerdict]) -> tuple[Finding, ...]:
    """Warn of intervals that rest on few images or groups: of all images, or of a slice."""
    drawn = {verdict.slice: verdict.spread.drawn for verdict in verdicts if verdict.spread is not None}
    findings = FindingLog()
    for name, how in drawn.items():
        of_slice = f" of slice {quoted_value(name)}" if name else ""
        warn_if_few(how["n_units"], how["unit"], Where("gates"), findings, of_what=of_slice)
    return findings.findings()
