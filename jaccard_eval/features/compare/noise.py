"""Intervals of a comparison: all predictions are resampled on the same images, as a whole and in every slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaccard_eval.data.intervals import PairedDelta, Resamples
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.bootstrap.compute import Run, paired_deltas
from jaccard_eval.features.bootstrap.intervals import count_units, remarks, resample_alike, warn_of_few
from jaccard_eval.features.compare.compute import slice_with_intervals, with_intervals
from jaccard_eval.features.compare.result import Versus
from jaccard_eval.findings import Finding, FindingLog
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.metrics.slices import part_of, slice_refs
from jaccard_eval.options import Bootstrap, Slice

Paired = list[tuple[PairedDelta, ...]]  # of each contender


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Contenders with intervals, the resamples of the baseline, and what makes them doubtful; or contenders alone."""

    others: tuple[Versus, ...]
    drawn: Resamples | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def choices(self) -> list[str]:
        """What a signature says of it."""
        return [] if self.drawn is None else [self.drawn.choice]


def resample_comparison(
    others: tuple[Versus, ...],
    results: Sequence[EvaluationResult],
    slices: Sequence[Slice],
    settings: Bootstrap,
    *,
    run: Run = map,
) -> Noise:
    """Give every difference its interval."""
    runs, findings = [detection_metrics(result) for result in results], FindingLog()
    drawn = resample_alike(runs, settings, run=run)
    weighed = [with_intervals(one, paired) for one, paired in zip(others, _paired(drawn), strict=True)]
    n_units = []
    for i, one in enumerate(slices):
        parts = [part_of(metrics, one) for metrics in runs]
        n_units.append(count_units(parts[0].image_names, settings))
        if n_units[-1] > 1:
            weighed = _with_slice(weighed, i, _of_parts(parts, settings, run))
    path, names = results[0].pred.path, runs[0].image_names
    warn_of_few([one.name for one in slices], n_units, findings, path)
    return Noise(
        others=tuple(weighed), drawn=drawn[0], findings=(*remarks(drawn[0], names, path), *findings.findings())
    )


def _of_parts(parts: Sequence[DetectionMetrics], settings: Bootstrap, run: Run) -> Paired:
    return _paired(resample_alike(parts, settings, refs=slice_refs(parts[0].protocol), run=run))


def _paired(drawn: Sequence[Resamples]) -> Paired:
    base, *rest = drawn
    return [paired_deltas(base, other) for other in rest]


def _with_slice(others: Sequence[Versus], i: int, paired: Paired) -> list[Versus]:
    """Return contenders whose i-th slice has intervals."""
    return [
        replace(one, slices=(*one.slices[:i], slice_with_intervals(one.slices[i], deltas), *one.slices[i + 1 :]))
        for one, deltas in zip(others, paired, strict=True)
    ]
