"""What a suppression gives: how it was done, and the boxes of each class before and after. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jaccard_eval.data.document import document_head, finding_dict, plain
from jaccard_eval.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCounts:
    """Boxes of one class before and after; `below` of those that went had too low a score."""

    name: str
    before: int
    after: int
    below: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionResult:
    """The counts of one suppression.

    Parameters
    ----------
    version : str
    path, output, format : str
        What was read, where it was written, in which format.
    rule : mapping of str to value
        Method, overlap and whatever else the method depends on.
    classes : tuple of ClassCounts
        In the order of the input.
    findings : tuple of Finding
        Warnings and notes of reading and writing.
    """

    version: str
    path: str
    output: str
    format: str
    rule: Mapping[str, str | float | bool]
    classes: tuple[ClassCounts, ...]
    findings: tuple[Finding, ...] = ()

    kind: ClassVar[str] = "suppression"

    @property
    def total(self) -> ClassCounts:
        """The counts of all classes together."""
        sums = (sum(getattr(one, name) for one in self.classes) for name in ("before", "after", "below"))
        before, after, below = sums
        return ClassCounts(name="all", before=before, after=after, below=below)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1."""
        return {
            **document_head(self.kind, self.version),
            "inputs": {"pred": {"path": self.path, "format": self.format}},
            "output": self.output,
            "rule": plain(dict(self.rule)),
            "total": _counts(self.total),
            "per_class": [{"class": one.name} | _counts(one) for one in self.classes],
            "warnings": [finding_dict(finding) for finding in self.findings],
        }


def _counts(counts: ClassCounts) -> dict[str, int]:
    fields: dict[str, Any] = asdict(counts)
    return {name: value for name, value in fields.items() if name != "name"}
