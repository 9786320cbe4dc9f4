"""What chance does to the numbers: intervals, slices with theirs, and differences from other predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from jaccard_eval.data.metricref import SEGMENT_METRICS, MetricRef
from jaccard_eval.data.signature import with_choices
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.features.bootstrap.compute import paired_deltas
from jaccard_eval.features.bootstrap.intervals import (
    remarks,
    resample_alike,
    resampled,
    sliced,
)
from jaccard_eval.features.compare.compute import NOISE, verdict
from jaccard_eval.features.compare.result import Contender, Delta, Versus
from jaccard_eval.features.panoptic.compute import QUALITIES, PanopticMetrics
from jaccard_eval.features.panoptic.counting import CountedImages
from jaccard_eval.features.panoptic.result import Against, PanopticResult
from jaccard_eval.findings import Severity
from jaccard_eval.options import Bootstrap, Slice


def with_intervals(result: PanopticResult, settings: Bootstrap, *, workers: int | None = None) -> PanopticResult:
    """Return a result whose summary and classes have intervals, by resampling its images."""
    return resampled(result, settings, workers=workers)


def with_slices(
    result: PanopticResult, slices: Sequence[Slice], settings: Bootstrap | None, *, workers: int | None = None
) -> PanopticResult:
    """Return a result with PQ, SQ and RQ of each slice, with intervals if there are settings."""
    refs = [MetricRef(name=name) for name in QUALITIES]
    return sliced(result, slices, refs, settings, workers=workers)


def with_differences(
    result: PanopticResult, others: CountedImages, settings: Bootstrap | None, *, workers: int | None = None
) -> PanopticResult:
    """Return a result with its differences from other predictions; of fewer than two images without intervals."""
    is_asked, settings = settings is not None, settings or Bootstrap()
    metrics: PanopticMetrics = result.measured
    refs = [MetricRef(name=name) for name in SEGMENT_METRICS]
    refs += [MetricRef(name=name, class_name=label) for label in metrics.class_names for name in QUALITIES]
    deltas = [
        Delta(
            metric=ref.name,
            class_name=ref.class_name,
            baseline=others.metrics.value(ref).value,
            value=metrics.value(ref).value,
            n=metrics.value(ref).n,
        )
        for ref in refs
    ]
    drawn, findings = None, others.findings
    if len(metrics.image_names) > 1:
        run = partial(map_in_order, workers=workers)
        drawn, own = resample_alike([others.metrics, metrics], settings, refs=refs, run=run)
        paired = paired_deltas(drawn, own)
        deltas = [
            replace(delta, **{name: getattr(noise, name) for name in NOISE})
            for delta, noise in zip(deltas, paired, strict=True)
        ]
        # Nobody asked for these intervals: --strict must not refuse what makes them doubtful.
        doubts = remarks(own, metrics.image_names, result.pred.path)
        findings += doubts if is_asked else tuple(replace(doubt, severity=Severity.NOTE) for doubt in doubts)
    contender, baseline = (
        Contender(path=side.path, fingerprint=side.fingerprint, score=math.nan, name=name)
        for side, name in zip((result.pred, others.pred), _names(result.pred.path, others.pred.path), strict=True)
    )
    versus = Versus(
        contender=contender,
        deltas=tuple(deltas),
        changes=(),
        verdict=None if drawn is None else verdict(deltas[0], settings),
    )
    against = Against(baseline=baseline, versus=versus, resamples=drawn)
    # Those of the ground truth come with both.
    known = [*result.findings, *(finding for finding in findings if finding not in result.findings)]
    return result.with_part(
        against,
        signature=with_choices(result.signature, f"against={others.pred.fingerprint}"),
        findings=tuple(known),
    )


def _names(*paths: str) -> tuple[str, ...]:
    """Return what predictions are called: their files, by the whole paths where these have one name."""
    names = tuple(path.rstrip("/").rpartition("/")[2] for path in paths)
    return names if len(set(names)) == len(names) else paths
