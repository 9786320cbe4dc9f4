"""Which annotations are probably wrong: suspects, the surest first. Nothing is computed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

from jaccard_eval.data.document import Also, Count, KnownShare, written_as
from jaccard_eval.data.result import GateVerdict, ImageSource, InputSummary, Result, Status
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise

MISSING, CLASS, BOX, SPURIOUS, DUPLICATE, SIDES = SUSPICIONS = (
    *("missing", "class", "box", "spurious", "duplicate"),
    "sides",  # of poses: left and right are exchanged
)
LISTED = 200  # suspects of a kind: more than anybody looks through at once
PROBABLE = 0.5  # score from which an annotation is rather wrong than right


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """An annotation that is probably wrong, or a detection of an object that has none."""

    kind: str  # one of `SUSPICIONS`
    image: str
    class_name: str = field(metadata=written_as("class"))  # of the annotation; of what is missing, of the detection
    suggested: str  # class, box or id to keep; empty where the annotation is to go
    score: KnownShare
    # xmin, ymin, xmax, ymax: of the annotation; of what is missing, of the detection
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    reason: str
    object: str  # id of the annotation; empty of what is missing
    # Row of the annotation among those aligned, and the box that it should have; not part of a document.
    row: int = field(default=-1, metadata=written_as(None))
    becomes: tuple[float, ...] = field(default=(), metadata=written_as(None))
    image_row: int = field(default=-1, metadata=written_as(None))  # among those aligned


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """AP with what was accepted, and with as many other changes that follow the model, of which none was accepted."""

    accepted: Count
    before: float
    after: float
    control: float
    controls: Count  # how many there were to take


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LabelsResult(Result):
    """Annotations that are probably wrong.

    Parameters
    ----------
    suspects : tuple of Suspect
        The surest first, over all kinds: missing objects, wrong classes, bad boxes, spurious objects and
        duplicates; of poses also those with left and right exchanged.
    unlisted : mapping of str to int
        How many more there are of each kind.
    refused : mapping of str to str
        Kinds that were not looked for, and why.
    preds : tuple of InputSummary
        The predictions that were asked.
    gain : Gain, optional
        AP after the corrections that a review accepted, with its control.
    gates : tuple of GateVerdict
        How the limit of suspects ended that was asked for.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, labels
    >>> gt = BoxTable.from_arrays([0, 0], ["dog", "dog"], [[0, 0, 10, 10], [0, 0, 10, 9]])
    >>> pred = BoxTable.from_arrays([0], ["dog"], [[0, 0, 10, 10]], score=[0.9])
    >>> [(suspect.kind, suspect.object, suspect.suggested) for suspect in labels(gt, pred).suspects]
    [('duplicate', '1', '0')]
    """

    version: str
    signature: str
    protocol: str
    gt: InputSummary = field(metadata=written_as("inputs.gt"))
    preds: tuple[InputSummary, ...] = field(metadata=written_as("inputs.preds"))
    suspects: tuple[Suspect, ...]
    unlisted: Mapping[str, Count] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    gain: Gain | None = None
    gates: tuple[GateVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    images: ImageSource | None = field(default=None, metadata=written_as(None))  # to show suspects in

    kind: ClassVar[str] = "labels"
    reported_by: ClassVar[str] = "labels.report"
    also: ClassVar[Also] = (other_signatures,)

    @property
    def counts(self) -> dict[str, int]:
        """How many suspects of each kind are rather wrong than right, among those that are listed."""
        found = Counter(suspect.kind for suspect in self.suspects if suspect.score >= PROBABLE)
        return {kind: found[kind] for kind in self.kinds if kind not in self.refused}

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds that can be suspected; sides of poses alone."""
        has_sides = SIDES in self.refused or any(suspect.kind == SIDES for suspect in self.suspects)
        return SUSPICIONS if has_sides else tuple(kind for kind in SUSPICIONS if kind != SIDES)

    def limited(self, most: int) -> LabelsResult:
        """Return the list with the verdict whether at most so many suspects are rather wrong than right."""
        n = sum(self.counts.values())
        verdict = GateVerdict(
            rule="suspects",
            metric="suspects",
            check="max",
            status=Status.FAIL if n > most else Status.PASS,
            severity="error",
            value=float(n),
            limit=float(most),
            margin=float(most - n),
            n=self.gt.boxes,
        )
        return replace(self, gates=(verdict,))

    @property
    def headline(self) -> str:
        """How many there are of each kind, in one line."""
        listed = ", ".join(f"{kind} {n:,}" for kind, n in self.counts.items())
        return f"{pluralise(sum(self.counts.values()), 'probable label error')}: {listed}"

    def _summary(self) -> str:
        return self.headline
