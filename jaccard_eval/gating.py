"""Quality gates around their judging: saved results, the baseline, match tables, values from elsewhere."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaccard_eval.data.document import Rows
from jaccard_eval.data.result import EvaluationResult, GateResult, GateVerdict
from jaccard_eval.data.signature import BESIDE_METRICS, without_fields
from jaccard_eval.engine import path_of
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.intervals import resample_alike, warn_if_few
from jaccard_eval.features.gates import Gates
from jaccard_eval.features.gates.judging import (
    KINDS,
    Answers,
    PairedRuns,
    SavedAnswers,
    answers_of,
    find_ties,
    gate_findings,
    judge,
    require_comparable,
    weigh_noise,
)
from jaccard_eval.features.panoptic import PanopticResult
from jaccard_eval.features.pixels import PixelsResult
from jaccard_eval.findings import DataError, Finding, FindingLog, Where, as_settings
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.options import Bootstrap
from jaccard_eval.progress import staged
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
from jaccard_eval.text import printable, quoted_value, shown_json

if TYPE_CHECKING:
    Source = EvaluationResult | PixelsResult | PanopticResult | str | os.PathLike[str]
    Matched = EvaluationResult | PixelsResult | PanopticResult
    # What a result answers, and itself with its matches as far as it has them and rules ask for them.
    Opened = tuple[Answers, Matched | None]

DUPLICATES = "pred-duplicate"

Judged = TypeVar("Judged", EvaluationResult, PixelsResult, PanopticResult)


class Gating:
    """Gates with all that it takes to judge by them; the baseline is opened at once, so that a run fails early.

    `against` is whether the run is compared with other predictions, which are the baseline of rules that have no other;
    None where it cannot be.
    """

    def __init__(
        self, gates: Gates, baseline: Source | None, external: Mapping[str, float], *, against: bool | None = None
    ) -> None:
        if not gates.rules:
            raise UsageError("no rules: a gate without rules passes everything; a limit of suspects is for labels")
        self.gates, self.external = gates, external
        self.baseline: Answers | None = None
        self.base: Any = None
        if baseline is None:
            needing = [rule for rule in gates.rules if rule.needs_baseline]
            if needing and not against:
                fix = Fix.missing("Add {against}, or {baseline}.", against=None, baseline=None)
                if against is None:
                    fix = Fix.missing("Add {baseline}.", baseline=None)
                elif needing[0].significance:
                    fix = Fix.missing("Add {against}.", against=None)
                raise UsageError(f"rule {quoted_value(needing[0].id)} needs a baseline.", fix=fix)
        elif isinstance(baseline, EvaluationResult | PixelsResult | PanopticResult):
            self.open(baseline)
        else:
            with as_settings():
                if is_there(path_of(baseline)):
                    self.open(baseline)
            if self.baseline is None and gates.missing_baseline == "error":
                raise UsageError(
                    f"baseline {quoted_value(str(baseline))} does not exist.",
                    fix=Fix.missing(
                        "Create it with {update_baseline}, or skip the rules that need it with"
                        " {allow_missing_baseline}.",
                        update_baseline=ON,
                        allow_missing_baseline=ON,
                    ),
                )

    def open(self, baseline: Source) -> None:
        """Read the baseline, also again where it is another by now."""
        self.baseline, matched = opened(baseline, self.gates)
        self.base = None if matched is None or not self.gates.asks_noise else _metrics_of(matched)

    def drop_other_baseline(self, result: EvaluationResult | PixelsResult | PanopticResult) -> bool:
        """Ignore a baseline with different rules or ground truth, and return whether it was one."""
        try:
            if self.baseline is not None:
                require_comparable(answers_of(result), self.baseline)
        except UsageError:
            self.baseline = self.base = None
            self.gates = replace(self.gates, missing_baseline="pass")
            return True
        return False

    def judge(self, run: Answers, table: Matched | None) -> tuple[GateVerdict, ...]:
        """Judge anything that answers references, with its matches where there are any."""
        verdicts = judge(self.gates, run, baseline=self.baseline, external=self.external)
        if self.gates.asks_noise:
            verdicts = self._weigh(verdicts, run.kind, table)
        if table is None or not isinstance(table.measured, DetectionMetrics):
            return verdicts
        # Repeated boxes tie by nature, and another finding reports them.
        repeated = any(finding.code == DUPLICATES for finding in table.findings)
        return verdicts if repeated else find_ties(verdicts, self.gates, table.measured)

    @staged("judging gates")
    def apply(self, result: Judged) -> Judged:
        """Return a result with its verdicts, and what makes these doubtful among its findings."""
        if self.baseline is None and isinstance(result, PanopticResult) and result.against is not None:
            metrics = result.against.measured
            self.base, self.baseline = metrics, replace(answers_of(result), source=metrics, measured=metrics)
        verdicts: tuple[GateVerdict, ...] = self.judge(*opened(result, self.gates))
        # The intervals of the result itself may have warned of few images already.
        warned: bool = any(finding.code == "bootstrap-few" for finding in result.findings)
        findings = (*result.findings, *_remarks(verdicts, warned=warned))
        return result.with_part(Rows("gates", verdicts), findings=findings)

    def _weigh(self, verdicts: tuple[GateVerdict, ...], kind: str, run: Matched | None) -> tuple[GateVerdict, ...]:
        """Return verdicts with their intervals, judged again where a rule asks for it."""
        # Of a saved baseline there are no counts of images, which both sides of a difference need.
        if run is None or isinstance(run, PixelsResult):
            for rule in self.gates.rules:
                if rule.significance:
                    needed, fix = _UNMATCHED.get(kind, _NEED_RUN)
                    raise UsageError(f"rule {quoted_value(rule.id)}: Significance rules {needed}", fix=fix)
        if run is None:
            return verdicts
        settings = self.gates.bootstrap or Bootstrap()
        runs = PairedRuns(
            run=_metrics_of(run),
            base=self.base,
            settings=settings,
            draw=partial(resample_alike, run=map_in_order),
            known=run.bootstrap,
        )
        return weigh_noise(verdicts, self.gates, runs)


# Why a saved result of a kind has no significance, and what has.
_UNMATCHED = {
    PixelsResult.kind: (
        "resample images, but pixels are counted over all of them.",
        Fix.missing("Use max-drop without significance ({fail_drop}).", fail_drop=None),
    ),
    PanopticResult.kind: (
        "need the segments of both sides, which a saved result lacks.",
        Fix.missing(
            "Judge with {command} instead of {baseline}.", command="panoptic GT PRED --against OLD_PRED", baseline=None
        ),
    ),
}
_NEED_RUN = "need the saved run (.npz).", Fix.missing("Write it with {output}.", output="run.npz")


@staged("judging gates")
def judge_result(source: Source, gating: Gating, *, baseline: Source | None, version: str) -> GateResult:
    """Judge a result in memory, or a saved one again; `baseline` is what the report names as such."""
    run, table = opened(source, gating.gates)
    verdicts = gating.judge(run, table)
    return GateResult(
        version=version,
        path=_name_of(source),
        signature=run.signature,
        baseline=None if baseline is None else _name_of(baseline),
        gates=verdicts,
        findings=_remarks(verdicts),
    )


def _name_of(source: Source) -> str:
    in_memory = isinstance(source, EvaluationResult | PixelsResult | PanopticResult)
    return f"<{type(source).__name__}>" if in_memory else str(source)


def read_answers(path: Path) -> SavedAnswers:
    """Return what a saved result answers; a DataError when it is not such a result, or lacks what gates need."""
    document = read_result(path, KINDS)
    try:
        if document["kind"] == EvaluationResult.kind:
            saved_protocol(document["protocol"])
        return SavedAnswers(document, str(path))
    except UsageError as error:
        raise invalid_document(path, f"cannot be judged: {error}") from None


@as_settings()
def read_metrics(path: Path) -> dict[str, float]:
    """Return the numbers of a JSON document by name; those in nested objects as ``outer.inner``, null as NaN."""
    document = read_document(path)
    if not isinstance(document, dict):
        detail = f"is {shown_json(document)}; expected an object with numbers by name"
        raise DataError.single("record-type", Where(str(path)), detail, fix='Write it like {"latency_ms": 12.3}.')

    def numbers(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
        for name, value in table.items():
            if isinstance(value, dict):
                yield from numbers(value, f"{prefix}{name}.")
            # Texts and lists may come with the numbers; true and false are ints to Python, but not numbers here.
            elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
                yield f"{prefix}{name}", math.nan if value is None else float(value)

    return dict(numbers(document, ""))


def _remarks(verdicts: Sequence[GateVerdict], *, warned: bool = False) -> tuple[Finding, ...]:
    """Return what makes verdicts doubtful; the result may have `warned` of few images, or groups, already."""
    findings = FindingLog()
    findings.extend(gate_findings(verdicts))
    if not warned:
        # All verdicts on one slice were drawn alike: one finding for each.
        drawn = {verdict.slice: verdict.spread.drawn for verdict in verdicts if verdict.spread is not None}
        for name, how in drawn.items():
            of_slice = f" of slice {quoted_value(name)}" if name else ""
            warn_if_few(how["n_units"], how["unit"], Where("gates"), findings, of_what=of_slice)
    return findings.findings()


def opened(source: Source, gates: Gates | None) -> Opened:
    """Return what a result answers, with its matches where it has them; of a document where gates ask for those."""
    if isinstance(source, EvaluationResult | PixelsResult | PanopticResult):
        # The matches of segments are kept as long as the program runs.
        if source.measured is None:
            return answers_of(source), None
        return answers_of(source), source
    path, run = path_of(source), None
    if path == run_beside(path):
        run, answers = load_run(path), read_answers(path)
    else:
        answers = read_answers(path)
        # To read a match table costs far more than its document: rules without a question about noise need none.
        run = _run_of(path, answers, gates) if gates is not None and gates.asks_noise else None
    return (answers, None) if run is None else (answers.with_table(answers_of(run)), run)


def _metrics_of(result: Matched) -> Any:
    return detection_metrics(result) if isinstance(result, EvaluationResult) else result.measured


def _run_of(path: Path, answers: Answers, gates: Gates) -> EvaluationResult | None:
    """Return the saved run next to a document, None where there is none and no rule has to have it."""
    beside, signature = run_beside(path), answers.signature
    run = load_run(beside) if is_saved_run(beside) else None
    # Of one run, the two may differ in what was measured besides its metrics.
    if run is not None and without_fields(run.signature, BESIDE_METRICS) == without_fields(signature, BESIDE_METRICS):
        return run
    asking = [rule.id for rule in gates.rules if rule.significance]
    if not asking or gates.missing_baseline != "error":
        return None
    if answers.kind in _UNMATCHED:
        needed, fix = _UNMATCHED[answers.kind]
        raise UsageError(f"rule {quoted_value(asking[0])}: Significance rules {needed}", fix=fix)
    what = "belongs to a different run" if run else "is not a saved run" if is_there(beside) else "does not exist"
    document, run_file = printable(str(path)), printable(str(beside))
    raise UsageError(
        f"rule {quoted_value(asking[0])}: Significance rules need the saved run (.npz) next to {document}, "
        f"but {run_file} {what}.",
        fix=Fix.missing(
            "Write both: {command}.",
            command=f"evaluate GT PRED -o {shlex.quote(document)} -o {shlex.quote(run_file)}",
        ),
    )
