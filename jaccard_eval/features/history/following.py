"""How runs follow each other: which can be compared, intervals, and differences from run to run."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import Estimate, EvaluationResult, PairedDelta, Resamples
from jaccard_eval.data.signature import signature_fields
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap import estimates, paired_deltas, resample
from jaccard_eval.features.compare import Delta
from jaccard_eval.features.compare.comparison import (
    AUTO,
    PER_RUN_FIELDS,
    differing_rules,
    quick_settings,
    verdict,
    with_intervals,
    work_of,
)
from jaccard_eval.features.history import ClassHistory, HistoryResult, HistoryRun
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import Bootstrap

GIVEN, NATURAL = "given", "natural"
_NUMBERS = re.compile(r"([0-9]+)")

Named = tuple[str, int]  # a class, and which of those of that name it is


def in_order(paths: Sequence[str]) -> tuple[list[int], str]:
    """Return the rows of runs in their order, and what that is called.

    A shell lists epoch10 before epoch2: what comes in the order of letters is sorted by the numbers in it. Any other
    order was meant.
    """
    given = [*range(len(paths))]
    if [*paths] != sorted(paths):
        return given, GIVEN
    return sorted(given, key=lambda row: [(part.zfill(20), part) for part in _NUMBERS.split(paths[row])]), NATURAL


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What later runs need of one: its value, those of its classes, and its draws."""

    value: MetricValue | None
    classes: Mapping[Named, MetricValue]
    drawn: Resamples | None

    def deltas(self, later: _Seen, keys: Sequence[Named | None]) -> list[Delta | None]:
        """Return how much higher a later run is, over all classes or of some; None where either has no value."""
        paired: tuple[PairedDelta, ...] = ()
        if self.drawn is not None and later.drawn is not None:
            paired = paired_deltas(self.drawn, later.drawn)
        deltas: list[Delta | None] = []
        for key in keys:
            before, after = (seen.value if key is None else seen.classes.get(key) for seen in (self, later))
            if before is None or after is None:
                deltas.append(None)
                continue
            metric, name = str(replace(before.ref, class_name=None)), None if key is None else key[0]
            deltas.append(Delta(metric=metric, class_name=name, baseline=before.value, value=after.value, n=after.n))
        known = iter(with_intervals(filter(None, deltas), paired))
        return [None if delta is None else next(known) for delta in deltas]


def history_of(
    results: Iterable[tuple[str, str, EvaluationResult, str]],
    n_runs: int,
    *,
    version: str,
    order: str,
    bootstrap: Bootstrap | str | None,
) -> HistoryResult:
    """Follow results, each with its name, path and page, from first to last; they are asked for one by one."""
    findings = FindingLog()
    runs: list[HistoryRun] = []
    parts: list[dict[str, str]] = []  # rules of the runs that can be compared with each other
    seen: list[_Seen] = []
    names: dict[int, Sequence[str]] = {}  # of the images of each part, in the order that they are drawn in
    metric, settings = "", bootstrap
    for name, path, result, page in results:
        metric = metric or next(iter(result.metrics))
        rules = {key: text for key, text in signature_fields(result.signature).items() if key not in PER_RUN_FIELDS}
        if rules not in parts:
            parts.append(rules)
            if runs:
                _report_break(runs[-1], path, result.signature, findings)
        part = parts.index(rules)
        measured = result.measured if isinstance(result.measured, DetectionMetrics) else None
        if settings == AUTO and measured is not None:
            settings = quick_settings(work_of(n_runs, measured))
            if settings is None:
                fix = Fix.missing("Add them with {bootstrap}.", bootstrap=str(Bootstrap().n_resamples))
                why = f"{len(measured.image_names):,} images and {len(measured.class_names):,} classes take a while"
                findings.note("bootstrap-skipped", Where(path), f"no confidence intervals: {why}", fix=fix)
        drawn, value = None, result.metrics.get(metric)
        estimate = Estimate() if value is None else Estimate(interval=value.interval, refused=value.refused)
        if measured is not None and isinstance(settings, Bootstrap):
            places = names.setdefault(part, measured.image_names)
            if set(places) == set(measured.image_names):
                drawn = resample(measured, settings, order=places, run=map_in_order, method=None, least=2)
            estimate = estimate if estimate.interval else _estimate(measured, metric, settings)
        now = _Seen(value, _classes(result, metric), drawn)
        same = [row for row, run in enumerate(runs) if run.part == part + 1]
        step = seen[same[-1]].deltas(now, [None])[0] if same else None
        judged = None if step is None or now.drawn is None else verdict(step, now.drawn)
        seen.append(now)
        runs.append(
            HistoryRun(
                name=name,
                path=path,
                part=part + 1,
                images=result.gt.images,
                objects=result.gt.boxes,
                detections=result.pred.boxes,
                metrics={key: found.value for key, found in result.metrics.items()},
                signature=result.signature,
                interval=estimate.interval,
                refused=estimate.refused or "",
                delta=math.nan if step is None else step.delta,
                delta_interval=None if step is None else step.interval,
                p_value=math.nan if step is None else step.p_value,
                verdict=str(judged or ""),
                page=page,
            )
        )
    if settings == AUTO or (isinstance(settings, Bootstrap) and not names):
        reason = "only saved runs (.npz) have the matches that are resampled"
        if settings != AUTO:
            raise UsageError(f"no intervals: {reason}.", fix=Fix.missing("Remove {bootstrap}.", bootstrap=None))
        findings.note("bootstrap-skipped", Where(runs[0].path), f"no confidence intervals of differences: {reason}")
    drawn_with = settings if isinstance(settings, Bootstrap) else None
    return HistoryResult(
        version=version,
        signature=_signature(runs, metric, drawn_with, version),
        metric=metric,
        order=order,
        runs=tuple(runs),
        classes=_class_histories(runs, seen),
        n_resamples=0 if drawn_with is None else drawn_with.n_resamples,
        findings=findings.findings(),
    )


