"""Metrics of some of the images: each slice is measured on its part of the match table, nothing is matched again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaccard_eval.data.intervals import Interval
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import USUAL_IOU, Protocol
from jaccard_eval.data.result import Measured, SliceRow
from jaccard_eval.errors import UsageError
from jaccard_eval.metrics.metric_lookup import chosen_images, slice_digest
from jaccard_eval.options import Slice
from jaccard_eval.text import shown

if TYPE_CHECKING:
    from jaccard_eval.metrics.detection import DetectionMetrics

IntervalsOf = Callable[[Any, Sequence[MetricRef]], Mapping[str, Interval | None]]


def measure_slices(
    measured: Measured, slices: Sequence[Slice], protocol: Protocol, *, intervals: IntervalsOf | None = None
) -> tuple[SliceRow, ...]:
    """Measure every slice; they may overlap.

    Parameters
    ----------
    measured : Measured
    slices : sequence of Slice
    protocol : Protocol
    intervals : callable, optional
        Gives the intervals of metrics on a part of the images.

    Raises
    ------
    UsageError
        When a name or glob matches no image, or two slices have one name.
    """
    require_names(slices)
    return tuple(_measure(measured, one, slice_refs(protocol), intervals) for one in slices)


def part_of(metrics: DetectionMetrics, images: Slice | None) -> DetectionMetrics:
    """Return the metrics of a slice alone, of all images where there is none; see `measure_slices` for the error."""
    return metrics if images is None else metrics.restrict(chosen_images(images, metrics.image_names))


def slice_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics that slices have."""
    usual = (MetricRef(name="AP", iou=USUAL_IOU),) if USUAL_IOU in protocol.iou_thresholds else ()
    return (MetricRef(name="AP"), *usual)


def require_names(slices: Sequence[Slice]) -> None:
    """Raise a UsageError when two slices have one name."""
    names = [one.name for one in slices]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"slice {shown(twice[0])} is given twice")


def _measure(measured: Measured, one: Slice, refs: Sequence[MetricRef], intervals: IntervalsOf | None) -> SliceRow:
    rows = chosen_images(one, measured.image_names)
    part = measured.restrict(rows)
    found = {} if intervals is None else intervals(part, refs)
    values = {str(ref): replace(part.value(ref), interval=found.get(str(ref))) for ref in refs}
    return SliceRow(name=one.name, digest=slice_digest(one), images=len(rows), values=values)
