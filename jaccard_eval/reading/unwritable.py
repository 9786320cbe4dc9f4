"""What a format cannot carry of a data set that is written to it; nothing is left out without a word."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import DataError, Example, FindingLog, Severity, Where, shown

FLAGS = ("crowd", "difficult", "group_of", "ignore")
UNIVERSE = ("sizes", "images", "names")
LOSSLESS_FIX = "Choose a format that carries it, or leave it out with --lossy."


class LossErrors(FindingLog):
    """Findings of a writer that must not lose anything: its warnings are errors."""

    def _add(self, severity: Severity, code: str, examples: list[Example], fix: str, *rest: Any, **more: Any) -> None:
        if severity is Severity.WARNING:
            severity, fix = Severity.ERROR, fix or LOSSLESS_FIX
        super()._add(severity, code, examples, fix, *rest, **more)


def report_losses(dataset: Dataset, path: Path, findings: FindingLog, carried: Collection[str]) -> None:
    """Say what the data set holds that is not among `carried`: a warning for columns of boxes, a note for the rest."""
    for what, count in _held(dataset):
        if count and what not in carried:
            detail = f"{_TEXTS[what]}: {count:,}; the output does not carry that"
            say = findings.note if what in UNIVERSE else findings.warning
            say("write-loss", Where(str(path), field=what), detail)


def encodable(text: str) -> str:
    """Return a text as UTF-8 can have it; file names of any bytes are none."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def report_escaped(texts: Iterable[str], path: Path, findings: FindingLog) -> None:
    """Warn of names that hold half a character, which do not come back as they are."""
    odd = [text for text in texts if encodable(text) != text]
    findings.add_rows(
        Severity.WARNING,
        "write-name",
        range(len(odd)),
        lambda row: (Where(str(path)), f"{shown(odd[row])} is no text that UTF-8 can hold; written with escapes"),
    )


def require_pixels(dataset: Dataset, what: str) -> None:
    """Raise a DataError unless the boxes are in pixels, for a format that holds nothing else."""
    if dataset.units != "px":
        detail = f"{what} holds pixels, but boxes are normalised and image sizes unknown"
        raise DataError.single("size-unknown", Where(dataset.path), detail, fix="Give the pictures with --images DIR.")


def report_rounded(exact: BoolArray, path: Path, findings: FindingLog) -> None:
    """Say how many boxes are not read back to the last bit."""
    rounded = np.flatnonzero(~exact)
    findings.add_rows(
        Severity.NOTE,
        "write-rounded",
        rounded,
        lambda _: (Where(str(path)), ""),
        summary=f"boxes that are not read back to the last bit: {len(rounded):,}; no such numbers lead to them",
    )


_TEXTS = {
    **{flag: f"boxes with {flag} set" for flag in FLAGS},
    "area": "boxes whose area is not width times height",
    "sizes": "images of known size",
    "images": "images without boxes",
    "names": "classes without boxes",
}


def _held(dataset: Dataset) -> Iterable[tuple[str, int]]:
    boxes = dataset.boxes
    yield from ((flag, int(getattr(boxes, flag).sum())) for flag in FLAGS)
    yield "area", int((boxes.area != boxes.xywh[:, 2] * boxes.xywh[:, 3]).sum())
    yield "sizes", int(np.isfinite(dataset.images.sizes).all(axis=1).sum())
    yield "images", len(dataset.images) - len(np.unique(boxes.image))
    yield "names", len(dataset.labels) - len(np.unique(boxes.label))
