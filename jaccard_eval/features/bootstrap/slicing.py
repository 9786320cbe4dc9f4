"""Slices of a result that is there, with intervals where they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from jaccard_eval.data.document import Rows
from jaccard_eval.data.intervals import Interval
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import quoted, with_choices
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.features.bootstrap.compute import Run, intervals
from jaccard_eval.features.bootstrap.intervals import FEW_UNITS, count_units, resample_alike
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.metrics.slices import measure_slices, slice_digest
from jaccard_eval.options import Bootstrap, Slice
from jaccard_eval.text import shown

SHOWN_SLICES = 3  # of those whose intervals are doubtful


def with_slices(
    result: EvaluationResult, slices: Sequence[Slice], settings: Bootstrap | None = None, *, workers: int | None = None
) -> EvaluationResult:
    """Return a result with a row for each slice.

    Parameters
    ----------
    result : EvaluationResult
    slices : sequence of Slice
    settings : Bootstrap, optional
        How to resample the images of each slice, for intervals. A slice of fewer than two images or groups has none.
    workers : int, optional
        Threads; as many as there are processors when left out. The result does not depend on it.

    Returns
    -------
    EvaluationResult

    Raises
    ------
    DataError
        When the file of groups lacks images.
    UsageError
        When a name or glob matches no image, or two slices have one name.
    """
    noise = None if settings is None else _Noise(settings, partial(map_in_order, workers=workers))
    rows = measure_slices(result.measured, slices, result.protocol, intervals=None if noise is None else noise.of)
    findings = FindingLog()
    if noise is not None:
        warn_of_few([row.name for row in rows], noise.n_units, findings, result.pred.path)
    return result.with_part(
        Rows("slices", rows),
        signature=with_choices(result.signature, slices_choice(slices)),
        findings=(*result.findings, *findings.findings()),
    )


def slices_choice(slices: Sequence[Slice]) -> str:
    """Name slices as a signature does, each with a digest of what it is made of."""
    return f"slices={','.join(f'{quoted(one.name)}[{slice_digest(one)}]' for one in slices)}"


@dataclass(frozen=True, slots=True)
class _Noise:
    """Resamples one slice after another, and counts what each of them is drawn from."""

    settings: Bootstrap
    run: Run
    n_units: list[int] = field(default_factory=list)

    def of(self, part: DetectionMetrics, refs: Sequence[MetricRef]) -> dict[str, Interval | None]:
        """Return the intervals of metrics of a slice."""
        self.n_units.append(count_units(part.image_names, self.settings))
        if self.n_units[-1] < 2:
            return {}
        return intervals(resample_alike([part], self.settings, refs=refs, run=self.run)[0])


def warn_of_few(names: Sequence[str], n_units: Sequence[int], findings: FindingLog, path: str) -> None:
    """Warn of slices with few images, or groups of them, to draw from."""
    few = [f"{shown(name)} ({n})" for name, n in zip(names, n_units, strict=True) if n < FEW_UNITS]
    if few:
        more = f" and {len(few) - SHOWN_SLICES:,} more" if len(few) > SHOWN_SLICES else ""
        findings.warning(
            "bootstrap-few",
            Where(path),
            f"intervals of slices rest on fewer than {FEW_UNITS} images or groups, and are too narrow:"
            f" {', '.join(few[:SHOWN_SLICES])}{more}",
        )
