"""Both sides of an evaluation together: as they were read, aligned, and as a protocol judges them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.boxtable import Words
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import InputSummary
from jaccard_eval.data.signature import signature
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass


class Prints(NamedTuple):
    """What `signature.fingerprint` returns of the ground truth and of the predictions."""

    hashes: tuple[Words | None, Words | None]
    fingerprints: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both sides as read, and what they have in common.

    `selection` is what was chosen, as a signature names it; `prints` returns what is known of the aligned rows of
    either side as given, which may take a while. `judged_by` are the rules that boxes were chosen by, as
    `matching.judging` does; None where all are still there.
    """

    gt: Dataset
    pred: Dataset
    aligned: Alignment
    selection: tuple[str, ...]
    prints: Callable[[], Prints]
    judged_by: Protocol | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What reading and aligning found."""
        return (*self.gt.findings, *self.pred.findings, *self.aligned.findings)

    def summaries(self) -> tuple[InputSummary, InputSummary]:
        """Return both sides in short, with their fingerprints."""
        gt, pred = self.prints().fingerprints
        return summarise(self.gt, gt), summarise(self.pred, pred)

    def sign(self, protocol: Protocol, *choices: str, version: str) -> str:
        """Return the signature of a result: the protocol, what was chosen, further choices, and the inputs.

        Fingerprints leave no trace of images without boxes; rates per image depend on how many there are.
        """
        gt, pred = self.prints().fingerprints
        selection = (*self.selection, *choices, f"images={len(self.aligned.image_names)}")
        return signature(protocol, selection=selection, gt=gt, pred=pred, version=version)


def summarise(side: Dataset, fingerprint: str) -> InputSummary:
    """Return one side in short."""
    return InputSummary(
        path=side.path,
        format=side.format,
        units=side.units,
        images=len(side.images),
        boxes=len(side.boxes),
        classes=len(side.labels),
        fingerprint=fingerprint,
        details=side.details,
        ignored=side.ignored,
    )
