"""Metrics of some of the images: each slice is measured on its part of the match table, nothing is matched again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Self, TypeVar
from typing import Protocol as TypingProtocol

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import USUAL_IOU, Protocol
from jaccard_eval.data.result import SliceRow
from jaccard_eval.errors import UsageError
from jaccard_eval.options import Slice
from jaccard_eval.progress import tracked
from jaccard_eval.text import did_you_mean, quoted_value

if TYPE_CHECKING:
    pass

SHOWN_NAMES = 3
Metrics = TypeVar("Metrics", bound="Divisible")


class Divisible(TypingProtocol):
    """What can be measured on some of its images alone."""

    @property
    def image_names(self) -> Sequence[str]:
        """Name of each image."""

    def value(self, ref: MetricRef) -> MetricValue:
        """Measure a metric reference."""

    def restrict(self, images: Sequence[int]) -> Self:
        """Measure some images alone, given as ascending rows."""


def measure_slices(measured: Divisible, slices: Sequence[Slice], refs: Sequence[MetricRef]) -> tuple[SliceRow, ...]:
    """Measure every slice; slices may overlap."""
    # The command line asks this before it reads anything; here it is asked of calls from Python.
    require_names(slices)
    rows = []
    for images in tracked(slices, "measuring slices"):
        chosen = chosen_images(images, measured.image_names)
        part = measured.restrict(chosen)
        values = {str(ref): part.value(ref) for ref in refs}
        rows.append(SliceRow(name=images.name, digest=slice_digest(images), images=len(chosen), values=values))
    return tuple(rows)


def part_of(metrics: Metrics, images: Slice | None) -> Metrics:
    """Return the metrics of a slice alone, of all images where there is none."""
    return metrics if images is None else metrics.restrict(chosen_images(images, metrics.image_names))


def slice_refs(protocol: Protocol) -> tuple[MetricRef, ...]:
    """Return the metrics that slices have."""
    usual = (MetricRef(name="AP", iou=USUAL_IOU),) if USUAL_IOU in protocol.iou_thresholds else ()
    return (MetricRef(name="AP"), *usual)


def require_names(slices: Sequence[Slice]) -> None:
    """Raise a UsageError when two slices have one name."""
    names = [images.name for images in slices]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"slice {quoted_value(twice[0])} is given twice")


def chosen_images(images: Slice, names: Sequence[str]) -> list[int]:
    """Return the rows of the images of a slice, ascending; raise a UsageError for a pattern that matches none."""
    # A set, as one image may match several patterns; ascending rows keep the order of ties in the part.
    rows: set[int] = set()
    row_of = {name: row for row, name in enumerate(names)}
    unmatched = []
    for pattern in images.patterns:
        # A name wins over the glob that it also is: brackets are usual in file names.
        if pattern in row_of:
            found = [row_of[pattern]]
        else:
            found = [] if images.exact else [row for row, name in enumerate(names) if fnmatchcase(name, pattern)]
        rows.update(found)
        unmatched += [] if found else [pattern]
    if unmatched:
        listed = ", ".join(map(quoted_value, unmatched[:SHOWN_NAMES]))
        more = f" and {len(unmatched) - SHOWN_NAMES:,} more" if len(unmatched) > SHOWN_NAMES else ""
        example = f"; image names look like {quoted_value(names[0])}" if names else ""
        meant = did_you_mean(unmatched[0], names)
        raise UsageError(f"slice {quoted_value(images.name)}: no image is matched by {listed}{more}{example}.{meant}")
    return sorted(rows)


def slice_digest(images: Slice) -> str:
    """Return a digest of what a slice is made of, by which a saved value is known to be of the same slice."""
    text = "\n".join([str(images.exact), *images.patterns])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