def _report_break(before: HistoryRun, path: str, signature: str, findings: FindingLog) -> None:
    """Warn that a run cannot be compared with the one before it, in one line whatever they differ by."""
    # A protocol is many rules: its name means more than they do, and other labels more than other rules.
    differing = sorted(differing_rules(before.signature, signature), key=lambda pair: pair[0] != "gt")
    field, difference = differing[0]
    more = f"; {len(differing) - 1:,} more rules differ" if len(differing) > 1 else ""
    findings.warning(
        "comparison-unequal",
        Where(path, field=field),
        f"{difference} for {before.path}, the run before it{more}: they are not compared",
        fix="Evaluate again with the same ground truth and rules to compare them.",
    )


def _estimate(measured: DetectionMetrics, metric: str, settings: Bootstrap) -> Estimate:
    """Return the interval of one metric, as `evaluate --bootstrap` makes it."""
    drawn = resample(measured, settings, refs=[MetricRef.parse(metric)], run=map_in_order)
    return estimates(drawn)[drawn.refs[0]]


def _classes(result: EvaluationResult, metric: str) -> dict[Named, MetricValue]:
    """Return the metric of each class; names need not be unique."""
    found: dict[Named, MetricValue] = {}
    counted: dict[str, int] = {}
    for row in result.per_class:
        counted[row.name] = counted.get(row.name, 0) + 1
        if metric in row.values:
            found[row.name, counted[row.name]] = row.values[metric]
    return found


def _class_histories(runs: Sequence[HistoryRun], seen: Sequence[_Seen]) -> tuple[ClassHistory, ...]:
    """Return what each class did, what moved most first: see `Versus.movers`, which orders two runs so."""
    comparable = [row for row, run in enumerate(runs) if run.part == runs[-1].part]
    first, last = seen[comparable[0]], seen[comparable[-1]]
    keys = [*dict.fromkeys(key for run in reversed(seen) for key in run.classes)]
    moves = first.deltas(last, keys) if len(comparable) > 1 else [None] * len(keys)
    found = []
    for key, move in zip(keys, moves, strict=True):
        values = [run.classes.get(key) for run in seen]
        found.append(
            ClassHistory(
                name=key[0],
                gt=next(value.n for value in reversed(values) if value is not None),
                values=tuple(math.nan if value is None else value.value for value in values),
                delta=math.nan if move is None else move.delta,
                interval=None if move is None else move.interval,
                p_value=math.nan if move is None else move.p_value,
            )
        )
    return tuple(sorted(found, key=lambda row: (math.isnan(row.delta), -abs(row.delta) * math.sqrt(row.gt))))


def _signature(runs: Sequence[HistoryRun], metric: str, settings: Bootstrap | None, version: str) -> str:
    """Return what all numbers of a history rest on: a digest of the signatures of its runs, in their order."""
    text = "\n".join(f"{run.name}\t{run.signature}" for run in runs)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    drawn = "" if settings is None else f"|bootstrap={settings.n_resamples},{settings.rng}"
    return f"history|metric={metric}|runs={digest}{drawn}|version={version}"
