"""Why a number is what it is: points of its curve, the boxes that cost most, and what other rules make of it."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.document import Also, MetricValue, written_as
from jaccard_eval.data.result import ImageSource, InputSummary, Measured, Result
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise

MISSED = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Interpolated precision at a recall value, and the score it is reached at; the latter of a single curve only."""

    recall: float
    precision: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One change to the predictions, and what it alone would give."""

    kind: str  # type of the error: "missed", or one of `analysis.errortypes.TYPES`
    # image, class_name: of the detection, or of the box that is missed
    image: str
    class_name: str
    score: float  # NaN for what is missed
    # row, source: row of the detection among the aligned predictions and in the file; of what is missed, in the
    # ground truth
    row: int
    source: int
    # Row of the object that the detection is meant for, in the ground truth as aligned; -1 for none.
    target: int = field(default=-1, metadata=written_as(None))
    becomes: str  # class afterwards; empty where the detection is removed
    xywh: tuple[float, ...]  # its place afterwards: of a detection that is not moved, its own
    gain: float  # what it alone would add to the metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All errors of a kind or of a class, and what repairing all of them would give."""

    by: str  # "kind" or "class": of the detection, or of the object that is missed
    name: str
    count: int
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The value after one more rule was changed; `change` names both rules."""

    rule: str
    change: str
    value: float
    delta: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Rules of the other protocol, and other causes, that together give a number that was printed.

    None are the rules of this one.
    """

    rules: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Printed:
    """A number that another tool printed, and which rules of its protocol, and other causes, give it on these boxes."""

    text: str
    tried: int  # combinations of what changes the metric here
    fits: tuple[Fit, ...]
    undecided: str | None  # why no single combination is named
    untried: int = 0  # combinations of two causes that were too many

    @property
    def value(self) -> float:
        """The number; of more than 1 it was a percentage."""
        return float(self.text) / (100 if float(self.text) > 1 else 1)

    @property
    def digits(self) -> int:
        """How many decimals it has, as a share."""
        return len(self.text.partition(".")[2]) + (2 if float(self.text) > 1 else 0)

    def has(self, value: float) -> bool:
        """Whether a value is printed like this."""
        return abs(value - self.value) <= 0.5 * 10.0**-self.digits + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExplanationResult(Result):
    """An explanation of one metric.

    Parameters
    ----------
    protocol : str
    metric : MetricValue
    parts : tuple of MetricValue
        What it is the mean of, by IoU threshold, or what it is counted from.
    judged_iou : float
        IoU threshold that boxes are judged at.
    curve : tuple of CurvePoint
        Of average precision.
    fixes : tuple of Fix
        The boxes that cost most, the largest gain first.
    fixed : float
        The metric after all fixes, measured on the changed predictions.
    groups : tuple of Group
        Where no single box gives much: kinds of errors, then classes, and what repairing all errors of each gives.
    against : str, optional
        The other protocol.
    steps : tuple of Step
        From this protocol to the other one, one rule after another; the last value is that of the other protocol.
    printed : Printed, optional
        The number that the other tool printed, where one was given, and what gives it.
    measured, boxes, images : optional
        The match table, the boxes that were matched and where the images lie, to show the boxes on these.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, explain
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 4]], score=[0.9])
    >>> result = explain(gt, pred, "AP50")
    >>> result.metric.value, [fix.kind for fix in result.fixes]
    (0.0, ['localisation'])
    """

    version: str
    signature: str
    protocol: str
    gt: InputSummary = field(metadata=written_as("inputs.gt"))
    pred: InputSummary = field(metadata=written_as("inputs.pred"))
    metric: MetricValue
    parts: tuple[MetricValue, ...]
    judged_iou: float
    curve: tuple[CurvePoint, ...]
    fixes: tuple[Fix, ...]
    fixed: float
    groups: tuple[Group, ...] = ()
    against: str | None = None
    steps: tuple[Step, ...] = ()
    printed: Printed | None = None
    findings: tuple[Finding, ...] = ()
    measured: Measured | None = field(default=None, repr=False, metadata=written_as(None))
    boxes: tuple[BoxTable, BoxTable] | None = field(default=None, repr=False, metadata=written_as(None))
    images: ImageSource | None = field(default=None, repr=False, metadata=written_as(None))

    kind: ClassVar[str] = "explanation"
    reported_by: ClassVar[str] = "explain.report"
    also: ClassVar[Also] = (other_signatures,)

    def _summary(self) -> str:
        text = f"{self.protocol}: {self.metric.ref}={self.metric.value:.4f}"
        return f"{text}; {self.fixed:.4f} after {pluralise(len(self.fixes), 'fix', 'fixes')}"
