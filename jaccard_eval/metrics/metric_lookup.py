"""What answers metric references: an evaluation in memory, or a saved one as far as its document holds the number."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Protocol as TypingProtocol

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MAP_CLASS_METRICS, MAP_METRICS, MetricRef, split_ref, suggest_metric
from jaccard_eval.data.result import EvaluationResult, Measured
from jaccard_eval.errors import UsageError
from jaccard_eval.features.pixels.result import PixelsResult
from jaccard_eval.options import Slice
from jaccard_eval.text import did_you_mean, shown

SHOWN_NAMES = 3

PixelKey = tuple[str, str | None]  # metric and class


class Answers(TypingProtocol):
    """A result that can be asked for the value of a metric reference."""

    @property
    def kind(self) -> str:
        """Kind of the result: "evaluation" or "pixels"."""

    @property
    def signature(self) -> str:
        """All that can change its numbers."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Its classes."""

    def value(self, ref: str) -> MetricValue:
        """Return the value of a reference.

        Raises
        ------
        UsageError
            When there is no such metric or class, or it cannot be told any more.
        """

    def on(self, images: Slice) -> Answers:
        """Return the answers for some of the images; for the errors see `value`."""


def answers_of(result: EvaluationResult | PixelsResult) -> Answers:
    """Return what answers for a result in memory."""
    if isinstance(result, PixelsResult):
        return PixelAnswers(result)
    names = tuple(row.name for row in result.per_class)
    return DetectionAnswers(result.signature, names, result.measured)


@dataclass(frozen=True, slots=True)
class DetectionAnswers:
    """An evaluation of detections, whose match table answers anything."""

    signature: str
    class_names: tuple[str, ...]
    measured: Measured

    kind: str = field(default=EvaluationResult.kind, init=False)

    def value(self, ref: str) -> MetricValue:
        """Measure a reference."""
        return self.measured.value(MetricRef.parse(ref))

    def on(self, images: Slice) -> DetectionAnswers:
        """Evaluate some of the images alone."""
        return replace(self, measured=self.measured.restrict(chosen_images(images, self.measured.image_names)))


class PixelAnswers:
    """An evaluation of label maps, which has the values that it lists."""

    def __init__(self, result: PixelsResult) -> None:
        self.kind = PixelsResult.kind
        self.signature = result.signature
        self.class_names = tuple(row.name for row in result.per_class)
        self._values: dict[PixelKey, MetricValue] = {(name, None): one for name, one in result.metrics.items()}
        for row in result.per_class:
            self._values |= {(name, row.name): one for name, one in row.values.items()}

    def value(self, ref: str) -> MetricValue:
        """Look a reference up."""
        return self._values[pixel_key(ref, self.class_names)]

    def on(self, images: Slice) -> PixelAnswers:
        """Refuse: pixels are counted over all images."""
        raise UsageError(f"slice {shown(images.name)}: label maps are counted over all images; evaluate these alone")


def pixel_key(ref: str, class_names: Sequence[str]) -> PixelKey:
    """Return metric and class of a reference to a value of label maps.

    Raises
    ------
    UsageError
        When there is no such metric or class.
    """
    head, items = split_ref(ref)
    known = (*MAP_METRICS, *MAP_CLASS_METRICS)
    if head not in known:
        raise UsageError(
            f"unknown metric {shown(ref)} of label maps; known are {', '.join(known)}.{suggest_metric(head, known)}"
        )
    other = sorted(set(items) - {"class"})
    if other:
        raise UsageError(f"metric {shown(ref)}: label maps know no {' or '.join(other)}")
    name = items.get("class")
    if (name is None) != (head in MAP_METRICS):
        raise UsageError(f"metric {shown(ref)}: {head} is {'of a class' if name is None else 'over all classes'}")
    if name is None:
        return head, None
    require_class(ref, str(name), class_names)
    return head, str(name)


def require_class(ref: str, name: str, known: Sequence[str]) -> None:
    """Raise a UsageError unless a class is known."""
    if name not in known:
        raise UsageError(f"metric {shown(ref)}: unknown class {shown(name)}.{did_you_mean(name, known)}")


def chosen_images(images: Slice, names: Sequence[str]) -> list[int]:
    """Return the rows of the images of a slice, ascending.

    Raises
    ------
    UsageError
        When a name or glob matches no image.
    """
    rows: set[int] = set()
    at = {name: row for row, name in enumerate(names)}
    unmatched = []
    for pattern in images.patterns:
        found = [at[pattern]] if pattern in at else [] if images.exact else _rows_of_glob(pattern, names)
        rows.update(found)
        unmatched += [] if found else [pattern]
    if unmatched:
        raise UsageError(_no_image(images, unmatched, names))
    return sorted(rows)


def _rows_of_glob(pattern: str, names: Sequence[str]) -> list[int]:
    return [row for row, name in enumerate(names) if fnmatchcase(name, pattern)]


def _no_image(images: Slice, unmatched: Sequence[str], names: Sequence[str]) -> str:
    listed = ", ".join(map(shown, unmatched[:SHOWN_NAMES]))
    more = f" and {len(unmatched) - SHOWN_NAMES:,} more" if len(unmatched) > SHOWN_NAMES else ""
    example = f"; images are called like {shown(names[0])}" if names else ""
    meant = did_you_mean(unmatched[0], names)
    return f"slice {shown(images.name)}: no image is matched by {listed}{more}{example}.{meant}"


def slice_digest(images: Slice) -> str:
    """Return a digest of what a slice is made of, by which a saved value is known to be of the same slice."""
    text = "\n".join([str(images.exact), *images.patterns])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
