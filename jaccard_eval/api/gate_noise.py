"""Match tables for gates: saved runs beside the documents that are judged, and what resampling their images says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import BESIDE_METRICS, without_fields
from jaccard_eval.data.verdict import GateVerdict
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.intervals import count_units, resample_alike, warn_if_few
from jaccard_eval.features.compare.compute import detection_metrics
from jaccard_eval.features.gates.noise import PairedRuns, weigh_noise
from jaccard_eval.features.gates.rules import Gates
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.options import Bootstrap
from jaccard_eval.reading.files import is_there
from jaccard_eval.runs import is_saved_run, load_run, run_beside
from jaccard_eval.text import shown


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
    document = shown(str(path))
    raise UsageError(
        f"rule {shown(asking[0])} has a significance, for which it takes the match table of {document}: the saved run"
        f" beside it, {shown(str(beside))}, {what}. Write both at once: evaluate ... -o {document} -o"
        f" {shown(str(beside))}"
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
        _refuse_significance(gates)
        return tuple(verdicts)
    return weigh_noise(verdicts, gates, _paired(gates, run, base))


def few_units(verdicts: Sequence[GateVerdict]) -> tuple[Finding, ...]:
    """Warn of intervals that rest on few images or groups: of all images, or of a slice."""
    drawn = {one.slice: one.spread.drawn for one in verdicts if one.spread is not None}
    findings = FindingLog()
    for name, how in drawn.items():
        of_slice = f" of slice {shown(name)}" if name else ""
        warn_if_few(how["n_units"], how["unit"], Where("gates"), findings, of_what=of_slice)
    return findings.findings()


def _refuse_significance(gates: Gates) -> None:
    for rule in gates.rules:
        if rule.significance:
            raise UsageError(f"rule {shown(rule.id)} has a significance, and what is judged has no match table")


def _paired(gates: Gates, run: EvaluationResult, base: EvaluationResult | None) -> PairedRuns:
    settings = gates.bootstrap or Bootstrap()
    return PairedRuns(
        run=detection_metrics(run),
        base=None if base is None else detection_metrics(base),
        settings=settings,
        draw=lambda runs, settings, refs: resample_alike(runs, settings, refs=refs, run=map_in_order),
        count=partial(count_units, settings=settings),
        known=run.bootstrap,
    )
