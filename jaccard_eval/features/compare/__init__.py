"""What a comparison of predictions on one ground truth gives: differences of metrics, and what changed box by box."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from jaccard_eval.data.document import Also, DataTable, Interval, fields_document, written_as
from jaccard_eval.data.result import EvaluationResult, Resamples, Result, listed
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise


class ChangeKind(enum.StrEnum):
    """What became of a ground-truth box between two predictions.

    `RECLASSIFIED`: on one side, or on both, a detection of another class lies where none of the own class matches.
    `MOVED`: found by both, at another IoU.
    """

    LOST = "lost"
    FOUND = "found"
    RECLASSIFIED = "reclassified"
    DUPLICATED = "duplicated"
    DEDUPLICATED = "deduplicated"
    MOVED = "moved"


class Verdict(enum.StrEnum):
    """How a difference is judged by resampling: significant at the confidence level, in either direction, or not."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENT = "no different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One metric of two predictions; NaN where undefined."""

    metric: str  # as the summary and the table of classes name it
    # None: over all classes
    # Written by the table of classes, where there is one.
    class_name: str | None = field(metadata=written_as("class", written=False, read=lambda row: row.get("class")))
    baseline: float
    value: float
    n: int  # ground-truth boxes that it rests on
    # Of the difference, by resampling the images; None when not asked for, or undefined
    interval: Interval | None = None
    # probability, detectable: how sure the difference is (1 - p), and the smallest one that this set
    # would show; see `bootstrap.PairedDelta`. NaN without an interval.
    probability: float = math.nan
    detectable: float = math.nan

    @property
    def delta(self) -> float:
        """How much higher the value is than that of the baseline."""
        return self.value - self.baseline

    @property
    def p_value(self) -> float:
        """Two-sided, by resampling the images; NaN without an interval."""
        return 1 - self.probability

    also: ClassVar[Also] = (lambda row: {"delta": row.delta, "p_value": row.p_value},)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDeltas:
    """The metrics of two predictions on some of the images."""

    # name, digest: name of the slice, and a digest of what it is made of
    name: str = field(metadata=written_as("slice"))
    digest: str
    images: int
    deltas: tuple[Delta, ...] = field(metadata=written_as("metrics"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxState:
    """What predictions make of a ground-truth box."""

    # Class of the detection at its place: its own when found, another when predicted as that, empty when missed
    predicted: str = field(
        default="",
        metadata=written_as("predicted", write=lambda name: name or None, read=lambda row: row.get("predicted") or ""),
    )
    # score, iou: of that detection; NaN without one
    score: float = math.nan
    iou: float = math.nan
    # Further detections of its class on a box that is found
    duplicates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One ground-truth box that two predictions treat differently."""

    kind: ChangeKind
    image: str
    class_name: str = field(metadata=written_as("class"))
    row: int  # of the box in the ground truth, from 0
    xywh: tuple[float, float, float, float]  # left, top, width and height
    # before, after: by the baseline, and by what is compared with it
    before: BoxState
    after: BoxState


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Predictions as a comparison names them."""

    path: str  # as the user named it
    fingerprint: str
    score: float  # detections of at least this score were compared box by box; NaN when there were none
    name: str  # A, B, C, ... unless it was given another


def _deltas(document: Mapping[str, Any]) -> list[Any]:
    """Return all differences in one list."""
    rows = [document.get("metrics"), document.get("per_class")]
    return [*rows[0], *rows[1]] if all(isinstance(part, list) for part in rows) else rows  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Versus:
    """One contender and the baseline: metrics over all classes, of each class and slice, and what changed."""

    contender: Contender = field(metadata=written_as("pred"))
    deltas: tuple[Delta, ...] = field(metadata=written_as(None, read=_deltas))
    changes: tuple[Change, ...]
    slices: tuple[SliceDeltas, ...] = ()
    verdict: Verdict | None = None  # on the first metric of the summary; None without an interval

    kind: ClassVar[str] = "versus"
    also: ClassVar[Also] = (
        lambda versus: {"metrics": versus.summary, "counts": versus.counts()},
        lambda versus: {
            "per_class": [
                {"class": row.class_name, **fields_document(row)} for row in versus.deltas if row.class_name is not None
            ]
        },
    )

    @property
    def summary(self) -> tuple[Delta, ...]:
        """The metrics over all classes."""
        return tuple(delta for delta in self.deltas if delta.class_name is None)

    def movers(self, metric: str = "AP") -> tuple[Delta, ...]:
        """Return the classes whose metric differs, the weightiest first: by difference times root of objects."""
        # The noise of a mean over n objects falls with sqrt(n): one object that is lost moves its class by 1, and means
        # less than ten of a hundred.
        of_classes = (delta for delta in self.deltas if delta.class_name is not None and delta.metric == metric)
        moved = (row for row in of_classes if abs(row.delta) > 0)
        return tuple(sorted(moved, key=lambda row: -abs(row.delta) * math.sqrt(row.n)))

    def counts(self) -> dict[ChangeKind, int]:
        """Count the changes by kind, all kinds."""
        counted = Counter(change.kind for change in self.changes)
        return {kind: counted[kind] for kind in ChangeKind}

    def tables(self) -> dict[str, DataTable]:
        """Return the differences over all classes, then of each class; bounds and p are NaN without intervals."""
        header = ("metric", "class", "baseline", "value", "delta", "low", "high", "p", "gt")
        undefined = (math.nan, math.nan)
        rows: list[tuple[str | int | float, ...]] = []
        for row in self.deltas:
            bounds = row.interval or undefined
            values = (row.baseline, row.value, row.delta, *bounds, row.p_value, row.n)
            rows.append((row.metric, row.class_name or "all", *values))
        return {"deltas": DataTable(header, tuple(rows))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ComparisonResult(Result):
    """Predictions compared with the first of them, on one ground truth.

    Parameters
    ----------
    version : str
    signature : str
        That of the baseline, with the fingerprints of the others and what decides about boxes.
    protocol : str
        Its name.
    gt : str
        The ground truth as the user named it.
    baseline : Contender
    box_iou : float
        IoU from which a detection finds a box.
    moved_iou : float
        Least change of IoU that is a move.
    others : tuple of Versus
    findings : tuple of Finding
    bootstrap : Resamples, optional
        Of the baseline, where differences have intervals.
    options : mapping of str to plain types
        What it takes to run it again: the rules, the options of each evaluation, and how they were compared.
    results : tuple of EvaluationResult
        What was compared, the baseline first, for curves and images; empty where that is not at hand.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, compare
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> result = compare(gt, pred, pred)
    >>> [(delta.metric, delta.delta) for delta in result.others[0].summary][:2]
    [('AP', 0.0), ('AP50', 0.0)]
    """

    version: str
    signature: str
    protocol: str = field(metadata=written_as("signature_fields.protocol", written=False))
    gt: str = field(metadata=written_as("inputs.gt.path"))
    baseline: Contender = field(metadata=written_as("inputs.baseline"))
    box_iou: float
    moved_iou: float
    others: tuple[Versus, ...] = field(metadata=written_as("comparisons"))
    findings: tuple[Finding, ...] = ()
    bootstrap: Resamples | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[EvaluationResult, ...] = field(default=(), metadata=written_as(None))

    kind: ClassVar[str] = "comparison"
    reported_by: ClassVar[str] = "compare.report"
    text_limit: ClassVar[int] = 1_500
    also: ClassVar[Also] = (other_signatures,)

    def _summary(self) -> str:
        def described(other: Versus) -> str:
            delta = other.summary[0]
            moved = ", ".join(f"{count:,} {kind}" for kind, count in other.counts().items() if count)
            verdict = f" ({other.verdict})" if other.verdict else ""
            text = f"{other.contender.name}: {delta.metric} {delta.value:.4f} ({delta.delta:+.4f}){verdict}"
            return f"{text}; objects: {moved}" if moved else text

        of = f"{self.protocol}: {pluralise(len(self.others), 'other')} against {self.baseline.name}"
        return f"{of}; {listed(map(described, self.others))}"
