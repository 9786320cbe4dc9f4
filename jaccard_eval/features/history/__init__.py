"""Runs in their order: the metric of each, differences from the run before, classes. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from jaccard_eval.data.document import Also, Count, Interval, KnownShare, written_as
from jaccard_eval.data.result import Result
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRun:
    """A saved evaluation, and how it differs from the one before it of the same part."""

    name: str  # its file, with as many folders as differ
    path: str
    # Runs of one part rest on the same ground truth and rules, and no others are compared. Parts count from 1.
    part: Count
    images: Count
    objects: Count
    detections: Count
    metrics: Mapping[str, float]
    signature: str
    interval: Interval | None = None  # of the metric
    refused: str = ""  # why there is none, where one was asked for
    delta: float = math.nan  # to the run before it; NaN for the first of a part
    delta_interval: Interval | None = None
    p_value: float = math.nan
    verdict: str = ""  # "better", "worse" or "no different"; empty where it is not tested
    # Its page, where pages are made, and where that lies, seen from the page of the history.
    page: str = field(default="", metadata=written_as(None), repr=False)
    place: str = field(default="", metadata=written_as(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassHistory:
    """The metric of a class in each run, and how it moved from the first to the last run of the last part."""

    name: str = field(metadata=written_as("class"))
    gt: Count  # objects in the last run that has the class
    values: tuple[float, ...]  # NaN where a run does not define it
    delta: float = math.nan
    interval: Interval | None = None  # of the difference
    p_value: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HistoryResult(Result):
    """Saved evaluations in their order.

    Parameters
    ----------
    metric : str
        The first of the summary: what is followed.
    order : {"given", "natural"}
        Whether runs stand as they were given, or by their names, numbers in these by their value.
    runs : tuple of HistoryRun
    classes : tuple of ClassHistory
        What moved most first, by its difference times the root of its objects.
    n_resamples : int
        Of the images, for intervals and tests of differences; 0 where none were drawn.
    confidence_level : float
    findings : tuple of Finding

    Examples
    --------
    >>> from jaccard_eval import evaluate, history
    >>> runs = [evaluate("sample_data/coco/gt.json", f"sample_data/coco/{name}.json") for name in ("worse", "better")]
    >>> result = history(*runs, bootstrap=0)
    >>> [(run.name, round(run.metrics["AP"], 4)) for run in result.runs], round(result.runs[1].delta, 4)
    ([('worse', 0.3463), ('better', 0.6616)], 0.3152)
    """

    version: str
    signature: str
    metric: str
    order: str
    runs: tuple[HistoryRun, ...]
    classes: tuple[ClassHistory, ...]
    n_resamples: Count = 0
    confidence_level: KnownShare = 0.95
    findings: tuple[Finding, ...] = ()

    kind: ClassVar[str] = "history"
    reported_by: ClassVar[str] = "history.report"
    also: ClassVar[Also] = (other_signatures,)

    @property
    def latest(self) -> tuple[HistoryRun, ...]:
        """The runs that can be compared with the last one, which is among them."""
        return tuple(run for run in self.runs if run.part == self.runs[-1].part)

    def value(self, run: HistoryRun) -> float:
        """Return the metric of a run; NaN where it has none."""
        return run.metrics.get(self.metric, math.nan)

    def _summary(self) -> str:
        last = self.runs[-1]
        return f"{pluralise(len(self.runs), 'run')}, {self.metric} of {last.name}: {self.value(last):.4f}"
