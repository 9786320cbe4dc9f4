"""What chance does to the numbers: intervals, slices with theirs, and differences from other predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.signature import with_choices
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.features.bootstrap.intervals import (
    sliced,
)
from jaccard_eval.features.compare.comparison import with_noise
from jaccard_eval.features.compare.compute import metric_deltas, slice_deltas
from jaccard_eval.features.compare.result import Contender, Versus
from jaccard_eval.features.panoptic.compute import QUALITIES
from jaccard_eval.features.panoptic.result import Against, PanopticResult
from jaccard_eval.findings import Severity
from jaccard_eval.options import Bootstrap, Slice

SLICE_REFS = tuple(MetricRef(name=name) for name in QUALITIES)


def with_slices(
    result: PanopticResult, slices: Sequence[Slice], settings: Bootstrap | None, *, workers: int | None = None
) -> PanopticResult:
    """Return a result with PQ, SQ and RQ of each slice, with intervals if there are settings."""
    return sliced(result, slices, SLICE_REFS, settings, workers=workers)


def with_differences(
    result: PanopticResult,
    other: PanopticResult,
    slices: Sequence[Slice],
    settings: Bootstrap | None,
    *,
    workers: int | None = None,
) -> PanopticResult:
    """Return a result with its differences from other predictions; of fewer than two images without intervals."""
    contender, baseline = (
        Contender(path=side.path, fingerprint=side.fingerprint, score=math.nan, name=name)
        for side, name in zip((result.pred, other.pred), _names(result.pred.path, other.pred.path), strict=True)
    )
    versus = Versus(
        contender=contender,
        deltas=metric_deltas(other, result),
        changes=(),
        slices=slice_deltas(other.measured, result.measured, slices, SLICE_REFS),
    )
    drawn, findings = None, other.findings
    if len(result.measured.image_names) > 1:
        (versus,), drawn, doubts = with_noise(
            [versus],
            [other.measured, result.measured],
            settings or Bootstrap(),
            path=other.pred.path,
            slices=slices,
            refs=SLICE_REFS,
            run=partial(map_in_order, workers=workers),
        )
        # Nobody asked for these intervals: --strict must not refuse what makes them doubtful.
        findings += doubts if settings else tuple(replace(doubt, severity=Severity.NOTE) for doubt in doubts)
    against = Against(baseline=baseline, versus=versus, resamples=drawn, measured=other.measured)
    # Those of the ground truth come with both.
    known = [*result.findings, *(finding for finding in findings if finding not in result.findings)]
    return result.with_part(
        against,
        signature=with_choices(result.signature, f"against={other.pred.fingerprint}"),
        findings=tuple(known),
    )


def _names(*paths: str) -> tuple[str, ...]:
    """Return what predictions are called: their files, with as many folders as differ."""
    parts = [path.rstrip("/").split("/") for path in paths]
    for size in range(1, max(map(len, parts)) + 1):
        names = tuple("/".join(part[-size:]) for part in parts)
        if len(set(names)) == len(names):
            return names
    return paths
