"""What a suppression gives: how it was done, and the boxes of each class before and after. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from jaccard_eval.data.document import Also, written_as
from jaccard_eval.data.result import Result
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCounts:
    """Boxes of one class before and after; `below` of those that went had too low a score."""

    name: str = field(metadata=written_as("class"))
    before: int
    after: int
    below: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuppressionResult(Result):
    """The counts of one suppression."""

    version: str
    # path, output, format: what was read, where it was written, in which format
    path: str = field(metadata=written_as("inputs.pred.path"))
    output: str
    format: str = field(metadata=written_as("inputs.pred.format"))
    rule: Mapping[str, str | float | bool]  # the overlap, and whatever else the outcome depends on
    classes: tuple[ClassCounts, ...] = field(metadata=written_as("per_class"))  # in the order of the input
    findings: tuple[Finding, ...] = ()  # warnings and notes of reading and writing

    kind: ClassVar[str] = "suppression"
    reported_by: ClassVar[str] = "nms.report"
    also: ClassVar[Also] = (
        lambda result: {f"total.{name}": getattr(result.total, name) for name in ("before", "after", "below")},
    )

    def __post_init__(self) -> None:
        named = {"by", "class_agnostic"}
        numbers = [value for name, value in self.rule.items() if name not in named]
        if not named <= set(self.rule) or not all(type(value) in (int, float) for value in numbers):
            raise UsageError(f"the rule needs by and class_agnostic, and numbers; got {dict(self.rule)}")

    def _summary(self) -> str:
        total = self.total
        return f"NMS by {self.rule['by']}: {total.before:,} boxes, {total.after:,} left"

    @property
    def per_class(self) -> tuple[ClassCounts, ...]:
        """The classes, by the name that reports know them by."""
        return self.classes

    @property
    def total(self) -> ClassCounts:
        """The counts of all classes together."""
        sums = {name: sum(getattr(row, name) for row in self.classes) for name in ("before", "after", "below")}
        return ClassCounts(name="all", **sums)
